"""What looks like a mistake of whoever sends, though a worker takes it in: the kinds of it, and what one frame shows.

Nothing here is refused for it. The gateway answers these signs as warnings, the worker counts them, and
`springback check` gathers them over many frames, where more can be told (`stream_processors.suspicions`). A false alarm
is the worst fault of such a list, so each kind says on how much evidence it speaks. All of it is ours.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from springback.producers.contract.codec import decode_document
from springback.producers.contract.columns import EARLIEST_TIME_S, LARGEST_LEAD_S, STEP_COLUMNS, YEAR_2100_S
from springback.producers.contract.fault_words import shown
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, NavigationOutcome, StepFrame
from springback.producers.errors import UnreadableFrameError

Floats = npt.NDArray[np.float64]


class SuspicionKind(NamedTuple):
    """A kind of mistake.

    Attributes:
        name: snake_case, fit for a metric's label.
        damage: what goes wrong because of it, without another word.
        advice: what to do.
        least: of so many signs a report over many frames speaks.
        evidence: what a sign is, and how much it takes.
    """

    name: str
    damage: str
    advice: str
    least: int
    evidence: str


_KINDS: Final = (
    SuspicionKind(
        "unreadable_part", "nothing of it is used",
        "send what `springback schema` describes; copy a file again that is cut or damaged; for recordings of other "
        "kinds, see the mapping", 1,
        "one message, or part of a recording, that holds nothing that can be read",
    ),
    SuspicionKind(
        "wrong_key", "the frame goes to the dead letters, whole",
        "send each frame under its producer's id as the message's key, in UTF-8", 1, "one message",
    ),
    SuspicionKind(
        "agent_shared", "what one of the two programs sends goes to the dead letters",
        "give two programs two agent names", 1, "steps of a session that goes on after another of the agent has begun",
    ),
    SuspicionKind(
        "session_reused", "the steps are taken for copies or go to the dead letters",
        "choose a new session at every start of the program, and a new episode id for each run", 3,
        "three steps that came before with other content",
    ),
    SuspicionKind(
        "session_changing", "each change of session aborts the episode: it never ends, and has no cost",
        "choose the session once, at the start of the program, and not for each frame or episode", 3,
        "an episode that goes on in another session, three times",
    ),
    SuspicionKind(
        "episode_id_reused", "the steps go to the dead letters",
        "give each run an episode id of its own", 3, "three steps of an episode that has ended",
    ),
    SuspicionKind(
        "steps_overtaken", "the steps go to the dead letters",
        "send the frames of one producer in order, under one key, and number the steps upwards", 3,
        "three steps that came after a later one of their episode, or had its number",
    ),
    SuspicionKind(
        "rejected_part", "it is left out",
        "see what was expected", 1, "one value, row, header or end",
    ),
    SuspicionKind(
        "unknown_column", "it is ignored: what the column holds plays no part",
        "use the name of the contract (`springback schema`); what is to be ignored may begin with _ or x_", 1,
        "one frame",
    ),
    SuspicionKind(
        "unknown_field", "it is ignored, and the default stands in its place",
        "use the name of the contract (`springback schema`); what is to be ignored may begin with _ or x_", 1,
        "one frame",
    ),
    SuspicionKind(
        "first_step_not_0", "the episodes count as joined in their midst: references teach nothing",
        "number the steps of each episode from 0", 3,
        "three episodes that begin at the same later step, four of five of their group; live not an agent's first",
    ),
    SuspicionKind(
        "step_numbers_skip", "the steps between are taken for lost, and the course cannot be judged across them",
        "number decision cycles, not ticks of a simulator or messages: each step is one more than the last", 1,
        "an episode of 21 or more steps whose numbers all lie a multiple apart",
    ),
    SuspicionKind(
        "no_ends", "the episodes count as aborted: they are in no mean, and references teach nothing",
        "say at the end of each episode how it ended (`ends`; `episode.end`)", 3,
        "three episodes that an agent has left for another, and not one end of that agent",
    ),
    SuspicionKind(
        "progress_still", "nothing is known of the course: no lost progress, no delay",
        "look at the field or hook that progress is read from", 3,
        "three episodes of ten or more steps, more than half of their group, or one of 50 that is alone; "
        "live whole ones; not where progress rises in the group's successes",
    ),
    SuspicionKind(
        "progress_falls", "every step counts as lost progress",
        "progress rises from 0 to 1: send 1 minus the share that remains", 3,
        "three successes of ten or more steps that end half or more below their beginning, more than half of all",
    ),
    SuspicionKind(
        "progress_jumps", "progress is a flag rather than a share: nothing is known of the course",
        "send how much of the task is done after each step", 3,
        "three successes of ten or more steps in which it takes two values, 0.9 or more apart, four of five of all",
    ),
    SuspicionKind(
        "progress_low", "the work that is left is taken for much larger than it is",
        "progress is 1 when the task is done; a share out of 100 or of a larger whole is to be scaled", 5,
        "five successes that end below 0.2, four of five of all",
    ),
    SuspicionKind(
        "time_unit", "the times are replaced by the broker's",
        "send time_s in seconds since 1970, UTC", 3, "three steps",
    ),
    SuspicionKind(
        "clock_unset", "the times are replaced by the broker's",
        "set the clock, or leave time_s out", 3, "three steps with a time before 2001",
    ),
    SuspicionKind(
        "clock_ahead", "more than a day ahead, times are replaced by the broker's; else durations are wrong",
        "synchronise the clock (NTP)", 3, "three steps a day ahead; live also three frames a minute ahead",
    ),
    SuspicionKind(
        "clock_zone", "delays and times on the page are wrong by hours",
        "send time_s in UTC, not in local time", 5,
        "live: five frames, each apart from the broker's clock by the same half hours, to 30 seconds, "
        "four of five of the agent's",
    ),
    SuspicionKind(
        "clock_backwards", "the cycle times there are unknown",
        "take time_s from a clock that only rises, once for each step", 3,
        "three times in one agent that a step is more than 0.05 s earlier than the one before",
    ),
    SuspicionKind(
        "cycle_unit", "costs count the cycles as interruptions, and rates are compared wrongly",
        "send cycle_time_s in seconds", 1, "20 steps whose cycle times are a thousand (million) times their distance",
    ),
    SuspicionKind(
        "duration_unit", "cognitive effort is measured in the wrong unit, and does not add to other producers'",
        "send planning_s and perception_s in seconds", 1,
        "20 steps with planning or perception 50 times longer than the cycle",
    ),
    SuspicionKind(
        "travel_unit", "physical effort is measured in the wrong unit, and does not add to other producers'",
        "send travel in metres, and for each step what it has covered", 1,
        "20 moving steps faster than 150 m/s; or three episodes whose steps come to 30 times their path, or a 30th",
    ),
    SuspicionKind(
        "counted_up", "each step counts all before it again",
        "send for each step what it has added, not the total so far", 2,
        "two episodes of 20 or more steps in which a load never falls, and rises in a third of the steps",
    ),
    SuspicionKind(
        "no_references", "every step is unscored: no windows, no costs",
        "mark clean runs as reference (true, not a text), give --baseline, or set resilience.learn_from",
        1, "a family with ended episodes in recordings, without one reference that succeeds",
    ),
    SuspicionKind(
        "few_references", "one or two episodes say little of what is normal: costs are excess over next to nothing",
        "record more clean runs, or give --baseline", 1,
        "a family with ended episodes in recordings, and one or two references that succeed",
    ),
    SuspicionKind(
        "stressed_reference", "the disturbance is learned as normal",
        "mark only clean runs as reference", 1, "a reference that declares stress, a perturbation or an attack",
    ),
    SuspicionKind(
        "one_episode_families", "each is a kind of task of its own, and learns nothing from the others",
        "a family is a kind of task; put what is particular to a run into task or episode", 1,
        "eight families of one episode each, more than half of all families",
    ),
    SuspicionKind(
        "too_many_modes", "stages of the task are never met twice: steps are compared with the family's mean alone",
        "mode is one of a few words; put free text into action", 1,
        "a family with 30 or more modes that have fewer than ten steps each, on average",
    ),
    SuspicionKind(
        "other_rate", "the episodes are unscored",
        'give them a family and references of their own, or set resilience.rate_ratio = "any"', 1,
        "the episodes of an agent decide more than `rate_ratio` times more, or less, often than the references",
    ),
    SuspicionKind(
        "step_gaps", "the course cannot be judged across what is missing",
        "look for frames that are lost on their way; a spool keeps them", 2,
        "two episodes of a group, with 20 or more missing steps, one in fifty of all",
    ),
    SuspicionKind(
        "constant_column", "it tells nothing, and effort in it is not seen",
        "look at the field or hook that it is read from; a signal that is not measured is left out", 1,
        "200 steps in three or more episodes with one value, not 0; durations and travel are only noted (simulators)",
    ),
)  # fmt: skip

KINDS: Final[Mapping[str, SuspicionKind]] = {kind.name: kind for kind in _KINDS}
"""Every kind by its name, the most damaging first."""

UNIT_STEPS: Final = 20
"""Steps from which on units are told by medians."""
LONGEST_CYCLES: Final = 50.0
"""Planning or perception of so many cycles within one is in another unit."""
FASTEST_M_S: Final = 150.0
_NEAR: Final = 0.65
_COLUMNS: Final = tuple(spec.name for spec in STEP_COLUMNS)
_FRAME_FIELDS: Final = StepFrame.__struct_fields__
_THOUSANDS: Final = {1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}
_MOST_NAMES: Final = 8
_MOST_TEXT: Final = 64


class Sign(NamedTuple):
    """One sign of a mistake.

    Attributes:
        kind: of `KINDS`.
        subject: what it is about: a column, an agent, a family. Signs of one kind and subject count together.
        arrived: what arrived.
        expected: what was expected.
    """

    kind: str
    subject: str
    arrived: str
    expected: str

    @property
    def text(self) -> str:
        """The sign in words, with what to do."""
        kind = KINDS[self.kind]
        return f"{self.subject}: {self.arrived}; expected {self.expected}; {kind.damage}. {kind.advice}"


def quoted(text: object) -> str:
    """A text from outside, in quotes and cut to length."""
    return repr(str(shown(text))[:_MOST_TEXT])


def signs_of_frame(data: bytes, frame: StepFrame) -> list[Sign]:
    """What one message shows by itself; nothing is raised, whatever the bytes are.

    Args:
        data: the message.
        frame: what was decoded of it.

    >>> from springback.producers.contract.codec import decode_frame
    >>> frame = b'{"schema_version":1,"producer":"r7","session":"a","episodes":[{"agent":"r7","episode":"1",'
    >>> frame += b'"family":"f"}],"steps":{"episode":[0],"step":[0],"progress":[0.1],"planing_s":[1]}}'
    >>> [(sign.kind, sign.subject, sign.expected) for sign in signs_of_frame(frame, decode_frame(frame))]
    [('unknown_column', "column 'planing_s'", 'planning_s')]
    """
    return [*unknown_names(data), *contradictions(frame.episodes), *_times_of(frame), *units_of_frame(frame)]


def unknown_names(data: bytes) -> list[Sign]:
    """The columns and fields of a message that the contract does not have, with the nearest that it has.

    Names that begin with `_` or `x_` are passed over: whoever chose them knows that they are extra.
    """
    try:
        document = decode_document(data)
    except UnreadableFrameError:
        return []
    if not isinstance(document, Mapping):
        return []
    found = dict.fromkeys(_unknown(document, _FRAME_FIELDS, "unknown_field", "field of the frame"))
    found |= dict.fromkeys(_unknown(document.get("steps"), _COLUMNS, "unknown_column", "column"))
    for part, struct, what in (
        ("episodes", EpisodeHeader, "field of an episode's header"),
        ("ends", EpisodeEnd, "field of an end"),
    ):
        entries = document.get(part)
        for entry in entries if isinstance(entries, list) else ():
            found |= dict.fromkeys(_unknown(entry, struct.__struct_fields__, "unknown_field", what))
            if part == "ends" and isinstance(entry, Mapping):
                known = NavigationOutcome.__struct_fields__
                navigation = entry.get("navigation")
                found |= dict.fromkeys(_unknown(navigation, known, "unknown_field", "field of an end's navigation"))
            if len(found) > _MOST_NAMES:
                break
    return list(found)[:_MOST_NAMES]


def _unknown(part: object, known: tuple[str, ...], kind: str, what: str) -> list[Sign]:
    if not isinstance(part, Mapping) or part.keys() <= set(known):
        return []
    given = [name for name in part if name not in known][:_MOST_NAMES]
    return [
        Sign(kind, f"{what} {quoted(name)}", "it is not in the contract", _expected(str(name)[:_MOST_TEXT], known))
        for name in given
        if not str(name).startswith(("_", "x_", "x-"))
    ]


@lru_cache(maxsize=1024)
def _expected(name: str, known: tuple[str, ...]) -> str:
    nearest = difflib.get_close_matches(name.lower().replace("-", "_").replace(" ", "_"), known, 1, _NEAR)
    return nearest[0] if nearest else "one of its names (none is like it)"


def contradictions(headers: Iterable[EpisodeHeader]) -> list[Sign]:
    """What headers say that cannot both be so."""
    found = []
    for header in headers:
        if not header.reference:
            continue
        said = [f"stress {header.stress:g}"] if header.stress else []
        said += [
            f"{name} {value!r}" for name in ("perturbation", "attack") if (value := getattr(header, name)) != "none"
        ]
        if said:
            agent = f"family {quoted(header.family)}"
            arrived = f"episode {quoted(header.episode)} is a reference with {', '.join(said)[:160]}"
            found.append(Sign("stressed_reference", agent, arrived, "references that are undisturbed"))
    return found


def wrong_time(time_s: float, now_s: Optional[float] = None) -> tuple[str, str] | None:
    """The kind of mistake that an instant shows that a worker does not believe, and what it looks like; None if none.

    Args:
        time_s: what was sent as seconds since 1970.
        now_s: the broker's time; without it only times after 2100 are called wrong.

    >>> wrong_time(1_790_000_000_000.0)
    ('time_unit', '1.79e+12, which would be milliseconds')
    >>> wrong_time(41.5), wrong_time(1_790_000_000.0)
    (('clock_unset', '41.5, which is in 1970'), None)
    """
    latest_s = YEAR_2100_S if now_s is None else now_s + LARGEST_LEAD_S
    if not math.isfinite(time_s) or EARLIEST_TIME_S <= time_s <= latest_s:
        return None
    if time_s < EARLIEST_TIME_S:
        year = f"{1970 + int(time_s // 31_556_952)}" if time_s >= 0 else "before 1970"
        return "clock_unset", f"{time_s:g}, which is {'in ' if time_s >= 0 else ''}{year}"
    for factor, unit in _THOUSANDS.items():
        if EARLIEST_TIME_S <= time_s / factor <= YEAR_2100_S:
            return "time_unit", f"{time_s:.3g}, which would be {unit}"
    return "clock_ahead", f"{time_s:.0f}, more than a day ahead"


def unit_signs(subject: str, gap_s: Floats, columns: Mapping[str, Floats]) -> Iterable[Sign]:
    """Units that cannot be right, by medians over the steps of one episode.

    Args:
        subject: whose steps they are.
        gap_s: the time from the step before, NaN where unknown (n,).
        columns: `cycle_time_s`, `planning_s`, `perception_s` and `travel`, those that were given (n,) each.
    """
    cycle_s = columns.get("cycle_time_s")
    with np.errstate(invalid="ignore", divide="ignore"):
        if cycle_s is not None:
            ratio = _median((cycle_s / gap_s)[gap_s > 0.0])
            for factor, unit in _THOUSANDS.items():
                if 0.5 * factor <= ratio <= 1.1 * factor:
                    arrived = f"cycles are {ratio:.4g} times longer than the time between steps: {unit}?"
                    yield Sign("cycle_unit", subject, f"cycle_time_s: {arrived}", "seconds")
                    cycle_s = None
                    break
        length_s = gap_s if cycle_s is None else np.fmax(gap_s, cycle_s)
        for name in ("planning_s", "perception_s"):
            column = columns.get(name)
            if column is None:
                continue
            times = _median((column / length_s)[(column > 0.0) & (length_s > 0.0)])
            if times >= LONGEST_CYCLES:
                arrived = f"{name}: {times:.4g} times longer than the cycle that it is part of"
                yield Sign("duration_unit", subject, arrived, "seconds")
        travel = columns.get("travel")
        if travel is not None:
            speed = _median((travel / length_s)[(travel > 0.0) & (length_s > 0.0)])
            if speed >= FASTEST_M_S and float(np.median(travel[travel > 0.0])) >= 1.0:
                yield Sign("travel_unit", subject, f"travel: {speed:.4g} m/s", "metres covered by each step")


def _median(values: Floats) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) >= UNIT_STEPS else math.nan


def _times_of(frame: StepFrame) -> list[Sign]:
    times = frame.numbers("time_s")
    if times is None or not len(times):
        return []
    found = wrong_time(float(times[-1]))
    return [] if found is None else [Sign(found[0], "time_s", found[1], "seconds since 1970, UTC")]


def units_of_frame(frame: StepFrame) -> list[Sign]:
    """The units of the first episode of a frame that cannot be right, where it has enough steps there."""
    episode = frame.numbers("episode")
    time_s = frame.numbers("time_s")
    if episode is None or len(episode) < UNIT_STEPS:
        return []
    rows = np.flatnonzero(episode == episode[0])
    step: Any = frame.steps["step"]
    step = step[rows]
    gap_s = np.full(len(rows), np.nan)
    if time_s is not None:
        follows = np.diff(step) == 1
        gap_s[1:][follows] = np.diff(time_s[rows])[follows]
    given: dict[str, Floats] = {}
    for name in ("cycle_time_s", "planning_s", "perception_s", "travel"):
        column = frame.numbers(name)
        if column is not None:
            given[name] = column[rows]
    headers = frame.episodes
    agent = headers[int(episode[0])].agent if 0 <= int(episode[0]) < len(headers) else ""
    return list(unit_signs(f"agent {quoted(agent)}", gap_s, given))
