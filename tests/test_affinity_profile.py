"""Kernels between profile models against sums over all sequences and over all pairs of paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from genkern import HMM, Categorical, Expected, Gram, Power, ProbabilityProduct, ProfileHMM, affinity
from genkern.affinities import PairError
from tests.cases import rows
from tests.oracles_profile import random_profile

KINDS = ("free", "several", "local")


def profile(kind, K, seed=0):
    model = random_profile(np.random.default_rng([seed, K]), K, 2, kind="several" if kind == "several" else "free")
    return model.with_flanks("local", flank=0.5) if kind == "local" else model


def every(length):
    return [list(x) for x in itertools.product(range(2), repeat=length)]


def affinity_of(x, y, how):
    """The kernel of two sequences: whether they are equal, or an expectation over how many symbols differ."""
    if isinstance(how, Power):
        return float(x == y)
    return np.exp(-how.lam * sum(a != b for a, b in zip(x, y)))


@pytest.mark.parametrize("how", [Power(1.0), Expected(0.7)])
@pytest.mark.parametrize("pair", [("free", "free"), ("several", "local"), ("local", "free")])
def test_kernels_are_sums_over_all_sequences(pair, how):
    p, q = profile(pair[0], 2), profile(pair[1], 3, 1)
    for length in (1, 2, 4):
        X = every(length)
        weights = np.exp(p.log_prob(X)), np.exp(q.log_prob(X))
        kernel = np.array([[affinity_of(x, y, how) for y in X] for x in X])
        assert affinity(p, q, how, length) == pytest.approx(np.log(weights[0] @ kernel @ weights[1]), abs=1e-12)


@pytest.mark.parametrize("rho", [0.5, 1.0, 2.0])
def test_powers_are_those_of_paths(rho):
    """Without exits, and one way in, silent paths between two states are unique: as in the dense model."""
    K = 4
    p = random_profile(np.random.default_rng(3), K, 2)
    ends = {"entry": np.eye(1, K + 1)[0], "exits": np.tile([0.0, 1.0], (K + 1, 1))}
    T = np.array(p.transitions)
    T[:, :3], T[:, 5:] = [0.7, 0.3, 0.0], [1.0, 0.0]
    flanks = np.array(p.flanks)
    p = ProfileHMM(p.match, p.insert, T, flanks=flanks, null=p.null, **ends)
    expected = affinity(p.to_hmm(), p.to_hmm(), Power(rho), 5)
    assert affinity(p, p, Power(rho), 5) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [Power(1.0), Expected(0.7)])
def test_all_lengths_are_those_of_the_dense_model(kind, how):
    p, q = profile(kind, 3), profile("free", 2, 1)
    expected = affinity(p.to_hmm(), q.to_hmm(), how)
    assert affinity(p, q, how) == pytest.approx(float(expected), abs=1e-11)
    assert affinity(p, q.to_hmm(), how) == pytest.approx(float(expected), abs=1e-11)
    assert affinity(p, q.to_hmm(), how, 4) == pytest.approx(float(affinity(p, q, how, 4)), abs=1e-11)
    assert affinity(p, q, how) == pytest.approx(
        float(np.logaddexp.reduce([affinity(p, q, how, length) for length in range(1, 80)])), abs=1e-10
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_dense_model_has_the_same_likelihoods(kind):
    model = profile(kind, 3)
    X = [x for length in range(1, 6) for x in every(length)]
    np.testing.assert_allclose(model.to_hmm().log_prob(X), model.log_prob(X), rtol=1e-12)


def test_matrices_are_positive_and_symmetric():
    once = [profile("local", 3, seed) for seed in range(4)] + [profile("free", 4, seed) for seed in range(3)]
    every = [*once, profile("several", 3)]  # whose sum of square roots diverges
    for kernel, models in (
        (ProbabilityProduct(0.5), once),
        (ProbabilityProduct(1.0), every),
        (ProbabilityProduct(0.5, length=6), every),
    ):
        K = Gram(kernel.normalized()).fit_transform(models)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(np.diag(K), 1.0)
        assert np.linalg.eigvalsh(K)[0] > -1e-10


def test_sums_that_diverge_are_refused():
    stay = [[0.999, 0.001]] * 3 + [[0.0, 1.0]]
    model = ProfileHMM([[1.0, 0.0]], flanks=stay, null=[1.0, 0.0])
    assert np.isfinite(affinity(model, model, Power(1.0)))
    wide = ProfileHMM(np.full((1, 4), 0.25), flanks=stay)
    with pytest.raises(ValueError, match="diverges"):
        affinity(wide, wide, Power(0.3))
    with pytest.raises(PairError):
        affinity.block(ProfileHMM.stack([wide]), ProfileHMM.stack([wide]), Power(0.3))


def test_a_plain_model_needs_stop_probabilities():
    rng = np.random.default_rng(0)
    plain = HMM(rows(rng, 2), rows(rng, 2, 2), Categorical(rows(rng, 2, 2)))
    with pytest.raises(ValueError, match="stop"):
        affinity(profile("free", 2), plain, Power(1.0), 4)
