"""Estimation of the exponential families, alone and as the emissions of hidden Markov models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from genkern import (
    HMM,
    Bernoulli,
    BernoulliEstimator,
    DirichletEstimator,
    Exponential,
    ExponentialEstimator,
    FisherScore,
    FitEach,
    Gamma,
    GammaEstimator,
    GeometricEstimator,
    HMMEstimator,
    NegativeBinomial,
    PlugInClassifier,
    Poisson,
    PoissonEstimator,
    VonMisesEstimator,
    check_score,
)
from genkern.core.families import newton
from tests.cases import hmmlearn_as_it_is
from tests.cases_families import ESTIMATORS, random_family, random_family_hmm, random_points

FAMILIES = tuple(ESTIMATORS)
PRODUCTS = tuple(name for name in FAMILIES if name != "dirichlet")
STRONG = {  # priors that matter
    "bernoulli": BernoulliEstimator(prior=(3.0, 2.0)),
    "poisson": PoissonEstimator(prior=(4.0, 2.5)),
    "geometric": GeometricEstimator(prior=(3.0, 7.0)),
    "exponential": ExponentialEstimator(prior=(4.0, 9.0)),
    "gamma": GammaEstimator(pseudocount=5.0),
    "vonmises": VonMisesEstimator(pseudocount=5.0),
    "dirichlet": DirichletEstimator(pseudocount=5.0),
}
PLAIN = {
    **{name: ESTIMATORS[name]("ml") for name in ("bernoulli", "poisson", "geometric", "exponential")},
    **{name: ESTIMATORS[name](pseudocount=0.0) for name in ("gamma", "vonmises", "dirichlet")},
}


def objective(estimator, model, X):
    """Return log-likelihood plus log prior of one model."""
    return model.log_prob(X).sum() + estimator.log_prior(type(model).stack([model]))


# --- alone


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("estimators", [PLAIN, STRONG], ids=["plain", "prior"])
def test_the_estimate_is_the_maximum(name, estimators):
    rng = np.random.default_rng(0)
    X = [random_points(rng, name, 25, missing=0.2), random_points(rng, name, 7, missing=0.2)]
    estimator = estimators[name]
    model = estimator.fit(X).model_
    best = objective(estimator, model, X)
    vector = model.parameters("softmax")
    for j in range(len(vector)):
        for step in (-1e-4, 1e-4):
            moved = vector.copy()
            moved[j] += step
            assert objective(estimator, model.with_parameters(moved, "softmax"), X) < best
    if estimators is PLAIN:
        np.testing.assert_allclose(model.log_prob_grad(X).sum(axis=0), 0.0, atol=1e-10)


def test_closed_forms():
    counts = np.array([[1, 0], [3, 1], [2, 0]])
    np.testing.assert_allclose(PoissonEstimator("ml").fit(counts).model_.rate, [2.0, 1 / 3], rtol=1e-14)
    np.testing.assert_allclose(PoissonEstimator(prior=(3, 2)).fit(counts).model_.rate, [8 / 5, 3 / 5], rtol=1e-14)
    np.testing.assert_allclose(PoissonEstimator().fit(counts).model_.rate, [6.01 / 3.01, 1.01 / 3.01], rtol=1e-14)
    np.testing.assert_allclose(GeometricEstimator("ml").fit(counts).model_.prob, [3 / 9, 3 / 4], rtol=1e-14)
    np.testing.assert_allclose(GeometricEstimator(prior=(3, 2)).fit(counts).model_.prob, [5 / 12, 5 / 7], rtol=1e-14)
    np.testing.assert_allclose(ExponentialEstimator().fit([[1.0, 2.0, 6.0]]).model_.scale, [3.0], rtol=1e-14)
    np.testing.assert_allclose(ExponentialEstimator(prior=(2, 1)).fit([[1.0, 2.0]]).model_.scale, [4 / 3], rtol=1e-14)
    bits = np.array([[1, 0], [1, 0], [0, 0]])
    np.testing.assert_allclose(BernoulliEstimator("ml").fit(bits).model_.probs, [2 / 3, 0.0], rtol=1e-14)
    np.testing.assert_allclose(BernoulliEstimator(prior=(2, 3)).fit(bits).model_.probs, [3 / 6, 1 / 6], rtol=1e-14)


def test_gamma_and_von_mises_are_those_of_scipy():
    x = stats.gamma(2.3, scale=0.7).rvs(200, random_state=1)
    shape, _, scale = stats.gamma.fit(x, floc=0)
    model = GammaEstimator(pseudocount=0).fit([x]).model_
    np.testing.assert_allclose([model.shapes[0], model.scale[0]], [shape, scale], rtol=1e-8)
    x = stats.vonmises(2.3, loc=1.0).rvs(200, random_state=1)
    concentration, mean, _ = stats.vonmises.fit(x, fscale=1)
    model = VonMisesEstimator(pseudocount=0).fit([x]).model_
    np.testing.assert_allclose([model.concentration[0], model.mean[0]], [concentration, mean], rtol=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_are_recovered(name):
    model = random_family(np.random.default_rng(1), name, (), 3)
    fitted = ESTIMATORS[name]().fit(model.sample(1, length=40000, rng=2)).model_
    found, expected = fitted.parameters("raw"), model.parameters("raw")
    if name == "vonmises":
        found[:3] += np.round((expected - found)[:3] / (2 * np.pi)) * 2 * np.pi
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("name", FAMILIES)
def test_fit_each_equals_fits_one_by_one(name):
    rng = np.random.default_rng(3)
    X = [random_points(rng, name, int(length)) for length in rng.integers(1, 30, 40)]
    models = ESTIMATORS[name]().fit_each(X)
    for i in (0, 7, 39):
        assert models[i] == ESTIMATORS[name]().fit_each([X[i]])[0]
        alone = ESTIMATORS[name]().fit([X[i]]).model_
        np.testing.assert_allclose(models[i].parameters("raw"), alone.parameters("raw"), rtol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_weights_count_as_copies(name):
    rng = np.random.default_rng(4)
    x = random_points(rng, name, 6)
    copies = np.array([[1, 3], [2, 0], [0, 1], [1, 1], [4, 2], [1, 5]])
    estimator = STRONG[name]
    stack = estimator.fit_weighted(estimator.pack([x]), copies.astype(float), own=False)
    for k in range(2):
        alone = estimator.fit([np.repeat(x, copies[:, k], axis=0)]).model_
        np.testing.assert_allclose(stack[k].parameters("raw"), alone.parameters("raw"), rtol=1e-10)


@pytest.mark.parametrize("name", FAMILIES)
def test_maximize_gives_the_fit(name):
    rng = np.random.default_rng(5)
    X = [random_points(rng, name, 5), random_points(rng, name, 8)]
    statistics = random_family(rng, name, ()).statistics(X)
    estimator = ESTIMATORS[name]()
    np.testing.assert_allclose(
        estimator.maximize(statistics).parameters("raw"), estimator.fit(X).model_.parameters("raw"), rtol=1e-12
    )


@pytest.mark.parametrize("name", PRODUCTS)
def test_missing_entries_are_left_out(name):
    rng = np.random.default_rng(6)
    x = random_points(rng, name, 30, missing=0.3)
    model = ESTIMATORS[name]().fit([x]).model_
    for j in range(2):
        alone = ESTIMATORS[name]().fit([x[~np.isnan(x[:, j]), j]]).model_
        for field in model._fields:
            np.testing.assert_allclose(getattr(model, field)[j], getattr(alone, field)[0], rtol=1e-12)
    x[:, 1] = np.nan
    with pytest.raises(ValueError, match="object 1 has no observed value in column 1"):
        ESTIMATORS[name]().fit_each([random_points(rng, name, 3), x])


# --- Bayesian estimation


def test_predictive_bernoulli_averages_over_the_posterior():
    bits = np.array([[1, 0], [1, 0], [0, 0]])
    model = BernoulliEstimator("predictive", prior=(2.0, 0.5)).fit(bits).model_
    assert isinstance(model, Bernoulli)
    for j, ones in enumerate((2, 0)):

        def joint(p, extra, ones=ones):
            return p ** (ones + extra) * (1 - p) ** (3 - ones) * stats.beta.pdf(p, 2.0, 0.5)

        above, below = (integrate.quad(joint, 0, 1, args=(extra,))[0] for extra in (1, 0))
        assert model.probs[j] == pytest.approx(above / below, rel=1e-7)


def test_predictive_poisson_averages_over_the_posterior():
    counts = np.array([[1, 0], [3, 0]])
    model = PoissonEstimator("predictive", prior=(2.0, 0.5)).fit(counts).model_
    assert isinstance(model, NegativeBinomial)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    rate, weights = 20.0 * (nodes + 1.0), 20.0 * weights
    new = np.arange(60.0)
    for j in range(2):
        seen = np.prod([stats.poisson.pmf(x, rate) for x in counts[:, j]], axis=0) * stats.gamma.pdf(
            rate, 2.0, scale=2.0
        )
        masses = stats.poisson.pmf(new[:, None], rate) @ (weights * seen)
        one = NegativeBinomial(model.size[j], model.prob[j])
        np.testing.assert_allclose(np.exp(one.log_prob(new[:8, None])), masses[:8] / masses.sum(), rtol=1e-8)


@pytest.mark.parametrize("estimator", [BernoulliEstimator("predictive"), PoissonEstimator("predictive")])
def test_predictive_distributions_come_one_per_object_and_are_no_m_step(estimator):
    X = [np.array([[1.0, 0.0], [np.nan, 1.0]]), np.array([[0.0, np.nan]])]
    models = estimator.fit_each(X)
    assert models[1] == estimator.fit([X[1]]).model_
    assert np.isfinite(models[1].log_prob(X)).all()
    y = ["a", "b"]
    assert PlugInClassifier(estimator).fit(X, y).predict(X).tolist() == y
    with pytest.raises(ValueError, match=r"predictive.*M-step.*estimate='map'"):
        HMMEstimator(2, estimator).fit(X)
    with pytest.raises(ValueError, match="M-step"):
        HMMEstimator(2, estimator).fit_each(X)
    with pytest.raises(ValueError, match="M-step"):
        estimator.maximize(models[0].statistics(X))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            BernoulliEstimator("mode"),
            "'estimate' parameter of BernoulliEstimator must be one of 'ml', 'map', 'predictive'",
        ),
        (ExponentialEstimator("predictive"), "must be one of 'ml', 'map'. Got 'predictive'"),
        (GeometricEstimator("predictive"), "must be one of 'ml', 'map'"),
        (BernoulliEstimator(prior=1.0), "two numbers"),
        (BernoulliEstimator(prior=(0.5, 2.0)), r"prior\[0\].*>= 1"),
        (PoissonEstimator(prior=(1.0, -2.0)), r"prior\[1\].*>= 0"),
        (PoissonEstimator("predictive", prior=(1.0, 0.0)), r"prior\[1\].*> 0"),
        (GammaEstimator(pseudocount=-1.0), "'pseudocount' parameter of GammaEstimator"),
        (DirichletEstimator(pseudocount=None), "'pseudocount' parameter of DirichletEstimator"),
        (VonMisesEstimator(pseudocount=np.nan), "'pseudocount' parameter of VonMisesEstimator"),
    ],
)
def test_settings_are_checked_in_fit(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(np.array([[1, 0], [0, 1]]))


@pytest.mark.parametrize(
    ("estimator", "points", "expected"),
    [
        (GammaEstimator, [[1.0, 2.0]], [1.0, 1.5]),  # the shape of an exponential distribution
        (VonMisesEstimator, [[1.0, 2.0]], [1.5, 0.0]),  # the uniform distribution
        (DirichletEstimator, [[[0.2, 0.3, 0.5]]], [1.0, 1.0, 1.0]),  # the uniform distribution
    ],
)
def test_a_strong_prior_wins(estimator, points, expected):
    model = estimator(pseudocount=1e9).fit(points).model_
    np.testing.assert_allclose(model.parameters("raw"), expected, rtol=1e-7, atol=1e-7)


# --- degenerate data


@pytest.mark.parametrize(("name", "value"), [("gamma", 2.5), ("vonmises", 2.5), ("dirichlet", [0.3, 0.7])])
def test_equal_points_have_a_maximum_only_with_a_prior(name, value):
    same = np.tile(value, (4, 1)) if name == "dirichlet" else np.full(4, value)
    other = random_points(np.random.default_rng(7), name, 6, d=2 if name == "dirichlet" else 1)
    for x in (same, same[:1]):
        model = ESTIMATORS[name]().fit([x]).model_
        assert np.isfinite(model.log_prob([x, other])).all()
        with pytest.raises(ValueError, match=r"object 1, member 0: all its .* are equal.*pseudocount > 0"):
            ESTIMATORS[name](pseudocount=0).fit_each([other, x])


def test_the_shape_does_not_depend_on_units():
    x = stats.gamma(3.0).rvs(20, random_state=0)
    for unit in (1e-150, 1.0, 1e150):
        model = GammaEstimator(pseudocount=1.0).fit([unit * x]).model_
        np.testing.assert_allclose(model.shapes, GammaEstimator(pseudocount=1.0).fit([x]).model_.shapes, rtol=1e-9)


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "geometric"])
def test_what_was_not_seen_is_improbable_by_default_and_impossible_without_a_prior(name):
    zeros, new = np.zeros((5, 1)), np.array([[1.0]])
    assert np.isfinite(ESTIMATORS[name]().fit(zeros).model_.log_prob(new)).all()
    assert np.isneginf(ESTIMATORS[name]("ml").fit(zeros).model_.log_prob(new)).all()


@pytest.mark.parametrize(
    ("name", "x", "message"),
    [
        ("bernoulli", [0.0, 0.5], "BernoulliEstimator: object 1, position 1, column 0 is 0.5; expected 0 or 1"),
        (
            "poisson",
            [1.0, 2.5],
            "PoissonEstimator: object 1, position 1, column 0 is 2.5; expected a whole number >= 0",
        ),
        ("geometric", [1.0, -2.0], "GeometricEstimator: object 1, position 1, column 0 is -2"),
        ("exponential", [1.0, 0.0], "ExponentialEstimator: object 1, position 1, column 0 is 0; expected a positive"),
        ("gamma", [1.0, -1.0], "GammaEstimator: object 1, position 1"),
    ],
)
def test_points_outside_the_support_are_refused(name, x, message):
    with pytest.raises(ValueError, match=message):
        ESTIMATORS[name]().fit([[1.0], x])
    with pytest.raises(ValueError, match=message):
        HMMEstimator(1, name).fit([[1.0], x])


# --- emissions


@pytest.mark.parametrize("name", FAMILIES)
def test_em_never_falls_and_the_fit_has_scores(name):
    rng = np.random.default_rng(8)
    X = [random_family_hmm(rng, name).sample(1, length=int(length), rng=rng)[0] for length in (20, 1, 35, 12)]
    if name in PRODUCTS:
        X[2][rng.random(X[2].shape) < 0.2] = np.nan
    for emission in (name, STRONG[name]):
        estimator = HMMEstimator(2, emission, max_iter=40, tol=0).fit(X)
        steps = np.diff(estimator.history_)
        assert steps.min() >= -1e-9 * abs(estimator.history_[-1])
        assert steps.max() > 1e-6
        assert max(check_score(estimator.model_, X).values()) < 1e-6


@pytest.mark.parametrize("name", FAMILIES)
def test_own_models_depend_on_their_objects_alone(name):
    rng = np.random.default_rng(9)
    X = [random_points(rng, name, int(length)) for length in (12, 20, 9, 20)]
    estimator = HMMEstimator(2, name, max_iter=15, tol=0)
    models = estimator.fit_each(X)
    assert estimator.fit_each([X[2]])[0] == models[2]
    assert FitEach(estimator).fit_transform(X[::-1]) == models[::-1]


@pytest.mark.parametrize("name", FAMILIES)
def test_embeddings_and_classifiers_take_them(name):
    rng = np.random.default_rng(10)
    models = [random_family(rng, name, ()) for _ in range(2)]
    X = [x for model in models for x in model.sample(12, length=25, rng=rng)]
    y = np.repeat([0, 1], 12)
    best = PlugInClassifier(dict(enumerate(models))).fit(X, y).score(X, y)
    assert PlugInClassifier(ESTIMATORS[name]()).fit(X, y).score(X, y) > best - 0.1
    for estimator in (ESTIMATORS[name](), HMMEstimator(2, name, max_iter=3, tol=0)):
        features = FisherScore(estimator).fit_transform(X)
        assert np.isfinite(features).all()
    # Whitened scores do not depend on the coordinates.
    model = ESTIMATORS[name]().fit(X).model_
    grams = [
        F @ F.T for F in (FisherScore(model, coordinates=c).fit_transform(X) for c in ("softmax", "ratio", "sqrt"))
    ]
    np.testing.assert_allclose(grams[1], grams[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(grams[2], grams[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "emissions",
    [Poisson([[1.0], [8.0]]), Bernoulli([[0.1, 0.2, 0.3], [0.8, 0.9, 0.6]]), Gamma([[2.0], [9.0]], [[0.5], [1.0]])],
    ids=["poisson", "bernoulli", "gamma"],
)
def test_hidden_states_are_recovered(emissions):
    model = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], emissions)
    X = model.sample(60, length=100, rng=3)
    name = type(emissions).__name__.lower()
    estimator = HMMEstimator(2, name).fit(X)
    assert estimator.converged_
    fitted = estimator.model_
    means = {"poisson": lambda e: e.rate, "bernoulli": lambda e: e.probs, "gamma": lambda e: e.shapes * e.scale}[name]
    order = np.argsort(means(fitted.emissions)[:, 0])
    np.testing.assert_allclose(fitted.transitions[np.ix_(order, order)], model.transitions, atol=0.03)
    for field in emissions._fields:
        np.testing.assert_allclose(
            getattr(fitted.emissions, field)[order], getattr(emissions, field), rtol=0.1, atol=0.02
        )


def test_poisson_hmms_are_those_of_hmmlearn():
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    model = HMM([0.3, 0.7], [[0.9, 0.1], [0.2, 0.8]], Poisson([[1.0, 4.0], [8.0, 2.0]]))
    X = model.sample(5, length=30, rng=4)
    other = hmmlearn.PoissonHMM(2, n_iter=15, tol=-np.inf, init_params="", params="stl")  # all steps, as ours
    other.startprob_, other.transmat_, other.lambdas_ = model.start, model.transitions, model.emissions.rate
    np.testing.assert_allclose(model.log_prob(X).sum(), other.score(np.concatenate(X), [30] * 5), rtol=1e-12)
    with hmmlearn_as_it_is():
        other.fit(np.concatenate(X), [30] * 5)
    ours = HMMEstimator(2, PoissonEstimator("ml"), init=model, pseudocount=0.0, max_iter=15, tol=0.0).fit(X).model_
    np.testing.assert_allclose(ours.emissions.rate, other.lambdas_, rtol=1e-8)
    np.testing.assert_allclose(ours.transitions, other.transmat_, rtol=1e-8)


def test_binary_series_of_one_channel_do_not_start_from_certainty():
    model = HMM([0.5, 0.5], [[0.98, 0.02], [0.02, 0.98]], Bernoulli([[0.2], [0.7]]))
    X = model.sample(40, length=200, rng=5)
    fitted = HMMEstimator(2, "bernoulli").fit(X).model_
    np.testing.assert_allclose(np.sort(fitted.emissions.probs.ravel()), [0.2, 0.7], atol=0.05)


def test_a_state_without_data_keeps_its_members():
    leaf = Exponential([[1.0], [2.0]])
    blocks = {"x": np.array([[[3.0], [0.0]]]), "weight": np.array([[[1.5], [0.0]]])}
    np.testing.assert_array_equal(ExponentialEstimator().maximize_blocks(blocks, leaf).scale, [[2.0], [2.0]])


# --- the likelihood equations


@settings(deadline=None, max_examples=50)
@given(st.floats(-5.0, 9.0))
def test_gamma_shape_inverts_the_gap(exponent):
    shape = 10.0**exponent
    u = 1.0 / shape
    gap = np.log(shape) - special.digamma(shape) if shape < 100 else u / 2 + u**2 / 12 - u**4 / 120
    np.testing.assert_allclose(newton.gamma_shape(np.array([gap])), shape, rtol=2e-12)


@settings(deadline=None, max_examples=50)
@given(st.floats(-6.0, 3.0))
def test_concentration_inverts_the_ratio(exponent):
    k = 10.0**exponent
    length = special.ive(1, k) / special.ive(0, k)
    root = optimize.brentq(lambda x: special.ive(1, x) / special.ive(0, x) - length, 0.5 * k, 2 * k, xtol=1e-300)
    ours = newton.inverse_bessel_ratio(np.array([length]))[0]
    assert ours == pytest.approx(root, rel=1e-9)
    assert special.ive(1, ours) / special.ive(0, ours) == pytest.approx(length, rel=4e-16)
    assert newton.inverse_bessel_ratio(np.zeros(1))[0] == 0.0


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(-3.0, 3.0), st.integers(2, 6))
def test_dirichlet_alpha_inverts_the_expected_logs(seed, exponent, d):
    alpha = 10.0**exponent * np.random.default_rng(seed).dirichlet(np.ones(d), 3) + 1e-5
    mean_log = special.digamma(alpha) - special.digamma(alpha.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(newton.dirichlet_alpha(mean_log), alpha, rtol=1e-8)
