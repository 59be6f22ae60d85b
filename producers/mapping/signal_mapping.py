"""One mapping file for ROS, MQTT and recordings: which field of which topic is which signal, in TOML.

The grammar is in this folder's README, with a worked mapping for each source; `mappings/` holds those that come with
the product, found by name. A mapping declares and nothing more: no code of it is run.

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

import importlib.resources
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from springback.producers.contract.frame import EpisodeHeader, NavigationOutcome
from springback.producers.emitter.signal_checks import SIGNALS
from springback.producers.errors import MappingError
from springback.producers.mapping.paths import FieldPath, TopicPattern
from springback.producers.mapping.rules import OUTCOMES, EventRule, ValueRule, read_events
from springback.producers.mapping.timed_message import TimedMessage
from springback.producers.mapping.toml_section import Section
from springback.producers.mapping.values import Group, read_rule

__all__ = [
    "EpisodeRule",
    "SignalMapping",
    "StepRule",
    "TimedMessage",
    "load_mapping",
    "parse_mapping",
    "shipped_mappings",
]

TimeChoice = Literal["header", "receive"]
UNITS_S: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
DEFAULT_STALE_S: Final = 10.0
_HEADER_FIELDS: Final = tuple(name for name in EpisodeHeader.__struct_fields__ if name not in ("agent", "episode"))


@dataclass(frozen=True, slots=True)
class StepRule:
    """What makes a step: a message of one of the `triggers`, or else the clock, each `cycle_s`.

    A value that is older than `stale_s` counts for nothing.
    """

    triggers: tuple[TopicPattern, ...]
    cycle_s: float | None
    stale_s: float


@dataclass(frozen=True, slots=True)
class EpisodeRule:
    """When an episode begins and ends.

    Attributes:
        id: its id; without sources, episodes are counted. When the id changes, another episode has begun.
        begin: events that begin one; without any, the first message that is of use does.
        end: events that end one, with its outcome.
        gap_s: so long a time without a step ends it.
        whole: it ends with the recording or the session alone.
        outcome: how it ended, where no end event tells.
        navigation: fields of `NavigationOutcome`, as they are when it ends.
    """

    id: ValueRule
    begin: tuple[EventRule, ...]
    end: tuple[EventRule, ...]
    gap_s: float | None
    whole: bool
    outcome: ValueRule
    navigation: dict[str, ValueRule]


@dataclass(frozen=True, slots=True)
class SignalMapping:
    """A whole mapping.

    Attributes:
        file: where it was read from, for messages.
        agent: whose message it is; it is the producer too.
        time: by which clock steps are timed; `receive` wherever a message has no header time.
        header_time: where a message has its own time, and the unit of a plain number there.
        reorder_s: recorded messages that are late by no more are put in order; a topic that goes back by more, or lags
            behind the others by five times that, tells of time that has jumped back.
        message_id: what tells a message from another of its topic, to drop the second of two.
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
    def patterns(self) -> tuple[TopicPattern, ...]:
        """The topic patterns that it reads, each once; nothing where a rule is for any topic."""
        return tuple({pattern.text: pattern for pattern in self._patterns() if pattern is not None}.values())

    @property
    def topics(self) -> tuple[str, ...]:
        """What to subscribe to, with MQTT's wildcards."""
        return tuple(dict.fromkeys(pattern.subscription for pattern in self.patterns))

    @property
    def columns(self) -> frozenset[str] | None:
        """The fields at the top of a message that it reads; None where it reads whole messages."""
        paths = [source.field for rule in self.value_rules() for source in rule.sources]
        paths += [event.field for event in self._events() if event.field is not None]
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

    def _patterns(self) -> Iterator[TopicPattern | None]:
        for rule in self.value_rules():
            yield from (source.topic for source in rule.sources)
        yield from self.step.triggers
        yield from (event.topic for event in self._events())

    def _events(self) -> tuple[EventRule, ...]:
        return (*self.episode.begin, *self.episode.end, *self.session_end)


