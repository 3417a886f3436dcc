import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pykalman import KalmanFilter
from scipy import stats
from scipy.linalg import solve_discrete_lyapunov
from sklearn.exceptions import ConvergenceWarning
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

from genkern import LDS, FisherScore, FitEach, LDSEstimator, SwitchingLDS, check_score
from genkern.models.lds.step import BOUND
from tests.oracles_lds import dense, dense_states, drop, random_lds

FORMS = {
    "full": ("full", "full", "full"),
    "diagonal": ("diagonal", "diagonal", "isotropic"),
    "isotropic": ("isotropic", "isotropic", "diagonal"),
    "no state noise": ("zero", "full", "full"),
    "deterministic": ("zero", "diagonal", "zero"),
}


@pytest.fixture(params=FORMS)
def case(request):
    rng = np.random.default_rng(5)
    model = random_lds(rng, 2, 3, FORMS[request.param])
    X = model.sample(4, length=7, rng=6)
    X[1], X[2] = drop(rng, X[1]), X[2][:1]
    return model, X


# --- the value


def test_log_prob_is_that_of_the_dense_joint_gaussian(case):
    model, X = case
    np.testing.assert_allclose(model.log_prob(X), [dense(model, x)[0] for x in X], rtol=1e-11)
    for x in X:  # NaN are integrated out there, too
        joint = model.to_gaussian(len(x))
        np.testing.assert_allclose(joint.log_prob([x.reshape(1, -1)]), model.log_prob([x]), rtol=1e-10)


def test_to_gaussian_is_the_law_of_the_observations(case):
    model, _ = case
    mean, cov = dense_states(model, 4)
    look = np.kron(np.eye(4), model.observation)
    joint = model.to_gaussian(4)
    np.testing.assert_allclose(joint.mean, look @ mean + np.tile(model.offset, 4), atol=1e-13)
    expected = look @ cov @ look.T + np.kron(np.eye(4), model.matrices()[1])
    np.testing.assert_allclose(joint.cov, expected, atol=1e-13)
    stacked = LDS.stack([model, model]).to_gaussian(4)
    np.testing.assert_allclose(stacked.cov[1], joint.cov, atol=1e-13)


def test_the_density_integrates_to_one():
    model = random_lds(np.random.default_rng(0), 2, 1)
    joint = model.to_gaussian(2)
    axes = [m + np.linspace(-9, 9, 181) * np.sqrt(v) for m, v in zip(joint.mean, np.diag(joint.cov))]
    grid = [np.array(point) for point in itertools.product(*axes)]
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    np.testing.assert_allclose(np.exp(model.log_prob(grid)).sum() * cell, 1.0, rtol=1e-9)


def test_samples_follow_the_density():
    model = random_lds(np.random.default_rng(1), 2, 2)
    X = np.array(model.sample(3000, length=5, rng=0)).reshape(3000, -1)
    joint = model.to_gaussian(5)
    white = np.linalg.solve(np.linalg.cholesky(joint.cov), (X - joint.mean).T)
    assert min(stats.kstest(row, "norm").pvalue for row in white) > 1e-3
    assert stats.kstest((white**2).sum(axis=0), "chi2", args=(10,)).pvalue > 1e-3
    assert np.abs(np.corrcoef(white) - np.eye(10)).max() < 0.08


def test_derivatives_match_differences(case):
    assert max(check_score(*case).values()) < 1e-7


@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 3), d=st.integers(1, 3))
def test_derivatives_match_differences_of_random_systems(seed, n, d):
    rng = np.random.default_rng(seed)
    model = random_lds(rng, n, d, [rng.choice(["full", "diagonal", "isotropic"]) for _ in range(3)])
    X = [drop(rng, x, 0.2) for x in model.sample(2, length=int(rng.integers(2, 9)), rng=rng)]
    check_score(model, X, tol=1e-6)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_change_of_basis_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    model = random_lds(rng, 3, 2)
    T = rng.standard_normal((3, 3)) + 3.0 * np.eye(3)
    back = np.linalg.inv(T)
    Q, R, P = model.matrices()
    A, C = T @ model.transition @ back, model.observation @ back
    turned = LDS(A, C, T @ Q @ T.T, R, T @ model.initial_mean, T @ P @ T.T, model.offset)
    X = [drop(rng, x, 0.2) for x in model.sample(3, length=12, rng=rng)]
    np.testing.assert_allclose(turned.log_prob(X), model.log_prob(X), rtol=1e-8, atol=1e-8)
    for (ours, _), (theirs, _) in zip(turned.posterior(X), model.posterior(X)):
        np.testing.assert_allclose(ours, theirs @ T.T, rtol=1e-6, atol=1e-7)


