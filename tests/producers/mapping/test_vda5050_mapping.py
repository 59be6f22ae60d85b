"""The mapping for VDA 5050 on messages as vehicles send them."""

from typing import Any

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


def test_a_last_will_ends_the_session() -> None:
    vehicle = Vehicle()
    vehicle.says("connection", connectionState="ONLINE")
    vehicle.state("o1", 2)
    vehicle.says("connection", connectionState="CONNECTIONBROKEN", timestamp="2026-09-21T14:13:00.00Z")
    vehicle.state("o1", 1)
    assert vehicle.ends == [("o1", "aborted")]
    assert len({report.session for report in vehicle.told}) == 2
