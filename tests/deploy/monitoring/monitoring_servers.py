"""A real Prometheus and a real Alertmanager on free loopback ports, as long as a `with` block, and what they say."""

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from springback.deploy.broker_process import free_port
from springback.deploy.child_process import ChildProcess
from tests.deploy.monitoring.monitoring_tools import needed_tool

START_TIMEOUT_S = 120.0
Labels = dict[str, str]


class Sample(NamedTuple):
    """One element of an instant vector."""

    labels: Labels
    value: float


class MonitoringServer(ChildProcess):
    """A server that is ready when its page `/-/ready` answers."""

    def __init__(self, program: str, port: int, directory: Path, *options: str) -> None:
        self.address = f"127.0.0.1:{port}"
        command = [needed_tool(program), f"--web.listen-address={self.address}", *options]
        super().__init__(program, command, directory / f"{program}.log", directory=directory)

    def wait_until_ready(self) -> None:
        """Wait until it serves requests."""
        self.wait_until(self._is_ready, START_TIMEOUT_S, f"an answer at {self.address}")

    def api(self, path: str, **parameters: str) -> Any:
        """What the HTTP API answers, decoded."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with urllib.request.urlopen(f"http://{self.address}{path}{query}", timeout=60) as answer:
            return json.load(answer)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


class PrometheusServer(MonitoringServer):
    """A Prometheus with the configuration file given; its data goes beside that."""

    def __init__(self, config: Path, port: int | None = None) -> None:
        super().__init__(
            "prometheus",
            port or free_port(),
            config.parent,
            f"--config.file={config}",
            f"--storage.tsdb.path={config.parent / 'prometheus-data'}",
            "--enable-feature=exemplar-storage",
        )

    def query(self, expression: str, at_s: float | None = None) -> list[Sample]:
        """The instant vector (or the scalar, as a sample without labels) that the expression has at a time, or now."""
        when = {} if at_s is None else {"time": f"{at_s:.3f}"}
        data = self.api("/api/v1/query", query=expression, **when)["data"]
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(sample["metric"], float(sample["value"][1])) for sample in data["result"]]

    def query_range(self, expression: str, start_s: float, end_s: float, step_s: float) -> list[dict[str, Any]]:
        """The series that the expression has over a time, as the API gives them."""
        times = {"start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:g}"}
        result: list[dict[str, Any]] = self.api("/api/v1/query_range", query=expression, **times)["data"]["result"]
        return result

    def exemplars(self, selector: str, start_s: float, end_s: float) -> list[dict[str, Any]]:
        """The exemplars of the series selected."""
        times = {"start": f"{start_s:.3f}", "end": f"{end_s:.3f}"}
        found: list[dict[str, Any]] = self.api("/api/v1/query_exemplars", query=selector, **times)["data"]
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """Pending and firing alerts, as the API gives them."""
        found: list[dict[str, Any]] = self.api("/api/v1/alerts")["data"]["alerts"]
        return found


class AlertmanagerServer(MonitoringServer):
    """An Alertmanager by itself (no cluster) with the configuration file given."""

    def __init__(self, config: Path, port: int | None = None) -> None:
        super().__init__(
            "prometheus-alertmanager",
            port or free_port(),
            config.parent,
            f"--config.file={config}",
            f"--storage.path={config.parent / 'alertmanager-data'}",
            "--cluster.listen-address=",
        )

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts it has, silenced and inhibited ones too, as the API gives them."""
        found: list[dict[str, Any]] = self.api("/api/v2/alerts")
        return found
