"""Modes and predictive distributions under conjugate priors, against optimisers and quadrature."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import gammaln, multigammaln
from sklearn.exceptions import ConvergenceWarning

from genkern import (
    HMM,
    Categorical,
    CategoricalEstimator,
    FisherScore,
    FitEach,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    MultinomialEstimator,
    StudentT,
    check_score,
)
from tests.cases import rows

COVARIANCES = ("isotropic", "diagonal", "full")
D = 2
PRIOR = {
    "isotropic": {"prior_mean": [0.5, -1.0], "prior_strength": 0.7, "prior_dof": 2.5, "prior_scale": 1.3},
    "diagonal": {"prior_mean": [0.5, -1.0], "prior_strength": 0.7, "prior_dof": 2.5, "prior_scale": [1.3, 0.4]},
    "full": {
        "prior_mean": [0.5, -1.0],
        "prior_strength": 0.7,
        "prior_dof": 3.5,
        "prior_scale": [[1.3, 0.2], [0.2, 0.4]],
    },
}


def points(seed=0, n=6):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, D)) @ [[1.0, 0.5], [0.0, 0.7]] + [1.0, 2.0]


def estimator(covariance, estimate, **changes):
    return GaussianEstimator(covariance, min_covar=0.0, estimate=estimate, **{**PRIOR[covariance], **changes})


# --- Dirichlet priors


def test_categorical_estimates():
    counts = np.array([3.0, 1.0, 0.0])
    for estimate, extra in (("ml", 0.0), ("map", 0.5), ("predictive", 1.5)):
        model = CategoricalEstimator("abc", pseudocount=0.5, estimate=estimate).fit(["aab", "a"]).model_
        np.testing.assert_allclose(model.probs, (counts + extra) / (counts + extra).sum(), rtol=1e-12)
    default = CategoricalEstimator("abc", pseudocount=0.5).fit(["aab", "a"]).model_
    assert default == CategoricalEstimator("abc", pseudocount=0.5, estimate="map").fit(["aab", "a"]).model_


def simplex_integral(counts, alpha):
    """The integral over all distributions on three symbols of likelihood times Dirichlet density (a polynomial)."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    x, y = np.meshgrid(0.5 + 0.5 * nodes, 0.5 + 0.5 * nodes)
    theta = np.stack([x, (1 - x) * y, (1 - x) * (1 - y)], axis=-1).reshape(-1, 3)
    area = (0.25 * np.outer(weights, weights) * (1 - x)).ravel()
    density = stats.dirichlet(alpha).pdf((theta / theta.sum(axis=1, keepdims=True)).T)
    return (area * density * np.prod(theta**counts, axis=1)).sum()


def test_categorical_predictive_is_a_ratio_of_marginal_likelihoods():
    counts, alpha = np.array([2.0, 1.0, 0.0]), np.full(3, 2.0)
    model = CategoricalEstimator("abc", pseudocount=1.0, estimate="predictive").fit(["aab"]).model_
    whole = simplex_integral(counts, alpha)
    expected = [simplex_integral(counts + np.eye(3)[k], alpha) / whole for k in range(3)]
    np.testing.assert_allclose(model.probs, expected, rtol=1e-10)


def test_multinomial_predictive_of_a_row_is_a_ratio_of_marginal_likelihoods():
    counts, alpha = np.array([2.0, 1.0, 0.0]), np.full(3, 2.0)
    model = MultinomialEstimator(estimate="predictive", pseudocount=1.0).fit(counts[None]).model_
    whole = simplex_integral(counts, alpha)
    X = np.array([[1, 1, 0], [0, 0, 2], [2, 0, 1]])
    expected = [simplex_integral(counts + row, alpha) / whole for row in X]
    np.testing.assert_allclose(np.exp(model.log_prob(X)), expected, rtol=1e-10)


