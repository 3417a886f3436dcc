"""Fisher scores against finite differences, enumeration and closed forms."""

import warnings

import cases
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles_embed import complete_information, difference, log_prob, softmax
from skimage.feature import fisher_vector
from sklearn.mixture import GaussianMixture

import genkern
from genkern import (
    HMM,
    BlockNormalizer,
    Categorical,
    FisherScore,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    Mixture,
    MixtureEstimator,
)
from genkern.features import streaming as module
from genkern.models.base import Model
from genkern.models.value import Value
from tests.cases_zoo import ZOO, draw

COORDINATES = ("softmax", "ratio", "sqrt")
ENUMERABLE = {n for n, model in ZOO.items() if getattr(model, "alphabet", None) is not None and "stops" not in n} | {
    "HMM of symbols",
    "ClassMixture of sequences",
}


def random_hmm(seed, n=2, m=3, concentration=1.0):
    rng = np.random.default_rng(seed)
    start, steps, probs = (rng.dirichlet(np.full(k, concentration), shape) for k, shape in ((n, None), (n, n), (m, n)))
    return HMM(start, steps, Categorical(probs))


def random_sequences(seed, m=3, count=6, longest=7):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, m, length) for length in rng.integers(1, longest, count)]


def gram(features):
    return features @ features.T


def test_identity_scores_are_the_derivatives_of_the_likelihood():
    model, X = random_hmm(0), random_sequences(1, longest=5)
    eta = model.parameters("softmax")
    expected = [difference(lambda v, x=x: log_prob(v, 2, 3, x), eta) for x in X]
    features = FisherScore(model, information="identity").fit_transform(X)
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-9)


def test_complete_information_is_that_of_states_and_symbols_averaged_over_lengths():
    model = random_hmm(2, m=2)
    X = [[0], [0, 1, 1], [1, 1, 0], [1, 0]]
    eta = model.parameters("softmax")
    lengths = [len(x) for x in X]
    information = np.mean([complete_information(eta, 2, 2, length) for length in lengths], axis=0)
    scores = np.array([difference(lambda v, x=x: log_prob(v, 2, 2, x), eta) for x in X])
    expected = scores @ np.linalg.pinv(information, rcond=1e-7) @ scores.T
    np.testing.assert_allclose(gram(FisherScore(model).fit_transform(X)), expected, rtol=1e-6, atol=1e-8)
    scaled = scores / np.sqrt(np.diag(information))
    features = FisherScore(model, information="diagonal").fit_transform(X)
    np.testing.assert_allclose(features, scaled, rtol=1e-6, atol=1e-8)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), concentration=st.sampled_from([0.05, 1.0]), n=st.integers(1, 4))
def test_kernel_does_not_depend_on_the_coordinates(seed, concentration, n):
    model, X = random_hmm(seed, n=n, concentration=concentration), random_sequences(seed + 1)
    if np.isneginf(model.log_prob(X)).any():  # concentration 0.05 draws exact zeros now and then
        return
    reference = FisherScore(model).fit_transform(X)
    scale = 1.0 + np.abs(reference).max()
    for coordinates in ("ratio", "sqrt"):
        other = FisherScore(model, coordinates=coordinates).fit_transform(X)
        np.testing.assert_allclose(other, reference, rtol=0, atol=1e-7 * scale)


