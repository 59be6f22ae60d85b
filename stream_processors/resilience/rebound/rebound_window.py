"""The rebound window (t_d, t_r): when an episode leaves its stage baseline and when it is back.

Two cumulative-sum detectors (Page 1954) watch each episode, because trouble shows in two ways: as excess effort at
the anchor, and as cycles that pass without the task coming nearer. The rules are in `WindowConfig`; all of this is
ours, where the paper says only "first step that departs" and "first that re-enters".

The walk goes row by row, on plain floats that were computed for the whole batch. What lies behind a gap is walked apart
(see `break_off`): there is no course between the two sides to judge.

An example with an effort bound of 4: two hard steps add 3 - 0.8 each, so the sum stands at 2.2 after step 1 and at 4.4,
above the bound, after step 2. The window departs at step 1, the first after the sum was last 0. Steps 3 to 5 are calm;
the first of them is the re-entry, t_r = 3. With terms equal to the intensities, the cost is (3 + 3 + 0.5) / 10:

>>> g, zero = [0.0, 3.0, 3.0, 0.5, 0.5, 0.5], [0.0] * 6
>>> config = WindowConfig(effort_bound=4.0)
>>> effort, delay = (gains.tolist() for gains in config.increments(np.array(g), np.zeros(6)))
>>> place = {"mode": ["navigate"] * 6, "progress_bin": [0] * 6, "residual_bin": [4] * 6, "work": [10.0] * 6}
>>> sums = {"total": g, "cognitive": g, "physical": zero, "debt": zero, "seconds": [0.5] * 6}
>>> times = {"step": list(range(6)), "time_s": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]}
>>> rows = WalkRows(**times, **place, **sums, intensity=g, lost=zero, effort_gain=effort, delay_gain=delay)
>>> opened, closed = walk(DetectorState(), rows, 0, 6, config.fixed_bounds(), config)
>>> opened.alarm_step, opened.cause, closed.tally.departure_step, closed.tally.last_step
(2, 'effort', 1, 3)
>>> round(closed.tally.cost(), 6)
0.65
"""

from typing import Literal, NamedTuple

import msgspec
import numpy as np

from springback.stream_processors.resilience.anchor import Floats
from springback.stream_processors.resilience.baseline.estimates import AlarmBounds, FamilyIndex
from springback.stream_processors.resilience.readings import WindowCause
from springback.stream_processors.resilience.rebound.recovery_cost import Tally


class WindowConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The detectors (ours).

    Attributes:
        detector: `cusum`, or `threshold`: alarm when g^rec >= threshold for threshold_steps scored steps in a row.
        bounds: `calibrated` uses a family's own alarm bounds once it has them, `fixed` never does.
        gap_steps: the most steps that may be missing between two, unless the work left is more: beyond it there is no
            course to judge, so that an open window ends there, and both detectors start anew behind it.
        effort_bound, delay_bound: the alarm bounds until a family's own are known.
        effort_drift, delay_drift: what a sum falls by on each step.
        cap: the most that one step can add.
        calm_intensity, calm_loss: a step is calm with g^rec and lost cycles at or below these.
        calm_steps: calm scored steps in a row that close a window.
        threshold, threshold_steps: of the threshold detector.
    """

    detector: Literal["cusum", "threshold"] = "cusum"
    bounds: Literal["calibrated", "fixed"] = "calibrated"
    effort_bound: float = 9.0
    delay_bound: float = 10.0
    effort_drift: float = 0.8
    delay_drift: float = 0.4
    cap: float = 10.0
    calm_intensity: float = 1.0
    calm_loss: float = 0.4
    calm_steps: int = 3
    threshold: float = 3.0
    threshold_steps: int = 2
    gap_steps: int = 64

    def fixed_bounds(self) -> AlarmBounds:
        """The bounds of a family that has none of its own."""
        return AlarmBounds(self.effort_bound, self.delay_bound)

    def increments(self, intensity: Floats, lost: Floats) -> tuple[Floats, Floats]:
        """What each row adds to the two sums. Shape: (n,) in and out."""
        if self.detector == "threshold":
            # A sum of ones that any calm step throws back to zero counts consecutive steps.
            return np.where(intensity >= self.threshold, 1.0, -np.inf), np.full(len(lost), -np.inf)
        return np.minimum(intensity, self.cap) - self.effort_drift, np.minimum(lost, self.cap) - self.delay_drift

    def alarm_bounds(self, calibrated: AlarmBounds) -> AlarmBounds:
        """The bounds to use for a family whose own are given."""
        if self.detector == "threshold":
            return AlarmBounds(self.threshold_steps - 0.5, np.inf)
        return calibrated if self.bounds == "calibrated" else self.fixed_bounds()

    def bound_references(self, family: FamilyIndex) -> int:
        """How many references stand behind what raises a family's alarms.

        Calibrated bounds rest on the references whose sums they are. Bounds that are fixed, and a threshold, rest on
        no sums; what they are held against rests on all references that the family's baseline holds.
        """
        calibrated = self.detector == "cusum" and self.bounds == "calibrated"
        return family.bound_references if calibrated else family.references


class WalkRows(NamedTuple):
    """Columns of the scored rows of a batch, as lists of plain numbers, rows of an episode side by side."""

    step: list[int]
    time_s: list[float]
    mode: list[str]
    progress_bin: list[int]
    residual_bin: list[int]
    work: list[float]
    intensity: list[float]
    lost: list[float]
    effort_gain: list[float]
    delay_gain: list[float]
    total: list[float]
    cognitive: list[float]
    physical: list[float]
    debt: list[float]
    seconds: list[float]


class OpenWindowState(msgspec.Struct):
    """A window that is open: its cause, its sums so far, and the re-entry that its calm steps may turn out to be.

    `provisional` says that its alarm was raised while the family was learning.
    """

    cause: WindowCause
    alarm_step: int
    tally: Tally
    calm: int = 0
    reentry: Tally | None = None
    provisional: bool = False


class DetectorState(msgspec.Struct):
    """The detectors of one open episode.

    A candidate is the stretch of rows that would be the window's beginning if its detector raised an alarm now:
    for effort the rows since the sum was last 0, for delay those and the row before them.
    """

    effort: float = 0.0
    delay: float = 0.0
    effort_candidate: Tally | None = None
    delay_candidate: Tally | None = None
    window: OpenWindowState | None = None


class UninterruptedSums(msgspec.Struct):
    """Both detectors' sums run through a whole episode without a stop at alarms, and the largest value of each.

    The reference episodes' largest sums calibrate the alarm bounds of their family.
    """

    effort: float = 0.0
    delay: float = 0.0
    largest_effort: float = 0.0
    largest_delay: float = 0.0

    def restart(self) -> None:
        """Starts both sums anew, behind a gap."""
        self.effort = self.delay = 0.0

    def run(self, rows: WalkRows, start: int, stop: int) -> None:
        """Goes on over rows start to stop - 1, with the same arithmetic as the walk, so that a bound is met exactly."""
        for effort_gain, delay_gain in zip(rows.effort_gain[start:stop], rows.delay_gain[start:stop], strict=True):
            self.effort = max(0.0, self.effort + effort_gain)
            self.delay = max(0.0, self.delay + delay_gain)
            self.largest_effort = max(self.largest_effort, self.effort)
            self.largest_delay = max(self.largest_delay, self.delay)


class WindowEvent(NamedTuple):
    """A window that opened at row `row` (`closed` False), or closed there with `tally` up to its re-entry.

    One that is `censored` was broken off by a gap before that row; its tally runs up to the row before.
    """

    row: int
    closed: bool
    cause: WindowCause
    alarm_step: int
    tally: Tally
    provisional: bool = False
    censored: bool = False


def break_off(state: DetectorState, row: int) -> list[WindowEvent]:
    """Starts the detectors anew before a row that a gap lies before; a window that is open ends there, censored.

    Mutates the state.
    """
    window = state.window
    state.effort = state.delay = 0.0
    state.effort_candidate = state.delay_candidate = state.window = None
    if window is None:
        return []
    return [WindowEvent(row, True, window.cause, window.alarm_step, window.tally, window.provisional, censored=True)]


def walk(
    state: DetectorState,
    rows: WalkRows,
    start: int,
    stop: int,
    bounds: AlarmBounds,
    config: WindowConfig,
    *,
    provisional: bool = False,
) -> list[WindowEvent]:
    """Advances one episode's detectors over rows start..stop-1, in order. Mutates the state.

    Args:
        state: the episode's detectors.
        rows: the batch's scored rows.
        start: the first row of the episode, or of its part behind a gap.
        stop: where those rows end.
        bounds: the alarm bounds.
        config: the detectors' settings.
        provisional: whether the family is learning, so that a window which opens now is provisional to its end.

    Returns:
        the windows that opened and closed, in order. The tallies of an opening are a copy as of its alarm.
    """
    events: list[WindowEvent] = []
    effort, delay, window = state.effort, state.delay, state.window
    # Rows from here on belong to a candidate but are not yet summed into its tally.
    effort_from = delay_from = start
    for i in range(start, stop):
        if window is None:
            effort += rows.effort_gain[i]
            if effort <= 0.0:
                effort, state.effort_candidate, effort_from = 0.0, None, i + 1
            delay += rows.delay_gain[i]
            if delay <= 0.0:
                delay, state.delay_candidate, delay_from = 0.0, None, i
            by_effort, by_delay = effort > bounds.effort, delay > bounds.delay
            if not (by_effort or by_delay):
                continue
            tallies = []
            if by_effort:
                tallies.append(extend(state.effort_candidate, rows, effort_from, i + 1))
            if by_delay:
                tallies.append(extend(state.delay_candidate, rows, delay_from, i + 1))
            cause: WindowCause = "effort+delay" if by_effort and by_delay else "effort" if by_effort else "delay"
            tally = min(tallies, key=lambda candidate: candidate.departure_step)
            window = OpenWindowState(cause=cause, alarm_step=rows.step[i], tally=tally, provisional=provisional)
            events.append(WindowEvent(i, False, cause, window.alarm_step, msgspec.structs.replace(tally), provisional))
        else:
            window.tally = extend(window.tally, rows, i, i + 1)
        if rows.intensity[i] > config.calm_intensity or rows.lost[i] > config.calm_loss:
            window.calm = 0
            continue
        window.calm += 1
        if window.calm == 1:
            window.reentry = msgspec.structs.replace(window.tally)
        if window.calm == config.calm_steps and window.reentry is not None:
            ended = (window.cause, window.alarm_step, window.reentry, window.provisional)
            events.append(WindowEvent(i, True, *ended))
            window = None
            effort = delay = 0.0
            state.effort_candidate = state.delay_candidate = None
            effort_from, delay_from = i + 1, i
    state.effort, state.delay, state.window = effort, delay, window
    if window is not None:
        state.effort_candidate = state.delay_candidate = None
    else:
        if effort > 0.0:
            state.effort_candidate = extend(state.effort_candidate, rows, effort_from, stop)
        if delay_from < stop:
            state.delay_candidate = extend(state.delay_candidate, rows, delay_from, stop)
    return events


def extend(tally: Tally | None, rows: WalkRows, start: int, stop: int) -> Tally:
    """The tally with rows start..stop-1 added one after the other; a new one that departs at `start` if None.

    An existing tally is changed in place.
    """
    if tally is None:
        tally = Tally(
            departure_step=rows.step[start],
            departure_time_s=rows.time_s[start],
            departure_mode=rows.mode[start],
            departure_progress_bin=rows.progress_bin[start],
            departure_residual_bin=rows.residual_bin[start],
            work=rows.work[start],
            last_step=rows.step[start],
            last_time_s=rows.time_s[start],
            lost=-rows.lost[start],
        )
        # Taken back by the loop below: the lost cycles of the departure itself do not count.
    for i in range(start, stop):
        tally.total += rows.total[i]
        tally.cognitive += rows.cognitive[i]
        tally.physical += rows.physical[i]
        tally.debt += rows.debt[i]
        tally.seconds += rows.seconds[i]
        tally.lost += rows.lost[i]
        tally.peak = max(tally.peak, rows.intensity[i])
    tally.last_step, tally.last_time_s = rows.step[stop - 1], rows.time_s[stop - 1]
    return tally
