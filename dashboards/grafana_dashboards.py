"""The Grafana dashboards: Fleet, Resilience, Agent and Pipeline, made from the metric catalogue.

The same source gives the same bytes, so the files in `dashboards/grafana/` can be checked to be fresh.
"""

from functools import cache
from pathlib import Path

from springback.dashboards.grafana_parts.board_layout import Board
from springback.dashboards.grafana_parts.fleet_board import fleet_board
from springback.dashboards.grafana_parts.one_agent_board import one_agent_board
from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE_UID
from springback.dashboards.grafana_parts.pipeline_board import pipeline_board
from springback.dashboards.grafana_parts.resilience_board import resilience_board
from springback.producers.whole_file import write_whole

DASHBOARD_FOLDER = Path(__file__).parent / "grafana"
"""Where the dashboards are kept as files."""


def grafana_boards() -> list[Board]:
    """The dashboards, in the order in which one comes to need them."""
    return [fleet_board(), resilience_board(), one_agent_board(), pipeline_board()]


def dashboard_files(data_source_uid: str = DATA_SOURCE_UID) -> dict[str, str]:
    """Each dashboard as JSON, by the name of its file, asking the data source of this uid."""
    uid, asked = f'"uid": "{DATA_SOURCE_UID}"', f'"uid": "{data_source_uid}"'
    return {name: text.replace(uid, asked) for name, text in _board_texts()}


@cache
def _board_texts() -> list[tuple[str, str]]:
    return [(f"{board.uid}.json", board.to_json()) for board in grafana_boards()]


def write_dashboards(folder: Path, data_source_uid: str = DATA_SOURCE_UID) -> list[Path]:
    """Writes the dashboards into a folder, which is made if it is not there.

    Returns:
        the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in dashboard_files(data_source_uid).items():
        file = folder / name
        write_whole(file, text)
        written.append(file)
    return written
