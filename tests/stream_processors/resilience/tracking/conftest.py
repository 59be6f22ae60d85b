"""The baseline that the tests of the episode tracker score by."""

import pytest

from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from tests.stream_processors.frame_builders import nominal_baseline, ready


@pytest.fixture(scope="module")
def baseline() -> MaterialisedBaseline:
    """What nominal references teach under the default settings."""
    config = ResilienceConfig()
    return ready(nominal_baseline(config), config)
