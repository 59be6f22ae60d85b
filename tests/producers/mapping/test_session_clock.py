"""Messages without a time of their own, before the first that has one."""

from springback.producers.emitter.reports import ReportedStep
from springback.producers.mapping.assembler import EpisodeAssembler
from springback.producers.mapping.signal_mapping import TimedMessage, parse_mapping

NOW_S = 1_790_000_000.0
MAPPING = """
agent = "r7"
time = "header"
header_time = "at"
header = { family = "delivery" }
signals = { progress = { topic = "pose", field = "done", default = 0 }, mode = { topic = "mode" } }
episode = { whole = true }
"""


def step_times(step: str, *messages: TimedMessage) -> list[float]:
    assembler = EpisodeAssembler(parse_mapping(MAPPING + f"step = {step}\n", "mine.toml"), session="s")
    told = [report.report for message in messages for report in assembler.add(message)]
    return [report.signals["time_s"] for report in told if isinstance(report, ReportedStep)]


def poses(first_s: float) -> list[TimedMessage]:
    return [TimedMessage("pose", NOW_S + cycle, {"at": first_s + cycle, "done": 0.1 * cycle}) for cycle in range(4)]


def test_a_robot_whose_clock_is_behind_keeps_its_own_time() -> None:
    first_s = NOW_S - 100.0
    times = step_times('{ trigger = "pose" }', TimedMessage("mode", NOW_S - 1.0, "drive"), *poses(first_s))
    assert times == [first_s + cycle for cycle in range(4)]


def test_steps_of_a_fixed_rate_begin_with_it_too() -> None:
    first_s = NOW_S - 100.0
    times = step_times("{ cycle_s = 1.0 }", TimedMessage("mode", NOW_S - 1.0, "drive"), *poses(first_s))
    assert times == [first_s + cycle for cycle in (1, 2, 3)]


def test_once_there_are_steps_time_only_rises() -> None:
    first_s = NOW_S - 100.0
    times = step_times('{ trigger = ["mode", "pose"] }', TimedMessage("mode", NOW_S, "drive"), *poses(first_s))
    assert times == [NOW_S] * 5
