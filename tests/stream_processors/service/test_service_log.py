import json
import logging
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from springback.stream_processors.service.log import JsonFormatter, LineFormatter, RepetitionFilter, log_fields
from tests.examples import examples


def record(message: str, *arguments: object, level: int = logging.ERROR, name: str = "aiokafka") -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 1, message, arguments, None)


def test_the_same_trouble_is_told_once_in_a_while() -> None:
    now_s = 0.0
    repetition = RepetitionFilter(interval_s=60.0, clock=lambda: now_s)
    assert repetition.filter(record("cannot reach node %d", 1))
    now_s = 59.0
    assert not repetition.filter(record("cannot reach node %d", 2))
    assert repetition.filter(record("disk full"))
    assert repetition.filter(record("cannot reach node %d", 1, level=logging.WARNING))
    assert repetition.filter(record("cannot reach node %d", 1, name="aiokafka.conn"))
    now_s = 60.0
    assert repetition.filter(record("cannot reach node %d", 1))


def test_our_own_messages_are_all_told() -> None:
    repetition = RepetitionFilter()
    ours = [record("batch_abandoned", name="springback.stream_processors.exact.stage") for _ in range(3)]
    assert all(map(repetition.filter, ours))


def test_a_record_is_one_line_whatever_ids_it_holds() -> None:
    line = LineFormatter().format(record("rejected agent=%s", "a\nlevel=info forged\r\x1b[2J\x85\u2028b"))
    assert line.endswith("rejected agent=a | level=info forged\\x0d\\x1b[2J\\x85\\x2028b")
    assert len(line.splitlines()) == 1


def test_the_json_form_has_everything_apart() -> None:
    told = record("batch_failed stage=%s events=%d took_s=%.1f retry=yes", "learn", 7, 1.25, name="springback.stage")
    told.created, told.msecs = 1_790_000_000.5, 500.0
    told.place = "x"  # as `extra` gives it
    assert json.loads(JsonFormatter().format(told)) == {
        "time": "2026-09-21T14:13:20.500Z",
        "level": "error",
        "logger": "springback.stage",
        "message": "batch_failed stage=learn events=7 took_s=1.2 retry=yes",
        "fields": {"stage": "learn", "events": 7, "took_s": 1.25, "retry": "yes", "place": "x"},
    }


def test_the_json_form_has_the_traceback() -> None:
    told = record("health_failed")
    try:
        int("of ours")
    except ValueError:
        told.exc_info = sys.exc_info()
    found = json.loads(JsonFormatter().format(told))
    assert found["fields"] == {}
    assert found["traceback"].endswith("'of ours'")


def test_a_sentence_has_fields_only_where_it_names_them() -> None:
    assert log_fields(record("Waiting for topics: %s. 100 %% of partition=%d", "a, b", 3)) == {"partition": 3}
    assert log_fields(record("at %(where)s", {"where": "here"})) == {"where": "here"}
    assert log_fields(record("rate=%s", float("nan"))) == {"rate": "nan"}


@settings(max_examples=examples(60))
@given(st.text(), st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.booleans()))
def test_whatever_ids_it_holds_json_is_one_line_of_ascii(agent: str, value: object) -> None:
    line = JsonFormatter().format(record("rejected agent=%s value=%s", agent, value))
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["fields"]["agent"] == agent


def test_a_busy_machine_is_not_told_of_task_by_task() -> None:
    """kafka-python words each slow task anew, so that no filter of repetitions would hold it back."""
    program = """
import logging
from springback.stream_processors.service.log import configure_logging
configure_logging()
logging.getLogger("kafka.net.selector").warning("Task 1 ran for 0.153s")
logging.getLogger("kafka.conn").warning("a broker is away")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [line for line in run.stderr.splitlines() if "0.153s" in line] == []
    assert "a broker is away" in run.stderr
