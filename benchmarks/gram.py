"""W4, W4r and W7: Gram matrices of hidden Markov models and of explicit features."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from scipy.linalg.blas import dsyrk
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.timing import race
from genkern import HMM, Categorical, Gram, ProbabilityProduct
from genkern.core.arrays.products import gram, rbf

LENGTH = 30
SYMBOLS = 4
Models = tuple[np.ndarray, np.ndarray, np.ndarray]  # start (a, n), transitions (a, n, n), emissions (a, n, SYMBOLS)


def random_models(rng: np.random.Generator, a: int, n: int, stay: float = 0.8) -> Models:
    """Return models that stay in a state for a while; by 0.8 no recursion settles within thirty steps."""
    transitions = stay * np.eye(n) + (1.0 - stay) * rng.dirichlet(np.ones(n), (a, n))
    return rng.dirichlet(np.ones(n), a), transitions, rng.dirichlet(np.ones(SYMBOLS), (a, n))


def numpy_rows(models: Models, rows: Iterable[int]) -> dict[int, np.ndarray]:
    """Return log k of each row with the models from it on, by matrix products over all of these at once."""
    start, transitions, emissions = models
    result = {}
    for i in rows:
        psi = emissions[i] @ emissions[i:].transpose(0, 2, 1)
        phi = start[i][:, None] * start[i:, None, :] * psi
        log_k = np.zeros(len(psi))
        for step in range(LENGTH - 1):
            phi = np.matmul(transitions[i].T, np.matmul(phi, transitions[i:]))
            phi *= psi
            if step % 8 == 7:
                total = phi.sum(axis=(1, 2))
                phi /= total[:, None, None]
                log_k += np.log(total)
        result[i] = log_k + np.log(phi.sum(axis=(1, 2)))
    return result


def numpy_pairs(models: list[Models], pairs: np.ndarray) -> np.ndarray:
    """Return log k of the listed pairs of single models, one after the other."""
    result = []
    for i, j in pairs:
        (start, left, emissions), (other_start, right, other_emissions) = models[i], models[j]
        psi = emissions @ other_emissions.T
        phi = np.outer(start, other_start) * psi
        left, log_k = left.T, 0.0
        for step in range(LENGTH - 1):
            phi = (left @ phi @ right) * psi
            if step % 8 == 7:
                total = phi.sum()
                phi /= total
                log_k += np.log(total)
        result.append(log_k + np.log(phi.sum()))
    return np.array(result)


def listed(models: Models) -> list[HMM]:
    """Return the models one by one, as a user has them."""
    return [HMM(start, transitions, Categorical(emissions)) for start, transitions, emissions in zip(*models)]


def w4(n: int, goal: float, every: int) -> None:
    models = random_models(np.random.default_rng(n), 1000, n)
    kernel, ours, rows = ProbabilityProduct(length=LENGTH), listed(models), range(0, 1000, every)
    log_k = kernel.log(ours)
    for i, row in numpy_rows(models, rows[::10]).items():
        np.testing.assert_allclose(row, log_k[i, i:], rtol=1e-12)
    share = sum(1000 - i for i in rows) / (1000 * 1001 / 2)
    peer = f"numpy batched matmul (1 row of {every})"
    rival = partial(numpy_rows, models, rows)
    race(f"W4 kernel of 1000 HMMs, n = {n}", peer, rival, lambda: kernel(ours), goal, rounds=3, share=share)
    race(f"W4 Gram of the same, n = {n}", peer, rival, lambda: Gram(kernel).fit_transform(ours), rounds=3, share=share)
    mixing = random_models(np.random.default_rng(n), 1000, n, stay=0.0)
    quick = listed(mixing)
    rival = partial(numpy_rows, mixing, rows)
    race(f"W4 the same, fast mixing, n = {n}", peer, rival, lambda: kernel(quick), rounds=2, share=share)
    one, two = (Gram(kernel, n_jobs=n_jobs) for n_jobs in (1, 2))
    one_thread, two_threads = (partial(gram_of.fit_transform, ours) for gram_of in (one, two))
    race(f"W4 Gram on two threads, n = {n}", "one thread", one_thread, two_threads, goal=1.7)


def w4_ragged() -> None:
    rng = np.random.default_rng(0)
    count = 1000
    sizes = rng.integers(4, 31, count)
    groups = {n: random_models(rng, int((sizes == n).sum()), n) for n in np.unique(sizes)}
    singles = [tuple(part[k] for part in group) for group in groups.values() for k in range(len(group[0]))]
    pairs = np.sort(rng.integers(0, count, (2000, 2)), axis=1)

    kernel, ours = ProbabilityProduct(length=LENGTH), [model for group in groups.values() for model in listed(group)]
    race(
        f"W4r Gram of {count} HMMs, n = 4...30",
        f"numpy loop ({len(pairs)} pairs)",
        lambda: numpy_pairs(singles, pairs),
        lambda: kernel(ours),
        goal=5,
        rounds=2,
        share=len(pairs) / (count * (count + 1) / 2),
    )


def w7() -> None:
    features = np.random.default_rng(0).normal(size=(10_000, 2000))
    race(
        "W7 Gram of features, 10000 x 2000",
        "BLAS syrk (one triangle)",
        lambda: dsyrk(1.0, features.T, trans=1, lower=1),
        lambda: gram(features),
        goal=0.95,
        rounds=3,
    )
    few = features[:4000]
    race(
        "W7 Gaussian kernel, 4000 x 2000",
        "scikit-learn rbf_kernel",
        lambda: rbf_kernel(few, gamma=1e-4),
        lambda: rbf(few, None, 2e-4),
        rounds=3,
    )


def main() -> None:
    w4(3, goal=28, every=4)
    w4(10, goal=3.3, every=10)
    w4_ragged()
    w7()


if __name__ == "__main__":
    main()
