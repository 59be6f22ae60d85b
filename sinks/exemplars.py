"""Where a value in a histogram came from: the episode that a bucket shows as its exemplar (OpenMetrics only).

An exemplar is no label of a series, so it may hold what has no bound: each bucket keeps the latest one alone.
"""

import math
from typing import NamedTuple

from prometheus_client.samples import Exemplar
from springback.sinks.label_values import LabelValue, clean_label_value
from springback.stream_processors.resilience.readings import EpisodeKey

LONGEST_EXEMPLAR = 128
"""Characters of all names and values of an exemplar's labels together, by the OpenMetrics specification."""

# Readers of OpenMetrics, that of Prometheus' own client for Python among them, stumble over escapes in exemplars.
_ESCAPED = str.maketrans({'"': "\x01", "\\": "\x02"})
_LONGEST_ID = (LONGEST_EXEMPLAR - len("agent") - len("episode")) // 2


class Origin(NamedTuple):
    """What a value is of. In the order of time, and then of names, so that the order of arrival does not matter."""

    time_s: float
    agent: LabelValue
    episode: LabelValue


def origin_of(key: EpisodeKey, time_s: float, now_s: float) -> Origin | None:
    """The origin of a value of an episode; None without a time that can be.

    Args:
        key: the episode.
        time_s: when the value came about, by the agent's clock. A clock that runs ahead would have Prometheus refuse
            the exemplars after it, so none is later than the present.
        now_s: the present.
    """
    if not math.isfinite(time_s) or time_s < 0:
        return None
    agent, episode = (clean_label_value(part.translate(_ESCAPED), _LONGEST_ID) for part in (key.agent, key.episode))
    return Origin(round(min(time_s, now_s), 3), agent, episode)


def exemplar_of(origin: Origin, value: float) -> Exemplar:
    """The exemplar as Prometheus' client writes it."""
    return Exemplar({"agent": origin.agent, "episode": origin.episode}, value, origin.time_s)