def test_scores_have_mean_zero_and_information_covers_theirs():
    model = random_lds(np.random.default_rng(1), 1, 1)
    scores = model.log_prob_grad(model.sample(20_000, length=3, rng=0))
    spread = scores.std(axis=0) / np.sqrt(len(scores))
    assert (np.abs(scores.mean(axis=0)) < 4.5 * spread).all()


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt", "raw"])
@pytest.mark.parametrize("forms", ["full", "diagonal", "isotropic"])
def test_information_is_that_of_states_and_observations(forms, coordinates):
    # Seen with its states, a system is one with observation [I; C] and no noise on the states.
    model = random_lds(np.random.default_rng(2), 2, 2, FORMS[forms])
    lengths = np.array([3, 4, 4])

    def complete(theta, length):
        moved = model.with_parameters(theta, coordinates)
        Q, R, P = moved.matrices()
        noise = np.zeros((4, 4))
        noise[2:, 2:] = R
        look, level = np.vstack([np.eye(2), moved.observation]), np.append(np.zeros(2), moved.offset)
        both = LDS(moved.transition, look, Q, noise, moved.initial_mean, P, level)
        joint = both.to_gaussian(length)
        return joint.mean, joint.cov

    theta, p = model.parameters(coordinates), len(model.parameter_names)
    expected = np.zeros((p, p))
    for length in lengths:
        inverse, slopes = np.linalg.inv(complete(theta, length)[1]), []
        for j in range(p):
            step = 1e-5 * np.eye(p)[j]
            high, low = complete(theta + step, length), complete(theta - step, length)
            slopes.append([(h - b) / 2e-5 for h, b in zip(high, low)])
        for j, k in np.ndindex(p, p):
            means = slopes[j][0] @ inverse @ slopes[k][0]
            spreads = 0.5 * np.trace(inverse @ slopes[j][1] @ inverse @ slopes[k][1])
            expected[j, k] += (means + spreads) / len(lengths)
    ours = np.zeros((p, p))
    for index, block in model.information(lengths, coordinates):
        ours[np.ix_(index, index)] = block
    np.testing.assert_allclose(ours, expected, atol=2e-6 * np.abs(expected).max())


