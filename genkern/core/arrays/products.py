"""Products of dense features: Gram and cross matrices by BLAS, and the Gaussian kernel made of them in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from genkern.core.jit import jit
from genkern.core.simd.exponential import exp
from genkern.core.simd.vectors import W, broadcast, load, maximum, multiply_add, store, zero

Floats = NDArray[np.float64]

TILE = 32  # rows and columns that are mirrored at a time
# A product with a short inner dimension is not worth waking other threads, which BLAS would do; so such products are
# cut into pieces of so few multiplications that it does not.
SHORT, SERIAL = 32, 1 << 18


def gram(F: Floats) -> Floats:
    """Return F Fᵀ, (n, n) for F (n, d): one half by BLAS, mirrored, so that it is symmetric to the last bit."""
    k = _upper_gram(F)
    mirror(k)
    return k


def cross(F: Floats, G: Floats) -> Floats:
    """Return F Gᵀ, (n, n') for F (n, d) and G (n', d)."""
    _check_widths("cross", F, G)
    return np.ascontiguousarray(np.asarray(F, dtype=np.float64) @ np.asarray(G, dtype=np.float64).T)


def inner_products(p: Floats, q: Floats) -> Floats:
    """Return the inner products of rows G + (a, k) and G + (b, k), which is G + (a, b)."""
    turned = np.swapaxes(q, -1, -2)
    rows = max(1, SERIAL // max(1, q.shape[-2] * q.shape[-1]))
    if p.ndim > 2 or q.shape[-1] > SHORT or rows >= len(p):
        return p @ turned
    sums = np.empty((len(p), len(q)))
    for low in range(0, len(p), rows):
        np.matmul(p[low : low + rows], turned, out=sums[low : low + rows])
    return sums


def rbf(F: Floats, G: Floats | None, lam: float) -> Floats:
    r"""Return Gaussian kernel values, (n, n') for F (n, d) and G (n', d), or (n, n) of F with itself for None.

    .. math:: k(x, y) = \exp(-\tfrac{λ}{2} ‖x - y‖^2), \quad ‖x - y‖^2 = ‖x‖^2 + ‖y‖^2 - 2 x^T y

    The squared distance is off by some 1e-16 of the squared norms, and not negative; between a row of F and itself
    it is zero, so the diagonal is exactly one and the matrix exactly symmetric.
    """
    if G is None:
        k = _upper_gram(F)
        norms = k.diagonal().copy()
        _exp_distances(k, norms, norms, -0.5 * float(lam), True)
        mirror(k)
        return k
    k = cross(F, G)
    _exp_distances(k, _squared_norms(F), _squared_norms(G), -0.5 * float(lam), False)
    return k


def _upper_gram(F: Floats) -> Floats:
    """Return the upper triangle of F Fᵀ, (n, n); the lower one is zero."""
    F = np.ascontiguousarray(F, dtype=np.float64)
    if F.ndim != 2:
        raise ValueError(f"gram: features must be (n, d). Got shape {F.shape}.")
    if F.shape[1] == 0 or len(F) == 0:
        return np.zeros((len(F), len(F)))
    # BLAS counts by columns: its lower triangle of (Fᵀ)ᵀ Fᵀ is our upper one, and nothing is copied.
    k: Floats = dsyrk(1.0, F.T, trans=1, lower=1).T
    return k


def _squared_norms(F: Floats) -> Floats:
    """Return the squared norms of the rows."""
    norms: Floats = np.einsum("ij,ij->i", F, F)
    return norms


def _check_widths(who: str, F: Any, G: Any) -> None:
    """Refuse features of different dimension."""
    if np.ndim(F) != 2 or np.ndim(G) != 2 or np.shape(F)[1] != np.shape(G)[1]:
        raise ValueError(f"{who}: features must be (n, d) and (n', d). Got {np.shape(F)} and {np.shape(G)}.")


@jit
def mirror(k):
    """Copy the upper triangle of a square matrix onto the lower one, by tiles that fit into the cache."""
    n = k.shape[0]
    for top in range(0, n, TILE):
        for left in range(top, n, TILE):
            for j in range(left, min(left + TILE, n)):
                for i in range(top, min(top + TILE, j)):
                    k[j, i] = k[i, j]


@jit
def _exp_distances(k, left, right, scale, half):
    """Replace products k, (n, n'), by exp(scale * squared distance); left, right: squared norms.

    With ``half`` only on and above the diagonal.
    """
    columns = k.shape[1]
    products, norms = np.zeros(W), np.zeros(W)
    for i in range(k.shape[0]):
        first = i if half else 0
        whole = columns - (columns - first) % W
        for j in range(first, whole, W):
            at = i * columns + j
            store(k, at, _exp_distance(load(k, at), broadcast(left[i]) + load(right, j), scale))
        # The rest of a row goes through the same operations: a value does not depend on where it stands.
        for j in range(whole, columns):
            products[j - whole], norms[j - whole] = k[i, j], right[j]
        store(products, 0, _exp_distance(load(products, 0), broadcast(left[i]) + load(norms, 0), scale))
        for j in range(whole, columns):
            k[i, j] = products[j - whole]


@jit
def _exp_distance(products, norms, scale):
    """Return exp(scale * max(0, norms - 2 products)) of vectors."""
    distance = multiply_add(broadcast(-2.0), products, norms)
    return exp(broadcast(scale) * maximum(distance, zero()))
