"""Episodes at random, and random cuts of them into frames: a function of a seed alone."""

from collections.abc import Sequence

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st

from springback.producers.contract.frame import Outcome, StepFrame
from tests.examples import examples
from tests.stream_processors.frame_builders import START_S, Part, Row, frame_of_parts, header_of

seeds = st.integers(0, 2**32 - 1)


def by_seed(max_examples: int) -> settings:
    """Settings of a property over seeds, which have nothing to shrink to."""
    return settings(
        max_examples=examples(max_examples), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
    )


def random_rows(rng: np.random.Generator, disturbed: bool) -> list[Row]:
    """An episode's rows: noisy, with gaps, with a stretch of trouble if disturbed."""
    total = int(rng.integers(15, 40))
    start = int(rng.integers(2, total))
    trouble = range(start, start + int(rng.integers(3, 12))) if disturbed else range(0)
    rows: list[Row] = []
    progress, step, time_s = 0.0, 0, START_S
    for position in range(total):
        upset = position in trouble
        advance = rng.normal(-0.02, 0.01) if upset else rng.normal(1.1 / total, 0.01)
        progress = float(np.clip(progress + advance, 0, 1))
        cycle_s = float(rng.lognormal(-0.7, 0.2 + 0.5 * upset))
        time_s += cycle_s
        rows.append(
            {
                "step": step,
                "time_s": time_s,
                "cycle_time_s": cycle_s,
                "progress": progress,
                "propositions": int(progress * 4) / 4,
                "planning_s": float(rng.gamma(2.0, 0.05)) * (1 + 9 * upset * int(rng.integers(0, 2))),
                "perception_s": float(rng.gamma(2.0, 0.02)),
                "travel": float(rng.choice([0.0, 0.25, 0.25])) * (1 + 3 * upset),
                "retries": float(rng.poisson(2.0 if upset else 0.02)),
                "risk": float(rng.exponential(1.0 if upset else 0.02)),
                "mode": str(rng.choice(["navigate", "manipulate"], p=[0.8, 0.2])) if progress < 0.7 else "perceive",
            }
        )
        step += 1 if rng.random() > 0.03 else int(rng.integers(2, 5))
    return rows


def random_episodes(seed: int, references: int = 4, others: int = 3, families: int = 2) -> list[Part]:
    """Reference successes and other episodes of some families, each of an agent and a task of its own."""
    rng = np.random.default_rng(seed)
    outcomes: list[Outcome] = ["success", "failure", "timeout", "aborted"]
    parts: list[Part] = []
    for family in range(families):
        for number in range(references + others):
            clean = number < references
            header = header_of(
                agent=f"robot-{family}-{number}",
                family=f"family-{family}",
                task=f"task-{seed}-{number}",
                reference=clean,
                stress=0.0 if clean else 0.6,
            )
            outcome = "success" if clean else outcomes[int(rng.integers(0, 4))]
            parts.append((header, random_rows(rng, disturbed=not clean), outcome))
    return parts


def with_bad_samples(parts: Sequence[Part], seed: int) -> list[Part]:
    """The episodes with a pause, an hour that the clock jumps, odometry that starts anew, and stretches missing."""
    rng = np.random.default_rng(seed)
    changed: list[Part] = []
    for header, rows, outcome in parts:
        own = [dict(row) for row in rows]
        faults = [{"cycle_time_s": 300.0}, {"cycle_time_s": 3600.0}, {"travel": 1e6}]
        for fault in faults:
            if rng.random() < 0.3:
                own[int(rng.integers(len(own)))] |= fault
        if not header.reference and rng.random() < 0.7:
            missing = int(rng.choice([60, 64, 65, 200, 1_790_000_000]))
            for row in own[int(rng.integers(1, len(own))) :]:
                row["step"] += missing
        changed.append((header, own, outcome))
    return changed


def judged_episodes(seed: int, references: int = 4, others: int = 4, families: int = 2) -> list[Part]:
    """Random episodes with violations, and with none, some or all of a judge's scores on each step."""
    rng = np.random.default_rng(seed)
    parts = random_episodes(seed, references, others, families)
    for _, rows, _ in parts:
        for row in rows:
            row["violation"] = float(rng.poisson(0.1))
            if rng.random() < 0.4:
                for name in ("judge_goal", "judge_rationality", "judge_efficiency"):
                    if rng.random() < 0.7:
                        row[name] = float(rng.random())
    return parts


def cut_into_frames(parts: Sequence[Part], seed: int, longest: int = 12) -> list[StepFrame]:
    """The episodes in frames, cut and interleaved at random; some frames hold several episodes, some ends no rows."""
    rng = np.random.default_rng(seed)
    waiting = list(parts)
    frames: list[StepFrame] = []
    while waiting:
        chosen = rng.permutation(len(waiting))[: int(rng.integers(1, 4))].tolist()
        pieces: list[Part] = []
        done: list[int] = []
        for place in chosen:
            header, rows, outcome = waiting[place]
            size = int(rng.integers(1, longest))
            piece, rest = rows[:size], rows[size:]
            goes_on = bool(rest) or (bool(piece) and rng.random() < 0.3)
            pieces.append((header, piece, None if goes_on else outcome))
            waiting[place] = (header, rest, outcome)
            if not goes_on:
                done.append(place)
        waiting = [part for place, part in enumerate(waiting) if place not in done]
        frames.append(frame_of_parts(pieces))
    return frames
