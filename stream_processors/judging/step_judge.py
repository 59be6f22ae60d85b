"""From a request to scores, within a deadline: cache, circuit breaker, budget, calls and retries.

A call is begun only if all of its time fits in before the deadline. So no call is cut off half-way, which would cost
something and bring nothing, and under overload the calls that are made still finish.
"""

import asyncio
import hashlib
import logging
import random
from typing import Protocol

from springback.producers.backoff import Backoff
from springback.stream_processors.judging.chat import Scores, messages, quoted_data, read_answer
from springback.stream_processors.judging.counts import Cause, EndpointError, JudgeCounts, NoScoresError
from springback.stream_processors.judging.limits import BoundedCache, CallBudget, CircuitBreaker
from springback.stream_processors.judging.settings import JudgeSettings
from springback.stream_processors.judging.step_selection import JudgeRequest

_log = logging.getLogger(__name__)


class Endpoint(Protocol):
    """Something that answers chat messages."""

    async def complete(self, messages: list[dict[str, str]]) -> bytes:
        """The body of the answer.

        Raises:
            EndpointError: there is none.
        """
        ...


class StepJudge:
    """Judges requests; it must be made and used inside one event loop.

    Args:
        endpoint: the endpoint to ask.
        settings: the judge's settings.
        counts: counts calls and retries; the caller counts the steps.

    Attributes:
        useless_calls: calls in a row, up to the latest, that have brought no scores: the endpoint was away or refused,
            or what it answered could not be read. Steps that were not asked about do not count.
    """

    def __init__(self, endpoint: Endpoint, settings: JudgeSettings, counts: JudgeCounts) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._counts = counts
        self._clock = asyncio.get_running_loop().time
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._cache = BoundedCache[bytes, Scores](settings.cached_answers)
        self._budget = CallBudget(settings.calls_per_minute, self._clock())
        self._breaker = CircuitBreaker(settings.breaker_failures, settings.breaker_pause_s)
        self._backoff = Backoff(settings.backoff_s, spread=(0.5, 1.5))
        self._paused_until = 0.0
        self.useless_calls = 0

    @property
    def calls_are_useless(self) -> bool:
        """Whether so many calls in a row have brought no scores that the next ones are not expected to."""
        return self.useless_calls >= self._settings.breaker_failures

    @property
    def endpoint_down(self) -> bool:
        """Whether the endpoint counts as down."""
        return self._breaker.open

    async def judge(self, request: JudgeRequest, deadline: float) -> tuple[Scores, Cause]:
        """The request's scores, and whether they come from a call or from the cache.

        Args:
            request: what to judge.
            deadline: by the event loop's clock; apart from scheduling, nothing is returned or raised later than that.

        Raises:
            NoScoresError: there are none; the cause says why.
        """
        data = quoted_data(request)
        mark = hashlib.blake2b(data, digest_size=16).digest()
        known = self._cache.get(mark)
        if known is not None:
            return known, "cached"
        scores = await self._insist(data, len(request.judged), deadline - self._settings.call_timeout_s)
        self._cache.put(mark, scores)
        return scores, "judged"

    async def _insist(self, data: bytes, count: int, latest_start: float) -> Scores:
        for attempt in range(self._settings.retries + 1):
            try:
                return self._read(await self._call(data, count, latest_start), count)
            except EndpointError as error:
                wait_s = self._backoff.pause_s(attempt + 1, random.random())
                wait_s = max(wait_s, self._paused_until - self._clock())
                last = attempt == self._settings.retries
                if last or not error.again or self._clock() + wait_s > latest_start:
                    raise
                self._counts.add("retries")
                await asyncio.sleep(wait_s)
        raise AssertionError  # the last attempt returns or raises

    def _read(self, body: bytes, count: int) -> Scores:
        try:
            scores = read_answer(body, count)
        except NoScoresError as error:
            self._count_useless(error.cause)
            raise
        if self.calls_are_useless:
            _log.info("judge_scores_again")
        self.useless_calls = 0
        return scores

    def _count_useless(self, cause: Cause) -> None:
        self.useless_calls += 1
        if self.useless_calls == self._settings.breaker_failures:
            _log.warning("judge_calls_are_useless in_a_row=%d cause=%s rubric=yes", self.useless_calls, cause)

    async def _call(self, data: bytes, count: int, latest_start: float) -> bytes:
        if self._breaker.blocks(self._clock()):
            raise _none(cause="endpoint_down")
        if self._paused_until > self._clock():
            raise _none(cause="rate_limited")
        try:
            async with asyncio.timeout_at(latest_start):
                await self._slots.acquire()
        except TimeoutError:
            raise _none(cause="timed_out") from None
        try:
            return await self._call_now(data, count)
        finally:
            self._slots.release()

    async def _call_now(self, data: bytes, count: int) -> bytes:
        now = self._clock()
        if self._paused_until > now:
            raise _none(cause="rate_limited")  # meanwhile another call was told to wait
        if not self._breaker.allows(now):
            raise _none(cause="endpoint_down")
        if not self._budget.take(now):
            raise _none(cause="over_budget")
        self._counts.add("calls")
        try:
            body = await self._endpoint.complete(messages(data, count))
        except EndpointError as error:
            self._note(error)
            raise
        if self._breaker.open:
            _log.info("judge_endpoint_back")
        self._breaker.succeeded()
        return body

    def _note(self, error: EndpointError) -> None:
        now = self._clock()
        self._count_useless(error.cause)
        if error.retry_after_s is not None:
            self._paused_until = now + min(error.retry_after_s, self._settings.longest_pause_s)
        if error.cause in ("failed", "timed_out"):
            was_open = self._breaker.open
            self._breaker.failed(now)
            if self._breaker.open and not was_open:
                _log.warning("judge_endpoint_down reason=%r rubric=yes", str(error))


def _none(*, cause: Cause) -> NoScoresError:
    return NoScoresError(cause=cause, message=f"No scores: {cause}.")