@pytest.mark.parametrize("family", ["categorical", "multinomial"])
def test_dirichlet_mode_maximises_the_posterior(family):
    counts, extra = np.array([4.0, 1.0, 0.0]), 0.3
    if family == "categorical":
        found = CategoricalEstimator("abc", pseudocount=extra, estimate="map").fit(["aaba", "a"]).model_.probs
    else:
        found = MultinomialEstimator(pseudocount=extra, estimate="map").fit([[[4, 0, 0], [0, 1, 0]]]).model_.probs

    def loss(eta):
        logs = np.append(eta, 0.0)
        logs = logs - np.logaddexp.reduce(logs)
        return -(counts @ logs) - stats.dirichlet(np.full(3, 1.0 + extra)).logpdf(np.exp(logs))

    # The density is with respect to theta, so the optimum is that of theta, however it is parametrised.
    best = np.append(optimize.minimize(loss, np.zeros(2), tol=1e-12).x, 0.0)
    np.testing.assert_allclose(found, np.exp(best) / np.exp(best).sum(), rtol=1e-4)


def test_missing_symbols_are_left_out_and_ambiguous_ones_refused():
    estimator = CategoricalEstimator("dna", pseudocount=0.5, estimate="predictive")
    assert estimator.fit(["ACN", "N-A"]).model_ == estimator.fit(["ACA"]).model_
    with pytest.raises(ValueError, match=r"object 1, position 2 is ambiguous \('R'\).*estimate='map'"):
        estimator.fit(["ACN", "CCR"])


# --- normal-inverse-Wishart priors


def spread_of(covariance, vector):
    """Mean and covariance matrix from unconstrained numbers."""
    mean, rest = vector[:D], vector[D:]
    if covariance == "isotropic":
        return mean, np.exp(rest[0]) * np.eye(D)
    if covariance == "diagonal":
        return mean, np.diag(np.exp(rest))
    lower = np.array([[np.exp(rest[0]), 0.0], [rest[1], np.exp(rest[2])]])
    return mean, lower @ lower.T


def log_posterior(covariance, mean, cov, X):
    """Log-likelihood plus log prior density by SciPy; entries that are missing are left out of the likelihood."""
    prior = PRIOR[covariance]
    total = stats.multivariate_normal(prior["prior_mean"], cov / prior["prior_strength"]).logpdf(mean)
    if covariance == "full":
        total += stats.invwishart(prior["prior_dof"], prior["prior_scale"]).logpdf(cov)
    else:
        scales = np.atleast_1d(prior["prior_scale"])
        variances = np.diag(cov)[: len(scales)]
        total += stats.invgamma(prior["prior_dof"] / 2, scale=scales / 2).logpdf(variances).sum()
    for x in X:
        seen = ~np.isnan(x)
        if seen.any():
            total += stats.multivariate_normal(mean[seen], cov[np.ix_(seen, seen)]).logpdf(x[seen])
    return total


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("missing", [False, True])
def test_gaussian_mode_maximises_the_posterior(covariance, missing):
    X = points()
    if missing:
        X[0, 1] = X[3, 0] = np.nan
        X[4] = np.nan
    model = estimator(covariance, "map").fit(X).model_
    size = {"isotropic": 1, "diagonal": 2, "full": 3}[covariance]

    def loss(vector):
        return -log_posterior(covariance, *spread_of(covariance, vector), X)

    best = optimize.minimize(loss, np.zeros(D + size), method="BFGS", options={"gtol": 1e-7})
    mean, cov = spread_of(covariance, best.x)
    np.testing.assert_allclose(model.mean, mean, rtol=1e-4, atol=1e-5)
    found = {"isotropic": lambda c: c * np.eye(D), "diagonal": np.diag, "full": lambda c: c}[covariance](model.cov)
    np.testing.assert_allclose(found, cov, rtol=1e-4, atol=1e-5)
    assert -loss(best.x) <= log_posterior(covariance, model.mean, found, X) + 1e-8


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_log_prior_is_that_of_scipy_up_to_a_constant(covariance):
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((5, D + {"isotropic": 1, "diagonal": 2, "full": 3}[covariance]))
    pairs = [spread_of(covariance, vector) for vector in vectors]
    expected = [log_posterior(covariance, mean, cov, []) for mean, cov in pairs]
    short = {"isotropic": lambda c: c[0, 0], "diagonal": np.diag, "full": lambda c: c}[covariance]
    ours = [float(estimator(covariance, "map").log_prior(Gaussian([m], [short(c)]))) for m, c in pairs]
    np.testing.assert_allclose(np.subtract(ours, ours[0]), np.subtract(expected, expected[0]), rtol=1e-9, atol=1e-9)


