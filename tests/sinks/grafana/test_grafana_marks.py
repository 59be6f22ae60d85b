"""Windows and breaches as annotations: identity, tags that Grafana takes, text that stays text."""

import json
from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from springback.sinks.grafana.annotations_sink import (
    BREACH_TAG,
    CONTRACT_TAG,
    OPEN_TAG,
    PROVISIONAL_TAG,
    WINDOW_TAG,
    agent_tag,
    breach_mark,
    contract_mark,
    identity_of,
    window_mark,
)
from springback.stream_processors.resilience.readings import (
    EpisodeTraits,
    FamilyReading,
    WindowReading,
)
from tests.reading_builders import failed_level, window_reading

IDS = st.text(st.characters(codec=None, exclude_categories=()), max_size=200) | st.sampled_from(
    ["🤖" * 100, 'a"b\n', "\ud800", "x" * 10_000, "None", "", "<script>alert(1)</script>"]
)


def test_a_window_from_departure_to_reentry(window: Callable[..., WindowReading]) -> None:
    mark = window_mark(window(departure_time_s=100.0, reentry_time_s=103.5))

    assert (mark.kind, mark.start_ms, mark.end_ms, mark.closed) == (WINDOW_TAG, 100_000, 103_500, True)
    assert mark.tags == (
        WINDOW_TAG,
        mark.identity,
        "state:recovered",
        "agent:robot-7",
        "cause:effort",
        "family:navigation",
        "method:default",
        "version:0",
    )
    assert mark.text == (
        "robot-7: rebound window, recovered (effort). Recovery cost 1.50, 8 steps in 3.5 s, 2.5 cycles lost. "
        "Task kitchen, episode 1, from step 4."
    )


def test_opened_and_closed_are_one_mark(window: Callable[..., WindowReading]) -> None:
    opened, closed = window_mark(window(state="open")), window_mark(window())

    assert opened.identity == closed.identity
    assert opened.end_ms is None
    assert OPEN_TAG in opened.tags
    assert OPEN_TAG not in closed.tags
    assert window_mark(window(number=1)).identity != closed.identity
    assert window_mark(window(session="reboot")).identity != closed.identity


def test_a_breach_while_it_lasts_and_when_it_is_over(family: Callable[..., FamilyReading]) -> None:
    begun = breach_mark(
        family(stress_state="breach", breaches=3, dependable=0.4, tested_up_to=0.8, live_stress=0.8, updated_s=1000.0)
    )
    over = breach_mark(family(stress_state="within", breaches=3, updated_s=1060.0))

    assert begun is not None
    assert over is not None
    assert begun.identity == over.identity
    assert (begun.start_ms, begun.end_ms) == (1_000_000, None)
    assert (over.start_ms, over.end_ms) == (None, 1_060_000)
    assert begun.tags[:3] == (BREACH_TAG, begun.identity, OPEN_TAG)
    assert begun.text == (
        "navigation / default / 0: in breach at live stress 0.8: a level at or below it is broken. "
        "Dependable capacity: 0.4."
    )
    assert over.text == "navigation / default / 0: stress breach 3 is over."
    assert breach_mark(family(stress_state="within", breaches=0)) is None


def test_a_violated_contract_names_the_level_and_says_nothing_of_a_stress_that_nobody_declared(
    family: Callable[..., FamilyReading],
) -> None:
    begun = contract_mark(family(updated_s=1000.0))
    over = contract_mark(family(contract_violated=False, updated_s=1060.0))

    assert begun is not None
    assert over is not None
    assert begun.identity == over.identity != (breach_mark(family(breaches=1)) or begun).identity
    assert (begun.start_ms, begun.end_ms, over.end_ms) == (1_000_000, None, 1_060_000)
    assert begun.tags[:3] == (CONTRACT_TAG, begun.identity, OPEN_TAG)
    assert begun.text == (
        "navigation / default / 0: contract violated: under stress 0.2 8 of 12 (39 to 86 %) episodes broke it."
    )
    field = contract_mark(family(live_stress=None, stress_state=None, margins=(), undeclared=failed_level()))
    assert field is not None
    assert field.text.endswith("contract violated: under undeclared stress 20 of 20 (84 to 100 %) episodes broke it.")
    assert contract_mark(family(contract_violated=False, contract_violations=0)) is None


def test_a_provisional_window_says_so(window: Callable[..., WindowReading]) -> None:
    mark = window_mark(window(provisional=True))

    assert PROVISIONAL_TAG in mark.tags
    assert mark.text.startswith("robot-7: provisional rebound window, recovered (effort).")
    assert PROVISIONAL_TAG not in window_mark(window()).tags


@given(agent=IDS, family=IDS, task=IDS)
def test_no_id_makes_a_mark_that_grafana_refuses(agent: str, family: str, task: str) -> None:
    mark = window_mark(window_reading(agent, traits=EpisodeTraits(family=family, task=task)))

    assert mark.tags[:2] == (WINDOW_TAG, mark.identity)
    assert identity_of(mark.tags) == mark.identity
    assert all(0 < len(tag) <= 100 for tag in mark.tags)
    assert len(json.dumps(mark.tags, ensure_ascii=False, separators=(",", ":")).encode()) <= 500
    assert mark.text.isprintable()
    assert "<" not in mark.text
    msgspec.json.encode(mark)


def test_the_tag_of_an_agent_is_its_label() -> None:
    assert agent_tag("robot:7") == "agent:robot:7"
    assert agent_tag("a\nb") == "agent:a�b~fcd127ff"
