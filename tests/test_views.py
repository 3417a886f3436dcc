"""Views of objects, kernels on them, and sums of kernels weighted by their alignment with labels."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from genkern import (
    RBF,
    AlignedGram,
    Categorical,
    EmpiricalMean,
    FisherScore,
    FitEach,
    Gaussian,
    Gram,
    HMMEstimator,
    Linear,
    MarkovChainEstimator,
    MeanMap,
    On,
    ProbabilityProduct,
    Representations,
    Spectrum,
    Views,
)
from genkern.kernels.alignment import alignment_weights, alignments, centred, unit_target

KERNEL = On("rows", Linear().normalized()) + 2 * On("laws", MeanMap().normalized()) + On("words", Linear())


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def some_views(n: int, seed: int = 0) -> Representations:
    random = rng(seed)
    laws = [Gaussian(random.normal(), random.uniform(0.5, 2.0)) for _ in range(n)]
    words = sparse.csr_matrix(random.poisson(0.5, (n, 6)).astype(float))
    return Representations({"rows": random.normal(size=(n, 3)), "laws": laws, "words": words})


def strings(n: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    random, y = rng(seed), np.arange(n) % 2
    return ["".join(random.choice(list("ab"), 12, p=[0.3 + 0.4 * c, 0.7 - 0.4 * c])) for c in y], y


# --- representations


@pytest.mark.parametrize(
    ("rows", "places"),
    [
        (slice(1, 4), [1, 2, 3]),
        (np.array([4, 0, 0]), [4, 0, 0]),
        ([3, 1], [3, 1]),
        (np.arange(5) > 2, [3, 4]),
        ((np.array([2, 1]), ...), [2, 1]),
        (np.array([-1]), [4]),
    ],
)
def test_rows_are_taken_in_all_views(rows: Any, places: list[int]) -> None:
    X = some_views(5)
    stacked = Representations({**{name: X[name] for name in X.names}, "stack": Categorical(np.eye(5))})
    part = stacked[rows]
    assert len(part) == part.shape[0] == len(places)
    assert part.names == ("rows", "laws", "words", "stack")
    assert_array_equal(part["rows"], X["rows"][places])
    assert part["laws"] == [X["laws"][i] for i in places]
    assert_array_equal(part["words"].toarray(), X["words"].toarray()[places])
    assert_array_equal(part["stack"].probs, np.eye(5)[places])


def test_data_frames_are_views() -> None:
    pandas = pytest.importorskip("pandas")
    X = Representations({"frame": pandas.DataFrame({"a": [1.0, 2.0, 3.0]})})
    assert X[[2, 0]]["frame"]["a"].tolist() == [3.0, 1.0]
    assert_array_equal(On("frame", Linear())(X), np.outer([1, 2, 3], [1, 2, 3]))


def test_representations_are_values() -> None:
    X = some_views(4)
    with pytest.raises(AttributeError, match="cannot be changed"):
        X.shape = (3,)  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(X))
    assert again["laws"] == X["laws"]
    assert_array_equal(again["rows"], X["rows"])
    assert repr(X) == "Representations(4 objects, 'rows', 'laws', 'words')"


def test_malformed_views_are_refused() -> None:
    for wrong in ({}, [1, 2], {3: [1]}):
        with pytest.raises(TypeError, match="must be a mapping of names to views"):
            Representations(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Got 2 in 'a', 3 in 'b'"):
        Representations({"a": [1, 2], "b": np.eye(3)})
    X = some_views(4)
    with pytest.raises(KeyError, match="no view 'row'; it has 'rows', 'laws', 'words'"):
        X["row"]
    for wrong_rows in (2, 0.5, [0.5], np.eye(2, dtype=int)):
        with pytest.raises(TypeError, match="rows are a slice, a mask or an array of indices"):
            X[wrong_rows]


def test_scikit_learn_splits_them() -> None:
    X, y = some_views(20), np.arange(20) % 2
    train, test, labels, _ = train_test_split(X, y, random_state=0)
    assert (len(train), len(test)) == (15, 5)
    order = [next(i for i in range(20) if X["laws"][i] == law) for law in train["laws"]]
    assert_array_equal(train["rows"], X["rows"][order])
    assert_array_equal(labels, y[order])
    clear = Representations({"rows": X["rows"] + 9.0 * y[:, None], "laws": X["laws"]})
    learner = make_pipeline(Gram(On("rows", RBF(0.1)) + On("laws", MeanMap())), SVC(kernel="precomputed"))
    assert cross_val_score(learner, clear, y, cv=4).mean() == 1.0


# --- kernels on views


def test_on_compares_its_view() -> None:
    X, Y = some_views(6), some_views(4, 1)
    for view, kernel in (("rows", RBF(0.3)), ("laws", ProbabilityProduct(0.5)), ("words", Linear())):
        for second in (None, Y):
            there = None if second is None else second[view]
            assert_array_equal(On(view, kernel)(X, second), kernel(X[view], there))
        assert_array_equal(On(view, kernel).diag(X), kernel.diag(X[view]))
    assert_array_equal(On("laws", MeanMap()).log(X, Y), MeanMap().log(X["laws"], Y["laws"]))
    assert_array_equal(On("laws", MeanMap()).log_diag(X), MeanMap().log_diag(X["laws"]))


def test_sums_and_products_compare_several_views() -> None:
    X, Y = some_views(6), some_views(4, 1)
    rows, laws, words = (
        kernel(X[view], Y[view])
        for view, kernel in (("rows", Linear().normalized()), ("laws", MeanMap().normalized()), ("words", Linear()))
    )
    assert_allclose(KERNEL(X, Y), rows + 2 * laws + words, rtol=1e-12, atol=1e-14)
    product = On("rows", Linear().normalized()) * On("laws", MeanMap().normalized()) ** 2
    assert_allclose(product(X, Y), rows * laws**2, rtol=1e-12, atol=1e-14)
    assert_allclose(On("rows", Linear()).normalized()(X, Y), rows, rtol=1e-12, atol=1e-14)
    assert_allclose((On("rows", Linear()) + On("rows", RBF(0.2)))(X, Y)[0, 0], _both(X["rows"][0], Y["rows"][0]))


def _both(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y + np.exp(-0.2 * ((x - y) ** 2).sum()))


def test_dicts_are_views_too() -> None:
    X = some_views(3)
    assert_array_equal(KERNEL({name: X[name] for name in X.names}), KERNEL(X))


def test_gram_cuts_views_into_blocks() -> None:
    X, Y = some_views(11), some_views(5, 1)
    whole = Gram(KERNEL)
    K, new = whole.fit_transform(X), whole.transform(Y)
    blocks = Gram(KERNEL, n_jobs=2, block_size=3)
    assert_allclose(blocks.fit_transform(X), K, rtol=1e-12, atol=1e-14)
    assert_allclose(blocks.transform(Y), new, rtol=1e-12, atol=1e-14)
    assert_allclose(whole.transform(X), K, rtol=1e-12, atol=1e-14)


def test_logs_of_unnormalised_kernels_get_one_scale() -> None:
    # Laws of one variance are as similar to themselves as each other, and one factor suits all.
    X = Representations({"laws": [Gaussian(law.mean, 1.0) for law in some_views(5)["laws"]]})
    kernel = On("laws", ProbabilityProduct(1.0, length=3000))
    gram = Gram(kernel)
    expected = Gram(ProbabilityProduct(1.0, length=3000)).fit_transform(X["laws"])
    assert_allclose(gram.fit_transform(X), expected, rtol=1e-10)
    assert gram.log_scale_ < -2000


def test_parameters_of_kernels_on_views_are_those_of_a_grid() -> None:
    kernel = clone(On("rows", RBF(0.3)) + On("laws", ProbabilityProduct()))
    kernel.set_params(left__kernel__gamma=0.5, right__kernel__rho=0.5, right__view="other")
    assert kernel == On("rows", RBF(0.5)) + On("other", ProbabilityProduct(0.5))
    assert repr(kernel) == "On('rows', RBF(gamma=0.5)) + On('other', ProbabilityProduct(rho=0.5))"


def test_what_is_no_view_is_refused() -> None:
    X = some_views(3)
    with pytest.raises(ValueError, match=r"there is no view 'row'. Views are 'rows', 'laws', 'words'"):
        On("row", Linear())(X)
    with pytest.raises(TypeError, match=r"compares views of objects, as Views gives them\. Got ndarray"):
        On("rows", Linear())(X["rows"])
    with pytest.raises(TypeError, match="On: 'kernel' must be a Kernel"):
        On("rows", "linear")(X)  # type: ignore[arg-type]


@pytest.mark.parametrize("combine", [lambda a, b: a + b, lambda a, b: b + a, lambda a, b: a * b, lambda a, b: b * a])
def test_vectors_and_models_at_once_are_views(combine: Any) -> None:
    laws, rows = [Gaussian([0.0], [1.0]), Gaussian([1.0], [1.0])], np.array([[0.0], [1.0]])
    kernel = combine(ProbabilityProduct(), RBF())
    stacked = np.empty(2, dtype=object)
    stacked[:] = laws
    for X in (laws, rows, rows.tolist(), Gaussian.stack(laws), stacked, sparse.csr_matrix(rows)):
        for compute in (kernel, kernel.diag, Gram(kernel).fit):
            with pytest.raises(TypeError) as caught:
                compute(X)
            assert "Views" in str(caught.value) or "Sparse" in str(caught.value) or "dense" in str(caught.value)
    with pytest.raises(
        TypeError, match=r"RBF: .* Got models \(Gaussian at index 0\)\. To compare by vectors and by models"
    ):
        RBF()(laws)
    with pytest.raises(TypeError, match=r"RBF: .* Got Sequences\..*Views.*On"):
        (EmpiricalMean(0) + RBF())(rows)
    both = combine(On("laws", ProbabilityProduct()), On("rows", RBF()))
    assert both({"laws": laws, "rows": rows}).shape == (2, 2)


# --- the transformer


class Told(TransformerMixin, BaseEstimator):
    """An embedding that says which of its methods was called with what."""

    def fit(self, X: Any, y: Any = None) -> Told:
        self.labels_ = y
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        return np.ones((len(self.fit(X, y).labels_), 1))

    def transform(self, X: Any) -> np.ndarray:
        return np.zeros((len(X), 1))


def test_views_are_those_of_the_embeddings() -> None:
    X, y = strings(8)
    hmm = HMMEstimator(2, max_iter=3, tol=0, random_state=0)
    views = Views([("fisher", FisherScore(hmm)), ("models", FitEach(hmm)), ("raw", "passthrough")])
    seen = views.fit_transform(X, y)
    assert isinstance(seen, Representations)
    assert_array_equal(seen["fisher"], FisherScore(hmm).fit_transform(X))
    assert seen["models"] == FitEach(hmm).fit_transform(X)
    assert seen["raw"] is X
    assert_array_equal(views.transform(X[:3])["fisher"], FisherScore(hmm).fit(X).transform(X[:3]))
    assert not hasattr(views.views[0][1], "model_")  # clones are fitted
    again = pickle.loads(pickle.dumps(views)).transform(X)
    assert again["models"] == seen["models"]
    assert again["raw"] == X
    assert_array_equal(clone(views).set_params(n_jobs=2).fit_transform(X, y)["fisher"], seen["fisher"])


def test_raw_objects_are_compared_by_kernels_on_objects() -> None:
    X, _ = strings(5)
    seen = Views([("raw", "passthrough"), ("words", Spectrum(2))]).fit_transform(X)
    assert_array_equal(On("raw", EmpiricalMean())(seen), EmpiricalMean()(X))
    gram = Gram(On("raw", EmpiricalMean()), block_size=2)
    assert_allclose(gram.fit_transform(seen), EmpiricalMean()(X), rtol=1e-12)


def test_training_views_come_from_fit_transform_with_labels() -> None:
    X, y = strings(6)
    views = Views([("told", Told())])
    assert_array_equal(views.fit_transform(X, y)["told"], np.ones((6, 1)))
    assert views.embeddings_["told"].labels_ is y
    assert_array_equal(views.transform(X)["told"], np.zeros((6, 1)))
    assert_array_equal(views.fit(X, y).transform(X)["told"], np.zeros((6, 1)))


def test_parameters_are_nested_by_name() -> None:
    views = Views([("words", Spectrum(3)), ("models", FitEach(MarkovChainEstimator(order=1)))])
    params = views.get_params()
    assert (params["words__k"], params["models__estimator__order"]) == (3, 1)
    assert set(views.get_params(deep=False)) == {"views", "n_jobs"}
    views.set_params(models__estimator__order=2, words=Spectrum(2))
    assert views.views[1][1].estimator.order == 2
    assert views.views[0][1].k == 2
    copied = clone(views)
    assert copied.views[0][1] is not views.views[0][1]
    assert copied.get_params()["models__estimator__order"] == 2


def test_grids_reach_into_views_and_kernels() -> None:
    X, y = strings(24)
    chain = MarkovChainEstimator(order=1)
    learner = Pipeline(
        [
            ("views", Views([("words", Spectrum(2)), ("models", FitEach(chain))])),
            ("gram", Gram(On("words", Linear().normalized()) + On("models", ProbabilityProduct(0.5, 5).normalized()))),
            ("svc", SVC(kernel="precomputed")),
        ]
    )
    grid = {
        "views__words__k": [1, 2],
        "views__models__estimator__order": [0, 1],
        "gram__kernel__left__kernel": [RBF(0.1)],
    }
    search = GridSearchCV(learner, grid, cv=3, error_score="raise", n_jobs=1).fit(X, y)
    assert search.best_score_ > 0.7
    assert search.best_estimator_["gram"].kernel.left == On("words", RBF(0.1))


@pytest.mark.parametrize(
    ("views", "error", "message"),
    [
        ([], TypeError, "must be a list of pairs"),
        ({"a": Spectrum()}, TypeError, "must be a list of pairs"),
        ([("a", Spectrum()), ("a", Spectrum())], ValueError, "not unique"),
        ([("n_jobs", Spectrum())], ValueError, "conflict with constructor arguments"),
        ([("a__b", Spectrum())], ValueError, "must not contain __"),
        ([("a", Linear())], TypeError, "view 'a' must be a transformer or 'passthrough'"),
        ([("a", "drop")], TypeError, "view 'a' must be a transformer or 'passthrough'. Got 'drop'"),
    ],
)
def test_malformed_lists_of_views_are_refused(views: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Views(views).fit(["ab", "ba"])


def test_views_must_be_fitted() -> None:
    with pytest.raises(NotFittedError):
        Views([("a", Spectrum())]).transform(["ab"])


# --- alignment


def random_kernels(seed: int, n: int = 12, count: int = 4) -> tuple[list[np.ndarray], np.ndarray]:
    """Matrices of various ranks and sizes, of which the first knows the labels."""
    random = rng(seed)
    y = random.integers(0, 3, n)
    y[:3] = [0, 1, 2]
    ranks, sizes = random.integers(1, 6, count), 10.0 ** random.integers(-2, 3, count)
    features = [size * random.normal(size=(n, rank)) for rank, size in zip(ranks, sizes)]
    features[0] = features[0] + np.abs(features[0]).max() * np.eye(3)[y][:, :1]
    return [rows @ rows.T for rows in features], y


def alignment(K: np.ndarray, target: np.ndarray) -> float:
    """Return the centred alignment of two matrices by its definition."""
    H = np.eye(len(K)) - 1.0 / len(K)
    one, other = H @ K @ H, H @ target @ H
    return float((one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum()))


def best_by_enumeration(matrices: list[np.ndarray], target: np.ndarray) -> float:
    """Return the largest alignment of a sum with weights >= 0: solve for each set of positive weights."""
    H = np.eye(len(target)) - 1.0 / len(target)
    matrices = [K / np.linalg.norm(H @ K @ H) for K in matrices]  # lest equations be of different sizes
    parts = [H @ K @ H for K in matrices]
    best = -1.0
    for size in range(1, len(parts) + 1):
        for chosen in itertools.combinations(range(len(parts)), size):
            M = np.array([[(parts[i] * parts[j]).sum() for j in chosen] for i in chosen])
            weights = np.linalg.lstsq(M, np.array([(parts[i] * target).sum() for i in chosen]), rcond=None)[0]
            if (weights >= 0).all() and weights.any():
                best = max(best, alignment(sum(w * matrices[i] for w, i in zip(weights, chosen)), target))
    return best


def test_alignments_are_those_of_the_definition() -> None:
    matrices, y = random_kernels(0)
    same = (y[:, None] == y).astype(float)
    own, mutual, norms = alignments(matrices, y)
    H = np.eye(12) - 1.0 / 12
    assert_allclose(own, [alignment(K, same) for K in matrices], rtol=1e-12)
    assert_allclose(mutual, [[alignment(K, other) for other in matrices] for K in matrices], rtol=1e-10, atol=1e-12)
    assert_allclose(norms, [np.linalg.norm(H @ K @ H) for K in matrices], rtol=1e-12)
    assert_allclose(centred(matrices[0]), H @ matrices[0] @ H, rtol=0, atol=1e-12 * np.abs(matrices[0]).max())


def test_two_classes_are_signs() -> None:
    random = rng(3)
    y, rows = random.integers(0, 2, 10), random.normal(size=(10, 3))
    signs = 2.0 * y - 1.0
    own, _, _ = alignments([rows @ rows.T], np.where(y == 1, "yes", "no"))
    assert own[0] == pytest.approx(alignment(rows @ rows.T, np.outer(signs, signs)), rel=1e-12)
    target = unit_target(y)
    assert np.linalg.norm(target @ target.T) == pytest.approx(1.0)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_joint_weights_have_the_largest_alignment(seed: int) -> None:
    matrices, y = random_kernels(seed)
    same = (y[:, None] == y).astype(float)
    weights, own = alignment_weights(matrices, y, "joint")
    assert (weights >= 0).all()
    reached = alignment(sum(w * K for w, K in zip(weights, matrices)), same)
    assert reached == pytest.approx(best_by_enumeration(matrices, same), rel=1e-9)
    single, _ = alignment_weights(matrices, y, "independent")
    assert reached >= alignment(sum(w * K for w, K in zip(single, matrices)), same) - 1e-9
    ratios = single * alignments(matrices, y)[2] / own
    assert_allclose(ratios, ratios[0], rtol=1e-9)
    for found in (weights, single):
        assert np.trace(sum(w * K for w, K in zip(found, matrices))) / 12 == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["joint", "independent"])
def test_the_sum_does_not_depend_on_the_kernels_units(method: str) -> None:
    matrices, y = random_kernels(1)
    scaled = [K * factor for K, factor in zip(matrices, (1.0, 1e6, 1e-6, 3.0))]
    plain, other = (alignment_weights(given, y, method)[0] for given in (matrices, scaled))
    assert_allclose(
        sum(w * K for w, K in zip(plain, matrices)), sum(w * K for w, K in zip(other, scaled)), rtol=1e-7, atol=1e-9
    )


def test_kernels_that_coincide_share_their_weight() -> None:
    matrices, y = random_kernels(2)
    once, _ = alignment_weights(matrices, y)
    twice, _ = alignment_weights([*matrices, matrices[0]], y)
    assert once[0] > 0
    assert twice[0] + twice[4] == pytest.approx(once[0], rel=1e-6)


def test_labels_that_say_nothing_are_refused() -> None:
    K = np.kron(np.eye(2), np.ones((2, 2)))  # pairs, each of one object of either class
    with pytest.raises(ValueError, match="no kernel of the sum is aligned with the labels"):
        alignment_weights([K], [0, 1, 0, 1], "independent")
    with pytest.raises(ValueError, match="no kernel of the sum is aligned with the labels"):
        alignment_weights([np.ones((4, 4))], [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"at least two classes\. Got one class, 7"):
        alignment_weights([K], [7, 7, 7, 7])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        alignment_weights([K], [0.5, 1.5, 2.25, 0.1])
    with pytest.raises(ValueError, match="'method' parameter of AlignedGram must be one of 'joint', 'independent'"):
        alignment_weights([K], [0, 0, 1, 1], "alignf")


# --- the weighted matrix

SUM = On("rows", RBF(0.3)) + 5 * On("laws", MeanMap()) + On("words", Linear())


@pytest.mark.parametrize("method", ["joint", "independent"])
def test_aligned_matrices_are_weighted_sums(method: str) -> None:
    X, Y, y = some_views(20), some_views(6, 1), np.arange(20) % 2
    X = X.with_view("rows", X["rows"] + 2.0 * y[:, None])
    aligned = AlignedGram(SUM, method)
    K = aligned.fit_transform(X, y)
    parts = [Gram(term).fit(X) for term in (SUM.left.left, SUM.left.right, SUM.right)]  # type: ignore[attr-defined]
    weights, own = alignment_weights([part.transform(X) for part in parts], y, method)
    assert_allclose(aligned.weights_, weights, rtol=1e-9)
    assert_allclose(aligned.alignments_, own, rtol=1e-9)
    expected = sum(w * part.transform(Y) for w, part in zip(weights, parts))
    assert_allclose(aligned.transform(Y), expected, rtol=1e-9, atol=1e-12)
    assert_allclose(aligned.transform(X), K, rtol=1e-9, atol=1e-12)
    assert_array_equal(K, K.T)
    assert np.trace(K) / 20 == pytest.approx(1.0)
    assert aligned.get_feature_names_out().shape == (20,)
    assert_allclose(clone(aligned).set_params(n_jobs=2, block_size=6).fit_transform(X, y), K, rtol=1e-9, atol=1e-12)


def test_terms_of_weight_zero_are_not_computed() -> None:
    y = np.arange(12) % 2
    X = Representations({"labels": y[:, None].astype(float), "noise": np.ones((12, 1)) + (np.arange(12) // 6)[:, None]})
    aligned = AlignedGram(On("labels", Linear()) + On("noise", Linear())).fit(X, y)
    assert aligned.weights_[1] == 0
    aligned.grams_[1] = None  # would be missed if it were used
    assert aligned.transform(X[:3]).shape == (3, 12)


def test_kernels_far_below_the_range_of_numbers_get_weights() -> None:
    random = rng()
    y = np.arange(10) % 2
    X = [Gaussian(label + 0.01 * random.normal(), 1.0) for label in y]
    aligned = AlignedGram(ProbabilityProduct(1.0, 2000) + ProbabilityProduct(0.5, 50)).fit(X, y)
    assert np.isfinite(aligned.transform(X)).all()
    assert aligned.weights_.sum() == pytest.approx(1.0, rel=0.05)


def test_weights_are_learnt_without_looking_at_test_labels() -> None:
    """With labels of pure chance, cross-validated accuracy is that of chance, though the training sum fits well."""
    random = rng(4)
    y = random.permutation(np.arange(60) % 2)
    X = Representations({str(k): random.normal(size=(60, 3)) for k in range(12)})
    kernel: Any = On("0", RBF(1.0))
    for k in range(1, 12):
        kernel = kernel + On(str(k), RBF(1.0))
    learner = make_pipeline(AlignedGram(kernel), SVC(kernel="precomputed"))
    assert 0.3 < cross_val_score(learner, X, y, cv=5).mean() < 0.65
    assert learner.fit(X, y).score(X, y) > 0.8


def test_pipelines_of_views_learn_weights() -> None:
    X, y = strings(30)
    learner = Pipeline(
        [
            ("views", Views([("words", Spectrum(2)), ("models", FitEach(MarkovChainEstimator(order=1)))])),
            ("aligned", AlignedGram(On("words", RBF(0.1)) + On("models", ProbabilityProduct(0.5, 5).normalized()))),
            ("svc", SVC(kernel="precomputed")),
        ]
    )
    grid = {"aligned__method": ["joint", "independent"], "aligned__kernel__right__kernel__kernel__rho": [0.5, 1.0]}
    search = GridSearchCV(learner, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.7
    assert search.best_estimator_["aligned"].weights_.shape == (2,)


def test_what_cannot_be_aligned_is_refused() -> None:
    X, y = np.eye(4), [0, 0, 1, 1]
    with pytest.raises(ValueError, match="a constant is not aligned with anything"):
        AlignedGram(Linear() + 1.0).fit(X, y)
    with pytest.raises(TypeError, match="'kernel' must be a sum of kernels"):
        AlignedGram("linear").fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="requires y to be passed"):
        AlignedGram(Linear() + RBF()).fit(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        AlignedGram(Linear() + RBF()).fit(X, y[:3])
    with pytest.raises(NotFittedError):
        AlignedGram(Linear() + RBF()).transform(X)
