"""A service that is told to end while it still imports what it needs: that is an orderly end, like any later one."""

import subprocess
import sys

import pytest

from springback.deploy.cli import SERVICES

# The signal comes at the import of what the command needs, so at an instant at which the service has not begun to run.
PROGRAM = """
import os, signal, sys
from springback.deploy.cli import main

class Ending:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.Signals[sys.argv[2]])

sys.meta_path.insert(0, Ending())
sys.exit(main(sys.argv[3:]))
"""
NEEDED = {
    "annotate": "springback.sinks.grafana.annotations_sink",
    "bridge": "springback.producers.sources",
    "export": "springback.sinks.exporter",
    "gateway": "springback.producers.gateway.server",
    "judge": "springback.stream_processors.judging.process",
    "live": "springback.dashboards.live_page.live_server",
    "up": "springback.deploy.local_stack",
    "worker": "springback.stream_processors.worker.app",
}
MORE = {"bridge": ["mqtt"], "judge": ["--endpoint", "http://127.0.0.1:9/v1", "--model", "none"]}


def ended(module: str, number: str, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-c", PROGRAM, module, number, *arguments], check=False).returncode


@pytest.mark.broker
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("service", sorted(SERVICES))
def test_a_service_that_is_told_to_end_before_it_runs_ends_with_0(service: str, number: str) -> None:
    assert ended(NEEDED[service], number, service, *MORE.get(service, [])) == 0


def test_a_command_that_is_to_do_something_does_not_pass_for_done() -> None:
    module = "springback.producers.contract.schema"
    assert ended(module, "SIGTERM", "schema") == -15
    assert ended(module, "SIGINT", "schema") == 130
