"""Tangent vectors of log-odds, the marginal over class models, and exact information, against differences and sums."""

import itertools

import cases
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles_embed import difference, log_prob
from scipy.special import logsumexp
from sklearn.preprocessing import StandardScaler

from genkern import (
    HMM,
    Categorical,
    ClassMixture,
    FisherScore,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    MarkovChain,
    MixtureEstimator,
    PlugInClassifier,
    SiteModel,
    TopScore,
    check_score,
)
from genkern.features import streaming as blocks

SIZES = (2, 1, 2)  # states of the class models


def class_models(seed, count):
    rng = np.random.default_rng(seed)
    return {f"c{k}": cases.random_hmm(rng, n=SIZES[k]) for k in range(count)}


def sequences(seed, count=6, longest=6):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 3, length) for length in rng.integers(1, longest, count)]


def joint_oracle(logits, etas, x):
    """Return log alpha_c + log p_c(x) by enumeration of paths, from logits of priors and softmax coordinates."""
    logs = [log_prob(eta, n, 3, x) for eta, n in zip(etas, SIZES)]
    return np.array(logs) + logits - logsumexp(logits)


def cut(vector, count):
    """Return logits of priors and the coordinates of each class from one vector."""
    ends = np.cumsum([count, *(n + n * n + 3 * n for n in SIZES[:count])])
    logits, *etas = np.split(vector, ends[:-1])
    return logits, etas


def whole(models, priors):
    return np.concatenate([np.log(priors), *(model.parameters("softmax") for model in models.values())])


def test_two_classes_are_log_odds_and_their_derivatives():
    models, alpha, X = class_models(0, 2), 0.3, sequences(1)
    top = TopScore(models, priors=[1 - alpha, alpha], constant=True).fit(X)
    features = top.transform(X)

    def odds(vector, x):
        joint = joint_oracle(*cut(vector, 2), x)
        return joint[1] - joint[0]

    theta = whole(models, [1 - alpha, alpha])
    slopes = np.array([difference(lambda v, x=x: odds(v, x), theta) for x in X])
    minus = len(models["c0"].parameter_names)
    expected = np.column_stack([slopes[:, 2 + minus :], slopes[:, 2 : 2 + minus]])
    np.testing.assert_allclose(features[:, 0], [odds(theta, x) for x in X], rtol=0, atol=1e-11)
    np.testing.assert_allclose(features[:, 2:], expected, rtol=0, atol=1e-8)
    in_alpha = difference(lambda a: np.log(a[0] / (1 - a[0])), np.array([alpha]))
    np.testing.assert_allclose(features[:, 1], in_alpha[0], rtol=1e-9)
    names = top.get_feature_names_out().tolist()
    assert names[:3] == ["v", "prior", "c1.start[0]"]
    assert names[2:] == [f"c{c}.{name}" for c in (1, 0) for name in models[f"c{c}"].parameter_names]
    plain = TopScore(models, priors=[1 - alpha, alpha]).fit(X)
    np.testing.assert_array_equal(plain.transform(X), np.delete(features, 1, axis=1))
    assert plain.n_features_out_ == len(plain.get_feature_names_out()) == len(names) - 1


def test_one_against_the_rest_is_log_odds_and_their_derivatives():
    models, priors, X = class_models(2, 3), np.array([0.2, 0.5, 0.3]), sequences(3)
    top = TopScore(models, priors=dict(zip(models, priors)), constant=True).fit(X)
    features, theta = top.transform(X), whole(models, priors)
    groups = np.split(features, 3, axis=1)
    for c, group in enumerate(groups):

        def odds(vector, x, c=c):
            joint = joint_oracle(*cut(vector, 3), x)
            return joint[c] - logsumexp(np.delete(joint, c))

        np.testing.assert_allclose(group[:, 0], [odds(theta, x) for x in X], rtol=0, atol=1e-11)
        slopes = [difference(lambda v, x=x, f=odds: f(v, x), theta) for x in X]
        np.testing.assert_allclose(group[:, 1:], slopes, rtol=0, atol=1e-8)
        np.testing.assert_allclose(group[:, 1 + c], 1.0, rtol=1e-12)
    shorter = TopScore(models, priors=priors).fit(X)
    width = groups[0].shape[1]
    own = [c * width + 1 + c for c in range(3)]
    np.testing.assert_array_equal(shorter.transform(X), np.delete(features, own, axis=1))
    assert shorter.get_feature_names_out().tolist() == np.delete(top.get_feature_names_out(), own).tolist()
    assert top.get_feature_names_out()[[0, 1, 4, width]].tolist() == [
        "v[c0]",
        "v[c0]:prior[c0]",
        "v[c0]:c0.start[0]",
        "v[c1]",
    ]


