"""One episode: what happened, step by step, in charts, and the evidence of each of its rebound windows."""

from collections.abc import Iterable, Mapping
from typing import Any

from nicegui import ui

from springback.dashboards.live_page.charts import LiveChart
from springback.dashboards.live_page.episodes.episode_charts import (
    channel_chart,
    detector_chart,
    drawn,
    episode_progress_chart,
    mode_chart,
)
from springback.dashboards.live_page.episodes.episode_reader import EpisodeReader, ReadEpisode
from springback.dashboards.live_page.episodes.known_episode import KnownEpisode, find_episode
from springback.dashboards.live_page.links import EPISODE_ROUTE, FLEET, agent_link, family_link
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import (
    NOTHING,
    Column,
    LiveTable,
    card,
    figure,
    group_name,
    percent,
    stat,
    stat_at,
    stat_link,
)
from springback.dashboards.live_page.page_query import PageQuery
from springback.dashboards.live_page.pages.episodes import end_words
from springback.dashboards.live_page.window_words import window_sentence
from springback.sinks.fleet.fleet_state import clean_group
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.figure_words import stress_text
from springback.stream_processors.resilience.readings import WindowReading
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from springback.stream_processors.resilience.window_evidence import EvidenceStep, WindowEvidence

STEPS_ROUTE = EPISODE_ROUTE + "/steps.jsonl.gz"
"""Where the steps can be had as a recording."""

_STATS: Mapping[str, str | None] = {
    "Outcome": None,
    "Steps": None,
    "Progress p": "progress p",
    "Recovery cost": "recovery cost C_rec",
    "Rebound windows": "rebound window",
    "Stress λ": "stress λ",
    "Task": None,
}
_COLUMNS = (
    Column("step", "Step", "right"),
    Column("place", "Window", "left"),
    Column("progress", "p", "right", word="progress p"),
    Column("propositions", "q", "right", word="propositions q"),
    Column("g", "g", "right", word="intensity g"),
    Column("cognitive", "cognitive", "right", "sb-wide"),
    Column("physical", "physical", "right", "sb-wide"),
    Column("debt", "debt", "right", "sb-wide"),
    Column("lost", "Lost cycles", "right", word="lost cycles"),
    # Behind the figures: on a phone there is no room for both.
    Column("mode", "Mode", "left"),
    Column("action", "Action", "left", "sb-wrapped"),
    Column("feedback", "Feedback", "left", "sb-wrapped"),
)
_MOST_WINDOWS = 32


