"""A receiver of Alertmanager's webhook messages on a free loopback port."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class WebhookReceiver:
    """Keeps what it is sent, as long as a `with` block."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append(json.loads(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhook-receiver")
        self.url = f"http://127.0.0.1:{self._server.server_port}/alerts"

    def alerts(self, name: str, status: str) -> list[dict[str, Any]]:
        """The alerts of this name that came as `firing` or `resolved`, in the order of their coming."""
        return [
            alert
            for message in list(self.messages)
            for alert in message["alerts"]
            if alert["labels"]["alertname"] == name and alert["status"] == status
        ]

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
