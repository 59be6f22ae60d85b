"""Frames that are nearly right: documents of a small fleet, changed at random places, or spoilt as bytes."""

import json
import random
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from springback.producers.contract.columns import STEP_COLUMNS

Document = Any
AGENTS = 12
ODD_VALUES: tuple[Callable[[random.Random], Any], ...] = (
    lambda rng: None,
    lambda rng: rng.choice([True, False]),
    lambda rng: rng.choice([0, -1, 1, 2, 2**31, 2**53, 2**63 - 1, -(2**63), 10**30]),
    lambda rng: rng.choice([0.5, -0.0, 1e-320, 1e12, 1e300, float("nan"), float("inf"), float("-inf")]),
    lambda rng: rng.choice(["", "x", "NaN", "é" * 300, "\ud800", "\x00", "🤖" * 64, "1", "navigate"]),
    lambda rng: [],
    lambda rng: {},
    lambda rng: [[[]]],
    lambda rng: [rng.random() for _ in range(rng.randrange(20))],
    lambda rng: rng.randbytes(rng.choice([0, 1, 7, 8, 16, 64])),
    lambda rng: "x" * rng.choice([256, 257, 5000]),
)


def plain_document(rng: random.Random) -> Document:
    """A frame such as a producer sends: of some episodes, whose steps rise, come again, or come late."""
    agents = rng.sample(range(AGENTS), rng.randint(1, 3))
    rows = rng.choice([0, 1, 2, 5, 20])
    first = rng.randrange(200)
    steps: dict[str, Any] = {
        "episode": [rng.randrange(len(agents)) for _ in range(rows)],
        "step": [first + row for row in range(rows)],
        "progress": [rng.random() for _ in range(rows)],
    }
    for spec in STEP_COLUMNS:
        if spec.name not in steps and rng.random() < 0.3:
            if spec.kind == "text":
                steps[spec.name] = [rng.choice(["run", "navigate", f"m{rng.randrange(300)}"]) for _ in range(rows)]
            else:
                steps[spec.name] = [rng.random() for _ in range(rows)]
    episodes = [
        {
            "agent": f"robot-{agent}",
            "episode": str(rng.randrange(4)),
            "family": rng.choice(["navigation", "transport"]),
            "reference": rng.random() < 0.3,
            "stress": rng.choice([None, 0.0, 0.4]),
        }
        for agent in agents
    ]
    ends = []
    if rng.random() < 0.2:
        ends.append({"episode": rng.randrange(len(agents)), "outcome": rng.choice(["success", "failure", "aborted"])})
    return {
        "schema_version": 1,
        "producer": "p",
        "session": rng.choice(["boot", "boot", "boot", "reboot"]),
        "episodes": episodes,
        "steps": steps,
        "ends": ends,
    }


def changed(document: Document, rng: random.Random) -> Document:
    """The document with something at a random place of it replaced, repeated, left out or put in."""
    if isinstance(document, dict) and document and rng.random() < 0.9:
        name = rng.choice(list(document))
        rest = {key: value for key, value in document.items() if key != name}
        if rng.random() < 0.15:
            return rest
        if rng.random() < 0.05:
            return document | {str(odd_value(rng))[:20]: odd_value(rng)}
        return rest | {name: changed(document[name], rng)}
    if isinstance(document, list) and document and rng.random() < 0.9:
        place, action = rng.randrange(len(document)), rng.random()
        if action < 0.1:
            return document[:place] + document[place + 1 :]
        if action < 0.2:
            return document * rng.choice([2, 2, 50])
        return [*document[:place], changed(document[place], rng), *document[place + 1 :]]
    return odd_value(rng)


def odd_value(rng: random.Random) -> Any:
    """Something that may be no value of the place where it stands."""
    return rng.choice(ODD_VALUES)(rng)


def encoded(document: Document, rng: random.Random) -> bytes:
    """The document as JSON, or as MessagePack with some of its columns packed where they can be."""
    if rng.random() < 0.5:
        return json.dumps(document, default=repr).encode("utf-8", "surrogatepass")
    if isinstance(document, dict) and isinstance(document.get("steps"), dict):
        document = document | {"steps": {name: _packed(name, cells, rng) for name, cells in document["steps"].items()}}
    try:
        return msgspec.msgpack.encode(document)
    except (OverflowError, TypeError, UnicodeEncodeError, msgspec.MsgspecError):
        return json.dumps(document, default=repr).encode("utf-8", "surrogatepass")


def _packed(name: Any, cells: Any, rng: random.Random) -> Any:
    if rng.random() < 0.5 or not isinstance(cells, list):
        return cells
    try:
        if all(isinstance(cell, str) for cell in cells):
            values = sorted(set(cells))
            return [values, np.array([values.index(cell) for cell in cells], dtype="<u2").tobytes()]
        return np.array(cells, dtype="<i8" if name in ("episode", "step") else "<f8").tobytes()
    except (OverflowError, TypeError, ValueError):
        return cells


def spoilt(data: bytes, rng: random.Random) -> bytes:
    """The bytes with some of them changed, left out or repeated."""
    place = rng.randrange(len(data) + 1)
    kind = rng.randrange(4)
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + rng.randbytes(rng.randint(1, 4)) + data[place + rng.randint(0, 4) :]
    if kind == 2:
        return data[:place] + data[place : place + 8] * rng.randint(2, 40) + data[place + 8 :]
    return rng.choice([b"{", b"[", b"\x81\xa1a", b"\x91", b"\xdf\xff\xff\xff\xff"]) * rng.choice([1, 3, 2000]) + data


def odd_frame(rng: random.Random) -> bytes:
    """A frame: nearly half are right, one in ten is spoilt as bytes, of the others something is changed."""
    document = plain_document(rng)
    for _ in range(rng.choice([0, 0, 0, 0, 1, 1, 2, 4])):
        document = changed(document, rng)
    data = encoded(document, rng)
    return spoilt(data, rng) if rng.random() < 0.1 else data
