"""The contract of models: the methods that estimators, embeddings, kernels and explanations call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Packed
from genkern.models.characteristic import EmittingChain
from genkern.models.information import InformationBlocks, n_free
from genkern.models.positions import changes
from genkern.models.states import count_symbols, flat_rows, pair_offsets, sum_pieces
from genkern.models.value import Value
from genkern.validation import Floats, check_option

COORDINATES = ("softmax", "ratio", "sqrt", "raw")
COMMON = {"starts": "start", "mean": "means", "variance": "variances", "cov": "variances"}  # one name in all models


class NotExactError(ValueError):
    """An exact sum over hidden variables that would cost too much; the model can estimate it."""


class Model(Value, ABC):
    """A probability distribution of objects, or a stack of them: a frozen value with the methods below.

    Estimators, embeddings, kernels and explanations call these methods and never test for a class. A new structure is a
    subclass that implements the abstract ones, and overrides defaults where it can do more. It describes its hidden
    variables, if any, by ``hidden_states`` and ``visits`` (for Fisher scores), and by ``state_sizes``,
    ``state_posteriors`` and ``state_emissions`` (for features of states).

    Attributes
    ----------
    has_steps : bool
        Whether hidden states of neighbouring positions have a joint posterior, ``pair_posteriors``.
    """

    has_steps: ClassVar[bool] = False

    # --- required of every model

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The batch: ``()`` for one model, ``(n,)`` for a stack of n."""

    @abstractmethod
    def pack(self, X: Any) -> Packed:
        """Encode raw objects for this model; packed ones are returned as they are."""

    @abstractmethod
    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each object, shape (n_objects,) + batch; -inf where it is impossible."""

    @abstractmethod
    def statistics(self, X: Any) -> Statistics:
        """Return the posterior expected statistics of each object: the E-step."""

    @abstractmethod
    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return the derivatives (G, p) of the log-likelihood, a linear function of the statistics of one model."""

    @abstractmethod
    def information(self, lengths: Any, coordinates: str = "softmax") -> InformationBlocks:
        """Return the complete-data Fisher information, averaged over lengths, as pairs (index, block)."""

    @abstractmethod
    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,) in the named coordinates."""

    @abstractmethod
    def with_parameters(self, vector: Any, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""

    @property
    @abstractmethod
    def parameter_names(self) -> list[str]:
        """Names of the entries of the parameter vector."""

    @abstractmethod
    def sample(self, n: int, *, length: Any = None, rng: Any = None) -> list[Any]:
        """Return n objects, of ``length`` observations or draws."""

    # --- derived from these

    def _facts(self) -> list[str]:
        parts = [part for name in self._fields if isinstance(part := getattr(self, name), Value)]
        sizes = [f"{' x '.join(map(str, self.state_sizes))} {'states' if self.has_steps else 'components'}"]
        fact = " ".join(sizes * bool(self.state_sizes) + [f"over {part._kind()}" for part in parts[:1]])
        return [fact] if fact else []

    def log_prob_grad(self, X: Any, coordinates: str = "softmax", n_jobs: int | None = None) -> Floats:
        r"""Return :math:`\nabla_\theta \log p(x)` of each object, shape (n_objects, p).

        Parameters
        ----------
        X : list of objects
        coordinates : {"softmax", "ratio", "sqrt", "raw"}
            Of probabilities and variances; see ``genkern.models.simplex``. "ratio" is that of Tsuda et al. (2002),
            eq. A.6.
        n_jobs : int, optional
            Threads, for models whose ``statistics`` take them.
        """
        self._require_single("log_prob_grad")
        check_option(coordinates, COORDINATES, "coordinates", f"{type(self).__name__}.log_prob_grad")
        options = {} if n_jobs is None else {"n_jobs": n_jobs}
        return self.gradient(self.statistics(X, **options), coordinates)

    @property
    def blocks(self) -> list[str]:
        """The block of each parameter, such as "transitions"; by default its name without the index."""
        names = [name.split("[", 1)[0] for name in self.parameter_names]
        return [COMMON.get(name, name) for name in names]

    @property
    def n_free_parameters(self) -> int:
        """Number of parameters that can be chosen freely.

        A row of probabilities has one less than its non-zero entries, so that forbidden entries and those estimated as
        zero do not count. Covariances have the number of their form, and count once if those of all states or
        components are equal to the last bit, as tied ones are. It is the dimension of the family of distributions, or a
        bound on it where parameters can move without changing the distribution: the basis of the hidden state of a
        linear system, the level shared out among factorial chains, tables of hidden nodes.
        """
        self._require_single("n_free_parameters")
        return sum(n_free(block) for _, block in self.information([1])) - self.n_tied

    @property
    def n_tied(self) -> int:
        """Number of parameters that repeat others: a covariance shared by all members of a stack."""
        return 0

    def aic(self, X: Any) -> float:
        r"""Return Akaike's criterion of the objects, :math:`2k - 2 \sum_i \log p(x_i)`; lower is better.

        Parameters
        ----------
        X : list of objects
            Those that the model was fitted to.
        """
        return 2.0 * self.n_free_parameters - 2.0 * float(self.log_prob(X).sum())

    def bic(self, X: Any) -> float:
        r"""Return the Bayesian information criterion, :math:`k \log N - 2 \sum_i \log p(x_i)`; lower is better.

        N is the number of positions of all sequences, or of points of all bags.

        Parameters
        ----------
        X : list of objects
            Those that the model was fitted to.

        References
        ----------
        Schwarz (1978), Estimating the dimension of a model.
        """
        packed = self.pack(X)
        return self.n_free_parameters * float(np.log(packed.n_points)) - 2.0 * float(self.log_prob(packed).sum())

    @property
    def draw_size(self) -> int:
        """Number of observations in one draw: one symbol or point, or the observed nodes of a network."""
        return 1

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        r"""Yield the statistics of the positions of one object, in order, some positions at a time.

        Each has one group per position, as if positions were objects, with ``log_prob``
        :math:`\log p(x_t | x_0 \dots x_{t-1})`. They sum to ``statistics`` of the object, except for terms that belong
        to no position. The default is the change of the statistics by each further observation, at a cost that is
        quadratic in the length; models whose complete-data log-likelihood is a sum over positions return the terms of

        .. math:: \nabla \log p(x) = \sum_t E[\nabla \log p(x_t, q_t | x_0 \dots x_{t-1}, q_{t-1}) \,|\, x]

        (Fisher's identity).

        Parameters
        ----------
        packed : Packed
            One object, encoded for the model and possible under it.
        """

        def work(beginnings: Packed) -> dict[str, Floats]:
            found = self.statistics(beginnings)
            return {"log_prob": found.log_prob, **found.blocks}

        for found in changes(work, packed, len(self.parameter_names)):
            log_prob = found.pop("log_prob")
            yield Statistics(self, log_prob, np.ones(len(log_prob), np.int64), found)

    def position_gradients(self, packed: Packed, coordinates: str = "softmax") -> Iterator[tuple[int, Floats]]:
        """Yield the derivatives of the positions of one object, (n, k) for n positions and k adjacent parameters.

        They are those of ``position_statistics``, each with the index of the first of its parameters; derivatives by
        all others are zero. Models in which positions have parameters of their own omit these zeros.

        Parameters
        ----------
        packed : Packed
            One object, encoded for the model and possible under it.
        coordinates : {"softmax", "ratio", "sqrt", "raw"}
        """
        for found in self.position_statistics(packed):
            yield 0, self.gradient(found, coordinates)

    def position_log_probs(self, packed: Packed) -> Floats:
        r"""Return :math:`\log p(x_t | x_0 \dots x_{t-1})` of the positions of one object, (T,).

        Parameters
        ----------
        packed : Packed
            One object, encoded for the model and possible under it.
        """
        return np.concatenate([found.log_prob for found in self.position_statistics(packed)])

    @property
    def opaque(self) -> bool:
        """Whether it is known by calls alone: its information has no closed form, its objects have no positions."""
        return False

    # --- hidden variables: none by default

    @property
    def hidden_states(self) -> list[str]:
        """Names of the hidden states whose ``visits`` are known."""
        return []

    def visits(self, statistics: Statistics) -> Floats:
        """Return how often each of the ``hidden_states`` is expected to be visited, (G, S), from statistics."""
        return np.zeros((len(next(iter(statistics.blocks.values()))), 0))

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """Number of discrete states of each hidden chain; empty without such chains."""
        return ()

    @property
    def state_emissions(self) -> Any:
        """The emission distributions: a leaf stack with one member for each hidden state; None in other cases."""
        return None

    def state_posteriors(self, packed: Packed) -> Floats:
        """Return the posteriors (N, S) of the states of all positions, chains concatenated.

        The default is for models of one chain whose ``posterior(X)`` is a list of arrays (T, S), one for each object.
        """
        return np.concatenate(cast(Any, self).posterior(packed))

    def pair_posteriors(self, packed: Packed) -> Floats:
        """Return the posteriors (N - n_objects, S2) of states at neighbouring positions, flattened, chain by chain.

        The default is for models whose ``posterior(X, pairs=True)`` returns pairs of such arrays and arrays
        (T - 1, S, S).
        """
        return flat_rows(np.concatenate([xi for _, xi in cast(Any, self).posterior(packed, pairs=True)]))

    def expected_states(self, packed: Packed, steps: bool) -> tuple[Floats, Floats | None]:
        """Return expected visits (n, S) and, with ``steps``, transitions (n, S2) of each object: sums over time."""
        found = sum_pieces(self.state_posteriors(packed), packed.offsets)
        return found, sum_pieces(self.pair_posteriors(packed), pair_offsets(packed)) if steps else None

    def expected_symbols(self, packed: Packed) -> Floats:
        """Return how often each state is expected to have emitted each symbol, (n_objects, S, m)."""
        return count_symbols(packed, self.state_posteriors(packed), self.state_emissions, type(self).__name__)

    @property
    def class_models(self) -> dict[Any, Model]:
        """Models of classes, by label, if this is their marginal, which has their ``priors`` too; none otherwise."""
        return {}

    def as_categorical(self) -> Model | None:
        """Return the law of a single draw of a symbol, or a stack; None if draws are no symbols."""
        return None

    def as_chain(self) -> EmittingChain | None:
        """Return a stack of batch (a,) as hidden chains that emit independent points; None if it has another form."""
        return None

    # --- checks

    def _require_single(self, what: str) -> None:
        if self.shape:
            raise ValueError(f"{type(self).__name__}.{what} needs one model. Got a stack of {self.shape}: index it.")


def adapt_hint(thing: Any) -> str:
    """Return what to do with an object that is no model but like one: it has a likelihood, or draws; else nothing."""
    alike = any(callable(getattr(thing, name, None)) for name in ("log_prob", "score_samples", "log_probability"))
    return " genkern.adapt(model) makes a model of an object with log_prob and sample." if alike else ""


def draws_in(model: Any, length: int, who: str) -> int:
    """Return how many draws of a model have so many observations.

    Parameters
    ----------
    model : Model or other object
        Models of other packages have one observation in a draw, or are sequences.
    length : int
        Number of observations.
    who : str
        Name of the caller, for error messages.
    """
    size = getattr(model, "draw_size", 1)
    if length % size:
        raise ValueError(
            f"{who}: a draw of a {type(model).__name__} with {size} observed nodes holds {size} observations, and "
            f"'length' counts observations. Got length={length}; give a multiple of {size}, or none, for one draw."
        )
    return length // size


class Statistics:
    """Posterior expected statistics of objects under a model: the output of the E-step.

    Attributes
    ----------
    model : Model
        The model under which they were taken.
    log_prob : ndarray of shape (n_objects,)
        Log-likelihood of each object.
    lengths : ndarray of shape (n_objects,)
        Number of observations of each object.
    blocks : dict of str to ndarray
        Named blocks. The leading axis runs over objects, or has length one after ``total``. Simplex blocks hold the
        raw, division-free derivative g of the log-likelihood (expected counts are parameter times g); location blocks
        are centred at the model's own parameters. See each model's ``statistics``.
    """

    def __init__(self, model: Any, log_prob: Floats, lengths: NDArray[np.int64], blocks: dict[str, Floats]):
        self.model, self.log_prob, self.lengths, self.blocks = model, log_prob, lengths, blocks

    def __getitem__(self, name: str) -> Floats:
        if name not in self.blocks:
            raise KeyError(f"Statistics has no block {name!r}; it has {', '.join(map(repr, self.blocks))}.")
        return self.blocks[name]

    def __len__(self) -> int:
        return len(self.log_prob)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}={block.shape}" for name, block in self.blocks.items())
        return f"Statistics({len(self)} objects, {shapes})"

    def of_member(self) -> dict[str, Floats]:
        """Return the blocks of one leaf as those of a stack of one member, with an axis for it."""
        return {name: block[:, None] for name, block in self.blocks.items()}

    def weighted(self, weights: Floats | None) -> Statistics:
        """Return the statistics times the weights (n_objects,) of the objects; None: all weights are one."""
        if weights is None:
            return self
        blocks = {name: block * weights.reshape(-1, *(1,) * (block.ndim - 1)) for name, block in self.blocks.items()}
        return Statistics(self.model, self.log_prob * weights, self.lengths, blocks)

    def total(self) -> Statistics:
        """Return the sum over objects, with a leading axis of length one."""
        summed = {name: block.sum(axis=0, keepdims=True) for name, block in self.blocks.items()}
        return Statistics(self.model, self.log_prob, self.lengths, summed)


def joined(parts: Iterable[Statistics]) -> Statistics:
    """Return the statistics of consecutive batches of objects as those of all."""
    first, *others = parts
    if not others:
        return first
    every = [first, *others]
    blocks = {name: np.concatenate([part[name] for part in every]) for name in first.blocks}
    log_prob, lengths = (np.concatenate([getattr(part, name) for part in every]) for name in ("log_prob", "lengths"))
    return Statistics(first.model, log_prob, lengths, blocks)
