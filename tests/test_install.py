"""The wheel and the sdist, installed into a clean environment and used beside folders of the user's own.

The environment holds springback from the archive alone. What springback needs it sees through a path file, from the
environment of the tests: that saves the download, and an editable springback there stays out of sight.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.sinks.sink_runner import ReadingTopics
from springback.stream_processors.resilience.readings import encode_reading
from tests.dashboards.live_page.fake_fleet import summary
from tests.house import DATA, ROOT

# Only a part of it starts a broker; but building and installing is nothing for the inner loop either.
pytestmark = pytest.mark.broker

FOLDERS = ("producers", "stream_processors", "sinks", "dashboards", "deploy")
NOT_INSTALLED = {"deploy/ensure_tools.sh", "deploy/set_up_venv.sh"}  # serve the Makefile
BUILD = [sys.executable, "-m", "build", "--no-isolation"]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
DEADLINE_S = 120.0

PRODUCER = """
import os, sys
from springback import JsonLinesPublisher, KafkaPublisher, StepEmitter

broker = os.environ.get("SPRINGBACK_BROKER")
publisher = KafkaPublisher(broker) if broker else JsonLinesPublisher("own.frames.jsonl")
with StepEmitter(publisher, producer="robot-7") as emitter:
    episode = emitter.begin_episode(episode="12", family="transportation")
    for step in range(40):
        episode.step(progress=(step + 1) / 40)
    episode.end("success")
print(emitter.report.steps_sent)
"""


def run(command: list[str], folder: Path, **variables: str) -> str:
    """What a program says, run in a folder with hardly any environment variables."""
    done = subprocess.run(
        command, cwd=folder, env=environment(folder, **variables), capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """The user's own folders come first wherever Python looks at PYTHONPATH."""
    home = {"HOME": str(folder), "TMPDIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), **home, **variables}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as a clone has them: what is built leaves the checkout alone, and nothing built before is in it."""
    copy = tmp_path_factory.mktemp("source") / "springback"
    left_out = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "*.egg-info", "build", "dist", "data")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=left_out)
    return copy