def test_pairwise_is_log_odds_against_the_last_class_and_all_scores():
    models, X = class_models(4, 3), sequences(5)
    priors = np.array([0.2, 0.5, 0.3])
    top = TopScore(models, priors=priors, multiclass="pairwise").fit(X)
    joint = np.array([joint_oracle(*cut(whole(models, priors), 3), x) for x in X])
    scores = [model.log_prob_grad(X) for model in models.values()]
    expected = np.column_stack([joint[:, :-1] - joint[:, -1:], *scores])
    np.testing.assert_allclose(top.transform(X), expected, rtol=0, atol=1e-10)
    assert top.get_feature_names_out()[:3].tolist() == ["v[c0|c2]", "v[c1|c2]", "c0.start[0]"]
    assert len(top.get_feature_names_out()) == expected.shape[1]


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt", "raw"])
def test_derivatives_of_gaussian_class_models_in_all_coordinates(coordinates):
    rng = np.random.default_rng(6)
    models = {k: cases.random_hmm(rng, family, size=2) for k, family in enumerate(("diagonal", "full"))}
    X = [rng.standard_normal((length, 2)) for length in (1, 3, 5)]
    X[1][0, 1] = np.nan
    features = TopScore(models, priors="uniform", coordinates=coordinates).fit(X).transform(X)
    column = 1
    for sign, model in ((1.0, models[1]), (-1.0, models[0])):
        theta = model.parameters(coordinates)
        for j in range(len(theta)):
            e = np.eye(len(theta))[j]
            sides = [model.with_parameters(theta + h * e, coordinates).log_prob(X) for h in (1e-5, -1e-5)]
            np.testing.assert_allclose(features[:, column], sign * (sides[0] - sides[1]) / 2e-5, rtol=1e-5, atol=1e-5)
            column += 1
    assert column == features.shape[1]


def test_top_is_linear_in_sufficient_statistics_for_exponential_families():
    rng = np.random.default_rng(7)
    X = [rng.standard_normal((length, 2)) + shift for length, shift in zip(rng.integers(1, 6, 40), np.tile([0, 2], 20))]
    models = {0: Gaussian([0.0, 0.5], [1.0, 2.0]), 1: Gaussian([2.0, 1.0], [0.5, 1.5])}
    features = TopScore(models, priors=[0.4, 0.6]).fit(X).transform(X)
    statistics = np.array([[1.0, len(x), *x.sum(axis=0), *(x**2).sum(axis=0)] for x in X])
    weights = np.linalg.lstsq(statistics, features, rcond=None)[0]
    np.testing.assert_allclose(statistics @ weights, features, rtol=0, atol=1e-9)


def test_standardised_features():
    models, X = class_models(8, 3), sequences(9, count=30)
    plain = TopScore(models, priors="uniform", constant=True).fit(X)
    top = TopScore(models, priors="uniform", constant=True, standardize=True).fit(X)
    features = plain.transform(X)
    # constants: the derivative in the own prior's logit, and those of the model with one state
    varies = features.std(axis=0) > 1e-9
    assert not varies.all()
    expected = StandardScaler().fit_transform(features[:, varies])
    np.testing.assert_allclose(top.transform(X), expected, rtol=0, atol=1e-9)
    assert top.get_feature_names_out().tolist() == plain.get_feature_names_out()[varies].tolist()
    new = sequences(10)
    scaler = StandardScaler().fit(features[:, varies])
    np.testing.assert_allclose(top.transform(new), scaler.transform(plain.transform(new)[:, varies]), atol=1e-9, rtol=0)


def test_scale_does_not_depend_on_blocks(monkeypatch):
    models, X = class_models(11, 3), sequences(12, count=40)
    top = TopScore(models, priors="uniform", standardize=True)
    reference = top.fit(X).transform(X)
    monkeypatch.setattr(blocks, "BATCH_POSITIONS", 7)
    np.testing.assert_allclose(top.fit(X).transform(X), reference, rtol=0, atol=1e-9)


def test_nothing_to_standardise():
    with pytest.raises(ValueError, match="no feature varies"):
        TopScore(class_models(0, 2), priors="uniform", standardize=True).fit([[0, 1], [0, 1]])


