"""The configuration of Prometheus and Alertmanager that comes with springback, copied out with a user's own addresses.

The files are changed as text: each stays what it is in the repository, comments included, except for the addresses,
where the runbook is and, for a drill, the times.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from springback.deploy.errors import DeployError
from springback.producers.whole_file import write_whole

RUNBOOK = "deploy/prometheus/runbook.md"
"""Where the shipped rules say that the runbook is: in the repository."""

_HERE = Path(__file__).parent
_FILES = (
    "prometheus/prometheus.yml",
    "prometheus/recording_rules.yml",
    "prometheus/fleet_alerts.yml",
    "prometheus/pipeline_alerts.yml",
    "prometheus/runbook.md",
    "alertmanager/alertmanager.yml",
)
_ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):([0-9]{1,5})")
_TARGETS = re.compile(r'\[(?:"[^"]+")?\](?=  # (exporter|workers|judges|gateways|Alertmanager)$)', re.MULTILINE)
_TIME = re.compile(
    r"^( *(?:- )?(?:for|keep_firing_for|[a-z]+_interval|group_wait): )([0-9]+)([smh])(?=\s*$)", re.MULTILINE
)
_LEAST_LOOK_MS = 1000
"""Prometheus looks no more often than this, however hastened: a page of a large fleet takes that long."""
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000}


def runbook_text() -> str:
    """The runbook that comes with springback, as Markdown."""
    return (_HERE / "prometheus/runbook.md").read_text(encoding="utf-8")


class AlertFilesError(DeployError, ValueError):
    """The files cannot be written as asked for."""


class AlertFilesExistError(DeployError):
    """Files are there already that were changed by hand, or come from other options or another version."""


class AlertFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What the copied files are to say.

    Attributes:
        exporters: HOST:PORT of each exporter, as Prometheus reaches it.
        workers: HOST:PORT of each worker's health endpoint.
        judges: HOST:PORT of each judge's health endpoint.
        gateways: HOST:PORT of each gateway.
        alertmanagers: HOST:PORT of each Alertmanager.
        runbook: what the alerts' links begin with; the copied runbook where empty.
        hasten: what every `for`, `keep_firing_for`, interval and wait is divided by: above 1 for a drill or a test.
            The expressions stay as they are, and Prometheus scrapes and evaluates no more often than each second.
    """

    exporters: Sequence[str] = ("127.0.0.1:9464",)
    workers: Sequence[str] = ("127.0.0.1:9465",)
    judges: Sequence[str] = ()
    gateways: Sequence[str] = ()
    alertmanagers: Sequence[str] = ("127.0.0.1:9093",)
    runbook: str = ""
    hasten: float = 1.0

    def __post_init__(self) -> None:
        """Checks what was given.

        Raises:
            AlertFilesError: an address is not HOST:PORT, or the factor is not from 1 to 1000.
        """
        for address in (*self.exporters, *self.workers, *self.judges, *self.gateways, *self.alertmanagers):
            found = _ADDRESS.fullmatch(address)
            if found is None or not 0 < int(found[2]) < 65_536:
                message = f"{address!r} is not an address: expected HOST:PORT, such as 127.0.0.1:9464, without http://"
                raise AlertFilesError(message)
        if not 1 <= self.hasten <= 1000:
            message = f"times cannot be divided by {self.hasten}: expected a number from 1 to 1000"
            raise AlertFilesError(message)

    def write(self, directory: Path, *, overwrite: bool = False) -> list[Path]:
        """Writes all files into one directory, which is made if it is not there.

        Args:
            directory: where to.
            overwrite: whether files that are there already, and say something else, may be replaced.

        Returns:
            the files, in the order of reading.

        Raises:
            AlertFilesExistError: there are such files, and they may not be replaced; nothing was written.
        """
        directory = directory.absolute()
        texts = {
            directory / Path(name).name: self._adapted((_HERE / name).read_text(encoding="utf-8"), directory)
            for name in _FILES
        }
        changed = [path for path, text in texts.items() if path.exists() and path.read_text(encoding="utf-8") != text]
        if changed and not overwrite:
            names = ", ".join(str(path) for path in changed)
            message = f"These files exist and say something else: {names}. Choose another directory, or give --force."
            raise AlertFilesExistError(message)
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            write_whole(path, text)
        return list(texts)

    def _adapted(self, text: str, directory: Path) -> str:
        targets = {
            "exporter": self.exporters,
            "workers": self.workers,
            "judges": self.judges,
            "gateways": self.gateways,
            "Alertmanager": self.alertmanagers,
        }
        text = _TARGETS.sub(lambda found: json.dumps(list(targets[found[1]])), text)
        text = text.replace(
            f"runbook_url: {RUNBOOK}", f"runbook_url: {self.runbook or (directory / 'runbook.md').as_uri()}"
        )
        if self.hasten == 1:
            return text
        return _TIME.sub(lambda found: f"{found[1]}{self._hastened_ms(*found.groups())}ms", text)

    def _hastened_ms(self, key: str, number: str, unit: str) -> int:
        looks = key.strip() in ("scrape_interval:", "evaluation_interval:")
        return max(_LEAST_LOOK_MS if looks else 1, round(int(number) * _UNIT_MS[unit] / self.hasten))
