"""What bridges share: settings, inbox, the way to ROS, and the mapping in their README."""

import re
import sys
import threading
from pathlib import Path

import pytest

from springback.deploy import cli
from springback.producers.bridges.ros_common import (
    ArrivedMessage,
    BridgeInbox,
    MissingRosError,
    NoticedTopics,
    import_rclpy,
    import_rospy,
)
from springback.producers.bridges.settings import BridgeOptionError, RosSettings, bridge_settings
from springback.producers.mapping.signal_mapping import load_mapping, parse_mapping
from tests.house import ROOT

README = ROOT / "producers" / "README.md"
MINE = """
agent = "r7"
header = { family = "delivery" }
step = { cycle_s = 1 }
signals = { progress = { topic = "done" } }
episode = { whole = true }
[source.ros]
version = 2
inbox = 5
"""


def test_options_stand_above_the_mapping_s_own_settings() -> None:
    mapping = parse_mapping(MINE, "mine.toml")
    settings = bridge_settings(RosSettings, "ros", mapping, {"version": "1", "use_sim_time": "true"})
    assert (settings.version, settings.use_sim_time, settings.inbox) == (1, True, 5)


@pytest.mark.parametrize(("option", "value"), [("version", "3"), ("inbox", "many"), ("topic", "x")])
def test_settings_that_cannot_be_are_told(option: str, value: str) -> None:
    with pytest.raises(
        BridgeOptionError,
        match=r"the bridge ros.*(version is|inbox is 'many'|has no setting topic)",
    ):
        bridge_settings(RosSettings, "ros", None, {option: value})


def test_an_inbox_keeps_the_order_and_counts_what_it_cannot_hold() -> None:
    inbox = BridgeInbox(capacity=3)
    for number in range(5):
        inbox.put(ArrivedMessage("/odom", number, 0.0))
    assert [arrived.message for arrived in inbox.take(0.0)] == [0, 1, 2]
    assert inbox.dropped == 2
    assert inbox.take(0.0) == []


def test_an_inbox_wakes_whoever_waits_and_gives_all_before_it_fails() -> None:
    inbox = BridgeInbox()
    putting = threading.Timer(0.01, lambda: inbox.put(ArrivedMessage("/odom", 1, 0.0)))
    putting.start()
    assert len(inbox.take(30.0)) == 1
    putting.join()
    inbox.put(ArrivedMessage("/odom", 2, 0.0))
    inbox.fail(OSError("gone"))
    assert len(inbox.take(30.0)) == 1
    with pytest.raises(OSError, match="gone"):
        inbox.take(30.0)


def test_an_inbox_holds_something() -> None:
    with pytest.raises(ValueError, match="must be 1 or more, got 0"):
        BridgeInbox(0)


def test_rospy_is_found_where_distributions_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "rospy", None)  # so that what is found is forgotten again
    del sys.modules["rospy"]
    broken, good = tmp_path / "a" / "dist-packages", tmp_path / "b" / "dist-packages"
    for place, text in ((broken, "import a_library_that_is_not_there"), (good, "FOUND = True")):
        (place / "rospy").mkdir(parents=True)
        (place / "rospy" / "__init__.py").write_text(text)
    assert import_rospy((f"{tmp_path}/*/dist-packages",)).FOUND
    assert sys.path[-1] == str(good)
    assert str(broken) not in sys.path


def test_without_ros_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rospy", None)
    monkeypatch.setitem(sys.modules, "rclpy", None)
    with pytest.raises(MissingRosError, match="apt-get install ros-core python3-rospy"):
        import_rospy(())
    with pytest.raises(MissingRosError, match=r"source /opt/ros/DISTRO/setup\.bash"):
        import_rclpy()


def test_the_command_without_ros_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rclpy", None)
    monkeypatch.setattr("springback.deploy.commands.log_options.configure_logging", lambda *_: None)
    recording = str(tmp_path / "out.jsonl")
    assert cli.main(["bridge", "ros", "--mapping", "nav2", "-o", "version=2", "--record", recording]) == 2
    assert "rclpy cannot be imported by" in capsys.readouterr().err


def test_the_readme_s_mapping_of_a_robot_is_one() -> None:
    section = README.read_text(encoding="utf-8").partition("## ROS 1 and ROS 2")[2]
    found = re.search(r"```toml\n(.*?)```", section, re.DOTALL)
    assert found is not None
    assert set(parse_mapping(found[1], "README.md").signals) == {"progress", "risk"}


def test_topics_that_are_not_read_are_noticed_once(caplog: pytest.LogCaptureFixture) -> None:
    noticed = NoticedTopics(load_mapping("nav2").patterns)
    for there in (["/odom"], ["/odom", "/r7/odom"], ["/odom", "/r7/odom"], ["/r7/odom", "/r8/odom"]):
        noticed.notice(there)
    assert [record.getMessage().partition(" is not read")[0] for record in caplog.records] == [
        "'/r7/odom'",
        "'/r8/odom'",
    ]
