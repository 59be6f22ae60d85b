"""A sink that marks in Grafana, as annotations with tags, rebound windows, stress breaches and violated contracts.

A window is marked when it opens and drawn to its re-entry when it closes. What Grafana holds already is found by the
tags, which carry an annotation's identity and whether it has closed: so reading the topics again after a restart
doubles nothing. All marks are by the broker's clock: a window's times are its agent's, less the skew that the agent's
latest status tells. Grafana keeps at most 100 characters of a tag and, unless set otherwise, 500 of all tags together.

`annotate_readings` is the annotator behind `springback annotate`. Run one for a Grafana: two at a time may both mark
what neither has seen yet.
"""

import asyncio
import html
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from springback.sinks.errors import GrafanaRefusedError, GrafanaUnreachableError, SinkUnavailableError
from springback.sinks.fleet.labels import clean_label_value
from springback.sinks.fleet.memory import BoundedMemory, fingerprint
from springback.sinks.grafana.connection import GrafanaConnection
from springback.sinks.sink import DeadLetter
from springback.sinks.sink_runner import ReadingTopics, ReadyObserver, SinkRunner
from springback.stream_processors.metrics.figure_words import dependable_text, stress_text, worst_level
from springback.stream_processors.resilience.readings import AgentStatus, FamilyReading, Reading, WindowReading
from springback.stream_processors.service.run import run_until

WINDOW_TAG = "springback-window"
BREACH_TAG = "springback-breach"
CONTRACT_TAG = "springback-contract"
OPEN_TAG = "open"
"""The tag of what has not ended yet, as far as is known."""
PROVISIONAL_TAG = "provisional"
"""The tag of a window whose family was still learning."""

_IDENTITY = "id:"
_REVISION = "revision:"
_LONGEST_TAG = 100
_LONGEST_TAGS = 480
_BAD_REQUEST, _NOT_FOUND = 400, 404
_MILLISECONDS_A_DAY = 86_400_000
_log = logging.getLogger(__name__)


class Mark(NamedTuple):
    """One annotation. Times are milliseconds since 1970.

    `start_ms` is None where only the end is known, `end_ms` while it is open. `agent` is the name, as the metrics write
    it, of the one by whose clock the times are; None where they are the broker's. A closing of a larger `revision`
    takes the place of an earlier one: the window has gone on after silence had closed it.
    """

    kind: str
    identity: str
    start_ms: int | None
    end_ms: int | None
    tags: tuple[str, ...]
    text: str
    agent: str | None = None
    revision: int = 0

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self.end_ms is not None

    def less(self, skew_s: float) -> "Mark":
        """The mark by the broker's clock, which the agent's is ahead of by so much."""
        ahead_ms = _milliseconds(skew_s)
        times = (None if time_ms is None else time_ms - ahead_ms for time_ms in (self.start_ms, self.end_ms))
        start_ms, end_ms = times
        return self._replace(start_ms=start_ms, end_ms=end_ms, agent=None)


def agent_tag(agent: str) -> str:
    """The tag of everything that one agent did: its id is written as the metrics write it.

    >>> agent_tag("robot-7")
    'agent:robot-7'
    """
    return f"agent:{clean_label_value(agent)}"


def window_mark(window: WindowReading) -> Mark:
    """A rebound window, from its departure to its re-entry, by its agent's clock."""
    traits = window.traits
    is_open = window.state == "open"
    tags = _tags(
        WINDOW_TAG,
        identity := _identity((window.key, window.number)),
        OPEN_TAG if is_open else f"state:{window.state}",
        agent_tag(window.key.agent),
        *([f"{_REVISION}{window.revision}"] if window.revision else []),
        *([PROVISIONAL_TAG] if window.provisional else []),
        f"cause:{window.cause}",
        *_group_tags(traits.family, traits.method, traits.version),
    )
    kind = "provisional rebound window" if window.provisional else "rebound window"
    told = f"{window.key.agent}: {kind if is_open else f'{kind}, {window.state}'} ({window.cause})"
    if not is_open:
        told += (
            f". Recovery cost {window.recovery_cost:.2f}, {window.length_steps} steps in {window.length_s:.1f} s, "
            f"{window.lost_cycles:.1f} cycles lost"
        )
    told += f". Task {traits.task}, episode {window.key.episode}, from step {window.departure_step}."
    start_ms = _milliseconds(window.departure_time_s)
    end_ms = None if is_open else max(start_ms, _milliseconds(window.reentry_time_s))
    agent = clean_label_value(window.key.agent)
    return Mark(WINDOW_TAG, identity, start_ms, end_ms, tags, _plain(told), agent, window.revision)