def test_empirical_kernel_without_ridge_does_not_depend_on_the_coordinates():
    model, X = random_hmm(3), random_sequences(4, count=40)
    grams = [gram(FisherScore(model, "empirical", c, ridge=0.0).fit_transform(X)) for c in COORDINATES]
    np.testing.assert_allclose(grams[1], grams[0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(grams[2], grams[0], rtol=0, atol=1e-8)


def test_empirical_features_have_unit_second_moment():
    model, X = random_hmm(5), random_sequences(6, count=60)
    features = FisherScore(model, information="empirical", ridge=0.0).fit_transform(X)
    values = np.linalg.eigvalsh(features.T @ features / len(X))
    assert np.all((np.abs(values) < 1e-8) | (np.abs(values - 1) < 1e-8))
    scores = model.log_prob_grad(X)
    moment = scores.T @ scores / len(X)
    ridged = moment + 0.1 * np.trace(moment) / len(moment) * np.eye(len(moment))
    expected = scores @ np.linalg.solve(ridged, scores.T)
    features = FisherScore(model, information="empirical", ridge=0.1).fit_transform(X)
    np.testing.assert_allclose(gram(features), expected, rtol=0, atol=1e-9)


def test_raw_derivatives_need_an_information_that_is_theirs():
    model, X = random_hmm(7), random_sequences(8)
    for information in ("identity", "empirical"):
        assert np.isfinite(FisherScore(model, information, "raw").fit_transform(X)).all()
    for information in ("complete", "diagonal", "exact"):
        with pytest.raises(ValueError, match="mean is not zero"):
            FisherScore(model, information, "raw").fit(X)


@pytest.mark.parametrize("ending", [None, "stop", "end"])
@pytest.mark.parametrize("family", ["categorical", "isotropic", "diagonal", "full"])
def test_features_are_roots_of_the_blocks_wherever_they_lie(family, ending):
    rng = np.random.default_rng(12)
    model = cases.random_hmm(rng, family, n=3, ending=ending)
    X = [cases.random_sequence(rng, family, length) for length in (1, 4, 6, 9)]
    scores = model.log_prob_grad(X)
    information = np.zeros((scores.shape[1], scores.shape[1]))
    for index, block in model.information([len(x) for x in X], "softmax"):
        information[np.ix_(index, index)] = block
    expected = scores @ np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ scores.T
    np.testing.assert_allclose(gram(FisherScore(model).fit_transform(X)), expected, rtol=1e-8, atol=1e-8)
    features = FisherScore(model, "diagonal").fit_transform(X)
    usable = np.diag(information) > 0
    np.testing.assert_allclose(
        features[:, usable], scores[:, usable] / np.sqrt(np.diag(information)[usable]), rtol=1e-10, atol=1e-12
    )


def test_zero_and_tiny_probabilities():
    X = ["aab", "ba", "abba", "c"]
    for tiny in (0.0, 1e-300, 1e-30, 1e-12):
        probs = np.array([[0.7, 0.3 - tiny, tiny], [0.2, 0.3, 0.5]])
        model = HMM([1.0 - tiny, tiny], [[0.5, 0.5], [tiny, 1.0 - tiny]], Categorical(probs, "abc"))
        X_possible = [x for x, logp in zip(X, model.log_prob(X)) if np.isfinite(logp)]
        reference = FisherScore(model).fit_transform(X_possible)
        assert np.isfinite(reference).all()
        assert np.abs(reference[:3]).max() < 10  # nothing is divided by the tiny information of what does not occur
        for coordinates in ("ratio", "sqrt"):
            other = FisherScore(model, coordinates=coordinates).fit_transform(X_possible)
            np.testing.assert_allclose(other, reference, rtol=1e-6, atol=1e-6)


def test_infinite_information_gives_zero_columns():
    model = Categorical([0.5, 0.5, 0.0], alphabet="abc")
    for information in ("complete", "diagonal"):
        features = FisherScore(model, information, "ratio").fit_transform(["aab", "ab", "bbb"])
        assert np.isfinite(features).all()
        assert not features[:, 2].any()
        assert features[:, :2].any()


def test_splice_site_kernel_counts_matches():
    # Jaakkola & Haussler's example: 25 independent uniform positions, as a left-right model that cannot wait.
    positions = 25
    start = np.eye(positions)[0]
    steps = np.eye(positions, k=1)
    steps[-1, -1] = 1.0
    model = HMM(start, steps, Categorical(np.full((positions, 4), 0.25), alphabet="dna"))
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), positions)) for _ in range(12)]
    X.append(X[0][:12] + X[1][12:])
    matches = np.array([[sum(a == b for a, b in zip(x, z)) for z in X] for x in X])
    np.testing.assert_allclose(gram(FisherScore(model).fit_transform(X)), 4 * matches - 25, rtol=0, atol=1e-9)


