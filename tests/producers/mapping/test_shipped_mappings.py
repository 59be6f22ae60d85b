"""The mappings that come with the product, on recordings as their systems write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcap.writer
import numpy as np
import pyarrow  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest
from rosbags.rosbag1 import Writer as Bag1Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from springback.producers.contract.frame import StepFrame, TextColumn
from springback.producers.emitter.reports import ReportedEnd, ReportedStep
from springback.producers.mapping.assembler import EpisodeAssembler, MappedReport
from springback.producers.mapping.signal_mapping import TimedMessage, load_mapping
from springback.producers.recordings.any_format import read_recordings
from springback.producers.recordings.step_frames import UnreadablePart

T0_NS = 1_790_000_000 * 10**9
HALF_S = 500_000_000


def read(path: Path, mapping: str) -> tuple[list[StepFrame], list[UnreadablePart]]:
    unreadable: list[UnreadablePart] = []
    frames = [recorded.frame for recorded in read_recordings([path], load_mapping(mapping), unreadable.append)]
    return frames, unreadable


def column(frames: list[StepFrame], name: str) -> list[Any]:
    columns = [frame.steps[name] for frame in frames if name in frame.steps]
    return [cell for one in columns for cell in (one.texts() if isinstance(one, TextColumn) else one.tolist())]


def outcomes(frames: list[StepFrame]) -> list[tuple[str, str]]:
    return [(frame.episodes[end.episode].episode, end.outcome) for frame in frames for end in frame.ends]


def risen(frame: int, length: int) -> float:
    """A reward that rises by the same with every frame."""
    return frame / 20.0


def lerobot(folder: Path, version: int, *, rewards: Callable[[int, int], Any] | None) -> Path:
    """Three episodes of 10, 11 and 12 frames; the second one fails.

    Args:
        folder: where to write it.
        version: of LeRobot's format.
        rewards: the reward of a frame of an episode of so many; None for none.
    """
    lengths = [10, 11, 12]
    (folder / "meta").mkdir(parents=True)
    info = {"codebase_version": f"v{version}.0", "robot_type": "so100", "fps": 10, "total_episodes": 3}
    (folder / "meta" / "info.json").write_text(json.dumps(info), encoding="utf-8")
    rows = []
    for episode, length in enumerate(lengths):
        for frame in range(length):
            row: dict[str, Any] = {
                "observation.state": [0.1 * frame, 0.0],
                "timestamp": frame / 10.0,
                "frame_index": frame,
                "episode_index": episode,
                "task_index": episode % 2,
                "next.done": frame == length - 1,
            }
            if rewards is not None:
                row |= {"next.reward": rewards(frame, length), "next.success": episode != 1 and frame == length - 1}
            rows.append(row)
    data = folder / "data" / "chunk-000"
    data.mkdir(parents=True)
    tasks = ["put the cube into the box", "wipe the table"]
    about = [{"episode_index": number, "length": length} for number, length in enumerate(lengths)]
    if version == 2:
        for episode in range(3):
            own = [row for row in rows if row["episode_index"] == episode]
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(own), data / f"episode_{episode:06d}.parquet")
        lines = [json.dumps({"task_index": number, "task": task}) for number, task in enumerate(tasks)]
        (folder / "meta" / "tasks.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (folder / "meta" / "episodes.jsonl").write_text("\n".join(map(json.dumps, about)), encoding="utf-8")
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), data / "file-000.parquet")
        named = pyarrow.table({"task_index": [0, 1], "__index_level_0__": tasks})
        pyarrow.parquet.write_table(named, folder / "meta" / "tasks.parquet")
        episodes = folder / "meta" / "episodes" / "chunk-000"
        episodes.mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(about), episodes / "file-000.parquet")
    return folder


@pytest.mark.parametrize("version", [2, 3])
def test_demonstrations_of_lerobot(version: int, tmp_path: Path) -> None:
    frames, unreadable = read(lerobot(tmp_path / "cubes", version, rewards=None), "lerobot")
    assert sum(frame.n_steps for frame in frames) == 33
    assert outcomes(frames) == [("0", "success"), ("1", "success"), ("2", "success")]
    headers = {header.episode: header for frame in frames for header in frame.episodes}
    assert (headers["1"].agent, headers["1"].family, headers["1"].task) == ("so100", "cubes", "wipe the table")
    assert all(header.reference for header in headers.values())
    progress = column(frames, "progress")
    assert progress[:10] == pytest.approx([(number + 1) / 10 for number in range(10)])
    assert column(frames, "travel")[:3] == pytest.approx([0.0, 0.1, 0.1])
    assert np.diff(column(frames, "time_s")[:10]) == pytest.approx([0.1] * 9, abs=1e-6)
    assert {part.reason for part in unreadable if not part.note} == {"missing_field"}  # no rewards, no next.success
    assert [part.detail for part in unreadable if part.note] == [
        "there is no next.reward, so the progress is the share of the episode's length"
    ]


def test_simulated_tasks_of_lerobot_with_rewards(tmp_path: Path) -> None:
    frames, unreadable = read(lerobot(tmp_path / "pusht", 3, rewards=risen), "lerobot")
    assert [(part.note, part.reason) for part in unreadable] == [(True, "progress_by_reward")]
    assert column(frames, "progress")[:10] == pytest.approx([number / 20.0 for number in range(10)])
    assert outcomes(frames) == [("0", "success"), ("1", "failure"), ("2", "success")]


@pytest.mark.parametrize(
    ("reward", "why"),
    [
        (lambda frame, length: -0.1 * (length - frame), "next.reward goes from -1.2 to -0.1 and not from 0 to 1"),
        (lambda frame, length: 100.0 * frame / length, "next.reward goes from 0 to 91.6667 and not from 0 to 1"),
        (lambda frame, length: 1.0, "next.reward rises in 0 of 3 episodes alone"),  # for each step that one stands
        (lambda frame, length: float(frame == length - 1), "next.reward rises in 0 of 3 episodes alone"),
        (lambda frame, length: 1.0 - frame / length, "next.reward rises in 0 of 3 episodes alone"),
        (lambda frame, length: float("nan") if frame == 3 else frame / length, "3 frames have no next.reward"),
    ],
)
def test_rewards_that_are_no_progress_are_not_taken_for_it(
    reward: Callable[[int, int], float], why: str, tmp_path: Path
) -> None:
    frames, unreadable = read(lerobot(tmp_path / "pusht", 3, rewards=reward), "lerobot")
    assert column(frames, "progress")[:10] == pytest.approx([(number + 1) / 10 for number in range(10)])
    assert [part.detail for part in unreadable if part.note] == [
        f"{why}, so the progress is the share of the episode's length"
    ]


def test_rewards_that_rise_with_setbacks_and_rounding_are_progress(tmp_path: Path) -> None:
    def coverage(frame: int, length: int) -> list[float]:
        return [float(np.float32(1.0000001 * frame / (length - 1))) - 0.05 * (frame == 5)]

    frames, unreadable = read(lerobot(tmp_path / "pusht", 2, rewards=coverage), "lerobot")
    assert [part.reason for part in unreadable] == ["progress_by_reward"]
    assert column(frames, "progress")[:2] == pytest.approx([0.0, 1 / 9])


def test_a_damaged_file_of_lerobot_costs_itself_alone(tmp_path: Path) -> None:
    folder = lerobot(tmp_path / "cubes", 2, rewards=None)
    (folder / "data" / "chunk-000" / "episode_000001.parquet").write_bytes(b"PAR1 and nothing")
    frames, unreadable = read(folder, "lerobot")
    assert [episode for episode, _ in outcomes(frames)] == ["0", "2"]
    assert "damaged_file" in {part.reason for part in unreadable}


FEEDBACK = """unique_identifier_msgs/UUID goal_id
nav2_msgs/NavigateToPose_Feedback feedback
================================================================================
MSG: unique_identifier_msgs/UUID
uint8[16] uuid
================================================================================
MSG: nav2_msgs/NavigateToPose_Feedback
int16 number_of_recoveries
float32 distance_remaining
"""
BEHAVIOUR = """nav2_msgs/BehaviorTreeStatusChange[] event_log
================================================================================
MSG: nav2_msgs/BehaviorTreeStatusChange
string node_name
string previous_status
string current_status
"""


def ros_object(store: Any, kind: str, value: dict[str, Any]) -> Any:
    """A message of these fields; all others are zero or empty."""
    return store.types[kind](
        **{name: _ros_field(store, about, value.get(name)) for name, about in store.fielddefs[kind][1]}
    )


def _ros_field(store: Any, about: tuple[Any, Any], value: Any) -> Any:
    node, detail = about
    if node.name == "BASE":
        return value if value is not None else "" if detail[0] == "string" else 0
    if node.name == "NAME":
        return ros_object(store, detail, value or {})
    if node.name == "ARRAY" and detail[0][0].name == "BASE":
        return np.array(value or [0] * detail[1], dtype=detail[0][1][0])
    return [_ros_field(store, detail[0], item) for item in value or []]


def test_a_goal_of_nav2(tmp_path: Path) -> None:
    path = tmp_path / "nav2.mcap"
    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(get_types_from_msg(FEEDBACK, "nav2_msgs/action/NavigateToPose_FeedbackMessage"))
    store.register(get_types_from_msg(BEHAVIOUR, "nav2_msgs/msg/BehaviorTreeLog"))
    kinds = {
        "/navigate_to_pose/_action/feedback": "nav2_msgs/action/NavigateToPose_FeedbackMessage",
        "/navigate_to_pose/_action/status": "action_msgs/msg/GoalStatusArray",
        "/behavior_tree_log": "nav2_msgs/msg/BehaviorTreeLog",
        "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
        "/odom": "nav_msgs/msg/Odometry",
    }
    with path.open("wb") as file:
        writer = mcap.writer.Writer(file)
        writer.start(profile="ros2")
        channels = {}
        for topic, kind in kinds.items():
            definition = store.generate_msgdef(kind, ros_version=2)[0].encode()
            channels[topic] = writer.register_channel(topic, "cdr", writer.register_schema(kind, "ros2msg", definition))

        def say(topic: str, value: dict[str, Any], half_seconds: float) -> None:
            at_ns = T0_NS + int(half_seconds * HALF_S)
            data = bytes(store.serialize_cdr(ros_object(store, kinds[topic], value), kinds[topic]))
            writer.add_message(channels[topic], at_ns, data, at_ns)

        def status(goal: int, value: int, half_seconds: float) -> None:
            told = {"goal_info": {"goal_id": {"uuid": [goal] * 16}}, "status": value}
            say("/navigate_to_pose/_action/status", {"status_list": [told]}, half_seconds)

        def move(goal: int, remaining: float, recoveries: int, half_seconds: float) -> None:
            told = {"number_of_recoveries": recoveries, "distance_remaining": remaining}
            feedback = {"goal_id": {"uuid": [goal] * 16}, "feedback": told}
            say("/navigate_to_pose/_action/feedback", feedback, half_seconds)
            say("/odom", {"pose": {"pose": {"position": {"x": half_seconds}}}}, half_seconds)

        def run_node(name: str, half_seconds: float) -> None:
            change = {"node_name": name, "previous_status": "IDLE", "current_status": "RUNNING"}
            say("/behavior_tree_log", {"event_log": [change]}, half_seconds)

        for goal, base, last in ((1, 0, 4), (2, 100, 6)):
            status(goal, 1, base)
            status(goal, 2, base + 0.1)
            move(goal, 0.0, 0, base + 0.2)  # no path yet
            run_node("FollowPath", base + 0.3)
            for tick in range(1, 10):
                move(goal, 10.0 - tick, 1 if tick >= 5 else 0, base + tick)
                if tick == 5:
                    run_node("Spin", base + tick + 0.01)
            say("/diagnostics", {"status": [{"level": 0}, {"level": 2}]}, base + 8.5)
            status(goal, last, base + 9.5)
        writer.finish()  # type: ignore[no-untyped-call]
    frames, _ = read(path, "nav2")
    assert outcomes(frames) == [("01" * 16, "success"), ("02" * 16, "failure")]
    of_first = column(frames, "progress")[: len(column(frames, "progress")) // 2]
    assert of_first == sorted(of_first)
    assert of_first[-1] == pytest.approx(1.0 - 1.0 / 9.0)
    assert set(column(frames, "mode")) == {"navigate", "recover"}
    assert sum(column(frames, "retries")) == 2.0
    assert set(column(frames, "risk")[: len(of_first)]) >= {1.0}
    assert sum(column(frames, "travel")) == pytest.approx(2 * 8.8, abs=2.0)
    final = [end.navigation.final_distance for frame in frames for end in frame.ends if end.navigation is not None]
    assert final == [1.0, 1.0]


class Nav2:
    """A robot with Nav2, and what the assembler makes of it."""

    def __init__(self) -> None:
        self.assembler = EpisodeAssembler(load_mapping("nav2"), session="s")
        self.told: list[MappedReport] = []
        self._now_s = 1_790_000_000.0

    def says(self, topic: str, value: dict[str, Any]) -> None:
        self._now_s += 0.1
        self.told += self.assembler.add(TimedMessage(topic, self._now_s, value))

    def status(self, *goals: tuple[int, int]) -> None:
        told = [{"goal_info": {"goal_id": {"uuid": [goal] * 16}}, "status": status} for goal, status in goals]
        self.says("/navigate_to_pose/_action/status", {"status_list": told})

    def diagnostics(self, name: str, level: int) -> None:
        self.says("/diagnostics", {"status": [{"name": name, "level": level}]})

    def drive(self, *remaining: float, running_s: int = 0) -> None:
        """Feedback once in half a second, which makes a step each."""
        for metres in remaining:
            feedback = {"distance_remaining": metres, "navigation_time": {"sec": running_s, "nanosec": 0}}
            self.says("/navigate_to_pose/_action/feedback", {"feedback": feedback})
            self._now_s += 0.4

    def signals(self, name: str) -> list[float]:
        return [report.report.signals[name] for report in self.told if isinstance(report.report, ReportedStep)]

    def ends(self) -> list[tuple[str, str]]:
        ends = [report.report for report in self.told if isinstance(report.report, ReportedEnd)]
        return [(end.header.episode[:2], end.outcome) for end in ends]


def test_the_tail_of_an_old_path_is_not_the_whole_way() -> None:
    robot = Nav2()
    robot.status((1, 2))
    robot.drive(0.12, 10.0, 7.5, 0.0, 5.0, 12.0, 3.0)  # a path that is cleared for a moment, then a longer one
    robot.drive(1.2)
    assert robot.signals("progress") == [0.0, 0.0, 0.25, 0.25, 0.5, 0.0, 0.75]
    assert robot.assembler.report.left_out["progress_started_again"] == 2
    assert robot.assembler.report.by_key["unknown of signals.progress"] == 1


def test_a_device_that_is_broken_stays_so_while_others_are_well() -> None:
    robot = Nav2()
    robot.status((1, 2))
    robot.diagnostics("lidar", 2)
    for metres in (10.0, 9.0, 8.0, 7.0):
        robot.diagnostics("battery", 0)
        robot.drive(metres)
    robot.diagnostics("lidar", 0)
    robot.drive(6.0, 5.0, 4.0)
    # Steps at 0.5 s, 1 s … 2.5 s after the goal began; the lidar is well from 2.6 s on.
    assert robot.signals("risk") == [1.0] * 5 + [0.0] * 2


def test_a_goal_that_another_replaces_is_aborted_and_one_that_fails_is_not() -> None:
    robot = Nav2()
    robot.status((1, 2))
    robot.drive(9.0, 8.0)
    robot.status((1, 2), (2, 1))
    robot.status((1, 6), (2, 2))
    robot.drive(5.0, 4.0)
    robot.status((1, 6), (2, 6))
    robot.status((2, 6), (3, 2))
    robot.drive(5.0, 4.0)
    robot.status((2, 6), (3, 5))
    assert robot.ends() == [("01", "aborted"), ("02", "failure"), ("03", "aborted")]


@pytest.mark.parametrize(("running_s", "first"), [(0, 0), (41, 1)])
def test_a_goal_that_was_on_its_way_before_anybody_listened_is_joined(running_s: int, first: int) -> None:
    robot = Nav2()
    robot.status((1, 2))
    robot.drive(2.5, 2.0, 1.5, running_s=running_s)
    steps = [report.report.step for report in robot.told if isinstance(report.report, ReportedStep)]
    assert steps[0] == first


def test_a_goal_of_move_base(tmp_path: Path) -> None:
    path = tmp_path / "move_base.bag"
    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    kinds = {
        "/move_base/status": "actionlib_msgs/msg/GoalStatusArray",
        "/move_base/NavfnROS/plan": "nav_msgs/msg/Path",
        "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
    }

    def header(half_seconds: float) -> Any:
        at_ns = T0_NS + int(half_seconds * HALF_S)
        stamp = types["builtin_interfaces/msg/Time"](at_ns // 10**9, at_ns % 10**9)
        return types["std_msgs/msg/Header"](seq=0, stamp=stamp, frame_id="map")

    def pose(x: float) -> Any:
        point = types["geometry_msgs/msg/Point"](x, 0.0, 0.0)
        turn = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
        return types["geometry_msgs/msg/PoseStamped"](header(0), types["geometry_msgs/msg/Pose"](point, turn))

    with Bag1Writer(path) as writer:
        connections = {topic: writer.add_connection(topic, kind, typestore=store) for topic, kind in kinds.items()}

        def say(topic: str, half_seconds: float, *fields: Any) -> None:
            message = types[kinds[topic]](header(half_seconds), *fields)
            data = store.serialize_ros1(message, kinds[topic])
            writer.write(connections[topic], T0_NS + int(half_seconds * HALF_S), data)

        def status(value: int, half_seconds: float) -> None:
            goal = types["actionlib_msgs/msg/GoalID"](types["builtin_interfaces/msg/Time"](0, 0), "goal-1")
            say("/move_base/status", half_seconds, [types["actionlib_msgs/msg/GoalStatus"](goal, value, "")])

        status(1, 0.0)
        for tick in range(1, 9):
            say("/move_base/NavfnROS/plan", tick, [pose(float(tick)), pose(8.5), pose(9.0)])
            status(1, tick + 0.2)
        sick = types["diagnostic_msgs/msg/DiagnosticStatus"](level=1, name="", message="", hardware_id="", values=[])
        say("/diagnostics", 8.5, [sick])
        status(3, 9.5)
    frames, _ = read(path, "move_base")
    assert outcomes(frames) == [("goal-1", "success")]
    progress = column(frames, "progress")
    assert progress == sorted(progress)
    assert progress[-1] == pytest.approx(7.0 / 8.0)
    assert column(frames, "risk")[-1] == 0.5
