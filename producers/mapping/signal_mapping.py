"""The signal mapping, one TOML file for ROS, MQTT and recordings: which field of which topic is which signal.

The grammar is in the README of `producers`, with a worked mapping for each source; `mappings/` holds those that come
with springback, found by name. A mapping only declares; nothing in it is run. Every source turns what it hears or reads
into `TimedMessage`s, and the mapping says what they mean.

>>> mapping = parse_mapping('''
... agent = "robot-7"
... [header]
... family = "navigation"
... [step]
... trigger = "feedback"
... [signals]
... progress = { topic = "feedback", field = "distance_remaining", transform = "progress_from_remaining" }
... [episode]
... gap_s = 30
... ''', "mine.toml")
>>> mapping.topics
('feedback',)
"""

from __future__ import annotations

import importlib.resources
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from springback.producers.contract.frame import EpisodeHeader, NavigationOutcome
from springback.producers.emitter.signal_checks import SIGNALS
from springback.producers.errors import MappingError
from springback.producers.mapping.conditions import Condition, Conditions
from springback.producers.mapping.events import EventRule, read_events
from springback.producers.mapping.newest import Look, divisors_of
from springback.producers.mapping.paths import FieldPath, TopicPattern
from springback.producers.mapping.rules import OUTCOMES, Group, ValueRule, read_rule
from springback.producers.mapping.toml_section import TomlSection

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TimeChoice = Literal["header", "receive"]
EventKind = Literal["begin", "end", "reopen", "session_end"]
"""What an event does to the episode, or to the session."""
UNITS_S: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
DEFAULT_STALE_S: Final = 10.0
_HEADER_FIELDS: Final = tuple(name for name in EpisodeHeader.__struct_fields__ if name not in ("agent", "episode"))


class TimedMessage(NamedTuple):
    """A message of any source: what every bridge and every reader of recordings gives.

    Attributes:
        topic: its topic; empty for the rows of a table.
        receive_s: when it arrived or was recorded, s UTC epoch (the row's number for a table without times).
        value: what it says: nested dicts, lists and scalars, or an object with attributes, as ROS messages are.
        retained: whether it is an old message that a broker kept.
        redelivered: whether it may have been delivered before.
    """

    topic: str
    receive_s: float
    value: Any
    retained: bool = False
    redelivered: bool = False


@dataclass(frozen=True)
class StepRule:
    """What makes a step: a message of one of the `triggers`, or else the clock, every `cycle_s` seconds.

    A value that is older than `stale_s` is ignored.
    """

    triggers: tuple[TopicPattern, ...]
    cycle_s: float | None
    stale_s: float


@dataclass(frozen=True)
class EpisodeRule:
    """When an episode begins and ends.

    Attributes:
        id: its id; without sources, episodes are counted. When the id changes, another episode has begun.
        begin: events that begin one; without any, the first useful message does.
        end: events that end one, with its outcome.
        joined: what shows at an episode's first step that its beginning was not seen; None for nothing.
        reopen: events that show that the one that was ended goes on, under the same id: another one of its task begins.
        gap_s: a time without a step, s, after which it ends.
        whole: whether it ends only with the recording or the session.
        outcome: how it ended, where no end event says so.
        navigation: fields of `NavigationOutcome`, as they are when it ends.
    """

    id: ValueRule
    begin: tuple[EventRule, ...]
    end: tuple[EventRule, ...]
    reopen: tuple[EventRule, ...]
    joined: Condition | None
    gap_s: float | None
    whole: bool
    outcome: ValueRule
    navigation: dict[str, ValueRule]


