"""Estimation of multinomial distributions, one of all rows of counts or one of each, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.data.objects import Packed
from genkern.models.estimator import LeafEstimator
from genkern.models.families.counts import (
    CountLeaf,
    check_total,
    check_totals,
    group_rows,
    pack_count_sequences,
    pack_counts,
)
from genkern.models.families.dirichlet_multinomial import DirichletMultinomial
from genkern.models.families.multinomial import Multinomial
from genkern.models.families.sparse_multinomial import sparse_members, summed_counts
from genkern.models.fit.weights import point_weights
from genkern.validation import Floats, check_bool, check_number

LARGEST = 1 << 28  # probabilities, two gigabytes, that models of sparse rows are made of without being asked


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
    sparse : bool, default=False
        Whether ``fit_each`` returns ``SparseMultinomial`` models, which list the outcomes that have counts: a document
        of some hundred words out of a hundred thousand takes as much memory as its words, and product kernels compare
        such models without dense rows. Predictive distributions are always dense, and so is the model of ``fit``.

    Attributes
    ----------
    model_ : Multinomial or DirichletMultinomial

    Notes
    -----
    Sparse matrices are never made dense by ``fit``, nor by ``fit_each`` with ``sparse=True``. Objects without any count
    have uniform probabilities.

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

    def __init__(
        self,
        total: Any = None,
        ordered: bool = True,
        estimate: str = "map",
        pseudocount: float = 0.01,
        sparse: bool = False,
    ):
        self.total = total
        self.ordered = ordered
        self.estimate = estimate
        self.pseudocount = pseudocount
        self.sparse = sparse

    def fit_each(self, X: Any) -> list[Any]:
        """Return one model per bag of rows; ``SparseMultinomial`` ones if ``sparse``."""
        packed = self.pack(X)
        if not self.sparse:
            self._refuse_dense(packed)
            return super().fit_each(packed)
        counts = summed_counts(packed, point_weights(packed)[:, 0])
        added = float(self.pseudocount) if self.estimate == "map" else 0.0
        return [*sparse_members(counts, added, check_total(self.total, "MultinomialEstimator"), self.ordered)]

    def _refuse_dense(self, packed: Packed) -> None:
        """Raise where sparse rows would become more dense numbers than fit into memory."""
        size = packed.n_objects * packed.values.shape[1]
        if size > LARGEST and not isinstance(packed.values, np.ndarray):
            raise ValueError(
                f"MultinomialEstimator: models of {packed.n_objects} sparse rows of {packed.values.shape[1]} outcomes "
                f"would be {8 * size / 2**30:.1f} GB of probabilities. Give sparse=True, which keeps them sparse."
            )

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
        if check_bool(self.sparse, "sparse", who) and self.estimate == "predictive":
            raise ValueError(f"{who}: estimate='predictive' has no sparse models. Use sparse=False, or estimate='map'.")
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
