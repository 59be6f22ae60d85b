"""Numbers as the page shows them, and the states' words and icons: never a colour alone."""

from typing import NamedTuple

from springback.stream_processors.resilience.metric_spec import AgentStateName

NOTHING = "\N{EN DASH}"
"""What is not known."""

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_JUST_NOW_S = 10


class StateLook(NamedTuple):
    """How a state is shown: a word, an icon of the Material set, and what it means."""

    word: str
    icon: str
    meaning: str


STATE_LOOKS: dict[AgentStateName, StateLook] = {
    "rebound": StateLook("in rebound", "settings_backup_restore", "It has departed from its baseline."),
    "stalled": StateLook("stalled", "hourglass_bottom", "It takes steps, but its progress does not rise."),
    "stale": StateLook("stale", "repeat", "Its link repeats itself: messages come, but no new step."),
    "silent": StateLook("silent", "sensors_off", "It has an episode open, and nothing comes from it."),
    "unknown": StateLook("unknown", "help_outline", "Nothing can be said: we do not see it, or it has no baseline."),
    "calm": StateLook("calm", "check_circle_outline", "It works as is normal at its stage of the task."),
    "ended": StateLook("ended", "stop_circle", "It has no episode open."),
}


def figure(value: float | None) -> str:
    """A number with as many digits as it is worth.

    >>> figure(1.234), figure(123.4), figure(12345.6)
    ('1.23', '123', '12,346')
    """
    if value is None:
        return NOTHING
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return text.replace("-", "\N{MINUS SIGN}")


def percent(value: float | None) -> str:
    r"""A share.

    >>> percent(0.756), percent(None) == NOTHING
    ('76\u202f%', True)
    """
    return NOTHING if value is None else f"{value:.0%}".replace("%", "\N{NARROW NO-BREAK SPACE}%")


def stress(value: float | None) -> str:
    """A stress severity.

    >>> stress(0.4)
    '0.4'
    """
    return NOTHING if value is None else f"{value:.1f}"


def ago(seconds: float | None) -> str:
    """How long ago something was, so coarse that it seldom changes.

    >>> [ago(seconds) for seconds in (3, 47, 125, 7300, 200_000)]
    ['now', '40 s ago', '2 min ago', '2 h ago', '2 d ago']
    """
    if seconds is None:
        return NOTHING
    if seconds < _JUST_NOW_S:
        return "now"
    if seconds < _MINUTE_S:
        return f"{seconds // 10 * 10:.0f} s ago"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S:.0f} min ago"
    if seconds < _DAY_S:
        return f"{seconds // _HOUR_S:.0f} h ago"
    return f"{seconds // _DAY_S:.0f} d ago"


def group_name(family: str, method: str, version: str) -> str:
    """A family, method and version; the last two only where they say something.

    >>> group_name("navigation", "default", "0"), group_name("navigation", "reflexion", "1.4")
    ('navigation', 'navigation · reflexion 1.4')
    """
    if (method, version) in (("default", "0"), ("", "")):
        return family
    return f"{family} \N{MIDDLE DOT} {method} {version}"
