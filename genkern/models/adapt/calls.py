"""How somebody's model is called: with one object or with many, and how it draws; errors name the object."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from genkern.data.objects import Packed
from genkern.validation import Floats, check_int

AGREE = 1e-6  # largest relative difference between log_prob of one object, and of the same among others
REMEDY = (
    "If it takes one object, add up what it returns for the parts of it; if it takes many, return one number for each."
)
SAMPLE = (
    "sample(n, rng), which returns a list of n objects, or sample(rng), which returns one; rng is a NumPy Generator"
)


def as_packed(X: Any, who: str) -> Packed:
    """Return objects of any kind as they are, one position each; the rows of an array are objects."""
    if isinstance(X, Packed):
        return X if X.values.dtype.kind == "O" else as_packed(X.objects(), who)
    table = getattr(X, "ndim", 1) == 2 and hasattr(X, "columns")
    if isinstance(X, str | bytes | Mapping | Set) or table or not hasattr(X, "__len__"):
        remedy = "pass X.to_numpy(), whose rows are objects" if table else "put one object into a list: [X]"
        raise TypeError(f"{who}: X must be a list of objects. Got {type(X).__name__}; {remedy}.")
    if len(X) == 0:
        raise ValueError(f"{who}: X must hold at least one object. Got none.")
    values = np.fromiter(X, dtype=object, count=len(X))
    return Packed(values, np.arange(len(X) + 1))


def together(objects: list[Any]) -> Any:
    """Return objects as one array if they are numbers or arrays of one shape and type, else as they are, in a list."""
    kinds = set(map(type, objects))
    kind = kinds.pop()
    if kinds:
        return objects
    if issubclass(kind, np.generic | float | int):
        return np.array(objects)
    home = kind.__module__.partition(".")[0]
    package = {"numpy": "numpy", "torch": "torch", "jaxlib": "jax.numpy", "jax": "jax.numpy"}.get(home)
    if package is None or len({x.shape for x in objects}) > 1:
        return objects
    return sys.modules[package].stack(objects)


def plain(value: Any) -> Any:
    """Return the numbers of a tensor or array of another package as an array."""
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


class Calls:
    """Calls of one model, which takes single objects or many at once.

    Parameters
    ----------
    model : object
        With ``log_prob`` and ``sample``.
    vectorized : bool or None
        Whether ``log_prob`` takes many objects; None: found out by the first objects.
    """

    def __init__(self, model: Any, vectorized: bool | None):
        self.model, self.vectorized, self.who = model, vectorized, type(model).__qualname__

    def log_prob(self, objects: list[Any], model: Any = None) -> Floats:
        """Return log-likelihoods (n,) of objects, under the model itself or at other parameters."""
        method = (self.model if model is None else model).log_prob
        if self.is_vectorized(objects):
            logs = self._numbers(plain(self._many(method, objects, "log_prob")), (len(objects),), "log_prob")
        else:
            logs = np.array([self._number(method, x, i) for i, x in enumerate(objects)])
        bad = np.flatnonzero(np.isnan(logs) | np.isposinf(logs))
        if len(bad):
            raise ValueError(
                f"{self.who}: log_prob must return numbers below infinity. Got {logs[bad[0]]} for object {bad[0]}. "
                "What is impossible has -inf; look for logarithms of negative numbers, and for divisions by 0."
            )
        return logs

    def is_vectorized(self, objects: list[Any]) -> bool:
        """Return whether ``log_prob`` takes many objects; found out once, by two of them."""
        if self.vectorized is None:
            pair = [objects[0], objects[-1]]
            many, failure = _tried(lambda: plain(self.model.log_prob(together(pair))), (2,))
            single, other = _tried(lambda: plain(self.model.log_prob(pair[0])), ())
            if many is None and single is None:
                remedy = "" if isinstance(other, Exception) else f" {REMEDY}"
                raise ValueError(
                    f"{self.who}: log_prob must return a number for one object, or an array of n numbers for n. Given "
                    f"object 0, {_came(other)}; given two objects, {_came(failure)}.{remedy}"
                ) from (other if isinstance(other, Exception) else None)
            if many is not None and single is not None and not np.isclose(many[0], single, AGREE, AGREE):
                raise ValueError(
                    f"{self.who}: log_prob of object 0 is {single:g} alone, and {many[0]:g} among others. Say what it "
                    "takes: adapt(model, vectorized=False) for one object, True for many."
                )
            if many is None:
                self._refuse_totals(pair, single)
            self.vectorized = many is not None
        return self.vectorized

    def _refuse_totals(self, pair: list[Any], single: Any) -> None:
        """Raise where ``log_prob`` takes a list and returns the total or the mean of its objects.

        It takes the first object then for a list of its parts. A function of one object gives the same number for the
        stack of that object alone, or none.
        """
        one, other, both = (
            _tried(lambda part=part: plain(self.model.log_prob(together(part))), ())[0] for part in (*zip(pair), pair)
        )
        if one is None or other is None or both is None or np.isclose(one, single, AGREE, AGREE):
            return
        for name, count in (("sum", 1), ("mean", 2)):
            if np.isclose(both, (one + other) / count, AGREE, AGREE):
                raise ValueError(
                    f"{self.who}: log_prob must return one number for each object of a list. Got one number for two "
                    f"objects, the {name} of both. Return an array of n numbers for n objects; if it does take a "
                    "single object, say adapt(model, vectorized=False)."
                )

    def rows(self, method: Any, objects: list[Any], what: str) -> Floats:
        """Return rows (n, p) of a method, called as ``log_prob`` is."""
        if self.is_vectorized(objects):
            table = plain(self._many(method, objects, what))
        else:
            rows = [plain(self._one(method, x, i, what)) for i, x in enumerate(objects)]
            for i, row in enumerate(rows):
                if row.ndim != 1 or row.shape != rows[0].shape:
                    raise ValueError(
                        f"{self.who}: {what} of one object must return p numbers, one for each parameter. Got "
                        f"{_told(row)} for object {i}" + (f", and {_told(rows[0])} for object 0." if i else ".")
                    )
            table = np.stack(rows)
        width = table.shape[1] if table.ndim == 2 else -1
        return self._numbers(table, (len(objects), width), what)

    def sample(self, n: int, length: int | None, rng: Any) -> list[Any]:
        """Return n objects."""
        generator = np.random.default_rng(rng)
        options = self._options(length)
        count = check_int(n, "n", f"{self.who}.sample", 0)
        many = options.pop("many")
        drawn = (
            self._drawn(count, generator, options)
            if many
            else [self.model.sample(rng=generator, **options) for _ in range(count)]
        )
        for i, x in enumerate(drawn):
            if isinstance(x, np.ndarray | float) and np.isnan(x).any():
                raise ValueError(f"{self.who}: sample must return objects without NaN. Got NaN in object {i}.")
        return drawn

    def _drawn(self, count: int, generator: Any, options: dict[str, Any]) -> list[Any]:
        """Return n objects of a method that draws many at once."""
        drawn = self.model.sample(count, rng=generator, **options)
        if not hasattr(drawn, "__len__") or len(drawn) != count:
            came = len(drawn) if hasattr(drawn, "__len__") else type(drawn).__name__
            raise ValueError(f"{self.who}: sample({count}, rng) must return {count} objects. Got {came}.")
        return list(drawn)

    def _options(self, length: int | None) -> dict[str, Any]:
        """Return the keywords of ``sample``, and whether it draws many at once."""
        if not callable(getattr(self.model, "sample", None)):
            raise TypeError(f"{self.who}: kernels by draws need the method {SAMPLE}. It has none.")
        takes = inspect.signature(self.model.sample).parameters
        named = [name for name in takes if name not in ("rng", "length")]
        if "rng" not in takes or len(named) > 1:
            raise TypeError(f"{self.who}: expected the method {SAMPLE}. Got sample({', '.join(takes)}).")
        if length is not None and "length" not in takes:
            raise TypeError(
                f"{self.who}: its sample takes no length: leave it out, or let it be sample(n, rng, length)."
            )
        return {"many": bool(named)} | ({} if length is None else {"length": length})

    def _many(self, method: Any, objects: list[Any], what: str) -> Any:
        try:
            return method(together(objects))
        except Exception as error:
            raise ValueError(
                f"{self.who}: {what} of {len(objects)} objects failed with {_said(error)}. If "
                "it takes one object at a time, say adapt(model, vectorized=False)."
            ) from error

    def _one(self, method: Any, x: Any, i: int, what: str) -> Any:
        try:
            return method(x)
        except Exception as error:
            raise ValueError(f"{self.who}: {what} of object {i} failed with {type(error).__name__}: {error}") from error

    def _number(self, method: Any, x: Any, i: int) -> float:
        found = plain(self._one(method, x, i, "log_prob"))
        if found.shape != () or found.dtype.kind not in "fiu":
            raise ValueError(
                f"{self.who}: log_prob must return a number. Got {_told(found)} for object {i}; if it takes many "
                "objects at once, say adapt(model, vectorized=True)."
            )
        return float(found)

    def _numbers(self, found: Any, shape: tuple[int, ...], what: str) -> Floats:
        if found.shape != shape or found.dtype.kind not in "fiu":
            wanted = f"{shape[0]} numbers" if len(shape) == 1 else f"{shape[0]} rows of derivatives"
            raise ValueError(f"{self.who}: {what} of {shape[0]} objects must return {wanted}. Got {_told(found)}.")
        return found.astype(np.float64)


def _tried(call: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return the numbers of a call of the right shape and nothing, or nothing and what came instead."""
    try:
        found = call()
    except Exception as error:
        return None, error
    return (found, None) if found.shape == shape and found.dtype.kind in "fiu" else (None, f"it gave {_told(found)}")


def _told(found: Any) -> str:
    return f"an array of shape {found.shape}" if found.dtype.kind in "fiu" else f"{found.tolist()!r:.60}"


def _came(failure: Any) -> str:
    return f"it raised {_said(failure)}" if isinstance(failure, Exception) else str(failure)


def _said(error: Exception) -> str:
    text = str(error).rstrip(". ")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
