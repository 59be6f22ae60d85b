"""The value network: what it computes, what it says of what it does not know, and its file."""

import math
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest

from springback.stream_processors.resilience.stability.network_value import (
    Layer,
    NetworkFormatError,
    NetworkValues,
    dump_network,
    input_width,
    load_network,
)
from springback.stream_processors.resilience.stability.value_function import StateFeatures, ValueModel
from tests.stream_processors.value_states import FAMILIES, MODES, random_states


def random_network(seed: int = 0, hidden: tuple[int, ...] = (8, 5)) -> NetworkValues:
    rng = np.random.default_rng(seed)
    families, modes = ("manipulation", "navigation"), ("explore", "navigate", "plan")
    widths = [input_width(families, modes), *hidden, 1]
    layers = tuple(Layer(rng.normal(size=(below, above)), rng.normal(size=above)) for below, above in pairwise(widths))
    return NetworkValues(families, modes, layers, mean=20.0, scale=7.0)


def one_state(**changes: Any) -> StateFeatures:
    state = StateFeatures(
        families=["navigation"],
        modes=["plan"],
        family=np.array([0]),
        mode=np.array([0]),
        progress=np.array([0.5]),
        propositions=np.array([0.25]),
        excess=np.array([[0.0, 1.0, 0.0, 0.0, 3.0, 0.0, 0.0]]),
        cell=np.array([4]),
    )
    return state._replace(**changes)


def test_a_network_by_hand() -> None:
    """One hidden unit: h = tanh(2 p - q + ln 2 + ln 4 + plan - navigation - 1), V = 10 + 4 (3 h + 0.5)."""
    weights = np.zeros((input_width(("navigation",), ("plan",)), 1))
    weights[[0, 1, 3, 6, 9, 10], 0] = [2.0, -1.0, 1.0, 1.0, 1.0, -1.0]
    layers = Layer(weights, np.array([-1.0])), Layer(np.array([[3.0]]), np.array([0.5]))
    network: ValueModel = NetworkValues(("navigation",), ("plan",), layers, mean=10.0, scale=4.0)
    h = math.tanh(1.0 - 0.25 + math.log(2.0) + math.log(4.0) + 1.0 - 1.0 - 1.0)
    assert network.values(one_state()) == pytest.approx([10.0 + 4.0 * (3.0 * h + 0.5)])
    unknown_mode = math.tanh(1.0 - 0.25 + math.log(2.0) + math.log(4.0) - 1.0 - 1.0)
    assert network.values(one_state(modes=["dance"])) == pytest.approx([10.0 + 4.0 * (3.0 * unknown_mode + 0.5)])
    assert np.isnan(network.values(one_state(families=["cooking"]))).all()


def test_names_count_and_not_their_numbers() -> None:
    network, states = random_network(), random_states(np.random.default_rng(1), 50)
    renamed = states._replace(
        families=["cooking", *FAMILIES[::-1]], family=2 - states.family, modes=["dance", *MODES], mode=states.mode + 1
    )
    assert (network.values(renamed) == network.values(states)).all()


def test_a_value_does_not_depend_on_the_batch() -> None:
    network, states = random_network(), random_states(np.random.default_rng(2), 300)
    whole = network.values(states)
    for size in (1, 3, 64):
        parts = []
        for start in range(0, 300, size):
            cut = slice(start, start + size)
            columns: dict[str, Any] = {name: getattr(states, name)[cut] for name in StateFeatures._fields[2:]}
            parts.append(network.values(states._replace(**columns)))
        assert (np.concatenate(parts) == whole).all()


def test_no_states_have_no_values() -> None:
    states = random_states(np.random.default_rng(0), 0)._replace(families=[], modes=[])
    assert random_network().values(states).shape == (0,)


@pytest.mark.parametrize("hidden", [(3,), (8, 5)])
def test_a_file_holds_the_network_exactly(hidden: tuple[int, ...]) -> None:
    network, states = random_network(3, hidden), random_states(np.random.default_rng(3), 40)
    data = dump_network(network)
    again = load_network(data)
    assert (again.values(states) == network.values(states)).all()
    assert (again.families, again.modes, again.mean, again.scale) == (
        ("manipulation", "navigation"),
        *(network.modes,),
        20.0,
        7.0,
    )
    assert dump_network(again) == data


def stored(**changes: Any) -> bytes:
    return msgspec.msgpack.encode({**msgspec.msgpack.decode(dump_network(random_network())), **changes})


def layer(inputs: int, outputs: int, value: float = 0.5) -> dict[str, Any]:
    return {
        "inputs": inputs,
        "outputs": outputs,
        "weights": np.full(inputs * outputs, value).tobytes(),
        "bias": np.zeros(outputs).tobytes(),
    }


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no value network"),
        (b"not a model", "expected a file that `springback fit-value` wrote"),
        (dump_network(random_network())[:-30], "no value network"),
        (msgspec.msgpack.encode({"schema_version": 1}), "no value network"),
        (stored(kind="baseline"), "it holds 'baseline'"),
        (stored(schema_version=2), "its schema_version is 2, this springback reads 1"),
        (stored(modes=["a", "a", "b"]), "a name stands twice"),
        (stored(modes=["a"]), "layer 0 has weights (14, 8)"),
        (stored(layers=[layer(14, 1)]), "there are 1 layers"),
        (stored(layers=[layer(14, 4), layer(3, 1)]), "layer 1 has weights (3, 1)"),
        (stored(layers=[layer(14, 4), layer(4, 2)]), "layer 1 has weights (4, 2)"),
        (stored(layers=[layer(14, 4), {**layer(4, 1), "weights": b"1234567"}]), "damaged"),
        (stored(layers=[layer(14, 4), {**layer(4, 1), "inputs": 5}]), "damaged"),
        (stored(layers=[layer(14, 4), layer(4, 1, math.inf)]), "not finite"),
        (stored(scale=math.nan), "not finite"),
        (stored(mean="0"), "damaged"),
    ],
)
def test_a_file_that_cannot_be_right_is_refused_with_its_reason(data: bytes, said: str) -> None:
    with pytest.raises(NetworkFormatError) as refused:
        load_network(data)
    assert said in str(refused.value)
