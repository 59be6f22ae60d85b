"""Which alerts are told, from when to when: the times of the rules, and what was seen of it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from springback.dashboards.live_page.alerts.alert_book import Alert, AlertBook
from springback.dashboards.live_page.alerts.conditions import BLIND, BREACH, DEAD_LETTERS, SILENT, Condition
from tests.examples import examples

BREACHED = Condition(BREACH, "navigation", "It runs under stress.", "/families")
AWAY = Condition(BLIND, "this page", "The broker does not answer.", "/pipeline")


def names(alerts: list[Alert]) -> list[str]:
    return [alert.subject for alert in alerts]


def test_a_condition_is_told_once_it_has_held_and_for_a_while_after() -> None:
    book = AlertBook()
    book.step([], 90.0)
    assert [names(book.step([BREACHED], at_s)) for at_s in (100.0, 129.9, 130.0, 200.0)] == [
        *([], []),
        *(["navigation"], ["navigation"]),
    ]
    (over,) = book.step([], 201.0)
    assert (over.since_s, over.over_s, over.at_least) == (100.0, 200.0, False)
    assert names(book.step([], 499.9)) == ["navigation"]
    assert book.step([], 500.0) == []


def test_what_holds_and_is_no_alert_yet_is_known() -> None:
    book = AlertBook()
    waiting = []
    for at_s, held in ((100.0, [BREACHED]), (130.0, [BREACHED]), (140.0, []), (500.0, []), (501.0, [BREACHED])):
        book.step(held, at_s)
        waiting.append(book.waiting)
    assert waiting == [[BREACHED], [], [], [], [BREACHED]]


def test_what_held_for_less_is_never_told() -> None:
    book = AlertBook()
    assert book.step([BREACHED], 100.0) == book.step([], 110.0) == book.step([BREACHED], 129.0) == []
    assert book.step([BREACHED], 158.0) == []


def test_what_comes_again_while_it_is_still_told_goes_on() -> None:
    book = AlertBook()
    book.step([BREACHED], 100.0)
    book.step([BREACHED], 130.0)
    assert book.step([], 140.0)[0].over_s == 130.0
    (again,) = book.step([BREACHED], 150.0)
    assert (again.since_s, again.over_s) == (100.0, None)


def test_since_when_is_what_a_reading_says_else_when_it_was_first_seen_or_longer() -> None:
    book = AlertBook()
    silent = Condition(SILENT, "robot-1", "It fell silent.", "/", since_s=40.0, true_s=100.0)
    (told,) = book.step([silent, BREACHED], 170.0)
    assert (told.subject, told.since_s, told.at_least) == ("robot-1", 40.0, False)
    assert [(a.subject, a.since_s, a.at_least) for a in book.step([silent, BREACHED], 200.0)] == [
        ("navigation", 170.0, True),
        ("robot-1", 40.0, False),
    ]


def test_of_one_kind_those_that_last_longest_come_first() -> None:
    book = AlertBook()
    letters = [
        Condition(DEAD_LETTERS, reason, "", "/", since_s=since_s, true_s=since_s)
        for reason, since_s in (("b", 50.0), ("a", 60.0), ("c", 40.0))
    ]
    assert names(book.step([BREACHED, *letters], 100.0)) == ["c", "b", "a"]
    assert names(book.step([BREACHED, *letters], 130.0)) == ["c", "b", "a", "navigation"]


def test_while_nothing_is_seen_the_rest_stands_still() -> None:
    book = AlertBook()
    book.step([BREACHED], 100.0)
    assert names(book.step([BREACHED], 140.0)) == ["navigation"]
    # At first what was known is told on; then that nothing is known.
    assert [names(book.step([AWAY], at_s)) for at_s in (141.0, 260.0, 261.0, 10_000.0)] == [
        *(["navigation"], ["navigation"]),
        *(["this page"], ["this page"]),
    ]
    back = book.step([BREACHED], 10_001.0)
    assert [(a.subject, a.over_s) for a in back] == [("this page", 10_000.0), ("navigation", None)]
    assert back[1].since_s == 100.0
    # The five minutes after which it is over begin where it was last seen.
    assert names(book.step([], 10_070.0)) == ["navigation"]
    assert names(book.step([], 10_302.0)) == []


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.floats(0.1, 60), st.booleans(), st.booleans()), max_size=40))
def test_whatever_comes_nothing_is_told_before_its_time(steps: list[tuple[float, bool, bool]]) -> None:
    book, now_s, held_s = AlertBook(), 1000.0, None
    for passed_s, breached, blind in steps:
        now_s += passed_s
        alerts = book.step([AWAY] if blind else [BREACHED] if breached else [], now_s)
        if not blind:
            held_s = (held_s or now_s) if breached else None
        for alert in alerts:
            assert alert.since_s <= now_s
            assert alert.over_s is None or alert.over_s <= now_s
        told = [alert for alert in alerts if alert.rule is BREACH and alert.over_s is None]
        if breached and not blind:
            assert bool(told) or now_s - (held_s or now_s) < BREACH.hold_s
        if not breached and not blind:
            assert told == []