def test_rows_depend_on_their_object_alone(monkeypatch):
    models, X = class_models(13, 3), sequences(14, count=30, longest=20)
    for settings_ in ({}, {"multiclass": "pairwise"}, {"coordinates": "ratio"}):
        top = TopScore(models, priors="uniform", **settings_).fit(X)
        reference = top.transform(X)
        for i in (0, 7):
            np.testing.assert_array_equal(top.transform([X[i]])[0], reference[i])
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "BATCH_POSITIONS", 23)
            np.testing.assert_array_equal(top.set_params(n_jobs=2).transform(X), reference)


def test_impossible_classes():
    table = {"A": [0.5, 0.5, 0.0, 0.0], "B": [0.0, 0.5, 0.5, 0.0], "C": [0.0, 0.5, 0.0, 0.5]}
    models = {label: Categorical(probs, "abcd") for label, probs in table.items()}
    pair = {label: models[label] for label in "AB"}
    features = TopScore(pair, priors="uniform").fit(["b"]).transform(["a", "c", "b"])
    np.testing.assert_allclose(features[:, 0], [-700.0, 700.0, 0.0], rtol=0, atol=1e-12)
    assert not features[0, 1:5].any()  # no derivative under the class that is impossible
    np.testing.assert_allclose(features[0, 5:], -models["A"].log_prob_grad(["a"])[0], rtol=1e-12)
    assert TopScore(pair, priors="uniform", v_max=30.0).fit(["b"]).transform(["c"])[0, 0] == 30.0
    three = TopScore(models, priors="uniform").fit(["b"]).transform(["a", "b"])
    width = three.shape[1] // 3
    np.testing.assert_allclose(three[0, ::width], [700.0, -700.0, -700.0], rtol=0)
    np.testing.assert_allclose(three[1, ::width], -np.log(2.0), rtol=1e-12)
    assert np.isfinite(three).all()
    pairwise = TopScore(models, priors="uniform", multiclass="pairwise").fit(["b"]).transform(["a", "d", "c"])
    np.testing.assert_allclose(pairwise[:, :2], [[700.0, 0.0], [-700.0, -700.0], [0.0, 700.0]], rtol=0)
    with pytest.raises(ValueError, match="object 1 has probability zero in every class"):
        TopScore(models, priors="uniform").fit(["b"]).transform(["a", "cd"])


def test_tiny_probabilities_do_not_underflow():
    models = {0: Gaussian(0.0, 1.0), 1: Gaussian(300.0, 1.0), 2: Gaussian(400.0, 1.0)}
    X = [np.array([[0.0]]), np.array([[300.0]])]
    features = TopScore(models, priors="uniform").fit(X).transform(X)
    width = features.shape[1] // 3
    np.testing.assert_allclose(features[0, ::width], [45000.0, -45000.0, -80000.0], rtol=1e-6)
    # among the others, the nearest one takes all
    np.testing.assert_allclose(features[0, 1:3], [-1.0, 0.0], rtol=0, atol=1e-12)


def test_class_models_are_those_of_the_plug_in_classifier():
    X, y = sequences(15, count=24), np.arange(24) % 2
    for priors in ("empirical", "uniform", [0.1, 0.9], {0: 0.2, 1: 0.8}):
        plug = PlugInClassifier(HMMEstimator(2, max_iter=2, tol=0), priors=priors).fit(X, y)
        top = TopScore(HMMEstimator(2, max_iter=2, tol=0), priors=priors).fit(X, y)
        np.testing.assert_allclose(top.transform(X)[:, 0], plug.decision_function(X), rtol=0, atol=1e-9)
        assert list(top.model_.models) == plug.models_
        assert top.classes_.tolist() == [0, 1]


def test_labels_of_given_models():
    models, X = class_models(16, 2), sequences(17, count=4)
    top = TopScore(models).fit(X, ["c1", "c0", "c1", "c1"])
    np.testing.assert_allclose(top.model_.priors, [0.25, 0.75], rtol=1e-12)
    for mixture in (ClassMixture(models, [0.25, 0.75]), ClassMixture(dict(reversed(models.items())), [0.75, 0.25])):
        given = TopScore(mixture).fit(X)  # the second of the sorted labels is the positive one, whatever the order
        np.testing.assert_array_equal(given.transform(X), top.transform(X))
    with pytest.raises(ValueError, match="priors of its own"):
        TopScore(ClassMixture(models), priors="uniform").fit(X)
    with pytest.raises(ValueError, match="none for 'c2'"):
        TopScore(models, priors="uniform").fit(X, ["c1", "c0", "c1", "c2"])
    with pytest.raises(ValueError, match="none for 'c2'"):
        TopScore(models).fit(X, ["c1", "c0", "c1", "c2"])
    with pytest.raises(ValueError, match="prior of class 'c0' is zero"):
        TopScore(models).fit(X, ["c1"] * 4)
    with pytest.raises(ValueError, match="requires y"):
        TopScore(models).fit(X)
    with pytest.raises(ValueError, match="priors must have an entry"):
        TopScore(models, priors={"c0": 1.0}).fit(X)
    with pytest.raises(ValueError, match="one class"):
        TopScore({"c0": models["c0"]}, priors="uniform").fit(X)


