"""Dirichlet-multinomial distributions: rows of counts whose probabilities are uncertain."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from genkern.core.families.gamma_ratio import digamma_rise, log_gamma_excess
from genkern.data.objects import Packed
from genkern.models import simplex
from genkern.models.families.counts import CountLeaf, cells, check_total, group_rows, row_sums
from genkern.models.information import Information
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_array, check_bool

NEGLIGIBLE = 1e-14  # mass of a law of totals that is left out of expectations over it


class DirichletMultinomial(CountLeaf):
    r"""Rows of counts :math:`c` drawn with probabilities that a Dirichlet distribution draws anew for each row.

    .. math:: p(c) = w(s) \frac{\Gamma(A)}{\Gamma(A + s)} \prod_d \frac{\Gamma(\alpha_d + c_d)}{\Gamma(\alpha_d)},
       \qquad A = \sum_d \alpha_d, \quad s = \sum_d c_d,

    times :math:`s! / \prod_d c_d!` if the order of draws does not count. It is the posterior predictive distribution of
    a ``Multinomial`` with a Dirichlet prior.

    Parameters
    ----------
    alpha : array-like of shape batch + (m,)
        Positive parameters: prior plus observed counts.
    total : int, Poisson, Geometric or None, default=None
        What is known about s, as in ``Multinomial``.
    ordered : bool, default=True
        Whether the datum is the ordered list of draws, as in ``Multinomial``.

    Notes
    -----
    The parameters are :math:`\alpha` (``raw``, ``ratio``), its logarithm (``softmax``) or its square root (``sqrt``).
    Missing counts (NaN) are refused.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.2, eq. 4.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import DirichletMultinomial
    >>> DirichletMultinomial([1.0, 1.0]).log_prob(np.array([[2, 0], [1, 1]])).round(4)
    array([-1.0986, -1.7918])
    """

    _fields = ("alpha", "total", "ordered")
    alpha: Floats

    def __init__(self, alpha: ArrayLike, total: int | Leaf | None = None, ordered: bool = True):
        table = np.atleast_1d(check_array(alpha, "alpha", "DirichletMultinomial"))
        if (table <= 0).any():
            where = tuple(int(i) for i in np.argwhere(table <= 0)[0])
            raise ValueError(f"DirichletMultinomial: 'alpha' must be positive. Got {table[where]:g} at index {where}.")
        self._freeze(
            alpha=table,
            total=check_total(total, "DirichletMultinomial"),
            ordered=check_bool(ordered, "ordered", "DirichletMultinomial"),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.alpha.shape[:-1]

    @property
    def width(self) -> int:
        """Number m of outcomes."""
        return self.alpha.shape[-1]

    def log_draws(self, points: Any) -> Floats:
        """Return the log-probability (N,) + batch of the draws of each row in a given order."""
        columns = [_log_draws(points, row, None) for row in self.alpha.reshape(-1, self.width)]
        return np.stack(columns, axis=-1).reshape((-1, *self.shape))

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): rows of counts of object i under members [i, :]."""
        columns = [_log_draws(packed.values, self.alpha[:, k], packed.owners) for k in range(self.shape[-1])]
        return np.stack(columns, axis=-1) + self._log_base(packed.values)[:, None]

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return ``alpha`` (G, n, m), the weighted derivatives of the log-likelihood by alpha."""
        owners = packed.owners if self.alpha.ndim == 3 else None
        columns = []
        for k in range(weights.shape[1]):
            terms, common = _per_cell(packed.values, self.alpha[..., k, :], owners, digamma_rise)
            parts = [group_rows(packed, part, weights[:, k], totals) for part in (terms, -common[:, None])]
            columns.append(parts[0] + parts[1])
        return {"alpha": np.stack(columns, axis=1)}

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, n * m)."""
        derivative = blocks["alpha"] * self._jacobian(coordinates)
        return derivative.reshape(len(derivative), -1)

    def _jacobian(self, coordinates: str) -> Floats:
        """Return d alpha / d coordinate."""
        if coordinates == "softmax":
            return self.alpha
        return 2.0 * np.sqrt(self.alpha) if coordinates == "sqrt" else np.ones_like(self.alpha)

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        r"""Return one (m, m) block per member, for an expected number of rows.

        The second derivative of one row is :math:`\sum_{j<s} (A + j)^{-2} 11^T - \mathrm{diag} \sum_{j<c_d} (\alpha_d +
        j)^{-2}`, and a single count is beta-binomial.
        """
        sums, shares = self._totals()
        blocks = []
        for weight, alpha, factor in zip(draws, self.alpha, self._jacobian(coordinates) / self.alpha, strict=True):
            matrix = sum(share * _row_information(alpha, int(s)) for s, share in zip(sums, shares))
            blocks.append(weight * factor[:, None] * np.asarray(matrix) * factor[None, :])
        return blocks

    def _totals(self) -> tuple[Floats, Floats]:
        """Return the totals that a row may have and their probabilities; one draw if they are given."""
        if not isinstance(self.total, Leaf):
            return np.array([self.expected_total]), np.ones(1)
        size = 16
        while True:
            sums = np.arange(size, dtype=np.float64)
            shares = np.exp(self.total.log_density(sums[:, None]))
            if 1.0 - shares.sum() < NEGLIGIBLE:
                keep = shares > NEGLIGIBLE / size
                return sums[keep], shares[keep]
            size *= 2

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the coordinates of alpha, flattened row-major."""
        return {"softmax": np.log, "sqrt": np.sqrt}.get(coordinates, np.array)(self.alpha).ravel()

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        table = np.array(vector, dtype=np.float64).reshape(self.alpha.shape)
        return type(self)(simplex.positive_from(table, coordinates), self.total, self.ordered)

    @property
    def parameter_names(self) -> list[str]:
        """Names ``alpha[state,outcome]``."""
        return [f"alpha[{','.join(map(str, index))}]" for index in np.ndindex(self.alpha.shape)]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one row of counts from each named member."""
        totals = self._draw_totals(len(which), rng)
        alpha = self.alpha[which]
        # Gamma variables of tiny shape underflow; their logarithms do not.
        logs = np.log(rng.standard_gamma(alpha + 1.0)) + np.log1p(-rng.random(alpha.shape)) / alpha
        probs = np.exp(logs - logs.max(axis=-1, keepdims=True))
        rows: Floats = rng.multinomial(totals, probs / probs.sum(axis=-1, keepdims=True)).astype(np.float64)
        return rows


