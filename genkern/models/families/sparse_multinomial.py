"""Multinomial distributions in which most outcomes have the same probability: fitted documents, kept sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from genkern.models.families.counts import check_total
from genkern.models.families.multinomial import Multinomial
from genkern.models.value import MENDED, Value
from genkern.validation import Floats, check_array, check_bool, check_int


class SparseMultinomial(Value):
    r"""Multinomial distributions of which k outcomes are listed, and all others have one probability.

    .. math:: p_d = \begin{cases} \text{probs}_j & d = \text{columns}_j \\ \text{rest} & \text{otherwise} \end{cases}

    It is the form in which ``MultinomialEstimator(sparse=True)`` fits one distribution to each document: a document of
    k words out of a hundred thousand is held in 2 k numbers, with pseudocounts too, which are the rest. Product kernels
    compare such models with each other, and with ``Multinomial``, without any dense row.

    Parameters
    ----------
    columns : array-like of int of shape batch + (k,)
        The listed outcomes of each member, in increasing order.
    probs : array-like of shape batch + (k,)
        Their probabilities.
    rest : array-like of shape batch
        The probability of each of the other outcomes. All probabilities sum to one.
    width : int
        The number m of outcomes.
    total, ordered
        As in ``Multinomial``.

    See Also
    --------
    Multinomial : has likelihoods, derivatives and samples; ``to_multinomial`` makes one.

    Examples
    --------
    >>> from genkern import ProbabilityProduct, SparseMultinomial
    >>> models = SparseMultinomial([[0, 7], [0, 9]], [[0.5, 0.5], [0.5, 0.5]], [0.0, 0.0], width=100_000)
    >>> ProbabilityProduct(0.5, length=2)(models)
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """

    _fields = ("columns", "probs", "rest", "width", "total", "ordered")
    _shared = ("total",)
    columns: NDArray[np.int32]
    probs: Floats
    rest: Floats
    width: int
    total: Any
    ordered: bool

    def __init__(
        self,
        columns: ArrayLike,
        probs: ArrayLike,
        rest: ArrayLike,
        width: int,
        total: Any = None,
        ordered: bool = True,
    ):
        who = "SparseMultinomial"
        m = check_int(width, "width", who, 1)
        shares, places = check_array(probs, "probs", who), np.asarray(columns)
        others = check_array(rest, "rest", who, shape=shares.shape[:-1])
        if places.shape != shares.shape or places.dtype.kind not in "iu" or shares.shape[-1] == 0:
            raise ValueError(
                f"{who}: 'columns' must be integers of the shape of 'probs', batch + (k,), at least one. Got "
                f"{places.dtype} of shape {places.shape} and {shares.shape}."
            )
        if (np.diff(places, axis=-1) <= 0).any() or places.min() < 0 or places.max() >= m:
            raise ValueError(f"{who}: 'columns' must increase from 0 at least to width - 1 = {m - 1} at most.")
        sums = shares.sum(axis=-1) + (m - shares.shape[-1]) * others
        if (shares < 0).any() or (others < 0).any() or (np.abs(sums - 1.0) > MENDED).any():
            raise ValueError(
                f"{who}: probabilities must be at least zero, and probs.sum() + (width - k) * rest one. Got sums from "
                f"{sums.min():g} to {sums.max():g}."
            )
        self._freeze(
            columns=places.astype(np.int32),
            probs=shares / sums[..., None],
            rest=np.asarray(others / sums),
            width=m,
            total=check_total(total, who),
            ordered=check_bool(ordered, "ordered", who),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.probs.shape[:-1]

    def to_multinomial(self) -> Multinomial:
        """Return the same distributions with all m probabilities of each member."""
        table = np.repeat(self.rest[..., None], self.width, axis=-1)
        np.put_along_axis(table, self.columns, self.probs, axis=-1)
        return Multinomial(table, self.total, self.ordered)


def sparse_members(counts: Any, added: float, total: Any, ordered: bool) -> list[SparseMultinomial]:
    r"""Return the distributions :math:`p_d \propto c_d + \epsilon` of rows of counts (n, m) in CSR form.

    Rows without any count and :math:`\epsilon` are uniform. The number of listed outcomes is the next power of two, so
    that there are few sizes and each depends on its row alone; the first outcomes without counts fill it up.
    """
    m = counts.shape[1]
    members = []
    for start, stop in zip(counts.indptr[:-1].tolist(), counts.indptr[1:].tolist()):
        columns, data = counts.indices[start:stop], counts.data[start:stop]
        size = min(m, 1 << max(0, int(stop - start) - 1).bit_length())
        unused = np.setdiff1d(np.arange(size), columns)[: size - len(columns)]
        mass = data.sum() + added * m
        rest = added / mass if mass > 0.0 else 1.0 / m
        places = np.concatenate([columns, unused])
        probs = np.concatenate([(data + added) / (mass if mass > 0.0 else 1.0), np.full(len(unused), rest)])
        order = np.argsort(places)
        members.append(
            SparseMultinomial._restore(
                places[order].astype(np.int32), probs[order], np.asarray(rest), m, total, ordered
            )
        )
    return members


def summed_counts(packed: Any, weights: Floats) -> Any:
    """Return the counts (n_objects, m) of the rows of each object, CSR, sorted by columns."""
    rows = scipy.sparse.csr_array(packed.values)
    shape = (packed.n_objects, packed.n_points)
    sums = scipy.sparse.csr_array((weights, np.arange(packed.n_points), packed.offsets), shape=shape) @ rows
    sums.sort_indices()
    return sums
