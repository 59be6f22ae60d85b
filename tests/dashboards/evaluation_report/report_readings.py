"""Episodes, windows and families as a report gets them, made up: what a test leaves open is always the same."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from springback.dashboards.evaluation_report.report_numbers import ReportNumbers, report_numbers
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.family_aggregate import aggregate, monitors
from springback.stream_processors.resilience.readings import (
    ChannelCosts,
    EpisodeKey,
    EpisodeSummary,
    EpisodeTraits,
    WindowReading,
)

HOSTILE = '<script>alert("x")</script>&\u202e$\\frac{1}{0}$ 机器人 🤖'


def summary_of(episode: str, cost: float | None = 0.0, **fields: Any) -> EpisodeSummary:
    """An episode of one robot; fields of the traits may be among the others."""
    names = EpisodeTraits.__struct_fields__
    traits = {name: fields.pop(name) for name in names if name in fields}
    return EpisodeSummary(
        **{
            "key": EpisodeKey("robot-7", "boot", episode),
            "traits": EpisodeTraits(**{"family": "navigation", "task": episode, **traits}),
            "outcome": "success",
            "steps": 40,
            "unscored_steps": 0 if cost is not None else 40,
            "windows": 1 if cost else 0,
            "recovery_cost": cost,
            "costs": ChannelCosts(cognitive=(cost or 0) / 4, physical=(cost or 0) / 2, debt=(cost or 0) / 4),
            "lost_cycles": 3.0 if cost else 0.0,
            "window_steps": 10 if cost else 0,
            "final_progress": 1.0,
            "final_propositions": 1.0,
            "violation": 0.0,
            "started_s": 1.0,
            "ended_s": 41.0,
            **fields,
        }
    )


def window_of(summary: EpisodeSummary, **fields: Any) -> WindowReading:
    """A closed window of an episode, from step 5 to step 14."""
    return WindowReading(
        **{
            "key": summary.key,
            "traits": summary.traits,
            "number": 0,
            "state": "recovered",
            "cause": "effort",
            "departure_step": 5,
            "alarm_step": 8,
            "reentry_step": 14,
            "departure_time_s": 6.0,
            "reentry_time_s": 15.0,
            "departure_mode": "navigate",
            "departure_progress_bin": 1,
            "departure_residual_bin": 4,
            "length_steps": 10,
            "length_s": 10.0,
            "lost_cycles": 3.0,
            "peak": 4.0,
            "recovery_cost": summary.recovery_cost or 0.0,
            "costs": summary.costs,
            **fields,
        }
    )


def fleet(
    families: Sequence[str] = ("manipulation", "navigation"),
    methods: Sequence[str] = ("careful", "hasty"),
    episodes: int = 8,
) -> Iterator[EpisodeSummary]:
    """Every family and method at every stress; costs rise with stress, more for later methods."""
    chance = np.random.default_rng(7)
    for family in families:
        for number, method in enumerate(methods):
            for stress in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
                for task in range(episodes):
                    disturbed = stress > 0
                    cost = float(chance.exponential(8 * stress * (number + 1))) if disturbed else 0.05 * (task % 2)
                    yield summary_of(
                        f"{family}-{method}-{stress:g}-{task}",
                        round(cost, 4) if chance.random() > 0.2 else 0.0,
                        family=family,
                        method=method,
                        task=f"{family}-{task}",
                        reference=not disturbed,
                        stress=stress,
                        perturbation="physical" if disturbed else "none",
                        magnitude=stress,
                        outcome="success" if chance.random() > stress * 0.3 else "failure",
                        stability_loss=1.5 + float(chance.random()) + stress * (number + 1),
                        beta_step=0.3,
                        final_propositions=float(chance.random() > stress * 0.2),
                    )


def numbers_of(
    summaries: Sequence[EpisodeSummary], config: AggregateConfig | None = None, **options: Any
) -> ReportNumbers:
    """The numbers of a report on these episodes, each that cost something with a window."""
    config = config or AggregateConfig()
    causes = ("effort", "delay", "effort+delay")
    windows = [window_of(s, cause=causes[n % 3]) for n, s in enumerate(summaries) if s.recovery_cost]
    readings = aggregate(summaries, config)
    return report_numbers(summaries, windows, readings, monitors(summaries, config), config, **options)
