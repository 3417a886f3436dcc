"""The empirical mean map against sums over all pairs of words, written out."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from genkern import EmpiricalMean, EmpiricalMeanMap, Gram, Linear, Spectrum
from genkern.core.words.mean_map_pairs import distinct_words
from genkern.data.objects import as_alphabet, check_objects

IUPAC = {symbol: ["ACGT"[i] for i in members] for symbol, members in as_alphabet("dna").ambiguities}
LAMBDAS = st.sampled_from([0.0, 0.3, 1.0, 4.0, math.inf])


def word_value(x, y, size, lam, members):
    """Return the mean over pairs of words, and over all that ambiguous ones may spell; zero if there are none."""
    total, count = 0.0, 0
    for s in range(len(x) - size + 1):
        for t in range(len(y) - size + 1):
            left = list(product(*(members.get(c, c) for c in x[s : s + size])))
            right = list(product(*(members.get(c, c) for c in y[t : t + size])))
            for u, v in product(left, right):
                differing = sum(a != b for a, b in zip(u, v))
                value = 1.0 if differing == 0 else math.exp(-lam * differing)
                total += value / (len(left) * len(right))
            count += 1
    return total / count if count else 0.0


def window_value(x, y, size, lam):
    """Return the mean over pairs of windows of series (T, d); zero if there are none."""
    pairs = [
        math.exp(-lam / 2 * sum((x[s + j, c] - y[t + j, c]) ** 2 for j in range(size) for c in range(x.shape[1])))
        for s in range(len(x) - size + 1)
        for t in range(len(y) - size + 1)
    ]
    return sum(pairs) / len(pairs) if pairs else 0.0


def matrix(value, X, Y, *arguments):
    return np.array([[value(x, y, *arguments) for y in Y] for x in X])


def dense(features):
    return features.toarray() if sparse.issparse(features) else features


def texts(seed, lengths, letters="ACGT"):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), length)) for length in lengths]


def series(seed, lengths, d=2):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, d)) for length in lengths]


# --- symbols


@example(X=["ANC", "NN", "ACGR"], order=1, lam=0.7)
@settings(max_examples=30, deadline=None)
@given(
    X=st.lists(st.text("ACGTRY", min_size=1, max_size=7), min_size=1, max_size=4), order=st.integers(0, 2), lam=LAMBDAS
)
def test_all_ways_give_the_sum_over_pairs_of_words(X, order, lam):
    expected = matrix(word_value, X, X, order + 1, lam, IUPAC)
    for method in ("dense", "sparse"):
        embedding = EmpiricalMeanMap(order, lam, "dna", method)
        features = embedding.fit_transform(X)
        assert sparse.issparse(features) == (method == "sparse")
        assert features.shape == (len(X), embedding.n_features_out_)
        assert_allclose(dense(features @ features.T), expected, rtol=1e-12, atol=1e-13)
    for method in ("auto", "dense", "direct"):
        kernel = EmpiricalMean(order, lam, "dna", method)
        assert_allclose(kernel(X), expected, rtol=1e-12, atol=1e-13)
        assert_allclose(kernel(X, X[:1]), expected[:, :1], rtol=1e-12, atol=1e-13)
        assert_allclose(kernel.diag(X), np.diagonal(expected), rtol=1e-12, atol=1e-13)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.integers(0, 30), lam=LAMBDAS, method=st.sampled_from(["auto", "direct"]))
def test_kernels_are_symmetric_and_positive_semidefinite(seed, order, lam, method):
    X = texts(seed, np.random.default_rng(seed).integers(1, 60, 8))
    K = EmpiricalMean(order, lam, method=method)(X)
    assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * max(K.max(), 1.0)


@pytest.mark.parametrize("size", [9, 12, 33])
def test_long_words_are_compared_directly(size):
    X, Y = texts(0, [40, 5, 35, 20], "ab"), texts(1, [36, 50], "ab")
    kernel = EmpiricalMean(size - 1, 0.2, method="direct")
    assert_allclose(kernel(X, Y), matrix(word_value, X, Y, size, 0.2, {}), rtol=1e-12, atol=1e-15)
    assert_allclose(kernel(X), matrix(word_value, X, X, size, 0.2, {}), rtol=1e-12, atol=1e-15)


def test_repeated_words_are_compared_once():
    packed = check_objects(["abababab", "b", "bbbbb"])
    words = distinct_words(packed.values, packed.offsets, 3)
    assert_array_equal(words.bounds, [0, 2, 2, 3])
    assert_array_equal(words.starts, [0, 1, 9])
    assert_array_equal(words.counts, [3, 3, 3])
    many = texts(0, [6] * 300)  # more sequences than a byte can number
    assert_allclose(EmpiricalMean(2, method="direct")(many), EmpiricalMean(2, method="dense")(many), rtol=1e-12)


def test_larger_words_give_the_same_in_all_ways():
    X = texts(3, [30, 200, 4, 77])
    expected = EmpiricalMean(4, 0.7, method="direct")(X)
    for method in ("dense", "sparse"):
        features = EmpiricalMeanMap(4, 0.7, "dna", method).fit_transform(X)
        assert_allclose(dense(features @ features.T), expected, rtol=1e-12)


@pytest.mark.parametrize("order", [0, 2])
def test_infinite_sharpness_is_the_spectrum_of_frequencies(order):
    X = ["ACCA", "GATTACA", "AC", "ACNG"]
    for method in ("dense", "sparse"):
        expected = Spectrum(order + 1, "dna", sparse=method == "sparse", normalize="frequency").fit(X)
        embedding = EmpiricalMeanMap(order, math.inf, "dna", method).fit(X)
        assert_array_equal(embedding.get_feature_names_out(), expected.get_feature_names_out())
        assert_allclose(dense(embedding.transform(X)), dense(expected.transform(X)), rtol=1e-15)
    # It is the limit, too.
    K = EmpiricalMean(order, math.inf, "dna")(X)
    assert_allclose(EmpiricalMean(order, 40.0, "dna")(X), K, rtol=0, atol=1e-15)


def test_without_sharpness_all_words_are_alike():
    X = ["abb", "b", "ab", "bbbbb"]
    expected = np.outer([1, 0, 1, 1], [1, 0, 1, 1])
    for method in ("dense", "sparse"):
        features = dense(EmpiricalMeanMap(1, 0.0, method=method).fit_transform(X))
        assert features.shape[1] == (4 if method == "dense" else 1)  # patterns of weight zero have no columns
        assert_allclose(features @ features.T, expected, rtol=1e-14)
    for method in ("dense", "direct"):
        assert_allclose(EmpiricalMean(1, 0.0, method=method)(X), expected, rtol=1e-14)


def test_gapped_words_are_weighted_frequencies():
    embedding = EmpiricalMeanMap(1, 1.0, method="sparse").fit(["aba"])
    names = list(embedding.get_feature_names_out())
    assert names == ["aa", "ab", "ba", "bb", "a.", "b.", ".a", ".b", ".."]
    e = math.exp(-1.0)
    one, none = math.sqrt(e * (1 - e)), e
    expected = {"ab": (1 - e) / 2, "ba": (1 - e) / 2, "a.": one / 2, "b.": one / 2, ".a": one / 2, ".b": one / 2}
    row = embedding.transform(["aba"])
    assert dict(zip(np.array(names)[row.indices], row.data)) == pytest.approx({**expected, "..": none}, rel=1e-14)
    assert list(EmpiricalMeanMap(1, method="sparse").fit([["up", "down"]]).get_feature_names_out())[4] == "down,."


def test_order_zero_compares_frequencies_of_symbols():
    frequencies = np.array([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]])
    e = math.exp(-0.6)
    expected = (1 - e) * frequencies @ frequencies.T + e
    assert_allclose(EmpiricalMean(0, 0.6)(["aaba", "cb"]), expected, rtol=1e-14)
    features = EmpiricalMeanMap(0, 0.6).fit_transform(["aaba", "cb"])
    assert_allclose(features @ features.T, expected, rtol=1e-14)


def test_the_way_is_chosen_by_size():
    X = ["ACGTACGTACGT"]
    chosen = [EmpiricalMeanMap(order, 1.0, "dna").fit(X).method_ for order in (0, 5, 6, 9)]
    assert chosen == ["dense", "dense", "sparse", "sparse"]
    assert isinstance(EmpiricalMeanMap(5, 1.0, "dna").fit_transform(X), np.ndarray)
    assert sparse.issparse(EmpiricalMeanMap(6, 1.0, "dna").fit_transform(X))
    for params in ({"order": 10}, {"order": 12, "method": "dense"}, {"order": 12, "method": "sparse"}):
        size = params["order"] + 1
        message = rf"words of {size} out of 4 symbols.*4\*\*{size} dense features, or 5\*\*{size} columns"
        with pytest.raises(ValueError, match=message):
            EmpiricalMeanMap(alphabet="dna", **params).fit(X)
    with pytest.raises(ValueError, match=r"Gram\(EmpiricalMean\(19, 0.5\)\)"):
        EmpiricalMeanMap(19, 0.5, "protein").fit(X)
    with pytest.raises(ValueError, match=r"method='dense' needs 4\*\*15 numbers for each of 2 objects"):
        EmpiricalMean(14, method="dense")(X)
    assert EmpiricalMean(10)(X)[0, 0] > 0


def test_the_kernel_takes_the_lesser_work(monkeypatch):
    used = []

    def spy(name):
        function = getattr(kernels, name)
        monkeypatch.setattr(kernels, name, lambda *arguments: used.append(name) or function(*arguments))

    import genkern.kernels.empirical as kernels

    spy("tensor_features")
    spy("word_means")
    EmpiricalMean(2)(texts(0, [50, 60]))
    EmpiricalMean(2)(texts(0, [5, 6]))
    EmpiricalMean(9)(texts(0, [50, 60]))
    assert used == ["tensor_features", "word_means", "word_means"]


def test_kernels_compare_objects_of_different_alphabets():
    X, Y = ["abab", "bb"], ["cbcb", "dd", "bd"]  # codes of one are not those of the other
    expected = matrix(word_value, X, Y, 2, 0.5, {})
    for method in ("dense", "direct"):
        assert_allclose(EmpiricalMean(1, 0.5, method=method)(X, Y), expected, rtol=1e-13)
    expected = (1 + math.exp(-0.5) + 2 * math.exp(-1)) / 4
    assert_allclose(EmpiricalMean(1, 0.5)([[0, 1, 0]], [[5, 1, 0]]), [[expected]], rtol=1e-13)


# --- numbers


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.integers(0, 3), d=st.integers(1, 3), lam=st.sampled_from([0.0, 0.4, 3.0]))
def test_kernels_of_numbers_give_the_sum_over_pairs_of_windows(seed, order, d, lam):
    rng = np.random.default_rng(seed)
    X, Y = series(seed, rng.integers(1, 25, 4), d), series(seed + 1, rng.integers(1, 25, 3), d)
    kernel = EmpiricalMean(order, lam)
    assert_allclose(kernel(X, Y), matrix(window_value, X, Y, order + 1, lam), rtol=1e-12, atol=1e-15)
    K = kernel(X)
    assert_array_equal(K, K.T)
    assert_allclose(K, matrix(window_value, X, X, order + 1, lam), rtol=1e-12, atol=1e-15)
    assert np.linalg.eigvalsh(K).min() >= -1e-12


def test_far_points_and_large_numbers_are_no_trouble():
    x = np.array([[1e8], [1e8 + 1]])
    assert_allclose(EmpiricalMean(0, 1.0)([x], [x]), [[(1 + math.exp(-0.5)) / 2]], rtol=1e-15)
    huge = [np.array([[1e200]]), np.array([[-1e200]])]
    assert_array_equal(EmpiricalMean(0, 1.0)(huge), np.eye(2))
    assert_array_equal(EmpiricalMean(0, 0.0)(huge), np.ones((2, 2)))


@pytest.mark.parametrize("order", [0, 2])
def test_errors_of_random_features_fall_with_the_root_of_their_number(order):
    X = series(5, [30, 40, 25, 2])
    exact = EmpiricalMean(order, 0.8)(X)

    def errors(count):
        found = []
        for seed in range(30):
            features = EmpiricalMeanMap(order, 0.8, n_components=count, random_state=seed).fit_transform(X)
            found.append(features @ features.T - exact)
        return np.array(found)

    few, many = errors(32), errors(512)
    ratio = np.sqrt((few**2).mean() / (many**2).mean())
    assert 2.5 < ratio < 6.5  # four, up to chance
    assert np.abs(many.mean(axis=0)).max() < 4 * many.std(axis=0).max() / math.sqrt(30)
    assert (X[3].shape[0] > order) == bool(exact[3].any())
    features = EmpiricalMeanMap(order, 0.8).fit_transform(X)
    assert features.shape == (4, 256)
    assert features[3].any() == bool(exact[3].any())


def test_windows_of_a_series_are_stacked_observations():
    x = series(1, [9])[0]
    stacked = np.concatenate([x[:-2], x[1:-1], x[2:]], axis=1)
    one, other = EmpiricalMeanMap(2, 0.5), EmpiricalMeanMap(0, 0.5)
    assert_allclose(one.fit_transform([x]), other.fit_transform([stacked]), rtol=1e-13)
    assert list(one.get_feature_names_out()[:2]) == ["fourier[0]", "fourier[1]"]


def test_tables_are_series_and_bags_are_lists():
    table = np.random.default_rng(0).standard_normal((3, 6))
    listed = [row[:, None] for row in table]
    assert_allclose(EmpiricalMean(1)(table), EmpiricalMean(1)(listed), rtol=1e-15)
    assert_allclose(EmpiricalMeanMap(1).fit_transform(table), EmpiricalMeanMap(1).fit_transform(listed), rtol=1e-15)


# --- both


@pytest.mark.parametrize("method", ["dense", "sparse", "fourier"])
def test_rows_do_not_depend_on_blocks_or_threads(method, monkeypatch):
    X = series(0, [5, 1, 8, 30, 2]) if method == "fourier" else texts(0, [5, 1, 8, 30, 2])
    expected = dense(EmpiricalMeanMap(1, method=method).fit_transform(X))
    monkeypatch.setattr("genkern.features.streaming.BATCH_POSITIONS", 7)
    for n_jobs in (1, 2):
        assert_array_equal(dense(EmpiricalMeanMap(1, method=method, n_jobs=n_jobs).fit_transform(X)), expected)
    embedding = EmpiricalMeanMap(1, method=method).fit(X)
    assert_array_equal(dense(embedding.transform(X[3:4]))[0], expected[3])


def test_a_changed_parameter_waits_for_fit():
    embedding = EmpiricalMeanMap(1).fit(["ab"])
    features = embedding.transform(["abba"])
    assert_array_equal(embedding.set_params(order=2, lam=5.0).transform(["abba"]), features)


def test_exponentials_and_learners_on_top():
    X = [*texts(0, [20] * 12, "aab"), *texts(1, [20] * 12, "abb")]
    y = np.repeat([0, 1], 12)
    kernel, features = EmpiricalMean(2, 1.0), EmpiricalMeanMap(2, 1.0).fit_transform(X)
    assert_allclose(kernel.exp(3.0)(X), Linear().exp(3.0)(features), rtol=1e-11)
    assert_allclose(Gram(kernel.exp(3.0), n_jobs=2, block_size=5).fit_transform(X), kernel.exp(3.0)(X), rtol=1e-12)
    assert_allclose((kernel + EmpiricalMean(0))(X), kernel(X) + EmpiricalMean(0)(X), rtol=1e-14)
    learner = make_pipeline(Gram(EmpiricalMean(2, 1.0).normalized()), SVC(kernel="precomputed", C=10.0))
    search = GridSearchCV(learner, {"gram__kernel__kernel__lam": [0.5, math.inf]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.6
    assert make_pipeline(EmpiricalMeanMap(2, method="sparse"), LinearSVC(C=10.0)).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize(
    ("make", "X", "message"),
    [
        (lambda: EmpiricalMeanMap(order=-1), ["ab"], "'order' parameter of EmpiricalMeanMap must be an int >= 0"),
        (lambda: EmpiricalMeanMap(lam=-1.0), ["ab"], "'lam' parameter of EmpiricalMeanMap must be a number >= 0"),
        (lambda: EmpiricalMeanMap(lam=math.inf), [np.zeros(2)], "'lam' parameter of EmpiricalMeanMap must be a finite"),
        (lambda: EmpiricalMeanMap(method="direct"), ["ab"], "'method' parameter of EmpiricalMeanMap must be one of"),
        (lambda: EmpiricalMeanMap(method="fourier"), ["ab"], "method='fourier' is for numbers. Got symbols"),
        (lambda: EmpiricalMeanMap(method="dense"), [np.zeros(2)], "method='dense' is for symbols. Got numbers"),
        (lambda: EmpiricalMeanMap(n_components=0), [np.zeros(2)], "'n_components' parameter of EmpiricalMeanMap"),
        (lambda: EmpiricalMeanMap(), [[0.0], [1.0, math.nan]], "object 1, position 1, column 0 is NaN"),
        (lambda: Gram(EmpiricalMean()), [[0.0], [1.0, math.nan]], "EmpiricalMean: object 1, position 1, column 0"),
        (lambda: Gram(EmpiricalMean(order=0.5)), ["ab"], "'order' parameter of EmpiricalMean"),
        (lambda: Gram(EmpiricalMean(lam=math.inf)), [np.zeros(2)], "'lam' parameter of EmpiricalMean must be a finite"),
        (lambda: Gram(EmpiricalMean(method="sparse")), ["ab"], "'method' parameter of EmpiricalMean must be one of"),
        (lambda: Gram(EmpiricalMean(method="dense")), [np.zeros(2)], "method='dense' is for symbols"),
    ],
)
def test_wrong_settings_and_inputs_are_refused(make, X, message):
    with pytest.raises(ValueError, match=message):
        make().fit_transform(X)


def test_what_cannot_be_compared_is_refused():
    kernel = EmpiricalMean(0)
    with pytest.raises(TypeError, match="symbols cannot be compared with numbers"):
        kernel(["ab"], [np.zeros(2)])
    with pytest.raises(TypeError, match="symbols cannot be compared with numbers"):
        kernel([np.zeros(2)], ["ab"])
    with pytest.raises(ValueError, match="X have 2 channels and those of Y 1"):
        kernel([np.zeros((3, 2))], [np.zeros((3, 1))])
    with pytest.raises(ValueError, match="cannot compare"):
        kernel(check_objects(["AC"], alphabet="dna"), check_objects(["AC"], alphabet="protein"))
    with pytest.raises(ValueError, match="'Z' is not in"):
        EmpiricalMeanMap(0, alphabet="ab").fit(["ab"]).transform(["aZ"])
    with pytest.raises(ValueError, match="object 0 has 1 channels"):
        EmpiricalMeanMap(0).fit([np.zeros((3, 2))]).transform([np.zeros((3, 1))])
