"""One agent: how it is doing this minute, and what the last minutes looked like."""

from nicegui import ui

from springback.dashboards.live_page.agent_memory import WINDOWS_OF_AN_AGENT, AgentMemory
from springback.dashboards.live_page.charts import LiveChart, cost_chart, intensity_chart, progress_chart
from springback.dashboards.live_page.fleet_view import newest_first
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import (
    NOTHING,
    StateChip,
    ago,
    figure,
    group_name,
    percent,
    section_title,
    stat,
)
from springback.dashboards.live_page.pages.windows import WindowList
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.figure_words import stress_text
from springback.stream_processors.resilience.readings import EpisodeSummary
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig

_STATS = (
    *("Progress p", "Propositions q", "Intensity g", "Running cost", "Step", "Mode", "Stress λ", "Last heard"),
    *("Family", "Task", "Episode", "Copies dropped", "Steps missing", "Last episode"),
)


class AgentPage:
    """The page's content.

    Args:
        sink: what is shown.
        token: of the agent.
        window: what its windows are found by.
    """

    def __init__(self, sink: LiveSink, token: str, window: WindowConfig) -> None:
        self._sink, self._token, self._config = sink, token, window
        self._gone = ui.label("Nothing is known of this agent (any more).").classes("sb-card sb-none")
        with ui.element("div").classes("sb-agent-page") as self._content:
            with ui.element("div").classes("sb-agent-head"):
                ui.link("Fleet", "/").classes("sb-back")
                self._name = ui.label().classes("sb-agent-name").props('role="heading" aria-level="1"')
                self._chip = StateChip()
                self._told = ui.label().classes("sb-told")
            with ui.element("section").classes("sb-card"), ui.element("dl").classes("sb-stats"):
                self._stats = {name: stat(name) for name in _STATS}
            with ui.element("div").classes("sb-charts") as self._charts:
                with _card("Distance from the baseline, g by channel", "Once a second; shaded: rebound window"):
                    self._intensity = LiveChart("g by channel over time", "sb-chart sb-chart--tall")
                with ui.element("div").classes("sb-halves"):
                    with _card("Recovery cost, running up"):
                        self._cost = LiveChart("running recovery cost over time")
                    with _card("Progress p and propositions q"):
                        self._progress = LiveChart("progress and propositions over time")
            with _card("Its last rebound windows"):
                self._windows = WindowList(WINDOWS_OF_AN_AGENT, linked=False)

    def refresh(self) -> None:
        """Shows what holds now."""
        with self._sink.look() as (view, now_s):
            agent = view.agent(self._token)
            self._gone.set_visibility(agent is None)
            self._content.set_visibility(agent is not None)
            if agent is None:
                return
            self._name.text = agent.label
            self._chip.show(view.state_of(agent, now_s))
            self._show_stats(agent, now_s)
            self._show_charts(agent)
            self._windows.show(newest_first(agent.windows.values()))

    def _show_charts(self, agent: AgentMemory) -> None:
        self._charts.set_visibility(len(agent.history) > 0)
        if not len(agent.history):
            return
        spans = agent.window_spans()
        threshold = self._config.threshold if self._config.detector == "threshold" else None
        self._intensity.show(intensity_chart(agent.history, spans, self._config.calm_intensity, threshold))
        self._cost.show(cost_chart(agent.history, spans))
        self._progress.show(progress_chart(agent.history, spans))

    def _show_stats(self, agent: AgentMemory, now_s: float) -> None:
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
            "Last heard": ago(None if status is None else now_s - status.seen_s),
            "Family": NOTHING,
            "Task": NOTHING if traits is None else clean_label_value(traits.task),
            "Episode": NOTHING if episode is None else clean_label_value(episode.key.episode),
            "Copies dropped": NOTHING if status is None else f"{status.counts.duplicate_steps:,}",
            "Steps missing": NOTHING if status is None else f"{status.counts.missing_steps:,}",
            "Last episode": NOTHING if agent.ended is None else end_words(agent.ended),
        }
        if traits is not None:
            parts = (clean_label_value(part) for part in (traits.family, traits.method, traits.version))
            texts["Family"] = group_name(*parts)
        for name, text in texts.items():
            self._stats[name].text = text


def end_words(summary: EpisodeSummary) -> str:
    """How an episode ended, and what is to be known before its figures are believed."""
    told: list[str] = [summary.outcome]
    if summary.interruptions:
        told.append(f"{summary.interruptions:,} interruption{'' if summary.interruptions == 1 else 's'}")
    told += [name for name in ("gap", "joined", "extended", "provisional") if getattr(summary, name)]
    return "; ".join(told)


def _card(title: str, note: str = "") -> ui.element:
    card = ui.element("section").classes("sb-card")
    with card:
        section_title(title)
        if note:
            ui.label(note).classes("sb-note")
    return card
