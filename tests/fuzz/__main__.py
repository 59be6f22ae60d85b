"""A coverage-guided fuzzer (atheris) of the decoder and the first stage: `make fuzz`, or `python -m tests.fuzz --help`.

Whatever arrives, nothing but the documented errors is raised, the state stays small, every output can be read, and the
rows that were sent are those that were taken, rejected, copies or late.
"""

import argparse
import json
import random
import resource
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]
import msgspec

with atheris.instrument_imports(include=["springback.producers.contract", "springback.stream_processors"]):
    from tests.fuzz.accounted_core import AccountedCore

from tests.fuzz.odd_frames import changed, encoded, odd_frame, spoilt
from tests.house import DATA

MOST_MEMORY_MB = 1024
LONGEST_BYTES = 65_536


def seeds(folder: Path, count: int, seed: int) -> None:
    """Writes the frames to begin with: golden ones, and some that are nearly right."""
    rng = random.Random(seed)
    for path in DATA.glob("step_frame.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    for number in range(count):
        (folder / f"odd-{number}").write_bytes(odd_frame(rng))


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """Another frame made of one: changed as a document, or as bytes."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.05:
        return bytes(atheris.Mutate(data, most))
    if kind < 0.55:  # mutations are made on top of each other, and few frames are still readable after several
        made = odd_frame(rng)
    elif kind < 0.6:
        made = spoilt(data, rng)
    else:
        try:
            document = json.loads(data) if data[:1] == b"{" else msgspec.msgpack.decode(data)
            made = encoded(changed(document, rng), rng)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            made = odd_frame(rng)
    return made[:most]


def main() -> None:
    """Fuzzes until so many frames have been tried; a frame that fails is written to a file crash-…"""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000, help="how many to try (100000)")
    parser.add_argument("--seed", type=int, default=1, help="for the same frames again (1)")
    parser.add_argument("--corpus", type=Path, help="folder to begin with and to keep what was new; a temporary one")
    parser.add_argument("crash", type=Path, nargs="*", help="frames to try again, as the fuzzer has written them")
    options = parser.parse_args()
    core = AccountedCore()
    if options.crash:
        for path in options.crash:
            core.feed(path.read_bytes())
        core.flush()
        return

    def one(data: bytes) -> None:
        core.feed(data)
        if core.frames == options.frames:
            core.flush()
            used_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"{core.frames} frames, {core.unreadable} of them unreadable; {core.sent} rows: {core.fates}")
            print(f"at most {used_mb} MB of memory")
            assert used_mb <= MOST_MEMORY_MB

    with tempfile.TemporaryDirectory() as own:
        corpus = options.corpus or Path(own)
        corpus.mkdir(parents=True, exist_ok=True)
        seeds(corpus, 200, options.seed)
        flags = [f"-runs={options.frames}", f"-seed={options.seed}", f"-rss_limit_mb={MOST_MEMORY_MB}"]
        atheris.Setup([sys.argv[0], *flags, f"-max_len={LONGEST_BYTES}", str(corpus)], one, custom_mutator=mutated)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
