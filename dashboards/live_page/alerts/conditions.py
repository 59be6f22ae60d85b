"""What is to be alerted to, by what the live page knows: the alerts of the rules for Prometheus, under their names.

The thresholds are those of `fleet_alerts.yml` and `pipeline_alerts.yml`, and so are severities and times; a test
compares them. What is not here are the alerts about workers, judges, gateways and exporters, whose own metrics the page
does not read, and the unscored share, which wants a rate.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from springback.dashboards.live_page.agent_memory import AgentMemory
from springback.dashboards.live_page.fleet_view import FleetView
from springback.dashboards.live_page.links import PIPELINE, agent_link, family_link
from springback.dashboards.live_page.page_parts import group_name
from springback.sinks.fleet.agent_state import StateTimes
from springback.sinks.fleet.fleet_state import clean_family
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.figure_words import counted, live_state, stress_text, within_noise
from springback.stream_processors.resilience.quantiles import quantile
from springback.stream_processors.resilience.readings import EpisodeSummary, FamilyReading

Severity = Literal["critical", "warning", "info"]
About = Literal["exporter", "pipeline", "worker", "family", "agent"]


class AlertRule(NamedTuple):
    """An alert: how much it matters, what it is about, and for how long it holds before it is told, and after.

    Attributes:
        name: as in the rules for Prometheus, and in the runbook.
        severity: critical is for someone to act on now.
        about: what it is about; in this order causes come before what follows from them.
        hold_s: for so long the condition must hold before it is told.
        keep_s: for so long it is told after it has last held.
    """

    name: str
    severity: Severity
    about: About
    hold_s: float
    keep_s: float


BLIND = AlertRule("SpringbackExporterBlind", "critical", "exporter", 120, 60)
BEHIND = AlertRule("SpringbackPipelineBehind", "critical", "pipeline", 60, 120)
DEAD_LETTERS = AlertRule("SpringbackDeadLetters", "warning", "pipeline", 0, 300)
OVER_BOUNDS = AlertRule("SpringbackProducerOverBounds", "warning", "worker", 0, 300)
GIVEN_UP = AlertRule("SpringbackMessageGivenUp", "warning", "worker", 0, 300)
BREACH = AlertRule("SpringbackStressCapacityBreach", "critical", "family", 30, 300)
VIOLATED = AlertRule("SpringbackContractViolated", "critical", "family", 60, 300)
ABORTED = AlertRule("SpringbackEpisodesAborted", "warning", "family", 300, 900)
UNTESTED = AlertRule("SpringbackStressUntested", "info", "family", 300, 900)
MARGIN = AlertRule("SpringbackMarginNegative", "warning", "family", 600, 900)
COST = AlertRule("SpringbackRecoveryCostAboveContract", "warning", "family", 300, 900)
BETA = AlertRule("SpringbackBetaAboveContract", "warning", "family", 600, 900)
OPEN_WINDOW = AlertRule("SpringbackReboundWindowOpenTooLong", "warning", "agent", 60, 120)
STALLED = AlertRule("SpringbackAgentStalled", "warning", "agent", 60, 120)
STALE = AlertRule("SpringbackAgentStale", "warning", "agent", 60, 120)
CONTESTED = AlertRule("SpringbackAgentContested", "warning", "agent", 60, 120)
SILENT = AlertRule("SpringbackAgentSilent", "critical", "agent", 60, 60)

RULES = (
    *(BLIND, BEHIND, DEAD_LETTERS, OVER_BOUNDS, GIVEN_UP),
    *(BREACH, VIOLATED, ABORTED, UNTESTED, MARGIN, COST, BETA),
    *(SILENT, OPEN_WINDOW, STALLED, STALE, CONTESTED),
)
"""All that the page looks at, in the order in which it lists them."""

LATE_S = 30.0
"""Frames wait, and what was worked on last is older than this: the pipeline is behind."""

OPEN_S = 300.0
"""A rebound window that is open for longer is told."""

PAST_S, LOST_S = 3600.0, 86_400.0
"""A family is over this long after its last news; where an episode of it seems to run, the second."""

HOUR_S, LEAST_EPISODES, MOST_ABORTED = 3600.0, 5, 0.3
_TAIL = 0.9
_LEAST_PAIRS = 5


class Condition(NamedTuple):
    """Something that holds and is to be alerted to.

    Attributes:
        rule: which alert it is.
        subject: what it is of, safe to be shown; told from others of the alert by it.
        told: it in a sentence.
        link: where on the page to look.
        since_s: since when it has been so, in seconds since 1970 by the broker's clock; None where no reading says.
        true_s: when the alert's condition came true, such as a minute after an agent was last heard; None likewise.
    """

    rule: AlertRule
    subject: str
    told: str
    link: str
    since_s: float | None = None
    true_s: float | None = None


def conditions_of(view: FleetView, now_s: float, times: StateTimes) -> list[Condition]:
    """All that holds now.

    While nothing is known of the fleet that is all there is to tell: whatever was known before may be over.

    Args:
        view: what the page knows.
        now_s: the present.
        times: after how long an agent is in which state.
    """
    blindness = view.sight.blindness
    if blindness in ("no broker", "catching up"):
        since_s = view.sight.broker.unseen.from_s if blindness == "no broker" else math.inf
        told = (
            "The broker does not answer: what agents do is not known."
            if blindness == "no broker"
            else "The topics have not been read to their end yet: what agents do is not known."
        )
        return [Condition(BLIND, "this page", told, PIPELINE, _known(since_s), _known(since_s))]
    return [
        *_of_pipeline(view, now_s),
        *(found for family in view.families() if not is_past(family, now_s) for found in _of_family(family)),
        *_of_recent_episodes(view, now_s),
        *(found for agent in view.agents() for found in _of_agent(agent, view, now_s, times)),
    ]


def is_past(family: FamilyReading, now_s: float) -> bool:
    """Whether a family, method and version is over: its news are old, and nothing of it runs."""
    age_s = now_s - family.updated_s
    return (age_s > PAST_S and family.active_episodes <= 0) or age_s > LOST_S


def _of_pipeline(view: FleetView, now_s: float) -> Iterator[Condition]:
    sight = view.sight
    behind = sum(sight.frames_behind.values())
    if behind > 0 and not (sight.newest_s is not None and now_s - sight.newest_s <= LATE_S):
        told = f"Frames wait unread ({behind:,}), and none was worked on in the last half minute."
        yield Condition(BEHIND, "steps", told, PIPELINE)
    for reason, letters in sorted(view.letters.recent(now_s).items()):
        word = reason.replace("_", " ")
        told = f"{counted(letters.number, 'message or row', 'messages or rows')} could not be used within ten minutes."
        yield Condition(DEAD_LETTERS, word, told, PIPELINE, letters.first_s, letters.first_s)
        if reason == "over_bounds":
            told = "Steps were refused: a producer has more agents or episodes than it may."
            yield Condition(OVER_BOUNDS, word, told, PIPELINE, letters.first_s, letters.first_s)
        if reason in ("too_costly", "state_full"):
            told = f"{counted(letters.number, 'message')} given up within ten minutes."
            yield Condition(GIVEN_UP, word, told, PIPELINE, letters.first_s, letters.first_s)


def _of_family(family: FamilyReading) -> Iterator[Condition]:
    name, link = group_name(*clean_family(family)), family_link(family)
    state = live_state(family)
    now = "" if family.live_stress is None else f" (\N{GREEK SMALL LETTER LAMDA} {stress_text(family.live_stress)})"
    if state == "breach":
        yield Condition(BREACH, name, f"It runs under stress{now} at which it is known to break its contract.", link)
    if family.contract_violated:
        yield Condition(VIOLATED, name, "It breaks its contract in more than one episode of ten.", link)
    if state == "untested" and not family.learning:
        yield Condition(UNTESTED, name, f"It runs under stress{now} that nobody has tested.", link)
    broken = [level for level in family.margins if level.state == "broken" and level.margin is not None]
    least = min((level.margin for level in broken if level.margin is not None), default=None)
    if least is not None and least < 0:
        at = ", ".join(stress_text(level.stress) for level in broken)
        told = f"It breaks its contract under stress {at}: the least margin is {least:.3g}."
        yield Condition(MARGIN, name, told.replace("-", "\N{MINUS SIGN}"), link)
    beta, allowed = family.beta_p95, family.thresholds.stability
    if beta is not None and allowed is not None and beta > allowed and family.pairs >= _LEAST_PAIRS:
        if not within_noise(family):
            told = f"Its policy is less stable than the contract allows: \N{GREEK SMALL LETTER BETA} {beta:.3g}."
            yield Condition(BETA, name, told, link)


def _of_recent_episodes(view: FleetView, now_s: float) -> Iterator[Condition]:
    """What the last hour's episodes show, as far as they are remembered."""
    groups: dict[tuple[str, str, str], list[EpisodeSummary]] = {}
    for summary in view.episodes():
        if 0 <= now_s - (summary.ended_s - view.skew_s(summary.key.agent)) <= HOUR_S:
            traits = summary.traits
            groups.setdefault((traits.family, traits.method, traits.version), []).append(summary)
    recovery = {family.identity: family.thresholds.recovery for family in view.families()}
    for group, ended in sorted(groups.items()):
        name, link = group_name(*map(clean_label_value, group)), family_link(ended[0].traits)
        aborted = sum(summary.censored for summary in ended)
        if aborted >= LEAST_EPISODES and aborted > MOST_ABORTED * len(ended):
            told = f"{aborted:,} of {len(ended):,} episodes of the last hour were aborted: nobody saw how they ended."
            yield Condition(ABORTED, name, told, link)
        costs = [
            summary.recovery_cost
            for summary in ended
            if summary.recovery_cost is not None and not summary.censored and not summary.provisional
        ]
        allowed = recovery.get(group)
        if allowed is not None and len(costs) >= LEAST_EPISODES and (cost := quantile(costs, _TAIL)) > allowed:
            told = f"One in ten recoveries of the last hour cost {cost:.3g} or more; the contract allows {allowed:.3g}."
            yield Condition(COST, name, told, link)