def log_marginal(covariance, X):
    """Log marginal likelihood in closed form, e.g. Murphy (2007), Conjugate Bayesian analysis, eq. 266."""
    prior = PRIOR[covariance]
    m, kappa, nu = np.asarray(prior["prior_mean"]), prior["prior_strength"], prior["prior_dof"]
    n = len(X)
    centre = X.mean(axis=0) if n else m
    scatter = (X - centre).T @ (X - centre) + kappa * n / (kappa + n) * np.outer(centre - m, centre - m)
    if covariance == "full":
        psi = np.asarray(prior["prior_scale"])
        logs = multigammaln((nu + n) / 2, D) - multigammaln(nu / 2, D)
        logs += nu / 2 * np.linalg.slogdet(psi)[1] - (nu + n) / 2 * np.linalg.slogdet(psi + scatter)[1]
        return logs - n * D / 2 * np.log(np.pi) + D / 2 * np.log(kappa / (kappa + n))
    if covariance == "isotropic":
        blocks, width = [(prior["prior_scale"], np.trace(scatter))], D
    else:
        blocks, width = list(zip(prior["prior_scale"], np.diag(scatter))), 1
    total = 0.0
    for psi, square in blocks:
        total += gammaln((nu + n * width) / 2) - gammaln(nu / 2) + nu / 2 * np.log(psi)
        total -= (nu + n * width) / 2 * np.log(psi + square) + n * width / 2 * np.log(np.pi)
        total += width / 2 * np.log(kappa / (kappa + n))
    return total


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_gaussian_predictive_is_a_ratio_of_marginal_likelihoods(covariance, n):
    X, new = points(2, n), points(3, 5)
    model = estimator(covariance, "predictive").fit(X).model_
    assert isinstance(model, StudentT)
    whole = log_marginal(covariance, X)
    expected = [log_marginal(covariance, np.vstack([X, x])) - whole for x in new]
    np.testing.assert_allclose(model.log_prob(new), expected, rtol=1e-8)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_marginal_likelihood_of_one_channel_by_quadrature(covariance):
    X, new = np.array([0.3, -1.2]), 0.8
    prior = {"prior_mean": 0.5, "prior_strength": 0.7, "prior_dof": 2.5, "prior_scale": 1.3}
    model = GaussianEstimator(covariance, 0.0, "predictive", **prior).fit(X[:, None]).model_

    def marginal(data):
        # The trapezoid rule in log v and in units of the standard deviation, in which the integrand dies away fast.
        log_v, u = np.meshgrid(np.arange(-8.0, 30.0, 0.05), np.arange(-14.0, 14.0, 0.05))
        v = np.exp(log_v)
        mean = 0.5 + u * np.sqrt(v)
        logs = stats.norm.logpdf(mean, 0.5, np.sqrt(v / 0.7)) + stats.invgamma.logpdf(v, 1.25, scale=0.65)
        for x in data:
            logs = logs + stats.norm.logpdf(x, mean, np.sqrt(v))
        return np.exp(logs + 1.5 * log_v).sum()

    expected = marginal(np.append(X, new)) / marginal(X)
    np.testing.assert_allclose(np.exp(model.log_prob([[new]])), expected, rtol=1e-9)


