"""What a small robot says on its way to its goals: the same log, written by the public libraries into every format."""

from __future__ import annotations

import csv
import json
import math
import random
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import mcap.writer
import pyarrow  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
from mcap_ros2.writer import Writer as Ros2McapWriter
from rosbags.rosbag1 import Writer as Bag1Writer
from rosbags.rosbag2 import Writer as Bag2Writer
from rosbags.typesys import Stores, get_typestore

from springback.producers.mapping.signal_mapping import SignalMapping, parse_mapping

START_S = 1_790_000_000.0
CLEAN, STRESSED = 10, 2
KINDS = {
    "/mission/id": "std_msgs/msg/Int32",
    "/mission/clean": "std_msgs/msg/Bool",
    "/mission/state": "std_msgs/msg/String",
    "/remaining": "std_msgs/msg/Float64",
    "/position": "geometry_msgs/msg/PointStamped",
}

MAPPING = """
agent = "robot-7"
[header]
family = "navigation"
reference = { topic = "mission/clean", field = "data" }
stress = { topic = "mission/clean", field = "data", transform = { table = { true = 0.0, false = 0.6 } } }
[step]
trigger = "position"
[signals]
progress = { topic = "remaining", field = "data", transform = "progress_from_remaining" }
travel = { topic = "position", field = "point", transform = "distance_travelled" }
mode = "navigate"
[episode]
id = { topic = "mission/id", field = "data" }
begin = { topic = "mission/state", field = "data", equals = "RUNNING" }
end = { topic = "mission/state", field = "data", outcomes = { SUCCEEDED = "success", FAILED = "failure" } }
"""

ROWS_MAPPING = """
agent = "robot-7"
time = "header"
header_time = "time"
[header]
family = "navigation"
reference = { field = "clean" }
stress = { field = "clean", transform = { table = { true = 0.0, false = 0.6 } } }
[step]
trigger = "#"
[signals]
progress = { field = "remaining", transform = "progress_from_remaining" }
travel = [{ field = "point", transform = "distance_travelled" }]
mode = "navigate"
[episode]
id = { field = "id" }
outcome = "success"
"""


class Said(NamedTuple):
    """One message: topic, time in ns and the plain value."""

    topic: str
    time_ns: int
    value: dict[str, Any]


def mapping() -> SignalMapping:
    return parse_mapping(MAPPING, "robot.toml")


def rows_mapping(point: str = "point") -> SignalMapping:
    return parse_mapping(ROWS_MAPPING.replace("point", point), "rows.toml")


def missions(clean: int = CLEAN, stressed: int = STRESSED) -> list[Said]:
    """Goals reached one after the other; under stress the robot turns in circles half-way for a while."""
    chance = random.Random(7)
    said: list[Said] = []
    now_s = START_S
    for number in range(clean + stressed):
        calm = number < clean
        opening = {"/mission/id": number, "/mission/clean": calm, "/mission/state": "RUNNING"}
        said += [Said(topic, _ns(now_s), {"data": value}) for topic, value in opening.items()]
        remaining, x = 10.0, 0.0
        lost = 0 if calm else 20
        while remaining > 0.0:
            now_s += 0.5 + chance.uniform(-0.02, 0.02)
            stuck = lost > 0 and remaining < 5.0
            lost -= stuck
            stride = 0.25 + chance.uniform(-0.03, 0.03)
            remaining = remaining if stuck else max(0.0, remaining - stride)
            x += 2.0 * stride if stuck else stride
            said.append(Said("/remaining", _ns(now_s), {"data": remaining}))
            stamp = {"sec": int(now_s), "nanosec": _ns(now_s) % 10**9}
            point = {"x": x, "y": 0.0, "z": 0.0}
            header = {"stamp": stamp, "frame_id": "map"}
            said.append(Said("/position", _ns(now_s) + 1000, {"header": header, "point": point}))
        said.append(Said("/mission/state", _ns(now_s) + 2000, {"data": "SUCCEEDED"}))
        now_s += 5.0
    return said


