"""Marks get into Grafana once each, over restarts, repetitions and refusals, and no faster than they may."""

import functools
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from springback.sinks.errors import GrafanaRefusedError, GrafanaUnreachableError, SinkUnavailableError
from springback.sinks.grafana.annotations_sink import OPEN_TAG, AnnotationBounds, GrafanaAnnotationsSink, window_mark
from springback.sinks.grafana.connection import GrafanaConnection
from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.readings import AgentStatus, FamilyReading, WindowReading
from tests.reading_builders import agent_status
from tests.sinks.grafana.grafana_stub import TOKEN, GrafanaStub, serve

NOW_S = 10_000.0
ANNOTATIONS = "/api/annotations"


class Bench:
    """A sink on a stand-in for Grafana, with clocks that move only when told."""

    def __init__(self, stub: GrafanaStub, grafana: GrafanaConnection) -> None:
        self.stub = stub
        self.grafana = grafana
        self.now_s = NOW_S
        self.passed_s = 0.0
        self.sink = self.fresh_sink()

    def fresh_sink(self, **bounds: float) -> GrafanaAnnotationsSink:
        """As after a restart."""
        limits = AnnotationBounds(**{"history_s": 1000.0, **bounds})  # type: ignore[arg-type]
        return GrafanaAnnotationsSink(
            self.grafana, bounds=limits, clock=lambda: self.now_s, monotonic=lambda: self.passed_s
        )

    def deliver(self, *readings: WindowReading | FamilyReading | AgentStatus) -> None:
        for reading in readings:
            self.sink.write(reading)
        self.sink.flush()

    def shown(self) -> list[tuple[float, float, bool]]:
        """Start and end of each annotation in seconds, and whether it is open."""
        return [
            (kept["time"] / 1000, kept["timeEnd"] / 1000, OPEN_TAG in kept["tags"])
            for kept in self.stub.annotations.values()
        ]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with serve(GrafanaStub()) as stub, GrafanaConnection(stub.url, TOKEN) as grafana:
        yield Bench(stub, grafana)


@pytest.fixture
def opened(window: Callable[..., WindowReading]) -> WindowReading:
    return window(state="open", departure_time_s=NOW_S - 5, reentry_time_s=NOW_S - 3)


@pytest.fixture
def closed(window: Callable[..., WindowReading]) -> WindowReading:
    return window(departure_time_s=NOW_S - 5, reentry_time_s=NOW_S)


def test_a_window_is_marked_and_then_drawn_to_its_end(
    bench: Bench, opened: WindowReading, closed: WindowReading
) -> None:
    bench.deliver(opened)
    assert bench.shown() == [(NOW_S - 5, NOW_S - 5, True)]

    bench.deliver(closed)
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)]
    (kept,) = bench.stub.annotations.values()
    assert kept["tags"] == list(window_mark(closed).tags)
    assert kept["text"].startswith("robot-7: rebound window, recovered")


def test_marks_of_agents_whose_clocks_disagree_stand_on_one(bench: Bench, window: Callable[..., WindowReading]) -> None:
    # Three windows of the same 5 s: of a clock that is right, one 2 h ahead, and one that was last set three years ago.
    for agent, skew_s in (("right", 0.0), ("zone", 7200.0), ("unset", -94_608_000.0)):
        told = window(
            agent=agent, departure_time_s=NOW_S + skew_s - 5, reentry_time_s=NOW_S + skew_s, number=0, state="recovered"
        )
        bench.deliver(agent_status(agent, clock_skew_s=skew_s), told)
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)] * 3


def test_a_clock_that_is_told_of_after_the_window_counts_at_the_flush(
    bench: Bench, window: Callable[..., WindowReading]
) -> None:
    late = window(departure_time_s=NOW_S - 100_005, reentry_time_s=NOW_S - 100_000)
    bench.deliver(late, agent_status(clock_skew_s=-100_000.0))
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)]
    # What is old by the broker's clock too is left out, before and at the flush.
    old = replace(late, departure_time_s=NOW_S - 105_005, reentry_time_s=NOW_S - 105_000)
    bench.deliver(replace(old, number=1))
    bench.sink = bench.fresh_sink()
    bench.deliver(replace(old, number=2), agent_status(clock_skew_s=-100_000.0))
    assert len(bench.shown()) == 1


def test_both_at_once_are_one_request(bench: Bench, opened: WindowReading, closed: WindowReading) -> None:
    bench.deliver(opened, closed)
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)]
    assert [r.split("?")[0] for r in bench.stub.requests if not r.startswith("GET")] == [f"POST {ANNOTATIONS}"]


