"""The recipe for sequences of symbols that are not aligned."""

from __future__ import annotations

import cmath
import gzip
import math
import os
import pickle
import tracemalloc
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from genkern import MarkovChainEstimator, Spectrum, Windows, explain
from genkern.learn.products import inner_products
from genkern.recipes import symbols

WINDOWS = 3 * 32 * (1 + 2 * 8 * 3) + 20 * 8 * 8  # features of windows of proteins: Fisher vectors and covariances
DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / "../shared/data"))


def periodic(letters: str, period: int, count: int, seed: int) -> list[str]:
    """Return random sequences in which letters tend to come back after so many positions."""
    rng = np.random.default_rng(seed)
    texts = []
    for length in rng.integers(40, 70, count):
        text = list(rng.choice(list(letters), length))
        for t in range(period, length):
            if rng.random() < 0.6:
                text[t] = text[t - period]
        texts.append("".join(text))
    return texts


def two_classes(letters: str, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Return objects of classes that differ in the period of what comes back, and in nothing else."""
    X = periodic(letters, 3, 20, seed) + periodic(letters, 4, 20, seed + 1)
    return X, np.repeat(["three", "four"], 20)


def test_lags_tell_classes_apart_that_have_the_same_symbols():
    X, y = two_classes("abcd")
    new, labels = two_classes("abcd", 7)
    assert symbols().fit(X, y).score(new, labels) > 0.95


def test_the_kernel_is_the_sum_of_kernels_of_unit_trace():
    X, y = two_classes("abc")
    pipeline = symbols("abc", n_lags=2, n_gaps=1).fit(X, y)
    features = pipeline[:-1].transform(X)
    expected = np.zeros((len(X), len(X)))
    for offsets in ((0, 1), (0, 2), (0, 1, 2)):
        counts = Spectrum(offsets=offsets, alphabet="abc").fit_transform(X)
        roots = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
        roots -= roots.mean(axis=0)
        K = roots @ roots.T
        expected += K / np.trace(K) * len(X) / 3
    centred = features - features.mean(axis=0)
    np.testing.assert_allclose(centred @ centred.T, expected, rtol=0, atol=1e-10)


def test_parts_follow_the_alphabet():
    def parts(*args, **kwargs):
        names = [name for name, _ in symbols(*args, **kwargs).named_steps["kernels"].transformer_list]
        assert names[-3:] == ["pairs_ends", "gapped_ends", "positions"]  # which are tried, and mostly not used
        return names[:-3]

    assert parts() == parts(4) == parts("abc") == ["pairs", "gapped"]
    assert parts("protein") == ["pairs", "gapped", "windows", "length"]
    assert parts("dna") == parts("RNA") == ["pairs", "gapped", "odds"]
    assert parts("dna", models=None) == parts("protein", table=None, length=False) == ["pairs", "gapped"]
    assert parts("abc", table=[0, 1, 2], models=[MarkovChainEstimator(1, alphabet="abc")])[2:] == ["windows", "odds"]


def test_proteins_with_ambiguous_and_missing_letters():
    X, y = two_classes("ACDEFGHIKLMNPQRSTVWY")
    new, labels = two_classes("ACDEFGHIKLMNPQRSTVWY", 7)
    X[0] = X[0][:20] + "XXXXXXBZJ" + X[0][20:]
    pipeline = symbols("protein", n_lags=5).fit(X, y)
    assert pipeline.score(new, labels) > 0.8
    assert pipeline[:-1].transform(X[:1]).shape == (1, 5 * 400 + 16 * 1000 + WINDOWS + 1)


def test_parts_of_proteins_weigh_the_same():
    X, y = two_classes("ACDEFGHIKLMNPQRSTVWY")
    kernels = symbols("protein", n_lags=3, n_gaps=2).fit(X, y).named_steps["kernels"]
    features, sizes = kernels.transform(X), [3 * 400, 4 * 1000, WINDOWS, 1]
    assert features.shape == (len(X), sum(sizes))
    traces = [part.var(axis=0).sum() for part in np.split(features, np.cumsum(sizes)[:-1], axis=1)]
    np.testing.assert_allclose(traces, [0.25] * 4, rtol=1e-12)
    lengths = np.log([len(x) + 1 for x in X])
    np.testing.assert_allclose(np.ptp(features[:, -1]), 0.5 * np.ptp(lengths) / lengths.std(), rtol=1e-12)
    assert kernels.named_transformers["length"].get_feature_names_out() == ["length"]


def test_moments_and_covariances_of_windows():
    X, y = two_classes("ACDEFGHIKLMNPQRSTVWY")
    X[0] = X[0][:7]
    windows = symbols("protein", n_lags=1, n_gaps=1).fit(X, y).named_steps["kernels"].transformer_list[2][1]
    plain = windows.named_steps["channels"].transform(X)
    series = windows[:2].transform(X)
    for one, more in zip(plain, series):
        np.testing.assert_array_equal(more[:, :6], one)
        for t, c in product(range(len(one)), range(2)):
            near = [j for j in range(-5, 6) if 0 <= t + j < len(one)]
            turns = [cmath.rect(math.cos(math.pi * j / 12) ** 2, math.radians((100, 170)[c] * j)) for j in near]
            moment = abs(sum(turn * one[t + j, 0] for j, turn in zip(near, turns)))
            np.testing.assert_allclose(more[t, 6 + c], moment, rtol=1e-9, atol=1e-9)
    means = Windows(5, n_dct=0).fit_transform(series)
    expected = np.zeros((len(X), 20, 8, 8))
    for i, k in product(range(len(X)), range(20)):
        pairs = [np.outer(means[i][t], means[i][t + 2 * k + 2]) for t in range(len(means[i]) - 2 * k - 2)]
        expected[i, k] = np.mean(pairs, axis=0) if pairs else 0.0
    names = windows.get_feature_names_out()
    assert list(names[[-1280, -1]]) == [
        "covariances__hydropathy_w5_mean*hydropathy_w5_mean@2",
        "covariances__moment170_w5_mean*moment170_w5_mean@40",
    ]
    features = windows.transform(X)[:, -1280:]
    expected = expected.reshape(len(X), -1)
    # A fifth of the trace: of weight 1/4 beside the Fisher vectors.
    np.testing.assert_allclose(features, expected * np.sqrt(0.2 / expected.var(axis=0).sum()), rtol=1e-9, atol=1e-12)


def test_linear_proteins_can_be_explained():
    X, y = two_classes("ACDEFGHIKLMNPQRSTVWY")
    pipeline = symbols("protein", n_lags=2, n_gaps=1).set_params(ridge__kernel="linear").fit(X, y)
    seen = explain(pipeline, X[0], label=pipeline.classes_[1])
    np.testing.assert_allclose(seen.decision, pipeline.decision_function(X[:1])[0], rtol=1e-9)
    np.testing.assert_allclose(seen.positions.sum() + seen.rest + seen.intercept, seen.decision, rtol=1e-9)
    assert len(seen.positions) == len(X[0])
    assert len(seen.names) == len(set(seen.names)) == pipeline[:-1].transform(X[:1]).shape[1]


def test_proteins_of_one_length():
    X, y = two_classes("ACDEFGHIKLMNPQRSTVWY")
    rows = [*range(6), *range(len(X) - 6, len(X))]
    X, y = [(X[i] * 60)[:60] for i in rows], [y[i] for i in rows]
    pipeline = symbols("protein", n_lags=2, n_gaps=1).fit(X, y)
    assert np.abs(pipeline[:-1].transform(X)).max() < 100
    assert pipeline.score(X, y) == 1.0


def test_length_tells_classes_apart_that_differ_in_nothing_else():
    lengths = [12, 13, 14, 15] * 5 + [36, 38, 40] * 7
    X = [periodic("ACDE", 3, 1, seed)[0][:length] for seed, length in enumerate(lengths)]
    y = np.repeat([0, 1], [20, 21])
    ridges = [symbols("ACDE", n_lags=1, n_gaps=1, length=use).fit(X, y).named_steps["ridge"] for use in (True, False)]
    assert ridges[0].cv_squared_.min() < 0.3 < ridges[1].cv_squared_.min()


def test_the_gaussian_kernel_of_proteins_can_be_left_out():
    X, y = two_classes("ACDEFGHIKLMNPQRSTVWY")
    # Without groups there are 8000 triples, and yet features are dense.
    pipeline = symbols("protein", n_lags=2, n_gaps=1, groups=None, table=None).fit(X, y)
    features, ridge = pipeline[:-1].transform(X), pipeline.named_steps["ridge"]
    assert isinstance(features, np.ndarray)
    squares = ((features[:, None] - features[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(squares.mean(), 2.0, rtol=1e-10)
    values = np.exp(-squares / 4) @ ridge.dual_coef_[0] + ridge.intercept_
    np.testing.assert_allclose(pipeline.decision_function(X), values, rtol=1e-8, atol=1e-8)
    linear = pipeline.set_params(ridge__kernel="linear").fit(X, y)
    assert linear.named_steps["ridge"].coef_.shape == (1, features.shape[1])


def test_dna_with_chains():
    X, y = two_classes("ACGT")
    new, labels = two_classes("ACGT", 7)
    chains = [MarkovChainEstimator(order, alphabet="dna", backoff=1.0) for order in (0, 3)]
    pipeline = symbols("dna", n_lags=2, n_gaps=2, models=chains).fit(X, y)
    assert pipeline[:-1].transform(X[:1]).shape == (1, 2 * 16 + 4 * 64 + 256 + 2)
    assert pipeline.score(new, labels) > 0.8
    odds = pipeline.named_steps["kernels"].named_transformers["odds"]
    assert odds.named_steps["odds"].n_features_out_ == 2
    # New log-odds are those of the full fit; training ones were made without the object's label.
    np.testing.assert_allclose(odds.transform(X).std(axis=0), 1.0, rtol=1e-12)


def test_clone_pickle_and_grid():
    X, y = two_classes("ab")
    pipeline = clone(symbols(n_lags=4, n_gaps=1)).fit(X, y)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.decision_function(X), pipeline.decision_function(X))
    np.testing.assert_allclose(pipeline.decision_function(X[5:6]), pipeline.decision_function(X)[5:6], rtol=1e-10)
    grid = {"ridge__criterion": ["error", "squared"], "kernels__gapped": ["drop"]}
    assert GridSearchCV(symbols(n_lags=4), grid, cv=2).fit(X, y).best_score_ > 0.8


@pytest.mark.skipif(not (DATA / "scope40").exists(), reason="the folder of real sets is not there")
def test_folds_of_proteins():
    with gzip.open(DATA / "scope40" / "scope40.fasta.gz", "rt") as file:
        lines = file.read().split()
    y, X = np.array([name[0] for name in lines[1::3]]), lines[2::3]
    rows = np.concatenate([np.flatnonzero(y == c)[:120] for c in "ab"])
    train, test = rows[::2], rows[1::2]
    pipeline = symbols("protein", table=None).fit([X[i] for i in train], y[train])
    assert pipeline.score([X[i] for i in test], y[test]) > 0.8


def test_short_objects_have_ends():
    """Classes of short words that differ in their first letter alone, among others that occur anywhere."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = ["".join(np.append("ab"[label], rng.permutation(list("abcde" + "ab"[1 - label])))) for label in y]
    fitted = symbols().fit(X[:60], y[:60])
    kernels = fitted.named_steps["kernels"]
    assert kernels.weights_["ends"] > 0
    assert fitted.score(X[60:], y[60:]) > 0.9
    seen = explain(fitted, X[0])
    np.testing.assert_allclose(seen.positions.sum() + seen.rest + seen.intercept, seen.decision, rtol=1e-9)
    assert np.abs(seen.positions).argmax() == 0
    assert any("|" in label for label, _ in seen.top(3))


def test_lags_that_objects_cannot_fill_do_not_count():
    X = ["abcabc", "cbacba"] * 6
    pairs = symbols().fit(X, [0, 1] * 6).named_steps["kernels"].named_transformers["pairs"].transform(X)
    blocks = np.split(pairs, 15, axis=1)
    assert blocks[0].any()  # 0-1, without a gap, and 0-2 needs nine letters
    assert not np.concatenate(blocks[1:], axis=1).any()
    asked = symbols(n_lags=5).fit(X, [0, 1] * 6).named_steps["kernels"].named_transformers["pairs"].transform(X)
    assert all(block.any() for block in np.split(asked, 5, axis=1))


def test_places_count_where_they_tell_something():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = np.array([list("abcd" * 10)] * 120)
    X = rng.permuted(X, axis=1)
    aligned = X.copy()
    for place in (5, 20, 33):
        aligned[:, place] = np.where(rng.random(120) < 0.9, np.array(["a", "b"])[y], "c")
    fitted = symbols("abcd", n_lags=2, n_gaps=1).fit(["".join(x) for x in aligned[:80]], y[:80])
    assert fitted.named_steps["kernels"].weights_["positions"] > 0
    assert fitted.score(["".join(x) for x in aligned[80:]], y[80:]) > 0.8
    with pytest.warns(UserWarning, match="object 1 of 44"):  # others may have another length
        assert fitted.predict(["ab", "".join(aligned[0]) + "abcd"]).shape == (2,)
    noise = symbols("abcd", n_lags=2, n_gaps=1).fit(["".join(x) for x in X[:80]], y[:80])
    assert noise.named_steps["kernels"].weights_ == {"main": 1.0, "ends": 0.0, "positions": 0.0}
    ragged = ["".join(x)[: 33 + i % 8] for i, x in enumerate(aligned)]
    assert symbols("abcd", n_lags=2, n_gaps=1).fit(ragged, y).named_steps["kernels"].weights_["positions"] == 0


def test_very_many_objects_take_the_linear_path(monkeypatch):
    X, y = two_classes("abcd")
    X, y = [x[i:] for i in range(5) for x in X], np.tile(y, 5)
    exact = symbols("abcd").fit(X, y)
    monkeypatch.setattr("genkern.recipes.learnt_sum.LARGE", 50)
    monkeypatch.setattr("genkern.recipes.learnt_sum.ROWS", 30)
    linear = symbols("abcd").set_params(ridge__exact=50).fit(X, y)
    assert (exact["ridge"].solver_, linear["ridge"].solver_) == ("eigenvalues", "conjugate gradients")
    assert len(linear["ridge"].cv_index_) == len(X) // 5
    features, same = exact[:-1].transform(X), linear[:-1].transform(X)
    assert same.dtype == np.float32
    same, features = same.toarray(), features.toarray() if hasattr(features, "toarray") else features
    np.testing.assert_allclose(same, features, atol=1e-6)
    one = exact["ridge"].set_params(alphas=[linear["ridge"].alpha_]).fit(features, y)
    np.testing.assert_allclose(linear.decision_function(X), one.decision_function(features), atol=2e-3)
    np.testing.assert_allclose(linear.predict_proba(X[:3]).sum(axis=1), 1.0)


def test_words_that_do_not_occur_take_no_memory():
    """The inner products of words of a large alphabet: a transposed matrix would have a number for each of them."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(9, 6))
    columns = np.sort(rng.choice(2**26, 6, replace=False))
    X = sparse.csr_matrix((table.ravel(), np.tile(columns, 9), np.arange(10) * 6), shape=(9, 2**26))
    tracemalloc.start()
    found = inner_products(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found, table @ table.T, rtol=1e-12, atol=1e-12)
    assert peak < 1 << 20  # half a gigabyte of starts of rows