def test_bags_of_symbols():
    probs = np.array([0.5, 0.3, 0.2])
    X = ["aab", "c", "bbbb", "abc"]
    counts = np.array([[x.count(letter) for letter in "abc"] for x in X])
    sizes = counts.sum(axis=1)
    expected = ((counts / probs) @ counts.T - np.outer(sizes, sizes)) / sizes.mean()
    features = FisherScore(Categorical(probs, alphabet="abc")).fit_transform(X)
    np.testing.assert_allclose(gram(features), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cov", [2.0, [2.0, 0.5], [[2.0, 0.3], [0.3, 0.5]]])
def test_bags_of_vectors(cov):
    model = Gaussian([1.0, -1.0], cov)
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((size, 2)) for size in (1, 3, 2)]
    full = cov if np.ndim(cov) == 2 else np.diag(np.broadcast_to(cov, 2))
    roots = np.linalg.inv(np.linalg.cholesky(full))
    means, spreads = [], []
    for x in X:
        z = (x - [1.0, -1.0]) @ roots.T
        means.append(z.sum(axis=0))
        # unit-information coordinates of the covariance: (z z^T - I) / sqrt(2), of which a family sees a part
        squares = np.einsum("ta,tb->ab", z, z) - len(z) * np.eye(2)
        spreads.append(squares.ravel() / np.sqrt(2))
    spreads = np.array(spreads)
    if np.ndim(cov) == 0:
        spreads = (spreads[:, [0]] + spreads[:, [3]]) / np.sqrt(2)
    elif np.ndim(cov) == 1:
        spreads = spreads[:, [0, 3]]
    expected = (np.array(means) @ np.array(means).T + spreads @ spreads.T) / np.mean([len(x) for x in X])
    for coordinates in COORDINATES:
        features = FisherScore(model, coordinates=coordinates).fit_transform(X)
        np.testing.assert_allclose(gram(features), expected, rtol=0, atol=1e-10)


def test_length_norm_divides_scores():
    model, X = random_hmm(9), random_sequences(10)
    lengths = np.array([[len(x)] for x in X])
    plain = FisherScore(model).fit_transform(X)
    np.testing.assert_allclose(FisherScore(model, length_norm="length").fit_transform(X), plain / lengths, rtol=1e-12)
    np.testing.assert_allclose(
        FisherScore(model, length_norm="sqrt").fit_transform(X), plain / np.sqrt(lengths), rtol=1e-12
    )


def test_no_information_warns_and_gives_zeros():
    model = Categorical([1.0, 0.0], alphabet="ab")
    with pytest.warns(UserWarning, match="no information"):
        fitted = FisherScore(model).fit(["aa", "a"])
    assert not fitted.transform(["aaa"]).any()


def test_model_is_fitted_or_used_as_it_is():
    X = random_sequences(11, count=20)
    estimator = HMMEstimator(2, max_iter=3, tol=0)
    fitted = FisherScore(estimator).fit(X)
    assert fitted.model_ == HMMEstimator(2, max_iter=3, tol=0).fit(X).model_
    assert not hasattr(estimator, "model_")
    assert list(fitted.get_feature_names_out()) == fitted.model_.parameter_names
    same = FisherScore(fitted.model_).fit(X).transform(X)
    np.testing.assert_array_equal(same, fitted.transform(X))


def test_features_do_not_depend_on_blocks_or_threads(monkeypatch):
    rng = np.random.default_rng(0)
    emissions = Gaussian(rng.standard_normal((2, 3)), np.full((2, 3), 0.5))
    model = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], emissions)
    X = [rng.standard_normal((length, 3)) for length in rng.integers(1, 30, 50)]
    reference = FisherScore(model).fit_transform(X)
    monkeypatch.setattr(module, "BATCH_POSITIONS", 40)
    np.testing.assert_allclose(FisherScore(model).fit_transform(X), reference, rtol=0, atol=1e-12)
    np.testing.assert_allclose(FisherScore(model, n_jobs=2).fit_transform(X), reference, rtol=0, atol=1e-12)
    monkeypatch.setattr(module, "BATCH_NUMBERS", 1)
    np.testing.assert_allclose(FisherScore(model).fit_transform(X), reference, rtol=0, atol=1e-12)


