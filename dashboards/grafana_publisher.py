"""Puts the dashboards into a Grafana through its HTTP API: only what has changed is saved, so it can be done again."""

import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from springback.dashboards.grafana_dashboards import dashboard_files
from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE_UID
from springback.sinks.errors import GrafanaRefusedError
from springback.sinks.fleet.memory import fingerprint
from springback.sinks.grafana.connection import GrafanaConnection

PublishOutcome = Literal["created", "updated", "unchanged", "missing"]

DATA_SOURCE_NAME = "springback"
_SERVERS_OWN = ("id", "version")
_FORBIDDEN = 403


class Published(NamedTuple):
    """What became of one thing. `missing` is what was not asked to be made and is not there."""

    kind: Literal["folder", "data source", "dashboard"]
    name: str
    outcome: PublishOutcome
    address: str = ""


def publish_dashboards(
    grafana: GrafanaConnection,
    *,
    folder: str | None = None,
    data_source_uid: str = DATA_SOURCE_UID,
    prometheus: str | None = None,
) -> Iterator[Published]:
    """Brings a Grafana up to date, and yields each thing when it is done.

    Args:
        grafana: where the dashboards go.
        folder: the title of the folder for the dashboards, made if there is none; None leaves each where it is.
        data_source_uid: the data source that the panels ask.
        prometheus: the address of a Prometheus as Grafana reaches it: the data source is made or set to it. None
            leaves data sources alone.

    Yields:
        what became of each thing, in the order in which it was done.

    Raises:
        GrafanaUnreachableError: Grafana does not answer, or cannot just now.
        GrafanaRefusedError: Grafana refuses, or what is to be changed is provisioned from a file.
    """
    if prometheus is None:
        yield from _look_for_data_source(grafana, data_source_uid)
    else:
        yield _put_data_source(grafana, data_source_uid, prometheus)
    folder_uid = None
    if folder is not None:
        folder_uid, made = _put_folder(grafana, folder)
        yield made
    for text in dashboard_files(data_source_uid).values():
        yield _put_dashboard(grafana, json.loads(text), folder_uid)


def _look_for_data_source(grafana: GrafanaConnection, uid: str) -> Iterator[Published]:
    try:
        found = grafana.find("to look up a data source", lambda api: api.datasource.get_datasource_by_uid(uid))
    except GrafanaRefusedError as error:
        if error.status != _FORBIDDEN:
            raise
        return  # an Editor may save dashboards, but not see data sources
    if found is None:
        yield Published("data source", uid, "missing")


def _put_data_source(grafana: GrafanaConnection, uid: str, prometheus: str) -> Published:
    found: Any = grafana.find("to look up a data source", lambda api: api.datasource.get_datasource_by_uid(uid))
    if found is None:
        wanted = {
            "uid": uid,
            "name": DATA_SOURCE_NAME if uid == DATA_SOURCE_UID else uid,
            "type": "prometheus",
            "access": "proxy",
            "url": prometheus,
            "jsonData": {"httpMethod": "POST", "timeInterval": "15s"},
        }
        grafana.call("to create a data source", lambda api: api.datasource.create_datasource(wanted))
        return Published("data source", uid, "created", prometheus)
    if (found.get("type"), found.get("url")) == ("prometheus", prometheus):
        return Published("data source", uid, "unchanged", prometheus)
    if found.get("readOnly"):
        raise _provisioned(uid, "data source")
    changed = {**found, "type": "prometheus", "url": prometheus}
    grafana.call("to change a data source", lambda api: api.datasource.update_datasource_by_uid(uid, changed))
    return Published("data source", uid, "updated", prometheus)


def _put_folder(grafana: GrafanaConnection, title: str) -> tuple[str, Published]:
    folders: Any = grafana.call("to list folders", lambda api: api.folder.get_all_folders())
    for folder in folders:
        if folder.get("title") == title:
            return str(folder["uid"]), Published("folder", title, "unchanged")
    made: Any = grafana.call("to create a folder", lambda api: api.folder.create_folder(title))
    return str(made["uid"]), Published("folder", title, "created")


def _put_dashboard(grafana: GrafanaConnection, board: dict[str, Any], folder_uid: str | None) -> Published:
    uid, title = board["uid"], board["title"]
    found: Any = grafana.find("to look up a dashboard", lambda api: api.dashboard.get_dashboard(uid))
    meta = {} if found is None else found["meta"]
    message = f"springback dashboards publish {fingerprint(board).hex()}"
    if folder_uid is None:
        folder_uid = meta.get("folderUid") or ""
    if found is not None:
        address = grafana.address(meta.get("url", f"/d/{uid}"))
        stays = (meta.get("folderUid") or "") == folder_uid
        if stays and (_settled(found["dashboard"]) == _settled(board) or _last_message(grafana, uid) == message):
            return Published("dashboard", title, "unchanged", address)
        if meta.get("provisioned"):
            raise _provisioned(uid, "dashboard")
    wanted = {"dashboard": board, "folderUid": folder_uid, "overwrite": True, "message": message}
    saved: Any = grafana.call("to save a dashboard", lambda api: api.dashboard.update_dashboard(wanted))
    return Published(
        "dashboard",
        title,
        "created" if found is None else "updated",
        grafana.address(saved.get("url", f"/d/{uid}")),
    )


def _last_message(grafana: GrafanaConnection, uid: str) -> str:
    """What its last change was said to be. Ours names what was saved: newer Grafanas give it back in other words."""
    found: Any = grafana.find(
        "to list versions of a dashboard",
        lambda api: api.client.GET(f"/dashboards/uid/{uid}/versions", params={"limit": 1}),
    )
    versions = found.get("versions", []) if isinstance(found, dict) else found or []
    return str(versions[0].get("message", "")) if versions else ""


def _settled(board: Any) -> Any:
    """The dashboard without what Grafana numbers by itself, and without what says nothing."""
    bare = _without_nothing(board)
    return {key: value for key, value in bare.items() if key not in _SERVERS_OWN}


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(held) for key, held in value.items() if held is not None}
    return [_without_nothing(held) for held in value] if isinstance(value, list) else value


def _provisioned(uid: str, what: str) -> GrafanaRefusedError:
    message = (
        f"The {what} {uid!r} is provisioned from a file on Grafana's machine and cannot be changed from here: change "
        "that file (springback dashboards build --out writes dashboards), or take it out of the provisioning."
    )
    return GrafanaRefusedError(message, 400)
