"""Dead letters as they lie in their topic: what could not be used, why, and the message that it came of.

A letter holds a whole message, or a part of one: a row, a header, an end, or the steps of an episode that were not
used. The message that it came of lies in the workers' input for as long as that is kept. What has been sent again is
noted in the same topic, by the place of that message, so that no second run sends it twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from springback.producers.contract.codec import decode_frame
from springback.producers.errors import UnreadableFrameError
from springback.stream_processors.errors import DeadLetterError
from springback.stream_processors.stages.dead_letters import (
    PROCESSING_ERROR,
    STATE_FULL,
    TOO_COSTLY,
    TOO_MANY_FAULTS,
    WRONG_KEY,
)

SENT_AGAIN: Final = "sent-again"
"""The header of a note that a message was sent again: its topic, partition and offset."""
SENT_AGAIN_OF: Final = "sent-again-of"
"""The header of a message that was sent again: the place of its dead letter."""

_OF_WHOLE_MESSAGES = frozenset({PROCESSING_ERROR, STATE_FULL, TOO_COSTLY, TOO_MANY_FAULTS, WRONG_KEY})


class Place(NamedTuple):
    """Where a message lies. `topic` has its prefix."""

    topic: str
    partition: int
    offset: int

    def text(self) -> str:
        """The place in one word.

        >>> Place("lab.steps", 3, 120).text()
        'lab.steps/3/120'
        """
        return f"{self.topic}/{self.partition}/{self.offset}"

    @classmethod
    def of_text(cls, text: str) -> Self | None:
        """The place that `text` tells; None where it tells none.

        >>> Place.of_text("lab.steps/3/120"), Place.of_text("steps")
        (Place(topic='lab.steps', partition=3, offset=120), None)
        """
        topic, _, rest = text.partition("/")
        partition, _, offset = rest.partition("/")
        numbers = partition.isdecimal() and offset.isdecimal()
        return cls(topic, int(partition), int(offset)) if topic and numbers else None


def parse_position(text: str) -> tuple[int, int]:
    """The partition and the offset of a dead letter, as a list of them shows it.

    Raises:
        DeadLetterError: it is not PARTITION:OFFSET.

    >>> parse_position("0:12")
    (0, 12)
    """
    partition, _, offset = text.partition(":")
    if not (partition.isascii() and partition.isdecimal() and offset.isascii() and offset.isdecimal()):
        message = f"{text!r} is no place of a dead letter: expected PARTITION:OFFSET, such as 0:12"
        raise DeadLetterError(message)
    return int(partition), int(offset)


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter.

    Attributes:
        position: `PARTITION:OFFSET` in the topic of dead letters.
        time_s: when it came there, by the broker's clock, in seconds since the epoch.
        key: the key of the message that it came of.
        value: what it holds.
        reason: a short code.
        detail: what was found, and what was expected.
        source: the place of the message that it came of; None where the letter does not say it.
    """

    position: str
    time_s: float
    key: bytes
    value: bytes
    reason: str
    detail: str
    source: Place | None

    @property
    def producer(self) -> str:
        """Whose it was: the frame says it, else the key of the message."""
        if self.reason == WRONG_KEY:
            try:
                return decode_frame(self.value).producer
            except UnreadableFrameError:
                pass  # another version may have understood it
        return self.key.decode("utf-8", "replace")

    @property
    def whole(self) -> bool:
        """Whether it holds the whole message."""
        if self.reason in _OF_WHOLE_MESSAGES:
            return True
        try:
            decode_frame(self.value)
        except UnreadableFrameError as error:
            return error.reason == self.reason
        return True


def letter_of(
    partition: int,
    offset: int,
    time_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes]],
) -> Letter | Place | None:
    """What a record of the topic is: a letter, the place of a message that was sent again, or None for neither."""
    texts = {name: bytes(text or b"").decode("utf-8", "replace") for name, text in headers}
    if SENT_AGAIN in texts:
        return Place.of_text(texts[SENT_AGAIN])
    if "reason" not in texts:
        return None
    source = Place.of_text("/".join(texts.get(name, "") for name in ("topic", "partition", "offset")))
    return Letter(
        f"{partition}:{offset}",
        time_ms / 1000,
        key or b"",
        value or b"",
        texts["reason"],
        texts.get("detail", ""),
        source,
    )


@dataclass(slots=True)
class ReasonGroup:
    """The dead letters of one reason.

    Attributes:
        reason: the code.
        letters: how many there are.
        sent_again: of how many the message was sent again.
        producers: how many there are of each producer.
        newest: the last that came.
    """

    reason: str
    newest: Letter
    letters: int = 0
    sent_again: int = 0
    producers: Counter[str] = field(default_factory=Counter)


def group_letters(letters: Iterable[Letter], sent_again: frozenset[Place] | set[Place]) -> list[ReasonGroup]:
    """The letters by reason, those of the most letters first."""
    groups: dict[str, ReasonGroup] = {}
    for letter in letters:
        group = groups.setdefault(letter.reason, ReasonGroup(letter.reason, letter))
        group.letters += 1
        group.sent_again += letter.source in sent_again
        group.producers[letter.producer] += 1
        if letter.time_s >= group.newest.time_s:
            group.newest = letter
    return sorted(groups.values(), key=lambda group: (-group.letters, group.reason))


def is_wanted(letter: Letter, chosen: Mapping[str, frozenset[str]]) -> bool:
    """Whether a letter is one of those that were asked for, by `reason`, `producer` and `position`; none asks for all.

    Args:
        letter: the letter.
        chosen: what each of these may be; one that is missing, or empty, may be anything.
    """
    return all(not wanted or getattr(letter, name) in wanted for name, wanted in chosen.items())
