"""The label as a latent variable: the marginal distribution of objects over the models of their classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from genkern.data.objects import Packed
from genkern.models import simplex
from genkern.models.base import Model, Statistics, adapt_hint, joined
from genkern.models.information import InformationBlocks
from genkern.validation import Floats, check_int, check_probabilities


class ClassMixture(Model):
    r"""The marginal over class models, :math:`p(x) = \sum_c \alpha_c\, p(x | \theta_c)`.

    An object as a whole comes from one class (in a ``Mixture``, each of its points comes from one component), and the
    class models may be of any kind.

    Parameters
    ----------
    models : dict of label to model
        All must model the same objects: the same alphabet or number of channels.
    priors : array-like of shape (n_classes,), optional
        Class probabilities :math:`\alpha_c`, in the order of ``models``. The default is equal ones.

    Attributes
    ----------
    labels : tuple
    models : tuple of models
    priors : ndarray of shape (n_classes,)

    Notes
    -----
    Parameters are ordered priors, then those of each class. With the posterior :math:`r_c = P(c | x)` the derivatives
    are :math:`r_c \nabla \log p(x | \theta_c)` and, for the priors, :math:`r_c / \alpha_c` (raw), :math:`r_c -
    \alpha_c` (softmax): affine in the posterior, so that a linear function of the Fisher score can be any function that
    is affine in it. This is the argument of Jaakkola & Haussler that a Fisher kernel is asymptotically never inferior
    to the plug-in decision.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers, Theorem 1.
    Tsuda et al. (2002), A new discriminative kernel from probabilistic models, section 3.

    Examples
    --------
    >>> from genkern import Categorical, ClassMixture
    >>> both = ClassMixture({"A": Categorical([0.9, 0.1], "ab"), "B": Categorical([0.5, 0.5], "ab")}, [0.5, 0.5])
    >>> both.posterior(["aa", "b"]).round(4)
    array([[0.7642, 0.2358],
           [0.1667, 0.8333]])
    """

    _fields = ("labels", "models", "priors")
    labels: tuple[Any, ...]
    models: tuple[Any, ...]
    priors: Floats

    def __init__(self, models: Mapping[Any, Any], priors: ArrayLike | None = None):
        if not isinstance(models, Mapping) or not models:
            raise TypeError("ClassMixture: 'models' must be a dict with one model per label.")
        for label, model in models.items():
            if not isinstance(model, Model) or model.shape:
                told = f"{model!r:.80}.{adapt_hint(model)}"
                raise TypeError(f"ClassMixture: the entry of label {label!r} must be one model. Got {told}")
        count = len(models)
        shares = np.full(count, 1.0 / count) if priors is None else priors
        alphas = check_probabilities(shares, "priors", "ClassMixture", shape=(count,))
        if (alphas == 0).any():
            label = list(models)[int(np.argmin(alphas))]
            raise ValueError(f"ClassMixture: the prior of class {label!r} is zero. Leave that class out.")
        self._freeze(labels=tuple(models), models=tuple(models.values()), priors=alphas)

    @property
    def class_models(self) -> dict[Any, Model]:
        """The models, by label."""
        return dict(zip(self.labels, self.models))

    @classmethod
    def _checked(cls, *fields: Any) -> Self:
        labels, models, priors = fields
        return cls(dict(zip(labels, models, strict=True)), priors)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch: always one model."""
        return ()

    @property
    def opaque(self) -> bool:
        """Whether the model of a class is known by calls alone."""
        return any(model.opaque for model in self.models)

    def pack(self, X: Any) -> Packed:
        """Encode raw objects as the first class model does."""
        packed: Packed = self.models[0].pack(X)
        return packed

    # --- likelihood and posterior

    def joint_log_prob(self, X: Any) -> Floats:
        r"""Return :math:`\log \alpha_c + \log p(x | \theta_c)`, shape (n_objects, n_classes).

        Parameters
        ----------
        X : list of objects
        """
        packed = self.pack(X)
        logs: Floats = np.stack([model.log_prob(packed) for model in self.models], axis=1)
        return logs + np.log(self.priors)

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each object, shape (n_objects,).

        Parameters
        ----------
        X : list of objects
        """
        with np.errstate(divide="ignore"):
            sums: Floats = logsumexp(self.joint_log_prob(X), axis=1)
        return sums

    def posterior(self, X: Any) -> Floats:
        """Return the probability of each label given the object, shape (n_objects, n_classes).

        Parameters
        ----------
        X : list of objects
        """
        joint = self.joint_log_prob(X)
        refuse_impossible(joint, self.labels, "ClassMixture")
        shares: Floats = softmax(joint, axis=1)
        return shares

    # --- E-step, gradient, information

    def statistics(self, X: Any) -> Statistics:
        """Return posterior expected statistics per object.

        Blocks: the raw derivative ``priors`` (G, n_classes), and those of class c, times the probability of the class,
        under ``models[c].<name>``; a class under which all objects are impossible has none.

        Parameters
        ----------
        X : list of objects
        """
        packed = self.pack(X)
        joint = self.joint_log_prob(packed)
        refuse_impossible(joint, self.labels, "ClassMixture")
        posterior = softmax(joint, axis=1)
        blocks = {"priors": posterior / self.priors}
        for c, (model, alive) in enumerate(zip(self.models, np.isfinite(joint).T)):
            if not alive.any():
                continue
            own = model.statistics(packed if alive.all() else packed.take(alive))
            for name, block in own.blocks.items():
                whole = np.zeros((packed.n_objects, *block.shape[1:]))
                whole[alive] = _times(posterior[alive, c], block)
                blocks[f"models[{c}].{name}"] = whole
        return Statistics(self, logsumexp(joint, axis=1), packed.lengths, blocks)

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from statistics."""
        parts = [simplex.gradient(statistics["priors"], self.priors, coordinates)]
        for c, model in enumerate(self.models):
            prefix = f"models[{c}]."
            own = {name[len(prefix) :]: b for name, b in statistics.blocks.items() if name.startswith(prefix)}
            if own:
                found = Statistics(model, statistics.log_prob, statistics.lengths, own)
                parts.append(model.gradient(found, coordinates))
            else:
                parts.append(np.zeros((len(parts[0]), len(model.parameters(coordinates)))))
        return np.concatenate(parts, axis=1)

    def log_prob_grad(self, X: Any, coordinates: str = "softmax", n_jobs: int | None = None) -> Floats:
        r"""Return :math:`\nabla \log p(x)` of each object, shape (n_objects, p).

        Parameters
        ----------
        X : list of objects
        coordinates : {"softmax", "ratio", "sqrt", "raw"}
            Of probabilities, the priors among them.
        n_jobs : None
            Class models run one after the other, each on one thread.
        """
        packed = self.pack(X)
        if coordinates in ("raw", "ratio"):
            joint = self.joint_log_prob(packed)
            refuse_impossible(joint, self.labels, "ClassMixture")
            if np.isneginf(joint).any():
                i, c = np.argwhere(np.isneginf(joint))[0].tolist()
                raise ValueError(
                    f"ClassMixture: object {i} has probability zero in class {self.labels[c]!r}, whose {coordinates} "
                    "derivative is not known then. Use coordinates='softmax', in which it is zero, or a pseudocount."
                )
        return super().log_prob_grad(packed, coordinates, n_jobs)

    def class_grads(self, packed: Packed, alive: NDArray[np.bool_], coordinates: str) -> list[Floats]:
        """Return the derivatives (n_objects, p_c) of each class model; zero rows where it is not ``alive``."""
        grads = []
        for model, rows in zip(self.models, alive.T):
            if rows.all():
                grads.append(model.log_prob_grad(packed, coordinates))
                continue
            grad = np.zeros((packed.n_objects, len(model.parameters(coordinates))))
            if rows.any():
                grad[rows] = model.log_prob_grad(packed.take(rows), coordinates)
            grads.append(grad)
        return grads

    def follow(self, packed: Packed) -> tuple[Floats, list[Statistics | None]]:
        """Return one object position by position under each class.

        Parameters
        ----------
        packed : Packed
            One object.

        Returns
        -------
        path : ndarray of shape (T + 1, n_classes)
            Joint log-probabilities of the class and the first 0, 1, ..., T observations.
        parts : list of Statistics
            Of the positions, for each class; None where the object is impossible.
        """
        alive = np.isfinite(self.joint_log_prob(packed)[0])
        parts = [joined(model.position_statistics(packed)) if here else None for model, here in zip(self.models, alive)]
        refuse_impossible(np.where(alive, 0.0, -np.inf)[None], self.labels, "ClassMixture")
        length = len(next(part.log_prob for part in parts if part is not None))
        path = np.full((length + 1, len(alive)), -np.inf)
        for c, part in enumerate(parts):
            if part is not None:
                path[:, c] = np.log(self.priors[c]) + np.cumsum(np.insert(part.log_prob, 0, 0.0))
        return path, parts

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        """Yield the statistics of the positions of one object, with the change of the label posterior by each."""
        path, parts = self.follow(packed)
        posterior = softmax(path, axis=1)
        blocks = {"priors": np.diff(posterior, axis=0) / self.priors}
        for c, part in enumerate(parts):
            if part is not None:
                blocks |= {f"models[{c}].{name}": posterior[-1, c] * block for name, block in part.blocks.items()}
        logs = np.diff(logsumexp(path, axis=1))
        yield Statistics(self, logs, np.ones(len(logs), np.int64), blocks)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        """Return the complete-data Fisher information: as if the label and all hidden states were observed.

        Parameters
        ----------
        lengths : array-like of int
        coordinates : {"softmax", "ratio", "sqrt"}

        Returns
        -------
        blocks : list of (index, block)
        """
        shift = len(self.priors)
        pairs: InformationBlocks = [(np.arange(shift), simplex.row_information(self.priors, 1.0, coordinates))]
        for model, prior in zip(self.models, self.priors):
            blocks = model.information(lengths, coordinates)
            pairs += [(index + shift, prior * block) for index, block in blocks]
            shift += len(model.parameter_names)
        return pairs

    def sample(self, n: int, *, length: int | None = None, rng: Any = None) -> list[Any]:
        """Return n objects, each from a class drawn by the priors.

        Parameters
        ----------
        n : int
        length : int, optional
            Passed on to the class models.
        rng : int or Generator, optional
        """
        generator = np.random.default_rng(rng)
        which = generator.choice(len(self.priors), check_int(n, "n", "ClassMixture.sample"), p=self.priors)
        options = {} if length is None else {"length": length}
        drawn = [iter(m.sample(int((which == c).sum()), rng=generator, **options)) for c, m in enumerate(self.models)]
        return [next(drawn[c]) for c in which]

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,): priors, then those of each class."""
        parts = [simplex.coordinates_of(self.priors, coordinates)]
        return np.concatenate(parts + [model.parameters(coordinates) for model in self.models])

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""
        sizes = [len(self.priors), *(len(model.parameter_names) for model in self.models)]
        priors, *rest = np.split(np.asarray(vector, np.float64), np.cumsum(sizes)[:-1])
        models = [model.with_parameters(part, coordinates) for model, part in zip(self.models, rest)]
        return self._restore(self.labels, tuple(models), simplex.from_coordinates(priors, coordinates))

    @property
    def blocks(self) -> list[str]:
        """The block of each parameter; those of class models as in these."""
        return ["priors"] * len(self.priors) + [block for model in self.models for block in model.blocks]

    @property
    def hidden_states(self) -> list[str]:
        """The labels."""
        return list(map(str, self.labels))

    def visits(self, statistics: Statistics) -> Floats:
        """Return the posterior of the labels, (G, n_classes)."""
        return self.priors * statistics["priors"]

    @property
    def parameter_names(self) -> list[str]:
        """Names ``prior[label]``, then ``label.name`` for each parameter of each class."""
        names = [f"prior[{label}]" for label in self.labels]
        for label, model in zip(self.labels, self.models):
            names += [f"{label}.{name}" for name in model.parameter_names]
        return names


def _times(weights: Floats, block: Floats) -> Floats:
    """Return the rows of a block, each times a weight."""
    return weights.reshape((-1,) + (1,) * (block.ndim - 1)) * block


def refuse_impossible(joint: Floats, labels: tuple[Any, ...], who: str) -> None:
    """Raise for objects that no class can have produced."""
    dead = np.flatnonzero(np.isneginf(joint).all(axis=1))
    if len(dead):
        raise ValueError(
            f"{who}: object {dead[0]} has probability zero in every class, {', '.join(map(repr, labels))} "
            f"({len(dead)} such in all), so it has no posterior. Give the estimator a pseudocount > 0."
        )
