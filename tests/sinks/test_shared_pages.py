"""Pages that are shared by those who ask at once: how often they are computed, how old they are, who waits how long."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from springback.sinks.errors import PagesBusyError
from springback.sinks.shared_pages import PageTimes, SharedPages


class Computing:
    """Computes pages that say how many there were, once it may."""

    def __init__(self) -> None:
        self.computed: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.now_s = 100.0
        self.takes_s = 1.0

    def __call__(self, wanted: str) -> bytes:
        assert self.may_go_on.wait(60)
        self.computed.append(wanted)
        self.now_s += self.takes_s
        if wanted == "faulty":
            message = "no such number"
            raise ValueError(message)
        return f"{wanted} {len(self.computed)}".encode()


def shared(computing: Computing, wait_s: float = 60.0, most_under_way: int = 8) -> "closing[SharedPages[str]]":
    times = PageTimes(wait_s=wait_s, most_under_way=most_under_way)
    return closing(SharedPages(computing, "page-of-a-test", times, clock=lambda: computing.now_s))


def threads_of_pages() -> int:
    return sum(thread.name.startswith("page-of-a-test") for thread in threading.enumerate())


def test_hundreds_who_ask_at_once_share_one_page_and_one_thread() -> None:
    computing = Computing()
    computing.may_go_on.clear()

    async def ask() -> list[bytes]:
        with shared(computing) as pages:
            asking = [asyncio.ensure_future(pages.page("all")) for _ in range(500)]
            await asyncio.sleep(0)
            assert threads_of_pages() == 1
            computing.may_go_on.set()
            return await asyncio.gather(*asking)

    assert asyncio.run(ask()) == [b"all 1"] * 500
    assert threads_of_pages() == 0


@pytest.mark.parametrize(
    ("takes_s", "later_s", "expected"),
    [
        (0.25, 0.4, b"all 1"),  # kept for twice as long as it took
        (0.25, 0.6, b"all 2"),
        (10.0, 1.9, b"all 1"),  # and never for more than two seconds
        (10.0, 2.1, b"all 2"),
        (0.0, 0.0, b"all 2"),  # what took no time is never old
    ],
)
def test_a_page_is_given_out_for_a_moment(takes_s: float, later_s: float, expected: bytes) -> None:
    computing = Computing()
    computing.takes_s = takes_s

    async def ask() -> bytes:
        with shared(computing) as pages:
            assert await pages.page("all") == b"all 1"
            computing.now_s += later_s
            return await pages.page("all")

    assert asyncio.run(ask()) == expected


def test_who_goes_takes_the_page_from_no_other() -> None:
    computing = Computing()
    computing.may_go_on.clear()

    async def ask() -> bytes:
        with shared(computing) as pages:
            gone, stays = (asyncio.ensure_future(pages.page("all")) for _ in range(2))
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.sleep(0)
            computing.may_go_on.set()
            return await stays

    assert asyncio.run(ask()) == b"all 1"


def test_who_has_waited_too_long_is_told_and_a_later_one_is_served() -> None:
    computing = Computing()
    computing.may_go_on.clear()

    async def ask() -> bytes:
        with shared(computing, wait_s=0.01) as pages:
            for _ in range(3):
                with pytest.raises(PagesBusyError, match=r"not there within 0\.01 s"):
                    await pages.page("all")
            computing.may_go_on.set()
            while True:
                try:
                    return await pages.page("all")
                except PagesBusyError:
                    continue

    assert asyncio.run(ask()) == b"all 1", "one page was computed, whoever waited for it"


def test_too_many_different_pages_are_refused_and_those_under_way_are_not() -> None:
    computing = Computing()
    computing.may_go_on.clear()

    async def ask() -> list[bytes]:
        with shared(computing, most_under_way=3) as pages:
            asking = [asyncio.ensure_future(pages.page(name)) for name in "abc"]
            await asyncio.sleep(0)
            with pytest.raises(PagesBusyError, match="Too many different pages"):
                await pages.page("d")
            again = asyncio.ensure_future(pages.page("a"))
            computing.may_go_on.set()
            return await asyncio.gather(*asking, again)

    assert asyncio.run(ask()) == [b"a 1", b"b 2", b"c 3", b"a 1"]


def test_a_fault_is_told_to_all_who_wait_and_the_next_one_tries_again() -> None:
    computing = Computing()

    async def ask() -> list[object]:
        with shared(computing) as pages:
            told = await asyncio.gather(*(pages.page("faulty") for _ in range(3)), return_exceptions=True)
            assert await pages.page("all") == b"all 2"
            return [type(error) for error in told]

    assert asyncio.run(ask()) == [ValueError] * 3
    assert computing.computed == ["faulty", "all"]


def test_few_pages_are_kept_however_many_there_are() -> None:
    computing = Computing()

    async def ask(names: Callable[[int], str]) -> None:
        with shared(computing) as pages:
            for number in range(50):
                await pages.page(names(number))
            assert len(pages._kept) <= 8

    asyncio.run(ask(str))
