"""The contract of estimators, and the closed-form fit of leaf families."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.fit.channel_moments import units
from genkern.models.fit.em import Limits, Steps, climb
from genkern.models.fit.weights import point_weights, weighted
from genkern.models.leaf import Leaf
from genkern.validation import Floats, begin_fit, check_option, remember_width

WIDE = 1 << 22  # numbers of the parameters that are fitted at a time
ESTIMATES = ("ml", "map", "predictive")


class ModelEstimator(BaseEstimator, ABC):
    """An estimator whose ``fit`` gives a model value ``model_``, and whose ``fit_each`` gives one per object."""

    model_: Any

    @abstractmethod
    def pack(self, X: Any) -> Packed:
        """Encode raw objects as ``fit`` does."""

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit one model to all objects, with their weights."""

    @abstractmethod
    def fit_each(self, X: Any) -> list[Any]:
        """Return one fitted model per object."""

    def check_each(self, packed: Packed) -> None:
        """Raise if a single object cannot be fitted, while its index among all objects is known."""
        return

    @abstractmethod
    def resolve(self, X: Any) -> ModelEstimator:
        """Return an estimator that fits parts of X as it would fit the whole (same alphabet)."""

    @abstractmethod
    def maximize(self, statistics: Statistics) -> Any:
        """Return the model that maximises the expected log-likelihood (plus log prior): the M-step."""

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of an object under ``model_``, which model selection maximises.

        It is -inf if an object is impossible, and refused by models whose likelihood is not exact.

        Parameters
        ----------
        X : list of objects
        y : None
            Ignored.
        """
        check_is_fitted(self, "model_")
        remember_width(self, X, reset=False)
        return float(self.model_.log_prob(X).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags


class LeafEstimator(ModelEstimator):
    """Estimator of a leaf family, alone or as the emissions of a latent model.

    A family implements ``pack``, ``reference``, ``maximize_blocks`` and, if it has a prior, ``log_prior`` and
    ``predictive``; it then has a parameter ``estimate``: maximum likelihood ("ml"), the mode of the posterior ("map"),
    or the posterior predictive distribution ("predictive"), as in Jebara, Kondor & Howard (2004), section 2.2.
    """

    max_passes = 1000  # of EM over missing entries; complete data need none
    tolerance = 1e-10  # of a parameter between passes, relative to its size
    estimate: str = "ml"  # families with a prior make it a parameter
    # Share of a point that the initialisation divides equally among all members, for families in which EM cannot leave
    # hard assignments.
    softening: ClassVar[float] = 0.0

    def pack_sequences(self, X: Any) -> Packed:
        """Encode sequences of points, as an HMM emits them; ``pack`` encodes bags."""
        return self.pack(X)

    @abstractmethod
    def reference(self, packed: Packed, n: int, own: bool) -> Leaf:
        """Return a stack of n (per object, if own) broad members under which first statistics are computed."""

    @abstractmethod
    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Any) -> Any:
        """Return the stack maximising expected log-likelihood and prior, from blocks taken under ``leaf``."""

    def log_prior(self, leaf: Any) -> Floats:
        """Return the log prior density up to a constant, summed over the last batch axis: batch[:-1]."""
        return np.zeros(leaf.shape[:-1])

    @property
    def collapses(self) -> bool:
        """Whether only a floor bounds the density of a member fitted to one point."""
        return False

    def at_floor(self, leaf: Any) -> NDArray[np.bool_]:
        """Return in which directions members are at their floor, batch + (directions,)."""
        return np.zeros((*leaf.shape, 1), bool)

    def raised(self, leaf: Any) -> Any:
        """Return members, of one batch axis or with one before it for the objects, with spreads raised to the floor."""
        return leaf

    def check_kept(self, leaf: Any) -> None:
        """Raise for members that are to stay as they are, and are not of the form that is asked for."""
        return

    def counts(self, blocks: dict[str, Floats], leaf: Any) -> Floats:
        """Return the effective number of observations of each member, from blocks taken under ``leaf``.

        Only families that collapse are asked; of others, none rests on a few.
        """
        return np.full(leaf.shape, np.inf)

    def coincide(self, blocks: dict[str, Floats], leaf: Any) -> NDArray[np.bool_]:
        """Return which members rest on points that nearly coincide, from blocks taken under ``leaf``."""
        return np.zeros(leaf.shape, bool)

    def predictive(self, packed: Packed, own: bool) -> Leaf:
        """Return posterior predictive distributions, a stack of batch (1,) or, if own, (n_objects, 1)."""
        raise TypeError(f"{type(self).__name__} has no posterior predictive distribution.")

    def inside_em(self, packed: Packed) -> LeafEstimator:
        """Return the estimator for the M-step of a latent model, refusing estimates that are no M-step."""
        self._check_mode()
        return self

    def bounded(self, packed: Packed, own: bool) -> Self:
        """Return the estimator with bounds computed from the data of all objects, or of each if own.

        EM over hidden states or components uses it, and ``part`` of it once some objects have left the batch.
        """
        return self

    def shaped(self, leaf: Any) -> Self:
        """Return the estimator of members of the form that a leaf has, such as isotropic covariances."""
        return self

    def part(self, members: NDArray[Any]) -> Self:
        """Return the estimator for some of the objects of a batch."""
        return self

    def standardized(self, packed: Packed, own: bool) -> Packed:
        """Return the points in the units in which the initialisation computes distances.

        Channels that may be in different units (``has_units``) are divided by their deviation over all objects, or over
        each if own; others are not scaled.
        """
        if not self.has_units:
            return packed
        unit = units(packed, own)
        return packed._replace(values=packed.values / (np.repeat(unit, packed.lengths, axis=0) if own else unit))

    @property
    def has_units(self) -> bool:
        """Whether channels are measurements, each in a unit of its own: not counts, shares or angles."""
        return False

    def _with(self, **changes: Any) -> Self:
        """Return a copy with some attributes changed."""
        other = copy.copy(self)
        other.__dict__.update(changes)
        return other

    def _check_estimate(self) -> None:
        check_option(self.estimate, ESTIMATES, "estimate", type(self).__name__)

    def _check_mode(self) -> None:
        """Raise for predictive distributions, which are no maximum of the likelihood."""
        if self.estimate == "predictive":
            raise ValueError(
                f"{type(self).__name__}: estimate='predictive' averages over the posterior and maximises nothing, so "
                "it cannot be the M-step of EM (hidden states, components of a mixture). Use estimate='map'."
            )

    def _moved(self, old: Any, new: Any, name: str) -> NDArray[np.bool_]:
        """Return the members of which a field changed by more than a share of its unit."""
        step = np.abs(getattr(new, name) - getattr(old, name))
        moved: NDArray[np.bool_] = (step >= self.tolerance * self.unit(new, name)).reshape(len(old), -1).any(axis=1)
        return moved

    def unit(self, leaf: Any, name: str) -> Floats:
        """Return the scale of changes of every number of a field: its largest absolute value, or one."""
        sizes = np.abs(getattr(leaf, name))
        axes = tuple(range(1, sizes.ndim))
        return np.broadcast_to(np.maximum(sizes.max(axis=axes, keepdims=True), 1.0), sizes.shape)

    def fit_weighted(self, packed: Packed, weights: Floats, own: bool) -> Leaf:
        """Return the stack fitted to weighted points (N, n), for each object or for all together."""
        leaf = self.reference(packed, weights.shape[1], own)
        return self.maximize_blocks(leaf.weigh(packed, weights, totals=not own), leaf)

    def guess(self, packed: Packed, weights: Floats, own: bool) -> Leaf:
        """Return the stack from which EM of a latent model starts, given an assignment (N, n) of points to members."""
        share = self.softening / weights.shape[1] * weights.sum(axis=1, keepdims=True)
        return self.fit_weighted(packed, (1.0 - self.softening) * weights + share, own)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit one model to the points of all bags.

        Parameters
        ----------
        X : list of bags of points, or 2-D array of single points
        y : None
            Ignored.
        sample_weight : array of shape (n_objects,), optional
            Weight of each object: two is the same as giving it twice, zero as leaving it out.

        Returns
        -------
        self
        """
        begin_fit(self, X, y)
        self.model_ = self._fit_packed(weighted(self.pack, X, sample_weight, type(self).__name__), own=False)[0]
        return self

    def fit_each(self, X: Any) -> list[Any]:
        """Return one model per bag."""
        members: list[Any] = self._fit_own(self.pack(X)).unstack()
        return members

    def _fit_own(self, packed: Packed) -> Any:
        """Return a stack of batch (n_objects,); long rows are fitted in batches of objects."""
        width = packed.values.shape[-1] if packed.alphabet is None else packed.alphabet.size
        step = max(1, WIDE // width)
        if packed.n_objects <= step:
            return self._fit_packed(packed, own=True)[:, 0]
        whole: dict[str, Any] = {}
        for low in range(0, packed.n_objects, step):
            some = slice(low, min(low + step, packed.n_objects))
            part = _counted_from_zero(self, packed, some)
            for name in part._fields:
                value = getattr(part, name)
                if name not in _arrays(part):
                    whole[name] = value
                    continue
                if name not in whole:
                    whole[name] = np.empty((packed.n_objects, *value.shape[1:]))
                whole[name][some] = value
        return type(part)._restore(*(whole[name] for name in part._fields))

    def maximize(self, statistics: Statistics) -> Any:
        """Return the model from the statistics of bags under another, summed over their leading axis.

        Floors relative to the data are those of the statistics; ``bounded`` gives an estimator with those of ``fit``.
        """
        self._check_mode()
        one = statistics.model.stack([statistics.model])
        return self.maximize_blocks(statistics.total().of_member(), one)[0]

    def _fit_packed(self, packed: Packed, own: bool) -> Any:
        """Return a stack of batch (1,) or (n_objects, 1); missing entries take EM passes."""
        if self.estimate == "predictive":
            return self.predictive(packed, own)
        leaf = self.fit_weighted(packed, point_weights(packed), own)
        missing = missing_points(packed)
        return self._iterate(packed, leaf, missing, own) if missing.any() else leaf

    def _iterate(self, packed: Packed, leaf: Any, missing: NDArray[np.bool_], own: bool) -> Any:
        """Return the stack after EM over missing entries of the members that have any.

        It goes on until parameters stay where they are, and needs no objective.
        """
        which = np.flatnonzero(np.logical_or.reduceat(missing, packed.offsets[:-1])) if own else np.arange(1)
        batch, names = Batch(self.part(which) if own else self), _arrays(leaf)

        def expect(model: Any, part: Packed) -> Statistics:
            blocks = model.weigh(part, point_weights(part), totals=not own)
            return Statistics(model, np.zeros(part.n_objects), part.lengths, blocks)

        steps = Steps(
            expect,
            lambda statistics: batch.estimator.maximize_blocks(statistics.blocks, statistics.model),
            lambda model, part: np.zeros(part.n_objects),
            lambda model: np.zeros(()),
            batch.drop if own else None,
            settled=lambda old, new: ~np.logical_or.reduce([self._moved(old, new, name) for name in names]),
        )
        limits = Limits(type(self).__name__, self.max_passes, tol=0.0, verbose=0)
        run = climb(steps, limits, leaf[which], packed.take(which) if own else packed, own)
        if not run.converged.all():
            warnings.warn(
                f"{limits.who}: {(~run.converged).sum()} of {len(leaf)} fits to data with missing entries did not "
                f"converge in {self.max_passes} passes. Leave out columns that are hardly ever observed, or use a "
                "stronger prior.",
                ConvergenceWarning,
                stacklevel=4,
            )
        fields = {name: np.array(getattr(leaf, name)) for name in names}
        for name, field in fields.items():
            field[which] = [getattr(model, name) for model in run.models] if own else getattr(run.models[0], name)
        return leaf._restore(*(fields.get(name, getattr(leaf, name)) for name in leaf._fields))


def bounds_of(estimator: Any) -> Callable[[Packed, bool], Any]:
    """Return ``estimator.bounded``, cached, as both the initialisation and the steps of EM call it."""
    last: list[Any] = []

    def bounded(packed: Packed, own: bool) -> Any:
        if not last or last[0] is not packed or last[1] != own:
            last[:] = packed, own, estimator.bounded(packed, own)
        return last[2]

    return bounded


class Batch:
    """An estimator of own models that leave its batch as they converge."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def drop(self, leaving: NDArray[np.bool_]) -> None:
        """Keep the data of the models that stay."""
        self.estimator = self.estimator.part(~leaving)


def with_alphabet_of(estimator: Any, X: Any) -> Any:
    """Return an estimator that has an alphabet as it is, another with the alphabet of all of X."""
    if estimator.alphabet is not None:
        return estimator
    alphabet = estimator.pack(X).alphabet
    return clone(estimator).set_params(alphabet=alphabet, missing=None, unknown=alphabet.unknown)


def missing_points(packed: Packed) -> NDArray[np.bool_]:
    """Return which points (N,) are missing or ambiguous, in part or as a whole; sparse counts never are."""
    if not isinstance(packed.values, np.ndarray):
        return np.zeros(packed.n_points, bool)
    values = packed.values.reshape(packed.n_points, -1)
    entries = np.isnan(values) if packed.alphabet is None else values >= packed.alphabet.size
    return np.asarray(entries.any(axis=1))


def _arrays(leaf: Leaf) -> list[str]:
    return [name for name in leaf._fields if isinstance(getattr(leaf, name), np.ndarray)]


def one_hot(labels: NDArray[np.int64], n: int) -> Floats:
    """Return indicator weights (N, n) of labels."""
    weights = np.zeros((len(labels), n))
    weights[np.arange(len(labels)), labels] = 1.0
    return weights


def _counted_from_zero(estimator: LeafEstimator, packed: Packed, some: slice) -> Any:
    """Return the stack fitted to each of some objects; errors use the caller's object indices."""
    try:
        return estimator._fit_packed(packed.take(some), own=True)[:, 0]
    except ValueError:
        estimator._fit_packed(packed.take(slice(0, some.stop)), own=True)
        raise
