"""From timed messages to episodes and steps: whatever arrives."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.emitter.reports import ReportedStep, build_frame
from springback.producers.mapping.assembler import EpisodeAssembler, SessionClosed
from springback.producers.mapping.signal_mapping import TimedMessage, parse_mapping
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from tests.examples import examples
from tests.producers.mapping.mapped_play import EVENTS, T0, Play, pose, stamp

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.floats(), max_size=3),
    st.dictionaries(st.sampled_from("xyz"), st.floats(), max_size=3),
)  # fmt: skip
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "done": st.one_of(st.floats(0.0, 1.0), ODD), "at": ODD, "phase": ODD, "level": ODD, "version": ODD,
        "state": st.one_of(st.sampled_from(["started", "done", "failed", "offline"]), ODD), "metres": ODD,
        "id": st.one_of(st.sampled_from(["t1", "t2"]), ODD),
        "header": st.one_of(st.floats(0.0, 50.0).map(lambda time_s: stamp(time_s)["header"]), ODD),
    },
)  # fmt: skip
GUARDED = (
    EVENTS.replace("TIME", "receive")
    .replace(
        'field = "done" }', 'field = "done", transform = { divide_by = "level" }, unknown = 0.5, unless = "busy" }'
    )
    .replace('field = "level" }', 'field = "at[*]", latest_by = ["x"], transform = "maximum" }')
    .replace('failed = "failure" } }', 'failed = "failure" }, all = [{ topic = "{robot}/pose", field = "done" }] }')
    .replace(
        "[step]", '[conditions]\nbusy = { topic = "{robot}/risk", field = "at", for_any = { at_least = 1 } }\n[step]'
    )
    + 'reopen = { topic = "{robot}/risk", field = "level", at_most = 1, unless = "busy" }\njoined = "busy"\n'
)
MAPPINGS = {time: parse_mapping(EVENTS.replace("TIME", time), "m") for time in ("header", "receive")}
MAPPINGS["guarded"] = parse_mapping(GUARDED, "guarded")
LAST_LEVELS = ["task", "pose", "bump", "risk", "about", "status", "x"]
MESSAGES = st.builds(
    TimedMessage,
    st.builds("{}/{}".format, st.sampled_from(["r1", "r2", ""]), st.sampled_from(LAST_LEVELS)),
    st.floats(T0, T0 + 100.0),
    st.one_of(VALUES, ODD),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=examples(100), deadline=None)
@given(messages=st.lists(MESSAGES, max_size=25), recorded=st.booleans(), time=st.sampled_from(sorted(MAPPINGS)))
def test_whatever_arrives_comes_to_frames_that_hold_together(
    messages: list[TimedMessage], recorded: bool, time: str
) -> None:
    assembler = EpisodeAssembler(MAPPINGS[time], session="s", recorded=recorded)
    reports = [report for message in messages for report in assembler.add(message)] + assembler.finish()
    closed: set[tuple[str, str]] = set()
    ended: set[int] = set()
    last_step: dict[int, tuple[int, float]] = {}
    for producer, session, report in reports:
        assert (producer, session) not in closed
        if isinstance(report, SessionClosed):
            closed.add((producer, session))
            continue
        header = id(report.header)
        assert report.header.agent == producer
        assert header not in ended
        if isinstance(report, ReportedStep):
            number, time_s = report.step, report.signals["time_s"]
            if header in last_step:
                assert number > last_step[header][0]
                assert time_s >= last_step[header][1]
            last_step[header] = number, time_s
            assert all(math.isfinite(value) for value in report.signals.values() if isinstance(value, float))
        else:
            assert header in last_step
            ended.add(header)
    assert ended == set(last_step)  # nothing stays open
    told = [told.report for told in reports if not isinstance(told.report, SessionClosed)]
    if not told:
        return
    table = tabulate([ArrivedFrame(build_frame("p", "s", told), T0 + 100.0)])
    ranges = {"out_of_range", "not_finite", "below_minimum", "above_maximum"}
    assert all(row.reason in ranges or "range" in row.reason for row in table.rejected), table.rejected


@settings(max_examples=examples(40), deadline=None)
@given(lateness=st.lists(st.floats(0.0, 0.9), min_size=1, max_size=30))
def test_bounded_lateness_changes_nothing_in_a_recording(lateness: list[float]) -> None:
    said = [("r/task", 0.0, {"id": "t", "state": "started"})]
    said += [("r/pose", 1.0 + number / 3.0, pose(number / 100.0, x=float(number))) for number in range(len(lateness))]
    late = sorted(said, key=lambda one: one[1] + (lateness[round((one[1] - 1.0) * 3.0)] if one[1] else 0.0))
    told = []
    for order in (said, late):
        play = Play(EVENTS, recorded=True, TIME="receive")
        for message in order:
            play.say(*message)
        play.finish()
        told.append([(step.step, step.signals) for step in play.steps])
    assert told[0] == told[1]
    assert len(told[0]) == len(lateness)
