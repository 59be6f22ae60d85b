"""The number of series that is stated is one that no fleet exceeds, and that the command's help tells."""

import re
from collections.abc import Callable
from typing import Any

from springback.deploy.commands.services.watching import export
from springback.sinks.fleet.series_bounds import SeriesBounds
from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.readings import EpisodeTraits, NavigationScores, StressMargin
from tests.sinks.fleet.agent_page import AgentPage

Make = Callable[..., Any]

BOUNDS = {"agents": 2, "groups": 2, "reasons": 2, "partitions": 2}
KINDS = ("none", "physical", "semantic", "object_state", "perception", "mixed", "ghost")
OUTCOMES = ("success", "failure", "timeout", "aborted", "ghost")
CAUSES = ("effort", "delay", "effort+delay", "ghost")
STATES = ("recovered", "unrecovered", "censored", "ghost")


def fill(page: AgentPage, window: Make, begun: Make, summary: Make, status: Make, running: Make, family: Make) -> None:
    """Everything there is, in more kinds than have series of their own."""
    ids = map(str, range(10**6))
    for number in range(4):
        for kind in KINDS:
            traits = EpisodeTraits(family=f"family-{number}", task="t", perturbation=kind)
            for outcome in OUTCOMES:
                ended = summary(episode=next(ids), traits=traits, outcome=outcome, stability_loss=2.0)
                page.after(begun(episode=next(ids), traits=traits), ended)
            for cause in CAUSES:
                for state in STATES:
                    page.after(window(episode=next(ids), traits=traits, cause=cause, state=state))
        known = family().margins[0]
        levels = tuple(StressMargin(**{**_fields(known), "stress": level / 64}) for level in range(40))
        scores = NavigationScores(episodes=1, success_rate=1.0, spl=1.0, sel=1.0, goal_completion=1.0)
        attacks = {f"attack-{n}": scores for n in range(40)} | {"all": scores, "other": scores}
        thresholds = dict.fromkeys(("progress", "propositions", "recovery", "stability", "safety"), 1.0)
        page.after(
            family(
                f"family-{number}",
                margins=levels,
                navigation=attacks,
                beta_by_kind=dict.fromkeys(KINDS, 1.0),
                thresholds=type(family().thresholds)(**thresholds),
            )
        )
        for letter in ("live", "lost"):
            name = f"{letter}-{number}"
            key = {"agent": name, "episode": next(ids), "traits": EpisodeTraits(family=f"family-{number}", task="t")}
            seen_s = 100_000.0 if letter == "live" else 50_000.0
            page.after(window(**key, state="open"))
            page.after(status(name, seen_s=seen_s, episodes=(running(**key, cost=1.0, beta_step=0.5),)))
        page.sink.write_dead_letter(DeadLetter(f"reason-{number}", bytes([number])))
    for number in range(30):
        page.sink.unreadable(f"topic-{number}")
        page.sink.retried(f"sink-{number}")
    page.sink.show_frames_behind(dict.fromkeys(range(5), 1))


def _fields(margin: StressMargin) -> dict[str, Any]:
    return {name: getattr(margin, name) for name in margin.__struct_fields__}


def test_no_page_has_more_series_than_are_stated(
    window: Make, begun: Make, summary: Make, status: Make, running: Make, family: Make
) -> None:
    page = AgentPage(**BOUNDS).at(100_010.0)
    fill(page, window, begun, summary, status, running, family)
    counts = {found.name: len(found.samples) for found in page.registry.collect()}
    bounds = SeriesBounds(**BOUNDS)
    assert 0.8 * bounds.series < sum(counts.values()) <= bounds.series
    of_agents = sum(count for name, count in counts.items() if name.startswith("springback_agent"))
    assert 0.9 * bounds.agent_series < of_agents <= bounds.agent_series


def test_the_help_of_the_command_tells_it() -> None:
    told = re.search(r"at most\s+([\d,]+)\s+series,\s+([\d,]+)\s+of them", export.__doc__ or "")
    assert told is not None
    series, of_agents = (int(number.replace(",", "")) for number in told.groups())
    bounds = SeriesBounds()
    # With room for new metrics, which need not touch the command.
    assert bounds.series <= series <= 1.5 * bounds.series
    assert bounds.agent_series <= of_agents <= 1.5 * bounds.agent_series
