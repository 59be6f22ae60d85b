"""A chat endpoint on a socket of its own, which answers as a test says, and requests to ask it about."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from springback.stream_processors.judging.counts import JudgeCounts
from springback.stream_processors.judging.endpoint import JudgeEndpoint
from springback.stream_processors.judging.settings import JudgeSettings
from springback.stream_processors.judging.step_judge import StepJudge
from springback.stream_processors.judging.step_selection import JudgeRequest

GOOD = (0.75, 0.5, 0.25)


class Reply(NamedTuple):
    """What the endpoint answers."""

    status: int = 200
    body: bytes = b""
    headers: tuple[str, ...] = ()


Answer = Callable[["Asked"], Awaitable[Reply]]


@dataclass
class Asked:
    """One call that the endpoint got."""

    head: str
    body: dict[str, Any]

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][1]["content"])

    @property
    def data(self) -> dict[str, Any]:
        """The quoted data, found by the fence alone."""
        first, *between, last = self.user.split("\n")
        assert first.removeprefix("BEGIN ") == last.removeprefix("END ")
        (line,) = between
        return dict(json.loads(line))

    @property
    def judged(self) -> list[int]:
        return [step["judge"] for step in self.data["steps"] if "judge" in step]


def completion(content: str | None) -> Reply:
    return Reply(
        body=json.dumps({"id": "x", "choices": [{"message": {"role": "assistant", "content": content}}]}).encode()
    )


def scores(asked: Asked, triple: tuple[float, ...] = GOOD, **extra: Any) -> Reply:
    entries = [
        {"judge": number, "goal": triple[0], "rationality": triple[1], "efficiency": triple[2], **extra}
        for number in asked.judged
    ]
    return completion(json.dumps({"scores": entries}))


async def good(asked: Asked) -> Reply:
    return scores(asked)


@dataclass
class ChatStub:
    """The endpoint: its address, and what it was asked."""

    base_url: str
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0
    at_once: int = 0


@contextlib.asynccontextmanager
async def chat_stub(answer: Answer) -> AsyncIterator[ChatStub]:
    """Serves while the block lasts, on a free port."""
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections[task] = writer
        closed = contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        with contextlib.closing(writer), closed:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                named = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
                length = int(named["content-length"])
                asked = Asked(head, json.loads(await reader.readexactly(length)))
                stub.asked.append(asked)
                stub.at_once += 1
                stub.most_at_once = max(stub.most_at_once, stub.at_once)
                try:
                    reply = await answer(asked)
                finally:
                    stub.at_once -= 1
                lines = (f"HTTP/1.1 {reply.status} X", f"Content-Length: {len(reply.body)}", *reply.headers)
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + reply.body)
                await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    stub = ChatStub(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    try:
        yield stub
    finally:
        server.close()
        await server.wait_closed()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections)
        for writer in connections.values():
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def settings_of(base_url: str, **changes: Any) -> JudgeSettings:
    """Settings under which nothing takes long."""
    quick = {"deadline_s": 2.0, "call_timeout_s": 1.0, "backoff_s": 0.01, "calls_per_minute": 100_000, "retries": 0}
    return JudgeSettings(base_url=base_url, model="stub", **(quick | changes))


def request_of(count: int = 2, **changes: Any) -> JudgeRequest:
    shown = [{"action": "forward", "feedback": "slipped", "progress": step / 10} for step in range(count + 1)]
    fields = {
        "family": "navigation",
        "instruction": "go to the red door",
        "steps": shown,
        "judged": list(range(1, count + 1)),
        "rows": list(range(count)),
    }
    return JudgeRequest(**(fields | changes))


@dataclass
class Bench:
    """A judge at a stub."""

    stub: ChatStub
    judge: StepJudge
    counts: JudgeCounts
    settings: JudgeSettings

    def deadline(self) -> float:
        return asyncio.get_running_loop().time() + self.settings.deadline_s


@contextlib.asynccontextmanager
async def bench(answer: Answer, **changes: Any) -> AsyncIterator[Bench]:
    async with chat_stub(answer) as stub:
        settings, counts = settings_of(stub.base_url, **changes), JudgeCounts()
        async with JudgeEndpoint(settings) as endpoint:
            yield Bench(stub, StepJudge(endpoint, settings, counts), counts, settings)
