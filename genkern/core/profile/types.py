r"""What the passes take and return: weights of a profile by column, sequences of codes, derivatives.

Columns are 1, ..., K; node 0 is the begin state B. With symbols :math:`x_1 \dots x_L`, and E the state in which a
passage through the columns ends,

.. math::
    M_t(k) &= e_k(x_t) [M_{t-1}(k-1)\, MM_{k-1} + I_{t-1}(k-1)\, IM_{k-1} + D_{t-1}(k-1)\, DM_{k-1} + B_{t-1} EN_k] \\
    I_t(k) &= i_k(x_t) [M_{t-1}(k)\, MI_k + I_{t-1}(k)\, II_k], \qquad
    D_t(k) = M_t(k-1)\, MD_{k-1} + D_t(k-1)\, DD_{k-1} \\
    E_t &= \sum_k [M_t(k)\, XM_k + D_t(k)\, XD_k] + I_t(K)\, IM_K \\
    N_t &= f(x_t) N_{t-1}\, NN, \quad J_t = f(x_t) J_{t-1}\, JJ + E_t\, EJ, \quad
    C_t = f(x_t) C_{t-1}\, CC + E_t\, EC \\
    B_t &= N_t\, NB + J_t\, JB, \qquad P = C_L\, CT

with M_t(0) = B_t and N_0 = 1; D_t(1) takes N_t NB alone of B_t, since a passage that may come again begins with a
symbol. These are sums over paths of any weights: probabilities, or ratios to a null model.

References
----------
Durbin, Eddy, Krogh & Mitchison (1998), Biological sequence analysis, section 5.4. Eddy (2011), Accelerated profile HMM
searches, figure 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.simd.vectors import padded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rows of the weights of columns, and those of the weights between the states around them.
MM, MI, MD, IM, II, DM, DD, EN, XM, XD = range(10)
NN, NB, JJ, JB, CC, CT, EJ, EC = range(8)
N_COLUMNS, N_AROUND = 10, 8


class Profile(NamedTuple):
    """The weights of one profile of K columns.

    columns : (10, P), with P the number of nodes, K + 1, rounded up to a multiple of eight; what leaves node k is in
        column k, and what enters it, EN, too. EN_0, XM_0, XD_0, the deletion of node 0 and, of node K, MM, MD, DM and
        DD are not used.
    around : (1, 8), or (n_objects, 8) if each has its own
    table : (codes, 2 P), for each code f, e_1, ..., e_K, padding, then i_0, ..., i_K, padding.
    size : K
    """

    columns: Floats
    around: Floats
    table: Floats
    size: int


class Sequences(NamedTuple):
    """Sequences of codes, concatenated: object i from ``offsets[i]`` to ``offsets[i + 1]``; none is empty."""

    codes: Ints
    offsets: Ints


class Derivatives(NamedTuple):
    """Log P of the objects, and its derivatives by all weights, slot by slot.

    log_prob : (n_objects,); table : (slots, codes, 2 P), with none by f; columns : (slots, 10, P); around : (slots, 8)
    """

    log_prob: Floats
    table: Floats
    columns: Floats
    around: Floats


def empty_profile(size: int, codes: int) -> Profile:
    """Return a profile without any weight, to be filled."""
    pitch = padded(size + 1)
    return Profile(np.zeros((N_COLUMNS, pitch)), np.zeros((1, N_AROUND)), np.zeros((codes, 2 * pitch)), size)


def empty_derivatives(profile: Profile, objects: int, slots: int) -> Derivatives:
    """Return log P not known yet, and derivatives of zero."""
    shapes = (profile.table.shape, profile.columns.shape, (N_AROUND,))
    return Derivatives(np.full(objects, np.nan), *(np.zeros((slots, *shape)) for shape in shapes))
