r"""What the passes take: sequences of codes, weights of pairs of codes, weights of gaps.

With weights :math:`w(a, b)` of aligned symbols, o of a gap of one symbol and e of each further one,

.. math::
    M(i, j) &= w(x_i, y_j)\, T(i-1, j-1), \qquad T(i, j) = 1 + X(i, j) + Y(i, j) + M(i, j) \\
    X(i, j) &= o\, M(i-1, j) + e\, X(i-1, j), \qquad
    Y(i, j) = o\, [M(i, j-1) + X(i, j-1)] + e\, Y(i, j-1)

and the sum over all local alignments of x and y, the empty one included, is :math:`1 + \sum_{ij} M(i, j)`. Between two
aligned pairs a gap in y comes before one in x, so that each alignment counts once.

References
----------
Saigo, Vert, Ueda & Akutsu (2004), Protein homology detection using string alignment kernels, Bioinformatics 20.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Sequences(NamedTuple):
    """Sequences of codes, concatenated: object i from ``offsets[i]`` to ``offsets[i + 1]``."""

    codes: Ints
    offsets: Ints


class Costs(NamedTuple):
    """Logarithms of weights: of pairs of codes, (m, m), symmetric; minus those of a gap and of its extension."""

    scores: Floats
    open: float
    extend: float
