"""The recipe for aligned symbols: its features, its choices, and splice junctions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from genkern import PositionalSpectrum, RegionSpectrum, explain
from genkern.datasets import load_splice_junctions
from genkern.learn.calibrated import CalibratedSearchCV
from genkern.recipes import aligned_symbols


def windows(count=60, seed=0):
    """Return windows of 12 letters in which class 1 has a motif in the middle that is present in half of class 0."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 2
    X = []
    for label in y:
        letters = rng.choice(list("ACGT"), 12)
        if label or rng.random() < 0.5:
            start = 4 if label else rng.choice([0, 1, 7, 8])
            letters[start : start + 4] = list("GTAA")
        X.append("".join(letters))
    return X, y


def test_features_are_words_roots_of_counts_and_out_of_fold_log_odds():
    X, y = windows()
    learner = aligned_symbols(ks=(1, 2), region_ks=(1,), orders=(0, 1), alphabet="dna").fit(X, y)
    names = learner["features"].get_feature_names_out().tolist()
    assert len(names) == 12 * 4 + 11 * 16 + 4 * 4 + 2
    assert (names[0], names[48], names[-3]) == ("words__0:A", "words__0:AA", "regions__region3:T")
    row = learner["features"].transform(["GGGACCCCACGT"])[0]
    row = dict(zip(names, row.toarray().ravel()))
    assert (row["words__0:G"], row["words__1:G"], row["words__0:A"]) == (1, 1, 0)
    assert row["regions__region0:G"] == pytest.approx(np.sqrt(3))
    cross = dict(learner["features"].transformer_list)["odds"]["cross"]
    assert cross.folds_.shape == (60,)
    assert len(cross.fold_embeddings_) == 5


def test_place_decides_and_the_search_chooses_by_training_data():
    X, y = windows(120)
    new, labels = windows(120, seed=1)
    learner = aligned_symbols(ks=(1, 2, 3), alphabet="dna").fit(X, y)
    assert learner.score(new, labels) > 0.9
    assert learner["search"].best_params_["C"] in (0.003, 0.005, 0.01, 0.02, 0.03, 0.1)


def test_parts_may_be_left_out():
    X, y = windows()
    learner = aligned_symbols(ks=(1,), region_ks=(), orders=(), alphabet="dna", Cs=(0.5,)).fit(X, y)
    table = np.array([[letter == x for letter in "ACGT" for x in text] for text in X], float)  # in another order
    by_hand = LogisticRegression(C=0.5, tol=1e-8).fit(table, y)
    chosen = learner[-1].best_estimator_.predict_proba(learner[:-1].transform(X))  # before the calibration
    np.testing.assert_allclose(chosen, by_hand.predict_proba(table), rtol=0, atol=0.01)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix])
def test_searches_of_many_columns_are_those_by_hand(form, classes):
    rng = np.random.default_rng(0)
    y = np.arange(42) % classes
    X = (rng.random((42, 150)) < 0.2) + 0.0
    X[:, 0] += y
    X[40] = X[39]  # rows of a rank below their number
    weights, folds = rng.uniform(0.3, 3.0, 42), [(np.arange(42) % 3 != k, np.arange(42) % 3 == k) for k in range(3)]
    fit = {"solver": "newton-cg", "tol": 1e-10}
    grid = {"C": [0.01, 1.0]}
    search = CalibratedSearchCV(LogisticRegression(**fit), grid, cv=[tuple(map(np.flatnonzero, f)) for f in folds])
    search.fit(form(X), y, sample_weight=weights)
    for k, (train, test) in enumerate(folds):
        for i, C in enumerate(grid["C"]):
            by_hand = LogisticRegression(C=C, **fit).fit(X[train], y[train], weights[train])
            score = by_hand.score(X[test], y[test], weights[test])
            assert search.cv_results_[f"split{k}_test_score"][i] == pytest.approx(score, rel=1e-12)
    by_hand = LogisticRegression(**search.best_params_, **fit).fit(X, y, weights)
    best = search.best_estimator_
    assert (best.coef_.shape, search.n_features_in_) == (by_hand.coef_.shape, 150)
    np.testing.assert_allclose(best.coef_, by_hand.coef_, rtol=0, atol=1e-7)
    np.testing.assert_allclose(search.decision_function(form(X)), by_hand.decision_function(X), rtol=0, atol=1e-6)


def test_sequences_of_another_length_are_refused():
    X, y = windows()
    with pytest.raises(ValueError, match="object 3 has 11 symbols"):
        aligned_symbols().fit([*X[:3], X[3][:-1], *X[4:]], y)
    learner = clone(aligned_symbols(ks=(1,), region_ks=(), orders=(0,), cv=2)).fit(X, y)
    with pytest.raises(ValueError, match="object 0 has 11 symbols"):
        learner.predict([X[3][:-1]])


def test_splice_junctions_are_told_apart():
    data = load_splice_junctions()
    order = np.random.default_rng(0).permutation(len(data.X))[:900]
    X, y = [data.X[i] for i in order], data.y[order]
    learner = aligned_symbols(ks=(1, 2, 3), region_ks=(1, 2, 3), alphabet="dna", Cs=(0.1,), cv=3)
    assert learner.fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.92


def test_words_are_as_long_as_columns_allow():
    rng = np.random.default_rng(0)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    X, y = ["".join(rng.choice(letters, 30)) for _ in range(40)], np.arange(40) % 2
    words = PositionalSpectrum("auto", "protein").fit(X)
    assert words.ks_ == [1, 2, 3]
    assert words.n_features_out_ == 30 * 20 + 29 * 400 + 28 * 8000
    assert RegionSpectrum("auto", alphabet="protein").fit(X).ks_ == [1, 2, 3, 4]  # 4 * 168420 columns
    assert RegionSpectrum("auto", alphabet=40).fit([[0, 1]]).ks_ == [1, 2, 3]
    assert PositionalSpectrum("auto", "dna").fit(["ACG"]).ks_ == [1, 2, 3]
    assert PositionalSpectrum("auto", "dna").fit(["ACGTACGT"]).ks_ == [1, 2, 3, 4, 5]
    with pytest.raises(
        ValueError, match=r"words of up to 5 of 20 symbols need 8.*e\+07 columns, .* shorter words in ks"
    ):
        PositionalSpectrum(alphabet="protein").fit(X)
    learner = aligned_symbols(orders=(0,), Cs=(0.01,), cv=2).fit(X, y)
    assert learner.predict(X).shape == (40,)


def test_words_of_chosen_lengths_can_be_explained():
    X, y = windows()
    learner = aligned_symbols(orders=(0,), Cs=(0.01,), cv=2, alphabet="dna").fit(X, y)
    found = explain(learner, X[1], label=1)
    np.testing.assert_allclose(found.decision, learner.decision_function([X[1]])[0])
