"""The demos to their end on both brokers, looked at from outside while they run."""

import io
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import defaultdict
from pathlib import Path

import pytest
from rich.console import Console

from springback.deploy.broker_process import free_port
from springback.deploy.demo.run import DemoSource, run_demo
from springback.producers.habitat.world import MissingHabitatError
from springback.producers.habitat_testbed.house_play import STRESSES
from springback.stream_processors.offline.tables import FamilyRow
from tests.deploy.process_checks import becomes_true
from tests.house import ROOT
from tests.producers.habitat_testbed.fake_house_sim import fake_house_sim

DEADLINE_S = 500.0


class MetricsWatcher(threading.Thread):
    """Looks at the metrics page a few times a second, and remembers what it saw."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._address = f"http://127.0.0.1:{port}/metrics"
        self._stop_looking = threading.Event()
        self.steps_seen: set[float] = set()
        self.agents_in_rebound: set[str] = set()
        self.windows_opened = 0.0

    def run(self) -> None:
        while not self._stop_looking.wait(0.5):
            try:
                with urllib.request.urlopen(self._address, timeout=5) as page:
                    text = page.read().decode()
            except OSError:
                continue  # not up yet, or down already
            self.steps_seen.add(total(text, "springback_steps_total"))
            opened = total(text, "springback_rebound_windows_opened_total")
            self.windows_opened = max(self.windows_opened, opened)
            self.agents_in_rebound.update(re.findall(r'^springback_agent_in_rebound{agent="(.+?)".*} 1.0$', text, re.M))

    def stop(self) -> None:
        self._stop_looking.set()
        self.join()


def total(page: str, metric: str) -> float:
    """The sum of a metric's series; the page is looked at too often to be parsed as a whole."""
    return sum(map(float, re.findall(rf"^{metric}{{.*}} (.+)$", page, re.M)))


def watched_demo(
    source: DemoSource, broker: str, episodes: int = 3, pace: float = 960.0
) -> tuple[dict[str, dict[float, FamilyRow]], MetricsWatcher, str]:
    """Run a demo. Returns its table by family and stress, what its metrics showed meanwhile, and what it printed."""
    port, printed = free_port(), io.StringIO()
    watcher = MetricsWatcher(port)
    watcher.start()
    try:
        rows = run_demo(
            source, broker, Console(file=printed, width=80), episodes=episodes, steps_per_second=pace, metrics_port=port
        )
    finally:
        watcher.stop()
    table: dict[str, dict[float, FamilyRow]] = defaultdict(dict)
    for row in rows:
        table[row.family][row.stress or 0.0] = row
    return table, watcher, printed.getvalue()


def mean_cost(row: FamilyRow) -> float:
    assert row.recovery_cost_mean is not None
    assert row.unscored == row.censored == 0
    return row.recovery_cost_mean


@pytest.mark.parametrize(
    "broker",
    [
        pytest.param("embedded", marks=pytest.mark.broker),
        pytest.param("kafka", marks=pytest.mark.kafka),
    ],
)
def test_stress_costs_the_simulated_agents_recovery_and_the_metrics_show_it_live(
    broker: str, request: pytest.FixtureRequest
) -> None:
    if broker == "kafka":
        request.getfixturevalue("apache_kafka")  # skips, or fails in CI, where a real Kafka cannot be had
    table, watcher, printed = watched_demo("babyai", broker, episodes=3 if broker == "embedded" else 1)
    assert set(table) == {"navigation", "manipulation", "transportation", "composite"}
    if broker == "embedded":
        for rows in table.values():
            assert mean_cost(rows[0.0]) < mean_cost(rows[0.8])
    clean, disturbed = (sum(mean_cost(rows[stress]) for rows in table.values()) for stress in (0.0, 0.8))
    assert clean < disturbed
    assert len(watcher.steps_seen) > 10  # a counter that rises
    assert watcher.agents_in_rebound
    assert "transportation · babyai-bot" in printed
    assert re.search(r"^Learning 0/80 references behind the bounds \(0 s\)$", printed, re.M)
    assert re.search(r"^Stress (\d+)/\1 λ [01]\.\d", printed, re.M)
    assert re.search(r"^The dearest rebound window: recovery cost \d+\.\d\d in \d+ steps .* λ [01]\.\d$", printed, re.M)
    assert "The agents move now, for about " in printed


@pytest.mark.broker
def test_disturbed_habitat_twins_cost_more_than_clean_ones() -> None:
    table, watcher, _ = watched_demo("habitat", "embedded")
    rows = table["navigation"]
    assert sum(row.episodes for row in rows.values()) == 240
    disturbed = [row for stress, row in rows.items() if stress > 0]
    costs = sum(mean_cost(row) * row.episodes for row in disturbed) / sum(row.episodes for row in disturbed)
    assert mean_cost(rows[0.0]) < costs
    assert watcher.windows_opened


@pytest.mark.broker
def test_an_agent_that_walks_in_habitat_sim_now_learns_and_then_meets_every_stress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "habitat_sim", fake_house_sim())
    table, watcher, printed = watched_demo("habitat-live", "embedded", episodes=3, pace=100_000.0)
    rows = table["navigation"]
    assert {stress: row.episodes for stress, row in rows.items()} == dict.fromkeys(STRESSES, 3)
    assert mean_cost(rows[0.0]) < sum(mean_cost(rows[stress]) for stress in (0.6, 0.8, 1.0)) / 3
    assert watcher.windows_opened
    assert "navigation · greedy-geodesic" in printed


@pytest.mark.broker
@pytest.mark.timeout(900)
def test_what_a_demo_has_shown_stays_until_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "springback", "demo", "--keep", "--source", "habitat", "--pace", "960"]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, cwd=ROOT / ".src", stdout=log, stderr=subprocess.STDOUT) as demo,
    ):
        try:
            said = (tmp_path / "log").read_text
            assert becomes_true(lambda: "until Ctrl-C" in said() or demo.poll() is not None, DEADLINE_S), said()
            printed = re.search(
                r"^The dearest rebound window: .*\n(http://127\.0\.0\.1:\d+/episode/\S+)$", said(), re.M
            )
            assert printed, said()
            link = printed[1]
            assert re.search(r"/episode/\w+/\w+\?window=\d+$", link)
            with urllib.request.urlopen(link, timeout=DEADLINE_S) as page:
                assert page.status == 200
            demo.send_signal(signal.SIGINT)
            assert demo.wait(DEADLINE_S) == 0
        finally:
            demo.kill()


def test_without_habitat_sim_no_broker_is_started_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "habitat_sim", None)
    printed = io.StringIO()
    with pytest.raises(MissingHabitatError, match="install it with"):
        run_demo("habitat-live", "embedded", Console(file=printed))
    assert printed.getvalue() == ""
