"""Models with parameters at every position are explained at a cost that is linear in the length."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

from genkern import (
    FisherScore,
    ModelLogOdds,
    PositionalChain,
    PositionalChainEstimator,
    SiteEstimator,
    SiteModel,
    explain,
)
from genkern.models.leaf import Leaf

RNG = np.random.default_rng(4)


def rows(*shape: int) -> np.ndarray:
    return RNG.dirichlet(np.ones(shape[-1]), shape[:-1])


@pytest.mark.parametrize("text", ["ACGTACGGTA", "NACGTNACGT", "NNNANNCGRT", "A"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_log_probabilities_of_symbols_given_those_before(order: int, text: str) -> None:
    start = RNG.dirichlet(np.ones(4**order)).reshape([4] * order)
    chain = PositionalChain(start, rows(12, *[4] * (order + 1)), "dna")
    found = chain.position_log_probs(chain.pack([text]))
    beginnings = [chain.log_prob([text[: n + 1]])[0] for n in range(len(text))]
    assert_allclose(np.cumsum(found), beginnings, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("coordinates", ["softmax", "sqrt", "raw", "ratio"])
def test_sites_have_the_derivatives_of_their_own_parameters(coordinates: str) -> None:
    model = SiteModel(rows(70, 4), "dna")
    packed = model.pack(["".join(RNG.choice(list("ACGTN"), 70))])
    table = np.zeros((70, 280))
    at = 0
    for first, part in model.position_gradients(packed, coordinates):
        table[at : at + len(part), first : first + part.shape[1]] = part
        at += len(part)
    ((_, expected),) = Leaf.position_gradients(model, packed, coordinates)
    assert_allclose(table, expected, rtol=0, atol=1e-12)
    assert_allclose(model.position_log_probs(packed), Leaf.position_log_probs(model, packed), rtol=0, atol=1e-12)


CASES: dict[str, Any] = {
    "scores of sites": FisherScore(SiteEstimator()),
    "odds of sites": ModelLogOdds(SiteEstimator()),
    "odds of chains": ModelLogOdds(PositionalChainEstimator(1, alphabet="dna")),
    "scores of chains": FisherScore(PositionalChainEstimator(1, alphabet="dna")),
}


@pytest.mark.parametrize("name", list(CASES))
def test_memory_grows_with_the_length_and_not_its_square(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks, entries = [], []
    for length in (300, 600, 1200):
        X = ["".join(RNG.choice(list("ACGT"), length)) for _ in range(8)]
        pipeline = make_pipeline(CASES[name], RidgeClassifier()).fit(X, np.arange(8) % 2)
        if name == "odds of chains":
            monkeypatch.setattr(PositionalChain, "position_statistics", None)  # a table of all parameters by position
        explain(pipeline, X[0])
        tracemalloc.start()
        entries.append(explain(pipeline, X[0]).table.nnz)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert entries[2] <= 4.2 * entries[0]
    assert peaks[2] < 3 * peaks[1]  # of a square: four times
