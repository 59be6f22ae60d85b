"""Episodes that have ended: a table with when, where and how, each with the way to its page."""

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import ui

from springback.dashboards.live_page.explained import moment
from springback.dashboards.live_page.links import agent_link, episode_link, family_link
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import NOTHING, Column, LiveTable, figure, group_name, section_title
from springback.dashboards.live_page.page_query import PageQuery
from springback.dashboards.live_page.pages.downloads import download_link
from springback.dashboards.live_page.pages.pager import Pager
from springback.dashboards.live_page.pages.reach_note import ReachNote
from springback.dashboards.live_page.pages.windows import SPANS, UNSTEADY_S, has_words
from springback.sinks.fleet.fleet_state import clean_group
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.figure_words import counted, stress_text
from springback.stream_processors.resilience.readings import EpisodeSummary
from springback.stream_processors.topics import SUMMARIES

_COLUMNS = (
    Column("ended", "Ended", "left", look="when"),
    Column("episode", "Episode", "left", look="link"),
    Column("agent", "Agent", "left", "sb-wide", "link"),
    Column("family", "Family", "left", "sb-wide", "link"),
    Column("task", "Task", "left", "sb-wide"),
    Column("stress", "λ", "left", "sb-wide", word="stress λ"),
    Column("outcome", "Outcome", "left", look="remark"),
    Column("steps", "Steps", "right", "sb-wide"),
    Column("windows", "Windows", "right", "sb-wide", word="rebound window"),
    Column("lost", "Lost cycles", "right", "sb-wide", word="lost cycles"),
    Column("cost", "Cost", "right", word="recovery cost C_rec"),
)
_ROWS = 25


class EpisodeTable:
    """The table.

    Args:
        of_agent: whether all are of one agent, which need not be named again.
    """

    def __init__(self, *, of_agent: bool = False) -> None:
        self._shown: list[dict[str, Any]] = []
        self._none = ui.label().classes("sb-none")
        columns = [column for column in _COLUMNS if not (of_agent and column.name == "agent")]
        self._table = LiveTable(columns, row_key="key", pagination={"rowsPerPage": 0}, sizes=(_ROWS,), sortable=False)
        self._table.props["hide-bottom"] = True
        self._table.classes("sb-episodes")
        self._of_agent = of_agent

    def show(
        self,
        episodes: Sequence[EpisodeSummary],
        skew_s: Callable[[str], float],
        none: str = "No episode has ended yet.",
    ) -> None:
        """Shows these in their order.

        Args:
            episodes: all that are shown.
            skew_s: how far an agent's clock, by which its episodes' times are, is ahead of the broker's.
            none: what is said where there is none.
        """
        self._none.text = none
        rows = [_row(episode, skew_s(episode.key.agent), of_agent=self._of_agent) for episode in episodes]
        before = {row["key"]: row["ended"] for row in self._shown}
        for row in rows:
            row["ended"] = _settled(row["ended"], before.get(row["key"]))
        self._none.set_visibility(not rows)
        self._table.set_visibility(bool(rows))
        if rows != self._shown:
            self._shown = rows
            self._table.rows = rows


class EpisodePanel:
    """The episodes that are remembered, the one that ended last first; which of them is said by the address.

    Args:
        sink: what is shown.
        query: what the address says: `search` and `since`, as of the windows beside it, and `episodes`, the page.
    """

    def __init__(self, sink: LiveSink, query: PageQuery) -> None:
        self._sink, self._query = sink, query
        with ui.element("section").classes("sb-card").props('aria-label="Recent episodes"'):
            section_title("Recent episodes")
            self._table = EpisodeTable()
            self._pager = Pager(_ROWS, self._turn)
            self._reach = ReachNote(sink, SUMMARIES)
            download_link("episodes")

    def refresh(self) -> None:
        """Shows what holds now."""
        self._reach.refresh()
        query = self._query
        with self._sink.look() as (view, now_s):
            known = view.episodes()
            skews = {agent: view.skew_s(agent) for agent in {episode.key.agent for episode in known}}
        oldest_s = now_s - SPANS[query.choice("since", SPANS)][1]
        chosen = [
            episode
            for episode in known
            if not episode.ended_s - skews[episode.key.agent] < oldest_s
            and has_words(query.text("search"), episode.key.agent, episode.traits)
        ]
        first = self._pager.show(query.number("episodes", 1), len(chosen), len(known))
        none = "No episode that has ended is like that." if known else "No episode has ended yet."
        self._table.show(chosen[first : first + _ROWS], skews.__getitem__, none)

    def _turn(self, page: int) -> None:
        self._query.put({"episodes": page if page > 1 else None})
        self.refresh()


def end_words(summary: EpisodeSummary) -> str:
    """How an episode ended, and what is to be known before its figures are believed."""
    told: list[str] = [summary.outcome]
    if summary.interruptions:
        told.append(counted(summary.interruptions, "interruption"))
    told += [name for name in ("gap", "joined", "extended", "provisional") if getattr(summary, name)]
    return "; ".join(told)


def _settled(ended_s: float | str, before: float | str | None) -> float | str:
    """The time as it was shown before, where it has hardly changed: an agent's clock is estimated anew all the time."""
    if isinstance(ended_s, float) and isinstance(before, float) and abs(ended_s - before) < UNSTEADY_S:
        return before
    return ended_s


def _row(summary: EpisodeSummary, skew_s: float, *, of_agent: bool) -> dict[str, Any]:
    key, traits = summary.key, summary.traits
    agent = clean_label_value(key.agent)
    outcome, _, remark = end_words(summary).partition("; ")
    ended_s = moment(summary.ended_s - skew_s)
    family, task, stress = (
        group_name(*clean_group(traits)),
        clean_label_value(traits.task),
        stress_text(traits.declared_stress),
    )
    return {
        "key": episode_link(key),
        "ended": NOTHING if ended_s is None else ended_s,
        **{"episode": clean_label_value(key.episode), "episode_href": episode_link(key)},
        "episode_narrow": f"{family}, {task}, λ {stress}",
        **{"agent": agent, "agent_href": agent_link(key.agent)},
        **{"episode_of": None if of_agent else agent, "episode_of_href": agent_link(key.agent)},
        **{"family": family, "family_href": family_link(traits), "task": task, "stress": stress},
        **{"outcome": outcome, "outcome_remark": remark or None},
        **{"steps": f"{summary.steps:,}", "windows": f"{summary.windows:,}", "lost": figure(summary.lost_cycles)},
        "cost": figure(summary.recovery_cost),
    }