def test_repetitions_and_late_openings_change_nothing(
    bench: Bench, opened: WindowReading, closed: WindowReading
) -> None:
    bench.deliver(opened, closed)
    asked = len(bench.stub.requests)
    bench.deliver(opened, closed, opened)
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)]
    assert len(bench.stub.requests) == asked


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("flushed", [False, True])
def test_a_window_that_goes_on_after_silence_is_drawn_to_its_last_end(
    bench: Bench, opened: WindowReading, closed: WindowReading, flushed: bool, restarted: bool
) -> None:
    silent = replace(closed, state="censored", reentry_time_s=NOW_S - 2)
    resumed = replace(closed, revision=1)
    if flushed:
        bench.deliver(opened, silent)
        assert bench.shown() == [(NOW_S - 5, NOW_S - 2, False)]
        if restarted:
            bench.sink = bench.fresh_sink()
        bench.deliver(resumed, silent)  # and a repetition of what it has taken the place of
    else:
        bench.deliver(opened, silent, resumed, silent)
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)]
    (kept,) = bench.stub.annotations.values()
    assert "state:recovered" in kept["tags"]


def test_after_a_restart_nothing_is_marked_twice(bench: Bench, opened: WindowReading, closed: WindowReading) -> None:
    bench.deliver(opened)
    bench.sink = bench.fresh_sink()
    bench.deliver(opened)
    assert len(bench.shown()) == 1

    bench.sink = bench.fresh_sink()
    bench.deliver(opened, closed)
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)]


def test_what_is_forgotten_is_asked_for(bench: Bench, window: Callable[..., WindowReading]) -> None:
    windows = [window(number=n, departure_time_s=NOW_S, reentry_time_s=NOW_S + 1) for n in range(6)]
    bench.sink = bench.fresh_sink(remembered=2)
    bench.deliver(*windows)
    bench.deliver(*windows)
    bench.sink = bench.fresh_sink(remembered=2)
    bench.deliver(*windows)
    assert len(bench.stub.annotations) == 6


def test_a_window_longer_than_what_was_looked_through(
    bench: Bench, opened: WindowReading, closed: WindowReading
) -> None:
    bench.deliver(opened)
    (kept,) = bench.stub.annotations.values()
    kept["time"] = kept["timeEnd"] = 1000 * (NOW_S - 5)
    bench.now_s += 3000
    bench.sink = bench.fresh_sink()
    bench.deliver(replace(closed, reentry_time_s=bench.now_s))
    assert bench.shown() == [(NOW_S - 5, bench.now_s, False)]


def test_old_windows_are_left_out(bench: Bench, window: Callable[..., WindowReading]) -> None:
    bench.deliver(window(departure_time_s=NOW_S - 2000, reentry_time_s=NOW_S - 1001))
    assert bench.stub.requests == []


@pytest.fixture
def family(family: Callable[..., FamilyReading]) -> Callable[..., FamilyReading]:
    """What is known of navigation, whose contract was never violated."""
    return functools.partial(family, contract_violated=False, contract_violations=0)


def test_a_breach_and_a_violated_contract_are_marked_each_for_itself(
    bench: Bench, family: Callable[..., FamilyReading]
) -> None:
    both = {"stress_state": "breach", "breaches": 1, "contract_violated": True, "contract_violations": 1}
    bench.deliver(family(sequence=1, updated_s=NOW_S, **both))
    bench.deliver(family(sequence=2, updated_s=NOW_S + 60, **(both | {"stress_state": "within"})))
    assert sorted(bench.shown()) == [(NOW_S, NOW_S, True), (NOW_S, NOW_S + 60, False)]
    bench.sink = bench.fresh_sink()
    bench.deliver(
        family(sequence=3, updated_s=NOW_S + 90, **(both | {"stress_state": None, "contract_violated": False}))
    )
    assert sorted(bench.shown()) == [(NOW_S, NOW_S + 60, False), (NOW_S, NOW_S + 90, False)]


def test_a_breach_from_its_beginning_to_its_end(bench: Bench, family: Callable[..., FamilyReading]) -> None:
    bench.deliver(family(sequence=1, stress_state="breach", breaches=1, updated_s=NOW_S))
    bench.deliver(family(sequence=2, stress_state="breach", breaches=1, updated_s=NOW_S + 5))
    bench.sink = bench.fresh_sink()
    bench.deliver(family(sequence=3, stress_state="within", breaches=1, updated_s=NOW_S + 60))
    bench.deliver(family(sequence=4, stress_state="within", breaches=1, updated_s=NOW_S + 90))
    assert bench.shown() == [(NOW_S, NOW_S + 60, False)]


