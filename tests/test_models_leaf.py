import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import integrate, stats

from genkern import (
    HMM,
    KDE,
    Categorical,
    CategoricalEstimator,
    FactorialHMM,
    Gaussian,
    GaussianEstimator,
    StudentT,
    as_alphabet,
    check_objects,
    check_score,
)
from genkern.models.families.gaussian_floor import floor_eigenvalues
from genkern.models.value import Value
from tests.cases import point_density, random_leaf, random_sequence

FAMILIES = ("categorical", "isotropic", "diagonal", "full")


@pytest.mark.parametrize("family", FAMILIES)
def test_log_density_is_that_of_scipy(family):
    rng = np.random.default_rng(0)
    leaf = random_leaf(rng, family, (3,))
    points = random_sequence(rng, family, 20, missing=0.3)
    expected = [[np.log(point_density(leaf, k, x)) for k in range(3)] for x in points]
    np.testing.assert_allclose(leaf.log_density(points), expected, rtol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_own_log_density_takes_each_objects_members(family):
    rng = np.random.default_rng(1)
    stack = random_leaf(rng, family, (2, 3))
    X = [random_sequence(rng, family, 4), random_sequence(rng, family, 5)]
    packed = stack.pack_sequences(X)
    if family == "categorical":
        evidence = stack.evidence(packed)
        own = np.log(evidence.table.reshape(2, 3, 3)[np.repeat([0, 1], [4, 5]), packed.values])
    else:
        own = stack.own_log_density(packed)
    np.testing.assert_allclose(own[:4], stack[0].log_density(packed.values[:4]), rtol=1e-12)
    np.testing.assert_allclose(own[4:], stack[1].log_density(packed.values[4:]), rtol=1e-12)


def test_gaussian_density_integrates_to_one():
    model = Gaussian([0.3, -0.2], [[1.0, 0.4], [0.4, 0.7]])

    def density(point):
        return np.exp(model.log_density(point)[0])

    total, _ = integrate.dblquad(lambda y, x: density(np.array([[x, y]])), -6, 6, -6, 6, epsabs=1e-5)
    assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_of_bags_match_differences(family):
    rng = np.random.default_rng(2)
    model = random_leaf(rng, family, (), 2)
    X = [random_sequence(rng, family, 3, 2, missing=0.3), random_sequence(rng, family, 1, 2)]
    assert max(check_score(model, X).values()) < 1e-7


@pytest.mark.parametrize("family", FAMILIES)
def test_sample_and_density_agree(family):
    rng = np.random.default_rng(3)
    model = random_leaf(rng, family, (), 2)
    bags = model.sample(4000, length=1, rng=4)
    if family == "categorical":
        counts = np.bincount(np.ravel(bags), minlength=2)
        assert stats.chisquare(counts, 4000 * model.probs).pvalue > 1e-3
    else:
        # The Mahalanobis distance of a Gaussian vector is chi-square distributed.
        gaps = np.concatenate(bags) - model.mean
        cov = {"isotropic": lambda c: c * np.eye(2), "diagonal": np.diag, "full": lambda c: c}[family](model.cov)
        squares = np.einsum("ta,ab,tb->t", gaps, np.linalg.inv(cov), gaps)
        assert stats.kstest(squares, stats.chi2(2).cdf).pvalue > 1e-3
        correlation = gaps.T @ gaps / len(gaps)
        np.testing.assert_allclose(correlation, cov, atol=0.2)


def test_ambiguity_code_has_its_members_probability_and_passes_derivatives_on():
    model = Categorical([0.1, 0.2, 0.3, 0.4], alphabet="dna")
    np.testing.assert_allclose(np.exp(model.log_prob(["R", "N", "A", "y"])), [0.4, 1.0, 0.1, 0.6], rtol=1e-12)
    assert max(check_score(model, ["ARN", "yyK-"]).values()) < 1e-7


def chain_of(emissions):
    return HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], emissions)


