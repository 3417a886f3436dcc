"""Gram matrices of any kind of objects, maps and clusters, against counts by hand and explicit features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from genkern import RBF, Gaussian, Gram, Linear, ProbabilityProduct, mmd_test, recipes, similarity, two_sample_test
from genkern.kernels.components import principal_components

WORDS = ["aabab", "abaab", "bbbab", "babbb", "aaaab"]


def cosine(x: str, y: str, k: int = 3) -> float:
    a, b = (Counter(s[i : i + k] for i in range(len(s) - k + 1)) for s in (x, y))
    return sum(a[w] * b[w] for w in a) / np.sqrt(sum(v**2 for v in a.values()) * sum(v**2 for v in b.values()))


def test_spectrum_kernel_is_the_cosine_of_counts() -> None:
    found = similarity.gram(WORDS, kernel="spectrum")
    np.testing.assert_allclose(found, [[cosine(x, y) for y in WORDS] for x in WORDS], atol=1e-12)


def test_default_kernel_is_that_of_the_recipe_without_its_learner() -> None:
    rng = np.random.default_rng(0)
    X = [np.cumsum(rng.normal(size=(20, 2)), axis=0) for _ in range(6)]
    features = recipes.series()[:-1].fit_transform(X)
    K = features @ features.T
    scale = np.sqrt(np.diag(K))
    np.testing.assert_allclose(similarity.gram(X, "series"), K / np.outer(scale, scale), atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "X"),
    [
        ("series", [np.sin(np.arange(12.0) * i)[:, None] for i in (1, 2, 3)]),
        ("points", [np.random.default_rng(i).normal(i, size=(15, 2)) for i in range(4)]),
        ("symbols", WORDS),
        ("codes", ["".join(c * n for c in "0246") for n in (8, 12, 16)]),
        ("documents", ["my thesis advisor", "my advisor", "a professor of computing", ""]),
    ],
)
@pytest.mark.parametrize("kernel", ["default", "product"])
def test_every_kind_has_a_kernel(kind: str, X: list, kernel: str) -> None:
    if kernel == "product" and kind in ("documents", "points"):
        return  # of sequences
    K = similarity.gram(X, kind, kernel=kernel)
    assert K.shape == (len(X), len(X))
    np.testing.assert_allclose(np.diag(K), 1.0, atol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_components_are_those_of_explicit_features() -> None:
    X = np.random.default_rng(1).normal(size=(12, 5))
    places, shares = principal_components(X @ X.T, 3)
    centred = X - X.mean(axis=0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(places), np.abs(centred @ axes[:3].T), atol=1e-9)
    np.testing.assert_allclose(shares, singular[:3] ** 2 / (singular**2).sum(), rtol=1e-9)


def test_clusters_that_are_apart_are_found_and_counted() -> None:
    rng = np.random.default_rng(2)
    truth = np.repeat([0, 1, 2], [12, 8, 5])
    X = rng.normal(size=(25, 2)) * 0.1 + np.array([[0, 0], [3, 0], [0, 3]])[truth]
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    found, silhouette = similarity.cluster(K)
    np.testing.assert_array_equal(found, truth)  # the largest first
    assert silhouette > 0.8
    assert len(set(similarity.cluster(K, 5)[0])) == 5


@pytest.mark.parametrize("method", ["pca", "tsne", "umap"])
def test_maps_keep_neighbours(method: str) -> None:
    pytest.importorskip("umap") if method == "umap" else None
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 4)) * 0.2 + np.repeat([[0.0], [4.0]], 20, axis=0)
    places, axes = similarity.plane(X @ X.T, method)
    assert places.shape == (40, 2)
    assert len(axes) == 2
    near = ((places[:, None] - places) ** 2).sum(axis=2) + 1e9 * np.eye(40)
    assert np.mean((near.argmin(axis=1) < 20) == (np.arange(40) < 20)) == 1.0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: similarity.gram(WORDS, "nonsense"), "'kind' parameter of gram must be one of"),
        (lambda: similarity.gram(WORDS, kernel="magic"), "'kernel' parameter of gram must be one of"),
        (lambda: similarity.cluster(np.eye(2)), "three objects are needed at least. Got 2"),
        (lambda: similarity.cluster(np.eye(4), 4), "fewer clusters than objects. Got 4 for 4"),
        (lambda: similarity.plane(np.eye(1)), "two objects are needed at least. Got 1"),
        (lambda: similarity.plane(np.eye(3), "tsne"), "tsne needs more than 3 objects. Got 3; use 'pca'"),
    ],
)
def test_mistakes_are_named(call, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


def test_mmd_test_is_that_of_the_kernel_values() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(6, 2)), rng.normal(1.0, size=(8, 2))
    both = np.vstack([x, y])
    K = np.exp(-0.5 * ((both[:, None] - both) ** 2).sum(axis=-1))
    wanted = two_sample_test(K, 6, rng=4)
    rest = {"n_permutations": 999, "random_state": 4}
    for first, second, kernel in (
        (x, y, RBF(0.5)),
        (pd.DataFrame(x), pd.DataFrame(y), RBF(0.5)),
        (list(x), list(y), make_pipeline(StandardScaler(with_mean=False, with_std=False), Gram(RBF(0.5)))),
    ):
        found = mmd_test(first, second, kernel, **rest)
        np.testing.assert_allclose(found.statistic, wanted.statistic, rtol=1e-12)
        assert found.p_value == wanted.p_value
    linear = mmd_test(sparse.csr_array(x), sparse.csr_array(y), Linear(), **rest)
    assert linear == pytest.approx(mmd_test(x, y, Linear(), **rest))


def test_mmd_test_of_objects_by_name_and_of_models() -> None:
    one, other = ["abab", "baba", "ababa", "babab"] * 2, ["aabb", "bbaa", "aabba", "aaabb"] * 2
    wanted = two_sample_test(similarity.gram(one + other, kernel="spectrum"), 8)
    assert mmd_test(one, other, "spectrum") == wanted
    assert wanted.p_value < 0.01
    models = [[Gaussian(shift + i / 10, 1.0) for i in range(8)] for shift in (0, 3)]
    assert mmd_test(*models, ProbabilityProduct(0.5)).p_value < 0.01
    assert mmd_test(models[0][::2], models[0][1::2], ProbabilityProduct(0.5)).p_value > 0.2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mmd_test("abab", ["a", "b"]), "'X' must be a list of two objects at least. Got str"),
        (lambda: mmd_test(["a", "b"], ["a"]), "'Y' must be a list of two objects at least. Got 1 objects"),
        (lambda: mmd_test([[1.0], [2.0]], [[1.0], [3.0]], RBF(), kind="series"), "are for kernels given by name"),
        (lambda: mmd_test([[1.0], [2.0]], [[1.0], [3.0]], 3), "must be one of 'default'"),
        (lambda: mmd_test(["ab", "ba"], ["aa", "bb"], "rbf"), "must be one of"),
    ],
)
def test_mistakes_with_mmd_test(call: Callable[[], object], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_distances_are_those_of_the_feature_space():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(7, 3))
    K = (1.0 + points @ points.T) ** 2
    lifted = np.array([[1.0, *(np.sqrt(2) * x), *np.outer(x, x).ravel()] for x in points])
    expected = [[np.sqrt(((a - b) ** 2).sum()) for b in lifted] for a in lifted]
    found = similarity.distances(K)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert not found.diagonal().any()
    with pytest.raises(ValueError, match="distances: objects 0 and 1 have a squared distance of -2"):
        similarity.distances([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="distances: there is no object"):
        similarity.distances(np.zeros((0, 0)))
    with pytest.raises(TypeError, match=r"'K' must be an array of numbers.*distances\(gram\(X\)\)"):
        similarity.distances(["ACGT", "ACGA"])
    for wrong, message in [
        (rng.random((5, 3)), r"'K' must be square.*pairwise_distances"),
        (1e308 * np.eye(2), "up to 1e.307"),
        ([[-1.0]], "object 0 has the kernel value -1 with itself"),
        ([[1.0, np.nan], [np.nan, 1.0]], "must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            similarity.distances(wrong)
    with pytest.raises(TypeError, match="whole Gram matrix"):
        similarity.distances(sparse.eye_array(3, format="csr"))
    np.testing.assert_allclose(similarity.distances(1e306 * np.eye(2))[0, 1], np.sqrt(2e306), rtol=1e-12)