def test_a_breach_within_one_flush(bench: Bench, family: Callable[..., FamilyReading]) -> None:
    bench.deliver(
        family(sequence=1, stress_state="breach", breaches=1, updated_s=NOW_S),
        family(sequence=2, stress_state="within", breaches=1, updated_s=NOW_S + 60),
        family(sequence=3, stress_state="breach", breaches=2, updated_s=NOW_S + 70),
    )
    assert bench.shown() == [(NOW_S, NOW_S + 60, False), (NOW_S + 70, NOW_S + 70, True)]


def test_a_breach_whose_beginning_is_not_known_has_no_mark(bench: Bench, family: Callable[..., FamilyReading]) -> None:
    bench.deliver(family(stress_state="within", breaches=3, updated_s=NOW_S))
    asked = len(bench.stub.requests)
    for sequence in range(5):
        bench.deliver(family(sequence=sequence, stress_state="within", breaches=3, updated_s=NOW_S + sequence))
    assert bench.shown() == []
    assert len(bench.stub.requests) == asked


def test_grafana_is_asked_no_faster_than_it_may(bench: Bench, window: Callable[..., WindowReading]) -> None:
    bench.sink = bench.fresh_sink(rate_per_s=2.0, burst=5)
    for number in range(10):
        bench.sink.write(window(number=number, departure_time_s=NOW_S, reentry_time_s=NOW_S + 1))

    with pytest.raises(SinkUnavailableError, match="8 marks wait, because Grafana is asked at most 2 times a second"):
        bench.sink.flush()
    assert len(bench.stub.requests) == 5  # three of them to learn what is there
    bench.passed_s += 2.0
    with pytest.raises(SinkUnavailableError, match="4 marks wait"):
        bench.sink.flush()
    bench.passed_s += 60.0
    bench.sink.flush()
    assert len(bench.stub.annotations) == 10


def test_while_grafana_is_away_nothing_is_lost(bench: Bench, opened: WindowReading, closed: WindowReading) -> None:
    bench.deliver(opened)
    bench.stub.refusals["PATCH", ANNOTATIONS] = 503, {"message": "starting"}
    with pytest.raises(GrafanaUnreachableError, match="cannot answer now"):
        bench.deliver(closed)
    bench.stub.refusals.clear()
    bench.sink.flush()
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)]


def test_a_mark_whose_answer_was_lost_is_not_made_again(bench: Bench, closed: WindowReading) -> None:
    bench.stub.loses_answers = True
    with pytest.raises(GrafanaUnreachableError):
        bench.deliver(closed)
    bench.stub.loses_answers = False
    bench.sink.flush()
    assert bench.shown() == [(NOW_S - 5, NOW_S, False)]


def test_a_refused_token_is_an_end(bench: Bench, closed: WindowReading) -> None:
    bench.stub.refusals["GET", ANNOTATIONS] = 401, {"message": "Invalid API key"}
    with pytest.raises(GrafanaRefusedError, match="HTTP 401") as error:
        bench.deliver(closed)
    assert not isinstance(error.value, SinkUnavailableError)


def test_one_mark_that_is_refused_stops_no_other(
    bench: Bench, opened: WindowReading, closed: WindowReading, window: Callable[..., WindowReading]
) -> None:
    bench.stub.refusals["POST", ANNOTATIONS] = 400, {"message": "no"}
    bench.deliver(opened)
    bench.stub.refusals.clear()
    bench.deliver(window(number=1, departure_time_s=NOW_S, reentry_time_s=NOW_S))
    assert len(bench.stub.annotations) == 1

    bench.deliver(window(number=2, state="open", departure_time_s=NOW_S))
    bench.stub.annotations.clear()  # somebody deletes them
    bench.deliver(window(number=2, departure_time_s=NOW_S, reentry_time_s=NOW_S + 1))
    assert bench.stub.annotations == {}


def test_an_id_of_any_kind_is_found_again(bench: Bench, window: Callable[..., WindowReading]) -> None:
    strange = [
        window(agent=name, departure_time_s=NOW_S, reentry_time_s=NOW_S) for name in ("a&b=c", "🤖", "\ud800", "")
    ]
    bench.deliver(*strange)
    bench.sink = bench.fresh_sink(remembered=1)
    bench.deliver(*strange)
    assert len(bench.stub.annotations) == 4


def test_what_is_no_window_and_no_breach_has_no_mark(bench: Bench, status: Callable[..., AgentStatus]) -> None:
    bench.sink.write(status())
    bench.sink.write_dead_letter(DeadLetter("unreadable", b"1"))
    bench.sink.flush()
    bench.sink.close()
    assert bench.stub.requests == []
    assert bench.sink.name == "grafana-annotations"