def test_statistics_totals_and_own_models(case):
    model, X = case
    each, total = model.statistics(X), model.statistics(X, totals=True)
    for name, block in each.total().blocks.items():
        np.testing.assert_allclose(total[name], block, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(each["counts"], [[1, 6, 7], [1, 6, 6], [1, 0, 1], [1, 6, 7]])
    own = LDS.stack([model] * 4).statistics(X)
    for name, block in each.blocks.items():
        np.testing.assert_allclose(own[name], block, rtol=1e-9, atol=1e-9)


def test_forecast_is_the_conditional_law(case):
    model, X = case
    for x, (mean, cov) in zip(X, model.forecast(X, 2)):
        joint = model.to_gaussian(len(x) + 2)
        seen = np.append(~np.isnan(x.ravel()), np.zeros(6, bool))
        gain = np.linalg.solve(joint.cov[np.ix_(seen, seen)], joint.cov[np.ix_(seen, np.arange(len(seen)) >= x.size)]).T
        expected = joint.mean[x.size :] + gain @ (x.ravel()[seen[: x.size]] - joint.mean[seen])
        np.testing.assert_allclose(mean.ravel(), expected, atol=1e-10)
        spread = joint.cov[x.size :, x.size :] - gain @ joint.cov[np.ix_(seen, np.arange(len(seen)) >= x.size)]
        for k in range(2):
            np.testing.assert_allclose(cov[k], spread[3 * k : 3 * k + 3, 3 * k : 3 * k + 3], atol=1e-10)


def test_parameters_round_trip(case):
    model, X = case
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        again = model.with_parameters(model.parameters(coordinates), coordinates)
        np.testing.assert_allclose(again.log_prob(X), model.log_prob(X), rtol=1e-12)
        assert len(model.parameter_names) == len(model.parameters(coordinates)) == len(set(model.parameter_names))
    assert pickle.loads(pickle.dumps(model)) == model
    assert LDS.stack([model, model])[1] == model


def test_a_stack_has_one_column_per_member():
    rng = np.random.default_rng(0)
    models = [random_lds(rng) for _ in range(3)]
    X = models[0].sample(2, length=4, rng=0)
    stack = LDS.stack(models)
    assert stack.shape == (3,)
    np.testing.assert_array_equal(stack.log_prob(X), np.stack([model.log_prob(X) for model in models], axis=1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"observation": [1.0]}, r"'observation' must have shape batch \+ \(d, n\)"),
        ({"transition": np.eye(3)}, r"'transition' must have shape \(2, 2\)"),
        ({"state_cov": [[1.0, 2.0], [2.0, 1.0]]}, "positive semi-definite"),
        ({"obs_cov": -1.0}, "must not be negative"),
        ({"initial_mean": [np.nan, 0.0]}, "must be finite"),
        ({"offset": [0.0, 0.0]}, r"'offset' must have shape \(1,\)"),
    ],
)
def test_wrong_parameters_are_refused(change, match):
    given = {
        "transition": np.eye(2),
        "observation": [[1.0, 0.0]],
        "state_cov": 1.0,
        "obs_cov": 1.0,
        "initial_mean": [0.0, 0.0],
        "initial_cov": 1.0,
    }
    LDS(**given)
    with pytest.raises(ValueError, match=match):
        LDS(**{**given, **change})


def test_what_has_no_density_is_refused_by_object_and_position():
    model = LDS([[0.5]], [[1.0], [1.0]], 1.0, 0.0, [0.0], 1.0)
    X = [[[1.0, np.nan]], [[np.nan, np.nan], [1.0, 1.0]]]
    for call in (model.log_prob, model.posterior, model.log_prob_grad):
        with pytest.raises(ValueError, match=r"object 1, position 1: .* is singular"):
            call(X)
    with pytest.raises(ValueError, match="'obs_cov' is singular"):
        model.information([3])
    with pytest.raises(ValueError, match="object 0 has 1 channels"):
        model.log_prob([[1.0, 2.0]])
    with pytest.raises(ValueError, match="needs one model or one per object"):
        LDS.stack([model, model]).statistics(X[:1])


# --- against others


def peer_of(model):
    Q, R, P = model.matrices()
    return KalmanFilter(
        transition_matrices=model.transition,
        observation_matrices=model.observation,
        transition_covariance=Q,
        observation_covariance=R,
        observation_offsets=model.offset,
        initial_state_mean=model.initial_mean,
        initial_state_covariance=P,
    )


