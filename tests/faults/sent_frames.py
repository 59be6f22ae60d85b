"""Whether what the emitters sent is what the topic holds: nothing lost, and each producer's frames in their order."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from springback.producers.contract.codec import decode_frame
from tests.faults.offline_oracle import TopicRecord
from tests.faults.playing_emitter import JournalClosed, JournalFrame, JournalOpened, digest_of, read_journal


def sent_differences(journals: Sequence[Path], steps: Sequence[TopicRecord]) -> list[str]:
    """What is not as it must be between the emitters' journals and the topic of steps.

    Of an emitter that was killed, what had not left it may be missing at the end, but nothing before it.

    Args:
        journals: of all emitter processes that ever were.
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
    for journal in journals:
        lines = read_journal(journal)
        frames = [line for line in lines if isinstance(line, JournalFrame)]
        known |= {frame.digest for frame in frames}
        wrong += [f"{journal.stem}: {text}" for text in _of_session(frames, lines, places)]
    wrong += [f"{sessions[digest]}: a frame that no emitter sent" for digest in places.keys() - known]
    return wrong


def _of_session(
    frames: Sequence[JournalFrame],
    lines: Sequence[JournalOpened | JournalFrame | JournalClosed],
    places: dict[str, int],
) -> list[str]:
    wrong = []
    closed = next((line for line in lines if isinstance(line, JournalClosed)), None)
    missing = [frame for frame in frames if frame.digest not in places]
    arrived = [frame for frame in frames if frame.digest in places]
    if closed is None:
        last = max((frame.number for frame in arrived), default=-1)
        missing = [frame for frame in missing if frame.number < last and not frame.held]
    if missing:
        rows = sum(frame.steps for frame in missing)
        wrong.append(f"{len(missing)} of {len(frames)} frames with {rows} steps are not in the topic")
    ordered = [places[frame.digest] for frame in arrived if not frame.held]
    passed = sum(one > other for one, other in itertools.pairwise(ordered))
    if passed:
        wrong.append(f"{passed} frames came after younger ones")
    if closed is not None:
        rows, ends = sum(frame.steps for frame in frames), sum(frame.ends for frame in frames)
        if (rows, ends) != (closed.steps, closed.ends):
            wrong.append(f"{closed.steps} steps and {closed.ends} ends were reported, {rows} and {ends} were sent")
        if closed.steps_sent != closed.steps or closed.steps_dropped or closed.ends_dropped:
            wrong.append(f"the emitter's own counts are {closed}")
    return wrong
