"""How far a step lies beyond its anchor's nominal: excess and recovery intensity (equations 1 and 2).

Everything here is elementwise over the rows of a batch, in plain ufuncs: a row's result is the same to the last bit
however the rows are cut into batches, which is what makes a replay after a crash exact.

An example with one cell whose denominators are all 1 and whose Sigma + eta I is the identity. Planning and perception
take 1 s there; a step that plans for 4 s and perceives for 5 s has an excess of 3 and 4, so g^cog is 5. The other two
channels are calm, so g^rec is sqrt(5^2 / 3):

>>> signals = np.array([[4.0, 5.0, 0.25, 0.0, 0.1, 0.1, 0.0, 0.5]])
>>> nominal = np.array([[1.0, 1.0, 0.25, 0.0, 0.1, 0.1, 0.0, 0.5]])
>>> pair, triple, nothing = np.eye(2)[None], np.eye(3)[None], np.zeros(1)
>>> cells = CellEstimates(nominal, np.ones((1, 7)), pair, pair, triple, nothing, nothing, nothing, triple)
>>> z = excess(signals, np.array([0]), cells)
>>> z.tolist()
[[3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
>>> level = intensity(z, np.array([0]), cells)
>>> level.cognitive.tolist(), level.total.round(4).tolist()
([5.0], [2.8868])
"""

from dataclasses import dataclass

import numpy as np

from springback.stream_processors.resilience.anchor import COGNITIVE, DEBT, GAINS, N_EXCESS, PHYSICAL, Floats, Ints
from springback.stream_processors.resilience.baseline.estimates import CellEstimates

CHANNEL_COUNT = 3
"""U of equation 3: cognitive, physical, state debt."""


@dataclass(frozen=True, slots=True)
class Intensity:
    """Recovery intensity of n steps. Shape: (n,) each; dimensionless, >= 0.

    `total` is g^rec = sqrt(mean over channels of (g^u)^2); the others are the g^u.
    """

    total: Floats
    cognitive: Floats
    physical: Floats
    debt: Floats


def excess(signals: Floats, rows: Ints, cells: CellEstimates) -> Floats:
    """The z of equation 1: excess over the nominal, as a share of it. Shape: signals (n, 8), result (n, 7).

    Effort and risk count where they lie above the mean; progress and proposition gain where they lie below it, since
    there it is the lag that costs.
    """
    mean = cells.mean[rows, :N_EXCESS]
    above = signals[:, :N_EXCESS] - mean
    above[:, GAINS] = -above[:, GAINS]
    return np.maximum(above, 0.0) / cells.denominator[rows]


def intensity(z: Floats, rows: Ints, cells: CellEstimates) -> Intensity:
    """The g of equation 2 for each channel and g^rec over them. Shape: z (n, 7)."""
    squared = [
        np.maximum(_quadratic_form(z[:, block], inverse[rows]), 0.0)
        for block, inverse in (
            (COGNITIVE, cells.inverse_cognitive),
            (PHYSICAL, cells.inverse_physical),
            (DEBT, cells.inverse_debt),
        )
    ]
    total = np.sqrt((squared[0] + squared[1] + squared[2]) / CHANNEL_COUNT)
    return Intensity(total, *(np.sqrt(channel) for channel in squared))


def _quadratic_form(z: Floats, inverse: Floats) -> Floats:
    """The form z' A z for symmetric A, written out: a BLAS call may round a row differently in another batch."""
    size = z.shape[1]
    result = np.zeros(len(z))
    for i in range(size):
        result += inverse[:, i, i] * z[:, i] * z[:, i]
        for j in range(i + 1, size):
            result += 2.0 * inverse[:, i, j] * z[:, i] * z[:, j]
    return result
