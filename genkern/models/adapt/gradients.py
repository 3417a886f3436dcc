"""Derivatives of the log-likelihood of somebody's model: its own, by autodiff, or by differences."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from genkern.models.adapt.calls import Calls, plain, together
from genkern.models.adapt.parameters import Parameters
from genkern.validation import Floats

STEP, SMALLEST = 1e-3, 1e-1  # of differences: relative to a parameter, or to this if it is smaller


def method_of(model: Any, parameters: Parameters) -> str | None:
    """Return how derivatives are taken: "own", "jax", "torch", "differences"; None without parameters."""
    if callable(getattr(model, "log_prob_grad", None)):
        return "own"
    return (parameters.home or "differences") if parameters.leaves else None


def gradients(method: str, calls: Calls, parameters: Parameters, objects: list[Any]) -> Floats:
    """Return derivatives (n, p), refusing what is no number."""
    if method == "own":
        table = calls.rows(calls.model.log_prob_grad, objects, "log_prob_grad")
    else:
        way = {"jax": _by_jax, "torch": _by_torch, "differences": _by_differences}[method]
        table = way(calls, parameters, objects)
    if not np.isfinite(table).all():
        i, j = np.argwhere(~np.isfinite(table))[0].tolist()
        name = parameters.names[j] if parameters.leaves else str(j)
        raise ValueError(
            f"{calls.who}: the derivative of log_prob of object {i} by the parameter {name} is {table[i, j]} (taken by "
            f"{method}); derivatives must be finite. Is the parameter at the end of its range? Take its logarithm, or "
            "give the model a method log_prob_grad."
        )
    return table


def _by_differences(calls: Calls, parameters: Parameters, objects: list[Any]) -> Floats:
    r"""Return :math:`(4 D(h) - D(2h)) / 3` of central differences D, whose error is of the order :math:`h^4`."""
    theta = parameters.vector()
    table = np.empty((len(objects), len(theta)))
    for j, value in enumerate(theta.tolist()):
        step = STEP * max(abs(value), SMALLEST)
        sides = []
        for move in (-2.0, -1.0, 1.0, 2.0):
            moved = theta.copy()
            moved[j] += move * step
            sides.append(calls.log_prob(objects, parameters.at(parameters.split(moved))))
        with np.errstate(invalid="ignore"):
            table[:, j] = (8.0 * (sides[2] - sides[1]) - (sides[3] - sides[0])) / (12.0 * step)
    return table


def _by_jax(calls: Calls, parameters: Parameters, objects: list[Any]) -> Floats:
    """Return derivatives by JAX's reverse mode, object by object."""
    jax = sys.modules["jax"]

    def log_prob(leaves: list[Any], x: Any) -> Any:
        return _single(calls, parameters.at(leaves), x)

    derive = jax.grad(log_prob)
    start = [jax.numpy.asarray(value, dtype=float) for _, value in parameters.leaves]
    return np.stack([_row(calls, lambda x=x: derive(start, x), i) for i, x in enumerate(objects)])


def _by_torch(calls: Calls, parameters: Parameters, objects: list[Any]) -> Floats:
    """Return derivatives by torch's reverse mode, object by object."""
    torch = sys.modules["torch"]
    leaves = [value for _, value in parameters.leaves]
    if not parameters.is_module:
        leaves = [torch.as_tensor(value).detach().clone().requires_grad_() for value in leaves]
    model = calls.model if parameters.is_module else parameters.at(leaves)

    def derive(x: Any) -> Any:
        found = torch.autograd.grad(_single(calls, model, x), leaves, allow_unused=True)
        return [torch.zeros_like(leaf) if part is None else part for leaf, part in zip(leaves, found)]

    return np.stack([_row(calls, lambda x=x: derive(x), i) for i, x in enumerate(objects)])


def _single(calls: Calls, model: Any, x: Any) -> Any:
    """Return log p(x), as the package of the model gives it."""
    return model.log_prob(together([x]))[0] if calls.is_vectorized([x]) else model.log_prob(x)


def _row(calls: Calls, derive: Any, i: int) -> Floats:
    """Return the derivatives (p,) of one object."""
    try:
        return np.concatenate([plain(part).ravel().astype(np.float64) for part in derive()])
    except Exception as error:
        raise ValueError(
            f"{calls.who}: autodiff of log_prob of object {i} failed with {type(error).__name__}: {error}"
        ) from error
