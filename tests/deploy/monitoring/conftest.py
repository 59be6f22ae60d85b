"""The running monitoring that the tests of this folder share."""

from collections.abc import Iterator

import pytest

from tests.deploy.monitoring.monitoring_stack import MonitoringStack, monitoring_stack
from tests.deploy.monitoring.monitoring_tools import needed_tool


@pytest.fixture(scope="session")
def monitoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitoringStack]:
    """Pipeline, fleet, Prometheus and Alertmanager; started when first asked for, stopped after the last test."""
    for program in ("prometheus", "prometheus-alertmanager"):
        needed_tool(program)
    with monitoring_stack(tmp_path_factory.mktemp("monitoring")) as running:
        yield running