def test_gaps_among_tokens_are_summed_out_like_n():
    rows = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]
    X = [["A", float("nan"), "R"], ["C", None]]
    for model in (Categorical(rows[0], "dna"), chain_of(Categorical(rows, "dna"))):
        np.testing.assert_array_equal(model.log_prob(X), model.log_prob(["ANR", "CN"]))
        assert max(check_score(model, X).values()) < 1e-7


def test_remedies_for_missing_symbols_and_for_layouts_work():
    probs = [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]
    for X, gap in (([np.array([0, 1, np.nan])], float("nan")), ([np.array([0, 1, 5])], 5)):
        shown = r"float\('nan'\)" if gap != 5 else "5"
        match = rf"^Categorical: object 0, position 2: .*alphabet=as_alphabet\(3, missing={shown}\)"
        with pytest.raises(ValueError, match=match):
            chain_of(Categorical(probs)).log_prob(X)
        mended = chain_of(Categorical(probs, alphabet=as_alphabet(3, missing=gap)))
        np.testing.assert_allclose(mended.log_prob(X), mended.log_prob([[0, 1]]), rtol=1e-12)
    series = chain_of(Gaussian(np.zeros((2, 2)), np.ones((2, 2))))
    X = [np.arange(10.0).reshape(2, 5)]
    with pytest.raises(ValueError, match=r'check_objects\(X, kind="series", layout="channels-first"\)'):
        series.log_prob(X)
    turned = series.log_prob(check_objects(X, kind="series", layout="channels-first"))
    np.testing.assert_array_equal(turned, series.log_prob([np.transpose(x) for x in X]))


def test_a_missing_symbol_of_a_large_vocabulary_takes_little_memory():
    size = 30_000
    words = [f"word{i}" for i in range(size)]
    alphabet = as_alphabet(words, missing="?")
    model = Categorical(np.full(size, 1 / size), alphabet)
    chain = chain_of(Categorical(np.full((2, size), 1 / size), alphabet))
    X = [["word3", "?", "word7"], ["?"]]
    tracemalloc.start()
    try:
        np.testing.assert_allclose(model.log_prob(X), [-2 * np.log(size), 0.0], atol=1e-9)
        np.testing.assert_allclose(chain.log_prob(X), [-2 * np.log(size), 0.0], atol=1e-9)
        found = chain.statistics(X)
        fitted = CategoricalEstimator(alphabet).fit(X).model_
        predicted = CategoricalEstimator(alphabet, estimate="predictive").fit(X).model_
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * size * 8  # a table of all codes by all symbols has 30001 * size
    counts = found["emissions.probs"] * chain.emissions.probs  # a missing symbol is any of them
    np.testing.assert_allclose(counts.sum(axis=(1, 2)), [3, 1], rtol=1e-9)
    np.testing.assert_allclose(counts[1, :, 3].sum(), 1 / size, rtol=1e-9)
    assert fitted.probs[3] == pytest.approx(1.01 / (2 + 0.01 * size), rel=1e-9)
    assert predicted.probs[3] == pytest.approx(2.01 / (2 + 1.01 * size), rel=1e-9)


def test_categorical_estimate_is_smoothed_frequency():
    model = CategoricalEstimator(pseudocount=0.5).fit(["abba", "c"]).model_
    np.testing.assert_allclose(model.probs, np.array([2.5, 2.5, 1.5]) / 6.5, rtol=1e-12)


def test_categorical_estimate_with_ambiguous_symbols_is_the_likelihoods_maximum():
    X = ["AAR", "GTN", "R"]
    estimator = CategoricalEstimator("dna", pseudocount=0.0)
    model = estimator.fit(X).model_
    best = model.log_prob(X).sum()
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = 0.99 * model.probs + 0.01 * rng.dirichlet(np.ones(4))
        assert Categorical(other, "dna").log_prob(X).sum() <= best + 1e-9