def test_diagonal_predictive_leaves_out_missing_entries_exactly():
    X = points(4, 8)
    X[[0, 2, 3], 0] = np.nan
    X[5] = np.nan
    model = estimator("diagonal", "predictive").fit(X).model_
    for j in range(D):
        prior = {**PRIOR["diagonal"], "prior_mean": PRIOR["diagonal"]["prior_mean"][j]}
        prior["prior_scale"] = PRIOR["diagonal"]["prior_scale"][j]
        alone = GaussianEstimator("diagonal", 0.0, "predictive", **prior).fit(X[~np.isnan(X[:, j]), j : j + 1]).model_
        for name in ("mean", "scale", "df"):
            np.testing.assert_allclose(getattr(model, name)[j], getattr(alone, name)[0], rtol=1e-10)


@pytest.mark.parametrize("covariance", ["isotropic", "full"])
def test_points_missing_as_a_whole_are_left_out_and_others_refused(covariance):
    X = points(4, 8)
    holed = np.insert(X, 3, np.nan, axis=0)
    model, whole = (estimator(covariance, "predictive").fit(x).model_ for x in (holed, X))
    np.testing.assert_allclose(model.parameters(), whole.parameters(), rtol=1e-10)
    holed[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"object 1, position 3 is missing in part.*covariance='diagonal'"):
        estimator(covariance, "predictive").fit([holed[:2], holed[2:]])


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("estimate", ["ml", "map", "predictive"])
@pytest.mark.parametrize("given", [True, False])
def test_fit_each_depends_on_its_object_alone(covariance, estimate, given):
    X = [points(5, 6), points(6, 3), points(7, 4)]
    prior = PRIOR[covariance] if given else {}
    own = GaussianEstimator(covariance, estimate=estimate, **prior)
    for x, model in zip(X, own.fit_each(X), strict=True):
        assert own.fit_each([x])[0] == model
        alone = own.fit([x]).model_
        assert type(alone) is type(model)
        np.testing.assert_allclose(alone.parameters(), model.parameters(), rtol=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("estimate", ["ml", "map"])
def test_fits_to_missing_entries_do_not_notice_their_neighbours(covariance, estimate):
    X = [points(seed, 12) for seed in range(6)]
    for x, where in zip(X[1:], [(0, 0), (3, 1), ([1, 2, 5, 6], 0), (4, 1), (slice(0, 5), 1)]):
        x[where] = np.nan
    own = GaussianEstimator(covariance, estimate=estimate)
    for x, model in zip(X, own.fit_each(X), strict=True):
        assert own.fit_each([x])[0] == model
        np.testing.assert_allclose(own.fit([x]).model_.parameters(), model.parameters(), rtol=1e-8, atol=1e-8)
    letters = CategoricalEstimator("dna", estimate=estimate)
    words = ["ACGTA", "RRGAC", "ANNYG", "ACK"]
    assert letters.fit_each(words) == [letters.fit_each([word])[0] for word in words]


@pytest.mark.parametrize("estimate", ["ml", "map", "predictive"])
def test_columns_without_any_value_need_a_prior(estimate):
    X = [points(0, 4), points(1, 4)]
    X[1][:, 0] = np.nan
    with pytest.raises(ValueError, match=r"object 1 has no observed value in column 0.*prior"):
        GaussianEstimator(estimate=estimate).fit_each(X)
    with pytest.raises(ValueError, match=r"the objects have no observed value in column 0"):
        GaussianEstimator(estimate=estimate).fit(X[1:])
    assert np.isfinite(GaussianEstimator(estimate=estimate).fit(X).model_.parameters()).all()
    if estimate != "ml":
        model = estimator("diagonal", estimate).fit_each(X)[1]
        assert model.mean[0] == pytest.approx(PRIOR["diagonal"]["prior_mean"][0])


def test_fits_that_do_not_converge_say_so(monkeypatch):
    monkeypatch.setattr(GaussianEstimator, "max_passes", 2)
    X = points(9, 10)
    X[:5, 0] = np.nan
    with pytest.warns(ConvergenceWarning, match="1 of 2 fits.*did not converge in 2 passes"):
        GaussianEstimator("full").fit_each([X, points(10, 4)])


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_default_prior_comes_from_the_data_and_is_weak(covariance):
    X = points(8, 400)
    plain = GaussianEstimator(covariance).fit(X).model_
    for estimate in ("map", "predictive"):
        model = GaussianEstimator(covariance, estimate=estimate).fit(X).model_
        np.testing.assert_allclose(model.mean, plain.mean, rtol=1e-10)
        spread = model.cov if estimate == "map" else model.scale
        np.testing.assert_allclose(spread, plain.cov, rtol=0.05)


def test_resolve_lends_small_objects_the_prior_of_all():
    X = [points(seed, 2) for seed in range(20)]
    estimator = GaussianEstimator("full", estimate="map", prior_strength=1.0)
    resolved = estimator.resolve(X)
    whole = np.concatenate(X)
    np.testing.assert_allclose(resolved.prior_mean, whole.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(resolved.prior_scale, np.diag(whole.var(axis=0)), rtol=1e-12)
    models = FitEach(estimator).fit_transform(X)
    assert models == resolved.fit_each(X)
    np.testing.assert_allclose(models[0].mean, (2 * X[0].mean(axis=0) + whole.mean(axis=0)) / 3, rtol=1e-12)
    assert models != estimator.fit_each(X)
    assert GaussianEstimator().resolve(X).prior_mean is None


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_one_point_and_constant_data_have_estimates(covariance):
    for X in (np.ones((1, 2)), np.ones((4, 2))):
        mode = GaussianEstimator(covariance, 0.01, "map").fit(X).model_
        np.testing.assert_allclose(mode.mean, 1.0, rtol=1e-12)
        assert np.linalg.eigvalsh(mode.cov).min() > 0 if covariance == "full" else mode.cov.min() >= 0.01
        predictive = GaussianEstimator(covariance, 0.01, "predictive").fit(X).model_
        assert np.isfinite(predictive.log_prob(X)).all()


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_hmm_with_a_prior_on_emissions_never_falls(covariance):
    emissions = Gaussian([[0.0, 0.0], [3.0, 3.0]], [1.0, 0.5])
    X = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], emissions).sample(5, length=20, rng=0)
    X[0][3] = np.nan
    fitted = HMMEstimator(2, GaussianEstimator(covariance, estimate="map", prior_strength=0.5), tol=1e-8).fit(X)
    history = np.array(fitted.history_)
    assert np.diff(history).min() >= -1e-9 * abs(history[-1])
    assert len(history) > 3
    models = HMMEstimator(2, GaussianEstimator(covariance, estimate="map"), max_iter=3, tol=0).fit_each(X)
    assert all(np.isfinite(model.log_prob(X)).all() for model in models)


