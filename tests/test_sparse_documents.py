"""Documents fitted one by one and compared sparse, against the dense models, and their memory."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from genkern import (
    Diffusion,
    FitEach,
    Gram,
    Multinomial,
    MultinomialEstimator,
    Poisson,
    Power,
    ProbabilityProduct,
    SparseMultinomial,
    affinity,
)
from genkern.data.serialize import dumps, loads


def documents(seed, n, words, length=60):
    """Counts of words that are drawn by Zipf's law; one document is empty."""
    rng = np.random.default_rng(seed)
    law = 1.0 / np.arange(1.0, words + 1.0)
    table = rng.multinomial(rng.integers(1, length, n), law / law.sum()).astype(float)
    table[1] = 0.0
    return scipy.sparse.csr_array(table)


@pytest.mark.parametrize("options", [{}, {"pseudocount": 0.5}, {"estimate": "ml"}], ids=str)
@pytest.mark.parametrize("rho", [0.5, 1.0, 1.7])
def test_sparse_models_have_the_kernel_of_dense_ones(options, rho):
    X = documents(0, 12, 400)
    lean = FitEach(MultinomialEstimator(sparse=True, **options)).fit_transform(X)
    full = FitEach(MultinomialEstimator(**options)).fit_transform(X)
    for one, other in zip(lean, full):
        np.testing.assert_allclose(one.to_multinomial().probs, other.probs, rtol=1e-12, atol=1e-300)
    how = Power(rho)
    with np.errstate(invalid="ignore"):
        logs = affinity(lean, lean, how, 40), affinity(full, full, how, 40)
        np.testing.assert_allclose(*logs, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(affinity(lean, full, how, 40), logs[1], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(affinity(full, lean, how, 40), logs[1], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(affinity.diag(lean, how, 40), np.diagonal(logs[1]), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(logs[0], logs[0].T)
    kernel = ProbabilityProduct(rho, length=3).normalized()
    np.testing.assert_allclose(Gram(kernel).fit_transform(lean), Gram(kernel).fit_transform(full), atol=1e-12)


@pytest.mark.parametrize("total", [Poisson(20.0), 7])
def test_totals_that_are_known_or_random(total):
    rng = np.random.default_rng(1)
    X = rng.multinomial(7, np.full(300, 1 / 300.0), 5)
    lean = MultinomialEstimator(total=total, sparse=True).fit_each(X)
    full = MultinomialEstimator(total=total).fit_each(X)
    np.testing.assert_allclose(affinity(lean, lean, Power(0.5)), affinity(full, full, Power(0.5)), atol=1e-12)


def test_bags_of_rows_are_summed_and_objects_do_not_depend_on_each_other():
    X = documents(2, 8, 300).toarray()
    bags = [X[:3], X[3:4], X[4:]]
    lean = MultinomialEstimator(sparse=True).fit_each(bags)
    full = MultinomialEstimator().fit_each(bags)
    for i, (one, other) in enumerate(zip(lean, full)):
        np.testing.assert_allclose(one.to_multinomial().probs, other.probs, rtol=1e-12)
        assert MultinomialEstimator(sparse=True).fit_each(bags[i : i + 1])[0] == one


def test_powers_that_underflow_are_computed_in_logs():
    X = documents(3, 6, 500)
    lean = MultinomialEstimator(sparse=True).fit_each(X)
    full = MultinomialEstimator().fit_each(X)
    np.testing.assert_allclose(
        affinity(lean, lean, Power(60.0), 1), affinity(full, full, Power(60.0), 1), rtol=1e-12, atol=1e-12
    )


def test_sparse_models_are_values_that_a_store_keeps():
    one = SparseMultinomial([2, 5], [0.25, 0.25], 0.0625, 10)
    for again in (pickle.loads(pickle.dumps(one)), loads(dumps(one)), SparseMultinomial.stack([one, one])[1]):
        assert again == one
    assert one.to_multinomial() == Multinomial([0.0625] * 2 + [0.25] + [0.0625] * 2 + [0.25] + [0.0625] * 4)


def test_memory_is_that_of_the_words_that_occur():
    n, words = 300, 20_000  # dense models would take 48 MB
    rng = np.random.default_rng(4)
    rows = np.repeat(np.arange(n), 50)
    X = scipy.sparse.csr_array((np.ones(n * 50), (rows, rng.integers(0, words, n * 50))), shape=(n, words))
    tracemalloc.start()
    models = FitEach(MultinomialEstimator(sparse=True)).fit_transform(X)
    K = Gram(ProbabilityProduct(0.5, length=50).normalized()).fit_transform(models)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6
    assert K.shape == (n, n)


def test_what_is_refused():
    X = documents(5, 4, 300)
    with pytest.raises(ValueError, match=r"estimate='predictive' has no sparse models"):
        MultinomialEstimator(sparse=True, estimate="predictive").fit_each(X)
    wide = scipy.sparse.csr_array((4000, 100_000))
    with pytest.raises(ValueError, match=r"would be 3.0 GB of probabilities. Give sparse=True"):
        MultinomialEstimator().fit_each(wide)
    unordered = MultinomialEstimator(sparse=True, ordered=False).fit_each(X)
    affinity(unordered, unordered, Power(0.5), 3)
    with pytest.raises(ValueError, match="unordered rows have no sparse formula"):
        affinity(unordered, unordered, Power(1.0), 3)
    with pytest.raises(TypeError, match=r"Diffusion: .* Multinomial models. Got SparseMultinomial"):
        Diffusion(1.0, kind="geodesic")(unordered)
    Diffusion(1.0, kind="geodesic")([model.to_multinomial() for model in unordered])
    for columns, probs, rest, what in (
        ([1, 0], [0.5, 0.5], 0.0, "must increase"),
        ([0, 9], [0.5, 0.5], 0.0, "must increase"),
        ([0, 1], [0.5, 0.4], 0.2, "sums from 1.3"),
        ([0], [0.5, 0.5], 0.0, "shape of 'probs'"),
    ):
        with pytest.raises(ValueError, match=what):
            SparseMultinomial(columns, probs, rest, 4)
