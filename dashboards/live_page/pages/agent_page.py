"""One agent: how it is doing this minute, and what the last minutes looked like."""

from collections.abc import Mapping

from nicegui import ui

from springback.dashboards.live_page.agent_memory import (
    HISTORY_SAMPLES,
    WINDOWS_OF_AN_AGENT,
    AgentMemory,
)
from springback.dashboards.live_page.charts import LiveChart, cost_chart, intensity_chart, progress_chart
from springback.dashboards.live_page.fleet_view import newest_first
from springback.dashboards.live_page.links import FLEET, episode_link, family_link
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import (
    NOTHING,
    ChoiceBar,
    StateChip,
    card,
    figure,
    group_name,
    percent,
    stat,
    stat_at,
    stat_link,
)
from springback.dashboards.live_page.page_query import PageQuery
from springback.dashboards.live_page.pages.episodes import EpisodeTable, end_words
from springback.dashboards.live_page.pages.reach_note import ReachNote
from springback.dashboards.live_page.pages.windows import WindowList
from springback.sinks.fleet.fleet_state import clean_group
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.figure_words import stress_text
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from springback.stream_processors.topics import STATUS

_STATS: Mapping[str, str | None] = {
    "Progress p": "progress p",
    "Propositions q": "propositions q",
    "Intensity g": "intensity g",
    "Running cost": "recovery cost C_rec",
    "Step": None,
    "Mode": None,
    "Stress λ": "stress λ",
    "Task": None,
    "Copies dropped": None,
    "Steps missing": None,
    "Last episode": None,
}
"""The figures, and the words of the glossary that say what they mean."""

_SPANS: Mapping[str, tuple[str, float]] = {
    "": ("All that is remembered", float("inf")),
    "2m": ("Last 2 minutes", 120.0),
    "30s": ("Last 30 seconds", 30.0),
}
"""How much of the last minutes is drawn, by what stands for it in addresses: its words, and seconds."""


class AgentPage:
    """The page's content.

    Args:
        sink: what is shown.
        token: of the agent.
        window: what its windows are found by.
        query: what the address says: `last`, how much is drawn.
    """

    def __init__(self, sink: LiveSink, token: str, window: WindowConfig, query: PageQuery) -> None:
        self._sink, self._token, self._config, self._query = sink, token, window, query
        with ui.element("div").classes("sb-agent-head"):
            ui.link("Fleet", FLEET).classes("sb-back")
            self._name = ui.label("Unknown agent").classes("sb-agent-name").props('role="heading" aria-level="1"')
            self._chip = StateChip()
            self._told = ui.label().classes("sb-told")
        self._gone = ui.label("Nothing is known of this agent (any more).").classes("sb-card sb-none")
        with ui.element("div").classes("sb-agent-page") as self._content:
            with ui.element("section").classes("sb-card"), ui.element("dl").classes("sb-stats"):
                self._stats = {name: stat(name, word) for name, word in _STATS.items()}
                self._family, self._episode = stat_link("Family"), stat_link("Episode")
                self._heard = stat_at("Last heard")
            with ui.element("div").classes("sb-charts") as self._charts:
                words = {value: words for value, (words, _) in _SPANS.items()}
                self._span = ChoiceBar("Time that is drawn", words, self._choose)
                note = "Once a second; shaded: rebound window. The scale is that of the logarithm of 1 + g."
                with card("Distance from the baseline, g by channel", note, "intensity g", "channel"):
                    self._intensity = LiveChart("g by channel over time", "sb-chart sb-chart--tall")
                with ui.element("div").classes("sb-halves"):
                    with card("Recovery cost, running up", "", "recovery cost C_rec"):
                        self._cost = LiveChart("running recovery cost over time")
                    with card("Progress p and propositions q", "", "progress p", "propositions q"):
                        self._progress = LiveChart("progress and propositions over time")
                self._reach = ReachNote(sink, STATUS)
            with card("Its last rebound windows"):
                self._windows = WindowList(WINDOWS_OF_AN_AGENT, of_agent=True)
            with card("Its last episodes"):
                self._episodes = EpisodeTable(of_agent=True)
        query.read_by(self.refresh)

    def refresh(self) -> None:
        """Shows what holds now."""
        with self._sink.look() as (view, now_s):
            agent = view.agent(self._token)
            self._gone.set_visibility(agent is None)
            self._content.set_visibility(agent is not None)
            self._chip.set_visibility(agent is not None)
            if agent is None:
                return
            self._name.text = agent.label
            self._chip.show(view.state_of(agent, now_s))
            self._show_stats(agent)
            self._show_charts(agent)
            skew_s = agent.skew_s
            self._windows.show(newest_first(agent.windows.values()), lambda _: skew_s)
            self._episodes.show(agent.episodes, lambda _: skew_s)
            samples = len(agent.history)
        # A page that has more of them than it can keep lacks none for want of readings.
        self._reach.refresh(wanted=samples < HISTORY_SAMPLES)

    def _choose(self, last: str) -> None:
        self._query.put({"last": last})
        self.refresh()

    def _show_charts(self, agent: AgentMemory) -> None:
        self._charts.set_visibility(len(agent.history) > 0)
        if not len(agent.history):
            return
        chosen = self._query.choice("last", _SPANS)
        self._span.show(chosen)
        last_s = _SPANS[chosen][1]
        spans = agent.window_spans()
        threshold = self._config.threshold if self._config.detector == "threshold" else None
        self._intensity.show(
            intensity_chart(agent.history, spans, self._config.calm_intensity, threshold, last_s),
        )
        self._cost.show(cost_chart(agent.history, spans, last_s))
        self._progress.show(progress_chart(agent.history, spans, last_s))

    def _show_stats(self, agent: AgentMemory) -> None:
        episode, traits, status = agent.episode, agent.traits, agent.status
        opened = agent.open_window
        self._told.text = ""
        if opened is not None:
            since, window = opened[0].step - opened[1].departure_step, opened[1]
            self._told.text = f"Departed at step {window.departure_step:,}, {since:,} steps ago, by {window.cause}."
            if window.provisional:
                self._told.text += " Provisional: its family is still learning."
        texts = {
            "Progress p": percent(None if episode is None else episode.progress),
            "Propositions q": percent(None if episode is None else episode.propositions),
            "Intensity g": figure(None if episode is None else episode.intensity),
            "Running cost": figure(agent.running_cost) if opened is not None else NOTHING,
            "Step": NOTHING if episode is None else f"{episode.step:,}",
            "Mode": NOTHING if episode is None else clean_label_value(episode.mode),
            "Stress λ": NOTHING if traits is None else stress_text(traits.declared_stress),
            "Task": NOTHING if traits is None else clean_label_value(traits.task),
            "Copies dropped": NOTHING if status is None else f"{status.counts.duplicate_steps:,}",
            "Steps missing": NOTHING if status is None else f"{status.counts.missing_steps:,}",
            "Last episode": NOTHING if agent.ended is None else end_words(agent.ended),
        }
        for name, told in texts.items():
            self._stats[name].text = told
        self._heard.show(None if status is None else status.seen_s)
        if traits is not None:
            self._family.show(group_name(*clean_group(traits)), family_link(traits))
        self._episode.show(
            NOTHING if episode is None else clean_label_value(episode.key.episode),
            None if episode is None else episode_link(episode.key),
        )
