"""A dashboard around its panels: variables, links to the others, annotations, and where each panel stands.

What comes out is the same for the same input: ids count up from 1, and nothing depends on the time or the machine.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from grafana_foundation_sdk.builders import dashboard as build
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
)

GRID_COLUMNS = 24
TAG = "springback"
"""The tag of every dashboard, by which they link to each other."""

# Grafana's own store of annotations, which `springback annotate` writes to.
_ANNOTATION_STORE = DataSourceRef("grafana", "-- Grafana --")
_MOST_ANNOTATIONS = 200


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
