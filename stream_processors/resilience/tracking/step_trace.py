"""What the tracker makes of each step of one episode, for those who want to see how a window was found (ours).

A trace is given to the tracker and filled by it while it scores and walks as it always does: what is traced is what the
detectors did, not a second reckoning of it.
"""

import math

import msgspec

from springback.stream_processors.resilience.baseline.estimates import AlarmBounds
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.resilience.rebound.rebound_window import DetectorState
from springback.stream_processors.resilience.tracking.batch import Batch
from springback.stream_processors.resilience.tracking.scoring import ScoredBatch


class StepFigures(msgspec.Struct, frozen=True):
    """What a scored step came to.

    Attributes:
        intensity: g^rec of equation 2; `cognitive`, `physical` and `debt` are the g^u of its channels.
        lost_cycles: cycles lost by it; 0 at an episode's first scored step and behind a gap.
        effort, delay: the sums of both detectors after the step; None while a window is open, since they stand still.
        effort_bound, delay_bound: what raises the alarm when a sum passes it; None where the detector has no such.
    """

    intensity: float
    cognitive: float
    physical: float
    debt: float
    lost_cycles: float
    effort: float | None
    delay: float | None
    effort_bound: float | None
    delay_bound: float | None


class TracedStep(msgspec.Struct, frozen=True):
    """A step of an episode as it was taken in. `figures` is None where no baseline could score it.

    `time_s` is the agent's own clock where it has one, else the broker's, in seconds UTC epoch; the texts are as they
    came; `progress` and `propositions` are p and q after the step.
    """

    step: int
    time_s: float
    mode: str
    action: str
    feedback: str
    progress: float
    propositions: float
    figures: StepFigures | None


class StepTrace:
    """The steps of one episode, batch by batch.

    Args:
        key: the episode.

    Attributes:
        steps: what was taken in so far.
    """

    def __init__(self, key: EpisodeKey) -> None:
        self.key = key
        self.steps: list[TracedStep] = []
        self._sums: dict[int, tuple[float | None, float | None, AlarmBounds]] = {}

    def note(self, step: int, detectors: DetectorState, bounds: AlarmBounds) -> None:
        """Takes down where the detectors stand after a step of the episode."""
        window = detectors.window
        standing = window is not None and window.alarm_step != step
        sums = (None, None) if standing else (detectors.effort, detectors.delay)
        self._sums[step] = *sums, bounds

    def take(self, batch: Batch, scored: ScoredBatch) -> None:
        """Takes in what a batch has of the episode; called behind the walk."""
        for place, episode in enumerate(batch.episodes):
            if episode.state.key != self.key:
                continue
            at = range(int(scored.rows.starts[place]), int(scored.rows.stops[place]))
            figures = {int(scored.rows.step[row]): self._figures(scored, row) for row in at}
            taken = list(range(int(batch.starts[place]), int(batch.stops[place])))
            texts = zip(batch.texts("action", taken), batch.texts("feedback", taken), strict=True)
            for row, (action, feedback) in zip(taken, texts, strict=True):
                step = int(batch.step[row])
                self.steps.append(
                    TracedStep(
                        step=step,
                        time_s=float(batch.time_s[row]),
                        mode=batch.mode_names[batch.mode[row]],
                        action=action,
                        feedback=feedback,
                        progress=float(batch.progress[row]),
                        propositions=float(batch.propositions[row]),
                        figures=figures.get(step),
                    )
                )
        self._sums.clear()

    def _figures(self, scored: ScoredBatch, row: int) -> StepFigures:
        level = scored.intensity
        effort, delay, bounds = self._sums[int(scored.rows.step[row])]
        return StepFigures(
            float(level.total[row]),
            float(level.cognitive[row]),
            float(level.physical[row]),
            float(level.debt[row]),
            float(scored.lost[row]),
            effort,
            delay,
            *(bound if math.isfinite(bound) else None for bound in bounds),
        )