def breach_mark(family: FamilyReading) -> Mark | None:
    """The latest stress breach of a family, method and version, which begins or ends with the reading; None without."""
    live, dependable = stress_text(family.live_stress), dependable_text(family)
    begun = f"in breach at live stress {live}: a level at or below it is broken. Dependable capacity: {dependable}."
    return _family_mark(BREACH_TAG, family, family.breaches, family.in_breach, begun, "stress breach")


def contract_mark(family: FamilyReading) -> Mark | None:
    """The latest time that its contract came to be violated: that begins or ends with the reading. None without any."""
    worst = worst_level(family)
    begun = "contract violated." if worst is None else f"contract violated: {worst.sentence}"
    return _family_mark(
        CONTRACT_TAG,
        family,
        family.contract_violations,
        family.contract_violated,
        begun,
        "violation of the contract",
    )


def _family_mark(kind: str, family: FamilyReading, times: int, lasts: bool, begun: str, what: str) -> Mark | None:
    if not times:
        return None
    name = " / ".join(family.identity)
    tags = _tags(
        kind,
        # Without the kind, as Grafana has them from before there were others.
        identity := _identity((*family.identity, times) if kind == BREACH_TAG else (kind, *family.identity, times)),
        OPEN_TAG if lasts else "state:over",
        *_group_tags(*family.identity),
    )
    now_ms = _milliseconds(family.updated_s)
    start_ms, end_ms = (now_ms, None) if lasts else (None, now_ms)
    told = begun if lasts else f"{what} {times} is over."
    return Mark(kind, identity, start_ms, end_ms, tags, _plain(f"{name}: {told}"))


def identity_of(tags: Iterable[str]) -> str | None:
    """The identity among an annotation's tags; None where it is none of ours."""
    return next((tag for tag in tags if tag.startswith(_IDENTITY)), None)


def _revision_of(tags: Iterable[str]) -> int:
    told = next((tag.removeprefix(_REVISION) for tag in tags if tag.startswith(_REVISION)), "")
    return int(told) if told.isdecimal() else 0


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


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _plain(text: str) -> str:
    """Grafana shows an annotation's text as HTML: what comes from outside stays text."""
    cleaned = "".join(character if character.isprintable() else " " for character in text)
    return html.escape(cleaned[:1000], quote=False)


class AnnotationBounds(NamedTuple):
    """What keeps the memory of the sink, and its load on Grafana, bounded.

    Attributes:
        history_s: what ended longer ago than this is not marked.
        rate_per_s: requests a second, in the long run.
        burst: requests at once.
        remembered: annotations remembered, some 200 bytes each; those beyond are asked for when they are met again.
            As many agents' clocks.
    """

    history_s: float = 86_400.0
    rate_per_s: float = 10.0
    burst: int = 50
    remembered: int = 20_000


class _Known(NamedTuple):
    annotation: int
    closed: bool
    revision: int = 0

    def lacks(self, mark: Mark) -> bool:
        """Whether the mark's end is news."""
        return mark.closed and (not self.closed or mark.revision > self.revision)


