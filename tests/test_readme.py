"""The README, followed: every command and every example in it is run, from top to bottom, on one machine."""

import asyncio
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from springback.deploy import cli
from springback.deploy.broker_process import free_port
from tests.house import ROOT
from tests.stream_processors.judging.chat_stub import chat_stub, good

README = (ROOT / "README.md").read_text(encoding="utf-8")
METRICS_PORT = "9464"
DEADLINE_S = 300.0

# What sets up or runs everything, and where else it is tested; `make -n` shows here that it does what is tested there.
DEMO_TESTS = "tests/deploy/demo/test_*.py"
MAKE_TARGETS = {
    "make demo": ("springback demo --broker 'embedded' --source 'babyai'", DEMO_TESTS),
    "make demo SOURCE=habitat": ("springback demo --broker 'embedded' --source 'habitat'", DEMO_TESTS),
    "make demo BROKER=kafka": ("springback demo --broker 'kafka' --source 'babyai'", DEMO_TESTS),
    "make test": ("python -m pytest", "tests/test_readme.py"),
    "make check": ("lint-imports", ".ci/run"),
    "make venv": ("set_up_venv.sh 'python3' '.venv' all,dev", "tests/deploy/test_set_up_venv.py"),
}
# What finds what it is there to find.
EXIT_CODES = {"springback compare": 1}
JUDGE = "A language model as judge"
JUDGE_PORT = "9475"
ENDPOINT = "http://127.0.0.1:11434/v1"
# Parts that run until they are stopped: `springback up` runs the very same two commands as its children.
RUN_BY_UP = ("springback worker", "springback export")


class Block(NamedTuple):
    language: str
    text: str
    section: str


