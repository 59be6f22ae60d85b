"""Readings of a made-up fleet, and a way to send them from tests whose own thread belongs to the browser."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]

from springback.sinks.sink_runner import ReadingTopics
from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    ChannelCosts,
    EpisodeSummary,
    EpisodeTraits,
    ExtensibilityRatios,
    FamilyReading,
    LevelState,
    OpenWindow,
    Reading,
    StressMargin,
    WindowReading,
    encode_reading,
)
from tests.reading_builders import agent_status, episode_status, episode_summary, family_reading, window_reading

DEADLINE_S = 30.0
T = TypeVar("T")


def traits(family: str = "navigation", method: str = "reflexion") -> EpisodeTraits:
    return EpisodeTraits(family=family, task="kitchen-041", method=method, version="1.4", stress=0.4)


def status(
    agent: str,
    step: int = 10,
    *,
    family: str = "navigation",
    seen_s: float | None = None,
    departed: int | None = None,
    cost: float = 0.0,
    provisional: bool = False,
    intensity: float | None = 0.5,
    ended: bool = False,
    **fields: Any,
) -> AgentStatus:
    """An agent that has taken so many steps; in a rebound window where it has departed."""
    seen_s = time.time() if seen_s is None else seen_s
    window = None
    if departed is not None:
        window = OpenWindow(
            number=0,
            cause="effort",
            departure_step=departed,
            departure_time_s=seen_s,
            recovery_cost=cost,
            provisional=provisional,
        )
    episode = episode_status(
        agent,
        traits=traits(family),
        step=step,
        steps=step + 1,
        progress=min(1.0, step / 60),
        propositions=min(1.0, step // 15 / 4),
        mode="navigate",
        intensity=intensity,
        intensity_by_channel=None if intensity is None else (intensity, 1.3 * intensity, 0.6 * intensity),
        window=window,
    )
    base: dict[str, Any] = {
        **{"seen_s": seen_s, "time_s": seen_s, "counts": AgentCounts(steps=step + 1)},
        "episodes": () if ended else (episode,),
    }
    return agent_status(agent, **(base | fields))


def window(agent: str, number: int = 0, **fields: Any) -> WindowReading:
    """A rebound window, recovered: from step 41 to step 52."""
    base: dict[str, Any] = {
        **{"traits": traits(), "number": number, "departure_step": 41, "alarm_step": 44, "reentry_step": 52},
        **{"departure_time_s": 1000.0, "reentry_time_s": 1012.0, "departure_mode": "navigate"},
        **{"departure_progress_bin": 4, "lost_cycles": 6.25, "length_steps": 12, "length_s": 12.0, "peak": 5.5},
        **{"recovery_cost": 2.75, "costs": ChannelCosts(cognitive=0.4, physical=2.25, debt=0.3)},
    }
    return window_reading(agent, **(base | fields))


def summary(agent: str, episode: str = "1", **fields: Any) -> EpisodeSummary:
    return episode_summary(
        agent,
        episode=episode,
        traits=traits(),
        steps=60,
        unscored_steps=0,
        recovery_cost=2.75,
        lost_cycles=6.25,
        window_steps=12,
        started_s=1.0,
        ended_s=61.0,
        **fields,
    )


def level(stress: float, margin: float, state: LevelState, violations: int, episodes: int = 12) -> StressMargin:
    """A level with the Wilson interval of its violations: of 0, 1, 3 and 8 of 12, and of 2 of 3."""
    low, high = {
        (0, 12): (0.0, 0.2425),
        (1, 12): (0.0149, 0.3539),
        (3, 12): (0.0889, 0.5323),
        (8, 12): (0.3906, 0.8619),
        (2, 3): (0.2077, 0.9385),
    }[violations, episodes]
    return StressMargin(
        stress=stress,
        episodes=episodes,
        margin=margin,
        favourable_margin=0.5 if state in ("kept", "undecided") else -0.2,
        state=state,
        violations=violations,
        violation_low=low,
        violation_high=high,
        ratios=ExtensibilityRatios(progress=1.5),
    )


def family(name: str = "navigation", sequence: int = 1, **fields: Any) -> FamilyReading:
    """A family whose levels are kept up to stress 0.4 and broken at 0.6; at 0.8 too few episodes are known."""
    base: dict[str, Any] = {
        **{"method": "reflexion", "version": "1.4", "episodes": 240, "censored": 0, "violations": 12},
        **{"success_rate": 0.97, "completion": 0.98, "mean_steps": 60.0, "recovery_cost_mean": 1.82, "beta": 4.48},
        **{"beta_p95": 3.1, "beta_by_kind": {}, "beta_unpaired": None, "pairs": 120, "tasks_let_go": 0},
        **{"unpaired": {}, "beta_difference": 0.9, "stability_repeatability": 0.5},
        **{"capacity": 0.4, "capacity_flag": "ok", "dependable": 0.4, "tested_up_to": 0.6, "first_breach": 0.6},
        **{"stress_state": "within", "breaches": 0, "contract_violated": True, "contract_violations": 1},
        **{"active_episodes": 3, "active_undeclared": 0, "undeclared": None, "navigation": {}},
        **{"bound_references": 40, "bound_references_needed": 20, "provisional_episodes": 0},
        "margins": (
            level(0.0, 0.5, "kept", 0),
            level(0.2, 0.4, "kept", 0),
            level(0.4, 0.25, "kept", 1),
            level(0.6, -0.25, "broken", 8),
            level(0.8, -0.6, "insufficient", 2, 3),
            StressMargin(stress=1.0, episodes=0, margin=None, state="insufficient", ratios=ExtensibilityRatios()),
        ),
    }
    return family_reading(name, sequence, **(base | fields))


NOTHING_KNOWN: dict[str, Any] = {
    **{"capacity": None, "capacity_flag": "insufficient", "dependable": None, "tested_up_to": None},
    **{"first_breach": None, "margins": (), "contract_violated": False, "contract_violations": 0},
}
"""A family of which too few episodes have ended."""


def moments() -> dict[str, FamilyReading]:
    """A family at four moments of a demo: learning, taught by clean episodes, while stress rises, and at the end."""
    unseen: dict[str, Any] = {"beta": None, "beta_p95": None, "pairs": 0, "beta_difference": None}
    unbroken: dict[str, Any] = {"contract_violated": False, "contract_violations": 0, "first_breach": None}
    margins = family().margins
    learning = family(
        **NOTHING_KNOWN,
        **unseen,
        bound_references=12,
        provisional_episodes=12,
        episodes=12,
        live_stress=0.0,
        stress_state="untested",
        stability_repeatability=None,
    )
    clean = family(
        **unbroken,
        **unseen,
        capacity=0.0,
        capacity_flag="open",
        dependable=0.0,
        tested_up_to=0.0,
        margins=margins[:1],
        live_stress=0.0,
        episodes=40,
    )
    rising = family(
        **unbroken,
        capacity=0.2,
        capacity_flag="open",
        dependable=0.2,
        tested_up_to=0.2,
        margins=(*margins[:2], level(0.4, -0.1, "insufficient", 2, 3)),
        live_stress=0.6,
        stress_state="untested",
        beta=39.3,
        beta_difference=7.86,
        stability_repeatability=8.0,
        unpaired={"no_twin": 4, "other_version": 3},
    )
    ended = family(live_stress=None, stress_state=None, active_episodes=0)
    return {"learning": learning, "clean": clean, "rising": rising, "ended": ended}


def run_apart(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on a thread of its own: Playwright's loop runs on that of the tests."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(make())).result(DEADLINE_S)


class ReadingSender:
    """Sends readings to the topics that workers write to, from a thread of its own."""

    def __init__(self, broker: str, prefix: str) -> None:
        topics = ReadingTopics.of_prefix(prefix)
        self._topics: dict[type[Any], str] = {
            AgentStatus: topics.statuses,
            WindowReading: topics.windows,
            EpisodeSummary: topics.summaries,
            FamilyReading: topics.families,
        }
        self._dead_letters = topics.dead_letters
        self._broker = broker
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def send(self, *readings: Reading) -> None:
        """Send them, and wait until the broker has them."""
        self._run(self._send([(self._topics[type(r)], encode_reading(r), ()) for r in readings]))

    def send_dead_letter(self, reason: str, offset: int) -> None:
        headers = (("reason", reason.encode()), ("offset", str(offset).encode()))
        self._run(self._send([(self._dead_letters, b"?", headers)]))

    async def _send(self, messages: Iterable[tuple[str, bytes, Any]]) -> None:
        async with AIOKafkaProducer(bootstrap_servers=self._broker, linger_ms=20) as producer:
            sent = [
                # Compacted topics want a key; one key, one partition: what is sent in an order comes in it.
                await producer.send(topic, value, key=b"fleet", headers=list(headers))
                for topic, value, headers in messages
            ]
            await asyncio.gather(*sent)

    def _run(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE_S)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
