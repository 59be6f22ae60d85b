"""The steps that a window's evidence may need, kept while an episode runs, and the evidence made of them (ours).

A window begins before its alarm, so that its first steps must be kept before anybody knows that it will open. Of the
scored steps of an open episode these are kept: the last 6; up to 32 of each stretch that a detector would make a window
of now, from 5 steps before its departure on; and the last 32, as far as they are in such a stretch or before it. So an
episode without trouble keeps 6 steps, and none keeps more than 96. What is kept after a step depends on the steps up to
it alone, not on how they came in batches.

Steps are told apart by their place among the episode's scored ones, counted from 0: numbers of steps may be missing.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from springback.stream_processors.resilience.anchor import Bools, Floats, Ints
from springback.stream_processors.resilience.rebound.rebound_window import DetectorState, WindowEvent
from springback.stream_processors.resilience.rebound.recovery_cost import Tally
from springback.stream_processors.resilience.tracking.batch import Batch
from springback.stream_processors.resilience.tracking.scoring import ScoredBatch
from springback.stream_processors.resilience.tracking.tracker_state import KeptSteps, OpenEpisode, StepWords
from springback.stream_processors.resilience.window_evidence import (
    MOST_HEAD,
    MOST_TAIL,
    MOST_TEXT,
    STEPS_AFTER,
    STEPS_BEFORE,
    EvidenceStep,
    WindowEvidence,
)

_PLACE, _STEP = 0, 1
"""Columns of what is kept; behind these come the time and the figures, in the order of `EvidenceStep`."""
_WIDTH = 10
_ROW_BYTES = 8 * _WIDTH
_LAST = STEPS_BEFORE + 1


def gather_evidence(scored: ScoredBatch, events: Sequence[Sequence[WindowEvent]]) -> list[list[WindowEvidence | None]]:
    """The evidence of each of the batch's window events, episode by episode. Mutates what the episodes keep.

    Called behind the walk, and before the episodes' counts of steps are brought up to the batch's end.

    Args:
        scored: the batch.
        events: what the walk has found in it, for each episode.
    """
    rows, numbers = scored.rows, _numbers(scored)
    found: list[list[WindowEvidence | None]] = []
    bounds = zip(rows.starts.tolist(), rows.stops.tolist(), strict=True)
    for episode, happened, (start, stop) in zip(rows.episodes, events, bounds, strict=True):
        state = episode.state
        kept = state.kept
        if start == stop and not happened:
            found.append([])
            continue
        if happened or not _keep_latest(kept, state.detectors, rows, numbers, start, stop):
            stretch = _Stretch(kept, rows, numbers[start:stop], start)
            found.append([_of_event(stretch, event, start) for event in happened])
            _keep(kept, stretch, state.detectors)
        else:
            found.append([])
        if state.off_rate:
            kept.numbers, kept.words = b"", []
    return found


def evidence_at_end(episode: OpenEpisode, tally: Tally) -> WindowEvidence | None:
    """The evidence of a window that its episode's end closes."""
    stretch = _Stretch(episode.kept)
    return None if not len(stretch.places) else _evidence(stretch, tally, int(stretch.places[-1]), closed=False)


class _Stretch:
    """The steps at hand of one episode: those kept of earlier batches, and behind them those of this one.

    Args:
        kept: those of earlier batches.
        rows: the batch; None where there is none.
        numbers: what `_numbers` makes of its rows of the episode.
        start: where these begin in the batch.
    """

    def __init__(
        self, kept: KeptSteps, rows: Batch | None = None, numbers: Floats | None = None, start: int = 0
    ) -> None:
        earlier = _unpacked(kept.numbers)
        self.earlier = len(earlier)
        self.numbers: Floats = earlier if numbers is None else np.concatenate([earlier, numbers])
        self.places: Ints = self.numbers[:, _PLACE].astype(np.int64)
        self._words = dict(enumerate(kept.words))
        self._rows, self._start = rows, start

    def words_at(self, chosen: list[int]) -> list[StepWords]:
        """The words of these of the steps; those of a batch's rows are looked up when they are first asked for."""
        new = [at for at in chosen if at not in self._words]
        if new and self._rows is not None:
            self._words.update(
                zip(new, _words(self._rows, [self._start + at - self.earlier for at in new]), strict=True)
            )
        return [self._words[at] for at in chosen]

    def place_of(self, step: int) -> int:
        """The place of a step. Of one that is not at hand it is reckoned as if none were missing (older states)."""
        steps = self.numbers[:, _STEP]
        at = int(np.searchsorted(steps, step))
        if at < len(steps) and steps[at] == step:
            return int(self.numbers[at, _PLACE])
        nearest = min(at, len(steps) - 1)
        return max(0, int(self.numbers[nearest, _PLACE] - steps[nearest]) + step)


def _of_event(stretch: _Stretch, event: WindowEvent, start: int) -> WindowEvidence | None:
    """What is known after the event's row; of a window that a gap broke off, after the row before."""
    at = stretch.earlier + event.row - start - event.censored
    if at < 0 or not len(stretch.numbers):
        return None
    return _evidence(stretch, event.tally, int(stretch.numbers[at, _PLACE]), closed=event.closed and not event.censored)


