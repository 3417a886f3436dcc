"""The same bits in forked and spawned processes and in several Python threads, and no more threads than asked for."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from checks import Case, assert_same, objects, outcome
from joblib import parallel_config
from sklearn.base import clone
from test_sklearn import CASES

from genkern import (
    RBF,
    Categorical,
    CharacteristicFeatures,
    FisherScore,
    Gaussian,
    GaussianEstimator,
    Gram,
    HMMEstimator,
    MeanMap,
    Nystrom,
    ProbabilityProduct,
    recipes,
)
from genkern.threads import one_blas_thread

ALL = [(name, case.kinds[0]) for name, case in CASES.items() if case.kinds]  # those of ragged lists
SPAWNED = [name for name in ("HMMEstimator", "FisherScore", "TopScore", "Gram", "Spectrum") if name in CASES]
PATIENCE = 240  # seconds: a child that deadlocks is a failure, not a hang


def fitted_outcome(name: str, kind: str) -> Any:
    case: Case = CASES[name]
    X, y = objects(kind)
    return outcome(case.make().fit(X, y), X)


def outcomes(pairs: list[tuple[str, str]]) -> list[Any]:
    return [fitted_outcome(*pair) for pair in pairs]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
def test_forked_processes() -> None:
    """A child begins in the middle of what its parent was doing: after BLAS, joblib and compiled code ran there."""
    Gram(RBF(0.5), n_jobs=2, block_size=50).fit_transform(np.random.default_rng(0).normal(size=(300, 3)))
    expected = outcomes(ALL)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        halves = [pool.apply_async(outcomes, (part,)) for part in (ALL[::2], ALL[1::2])]
        found = [half.get(PATIENCE) for half in halves]
    for part, results in ((expected[::2], found[0]), (expected[1::2], found[1])):
        for one, other in zip(part, results, strict=True):
            assert_same(one, other)


def test_spawned_processes() -> None:
    pairs = [(name, CASES[name].kinds[0]) for name in SPAWNED]
    assert len(pairs) >= 4
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply_async(outcomes, (pairs,)).get(PATIENCE)
    for pair, other in zip(pairs, found, strict=True):
        assert_same(fitted_outcome(*pair), other)


@pytest.mark.parametrize(("name", "kind"), ALL, ids=[name for name, _ in ALL])
def test_several_python_threads(name: str, kind: str) -> None:
    """One fitted estimator is asked by four threads at once, and four are fitted at once."""
    case: Case = CASES[name]
    X, y = objects(kind)
    one = case.make().fit(X, y)
    parts = [X[i : i + 3] for i in range(0, 12, 3)] * 2
    expected = [outcome(one, part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: outcome(one, part), parts))
        machines = list(pool.map(lambda _: clone(one).fit(X, y), range(4)))
    for first, second in zip(expected, found):
        assert_same(first, second)
    for machine in machines:
        assert_same(outcome(one, X), outcome(machine, X))


rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("ab"), rng.integers(5, 30))) for _ in range(40)]
POINTS = rng.normal(size=(40, 3))
CHAINS = HMMEstimator(2, max_iter=3, tol=0.0).fit_each(WORDS)
MODELS = [Gaussian(mean, 1.0 + i / 40) for i, mean in enumerate(POINTS)]
PRODUCTS = {
    "gram": (Gram(ProbabilityProduct(0.5)), MODELS),
    "chains": (Gram(MeanMap(1.0, length=5)), CHAINS),
    "points": (Gram(RBF(0.3)), POINTS),
    "nystrom": (Nystrom(ProbabilityProduct(0.5), 7, random_state=0), MODELS),
    "characteristic": (CharacteristicFeatures(1.0, 5, n_components=16), CHAINS),
    "fisher": (FisherScore(HMMEstimator(2, max_iter=3, tol=0.0)), WORDS),
}


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(("backend", "n_jobs"), [("threading", 2), ("threading", 3), ("loky", 2), ("sequential", 1)])
def test_backends_and_blocks(name: str, backend: str, n_jobs: int) -> None:
    transformer, X = PRODUCTS[name]
    plain = clone(transformer).fit(X)
    expected = plain.transform(X)
    sizes = [9, 64] if "block_size" in transformer.get_params() else [None]
    for size in sizes:
        given = {} if size is None else {"block_size": size}
        with parallel_config(backend, n_jobs=n_jobs):
            found = clone(transformer).set_params(n_jobs=n_jobs, **given).fit(X).transform(X)
        if name == "points":  # BLAS rounds blocks of different shapes differently, by its own rules
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", PRODUCTS)
def test_order(name: str) -> None:
    """Rows follow their objects, however these are ordered."""
    transformer, X = PRODUCTS[name]
    plain, order = clone(transformer).fit(X), rng.permutation(len(X))
    expected = plain.transform(X)[order]
    found = plain.transform([X[i] for i in order])
    if name == "points":
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


class Watching(RBF):
    """A kernel that notes how many threads BLAS would use."""

    seen: list[int] = []  # noqa: RUF012  (of all, as threads share it)

    def _values(self, X: Any, Y: Any) -> Any:
        Watching.seen += [one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
        return super()._values(X, Y)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_blocks_of_many_threads_have_one_of_blas_each(n_jobs: int) -> None:
    Watching.seen.clear()
    Gram(Watching(0.5), n_jobs=n_jobs, block_size=10).fit_transform(POINTS)
    assert len(Watching.seen) >= 10
    assert set(Watching.seen) == {1}


def test_recipes_leave_the_number_of_threads_as_it_was() -> None:
    before = threadpoolctl.threadpool_info()
    recipe = recipes.series(2, 2, n_jobs=2).fit([x[:, None] for x in rng.normal(size=(8, 20))], [0, 1] * 4)
    recipe.predict([np.zeros((5, 1))])
    GaussianEstimator().fit(POINTS)
    Categorical([0.5, 0.5], alphabet="ab").log_prob(WORDS)
    assert threadpoolctl.threadpool_info() == before


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"}


def test_threads_that_overlap_keep_blas_to_one_until_the_last_and_leave_what_was() -> None:
    """Each putting back what it had found, the last one would leave the limit of the other behind for good."""
    with threadpoolctl.threadpool_limits(2, "blas"):
        first, second = one_blas_thread(), one_blas_thread()
        with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
            one.submit(first.__enter__).result()
            other.submit(second.__enter__).result()
            one.submit(first.__exit__, None, None, None).result()
            assert blas_threads() == {1}
            other.submit(second.__exit__, None, None, None).result()
        assert blas_threads() == {2}


def test_the_limit_ends_with_an_error() -> None:
    before = blas_threads()
    with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == before
