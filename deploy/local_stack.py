"""The whole pipeline on one machine: broker, topics, one worker, exporter and live page, up as long as a block.

Everything but a broker of somebody else's is a child of this process, so nothing is left running however it ends.
Temporary files go with it, or with the next start if it was killed; logs stay (`run_directory.log_directory`).
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import msgspec
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from springback.deploy.brokers import Broker, open_broker
from springback.deploy.child_process import ChildProcess
from springback.deploy.errors import ChildFailedError, DeployError
from springback.deploy.run_directory import log_directory, run_directory
from springback.producers.install_hints import missing_of, told_missing
from springback.stream_processors.service.topic_look import plain_consumer, started
from springback.stream_processors.settings import ENVIRONMENT_PREFIX, WorkerSettings
from springback.stream_processors.topics import STEPS, declare_topics_for, topic_name

_READY_TIMEOUT_S = 150.0  # above the time after which a worker that cannot recover ends by itself
_STOP_GRACE_S = 15.0
_LOOK_INTERVAL_S = 1.0
_LOOK_TIMEOUT_S = 5.0

# -P: a folder `springback` in the directory that the user happens to be in is not ours.
SPRINGBACK = (sys.executable, "-P", "-m", "springback")


class LocalStack:
    """Broker, worker, exporter and live page, from the beginning of a `with` block to its end.

    While the block runs in the main thread, SIGTERM and SIGHUP end it as Ctrl-C does, unless they are handled already.

    Args:
        broker: `embedded`, `kafka` or HOST:PORT, as `open_broker` takes it.
        settings: the worker's settings; the broker's address in them is replaced by that of the chosen broker.
        metrics_port: where the exporter listens on 127.0.0.1; 0 takes a free port.
        live_port: where the live page is served on 127.0.0.1; 0 takes a free port, and None goes without the page.
        alertmanager: the address of one whose alerts the live page shows too.
        logs: the directory for the logs of all children; a new one, which stays, if not given.
        program: the command that `springback` is, before its arguments.

    Raises:
        DeployError: something is missing, or a piece did not start (on entering the block).
    """

    def __init__(
        self,
        broker: str = "embedded",
        settings: WorkerSettings | None = None,
        *,
        metrics_port: int = 0,
        live_port: int | None = None,
        alertmanager: str | None = None,
        logs: Path | None = None,
        program: Sequence[str] = SPRINGBACK,
    ) -> None:
        self._choice = broker
        self._settings = settings or WorkerSettings()
        self._metrics_port = metrics_port
        self._live_port = live_port
        # By the environment, as a login may be in it. One that is set there already goes to the children anyway.
        self._live_environment = {} if alertmanager is None else {"SPRINGBACK_ALERTMANAGER": alertmanager}
        self._logs = logs
        self._program = program
        self._open = contextlib.ExitStack()
        self._directory = Path()
        self._broker: Broker | None = None
        self._children: dict[str, ChildProcess] = {}
        self._ready: dict[str, dict[str, str]] = {}

    @property
    def settings(self) -> WorkerSettings:
        """What all parts run with."""
        return self._settings

    @property
    def broker_address(self) -> str:
        """HOST:PORT of the broker."""
        return self._settings.kafka.bootstrap

    @property
    def metrics_url(self) -> str:
        """The address of the exporter's metrics page."""
        return self._ready["export"]["metrics"]

    @property
    def live_url(self) -> str | None:
        """The address of the live page; None where there is none."""
        return self._ready["live"]["live"] if "live" in self._ready else None

    @property
    def health_url(self) -> str:
        """The address of the worker's health endpoint; a worker that is started again has another."""
        return self._ready["worker"]["health"]

    @property
    def log_directory(self) -> Path:
        """Where the children write their logs, `worker.log` and so on, and so does a broker of ours."""
        return self._logs or Path()

    @property
    def worker_pid(self) -> int:
        """The worker's process id."""
        return self._child("worker").pid

    def check(self) -> None:
        """Raises a DeployError, with the end of its log, if the broker or a child has ended."""
        self._check_broker()
        for name in self._names:
            self._child(name).check()

    def no_steps_yet(self) -> bool:
        """Whether the topic of steps is empty; False where that cannot be seen, as without the right to read it."""
        return asyncio.run(self._no_steps_yet())

    async def _no_steps_yet(self) -> bool:
        consumer = plain_consumer(self._settings.kafka, topic_name(STEPS, self._settings.prefix))
        try:
            async with asyncio.timeout(_LOOK_TIMEOUT_S), started(consumer):
                return not any((await consumer.end_offsets(consumer.assignment())).values())
        except (KafkaError, TimeoutError):
            return False

    def restart_worker(self) -> None:
        """Stops the worker in good order if it still runs, starts another one and waits until it is ready."""
        self._child("worker").terminate(_STOP_GRACE_S)
        self._start("worker")
        self._wait_until_ready("worker")

    def __enter__(self) -> Self:
        """Starts everything, in order, and waits until all of it is ready."""
        with contextlib.ExitStack() as opening:
            opening.enter_context(_ended_by_signals())
            self._directory = opening.enter_context(run_directory("stack"))
            if self._logs is None:
                self._logs = opening.enter_context(log_directory())
            self._logs.mkdir(parents=True, exist_ok=True)
            self._broker = opening.enter_context(open_broker(self._choice, self._logs))
            opening.enter_context(self._broker_blamed())
            self._settings = msgspec.structs.replace(
                self._settings, kafka=msgspec.structs.replace(self._settings.kafka, bootstrap=self._broker.address)
            )
            asyncio.run(declare_topics_for(self._settings))
            (self._directory / "settings.json").write_bytes(msgspec.json.encode(self._settings))
            opening.callback(self._stop_children)
            self._start("worker")
            self._start("export", "--port", str(self._metrics_port))
            if self._live_port is not None:
                self._start("live", "--port", str(self._live_port))
            for name in self._names:
                self._wait_until_ready(name)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops everything.

        Raises:
            DeployError: the block failed since the broker has ended; with the end of the broker's log.
        """
        self._open.__exit__(kind, error, trace)

    @contextlib.contextmanager
    def _broker_blamed(self) -> Iterator[None]:
        """Puts the end of the broker in the place of whatever failed because of it: a part can say less of that."""
        try:
            yield
        except Exception as error:
            try:
                self._check_broker()
            except DeployError as cause:
                raise cause from error
            raise

    def _check_broker(self) -> None:
        if self._broker is not None:
            self._broker.check()

    @property
    def _names(self) -> tuple[str, ...]:
        return ("worker", "export") if self._live_port is None else ("worker", "export", "live")

    def _start(self, name: str, *options: str) -> None:
        """Starts one of our commands."""
        self._ready_file(name).unlink(missing_ok=True)
        settings_file = self._directory / "settings.json"
        arguments = [name, "--settings", str(settings_file), "--ready-file", str(self._ready_file(name)), *options]
        self._children[name] = ChildProcess(
            f"`springback {name}`",
            [*self._program, *arguments],
            self.log_directory / f"{name}.log",
            # What a killed child leaves in its temporary directory goes with ours.
            environment=_environment()
            | {"TMPDIR": str(self._directory)}
            | (self._live_environment if name == "live" else {}),
        )

    def _wait_until_ready(self, name: str) -> None:
        """Waits for what a command of ours writes when it is ready, and reads it."""
        ready_file = self._ready_file(name)

        looked_s = time.monotonic()

        def is_ready() -> bool:
            nonlocal looked_s
            if time.monotonic() - looked_s >= _LOOK_INTERVAL_S:
                looked_s = time.monotonic()
                self._check_broker()  # without it no part gets ready
            return ready_file.exists()

        self._child(name).wait_until(is_ready, _READY_TIMEOUT_S, "the file that says that it is ready")
        self._ready[name] = msgspec.json.decode(ready_file.read_bytes(), type=dict[str, str])

    def _ready_file(self, name: str) -> Path:
        return self._directory / f"{name}.ready"

    def _stop_children(self) -> None:
        for child in self._children.values():
            child.terminate(_STOP_GRACE_S)
        self._children.clear()

    def _child(self, name: str) -> ChildProcess:
        if name not in self._children:
            message = f"The {name} does not run: use the stack inside its `with` block."
            raise ChildFailedError(message)
        return self._children[name]


def _environment() -> dict[str, str]:
    """Ours without the variables that are settings: those that the children are to use stand in their file."""
    settings = {"BROKER", *(field.upper() for field in WorkerSettings.__struct_fields__)}
    return {
        name: value
        for name, value in os.environ.items()
        if not (
            name.startswith(ENVIRONMENT_PREFIX) and name.removeprefix(ENVIRONMENT_PREFIX).split("__")[0] in settings
        )
    }


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Leaves the block by SystemExit at SIGTERM and SIGHUP, so that what it opened is closed."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's affair; the children end with this process all the same
        return
    unhandled = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in unhandled:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in unhandled:
            signal.signal(number, signal.SIG_DFL)


def live_page_installed() -> bool:
    """Whether what the live page needs is installed."""
    return not missing_of(["live"])


def live_page_line(stack: LocalStack) -> str:
    """Where the live page is, or why there is none, as a line to print."""
    return f"Live:    {stack.live_url or told_missing('the live page', ['live'])}"
