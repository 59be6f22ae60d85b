"""Tables to be taken away as CSV, at `/csv/NAME`, behind the same login as the pages."""

import asyncio

from nicegui import app, ui
from starlette.responses import PlainTextResponse, Response

from springback.dashboards.live_page.comparing.shared_comparisons import SharedComparisons
from springback.dashboards.live_page.csv_tables import TABLES, compare_csv
from springback.dashboards.live_page.links import with_query
from springback.dashboards.live_page.live_sink import LiveSink

_PATH = "/csv/"
_COMPARE = "compare"


def download_link(name: str, *, family: str = "") -> ui.link:
    """A link to a table as CSV.

    Args:
        name: the table's.
        family: what stands for a family, method and version, where the table is of one.
    """
    return ui.link("Download as CSV", with_query(f"{_PATH}{name}", {"family": family})).classes("sb-link sb-download")


def serve_downloads(sink: LiveSink, comparisons: SharedComparisons) -> None:
    """Makes NiceGUI serve the tables.

    Args:
        sink: what is in them.
        comparisons: what compares the methods and versions of a family.
    """

    async def table(name: str, family: str = "") -> Response:
        if name == _COMPARE:
            comparison = await asyncio.to_thread(comparisons.now, family)
            if comparison is None:
                return PlainTextResponse("No such family is known (any more). Choose one at /compare.\n", 404)
            return _csv(name, compare_csv(comparison.groups))
        if name not in TABLES:
            known = ", ".join([*TABLES, f"{_COMPARE}?family=…"])
            return PlainTextResponse(f"There is no such table. Those that there are: {known}.\n", 404)
        return _csv(name, await asyncio.to_thread(_text, sink, name))

    app.get(_PATH + "{name}")(table)


def _text(sink: LiveSink, name: str) -> str:
    with sink.look() as (view, now_s):
        return TABLES[name](view, now_s)


def _csv(name: str, text: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="springback-{name}.csv"', "Cache-Control": "no-store"}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)
