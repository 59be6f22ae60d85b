"""Real processes that get a real SIGTERM: what they have reported arrives, and they die as they would have died."""

import signal
import subprocess
import sys
from pathlib import Path

from springback.producers.contract.codec import decode_frame

BEGIN = """
import os, signal, sys, threading, time
import springback
emitter = springback.StepEmitter(springback.JsonLinesPublisher({file!r}), producer="r7", linger_s=3600.0)
episode = emitter.begin_episode(family="f")
"""
STEP_FOR_EVER = """
steps = 0
while True:
    episode.step(progress=0.5)
    steps += 1
    if steps == 500:
        print("reported", flush=True)
"""
REPORTED = 500


def ended(file: Path, script: str, number: int = signal.SIGTERM) -> tuple[int, str]:
    """How a process ended that got this signal once it said it had reported, and what it wrote after that."""
    text = BEGIN.format(file=str(file)) + script
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reported\n"
        process.send_signal(number)
        process.send_signal(number)  # as `timeout` does, which signals the process and its group
        try:
            return process.wait(120.0), process.stdout.read()
        finally:
            process.kill()  # one that the signal has not ended would run on


def steps_and_outcomes(file: Path) -> tuple[int, list[str]]:
    frames = [decode_frame(line) for line in file.read_bytes().splitlines()]
    return sum(frame.n_steps for frame in frames), [end.outcome for frame in frames for end in frame.ends]


def test_plain_sigterm_loses_what_waits_and_end_on_signals_does_not(tmp_path: Path) -> None:
    file = tmp_path / "without.frames.jsonl"
    assert ended(file, STEP_FOR_EVER)[0] == -signal.SIGTERM
    assert steps_and_outcomes(file)[1] == []
    file = tmp_path / "with.frames.jsonl"
    assert ended(file, "springback.end_on_signals()" + STEP_FOR_EVER) == (-signal.SIGTERM, "")
    steps, outcomes = steps_and_outcomes(file)
    assert steps >= REPORTED
    assert outcomes == ["aborted"]


def test_other_signals_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "hup.frames.jsonl"
    script = "springback.end_on_signals(signal.SIGHUP)" + STEP_FOR_EVER
    assert ended(file, script, signal.SIGHUP)[0] == -signal.SIGHUP
    assert steps_and_outcomes(file)[1] == ["aborted"]


def test_a_handler_of_the_programs_own_stays_and_decides(tmp_path: Path) -> None:
    file = tmp_path / "own.frames.jsonl"
    script = """
going = True
def stop(*_):
    global going
    going = False
signal.signal(signal.SIGTERM, stop)
assert springback.end_on_signals() == ()
for _ in range(500):
    episode.step(progress=0.5)
print("reported", flush=True)
while going:
    time.sleep(0.001)
episode.step(progress=1.0)
episode.end("success")
emitter.close()
print("as ever")
"""
    assert ended(file, script) == (0, "as ever\n")
    assert steps_and_outcomes(file) == (501, ["success"])


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    script = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert springback.end_on_signals() == ()
print("reported", flush=True)
time.sleep(0.5)
"""
    assert ended(tmp_path / "ignored.frames.jsonl", script)[0] == 0


def test_reports_of_other_threads_are_no_errors_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "threads.frames.jsonl"
    script = """
springback.end_on_signals()
def report():
    for place in range(10**9):
        mine = emitter.begin_episode(f"agent-{threading.get_ident()}", family="f")
        mine.step(progress=0.5)
        mine.end("success")
for _ in range(3):
    threading.Thread(target=report, daemon=False).start()
sys.stderr = sys.stdout
time.sleep(0.2)
print("reported", flush=True)
while True:
    time.sleep(1.0)
"""
    assert ended(file, script) == (-signal.SIGTERM, "")
    assert steps_and_outcomes(file)[1][-1:] == ["aborted"]


def test_a_forked_child_ends_its_own_emitters_or_dies_at_once(tmp_path: Path) -> None:
    file, childs = tmp_path / "parent.frames.jsonl", tmp_path / "child.frames.jsonl"
    script = f"""
springback.end_on_signals()
episode.step(progress=0.5)
ready, told = os.pipe()
idle = os.fork()
while idle == 0:
    os.write(told, b"x")  # a signal that comes while Python is still forking is lost, whatever handles it
    signal.pause()
os.read(ready, 1)
os.kill(idle, signal.SIGTERM)
assert os.waitstatus_to_exitcode(os.waitpid(idle, 0)[1]) == -signal.SIGTERM
busy = os.fork()
if busy == 0:
    own = springback.StepEmitter(springback.JsonLinesPublisher({str(childs)!r}), producer="child", linger_s=3600.0)
    own.begin_episode(family="f").step(progress=0.5)
    os.write(told, b"x")
while busy == 0:
    signal.pause()
os.read(ready, 1)
os.kill(busy, signal.SIGTERM)
assert os.waitstatus_to_exitcode(os.waitpid(busy, 0)[1]) == -signal.SIGTERM
print("reported", flush=True)
while True:
    signal.pause()
"""
    assert ended(file, script)[0] == -signal.SIGTERM
    assert steps_and_outcomes(childs) == (1, ["aborted"])
    assert steps_and_outcomes(file) == (1, ["aborted"])
