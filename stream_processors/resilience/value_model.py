"""Value models: what the rest of an episode is worth from a state on (equation 4).

V(s) is the expected discounted sum of shaped rewards. The default model takes the mean return by anchor, which the
stage baseline learns; any other that can value states may stand in for it.
"""

from typing import NamedTuple, Protocol

import numpy as np
from springback.stream_processors.resilience.materialised_baseline import MaterialisedBaseline
from springback.stream_processors.resilience.signals import Floats, Ints


class StateFeatures(NamedTuple):
    """The states of n scored steps, as they were before each step.

    Attributes:
        families, modes: the names that `family` and `mode` (n,) are positions in.
        progress, propositions: p and q before the step (n,).
        excess: z of equation 1 (n, 7).
        cell: row of the step's anchor in the baseline's cells (n,).
    """

    families: list[str]
    modes: list[str]
    family: Ints
    mode: Ints
    progress: Floats
    propositions: Floats
    excess: Floats
    cell: Ints


class ValueModel(Protocol):
    """Anything that values states."""

    def values(self, states: StateFeatures) -> Floats:
        """V of each state (n,); NaN where the model has none."""


class AnchorValues:
    """The mean discounted return of the reference episodes at each anchor, with back-off and shrinkage."""

    def __init__(self, baseline: MaterialisedBaseline) -> None:
        self._baseline = baseline

    def values(self, states: StateFeatures) -> Floats:
        """V of each state (n,); NaN in families whose returns have not been learned."""
        known = [name in self._baseline.families and self._baseline.families[name].valued for name in states.families]
        return np.where(np.array(known, dtype=bool)[states.family], self._baseline.cells.value[states.cell], np.nan)
