"""The metrics of whole families: stability, stress response, contract and navigation safety. Part of the catalogue.

Each comes from the latest reading of a family, method and version, and says how it is read. A figure that is not known
has no series.
"""

from typing import get_args

from msgspec import structs

from springback.stream_processors.metrics.spec import GROUP, ReadMetric
from springback.stream_processors.resilience.readings import CapacityFlag, FamilyReading, StressMargin

_BY_ATTACK = (*GROUP, "attack")


def _level(margin: StressMargin) -> str:
    """A stress level as one writes it."""
    return f"{margin.stress:g}"


FAMILY_UPDATED = ReadMetric[FamilyReading](
    name="springback_family_updated_timestamp_seconds",
    kind="gauge",
    unit="seconds",
    help="When the family's latest reading was made, seconds since 1970.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.updated_s,)],
)
FAMILY_EPISODES = ReadMetric[FamilyReading](
    name="springback_family_episodes_total",
    kind="counter",
    unit="episodes",
    help="Episodes that the family's figures rest on; those whose end was not seen are left out.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.episodes,)],
)
BETA = ReadMetric[FamilyReading](
    name="springback_policy_stability_beta",
    kind="gauge",
    unit="1",
    help="Largest change of stability loss by magnitude of perturbation, over pairs of a perturbed and a clean run.",
    source="equation 6",
    labels=GROUP,
    rows=lambda family: [(family.beta,)],
)
BETA_UPPER = ReadMetric[FamilyReading](
    name="springback_policy_stability_beta_p95",
    kind="gauge",
    unit="1",
    help="The 0.95 quantile of the ratio whose largest value is beta.",
    source="ours, of the ratio of equation 6",
    labels=GROUP,
    rows=lambda family: [(family.beta_p95,)],
)
BETA_BY_PERTURBATION = ReadMetric[FamilyReading](
    name="springback_policy_stability_beta_by_perturbation",
    kind="gauge",
    unit="1",
    help="Beta over the pairs of one kind of perturbation.",
    source="equation 6, by kind (ours)",
    labels=(*GROUP, "perturbation"),
    rows=lambda family: [(beta, kind) for kind, beta in family.beta_by_kind.items()],
)
BETA_UNPAIRED = ReadMetric[FamilyReading](
    name="springback_policy_stability_beta_unpaired",
    kind="gauge",
    unit="1",
    help="An estimate of beta without pairs, against the family's mean clean loss. Compare it with beta with care.",
    source="ours, after equation 6",
    labels=GROUP,
    rows=lambda family: [(family.beta_unpaired,)],
)
STABILITY_PAIRS = ReadMetric[FamilyReading](
    name="springback_stability_pairs_total",
    kind="counter",
    unit="episodes",
    help="Perturbed episodes that had a clean run of their task to be compared with.",
    source="equation 6",
    labels=GROUP,
    rows=lambda family: [(family.pairs,)],
)
TASKS_LET_GO = ReadMetric[FamilyReading](
    name="springback_stability_tasks_let_go_total",
    kind="counter",
    unit="tasks",
    help="Tasks that waited for their pair and were let go, as the memory for them is bounded.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.tasks_let_go,)],
)
STRESS_CAPACITY = ReadMetric[FamilyReading](
    name="springback_stress_capacity",
    kind="gauge",
    unit="1",
    help="Largest stress level at which the margin is not negative, 0 where there is none. See its flag.",
    source="equation 10",
    labels=GROUP,
    rows=lambda family: [(family.capacity,)],
)
CAPACITY_FLAG = ReadMetric[FamilyReading](
    name="springback_stress_capacity_flag",
    kind="gauge",
    unit="1",
    help="1 at the flag that holds: ok, none (no stress level holds) or insufficient (too few episodes); 0 elsewhere.",
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
    help="Margin of graceful extensibility at a stress level, in units of the contract; negative where it is broken.",
    source="equation 9",
    labels=(*GROUP, "stress"),
    rows=lambda family: [(margin.margin, _level(margin)) for margin in family.margins],
)
EXTENSIBILITY_RATIO = ReadMetric[FamilyReading](
    name="springback_extensibility_ratio",
    kind="gauge",
    unit="1",
    help="A quantity against its contract at a stress level; below 1 it breaks it. The lowest make the margin.",
    source="equation 8",
    labels=(*GROUP, "stress", "quantity"),
    rows=lambda family: [
        (value, _level(margin), quantity)
        for margin in family.margins
        for quantity, value in structs.asdict(margin.ratios).items()
    ],
)
STRESS_EPISODES = ReadMetric[FamilyReading](
    name="springback_stress_level_episodes",
    kind="gauge",
    unit="episodes",
    help="Episodes at a stress level.",
    source="ours",
    labels=(*GROUP, "stress"),
    rows=lambda family: [(margin.episodes, _level(margin)) for margin in family.margins],
)
STRESS_SUFFICIENT = ReadMetric[FamilyReading](
    name="springback_stress_level_sufficient",
    kind="gauge",
    unit="1",
    help="1 where a stress level has episodes enough for its margin to decide anything, else 0.",
    source="ours",
    labels=(*GROUP, "stress"),
    rows=lambda family: [(margin.sufficient, _level(margin)) for margin in family.margins],
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
LIVE_STRESS = ReadMetric[FamilyReading](
    name="springback_live_stress",
    kind="gauge",
    unit="1",
    help="The 0.9 quantile of stress over the family's active episodes.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.live_stress,)],
)
IN_STRESS_BREACH = ReadMetric[FamilyReading](
    name="springback_in_stress_breach",
    kind="gauge",
    unit="1",
    help="1 while live stress is beyond the stress capacity, else 0. With hysteresis.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.in_breach,)],
)
STRESS_BREACHES = ReadMetric[FamilyReading](
    name="springback_stress_breaches_total",
    kind="counter",
    unit="breaches",
    help="Times that live stress went beyond the stress capacity.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.breaches,)],
)
SUCCESS_RATIO = ReadMetric[FamilyReading](
    name="springback_family_success_ratio",
    kind="gauge",
    unit="1",
    help="Share of episodes that succeeded, from 0 to 1.",
    source="ours (outcome reference)",
    labels=GROUP,
    rows=lambda family: [(family.success_rate,)],
)
COMPLETION_RATIO = ReadMetric[FamilyReading](
    name="springback_family_completion_ratio",
    kind="gauge",
    unit="1",
    help="Mean share of propositions satisfied at the end of episodes, from 0 to 1.",
    source="ours (outcome reference)",
    labels=GROUP,
    rows=lambda family: [(family.completion,)],
)
MEAN_STEPS = ReadMetric[FamilyReading](
    name="springback_family_mean_steps",
    kind="gauge",
    unit="steps",
    help="Mean length of episodes.",
    source="ours (outcome reference)",
    labels=GROUP,
    rows=lambda family: [(family.mean_steps,)],
)
MEAN_COST = ReadMetric[FamilyReading](
    name="springback_family_mean_recovery_cost",
    kind="gauge",
    unit="1",
    help="Mean recovery cost C_rec of episodes.",
    source="equation 3, summed over the episode's windows",
    labels=GROUP,
    rows=lambda family: [(family.recovery_cost_mean,)],
)
MEAN_STABILITY_LOSS = ReadMetric[FamilyReading](
    name="springback_family_mean_stability_loss",
    kind="gauge",
    unit="1",
    help="Mean stability loss of episodes.",
    source="equation 5",
    labels=GROUP,
    rows=lambda family: [(family.stability_loss_mean,)],
)

FAMILY_METRICS: tuple[ReadMetric[FamilyReading], ...] = (
    FAMILY_UPDATED,
    FAMILY_EPISODES,
    BETA,
    BETA_UPPER,
    BETA_BY_PERTURBATION,
    BETA_UNPAIRED,
    STABILITY_PAIRS,
    TASKS_LET_GO,
    STRESS_CAPACITY,
    CAPACITY_FLAG,
    FIRST_BREACH,
    STRESS_MARGIN,
    EXTENSIBILITY_RATIO,
    STRESS_EPISODES,
    STRESS_SUFFICIENT,
    CONTRACT_THRESHOLD,
    CONTRACT_VIOLATIONS,
    LIVE_STRESS,
    IN_STRESS_BREACH,
    STRESS_BREACHES,
    SUCCESS_RATIO,
    COMPLETION_RATIO,
    MEAN_STEPS,
    MEAN_COST,
    MEAN_STABILITY_LOSS,
)
"""Every metric above, in the order of the page."""

NAVIGATION_EPISODES = ReadMetric[FamilyReading](
    name="springback_navigation_episodes",
    kind="gauge",
    unit="episodes",
    help="Navigation episodes by attack kind; `all` is over every kind.",
    source="ours",
    labels=_BY_ATTACK,
    rows=lambda family: [(scores.episodes, attack) for attack, scores in family.navigation.items()],
)
NAVIGATION_SUCCESS = ReadMetric[FamilyReading](
    name="springback_navigation_success_ratio",
    kind="gauge",
    unit="1",
    help="Success rate SR: share of episodes with the target in view and near at the end, from 0 to 1.",
    source="navigation safety, SR",
    labels=_BY_ATTACK,
    rows=lambda family: [(scores.success_rate, attack) for attack, scores in family.navigation.items()],
)
NAVIGATION_SPL = ReadMetric[FamilyReading](
    name="springback_navigation_spl_ratio",
    kind="gauge",
    unit="1",
    help="Success weighted by path length SPL: mean of success times shortest path by path taken, from 0 to 1.",
    source="navigation safety, SPL",
    labels=_BY_ATTACK,
    rows=lambda family: [(scores.spl, attack) for attack, scores in family.navigation.items()],
)
NAVIGATION_SEL = ReadMetric[FamilyReading](
    name="springback_navigation_sel_ratio",
    kind="gauge",
    unit="1",
    help="Success weighted by episode length SEL: SPL with counts of actions in place of paths, from 0 to 1.",
    source="navigation safety, SEL",
    labels=_BY_ATTACK,
    rows=lambda family: [(scores.sel, attack) for attack, scores in family.navigation.items()],
)
NAVIGATION_GOALS = ReadMetric[FamilyReading](
    name="springback_navigation_goal_completion_ratio",
    kind="gauge",
    unit="1",
    help="Goal completion GC: mean share of goals met, each episode by its own number of goals, from 0 to 1.",
    source="navigation safety, GC",
    labels=_BY_ATTACK,
    rows=lambda family: [(scores.goal_completion, attack) for attack, scores in family.navigation.items()],
)

NAVIGATION_METRICS: tuple[ReadMetric[FamilyReading], ...] = (
    NAVIGATION_EPISODES,
    NAVIGATION_SUCCESS,
    NAVIGATION_SPL,
    NAVIGATION_SEL,
    NAVIGATION_GOALS,
)
"""Every metric above, in the order of the page."""
