"""The metrics of stress: levels and their contract, capacity, and what runs now. Part of the metric catalogue.

Each comes from the latest reading of a family, method and version. Levels are labelled by their stress, as one writes
it; that of episodes which declared none is `undeclared`.
"""

from collections.abc import Iterator
from typing import get_args

from msgspec import structs

from springback.stream_processors.metrics.figure_words import UNDECLARED, live_state
from springback.stream_processors.metrics.glossary import LEVEL_STATES, LIVE_STATES
from springback.stream_processors.metrics.spec import GROUP, ReadMetric
from springback.stream_processors.resilience.readings import CapacityFlag, FamilyReading, LevelFigures

_BY_STRESS = (*GROUP, "stress")


def _levels(family: FamilyReading) -> Iterator[tuple[str, LevelFigures]]:
    """The levels as one writes them, the undeclared one last."""
    for stress, level in family.levels:
        yield UNDECLARED if stress is None else f"{stress:g}", level


DEPENDABLE_CAPACITY = ReadMetric[FamilyReading](
    name="springback_dependable_capacity",
    kind="gauge",
    unit="1",
    help="Largest stress up to which every level with enough episodes is kept: what to rely on. None of it: no series.",
    source="ours, of equation 10",
    labels=GROUP,
    rows=lambda family: [(family.dependable,)],
)
TESTED_UP_TO = ReadMetric[FamilyReading](
    name="springback_tested_up_to_stress",
    kind="gauge",
    unit="1",
    help="Largest stress level with enough episodes. Of what lies above it nothing is known.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.tested_up_to,)],
)
STRESS_CAPACITY = ReadMetric[FamilyReading](
    name="springback_stress_capacity",
    kind="gauge",
    unit="1",
    help="Largest stress level whose margin is not negative, 0 where there is none. Read it with its flag.",
    source="equation 10",
    labels=GROUP,
    rows=lambda family: [(family.capacity,)],
)
CAPACITY_FLAG = ReadMetric[FamilyReading](
    name="springback_stress_capacity_flag",
    kind="gauge",
    unit="1",
    help=(
        "1 at the flag that holds: ok, open (at least this much: not tested above), none (every margin is negative) or "
        "insufficient (too few episodes); 0 elsewhere."
    ),
    source="ours",
    labels=(*GROUP, "flag"),
    rows=lambda family: [(flag == family.capacity_flag, flag) for flag in get_args(CapacityFlag)],
)
FIRST_BREACH = ReadMetric[FamilyReading](
    name="springback_first_breach_stress",
    kind="gauge",
    unit="1",
    help="Smallest stress level with a negative margin, over the levels with enough episodes.",
    source="ours, of equation 9",
    labels=GROUP,
    rows=lambda family: [(family.first_breach,)],
)
STRESS_MARGIN = ReadMetric[FamilyReading](
    name="springback_stress_margin",
    kind="gauge",
    unit="1",
    help="Margin of graceful extensibility at a stress level, a ratio to the contract; negative: broken or undecided.",
    source="equation 9",
    labels=_BY_STRESS,
    rows=lambda family: [(level.margin, stress) for stress, level in _levels(family)],
)
FAVOURABLE_MARGIN = ReadMetric[FamilyReading](
    name="springback_stress_favourable_margin",
    kind="gauge",
    unit="1",
    help="The margin with the most favourable quantiles that so few episodes allow; negative, and the level is broken.",
    source="ours, of equation 9",
    labels=_BY_STRESS,
    rows=lambda family: [(level.favourable_margin, stress) for stress, level in _levels(family)],
)
EXTENSIBILITY_RATIO = ReadMetric[FamilyReading](
    name="springback_extensibility_ratio",
    kind="gauge",
    unit="1",
    help="A quantity against its contract at a stress level; below 1 it breaks it. The two lowest make the margin.",
    source="equation 8",
    labels=(*_BY_STRESS, "quantity"),
    rows=lambda family: [
        (value, stress, quantity)
        for stress, level in _levels(family)
        for quantity, value in structs.asdict(level.ratios).items()
    ],
)
STRESS_EPISODES = ReadMetric[FamilyReading](
    name="springback_stress_level_episodes",
    kind="gauge",
    unit="episodes",
    help="Episodes that a stress level rests on, the latest ones; `undeclared` is the level of those that said none.",
    source="ours",
    labels=_BY_STRESS,
    rows=lambda family: [(level.episodes, stress) for stress, level in _levels(family)],
)
STRESS_PROVISIONAL_EPISODES = ReadMetric[FamilyReading](
    name="springback_stress_level_provisional_episodes",
    kind="gauge",
    unit="episodes",
    help="Its episodes besides that ended while the family was learning: in the share that broke the contract.",
    source="ours",
    labels=_BY_STRESS,
    rows=lambda family: [(level.provisional, stress) for stress, level in _levels(family)],
)
LEVEL_STATE = ReadMetric[FamilyReading](
    name="springback_stress_level_state",
    kind="gauge",
    unit="1",
    help="1 at what a stress level shows: kept, broken, undecided, or insufficient (too few episodes); 0 elsewhere.",
    source="ours, of equation 9",
    labels=(*_BY_STRESS, "state"),
    states=LEVEL_STATES,
    rows=lambda family: [
        (state == level.state, stress, state) for stress, level in _levels(family) for state in LEVEL_STATES
    ],
)
VIOLATION_RATIO = ReadMetric[FamilyReading](
    name="springback_contract_violation_ratio",
    kind="gauge",
    unit="1",
    help="Share of a stress level's episodes that broke the contract, from 0 to 1; provisional ones included.",
    source="equation 7",
    labels=_BY_STRESS,
    rows=lambda family: [(level.violation_share, stress) for stress, level in _levels(family)],
)
VIOLATION_RATIO_LOW = ReadMetric[FamilyReading](
    name="springback_contract_violation_ratio_low",
    kind="gauge",
    unit="1",
    help="Lower end of the 95 % interval (Wilson) of that share.",
    source="ours",
    labels=_BY_STRESS,
    rows=lambda family: [(level.violation_low, stress) for stress, level in _levels(family)],
)
VIOLATION_RATIO_HIGH = ReadMetric[FamilyReading](
    name="springback_contract_violation_ratio_high",
    kind="gauge",
    unit="1",
    help="Upper end of the 95 % interval (Wilson) of that share.",
    source="ours",
    labels=_BY_STRESS,
    rows=lambda family: [(level.violation_high, stress) for stress, level in _levels(family)],
)
CONTRACT_THRESHOLD = ReadMetric[FamilyReading](
    name="springback_contract_threshold",
    kind="gauge",
    unit="1",
    help="What the family is held to: the least progress and propositions, the most recovery cost, loss and violation.",
    source="equation 7",
    labels=(*GROUP, "quantity"),
    rows=lambda family: [(value, quantity) for quantity, value in structs.asdict(family.thresholds).items()],
)
CONTRACT_VIOLATIONS = ReadMetric[FamilyReading](
    name="springback_contract_violations_total",
    kind="counter",
    unit="episodes",
    help="Episodes that broke the contract.",
    source="equation 7",
    labels=GROUP,
    rows=lambda family: [(family.violations,)],
)
CONTRACT_VIOLATED = ReadMetric[FamilyReading](
    name="springback_contract_violated",
    kind="gauge",
    unit="1",
    help=(
        "1 while at some level, the undeclared one too, surely more episodes break the contract than may, else 0. No "
        "series while no level has enough episodes."
    ),
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.violated,)],
)
CONTRACT_VIOLATED_TIMES = ReadMetric[FamilyReading](
    name="springback_contract_violated_times_total",
    kind="counter",
    unit="times",
    help="Times that this began.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.contract_violations,)],
)
ACTIVE_EPISODES = ReadMetric[FamilyReading](
    name="springback_active_episodes",
    kind="gauge",
    unit="episodes",
    help="Episodes that run just now, by whether they declare their stress.",
    source="ours",
    labels=(*GROUP, "declared"),
    rows=lambda family: [
        (family.active_episodes - family.active_undeclared, "yes"),
        (family.active_undeclared, "no"),
    ],
)
LIVE_STRESS = ReadMetric[FamilyReading](
    name="springback_live_stress",
    kind="gauge",
    unit="1",
    help="The 0.9 quantile of declared stress over the running episodes, on the grid; none declared, no series.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.live_stress,)],
)
STRESS_STATE = ReadMetric[FamilyReading](
    name="springback_stress_state",
    kind="gauge",
    unit="1",
    help=(
        "1 at what the live stress is against the levels: within, untested or breach, unsettled (none of them has held "
        "for long enough yet), or none_declared (no declared stress is running); 0 elsewhere."
    ),
    source="ours",
    labels=(*GROUP, "state"),
    states=LIVE_STATES,
    rows=lambda family: [(state == live_state(family), state) for state in LIVE_STATES],
)
STRESS_BREACHES = ReadMetric[FamilyReading](
    name="springback_stress_breaches_total",
    kind="counter",
    unit="breaches",
    help="Times that the live stress came to be in breach.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.breaches,)],
)
STRESS_METRICS: tuple[ReadMetric[FamilyReading], ...] = (
    DEPENDABLE_CAPACITY,
    TESTED_UP_TO,
    STRESS_CAPACITY,
    CAPACITY_FLAG,
    FIRST_BREACH,
    STRESS_MARGIN,
    FAVOURABLE_MARGIN,
    EXTENSIBILITY_RATIO,
    STRESS_EPISODES,
    STRESS_PROVISIONAL_EPISODES,
    LEVEL_STATE,
    VIOLATION_RATIO,
    VIOLATION_RATIO_LOW,
    VIOLATION_RATIO_HIGH,
    CONTRACT_THRESHOLD,
    CONTRACT_VIOLATIONS,
    CONTRACT_VIOLATED,
    CONTRACT_VIOLATED_TIMES,
    ACTIVE_EPISODES,
    LIVE_STRESS,
    STRESS_STATE,
    STRESS_BREACHES,
)
"""Every metric above, in the order of the page."""