@pytest.fixture(scope="module")
def archives(source: Path) -> dict[str, Path]:
    """The wheel and the sdist, both from the sources."""
    dist = source.parent / "dist"
    run([*BUILD, "--wheel", "--sdist", "--outdir", str(dist), str(source)], source.parent)
    (wheel,) = dist.glob("*.whl")
    (sdist,) = dist.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def wheel_of_sdist(archives: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip makes of the sdist before it installs it."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    run([*PIP, "wheel", *options, str(archives["sdist"])], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Installation:
    """An environment with springback, and a folder to work in.

    Attributes:
        bin: where its programs are.
        folder: the user's own, with packages named like parts of springback that cannot be imported.
    """

    def __init__(self, folder: Path, archive: Path) -> None:
        self.bin = folder / "env" / "bin"
        venv.create(folder / "env", with_pip=False, symlinks=True)
        self.install(archive)
        (site_packages,) = (folder / "env" / "lib").glob("python*/site-packages")
        (site_packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.folder = folder / "work"
        for name in (*FOLDERS, "tests"):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "__init__.py").write_text(f'raise RuntimeError("this is the user\'s own {name}")\n')
        (self.folder / "agent.py").write_text(PRODUCER)
        self.site_packages = site_packages

    def install(self, archive: Path) -> None:
        options = ["--no-deps", "--no-index", "--no-compile", "--no-build-isolation"]
        run([*PIP, "--python", str(self.bin / "python"), "install", *options, str(archive)], archive.parent)

    def python(self, *arguments: str, **variables: str) -> str:
        return run([str(self.bin / "python"), *arguments], self.folder, **variables)

    def springback(self, *arguments: str) -> str:
        return run([str(self.bin / "springback"), *arguments], self.folder)


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def installed(
    request: pytest.FixtureRequest,
    archives: dict[str, Path],
    wheel_of_sdist: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Installation:
    archive = archives["wheel"] if request.param == "wheel" else wheel_of_sdist
    return Installation(tmp_path_factory.mktemp(str(request.param)), archive)


def test_the_wheel_holds_springback_alone_and_all_of_it(source: Path, archives: dict[str, Path]) -> None:
    names = [name for name in zipfile.ZipFile(archives["wheel"]).namelist() if ".dist-info/" not in name]
    expected = {
        path.relative_to(source).as_posix()
        for folder in FOLDERS
        for path in (source / folder).rglob("*")
        if path.is_file()
    }
    assert set(names) == {
        *(f"springback/{name}" for name in expected - NOT_INSTALLED),
        *(f"springback/{name}" for name in ("__init__.py", "__main__.py", "py.typed")),
    }


def test_the_sdist_makes_the_same_wheel(archives: dict[str, Path], wheel_of_sdist: Path) -> None:
    ours, again = zipfile.ZipFile(archives["wheel"]), zipfile.ZipFile(wheel_of_sdist)
    assert sorted(ours.namelist()) == sorted(again.namelist())
    assert [name for name in ours.namelist() if ours.read(name) != again.read(name)] == []


@pytest.mark.parametrize("installed", ["wheel"], indirect=True)
def test_the_hint_how_to_install_more_can_be_followed(installed: Installation, archives: dict[str, Path]) -> None:
    hint = installed.python(
        "-c", "from springback.producers.install_hints import install_command; print(install_command(['ulog', 'mqtt']))"
    )
    assert f"{archives['wheel']}[ulog,mqtt]" in hint
    folder = installed.folder
    said = run(["bash", "-euc", f"{hint.strip()} --dry-run --no-index --no-deps --ignore-installed"], folder)
    assert "Would install springback" in said


def test_nothing_comes_from_the_checkout(installed: Installation) -> None:
    said = installed.python("-c", "import springback.deploy.cli as cli; print(cli.__file__)")
    assert Path(said.strip()).is_relative_to(installed.site_packages)


def test_an_agent_reports_next_to_folders_of_the_same_names(installed: Installation) -> None:
    assert installed.python("agent.py") == "40\n"
    assert "transportation" in installed.springback("evaluate", "own.frames.jsonl")


@pytest.mark.parametrize("installed", ["wheel"], indirect=True)
def test_the_command_line_runs_next_to_folders_of_the_same_names(installed: Installation) -> None:
    assert re.fullmatch(r"springback \d+\.\d+\.\d+\S*\n", installed.springback("--version"))
    assert installed.python("-m", "springback", "--version") == installed.springback("--version")
    assert '"schema_version"' in installed.springback("schema")
    assert "nav2" in installed.springback("sources")
    recording = installed.site_packages / "springback" / "producers" / "recordings" / "habitat_twins.frames.jsonl.gz"
    assert "greedy-geodesic" in installed.springback("evaluate", str(recording))


@pytest.mark.parametrize("installed", ["wheel"], indirect=True)
def test_the_files_that_are_copied_out_came_along(installed: Installation) -> None:
    installed.springback("alerts", "export", "monitoring")
    assert (installed.folder / "monitoring" / "runbook.md").is_file()


def read_until(pattern: str, read: Callable[[], str], process: subprocess.Popen[bytes] | None = None) -> str:
    """What a pattern finds, once it finds something; `process` is to run until then."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not (found := re.search(pattern, read(), re.MULTILINE)):
        assert process is None or process.poll() is None, read()
        assert time.monotonic() < deadline_s, read()
        time.sleep(0.05)
    return found[1]


@contextmanager
def service(installation: Installation, *arguments: str) -> Iterator[Callable[[str], str]]:
    """A command that runs until Ctrl-C; what is given tells what stands in its output after a word."""
    log = installation.folder / f"{arguments[0]}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(installation.bin / "springback"), *arguments],
            cwd=installation.folder,
            env=environment(installation.folder),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield lambda word: read_until(rf"^{word} +(\S+)$", log.read_text, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def test_a_worker_counts_what_the_agent_sends(installed: Installation) -> None:
    with service(installed, "up") as printed:
        assert installed.python("agent.py", SPRINGBACK_BROKER=printed("Kafka:")) == "40\n"
        read_until(
            r'^springback_steps_total\{family="transportation".*\} (40.0)$',
            lambda: run(["curl", "--silent", printed("Metrics:")], installed.folder),
        )


TOY_LOG = """TOYLOG 1
{"time": 1.0, "done": 0.5}
{"time": 2.0, "done": 1.0}
"""
TOY_MAPPING = """
agent = "toy-1"
[header]
family = "toys"
[step]
cycle_s = 1.0
[signals]
progress = { field = "done" }
[episode]
gap_s = 30
"""


@pytest.fixture(scope="module")
def extended(archives: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """springback with a third party's package, which adds what it has by entry points."""
    folder = tmp_path_factory.mktemp("extended")
    installation = Installation(folder, archives["wheel"])
    shutil.copytree(DATA / "toy_plugin", folder / "toys")
    installation.install(folder / "toys")
    return installation


def test_what_a_third_party_adds_is_listed(extended: Installation) -> None:
    said = extended.springback("sources")
    assert re.search(r"toylog .*recording .*acme-toys .*logs of toys", said)
    assert "Sinks: prometheus (springback), lines (acme-toys)" in said
    assert "Value models: anchor (springback), hopeful (acme-toys)" in said


def test_a_third_partys_format_and_value_model_are_used(extended: Installation) -> None:
    (extended.folder / "run.toylog").write_text(TOY_LOG)
    (extended.folder / "toys.toml").write_text(TOY_MAPPING)
    said = extended.springback("evaluate", "--mapping", "toys.toml", "--value-model", "hopeful", "run.toylog")
    assert "toys" in said


def test_a_third_partys_sink_is_used(extended: Installation, embedded_broker: str) -> None:
    kafka = ("--broker", embedded_broker, "--prefix", "toys.")
    extended.springback("topics", *kafka)
    publisher = KafkaPublisher(embedded_broker, ReadingTopics.of_prefix("toys.").summaries)
    for _ in range(2):
        publisher.publish(b"robot-7", encode_reading(summary("robot-7")), lambda error: None)
    publisher.flush(DEADLINE_S)
    publisher.close()
    lines = extended.folder / "episodes.txt"
    with service(extended, "export", *kafka, "--port", "0", "--sink", "lines", "--sink-option", f"lines.path={lines}"):
        read_until("^(.+)$", lambda: lines.read_text() if lines.exists() else "")
    assert lines.read_text() == "navigation success\n"
