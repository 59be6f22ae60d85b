"""The metrics of whole families: stability, learning, outcome and navigation safety. Part of the catalogue.

Each comes from the latest reading of a family, method and version, and says how it is read. A figure that is not known
has no series.
"""

from springback.stream_processors.metrics.spec import GROUP, ReadMetric
from springback.stream_processors.metrics.stress import STRESS_METRICS
from springback.stream_processors.resilience.readings import FamilyReading

_BY_ATTACK = (*GROUP, "attack")


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
BETA_DIFFERENCE = ReadMetric[FamilyReading](
    name="springback_policy_stability_beta_difference",
    kind="gauge",
    unit="1",
    help="Change of stability loss of the pair that gives beta. Within the repeatability it says nothing.",
    source="ours, of equation 6",
    labels=GROUP,
    rows=lambda family: [(family.beta_difference,)],
)
REPEATABILITY = ReadMetric[FamilyReading](
    name="springback_policy_stability_repeatability",
    kind="gauge",
    unit="1",
    help="Run-to-run noise: the 0.95 quantile of the difference of stability loss between clean runs of one task.",
    source="ours",
    labels=GROUP,
    rows=lambda family: [(family.stability_repeatability,)],
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
UNPAIRED = ReadMetric[FamilyReading](
    name="springback_stability_unpaired_episodes",
    kind="gauge",
    unit="episodes",
    help="Perturbed episodes that are in no pair as yet, by why: beta does not know them. A twin may still come.",
    source="ours",
    labels=(*GROUP, "why"),
    rows=lambda family: [(count, why) for why, count in family.unpaired.items()],
    combine=sum,
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
LEARNING = ReadMetric[FamilyReading](
    name="springback_family_learning",
    kind="gauge",
    unit="1",
    help="1 while too few references stand behind its alarm bounds, so that its windows are provisional, else 0.",
    source="ours (window detection)",
    labels=GROUP,
    rows=lambda family: [(family.learning,)],
)
BOUND_REFERENCES = ReadMetric[FamilyReading](
    name="springback_bound_references",
    kind="gauge",
    unit="episodes",
    help="Reference episodes behind the family's alarm bounds, as of its last episode that said so.",
    source="ours (window detection)",
    labels=GROUP,
    rows=lambda family: [(family.bound_references,)],
)
BOUND_REFERENCES_NEEDED = ReadMetric[FamilyReading](
    name="springback_bound_references_needed",
    kind="gauge",
    unit="episodes",
    help="How many of those end its learning.",
    source="ours (window detection)",
    labels=GROUP,
    rows=lambda family: [(family.bound_references_needed,)],
)
PROVISIONAL_EPISODES = ReadMetric[FamilyReading](
    name="springback_provisional_episodes_total",
    kind="counter",
    unit="episodes",
    help="Episodes that ended while their family was learning: in violation shares, in no margin or comparison.",
    source="ours (window detection)",
    labels=GROUP,
    rows=lambda family: [(family.provisional_episodes,)],
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
    BETA_DIFFERENCE,
    REPEATABILITY,
    STABILITY_PAIRS,
    UNPAIRED,
    TASKS_LET_GO,
    *STRESS_METRICS,
    LEARNING,
    BOUND_REFERENCES,
    BOUND_REFERENCES_NEEDED,
    PROVISIONAL_EPISODES,
    SUCCESS_RATIO,
    COMPLETION_RATIO,
    MEAN_STEPS,
    MEAN_COST,
    MEAN_STABILITY_LOSS,
)
"""Those of a family's latest reading, in the order of the page."""

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
