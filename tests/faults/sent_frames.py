"""Whether what the emitters sent is what the topic holds: nothing lost, and each producer's frames in their order."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from springback.producers.contract.codec import decode_frame
from tests.faults.offline_oracle import TopicRecord
from tests.faults.playing_emitter import (
    JournalClosed,
    JournalFrame,
    JournalHeld,
    JournalLine,
    JournalTaken,
    digest_of,
    read_journal,
)


def sent_differences(journals: Sequence[Sequence[Path]], steps: Sequence[TopicRecord]) -> list[str]:
    """What is not as it must be between the emitters' journals and the topic of steps.

    Of an emitter that was killed a frame may be missing that nobody had taken yet: neither Kafka nor the spool.

    Args:
        journals: of each producer those of its processes, in the order in which they were started.
        steps: the topic, by partition and offset.
    """
    places: dict[str, int] = {}
    sessions: dict[str, str] = {}
    for place, record in enumerate(steps):
        digest = digest_of(record.value or b"")
        places.setdefault(digest, place)
        sessions[digest] = decode_frame(record.value or b"").session
    wrong: list[str] = []
    known: set[str] = set()
    for files in journals:
        ordered: list[str] = []
        for file in files:
            lines = read_journal(file)
            held = {line.digest for line in lines if isinstance(line, JournalHeld)}
            own = [line.digest for line in lines if isinstance(line, JournalFrame)]
            known |= set(own)
            ordered += [digest for digest in own if digest not in held and digest in places]
            wrong += [f"{file.stem}: {text}" for text in _lost(lines, places)]
        passed = sum(places[one] > places[other] for one, other in itertools.pairwise(ordered))
        if passed:
            wrong.append(f"{files[0].stem}: {passed} frames came after younger ones")
    wrong += [f"{sessions[digest]}: a frame that no emitter sent" for digest in places.keys() - known]
    return wrong


def _lost(lines: Sequence[JournalLine], places: dict[str, int]) -> list[str]:
    """What of one process is missing, or not as it says itself."""
    frames = [line for line in lines if isinstance(line, JournalFrame)]
    taken = {line.digest for line in lines if isinstance(line, JournalTaken)}
    closed = next((line for line in lines if isinstance(line, JournalClosed)), None)
    missing = [f for f in frames if f.digest not in places and (closed is not None or f.digest in taken)]
    wrong = []
    if missing:
        rows = sum(frame.steps for frame in missing)
        wrong.append(f"{len(missing)} of {len(frames)} frames with {rows} steps are not in the topic")
    if closed is not None:
        sent = sum(frame.steps for frame in frames), sum(frame.ends for frame in frames)
        if sent != (closed.steps, closed.ends):
            wrong.append(f"{closed.steps} steps and {closed.ends} ends were reported, {sent} were sent")
        if closed.steps_sent != closed.steps or closed.steps_dropped or closed.ends_dropped:
            wrong.append(f"the emitter's own counts are {closed}")
    return wrong
