"""Maximum likelihood and maximum a posteriori estimation of mixtures, one or thousands at once."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.data.objects import Packed, kind_of
from genkern.models.base import Statistics
from genkern.models.estimator import Batch, LeafEstimator, bounds_of
from genkern.models.fit.chosen import check_size
from genkern.models.fit.em import Steps, expected
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.emissions import EMISSIONS, refuse_other_form
from genkern.models.fit.restarts import First, FitProblem, Restarts, numbers_in
from genkern.models.fit.streams import Keys, keys_of, seed_of, unit_free_digests
from genkern.models.fit.weights import point_weights, weighted
from genkern.models.mixture.model import Mixture
from genkern.models.mixture.passes import component_blocks
from genkern.models.mixture.start import divide, is_symbols, refuse_few
from genkern.models.value import rebatch
from genkern.validation import Floats, check_int, check_number, check_option

INITS = ("auto", "kmeans", "random")
SMOOTHING = 1.0  # added to the number of points of every component of a starting model, whose weights must not be zero


class MixtureEstimator(EMEstimator, LeafEstimator):
    r"""Mixtures by EM, one for all bags of points or one for each.

    .. math:: r_{tk} = \frac{w_k g_k(x_t)}{\sum_j w_j g_j(x_t)}, \qquad w_k \propto \epsilon + \sum_t r_{tk}

    and each component is fitted to the points weighted by its responsibilities :math:`r_{\cdot k}`.

    Parameters
    ----------
    n_components : int, "aic" or "bic", default=2
        Number of components. "aic" and "bic" fit 1, 2, ... and keep the lowest; the search stops after two in a row
        that are no better.
    component : str or leaf estimator, default="auto"
        Family of the components: "categorical", "gaussian", "poisson" or another short name; "auto" is categorical for
        symbols, else gaussian. A leaf estimator such as ``GaussianEstimator("full")`` has its own floors and priors.
    n_init : int, default=1
        Restarts from different first guesses; the best is kept. A run with a component at its floor that is fitted to
        one point, or to few that coincide (fewer than the mean component has), loses against one without. Restarts of
        little data are run together.
    max_iter : int, default=1000
        Largest number of EM steps. In ``fit_each``, models that have converged leave the batch.
    tol : float, default=1e-5
        EM stops when a step gains less than this per point, and all further steps together, extrapolated from the last
        ones, would gain less than ten times this. Zero runs all steps.
    pseudocount : float, default=0.01
        Added to the expected number of points of every component (a Dirichlet prior on the weights). Zero is maximum
        likelihood. Weights (and probabilities of symbols) that are zero in an ``init`` stay zero.
    init : {"auto", "kmeans", "random"} or Mixture, default="auto"
        First guess: clusters of points, or the assignment of each point to the nearest of random ones. "auto" is kmeans
        for vectors, and random weights for symbols, which have no distances. A ``Mixture`` is used unchanged;
        in ``fit_each`` there may be one for each bag, as a list or a stack.
        A point has a share in every cluster, by its distance from their centres relative to the mean distance from a
        point to its own, over all channels: few points in many channels start with almost equal shares.
    max_components : int, default=20
        Largest number of components that "aic" and "bic" try.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: "weights" and "components".
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective. If it returns True, the run ends there.
    random_state : int, RandomState instance or None, default=None
        Seed. Random numbers depend on it and, in ``fit_each``, on the content of each bag, never on its index in the
        list; None is 0, so that fits are reproducible.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : Mixture
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood plus log priors. It never
        falls.
    criterion_ : list of float
        The criterion for 1, 2, ... components, if ``n_components`` names one.

    Notes
    -----
    A component that no point belongs to keeps its parameters, and its weight is that of the pseudocount alone. A first
    guess gives components without points (there may be fewer distinct points than components) the broad distribution of
    all points. As the emission of an ``HMMEstimator``, the mixture of each state starts from the points first assigned
    to that state.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import MixtureEstimator
    >>> points = np.array([[0.0], [0.2], [5.0], [5.2], [5.1]])
    >>> model = MixtureEstimator(2, pseudocount=0).fit(points).model_
    >>> np.sort(model.components.mean[:, 0]).round(3)
    array([0.1, 5.1])
    """

    kind = Mixture
    smaller = "n_components"
    chosen = ("n_components", "max_components")
    places = ("component",)

    def __init__(
        self,
        n_components: int | str = 2,
        component: Any = "auto",
        *,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        pseudocount: float = 0.01,
        init: Any = "auto",
        max_components: int = 20,
        fixed: Any = (),
        callback: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self.component = component
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.pseudocount = pseudocount
        self.init = init
        self.max_components = max_components
        self.fixed = fixed
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- public

    def check_each(self, packed: Packed) -> None:
        """Raise if the components cannot be fitted to a single object; not needed with a given starting model."""
        if self._example is None:
            self._component_for(packed).check_each(packed)

    def maximize(self, statistics: Statistics) -> Mixture:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one mixture give one, whatever the number of bags; those under a stack of own mixtures a stack.
        The relative floor of Gaussians is a share of the channels' variances in the statistics, outliers included,
        while ``fit`` excludes outliers: ``estimator.bounded(estimator.pack(X), own=False).maximize`` is the M-step of
        ``fit``.
        """
        own = bool(statistics.model.shape)
        return self._maximize(statistics if own else statistics.total())

    def resolve(self, X: Any) -> MixtureEstimator:
        """Return an estimator that fits parts of X as it would fit the whole (same alphabet)."""
        return clone(self).set_params(component=self._component_for(X).resolve(X))

    def pack(self, X: Any) -> Packed:
        """Encode bags of points as the components' family does."""
        return self._family(X).pack(X)

    def pack_sequences(self, X: Any) -> Packed:
        """Encode sequences of points as the components' family does."""
        return self._family(X).pack_sequences(X)

    def _family(self, X: Any) -> Any:
        """Return the encoder of points: the starting model, or the components' estimator."""
        self._check_parameters()
        return self._example if self._example is not None else self._component_for(X)

    # --- as the emissions of a latent model

    def inside_em(self, packed: Packed) -> MixtureEstimator:
        """Return the estimator with the components' estimator for EM."""
        self._check_parameters()
        return self._with(component=self._component_for(packed).inside_em(packed))

    def bounded(self, packed: Packed, own: bool) -> Self:
        """Return the estimator with the bounds of its components."""
        return self._with(component=self._component_for(packed).bounded(packed, own))

    def shaped(self, leaf: Any) -> Self:
        """Return the estimator of as many components of the form that a mixture has."""
        if not isinstance(leaf, Mixture):
            return self
        return self._with(component=self._component_of(leaf).shaped(leaf.components), n_components=leaf.n_components)

    def part(self, members: Any) -> Self:
        """Return the estimator for some of the objects of a batch."""
        return self._with(component=self.component.part(members)) if isinstance(self.component, LeafEstimator) else self

    def standardized(self, packed: Packed, own: bool) -> Packed:
        """Return the points as the components' family compares them."""
        return self._component_for(packed).standardized(packed, own)

    def reference(self, packed: Packed, n: int, own: bool) -> Mixture:
        """Return n mixtures (per object, if own) of equal, broad components."""
        k = self._size()
        flat = self._component_for(packed).reference(packed, n * k, own)
        batch = (*flat.shape[:-1], n, k)
        return Mixture._restore(np.full(batch, 1.0 / k), rebatch(flat, batch))

    def fit_weighted(self, packed: Packed, weights: Floats, own: bool) -> Mixture:
        """Return the mixtures of the parts into which the points of each member are divided, for EM to start from."""
        if self._example is not None:
            raise ValueError(
                "MixtureEstimator: 'init' as a mixture is for fits of its own. As emissions, give it in the model that "
                "emits it, such as HMMEstimator(init=HMM(...)), or use init='auto'."
            )
        keys = (
            keys_of(seed_of(self.random_state), unit_free_digests(packed))
            if own
            else np.array([seed_of(self.random_state)], np.uint64)
        )
        return self._divided(packed, weights, own, keys)

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Mixture) -> Mixture:
        """Return mixtures of smoothed weights and fitted components; those without points are not changed."""
        weights = expected_rows(leaf.weights, blocks["weights"], np.full(leaf.n_components, float(self.pseudocount)))
        flat = self._component_of(leaf).maximize_blocks(component_blocks(blocks), leaf.flat_components())
        return self._keep(leaf, Mixture._restore(weights, rebatch(flat, leaf.components.shape)))

    def log_prior(self, leaf: Mixture) -> Floats:
        """Return the Dirichlet log prior of the weights plus that of the components."""
        prior: Floats = self._component_of(leaf).log_prior(leaf.flat_components())
        return prior + log_pseudocounts(leaf.weights, self.pseudocount, 2)

    @property
    def collapses(self) -> bool:
        """Whether components collapse; those given by name or by ``init`` are checked when they are known."""
        return not isinstance(self.component, LeafEstimator) or self.component.collapses

    def at_floor(self, leaf: Mixture) -> NDArray[np.bool_]:
        """Return in which directions components are at their floor, batch + (k, directions)."""
        return self._component_of(leaf).at_floor(leaf.flat_components()).reshape((*leaf.weights.shape, -1))

    def raised(self, leaf: Mixture) -> Mixture:
        """Return mixtures of components with spreads raised to the floor."""
        flat = self._component_of(leaf).raised(leaf.flat_components())
        return Mixture._restore(leaf.weights, rebatch(flat, leaf.components.shape))

    def check_kept(self, leaf: Mixture) -> None:
        """Raise for components that are not of the form that is asked for."""
        self._component_of(leaf).check_kept(leaf.flat_components())

    def counts(self, blocks: dict[str, Floats], leaf: Mixture) -> Floats:
        """Return the effective number of observations of each component, batch + (k,)."""
        return leaf.weights * blocks["weights"].reshape(leaf.weights.shape)

    def coincide(self, blocks: dict[str, Floats], leaf: Mixture) -> NDArray[np.bool_]:
        """Return which components are fitted to points that almost coincide, batch + (k,)."""
        found = self._component_of(leaf).coincide(component_blocks(blocks), leaf.flat_components())
        return found.reshape(leaf.weights.shape)

    def n_free(self, packed: Packed) -> int:
        """Return the parameters of a state plus one, the analogue of the symbols of an emission row."""
        component: Any = self._component_for(packed)
        return self._size() * int(component.n_free(packed))

    # --- the fitting problem

    def _check_parameters(self) -> None:
        who = "MixtureEstimator"
        super()._check_parameters()
        for name in ("n_components", "max_components"):
            check_size(getattr(self, name), name, who)
        check_number(self.pseudocount, "pseudocount", who)
        if self._example is None:
            check_option(self.init, INITS, "init", who)
        elif self._example.n_components != self.n_components:
            raise ValueError(
                f"MixtureEstimator: 'init' must be one mixture of n_components={self.n_components} components. Got "
                f"{self._example.n_components}."
            )

    def _size(self) -> int:
        return check_int(self.n_components, "n_components", "MixtureEstimator, of hidden states,", 1)

    def _component_for(self, X: Any) -> LeafEstimator:
        """Return the leaf estimator of the components for the objects."""
        if isinstance(self.component, MixtureEstimator):
            raise TypeError("MixtureEstimator: a mixture of mixtures is a mixture: raise n_components instead.")
        if isinstance(self.component, LeafEstimator):
            return self.component
        name = check_option(self.component, ("auto", *EMISSIONS), "component", "MixtureEstimator")
        if name == "auto" and self._example is not None:
            return self._component_of(self._example)
        if name == "auto":
            name = "categorical" if kind_of(X, "MixtureEstimator") == "symbols" else "gaussian"
        component: LeafEstimator = EMISSIONS[name]()
        return component.shaped(self._example.components) if self._example is not None else component

    def _component_of(self, leaf: Mixture) -> LeafEstimator:
        """Return the leaf estimator for the components of a mixture."""
        if isinstance(self.component, LeafEstimator):
            return self.component
        name = leaf.components.family_name
        if name is None:
            raise ValueError(f"MixtureEstimator: give 'component', an estimator of {type(leaf.components).__name__}.")
        return EMISSIONS[name]().shaped(leaf.components)

    # --- EM

    def _ready(self, X: Any, own: bool, sample_weight: Any = None, known: Any = None) -> tuple[EMEstimator, Packed]:
        packed = weighted(self.pack, X, sample_weight, "MixtureEstimator")
        if self._example is not None and self.component != "auto":
            refuse_other_form(
                self._example.components,
                self._component_for(packed).reference(packed, self._size(), own=False),
                ("MixtureEstimator", "components", "component"),
            )
        inner = self.inside_em(packed)
        refuse_few(packed, self._size(), own)
        return inner, packed

    def _runs(self, own: bool) -> int:
        return 1 if self._example is not None else self.n_init

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        windows = packed.alphabet is not None and packed.values.ndim == 2
        if not (own or windows) and packed.weights is None:  # for one mixture of all objects, their points are one bag
            packed = packed._replace(offsets=packed.offsets[[0, -1]])
        size = numbers_in(self.reference(packed, 1, own=False))
        bounded = bounds_of(self)

        def guess(part: Packed, restarts: Restarts, each: bool) -> First:
            return First(bounded(part, each)._start(part, restarts.keys, each))

        def steps(part: Packed, each: bool) -> Steps:
            return self._bounded_steps(bounded(part, each), each)

        return FitProblem(packed, steps, guess, self._size(), size)

    def _bounded_steps(self, bounded: MixtureEstimator, own: bool) -> Steps:
        """Return the E- and M-steps of one mixture, or of a stack of own ones."""
        batch = Batch(bounded)

        def members(model: Mixture) -> Mixture:
            return rebatch(model, (*model.shape, 1))

        def at_floor(model: Mixture) -> NDArray[np.bool_]:
            return np.asarray(batch.estimator.at_floor(members(model))[..., 0, :, :])

        return Steps(
            lambda model, part: expected(model, part, n_jobs=self.n_jobs),
            lambda statistics: batch.estimator._maximize(statistics),
            lambda model, part: model.bag_log_prob(part, self.n_jobs),
            lambda model: batch.estimator.log_prior(members(model)),
            batch.drop if own else None,
            at_floor=at_floor if batch.estimator.collapses else None,
            counts=lambda statistics: self.counts(statistics.blocks, statistics.model),
            coincide=lambda statistics: batch.estimator.coincide(statistics.of_member(), members(statistics.model)),
        )

    def _start(self, packed: Packed, keys: Keys, own: bool) -> Mixture:
        """Return the mixture, or the stack of own mixtures, from which EM starts."""
        if self._example is not None:
            # EM respects the floor; from a model below it, the objective could only fall.
            given: Mixture = self._given_to(packed, own)
            if "components" in self.fixed:
                self.check_kept(given)
                return given
            return rebatch(self.raised(rebatch(given, (*given.shape, 1))), given.shape)
        stack = self._divided(packed, point_weights(packed), own, keys)
        return stack[:, 0] if own else stack[0]

    def _divided(self, packed: Packed, weights: Floats, own: bool, keys: Keys) -> Mixture:
        """Return mixtures of batch (n,) or (n_objects, n) fitted to parts of the points of n members."""
        symbols, init = is_symbols(packed), self.init
        if init == "kmeans" and symbols:
            raise ValueError("MixtureEstimator: init='kmeans' needs vectors. Got symbols; use init='random'.")
        if not isinstance(init, str) or init == "auto":
            init = "random" if symbols else "kmeans"
        shares = divide(self.standardized(packed, own), weights, own, self._size(), keys, init)
        flat = self._component_for(packed).guess(packed, shares.reshape(packed.n_points, -1), own)
        starts = packed.offsets[:-1] if own else packed.offsets[:1]
        counts = np.add.reduceat(shares, starts, axis=0).reshape((*flat.shape[:-1], *shares.shape[1:])) + SMOOTHING
        return Mixture._restore(counts / counts.sum(axis=-1, keepdims=True), rebatch(flat, counts.shape))

    def _maximize(self, statistics: Statistics) -> Mixture:
        """Return the M-step's model, of the batch of the model that the statistics were taken under."""
        model: Mixture = statistics.model
        return rebatch(self.maximize_blocks(statistics.of_member(), rebatch(model, (*model.shape, 1))), model.shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.component, LeafEstimator):
            tags.input_tags = get_tags(self.component).input_tags
        return tags
