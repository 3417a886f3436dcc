"""Fisher scores: an object as the gradient of its log-likelihood, in units of the model's information."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.features.base import ModelEmbedding
from genkern.features.enumeration import exact_scores
from genkern.features.score_blocks import (
    LENGTH_POWER,
    check_scores,
    free_priors,
    information_of,
    layout_of,
    names_of,
    scores_from,
    scores_of,
)
from genkern.features.streaming import stream
from genkern.features.whitening import Root, Roots, Whitener, inverse_scale, moment_root, restrict, root_of, whitener_of
from genkern.threads import one_blas_thread
from genkern.validation import Floats, check_number, check_option

INFORMATION = ("complete", "diagonal", "empirical", "exact", "identity")
MAPPINGS = ("whitened", "natural")
RCOND_EXACT, RCOND_EMPIRICAL = 1e-10, 1e-8  # relative size below which an eigenvalue is a rounding error


class FisherScore(ModelEmbedding):
    r"""Features whose inner product is the Fisher kernel of one generative model of all objects.

    .. math:: \phi(x) = W^T U_x, \qquad U_x = \nabla_\theta \log p(x | \theta), \qquad W W^T = I^+, \qquad
       \langle \phi(x), \phi(x') \rangle = U_x^T I^+ U_{x'}

    Parameters
    ----------
    estimator : estimator, model or dict
        An estimator, a clone of which is fitted to all objects given to ``fit`` (``HMMEstimator(n_states=4)``), or a
        model that is used unchanged (``HMM(...)``). A dict ``{label: model}``, or ``{label: estimator}`` of what is
        fitted to the objects of each class, is the marginal over the class models, as is a ``ClassMixture``.
    information : {"complete", "diagonal", "empirical", "exact", "identity"}, default="complete"
        The matrix I. "complete" is the complete-data information, hidden states included: block diagonal, known in
        closed form, averaged over the lengths seen in ``fit``. "diagonal" is its diagonal
        (the scaling of Fisher vectors). "empirical" is the second moment of the training scores,
        :math:`\frac1n \sum_i U_i U_i^T`, plus a ridge. "exact" is the expectation :math:`E[U U^T]` over all objects of
        a length, averaged over the lengths seen in ``fit``: by enumeration, hence for models of symbols and short
        objects only (:math:`\sum_L m^L \le 2^{20}`), and refused otherwise. "identity" is none at all, the kernel
        :math:`K_U`, which depends on the coordinates. A model made by ``adapt`` of somebody's class has "empirical" in
        place of "complete".
    coordinates : {"softmax", "ratio", "sqrt", "raw", "natural"}, default="softmax"
        Of probabilities (see ``genkern.models.simplex``). "complete", "exact", and "empirical" without ridge, give the
        same kernel in the first three. "raw" derivatives leave the simplex and their mean is not zero, so no
        information of the model belongs to them: they need "identity" or "empirical". So do "natural" ones (see
        ``genkern.models.families.natural``), of mixtures of isotropic Gaussians and of classes of these.
    length_norm : {None, "length", "sqrt"}, default=None
        Divide scores by the object's length, or by its square root. Scores grow with the length.
    ridge : float, default=1e-3
        Added to the diagonal of the empirical information, in units of its mean. Other informations have
        none.
    n_jobs : int, optional
        Threads, over batches of objects.
    per_class : bool, default=False
        Whether the label is a latent variable: one model is fitted to the objects of each class (which needs y), and
        scores are those of the marginal :math:`\sum_c \alpha_c\, p(x | \theta_c)` in all its parameters, the priors
        among them. The posterior of the labels is then an affine function of the features (Jaakkola & Haussler's
        Theorem 1). Two classes have one free prior, hence one column, that of the second (in raw coordinates two); in
        ratio and natural coordinates it is the derivative by :math:`\alpha` itself (Tsuda et al., eq. 6.2).
    blocks : list of str, optional
        Which blocks of scores are kept, in this order: "start", "transitions", "weights", "means", "variances" (also
        of full covariances), else a parameter's own name ("probs", "rate", "stop"); "priors" of classes, a node's
        name for networks of tables. The information is then that of the kept parameters, the others being known.
        "occupancy" adds how often states (of a hidden Markov model, of each chain of a factorial one), components (of
        a mixture; pairs of state and component if emissions are mixtures), regimes or classes are expected to be
        visited, neither centred nor whitened. The default is all parameters, without occupancy.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or dict, optional
        Class probabilities: the classes' shares of the training objects, equal ones, or given ones in the order of
        the sorted labels or by label. The default is "empirical" if class models are fitted, "uniform" if they are
        given.
    mapping : {"whitened", "natural"}, default="whitened"
        "natural" is the natural gradient :math:`I^+ U_x` itself, the direction in which the parameters move to make
        x more probable (of the logits of a row of probabilities, up to a constant that moves none). The Fisher kernel
        is then the inner product relative to I, not the plain one.
    store : Store, optional
        Memo of fitted models, shared by all clones: models are fitted once to the same objects with the same settings,
        however many other settings a grid has.
    fit_on : label, optional
        Fit the one model to the objects of this class only, which needs y.

    Attributes
    ----------
    model_ : Model
        The model behind the scores; a ``ClassMixture`` if there is one per class.
    information_ : str
        The information that is used.
    whitener_ : Whitener
        The map W, by diagonal blocks.
    n_features_out_ : int
        The number p of features, one per kept parameter and visited state.
    blocks_ : dict of str to slice
        The features of each block. With ``blocks=None`` parameters stay in the model's order, and a block whose
        parameters are not adjacent there has an index array instead.

    Notes
    -----
    The root W keeps column j as close as possible to parameter j (``whitening.inverse_root``), so that features carry
    the names of parameters. Rows of probabilities have theirs in closed form, in softmax coordinates the Pearson
    residual :math:`(n_k - N p_k) / \sqrt{c\, p_k}`, at a cost linear in the alphabet. Parameters without information (a
    probability of one, a state that is never visited) and, in ratio coordinates, those of infinite information (a
    probability of zero) have zero columns.

    At a maximum of the likelihood the scores of the training objects sum to zero, so that features of training and new
    objects have different distributions; visits do not have this defect, which is why they help learners.
    ``BlockNormalizer`` brings the blocks to a common scale.

    Jaakkola & Haussler's kernels are inner products of these features; their quadratic kernel
    :math:`(1 + U_x^T I^{-1} U_{x'})^2` is ``Polynomial(degree=2, offset=1)`` on top.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers, section 4, eq. 6.
    Tsuda, Kawanabe, Rätsch, Sonnenburg & Müller (2002), A new discriminative kernel from probabilistic
    models, appendix A.

    Examples
    --------
    >>> from genkern import HMM, Categorical, FisherScore
    >>> emissions = Categorical([[0.9, 0.1], [0.2, 0.8]], alphabet="ab")
    >>> model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emissions)
    >>> fisher = FisherScore(model).fit(["aabb", "ab"])
    >>> fisher.transform(["aaaa", "b"]).shape
    (2, 10)
    >>> str(fisher.get_feature_names_out()[-1])
    'emissions.probs[1,b]'
    """

    _fitted = "whitener_"
    _of_floats = True

    def __init__(
        self,
        estimator: Any,
        information: str = "complete",
        coordinates: str = "softmax",
        length_norm: str | None = None,
        ridge: float = 1e-3,
        n_jobs: int | None = None,
        per_class: bool = False,
        blocks: Any = None,
        priors: Any = None,
        mapping: str = "whitened",
        store: Store | None = None,
        fit_on: Any = None,
    ):
        self.estimator = estimator
        self.information = information
        self.coordinates = coordinates
        self.length_norm = length_norm
        self.ridge = ridge
        self.n_jobs = n_jobs
        self.per_class = per_class
        self.blocks = blocks
        self.priors = priors
        self.mapping = mapping
        self.store = store
        self.fit_on = fit_on

    def _learn(self, packed: Packed) -> None:
        self._layout = layout_of(self.model_, self.blocks, self.coordinates)
        self.information_ = self._information()
        self.blocks_ = self._layout.blocks
        self.whitener_ = whitener_of(self._roots(packed))
        if self.whitener_.is_zero:
            warnings.warn(
                "FisherScore: the model has no information about its parameters, so all features are zero. Is "
                "it certain of every observation? Give the estimator a pseudocount, or another family.",
                UserWarning,
                stacklevel=4,
            )

    def _transform(self, packed: Packed) -> Floats:
        features = np.zeros((packed.n_objects, self._width()))
        with one_blas_thread():
            for part, scores in self._scores(packed):
                self._map(self.whitener_, scores, features[part])
        return features

    def _map(self, whitener: Whitener, scores: Floats, out: Floats) -> None:
        """Write the features of scores (n, p) into ``out``, which is zero before."""
        whitener.apply(scores, out=out)
        if self.mapping == "natural":
            whitener.apply_transposed(out, out=out)

    def _names_out(self, given: Any) -> Any:
        """Return the names of parameters, and ``occupancy[state]`` for visits."""
        return np.array(names_of(self.model_, self.coordinates), dtype=object)[self._layout.source]

    def _width(self) -> int:
        return len(self._layout.source)

    def _check_options(self) -> None:
        check_option(self.information, INFORMATION, "information", "FisherScore")
        check_option(self.mapping, MAPPINGS, "mapping", "FisherScore")
        check_scores(self.coordinates, self.length_norm, "FisherScore")
        check_number(self.ridge, "ridge", "FisherScore")
        if self.coordinates == "raw" and self.information not in ("identity", "empirical"):
            raise ValueError(
                "FisherScore: coordinates='raw' needs information='identity' or 'empirical': raw derivatives "
                f"leave the simplex and their mean is not zero, so {self.information!r} is not their second "
                "moment. Use coordinates='softmax'."
            )
        if self.coordinates == "natural" and self.information not in ("identity", "empirical"):
            raise ValueError(
                "FisherScore: coordinates='natural' needs information='identity' or 'empirical'. Got "
                f"{self.information!r}, whose kernel depends on no coordinates: use coordinates='softmax' for it."
            )

    def _information(self) -> str:
        """Return the information that is used: of models known by calls alone, only that of training scores is."""
        if not self.model_.opaque:
            return self.information
        if self.information not in ("complete", "empirical", "identity") or self.length_norm is not None:
            raise ValueError(
                "FisherScore: an adapted model is known by calls alone, so its information is 'empirical' (or "
                "'identity') and its objects have no lengths for length_norm. Got "
                f"information={self.information!r}, length_norm={self.length_norm!r}."
            )
        return "empirical" if self.information == "complete" else self.information

    def _roots(self, packed: Packed) -> Roots:
        """Return the blocks of the map W: roots of the information of the kept scores, ones for visits."""
        source = self._layout.source
        own, rest = np.flatnonzero(source >= 0), np.flatnonzero(source < 0)
        visits: Roots = [(rest, np.ones(len(rest)))] if len(rest) else []
        if len(own) == 0:
            return visits
        if self.information_ == "identity":
            return [(own, np.ones(len(own))), *visits]
        if self.information_ in ("empirical", "exact"):
            with one_blas_thread():
                return [(own, self._root_of_scores(packed, own)), *visits]
        pairs = information_of(self.model_, packed.lengths, self.coordinates)
        kept = restrict(pairs, source, self._layout.total)
        if self.information_ == "diagonal":
            return [*((index, inverse_scale(block.diagonal())) for index, block in kept), *visits]
        return [*((index, root_of(block, RCOND_EXACT)) for index, block in kept), *visits]

    def _root_of_scores(self, packed: Packed, own: NDArray[np.int64]) -> Root:
        """Return the root of the second moment of the scores of columns ``own``, over the objects or over all."""
        if self.information_ == "empirical":
            root_n = np.sqrt(packed.n_objects)
            scores: Iterator[Floats] = (block[:, own] / root_n for _, block in self._scores(packed))
            return moment_root(scores, (packed.n_objects, len(own)), RCOND_EMPIRICAL, self.ridge)
        n, weighted = exact_scores(self.model_, packed, self.coordinates, self.n_jobs)
        free = (free_priors(self.model_, block, self.coordinates) for block in weighted)
        scores = (block[:, self._layout.source[own]] for block in free)
        return moment_root(scores, (n, len(own)), RCOND_EXACT)

    def _scores(self, packed: Packed) -> Iterator[tuple[slice, Floats]]:
        """Yield the scores of consecutive batches of objects, in the same order for any n_jobs."""

        def work(block: Packed) -> Floats:
            scores = scores_of(self.model_, block, self.coordinates, self._layout.source)
            return scores / block.lengths[:, None] ** power if power else scores

        power = LENGTH_POWER[self.length_norm]
        return stream(work, packed, self._layout.total, self.n_jobs)

    def _position_features(self, packed: Packed) -> Any:
        source, scale = self._layout.source, packed.lengths[0] ** LENGTH_POWER[self.length_norm]
        whole = np.array_equal(source, np.arange(len(self.model_.parameter_names)))
        if whole and self.coordinates != "natural":
            found = self.model_.position_gradients(packed, self.coordinates)
        else:
            parts = self.model_.position_statistics(packed)
            found = ((0, scores_from(self.model_, part, self.coordinates, source)) for part in parts)
        return sparse.vstack([self._whitened(first, scores / scale) for first, scores in found], format="csr")

    def _whitened(self, first: int, scores: Floats) -> Any:
        """Return the features (n, p) of scores (n, k) of adjacent columns from the first on; the others are zero."""
        low, high, whitener = self.whitener_.around(first, first + scores.shape[1])
        wide = np.zeros((len(scores), high - low))
        wide[:, first - low : first - low + scores.shape[1]] = scores
        features = np.zeros(wide.shape)
        self._map(whitener, wide, features)
        part = sparse.coo_array(features)
        return sparse.csr_array((part.data, (part.row, part.col + low)), (len(scores), self._width()))
