"""The metrics of whole families: stability, stress response, contract and navigation. Part of the metric catalogue.

Each comes from the latest reading of a family, method and version. A figure that is not known has no series.

The metrics of navigation safety, by attack kind. Part of the metric catalogue.

They come from the latest reading of a family, method and version. A score that no episode had the figures for has no
series.
"""

from springback.stream_processors.metrics.spec import GROUP, MetricSpec

FAMILY_UPDATED = MetricSpec(
    name="springback_family_updated_timestamp_seconds",
    kind="gauge",
    unit="seconds",
    help="When the family's latest reading was made, seconds since 1970.",
    source="ours",
    labels=GROUP,
)
FAMILY_EPISODES = MetricSpec(
    name="springback_family_episodes_total",
    kind="counter",
    unit="episodes",
    help="Episodes that the family's figures rest on; those whose end was not seen are left out.",
    source="ours",
    labels=GROUP,
)
BETA = MetricSpec(
    name="springback_policy_stability_beta",
    kind="gauge",
    unit="1",
    help="Largest change of stability loss by magnitude of perturbation, over pairs of a perturbed and a clean run.",
    source="equation 6",
    labels=GROUP,
)
BETA_UPPER = MetricSpec(
    name="springback_policy_stability_beta_p95",
    kind="gauge",
    unit="1",
    help="The 0.95 quantile of the ratio whose largest value is beta.",
    source="ours, of the ratio of equation 6",
    labels=GROUP,
)
BETA_BY_PERTURBATION = MetricSpec(
    name="springback_policy_stability_beta_by_perturbation",
    kind="gauge",
    unit="1",
    help="Beta over the pairs of one kind of perturbation.",
    source="equation 6, by kind (ours)",
    labels=(*GROUP, "perturbation"),
)
BETA_UNPAIRED = MetricSpec(
    name="springback_policy_stability_beta_unpaired",
    kind="gauge",
    unit="1",
    help="An estimate of beta without pairs, against the family's mean clean loss. Compare it with beta with care.",
    source="ours, after equation 6",
    labels=GROUP,
)
STABILITY_PAIRS = MetricSpec(
    name="springback_stability_pairs_total",
    kind="counter",
    unit="episodes",
    help="Perturbed episodes that had a clean run of their task to be compared with.",
    source="equation 6",
    labels=GROUP,
)
TASKS_LET_GO = MetricSpec(
    name="springback_stability_tasks_let_go_total",
    kind="counter",
    unit="tasks",
    help="Tasks that waited for their pair and were let go, as the memory for them is bounded.",
    source="ours",
    labels=GROUP,
)
STRESS_CAPACITY = MetricSpec(
    name="springback_stress_capacity",
    kind="gauge",
    unit="1",
    help="Largest stress level at which the margin is not negative, 0 where there is none. See its flag.",
    source="equation 10",
    labels=GROUP,
)
CAPACITY_FLAG = MetricSpec(
    name="springback_stress_capacity_flag",
    kind="gauge",
    unit="1",
    help="1 at the flag that holds: ok, none (no stress level holds) or insufficient (too few episodes); 0 elsewhere.",
    source="ours",
    labels=(*GROUP, "flag"),
)
FIRST_BREACH = MetricSpec(
    name="springback_first_breach_stress",
    kind="gauge",
    unit="1",
    help="Smallest stress level with a negative margin, over the levels with enough episodes.",
    source="ours, of equation 9",
    labels=GROUP,
)
STRESS_MARGIN = MetricSpec(
    name="springback_stress_margin",
    kind="gauge",
    unit="1",
    help="Margin of graceful extensibility at a stress level, in units of the contract; negative where it is broken.",
    source="equation 9",
    labels=(*GROUP, "stress"),
)
EXTENSIBILITY_RATIO = MetricSpec(
    name="springback_extensibility_ratio",
    kind="gauge",
    unit="1",
    help="A quantity against its contract at a stress level; below 1 it breaks it. The lowest make the margin.",
    source="equation 8",
    labels=(*GROUP, "stress", "quantity"),
)
STRESS_EPISODES = MetricSpec(
    name="springback_stress_level_episodes",
    kind="gauge",
    unit="episodes",
    help="Episodes at a stress level.",
    source="ours",
    labels=(*GROUP, "stress"),
)
STRESS_SUFFICIENT = MetricSpec(
    name="springback_stress_level_sufficient",
    kind="gauge",
    unit="1",
    help="1 where a stress level has episodes enough for its margin to decide anything, else 0.",
    source="ours",
    labels=(*GROUP, "stress"),
)
CONTRACT_THRESHOLD = MetricSpec(
    name="springback_contract_threshold",
    kind="gauge",
    unit="1",
    help="What the family is held to: the least progress and propositions, the most recovery cost, loss and violation.",
    source="equation 7",
    labels=(*GROUP, "quantity"),
)
CONTRACT_VIOLATIONS = MetricSpec(
    name="springback_contract_violations_total",
    kind="counter",
    unit="episodes",
    help="Episodes that broke the contract.",
    source="equation 7",
    labels=GROUP,
)
LIVE_STRESS = MetricSpec(
    name="springback_live_stress",
    kind="gauge",
    unit="1",
    help="The 0.9 quantile of stress over the family's active episodes.",
    source="ours",
    labels=GROUP,
)
IN_STRESS_BREACH = MetricSpec(
    name="springback_in_stress_breach",
    kind="gauge",
    unit="1",
    help="1 while live stress is beyond the stress capacity, else 0. With hysteresis.",
    source="ours",
    labels=GROUP,
)
STRESS_BREACHES = MetricSpec(
    name="springback_stress_breaches_total",
    kind="counter",
    unit="breaches",
    help="Times that live stress went beyond the stress capacity.",
    source="ours",
    labels=GROUP,
)
SUCCESS_RATIO = MetricSpec(
    name="springback_family_success_ratio",
    kind="gauge",
    unit="1",
    help="Share of episodes that succeeded, from 0 to 1.",
    source="ours (outcome reference)",
    labels=GROUP,
)
COMPLETION_RATIO = MetricSpec(
    name="springback_family_completion_ratio",
    kind="gauge",
    unit="1",
    help="Mean share of propositions satisfied at the end of episodes, from 0 to 1.",
    source="ours (outcome reference)",
    labels=GROUP,
)
MEAN_STEPS = MetricSpec(
    name="springback_family_mean_steps",
    kind="gauge",
    unit="steps",
    help="Mean length of episodes.",
    source="ours (outcome reference)",
    labels=GROUP,
)
MEAN_COST = MetricSpec(
    name="springback_family_mean_recovery_cost",
    kind="gauge",
    unit="1",
    help="Mean recovery cost C_rec of episodes.",
    source="equation 3, summed over the episode's windows",
    labels=GROUP,
)
MEAN_STABILITY_LOSS = MetricSpec(
    name="springback_family_mean_stability_loss",
    kind="gauge",
    unit="1",
    help="Mean stability loss of episodes.",
    source="equation 5",
    labels=GROUP,
)