@pytest.mark.parametrize(
    ("settings_", "error"),
    [
        ({"multiclass": "one-vs-one"}, "multiclass"),
        ({"coordinates": "log"}, "coordinates"),
        ({"v_max": 0.0}, "v_max"),
        ({"priors": "equal"}, "priors"),
        ({"priors": [0.5, 0.4]}, "sum to 1"),
    ],
)
def test_wrong_settings_are_refused(settings_, error):
    with pytest.raises(ValueError, match=error):
        TopScore(class_models(0, 2), **{"priors": "uniform", **settings_}).fit([[0, 1]])


def test_what_is_no_estimator_of_models_is_refused():
    with pytest.raises(TypeError, match="HMMEstimator"):
        TopScore("hmm").fit(["ab", "ba"], [0, 1])


def test_natural_coordinates_are_for_mixtures_of_isotropic_gaussians():
    rng = np.random.default_rng(34)
    X, y = rng.standard_normal((12, 1, 2)), np.arange(12) % 3
    isotropic = MixtureEstimator(2, GaussianEstimator("isotropic"), max_iter=2, tol=0, random_state=0)
    top = TopScore(isotropic, coordinates="natural").fit(X, y)
    joint, grads = top.model_.joint_log_prob(X), [m.log_prob_grad(X, "natural") for m in top.model_.models]
    shares = np.exp(joint[:, 1:] - logsumexp(joint[:, 1:], axis=1, keepdims=True))
    first = top.transform(X)[:, : top.n_features_out_ // 3]
    expected = [grads[0], -shares[:, [0]] * grads[1], -shares[:, [1]] * grads[2]]
    np.testing.assert_allclose(first[:, 3:], np.column_stack(expected), rtol=0, atol=1e-12)
    assert top.get_feature_names_out()[3:6].tolist() == [
        "v[0]:0.weights[0]",
        "v[0]:0.components.natural[0,0]",
        "v[0]:0.components.natural[0,1]",
    ]
    with pytest.raises(TypeError, match=r"mixtures of isotropic Gaussians.*Got HMM"):
        TopScore(class_models(0, 2), priors="uniform", coordinates="natural").fit([[0, 1]])
    with pytest.raises(ValueError, match="Got diagonal Gaussian components"):
        TopScore(MixtureEstimator(2, max_iter=2, tol=0), coordinates="natural").fit(X, y)


# --- the label as a latent variable


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 3))
def test_marginal_over_class_models(seed, count):
    models = class_models(seed, count)
    priors = np.random.default_rng(seed).dirichlet(np.full(count, 5.0))
    mixture, X = ClassMixture(models, priors), sequences(seed)
    joint = np.array([joint_oracle(np.log(priors), cut(whole(models, priors), count)[1], x) for x in X])
    np.testing.assert_allclose(mixture.log_prob(X), logsumexp(joint, axis=1), rtol=1e-9, atol=1e-9)
    posterior = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(mixture.posterior(X), posterior, rtol=0, atol=1e-9)


def test_derivatives_of_the_marginal():
    rng = np.random.default_rng(18)
    models = class_models(18, 3)
    check_score(ClassMixture(models, [0.2, 0.3, 0.5]), sequences(19))
    mixed = ClassMixture({0: cases.random_hmm(rng, "full"), 1: Gaussian(np.zeros(3), 1.0)}, [0.4, 0.6])
    with pytest.raises((TypeError, ValueError)):  # a bag and a sequence are not the same object
        mixed.log_prob([[[0.0]]])
    check_score(ClassMixture({0: Gaussian([0.0, 1.0], 1.0), 1: Gaussian([1.0, 1.0], [2.0, 1.0])}), rng.random((4, 2)))


