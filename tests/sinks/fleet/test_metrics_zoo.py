"""A page with every kind of id at once, on a real Prometheus: nothing breaks it, and nobody is lost."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from springback.sinks.basic_auth import hashed
from springback.sinks.fleet.labels import clean_label_value
from springback.sinks.metrics_server import ServerAccess, metrics_server
from springback.sinks.prometheus_sink import PrometheusSink
from springback.sinks.sink import DeadLetter
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.resilience.readings import EpisodeTraits
from tests.deploy.monitoring.monitoring_servers import PrometheusServer
from tests.deploy.monitoring.monitoring_tools import needed_tool, output_of
from tests.sinks.certificates import self_signed

Make = Callable[..., Any]

DEADLINE_S = 30.0
ZOO = (
    *("", " ", "other", "unknown", "None", "null", "nan", "NaN", "+Inf", "0", "-1", "le", "__name__", "agent"),
    *('a"b', "a'b", "a\\", "\\n", "a\\nb", "a\nb", "a\r\nb", "a\tb", "\x00", "\x1b[31m", "\x7f", "\x85", "\u2028"),
    *("🤖", "👩‍🚀", "ロボット", "größe", "\ud83e", "x\udd16", "\ufeff", "\u202eabc", "\ufffe", "\U0010ffff"),
    *('{agent="x"} 1', "# HELP x y", "# EOF", "a,b=c", "{{ .Value }}", "$labels", "<script>", "../../etc", "a b"),
    *("x" * 10_000, "🤖" * 10_000, '"' * 10_000, "x" * 99 + "\n"),
)


@pytest.fixture
def zoo(window: Make, begun: Make, summary: Make, status: Make, running: Make, family: Make) -> CollectorRegistry:
    """The page of a sink that has seen each id as everything that it may be, all just now."""
    now_s = time.time()
    registry = CollectorRegistry()
    sink = PrometheusSink(registry, version='1"\n\ud83e')
    for number, name in enumerate(ZOO):
        traits = EpisodeTraits(family=name, task=name, method=name, version=name, perturbation=name)
        key = {"agent": name, "session": name, "episode": name, "traits": traits}
        sink.write(begun(**key))
        sink.write(summary(**key, ended_s=now_s, recovery_cost=float(number), stability_loss=2.0))
        sink.write(window(**key, reentry_time_s=now_s))
        sink.write(window(**{**key, "episode": "2"}, state="open", departure_time_s=now_s))
        episode = running(**{**key, "episode": "2"}, cost=1.0, beta_step=0.5)
        sink.write(status(name, producer=name, session=name, seen_s=now_s, time_s=now_s, episodes=(episode,)))
        sink.write(family(name, method=name, version=name, updated_s=now_s, beta_by_kind={name: 1.0}))
        sink.write_dead_letter(DeadLetter(name, name.encode("utf-8", "surrogatepass")))
        sink.unreadable(name)
        sink.retried(name)
    sink.caught_up()
    sink.show_frames_behind({0: 7})
    return registry


def test_promtool_finds_nothing_wrong_with_it(zoo: CollectorRegistry) -> None:
    page = generate_latest(zoo).decode("utf-8")
    shown = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    assert shown == {spec.name for spec in METRIC_CATALOGUE}
    assert output_of("promtool", "check", "metrics", given=page) == ""


@pytest.fixture
def prometheus(zoo: CollectorRegistry, tmp_path: Path) -> Iterator[PrometheusServer]:
    """A Prometheus that reads the page over TLS, with a password."""
    needed_tool("prometheus")
    certificate, key = self_signed(tmp_path)
    (tmp_path / "users").write_text(f"prometheus:{hashed('s3cret', 1000)}\n")
    (tmp_path / "password").write_text("s3cret")
    access = ServerAccess(certificate, key, tmp_path / "users")
    with metrics_server(zoo, "127.0.0.1", 0, access=access) as address:
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
            "scrape_configs:\n"
            "  - job_name: springback-exporter\n"
            "    scheme: https\n"
            f"    tls_config: {{ca_file: {certificate}}}\n"
            "    basic_auth: {username: prometheus, password_file: password}\n"
            f"    static_configs: [{{targets: ['{address.split('/')[2]}']}}]\n"
        )
        with PrometheusServer(config) as server:
            server.wait_until_ready()
            yield server


@pytest.mark.broker
def test_a_real_prometheus_reads_it_over_tls_with_a_password(prometheus: PrometheusServer) -> None:
    prometheus.wait_until(lambda: bool(prometheus.query("up == 1")), DEADLINE_S, "a page that could be scraped")
    prometheus.wait_until(lambda: bool(prometheus.query("springback_agents")), DEADLINE_S, "agents")
    agents = {sample.labels["agent"] for sample in prometheus.query("springback_agent_in_rebound")}
    # The blank ones are one; all others stay apart.
    assert agents == set(map(clean_label_value, ZOO))
    assert len(agents) == len({name.strip() for name in ZOO})
    assert [sample.value for sample in prometheus.query('springback_agents{state="rebound"}')] == [len(agents)]
    now_s = time.time()
    found = prometheus.exemplars("springback_episode_recovery_cost_bucket", now_s - 600, now_s + 60)
    named = {exemplar["labels"]["episode"] for series in found for exemplar in series["exemplars"]}
    assert len(named) > 1
    assert "\N{ROBOT FACE}" in named
