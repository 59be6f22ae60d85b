"""The addresses of the live page: one for each agent, episode, window and family, and what a page shows as its query.

They are functions of what is shown alone, so that a link can be kept, sent to somebody else and opened after a
restart. What comes from outside is in none of them as itself: an agent, an episode and a family are told by short
numbers in hexadecimal, which any id can be put into.

>>> episode_link(EpisodeKey("robot-7", "s1", "12"), window=1)
'/episode/80ba2f74142de17241fcf1d25efab31d/8ec3efa1494ddfcb?window=1'
"""

from collections.abc import Mapping
from urllib.parse import urlencode

from springback.sinks.fleet.fleet_state import agent_key, clean_group
from springback.sinks.fleet.labels import clean_label_value
from springback.sinks.fleet.memory import fingerprint
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeTraits, FamilyReading

FLEET, FAMILIES, WINDOWS, COMPARE = "/", "/families", "/windows", "/compare"
ALERTS, PIPELINE, RUNBOOK = "/alerts", "/pipeline", "/runbook"

AGENT_ROUTE = "/agent/{agent}"
"""As the server takes it: `agent` is an `agent_token`."""

EPISODE_ROUTE = "/episode/{agent}/{episode}"
"""As the server takes it: `agent` is an `agent_token`, `episode` an `episode_token`."""

_MARK_DIGITS = 16


def agent_token(agent: str) -> str:
    """What stands for an agent in addresses: 32 hexadecimal digits.

    Args:
        agent: its id, as it came.
    """
    return agent_key(clean_label_value(agent)).hex()


def episode_token(key: EpisodeKey) -> str:
    """What stands for an episode in addresses: `EpisodeKey.mark()` in 16 hexadecimal digits."""
    return f"{key.mark():0{_MARK_DIGITS}x}"


def episode_mark(token: str) -> int | None:
    """The mark that a token stands for; None where it is no such token.

    >>> episode_mark("00000000000000ff"), episode_mark("ff"), episode_mark("zz00000000000000")
    (255, None, None)
    """
    if len(token) != _MARK_DIGITS or not set(token) <= set("0123456789abcdef"):
        return None
    return int(token, 16)


def family_token(of: FamilyReading | EpisodeTraits) -> str:
    """What stands for a family, method and version in addresses: that of a family's reading, and of its episodes."""
    return token_of_names(*clean_group(of))


def token_of_names(family: str, method: str, version: str) -> str:
    """The same of the names that are shown, which have been made safe already."""
    return fingerprint((family, method, version)).hex()


def with_query(path: str, query: Mapping[str, str | int | None]) -> str:
    """An address with what is to be shown there; what is None or empty is left out.

    >>> with_query("/", {"search": "robot 7", "page": 2, "sort": None})
    '/?search=robot+7&page=2'
    """
    told = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(told, errors='replace')}" if told else path


def agent_link(agent: str) -> str:
    """The page of an agent.

    Args:
        agent: its id, as it came.
    """
    return AGENT_ROUTE.format(agent=agent_token(agent))


def episode_link(key: EpisodeKey, window: int | None = None) -> str:
    """The page of an episode, at one of its windows where its number is given."""
    path = EPISODE_ROUTE.format(agent=agent_token(key.agent), episode=episode_token(key))
    return with_query(path, {"window": window})


def family_link(of: FamilyReading | EpisodeTraits) -> str:
    """The families with this family, method and version chosen."""
    return with_query(FAMILIES, {"family": family_token(of)})


def runbook_link(alert: str) -> str:
    """The section of the runbook on an alert.

    >>> runbook_link("SpringbackAgentSilent")
    '/runbook#springbackagentsilent'
    """
    return f"{RUNBOOK}#{alert.lower()}"


def compare_link(of: FamilyReading | EpisodeTraits) -> str:
    """The methods and versions of a family side by side.

    Args:
        of: any of them.
    """
    return with_query(COMPARE, {"family": family_token(of)})
