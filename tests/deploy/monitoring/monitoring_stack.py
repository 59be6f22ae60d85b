"""All of it at once: pipeline, fleet, Prometheus and Alertmanager with the shipped files, and who they tell.

The times of the shipped rules are divided by HASTEN (`springback alerts export --hasten`), and those of the worker are
about as much shorter; the rules' expressions stay.
"""

import contextlib
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from springback.deploy.alert_files import AlertFiles
from springback.deploy.broker_process import free_port
from springback.deploy.local_stack import LocalStack
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.sinks.sink_runner import ReadingTopics
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import EpisodeBegun, EpisodeKey, EpisodeTraits, encode_reading
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import STEPS, topic_name
from tests.deploy.monitoring.fleet_traffic import FAMILIES, FleetTraffic
from tests.deploy.monitoring.monitoring_servers import AlertmanagerServer, PrometheusServer
from tests.deploy.monitoring.webhook_receiver import WebhookReceiver

HASTEN = 30.0
DEADLINE_S = 150.0
_POLL_S = 0.1

# What the stages of the fleet come to; the breach may begin once the stress levels have their episodes.
_SEEN = (
    *(
        f"count(springback_stress_level_state{{family='{family}',stress!='undeclared',state='insufficient'}} == 0) >= 5"
        for family in FAMILIES
    ),
    "springback_contract_violated{version='3'} == 1",
    "springback_policy_stability_beta",
    "springback_agent_in_rebound == 1",
    "springback_agent_beta_step",
    "springback_navigation_spl_ratio",
    "springback_dead_letters_total",
    "springback_clock_resets_total > 0",
    "springback_replaced_times_total > 0",
)


@dataclass(slots=True)
class MonitoringStack:
    """What runs.

    Attributes:
        stack: broker, worker and exporter.
        traffic: the fleet; its perturbed episodes have been run, and the breach has begun.
        prometheus: scrapes the exporter and the worker every half second.
        alertmanager: tells the receiver.
        receiver: what Alertmanager said.
        files: the exported configuration.
        started_s: when the traffic began, in seconds since 1970.
    """

    stack: LocalStack
    traffic: FleetTraffic
    prometheus: PrometheusServer
    alertmanager: AlertmanagerServer
    receiver: WebhookReceiver
    files: Path
    started_s: float

    def metrics_page(self, url: str | None = None, accept: str = "text/plain") -> str:
        """A metrics page as text, the exporter's where no address is given."""
        request = urllib.request.Request(url or self.stack.metrics_url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=60) as answer:
            text: str = answer.read().decode()
        return text

    def wait_until(
        self, condition: Callable[[], object], what: str | Callable[[], str], deadline_s: float = DEADLINE_S
    ) -> None:
        """Wait for a condition while everything is seen to run; `what` tells what is missing if it does not come."""
        end_s = time.monotonic() + deadline_s
        while not condition():
            self.stack.check()
            self.prometheus.check()
            self.alertmanager.check()
            if time.monotonic() > end_s:
                firing = [alert["labels"] for alert in self.prometheus.alerts()]
                missing = what if isinstance(what, str) else what()
                message = f"After {deadline_s:g} s there is not {missing}. Alerts: {firing}"
                raise AssertionError(message)
            time.sleep(_POLL_S)

    def wait_for_data(self, expression: str) -> None:
        """Wait until the expression has some result in Prometheus."""
        self.wait_until(lambda: self.prometheus.query(expression), f"any result of {expression}")


@contextlib.contextmanager
def monitoring_stack(directory: Path) -> Iterator[MonitoringStack]:
    """Everything, with every metric of the fleet lit up and the stress breach begun.

    Args:
        directory: where files and logs go.
    """
    live = AggregateConfig(hold_s=1.0, breach_end_s=2.0)
    settings = WorkerSettings(partitions=2, resilience=ResilienceConfig(aggregate=live))
    with contextlib.ExitStack() as opened:
        receiver = opened.enter_context(WebhookReceiver())
        stack = opened.enter_context(LocalStack("embedded", settings, logs=directory / "logs"))
        port = free_port()
        files = AlertFiles(
            exporters=(urllib.parse.urlsplit(stack.metrics_url).netloc,),
            workers=(urllib.parse.urlsplit(stack.health_url).netloc,),
            alertmanagers=(f"127.0.0.1:{port}",),
            hasten=HASTEN,
        )
        files.write(directory)
        _send_alerts_to(receiver.url, directory / "alertmanager.yml")
        alertmanager = opened.enter_context(AlertmanagerServer(directory / "alertmanager.yml", port))
        prometheus = opened.enter_context(PrometheusServer(directory / "prometheus.yml"))
        traffic = FleetTraffic(stack.broker_address, topic_name(STEPS, settings.prefix))
        opened.callback(traffic.close)
        running = MonitoringStack(stack, traffic, prometheus, alertmanager, receiver, directory, time.time())
        alertmanager.wait_until_ready()
        prometheus.wait_until_ready()
        _run_fleet(running)
        yield running


def _send_alerts_to(url: str, config: Path) -> None:
    """Fill in the webhook that the shipped file leaves open."""
    content = yaml.safe_load(config.read_text())
    content["receivers"][0]["webhook_configs"] = [{"url": url, "send_resolved": True}]
    config.write_text(yaml.safe_dump(content))


def _run_fleet(running: MonitoringStack) -> None:
    traffic = running.traffic
    traffic.teach(12)
    _teach_until(running, "springback_episode_recovery_cost_count")
    traffic.teach(12)
    _teach_until(running, "springback_episode_stability_loss_count")
    _misread(running.stack.broker_address)
    traffic.perturb()
    traffic.fail_in_the_field()
    traffic.misbehave()
    traffic.start()
    for expression in _SEEN:
        running.wait_for_data(expression)
    traffic.begin_breach()
    traffic.flush()
    running.wait_for_data("springback_stress_state{state='breach'} == 1")


def _misread(broker: str) -> None:
    """What should not be in the topics of readings: something else, and a repetition."""
    topics = ReadingTopics.of_prefix("")
    traits = EpisodeTraits(family="navigation", task="twice", method="reflexion", version="2")
    begun = EpisodeBegun(key=EpisodeKey("odd-1", "before", "twice"), traits=traits, time_s=time.time())
    for topic, values in ((topics.families, [b"no reading"]), (topics.summaries, [encode_reading(begun)] * 2)):
        publisher = KafkaPublisher(broker, topic)
        for value in values:
            publisher.publish(b"odd-1", value, _raise_error)
        publisher.flush(60.0)
        publisher.close()


def _raise_error(error: Exception | None) -> None:
    if error is not None:
        raise error


def _teach_until(running: MonitoringStack, metric: str) -> None:
    """Teach on until every family shows this, since what the workers learn reaches them after a while."""

    def taught() -> bool:
        running.traffic.teach(1)
        running.traffic.flush()
        return {sample.labels["family"] for sample in running.prometheus.query(metric)} == set(FAMILIES)

    running.wait_until(taught, f"{metric} of {FAMILIES}")
