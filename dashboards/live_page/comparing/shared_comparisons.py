"""The comparisons that pages show, each worked out once for all who look, apart from the page's own thread.

Drawing tasks anew some thousand times takes a good part of a second for a family of many methods: a page must not stand
still for it, nor twenty pages do it twenty times.
"""

import concurrent.futures
import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

from springback.dashboards.live_page.fleet_view import FleetView
from springback.dashboards.live_page.links import family_token
from springback.dashboards.live_page.live_sink import LiveSink
from springback.sinks.fleet.fleet_state import clean_family
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import FamilyReading

if TYPE_CHECKING:
    from springback.dashboards.live_page.comparing.comparison import GroupFigures, SeenGroup

AGE_S = 5.0
"""How old a comparison may be before it is worked out anew."""

_MOST = 50
_log = logging.getLogger(__name__)


class Comparison(NamedTuple):
    """The methods and versions of one family.

    Attributes:
        family: its name, safe to be shown.
        groups: with their figures.
        left_out: how many more there are.
    """

    family: str
    groups: "list[GroupFigures]"
    left_out: int


class _Held(NamedTuple):
    comparison: Comparison | None
    made_s: float


def seen_groups(view: FleetView, token: str) -> "tuple[str, list[SeenGroup]] | None":
    """The family that one of its methods and versions stands for, and all of them, those with episodes first.

    Args:
        view: what was read.
        token: of a family, method and version.
    """
    from springback.dashboards.live_page.comparing.comparison import SeenGroup

    readings: dict[tuple[str, ...], FamilyReading] = {clean_family(reading): reading for reading in view.families()}
    family = next((names[0] for names, reading in readings.items() if family_token(reading) == token), None)
    if family is None:
        return None
    ended = view.ended_of(family)
    of_family = [*ended, *(names for names in readings if names[0] == family and names not in ended)]
    return family, [SeenGroup(names, ended.get(names, []), readings.get(names)) for names in of_family]


class SharedComparisons:
    """Comparisons by what they are asked for.

    Args:
        sink: what was read.
        config: with the stress grid.
    """

    def __init__(self, sink: LiveSink, config: AggregateConfig) -> None:
        self._sink, self._config = sink, config
        self._threads = concurrent.futures.ThreadPoolExecutor(1, "springback-compare")
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self._asked: set[str] = set()

    def latest(self, token: str) -> Comparison | None:
        """The latest comparison with this family, method and version; None where there is none, or none yet.

        One that has grown old is worked out anew meanwhile.
        """
        with self._sink.look() as (_, now_s), self._lock:
            held = self._held.get(token)
            if (held is None or not 0 <= now_s - held.made_s < AGE_S) and token not in self._asked:
                self._asked.add(token)
                self._threads.submit(self._work_out, token)
            return None if held is None else held.comparison

    def now(self, token: str) -> Comparison | None:
        """The comparison as of now; None where the family is not known."""
        # Its statistics take longer to be loaded than all else of a page: nobody waits for them who compares nothing.
        from springback.dashboards.live_page.comparing.comparison import compare_groups

        with self._sink.look() as (view, _):
            found = seen_groups(view, token)
        if found is None:
            return None
        family, groups = found
        figures = compare_groups(groups, token, self._config)
        return Comparison(family, figures, len(groups) - len(figures))

    def _work_out(self, token: str) -> None:
        try:
            comparison = self.now(token)
        except Exception:
            _log.exception("The methods and versions of a family could not be compared.")
            comparison = None
        with self._sink.look() as (_, now_s), self._lock:
            self._asked.discard(token)
            self._held.pop(token, None)
            self._held[token] = _Held(comparison, now_s)
            if len(self._held) > _MOST:
                del self._held[next(iter(self._held))]
