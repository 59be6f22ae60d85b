import sys

import pytest

from tests.producers.habitat_testbed.fake_house_sim import fake_house_sim


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.needs_habitat)])
def habitat_sim(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "real":
        pytest.importorskip("habitat_sim", reason="habitat-sim is not installed")
    else:
        monkeypatch.setitem(sys.modules, "habitat_sim", fake_house_sim())