@pytest.mark.parametrize(
    "emission", [CategoricalEstimator(estimate="predictive"), GaussianEstimator(estimate="predictive")]
)
def test_predictive_distributions_are_refused_inside_em(emission):
    X = ["abab", "ba"] if isinstance(emission, CategoricalEstimator) else [points(), points(1)]
    with pytest.raises(ValueError, match=r"cannot be the M-step.*estimate='map'"):
        HMMEstimator(2, emission).fit(X)
    plain = type(emission)().fit(X).model_
    with pytest.raises(ValueError, match="M-step"):
        emission.maximize(plain.statistics(X))


def test_maximum_likelihood_ignores_the_prior():
    X = points()
    assert GaussianEstimator("full", 0.0, **PRIOR["full"]).fit(X).model_ == GaussianEstimator("full", 0.0).fit(X).model_
    chain = HMMEstimator(2, CategoricalEstimator(pseudocount=5.0, estimate="ml"), max_iter=5, tol=0).fit(
        ["abba", "aab"]
    )
    assert np.diff(chain.history_).min() >= -1e-9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimate": "mean"}, "'ml', 'map', 'predictive'"),
        ({"prior_strength": 0.0}, "prior_strength"),
        ({"prior_dof": 0.5, "covariance": "full"}, "prior_dof.*> 1"),
        ({"prior_mean": [0.0, 0.0, 0.0]}, "prior_mean.*\\(2,\\).*\\(3,\\)"),
        ({"prior_scale": [[1.0, 0.0], [0.0, 1.0]]}, "more to it than diagonal"),
        ({"prior_scale": 0.0}, "positive"),
        ({"prior_scale": [[1.0, 2.0], [2.0, 1.0]], "covariance": "full"}, "positive semi-definite"),
        ({"prior_scale": [1.0, 1.0, 1.0]}, "prior_scale"),
    ],
)
def test_wrong_priors_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        GaussianEstimator(**{"estimate": "map", **parameters}).fit(points())


