"""One meaning of length: a model and what it is converted to have a cosine of one, and sums over objects agree."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from genkern import (
    HMM,
    KDE,
    BayesNet,
    Categorical,
    Gaussian,
    LinearGaussianNet,
    MarkovChain,
    MeanMap,
    Mixture,
    PeriodicChain,
    PositionalChain,
    Power,
    ProbabilityProduct,
    ProposalFeatures,
    Sampled,
    affinity,
)
from tests.cases import random_hmm, rows
from tests.cases_zoo import two_chains

rng = np.random.default_rng(3)
HIDDEN = random_hmm(rng, size=3)
NET = LinearGaussianNet(
    {"z": ([], [], 0.0, 1.0), "x": (["z"], [0.5], 1.0, 0.7), "y": (["z", "x"], [0.5, -1.0], 1.0, 0.7)},
    observed=["x", "y"],
)
LEAF = Gaussian([0.3, 1.0], [[1.0, 0.2], [0.2, 2.0]])
FACTORIAL = two_chains()
CHAINS = [
    MarkovChain(rows(rng, 3), rows(rng, 3, 3)),
    MarkovChain(rows(rng, 9).reshape(3, 3), rows(rng, 3, 3, 3)),
    PeriodicChain(rows(rng, 2), rows(rng, 2, 3), rows(rng, 2, 3, 3)),
    PositionalChain(rows(rng, 3), rows(rng, 4, 3, 3)),
]
CONVERSIONS = {
    "HMM.to_bayes_net": (HIDDEN, HIDDEN.to_bayes_net(4), (4,)),
    "FactorialHMM.to_hmm": (FACTORIAL, FACTORIAL.to_hmm(), (1, 4)),
    "LinearGaussianNet.to_gaussian": (NET, NET.to_gaussian(), (None, 1, 4)),
    "Mixture.of": (LEAF, Mixture.of(LEAF), (None, 1, 4)),
    "KDE of one point": (Gaussian([1.0], 0.5), KDE([[1.0]], 0.5), (None, 4)),
    **{f"{type(chain).__name__}.to_hmm {k}": (chain, chain.to_hmm(), (1, 4)) for k, chain in enumerate(CHAINS)},
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_model_and_its_conversion_are_one(name: str) -> None:
    model, other, lengths = CONVERSIONS[name]
    for length, kernel in itertools.product(lengths, (ProbabilityProduct(0.5), ProbabilityProduct(1.0), MeanMap(0.8))):
        kernel = kernel.set_params(length=length).normalized()
        assert kernel([model, other]) == pytest.approx(np.ones((2, 2)), abs=1e-12)


def test_a_network_of_symbols_against_enumeration() -> None:
    other = random_hmm(rng, size=3)
    net = HIDDEN.to_bayes_net(3)
    sequences = [np.array(x) for x in itertools.product(range(3), repeat=3)]
    values = {}
    for p, q in itertools.product((HIDDEN, other), repeat=2):
        values[p.digest, q.digest] = float(np.exp(p.log_prob(sequences) + q.log_prob(sequences)).sum())
    for p, q in ((net, HIDDEN), (HIDDEN, net), (net, net)):
        found = math.exp(affinity(p, q, Power(1.0), length=3))
        assert found == pytest.approx(values[HIDDEN.digest, HIDDEN.digest], rel=1e-11)
    assert math.exp(affinity(net, other, Power(1.0), 3)) == pytest.approx(
        values[HIDDEN.digest, other.digest], rel=1e-11
    )
    K = ProbabilityProduct(1.0, length=3).normalized()([HIDDEN, net, other, other.to_bayes_net(3)])
    cosine = values[HIDDEN.digest, other.digest] / math.sqrt(
        values[HIDDEN.digest, HIDDEN.digest] * values[other.digest, other.digest]
    )
    assert K[:2, 2:] == pytest.approx(np.full((2, 2), cosine), rel=1e-11)


def test_rows_of_a_network_hold_its_observed_nodes() -> None:
    p, q = (BayesNet({"x": ([], rows(rng, 2)), "y": (["x"], rows(rng, 2, 3))}) for _ in range(2))
    one = float(affinity(p, q, Power(0.5)))
    assert float(affinity(p, q, Power(0.5), length=2)) == one
    assert float(affinity(p, q, Power(0.5), length=6)) == pytest.approx(3 * one, rel=1e-14)
    with pytest.raises(ValueError, match=r"2 observed nodes holds 2 observations.*Got length=3; give a multiple of 2"):
        affinity(p, q, Power(0.5), length=3)
    draws = [Sampled(model, n=4000) for model in (p, q)]
    assert float(affinity(*draws, Power(0.5), length=2)) == pytest.approx(one, abs=0.05)
    with pytest.raises(ValueError, match="give a multiple of 2"):
        affinity(*draws, Power(0.5), length=3)
    features = ProposalFeatures(0.5, n=6000, length=4, normalize=False).fit_transform([p, q])
    assert math.log(features[0] @ features[1]) == pytest.approx(2 * one, abs=0.05)
    with pytest.raises(ValueError, match=r"ProposalFeatures: a draw of a BayesNet .* give a multiple of 2"):
        ProposalFeatures(length=3).fit([p, q])


def test_a_network_and_sequences_of_another_length() -> None:
    net = HIDDEN.to_bayes_net(3)
    assert float(affinity(net, HIDDEN, Power(1.0))) == float(affinity(net, HIDDEN, Power(1.0), 3))
    for length in (2, 6):
        with pytest.raises(ValueError, match=rf"Got length={length}; give length=3, or a network of {length} observed"):
            affinity(net, HIDDEN, Power(1.0), length)


def test_independent_draws_are_powers() -> None:
    p, q = HMM([1.0], [[1.0]], Categorical([[0.2, 0.8]])), Categorical([0.2, 0.8])
    other: Any = Categorical([0.5, 0.5])
    hidden = HMM([1.0], [[1.0]], Categorical([[0.5, 0.5]]))
    assert float(affinity(q, other, Power(0.5), 5)) == pytest.approx(
        float(affinity(p, hidden, Power(0.5), 5)), rel=1e-13
    )
