"""Environments that are watched one after the other in one session: evaluated, no episode is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from springback.producers.emitter.publishers import JsonLinesPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import watch
from springback.producers.perturbations.habitat import disturbed
from springback.stream_processors.offline.evaluation import evaluate
from tests.producers.habitat.habitat_makers import Habitat, played


@pytest.mark.parametrize("agent", [None, "rover"])
@pytest.mark.parametrize("closed", [True, False])
def test_a_script_that_plays_clean_and_then_disturbed_loses_no_episode(
    habitat: Habitat, tmp_path: Path, agent: str | None, closed: bool
) -> None:
    path = tmp_path / "both.jsonl"
    envs = []
    with StepEmitter(JsonLinesPublisher(path), producer="habitat") as emitter:
        for severity in (0.0, 0.6):
            env: Any = watch(
                disturbed(habitat.env(), severity, kinds=["heading_kick"]), emitter, family="nav", agent=agent
            )
            played(env, 2)
            if closed:
                env.close()
            envs.append(env)
    for env in envs[: 0 if closed else 2]:
        env.close()
    evaluation = evaluate(path)
    assert (evaluation.steps.sent, evaluation.steps.used) == (12, 12)
    assert len(evaluation.summaries) == 4
    assert len({summary.traits.task for summary in evaluation.summaries}) == 1  # twins are found by it
    assert Counter(summary.traits.stress for summary in evaluation.summaries) == {0.0: 2, 0.6: 2}
