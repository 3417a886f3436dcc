"""One small member of every family of models, for what must hold for all of them."""

from __future__ import annotations

import numpy as np

from genkern import (
    HMM,
    KDE,
    LDS,
    BayesNet,
    Bernoulli,
    Categorical,
    ClassMixture,
    Dirichlet,
    DirichletMultinomial,
    Exponential,
    FactorialHMM,
    Gamma,
    Gaussian,
    Geometric,
    LinearGaussianNet,
    MarkovChain,
    Mixture,
    Multinomial,
    NegativeBinomial,
    PeriodicChain,
    Poisson,
    PositionalChain,
    SiteModel,
    StudentT,
    SwitchingLDS,
    VonMises,
)
from tests.cases import random_hmm, random_leaf, rows
from tests.oracles_profile import random_profile

rng = np.random.default_rng(0)


def between(low, high, *shape):
    return low + (high - low) * rng.random(shape)


def hmm(emissions, n=2):
    return HMM(rows(rng, n), rows(rng, n, n), emissions)


def system(*batch):
    """Return linear systems of one hidden and two visible dimensions."""
    return LDS(
        between(-0.8, 0.8, *batch, 1, 1),
        between(-1, 1, *batch, 2, 1),
        between(0.5, 1, *batch, 1),
        random_leaf(rng, "full", batch, 2).cov,
        between(-1, 1, *batch, 1),
        between(0.5, 1, *batch, 1),
        between(-1, 1, *batch, 2),
    )


def mixture(*batch):
    return Mixture(rows(rng, *batch, 2), random_leaf(rng, "diagonal", (*batch, 2), 2))


def two_chains():
    starts, steps = [rows(rng, 2) for _ in range(2)], [rows(rng, 2, 2) for _ in range(2)]
    return FactorialHMM(starts, steps, [between(-2, 2, 2, 2) for _ in range(2)], between(0.5, 1, 2))


ZOO = {
    "isotropic Gaussian": random_leaf(rng, "isotropic", (), 2),
    "diagonal Gaussian": random_leaf(rng, "diagonal", (), 2),
    "full Gaussian": random_leaf(rng, "full", (), 2),
    "StudentT": StudentT(between(0, 1, 2), random_leaf(rng, "full", (), 2).cov, 5.0),
    "VonMises": VonMises(between(0, 1, 2), between(1, 2, 2)),
    "KDE": KDE(between(-1, 1, 3, 2), 0.5),
    "Gamma": Gamma(between(1, 2, 2), between(1, 2, 2)),
    "Exponential": Exponential(between(1, 2, 2)),
    "Bernoulli": Bernoulli(between(0.2, 0.8, 2)),
    "Poisson": Poisson(between(1, 4, 2)),
    "Geometric": Geometric(between(0.2, 0.8, 2)),
    "NegativeBinomial": NegativeBinomial(between(1, 2, 2), between(0.2, 0.7, 2)),
    "Multinomial": Multinomial(rows(rng, 3), 5),
    "Dirichlet": Dirichlet(between(1, 2, 3)),
    "DirichletMultinomial": DirichletMultinomial(between(1, 2, 3), 5),
    "Categorical": Categorical(rows(rng, 3)),
    "SiteModel": SiteModel(rows(rng, 3, 2)),
    "Mixture of vectors": mixture(),
    "Mixture of symbols": Mixture(rows(rng, 2), random_leaf(rng, "categorical", (2,))),
    "MarkovChain": MarkovChain(rows(rng, 2), rows(rng, 2, 2)),
    "PeriodicChain": PeriodicChain(rows(rng, 2), rows(rng, 2, 2), rows(rng, 2, 2, 2)),
    "PositionalChain": PositionalChain(rows(rng, 2), rows(rng, 3, 2, 2)),
    "HMM of symbols": random_hmm(rng, size=2),
    "HMM that stops": random_hmm(rng, ending="stop", size=2),
    "HMM of vectors": random_hmm(rng, "full", size=2),
    "HMM of counts": hmm(Poisson(between(1, 4, 2, 1))),
    "HMM of Gamma": hmm(Gamma(between(1, 2, 2, 2), between(1, 2, 2, 2))),
    "HMM of mixtures": hmm(mixture(2)),
    "FactorialHMM": two_chains(),
    "LDS": system(),
    "SwitchingLDS": SwitchingLDS(rows(rng, 2), rows(rng, 2, 2), system(2)),
    "BayesNet": BayesNet(
        {"h": ([], rows(rng, 2)), "a.b": (["h"], rows(rng, 2, 2)), "c[0]": (["h", "a.b"], rows(rng, 2, 2, 3))},
        observed=["a.b", "c[0]"],
    ),
    "LinearGaussianNet": LinearGaussianNet(
        {"z": ([], [], 0.0, 1.0), "x.y": (["z"], [0.5], 1.0, 0.7), "u": (["z", "x.y"], [0.5, -1.0], 1.0, 0.7)},
        observed=["x.y", "u"],
    ),
    "ProfileHMM that stops": random_profile(rng, 2),
    "local ProfileHMM that stops": random_profile(rng, 3).with_flanks("local", "several", 1.0),
    "ClassMixture of sequences": ClassMixture(
        {"a.b[0]": random_hmm(rng, size=2), "c": MarkovChain(rows(rng, 2), rows(rng, 2, 2))}, [0.3, 0.7]
    ),
    "ClassMixture of bags": ClassMixture({0: Gaussian([0.0, 0.0], 1.0), 1: Gaussian([1.0, 0.0], [1.0, 2.0])}),
}


def draw(model, count=24):
    """Return objects of a model: up to four observations, if it can have several."""
    if isinstance(model, SiteModel):
        return model.sample(count, rng=1)
    return [x for length in range(1, 5) for x in model.sample(count // 4, length=length, rng=length)]
