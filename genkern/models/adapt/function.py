"""``adapt``: somebody's model, or a fitted one of another package, as a model of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genkern.models.adapt import from_dynamax, from_hmmlearn, from_pgmpy, from_pomegranate, from_sklearn
from genkern.models.adapt.adapted import Adapted
from genkern.models.base import Model

PACKAGES: dict[str, dict[str, Callable[..., Model]]] = {
    "dynamax": from_dynamax.KNOWN,
    "hmmlearn": from_hmmlearn.KNOWN,
    "pgmpy": from_pgmpy.KNOWN,
    "pomegranate": from_pomegranate.KNOWN,
    "sklearn": from_sklearn.KNOWN,
}


def adapt(
    model: Any,
    parameters: Any = None,
    *,
    vectorized: bool | None = None,
    n_draws: int = 1000,
    seed: int = 0,
) -> Model:
    """Return somebody's model, or a fitted one of another package, as a model of this package.

    A fitted model of hmmlearn, pomegranate, pgmpy, scikit-learn or dynamax becomes the same distribution here
    (``HMM``, ``Mixture``, ``BayesNet``, ``LDS``, ...), with all exact formulas. Any other object with ``log_prob`` and
    ``sample`` is kept and called: kernels between models compare it by draws, unless ``affinity.register`` has a
    formula for its class; ``FisherScore`` takes derivatives as told below, and the empirical information.

    Parameters
    ----------
    model : object
        With ``log_prob(x)``, which returns a number for one object, or ``log_prob(X)``, which returns n numbers for n
        objects; and for kernels between models ``sample(n, rng)``, which returns a list of n objects, or
        ``sample(rng)``, which returns one (with ``length=`` if objects have a length to be chosen). Objects are of any
        kind and passed on as they are; many numbers or arrays of one shape are passed as one array. Or a fitted model
        of the packages above; one of dynamax as a pair ``(model, params)``.
    parameters : list of str, or params of dynamax, optional
        Names of the attributes that are parameters: numbers, arrays, or dicts and lists of these. Derivatives are those
        of the method ``log_prob_grad``, if there is one, called as ``log_prob`` is; by autodiff if parameters are
        arrays of JAX or tensors of torch; else by central differences. Parameters are changed in a shallow copy, or by
        ``with_parameters(values)`` if the model has it, where ``log_prob`` uses more than these attributes. The default
        is the attribute ``parameters`` (a list of names, or the values themselves), else the parameters of a torch
        module, else attributes that require a gradient.
    vectorized : bool, optional
        Whether ``log_prob`` takes many objects. The default is to find out by the first two.
    n_draws : int, default=1000
        Number of draws that represent it in kernels between models.
    seed : int, default=0
        Seed of these draws.

    Returns
    -------
    model : Model
        Own classes as one with the attribute ``gradient_by`` ("own", "jax", "torch", "differences", or None), which its
        repr tells, too.

    Notes
    -----
    The model must not be changed afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import FisherScore, adapt
    >>> class Laplace:
    ...     def __init__(self, centre, width):
    ...         self.centre, self.width = centre, width
    ...     def log_prob(self, x):
    ...         return -abs(x - self.centre) / self.width - np.log(2 * self.width)
    ...     def sample(self, n, rng):
    ...         return list(rng.laplace(self.centre, self.width, n))
    >>> model = adapt(Laplace(0.0, 2.0), parameters=["centre", "width"])
    >>> model.gradient_by
    'differences'
    >>> model.log_prob_grad([1.0, -3.0]).round(4)
    array([[ 0.5 , -0.25],
           [-0.5 ,  0.25]])
    >>> FisherScore(model).fit_transform([1.0, -3.0, 0.5]).shape
    (3, 2)
    """
    if isinstance(model, tuple) and len(model) == 2 and parameters is None:
        model, parameters = model
    if isinstance(model, Model):
        return model
    found = _converter(model)
    if found is not None:
        return found(model) if parameters is None else found(model, parameters)
    if isinstance(model, type) or not callable(getattr(model, "log_prob", None)):
        what = f"the class {model.__qualname__}; make one" if isinstance(model, type) else type(model).__qualname__
        raise TypeError(
            "adapt: expected an object with the methods log_prob and sample, or a fitted model of "
            f"{', '.join(PACKAGES)}. Got {what}."
        )
    if isinstance(parameters, str) or not (parameters is None or all(isinstance(name, str) for name in parameters)):
        raise TypeError(f"adapt: 'parameters' must be a list of names of attributes. Got {parameters!r:.60}.")
    return Adapted(model, parameters, vectorized, n_draws, seed)


def _converter(model: Any) -> Callable[..., Model] | None:
    """Return what converts a model of a known package, by the names of its class and its ancestors; else None."""
    homes = set()
    for kind in type(model).__mro__:
        home = kind.__module__.partition(".")[0]
        if home in PACKAGES:
            homes.add(home)
            if kind.__name__ in PACKAGES[home]:
                return PACKAGES[home][kind.__name__]
    direct = type(model).__module__.partition(".")[0]
    if direct in homes:
        known = ", ".join(PACKAGES[direct])
        raise TypeError(f"adapt: of {direct} it knows {known}. Got {type(model).__name__}.")
    return None
