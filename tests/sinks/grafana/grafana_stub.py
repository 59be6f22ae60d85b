"""A stand-in for Grafana's HTTP API, as far as springback speaks with it: it keeps what it is given, and checks it.

Written from Grafana's public description of its API; it answers as that says, refusals included.
"""

import contextlib
import itertools
import json
import re
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "glsa_right"
LONGEST_TAGS = 500
LONGEST_TAG = 100

Answer = tuple[int, Any]


class GrafanaStub:
    """What it keeps, and how it can be told to misbehave.

    Attributes:
        refusals: answers to give in place of the right one, by method and a pattern of the path.
        check_dashboard: raises for a dashboard that Grafana would not take.
        loses_answers: whether what it makes is made, but an error answered, as by a proxy that no longer waits.
        rewrites: whether dashboards are given back in other words than they came in, as newer versions do.
        requests: method and path of each request, queries included.
    """

    def __init__(self, check_dashboard: Callable[[Any], None] = lambda board: None) -> None:
        self.check_dashboard = check_dashboard
        self.loses_answers = False
        self.rewrites = False
        self.refusals: dict[tuple[str, str], Answer] = {}
        self.requests: list[str] = []
        self.dashboards: dict[str, dict[str, Any]] = {}
        self.folders: dict[str, str] = {}
        self.sources: dict[str, dict[str, Any]] = {}
        self.annotations: dict[int, dict[str, Any]] = {}
        self.url = ""
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, token: str, body: Any) -> Answer:
        """What Grafana would say."""
        with self._lock:
            self.requests.append(f"{method} {path}")
            if token != f"Bearer {TOKEN}":
                return 401, {"message": "Invalid API key"}
            split = urllib.parse.urlsplit(path)
            for (refused, pattern), answer in self.refusals.items():
                if refused == method and re.search(pattern, split.path):
                    return answer
            for (known, pattern), act in _ROUTES.items():
                found = re.fullmatch(pattern, split.path)
                if known == method and found:
                    query = urllib.parse.parse_qs(split.query)
                    answer = act(self, *found.groups(), query if method == "GET" else body)
                    return (504, {}) if self.loses_answers and method == "POST" else answer
            return 404, {"message": "Not found"}

    def _get_dashboard(self, uid: str, _: Any) -> Answer:
        kept = self.dashboards.get(uid)
        if kept is None:
            return 404, {"message": "Dashboard not found"}
        board = kept["dashboard"]
        if self.rewrites:
            board = {**board, "panels": [{"transparent": False, **panel} for panel in board["panels"]], "weekStart": ""}
        meta = {"folderUid": kept["folder"], "url": f"/d/{uid}/x", "provisioned": kept.get("provisioned", False)}
        return 200, {"dashboard": {**board, "id": kept["id"], "version": len(kept["messages"])}, "meta": meta}

    def _get_versions(self, uid: str, _: Any) -> Answer:
        messages = self.dashboards[uid]["messages"]
        return 200, {"versions": [{"version": len(messages), "message": messages[-1]}]}

    def _save_dashboard(self, body: Any) -> Answer:
        board = body["dashboard"]
        try:
            self.check_dashboard(board)
        except Exception as error:
            return 400, {"message": f"bad request data: {error}"}
        uid = board["uid"]
        if uid in self.dashboards and not body["overwrite"]:
            return 412, {"status": "version-mismatch", "message": "The dashboard has been changed by someone else"}
        if body["folderUid"] and body["folderUid"] not in self.folders:
            return 400, {"message": "folder not found"}
        kept = self.dashboards.setdefault(uid, {"id": next(self._numbers), "messages": []})
        kept.update(dashboard=board, folder=body["folderUid"])
        kept["messages"].append(body["message"])
        return 200, {"uid": uid, "url": f"/d/{uid}/x", "status": "success", "version": len(kept["messages"])}

    def _get_folders(self, _: Any) -> Answer:
        return 200, [{"uid": uid, "title": title} for uid, title in self.folders.items()]

    def _make_folder(self, body: Any) -> Answer:
        uid = f"folder{next(self._numbers)}"
        self.folders[uid] = body["title"]
        return 200, {"uid": uid, "title": body["title"]}

    def _get_source(self, uid: str, _: Any) -> Answer:
        return (200, self.sources[uid]) if uid in self.sources else (404, {"message": "Data source not found"})

    def _make_source(self, body: Any) -> Answer:
        if body["name"] in {source["name"] for source in self.sources.values()}:
            return 409, {"message": "data source with the same name already exists"}
        assert {"name", "type", "access"} <= body.keys()
        self.sources[body["uid"]] = {"id": next(self._numbers), "readOnly": False, **body}
        return 200, {"datasource": self.sources[body["uid"]], "message": "Datasource added"}

    def _change_source(self, uid: str, body: Any) -> Answer:
        self.sources[uid] = body
        return 200, {"datasource": body, "message": "Datasource updated"}

    def _find_annotations(self, query: dict[str, list[str]]) -> Answer:
        wanted = set(query.get("tags", ()))
        start, end = (int(query.get(name, ["0"])[0]) for name in ("from", "to"))
        found = [
            {"id": number, **kept}
            for number, kept in self.annotations.items()
            if wanted <= set(kept["tags"]) and (not end or (kept["time"] <= end and kept["timeEnd"] >= start))
        ]
        return 200, found[: int(query.get("limit", ["100"])[0])]

    def _add_annotation(self, body: Any) -> Answer:
        if not body.get("text"):
            return 400, {"message": "text field should not be empty"}
        if (refusal := _refused_tags(body)) is not None:
            return refusal
        number = next(self._numbers)
        self.annotations[number] = {
            "time": body["time"],
            "timeEnd": body.get("timeEnd") or body["time"],
            "tags": body["tags"],
            "text": body["text"],
        }
        return 200, {"id": number, "message": "Annotation added"}

    def _change_annotation(self, number: str, body: Any) -> Answer:
        kept = self.annotations.get(int(number))
        if kept is None:
            return 404, {"message": "Could not find annotation to update"}
        if (refusal := _refused_tags(body)) is not None:
            return refusal
        kept.update({name: value for name, value in body.items() if value})
        return 200, {"message": "Annotation patched"}