def test_blocks_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "BATCH_POSITIONS", 10)
    packed = Categorical([0.5, 0.5]).pack([[0] * n for n in (4, 6, 1, 30, 2, 2)])
    bounds = [(part.start, part.stop) for part in module.parts_of(packed, width=1)]
    assert bounds == [(0, 2), (2, 3), (3, 4), (4, 6)]
    monkeypatch.setattr(module, "BATCH_NUMBERS", 8)
    assert [part.stop for part in module.parts_of(packed, width=8)] == [1, 2, 3, 4, 5, 6]


def test_impossible_object_is_named_by_its_index(monkeypatch):
    monkeypatch.setattr(module, "BATCH_POSITIONS", 4)
    model = HMM([1.0], [[1.0]], Categorical([[0.5, 0.5, 0.0]], alphabet="abc"))
    with pytest.raises(ValueError, match="object 5 "):
        FisherScore(model, information="identity").fit(["ab"]).transform(["aab", "ab", "ba", "ab", "a", "bac", "a"])


@pytest.mark.parametrize(
    ("settings_", "error"),
    [
        ({"information": "exactly"}, "information"),
        ({"coordinates": "log"}, "coordinates"),
        ({"length_norm": "log"}, "length_norm"),
        ({"ridge": -1.0}, "ridge"),
    ],
)
def test_wrong_settings_are_refused(settings_, error):
    with pytest.raises(ValueError, match=error):
        FisherScore(random_hmm(0), **settings_).fit([[0, 1]])


def test_what_is_no_estimator_of_models_is_refused():
    with pytest.raises(TypeError, match="HMMEstimator"):
        FisherScore("hmm").fit(["ab"])


def test_constant_feature_columns_raise_no_numpy_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FisherScore(HMM([1.0], [[1.0]], Categorical([[0.5, 0.5]]))).fit_transform([[0, 1], [1]])


# --- every model


def test_the_zoo_has_a_member_of_every_public_family():
    public = {value for name in genkern.__all__ if isinstance(value := getattr(genkern, name), type)}
    scored = {family for family in public - {Model} if issubclass(family, Model) and hasattr(family, "log_prob_grad")}
    assert scored == {type(model) for model in ZOO.values()}


def test_models_without_scores_are_refused():
    class Silent(Value):
        _fields = ()

    with pytest.raises(TypeError, match="Silent"):
        FisherScore(Silent()).fit(["ab"])


@pytest.mark.parametrize("name", ZOO)
def test_every_model_has_scores_in_every_information(name):
    model = ZOO[name]
    X = draw(model)
    for information in ("identity", "diagonal", "complete", "empirical"):
        features = FisherScore(model, information).fit_transform(X)
        assert features.shape == (len(X), len(model.parameter_names) - (len(model.class_models) == 2))
        assert np.isfinite(features).all()
    for coordinates in ("softmax", "raw"):
        features = FisherScore(model, "identity", coordinates).fit_transform(X)
        eta = model.parameters(coordinates)
        expected = difference(lambda v: model.with_parameters(v, coordinates).log_prob(X[-1:])[0], eta, step=1e-3)  # noqa: B023
        free = expected[1:] if len(model.class_models) == 2 and coordinates != "raw" else expected
        np.testing.assert_allclose(features[-1], free, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ZOO)
def test_no_model_has_a_kernel_that_depends_on_the_coordinates(name):
    model = ZOO[name]
    X = draw(model)
    for information in ("complete", "empirical", *(["exact"] if name in ENUMERABLE else [])):
        first, *others = (gram(FisherScore(model, information, c, ridge=0.0).fit_transform(X)) for c in COORDINATES)
        assert np.abs(first).max() > 0.1
        for other in others:
            np.testing.assert_allclose(other, first, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", sorted(set(ZOO) - ENUMERABLE))
def test_what_cannot_be_enumerated_has_no_exact_information(name):
    reason = "needs a distribution over the objects of each length" if "stops" in name else "needs a model of symbols"
    with pytest.raises(ValueError, match=reason):
        FisherScore(ZOO[name], "exact").fit(draw(ZOO[name]))


# --- Fisher vectors


def points(seed, count=60, d=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, d)) + 3.0 * rng.integers(0, 2, (count, 1))


