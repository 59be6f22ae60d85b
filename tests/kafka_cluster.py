"""Three Kafka nodes on this machine, which keep three copies of everything; one of them can be killed."""

import base64
import contextlib
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Self

from springback.deploy.apache_kafka import ApacheKafka
from springback.deploy.broker_process import free_port
from springback.deploy.child_process import ChildProcess
from springback.deploy.run_directory import run_directory

_FORMAT_S = 150.0
_HEAP = ("-Xms96m", "-Xmx256m")
_SETTINGS = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=CLIENTS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENTS://127.0.0.1:{port}
listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENTS
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=16777216
"""


class KafkaNode(ApacheKafka):
    """One node of a cluster; its ports and the cluster's id are settled before any of them starts."""

    def __init__(self, node: int, ports: list[tuple[int, int]], cluster: str, logs: Path) -> None:
        super().__init__(logs)
        self._slug = f"kafka-{node}"
        self._node = node
        self._cluster = ports
        self._ports = list(ports[node - 1])
        self._cluster_id = cluster

    def __enter__(self) -> Self:
        """Makes it ready; `start` is for all nodes at a time, since a node answers once most of them run."""
        with contextlib.ExitStack() as opening:
            self._directory = opening.enter_context(run_directory(self._slug))
            opening.callback(self.kill)
            self._make_ready()
            self._open = opening.pop_all()
        return self

    def _make_ready(self) -> str:
        port, controller = self._ports
        voters = ",".join(f"{node}@127.0.0.1:{other}" for node, (_, other) in enumerate(self._cluster, 1))
        self._settings_path.write_text(
            _SETTINGS.format(
                node=self._node, voters=voters, port=port, controller=controller, data=self._directory / "data"
            )
        )
        log_settings = files("springback.deploy") / "kafka" / "log4j2.properties"
        (self._directory / "log4j2.properties").write_text(log_settings.read_text())
        tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={self._cluster_id}"]
        command = [str(self._java), "-Xmx96m", *self._classpath(), *tool, "--config", str(self._settings_path)]
        with ChildProcess("Kafka's storage tool", command, self._log_path) as child:
            if child.wait(_FORMAT_S) != 0:
                child.check()
        return self._cluster_id

    def _command(self) -> list[str]:
        command = super()._command()
        bounded = [word for word in command if not word.startswith(("-Xms", "-Xmx"))]
        return [bounded[0], *_HEAP, *bounded[1:]]


@contextlib.contextmanager
def kafka_cluster(logs: Path) -> Iterator[list[KafkaNode]]:
    """Three nodes, for as long as the block.

    Args:
        logs: where each writes its log.
    """
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    ports = [(free_port(), free_port()) for _ in range(3)]
    with contextlib.ExitStack() as opened:
        nodes = [opened.enter_context(KafkaNode(node, ports, cluster, logs)) for node in (1, 2, 3)]
        with ThreadPoolExecutor(3) as starting:
            for started in [starting.submit(node.start) for node in nodes]:
                started.result()
        yield nodes
