"""Topics that are there, and that a mapping does not read though it reads one of the kind: what to map for them.

A robot has another action than the one that the mapping is about (NavigateThroughPoses beside NavigateToPose), another
version in a level of its topics, or a namespace in front of all: nothing of it comes to an episode. All of it is ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final, NamedTuple

from springback.producers.mapping.paths import TopicPattern

MOST_NAMED: Final = 5
_ALIKE: Final = 0.6


class _Otherwise(NamedTuple):
    """How topics differ from those that are read: by a level that is another, or by levels in front (no `read`)."""

    read: str
    there: str


def unread_topics(patterns: Iterable[TopicPattern], topics: Iterable[str], mapping: str) -> list[str]:
    """What can be said of topics that are not read, a sentence for each way in which they differ from those that are.

    Args:
        patterns: the topics that the mapping reads.
        topics: those that are there.
        mapping: what the mapping is called.

    >>> read = [TopicPattern("navigate_to_pose/_action/status"), TopicPattern("odom")]
    >>> unread_topics(read, ["/odom", "/navigate_through_poses/_action/status", "/r7/odom"], "nav2.toml")[1]
    "'/r7/odom' is not read: nav2.toml reads it without 'r7' in front; in a copy of it, put 'r7/' or `{robot}/` there"
    """
    known = list(patterns)
    found: dict[_Otherwise, list[str]] = {}
    for topic in dict.fromkeys(topics):
        if not any(pattern.match(topic) is not None for pattern in known):
            ways = dict.fromkeys(way for pattern in known if (way := _difference(pattern, topic)) is not None)
            for way in ways:
                found.setdefault(way, []).append(topic)
    alike = {way: difflib.SequenceMatcher(None, way.read, way.there).ratio() for way in found}
    nearest = sorted(found, key=lambda way: (way.read == "", -alike[way], way))[:MOST_NAMED]
    return [_sentence(way, found[way], mapping) for way in nearest]


def _difference(pattern: TopicPattern, topic: str) -> _Otherwise | None:
    levels = tuple(topic.removeprefix("/").split("/"))
    behind = len(levels) - len(pattern.levels)
    if behind > 0 and "#" not in pattern.levels and pattern.match("/".join(levels[behind:])) is not None:
        return _Otherwise("", "/".join(levels[:behind]))
    if behind or levels[-1] != pattern.levels[-1]:
        return None
    other = [
        (own, there)
        for own, there in zip(pattern.levels, levels)
        if own not in ("+", there) and not own.startswith("{")
    ]
    if len(other) != 1:
        return None
    near = difflib.SequenceMatcher(None, *other[0]).ratio() >= _ALIKE
    return _Otherwise(*other[0]) if near or len(levels) > 2 else None


def _sentence(way: _Otherwise, topics: list[str], mapping: str) -> str:
    named = ", ".join(map(repr, topics[:MOST_NAMED])) + (" and others" if len(topics) > MOST_NAMED else "")
    verb, them = ("is", "it") if len(topics) == 1 else ("are", "them")
    if not way.read:
        front = f"put '{way.there}/' or `{{robot}}/` there"
        return (
            f"{named} {verb} not read: {mapping} reads {them} without {way.there!r} in front; in a copy of it, {front}"
        )
    return (
        f"{named} {verb} not read: {mapping} reads {way.read!r} there; a copy of it with {way.there!r} in place of "
        f"{way.read!r} reads {them}"
    )