def blocks() -> list[Block]:
    sections = re.split(r"^#{2,3} (.*)\n", README, flags=re.MULTILINE)
    return [
        Block(language, block, title)
        for title, text in zip(sections[1::2], sections[2::2], strict=True)
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def commands() -> list[str]:
    lines = [line for block in blocks() if block.language == "console" for line in block.text.splitlines()]
    assert all(line.startswith("$ ") for line in lines), "a console block shows commands alone, each after `$ `"
    return [line.removeprefix("$ ") for line in lines]


def environment() -> dict[str, str]:
    cleared = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "SPRINGBACK_", "MFLAGS"))
    }
    return {**cleared, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("command", [command for command in commands() if command.startswith("make ")])
def test_make_does_what_is_tested_elsewhere(command: str) -> None:
    expected, tested_in = MAKE_TARGETS[command]
    shown = subprocess.run(
        [*command.split(), "-n", "-B"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert expected in shown.stdout
    assert list(ROOT.glob(tested_in))


def test_every_command_of_the_table_is_a_command_and_the_reverse(capsys: pytest.CaptureFixture[str]) -> None:
    listed = set(re.findall(r"^\| `springback ([\w-]+)", README, re.MULTILINE))
    assert cli.main(["--help"]) == 0
    shown = set(re.findall(r"^│ (\w[\w-]*)  ", capsys.readouterr().out, re.MULTILINE))
    assert listed == shown


def test_every_metric_of_the_table_is_exported() -> None:
    from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE

    table = README.partition("| metric | what it tells |")[2].partition("\n\n")[0]
    listed = {f"springback_{name}" for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row)}
    assert len(listed) > 10
    assert listed <= {metric.name for metric in METRIC_CATALOGUE}


class Reader:
    """Someone who follows the README in a folder of its own, with `springback up` in another terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = environment()
        # What the README names, and what it is here.
        self.instead = {port: str(free_port()) for port in (METRICS_PORT, JUDGE_PORT)}
        self.services: list[subprocess.Popen[str]] = []
        self.printed = ""
        (folder / "producers").symlink_to(ROOT / "producers")

    def follow(self, block: Block) -> None:
        if block.language == "python":
            self.run([sys.executable, "-c", block.text])
        elif block.language == "console":
            for line in block.text.splitlines():
                command = line.removeprefix("$ ")
                for named, here in self.instead.items():
                    command = command.replace(named, here)
                self.type(command)
        elif block.language == "text" and block.section.startswith("Whether a new version"):
            assert self.printed.endswith(block.text)

    def type(self, command: str) -> None:
        if command in MAKE_TARGETS or command in RUN_BY_UP or command == ". .venv/bin/activate":
            return
        if re.match(r"(SPRINGBACK_\w+=\w+ )?springback up", command):
            if not self.services:
                self.start(command, "up")
                self.printed_after("Ctrl-C")
        elif command.startswith("springback judge"):
            self.start(command, "judge")
            self.wait_for_log("judge", " ready ")
        elif command.startswith("export SPRINGBACK_BROKER="):
            self.environment["SPRINGBACK_BROKER"] = self.printed_after("Kafka:")
        elif command.startswith("export "):
            self.environment |= dict(part.split("=", 1) for part in command.split()[1:])
        else:
            if command.startswith("springback baseline export"):
                self.wait_for_metrics('springback_episodes_total{family="composite"')
            self.run(["bash", "-euc", command], EXIT_CODES.get(" ".join(command.split()[:2]), 0))

    def run(self, command: list[str], code: int = 0) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        self.printed = done.stdout
        return done.stdout

    def start(self, command: str, name: str) -> None:
        with (self.folder / f"{name}.log").open("w", encoding="utf-8") as log:
            self.services.append(
                subprocess.Popen(
                    ["env", *command.split()],
                    cwd=self.folder,
                    env=self.environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )

    def wait_for_log(self, name: str, pattern: str) -> str:
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            printed = (self.folder / f"{name}.log").read_text(encoding="utf-8")
            if found := re.search(pattern, printed, re.MULTILINE):
                return found[found.re.groups]
            assert self.services[-1].poll() is None, printed
            assert time.monotonic() < deadline_s, printed
            time.sleep(0.05)

    def printed_after(self, word: str) -> str:
        return self.wait_for_log("up", rf"^{word}\s+(.+)\n")

    def wait_for_metrics(self, *starts: str, port: str = METRICS_PORT) -> None:
        deadline_s = time.monotonic() + DEADLINE_S
        missing = list(starts)
        while missing:
            page = self.run(["curl", "-s", f"http://127.0.0.1:{self.instead[port]}/metrics"])
            missing = [start for start in starts if not re.search(rf"^{start}", page, re.MULTILINE)]
            assert not missing or time.monotonic() < deadline_s, f"{missing} not in\n{page}"
            time.sleep(0.1)

    def press_ctrl_c(self) -> list[int]:
        for service in reversed(self.services):
            service.send_signal(signal.SIGINT)
        return [service.wait(DEADLINE_S) for service in self.services]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    someone = Reader(tmp_path)
    yield someone
    for service in someone.services:
        if service.poll() is None:
            service.kill()
            service.wait(DEADLINE_S)


STEPS_OF_ONE_TIME = {"inspection": 2, "transportation": 40}


@pytest.mark.broker
@pytest.mark.timeout(1800)
def test_the_readme_can_be_followed_twice(reader: Reader) -> None:
    for time_ in (1, 2):
        for block in blocks():
            if block.section != JUDGE:
                reader.follow(block)
        reader.wait_for_metrics(
            'springback_steps_total{family="balancing",method="default".*} ',
            'springback_steps_total{family="navigation",method="babyai-bot".*} ',
            *(
                f'springback_steps_total{{family="{family}",method="default".*}} {steps * time_}\\.0$'
                for family, steps in STEPS_OF_ONE_TIME.items()
            ),
        )
    assert reader.press_ctrl_c() == [0]


@pytest.fixture
def model() -> Iterator[str]:
    """The address of an endpoint with OpenAI's API, which finds every step good."""
    loop = asyncio.new_event_loop()
    stop, address = asyncio.Event(), queue.Queue[str]()

    async def serve() -> None:
        async with chat_stub(good) as stub:
            address.put(stub.base_url)
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    yield address.get(timeout=DEADLINE_S)
    loop.call_soon_threadsafe(stop.set)
    thread.join(DEADLINE_S)
    loop.close()


@pytest.mark.broker
@pytest.mark.timeout(1200)
def test_a_language_model_judges_as_the_readme_says(reader: Reader, model: str) -> None:
    reader.instead |= {ENDPOINT: model, "--speed 60": "--speed 240"}
    for block in blocks():
        if block.section == JUDGE:
            reader.follow(block)
    reader.wait_for_metrics('springback_judge_steps_total{fate="judged"} ', port=JUDGE_PORT)
    reader.wait_for_metrics('springback_family_mean_stability_loss{family="navigation"')
    offered = reader.wait_for_log("up", r"^No steps have come yet.*\n  (.+)\n")
    assert "Sent 665 frames" in reader.run(["bash", "-euc", offered.replace("--speed 60", "--speed max")])
    assert reader.press_ctrl_c() == [0, 0]