def test_pykalman_agrees():
    rng = np.random.default_rng(0)
    model = random_lds(rng, 4, 3)
    (x,) = model.sample(1, length=60, rng=1)
    x[[5, 20, 21]] = np.nan
    masked = np.ma.masked_invalid(x)
    peer = peer_of(model)
    np.testing.assert_allclose(model.log_prob([x])[0], peer.loglikelihood(masked), rtol=1e-10)
    means, covs = peer.smooth(masked)
    ((ours, spread),) = model.posterior([x])
    np.testing.assert_allclose(ours, means, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(spread, covs, rtol=1e-8, atol=1e-8)


def test_statsmodels_agrees_on_missing_entries():
    rng = np.random.default_rng(0)
    model = random_lds(rng, 3, 2)
    x = drop(rng, model.sample(1, length=60, rng=1)[0])
    peer = KalmanSmoother(k_endog=2, k_states=3)
    Q, R, P = model.matrices()
    peer["design"], peer["transition"], peer["selection"] = model.observation, model.transition, np.eye(3)
    peer["obs_cov"], peer["state_cov"], peer["obs_intercept"] = R, Q, model.offset[:, None]
    peer.initialize_known(model.initial_mean, P)
    peer.bind(np.ascontiguousarray(x))
    peer.loglikelihood_burn = 0
    result = peer.smooth()
    np.testing.assert_allclose(model.log_prob([x])[0], result.llf_obs.sum(), rtol=1e-10)
    ((means, covs, crosses),) = model.posterior([x], pairs=True)
    np.testing.assert_allclose(means, result.smoothed_state.T, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(covs, result.smoothed_state_cov.transpose(2, 0, 1), rtol=1e-8, atol=1e-8)
    # statsmodels gives Cov(s_{t+1}, s_t) at t + 1
    theirs = result.smoothed_state_autocov.transpose(2, 0, 1)[:-1]
    np.testing.assert_allclose(crosses, theirs, rtol=1e-8, atol=1e-8)


def test_an_em_step_is_that_of_pykalman():
    rng = np.random.default_rng(0)
    model = random_lds(rng, 2, 3)
    (x,) = random_lds(rng, 2, 3).sample(1, length=80, rng=1)
    names = ("transition", "observation")
    wanted = [f"{name}_{kind}" for name in names for kind in ("matrices", "covariance")]
    peer = peer_of(model).em(x, n_iter=3, em_vars=[*wanted, "initial_state_mean", "initial_state_covariance"])
    ours = LDSEstimator(2, "full", init=model, max_iter=3, tol=0, offset=False).fit([x]).model_
    np.testing.assert_allclose(ours.offset, model.offset, rtol=1e-12)
    np.testing.assert_allclose(ours.transition, peer.transition_matrices, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.observation, peer.observation_matrices, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.state_cov, peer.transition_covariance, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.obs_cov, peer.observation_covariance, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.initial_mean, peer.initial_state_mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.initial_cov, peer.initial_state_covariance, rtol=1e-8, atol=1e-8)


# --- the estimator


def ragged(seed=0, n=2, d=3, count=30, length=40, missing=0.2):
    rng = np.random.default_rng(seed)
    model = random_lds(rng, n, d, ("full", "diagonal", "full"))
    X = [x[: rng.integers(5, length)] for x in model.sample(count, length=length, rng=rng)]
    X[::3] = [drop(rng, x, missing) for x in X[::3]]
    return model, X


OPTIONS = [
    {},
    {"init": "pca"},
    {"covariance": "full"},
    {"covariance": "isotropic"},
    {"pseudocount": 10.0, "obs_variance": 0.5},
    {"pseudocount": 10.0, "covariance": "full"},
    {"offset": False},
    {"stable": True},
    {"n_states": 4, "n_init": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_em_never_falls(options):
    _, X = ragged()
    estimator = LDSEstimator(**{"n_states": 2, "max_iter": 40, "tol": 0.0, **options}).fit(X)
    history = np.array(estimator.history_)
    assert len(history) == 41
    assert history[-1] > history[0]
    assert (np.diff(history) / np.abs(history[1:])).min() >= -1e-9


@pytest.mark.parametrize(
    "options", [{}, {"covariance": "full", "pseudocount": 20.0, "state_variance": 0.3, "obs_variance": 1.0}], ids=str
)
def test_em_ends_where_the_derivatives_vanish(options):
    # where EM has converged, the score of the data and that of the prior cancel
    _, X = ragged(n=1, d=2)
    estimator = LDSEstimator(1, **{"obs_variance": 0.5, **options}, tol=0, max_iter=4000).fit(X)
    model, nu = estimator.model_, estimator.pseudocount
    gradient = model.statistics(X, totals=True)
    Q, R, _ = model.matrices()
    for name, cov, variance in (("state_cov", Q, estimator.state_variance), ("obs_cov", R, estimator.obs_variance)):
        inverse = np.linalg.inv(cov)
        slope = gradient[name][0] - 0.5 * nu * (inverse - variance * inverse @ inverse)
        slope = slope if model.obs_cov.ndim == 2 or name == "state_cov" else np.diag(slope)
        np.testing.assert_allclose(slope, 0.0, atol=2e-2)
    for name in ("transition", "observation", "initial_mean", "offset"):
        np.testing.assert_allclose(gradient[name], 0.0, atol=2e-2)


def autocovariances(model, lags=5):
    """Return C A^k Pi C^T of the stationary system, Pi = A Pi A^T + Q."""
    spread = solve_discrete_lyapunov(model.transition, model.matrices()[0])
    powers = [np.linalg.matrix_power(model.transition, k) for k in range(lags)]
    return np.array([model.observation @ power @ spread @ model.observation.T for power in powers])


@pytest.mark.parametrize("init", ["subspace", "pca"])
def test_em_recovers_a_system_up_to_its_basis(init):
    rng = np.random.default_rng(4)
    model = random_lds(rng, 2, 3, ("full", "diagonal", "full"))
    X = model.sample(100, length=120, rng=rng)
    X[::4] = [drop(rng, x, 0.2) for x in X[::4]]
    fitted = LDSEstimator(2, init=init, tol=1e-6, max_iter=2000).fit(X).model_
    assert fitted.log_prob(X).sum() >= model.log_prob(X).sum()
    ours, truth = autocovariances(fitted), autocovariances(model)
    np.testing.assert_allclose(ours, truth, atol=0.06 * np.abs(truth).max())
    np.testing.assert_allclose(fitted.obs_cov, model.obs_cov, rtol=0.25)
    roots = [np.sort_complex(np.linalg.eigvals(m.transition)) for m in (fitted, model)]
    np.testing.assert_allclose(*roots, atol=0.03)


def test_the_subspace_start_knows_the_dynamics():
    rng = np.random.default_rng(4)
    model = random_lds(rng, 3, 2, ("full", "diagonal", "full"))
    X = model.sample(50, length=400, rng=rng)
    guess = LDSEstimator(3, max_iter=0).fit(X).model_
    roots = [np.sort_complex(np.linalg.eigvals(m.transition)) for m in (guess, model)]
    np.testing.assert_allclose(*roots, atol=0.1)


def test_noise_free_parts_stay_so():
    rng = np.random.default_rng(0)
    model = random_lds(rng, 2, 2, ("zero", "full", "zero"))
    X = model.sample(5, length=20, rng=1)
    fitted = LDSEstimator(2, init=model, relative_floor=0.0, max_iter=5, tol=0).fit(X)
    assert np.array_equal(fitted.model_.state_cov, model.state_cov)
    np.testing.assert_array_equal(fitted.model_.transition, model.transition)
    assert np.diff(fitted.history_).min() >= -1e-9


def test_stable_dynamics():
    rng = np.random.default_rng(0)
    X = [np.cumsum(rng.standard_normal((40, 2)), axis=0) * 1.03 ** np.arange(40)[:, None] for _ in range(10)]
    wild, held = (LDSEstimator(2, stable=stable, max_iter=60, tol=0).fit(X) for stable in (False, True))
    radius = [np.abs(np.linalg.eigvals(e.model_.transition)).max() for e in (wild, held)]
    assert radius[0] > 1.0
    assert radius[1] <= BOUND * (1.0 + 1e-12)
    history = np.array(held.history_)
    assert (np.diff(history) / np.abs(history[1:])).min() >= -1e-9
    assert history[-1] < wild.history_[-1]


def test_own_models_depend_on_their_series_alone():
    _, X = ragged(count=12)
    settings = {"max_iter": 20, "n_init": 2, "random_state": 3}
    with pytest.warns(ConvergenceWarning, match="did not converge in 20 steps"):
        models = LDSEstimator(2, **settings).fit_each(X)
    with pytest.warns(ConvergenceWarning):
        again = LDSEstimator(2, **settings, n_jobs=2).fit_each(X[::-1])[::-1]
    assert models == again
    with pytest.warns(ConvergenceWarning):
        alone = [LDSEstimator(2, **settings).fit_each([x])[0] for x in X[:4]]
    assert alone == models[:4]
    with pytest.warns(ConvergenceWarning):
        single = LDSEstimator(2, max_iter=20).fit([X[1]]).model_
    own = LDSEstimator(2, max_iter=20, tol=0).fit_each(X[1:2])[0]
    np.testing.assert_allclose(own.log_prob(X[1:2]), single.log_prob(X[1:2]), rtol=1e-6)


def test_maximize_is_the_step_of_em():
    model, X = ragged()
    estimator = LDSEstimator(2, init=model, max_iter=1, tol=0).fit(X)
    stepped = LDSEstimator(2).maximize(model.statistics(X))
    np.testing.assert_allclose(stepped.parameters(), estimator.model_.parameters(), rtol=1e-9, atol=1e-9)


def test_degenerate_series():
    constant = LDSEstimator(1, max_iter=20, tol=0).fit([np.full(6, 2.0), np.full(3, 2.0)]).model_
    assert np.isfinite(constant.log_prob([[2.0, 2.0]])).all()
    short = LDSEstimator(2, max_iter=5, tol=0).fit_each([[1.0], [1.0, 2.0], [np.nan, np.nan]])
    assert all(np.isfinite(model.parameters("raw")).all() for model in short)
    np.testing.assert_array_equal(short[2].log_prob([[np.nan, np.nan]]), [0.0])
    zero = LDSEstimator(1, max_iter=3, tol=0).fit(np.zeros((2, 5))).model_
    assert np.isfinite(zero.log_prob([[0.0]])).all()


def test_a_covariance_floor_is_kept():
    X = [np.sin(0.3 * np.arange(50))]
    model = LDSEstimator(2, max_iter=200, tol=0, min_covar=1e-3, relative_floor=1e-3).fit(X).model_
    assert min(np.linalg.eigvalsh(cov)[0] for cov in model.matrices()) >= 1e-3 * (1 - 1e-9)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_states": 0}, "'n_states' parameter"),
        ({"init": "random"}, "'init' parameter"),
        ({"init": "pca", "n_states": 3}, "n_states <= 2"),
        ({"covariance": "tied"}, "'covariance' parameter"),
        ({"obs_variance": 0.0}, "'obs_variance' parameter"),
        ({"init": LDS([[0.5]], [[1.0], [1.0]], 0.0, 1.0, [0.0], 1.0), "n_states": 1}, "must not be below min_covar"),
        ({"init": LDS([[0.5]], [[1.0], [1.0]], 1.0, 1.0, [0.0], 1.0)}, "one system with n_states=2"),
        (
            {"init": LDS([[1.0]], [[1.0], [1.0]], 1.0, 1.0, [0.0], 1.0), "n_states": 1, "stable": True},
            "radius <= ",
        ),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        LDSEstimator(**options).fit([np.zeros((4, 2))])


def test_embeddings_take_systems():
    model, X = ragged(n=2, d=2, count=8)
    features = FisherScore(model).fit_transform(X)
    assert features.shape == (8, len(model.parameter_names))
    assert np.isfinite(features).all()
    assert len(FitEach(LDSEstimator(1, max_iter=3, tol=0)).fit_transform(X)) == 8


@pytest.mark.parametrize("growth", [1e73, 1e99])
def test_information_of_states_that_overflow_is_refused(growth):
    system = LDS([[growth]], [[0.4], [-0.7]], [0.7], np.eye(2), [0.0], [0.6])
    with pytest.raises(ValueError, match=r"LDS.information: 'transition' must keep .* eigenvalues up to 1e\+"):
        system.information([6])
    switching = SwitchingLDS([1.0], [[1.0]], LDS.stack([system]))
    with pytest.raises(ValueError, match=r"SwitchingLDS.information: 'transition' of regime 0"):
        switching.information([6])


@pytest.mark.parametrize("coordinates", ["softmax", "raw"])
@pytest.mark.parametrize("cov", [np.array([[1.06, 0.63], [0.63, 1.17]]), np.ones(2)], ids=["full", "diagonal"])
def test_information_of_small_covariances_is_finite_or_refused(cov, coordinates):
    """Refused where a square of an inverse is beyond the largest number; full ones have no logarithms to be led by."""
    refused = cov.ndim == 2 or coordinates == "raw"
    for power in (1e-150, 1e-155):
        system = LDS([[0.5]], [[1.0], [1.0]], 1.0, power * cov, [0.0], 1.0)
        switching = SwitchingLDS([0.5, 0.5], np.full((2, 2), 0.5), LDS.stack([system, system]))
        for model, where in ((system, "covariances must"), (switching, "covariances of regime 0 must")):
            if refused and power < 1e-154:
                with pytest.raises(ValueError, match=rf"{where} .* variances from \d.*e-155"):
                    model.information([3], coordinates)
            else:
                blocks = model.information([3], coordinates)
                assert all(np.isfinite(np.asarray(block)).all() for _, block in blocks)
