"""A model that is known by calls alone: somebody's class with ``log_prob`` and ``sample``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.describe import Rows
from genkern.data.digests import make_key
from genkern.data.objects import Packed
from genkern.models.adapt.calls import Calls, as_packed, plain
from genkern.models.adapt.gradients import gradients, method_of
from genkern.models.adapt.parameters import Parameters
from genkern.models.base import Model, Statistics
from genkern.models.information import InformationBlocks
from genkern.models.leaf import refuse_impossible
from genkern.models.sampled import content_key
from genkern.validation import Floats, check_bool, check_int


class Own:
    """One of somebody's models, with what has been found out about it."""

    def __init__(self, model: Any, names: tuple[str, ...] | None, vectorized: bool | None):
        self.model, self.names = model, names
        self.calls = Calls(model, vectorized)
        self.parameters = Parameters(model, names)
        self.method = method_of(model, self.parameters)
        self.width: int | None = None  # of its own gradients


class Adapted(Model):
    """Somebody's model, or a stack of models of one class; made by ``genkern.adapt``, which describes it.

    Attributes
    ----------
    models : ndarray of objects, of the shape of the batch
        The models themselves, for formulas of their class; ``values`` returns an attribute of all.
    gradient_by : {"own", "jax", "torch", "differences"} or None
        How derivatives are taken: by the model's method ``log_prob_grad``, by autodiff, or by central differences of
        ``log_prob``; None if it has not declared parameters.
    """

    _fields = ("owns", "kind", "n_draws", "seed")
    owns: Any  # an array of objects, of the shape of the batch
    kind: type
    n_draws: int
    seed: int

    def __init__(self, model: Any, parameters: Any, vectorized: bool | None, n_draws: int, seed: int):
        names = None if parameters is None else tuple(parameters)
        if vectorized is not None:
            check_bool(vectorized, "vectorized", "adapt")
        holder = np.empty((), dtype=object)
        holder[()] = Own(model, names, vectorized)
        number, seed = check_int(n_draws, "n_draws", "adapt", 2), check_int(seed, "seed", "adapt")
        self._freeze(owns=holder, kind=type(model), n_draws=number, seed=seed)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.owns.shape

    @property
    def models(self) -> NDArray[np.object_]:
        """The models themselves, an array of objects of the shape of the batch."""
        found = np.empty(self.shape, dtype=object)
        for index in np.ndindex(self.shape):
            found[index] = self.owns[index].model
        return found

    def values(self, name: str) -> NDArray[Any]:
        """Return an attribute of all models as an array, batch + the shape of one.

        Parameters
        ----------
        name : str
        """
        found = [plain(getattr(own.model, name)) for own in self.owns.ravel()]
        return np.stack(found).reshape(*self.shape, *found[0].shape)

    @property
    def lineage(self) -> tuple[type, ...]:
        """The classes for which a formula may be registered: those of the model, and then this one."""
        return (*self.kind.__mro__[:-1], *type(self).__mro__)

    @property
    def opaque(self) -> bool:
        """True: known by calls alone."""
        return True

    @property
    def gradient_by(self) -> str | None:
        """How derivatives are taken."""
        method: str | None = self._own.method
        return method

    @property
    def _own(self) -> Own:
        self._require_single("model")
        own: Own = self.owns[()]
        return own

    def __repr__(self) -> str:
        if self.shape:
            return f"Adapted(stack of {self.shape}, {self.kind.__qualname__})"
        return f"Adapted({self._own.model!r:.60}, gradient_by={self.gradient_by!r})"

    def _heading(self) -> str:
        return f"{self.kind.__qualname__}, adapted" + (f" (stack of {self.shape})" if self.shape else "")

    def _details(self) -> Rows:
        drawn: Rows = [("draws", f"{self.n_draws}, seed {self.seed}")]
        if self.shape:
            return drawn
        own = self._own
        ways = {"own": "by its log_prob_grad", "jax": "by JAX", "torch": "by torch"}
        way = "no parameters declared" if own.method is None else ways.get(own.method, "by differences of log_prob")
        names = ", ".join(own.parameters.names)
        return [("model", f"{own.model!r:.60}"), ("parameters", names or "-"), ("derivatives", way), *drawn]

    # --- identity

    @property
    def digest(self) -> str:
        """Hexadecimal digest of class, its code and content."""
        return self._key(True)

    @property
    def origin(self) -> str:
        """Digest of the content without the code of the class, by which draws are seeded."""
        return self._key(False)

    def _key(self, code: bool) -> str:
        inner = [content_key(own.model, "adapt", code) for own in self.owns.ravel()]
        return make_key("Adapted", inner, list(self.shape), self.n_draws, self.seed)

    def _to_fields(self) -> dict[str, Any]:
        own = self._own
        names = None if own.names is None else list(own.names)
        options = {"parameters": names, "vectorized": own.calls.vectorized}
        return {"model": own.model, **options, "n_draws": self.n_draws, "seed": self.seed}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any], trusted: bool = False) -> Self:
        return cls(**fields)

    # --- objects, likelihood, draws

    def pack(self, X: Any) -> Packed:
        """Take objects of any kind as they are."""
        return as_packed(X, self.kind.__qualname__)

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each object, shape (n_objects,) + batch."""
        objects = list(self.pack(X).values)
        columns = [own.calls.log_prob(objects) for own in self.owns.ravel()]
        return np.stack(columns, axis=-1).reshape((len(objects), *self.shape))

    def sample(self, n: int, *, length: Any = None, rng: Any = None) -> list[Any]:
        """Return n objects; a length is passed on."""
        return self._own.calls.sample(n, length, rng)

    # --- derivatives

    def statistics(self, X: Any) -> Statistics:
        """Return the derivatives of each object, the block ``scores`` (n_objects, p)."""
        own, method = self._own, self._method()
        packed = self.pack(X)
        objects = list(packed.values)
        logs = own.calls.log_prob(objects)
        refuse_impossible(logs, self.kind.__qualname__)
        scores = gradients(method, own.calls, own.parameters, objects)
        own.width = own.width or scores.shape[1]
        if scores.shape[1] != len(self.parameter_names):
            raise ValueError(
                f"{self.kind.__qualname__}: log_prob_grad must return {len(self.parameter_names)} derivatives of each "
                f"object, one for each parameter. Got {scores.shape[1]}."
            )
        return Statistics(self, logs, packed.lengths, {"scores": scores})

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return the derivatives (G, p) by the model's own parameters, in all coordinates."""
        return statistics["scores"]

    def information(self, lengths: Any, coordinates: str = "softmax") -> InformationBlocks:
        """Raise: the information has no closed form."""
        raise TypeError(
            f"{self.kind.__qualname__}: the information of a model that is known by calls alone has no closed form. "
            "Use information='empirical'."
        )

    # --- parameters

    @property
    def parameter_names(self) -> list[str]:
        """Names of the entries of the parameter vector."""
        own = self._own
        known = getattr(own.model, "parameter_names", None)
        if known is not None:
            return list(map(str, known() if callable(known) else known))
        method = self._method()
        if own.parameters.leaves:
            return own.parameters.names
        if own.width is None:
            one = own.calls.sample(1, None, self.seed)
            own.width = gradients(method, own.calls, own.parameters, one).shape[1]
        return [f"theta[{j}]" for j in range(own.width)]

    def _method(self) -> str:
        if self._own.method is None:
            raise TypeError(
                f"{self.kind.__qualname__}: derivatives need parameters, and it has declared none. Name its attributes "
                "by adapt(model, parameters=['mean', ...]), or give it a method log_prob_grad."
            )
        return self._own.method

    @property
    def n_free_parameters(self) -> int:
        """Number of declared parameters."""
        return len(self.parameter_names)

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the declared parameters (p,), the same in all coordinates."""
        return self._declared().vector()

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at other parameters."""
        declared, own = self._declared(), self._own
        moved = declared.at(declared.split(np.asarray(vector, np.float64)))
        return type(self)(moved, own.names, own.calls.vectorized, self.n_draws, self.seed)

    def _declared(self) -> Parameters:
        if not self._own.parameters.leaves:
            raise TypeError(
                f"{self.kind.__qualname__}: it has declared no parameters. Name its attributes by adapt(model, "
                "parameters=['mean', ...])."
            )
        return self._own.parameters
