"""The latent mean map: expectations of features of observation and hidden state together."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.special import pdtrc

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.features.marginalized_points import refuse_missing, refuse_windows
from genkern.features.random_features import apply_root, draw_waves, fourier_features, taylor_features
from genkern.features.states import StateEmbedding, States, state_counts
from genkern.models.states import flat_rows, state_names
from genkern.validation import Floats, check_int, check_number, check_option

FEATURES = ("auto", "fourier", "taylor")
PARTS = ("all", "observations", "transitions")
EXACT, POOR = 1e-10, 1e-2  # largest error of Taylor features in the kernel of a point with itself


class LatentMeanMap(StateEmbedding):
    r"""Explicit features of the latent mean map kernel, expectations over the hidden states of an object.

    .. math:: \phi(x) = \Big[R\, \tfrac1L \sum_t \gamma_t\, \Phi(x_t)^T, \quad R\, \Xi\, R\Big], \qquad
       (R R)_{ij} = e^{-\lambda_q [i \ne j]}, \quad \langle \Phi(x), \Phi(x') \rangle = e^{-\lambda_x |x - x'|^2 / 2}

    with :math:`\gamma_t(i) = P(q_t = i | x)` and :math:`\Xi` the mean of :math:`P(q_t = i, q_{t+1} = j | x)` over time.
    Inner products are the kernel, which ``LatentMean`` gives for pairs of objects: exactly for symbols, which are
    one-hot vectors (:math:`\Phi(x)` is a column of such a root), approximately for series.

    Parameters
    ----------
    estimator : estimator, model or dict
        An estimator, a clone of which is fitted to all objects given to ``fit``, or a model that is used unchanged: a
        hidden Markov model with any emissions, a mixture (components are the states), a factorial model
        (each chain with the observations, concatenated), a periodic chain (phases). A dict ``{label: model}`` or a
        ``ClassMixture`` gives the features of every class model, concatenated.
    lam_x : float, default=1.0
        Sharpness between observations, not negative; for symbols also infinite: they must be equal.
    lam_q : float, default=1.0
        Sharpness between states, not negative; infinite: they must be equal.
    parts : {"all", "observations", "transitions"}, default="all"
        Features of observations with states, of neighbouring states, or all that the model has (mixtures and phases
        have no transitions).
    features : {"auto", "fourier", "taylor"}, default="auto"
        :math:`\Phi` of series. "fourier": random Fourier features, unbiased, with an error of order
        :math:`D^{-1/2}`. "taylor": :math:`e^{-z^2 / 2} z^k / \sqrt{k!}` with :math:`z = \sqrt{\lambda_x}\, x`, for one
        channel; a warning says if they are too few. "auto": these, if there is one channel and they miss the kernel of
        the training data by less than 1e-10, otherwise random ones. Not used for symbols.
    n_components : int, default=100
        The number D of features :math:`\Phi` of an observation, for series.
    random_state : int, default=0
        Seed of the random frequencies.
    per_class : bool, default=False
        Fit one model to the objects of each class, which needs y, and concatenate their features.
    n_jobs : int, optional
        Threads, over batches of objects.
    store : Store, optional
        Memo of fitted models, shared by all clones: models are fitted once to the same objects with the same settings,
        however many other settings a grid has.
    fit_on : label, optional
        Fit the one model to the objects of this class only, which needs y, as the paper does.

    Attributes
    ----------
    model_ : Model
        The model, or a ``ClassMixture`` of one per class.
    features_ : str
        The kind of :math:`\Phi`: "exact" (symbols), "fourier" or "taylor".
    n_features_out_ : int

    Notes
    -----
    With infinite :math:`\lambda_x` and :math:`\lambda_q` and ``parts="observations"``, these are the features of
    ``Marginalized``. An ambiguous symbol counts for its members by their posterior probability. A missing entry of a
    series is refused by object and position, as there is no observation to compare. An object of one observation has
    no transitions, and zeros for them. :math:`\nu` of the paper is a kernel on top: ``Linear().exp(nu)``.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 4 (in eq. 8-9, the second sum must leave out
    j = i).
    Rahimi & Recht (2007), Random features for large-scale kernel machines.

    Examples
    --------
    >>> from genkern import HMM, Categorical, LatentMeanMap, Linear
    >>> emissions = Categorical([[0.9, 0.1], [0.2, 0.8]], alphabet="ab")
    >>> model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emissions)
    >>> features = LatentMeanMap(model, lam_x=2.0, lam_q=1.0).fit_transform(["aab", "b"])
    >>> features.shape
    (2, 8)
    >>> Linear().exp(0.5)(features).round(3)
    array([[1.   , 0.518],
           [0.518, 1.   ]])
    """

    _inputs: ClassVar[dict[str, bool]] = {"allow_nan": False}
    apply = "sum"  # of the shared sums over time: there is no other choice here
    map = None

    def __init__(
        self,
        estimator: Any,
        lam_x: float = 1.0,
        lam_q: float = 1.0,
        parts: str = "all",
        features: str = "auto",
        n_components: int = 100,
        random_state: int = 0,
        per_class: bool = False,
        n_jobs: int | None = None,
        store: Store | None = None,
        fit_on: Any = None,
    ):
        self.estimator = estimator
        self.lam_x = lam_x
        self.lam_q = lam_q
        self.parts = parts
        self.features = features
        self.n_components = n_components
        self.random_state = random_state
        self.per_class = per_class
        self.n_jobs = n_jobs
        self.store = store
        self.fit_on = fit_on

    def _check_options(self) -> None:
        super()._check_options()
        check_number(self.lam_x, "lam_x", "LatentMeanMap", infinite=True)
        check_number(self.lam_q, "lam_q", "LatentMeanMap", infinite=True)
        check_option(self.parts, PARTS, "parts", "LatentMeanMap")
        check_option(self.features, FEATURES, "features", "LatentMeanMap")
        check_int(self.n_components, "n_components", "LatentMeanMap", 1)
        check_int(self.random_state, "random_state", "LatentMeanMap")

    def _learn(self, packed: Packed) -> None:
        self._choose(packed)
        super()._learn(packed)

    def _choose(self, packed: Packed) -> None:
        """Choose the features of an observation and draw their frequencies."""
        self.features_ = "exact"
        if packed.alphabet is not None:
            return
        check_number(self.lam_x, "lam_x", "LatentMeanMap of series")
        width = packed.values.shape[1]
        self._centre, radius = np.zeros(width), np.inf
        if not issparse(packed.values):
            refuse_missing(packed, "LatentMeanMap", "the latent mean map")
            low, high = packed.values.min(axis=0), packed.values.max(axis=0)
            # The kernel depends on differences only, and Taylor features are best near zero.
            self._centre, radius = 0.5 * (low + high), 0.5 * float((high - low).max())
        if self.features == "taylor" and width != 1:
            raise ValueError(f"LatentMeanMap: features='taylor' needs one channel. Got {width}; use 'fourier'.")
        close = width == 1 and self._lacking(radius) < EXACT
        self.features_ = ("taylor" if close else "fourier") if self.features == "auto" else self.features
        self._waves = draw_waves(width, self.lam_x, self.n_components, self.random_state)

    def _lacking(self, radius: float) -> float:
        """Return the error of Taylor features in k(x, x) = 1 of a point at this distance from the centre."""
        return float(pdtrc(self.n_components - 1, self.lam_x * radius**2))

    def _names(self, model: Any, packed: Packed) -> list[str]:
        sizes = state_counts(model, "LatentMeanMap", pairs=self.parts == "transitions")
        names: list[str] = []
        if self.parts != "transitions":
            columns: Any = range(self.n_components)
            if packed.alphabet is not None:
                refuse_windows(model, packed, "LatentMeanMap")
                columns = packed.alphabet.symbols
            names = [f"observations[{state},{column}]" for state in state_names(sizes) for column in columns]
        return names + [f"transitions[{pair}]" for pair in state_names(sizes, 2) if self._steps(model)]

    def _steps(self, model: Any) -> bool:
        """Return whether there are features of neighbouring states."""
        return self.parts != "observations" and bool(model.has_steps)

    def _load(self, model: Any, packed: Packed) -> int:
        return sum(state_counts(model, "LatentMeanMap")) + (0 if packed.alphabet is not None else self.n_components)

    def _needs(self, model: Any, packed: Packed) -> set[str]:
        needs = {"steps"} if self._steps(model) else set()
        return needs if self.parts == "transitions" else needs | {"symbols" if packed.alphabet is not None else "gamma"}

    def _features(self, model: Any, states: States) -> Floats:
        sizes, parts = state_counts(model, "LatentMeanMap"), []
        if self.parts != "transitions":
            means = self._observed(states)
            for chain in np.split(means, np.cumsum(sizes)[:-1], axis=1):
                parts.append(flat_rows(apply_root(chain, self.lam_q, axis=1)))
        if self._steps(model):
            means = self._finish(states.steps, np.diff(states.pair_offsets), True, states.whole)
            for chain, n in zip(np.split(means, np.cumsum(np.square(sizes))[:-1], axis=1), sizes):
                square = apply_root(chain.reshape(-1, n, n), self.lam_q, axis=1)
                parts.append(flat_rows(apply_root(square, self.lam_q, axis=2)))
        return np.concatenate(parts, axis=1)

    def _observed(self, states: States) -> Floats:
        """Return means over time (n_objects, S, D) of states times features of observations."""
        packed, whole = states.packed, states.whole
        if packed.alphabet is not None:
            return apply_root(self._finish(states.symbols, packed.lengths, True, whole), self.lam_x, axis=2)
        refuse_missing(packed, "LatentMeanMap", "the latent mean map")
        points = packed.values - self._centre
        features = self._taylor(points[:, 0]) if self.features_ == "taylor" else fourier_features(points, *self._waves)
        ends = packed.offsets.tolist()
        sums = [states.gamma[first:last].T @ features[first:last] for first, last in pairwise(ends)]
        return self._finish(np.stack(sums), packed.lengths, True, whole)

    def _taylor(self, points: Floats) -> Floats:
        """Return Taylor features, with a warning if they are too few."""
        lacking = self._lacking(float(np.abs(points).max()))
        if lacking > POOR:
            warnings.warn(
                f"LatentMeanMap: with {self.n_components} Taylor features, the kernel of the outermost observation "
                f"with itself is {1.0 - lacking:.2g}, not 1. Raise n_components, lower lam_x, or use "
                "features='fourier'.",
                UserWarning,
                stacklevel=2,
            )
        return taylor_features(points, self.lam_x, self.n_components)
