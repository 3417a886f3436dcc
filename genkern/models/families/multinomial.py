"""Multinomial distributions over rows of counts, such as documents as bags of words."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.objects import Packed
from genkern.models import simplex
from genkern.models.families.categorical import Categorical
from genkern.models.families.counts import CountLeaf, cells, check_total, group_rows
from genkern.models.information import Information
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_bool, check_probabilities


class Multinomial(CountLeaf):
    r"""Multinomial distributions over rows of counts :math:`c`, the outcomes of :math:`s = \sum_d c_d` draws.

    .. math:: p(c) = w(s) \prod_d p_d^{c_d} \quad \text{(ordered)}, \qquad
       p(c) = w(s) \frac{s!}{\prod_d c_d!} \prod_d p_d^{c_d} \quad \text{(unordered)}

    Parameters
    ----------
    probs : array-like of shape batch + (m,)
        Probabilities of the m outcomes.
    total : int, Poisson, Geometric or None, default=None
        What is known about s; never estimated. An int: every row sums to it, w = 1, and other rows are an error. A
        length law, one ``Poisson`` or ``Geometric`` of one dimension that all members of a stack share: s is random
        and w is the law. None: s is given, w = 1, and p is conditional on it.
    ordered : bool, default=True
        Whether the datum is the ordered list of draws, of which the row is a summary, or the row itself. The
        likelihoods differ by a factor without parameters.

    Notes
    -----
    A point is a row of m counts. Objects are bags of rows (k, m); a 2-D array or SciPy sparse matrix is n bags of one
    row, and sparse rows are never made dense in ``log_prob``. Missing counts (NaN) are refused, since they leave the
    row's sum open. The information per row is that of the expected number of draws; if s is given, that of one draw,
    so that objects of all lengths are compared by :math:`\sum_d c_d c'_d / p_d - s s'`.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Multinomial
    >>> counts = np.array([[2, 1, 0], [0, 0, 1]])
    >>> Multinomial([0.5, 0.25, 0.25]).log_prob(counts).round(4)
    array([-2.7726, -1.3863])
    >>> Multinomial([0.5, 0.25, 0.25], ordered=False).log_prob(counts).round(4)
    array([-1.674 , -1.3863])
    """

    _fields = ("probs", "total", "ordered")
    family_name = "multinomial"
    probs: Floats

    def __init__(self, probs: ArrayLike, total: int | Leaf | None = None, ordered: bool = True):
        table = check_probabilities(probs, "probs", "Multinomial")
        self._freeze(
            probs=table, total=check_total(total, "Multinomial"), ordered=check_bool(ordered, "ordered", "Multinomial")
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.probs.shape[:-1]

    @property
    def width(self) -> int:
        """Number m of outcomes."""
        return self.probs.shape[-1]

    def log_draws(self, points: Any) -> Floats:
        r"""Return :math:`\sum_d c_d \log p_d`, (N,) + batch; zero times log 0 is zero."""
        rows = self.probs.reshape(-1, self.width)
        empty = rows == 0
        logs: Floats = points @ np.log(np.where(empty, 1.0, rows)).T
        if empty.any():
            logs[points @ empty.T.astype(np.float64) > 0] = -np.inf
        return logs.reshape((-1, *self.shape))

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): rows of counts of object i under members [i, :]."""
        rows, columns, counts = cells(packed.values)
        with np.errstate(divide="ignore"):
            logs = [
                np.bincount(rows, counts * np.log(self.probs[packed.owners[rows], k, columns]), packed.n_points)
                for k in range(self.shape[-1])
            ]
        return np.stack(logs, axis=1) + self._log_base(packed.values)[:, None]

    def as_categorical(self) -> Categorical:
        """Return the law of one draw, or a stack."""
        return Categorical(self.probs)

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return the raw derivative ``probs`` (G, n, m): weighted counts over probabilities."""
        columns = [group_rows(packed, packed.values, weights[:, k], totals) for k in range(weights.shape[1])]
        counts = np.stack(columns, axis=1)
        return {"probs": np.divide(counts, self.probs, out=np.zeros_like(counts), where=counts > 0)}

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, n * m)."""
        derivative = simplex.gradient(blocks["probs"], self.probs, coordinates)
        return derivative.reshape(len(derivative), -1)

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return one (m, m) block per member, for an expected number of rows."""
        return [*simplex.information(self.probs, draws * self.expected_total, coordinates)]

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the coordinates of the probabilities, flattened row-major."""
        return simplex.coordinates_of(self.probs, coordinates).ravel()

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        probs = simplex.from_coordinates(np.array(vector).reshape(self.probs.shape), coordinates)
        return self._restore(probs, self.total, self.ordered)

    @property
    def parameter_names(self) -> list[str]:
        """Names ``probs[state,outcome]``."""
        return [f"probs[{','.join(map(str, index))}]" for index in np.ndindex(self.probs.shape)]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one row of counts from each named member."""
        totals = self._draw_totals(len(which), rng)
        rows: Floats = rng.multinomial(totals, self.probs[which]).astype(np.float64)
        return rows
