"""The value model that a setting names: a file, a third party's, the anchors; and a network in the first stage."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from springback.producers.contract.codec import encode_msgpack
from springback.stream_processors.errors import SettingsError
from springback.stream_processors.exact.port import StageEvent
from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.anchor import Floats
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeSummary, decode_reading
from springback.stream_processors.resilience.stability.network_value import (
    Layer,
    NetworkValues,
    dump_network,
    input_width,
)
from springback.stream_processors.resilience.stability.value_function import StateFeatures
from springback.stream_processors.settings import load_settings
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import SUMMARIES
from springback.stream_processors.value_models import VALUE_MODEL_GROUP, find_value_model, named_value_models
from tests.house import ROOT
from tests.stream_processors.frame_builders import START_S, frame_of, nominal_rows, ready
from tests.stream_processors.value_states import random_states


def network() -> NetworkValues:
    rng = np.random.default_rng(0)
    width = input_width(("navigation",), ("navigate",))
    layers = Layer(rng.normal(size=(width, 4)), np.zeros(4)), Layer(rng.normal(size=(4, 1)), np.zeros(1))
    return NetworkValues(("navigation",), ("navigate",), layers, mean=5.0, scale=2.0)


def test_the_setting_names_a_file(tmp_path: Path) -> None:
    path = tmp_path / "clean.value"
    path.write_bytes(dump_network(network()))
    settings = load_settings(environment={"SPRINGBACK_VALUE_MODEL": str(path)})
    found = find_value_model(settings.value_model)
    assert isinstance(found, NetworkValues)
    assert dump_network(found) == path.read_bytes()
    assert load_settings(environment={}).value_model == ""


@pytest.mark.parametrize("name", ["", "anchor"])
def test_the_anchors_are_the_default(name: str) -> None:
    assert find_value_model(name) is None


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"value_model: cannot read .*No such file.* models anchor\."):
        find_value_model(str(tmp_path / "none"))
    path = tmp_path / "other"
    path.write_bytes(b"{}")
    with pytest.raises(SettingsError, match=r"value_model .*other': no value network"):
        find_value_model(str(path))


class Half:
    """A value model of a third party."""

    def values(self, states: StateFeatures) -> Floats:
        return np.full(len(states.progress), 0.5)


def half() -> Half:
    return Half()


HALF = Half()
NOTHING = "no model"


def broken() -> Half:
    message = "no weights"
    raise RuntimeError(message)


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a distribution with the given entry points, which lead to a module with the models of this file."""
    monkeypatch.syspath_prepend(tmp_path)
    module = ModuleType("third_party_models")
    vars(module).update(Half=Half, half=half, HALF=HALF, NOTHING=NOTHING, int=int, broken=broken)
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def install(distribution: str, **entries: str) -> None:
        folder = tmp_path / f"{distribution}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"{name} = third_party_models:{place}" for name, place in entries.items()]
        (folder / "entry_points.txt").write_text("\n".join([f"[{VALUE_MODEL_GROUP}]", *lines]))

    return install


def test_a_third_partys_model_is_found_by_name(third_party: Callable[..., None], tmp_path: Path) -> None:
    third_party("half-models", by_class="Half", by_function="half", by_object="HALF")
    for name in ("by_class", "by_function", "by_object"):
        assert isinstance(find_value_model(name), Half)
    assert named_value_models().distributions == {
        "anchor": "springback",
        "by_class": "half-models",
        "by_function": "half-models",
        "by_object": "half-models",
    }
    with pytest.raises(SettingsError, match=r"--value-model: .* models anchor, by_class, by_function, by_object\."):
        find_value_model("by_clas", "--value-model")
    # A file of that name is still at hand, by its path.
    file = tmp_path / "by_class"
    file.write_bytes(dump_network(network()))
    assert isinstance(find_value_model(str(file)), NetworkValues)


def test_the_model_of_the_readme_is_one(third_party: Callable[..., None]) -> None:
    readme = (ROOT / "stream_processors" / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(class Critic:.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert example is not None
    exec(example[1], vars(sys.modules["third_party_models"]))
    third_party("acme-critic", critic="Critic")
    model = find_value_model("critic")
    assert model is not None
    states = random_states(np.random.default_rng(0), 3)
    assert model.values(states).tolist() == pytest.approx((20.0 * (1.0 - states.progress)).tolist())


def test_a_third_partys_model_that_fails_is_named(third_party: Callable[..., None]) -> None:
    third_party("half-models", text="NOTHING", fails="broken", other="int", gone="Gone", anchor="Half", twice="Half")
    third_party("other-models", twice="half", whole="half")
    assert find_value_model("anchor") is None
    assert isinstance(find_value_model("twice"), Half)
    assert isinstance(find_value_model("whole"), Half)
    for name, told in (
        ("text", r"value_model: text of half-models is left out: it is a str, neither"),
        (
            "fails",
            r"value_model: the value model 'fails' of half-models cannot be made \(RuntimeError: no weights\);",
        ),
        (
            "other",
            r"'other' of half-models is an object of type int without a method `values`, expected a `ValueModel`",
        ),
        ("gone", r"gone of half-models is left out: third_party_models:Gone cannot be loaded"),
    ):
        with pytest.raises(SettingsError, match=told):
            find_value_model(name)
    faults = {(fault.name, fault.distribution): fault.reason for fault in named_value_models().faults}
    assert sorted(faults) == [
        ("anchor", "half-models"),
        ("gone", "half-models"),
        ("text", "half-models"),
        ("twice", "other-models"),
    ]
    assert faults["anchor", "half-models"].startswith("springback has a value model 'anchor' already; rename the entry")
    assert faults["twice", "other-models"].startswith("half-models has a value model 'twice' already")


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
            stage = TrackSteps(config, ready(baseline, config), model)
            event = StageEvent("steps", 0, 0, frames[0].producer.encode(), encode_msgpack(frames[0]), START_S)
            outputs = stage.apply([event], [stage.blank()])
            readings = [decode_reading(output.value or b"") for output in outputs if output.topic == SUMMARIES]
            (summary,) = [reading for reading in readings if isinstance(reading, EpisodeSummary)]
            found[family, name] = summary.stability_loss
    assert found["cooking", "network"] is None
    assert found["cooking", "anchor"] is not None
    assert found["navigation", "network"] not in (None, found["navigation", "anchor"])
