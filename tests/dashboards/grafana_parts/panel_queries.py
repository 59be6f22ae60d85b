"""What the panels of a dashboard ask, with its variables filled in as Grafana would."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from springback.dashboards.grafana_dashboards import dashboard_files

EVERYTHING = {"family": ".*", "method": ".*", "version": ".*", "agent": ".*"}


class PanelQuery(NamedTuple):
    """One query of one panel."""

    board: str
    panel: str
    expression: str
    instant: bool

    @property
    def place(self) -> str:
        return f"{self.board}: {self.panel}: {self.expression}"


def boards() -> dict[str, dict[str, Any]]:
    """The dashboards as Grafana gets them, by uid."""
    return {name.removesuffix(".json"): json.loads(text) for name, text in dashboard_files().items()}


def panels_of(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The panels that ask something: without the headings."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def panel_queries(agent: str, window: str = "10s", span: str = "60s") -> Iterator[PanelQuery]:
    """Every query of every panel. `agent` is who the Agent dashboard is about; elsewhere all is selected."""
    for uid, board in boards().items():
        single = {v["name"] for v in board["templating"]["list"] if not v.get("includeAll")}
        values = EVERYTHING | ({"agent": agent} if "agent" in single else {})
        values |= {"__rate_interval": window, "__range": span}
        for panel in panels_of(board):
            for target in panel["targets"]:
                filled = _filled(target["expr"], values)
                yield PanelQuery(uid, panel["title"], filled, bool(target.get("instant")))


def _filled(expression: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], expression)
