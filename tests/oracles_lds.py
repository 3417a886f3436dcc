"""Linear dynamical systems by brute force: all states of a series as one dense Gaussian, in plain NumPy."""

from __future__ import annotations

import numpy as np

from genkern import LDS


def random_lds(rng, n=2, d=2, forms=("full", "full", "full"), radius=0.9) -> LDS:
    """Return a random system of a spectral radius, with covariances (state, observation, initial) of given forms."""
    A = rng.standard_normal((n, n))
    A *= radius / np.abs(np.linalg.eigvals(A)).max()

    def cov(size, form):
        if form == "full":
            G = rng.standard_normal((size, size + 1))
            return G @ G.T / size + 0.1 * np.eye(size)
        return rng.uniform(0.3, 2.0, {"diagonal": (size,), "isotropic": (), "zero": ()}[form]) * (form != "zero")

    spreads = [cov(size, form) for size, form in zip((n, d, n), forms)]
    C, mean = rng.standard_normal((d, n)), rng.standard_normal(n)
    return LDS(A, C, spreads[0], spreads[1], mean, spreads[2], rng.standard_normal(d))


def drop(rng, x, share=0.3):
    """Return a series with entries missing, and one step as a whole."""
    x = np.where(rng.random(x.shape) < share, np.nan, x)
    x[len(x) // 2] = np.nan
    return x


def dense_states(model, length):
    """Return mean (L n,) and covariance (L n, L n) of all states, from s_t = A^t s_0 + sum_k A^(t-k) w_k."""
    n = model.n_states
    Q, _, P = model.matrices()
    powers = [np.linalg.matrix_power(model.transition, k) for k in range(length)]
    mixing = np.zeros((length * n, length * n))
    for t in range(length):
        for k in range(t + 1):
            mixing[t * n : (t + 1) * n, k * n : (k + 1) * n] = powers[t - k]
    noises = np.kron(np.eye(length), Q)
    noises[:n, :n] = P
    return np.concatenate([power @ model.initial_mean for power in powers]), mixing @ noises @ mixing.T


def dense(model, x):
    """Return the log-likelihood of a series, and mean (T, n) and covariance (T n, T n) of its states given it."""
    length, n = len(x), model.n_states
    mean, cov = dense_states(model, length)
    seen = ~np.isnan(x.ravel())
    look = np.kron(np.eye(length), model.observation)[seen]
    S = look @ cov @ look.T + np.kron(np.eye(length), model.matrices()[1])[np.ix_(seen, seen)]
    gap = (x - model.offset).ravel()[seen] - look @ mean
    log_prob = -0.5 * (gap @ np.linalg.solve(S, gap) + np.linalg.slogdet(2.0 * np.pi * S)[1])
    gain = np.linalg.solve(S, look @ cov).T
    return log_prob, (mean + gain @ gap).reshape(length, n), cov - gain @ look @ cov
