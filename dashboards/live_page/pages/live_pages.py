"""The pages by their addresses."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import Request, Response
from fastapi.responses import PlainTextResponse
from nicegui import app, ui

from springback.dashboards.live_page.comparing.shared_comparisons import SharedComparisons
from springback.dashboards.live_page.episodes.episode_reader import EpisodeReader
from springback.dashboards.live_page.episodes.known_episode import find_episode
from springback.dashboards.live_page.links import AGENT_ROUTE, COMPARE, EPISODE_ROUTE, RUNBOOK
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_query import PageQuery
from springback.dashboards.live_page.pages.agent_page import AgentPage
from springback.dashboards.live_page.pages.alerts_page import AlertPanel, AlertSources, runbook_page
from springback.dashboards.live_page.pages.compare_page import ComparePage
from springback.dashboards.live_page.pages.downloads import serve_downloads
from springback.dashboards.live_page.pages.episode_page import STEPS_ROUTE, EpisodePage
from springback.dashboards.live_page.pages.episodes import EpisodePanel
from springback.dashboards.live_page.pages.families import BRIEF_COLUMNS, FamilyPanel, FamilyTable
from springback.dashboards.live_page.pages.fleet_table import FleetTable
from springback.dashboards.live_page.pages.page_frame import (
    PAGES,
    THEME_COOKIE,
    PageName,
    Refresh,
    page_frame,
    theme_of,
)
from springback.dashboards.live_page.pages.pipeline_panel import PipelinePanel
from springback.dashboards.live_page.pages.windows import WindowList, WindowPanel
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig

_FROM_PYTHON = """\
from springback import KafkaPublisher, StepEmitter

