"""The state-space embedding: the expected number of visits to each hidden state."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.features.states import StateEmbedding, States, state_counts
from genkern.models.states import state_names
from genkern.preprocess.maps import ElementMap
from genkern.validation import Floats, check_bool


class StateSpace(StateEmbedding):
    r"""Expected visits to the hidden states, :math:`g_i(x) = \sum_t \gamma_t(i)`, and transitions between them.

    .. math:: \gamma_t(i) = P(q_t = i | x), \qquad g_{ij}(x) = \sum_t \xi_t(i, j), \quad \xi_t(i, j) = P(q_t = i,
       q_{t+1} = j | x)

    Parameters
    ----------
    estimator : estimator, model or dict
        An estimator, a clone of which is fitted to all objects given to ``fit``, or a model that is used unchanged:
        hidden Markov models, mixtures (visits are counts of points per component), factorial models (all chains),
        periodic chains (phases). A dict ``{label: model}`` (or of estimators, with y) or a ``ClassMixture`` gives
        the features of every class model, concatenated.
    transitions : bool, default=False
        Add the transitions, after the visits.
    normalize : bool, default=False
        Divide by the number of terms: frequencies instead of counts. Maps act differently on the two.
    apply : {"sum", "time"}, default="sum"
        Where ``map`` acts: on the sums over time, :math:`f(\sum_t \gamma_t)`, or before, :math:`\sum_t f(\gamma_t)`.
    map : PowerMap, LogMap or LogisticMap, optional
        The function f of every entry; with "sum" and ``normalize``, of the frequencies.
    per_class : bool, default=False
        Fit one model to the objects of each class, which needs y, and concatenate their features.
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

    References
    ----------
    Carli, Bicego, Baldo & Murino (2010), Nonlinear mappings for generative kernels on latent variable models,
    eq. 1, and eq. 2 with ``map``.

    Examples
    --------
    >>> from genkern import HMM, Categorical, StateSpace
    >>> emissions = Categorical([[0.9, 0.1], [0.2, 0.8]], alphabet="ab")
    >>> model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emissions)
    >>> StateSpace(model).fit_transform(["aaaa", "b"]).round(3)
    array([[3.768, 0.232],
           [0.111, 0.889]])
    """

    def __init__(
        self,
        estimator: Any,
        transitions: bool = False,
        normalize: bool = False,
        apply: str = "sum",
        map: ElementMap | None = None,
        per_class: bool = False,
        n_jobs: int | None = None,
        store: Store | None = None,
        fit_on: Any = None,
    ):
        self.estimator = estimator
        self.transitions = transitions
        self.normalize = normalize
        self.apply = apply
        self.map = map
        self.per_class = per_class
        self.n_jobs = n_jobs
        self.store = store
        self.fit_on = fit_on

    def _check_options(self) -> None:
        super()._check_options()
        check_bool(self.transitions, "transitions", "StateSpace")
        check_bool(self.normalize, "normalize", "StateSpace")

    def _names(self, model: Any, packed: Packed) -> list[str]:
        sizes = state_counts(model, "StateSpace", self.transitions)
        names = [f"state[{index}]" for index in state_names(sizes)]
        return names + [f"transitions[{index}]" for index in state_names(sizes, 2) if self.transitions]

    def _load(self, model: Any, packed: Packed) -> int:
        return sum(n * n if self.transitions else n for n in state_counts(model, "StateSpace"))

    def _needs(self, model: Any, packed: Packed) -> set[str]:
        single, pair = ("gamma", "xi") if self.apply == "time" else ("visits", "steps")
        return {single, pair} if self.transitions else {single}

    def _features(self, model: Any, states: States) -> Floats:
        if self.apply == "time":
            parts = [self._sum(states.gamma, states.packed.offsets, self.normalize, states.whole)]
            if self.transitions:
                parts.append(self._sum(states.xi, states.pair_offsets, self.normalize, states.whole))
            return np.concatenate(parts, axis=1)
        parts = [self._finish(states.visits, states.packed.lengths, self.normalize, states.whole)]
        if self.transitions:
            parts.append(self._finish(states.steps, np.diff(states.pair_offsets), self.normalize, states.whole))
        return np.concatenate(parts, axis=1)
