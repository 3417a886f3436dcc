"""Models that are special cases of others' classes: a table of conversions, so that one list may mix them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from genkern.affinities.chains import chain_as_hmm
from genkern.affinities.how import Expected, ExpectedLaplace, Power
from genkern.affinities.registry import affinity
from genkern.models.families.categorical import Categorical
from genkern.models.families.exponential import Exponential
from genkern.models.families.gamma import Gamma
from genkern.models.families.gaussian import Gaussian
from genkern.models.families.multinomial import Multinomial
from genkern.models.hmm.model import HMM
from genkern.models.kde.model import KDE
from genkern.models.lds.model import LDS
from genkern.models.leaf import Leaf
from genkern.models.linear_gaussian.model import LinearGaussianNet
from genkern.models.markov.base import Chain
from genkern.models.mixture.model import Mixture
from genkern.models.switching.model import SwitchingLDS
from genkern.models.value import rebatch
from genkern.validation import Floats

METHODS = ("exact", "all-pairs", "paired")
ALL_HOWS, BOTH_HOWS = (Power, Expected, ExpectedLaplace), (Power, Expected)


class Conversion(NamedTuple):
    """A model of class ``special``, given one of class ``general``, as the latter; ``length`` as of the formula."""

    general: type
    special: type
    convert: Callable[[Any, Any], Any]
    hows: tuple[type, ...]
    length: Any
    told: str
    methods: tuple[str, ...] = ("exact",)


def as_hmm(leaf: Leaf, other: Any = None) -> HMM:
    """Return independent draws as hidden Markov models of one state."""
    ones = np.ones((*leaf.shape, 1))
    return HMM(ones, ones[..., None], rebatch(leaf, (*leaf.shape, 1)))


def as_lds(normal: Gaussian, other: Any = None) -> LDS:
    """Return independent Gaussian points as systems whose state is zero."""
    mean, d = normal.mean, normal.mean.shape[-1]
    cov = normal.cov if normal.covariance_type == "full" else normal.variances[..., None] * np.eye(d)
    zero, none = np.zeros((*mean.shape[:-1], 1, 1)), np.zeros((*mean.shape[:-1], 1))
    return LDS(zero, np.zeros((*mean.shape, 1)), zero, cov, none, zero, offset=mean)


def as_switching(system: LDS, other: Any = None) -> SwitchingLDS:
    """Return linear systems as switching ones of one regime."""
    ones = np.ones((*system.shape, 1))
    return SwitchingLDS(ones, ones[..., None], rebatch(system, (*system.shape, 1)))


def as_one_regime(normal: Gaussian, other: Any = None) -> SwitchingLDS:
    """Return independent Gaussian points as switching systems of one regime, at rest."""
    return as_switching(as_lds(normal))


def as_gamma(model: Exponential, other: Any = None) -> Gamma:
    """Return exponential distributions as Gamma distributions of shape one."""
    return Gamma(np.ones_like(model.scale), model.scale)


def as_multinomial(model: Categorical, other: Multinomial) -> Multinomial:
    """Return symbols as rows of one count or, if totals are given, as ordered draws."""
    if not (other.total == 1 or (other.total is None and other.ordered)):
        raise ValueError(
            "affinity: a Categorical is compared with a Multinomial of total=1, or of ordered draws without a total. "
            f"Got total={other.total!r}, ordered={other.ordered}."
        )
    return Multinomial(model.probs, other.total, other.ordered)


def as_gaussian(net: LinearGaussianNet, other: Any = None) -> Gaussian:
    """Return the joint law of the observed nodes."""
    return net.to_gaussian()


ONE_STATE, STEADY = "independent draws as a hidden Markov model of one state", "independent points as a system at rest"
TABLE = [
    Conversion(HMM, Leaf, as_hmm, ALL_HOWS, "given", ONE_STATE),
    Conversion(LDS, Gaussian, as_lds, BOTH_HOWS, "given", STEADY),
    Conversion(SwitchingLDS, LDS, as_switching, BOTH_HOWS, "given", "a linear system as one regime", METHODS),
    Conversion(SwitchingLDS, Gaussian, as_one_regime, BOTH_HOWS, "given", f"{STEADY}, one regime", METHODS),
    Conversion(Gamma, Exponential, as_gamma, (Power,), "iid", "an Exponential as a Gamma of shape one"),
    Conversion(Multinomial, Categorical, as_multinomial, (Power,), "all", "a symbol as a row of one count"),
    Conversion(Multinomial, Categorical, as_multinomial, (Power,), "given", "a symbol as a row of one count"),
    Conversion(Mixture, LinearGaussianNet, as_gaussian, ALL_HOWS, "iid", "the law of the observed nodes"),
    Conversion(KDE, LinearGaussianNet, as_gaussian, ALL_HOWS, "iid", "the law of the observed nodes"),
]


def _register(row: Conversion, how: type, method: str) -> None:
    def converted(P: Any, Q: Any, how: Any, length: int | None = None) -> Floats:
        return affinity.block(P, row.convert(Q, P), how, length, method)

    name = f"{row.general.__name__}_and_{row.special.__name__}".lower()
    exact: Any = True if method == "exact" else "sampled"
    affinity.register(
        row.general, row.special, how, method, reference=row.told, name=name, length=row.length, exact=exact
    )(converted)


for _row in TABLE:
    for _how in _row.hows:
        for _method in _row.methods:
            _register(_row, _how, _method)


for _how in ALL_HOWS:

    @affinity.register(Chain, Categorical, _how, length="given", reference=ONE_STATE)
    def chain_and_symbols(P: Chain, Q: Categorical, how: Any, length: int) -> Floats:
        """Return the log kernel of a chain and independent symbols, G + (a, b)."""
        return chain_as_hmm(P, as_hmm(Q), how, length)


for _how in BOTH_HOWS:
    for _method in METHODS[1:]:

        @affinity.register(LDS, LDS, _how, _method, length="given", reference="one regime has one path")
        def only_path(P: LDS, Q: LDS, how: Any, length: int) -> Floats:
            """Return the exact log kernel of linear systems, G + (a, b), beside switching ones."""
            return affinity.block(P, Q, how, length)
