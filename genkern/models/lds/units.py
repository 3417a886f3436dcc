"""Linear dynamical systems in standard units of the observations, and the rules of M-steps there."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.models.fit.units import Units
from genkern.models.lds.covariance import form_of
from genkern.models.lds.model import LDS
from genkern.models.lds.step import Rules
from genkern.validation import Floats, check_number

UNSEEN = (
    "its law is that of the first guess (tied to no state, level 0, the smallest variance allowed; or that of init=), "
    "and of pseudo-observations"
)


def rescaled(system: LDS, unit: Floats, mean: Floats) -> LDS:
    """Return the law of mean + unit x, with arrays batch + (d,); isotropic noise takes the same unit everywhere."""
    form = form_of(system.obs_cov, len(system.shape))
    square = unit[..., :, None] * unit[..., None, :] if form == "full" else unit**2
    fields = {name: getattr(system, name) for name in LDS._fields}
    fields["observation"] = unit[..., None] * system.observation
    fields["obs_cov"] = (square[..., 0] if form == "isotropic" else square) * system.obs_cov
    fields["offset"] = mean + unit * system.offset
    return LDS._restore(*fields.values())


def check_rules(estimator: Any, who: str, pseudocount: str = "pseudocount") -> None:
    """Raise for floors and pseudo-observations that make no sense."""
    for name in ("min_covar", "relative_floor", pseudocount):
        check_number(getattr(estimator, name), name, who)
    check_number(estimator.state_variance, "state_variance", who, exclusive=True)
    if estimator.obs_variance is not None:
        check_number(estimator.obs_variance, "obs_variance", who, exclusive=True)


def rules_of(estimator: Any, units: Units, pseudocount: float) -> Rules:
    """Return the rules of an estimator in standard units."""
    variance = estimator.obs_variance
    return Rules(
        estimator.relative_floor,  # states have no unit of the data, in which min_covar is
        units.floors(estimator.min_covar, estimator.relative_floor),
        pseudocount,
        estimator.state_variance,
        np.ones_like(units.unit) if variance is None else (np.sqrt(variance) / units.unit) ** 2,
        bool(estimator.stable),
        bool(estimator.offset),
        tuple(estimator.fixed),
    )


def raw_rules(estimator: Any, model: LDS, pseudocount: float) -> Rules:
    """Return the rules of an estimator in the units of the data, of which nothing is known; states have theirs."""
    if pseudocount > 0.0 and estimator.obs_variance is None:
        raise ValueError(f"{type(estimator).__name__}: an M-step cannot take 'obs_variance' from the data. Give it.")
    ones = np.ones((1, model.n_channels))
    rules = rules_of(estimator, Units(np.zeros_like(ones), ones, np.zeros(1), ones), pseudocount)
    return rules._replace(obs_floor=estimator.min_covar * ones)


def refuse_low(system: LDS, rules: Rules, estimator: Any) -> None:
    """Raise for systems, in standard units, with covariances below the floors, from which EM could only fall."""
    Q, R, P = system.matrices()
    unit = np.sqrt(np.where(rules.obs_floor > 0.0, rules.obs_floor, 1.0))
    R = R.reshape((len(unit), -1, *R.shape[-2:])) / (unit[..., :, None] * unit[..., None, :])[:, None]
    floors = (rules.state_floor, 1.0 if (rules.obs_floor > 0.0).all() else 0.0, rules.state_floor)
    for name, cov, floor in zip(("state_cov", "obs_cov", "initial_cov"), (Q, R, P), floors):
        lowest = float(np.linalg.eigvalsh(cov).min())
        if lowest < floor * (1.0 - 1e-9):
            raise ValueError(
                f"{type(estimator).__name__}: the covariances of 'init' must not be below min_covar="
                f"{estimator.min_covar:g} and relative_floor={estimator.relative_floor:g} of the data's variance. Got "
                f"an eigenvalue of '{name}' of {lowest / floor:g} times its floor; lower the floors, or raise the "
                "covariance."
            )
