"""Features with a signed power and unit length for each block, so that no block dominates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from genkern.core.arrays.unit_blocks import unit_blocks
from genkern.data.transformer import Transformer
from genkern.preprocess.maps import PowerMap
from genkern.validation import check_number


class BlockNormalizer(Transformer):
    r"""The features of an embedding, block by block to the signed power and to unit length, then as a whole.

    .. math:: f_b = \frac{h(\phi_b)}{\lVert h(\phi_b) \rVert}, \qquad h(g) = \mathrm{sgn}(g)\, |g|^\rho, \qquad
       f = \frac{1}{\sqrt B} (f_1, \dots, f_B)

    where :math:`\phi_b` is block b of the features and B the number of blocks that are not zero. The inner product is
    the mean over the blocks of the normalised kernels of single blocks.

    Parameters
    ----------
    embedding : transformer
        The embedding of the features, dense or sparse. Its attribute ``blocks_`` names the blocks, as that of
        ``FisherScore`` does; without one all features are one block.
    power : float, default=0.5
        The power :math:`\rho` > 0; one changes nothing.

    Attributes
    ----------
    embedding_ : transformer
        The fitted clone.
    blocks_ : dict of str to slice or index array
        The features of each block.

    Notes
    -----
    A block that is zero stays zero, and so does an object all of whose features are zero.

    References
    ----------
    Perronnin, Sánchez & Mensink (2010), Improving the Fisher kernel for large-scale image classification, sections 3.1
    (unit length) and 3.2 (signed power).
    Carli, Bicego, Baldo & Murino (2010), Nonlinear mappings for generative kernels on latent variable models, eq. 3.

    Examples
    --------
    >>> from genkern import BlockNormalizer, FisherScore, Gaussian, Mixture
    >>> mixture = Mixture([0.5, 0.5], Gaussian([[-1.0], [1.0]], [0.25, 0.25]))
    >>> fisher = FisherScore(mixture, "diagonal", length_norm="length", blocks=["means", "variances", "occupancy"])
    >>> features = BlockNormalizer(fisher).fit_transform([[-1.5, -1.2, 0.9], [0.8, 1.3]])
    >>> features.shape
    (2, 6)
    >>> (features**2).sum(axis=1)
    array([1., 1.])
    """

    _fitted = "embedding_"
    _refuses_y = False

    def __init__(self, embedding: Any, power: float = 0.5):
        self.embedding = embedding
        self.power = power

    def _fit(self, X: Any, y: Any) -> None:
        self._start().fit(X, y)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the embedding and return the normalised features of the training objects.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,), optional
            Passed to the embedding.

        Returns
        -------
        features : ndarray or sparse matrix of shape (n, p)
        """
        return self._normalised(self._start().fit_transform(self._begin(X, y), y))

    def _transform(self, X: Any) -> Any:
        return self._normalised(self.embedding_.transform(X))

    def _names_out(self, given: Any) -> Any:
        return self.embedding_.get_feature_names_out(given)

    @property
    def blocks_(self) -> dict[str, Any]:
        """The features of each block."""
        return getattr(self.embedding_, "blocks_", {"features": slice(None)})

    def _start(self) -> Any:
        """Return the clone that is fitted."""
        check_number(self.power, "power", "BlockNormalizer", exclusive=True)
        self.embedding_ = clone(self.embedding)
        return self.embedding_

    def _normalised(self, features: Any) -> Any:
        """Return features (n, p) with unit length in each block and as a whole."""
        if sparse.issparse(features):
            return _unit_entries(sparse.csr_matrix(features, dtype=np.float64, copy=True), self.blocks_, self.power)
        table = np.array(features, np.float64, order="C")
        unit_blocks(table, _block_of_columns(table.shape[1], list(self.blocks_.values())), float(self.power))
        return table


def _unit_entries(table: Any, blocks: dict[str, Any], power: float) -> Any:
    """Return a CSR matrix (n, p) with unit length in each block and as a whole, changed in place."""
    which = _blocks_of(table.indices, table.shape[1], list(blocks.values()))
    cell = np.repeat(np.arange(table.shape[0]) * len(blocks), np.diff(table.indptr)) + which
    peak = np.zeros(table.shape[0] * len(blocks))
    np.maximum.at(peak, cell, np.abs(table.data))
    values = PowerMap(power).apply(table.data / np.where(peak > 0, peak, 1.0)[cell])
    size = np.sqrt(np.bincount(cell, values**2, len(peak)))
    filled = (peak > 0).reshape(-1, len(blocks)).sum(axis=1)
    size *= np.repeat(np.sqrt(filled), len(blocks))
    table.data = values / np.where(size > 0, size, 1.0)[cell]
    return table


def _blocks_of(index: NDArray[Any], width: int, blocks: list[Any]) -> NDArray[np.int64]:
    """Return the block of each column of an index."""
    if all(isinstance(columns, slice) for columns in blocks):  # no array of all columns, of which there may be 10^9
        starts = np.array([columns.indices(width)[0] for columns in blocks])
        order = np.argsort(starts, kind="stable")
        found: NDArray[np.int64] = order[np.searchsorted(starts[order], index, side="right") - 1]
        return found
    return _block_of_columns(width, blocks)[index]


def _block_of_columns(width: int, blocks: list[Any]) -> NDArray[np.int64]:
    """Return the block (p,) of each column."""
    which = np.zeros(width, np.int64)
    for b, columns in enumerate(blocks):
        which[columns] = b
    return which