_ROUTES: dict[tuple[str, str], Callable[..., Answer]] = {
    ("GET", "/api/dashboards/uid/([^/]+)"): GrafanaStub._get_dashboard,
    ("GET", "/api/dashboards/uid/([^/]+)/versions"): GrafanaStub._get_versions,
    ("POST", "/api/dashboards/db"): GrafanaStub._save_dashboard,
    ("GET", "/api/folders"): GrafanaStub._get_folders,
    ("POST", "/api/folders"): GrafanaStub._make_folder,
    ("GET", "/api/datasources/uid/([^/]+)"): GrafanaStub._get_source,
    ("POST", "/api/datasources"): GrafanaStub._make_source,
    ("PUT", "/api/datasources/uid/([^/]+)"): GrafanaStub._change_source,
    ("GET", "/api/annotations"): GrafanaStub._find_annotations,
    ("POST", "/api/annotations"): GrafanaStub._add_annotation,
    ("PATCH", r"/api/annotations/(\d+)"): GrafanaStub._change_annotation,
}


class _Server(ThreadingHTTPServer):
    """One that says nothing when a client gives up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@contextlib.contextmanager
def serve(stub: GrafanaStub, tls: ssl.SSLContext | None = None) -> Iterator[GrafanaStub]:
    """Serve it on a free port for as long as the block runs, over TLS or plainly; its address is in `url`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: in two, the second waits 40 ms for the first to be acknowledged

        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, said = stub.answer(self.command, self.path, self.headers.get("Authorization", ""), body)
            text = said if isinstance(said, str) else json.dumps(said)
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if isinstance(said, str) else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = _respond

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    stub.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _refused_tags(body: Any) -> Answer | None:
    tags = body.get("tags") or []
    if len(json.dumps(tags, ensure_ascii=False, separators=(",", ":")).encode()) > LONGEST_TAGS:
        return 400, {"message": "tags length exceeds the maximum allowed"}
    if any(len(tag) > LONGEST_TAG for tag in tags):
        return 500, {"message": "value too long for type character varying(100)"}
    return None