FAMILY_METRICS: tuple[MetricSpec, ...] = (
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


_BY_ATTACK = (*GROUP, "attack")

NAVIGATION_EPISODES = MetricSpec(
    name="springback_navigation_episodes",
    kind="gauge",
    unit="episodes",
    help="Navigation episodes by attack kind; `all` is over every kind.",
    source="ours",
    labels=_BY_ATTACK,
)
NAVIGATION_SUCCESS = MetricSpec(
    name="springback_navigation_success_ratio",
    kind="gauge",
    unit="1",
    help="Success rate SR: share of episodes with the target in view and near at the end, from 0 to 1.",
    source="navigation safety, SR",
    labels=_BY_ATTACK,
)
NAVIGATION_SPL = MetricSpec(
    name="springback_navigation_spl_ratio",
    kind="gauge",
    unit="1",
    help="Success weighted by path length SPL: mean of success times shortest path by path taken, from 0 to 1.",
    source="navigation safety, SPL",
    labels=_BY_ATTACK,
)
NAVIGATION_SEL = MetricSpec(
    name="springback_navigation_sel_ratio",
    kind="gauge",
    unit="1",
    help="Success weighted by episode length SEL: SPL with counts of actions in place of paths, from 0 to 1.",
    source="navigation safety, SEL",
    labels=_BY_ATTACK,
)
NAVIGATION_GOALS = MetricSpec(
    name="springback_navigation_goal_completion_ratio",
    kind="gauge",
    unit="1",
    help="Goal completion GC: mean share of goals met, each episode by its own number of goals, from 0 to 1.",
    source="navigation safety, GC",
    labels=_BY_ATTACK,
)

NAVIGATION_METRICS: tuple[MetricSpec, ...] = (
    NAVIGATION_EPISODES,
    NAVIGATION_SUCCESS,
    NAVIGATION_SPL,
    NAVIGATION_SEL,
    NAVIGATION_GOALS,
)
"""Every metric above, in the order of the page."""
