"""Which topics a rule is for: MQTT's wildcards for ROS and recordings too, and levels with a name.

`fleet/{robot}/pose` matches `fleet/7/pose` and calls the level `robot`; `+` is any one level; `#` at the end is all
that follows. A leading slash is a level of its own in MQTT and none in ROS, so it plays no part.
"""

import re
from typing import Final

_NAMED: Final = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


class TopicPattern:
    """A parsed pattern.

    Args:
        text: the pattern as written.

    Raises:
        ValueError: it is no pattern.

    >>> TopicPattern("fleet/{robot}/pose").match("fleet/7/pose")
    {'robot': '7'}
    >>> TopicPattern("/odom").match("odom"), TopicPattern("a/#").match("b/c")
    ({}, None)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.levels = tuple(text.removeprefix("/").split("/"))
        self.names = tuple(found[1] for level in self.levels if (found := _NAMED.fullmatch(level)))
        for place, level in enumerate(self.levels):
            wild = _NAMED.fullmatch(level) or level == "+" or (level == "#" and place == len(self.levels) - 1)
            if not level or (not wild and re.search(r"[{}+#\s\0]", level)):
                message = (
                    f"{text!r} is no topic pattern: level {place} is {level!r}; wildcards are +, {{name}}, # at the end"
                )
                raise ValueError(message)

    @property
    def subscription(self) -> str:
        """The pattern as MQTT knows it.

        >>> TopicPattern("/fleet/{robot}/pose").subscription
        '/fleet/+/pose'
        """
        return _NAMED.sub("+", self.text)

    @property
    def is_plain(self) -> bool:
        """Whether it is the name of one topic."""
        return not self.names and not {"+", "#"} & set(self.levels)

    def match(self, topic: str) -> dict[str, str] | None:
        """The named levels of a topic that matches; None for any other topic."""
        levels = topic.removeprefix("/").split("/")
        if self.levels[-1] == "#":
            if len(levels) < len(self.levels) - 1:
                return None
        elif len(levels) != len(self.levels):
            return None
        named: dict[str, str] = {}
        for pattern, level in zip(self.levels, levels, strict=False):
            if pattern == "#":
                break
            if pattern.startswith("{"):
                named[pattern[1:-1]] = level
            elif pattern not in ("+", level):
                return None
        return named