def shipped_mappings() -> tuple[str, ...]:
    """The names of the mappings that come with the product."""
    folder = importlib.resources.files("springback.producers").joinpath("mappings")
    return tuple(sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml")))


def load_mapping(name_or_path: str | Path) -> SignalMapping:
    """The mapping in a file, or the one of that name that comes with the product.

    Raises:
        MappingError: it is not as it must be, or there is none.
    """
    path = Path(name_or_path)
    shipped = shipped_mappings()
    if str(name_or_path) in shipped and not path.is_file():
        text = (
            importlib.resources.files("springback.producers").joinpath("mappings", f"{name_or_path}.toml").read_bytes()
        )
        return parse_mapping(text, f"{name_or_path}.toml")
    if not path.is_file():
        message = f"there is no mapping file {str(path)!r}; those that come with springback are {', '.join(shipped)}"
        raise MappingError(message)
    return parse_mapping(path.read_bytes(), str(path))


def parse_mapping(text: str | bytes, file: str) -> SignalMapping:
    """The mapping that a TOML text holds.

    Args:
        text: the TOML.
        file: what to call it in messages.

    Raises:
        MappingError: it is not as it must be; the message has the key, what arrived and what was expected.
    """
    try:
        document = tomllib.loads(text if isinstance(text, str) else text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{file}: not TOML: {error}"
        raise MappingError(message) from error
    root = Section(document, file)
    mapping = SignalMapping(
        file=file,
        agent=read_rule(root, "episode", "agent"),
        time=root.one_of("time", get_args(TimeChoice), "receive"),
        header_time=root.parsed("header_time", FieldPath, "header.stamp"),
        header_unit_s=UNITS_S[root.one_of("header_unit", tuple(UNITS_S), "s")],
        reorder_s=root.number("reorder_s", 1.0, least=0.0),
        message_id=root.parsed("message_id", FieldPath, None),
        record_topic=root.parsed("record_topic", FieldPath, None),
        header=_rules(root.section("header"), "header", _HEADER_FIELDS, "family"),
        step=_step(root.section("step")),
        signals=_rules(root.section("signals"), "signals", ("progress", *SIGNALS), "progress"),
        episode=_episode(root.section("episode")),
        session_end=read_events(root, "session_end"),
        sources=_sources(root.section("source", {})),
    )
    root.finish()
    _check_segments(mapping, root)
    return mapping


def _rules(section: Section, group: Group, names: Sequence[str], required: str = "") -> dict[str, ValueRule]:
    rules = {name: read_rule(section, group, name) for name in names if name in section.values}
    section.finish(names)
    if required and required not in rules:
        section.take(required)
    return rules


def _step(section: Section) -> StepRule:
    given = section.take("trigger", [])
    listed = given if isinstance(given, list) else [given]
    triggers = []
    for place, item in enumerate(listed):
        one = Section({f"trigger[{place}]": item}, section.file, section.place)
        triggers.append(one.parsed(f"trigger[{place}]", TopicPattern))
    cycle_s = section.number("cycle_s", None, least=1e-3)
    stale_s = section.number("stale_s", DEFAULT_STALE_S, least=0.0)
    section.finish()
    if bool(triggers) == (cycle_s is not None):
        section.refuse("", section.values, "either trigger (topics) or cycle_s (seconds)")
    return StepRule(tuple(triggers), cycle_s, stale_s)


def _episode(section: Section) -> EpisodeRule:
    rule = EpisodeRule(
        id=read_rule(section, "episode", "id", ValueRule()),
        begin=read_events(section, "begin"),
        end=read_events(section, "end", ends=True),
        gap_s=section.number("gap_s", None, least=1e-3),
        whole=section.flag("whole"),
        outcome=read_rule(section, "episode", "outcome", ValueRule(constant="aborted")),
        navigation=_rules(section.section("navigation", {}), "navigation", NavigationOutcome.__struct_fields__),
    )
    section.finish()
    if not (rule.id.sources or rule.id.segment or rule.begin or rule.end or rule.gap_s or rule.whole):
        section.refuse("", section.values, "a way to end: end, begin, gap_s, an id that changes, or whole = true")
    for key in ("constant", "default"):
        if (told := getattr(rule.outcome, key)) is not None and told not in OUTCOMES:
            section.refuse("outcome", told, f"one of {', '.join(OUTCOMES)}")
    return rule


def _sources(section: Section) -> dict[str, dict[str, Any]]:
    return {name: section.section(name).values for name in section.values}


def _check_segments(mapping: SignalMapping, root: Section) -> None:
    named = {name for pattern in mapping.patterns for name in pattern.names}
    for rule in mapping.value_rules():
        if rule.segment is not None and rule.segment not in named:
            root.refuse("", {"segment": rule.segment}, f"some topic to name that level: fleet/{{{rule.segment}}}/pose")
