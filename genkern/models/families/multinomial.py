"""Multinomial distributions, rows of counts such as documents as bags of words, and their estimation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.data.objects import Packed
from genkern.models import simplex
from genkern.models.estimator import LeafEstimator
from genkern.models.families.categorical import Categorical
from genkern.models.families.counts import (
    CountLeaf,
    cells,
    check_total,
    check_totals,
    group_rows,
    pack_count_sequences,
    pack_counts,
)
from genkern.models.families.dirichlet_multinomial import DirichletMultinomial
from genkern.models.fit.weights import point_weights
from genkern.models.information import Information
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_bool, check_number, check_probabilities


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


class MultinomialEstimator(LeafEstimator):
    r"""Smoothed shares of counts, :math:`p_d \propto c_d + \epsilon`, or the predictive distribution of a row.

    Parameters
    ----------
    total : int, Poisson, Geometric or None, default=None
        What is known about the sum of a row, as in ``Multinomial``. It is passed to the model and never estimated.
    ordered : bool, default=True
        Whether the datum is the ordered list of draws, as in ``Multinomial``. It does not change the probabilities.
    estimate : {"ml", "map", "predictive"}, default="map"
        Maximum likelihood; the mode of the posterior; or the posterior predictive distribution of a whole row, a
        ``DirichletMultinomial`` with :math:`\alpha_d = 1 + \epsilon + c_d`.
    pseudocount : float, default=0.01
        The prior is a Dirichlet distribution with parameters :math:`1 + \epsilon`; its mode adds :math:`\epsilon` to
        every count. Maximum likelihood ignores it.

    Attributes
    ----------
    model_ : Multinomial or DirichletMultinomial

    Notes
    -----
    Sparse matrices are never made dense by ``fit``. Objects without any count have uniform probabilities.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, sections 2.2 and 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import MultinomialEstimator
    >>> counts = np.array([[2, 1, 0], [1, 0, 1]])
    >>> MultinomialEstimator(estimate="ml").fit(counts).model_.probs
    array([0.6, 0.2, 0.2])
    >>> MultinomialEstimator(estimate="predictive", pseudocount=0).fit(counts).model_.alpha
    array([4., 2., 2.])
    """

    softening = 0.1

    def __init__(self, total: Any = None, ordered: bool = True, estimate: str = "map", pseudocount: float = 0.01):
        self.total = total
        self.ordered = ordered
        self.estimate = estimate
        self.pseudocount = pseudocount

    def pack(self, X: Any) -> Packed:
        """Encode bags of rows of counts; sparse matrices stay sparse."""
        total = self._check_parameters()
        return check_totals(pack_counts(X, "MultinomialEstimator"), total, "MultinomialEstimator")

    def pack_sequences(self, X: Any) -> Packed:
        """Encode sequences of dense rows of counts."""
        total = self._check_parameters()
        return check_totals(pack_count_sequences(X, "MultinomialEstimator"), total, "MultinomialEstimator")

    def _check_parameters(self) -> Any:
        """Raise for illegal settings, and return the checked total."""
        who = "MultinomialEstimator"
        self._check_estimate()
        check_number(self.pseudocount, "pseudocount", who)
        check_bool(self.ordered, "ordered", who)
        return check_total(self.total, who)

    def resolve(self, X: Any) -> MultinomialEstimator:
        """Return the estimator itself: columns need no alphabet."""
        return self

    def reference(self, packed: Packed, n: int, own: bool) -> Multinomial:
        """Return uniform members."""
        m = packed.values.shape[1]
        batch = (packed.n_objects, n) if own else (n,)
        return Multinomial._restore(np.full((*batch, m), 1.0 / m), self.total, self.ordered)

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Multinomial) -> Multinomial:
        """Return smoothed shares of expected counts; members without any count are not changed."""
        self._check_mode()
        pseudocounts = np.full(leaf.width, self.pseudocount if self.estimate == "map" else 0.0)
        return Multinomial._restore(expected_rows(leaf.probs, blocks["probs"], pseudocounts), leaf.total, leaf.ordered)

    def log_prior(self, leaf: Multinomial) -> Floats:
        """Return the Dirichlet log prior."""
        if self.pseudocount == 0 or self.estimate == "ml":
            return super().log_prior(leaf)
        return log_pseudocounts(leaf.probs, self.pseudocount, 2)

    def predictive(self, packed: Packed, own: bool) -> CountLeaf:
        """Return the Dirichlet-multinomial of the posterior, of batch (1,) or (n_objects, 1)."""
        counts = group_rows(packed, packed.values, point_weights(packed)[:, 0], totals=not own)
        alpha = 1.0 + self.pseudocount + counts
        return DirichletMultinomial._restore(alpha[:, None] if own else alpha, self.total, self.ordered)

    def n_free(self, packed: Packed) -> int:
        """Return m, the outcomes of an emission row, as the rule for the number of states counts them."""
        return int(packed.values.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of counts only
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = False
        return tags
