"""The methods and versions of a family side by side, each figure with what it rests on, and what differs in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui

from springback.dashboards.live_page.comparing.shared_comparisons import Comparison, SharedComparisons
from springback.dashboards.live_page.links import COMPARE, compare_link, family_token, with_query
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import (
    NOTHING,
    Column,
    LiveTable,
    figure,
    group_name,
    percent,
    section_title,
)
from springback.dashboards.live_page.pages.downloads import download_link
from springback.sinks.fleet.fleet_state import clean_family
from springback.stream_processors.metrics.figure_words import (
    capacity_text,
    dependable_text,
    learning_text,
    within_noise,
)
from springback.stream_processors.metrics.glossary import WITHIN_NOISE, meaning

if TYPE_CHECKING:
    # Loaded when somebody compares (see `SharedComparisons`), and so before anything of it is shown.
    from springback.dashboards.live_page.comparing.comparison import GroupFigures
    from springback.stream_processors.offline.resampling import Interval

_COLUMNS = (
    Column("family", "Method and version", "left", look="family"),
    Column("success", "Success", "left", look="remark", hint="Share of its latest episodes that ended in success."),
    Column("cost", "Cost", "left", look="remark", hint="Mean recovery cost of its latest episodes."),
    Column("capacity", "Dependable", "left", "sb-wide", look="remark", hint=meaning("dependable capacity")),
    Column("star", "λ*", "left", "sb-wide", look="remark", hint=meaning("λ*")),
    Column("beta", "β", "left", "sb-wide", look="remark", hint=meaning("β")),
    Column("mix", "Episodes by stress", "left", "sb-wide"),
)
_ROWS = 25
_RESTS = (
    "Success and cost are over the latest 300 episodes of each that count, with the 95 % interval of their tasks drawn "
    "anew (of success no narrower than Wilson's); λ*, what is dependable and β are over all that its workers remember."
)


class ComparePage:
    """The page's content.

    Args:
        sink: what is shown.
        comparisons: what is compared.
        token: of the family, method and version that the others are held against; anything else asks for a family.
    """

    def __init__(self, sink: LiveSink, comparisons: SharedComparisons, token: str) -> None:
        self._sink, self._comparisons, self._token = sink, comparisons, token
        self._shown: Comparison | None = None
        self._families: list[tuple[str, str]] = []
        with ui.element("section").classes("sb-card").props('aria-label="Families to compare"') as self._choice:
            section_title("Compare the methods and versions of")
            self._none = ui.label("No episode of any family has ended yet.").classes("sb-none")
            self._names = ui.element("ul").classes("sb-links")
            self._busy = ui.label().classes("sb-none").props('role="status"')
        with ui.element("section").classes("sb-card").props('aria-label="Methods and versions"') as self._content:
            self._title = section_title()
            ui.label(_RESTS).classes("sb-note")
            paging = {"rowsPerPage": _ROWS, "sortBy": "family"}
            self._table = LiveTable(_COLUMNS, row_key="key", pagination=paging, sizes=(_ROWS,), sort_suffix="_sort")
            self._table.props["hide-bottom"] = True
            self._left_out = ui.label().classes("sb-note")
            download_link("compare", family=token)
        with ui.element("section").classes("sb-card").props('aria-label="What differs"') as self._differences:
            self._against = section_title()
            self._told = ui.element("div").classes("sb-differences")

    def refresh(self) -> None:
        """Shows what holds now."""
        is_known = self._show_families()
        comparison = self._comparisons.latest(self._token) if self._token else None
        self._busy.set_visibility(bool(self._token) and comparison is None)
        self._busy.text = "Comparing\N{HORIZONTAL ELLIPSIS}" if is_known else "No such family is known (any more)."
        for part in (self._content, self._differences):
            part.set_visibility(comparison is not None)
        if comparison is None or comparison == self._shown:
            return
        self._shown = comparison
        base = next(group for group in comparison.groups if group.difference is None)
        others = [group for group in comparison.groups if group.difference is not None]
        self._title.text = f"Methods and versions of {comparison.family}"
        self._table.rows = [_row(group, base) for group in comparison.groups]
        self._left_out.set_visibility(comparison.left_out > 0)
        self._left_out.text = f"{comparison.left_out:,} more are left out: those whose episodes ended longest ago."
        self._show_differences(base, others)

    def _show_families(self) -> bool:
        """Shows them, and says whether the one that is asked for is among them."""
        with self._sink.look() as (view, _):
            readings = view.families()
        # Of each family the method and version of the most episodes, for the others to be held against.
        first = {clean_family(reading)[0]: reading for reading in sorted(readings, key=lambda known: known.episodes)}
        families = [(str(name), compare_link(first[name])) for name in sorted(first)]
        if families != self._families:
            self._families = families
            self._none.set_visibility(not families)
            self._names.clear()
            with self._names:
                for name, address in families:
                    with ui.element("li"):
                        ui.link(name, address)
        return self._token in map(family_token, readings)

    def _show_differences(self, base: "GroupFigures", others: "Sequence[GroupFigures]") -> None:
        from springback.dashboards.live_page.comparing.comparison import difference_sentences

        self._against.text = f"Against {_name(base)}"
        self._told.clear()
        with self._told:
            if not others:
                ui.label("It is the only one of its family: there is nothing to hold against it.").classes("sb-none")
            for group in others:
                if group.difference is not None:
                    with ui.element("h3").classes("sb-name"):
                        ui.link(_name(group), _address(group))
                    for sentence in difference_sentences(_name(base), _name(group), group.difference):
                        ui.label(sentence)


def _name(group: "GroupFigures") -> str:
    _, method, version = group.names
    return f"{method} {version}"


def _address(group: "GroupFigures") -> str:
    return with_query(COMPARE, {"family": group.token})


def _row(group: "GroupFigures", base: "GroupFigures") -> dict[str, Any]:
    from springback.dashboards.live_page.comparing.comparison import interval_words, mix_text, number

    reading = group.reading
    success, success_rests = interval_words(group.success, percent, group.counted.ended, group.tasks)
    cost, cost_rests = interval_words(group.cost, number, group.scored, group.tasks)
    told: dict[str, Any] = {
        "key": group.token,
        "href": _address(group),
        **{"family": _name(group), "family_sort": group_name(*group.names)},
        "method": "the others are held against it" if group is base else None,
        "learning": reading and learning_text(reading.bound_references, reading.bound_references_needed),
        **{"success": success, "success_remark": success_rests, "success_sort": _sortable(group.success)},
        **{"cost": cost, "cost_remark": cost_rests, "cost_sort": _sortable(group.cost)},
        **{"mix": mix_text(group.levels) or NOTHING, "mix_sort": group.counted.ended},
        **dict.fromkeys(("capacity", "star", "beta"), NOTHING),
        **dict.fromkeys(("capacity_sort", "star_sort", "beta_sort"), -1.0),
    }
    if reading is not None:
        told["capacity"], _, told["capacity_remark"] = dependable_text(reading).partition("; ")
        told["star"], _, told["star_remark"] = capacity_text(reading.capacity, reading.capacity_flag).partition("; ")
        noise = WITHIN_NOISE if within_noise(reading) else None
        told["beta"] = figure(reading.beta)
        told["beta_remark"] = "; ".join(filter(None, (f"{reading.pairs:,} pairs", noise)))
        for name, value in (("capacity", reading.dependable), ("star", reading.capacity), ("beta", reading.beta)):
            told[f"{name}_sort"] = -1.0 if value is None else value
    return told


def _sortable(interval: "Interval | None") -> float:
    return -1.0 if interval is None else interval.value
