"""Frames that are legal, or nearly, and cost far more to take in than to send."""

import json
from typing import Any

from springback.producers.contract.salvage import MAX_FRAME_EPISODES


def episode(number: int = 0, **fields: Any) -> dict[str, Any]:
    """A header."""
    return {"agent": f"robot-{number}", "episode": "1", "family": "navigation"} | fields


def frame(episodes: list[Any], steps: dict[str, Any], ends: list[Any] | None = None, producer: str = "p") -> bytes:
    """A frame as JSON."""
    parts = {"schema_version": 1, "producer": producer, "session": "s", "episodes": episodes, "steps": steps}
    return json.dumps(parts | {"ends": ends or []}, separators=(",", ":")).encode()


def rows(count: int, **columns: list[Any]) -> dict[str, Any]:
    """The columns of so many steps of the first episode; others come in their place."""
    return {"episode": [0] * count, "step": list(range(count)), "progress": [0.5] * count} | columns


def costly_frames(most_rows: int) -> dict[str, bytes]:
    """One frame of each kind, of so many rows at most."""
    many, faulty, modes = MAX_FRAME_EPISODES, most_rows // 2, most_rows // 2
    return {
        "rows out of range": frame([episode()], rows(most_rows, progress=[2] * most_rows)),
        "cells of the wrong type": frame([episode()], rows(most_rows, progress=["x"] * most_rows)),
        "rows of no episode": frame([], rows(most_rows)),
        "agents": frame([episode(i) for i in range(many)], rows(many, episode=list(range(many)), step=[0] * many)),
        "episodes of one agent": frame(
            [episode(episode=str(i)) for i in range(many)], rows(many, episode=list(range(many)), step=[0] * many)
        ),
        "faulty headers": frame([episode(agent="")] * many, {}),
        "faulty ends": frame([episode()], {}, [{"episode": 0, "outcome": "won"}] * many),
        "first steps that are faulty": frame(
            [episode(i) for i in range(many)],
            rows(many + faulty, episode=[*range(many), *[0] * faulty], step=[5] * many + [0] * faulty,
                 progress=[0.5] * many + [2.0] * faulty),
        ),
        "modes": frame([episode()], rows(modes, mode=[f"m{i}" for i in range(modes)])),
        "modes of a reference": frame(
            [episode(reference=True)],
            rows(20_000, step=list(range(0, 40_000, 2)), mode=[f"m{i}" for i in range(20_000)]),
        ),
    }  # fmt: skip
