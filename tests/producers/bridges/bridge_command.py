"""`springback bridge` as a process of its own, and what it sends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from springback.deploy.child_process import ChildProcess
from springback.producers.contract.codec import decode_frame
from springback.producers.contract.frame import StepFrame

DEADLINE_S = 60.0
_COMMAND = (sys.executable, "-c", "import sys; from springback.deploy import cli; sys.exit(cli.main())", "bridge")


class BridgeCommand(ChildProcess):
    """The command, logging into the given folder."""

    def __init__(self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        log = folder / "bridge.log"
        super().__init__("springback bridge", [*_COMMAND, *arguments], log, environment=environment)

    @property
    def said(self) -> str:
        """The end of its log."""
        return "\n".join(self.log_tail(50))

    def end(self) -> str:
        """Asks it to end, as a service manager does; gives its last words."""
        code = self.terminate(DEADLINE_S)
        assert code == 0, self.said
        return self.said


def arriving_frames(broker: str, topic: str, ends: int) -> list[StepFrame]:
    """The frames of a Kafka topic, until so many episodes have ended."""

    async def consume() -> list[StepFrame]:
        frames: list[StepFrame] = []
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker, auto_offset_reset="earliest")
        await consumer.start()
        try:
            async with asyncio.timeout(DEADLINE_S):
                while sum(len(frame.ends) for frame in frames) < ends:
                    frames.append(decode_frame((await consumer.getone()).value))
        finally:
            await consumer.stop()
        return frames

    return asyncio.run(consume())
