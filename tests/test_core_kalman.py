import numpy as np
import pytest

from genkern import LDS
from genkern.core.kalman import passes as kalman_passes
from genkern.core.kalman import steps as kalman
from genkern.core.kalman.lags import autocovariances
from genkern.core.kalman.lanes import factorise
from genkern.core.simd.vectors import W
from tests.oracles_lds import dense, drop, random_lds

FORMS = {
    "full": ("full", "full", "full"),
    "no state noise": ("zero", "full", "full"),
    "known start": ("full", "diagonal", "zero"),
    "deterministic": ("zero", "isotropic", "zero"),
}


@pytest.fixture(params=FORMS)
def case(request):
    rng = np.random.default_rng(3)
    model = random_lds(rng, 3, 2, FORMS[request.param])
    return model, [drop(rng, x) if i % 2 else x for i, x in enumerate(model.sample(4, length=8, rng=4))]


def packed(X):
    return np.concatenate(X), np.concatenate([[0], np.cumsum([len(x) for x in X])])


def test_steps_give_the_dense_likelihood_and_filter(case):
    model, X = case
    n, d = model.n_states, model.n_channels
    A, C, Q, R, m, P, b = (part[0] for part in model.systems())
    room = kalman.buffers(n, d)
    for x in X:
        mean, cov, total = m.copy(), P.copy(), 0.0
        for t in range(len(x)):
            if t:
                kalman.predict(A, Q, mean, cov, room)
            total += kalman.update(C, R, kalman.relative(x[t], b, room.gap), mean, cov, room)
            expected, means, covs = dense(model, x[: t + 1])
            np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(mean, means[-1], rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(cov, covs[-n:, -n:], atol=1e-12)
            np.testing.assert_array_equal(cov, cov.T)


def test_passes_give_the_dense_likelihood_and_moments(case):
    model, X = case
    n, (values, offsets) = model.n_states, packed(X)
    sums = kalman_passes.run(model.systems(), values, offsets)
    beliefs, heads = kalman_passes.posterior(model.systems(), values, offsets)
    assert (heads.failed == -1).all()
    assert (sums.failed == -1).all()
    for i, x in enumerate(X):
        expected, mean, cov = dense(model, x)
        blocks = cov.reshape(len(x), n, len(x), n)
        rows = slice(offsets[i], offsets[i + 1])
        np.testing.assert_allclose(sums.log_prob[i], expected, rtol=1e-12)
        np.testing.assert_allclose(beliefs.mean[rows], mean, rtol=1e-11, atol=1e-12)
        second = [blocks[t, :, t] + np.outer(mean[t], mean[t]) for t in range(len(x))]
        seen = ~np.isnan(x).all(axis=1)
        np.testing.assert_allclose(sums.left[i], sum(second[:-1]), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(sums.seen[i], sum(s for s, there in zip(second, seen) if there), atol=1e-11)
        np.testing.assert_allclose(sums.seen_sum[i], mean[seen].sum(axis=0), atol=1e-11)
        for t in range(len(x)):
            np.testing.assert_allclose(beliefs.cov[rows][t], blocks[t, :, t], atol=1e-12)
        for t in range(len(x) - 1):
            np.testing.assert_allclose(beliefs.cross[rows][t], blocks[t + 1, :, t], atol=1e-12)


def test_derivatives_are_moments_of_the_noises(case):
    """Fisher's identity: Q dA = sum E[w s^T], Q + 2 Q dQ Q = sum E[w w^T] of each step, R likewise."""
    model, X = case
    n, (values, offsets) = model.n_states, packed(X)
    sums = kalman_passes.run(model.systems(), values, offsets)
    A, C, b, (Q, R, _) = model.transition, model.observation, model.offset, model.matrices()
    for i, x in enumerate(X):
        _, mean, cov = dense(model, x)
        second = cov + np.outer(mean.ravel(), mean.ravel())
        at = second.reshape(len(x), n, len(x), n)
        lagged = sum(at[t + 1, :, t] - A @ at[t, :, t] for t in range(len(x) - 1))
        noise = sum(
            at[t + 1, :, t + 1] - A @ at[t, :, t + 1] - at[t + 1, :, t] @ A.T + A @ at[t, :, t] @ A.T
            for t in range(len(x) - 1)
        )
        np.testing.assert_allclose(Q @ sums.A[i], lagged, atol=1e-11)
        np.testing.assert_allclose((len(x) - 1) * Q + 2.0 * Q @ sums.Q[i] @ Q, noise, atol=1e-11)
        if not np.isnan(x).any():
            ends = [np.outer(x[t] - b, mean[t]) - C @ at[t, :, t] for t in range(len(x))]
            gaps = [x[t] - b - C @ mean[t] for t in range(len(x))]
            np.testing.assert_allclose(R @ sums.offset[i], sum(gaps), atol=1e-11)
            spread = [C @ cov.reshape(at.shape)[t, :, t] @ C.T for t in range(len(x))]
            np.testing.assert_allclose(R @ sums.C[i], sum(ends), atol=1e-11)
            squares = sum(np.outer(gap, gap) + s for gap, s in zip(gaps, spread))
            np.testing.assert_allclose(len(x) * R + 2.0 * R @ sums.R[i] @ R, squares, atol=1e-11)


def test_an_object_does_not_notice_its_neighbours():
    rng = np.random.default_rng(0)
    model = random_lds(rng, 3, 2)
    X = [x[: rng.integers(1, 500)] for x in model.sample(300, length=500, rng=1)]
    X[::4] = [drop(rng, x, 0.1) for x in X[::4]]
    order = rng.permutation(len(X))
    stack = LDS.stack([model] * len(X)).systems()
    for systems in (model.systems(), stack):
        whole = kalman_passes.run(systems, *packed(X))
        moved = kalman_passes.run(systems, *packed([X[i] for i in order]), n_jobs=2)
        for one, other in zip(whole, moved):
            np.testing.assert_array_equal(one[order], other)
        for i in (0, 1):
            for one, other in zip(whole, kalman_passes.run(model.systems(), *packed([X[i]]))):
                np.testing.assert_array_equal(one[[i]], other)


def test_shared_and_own_systems_agree():
    rng = np.random.default_rng(0)
    model = random_lds(rng, 3, 2)
    X = model.sample(20, length=60, rng=1) + model.sample(3, length=17, rng=1)
    X[::4] = [drop(rng, x, 0.1) for x in X[::4]]
    shared = kalman_passes.run(model.systems(), *packed(X))
    own = kalman_passes.run(LDS.stack([model] * len(X)).systems(), *packed(X))
    for one, other in zip(shared, own):
        np.testing.assert_array_equal(one, other)


def test_a_converged_filter_goes_on_as_the_full_one_would():
    # A series with one missing value at its end never takes the shortcut.
    rng = np.random.default_rng(0)
    model = random_lds(rng, 3, 2)
    (x,) = model.sample(1, length=400, rng=1)
    open_end = np.concatenate([x, np.full((1, 2), np.nan)])
    short, full = (kalman_passes.run(model.systems(), *packed([y])) for y in (x, open_end))
    np.testing.assert_allclose(short.log_prob, full.log_prob, rtol=1e-13)
    for name in ("C", "R", "mean", "cov", "seen"):
        np.testing.assert_allclose(getattr(short, name), getattr(full, name), rtol=1e-10, atol=1e-10)
    for one, other in zip(*(kalman_passes.posterior(model.systems(), *packed([y]))[0][:2] for y in (x, open_end))):
        np.testing.assert_allclose(one, other[:-1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("gaps", [False, True])
def test_long_and_nearly_singular_series_stay_positive(gaps):
    rng = np.random.default_rng(0)
    turn = np.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])
    model = LDS(turn, [[1.0, 0.0], [1.0, 1e-6]], 1e-9, [1e-8, 1e-6], [0.0, 0.0], 1.0)
    wave = np.sin(0.1 * np.arange(100_000))[:, None]
    x = wave + 1e-4 * rng.standard_normal((len(wave), 2))
    if gaps:
        x[rng.random(x.shape) < 0.1] = np.nan
    sums = kalman_passes.run(model.systems(), *packed([x]))
    assert all(np.isfinite(part).all() for part in sums)
    covs = kalman_passes.posterior(model.systems(), *packed([x]))[0].cov
    assert np.linalg.eigvalsh(covs).min() > 0.0
    np.testing.assert_array_equal(covs, covs.transpose(0, 2, 1))


def test_singular_innovations_are_found():
    model = LDS([[0.5]], [[1.0], [1.0]], 1.0, [0.0, 0.0], [0.0], 1.0)
    x = np.array([[0.0, np.nan], [np.nan, np.nan], [1.0, 1.0]])
    values, offsets = packed([x[:2], x, x[2:]])
    sums = kalman_passes.run(model.systems(), values, offsets)
    np.testing.assert_array_equal(sums.failed, [-1, 2, 0])
    np.testing.assert_array_equal(np.isnan(sums.log_prob), [False, True, True])
    np.testing.assert_array_equal(kalman_passes.posterior(model.systems(), values, offsets)[1].failed, [-1, 2, 0])


def test_a_semidefinite_factor_leaves_out_what_is_determined():
    rng = np.random.default_rng(0)
    G = rng.standard_normal((W, 4, 2))
    matrices = G @ G.transpose(0, 2, 1)
    m = np.zeros((20, W))
    m[:16] = matrices.reshape(W, 16).T
    factorise(m.reshape(-1), 0, 16, 4)
    L, D = m[:16].T.reshape(W, 4, 4), m[16:].T
    np.testing.assert_allclose((L * D[:, None]) @ L.transpose(0, 2, 1), matrices, atol=1e-12)
    assert (D[:, :2] > 0.0).all()
    assert (D[:, 2:] == 0.0).all()
    np.testing.assert_array_equal(np.triu(L), np.broadcast_to(np.eye(4), L.shape))


@pytest.mark.parametrize("own", [False, True])
def test_autocovariances_skip_missing_pairs(own):
    rng = np.random.default_rng(0)
    X = [drop(rng, rng.standard_normal((length, 2))) for length in (9, 1, 4)]
    gamma = autocovariances(*packed(X), own, 3)
    for g, group in enumerate([[x] for x in X] if own else [X]):
        for k in range(4):
            for a, b in np.ndindex(2, 2):
                pairs = np.concatenate([x[k:, a] * x[: max(len(x) - k, 0), b] for x in group])
                pairs = pairs[~np.isnan(pairs)]
                expected = pairs.mean() if len(pairs) else 0.0
                np.testing.assert_allclose(gamma[g, k, a, b], expected, rtol=1e-12, atol=1e-15)
