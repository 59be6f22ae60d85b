import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from springback.deploy.child_process import ChildProcess
from springback.deploy.errors import ChildFailedError
from tests.deploy.process_checks import becomes_true, exists

SLEEPS = (sys.executable, "-c", "import time; print('sleeping', flush=True); time.sleep(600)")
DEADLINE_S = 150.0

# A parent with one child that ignores SIGTERM and has a child of its own in the same group.
PARENT = """
import os, sys, time
from pathlib import Path
from springback.deploy.child_process import ChildProcess
stubborn = '''
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
'''
log = Path(sys.argv[1])
with ChildProcess("stubborn", [sys.executable, "-c", stubborn], log) as child:
    child.wait_until(lambda: "ready" in child.log_tail(), 20, "a word")
    try:
        print(child.pid, flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        child.terminate(0.2)
        raise
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "child.log"


@pytest.fixture
def parent(log: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-c", PARENT, str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children whose parent was killed by SIGKILL")
def test_a_child_is_gone_when_its_parent_was_killed(parent: tuple[subprocess.Popen[str], int]) -> None:
    process, child_pid = parent
    assert exists(child_pid)
    process.kill()
    process.wait()
    assert becomes_true(lambda: not exists(child_pid), DEADLINE_S)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_child_is_gone_when_its_parent_was_asked_to_end(
    parent: tuple[subprocess.Popen[str], int], number: signal.Signals
) -> None:
    process, child_pid = parent
    process.send_signal(number)
    process.wait(DEADLINE_S)
    assert becomes_true(lambda: not exists(child_pid), DEADLINE_S)


def test_a_child_outlives_the_thread_that_started_it(log: Path) -> None:
    started: list[ChildProcess] = []
    thread = threading.Thread(target=lambda: started.append(ChildProcess("sleeper", SLEEPS, log)))
    thread.start()
    thread.join()
    with started[0] as child:
        child.wait_until(lambda: "sleeping" in child.log_tail(), DEADLINE_S, "a word")
        assert exists(child.pid)


def test_terminating_is_gentle_at_first_and_tells_the_exit_code(log: Path) -> None:
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    child = ChildProcess("gentle", [sys.executable, "-c", program], log)
    child.wait_until(lambda: "ready" in child.log_tail(), DEADLINE_S, "a word")
    assert child.exit_code is None
    assert child.terminate(DEADLINE_S) == 7
    assert child.exit_code == 7
    assert child.terminate() == child.kill() == 7


def test_terminating_ends_what_will_not_end_with_all_of_its_group(log: Path) -> None:
    program = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "grandchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(grandchild.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    child = ChildProcess("stubborn", [sys.executable, "-c", program], log)
    child.wait_until(lambda: bool(child.log_tail()), DEADLINE_S, "a word")
    grandchild_pid = int(child.log_tail()[0])
    assert child.terminate(0.1) == -signal.SIGKILL
    assert becomes_true(lambda: not exists(grandchild_pid), DEADLINE_S)


def test_a_child_that_ends_early_is_told_with_the_end_of_its_log(log: Path) -> None:
    log.write_text("from an earlier run\n")
    program = "import sys; print(*range(100), sep='\\n'); sys.exit('the disk is full')"
    with (
        ChildProcess("The worker", [sys.executable, "-c", program], log) as child,
        pytest.raises(ChildFailedError) as caught,
    ):
        child.wait_until(lambda: False, DEADLINE_S, "an answer")
    message = str(caught.value)
    assert message.startswith(f"The worker ended with exit code 1. The end of its log {log}:")
    assert message.endswith("| the disk is full")
    assert "| 99\n" in message
    assert "| 80\n" not in message
    assert child.log_tail(500)[0] == "0"


def test_a_child_that_is_not_ready_in_time_is_told(log: Path) -> None:
    with ChildProcess("The broker", SLEEPS, log) as child:
        child.wait_until(lambda: "sleeping" in child.log_tail(), DEADLINE_S, "a word")
        with pytest.raises(ChildFailedError, match=r"The broker runs, but after 0.1 s still lacks an answer") as caught:
            child.wait_until(lambda: False, 0.1, "an answer")
    assert "| sleeping" in str(caught.value)


def test_an_answer_does_not_count_when_the_child_is_dead(log: Path) -> None:
    with ChildProcess("The broker", [sys.executable, "-c", ""], log) as child:
        child.wait(DEADLINE_S)
        with pytest.raises(ChildFailedError, match="It wrote nothing to its log"):
            child.wait_until(lambda: True, DEADLINE_S, "an answer")


def test_being_ended_by_a_signal_is_told_by_its_name(log: Path) -> None:
    with ChildProcess("sleeper", SLEEPS, log) as child:
        os.kill(child.pid, signal.SIGKILL)
        child.wait(DEADLINE_S)
        with pytest.raises(ChildFailedError, match="sleeper was ended by SIGKILL"):
            child.check()


def test_a_program_that_is_not_there_is_told(log: Path) -> None:
    with pytest.raises(ChildFailedError, match=r"\| /no-such-program: No such file"):
        with ChildProcess("nothing", ["/no-such-program"], log) as child:
            child.wait_until(lambda: False, DEADLINE_S, "an answer")
    with pytest.raises(ChildFailedError, match="could not be started"):
        ChildProcess("nothing", SLEEPS, log, directory=log / "no-such-directory")


def test_waiting_for_the_end_has_a_deadline(log: Path) -> None:
    with (
        ChildProcess("sleeper", SLEEPS, log) as child,
        pytest.raises(ChildFailedError, match=r"has not finished after 0\.05 s"),
    ):
        child.wait(0.05)


def test_a_child_does_not_see_our_terminal_or_signals(log: Path) -> None:
    program = "import os, sys; print(os.getpgid(0) == os.getpid(), repr(sys.stdin.read()))"
    with ChildProcess("reader", [sys.executable, "-c", program], log) as child:
        assert child.wait(DEADLINE_S) == 0
        assert child.log_tail() == ["True ''"]
