"""Roots of Fisher information matrices, which turn scores into feature vectors of unit information."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from genkern.models.information import Information, InformationBlocks, LeanInformation
from genkern.validation import Floats

RUN = 24  # columns of small blocks that are multiplied at once, which is as fast as one by one and needs fewer calls


class LowRank(NamedTuple):
    r"""The root :math:`W = \mathrm{diag}(g) (a E + V \mathrm{diag}(c) V^T)` (k, k), held in O(k r) numbers.

    Attributes
    ----------
    gains : (k,)
        g.
    rest : float
        a, the factor of directions orthogonal to the basis.
    basis : (k, r)
        V.
    stretch : (r,)
        c.
    """

    gains: Floats
    rest: float
    basis: Floats
    stretch: Floats


Root = Floats | LowRank
Roots = list[tuple[NDArray[np.int64], Root]]


class Whitener(NamedTuple):
    """A block-diagonal linear map of p columns to p columns.

    Attributes
    ----------
    runs : list of (columns, root)
        Roots (k, k), (k,) if they are diagonal, or ``LowRank``, of k columns: a slice, or an index array if they are
        not adjacent. Small adjacent blocks are one run. Columns in no run become zero.
    """

    runs: list[tuple[slice | NDArray[np.int64], Root]]

    def apply(self, scores: Floats, out: Floats) -> None:
        """Write the features of scores (n, p) into ``out`` (n, p), which is zero before."""
        for columns, root in self.runs:
            part = scores[:, columns]
            if isinstance(root, LowRank):
                scaled = part * root.gains
                out[:, columns] = root.rest * scaled + (scaled @ root.basis * root.stretch) @ root.basis.T
            else:
                out[:, columns] = part * root if root.ndim == 1 else part @ root

    def apply_transposed(self, features: Floats, out: Floats) -> None:
        """Write the image of features (n, p) under the transposed map into ``out``, which may be ``features``."""
        for columns, root in self.runs:
            part = features[:, columns]
            if isinstance(root, LowRank):
                out[:, columns] = (root.rest * part + (part @ root.basis * root.stretch) @ root.basis.T) * root.gains
            else:
                out[:, columns] = part * root if root.ndim == 1 else part @ root.T

    def around(self, low: int, high: int) -> tuple[int, int, Whitener]:
        """Return which columns, from where to where, depend on those from low to high, and the map of these alone."""
        reach = [(low, high)]
        for columns, root in self.runs:
            first, last = _ends(columns)
            if first < high and last > low and not _is_plain(columns, root):
                reach.append((first, last))
        low, high = min(first for first, _ in reach), max(last for _, last in reach)
        runs: list[tuple[slice | NDArray[np.int64], Root]] = []
        for columns, root in self.runs:
            first, last = _ends(columns)
            if _is_plain(columns, root):
                a, b = max(first, low), min(last, high)
                if a < b:
                    runs.append((slice(a - low, b - low), np.asarray(root)[a - first : b - first]))
            elif (first, last) in reach[1:]:
                runs.append((slice(first - low, last - low) if isinstance(columns, slice) else columns - low, root))
        return low, high, Whitener(runs)

    @property
    def is_zero(self) -> bool:
        """Whether no direction at all is kept."""
        return not any((root.gains if isinstance(root, LowRank) else root).any() for _, root in self.runs)


def _ends(columns: slice | NDArray[np.int64]) -> tuple[int, int]:
    """Return the first column and the one after the last."""
    if isinstance(columns, slice):
        return columns.start, columns.stop
    return int(columns.min()), int(columns.max()) + 1


def _is_plain(columns: slice | NDArray[np.int64], root: Root) -> bool:
    """Return whether a run takes adjacent columns one by one."""
    return isinstance(columns, slice) and not isinstance(root, LowRank) and root.ndim == 1


def whitener_of(blocks: Roots) -> Whitener:
    """Return the map with the given roots of blocks of columns."""
    runs: list[tuple[slice | NDArray[np.int64], Root]] = []
    pending: list[Floats] = []  # roots of adjacent blocks that end at column ``end``
    end = 0

    def flush() -> None:
        if pending:
            joined = np.concatenate(pending) if pending[0].ndim == 1 else block_diag(*pending)
            runs.append((slice(end - len(joined), end), joined))
            pending.clear()

    for index, given in blocks:
        adjacent = bool(np.array_equal(index, np.arange(index[0], index[0] + len(index))))
        if isinstance(given, LowRank) or not adjacent:
            flush()
            runs.append((slice(int(index[0]), int(index[-1]) + 1) if adjacent else index, given))
            continue
        root = _as_diagonal(given)
        full = root.ndim == 2 and sum(map(len, pending)) + len(root) > RUN
        if index[0] != end or full or (pending and pending[0].ndim != root.ndim):
            flush()
        pending.append(root)
        end = int(index[-1]) + 1
    flush()
    return Whitener(runs)


def _as_diagonal(root: Floats) -> Floats:
    """Return the diagonal (k,) of a diagonal matrix (k, k); other roots are returned unchanged."""
    if root.ndim == 2 and not np.any(root - np.diag(np.diagonal(root))):
        return np.diagonal(root)
    return root


def restrict(blocks: InformationBlocks, source: NDArray[np.int64], count: int) -> InformationBlocks:
    """Return the matrices (k, k) of blocks of parameters, cut down to the columns whose ``source`` (width,) they are.

    ``count`` is the number of possible sources; the indices of the result are columns.
    """
    place = np.full(count, -1)
    place[source] = np.arange(len(source))
    kept = []
    for index, matrix in blocks:
        columns, own = place[index], place[index] >= 0
        if own.all():
            kept.append((columns, matrix))
        elif own.any():
            part = matrix.take(own) if isinstance(matrix, LeanInformation) else matrix[np.ix_(own, own)]
            kept.append((columns[own], part))
    return kept


def root_of(block: Information, rcond: float) -> Root:
    r"""Return a root W of a block of information: of a matrix (k, k) ``inverse_root``, of others in closed form."""
    if not isinstance(block, LeanInformation):
        return inverse_root(block, rcond)
    gains, direction, stretch = block.root()
    return LowRank(gains, 1.0, direction[:, None], np.array([stretch])) if stretch else gains


def moment_root(rows: Iterable[Floats], size: tuple[int, int], rcond: float, ridge: float = 0.0) -> Root:
    r"""Return a root W of the second moment :math:`M = F^T F` of all rows F (n, k), given block by block.

    It is that of :math:`M + \rho E`, :math:`\rho` being ``ridge`` times the mean of the diagonal of M:
    ``inverse_root``, but with fewer rows than columns ``wide_root``, which never forms a matrix (k, k).
    """
    n, k = size
    table = np.zeros((n, k) if n < k else (k, k))
    filled = 0
    for block in rows:
        if n < k:
            table[filled : filled + len(block)] = block
            filled += len(block)
        else:
            table += block.T @ block
    if n < k:
        return wide_root(table, rcond, ridge)
    table[np.diag_indices(k)] += ridge * np.trace(table) / k
    return inverse_root(table, rcond)


def wide_root(rows: Floats, rcond: float, ridge: float) -> LowRank:
    r"""Return a root W of :math:`M + \rho E`, where :math:`M = F^T F` is the second moment of few rows F (n, k).

    From the singular values of F, in :math:`O(n^2 k)`: M has at most n directions, and all others the eigenvalue
    :math:`\rho`. Without a ridge it is the root of ``inverse_root``. With one it is the symmetric root of the inverse
    of :math:`M + \rho E` as it stands, since scales taken out first would leave no common :math:`\rho`; the kernel is
    the same.
    """
    diagonal = np.einsum("ij,ij->j", rows, rows)
    spread = ridge * float(diagonal.mean())
    scale = inverse_scale(diagonal) if spread == 0.0 else np.ones(len(diagonal))
    basis, singular, _ = np.linalg.svd((rows * scale).T, full_matrices=False)
    values = singular**2
    strong = values > (rcond if spread == 0.0 else 0.0) * values[0]
    rest = 1.0 / np.sqrt(spread) if spread > 0.0 else 0.0
    return LowRank(scale, rest, basis[:, strong], 1.0 / np.sqrt(values[strong] + spread) - rest)


def inverse_root(matrix: Floats, rcond: float) -> Floats:
    r"""Return W (k, k) with :math:`W W^T = I^+` on the range of an information matrix I (k, k).

    :math:`W = D^{-1} C^{+1/2}`, where :math:`I = D C D` and C has a unit diagonal; eigenvalues of C not above ``rcond``
    times the largest are dropped. Taking out the scales first makes the result independent of the units of the
    parameters, hence the same in ratio, softmax and sqrt coordinates, and prevents tiny probabilities from dominating.
    The root of C is the symmetric one, so column j stays the closest to parameter j. Parameters of zero or infinite
    information get zero rows and columns.

    References
    ----------
    Kessy, Lewin & Strimmer (2018), Optimal whitening and decorrelation, section 3 ("ZCA-cor").
    """
    diagonal = np.diagonal(matrix)
    kept = np.flatnonzero(np.isfinite(diagonal) & (diagonal > 0))
    root = np.zeros_like(matrix)
    if len(kept) == 0:
        return root
    scale = np.sqrt(diagonal[kept])
    values, vectors = np.linalg.eigh(matrix[np.ix_(kept, kept)] / scale / scale[:, None])
    strong = values > rcond * values[-1]
    vectors = vectors[:, strong]
    root[np.ix_(kept, kept)] = (vectors / np.sqrt(values[strong])) @ vectors.T / scale[:, None]
    return root


def inverse_scale(diagonal: Floats) -> Floats:
    """Return 1 / sqrt of the diagonal (k,) of an information matrix, 0 where it is zero or infinite."""
    usable = np.isfinite(diagonal) & (diagonal > 0)
    return np.where(usable, 1.0 / np.sqrt(np.where(usable, diagonal, 1.0)), 0.0)