def _evidence(stretch: _Stretch, tally: Tally, known: int, *, closed: bool) -> WindowEvidence:
    """Makes the evidence of a window.

    Args:
        stretch: the steps at hand.
        tally: of the window, from its departure to its re-entry, its alarm or its end.
        known: the place of the last step that was seen by then.
        closed: whether steps after the re-entry belong to it.
    """
    places = stretch.places
    departure, reentry = stretch.place_of(tally.departure_step), stretch.place_of(tally.last_step)
    first, last = max(0, departure - STEPS_BEFORE), min(known, reentry + STEPS_AFTER * closed)
    head = (first <= places) & (places < first + MOST_HEAD)
    tail = places > max(known - MOST_TAIL, first + MOST_HEAD - 1)
    chosen = np.flatnonzero((head | tail) & (places <= last)).tolist()
    _, numbers, *figures = stretch.numbers[chosen].T.tolist()
    modes, actions, feedbacks = zip(*stretch.words_at(chosen), strict=True) if chosen else ((), (), ())
    # By columns: evidence is made for two readings of each window, and costs as much as the walk of its steps.
    steps = tuple(map(EvidenceStep, map(int, numbers), figures[0], modes, actions, feedbacks, *figures[1:]))
    at_hand = places[chosen]
    left_out = last - first + 1 - len(steps)
    holes = np.flatnonzero(np.diff(at_hand, prepend=first - 1) > 1)
    return WindowEvidence(
        steps=steps,
        before=int((at_hand < departure).sum()),
        after=int((at_hand > reentry).sum()),
        left_out=left_out,
        left_out_at=int(holes[0]) if left_out and len(holes) else 0,
    )


def _keep_latest(
    kept: KeptSteps, detectors: DetectorState, rows: Batch, numbers: Floats, start: int, stop: int
) -> bool:
    """Keeps the last steps where they are all that is to be kept, which is nearly always; says whether they are."""
    wanted = _LAST
    departure = min(_departures(detectors), default=None)
    if departure is not None:
        if departure >= numbers[start, _STEP]:
            wanted = stop - start - int(np.searchsorted(numbers[start:stop, _STEP], departure)) + STEPS_BEFORE
        else:
            before = _Stretch(kept)
            place = before.place_of(departure) if len(before.numbers) else 0
            wanted = int(numbers[stop - 1, _PLACE]) - place + 1 + STEPS_BEFORE
        if wanted > MOST_TAIL:
            return False
        wanted = max(wanted, _LAST)
    new = min(wanted, stop - start)
    latest = numbers[stop - new : stop].tobytes()
    words = _words(rows, list(range(stop - new, stop)))
    old = wanted - new
    kept.numbers = (kept.numbers[-old * _ROW_BYTES :] if old else b"") + latest
    kept.words = (kept.words[-old:] if old else []) + words
    return True


def _keep(kept: KeptSteps, stretch: _Stretch, detectors: DetectorState) -> None:
    """Keeps of the steps at hand those that may yet be needed."""
    places = stretch.places
    if not len(places):
        return
    last = int(places[-1])
    wanted: Bools = places > last - _LAST
    for departure in _departures(detectors):
        first = max(0, stretch.place_of(departure) - STEPS_BEFORE)
        wanted |= (first <= places) & ((places < first + MOST_HEAD) | (places > last - MOST_TAIL))
    at = np.flatnonzero(wanted)
    kept.numbers, kept.words = stretch.numbers[at].tobytes(), stretch.words_at(at.tolist())


def _departures(detectors: DetectorState) -> Iterator[int]:
    """The steps at which a window has departed, or would have if its detector raised an alarm now."""
    if detectors.window is not None:
        yield detectors.window.tally.departure_step
        return
    for candidate in (detectors.effort_candidate, detectors.delay_candidate):
        if candidate is not None:
            yield candidate.departure_step


def _numbers(scored: ScoredBatch) -> Floats:
    """What is kept of each scored row, as one matrix. Shape: (m, 10)."""
    rows, level = scored.rows, scored.intensity
    states = [episode.state for episode in rows.episodes]
    taken = np.array([state.steps - state.unscored for state in states], dtype=np.int64)
    numbers = np.empty((len(rows), _WIDTH))
    columns = (
        np.arange(len(rows)) + (taken - rows.starts)[rows.episode],
        rows.step,
        rows.time_s,
        rows.progress,
        rows.propositions,
        level.total,
        level.cognitive,
        level.physical,
        level.debt,
        scored.lost,
    )
    for position, column in enumerate(columns):
        numbers[:, position] = column
    return numbers


def _unpacked(numbers: bytes) -> Floats:
    return np.frombuffer(numbers).reshape(-1, _WIDTH)


def _words(rows: Batch, at: list[int]) -> list[StepWords]:
    modes = [rows.mode_names[code] for code in rows.mode[at].tolist()]
    texts = (rows.texts(column, at) for column in ("action", "feedback"))
    actions, feedbacks = ([text if len(text) <= MOST_TEXT else _cut(text) for text in column] for column in texts)
    return list(zip(modes, actions, feedbacks, strict=True))


def _cut(text: str) -> str:
    return f"{text[: MOST_TEXT - 1]}…"