def test_an_m_step_needs_a_prior_that_is_given():
    X = points()
    statistics = Gaussian([0.0, 0.0], [1.0, 1.0]).statistics(X)
    unresolved = GaussianEstimator(estimate="map")
    with pytest.raises(ValueError, match="resolve"):
        unresolved.maximize(statistics)
    np.testing.assert_allclose(
        unresolved.resolve(X).maximize(statistics).parameters(), unresolved.fit(X).model_.parameters(), rtol=1e-10
    )


# --- Student's t distributions


def random_t(covariance, batch=(), seed=0, d=D):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((*batch, d, d))
    scale = {
        "isotropic": rng.random(batch) + 0.5,
        "diagonal": rng.random((*batch, d)) + 0.5,
        "full": half @ np.swapaxes(half, -1, -2) + 0.3 * np.eye(d),
    }[covariance]
    df = rng.random((*batch, d) if covariance == "diagonal" else batch) * 4 + 1.0
    return StudentT(rng.standard_normal((*batch, d)), scale, df)


def t_density(model, x):
    """Log density by SciPy of one point, missing entries left out."""
    seen = np.flatnonzero(~np.isnan(x))
    if len(seen) == 0:
        return 0.0
    if model.scale.ndim == 1:
        return sum(stats.t(model.df[j], model.mean[j], np.sqrt(model.scale[j])).logpdf(x[j]) for j in seen)
    scale = model.scale * np.eye(len(x)) if model.scale.ndim == 0 else model.scale
    return stats.multivariate_t(model.mean[seen], scale[np.ix_(seen, seen)], model.df).logpdf(x[seen])