@pytest.mark.parametrize("covariance", ["isotropic", "diagonal", "full"])
def test_gaussian_estimate_is_mean_and_covariance(covariance):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 3)) + 100.0
    model = GaussianEstimator(covariance, min_covar=0.0).fit(X).model_
    np.testing.assert_allclose(model.mean, X.mean(axis=0), rtol=1e-12)
    expected = np.cov(X.T, bias=True)
    if covariance != "full":
        expected = np.diag(expected) if covariance == "diagonal" else np.trace(expected) / 3
    np.testing.assert_allclose(model.cov, expected, rtol=1e-9)


def test_gaussian_estimate_with_missing_entries_is_the_likelihoods_maximum():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    X[rng.random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    model = GaussianEstimator("full", min_covar=0.0).fit(X).model_
    # At the maximum the derivatives of the total log-likelihood vanish.
    np.testing.assert_allclose(model.log_prob_grad(X).sum(axis=0), 0.0, atol=1e-5)


def test_gaussian_floor_is_kept_and_constant_data_are_legal():
    model = GaussianEstimator("full", min_covar=0.01).fit(np.ones((5, 2))).model_
    assert np.linalg.eigvalsh(model.cov).min() == pytest.approx(0.01)


@pytest.mark.parametrize("family", FAMILIES)
def test_fit_each_equals_fits_one_by_one(family):
    rng = np.random.default_rng(7)
    X = [random_sequence(rng, family, length) for length in (5, 9, 4)]
    estimator = CategoricalEstimator(3) if family == "categorical" else GaussianEstimator(family)
    for x, model in zip(X, estimator.fit_each(X)):
        alone = estimator.fit([x]).model_
        assert type(model) is type(alone)
        for name in ("probs",) if family == "categorical" else ("mean", "cov"):
            np.testing.assert_allclose(getattr(model, name), getattr(alone, name), rtol=1e-12)


def test_maximize_gives_the_fit():
    X = ["abba", "c"]
    estimator = CategoricalEstimator("abc", pseudocount=0.1)
    statistics = Categorical([0.2, 0.3, 0.5], "abc").statistics(X)
    np.testing.assert_allclose(estimator.maximize(statistics).probs, estimator.fit(X).model_.probs, rtol=1e-12)


# --- values


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_frozen_equal_by_content_and_pickle(family):
    leaf = random_leaf(np.random.default_rng(8), family, (2, 3))
    twin = random_leaf(np.random.default_rng(8), family, (2, 3))
    assert leaf == twin
    assert hash(leaf) == hash(twin)
    assert leaf != leaf[0]
    for copied in (pickle.loads(pickle.dumps(leaf)), copy.deepcopy(leaf)):
        assert copied == leaf
        for name in leaf._fields:
            value = getattr(copied, name)
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable
    with pytest.raises(AttributeError, match="cannot be changed"):
        leaf.mean = 0
    assert Value.stack.__func__(type(leaf), [leaf[0], leaf[1]]) == leaf
    assert leaf.unstack() == [leaf[0], leaf[1]]
    assert leaf[0].unstack()[2] == leaf[0, 2]
    with pytest.raises(TypeError, match="no len"):
        len(leaf[0, 0])


def test_values_do_not_alias_the_callers_arrays():
    probs = np.array([0.5, 0.5])
    model = Categorical(probs)
    probs[0] = 0.9
    np.testing.assert_array_equal(model.probs, [0.5, 0.5])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt", "raw"])
def test_parameters_round_trip(family, coordinates):
    leaf = random_leaf(np.random.default_rng(9), family, (3,))
    vector = leaf.parameters(coordinates)
    assert len(vector) == len(leaf.parameter_names)
    back = leaf.with_parameters(vector, coordinates)
    for name in leaf._fields:
        if isinstance(getattr(leaf, name), np.ndarray):
            np.testing.assert_allclose(getattr(back, name), getattr(leaf, name), rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Categorical([0.5, 0.6]), "sum to 1.*divide it by its sum"),
        (lambda: Categorical([-0.5, 1.5]), "negative"),
        (lambda: Categorical([0.5, 0.5], alphabet="dna"), "4 symbols"),
        (lambda: Gaussian([0.0, 0.0], [[1.0, 0.5], [0.2, 1.0]]), "symmetric"),
        (lambda: Gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "positive semi-definite"),
        (lambda: Gaussian(np.zeros((2, 2)), [np.ones((2, 2)), [[1, 2], [2, 1]]]), r"Member \(1,\) has eigenvalue -1"),
        (lambda: Gaussian(np.zeros((2, 2)), [np.eye(2), [[1, 0.5], [0, 1]]]), r"Member \(1,\) is off by 0.5"),
        (lambda: Gaussian(np.zeros((2, 2)), [[1.0, 0.0], [1.0, -2.0]]), r"Got -2 at index \(1, 1\)"),
        (lambda: Gaussian([0.0, 0.0], [1.0, -1.0]), "negative"),
        (lambda: Gaussian([0.0, 0.0], [1.0, 1.0, 1.0]), "isotropic"),
        (lambda: Gaussian([0.0, np.nan], 1.0), "finite"),
        (lambda: Gaussian([0.0, 0.0], [1.0, 0.0]).log_prob(np.zeros((1, 2))), "singular.*min_covar"),
        (lambda: Gaussian([0.0, 0.0], 1.0).log_prob(np.zeros((1, 3))), "2"),
        (lambda: Categorical([1.0, 0.0], "ab").statistics(["a", "ab"]), "object 1 has probability zero"),
    ],
)
def test_errors_say_what_and_what_to_do(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_raised_covariances_are_symmetric_to_the_last_bit_and_others_stay():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(6, 7, 7)) * np.array([1.0, 1.0, 1.0, 1.0, 1e-3, 1e-3, 1e-3])
    cov, floor = roots.swapaxes(1, 2) @ roots, np.linspace(0.1, 0.7, 7)
    cov[0] = np.diag(floor + 1.0)
    found = floor_eigenvalues(cov, floor)
    np.testing.assert_array_equal(found, found.swapaxes(1, 2))
    np.testing.assert_array_equal(found[0], cov[0])
    units = np.sqrt(floor)[:, None] * np.sqrt(floor)
    assert np.linalg.eigvalsh(found / units).min() >= 1.0 - 1e-12
    assert np.linalg.eigvalsh(found - cov).min() >= -1e-12  # nothing is taken away


