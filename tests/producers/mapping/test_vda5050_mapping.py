"""The mapping for VDA 5050 on messages as vehicles send them."""

from typing import Any

import pytest

from springback.producers.emitter.reports import ReportedEnd, ReportedStep
from springback.producers.mapping.assembler import EpisodeAssembler, MappedReport
from springback.producers.mapping.signal_mapping import TimedMessage, load_mapping

TOPIC = "uagv/v2/acme/agv-3/"


class Vehicle:
    """A vehicle and what the assembler makes of it."""

    def __init__(self) -> None:
        self.assembler = EpisodeAssembler(load_mapping("vda5050"), session="s")
        self._sent = 0
        self.told: list[MappedReport] = []

    def says(self, what: str, **fields: Any) -> None:
        self._sent += 1
        known = {
            "headerId": self._sent,
            "timestamp": f"2026-09-21T14:13:{self._sent:02d}.00Z",
            "version": "2.0.0",
            "manufacturer": "acme",
            "serialNumber": "agv-3",
        }
        self.told += self.assembler.add(TimedMessage(TOPIC + what, 1_790_000_000.0 + self._sent, known | fields))

    def state(self, order: str, nodes_left: int, **fields: Any) -> None:
        usual: dict[str, Any] = {
            "orderId": order,
            "driving": True,
            "nodeStates": [{"nodeId": f"n{number}", "sequenceId": 2 * number} for number in range(nodes_left)],
            "actionStates": [],
            "agvPosition": {"x": float(nodes_left), "y": 0.0, "theta": 0.0, "mapId": "hall"},
            "errors": [],
            "safetyState": {"eStop": "NONE", "fieldViolation": False},
        }
        self.says("state", **(usual | fields))

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [report.report.signals for report in self.told if isinstance(report.report, ReportedStep)]

    @property
    def ends(self) -> list[tuple[str, str]]:
        ends = [report.report for report in self.told if isinstance(report.report, ReportedEnd)]
        return [(end.header.episode, end.outcome) for end in ends]


def test_an_order_is_an_episode() -> None:
    vehicle = Vehicle()
    vehicle.says("connection", connectionState="ONLINE")
    vehicle.state("", 0)
    pick = [{"actionId": "a", "actionType": "pick", "actionStatus": "RUNNING"}]
    vehicle.state("o1", 4)
    vehicle.state("o1", 3, actionStates=pick, errors=[{"errorType": "slip", "errorLevel": "WARNING"}])
    vehicle.state("o1", 1, safetyState={"eStop": "MANUAL", "fieldViolation": True})
    vehicle.state("o1", 0)
    vehicle.state("o1", 0)  # it stands and waits
    assert [step["progress"] for step in vehicle.steps] == [0.0, 0.25, 0.75, 1.0]
    assert [step["mode"] for step in vehicle.steps] == ["drive", "pick", "drive", "drive"]
    assert [step["risk"] for step in vehicle.steps] == [0.0, 0.5, 0.0, 0.0]
    assert [step["violation"] for step in vehicle.steps] == [0.0, 0.0, 1.0, 0.0]
    assert [step["travel"] for step in vehicle.steps] == [0.0, 1.0, 2.0, 1.0]
    assert vehicle.ends == [("o1", "success")]
    assert "unusable_value" not in vehicle.assembler.report.left_out


def test_orders_that_are_cancelled_or_fail() -> None:
    vehicle = Vehicle()
    vehicle.state("o1", 2)
    vehicle.state("o1", 0, actionStates=[{"actionId": "c", "actionType": "cancelOrder", "actionStatus": "FINISHED"}])
    vehicle.state("o2", 2)
    vehicle.state("o2", 2, errors=[{"errorType": "drive", "errorLevel": "FATAL"}])
    assert vehicle.ends == [("o1", "aborted"), ("o2", "failure")]


def test_a_broken_connection_is_silence_and_a_late_will_is_nothing() -> None:
    vehicle = Vehicle()
    vehicle.says("connection", connectionState="ONLINE")
    vehicle.state("o1", 4)
    vehicle.says("connection", connectionState="CONNECTIONBROKEN", timestamp="2026-09-21T14:13:00.00Z")
    vehicle.says("connection", connectionState="ONLINE")
    vehicle.state("o1", 2)
    vehicle.says("connection", connectionState="CONNECTIONBROKEN")  # of the connection before
    vehicle.state("o1", 0)
    assert [step["progress"] for step in vehicle.steps] == [0.0, 0.5, 1.0]
    assert vehicle.ends == [("o1", "success")]
    assert len({report.session for report in vehicle.told}) == 1


