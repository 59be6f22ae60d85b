"""A value model that is a small network: a multi-layer perceptron on p, q, mode, family and the excesses of a step.

Unlike the mean return by anchor it also sees how much trouble the agent is in. It is fitted offline
(`offline.value_fitting`) and kept in one file. The paper leaves the model open; this one is ours.
"""

from typing import NamedTuple

import msgspec
import numpy as np

from springback.stream_processors.resilience.anchor import N_EXCESS, Floats, Ints
from springback.stream_processors.resilience.stability.value_function import StateFeatures

NETWORK_SCHEMA_VERSION = 1
MOST_HIDDEN_LAYERS = 2
_KIND = "springback-value-network"
_N_SHARES = 2
"""Progress and propositions, the first two inputs."""


class NetworkFormatError(ValueError):
    """A file is no value network that this version of springback can read."""


class Layer(NamedTuple):
    """Weights (inputs, outputs) and bias (outputs,) of one layer."""

    weights: Floats
    bias: Floats


class NetworkValues:
    """V(s) = mean + scale * f(s), f with tanh layers and one linear output. Implements `ValueModel`.

    A mode that it was not fitted on is all zeros in its inputs; a family that it was not fitted on has no value.

    Args:
        families: names that the network knows.
        modes: names that the network knows.
        layers: hidden layers, then the output.
        mean: added to the output, so that the network need not learn where returns lie.
        scale: multiplies the output.

    Raises:
        ValueError: the layers do not fit the names or one another, or a number is not finite.
    """

    def __init__(
        self, families: tuple[str, ...], modes: tuple[str, ...], layers: tuple[Layer, ...], mean: float, scale: float
    ) -> None:
        self.families, self.modes = families, modes
        self.layers, self.mean, self.scale = layers, mean, scale
        _check(self)

    def inputs(self, states: StateFeatures) -> Floats:
        """What the network sees of each state. Shape: (n, input_width).

        In order: p, q, log(1 + z) of the seven excesses, one column per mode, one per family.
        """
        shares = np.column_stack([states.progress, states.propositions, np.log1p(states.excess)])
        modes = _one_hot(states.mode, states.modes, self.modes)
        return np.concatenate([shares, modes, _one_hot(states.family, states.families, self.families)], axis=1)

    def values(self, states: StateFeatures) -> Floats:
        """V of each state (n,); NaN in families that the network does not know.

        A state's value is the same to the last bit whatever other states are asked for with it: sums are taken one
        input after the other, for a matrix product may round a row differently in another batch.
        """
        below = self.inputs(states)
        for layer in self.layers[:-1]:
            below = np.tanh(_row_by_row(below, layer))
        found = self.mean + self.scale * _row_by_row(below, self.layers[-1])[:, 0]
        known = np.array([name in self.families for name in states.families], dtype=bool)
        return np.where(known[states.family], found, np.nan)


def input_width(families: tuple[str, ...], modes: tuple[str, ...]) -> int:
    """How many inputs a network for these names has."""
    return _N_SHARES + N_EXCESS + len(modes) + len(families)


class _StoredLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer in a file; the numbers are little-endian float64, weights row by row."""

    inputs: int
    outputs: int
    weights: bytes
    bias: bytes


class _StoredNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """A network in a file."""

    kind: str
    schema_version: int
    families: tuple[str, ...]
    modes: tuple[str, ...]
    layers: tuple[_StoredLayer, ...]
    mean: float
    scale: float


class _Preamble(msgspec.Struct, frozen=True, kw_only=True):
    """What every version of the file says of itself."""

    kind: str
    schema_version: int


def dump_network(network: NetworkValues) -> bytes:
    """The network as the bytes of a file (MessagePack); the same network gives the same bytes."""
    stored = _StoredNetwork(
        kind=_KIND,
        schema_version=NETWORK_SCHEMA_VERSION,
        families=network.families,
        modes=network.modes,
        layers=tuple(
            _StoredLayer(
                inputs=layer.weights.shape[0],
                outputs=layer.weights.shape[1],
                weights=layer.weights.astype("<f8").tobytes(),
                bias=layer.bias.astype("<f8").tobytes(),
            )
            for layer in network.layers
        ),
        mean=network.mean,
        scale=network.scale,
    )
    return msgspec.msgpack.encode(stored)


def load_network(data: bytes) -> NetworkValues:
    """The network in the bytes of a file.

    Raises:
        NetworkFormatError: they hold none, one of another version, or one that cannot be right.
    """
    try:
        preamble = msgspec.msgpack.decode(data, type=_Preamble)
    except msgspec.DecodeError as error:
        message = f"no value network ({error}): expected a file that `springback fit-value` wrote"
        raise NetworkFormatError(message) from error
    if preamble.kind != _KIND:
        message = f"it holds {preamble.kind!r}, expected {_KIND!r}: a file that `springback fit-value` wrote"
        raise NetworkFormatError(message)
    if preamble.schema_version != NETWORK_SCHEMA_VERSION:
        message = (
            f"its schema_version is {preamble.schema_version}, this springback reads {NETWORK_SCHEMA_VERSION}: "
            "fit the network again"
        )
        raise NetworkFormatError(message)
    try:
        stored = msgspec.msgpack.decode(data, type=_StoredNetwork)
        layers = tuple(
            Layer(
                np.frombuffer(layer.weights, dtype="<f8").astype(np.float64).reshape(layer.inputs, layer.outputs),
                np.frombuffer(layer.bias, dtype="<f8").astype(np.float64),
            )
            for layer in stored.layers
        )
        return NetworkValues(stored.families, stored.modes, layers, stored.mean, stored.scale)
    except (msgspec.DecodeError, ValueError) as error:
        message = f"the value network in it is damaged ({error}): fit it again"
        raise NetworkFormatError(message) from error


def _row_by_row(below: Floats, layer: Layer) -> Floats:
    above = np.tile(layer.bias, (len(below), 1))
    for number, weights in enumerate(layer.weights):
        above += below[:, number, None] * weights
    return above


def _one_hot(codes: Ints, names: list[str], known: tuple[str, ...]) -> Floats:
    place = {name: i for i, name in enumerate(known)}
    # One row more than there are names, for states (none) of an empty list of names.
    rows = np.zeros((len(names) + 1, len(known)))
    for number, name in enumerate(names):
        if name in place:
            rows[number, place[name]] = 1.0
    return rows[codes]


def _check(network: NetworkValues) -> None:
    for names in (network.families, network.modes):
        if len(set(names)) != len(names):
            message = f"a name stands twice in {list(names)}"
            raise ValueError(message)
    if not 2 <= len(network.layers) <= MOST_HIDDEN_LAYERS + 1:
        message = f"there are {len(network.layers)} layers, expected 1 or {MOST_HIDDEN_LAYERS} hidden and an output"
        raise ValueError(message)
    width = input_width(network.families, network.modes)
    for number, layer in enumerate(network.layers):
        outputs = 1 if number == len(network.layers) - 1 else layer.weights.shape[-1]
        if layer.weights.shape != (width, outputs) or layer.bias.shape != (outputs,):
            message = (
                f"layer {number} has weights {layer.weights.shape} and bias {layer.bias.shape}, expected "
                f"{(width, outputs)} and {(outputs,)}"
            )
            raise ValueError(message)
        width = outputs
    if not all(np.isfinite(array).all() for layer in network.layers for array in (*layer, network.mean, network.scale)):
        message = "a number in it is not finite"
        raise ValueError(message)