def test_singular_covariances_are_drawn_from():
    half = np.array([[1.0, 2.0], [1e3, 2e3]])
    flat = Gaussian(np.zeros(2), half @ half.T)
    x = np.concatenate(flat.sample(4000, rng=0))
    np.testing.assert_allclose(x[:, 1], 1e3 * x[:, 0], rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(x[:, 0].var(), 5.0, rtol=0.1)
    np.testing.assert_array_equal(Gaussian([1.0, 2.0], np.zeros((2, 2))).sample(1, rng=0)[0], [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"singular covariance \(channel 0\)"):
        Gaussian([1.0, 2.0], 0.0).information([1])


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Gaussian([0.0, 1e80], 1.0), "mean"),
        (lambda: Gaussian([0.0, 1.0], [1.0, 1e-170]), "cov"),
        (lambda: Gaussian([0.0, 1.0], 1e170 * np.eye(2)), "cov"),
        (lambda: KDE([[1e80]], 1.0), "points"),
        (lambda: KDE([[1.0]], 1e-170), "variance"),
        (lambda: StudentT([0.0], [1.0], 1e-9), "df"),
        (lambda: FactorialHMM([[1.0]], [[[1.0]]], [[[1e80]]], 1.0), r"means\[0\]"),
    ],
)
def test_parameters_whose_squares_leave_the_range_are_refused(make, name):
    with pytest.raises(ValueError, match=rf"'{name}' must be numbers up to .*Got .* at index .* Take other units"):
        make()