@dataclass(frozen=True)
class SignalMapping:
    """A whole mapping.

    Attributes:
        file: where it was read from, for messages.
        agent: whose message it is; this is the producer's id too.
        time: by which clock steps are timed; `receive` wherever a message has no header time.
        header_time, header_unit_s: where a message has its own time, and the unit of a plain number there, s.
        reorder_s: recorded messages that are at most this late are put in order; a topic that goes back by more, or
            lags behind the others by five times that, shows that time has jumped back.
        message_id: the field by which a message is told from its repetition.
        record_topic: where the rows of a table have their topic.
        header: what an episode says of itself, by field of `EpisodeHeader`.
        step, signals, episode: the rules for them.
        session_end: events that end the session: a last will, a shutdown.
        sources: the tables `[source.NAME]`, for the source of that name to check.
    """

    file: str
    agent: ValueRule
    time: TimeChoice
    header_time: FieldPath
    header_unit_s: float
    reorder_s: float
    message_id: FieldPath | None
    record_topic: FieldPath | None
    header: dict[str, ValueRule]
    step: StepRule
    signals: dict[str, ValueRule]
    episode: EpisodeRule
    session_end: tuple[EventRule, ...]
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def events(self) -> dict[EventKind, tuple[EventRule, ...]]:
        """Its events by what they do."""
        episode = self.episode
        return {
            "begin": episode.begin,
            "end": episode.end,
            "reopen": episode.reopen,
            "session_end": self.session_end,
        }

    @property
    def patterns(self) -> tuple[TopicPattern, ...]:
        """The topic patterns that it reads, each once; rules for any topic add none."""
        return tuple({pattern.text: pattern for pattern in self._patterns() if pattern is not None}.values())

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to subscribe to, with MQTT's wildcards."""
        return tuple(dict.fromkeys(pattern.subscription for pattern in self.patterns))

    @property
    def columns(self) -> frozenset[str] | None:
        """The top-level fields of a message that it reads; None where it reads whole messages."""
        paths = [source.field for rule in self.value_rules() for source in rule.sources]
        paths += [event.look.field for event in self._events() if event.look is not None]
        paths += [look.field for look in self.looks()]
        paths += [path for path in (self.header_time, self.message_id, self.record_topic) if path is not None]
        tops = [path.top for path in paths]
        return None if None in tops else frozenset(top for top in tops if top is not None)

    def reads(self, topic: str) -> bool:
        """Whether any rule is for messages of this topic."""
        return any(pattern is None or pattern.match(topic) is not None for pattern in self._patterns())

    def value_rules(self) -> Iterator[ValueRule]:
        """Every value that it reads."""
        yield self.agent
        yield from self.header.values()
        yield from self.signals.values()
        yield self.episode.id
        yield self.episode.outcome
        yield from self.episode.navigation.values()

    def looks(self) -> tuple[Look, ...]:
        """The places in messages that its conditions and divisors look at, each once, divisors before the divided."""
        return tuple(dict.fromkeys(self._looks()))

    def _looks(self) -> Iterator[Look]:
        for rule in self.value_rules():
            for source in rule.sources:
                yield from divisors_of(source.transforms)
                yield from source.guard.looks()
        for event in self._events():
            yield from event.looks
        if self.episode.joined is not None:
            yield from self.episode.joined.looks()

    def _patterns(self) -> Iterator[TopicPattern | None]:
        for rule in self.value_rules():
            yield from (source.topic for source in rule.sources)
        yield from self.step.triggers
        yield from (event.topic for event in self._events() if not event.of_conditions)
        yield from (look.topic for look in self.looks())

    def _events(self) -> Iterator[EventRule]:
        return (event for events in self.events.values() for event in events)


