import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from springback.producers.contract.columns import STEP_COLUMNS
from springback.producers.contract.schema import frame_schema
from tests.house import DATA

FRAME = json.loads((DATA / "step_frame.v1.json").read_bytes())
FRAME["steps"] |= {"risk": [0.0, 0.2, None], "violation": [0, 0, 1]}


@pytest.fixture
def validator() -> jsonschema.Draft202012Validator:
    schema = frame_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_schema_takes_a_valid_frame(validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(FRAME)
    validator.validate({"schema_version": 1, "producer": "p", "session": "s", "steps": {}, "more": 1})


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"producer": ""},
        {"session": "s" * 257},
        {"steps": {"episode": [0], "step": [0]}},
        {"steps": FRAME["steps"] | {"progress": [0, 1.5, 0]}},
        {"steps": FRAME["steps"] | {"progress": [0, None, 0]}},
        {"steps": FRAME["steps"] | {"travel": [0, "NaN", 0]}},
        {"steps": FRAME["steps"] | {"retries": [0, True, 0]}},
        {"steps": FRAME["steps"] | {"mode": ["x" * 65]}},
        {"steps": FRAME["steps"] | {"step": [0.5]}},
        {"episodes": [{"agent": "a", "family": "f"}]},
        {"episodes": [FRAME["episodes"][0] | {"stress": 1.1}]},
        {"ends": [{"episode": 0, "outcome": "lost"}]},
    ],
)
def test_schema_refuses_what_the_reader_rejects(
    validator: jsonschema.Draft202012Validator, change: dict[str, Any]
) -> None:
    assert not validator.is_valid(FRAME | change)


def test_schema_says_what_an_absent_stress_means() -> None:
    header = json.dumps(frame_schema()["$defs"]["EpisodeHeader"]["properties"]["stress"])
    assert "absent: undeclared, which is not 0" in header


def test_schema_describes_every_column() -> None:
    columns = frame_schema()["properties"]["steps"]["properties"]
    assert list(columns) == [spec.name for spec in STEP_COLUMNS]
    assert all(column["description"] for column in columns.values())