def rows(said: Iterable[Said]) -> list[dict[str, Any]]:
    """One row a step."""
    latest: dict[str, Any] = {}
    made = []
    for topic, time_ns, value in said:
        latest[topic] = value.get("data", value.get("point"))
        if topic == "/position":
            made.append(
                {
                    "time": time_ns * 1e-9,
                    "id": latest["/mission/id"],
                    "clean": latest["/mission/clean"],
                    "remaining": latest["/remaining"],
                    "point": [latest[topic]["x"], 0.0],
                }
            )
    return made


def write_ros2_mcap(path: Path, said: Iterable[Said], *, chunk_size: int = 4096, compression: str = "ZSTD") -> None:
    store = get_typestore(Stores.ROS2_HUMBLE)
    with path.open("wb") as file:
        writer = Ros2McapWriter(file, chunk_size, mcap.writer.CompressionType[compression])
        schemas = {
            kind: writer.register_msgdef(kind, store.generate_msgdef(kind, ros_version=2)[0]) for kind in KINDS.values()
        }
        for topic, time_ns, value in said:
            writer.write_message(topic, schemas[KINDS[topic]], value, time_ns, time_ns)
        writer.finish()  # type: ignore[no-untyped-call]


def write_json_mcap(path: Path, said: Iterable[Said], **options: Any) -> None:
    with path.open("wb") as file:
        writer = mcap.writer.Writer(file, **options)
        writer.start()
        schema = writer.register_schema("any", "jsonschema", b"{}")
        channels = {topic: writer.register_channel(topic, "json", schema) for topic in KINDS}
        for topic, time_ns, value in said:
            writer.add_message(channels[topic], time_ns, json.dumps(value).encode(), time_ns)
        writer.finish()  # type: ignore[no-untyped-call]


def _ros_message(store: Any, topic: str, value: dict[str, Any], *, version: int) -> Any:
    kind = store.types[KINDS[topic]]
    if topic != "/position":
        return kind(**value)
    header, point = value["header"], value["point"]
    stamp = store.types["builtin_interfaces/msg/Time"](header["stamp"]["sec"], header["stamp"]["nanosec"])
    extra = {"seq": 0} if version == 1 else {}
    made = store.types["std_msgs/msg/Header"](stamp=stamp, frame_id=header["frame_id"], **extra)
    return kind(header=made, point=store.types["geometry_msgs/msg/Point"](**point))


def write_bag1(path: Path, said: Iterable[Said], compression: str | None = None) -> None:
    store = get_typestore(Stores.ROS1_NOETIC)
    writer = Bag1Writer(path)
    if compression is not None:
        writer.set_compression(Bag1Writer.CompressionFormat[compression])
    writer.chunk_threshold = 4096
    with writer:
        connections = {topic: writer.add_connection(topic, kind, typestore=store) for topic, kind in KINDS.items()}
        for topic, time_ns, value in said:
            data = store.serialize_ros1(_ros_message(store, topic, value, version=1), KINDS[topic])
            writer.write(connections[topic], time_ns, data)


def write_bag2(folder: Path, said: Iterable[Said]) -> Path:
    """The bag's one SQLite file."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    with Bag2Writer(folder, version=9) as writer:
        connections = {topic: writer.add_connection(topic, kind, typestore=store) for topic, kind in KINDS.items()}
        for topic, time_ns, value in said:
            data = store.serialize_cdr(_ros_message(store, topic, value, version=2), KINDS[topic])
            writer.write(connections[topic], time_ns, data)
    (file,) = folder.glob("*.db3")
    return file


def forget_definitions(file: Path) -> None:
    """As a bag of before ROS 2 Iron."""
    database = sqlite3.connect(file)
    database.execute("DROP TABLE message_definitions")
    database.commit()
    database.close()


def write_json_lines(path: Path, made: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")


def write_csv(path: Path, made: list[dict[str, Any]]) -> None:
    flat = [{**row, "point": row["point"][0]} for row in made]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(flat[0]))
        writer.writeheader()
        writer.writerows(flat)


def write_parquet(path: Path, made: list[dict[str, Any]], row_group_size: int = 100) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(made), path, row_group_size=row_group_size)


def _ns(time_s: float) -> int:
    return math.floor(time_s * 1000.0) * 1_000_000
