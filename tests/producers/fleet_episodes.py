"""Episodes for bridges to carry: smooth reference ones, and then disturbed ones that depart and recover."""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import Evaluation, evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig

REFERENCES, DISTURBED = 4, 2
EPISODES = REFERENCES + DISTURBED
CYCLE_S = 0.5


def cycles(episode: int) -> Iterator[dict[str, Any]]:
    """The decision cycles of one episode, as a robot knows them; `done` is 1 in the last."""
    noise = random.Random(episode)
    done = 0.0
    for cycle in range(40):
        slipping = episode >= REFERENCES and 8 <= cycle < 14
        done = min(1.0, done + (0.0 if slipping else 0.05))
        yield {
            "done": round(done, 6),
            "thinking": round((2.0 if slipping else 0.1) + 0.01 * noise.random(), 6),
            "danger": 0.9 if slipping else round(0.05 * noise.random(), 6),
            "mode": "recover" if slipping else "drive",
            "disturbed": episode >= REFERENCES,
        }
        if done == 1.0:
            return


def evaluated(frames: Iterable[StepFrame]) -> Evaluation:
    """What the frames come to, by a baseline learned of their own references."""
    return evaluate_frames(list(frames), ResilienceConfig())


def assert_departed_and_recovered(evaluation: Evaluation) -> None:
    """That the episodes arrived whole, and the disturbed ones have a window each, where they were disturbed."""
    assert evaluation.rejected == []
    assert [summary.outcome for summary in evaluation.summaries] == ["success"] * EPISODES
    assert [summary.steps for summary in evaluation.summaries] == [20] * REFERENCES + [26] * DISTURBED
    assert [(window.state, window.departure_step) for window in evaluation.windows] == [("recovered", 8)] * DISTURBED
