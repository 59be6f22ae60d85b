"""What rebound windows and breaches look like as Grafana annotations: when, with which tags, and in which words.

The tags carry an annotation's identity and whether it has closed, so that after a restart Grafana alone tells what is
there already. Grafana keeps at most 100 characters of a tag and, unless it is set otherwise, 500 of all tags together.
"""

import html
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from springback.sinks.bounded_memory import fingerprint
from springback.sinks.label_values import clean_label_value
from springback.stream_processors.resilience.family_readings import FamilyReading
from springback.stream_processors.resilience.readings import WindowReading

WINDOW_TAG = "springback-window"
BREACH_TAG = "springback-breach"
OPEN_TAG = "open"
"""On what has not ended yet, as far as is known."""

_IDENTITY = "id:"
_LONGEST_TAG = 100
_LONGEST_TAGS = 480


class Mark(NamedTuple):
    """One annotation. Times are milliseconds since 1970.

    `start_ms` is None where only the end is known, `end_ms` while it is open.
    """

    kind: str
    identity: str
    start_ms: int | None
    end_ms: int | None
    tags: tuple[str, ...]
    text: str

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self.end_ms is not None


def agent_tag(agent: str) -> str:
    """The tag of everything that one agent did: its id is written as the metrics write it.

    >>> agent_tag("robot-7")
    'agent:robot-7'
    """
    return f"agent:{clean_label_value(agent)}"


def window_mark(window: WindowReading) -> Mark:
    """A rebound window, from its departure to its re-entry."""
    traits = window.traits
    is_open = window.state == "open"
    tags = _tags(
        WINDOW_TAG,
        identity := _identity((window.key, window.number)),
        OPEN_TAG if is_open else f"state:{window.state}",
        agent_tag(window.key.agent),
        f"cause:{window.cause}",
        *_group_tags(traits.family, traits.method, traits.version),
    )
    told = f"{window.key.agent}: {'rebound window' if is_open else f'rebound window, {window.state}'} ({window.cause})"
    if not is_open:
        told += (
            f". Recovery cost {window.recovery_cost:.2f}, {window.length_steps} steps in {window.length_s:.1f} s, "
            f"{window.lost_cycles:.1f} cycles lost"
        )
    told += f". Task {traits.task}, episode {window.key.episode}, from step {window.departure_step}."
    start_ms = _milliseconds(window.departure_time_s)
    end_ms = None if is_open else max(start_ms, _milliseconds(window.reentry_time_s))
    return Mark(WINDOW_TAG, identity, start_ms, end_ms, tags, _plain(told))


def breach_mark(family: FamilyReading) -> Mark | None:
    """The family's latest breach of its stress capacity: it begins or ends with the reading. None without any."""
    if not family.breaches:
        return None
    name = " / ".join((family.family, family.method, family.version))
    tags = _tags(
        BREACH_TAG,
        identity := _identity((*family.identity, family.breaches)),
        OPEN_TAG if family.in_breach else "state:over",
        *_group_tags(*family.identity),
    )
    if family.in_breach:
        told = f"{name}: live stress {_known(family.live_stress)} is beyond what holds ({_known(family.capacity)})."
    else:
        told = f"{name}: stress capacity breach {family.breaches} is over."
    now_ms = _milliseconds(family.updated_s)
    start_ms, end_ms = (now_ms, None) if family.in_breach else (None, now_ms)
    return Mark(BREACH_TAG, identity, start_ms, end_ms, tags, _plain(told))


def identity_of(tags: Iterable[str]) -> str | None:
    """The identity among an annotation's tags; None where it is none of ours."""
    return next((tag for tag in tags if tag.startswith(_IDENTITY)), None)


def _identity(parts: tuple[object, ...]) -> str:
    return _IDENTITY + fingerprint(parts).hex()


def _group_tags(family: str, method: str, version: str) -> tuple[str, ...]:
    return f"family:{family}", f"method:{method}", f"version:{version}"


def _tags(*tags: str) -> tuple[str, ...]:
    """As many of the tags as Grafana takes: the first ones matter most, and the text tells the rest."""
    kept: list[str] = []
    for tag in tags:
        cleaned = clean_label_value(tag)[:_LONGEST_TAG]
        if len(msgspec.json.encode([*kept, cleaned])) <= _LONGEST_TAGS:
            kept.append(cleaned)
    return tuple(kept)


def _known(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _plain(text: str) -> str:
    """Grafana shows an annotation's text as HTML: what comes from outside stays text."""
    cleaned = "".join(character if character.isprintable() else " " for character in text)
    return html.escape(cleaned[:1000], quote=False)
