"""Builders of episodes as the family stage meets them: what a test leaves open is always the same."""

from typing import Any

import numpy as np

from springback.stream_processors.resilience.families.family_aggregate import FamilyEvent
from springback.stream_processors.resilience.readings import (
    ChannelCosts,
    EpisodeBegun,
    EpisodeKey,
    EpisodeSummary,
    EpisodeTraits,
    NavigationReading,
)

START_S = 1_790_000_000.0
TRAITS = set(EpisodeTraits.__struct_fields__)


DECLARED: dict[str, Any] = {"stress": 0.0}


def traits_of(**fields: Any) -> EpisodeTraits:
    return EpisodeTraits(**{"family": "navigation", "task": "task-1", **fields})


def begun_of(episode: str, time_s: float = START_S, **traits: Any) -> EpisodeBegun:
    return EpisodeBegun(
        key=EpisodeKey("robot-7", "boot", episode), traits=traits_of(**DECLARED | traits), time_s=time_s
    )


def summary_of(episode: str = "1", **fields: Any) -> EpisodeSummary:
    """A success of 20 steps that cost nothing; fields may be of the summary or of its traits."""
    traits = {name: value for name, value in fields.items() if name in TRAITS}
    values: dict[str, Any] = {
        "outcome": "success",
        "steps": 20,
        "recovery_cost": 0.0,
        "stability_loss": 1.0,
        "final_progress": 1.0,
        "final_propositions": 1.0,
        "violation": 0.0,
        "ended_s": START_S,
    }
    values |= {name: value for name, value in fields.items() if name not in TRAITS}
    return EpisodeSummary(
        key=EpisodeKey("robot-7", "boot", episode),
        traits=traits_of(**DECLARED | traits),
        unscored_steps=0,
        windows=0,
        costs=ChannelCosts(),
        lost_cycles=0.0,
        window_steps=0,
        started_s=START_S,
        **values,
    )


def random_events(seed: int, episodes: int = 60, families: int = 2) -> list[FamilyEvent]:
    """Beginnings and ends of episodes of some families, methods and versions, in the order of their happening."""
    rng = np.random.default_rng(seed)
    begun: list[EpisodeBegun] = []
    ended: list[EpisodeSummary] = []
    for number in range(episodes):
        reference = bool(rng.random() < 0.4)
        stress = 0.0 if reference else float(rng.choice([0.2, 0.4, 0.7, 1.0]))
        declared = bool(rng.random() < 0.8)
        start_s = START_S + float(rng.uniform(0, 500))
        traits: dict[str, Any] = {
            "family": f"family-{rng.integers(families)}",
            "task": f"task-{rng.integers(12)}",
            "method": str(rng.choice(["plan", "react"])),
            "version": str(rng.choice(["1", "2"])),
            "reference": reference,
            "stress": stress if declared else None,
            "magnitude": 0.0 if rng.random() < 0.3 else 2 * stress,
            "perturbation": "none" if reference else str(rng.choice(["physical", "semantic", "none"])),
            "attack": str(rng.choice(["none", "physical", "model"])),
        }
        unscored = rng.random() < 0.1
        begun.append(begun_of(str(number), start_s, **traits))
        ended.append(
            summary_of(
                str(number),
                outcome=str(rng.choice(["success", "failure", "timeout", "aborted"], p=[0.6, 0.2, 0.1, 0.1])),
                steps=int(rng.integers(5, 90)),
                recovery_cost=None if unscored else float(rng.exponential(3 + 20 * stress)),
                stability_loss=None if unscored else float(rng.gamma(4.0) * (1 + stress)),
                final_progress=float(rng.beta(8, 1 + 4 * stress)),
                final_propositions=float(rng.integers(0, 4)) / 3,
                violation=float(rng.poisson(6 * stress)),
                ended_s=start_s + float(rng.uniform(1, 120)),
                navigation=random_navigation(rng) if rng.random() < 0.8 else None,
                provisional=bool(rng.random() < 0.1),
                bound_references=None if rng.random() < 0.5 else number,
                bound_references_needed=20,
                **traits,
            )
        )
    events: list[FamilyEvent] = [*begun, *ended]
    return sorted(events, key=lambda event: event.time_s if isinstance(event, EpisodeBegun) else event.ended_s)


def random_navigation(rng: np.random.Generator) -> NavigationReading:
    """Any field may be missing, ways may be of no length, and totals of goals differ."""

    def maybe(value: float) -> float | None:
        return None if rng.random() < 0.15 else value

    total = int(rng.integers(0, 5))
    return NavigationReading(
        shortest_path=maybe(float(rng.choice([0.0, 2.0, 6.1]))),
        path=maybe(float(rng.choice([0.0, 2.0, 8.4]))),
        actions=maybe(float(rng.integers(0, 40))),
        shortest_actions=maybe(float(rng.integers(0, 30))),
        final_distance=maybe(float(rng.choice([0.2, 1.5, 1.6]))),
        target_in_view=None if rng.random() < 0.15 else bool(rng.random() < 0.7),
        goals_met=maybe(float(rng.integers(0, total + 1))),
        goals_total=maybe(float(total)),
    )
