"""Pages that take long to compute: whoever asks at the same time gets the same one, and nobody waits without end.

However many ask, one thread computes whole pages and one more what is asked for in part, each one page at a time. What
was computed is given out for a moment longer, so that computing takes no more than a third of the time, and readings
are taken in meanwhile. Whoever has waited too long is told to come again, as is who asks for one thing too many.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

from springback.sinks.errors import PagesBusyError

K = TypeVar("K")
_MOST_KEPT = 8


class PageTimes(NamedTuple):
    """How long pages are kept and waited for.

    Attributes:
        kept: for how many times as long as its computing took a page is given out.
        most_kept_s: but no longer than this: so old may a page be, its computing aside.
        wait_s: the longest that somebody waits. Prometheus has gone after 10 s, its default.
        most_under_way: so many different pages may be asked for at a time.
    """

    kept: float = 2.0
    most_kept_s: float = 2.0
    wait_s: float = 10.0
    most_under_way: int = 8


class _Kept(NamedTuple):
    page: bytes
    until_s: float


class SharedPages(Generic[K]):
    """The pages of one thread, by what is asked for. For one event loop.

    Args:
        compute: computes the page that is asked for, on the thread.
        name: the thread's.
        times: how long pages are kept and waited for.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        compute: Callable[[K], bytes],
        name: str,
        times: PageTimes = PageTimes(),  # noqa: B008  (it cannot be changed)
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._compute = compute
        self._times = times
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, name)
        self._under_way: dict[K, asyncio.Future[_Kept]] = {}
        self._kept: OrderedDict[K, _Kept] = OrderedDict()

    def close(self) -> None:
        """Computes no more pages; one that is being computed is waited for."""
        self._thread.shutdown(cancel_futures=True)

    async def page(self, wanted: K) -> bytes:
        """The page as of now, or of a moment ago.

        Raises:
            PagesBusyError: it is not there in time, or too many different ones are asked for.
        """
        kept = self._kept.get(wanted)
        if kept is not None and self._clock() < kept.until_s:
            return kept.page
        under_way = self._under_way.get(wanted)
        if under_way is None:
            if len(self._under_way) >= self._times.most_under_way:
                message = "Too many different pages are asked for at a time."
                raise PagesBusyError(message)
            under_way = asyncio.get_running_loop().run_in_executor(self._thread, self._computed, wanted)
            self._under_way[wanted] = under_way
            under_way.add_done_callback(lambda done: self._take(wanted, done))
        try:
            # Shielded: that one has gone, or has waited too long, takes the page from no other.
            return (await asyncio.wait_for(asyncio.shield(under_way), self._times.wait_s)).page
        except TimeoutError:
            message = f"The page was not there within {self._times.wait_s:g} s."
            raise PagesBusyError(message) from None

    def _computed(self, wanted: K) -> _Kept:
        began_s = self._clock()
        page = self._compute(wanted)
        done_s = self._clock()
        return _Kept(page, done_s + min(self._times.most_kept_s, self._times.kept * (done_s - began_s)))

    def _take(self, wanted: K, done: asyncio.Future[_Kept]) -> None:
        del self._under_way[wanted]
        if done.cancelled() or done.exception() is not None:  # those who wait are told
            self._kept.pop(wanted, None)
            return
        self._kept[wanted] = done.result()
        self._kept.move_to_end(wanted)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
