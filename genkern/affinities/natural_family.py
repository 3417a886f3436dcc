"""Affinities within exponential families of the user's own."""

from __future__ import annotations

import inspect

import numpy as np

from genkern.affinities.families import refuse_endless
from genkern.affinities.how import Power
from genkern.affinities.registry import affinity
from genkern.models.families.natural_family import NaturalFamily
from genkern.validation import Floats


@affinity.register(
    NaturalFamily, NaturalFamily, Power, reference="Jebara, Kondor & Howard (2004), section 3, its unnumbered formula"
)
def natural_product(P: NaturalFamily, Q: NaturalFamily, how: Power) -> Floats:
    r"""Return :math:`A_{2\rho}(\rho (\theta + \theta')) - \rho A(\theta) - \rho A(\theta')`, G + (a, b)."""
    if type(P) is not type(Q) or P.theta.shape[-1] != Q.theta.shape[-1]:
        raise ValueError(
            "affinity: both models must be of one family with as many parameters. Got "
            f"{type(P).__name__} of {P.theta.shape[-1]} and {type(Q).__name__} of {Q.theta.shape[-1]}."
        )
    both = how.rho * (P.theta[..., :, None, :] + Q.theta[..., None, :, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = np.asarray(_joint(P, both, 2.0 * how.rho), np.float64)
        own, other = (np.asarray(side.log_partition(side.theta), np.float64) for side in (P, Q))
    if joint.shape != both.shape[:-1] or own.shape != P.shape:
        raise ValueError(
            f"affinity: log_partition of {type(P).__name__} must return one number for each row of parameters: shape "
            f"{P.shape} of {P.theta.shape}. Got shape {own.shape}."
        )
    if not (np.isfinite(own).all() and np.isfinite(other).all()):
        raise ValueError(f"affinity: log_partition of {type(P).__name__} must be finite at the models' own parameters.")
    logs = joint - how.rho * (own[..., :, None] + other[..., None, :])
    return refuse_endless(np.where(np.isnan(logs), np.inf, logs), "parameters are such", how.rho)


def _joint(model: NaturalFamily, theta: Floats, power: float) -> Floats:
    """Return the log-partition with the base measure to a power, where the family has one."""
    if "power" in inspect.signature(model.log_partition).parameters:
        return model.log_partition(theta, power=power)  # type: ignore[call-arg]
    if type(model).log_base is not NaturalFamily.log_base:
        raise TypeError(
            f"affinity: {type(model).__name__} has a base measure (log_base), so products need "
            "log_partition(theta, power=1.0), with that measure to the power."
        )
    return model.log_partition(theta)