def _per_cell(points: Any, alpha: Floats, owners: Any, function: Any) -> tuple[Any, Floats]:
    """Return f(alpha, c) where c > 0, CSR (N, m), and f(A, s), (N,), of a function that is zero for c = 0.

    alpha is one row (m,) for all, or (n_objects, m) with the owners (N,) of the points.
    """
    rows, columns, counts = cells(points)
    place = columns if owners is None else (owners[rows], columns)
    whole = alpha.sum(axis=-1) if owners is None else alpha.sum(axis=-1)[owners]
    starts = np.searchsorted(rows, np.arange(points.shape[0] + 1))
    terms = scipy.sparse.csr_array((function(alpha[place], counts), columns, starts), shape=points.shape)
    return terms, function(whole, row_sums(points))


def _log_draws(points: Any, alpha: Floats, owners: Any) -> Floats:
    r"""Return log of prod (alpha_d)_(c_d) / (A)_s, rising factorials, (N,).

    Most of it is :math:`\sum_d c_d \log(\alpha_d / A)`, the multinomial limit.
    """
    terms, whole = _per_cell(points, alpha, owners, log_gamma_excess)
    shares = np.log(alpha / alpha.sum(axis=-1, keepdims=True))
    rows, columns, counts = cells(points)
    limit = counts * shares[columns if owners is None else (owners[rows], columns)]
    terms = terms + scipy.sparse.csr_array((limit, terms.indices, terms.indptr), shape=terms.shape)
    return row_sums(terms) - whole


def _row_information(alpha: Floats, total: int) -> Floats:
    """Return the information (m, m) about the logarithm of alpha in one row of a given total."""
    m, whole = len(alpha), alpha.sum()
    if total == 0 or m == 1:
        return np.zeros((m, m))
    j = np.arange(total)
    count = np.arange(total + 1)[:, None]
    rest = np.array([np.delete(alpha, d).sum() for d in range(m)])
    choose = gammaln(total + 1.0) - gammaln(count + 1.0) - gammaln(total - count + 1.0)
    limit = count * np.log(alpha / whole) + (total - count) * np.log(rest / whole)
    beyond_limit = log_gamma_excess(alpha, count) + log_gamma_excess(rest, total - count)
    chance = np.exp(choose + limit + beyond_limit - log_gamma_excess(whole, total))
    beyond = np.cumsum(chance[::-1], axis=0)[::-1][1:]  # P(c_d > j), j = 0, ..., total - 1
    shares = alpha / (whole + j[:, None])
    matrix: Floats = np.diag((beyond * (alpha / (alpha + j[:, None])) ** 2).sum(axis=0)) - shares.T @ shares
    return matrix