def shipped_mappings() -> tuple[str, ...]:
    """The names of the mappings that come with springback."""
    folder = importlib.resources.files("springback.producers").joinpath("mappings")
    return tuple(sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml")))


def load_mapping(name_or_path: str | Path) -> SignalMapping:
    """The mapping in a file, or the one of that name that comes with springback.

    Raises:
        MappingError: it is malformed, or there is none.
    """
    path = Path(name_or_path)
    shipped = shipped_mappings()
    if str(name_or_path) in shipped and not path.is_file():
        file = f"{name_or_path}.toml"
        text = importlib.resources.files("springback.producers").joinpath("mappings", file).read_bytes()
        return parse_mapping(text, file)
    if not path.is_file():
        message = f"there is no mapping file {str(path)!r}; those that come with springback are {', '.join(shipped)}"
        raise MappingError(message)
    return parse_mapping(path.read_bytes(), str(path))


def parse_mapping(text: str | bytes, file: str) -> SignalMapping:
    """The mapping in a TOML text.

    Args:
        text: the TOML.
        file: what to call it in messages.

    Raises:
        MappingError: it is malformed; the message has the key, what arrived and what was expected.
    """
    try:
        document = tomllib.loads(text if isinstance(text, str) else text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{file}: not TOML: {error}"
        raise MappingError(message) from error
    root = TomlSection(document, file)
    conditions = Conditions(root.section("conditions", {}).values, file)
    conditions.check_named()
    mapping = SignalMapping(
        file=file,
        agent=read_rule(root, "episode", "agent", conditions),
        time=root.one_of("time", get_args(TimeChoice), "receive"),
        header_time=root.parsed("header_time", FieldPath, "header.stamp"),
        header_unit_s=UNITS_S[root.one_of("header_unit", tuple(UNITS_S), "s")],
        reorder_s=root.number("reorder_s", 1.0, least=0.0),
        message_id=root.parsed("message_id", FieldPath, None),
        record_topic=root.parsed("record_topic", FieldPath, None),
        header=_rules(root.section("header"), "header", _HEADER_FIELDS, conditions, "family"),
        step=_step(root.section("step")),
        signals=_rules(root.section("signals"), "signals", ("progress", *SIGNALS), conditions, "progress"),
        episode=_episode(root.section("episode"), conditions),
        session_end=read_events(root, "session_end", conditions),
        sources=_sources(root.section("source", {})),
    )
    root.finish()
    _check_segments(mapping, root)
    return mapping


def _rules(
    section: TomlSection, group: Group, names: Sequence[str], conditions: Conditions, required: str = ""
) -> dict[str, ValueRule]:
    rules = {name: read_rule(section, group, name, conditions) for name in names if name in section.values}
    section.finish(names)
    if required and required not in rules:
        section.take(required)
    return rules


def _step(section: TomlSection) -> StepRule:
    given = section.take("trigger", [])
    listed = given if isinstance(given, list) else [given]
    triggers = []
    for place, item in enumerate(listed):
        one = TomlSection({f"trigger[{place}]": item}, section.file, section.place)
        triggers.append(one.parsed(f"trigger[{place}]", TopicPattern))
    cycle_s = section.number("cycle_s", None, least=1e-3)
    stale_s = section.number("stale_s", DEFAULT_STALE_S, least=0.0)
    section.finish()
    if bool(triggers) == (cycle_s is not None):
        section.refuse("", section.values, "either trigger (topics) or cycle_s (seconds)")
    return StepRule(tuple(triggers), cycle_s, stale_s)


def _episode(section: TomlSection, conditions: Conditions) -> EpisodeRule:
    rule = EpisodeRule(
        id=read_rule(section, "episode", "id", conditions, ValueRule()),
        begin=read_events(section, "begin", conditions),
        end=read_events(section, "end", conditions, ends=True),
        reopen=read_events(section, "reopen", conditions),
        joined=conditions.optional(section, "joined"),
        gap_s=section.number("gap_s", None, least=1e-3),
        whole=section.flag("whole"),
        outcome=read_rule(section, "episode", "outcome", conditions, ValueRule(constant="aborted")),
        navigation=_rules(
            section.section("navigation", {}), "navigation", NavigationOutcome.__struct_fields__, conditions
        ),
    )
    section.finish()
    if not (rule.id.sources or rule.id.segment or rule.begin or rule.end or rule.gap_s or rule.whole):
        section.refuse("", section.values, "a way to end: end, begin, gap_s, an id that changes, or whole = true")
    for key in ("constant", "default"):
        if (told := getattr(rule.outcome, key)) is not None and told not in OUTCOMES:
            section.refuse("outcome", told, f"one of {', '.join(OUTCOMES)}")
    return rule


def _sources(section: TomlSection) -> dict[str, dict[str, Any]]:
    return {name: section.section(name).values for name in section.values}


def _check_segments(mapping: SignalMapping, root: TomlSection) -> None:
    named = {name for pattern in mapping.patterns for name in pattern.names}
    for rule in mapping.value_rules():
        if rule.segment is not None and rule.segment not in named:
            root.refuse(
                "", {"segment": rule.segment}, f"a topic that names this level, such as fleet/{{{rule.segment}}}/pose"
            )