class GrafanaAnnotationsSink:
    """Windows, breaches and violated contracts as annotations. What is written waits for `flush`, which asks Grafana.

    Args:
        grafana: where the marks go.
        bounds: how far back, and how many at a time.
        clock: seconds since 1970.
        monotonic: seconds that never go back, for the rate.
    """

    def __init__(
        self,
        grafana: GrafanaConnection,
        *,
        bounds: AnnotationBounds | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._grafana = grafana
        self._bounds = bounds or AnnotationBounds()
        self._clock = clock
        self._monotonic = monotonic
        self._allowed = float(self._bounds.burst)
        self._allowed_at = monotonic()
        self._pending: dict[str, Mark] = {}
        self._known: BoundedMemory[_Known] = BoundedMemory(self._bounds.remembered)
        self._skews_s: BoundedMemory[float] = BoundedMemory(self._bounds.remembered)
        # All annotations that end after this are known, but for those forgotten; None before Grafana was asked.
        self._known_since_ms: float | None = None
        # Whose creation had no answer: Grafana may have it all the same.
        self._unanswered: str | None = None

    @property
    def name(self) -> str:
        """What the sink is called."""
        return "grafana-annotations"

    def write(self, reading: Reading) -> None:
        """Notes a window, a breach or a violated contract, to be marked at the next flush; and by whose clock it is."""
        match reading:
            case AgentStatus():
                if math.isfinite(reading.clock_skew_s):
                    self._skews_s.put(fingerprint(clean_label_value(reading.agent)), reading.clock_skew_s)
            case WindowReading():
                self._note(window_mark(reading))
            case FamilyReading():
                self._note(breach_mark(reading))
                self._note(contract_mark(reading))

    def _note(self, mark: Mark | None) -> None:
        if mark is None or (self._skew_of(mark) is not None and self._is_history(mark)):
            return
        waiting = self._pending.get(mark.identity)
        if waiting is None:
            self._pending[mark.identity] = mark
        elif not waiting.closed or (mark.closed and mark.revision > waiting.revision):
            starts = [start for start in (waiting.start_ms, mark.start_ms) if start is not None]
            self._pending[mark.identity] = mark._replace(start_ms=min(starts, default=None))

    def _skew_of(self, mark: Mark) -> float | None:
        """How far the clock of its times is ahead of the broker's; None where that is not known yet."""
        return 0.0 if mark.agent is None else self._skews_s.get(fingerprint(mark.agent))

    def _is_history(self, mark: Mark) -> bool:
        settled = mark.less(self._skew_of(mark) or 0.0)
        return (settled.end_ms or settled.start_ms or 0) < 1000 * (self._clock() - self._bounds.history_s)

    def write_dead_letter(self, letter: DeadLetter) -> None:
        """Does nothing: a dead letter has no mark."""

    def flush(self) -> None:
        """Brings the waiting marks to Grafana.

        Raises:
            SinkUnavailableError: Grafana does not answer, or has been asked as often as it may be for now.
            GrafanaRefusedError: Grafana refuses the token, or will not let it annotate.
        """
        self._pending = {identity: mark for identity, mark in self._pending.items() if not self._is_history(mark)}
        if self._pending and self._known_since_ms is None:
            self._load()
        for identity, mark in list(self._pending.items()):
            self._deliver(mark.less(self._skew_of(mark) or 0.0))
            del self._pending[identity]

    def close(self) -> None:
        """Does nothing: what still waits is marked by the next run, which reads it again."""

    def _load(self) -> None:
        """Learns what Grafana holds from before."""
        now_ms = 1000 * self._clock()
        since_ms = now_ms - 2000 * self._bounds.history_s
        for kind in (WINDOW_TAG, BREACH_TAG, CONTRACT_TAG):
            self._find(since_ms, now_ms + _MILLISECONDS_A_DAY, (kind,), self._bounds.remembered)
        self._known_since_ms = since_ms

    def _deliver(self, mark: Mark) -> None:
        key = mark.identity.encode()
        known = self._known.get(key)
        if known is None and not self._is_surely_new(mark):
            self._find(0, 0, (mark.kind, mark.identity), 1)
            known = self._known.get(key)
        if known is None and mark.start_ms is None:
            self._known.put(key, _Known(0, closed=True))  # nothing can be drawn, and nobody need ask again
        elif known is None:
            self._create(mark)
        elif known.lacks(mark):
            self._draw_to_end(mark, known)

    def _is_surely_new(self, mark: Mark) -> bool:
        if self._known_since_ms is None or mark.start_ms is None or mark.identity == self._unanswered:
            return False
        # A full memory has forgotten some, or was not told of all that Grafana has.
        return len(self._known) < self._bounds.remembered and mark.start_ms >= self._known_since_ms

    def _find(self, from_ms: float, to_ms: float, tags: Sequence[str], limit: int) -> None:
        """Remembers the annotations that have all of these tags, which stand in the address as they are."""
        self._take_turn()
        found: list[dict[str, Any]] = self._grafana.call(
            "to look for annotations",
            lambda api: api.annotations.find_annotations(
                time_from=round(from_ms), time_to=round(to_ms), ann_type="annotation", tags=tags, limit=limit
            ),
        )
        for annotation in found:
            identity = identity_of(annotation.get("tags") or ())
            if identity is not None:
                tags_there = annotation["tags"]
                known = _Known(int(annotation["id"]), OPEN_TAG not in tags_there, _revision_of(tags_there))
                self._known.put(identity.encode(), known)

    def _create(self, mark: Mark) -> None:
        self._take_turn()
        try:
            made: dict[str, Any] = self._grafana.call(
                "to add an annotation",
                lambda api: api.annotations.add_annotation(
                    time_from=mark.start_ms, time_to=mark.end_ms, tags=list(mark.tags), text=mark.text
                ),
            )
        except GrafanaRefusedError as error:
            if error.status != _BAD_REQUEST:
                raise
            _log.warning("A mark is left out. %s", error)
            return
        except GrafanaUnreachableError:
            self._unanswered = mark.identity
            raise
        self._known.put(mark.identity.encode(), _Known(int(made["id"]), mark.closed, mark.revision))

    def _draw_to_end(self, mark: Mark, known: _Known) -> None:
        self._take_turn()
        try:
            self._grafana.call(
                "to change an annotation",
                lambda api: api.annotations.partial_update_annotation(
                    known.annotation, time_to=mark.end_ms, tags=list(mark.tags), text=mark.text
                ),
            )
        except GrafanaRefusedError as error:
            if error.status not in (_BAD_REQUEST, _NOT_FOUND):
                raise
            _log.warning("A mark stays open: was it deleted in Grafana? %s", error)
        self._known.put(mark.identity.encode(), _Known(known.annotation, closed=True, revision=mark.revision))

    def _take_turn(self) -> None:
        """Counts one request.

        Raises:
            SinkUnavailableError: there were as many as are allowed for now.
        """
        now = self._monotonic()
        refilled = self._allowed + (now - self._allowed_at) * self._bounds.rate_per_s
        self._allowed, self._allowed_at = min(float(self._bounds.burst), refilled), now
        if self._allowed < 1:
            message = (
                f"{len(self._pending)} marks wait, because Grafana is asked at most {self._bounds.rate_per_s:g} times "
                "a second"
            )
            raise SinkUnavailableError(message)
        self._allowed -= 1


async def annotate_readings(
    bootstrap: str,
    stop: asyncio.Event,
    grafana: GrafanaConnection,
    *,
    prefix: str = "",
    bounds: AnnotationBounds | None = None,
    ready_file: Path | None = None,
    on_ready: Callable[[str], None] | None = None,
    client_options: Mapping[str, Any] | None = None,
) -> None:
    """Annotates until `stop` is set. Waits for a broker or a Grafana that is away.

    Args:
        bootstrap: HOST:PORT of the broker, several with commas between.
        stop: ends it.
        grafana: where the marks go.
        prefix: what the topics' names begin with.
        bounds: how far back, and how fast.
        ready_file: written when the topics were read to their ends: `{"grafana": "http://…"}`.
        on_ready: called then with Grafana's address, and again when a broker that was away is caught up with.
        client_options: further options of aiokafka's clients (security).

    Raises:
        GrafanaRefusedError: Grafana refuses the token, or will not let it annotate.
    """
    observer = ReadyObserver("grafana", grafana.url, ready_file, on_ready)
    sink = GrafanaAnnotationsSink(grafana, bounds=bounds)
    topics = ReadingTopics.of_prefix(prefix)
    await run_until(stop, SinkRunner(bootstrap, topics, [sink], observer, client_options=client_options).run())
