"""Tangent vectors of posterior log-odds: objects as derivatives by the parameters of class models."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.features.base import ClassEmbedding
from genkern.features.positions import class_terms
from genkern.features.score_blocks import LENGTH_POWER, blocks_in, check_scores, choose, parameter_names_in
from genkern.features.streaming import gather, stream
from genkern.preprocess.standardize import MIN_SCALE, learn_scale
from genkern.validation import Floats, check_bool, check_option

MULTICLASS = ("one-vs-rest", "pairwise")


class TopScore(ClassEmbedding):
    r"""Features whose inner product is the TOP kernel of class models: posterior log-odds and their derivatives.

    .. math:: v(x) = \log \frac{P(+ | x)}{P(- | x)} = \log \frac{\alpha}{1 - \alpha} + \ell_+(x) - \ell_-(x), \qquad
       \phi(x) = [\, v,\ \nabla \ell_+,\ -\nabla \ell_- ]

    with the log-likelihoods :math:`\ell_\pm = \log p(x | \theta_\pm)`; the positive class is the second of the sorted
    labels. The linear function that takes v alone is the plug-in decision; the derivatives let a learner correct
    it to first order for the error of the estimated parameters.

    Parameters
    ----------
    estimator : estimator, dict or ClassMixture
        What is fitted, as a clone, to the objects of each class; or ``{label: estimator}``, one per class; or ``{label:
        model}``, models that are used as they are; or a ``ClassMixture``, with its priors, which needs no y.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or dict, default="empirical"
        Class probabilities: the classes' shares of the training objects, equal ones, or given ones in the order of
        the sorted labels or by label.
    multiclass : {"one-vs-rest", "pairwise"}, default="one-vs-rest"
        Features for more than two classes. "one-vs-rest": for each class c the log-odds against all others,
        :math:`v_c = \ell_c + \log \alpha_c - \log \sum_{j \ne c} \alpha_j e^{\ell_j}`, and its derivatives in all
        parameters, :math:`-r_j` in the logit of prior j, :math:`\nabla \ell_c` and :math:`-r_j \nabla \ell_j`, with
        :math:`r_j = P(j | x, \text{not } c)`. "pairwise": the log-odds against the last class and all
        :math:`\nabla \ell_c`, once: fewer by a factor of the number of classes.
    standardize : bool, default=False
        Give features mean zero and variance one over the training objects, and leave out those that hardly vary, as
        ``Standardize()`` does.
    coordinates : {"softmax", "ratio", "sqrt", "raw", "natural"}, default="softmax"
        Of probabilities, see ``genkern.models.simplex``. Tsuda et al. use "ratio" for hidden Markov models and
        "natural" (see ``genkern.models.families.natural``) for mixtures of isotropic Gaussians only.
    constant : bool, default=False
        Keep derivatives that are the same for all objects, which only add a constant to the kernel: that in the prior
        of two classes, :math:`1 / (\alpha (1 - \alpha))`, or in the logit of the own prior, 1.
    v_max : float, default=700
        Replaces infinite log-odds, those of an object that is impossible under one side. Finite ones are kept.
    n_jobs : int, optional
        Threads, over batches of objects.
    length_norm : {None, "length", "sqrt"}, default=None
        Divide the derivatives by parameters of class models by the object's length, or by its square root. The
        log-odds stay as they are, so that the plug-in decision remains a linear function of the features.
    blocks : list of str, optional
        Which blocks of features are kept, in this order: "v" (log-odds), "priors" (derivatives in those), and the
        blocks of class models as in ``FisherScore``: "start", "transitions", "weights", "means", "variances", else a
        parameter's own name. The default is all.
    store : Store, optional
        Memo of fitted models, shared by all clones: models are fitted once to the same objects with the same settings,
        however many other settings a grid has.

    Attributes
    ----------
    model_ : ClassMixture
        The class models and their priors.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_out_ : int
    mean_, scale_ : ndarray of shape (n_features,)
        Of the training features, with ``standardize``.
    dropped_ : ndarray of str
        Names of the features that are left out because they hardly vary.

    Notes
    -----
    Where an object is impossible under a class model, that model's derivatives are set to zero. An object that is
    impossible in every class is refused.

    The class models were fitted with the labels of the training objects, whose log-odds are therefore larger than those
    of new ones. Fit the learner on other objects than the models, or on out-of-fold features.

    References
    ----------
    Tsuda, Kawanabe, Rätsch, Sonnenburg & Müller (2002), A new discriminative kernel from probabilistic models,
    eq. 4.2-4.6, and 5.1-5.2 for mixtures, A.1-A.6 for hidden Markov models.

    Examples
    --------
    >>> from genkern import HMMEstimator, TopScore
    >>> X, y = ["aaab", "aaba", "bbab", "babb"], ["A", "A", "B", "B"]
    >>> top = TopScore(HMMEstimator(n_states=1)).fit(X, y)
    >>> top.transform(["aa", "bb"])[:, 0].round(3)
    array([-2.191,  2.191])
    >>> top.get_feature_names_out()[:2].tolist()
    ['v', 'B.start[0]']
    """

    _fitted = "dropped_"
    _of_floats = True

    def __init__(
        self,
        estimator: Any,
        priors: Any = "empirical",
        multiclass: str = "one-vs-rest",
        standardize: bool = False,
        coordinates: str = "softmax",
        constant: bool = False,
        v_max: float = 700.0,
        n_jobs: int | None = None,
        length_norm: str | None = None,
        blocks: Any = None,
        store: Store | None = None,
    ):
        self.estimator = estimator
        self.priors = priors
        self.multiclass = multiclass
        self.standardize = standardize
        self.coordinates = coordinates
        self.constant = constant
        self.v_max = v_max
        self.n_jobs = n_jobs
        self.length_norm = length_norm
        self.blocks = blocks
        self.store = store

    def _check_options(self) -> None:
        super()._check_options()
        check_option(self.multiclass, MULTICLASS, "multiclass", "TopScore")
        check_scores(self.coordinates, self.length_norm, "TopScore")
        check_bool(self.standardize, "standardize", "TopScore")
        check_bool(self.constant, "constant", "TopScore")

    def _learn(self, packed: Packed) -> None:
        if self.model_.opaque and self.length_norm is not None:
            raise ValueError(
                "TopScore: an adapted model is known by calls alone, so its objects have no lengths for length_norm. "
                f"Got length_norm={self.length_norm!r}."
            )
        names, homes = zip(*self._all_names())
        self._names = np.array(names, dtype=object)
        places = np.arange(len(names))
        chosen, _ = choose(np.array(homes, dtype=object), places, self.blocks, "blocks of the features", "TopScore")
        self._kept = chosen
        if self.standardize:
            blocks = stream(self._tangents, packed, len(self._names), self.n_jobs)
            scale = learn_scale((block[:, chosen] for _, block in blocks), MIN_SCALE, "TopScore")
            kept, self.mean_, self.scale_ = scale
            self._kept = chosen[kept]
        self.dropped_ = self._names[chosen[~np.isin(chosen, self._kept)]]

    def _transform(self, packed: Packed) -> Floats:
        if not self.standardize and len(self._kept) == len(self._names) and self.blocks is None:
            return gather(self._tangents, packed, len(self._names), self.n_jobs)
        features = np.empty((packed.n_objects, len(self._kept)))
        for part, block in stream(self._tangents, packed, len(self._names), self.n_jobs):
            features[part] = self._scaled(block[:, self._kept])
        return features

    def _scaled(self, features: Floats) -> Floats:
        return (features - self.mean_) / self.scale_ if self.standardize else features

    def _names_out(self, given: Any) -> Any:
        """Return ``v`` (``v[c]``, ``v[c|d]``) for log-odds and ``label.parameter`` for derivatives."""
        return self._names[self._kept]

    # --- features

    def _tangents(self, packed: Packed) -> Floats:
        """Return all features (n_objects, width) of a block."""
        joint = self._joint(packed)
        grads = self.model_.class_grads(packed, np.isfinite(joint), self.coordinates)
        return self._features(joint, self._divided(grads, packed.lengths[:, None]))

    def _divided(self, grads: list[Floats], lengths: Any) -> list[Floats]:
        """Return derivatives, divided by powers of the lengths of their objects."""
        power = LENGTH_POWER[self.length_norm]
        return [grad / lengths**power for grad in grads] if power else grads

    def _features(self, joint: Floats, grads: list[Floats]) -> Floats:
        """Return all features (n, width) from joint log-probabilities (n, n_classes) and derivatives of each class."""
        if len(grads) == 2:
            columns = [self._odds(joint[:, [1]], joint[:, [0]])]
            if self.constant:
                columns.append(np.full((len(joint), 1), 1.0 / self.model_.priors.prod()))
            columns += [grads[1], -grads[0]]
        elif self.multiclass == "pairwise":
            columns = [self._odds(joint[:, :-1], joint[:, -1:]), *grads]
        else:
            columns = [column for c in range(len(grads)) for column in self._against_rest(c, joint, grads)]
        return np.concatenate(columns, axis=1)

    def _against_rest(self, c: int, joint: Floats, grads: list[Floats]) -> list[Floats]:
        """Return log-odds of class c against all others, and the derivatives in logits of priors and in models."""
        rest = np.delete(joint, c, axis=1)
        total = logsumexp(rest, axis=1, keepdims=True)
        # where no other class is possible there are no shares among them, and their derivatives are zero anyway
        shares = softmax(np.where(np.isfinite(total), rest, 0.0), axis=1) * np.isfinite(total)
        signs = np.insert(-shares, c, 1.0, axis=1)
        priors = signs if self.constant else -shares
        return [self._odds(joint[:, [c]], total), priors, *(signs[:, [j]] * grad for j, grad in enumerate(grads))]

    def _odds(self, above: Floats, below: Floats) -> Floats:
        """Return differences of log-probabilities, infinite ones as +-v_max; zero where both are impossible."""
        below = np.broadcast_to(below, above.shape)
        both = np.isneginf(above) & np.isneginf(below)
        odds: Floats = np.where(both, 0.0, above) - np.where(both, 0.0, below)
        return np.where(np.isinf(odds), np.copysign(self.v_max, odds), odds)

    def _all_names(self) -> list[tuple[str, str]]:
        """Return the name and the block of every feature, in the order of ``_tangents``."""
        labels = [str(label) for label in self.model_.labels]
        own = [
            [(f"{a}.{n}", home) for n, home in zip(parameter_names_in(m, how, "TopScore"), blocks_in(m, how))]
            for a, m, how in zip(labels, self.model_.models, [self.coordinates] * len(labels))
        ]
        if len(labels) == 2:
            return [("v", "v"), *([("prior", "priors")] if self.constant else []), *own[1], *own[0]]
        if self.multiclass == "pairwise":
            return [(f"v[{label}|{labels[-1]}]", "v") for label in labels[:-1]] + [
                pair for part in own for pair in part
            ]
        found = []
        for c, label in enumerate(labels):
            found.append((f"v[{label}]", "v"))
            priors = [other for j, other in enumerate(labels) if self.constant or j != c]
            found += [(f"v[{label}]:prior[{other}]", "priors") for other in priors]
            found += [(f"v[{label}]:{name}", home) for part in own for name, home in part]
        return found

    def _position_features(self, packed: Packed) -> Any:
        def features(joint: Floats, grads: list[Floats]) -> Floats:
            return self._features(joint, self._divided(grads, packed.lengths[0]))

        rows = class_terms(self.model_, packed, self.coordinates, features)[:, self._kept]
        return sparse.csr_array(rows / self.scale_ if self.standardize else rows)
