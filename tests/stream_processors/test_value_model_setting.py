"""A value network named in the settings, and in the first stage."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from springback.producers.contract.codec import encode_msgpack
from springback.stream_processors.errors import SettingsError
from springback.stream_processors.exact.port import StageEvent
from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeSummary, decode_reading
from springback.stream_processors.resilience.stability.network_value import (
    Layer,
    NetworkValues,
    dump_network,
    input_width,
)
from springback.stream_processors.settings import load_settings
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import SUMMARIES
from springback.stream_processors.value_models import read_value_model
from tests.stream_processors.frame_builders import START_S, frame_of, nominal_rows, ready


def network() -> NetworkValues:
    rng = np.random.default_rng(0)
    width = input_width(("navigation",), ("navigate",))
    layers = Layer(rng.normal(size=(width, 4)), np.zeros(4)), Layer(rng.normal(size=(4, 1)), np.zeros(1))
    return NetworkValues(("navigation",), ("navigate",), layers, mean=5.0, scale=2.0)


def test_the_setting_names_a_file(tmp_path: Path) -> None:
    path = tmp_path / "clean.value"
    path.write_bytes(dump_network(network()))
    settings = load_settings(environment={"SPRINGBACK_VALUE_MODEL": str(path)})
    assert dump_network(read_value_model(Path(settings.value_model), "value_model")) == path.read_bytes()
    assert load_settings(environment={}).value_model == ""


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"value_model: cannot read .*No such file"):
        read_value_model(tmp_path / "none", "value_model")
    path = tmp_path / "other"
    path.write_bytes(b"{}")
    with pytest.raises(SettingsError, match=r"value_model .*other': no value network"):
        read_value_model(path, "value_model")


def test_the_first_stage_values_states_by_the_network() -> None:
    """A network that knows no other family leaves the loss of one unknown; the anchors would know it."""
    config = ResilienceConfig()
    found = {}
    for family in ("navigation", "cooking"):
        frames = [
            frame_of(nominal_rows(0, 20), "success", episode=str(i), reference=True, family=family) for i in range(8)
        ]
        for name, model in (("network", network()), ("anchor", None)):
            baseline = learn_baseline(frames, config, model=model)
            stage = TrackSteps(config, partial(ready, baseline, config), model)
            event = StageEvent("steps", 0, 0, b"", encode_msgpack(frames[0]), START_S)
            outputs = stage.apply([event], [stage.blank()])
            readings = [decode_reading(output.value or b"") for output in outputs if output.topic == SUMMARIES]
            (summary,) = [reading for reading in readings if isinstance(reading, EpisodeSummary)]
            found[family, name] = summary.stability_loss
    assert found["cooking", "network"] is None
    assert found["cooking", "anchor"] is not None
    assert found["navigation", "network"] not in (None, found["navigation", "anchor"])
