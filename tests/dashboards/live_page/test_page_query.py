"""What a page shows, as the query of its address: what comes from outside is bounded, and nothing is said twice."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from springback.dashboards.live_page.page_query import PageQuery, TableQuery
from tests.examples import examples


class Frame:
    """Stands for the element that knows the browser's address."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.went: Any = None

    def run_method(self, *call: Any) -> None:
        self.said.append(call)

    def on(self, _: str, handler: Any) -> None:
        self.went = handler


class Event:
    """Stands for what the browser tells when its way back was taken."""

    def __init__(self, search: str) -> None:
        self.args = search


def bound(**given: str) -> tuple[PageQuery, Frame]:
    query, frame = PageQuery(given), Frame()
    query.bind(frame)  # type: ignore[arg-type]
    return query, frame


def test_a_choice_is_said_in_the_address_and_a_search_leaves_no_step_behind() -> None:
    query, frame = bound(state="rebound", page="2")
    query.put({"page": None, "sort": "-cost"})
    query.put({"search": "robot 7"}, step=False)
    assert frame.said == [
        ("address", "?state=rebound&sort=-cost", True),
        ("address", "?state=rebound&sort=-cost&search=robot+7", False),
    ]
    query.put({"sort": "-cost", "search": "robot 7"})
    assert len(frame.said) == 2  # nothing has changed
    query.put({"state": "", "sort": None, "search": ""})
    assert frame.said[-1] == ("address", "", True)


def test_the_way_back_is_read_by_all_parts_of_the_page_and_says_nothing_itself() -> None:
    query, frame = bound(state="rebound")
    read: list[str] = []
    query.read_by(lambda: read.append(query.text("state")))
    query.read_by(lambda: read.append(query.text("search")))
    frame.went(Event("?state=calm&search=a%20b"))
    frame.went(Event(""))
    assert read == ["calm", "a b", "", ""]
    assert frame.said == []


def test_a_number_is_one_or_the_default() -> None:
    query = PageQuery({"a": "3", "b": "-1", "c": "1e3", "d": "", "e": "9" * 12, "f": "\u0663", "g": "007"})
    assert [query.number(name, 1) for name in "abcdefgh"] == [3, 1, 1, 1, 1, 1, 7, 1]


def test_a_choice_is_one_of_those_that_there_are() -> None:
    query = PageQuery({"since": "1h", "state": "asleep"})
    assert [query.choice(name, ("1h", "24h")) for name in ("since", "state", "page")] == ["1h", "", ""]


def test_a_table_is_sorted_and_paged_as_the_address_says_where_it_can_be() -> None:
    for told, place in (
        ({}, ("name", False, 1, 25)),
        ({"sort": "-cost", "page": "3", "rows": "100"}, ("cost", True, 3, 100)),
        ({"sort": "-colour", "page": "0", "rows": "26"}, ("name", False, 1, 25)),
    ):
        assert TableQuery(PageQuery(told), ("name", "cost"), (25, 100), 25).place() == place


def test_what_is_chosen_in_a_table_is_said_in_the_address_and_read_from_it_again() -> None:
    query, frame = bound(search="a", page="2")
    table = TableQuery(query, ("name", "cost"), (25, 100), 25)
    chosen = {"sortBy": "cost", "descending": True, "page": 3, "rowsPerPage": 100}
    table.put(chosen)
    assert frame.said == [("address", "?search=a&page=3&sort=-cost&rows=100", True)]
    assert table.place().paging() == chosen
    # What is so where nothing is said is not said; a browser tells no column where none is sorted by.
    table.put({"sortBy": None, "descending": False, "page": 1, "rowsPerPage": 25})
    assert frame.said[-1] == ("address", "?search=a", True)


@settings(max_examples=examples(60))
@given(st.dictionaries(st.text(max_size=300), st.text(max_size=300), max_size=50), st.text(max_size=400))
def test_what_comes_from_outside_is_bounded(given: dict[str, str], search: str) -> None:
    query, frame = bound()
    query = PageQuery(given)
    query.bind(frame)  # type: ignore[arg-type]
    frame.went(Event(f"?search={search}"))
    query.put({"page": 2})
    (said,) = frame.said
    assert len(said[1]) < 30 * 20 * 200
    assert query.number("page", 1) == 2