def test_two_class_score_is_that_of_the_paper():
    models, alpha, X = class_models(20, 2), 0.3, sequences(21)
    mixture = ClassMixture(models, [1 - alpha, alpha])
    r = mixture.posterior(X)[:, 1]
    features = FisherScore(mixture, information="identity", coordinates="ratio").fit_transform(X)
    # the derivative in alpha, along (-1, 1) in the priors
    np.testing.assert_allclose(features[:, 0], (r - alpha) / (alpha * (1 - alpha)), rtol=0, atol=1e-10)
    minus, plus = (model.log_prob_grad(X, "ratio") for model in models.values())
    np.testing.assert_allclose(
        features[:, 1:], np.column_stack([(1 - r)[:, None] * minus, r[:, None] * plus]), atol=1e-10
    )


@pytest.mark.parametrize("information", ["complete", "diagonal", "exact", "identity"])
def test_posterior_is_linear_in_the_fisher_features_of_the_marginal(information):
    models, X = class_models(22, 3), sequences(23, count=120, longest=9)
    short = [x[:4] for x in X]
    fisher = FisherScore(ClassMixture(models, [0.2, 0.3, 0.5]), information=information).fit(short)
    features, target = fisher.transform(X), fisher.model_.posterior(X)

    def residual(columns):
        design = np.column_stack([columns, np.ones(len(X))])
        return np.abs(design @ np.linalg.lstsq(design, target, rcond=1e-12)[0] - target).max()

    assert residual(features) < 1e-8
    # without the component of the priors it is not
    scores = fisher.model_.log_prob_grad(X)
    assert residual(scores[:, 3:]) > 1e-3


def test_weights_of_the_posterior_hold_for_all_objects():
    models, X = class_models(24, 2), sequences(25, count=60, longest=8)
    fisher = FisherScore(ClassMixture(models, [0.3, 0.7])).fit(X)
    features, target = fisher.transform(X)[:, :2], fisher.model_.posterior(X)
    design = np.column_stack([features, np.ones(len(X))])
    weights = np.linalg.lstsq(design[:10], target[:10], rcond=None)[0]
    np.testing.assert_allclose(design @ weights, target, rtol=0, atol=1e-9)


def test_complete_information_of_the_marginal_sees_the_label():
    tables = np.random.default_rng(26).dirichlet(np.ones(3), 2)
    priors = np.array([0.3, 0.7])
    mixture = ClassMixture({k: Categorical(row) for k, row in enumerate(tables)}, priors)
    information = np.zeros((8, 8))
    for c, k in itertools.product(range(2), range(3)):
        score = np.zeros(8)
        score[:2] = np.eye(2)[c] - priors
        score[2 + 3 * c : 5 + 3 * c] = np.eye(3)[k] - tables[c]
        information += priors[c] * tables[c, k] * np.outer(score, score)
    found = np.zeros((8, 8))
    for index, block in mixture.information([1, 1]):
        found[np.ix_(index, index)] = block
    np.testing.assert_allclose(found, information, rtol=0, atol=1e-12)


def test_label_as_latent_variable_of_fitted_models():
    X, y = sequences(27, count=24), np.array(["a", "b", "c"])[np.arange(24) % 3]
    y[0] = "b"
    estimator = HMMEstimator(2, max_iter=2, tol=0)
    fisher = FisherScore(estimator, per_class=True).fit(X, y)
    models = {c: HMMEstimator(2, max_iter=2, tol=0).fit([x for x, k in zip(X, y) if k == c]).model_ for c in "abc"}
    expected = FisherScore(ClassMixture(models, [7 / 24, 9 / 24, 8 / 24])).fit(X)
    assert fisher.model_ == expected.model_
    np.testing.assert_array_equal(fisher.transform(X), expected.transform(X))
    assert fisher.get_feature_names_out()[[0, 3]].tolist() == ["prior[a]", "a.start[0]"]
    assert FisherScore(models).fit(X).model_ == ClassMixture(models)
    with pytest.raises(ValueError, match="requires y"):
        FisherScore(estimator, per_class=True).fit(X)


def test_marginal_of_impossible_classes():
    mixture = ClassMixture({"A": Categorical([1.0, 0.0], "ab"), "B": Categorical([0.5, 0.5], "ab")})
    scores = mixture.log_prob_grad(["b", "ab"])
    np.testing.assert_allclose(scores[0, :2], [-0.5, 0.5], rtol=1e-12)
    assert not scores[:, 2:4].any()
    with pytest.raises(ValueError, match="object 0 has probability zero in class 'A'"):
        mixture.log_prob_grad(["b"], "ratio")


