"""A dashboard around its panels: what can be selected, links to the others, marks, and where each panel stands.

The same input gives the same output: ids count up from 1, and nothing depends on the time or the machine. The marks are
windows, breaches and violated contracts, as `springback annotate` writes them into Grafana.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders.dashboard import QueryVariable
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    AnnotationContainer,
    AnnotationQuery,
    AnnotationTarget,
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    GridPos,
    Panel,
    RowPanel,
    VariableModel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from springback.dashboards.grafana_parts.colour_scheme import ORANGE, PURPLE, VERMILLION
from springback.dashboards.grafana_parts.metric_query import MetricQueries
from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE
from springback.sinks.grafana.annotations_sink import BREACH_TAG, CONTRACT_TAG, WINDOW_TAG, agent_tag
from springback.stream_processors.metrics.agents import AGENT_INFO
from springback.stream_processors.metrics.catalogue import EPISODES_BEGUN
from springback.stream_processors.metrics.spec import GROUP, MetricSpec

GRID_COLUMNS = 24
TAG = "springback"
"""The tag of every dashboard, by which they link to each other."""

# Grafana's own store of annotations, which `springback annotate` writes to.
_ANNOTATION_STORE = DataSourceRef("grafana", "-- Grafana --")
_MOST_ANNOTATIONS = 200

_GROUP_SCOPE = {label: f'=~"${label}"' for label in GROUP}
OF_GROUPS = MetricQueries(_GROUP_SCOPE)
"""Queries of the selected families, methods and versions."""
OF_AGENTS = MetricQueries({**_GROUP_SCOPE, "agent": '=~"$agent"'})
"""Queries of those and of the selected agents."""
OF_ONE_AGENT = MetricQueries({"agent": '="$agent"'})
"""Queries of one agent. Equality: Grafana escapes no regular expression in a variable of one value."""
WINDOW_MARKS = ("Rebound windows", ORANGE, (WINDOW_TAG,))
BREACH_MARKS = ("Stress breaches", VERMILLION, (BREACH_TAG,))
CONTRACT_MARKS = ("Contract violated", PURPLE, (CONTRACT_TAG,))
WINDOWS_OF_ONE_AGENT = ("Rebound windows", ORANGE, (WINDOW_TAG, agent_tag("$agent")))


class Section(NamedTuple):
    """Panels under one heading, put side by side for as long as there is room."""

    title: str
    panels: Sequence[Builder[Panel]]


class Board(NamedTuple):
    """A whole dashboard. `uid` is its identity: it never changes, nor do links to it.

    Attributes:
        uid: the last part of its address; a file of this name holds it.
        title: as Grafana lists it.
        description: the questions that it answers.
        refresh: how often it asks anew.
        span: how far back it looks at first.
        variables: what can be selected.
        annotations: what is marked in its panels: a name, a colour, and the tags that all of them have.
        sections: the panels.
    """

    uid: str
    title: str
    description: str
    refresh: str
    span: str
    variables: Sequence[Builder[VariableModel]]
    annotations: Sequence[tuple[str, str, Sequence[str]]]
    sections: Sequence[Section]

    def to_json(self) -> str:
        """The dashboard as Grafana keeps it."""
        links = (
            build.DashboardLink("springback")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
        )
        board = (
            build.Dashboard(self.title)
            .uid(self.uid)
            .description(self.description)
            .tags([TAG])
            .refresh(self.refresh)
            .time(f"now-{self.span}", "now")
            .timezone("browser")
            .tooltip(DashboardCursorSync.CROSSHAIR)
            .editable()
            .link(links)
            .variables(list(self.variables))
            .build()
        )
        board.annotations = AnnotationContainer([_annotation(*marks) for marks in self.annotations])
        board.panels = lay_out(self.sections)
        return json.dumps(board, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def lay_out(sections: Sequence[Section]) -> list[Panel | RowPanel]:
    """The panels with ids and places: each section a heading and lines below, a line as high as its highest panel."""
    placed: list[Panel | RowPanel] = []
    top = 0
    for section in sections:
        heading = build.Row(section.title).collapsed(False).id(len(placed) + 1).build()
        heading.grid_pos = GridPos(h=1, w=GRID_COLUMNS, x=0, y=top)
        placed.append(heading)
        top, left, height = top + 1, 0, 0
        for builder in section.panels:
            panel = builder.build()
            place = panel.grid_pos or GridPos(h=8, w=12)
            if left + place.w > GRID_COLUMNS:
                top, left, height = top + height, 0, 0
            panel.id_val = len(placed) + 1
            panel.grid_pos = GridPos(h=place.h, w=place.w, x=left, y=top)
            placed.append(panel)
            left, height = left + place.w, max(height, place.h)
        top += height
    return placed


def _annotation(name: str, colour: str, tags: Sequence[str]) -> AnnotationQuery:
    return AnnotationQuery(
        name=name,
        datasource=_ANNOTATION_STORE,
        icon_color=colour,
        target=AnnotationTarget(limit=_MOST_ANNOTATIONS, match_any=False, tags=list(tags), type_val="tags"),
    )


def group_variables(spec: MetricSpec = EPISODES_BEGUN) -> list[QueryVariable]:
    """Family, method and version, each of those that the ones before it leave, any number of them or all."""
    return [_many(spec, label, GROUP[:place]) for place, label in enumerate(GROUP)]


def agents_variable() -> QueryVariable:
    """Agents of the selected families, methods and versions, any number of them or all."""
    return _many(AGENT_INFO, "agent", GROUP)


def one_agent_variable() -> QueryVariable:
    """One agent of the selected families, methods and versions."""
    return _variable(AGENT_INFO, "agent", GROUP).multi(False).include_all(False)


def _many(spec: MetricSpec, label: str, given: tuple[str, ...]) -> QueryVariable:
    # All is `.*`: a list of every agent would make addresses and queries too long.
    everything = VariableOption(selected=True, text=["All"], value=["$__all"])
    return _variable(spec, label, given).multi(True).include_all(True).all_value(".*").current(everything)


def _variable(spec: MetricSpec, label: str, given: tuple[str, ...]) -> QueryVariable:
    found = MetricQueries({name: _GROUP_SCOPE[name] for name in given}).series(spec)
    return (
        QueryVariable(label)
        .label(label.capitalize())
        .datasource(DATA_SOURCE)
        .query({"query": f"label_values({found}, {label})", "refId": f"springback-{label}"})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
    )
