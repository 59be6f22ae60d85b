"""What Grafana takes as a dashboard of the classic model: our own description of it, as JSON Schema.

Only what the dashboards use is described, and nothing else is allowed: so a slip of a name is found.
"""

from typing import Any

from grafana_foundation_sdk.models import units

UNITS = sorted({value for name, value in vars(units).items() if isinstance(value, str) and not name.startswith("_")})

TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}
COLOUR = {"type": "string", "pattern": "^#[0-9A-F]{6}$"}


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object of these fields and no others."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def list_of(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


DATA_SOURCE = closed({"type": {"enum": ["prometheus", "grafana"]}, "uid": {"type": "string", "minLength": 1}})

TARGET = closed(
    {"expr": {"type": "string", "minLength": 3}, "refId": {"pattern": "^[A-Z]$"}, "datasource": DATA_SOURCE},
    {
        "instant": FLAG,
        "range": FLAG,
        "exemplar": FLAG,
        "legendFormat": TEXT,
        "format": {"enum": ["time_series", "table", "heatmap"]},
    },
)

THRESHOLDS = closed(
    {
        "mode": {"enum": ["absolute", "percentage"]},
        "steps": {
            "type": "array",
            "prefixItems": [closed({"value": {"type": "null"}, "color": COLOUR})],
            "items": closed({"value": {"type": "number"}, "color": COLOUR}),
            "minItems": 1,
        },
    }
)

MAPPING = closed(
    {
        "type": {"const": "value"},
        "options": {
            "type": "object",
            "additionalProperties": closed({"text": TEXT, "color": COLOUR}, {"index": COUNT}),
            "minProperties": 1,
        },
    }
)

FIELD_CONFIG = closed(
    {
        "defaults": closed(
            {},
            {
                "unit": {"enum": UNITS},
                "min": {"type": "number"},
                "max": {"type": "number"},
                "noValue": TEXT,
                "mappings": list_of(MAPPING),
                "thresholds": THRESHOLDS,
                "color": closed({"mode": {"enum": ["thresholds", "fixed"]}}, {"fixedColor": COLOUR}),
                "custom": {"type": "object"},
            },
        ),
        "overrides": list_of(
            closed(
                {
                    "matcher": closed({"id": {"enum": ["byName", "byFrameRefID"]}, "options": TEXT}),
                    "properties": list_of(
                        {
                            "type": "object",
                            "properties": {"id": {"pattern": "^(unit|min|max|links|mappings|color|custom\\.\\w+)$"}},
                            "required": ["id", "value"],
                        },
                        minItems=1,
                    ),
                }
            )
        ),
    }
)

GRID = closed(
    {
        "h": {"type": "integer", "minimum": 1},
        "w": {"type": "integer", "minimum": 1, "maximum": 24},
        "x": {"type": "integer", "minimum": 0, "maximum": 23},
        "y": COUNT,
    }
)

PANEL = closed(
    {
        "id": {"type": "integer", "minimum": 1},
        "type": {"enum": ["stat", "timeseries", "bargauge", "state-timeline", "heatmap", "table"]},
        "title": {"type": "string", "minLength": 1},
        "description": TEXT,
        "gridPos": GRID,
        "datasource": DATA_SOURCE,
        "targets": list_of(TARGET, minItems=1),
        "fieldConfig": FIELD_CONFIG,
    },
    {
        "options": {"type": "object"},
        "transparent": FLAG,
        "repeatDirection": {"enum": ["h", "v"]},
        "transformations": list_of(
            closed({"id": {"enum": ["joinByField", "filterFieldsByName", "organize"]}, "options": {"type": "object"}})
        ),
    },
)

ROW = closed(
    {
        "id": {"type": "integer", "minimum": 1},
        "type": {"const": "row"},
        "title": TEXT,
        "collapsed": {"const": False},
        "gridPos": GRID,
        "panels": {"const": []},
    }
)

VARIABLE = closed(
    {
        "type": {"const": "query"},
        "name": {"pattern": "^[a-z]+$"},
        "label": TEXT,
        "datasource": DATA_SOURCE,
        "query": closed({"query": {"pattern": "^label_values\\(.+, \\w+\\)$"}, "refId": TEXT}),
        "refresh": {"enum": [1, 2]},
        "sort": {"type": "integer", "minimum": 0, "maximum": 8},
        "multi": FLAG,
        "includeAll": FLAG,
    },
    {
        "allValue": TEXT,
        "hide": {"const": 0},
        "skipUrlSync": FLAG,
        # Of variables of another type; the SDK writes them for every one.
        "auto": {"const": False},
        "auto_count": COUNT,
        "auto_min": TEXT,
        "allowCustomValue": FLAG,
        "current": closed({"selected": FLAG, "text": list_of(TEXT), "value": list_of(TEXT)}),
    },
)

ANNOTATION = closed(
    {
        "name": TEXT,
        "datasource": DATA_SOURCE,
        "enable": FLAG,
        "iconColor": COLOUR,
        "target": closed({"limit": COUNT, "matchAny": FLAG, "tags": list_of(TEXT), "type": {"const": "tags"}}),
    },
    {"hide": FLAG, "builtIn": {"const": 0}},
)

LINK = closed(
    {
        "type": {"enum": ["dashboards", "link"]},
        "title": TEXT,
        "tags": list_of(TEXT),
        "asDropdown": FLAG,
        "includeVars": FLAG,
        "keepTime": FLAG,
        "targetBlank": FLAG,
        "icon": TEXT,
        "tooltip": TEXT,
    }
)

DASHBOARD = closed(
    {
        "uid": {"pattern": "^[A-Za-z0-9_-]{1,40}$"},
        "title": {"type": "string", "minLength": 1},
        "description": TEXT,
        "tags": list_of(TEXT),
        "schemaVersion": {"type": "integer", "minimum": 36},
        "refresh": {"pattern": "^[0-9]+[smh]$"},
        "time": closed({"from": {"pattern": "^now-[0-9]+[smhd]$"}, "to": {"const": "now"}}),
        "timezone": {"enum": ["browser", "utc"]},
        "editable": FLAG,
        "graphTooltip": {"enum": [0, 1, 2]},
        "templating": closed({"list": list_of(VARIABLE)}),
        "annotations": closed({"list": list_of(ANNOTATION)}),
        "links": list_of(LINK),
        "panels": list_of({"if": {"properties": {"type": {"const": "row"}}}, "then": ROW, "else": PANEL}, minItems=1),
    },
    {"fiscalYearStartMonth": {"const": 0}},
)