def holed(seed, n, d=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 2
    X[rng.random(X.shape) < 0.3] = np.nan
    return X


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_t_density_is_that_of_scipy(covariance):
    stack = random_t(covariance, (2, 2), d=3)
    X = holed(0, 25)
    expected = [[[t_density(stack[i, j], x) for j in range(2)] for i in range(2)] for x in X]
    np.testing.assert_allclose(stack.log_density(X), expected, rtol=1e-9, atol=1e-10)
    whole = np.nan_to_num(X)
    expected = [t_density(stack[1, 0], x) for x in whole]
    np.testing.assert_allclose(stack[1, 0].log_prob(whole), expected, rtol=1e-9)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_t_density_integrates_to_one(covariance):
    model = random_t(covariance, seed=1, d=1)

    def density(u):
        x = np.tan(u)
        return np.exp(model.log_density(np.array([[x]]))[0]) * (1.0 + x * x)

    total, _ = integrate.quad(density, -np.pi / 2, np.pi / 2)
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_t_scores_match_differences(covariance):
    model = random_t(covariance, seed=2, d=3)
    assert max(check_score(model, [holed(1, 4), holed(2, 2), np.full((1, 3), np.nan)]).values()) < 1e-7


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_t_sample_and_density_agree(covariance):
    model = random_t(covariance, seed=3)
    draws = np.concatenate(model.sample(4000, rng=5))
    gaps = draws - model.mean
    if covariance == "diagonal":
        for j in range(D):
            assert stats.kstest(gaps[:, j] / np.sqrt(model.scale[j]), stats.t(model.df[j]).cdf).pvalue > 1e-3
        assert abs(stats.spearmanr(np.abs(gaps)).statistic) < 0.06
        return
    scale = model.scale * np.eye(D) if covariance == "isotropic" else model.scale
    squares = np.einsum("ta,ab,tb->t", gaps, np.linalg.inv(scale), gaps)
    assert stats.kstest(squares / D, stats.f(D, model.df).cdf).pvalue > 1e-3
    white = np.linalg.solve(np.linalg.cholesky(scale), gaps.T)
    assert stats.kstest(np.arctan2(*white), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-3


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
def test_t_information_is_the_second_moment_of_scores(covariance, coordinates):
    model = random_t(covariance, seed=4)
    # The trapezoid rule in the logarithm of the distance from the centre, in which the integrand dies away fast.
    if covariance == "diagonal":
        s = np.arange(-14.0, 20.0, 0.2)
        line = np.concatenate([-np.exp(s), np.exp(s)])
        noise = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, D)
        weights = 0.04 * np.abs(noise).prod(axis=1)
        root = np.diag(np.sqrt(model.scale))
    else:
        s, angle = np.meshgrid(np.arange(-20.0, 40.0, 0.1), np.arange(16) * np.pi / 8)
        noise = np.exp(s.ravel())[:, None] * np.stack([np.cos(angle.ravel()), np.sin(angle.ravel())], axis=-1)
        weights = 0.1 * np.pi / 8 * np.exp(2 * s.ravel())
        root = np.linalg.cholesky(model.scale * np.eye(D) if covariance == "isotropic" else model.scale)
    X = model.mean + noise @ root.T
    weights = weights * np.linalg.det(root) * np.exp(model.log_prob(X))
    assert weights.sum() == pytest.approx(1.0, abs=1e-4)
    scores = model.log_prob_grad(X, coordinates)
    moment = (weights * scores.T) @ scores
    information = np.zeros_like(moment)
    start = 0
    for block in model.stack([model]).member_information(np.ones(1), coordinates):
        information[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    unit = np.sqrt(np.diag(moment))
    np.testing.assert_allclose(information / np.outer(unit, unit), moment / np.outer(unit, unit), atol=1e-3)
    np.testing.assert_allclose(weights @ scores / unit, 0.0, atol=1e-3)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_t_stacks_round_trip_and_serve_as_emissions(covariance):
    stack = random_t(covariance, (2,), seed=5)
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        back = stack.with_parameters(stack.parameters(coordinates), coordinates)
        np.testing.assert_allclose(back.parameters("raw"), stack.parameters("raw"), rtol=1e-12)
    assert len(set(stack.parameter_names)) == len(stack.parameters())
    assert stack.unstack() == [stack[0], stack[1]]
    rng = np.random.default_rng(7)
    model = HMM(rows(rng, 2), rows(rng, 2, 2), stack)
    X = [holed(3, 4, D), holed(4, 2, D)]
    assert max(check_score(model, X).values()) < 1e-6
    assert FisherScore(model).fit(X).transform(X).shape == (2, len(model.parameter_names))
    own = StudentT.stack([stack, random_t(covariance, (2,), seed=6)])
    packed = own.pack(X)
    np.testing.assert_array_equal(own.own_log_density(packed)[4:], own[1].log_density(X[1]))
    weights = rng.random((6, 2))
    for name, block in own.weigh(packed, weights, totals=False).items():
        alone = own[1].weigh(own.pack(X[1:]), weights[4:], totals=False)[name]
        np.testing.assert_allclose(block[1], alone[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: StudentT([0.0, 0.0], [1.0, 0.0], 1.0), "'scale' must be positive"),
        (lambda: StudentT([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], 1.0), "'scale' must be positive"),
        (lambda: StudentT([0.0, 0.0], 1.0, 0.0), "'df' must be a positive"),
        (lambda: StudentT([0.0, 0.0], 1.0, [1.0, 1.0]), "'df'.*shape \\(\\)"),
        (lambda: StudentT([0.0, 0.0], [1.0, 1.0, 1.0], 1.0), "StudentT: 'scale' must have shape"),
        (lambda: StudentT([0.0, 0.0], 1.0, 2.0).log_prob(np.zeros((1, 3))), "2 were expected"),
    ],
)
def test_t_errors_say_what_is_wrong(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_categorical_stays_a_categorical():
    assert isinstance(CategoricalEstimator(2, estimate="predictive").fit_each([[0, 1], [1, 1]])[0], Categorical)
