"""Features of objects in batches, and files of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from checks import objects
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from test_sklearn import CASES

from genkern import Dataset, FisherScore, HMMEstimator, Spectrum
from genkern.io import transform_stream, write_features

rng = np.random.default_rng(0)
X = ["".join(rng.choice(list("ab"), rng.integers(3, 9), p=[p, 1 - p])) for p in rng.choice([0.2, 0.8], 33)]
Y = np.array([x.count("a") > len(x) / 2 for x in X]).astype(int)
SCORES = FisherScore(HMMEstimator(2, max_iter=5, tol=0.0)).fit(X)


def batches(size: int) -> list[Dataset]:
    parts = [slice(i, i + size) for i in range(0, len(X), size)]
    return [Dataset(X[part], Y[part], np.array([f"o{i}" for i in range(len(X))][part])) for part in parts]


@pytest.mark.parametrize("size", [1, 10, 100])
def test_features_do_not_depend_on_batches(size: int) -> None:
    parts = list(transform_stream(SCORES, batches(size)))
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), SCORES.transform(X))
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), Y)


EMBEDDINGS = [name for name, case in CASES.items() if case.kinds and hasattr(case.make(), "transform")]
# Matrix products, which BLAS rounds by the number of rows.
PRODUCTS = {"FisherScore, empirical", "Gram of posteriors", "AlignedGram of views", "Gram of Fisher scores"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EMBEDDINGS)
def test_every_embedding_gives_the_same_in_batches(name: str) -> None:
    for kind in CASES[name].kinds:
        given, y = objects(kind, 0)[:2]
        embedding = CASES[name].make().fit(given, y)
        whole = embedding.transform(given)
        if not (sparse.issparse(whole) or isinstance(whole, np.ndarray)):
            continue  # objects or models, not features
        parts = transform_stream(embedding, [given[i : i + 5] for i in range(0, len(given), 5)])
        found = sparse.vstack([sparse.csr_array(part.X) for part in parts]).toarray()
        expected = sparse.csr_array(whole).toarray()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 if name in PRODUCTS else 0)


@pytest.mark.parametrize("ending", [".npy", ".zarr", ".parquet"])
@pytest.mark.parametrize("embedding", [SCORES, Spectrum(2, alphabet="ab").fit(X)])
def test_files(tmp_path: Path, ending: str, embedding: object) -> None:
    path = tmp_path / f"features{ending}"
    assert write_features(embedding, batches(10), path) == 33
    expected = embedding.transform(X)  # type: ignore[attr-defined]
    expected = expected.toarray() if hasattr(expected, "toarray") else expected
    if ending == ".npy":
        found = np.load(path, mmap_mode="r")
    elif ending == ".zarr":
        found = pytest.importorskip("zarr").open_array(str(path), mode="r")[:]
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        assert table["id"].to_pylist() == [f"o{i}" for i in range(33)]
        assert table["label"].to_pylist() == [str(label) for label in Y]
        names = list(embedding.get_feature_names_out())  # type: ignore[attr-defined]
        found = np.column_stack([table[name].to_numpy() for name in names])
    np.testing.assert_array_equal(found, expected)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".npy", ".zarr", ".parquet"])
def test_a_file_is_whole_or_not_there(tmp_path: Path, ending: str) -> None:
    def broken() -> object:
        yield X[:5]
        yield ["ab", 7]

    with pytest.raises((TypeError, ValueError), match="In batch 1, counted from 0"):
        write_features(SCORES, broken(), tmp_path / f"features{ending}")
    assert not list(tmp_path.iterdir())


def test_learners_in_parts() -> None:
    learner = SGDClassifier(random_state=0)
    for _ in range(20):
        for part in transform_stream(SCORES, batches(8)):
            learner.partial_fit(part.X, part.y, classes=[0, 1])
    assert learner.score(SCORES.transform(X), Y) > 0.9


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in .npy, .zarr, .parquet. Got 'x.csv'"):
        write_features(SCORES, batches(5), "x.csv")
    with pytest.raises(ValueError, match="there are no objects"):
        write_features(SCORES, [], tmp_path / "x.npy")