def test_class_mixture_is_a_value_with_a_sampler():
    models = class_models(28, 2)
    mixture = ClassMixture(models, [0.2, 0.8])
    assert mixture == ClassMixture(models, [0.2, 0.8])
    assert mixture != ClassMixture(models, [0.3, 0.7])
    X = mixture.sample(4000, length=2, rng=0)
    codes = np.array([3 * a + b for a, b in X])
    cells = [[a, b] for a in range(3) for b in range(3)]
    expected = np.exp(mixture.log_prob(cells))
    np.testing.assert_allclose(expected.sum(), 1.0, rtol=1e-12)
    statistic = ((np.bincount(codes, minlength=9) - 4000 * expected) ** 2 / (4000 * expected)).sum()
    assert statistic < 26.1  # the 0.999 quantile of chi-square with 8 degrees of freedom
    with pytest.raises(TypeError, match="one model per label"):
        ClassMixture([models["c0"]])
    with pytest.raises(TypeError, match="label 'x' must be one model"):
        ClassMixture({"x": Categorical(np.full((2, 2), 0.5))})


# --- exact information


def exact_oracle(eta, n, m, lengths):
    """Return the mean over lengths of the second moment of scores, by enumeration and finite differences."""
    total = np.zeros((len(eta), len(eta)))
    for length in lengths:
        for x in itertools.product(range(m), repeat=length):
            score = difference(lambda v, x=x: log_prob(v, n, m, x), eta)
            total += np.exp(log_prob(eta, n, m, x)) * np.outer(score, score) / len(lengths)
    return total


def test_exact_information_is_the_second_moment_over_all_objects():
    model = cases.random_hmm(np.random.default_rng(29), size=2)
    X = [[0], [0, 1, 1], [1, 1, 0], [1, 0]]
    eta = model.parameters("softmax")
    information = exact_oracle(eta, 2, 2, [len(x) for x in X])
    scores = model.log_prob_grad(X)
    expected = scores @ np.linalg.pinv(information, rcond=1e-7, hermitian=True) @ scores.T
    for coordinates in ("softmax", "ratio", "sqrt"):
        features = FisherScore(model, "exact", coordinates).fit_transform(X)
        np.testing.assert_allclose(features @ features.T, expected, rtol=1e-5, atol=1e-6)


def test_exact_information_does_not_depend_on_blocks(monkeypatch):
    model, X = cases.random_hmm(np.random.default_rng(30)), sequences(31)
    reference = FisherScore(model, "exact").fit_transform(X)
    monkeypatch.setattr(blocks, "BATCH_POSITIONS", 31)
    np.testing.assert_allclose(FisherScore(model, "exact", n_jobs=2).fit_transform(X), reference, rtol=0, atol=1e-9)


def test_exact_is_complete_where_nothing_is_hidden():
    rng = np.random.default_rng(32)
    windows = ["".join(rng.choice(list("ACGT"), 5)) for _ in range(8)]
    matches = np.array([[sum(a == b for a, b in zip(x, z)) for z in windows] for x in windows])
    features = FisherScore(SiteModel.uniform(5, "dna"), "exact").fit_transform(windows)
    np.testing.assert_allclose(features @ features.T, 4 * matches - 5, rtol=0, atol=1e-9)
    chain = MarkovChain(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3))
    for model in (chain, Categorical(rng.dirichlet(np.ones(3)))):
        X = sequences(33)
        exact, complete = (FisherScore(model, information).fit_transform(X) for information in ("exact", "complete"))
        np.testing.assert_allclose(exact @ exact.T, complete @ complete.T, rtol=1e-8, atol=1e-8)


def test_exact_information_is_refused_where_it_cannot_be():
    numbers = HMM([1.0], [[1.0]], Gaussian([[0.0]], [1.0]))
    with pytest.raises(ValueError, match="needs a model of symbols"):
        FisherScore(numbers, "exact").fit([[0.0, 1.0]])
    with pytest.raises(ValueError, match=r"would enumerate 3\.49e\+09 objects"):
        FisherScore(cases.random_hmm(np.random.default_rng(0)), "exact").fit([[0] * 20, [1]])
    stopping = cases.random_hmm(np.random.default_rng(0), ending="stop")
    with pytest.raises(ValueError, match="length 2 have total probability"):
        FisherScore(stopping, "exact").fit([[0, 1]])
