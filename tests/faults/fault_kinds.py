"""The faults of a run, each as a function that does it to the fleet and says when it was over.

A fault is over at the instant from which on nothing keeps the fleet from recovering: a process was killed, the broker
answers again, a stopped process goes on.
"""

import asyncio
import errno
import random
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from tests.faults.fleet_under_test import SESSION_S, FleetUnderTest, Service
from tests.faults.playing_emitter import SHAKE
from tests.faults.worker_process import write_offset

_SHAKEN_S = 8.0
_KILLS = 2


class FaultKind(NamedTuple):
    """One kind of fault.

    Attributes:
        name: as `--kinds` takes it.
        what: what it does, in words.
        workers: how many workers there are before it; a range that one is drawn from.
        strike: does it.
        broker: whether the broker goes away in it, so that workers may end with an error that says so.
        small_disk: whether the first producer's spool must be a small disk of its own.
    """

    name: str
    what: str
    workers: tuple[int, int]
    strike: Callable[[FleetUnderTest, random.Random], Awaitable[None]]
    broker: bool = False
    small_disk: bool = False


async def _worker_killed(fleet: FleetUnderTest, chance: random.Random) -> None:
    for _ in range(_KILLS):
        chance.choice(fleet.live_workers()).kill()
        await fleet.until_ready(fleet.start_worker(), "health")
        # With the partitions of the dead one waiting for its session's end or just taken over.
        await asyncio.sleep(chance.uniform(0.0, 1.5 * SESSION_S))
    chance.choice(fleet.live_workers()).kill()
    fleet.start_worker()


async def _one_of_three_killed(fleet: FleetUnderTest, chance: random.Random) -> None:
    chance.choice(fleet.live_workers()).kill()


async def _worker_joins_and_leaves(fleet: FleetUnderTest, chance: random.Random) -> None:
    joined = fleet.start_worker()
    await fleet.until_ready(joined, "health")
    await asyncio.sleep(chance.uniform(0.5, 4.0))
    await asyncio.to_thread(fleet.end_worker, chance.choice(fleet.live_workers()))


async def _broker_away(fleet: FleetUnderTest, chance: random.Random, away_s: float) -> None:
    end = fleet.broker.kill if chance.random() < 0.5 else fleet.broker.stop
    await asyncio.to_thread(end)
    await asyncio.sleep(away_s)
    await asyncio.to_thread(fleet.broker.start)


async def _broker_killed(fleet: FleetUnderTest, chance: random.Random) -> None:
    await asyncio.to_thread(fleet.broker.kill)
    await asyncio.to_thread(fleet.broker.start)


async def _broker_away_60(fleet: FleetUnderTest, chance: random.Random) -> None:
    await _broker_away(fleet, chance, 60.0)


async def _broker_away_180(fleet: FleetUnderTest, chance: random.Random) -> None:
    await _broker_away(fleet, chance, 180.0)


async def _producer_killed(fleet: FleetUnderTest, chance: random.Random) -> None:
    producer = chance.choice(list(fleet.emitters))
    fleet.emitters[producer].kill()
    await asyncio.sleep(chance.uniform(0.0, 2.0))
    fleet.start_emitter(producer)


async def _disk_full(fleet: FleetUnderTest, chance: random.Random) -> None:
    disk = next(iter(fleet.spools.values()))
    await asyncio.to_thread(fleet.broker.kill)
    filler = disk / "filler"
    await asyncio.to_thread(_fill, filler)
    await asyncio.sleep(chance.uniform(6.0, 12.0))
    if chance.random() < 0.5:
        filler.unlink()  # there is room again before the broker is back
        await asyncio.sleep(chance.uniform(1.0, 4.0))
    await asyncio.to_thread(fleet.broker.start)
    filler.unlink(missing_ok=True)


def _fill(filler: Path) -> None:
    """Writes a file until the disk has no room left."""
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


async def _exporter_killed(fleet: FleetUnderTest, chance: random.Random) -> None:
    assert fleet.exporter is not None
    fleet.exporter.kill()
    await fleet.until_ready(fleet.start_exporter(), "metrics")


async def _wire_shaken(fleet: FleetUnderTest, chance: random.Random) -> None:
    (fleet.directory / SHAKE).touch()
    await asyncio.sleep(_SHAKEN_S)
    (fleet.directory / SHAKE).unlink()


async def _worker_stopped(fleet: FleetUnderTest, chance: random.Random) -> None:
    stopped = chance.choice(fleet.live_workers())
    stopped.signal(signal.SIGSTOP)
    await asyncio.sleep(SESSION_S + chance.uniform(1.0, 4.0))
    stopped.signal(signal.SIGCONT)


async def _clock_set_back(fleet: FleetUnderTest, chance: random.Random) -> None:
    worker: Service = chance.choice(fleet.live_workers())
    write_offset(worker.clock_file, -chance.choice([5.0, 60.0, 3600.0, 86_400.0]))
    await asyncio.sleep(chance.uniform(2.0, 5.0))


FAULT_KINDS: tuple[FaultKind, ...] = (
    FaultKind("worker_killed", "kill -9 of a worker", (1, 2), _worker_killed),
    FaultKind("one_of_three_killed", "kill -9 of one of three workers", (3, 3), _one_of_three_killed),
    FaultKind("worker_joins_leaves", "a worker added and one removed", (1, 2), _worker_joins_and_leaves),
    FaultKind("worker_stopped", "SIGSTOP of a worker beyond its session", (1, 3), _worker_stopped),
    FaultKind("clock_set_back", "clock of a worker set back", (1, 2), _clock_set_back),
    FaultKind("broker_killed", "broker killed and restarted", (1, 3), _broker_killed, broker=True),
    FaultKind("broker_away_60", "broker away for 60 s", (1, 2), _broker_away_60, broker=True),
    FaultKind("broker_away_180", "broker away for 180 s", (1, 2), _broker_away_180, broker=True),
    FaultKind("producer_killed", "kill -9 of a producer's process", (1, 2), _producer_killed),
    FaultKind("disk_full", "disk full under a spool, broker away", (1, 2), _disk_full, broker=True, small_disk=True),
    FaultKind("wire_shaken", "frames doubled and reordered on the wire", (1, 2), _wire_shaken),
    FaultKind("exporter_killed", "kill -9 of the exporter", (1, 2), _exporter_killed),
)
KIND_NAMES = tuple(kind.name for kind in FAULT_KINDS)


def kinds_of(names: tuple[str, ...]) -> list[FaultKind]:
    """The kinds of these names, in the order of the table."""
    return [kind for kind in FAULT_KINDS if kind.name in names]
