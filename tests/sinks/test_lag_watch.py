"""The watch over how far workers are behind: what it tells when the broker answers, fails, hangs, and comes back."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]

from springback.sinks import broker_lag as lag_watch
from springback.sinks.broker_lag import watch_lag


class Observer:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Mapping[int, int] | str] = []

    def show_frames_behind(self, behind: Mapping[int, int]) -> None:
        self.told.append(behind)

    def show_broker_away(self) -> None:
        self.told.append("away")


class Lag:
    """Answers, or fails, as it is told; closed each time it failed."""

    def __init__(self, answers: list[Any]) -> None:
        self._answers = answers
        self.open = 0

    async def __aenter__(self) -> "Lag":
        self.open += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open -= 1

    async def read(self) -> Mapping[int, int]:
        answer = self._answers.pop(0)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        assert self.open == 1
        return dict(answer)


def test_whoever_looks_is_told_of_answers_and_of_their_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_watch, "_INTERVAL_S", 0.0)
    monkeypatch.setattr(lag_watch, "_TIMEOUT_S", 0.05)
    observer = Observer()
    lag = Lag([{0: 3}, KafkaConnectionError("away"), {0: 2}, None, {0: 1}, ZeroDivisionError("a fault of ours")])
    with pytest.raises(ZeroDivisionError):
        asyncio.run(watch_lag(observer, lambda: lag))  # type: ignore[arg-type, return-value]
    assert observer.told == [{0: 3}, "away", {0: 2}, "away", {0: 1}]
    assert lag.open == 0
