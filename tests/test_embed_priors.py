"""Fisher and TOP features of classes: the one free prior of two, natural coordinates, blocks, lengths, natural maps."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from genkern import (
    HMM,
    Categorical,
    ClassMixture,
    FisherScore,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    Mixture,
    MixtureEstimator,
    TopScore,
)

INFORMATION = ("complete", "diagonal", "empirical", "exact", "identity")


def hmm(seed):
    rng = np.random.default_rng(seed)
    rows = [rng.dirichlet(np.ones(k), n) for k, n in ((2, 1), (2, 2), (2, 2))]
    return HMM(rows[0][0], rows[1], Categorical(rows[2], "ab"))


def mixture(seed, d=2):
    rng = np.random.default_rng(seed)
    return Mixture(rng.dirichlet([3.0, 3.0]), Gaussian(rng.normal(size=(2, d)), rng.uniform(0.5, 2.0, 2)))


def differences(function, theta, step=1e-6):
    """Return central differences (n, p) of a function of a vector."""
    moves = step * np.eye(len(theta))
    return np.stack([(function(theta + move) - function(theta - move)) / (2 * step) for move in moves], axis=1)


SEQUENCES = ["aab", "b", "abba", "bb", "a"]
MODELS = {"a": hmm(0), "b": hmm(1)}


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
@pytest.mark.parametrize("information", INFORMATION)
def test_the_prior_of_two_classes_stands_once(coordinates, information):
    options = {"information": information, "coordinates": coordinates, "ridge": 0.0}
    fisher = FisherScore(MODELS, priors=[0.3, 0.7], **options).fit(SEQUENCES)
    names = fisher.get_feature_names_out().tolist()
    assert names[:2] == ["prior[b]", "a.start[0]"]
    assert fisher.blocks_["priors"] == slice(0, 1)
    assert fisher.n_features_out_ == len(names) == fisher.transform(SEQUENCES).shape[1]
    logs = np.stack([MODELS[c].log_prob(SEQUENCES) for c in "ab"], axis=1) + np.log([0.3, 0.7])
    residual = (1.0 / (1.0 + np.exp(logs[:, 0] - logs[:, 1])) - 0.7) / np.sqrt(0.3 * 0.7)
    if information in ("complete", "diagonal"):  # the unit of the prior's own information, by hand
        np.testing.assert_allclose(np.abs(fisher.transform(SEQUENCES)[:, 0]), np.abs(residual), rtol=1e-12)
    if information != "diagonal" and information != "identity":
        # no information sees the column that went: the kernel is that of all parameters
        scores = ClassMixture(MODELS, [0.3, 0.7]).log_prob_grad(SEQUENCES, coordinates)
        if information == "complete":
            matrix = np.zeros((scores.shape[1],) * 2)
            lengths = [len(x) for x in SEQUENCES]
            for index, block in ClassMixture(MODELS, [0.3, 0.7]).information(lengths, coordinates):
                matrix[np.ix_(index, index)] = block
            expected = scores @ np.linalg.pinv(matrix, rcond=1e-10) @ scores.T
            features = fisher.transform(SEQUENCES)
            np.testing.assert_allclose(features @ features.T, expected, rtol=1e-9, atol=1e-9)


def test_raw_priors_and_three_classes_keep_all_columns():
    raw = FisherScore(MODELS, information="identity", coordinates="raw").fit(SEQUENCES)
    assert raw.get_feature_names_out()[:2].tolist() == ["prior[a]", "prior[b]"]
    three = FisherScore({**MODELS, "c": hmm(2)}).fit(SEQUENCES)
    assert three.get_feature_names_out()[:3].tolist() == ["prior[a]", "prior[b]", "prior[c]"]


def test_blocks_with_one_prior_column():
    kept = FisherScore(MODELS, blocks=["transitions", "priors", "occupancy"]).fit(SEQUENCES)
    assert kept.get_feature_names_out().tolist()[8:] == ["prior[b]", "occupancy[a]", "occupancy[b]"]
    both = FisherScore(MODELS).fit(SEQUENCES)
    np.testing.assert_allclose(kept.transform(SEQUENCES)[:, 8], both.transform(SEQUENCES)[:, 0], rtol=1e-12)
    whole, rows = both.transform(["abba"])[0], both.position_features(["abba"]).toarray()
    np.testing.assert_allclose(rows[:, 1:].sum(axis=0), whole[1:], atol=1e-12)


@pytest.mark.parametrize("shares", [[0.3, 0.7], [0.2, 0.5, 0.3]])
def test_natural_scores_of_classes_are_derivatives(shares):
    X = list(np.random.default_rng(2).normal(size=(5, 1, 2)))
    models = {c: mixture(i) for i, c in zip(range(len(shares)), "abc")}
    fisher = FisherScore(models, "identity", "natural", priors=shares).fit(X)
    free = len(shares) - 1

    def log_prob(theta):
        alphas, rest = np.insert(theta[:free], 0, 1.0 - theta[:free].sum()), theta[free:].reshape(len(shares), -1)
        total = 0.0
        for alpha, (beta, *eta) in zip(alphas, rest):
            for weight, own in zip((beta, 1.0 - beta), np.reshape(eta, (2, 3))):
                variance = -0.5 / own[0]
                density = multivariate_normal(own[1:] * variance, variance * np.eye(2)).pdf(np.concatenate(X))
                total = total + alpha * weight * density
        return np.log(total)

    theta = np.concatenate([shares[1:], *(model.parameters("natural") for model in models.values())])
    np.testing.assert_allclose(fisher.transform(X), differences(log_prob, theta), rtol=1e-6, atol=1e-7)
    names = fisher.get_feature_names_out().tolist()
    assert names[: free + 2] == [*(f"prior[{c}]" for c in "bc"[:free]), "a.weights[0]", "a.components.natural[0,0]"]
    rows = fisher.position_features(X[:1]).toarray()
    np.testing.assert_allclose(rows.sum(axis=0)[free:], fisher.transform(X[:1])[0, free:], atol=1e-12)


def test_the_derivative_in_alpha_is_that_of_the_paper():
    X = list(np.random.default_rng(3).normal(size=(6, 1, 2)))
    for coordinates in ("natural", "ratio"):
        fisher = FisherScore({-1: mixture(0), 1: mixture(1)}, "identity", coordinates, priors={-1: 0.4, 1: 0.6}).fit(X)
        posterior = fisher.model_.posterior(X)
        expected = posterior[:, 1] / 0.6 - posterior[:, 0] / 0.4  # eq. 6.2
        np.testing.assert_allclose(fisher.transform(X)[:, 0], expected, rtol=1e-12)
        rows = fisher.position_features([np.concatenate(X)]).toarray()
        (row,) = fisher.transform([np.concatenate(X)])
        np.testing.assert_allclose(rows[:, 0].sum(), row[0], rtol=1e-9)


def test_natural_scores_of_one_mixture_and_of_fitted_classes():
    rng = np.random.default_rng(4)
    X, y = list(rng.normal(size=(20, 1, 2))), np.arange(20) % 2
    model = mixture(5)
    np.testing.assert_allclose(
        FisherScore(model, "identity", "natural").fit(X).transform(X), model.log_prob_grad(X, "natural"), rtol=1e-12
    )
    estimator = MixtureEstimator(2, GaussianEstimator("isotropic"), max_iter=3, tol=0, random_state=0)
    fitted = FisherScore(estimator, "empirical", "natural", per_class=True, ridge=0.0).fit(X, y)
    features = fitted.transform(X)
    np.testing.assert_allclose(features.T @ features / 20, np.eye(15), atol=1e-6)
    blocks = FisherScore(model, "identity", "natural", blocks=["natural"]).fit(X)
    np.testing.assert_allclose(blocks.transform(X), model.log_prob_grad(X, "natural")[:, 1:], rtol=1e-12)


def test_wrong_options_of_scores_are_refused():
    with pytest.raises(ValueError, match=r"natural.* needs information='identity' or 'empirical'"):
        FisherScore(mixture(0), coordinates="natural").fit([np.zeros((1, 2))])
    with pytest.raises(TypeError, match="FisherScore: coordinates='natural' needs mixtures"):
        FisherScore(MODELS, "identity", "natural").fit(SEQUENCES)
    with pytest.raises(ValueError, match="FisherScore: 'priors' are those of classes"):
        FisherScore(MODELS["a"], priors="uniform").fit(SEQUENCES)
    with pytest.raises(ValueError, match="priors of its own"):
        FisherScore(ClassMixture(MODELS), per_class=True, priors="uniform").fit(SEQUENCES, list("abaab"))
    with pytest.raises(ValueError, match="'mapping' parameter of FisherScore"):
        FisherScore(MODELS, mapping="other").fit(SEQUENCES)
    with pytest.raises(ValueError, match=r"TopScore: 'blocks' must name .* 'v', 'start'"):
        TopScore(MODELS, "uniform", blocks=["occupancy"]).fit(SEQUENCES)
    with pytest.raises(ValueError, match="'length_norm' parameter of TopScore"):
        TopScore(MODELS, "uniform", length_norm="log").fit(SEQUENCES)


def test_priors_of_fitted_and_given_class_models():
    y = list("aabab")
    estimator = HMMEstimator(2, max_iter=2, tol=0, random_state=0)
    for priors, expected in ((None, [0.6, 0.4]), ("uniform", [0.5, 0.5]), ({"a": 0.1, "b": 0.9}, [0.1, 0.9])):
        fitted = FisherScore(estimator, per_class=True, priors=priors).fit(SEQUENCES, y)
        np.testing.assert_allclose(fitted.model_.priors, expected, rtol=1e-15)
    np.testing.assert_array_equal(FisherScore(MODELS, priors=[0.2, 0.8]).fit(SEQUENCES).model_.priors, [0.2, 0.8])
    assert FisherScore(MODELS).fit(SEQUENCES).model_ == ClassMixture(MODELS)


@pytest.mark.parametrize("information", INFORMATION)
def test_the_natural_map_is_the_inverse_information_times_the_score(information):
    options = {"information": information, "ridge": 0.0}
    natural = FisherScore(MODELS, mapping="natural", **options).fit(SEQUENCES).transform(SEQUENCES)
    white = FisherScore(MODELS, **options).fit(SEQUENCES).transform(SEQUENCES)
    scores = FisherScore(MODELS, "identity").fit(SEQUENCES).transform(SEQUENCES)
    # <I^+ U, U'> is the Fisher kernel
    np.testing.assert_allclose(natural @ scores.T, white @ white.T, rtol=1e-9, atol=1e-9)
    if information == "complete":
        matrix, lengths = np.zeros((22, 22)), [len(x) for x in SEQUENCES]
        for index, block in ClassMixture(MODELS).information(lengths):
            matrix[np.ix_(index, index)] = block
        # a row of probabilities has one coordinate too many, so the inverse is defined up to what moves no probability
        np.testing.assert_allclose(natural @ matrix[1:, 1:], scores, rtol=1e-9, atol=1e-9)


def test_positions_of_the_natural_map_sum_to_it():
    model = MODELS["a"]
    for information in ("complete", "empirical"):
        fisher = FisherScore(model, information, mapping="natural").fit(SEQUENCES)
        rows = fisher.position_features(["abba"]).toarray()
        np.testing.assert_allclose(rows.sum(axis=0), fisher.transform(["abba"])[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("standardize", [False, True])
def test_blocks_of_top_scores(count, standardize):
    models = dict(zip("abc"[:count], map(hmm, range(count))))
    options = {"priors": "uniform", "standardize": standardize, "constant": True}
    whole = TopScore(models, **options).fit(SEQUENCES)
    table = dict(zip(whole.get_feature_names_out(), whole.transform(SEQUENCES).T))
    chosen = TopScore(models, blocks=["transitions", "v"], **options).fit(SEQUENCES)
    names = chosen.get_feature_names_out().tolist()
    assert names == [n for n in table if "transitions" in n] + [
        n for n in table if n == "v" or n in ("v[a]", "v[b]", "v[c]")
    ]
    np.testing.assert_array_equal(chosen.transform(SEQUENCES), np.stack([table[name] for name in names], axis=1))
    rows = chosen.position_features(["abba"]).toarray()
    both = whole.position_features(["abba"]).toarray()
    np.testing.assert_allclose(rows, both[:, [list(table).index(name) for name in names]], rtol=1e-12)
    if not standardize:
        priors = TopScore(models, blocks=["priors"], **options).fit(SEQUENCES).get_feature_names_out()
        assert len(priors) == (1 if count == 2 else 9)
        assert all("prior" in name for name in priors)


@pytest.mark.parametrize(("norm", "power"), [("length", 1.0), ("sqrt", 0.5)])
def test_lengths_divide_derivatives_of_top_scores_alone(norm, power):
    plain = TopScore(MODELS, "uniform").fit(SEQUENCES).transform(SEQUENCES)
    top = TopScore(MODELS, "uniform", length_norm=norm).fit(SEQUENCES)
    found = top.transform(SEQUENCES)
    np.testing.assert_array_equal(found[:, 0], plain[:, 0])
    for row, expected, x in zip(found, plain, SEQUENCES):
        np.testing.assert_allclose(row[1:], expected[1:] / len(x) ** power, rtol=1e-14)
    rows = top.position_features(["abba"]).toarray()
    np.testing.assert_allclose(rows.sum(axis=0), top.transform(["abba"])[0], rtol=1e-9, atol=1e-12)
