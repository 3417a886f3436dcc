"""Models that are represented by draws: Monte Carlo for kernels that have no formula."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from genkern.data.code import code_of
from genkern.data.digests import make_key, state_key
from genkern.models.base import draws_in
from genkern.models.value import Value
from genkern.validation import Floats, check_int

KEPT = 512  # lists of draws that are cached


class Sampled(Value):
    """A model known by draws from it, for comparison by Monte Carlo.

    ``affinity`` and the kernels between models compare two such values by their draws and, for products of powers,
    their likelihoods, whatever the models are: those of this package, or any object with ``log_prob(X)``, which
    returns (n,), and ``sample(n, rng=)``, which returns a list of n objects, and takes ``length=`` if they are
    sequences.

    Parameters
    ----------
    model : Model or other object
        The model to sample from. The content of an object of another package is identified by its ``digest``, a string,
        if it has one, else by the code of its class and by its attributes, which must then be numbers, strings, arrays,
        models, and lists, dicts or plain objects of these.
    n : int, default=1000
        Number of draws.
    seed : int, default=0
        Seed; draws depend on it and on the model's content, not on the caller or the order of calls.

    Notes
    -----
    The error of a kernel value falls with the square root of n; ``affinity.explain`` reports it. Mean map kernels of
    draws are positive semi-definite. Products of powers of single pairs need not be: many models are compared by
    ``ProposalFeatures`` instead.

    Examples
    --------
    >>> from genkern import Expected, Gamma, Sampled, affinity
    >>> p, q = Sampled(Gamma(2.0, 1.0)), Sampled(Gamma(3.0, 1.0))
    >>> affinity(p, q, Expected(1.0)).shape
    ()
    """

    _fields = ("models", "n", "seed")
    models: NDArray[np.object_]
    n: int
    seed: int

    def __init__(self, model: Any, n: int = 1000, seed: int = 0):
        for name in ("log_prob", "sample"):
            if not callable(getattr(model, name, None)):
                raise TypeError(f"Sampled: 'model' must have the method {name}. Got {type(model).__name__}.")
        if isinstance(model, Value) and model.shape:
            raise ValueError(f"Sampled: needs one model. Got a stack of {model.shape}: wrap its members.")
        holder = np.empty((), dtype=object)
        holder[()] = model
        self._freeze(models=holder, n=check_int(n, "n", "Sampled", 2), seed=check_int(seed, "seed", "Sampled"))

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.models.shape

    @property
    def model(self) -> Any:
        """The model behind a single value."""
        return self.models[()]

    def _to_fields(self) -> dict[str, Any]:
        members = {"models": self.models.ravel().tolist(), "shape": self.models.shape}
        return {**members, "n": self.n, "seed": self.seed}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any], trusted: bool = False) -> Self:
        """Build a value from fields of unknown origin."""
        members = [cls(model, fields["n"], fields["seed"]).models for model in fields["models"]]
        stack = np.array([holder[()] for holder in members] + [None], dtype=object)[:-1]
        return cls._restore(stack.reshape(fields["shape"]), int(fields["n"]), int(fields["seed"]))

    @property
    def digest(self) -> str:
        """Hexadecimal digest of class and content."""
        return self._key(True)

    def _key(self, code: bool) -> str:
        inner = [content_key(model, "Sampled", code) for model in self.models.ravel()]
        return make_key(type(self).__name__, inner, list(self.shape), self.n, self.seed)

    def __repr__(self) -> str:
        what = f"stack of {self.shape}" if self.shape else repr(self.model)
        return f"Sampled({what}, n={self.n}, seed={self.seed})"

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each object under the model, shape (n_objects,)."""
        return np.asarray(self.model.log_prob(X), dtype=np.float64)

    def sample(self, n: int, *, length: int | None = None, rng: Any = None) -> list[Any]:
        """Return n new objects from the model."""
        options = {} if length is None else {"length": length}
        return list(self.model.sample(n, rng=rng, **options))

    def draws(self, length: int | None = None) -> list[Any]:
        """Return the n draws that represent the model, sequences of a length if one is given.

        Parameters
        ----------
        length : int, optional
            Number of observations.
        """
        return _draws(self, length)


@lru_cache(maxsize=KEPT)
def _draws(sampled: Sampled, length: int | None) -> list[Any]:
    rng = np.random.default_rng(int(sampled._key(code=False)[:16], 16))  # the same with other versions of Python
    size = None if length is None else draws_in(sampled.model, length, "Sampled")
    return sampled.sample(sampled.n, length=size, rng=rng)


def content_key(model: Any, who: str, code: bool = True) -> str:
    """Return the content digest of a model of this package, or of the attributes and the code of another object."""
    if isinstance(model, Value):
        written = code_of(type(model)) if code else ""
        known = model.digest if code else getattr(model, "origin", model.digest)
        return known if isinstance(written, str) else make_key(known, written)
    try:
        return state_key(model, code)
    except TypeError as error:
        raise TypeError(
            f"{who}: the content of a {type(model).__qualname__} cannot be told from its attributes ({error}). Give "
            "it an attribute 'digest', a string that differs where the distribution does."
        ) from None