def test_a_proper_goodbye_ends_the_session() -> None:
    vehicle = Vehicle()
    vehicle.says("connection", connectionState="ONLINE")
    vehicle.state("o1", 2)
    vehicle.says("connection", connectionState="OFFLINE")
    vehicle.state("o1", 1)
    assert vehicle.ends == [("o1", "aborted")]
    assert len({report.session for report in vehicle.told}) == 2


def drop(status: str, **more: Any) -> dict[str, Any]:
    return {"actionId": "d", "actionType": "drop", "actionStatus": status} | more


def test_an_order_is_over_when_its_last_action_is() -> None:
    vehicle = Vehicle()
    vehicle.state("o1", 1, actionStates=[drop("WAITING")])
    for _ in range(3):
        vehicle.state("o1", 0, actionStates=[drop("RUNNING")])
    assert vehicle.ends == []
    vehicle.state("o1", 0, actionStates=[drop("FINISHED")])
    assert vehicle.ends == [("o1", "success")]
    assert len(vehicle.steps) == 5


@pytest.mark.parametrize(
    ("actions", "outcome"),
    [
        ([drop("FAILED")], "failure"),
        ([drop("FINISHED"), drop("FAILED")], "failure"),
        ([drop("FAILED", optional=True), drop("FINISHED")], "success"),
        (
            [{"actionId": "i", "actionType": "stateRequest", "actionStatus": "FAILED"}],
            "success",
        ),  # no part of the order
    ],
)
def test_an_action_that_failed_is_no_success_unless_it_was_optional(
    actions: list[dict[str, Any]], outcome: str
) -> None:
    vehicle = Vehicle()
    vehicle.state("o1", 2, actionStates=[drop("WAITING")])
    vehicle.state("o1", 0, actionStates=actions)
    assert vehicle.ends == [("o1", outcome)]


def test_an_order_for_where_it_stands_is_an_episode_by_its_actions() -> None:
    vehicle = Vehicle()
    pick = {"actionId": "p", "actionType": "pick", "actionStatus": "RUNNING"}
    vehicle.state("o1", 0, actionStates=[pick, drop("WAITING")])
    vehicle.state("o1", 0, actionStates=[pick | {"actionStatus": "FINISHED"}, drop("RUNNING")])
    vehicle.state("o1", 0, actionStates=[pick | {"actionStatus": "FINISHED"}, drop("FINISHED")])
    assert [step["progress"] for step in vehicle.steps] == [0.0, 0.5, 1.0]
    assert vehicle.ends == [("o1", "success")]


def test_an_action_that_comes_on_the_way_adds_no_work() -> None:
    vehicle = Vehicle()
    charging = [{"actionId": "c", "actionType": "startCharging", "actionStatus": "RUNNING"}]
    waiting, done = [drop("WAITING")], [drop("FINISHED")]
    for nodes, actions in ((2, waiting), (1, waiting + charging), (1, waiting), (0, done)):
        vehicle.state("o1", nodes, actionStates=actions)
    assert [step["progress"] for step in vehicle.steps] == [0.0, 0.5, 0.5, 1.0]
    assert vehicle.ends == [("o1", "success")]
    assert "extended" not in vehicle.assembler.report.left_out


def test_an_order_that_was_over_before_anybody_listened_is_no_episode() -> None:
    vehicle = Vehicle()
    for _ in range(3):
        vehicle.state("o1", 0, actionStates=[drop("FINISHED")])
    assert vehicle.told == []
    vehicle.state("o2", 1)
    vehicle.state("o2", 0)
    assert vehicle.ends == [("o2", "success")]


def test_an_edge_that_is_left_is_still_to_be_driven() -> None:
    vehicle = Vehicle()
    vehicle.state("o1", 1, edgeStates=[{"edgeId": "e", "sequenceId": 1}])
    vehicle.state("o1", 0, edgeStates=[{"edgeId": "e", "sequenceId": 1}])
    assert vehicle.ends == []
    vehicle.state("o1", 0, edgeStates=[])
    assert vehicle.ends == [("o1", "success")]


@pytest.mark.parametrize("by_hand", ["MANUAL", "SERVICE", "TEACHIN"])
@pytest.mark.parametrize("order", ["o1", ""])
def test_an_order_that_was_thrown_away_by_hand_is_no_success(by_hand: str, order: str) -> None:
    vehicle = Vehicle()
    for nodes in (8, 7, 6):
        vehicle.state("o1", nodes, operatingMode="AUTOMATIC")
    vehicle.state(order, 0, operatingMode=by_hand)
    vehicle.state(order, 0, operatingMode=by_hand)
    assert vehicle.ends == []
    assert {step["progress"] for step in vehicle.steps[2:]} == {0.25}
    vehicle.state(order, 0, operatingMode="AUTOMATIC")  # back without its order
    assert vehicle.ends == [("o1", "aborted")]