def _of_agent(agent: AgentMemory, view: FleetView, now_s: float, times: StateTimes) -> Iterator[Condition]:
    state, seen = view.state_of(agent, now_s), agent.activity
    name, link = str(agent.label), agent_link(agent.label)
    departed_s = agent.departed_s
    if state not in ("silent", "unknown") and departed_s is not None and now_s - departed_s > OPEN_S:
        yield Condition(OPEN_WINDOW, name, "It has not recovered.", link, departed_s, departed_s + OPEN_S)
    of_state: Mapping[str, tuple[AlertRule, str, float, float]] = {
        "silent": (SILENT, "It fell silent in the middle of an episode.", seen.seen_s, times.silent_s),
        "stale": (STALE, "It sends messages, but nothing new.", seen.step_s, times.silent_s),
        "stalled": (STALLED, "It takes steps, but makes no progress.", seen.progress_s, times.stalled_s),
        "contested": (CONTESTED, "Two programs report under its name.", math.inf, 0.0),
    }
    if state in of_state:
        rule, told, since_s, after_s = of_state[state]
        known_s = _known(since_s)
        yield Condition(rule, name, told, link, known_s, None if known_s is None else known_s + after_s)


def _known(time_s: float) -> float | None:
    return time_s if math.isfinite(time_s) else None
