"""Centred alignment of kernels with labels, and weights of a sum derived from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.utils.multiclass import check_classification_targets

from genkern.validation import Floats, check_option

METHODS = ("joint", "independent")
RANK = 1e-12  # smaller eigenvalues of the alignments between kernels are those of kernels that coincide


def centred(K: Floats) -> Floats:
    r"""Return :math:`K_c = H K H`, (n, n), with :math:`H = I - \frac1n 1 1^T`: products of centred features."""
    means = K.mean(axis=0)
    return K - means - (K.mean(axis=1) - means.mean())[:, None]


def unit_target(y: Any) -> Floats:
    r"""Return centred indicators T (n, classes) of labels, with :math:`\|T T^T\|_F = 1`.

    For two classes :math:`T T^T` is the centred :math:`y y^T` of labels -1 and 1, up to a factor.
    """
    check_classification_targets(y)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"Alignment with labels needs at least two classes. Got one class, {classes.tolist()[0]!r}.")
    indicators = np.eye(len(classes))[codes.ravel()]
    indicators -= indicators.mean(axis=0)
    return indicators / np.sqrt(np.linalg.norm(indicators.T @ indicators))


def alignments(matrices: list[Floats], y: Any) -> tuple[Floats, Floats, Floats]:
    r"""Return centred alignments (p,) of kernel matrices with labels, (p, p) with each other, and norms (p,).

    .. math:: \rho(K, K') = \frac{\langle K_c, K'_c \rangle_F}{\|K_c\|_F\, \|K'_c\|_F}

    A matrix that is constant has no norm, and its alignments are zero.
    """
    target = unit_target(y)
    sizes = np.array([np.abs(K).max() for K in matrices])
    sizes = np.where(sizes > np.finfo(np.float64).tiny, sizes, 1.0)  # scale that keeps squares in range
    parts = [centred(K / size) for K, size in zip(matrices, sizes, strict=True)]
    products = np.array([[np.vdot(one, other) for other in parts] for one in parts])
    norms = np.sqrt(np.diagonal(products))
    # A centred constant matrix consists of rounding errors.
    wholes = [np.linalg.norm(K / size) for K, size in zip(matrices, sizes, strict=True)]
    norms = np.where(norms <= 1e-12 * np.array(wholes), 0.0, norms)
    inverse = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
    own = inverse * np.array([np.vdot(target, part @ target) for part in parts])
    return own, products * np.outer(inverse, inverse), norms * sizes


def alignment_weights(matrices: list[Floats], y: Any, method: str = "joint") -> tuple[Floats, Floats]:
    r"""Return weights (p,) of kernel matrices in a sum, not negative, and their alignments (p,) with the labels.

    .. math:: w_k = v_k / \|K_{kc}\|_F, \qquad v_k = \max(a_k, 0) \quad\text{or}\quad
       v = \arg\min_{v \ge 0} v^T M v - 2 v^T a

    with the alignments a with the labels and M with each other: "independent" or "joint", whose sum has the largest
    alignment of all. They are scaled so that the mean self-similarity of the sum is one.

    References
    ----------
    Cortes, Mohri & Rostamizadeh (2012), Algorithms for learning kernels based on centered alignment, section 4 and
    proposition 9, with every kernel scaled to the same norm first.
    """
    check_option(method, METHODS, "method", "AlignedGram")
    own, mutual, norms = alignments(matrices, y)
    shares = np.maximum(own, 0.0)
    if method == "joint":
        values, vectors = np.linalg.eigh(mutual)
        kept = values > RANK * values[-1]
        roots = np.sqrt(values[kept])
        # |root(M) v - root(M)^-1 a|^2 is the quadratic form, up to a constant.
        shares, _ = nnls(roots[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ own) / roots)
    weights = np.divide(shares, norms, out=np.zeros(len(norms)), where=norms > 0)
    size = sum(weight * np.trace(K) / len(K) for weight, K in zip(weights, matrices))
    if not size > 0:
        raise ValueError(
            f"AlignedGram: no kernel of the sum is aligned with the labels (alignments {own.round(4).tolist()}). "
            "Check the labels, scale X if kernel values underflow, or give the weights yourself: Gram(2 * k1 + k2)."
        )
    return weights / size, own