def test_fisher_vectors_are_those_of_scikit_image():
    k, d = 3, 3
    theirs = GaussianMixture(k, covariance_type="diag", random_state=0).fit(points(0))
    model = Mixture(theirs.weights_, Gaussian(theirs.means_, theirs.covariances_))
    bags = np.split(points(1), [5, 30, 40])
    expected = np.array([fisher_vector(bag, theirs) for bag in bags])
    expected[:, k + k * d :] *= -1.0  # the derivative by standard deviations has its sign turned there
    typical = np.sqrt(np.mean([len(bag) for bag in bags]))  # points of information, of which they take one
    shares, rest = slice(0, k), slice(k, None)
    vectors = typical * FisherScore(model, "diagonal", length_norm="length").fit_transform(bags)
    np.testing.assert_allclose(vectors[:, rest], expected[:, rest], rtol=1e-9, atol=1e-11)
    turned = expected[:, shares] / np.sqrt(1.0 - theirs.weights_)  # they leave out that weights sum to one
    np.testing.assert_allclose(vectors[:, shares], turned, rtol=1e-9, atol=1e-11)
    complete = typical * FisherScore(model, length_norm="length").fit_transform(bags)  # knows, and has their kernel
    np.testing.assert_allclose(gram(complete), gram(expected), rtol=1e-9, atol=1e-11)
    improved = np.array([fisher_vector(bag, theirs, improved=True, alpha=0.5)[rest] for bag in bags])
    rooted = BlockNormalizer(FisherScore(model, "diagonal", length_norm="length", blocks=["means", "variances"]))
    for columns in rooted.fit(bags).blocks_.values():  # theirs is one block, ours is one for each kind of parameters
        part = np.abs(improved[:, columns])
        np.testing.assert_allclose(
            np.abs(rooted.transform(bags)[:, columns]),
            part / np.linalg.norm(part, axis=1, keepdims=True) / np.sqrt(2.0),
            rtol=1e-8,
            atol=1e-10,
        )


def joint_logs(vector, x):
    """Return log w_k N(x; mean_k, cov_k) of two components in the plane, from softmax coordinates."""
    shares, means, spreads = np.split(vector, [2, 6])
    gaps, (aa, ab, bb) = x - means.reshape(2, 2), spreads.reshape(2, 3).T
    size = aa * bb - ab**2
    square = (bb * gaps[:, 0] ** 2 - 2 * ab * gaps[:, 0] * gaps[:, 1] + aa * gaps[:, 1] ** 2) / size
    return np.log(softmax(shares)) - 0.5 * square - np.log(2 * np.pi) - 0.5 * np.log(size)


def test_fisher_vectors_of_full_covariances():
    fitted = MixtureEstimator(2, GaussianEstimator("full"), random_state=0).fit(points(2, d=2)).model_
    eta = fitted.parameters("softmax")
    information = np.zeros((len(eta), len(eta)))
    nodes, heights = np.polynomial.hermite_e.hermegauss(4)  # exact for the fourth moments of normals
    for k in range(2):
        root = np.linalg.cholesky(fitted.components.cov[k])
        for i, j in np.ndindex(4, 4):
            x = fitted.components.mean[k] + root @ nodes[[i, j]]
            score = difference(lambda v: joint_logs(v, x)[k], eta)  # noqa: B023
            information += fitted.weights[k] * heights[i] * heights[j] / (2 * np.pi) * np.outer(score, score)
    bags = [bag.copy() for bag in np.split(points(3, 12, 2), [2, 7])]
    scores = [sum(difference(lambda v, x=x: np.logaddexp.reduce(joint_logs(v, x)), eta) for x in bag) for bag in bags]
    scores = np.array(scores) / np.array([[len(bag)] for bag in bags])
    typical = np.mean([len(bag) for bag in bags])
    features = FisherScore(fitted, length_norm="length").fit_transform(bags)
    expected = scores @ np.linalg.pinv(information, rcond=1e-8, hermitian=True) @ scores.T / typical
    np.testing.assert_allclose(gram(features), expected, rtol=1e-6, atol=1e-8)
    features = FisherScore(fitted, "diagonal", length_norm="length").fit_transform(bags)
    np.testing.assert_allclose(features, scores / np.sqrt(typical * np.diag(information)), rtol=1e-6, atol=1e-8)
