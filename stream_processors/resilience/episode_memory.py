"""What is kept of an episode that is over: 64 bits, for a state is written often and remembers thousands of them."""

import hashlib

from springback.stream_processors.resilience.readings import EpisodeKey


def memory_mark(key: EpisodeKey) -> int:
    """A number that stands for the episode; two different episodes share one by a chance of 2^-64.

    >>> memory_mark(EpisodeKey("a", "bc", "d")) == memory_mark(EpisodeKey("ab", "c", "d"))
    False
    """
    text = f"{len(key.agent)}:{len(key.session)}:{key.agent}{key.session}{key.episode}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
