"""A good recording, and mistakes planted into copies of it: one of each kind."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.suspicions.findings import Findings
from springback.stream_processors.suspicions.watcher import Message, SuspicionWatcher

RECORDING = Path(__file__).parents[3] / "producers/recordings/habitat_twins.frames.jsonl.gz"
EPISODES = 24
Doc = dict[str, Any]
Plant = Callable[[list[Doc]], "list[Doc] | None"]


@cache
def _good() -> list[Doc]:
    docs: list[Doc] = []
    episodes: set[str] = set()
    with gzip.open(RECORDING) as lines:
        for line in lines:
            doc = json.loads(line)
            episodes.add(doc["episodes"][0]["episode"])
            if len(episodes) > EPISODES:
                return docs
            docs.append(doc)
    raise AssertionError(len(episodes))


def good() -> list[Doc]:
    """A copy of the first 24 episodes of the recording that comes with springback, half of them references."""
    return copy.deepcopy(_good())


def found_in(docs: Iterable[Doc], *, config: ResilienceConfig | None = None, batch: int = 64) -> Findings:
    """What a check of a recording of these frames comes to."""
    watcher = SuspicionWatcher(config or ResilienceConfig())
    messages = [Message(json.dumps(doc).encode(), f"good.jsonl:{line}") for line, doc in enumerate(docs, 1)]
    for start in range(0, len(messages), batch):
        watcher.watch(messages[start : start + batch])
    return watcher.finish()


def found_live(
    docs: Iterable[Doc],
    *,
    keyed: bool = True,
    ahead_s: float = 0.0,
    catching_up_s: float = 0.0,
    times_as_fast: float = 1.0,
) -> Findings:
    """What a look at a topic that these frames come to, with the broker's clock so far ahead of the agents'.

    It is ahead by `catching_up_s` less with each frame, down to nothing. The agents' clocks run `times_as_fast` as it.
    """
    began_s: float | None = None
    watcher = SuspicionWatcher(ResilienceConfig(), live=True)
    for offset, doc in enumerate(docs):
        ahead_s = max(ahead_s - catching_up_s, 0.0) if catching_up_s else ahead_s
        times = doc["steps"].get("time_s") or [1_790_000_000.0]
        began_s = times[-1] if began_s is None else began_s
        brokers_s = began_s + (times[-1] - began_s) / times_as_fast + ahead_s
        key = doc["producer"].encode() if keyed else b""
        watcher.watch([Message(json.dumps(doc).encode(), f"steps 0 {offset}", brokers_s, key)])
    return watcher.finish()


def steps_of(docs: Iterable[Doc], column: str, change: Callable[[Any], Any]) -> None:
    """Changes each cell of a column."""
    for doc in docs:
        doc["steps"][column] = [change(cell) for cell in doc["steps"][column]]


def headers_of(docs: Iterable[Doc], change: Callable[[Doc], None]) -> None:
    """Changes each header."""
    for doc in docs:
        for header in doc["episodes"]:
            change(header)


def _renamed(docs: list[Doc], old: str, new: str) -> None:
    for doc in docs:
        doc["steps"][new] = doc["steps"].pop(old)


def misspelt_column(docs: list[Doc]) -> None:
    _renamed(docs, "planning_s", "planing_s")


def column_of_nothing_known(docs: list[Doc]) -> None:
    for doc in docs:
        doc["steps"]["battery"] = [0.5] * len(doc["steps"]["step"])


def misspelt_header(docs: list[Doc]) -> None:
    def change(header: Doc) -> None:
        header["refrence"] = header["reference"]

    headers_of(docs, change)


def misspelt_end(docs: list[Doc]) -> None:
    for doc in docs:
        for end in doc["ends"]:
            end["result"] = end["outcome"]


def misspelt_frame(docs: list[Doc]) -> None:
    for doc in docs:
        doc["lost_step"] = 0


def percent(docs: list[Doc]) -> None:
    steps_of(docs, "progress", lambda cell: 100.0 * cell)


def small_shares(docs: list[Doc]) -> None:
    steps_of(docs, "progress", lambda cell: cell / 100.0)


def nan_travel(docs: list[Doc]) -> None:
    docs[3]["steps"]["travel"][2] = float("nan")


def other_outcome(docs: list[Doc]) -> None:
    next(doc for doc in docs if doc["ends"])["ends"][0]["outcome"] = "done"


def progress_never_set(docs: list[Doc]) -> None:
    steps_of(docs, "progress", lambda cell: 0.0)


def progress_flag(docs: list[Doc]) -> None:
    for doc in docs:
        steps = doc["steps"]
        steps["progress"] = [0.0] * len(steps["step"])
        if doc["ends"]:
            steps["progress"][-1] = 1.0


def progress_remaining(docs: list[Doc]) -> None:
    steps_of(docs, "progress", lambda cell: 1.0 - cell)


def milliseconds(docs: list[Doc]) -> None:
    steps_of(docs, "time_s", lambda cell: 1000.0 * cell)


def since_boot(docs: list[Doc]) -> None:
    steps_of(docs, "time_s", lambda cell: cell - 1_790_000_000.0)


def years_ahead(docs: list[Doc]) -> None:
    for doc in docs:  # a recording's arrival is its last step's time, so one in the midst
        if len(doc["steps"]["time_s"]) > 2:
            doc["steps"]["time_s"][1] += 10 * 86_400.0


def swinging_clock(docs: list[Doc]) -> None:
    for doc in docs:
        times = doc["steps"]["time_s"]
        times[1::7] = [time - 3.0 for time in times[1::7]]


def cycle_milliseconds(docs: list[Doc]) -> None:
    steps_of(docs, "cycle_time_s", lambda cell: 1000.0 * cell)


def planning_milliseconds(docs: list[Doc]) -> None:
    steps_of(docs, "planning_s", lambda cell: 10_000.0 * cell)


def millimetres(docs: list[Doc]) -> None:
    steps_of(docs, "travel", lambda cell: 1000.0 * cell)


def odometer(docs: list[Doc]) -> None:
    total = 0.0
    for doc in docs:
        if doc["steps"]["step"][0] == 0:
            total = 0.0
        sums = []
        for cell in doc["steps"]["travel"]:
            total += cell
            sums.append(total)
        doc["steps"]["travel"] = sums


def constant_risk(docs: list[Doc]) -> None:
    steps_of(docs, "risk", lambda cell: 0.3)


def from_one(docs: list[Doc]) -> None:
    steps_of(docs, "step", lambda cell: cell + 1)


def ticks(docs: list[Doc]) -> None:
    steps_of(docs, "step", lambda cell: 10 * cell)


def lost_frames(docs: list[Doc]) -> list[Doc]:
    return [doc for number, doc in enumerate(docs) if doc["ends"] or doc["steps"]["step"][0] == 0 or number % 2]


def no_ends(docs: list[Doc]) -> None:
    for doc in docs:
        doc["ends"] = []


def no_references(docs: list[Doc]) -> None:
    headers_of(docs, lambda header: header.update(reference=False))


def two_references(docs: list[Doc]) -> None:
    first = list(dict.fromkeys(doc["episodes"][0]["episode"] for doc in docs if doc["episodes"][0]["reference"]))[:2]
    headers_of(docs, lambda header: header.update(reference=header["episode"] in first))


def all_references(docs: list[Doc]) -> None:
    headers_of(docs, lambda header: header.update(reference=True))


def family_of_each_run(docs: list[Doc]) -> None:
    headers_of(docs, lambda header: header.update(family=f"navigation {header['episode']}", reference=True, stress=0.0))
    headers_of(docs, lambda header: header.update(perturbation="none", attack="none"))


def text_as_mode(docs: list[Doc]) -> None:
    for doc in docs:
        doc["steps"]["mode"] = [
            f"go to {doc['episodes'][0]['episode']} by {step // 8}" for step in doc["steps"]["step"]
        ]


def other_rate(docs: list[Doc]) -> None:
    for doc in docs:
        if not doc["episodes"][0]["reference"]:
            steps = doc["steps"]
            steps["cycle_time_s"] = [4.0 * cell for cell in steps["cycle_time_s"]]
            del steps["time_s"]


def same_session_again(docs: list[Doc]) -> list[Doc]:
    again = copy.deepcopy(docs[:30])
    steps_of(again, "travel", lambda cell: cell + 0.01)
    steps_of(again, "time_s", lambda cell: cell + 100_000.0)
    return [*docs, *again]


def session_each_frame(docs: list[Doc]) -> None:
    for number, doc in enumerate(docs):
        doc["session"] = f"frame-{number}"


def shared_agent(docs: list[Doc]) -> list[Doc]:
    others = copy.deepcopy(docs[:40])
    for doc in others:
        doc["session"] = "another program"
    return [each for pair in zip(docs[:40], others, strict=True) for each in pair] + docs[40:]


def same_episode_id(docs: list[Doc]) -> None:
    headers_of(docs, lambda header: header.update(episode="run" if header["reference"] else header["episode"]))
    for number, doc in enumerate(docs):  # the second run goes further than the first
        doc["steps"]["step"] = [step + 200 * (number // 20) for step in doc["steps"]["step"]]


def disorder(docs: list[Doc]) -> list[Doc]:
    swapped = list(docs)
    for place in range(0, 20):
        here, after = swapped[place], swapped[place + 1]
        if here["episodes"] == after["episodes"] and not after["ends"]:
            swapped[place], swapped[place + 1] = after, here
            return swapped
    raise AssertionError


KINDS_PLANTED: dict[Plant, set[str]] = {
    misspelt_column: {"unknown_column"},
    column_of_nothing_known: {"unknown_column"},
    misspelt_header: {"unknown_field"},
    misspelt_end: {"unknown_field"},
    misspelt_frame: {"unknown_field"},
    percent: {"rejected_part"},
    nan_travel: {"rejected_part"},
    other_outcome: {"rejected_part"},
    small_shares: {"progress_low"},
    progress_never_set: {"progress_still"},
    progress_flag: {"progress_jumps"},
    progress_remaining: {"progress_falls"},
    milliseconds: {"time_unit"},
    since_boot: {"clock_unset"},
    years_ahead: {"clock_ahead"},
    swinging_clock: {"clock_backwards"},
    cycle_milliseconds: {"cycle_unit"},
    planning_milliseconds: {"duration_unit"},
    millimetres: {"travel_unit"},
    odometer: {"counted_up"},
    constant_risk: {"constant_column"},
    from_one: {"first_step_not_0"},
    ticks: {"step_numbers_skip"},
    lost_frames: {"step_gaps"},
    no_ends: {"no_ends"},
    no_references: {"no_references"},
    two_references: {"few_references"},
    all_references: {"stressed_reference"},
    family_of_each_run: {"one_episode_families"},
    text_as_mode: {"too_many_modes"},
    other_rate: {"other_rate"},
    same_session_again: {"session_reused"},
    session_each_frame: {"session_changing"},
    shared_agent: {"agent_shared"},
    same_episode_id: {"episode_id_reused", "session_reused"},
    disorder: {"steps_overtaken"},
}
"""What is planted, and what is to be found of it."""