with StepEmitter(KafkaPublisher("{broker}"), producer="robot-7") as emitter:
    episode = emitter.begin_episode(episode="1", family="delivery", reference=True)
    for step in range(40):
        episode.step(progress=(step + 1) / 40, planning_s=0.02, travel=0.25)
    episode.end("success")"""

_NEWEST_WINDOWS = 6
Refreshed = Callable[[Refresh], None]
"""Takes what brings a part of a page to what holds now."""


def empty_state(sink: LiveSink, bootstrap: str, content: ui.element) -> Callable[[], None]:
    """Shows how to send the first frames, in place of the content, until there is an agent.

    Returns:
        what refreshes it.
    """
    with ui.element("section").classes("sb-card sb-empty") as card:
        ui.label("No agent has reported yet").classes("sb-empty-title")
        ui.label("This page fills by itself as soon as steps arrive. Three ways to send the first:")
        with ui.element("ol"):
            _way("Replay a recording of steps", f"springback replay FILE --broker {bootstrap}")
            _way("Report steps from your own loop", _FROM_PYTHON.format(broker=bootstrap))
            _way("See all of it on this machine, with simulated agents", "springback demo")
        ui.label("Mark clean runs as references: what is normal is learned from them.")

    def refresh() -> None:
        with sink.look() as (view, _):
            empty = view.sight.newest_s is None
        card.set_visibility(empty)
        content.set_visibility(not empty)

    return refresh


def _way(title: str, commands: str) -> None:
    with ui.element("li"):
        ui.label(title)
        with ui.element("pre").props('tabindex="0"'), ui.element("code"):
            ui.label(commands).classes("sb-code")


class LivePages:
    """All pages.

    Args:
        sink: what they show.
        bootstrap: the broker's address, which they tell.
        window: what rebound windows are found by.
        comparisons: what compares the methods and versions of a family.
        alerts: what they have of alerts besides.
        reader: has episodes step by step.
    """

    def __init__(
        self,
        sink: LiveSink,
        bootstrap: str,
        window: WindowConfig,
        comparisons: SharedComparisons,
        alerts: AlertSources,
        reader: EpisodeReader,
    ) -> None:
        self._sink = sink
        self._comparisons = comparisons
        self._bootstrap = bootstrap
        self._window = window
        self._alert_sources = alerts
        self._reader = reader

    def register(self) -> None:
        """Makes NiceGUI serve them."""
        style = app.add_static_file(local_file=Path(__file__).with_name("live_style.css"), url_path="/live_style.css")
        ui.add_head_html(f'<link rel="stylesheet" href="{style}">', shared=True)

        fills: dict[PageName, Callable[[Refreshed, PageQuery], None]] = {
            "Fleet": self._fleet,
            "Families": self._families,
            "Windows": self._windows,
            "Alerts": self._alerts,
            "Pipeline": self._pipeline,
        }
        for name, fill in fills.items():
            ui.page(PAGES[name], title=_title(name))(self._page(name, fill))

        def agent_page(request: Request, agent: str) -> None:
            with self._framed(request) as (refreshed, query):
                refreshed(AgentPage(self._sink, agent, self._window, query).refresh)

        def episode_page(request: Request, agent: str, episode: str) -> None:
            with self._framed(request) as (refreshed, query):
                refreshed(EpisodePage(self._sink, self._reader, agent, episode, self._window, query).refresh)

        def compare(request: Request) -> None:
            with self._framed(request, heading="Compare") as (refreshed, query):
                refreshed(ComparePage(self._sink, self._comparisons, query.text("family")).refresh)

        def runbook(request: Request) -> None:
            with self._framed(request, heading="Runbook"):
                runbook_page(self._alert_sources.runbook)

        ui.page(AGENT_ROUTE, title=_title("Agent"))(agent_page)
        ui.page(EPISODE_ROUTE, title=_title("Episode"))(episode_page)
        ui.page(COMPARE, title=_title("Compare"))(compare)
        ui.page(RUNBOOK, title=_title("Runbook"))(runbook)
        app.get(STEPS_ROUTE)(self._steps)
        serve_downloads(self._sink, self._comparisons)

    @contextmanager
    def _framed(
        self, request: Request, active: PageName | None = None, *, heading: str | None = None
    ) -> Iterator[tuple[Refreshed, PageQuery]]:
        """A page with what all have; what takes the parts that are refreshed, and what its address says."""
        query, dark = PageQuery(request.query_params), theme_of(request.cookies.get(THEME_COOKIE))
        with page_frame(self._sink, self._bootstrap, active, dark, query, heading=heading) as refreshed:
            yield refreshed, query

    async def _steps(self, agent: str, episode: str) -> Response:
        with self._sink.look() as (view, _):
            known = find_episode(view, agent, episode)
        read = None if known is None else await self._reader.finished(known.wanted)
        if read is None or not read.steps.frames:
            told = "" if read is None else " ".join(read.told)
            return PlainTextResponse(f"Nothing of this episode's steps is here. {told}\n", 404)
        data = await asyncio.to_thread(read.recording)
        name = f'attachment; filename="episode-{episode}.jsonl.gz"'
        return Response(data, media_type="application/gzip", headers={"Content-Disposition": name})

    def _page(self, name: PageName, fill: Callable[[Refreshed, PageQuery], None]) -> Callable[[Request], None]:
        def page(request: Request) -> None:
            with self._framed(request, name, heading=name) as (refreshed, query):
                fill(refreshed, query)

        return page

    def _fleet(self, refreshed: Refreshed, query: PageQuery) -> None:
        content = ui.element("div").classes("sb-fleet-page")
        with content:
            refreshed(FleetTable(self._sink, query).refresh)
            with ui.element("aside").classes("sb-aside"):
                with ui.element("section").classes("sb-card").props('aria-label="Families"'):
                    ui.link("Families", PAGES["Families"]).classes("sb-title")
                    families = FamilyTable(BRIEF_COLUMNS)
                with ui.element("section").classes("sb-card").props('aria-label="Recent rebound windows"'):
                    ui.link("Recent rebound windows", PAGES["Windows"]).classes("sb-title")
                    windows = WindowList(_NEWEST_WINDOWS, "short")
        refreshed(empty_state(self._sink, self._bootstrap, content))

        def refresh() -> None:
            with self._sink.look() as (view, _):
                known, newest = view.families(), view.windows()
                skews = {window.key.agent: view.skew_s(window.key.agent) for window in newest[:_NEWEST_WINDOWS]}
            families.show(known)
            windows.show(newest[:_NEWEST_WINDOWS], skews.__getitem__)

        refreshed(refresh)

    def _families(self, refreshed: Refreshed, query: PageQuery) -> None:
        refreshed(FamilyPanel(self._sink, query).refresh)

    def _windows(self, refreshed: Refreshed, query: PageQuery) -> None:
        windows, episodes = WindowPanel(self._sink, query), EpisodePanel(self._sink, query)
        refreshed(windows.refresh)
        refreshed(episodes.refresh)

    def _alerts(self, refreshed: Refreshed, query: PageQuery) -> None:
        refreshed(AlertPanel(self._sink, self._alert_sources).refresh)

    def _pipeline(self, refreshed: Refreshed, query: PageQuery) -> None:
        refreshed(PipelinePanel(self._sink, self._bootstrap).refresh)


def _title(name: str) -> str:
    return f"{name} \N{MIDDLE DOT} springback"
