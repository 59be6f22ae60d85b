"""The metrics of navigation safety, by attack kind. Part of the metric catalogue.

They come from the latest reading of a family, method and version. A score that no episode had the figures for has no
series.
"""

from springback.stream_processors.resilience.metric_spec import GROUP, MetricSpec

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
