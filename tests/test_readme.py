"""The README, followed: every command and every example in it is run, from top to bottom, on one machine."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from springback.deploy import cli
from springback.deploy.broker_process import free_port
from tests.house import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
METRICS_PORT = "9464"
DEADLINE_S = 150.0

# What sets up or runs everything, and where else it is tested; `make -n` shows here that it does what is tested there.
DEMO_TESTS = "tests/deploy/demo/test_*.py"
MAKE_TARGETS = {
    "make demo": ("springback demo --broker 'embedded' --source 'babyai'", DEMO_TESTS),
    "make demo SOURCE=habitat": ("springback demo --broker 'embedded' --source 'habitat'", DEMO_TESTS),
    "make demo BROKER=kafka": ("springback demo --broker 'kafka' --source 'babyai'", DEMO_TESTS),
    "make test": ("python -m pytest", "tests/test_readme.py"),
    "make check": ("lint-imports", ".ci/run"),
}
# Parts that run until they are stopped: `springback up` runs the very same two commands as its children.
RUN_BY_UP = ("springback worker", "springback export")


class Block(NamedTuple):
    language: str
    text: str


def blocks() -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)]


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
        [*command.split(), "-n"], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300, check=True
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
        self.metrics_port = str(free_port())
        self.up: subprocess.Popen[str] | None = None
        (folder / "producers").symlink_to(ROOT / "producers")

    def follow(self, block: Block) -> None:
        if block.language == "python":
            self.run([sys.executable, "-c", block.text])
        elif block.language == "console":
            for line in block.text.splitlines():
                self.type(line.removeprefix("$ ").replace(METRICS_PORT, self.metrics_port))

    def type(self, command: str) -> None:
        if command in MAKE_TARGETS or command in RUN_BY_UP:
            return
        if command.startswith("springback up"):
            self.start(command)
        elif command.startswith("export SPRINGBACK_BROKER="):
            self.environment["SPRINGBACK_BROKER"] = self.printed_after("Kafka:")
        else:
            if command.startswith("springback baseline export"):
                self.wait_for_metrics('springback_episodes_total{family="composite"')
            self.run(["bash", "-euc", command])

    def run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self, command: str) -> None:
        with (self.folder / "up.log").open("w", encoding="utf-8") as log:
            self.up = subprocess.Popen(
                command.split(), cwd=self.folder, env=self.environment, stdout=log, stderr=subprocess.STDOUT, text=True
            )
        self.printed_after("Ctrl-C")

    def printed_after(self, word: str) -> str:
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            printed = (self.folder / "up.log").read_text(encoding="utf-8")
            if found := re.search(rf"^{word}\s+(.+)\n", printed, re.MULTILINE):
                return found[1]
            assert self.up is not None
            assert self.up.poll() is None, printed
            assert time.monotonic() < deadline_s, printed
            time.sleep(0.05)

    def wait_for_metrics(self, *starts: str) -> None:
        deadline_s = time.monotonic() + DEADLINE_S
        missing = list(starts)
        while missing:
            page = self.run(["curl", "-s", f"http://127.0.0.1:{self.metrics_port}/metrics"])
            missing = [start for start in starts if f"\n{start}" not in page]
            assert not missing or time.monotonic() < deadline_s, f"{missing} not in\n{page}"
            time.sleep(0.1)

    def press_ctrl_c(self) -> int:
        assert self.up is not None
        self.up.send_signal(signal.SIGINT)
        return self.up.wait(DEADLINE_S)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    someone = Reader(tmp_path)
    yield someone
    if someone.up is not None and someone.up.poll() is None:
        someone.up.kill()
        someone.up.wait(DEADLINE_S)


@pytest.mark.broker
def test_the_readme_can_be_followed(reader: Reader) -> None:
    for block in blocks():
        reader.follow(block)
    reader.wait_for_metrics(
        *(
            f'springback_steps_total{{family="{family}",method="{method}"'
            for family, method in {
                "balancing": "default",
                "inspection": "default",
                "navigation": "babyai-bot",
                "transportation": "default",
            }.items()
        )
    )
    assert reader.press_ctrl_c() == 0
