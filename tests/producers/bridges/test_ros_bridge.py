"""A real ROS 1 master, a robot, and `springback bridge ros` between them and Kafka or a recording."""

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.topics import STEPS, declare_topics
from tests.producers.bridges.bridge_command import BridgeCommand, arriving_frames
from tests.producers.bridges.ros_robot import CLOCK, REPORT, RosMaster, RosRobot, stamp
from tests.producers.fleet_episodes import CYCLE_S, EPISODES, assert_departed_and_recovered, cycles, evaluated

pytestmark = [pytest.mark.ros, pytest.mark.timeout(180)]
START_S = 1_790_000_000.0

MAPPING = """
agent = { segment = "robot" }
time = "header"
[header]
family = "delivery"
reference = { topic = "{robot}/report", field = "disturbed", transform = "one_minus" }
[step]
trigger = "{robot}/report"
[signals]
progress = { topic = "{robot}/report", field = "done" }
planning_s = { topic = "{robot}/report", field = "thinking" }
risk = { topic = "{robot}/report", field = "danger" }
mode = { topic = "{robot}/report", field = "mode" }
[episode]
id = { topic = "{robot}/report", field = "order" }
[episode.end]
topic = "{robot}/report"
field = "result"
outcomes = { delivered = "success" }
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[RosMaster]:
    with RosMaster(tmp_path) as running:
        yield running


@pytest.fixture
def mapping(tmp_path: Path) -> str:
    path = tmp_path / "robots.toml"
    path.write_text(MAPPING)
    return str(path)


def reports(episode: int, start_s: float) -> list[dict[str, Any]]:
    told = []
    for number, cycle in enumerate(cycles(episode)):
        header = {"stamp": stamp(start_s + CYCLE_S * number)}
        result = "delivered" if cycle["done"] == 1.0 else ""
        told.append({**cycle, "header": header, "order": f"o{episode}", "result": result})
    return told


def outcomes(frames: list[StepFrame]) -> list[str]:
    return [end.outcome for frame in frames for end in frame.ends]


def installation(broker: str) -> str:
    prefix = f"ros-{uuid.uuid4().hex[:8]}-"
    asyncio.run(declare_topics(broker, prefix=prefix))
    return prefix


@pytest.mark.broker
def test_a_robot_s_topics_become_windows_through_kafka(
    master: RosMaster, mapping: str, tmp_path: Path, embedded_broker: str
) -> None:
    prefix = installation(embedded_broker)
    arguments = ("ros", "--mapping", mapping, "--broker", embedded_broker, "--prefix", prefix)
    with BridgeCommand(tmp_path, *arguments, environment=master.environment) as bridge, RosRobot(master) as robot:
        robot.advertise("/r7/report", "robot_msgs/Report", REPORT)
        robot.wait_until_heard("/r7/report")
        for episode in range(EPISODES):
            robot.publish("/r7/report", *reports(episode, START_S + 60.0 * episode))
        frames = arriving_frames(embedded_broker, f"{prefix}{STEPS}", EPISODES)
        said = bridge.end()
    assert_departed_and_recovered(evaluated(frames))
    assert {frame.producer for frame in frames} == {"r7"}
    assert "messages became 132 steps and 6 ends of episodes" in said


@pytest.mark.broker
def test_a_simulator_that_is_reset_and_a_master_that_restarts(
    master: RosMaster, mapping: str, tmp_path: Path, embedded_broker: str
) -> None:
    master.set_parameter("/use_sim_time", True)
    prefix = installation(embedded_broker)
    arguments = ("ros", "--mapping", mapping, "--broker", embedded_broker, "--prefix", prefix, "-o", "version=1")
    with BridgeCommand(tmp_path, *arguments, environment=master.environment) as bridge:
        with RosRobot(master) as robot:
            robot.advertise("/clock", "rosgraph_msgs/Clock", CLOCK)
            robot.advertise("/r7/report", "robot_msgs/Report", REPORT)
            robot.wait_until_heard("/r7/report")
            robot.publish("/clock", {"clock": stamp(50.0)})
            robot.publish("/r7/report", *reports(0, 50.0)[:5])  # and then the simulator is reset
            robot.publish("/r7/report", *reports(0, 1.0))
            # rospy drops what it has not read yet of a publisher that goes.
            arriving_frames(embedded_broker, f"{prefix}{STEPS}", 2)
        master.stop()
        master.start()
        with RosRobot(master) as robot:
            robot.advertise("/r7/report", "robot_msgs/Report", REPORT)
            robot.wait_until_heard("/r7/report")
            robot.publish("/r7/report", *reports(2, 100.0))
            frames = arriving_frames(embedded_broker, f"{prefix}{STEPS}", 3)
        said = bridge.end()
    assert "registering again" in said
    assert "clock_reset" in said
    assert outcomes(frames) == ["aborted", "success", "success"]
    assert len({frame.session for frame in frames}) == 2
    assert "messages became 45 steps and 3 ends of episodes" in said
    for frame in frames:
        times = frame.steps["time_s"].tolist() if frame.steps else []  # type: ignore[union-attr]
        assert times == sorted(times)
        assert all(time_s > START_S for time_s in times)