def test_an_order_that_a_vehicle_has_lost_is_no_success() -> None:
    vehicle = Vehicle()
    vehicle.state("o1", 4)
    vehicle.state("", 0)  # it was started anew
    assert vehicle.ends == [("o1", "aborted")]


def test_an_order_that_outlives_driving_by_hand_goes_on() -> None:
    vehicle = Vehicle()
    for nodes, mode in ((4, "AUTOMATIC"), (3, "MANUAL"), (0, "MANUAL"), (3, "AUTOMATIC"), (1, "AUTOMATIC")):
        vehicle.state("o1", nodes, operatingMode=mode)
    assert [step["progress"] for step in vehicle.steps] == [0.0, 0.0, 0.0, 0.25, 0.75]
    vehicle.state("o1", 0, operatingMode="AUTOMATIC")
    assert vehicle.ends == [("o1", "success")]


def test_an_order_that_is_forgotten_in_service_ends_with_the_next() -> None:
    vehicle = Vehicle()
    vehicle.state("o1", 4)
    vehicle.state("", 0, operatingMode="SERVICE")
    vehicle.state("o2", 2, operatingMode="AUTOMATIC")
    vehicle.state("o2", 0, operatingMode="AUTOMATIC")
    assert vehicle.ends == [("o1", "aborted"), ("o2", "success")]


def test_an_order_that_gets_longer_never_goes_back() -> None:
    vehicle = Vehicle()
    for update, nodes in ((0, 4), (0, 2), (1, 5), (1, 3), (2, 4), (2, 1), (2, 0)):
        vehicle.state("o1", nodes, orderUpdateId=update)
    # Done of the largest total: 0/4, 2/4, 2/7, 4/7, 4/8, 7/8, 8/8, and never less than before.
    assert [step["progress"] for step in vehicle.steps] == pytest.approx([0, 1 / 2, 1 / 2, 4 / 7, 4 / 7, 7 / 8, 1])
    assert vehicle.ends == [("o1", "success")]
    assert vehicle.assembler.report.left_out["extended"] == 2
    vehicle.state("o2", 1)
    vehicle.state("o2", 0)
    ends = [report.report for report in vehicle.told if isinstance(report.report, ReportedEnd)]
    assert [(end.header.episode, end.extended) for end in ends] == [("o1", True), ("o2", False)]


def test_an_update_of_an_order_that_was_over_is_another_episode_of_it() -> None:
    vehicle = Vehicle()
    vehicle.state("o1", 2)
    vehicle.state("o1", 0)
    vehicle.state("o1", 0)  # it waits at its last node
    assert vehicle.ends == [("o1", "success")]
    assert vehicle.assembler.report.left_out["after_end"] == 1
    assert "'o1' is over" in vehicle.assembler.report.examples["after_end"]
    vehicle.state("o1", 2, orderUpdateId=1)
    vehicle.state("o1", 2, orderUpdateId=1, errors=[{"errorType": "drive", "errorLevel": "FATAL"}])
    assert vehicle.ends == [("o1", "success"), ("o1#2", "failure")]
    assert vehicle.assembler.report.left_out["reopened"] == 1
    headers = [report.report.header for report in vehicle.told if isinstance(report.report, ReportedStep)]
    assert [(header.episode, header.task) for header in headers[2:]] == [("o1#2", "o1"), ("o1#2", "o1")]


def test_an_order_that_is_first_heard_of_in_its_midst_is_joined() -> None:
    vehicle = Vehicle()
    for order, first in (("o1", 6), ("o2", 2)):  # the bridge was started when o1 had passed its first nodes
        nodes = [{"nodeId": f"n{number}", "sequenceId": number} for number in range(first, 10, 2)]
        for passed in range(len(nodes) + 1):
            vehicle.state(order, 0, nodeStates=nodes[passed:])
    assert vehicle.ends == [("o1", "success"), ("o2", "success")]
    steps = [report.report for report in vehicle.told if isinstance(report.report, ReportedStep)]
    assert [(step.header.episode, step.step) for step in steps[:3]] == [("o1", 1), ("o1", 2), ("o1", 3)]
    assert [step.step for step in steps[3:]] == [0, 1, 2, 3, 4]
    assert vehicle.assembler.report.left_out["joined"] == 1


def test_work_that_is_added_at_the_last_node_is_no_other_episode() -> None:
    vehicle = Vehicle()
    for nodes, status in ((2, "WAITING"), (0, "RUNNING"), (1, "RUNNING"), (0, "RUNNING"), (0, "FINISHED")):
        vehicle.state("o1", nodes, actionStates=[drop(status)])
    assert vehicle.ends == [("o1", "success")]
    assert len(vehicle.steps) == 5
