"""Marginalized kernels: counts of hidden state and observation together, in expectation over the states."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.data.transformer import takes_nan
from genkern.features.marginalized_points import expected_points, moments_of, refuse_missing, refuse_windows
from genkern.features.random_features import draw_waves, fourier_features
from genkern.features.states import StateEmbedding, States
from genkern.models.states import flat_rows, state_names, symbol_probs
from genkern.preprocess.maps import ElementMap
from genkern.validation import Floats, check_bool, check_int, check_number, check_option

FEATURES = ("mean", "raw", "rbf")


class Marginalized(StateEmbedding):
    r"""Expected counts of pairs of state and observation, the features of Tsuda's marginalized count kernel.

    .. math:: \phi_{ia}(x) = \frac1L \sum_{t : x_t = a} \gamma_t(i), \qquad \phi_{ijab}(x) = \frac1{L-1}
       \sum_{t : x_t = a,\, x_{t+1} = b} \xi_t(i, j)

    for symbols at order 1 and 2, with the posteriors :math:`\gamma_t(i) = P(q_t = i | x)` and :math:`\xi_t(i, j) =
    P(q_t = i, q_{t+1} = j | x)`. An ambiguous symbol counts for its members by their posterior probability.

    Parameters
    ----------
    estimator : estimator, model or dict
        An estimator, a clone of which is fitted to all objects given to ``fit``, or a model that is used unchanged: a
        hidden Markov model, or a mixture (components are the states; order 1). A dict ``{label: model}`` (or of
        estimators, with y) or a ``ClassMixture`` gives the features of every class model, concatenated.
    order : {1, 2}, default=1
        1: single positions. 2: pairs of neighbouring ones, with pairs of states and :math:`(x_t, x_{t+1})`.
    features : {"mean", "raw", "rbf"}, default="mean"
        Replacement of :math:`[x_t = a]` for observations that are vectors. "mean": :math:`\frac1L \sum_t \gamma_t(i)`
        and :math:`\frac1L \sum_t \gamma_t(i) (x_t - \mu_i) / \sigma_i`, with the state's mean and standard deviations,
        so that units do not matter. "raw": :math:`x_t` itself in the second. "rbf":
        :math:`\frac1L \sum_t \gamma_t(i) \Phi(x_t)` with random Fourier features of
        :math:`e^{-\lambda |x - x'|^2 / 2}`: the latent mean map kernel for states that must agree. Not used for
        symbols.
    normalize : bool, default=True
        Divide by the number of terms, L or L - 1. Without, features are counts.
    apply : {"sum", "time"}, default="sum"
        Where ``map`` acts: on the sums over time, or on every term.
    map : PowerMap, LogMap or LogisticMap, optional
        A function of every entry; with "sum" and ``normalize``, of the frequencies.
    per_class : bool, default=False
        Fit one model to the objects of each class, which needs y, and concatenate their features.
    lam : float, default=1.0
        The :math:`\lambda` of "rbf".
    n_components : int, default=100
        The number of random Fourier features per state for "rbf".
    random_state : int, default=0
        Seed of the random frequencies.
    n_jobs : int, optional
        Threads, over batches of objects.
    store : Store, optional
        Memo of fitted models, shared by all clones: models are fitted once to the same objects with the same settings,
        however many other settings a grid has.
    fit_on : label, optional
        Fit the one model to the objects of this class only, which needs y.

    Attributes
    ----------
    model_ : Model
        The model, or a ``ClassMixture`` of one per class.
    n_features_out_ : int

    Notes
    -----
    Missing entries are replaced by their conditional expectation given the state (Gaussian emissions and mixtures of
    them; "mean" and "raw"), which makes features exact expectations; elsewhere they are refused. An object of one
    observation has no pairs and features zero at order 2.

    References
    ----------
    Tsuda, Kin & Asai (2002), Marginalized kernels for biological sequences.
    Carli, Bicego, Baldo & Murino (2010), Nonlinear mappings for generative kernels on latent variable models.

    Examples
    --------
    >>> from genkern import HMM, Categorical, Marginalized
    >>> emissions = Categorical([[0.9, 0.1], [0.2, 0.8]], alphabet="ab")
    >>> model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emissions)
    >>> Marginalized(model).fit_transform(["aab", "b"]).round(3)
    array([[0.558, 0.094, 0.109, 0.239],
           [0.   , 0.111, 0.   , 0.889]])
    """

    def __init__(
        self,
        estimator: Any,
        order: int = 1,
        features: str = "mean",
        normalize: bool = True,
        apply: str = "sum",
        map: ElementMap | None = None,
        per_class: bool = False,
        lam: float = 1.0,
        n_components: int = 100,
        random_state: int = 0,
        n_jobs: int | None = None,
        store: Store | None = None,
        fit_on: Any = None,
    ):
        self.estimator = estimator
        self.order = order
        self.features = features
        self.normalize = normalize
        self.apply = apply
        self.map = map
        self.per_class = per_class
        self.lam = lam
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.store = store
        self.fit_on = fit_on

    def _check_options(self) -> None:
        super()._check_options()
        if self.order not in (1, 2):
            raise ValueError(f"The 'order' parameter of Marginalized must be 1 or 2. Got {self.order!r} instead.")
        check_bool(self.normalize, "normalize", "Marginalized")
        check_option(self.features, FEATURES, "features", "Marginalized")
        check_number(self.lam, "lam", "Marginalized", exclusive=True)
        check_int(self.n_components, "n_components", "Marginalized", 1)
        check_int(self.random_state, "random_state", "Marginalized")

    def _names(self, model: Any, packed: Packed) -> list[str]:
        states = state_names([_n_states(model, self.order)], self.order)
        if packed.alphabet is not None:
            refuse_windows(model, packed, "Marginalized")
            words = [",".join(map(str, word)) for word in product(packed.alphabet.symbols, repeat=self.order)]
            return [f"count[{state},{word}]" for state in states for word in words]
        if self.features == "mean":
            moments_of(model.state_emissions)
        if self.features == "rbf" and not issparse(packed.values):
            refuse_missing(packed, "Marginalized", "features='rbf'")
        columns = self.n_components if self.features == "rbf" else self.order * packed.values.shape[1]
        names = [f"{self.features}[{state},{c}]" for state in states for c in range(columns)]
        return names if self.features == "rbf" else [f"state[{state}]" for state in states] + names

    def _load(self, model: Any, packed: Packed) -> int:
        states = _n_states(model, self.order) ** self.order
        if packed.alphabet is not None:
            return states
        # one state at a time: its points, their deviations and the weighted ones
        return states + (self.n_components if self.features == "rbf" else 3 * self.order * packed.values.shape[1])

    def _needs(self, model: Any, packed: Packed) -> set[str]:
        if self.order == 2:
            return {"xi"}
        return {"symbols" if packed.alphabet is not None and self.apply == "sum" else "gamma"}

    def _features(self, model: Any, states: States) -> Floats:
        rows = states.packed.n_objects
        if states.packed.alphabet is not None:
            return self._symbol_features(model, states).reshape(rows, -1)
        if self.features == "rbf":
            return self._fourier_features(states).reshape(rows, -1)
        return self._point_features(model, states)

    # --- symbols

    def _symbol_features(self, model: Any, states: States) -> Floats:
        """Return counts (n_objects, S, m ** order)."""
        packed = states.packed
        if self.order == 1 and self.apply == "sum":
            return self._finish(states.symbols, packed.lengths, self.normalize, states.whole)
        weights, ends, positions = self._places(states)
        assert packed.alphabet is not None
        m, codes = packed.alphabet.size, packed.values
        term, word = np.arange(len(weights)), np.zeros(len(weights), np.int64)
        terms = weights.reshape(len(weights), *[_n_states(model, self.order)] * self.order)
        ambiguous = codes.max() >= m
        if ambiguous:
            probs = symbol_probs(model.state_emissions, packed.alphabet).T
            totals = packed.alphabet.append_extras(probs.T).T  # of each code, (M, n)
        for axis, position in enumerate(positions):
            if not ambiguous:
                word = word * m + codes[position]
                continue
            # one term for each symbol that the code may mean
            each, symbol = packed.alphabet.sparse_members[codes[position[term]]].nonzero()
            term, word = term[each], word[each] * m + symbol
            joint, total = probs[symbol], totals[codes[position[term]]]
            share = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
            terms = terms[each] * np.expand_dims(share, [a for a in range(1, self.order + 1) if a != axis + 1])
        values = flat_rows(terms)
        values = self._mapped(values) if self.apply == "time" else values
        owners = np.repeat(np.arange(packed.n_objects), np.diff(ends))[term]
        cells, shape = owners * m**self.order + word, (packed.n_objects, m**self.order)
        counts = np.stack([np.bincount(cells, v, shape[0] * shape[1]).reshape(shape) for v in values.T], axis=1)
        return self._finish(counts, np.diff(ends), self.normalize, states.whole)

    def _places(self, states: States) -> tuple[Floats, NDArray[np.int64], list[NDArray[np.int64]]]:
        """Return posteriors (P, S) of terms, the offsets of objects, and the positions of terms."""
        if self.order == 1:
            return states.gamma, states.packed.offsets, [np.arange(states.packed.n_points)]
        return states.xi, states.pair_offsets, [states.firsts, states.firsts + 1]

    # --- vectors

    def _point_features(self, model: Any, states: States) -> Floats:
        """Return shares of (pairs of) states, and weighted deviations from their means or points, state by state."""
        weights, ends, positions = self._places(states)
        visits = self._sum(weights, ends, self.normalize, states.whole)
        sums = [visits]
        for column, pair in enumerate(product(range(_n_states(model, 1)), repeat=self.order)):
            parts = [self._points(model, states.packed, i)[at] for i, at in zip(pair, positions)]
            points = parts[0] if self.order == 1 else np.concatenate(parts, axis=1)
            sums.append(self._sum(weights[:, [column]] * points, ends, self.normalize, states.whole))
        return np.concatenate(sums, axis=1)

    def _points(self, model: Any, packed: Packed, state: int) -> Floats:
        """Return the points (N, d) as one state sees them."""
        leaf = model.state_emissions[state : state + 1]
        points = expected_points(leaf, packed, "Marginalized")[:, 0]
        if self.features == "raw":
            return points
        mean, scale = moments_of(leaf)
        return (points - mean) / scale

    def _fourier_features(self, states: States) -> Floats:
        """Return weighted random Fourier features (n_objects, S, D)."""
        packed = states.packed
        refuse_missing(packed, "Marginalized", "features='rbf'")
        weights, ends, positions = self._places(states)
        points = np.concatenate([packed.values[position] for position in positions], axis=1)
        drawn = draw_waves(points.shape[1], self.lam, self.n_components, self.random_state)
        waves = fourier_features(points, *drawn)
        if self.apply == "time":
            by_state = (weights[:, [s]] * waves for s in range(weights.shape[1]))
            return np.stack([self._sum(t, ends, self.normalize, states.whole) for t in by_state], axis=1)
        sums = [weights[a:b].T @ waves[a:b] for a, b in pairwise(ends.tolist())]
        return self._finish(np.stack(sums), np.diff(ends), self.normalize, states.whole)

    def _takes(self) -> dict[str, bool]:
        return {"allow_nan": takes_nan(self.estimator) and self.features != "rbf"}


def _n_states(model: Any, order: int) -> int:
    """Return the number of states, refusing models that do not emit observations from discrete states."""
    if model.state_emissions is None or (order == 2 and not model.has_steps):
        wanted = "an HMM or a Mixture" if order == 1 else "an HMM, for pairs of states,"
        raise TypeError(f"Marginalized: needs {wanted} at order {order}. Got {type(model).__name__}.")
    (count,) = model.state_sizes
    return int(count)