class EpisodePage:
    """The page's content.

    Args:
        sink: what the page remembers.
        reader: has the steps.
        agent: the token of the agent.
        episode: the token of the episode.
        config: what its windows are found by.
        query: what the address says: `window`, which of them is meant.
    """

    def __init__(
        self, sink: LiveSink, reader: EpisodeReader, agent: str, episode: str, config: WindowConfig, query: PageQuery
    ) -> None:
        self._sink, self._reader, self._config, self._query = sink, reader, config, query
        self._agent, self._episode = agent, episode
        self._version = -1
        self._shown: dict[int, WindowReading] = {}
        with ui.element("div").classes("sb-agent-head"):
            ui.link("Fleet", FLEET).classes("sb-back")
            self._name = ui.label("Unknown episode").classes("sb-agent-name").props('role="heading" aria-level="1"')
        self._gone = ui.label(
            "Nothing is remembered of this episode: the page knows the last ones of each agent and of the fleet, as "
            "far back as the topics reach."
        ).classes("sb-card sb-none")
        with ui.element("div").classes("sb-agent-page") as self._content:
            with ui.element("section").classes("sb-card"):
                with ui.element("dl").classes("sb-stats"):
                    self._of_agent, self._family = stat_link("Agent"), stat_link("Family")
                    self._stats = {name: stat(name, word) for name, word in _STATS.items()}
                    self._ended = stat_at("Ended")
                self._told = ui.label().classes("sb-note").props('role="status"')
                with ui.element("div") as self._recording:
                    self._download = ui.link("Its steps as a recording", "").classes("sb-link")
                    ui.label("`springback evaluate` reads it, by a baseline of `springback baseline export`.").classes(
                        "sb-note"
                    )
            with ui.element("div").classes("sb-charts") as self._charts:
                with card("Progress and modes", "Over its steps; shaded: rebound windows, with what raised the alarm."):
                    self._progress = LiveChart("progress and propositions over the steps")
                    self._modes = LiveChart("modes over the steps", "sb-chart sb-chart--band")
                with card("Distance from the baseline, g by channel", "The scale is that of the logarithm of 1 + g."):
                    self._channels = LiveChart("g by channel over the steps", "sb-chart sb-chart--tall")
                note = "A sum that passes its bound (dotted) raises the alarm. While a window is open both stand still."
                with card("What the detectors have added up", note):
                    self._sums = LiveChart("sums of both detectors over the steps")
            with card("Its rebound windows", "With the steps around each, as they were scored when it happened."):
                self._none = ui.label("It has none.").classes("sb-none")
                self._windows = ui.element("div").classes("sb-evidence")
                self._more = ui.label().classes("sb-note")

    def refresh(self) -> None:
        """Shows what holds now."""
        with self._sink.look() as (view, _):
            known = find_episode(view, self._agent, self._episode)
        self._gone.set_visibility(known is None)
        self._content.set_visibility(known is not None)
        if known is None:
            return
        read = self._reader.ask(known.wanted)
        self._show_stats(known)
        self._show_told(read)
        if read.version != self._version and read.trace is not None:
            self._version = read.version
            self._show_charts(known, read)
        self._charts.set_visibility(read.trace is not None and bool(read.trace.steps))
        traced = {} if read.trace is None else read.trace.windows
        with_steps = {number: window for number, window in known.windows.items() if window.evidence is not None}
        self._show_windows({**known.windows, **traced, **with_steps})

    def _show_stats(self, known: KnownEpisode) -> None:
        key, traits, summary, status = known.key, known.traits, known.summary, known.status
        agent, episode = clean_label_value(key.agent), clean_label_value(key.episode)
        self._name.text = f"Episode {episode} of {agent}"
        self._of_agent.show(agent, agent_link(key.agent))
        self._family.show(group_name(*clean_group(traits)), family_link(traits))
        progress = summary.final_progress if summary is not None else None if status is None else status.progress
        steps = summary.steps if summary is not None else None if status is None else status.steps
        texts = {
            "Outcome": "open" if status is not None else NOTHING if summary is None else end_words(summary),
            "Steps": NOTHING if steps is None else f"{steps:,}",
            "Progress p": percent(progress),
            "Recovery cost": NOTHING if summary is None else figure(summary.recovery_cost),
            "Rebound windows": f"{known.seen_windows if summary is None else summary.windows:,}",
            "Stress λ": stress_text(traits.declared_stress),
            "Task": clean_label_value(traits.task),
        }
        for name, text in texts.items():
            self._stats[name].text = text
        self._ended.show(None if summary is None else summary.ended_s - known.skew_s)
        self._download.props["href"] = STEPS_ROUTE.format(agent=self._agent, episode=self._episode)

    def _show_told(self, read: ReadEpisode) -> None:
        told = list(read.told)
        if read.reading and read.trace is None:
            told = [f"Its steps are being read from the broker: {read.messages:,} messages so far."]
        steps = [] if read.trace is None else read.trace.steps
        unscored = sum(step.figures is None for step in steps)
        if unscored:
            told.append(
                f"{unscored:,} of {len(steps):,} steps could not be scored: no baseline was known for them then."
            )
        self._recording.set_visibility(bool(steps) or read.reading)
        self._told.text = " ".join(told)
        self._told.set_visibility(bool(told))

    def _show_charts(self, known: KnownEpisode, read: ReadEpisode) -> None:
        trace = read.trace
        if trace is None or not trace.steps:
            return
        windows = list({**trace.windows, **known.windows}.values())
        steps = drawn(trace.steps)
        self._progress.show(episode_progress_chart(steps, windows))
        self._modes.show(mode_chart(trace.steps))
        self._channels.show(channel_chart(steps, windows, self._config.calm_intensity))
        self._sums.show(detector_chart(steps, windows))

    def _show_windows(self, windows: Mapping[int, WindowReading]) -> None:
        chosen = self._query.number("window", -1)
        numbers = numbers_shown(windows, chosen)
        shown = {number: windows[number] for number in numbers}
        if shown == self._shown:
            return
        first = chosen in shown and chosen not in self._shown
        self._none.set_visibility(not shown)
        self._shown = shown
        self._more.set_visibility(len(shown) < len(windows))
        self._more.text = f"{len(windows) - len(shown):,} more are not shown."
        self._windows.clear()
        with self._windows:
            for number, window in shown.items():
                _window(window, chosen=number == chosen)
        if first:  # whoever has read on since is left where they are
            ui.run_javascript("document.querySelector('.sb-chosen')?.scrollIntoView()")


def numbers_shown(windows: Iterable[int], chosen: int) -> list[int]:
    """The numbers of the windows that are shown: the first ones, and the one that the address names.

    >>> numbers_shown(range(100), 70)[-2:], len(numbers_shown(range(100), 70)), numbers_shown([4, 2], 9)
    ([30, 70], 32, [2, 4])
    """
    numbers = sorted(windows)
    beyond = [chosen] if chosen in numbers[_MOST_WINDOWS:] else []
    return numbers[: _MOST_WINDOWS - len(beyond)] + beyond


def _window(window: WindowReading, *, chosen: bool) -> None:
    with ui.element("section").classes("sb-window" + (" sb-chosen" if chosen else "")):
        ui.label(window_sentence(window)).classes("sb-sentence")
        evidence = window.evidence
        if evidence is None or not evidence.steps:
            ui.label("Its steps were not kept with it.").classes("sb-note")
            return
        if evidence.left_out:
            place = f" before step {evidence.steps[evidence.left_out_at].step:,}" if evidence.left_out_at else ""
            ui.label(f"{evidence.left_out:,} steps are left out{place}.").classes("sb-note")
        table = LiveTable(_COLUMNS, row_key="step", pagination={"rowsPerPage": 0}, sizes=(0,), sortable=False)
        table.props["hide-bottom"] = True
        table.rows = evidence_rows(window, evidence)


def evidence_rows(window: WindowReading, evidence: WindowEvidence) -> list[dict[str, Any]]:
    """A window's evidence as the rows of a table."""
    return [_row(window, step) for step in evidence.steps]


def _row(window: WindowReading, step: EvidenceStep) -> dict[str, Any]:
    marks = [(window.departure_step, "departure"), (window.alarm_step, "alarm")]
    if window.state == "recovered":
        marks.append((window.reentry_step, "re-entry"))
    return {
        "step": f"{step.step:,}",
        "place": ", ".join(name for place, name in marks if place == step.step),
        "mode": clean_label_value(step.mode),
        "action": clean_label_value(step.action) if step.action else "",
        "feedback": clean_label_value(step.feedback) if step.feedback else "",
        "progress": percent(step.progress),
        "propositions": percent(step.propositions),
        "g": figure(step.intensity),
        "cognitive": figure(step.cognitive),
        "physical": figure(step.physical),
        "debt": figure(step.debt),
        "lost": figure(step.lost_cycles),
    }
