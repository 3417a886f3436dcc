"""Out-of-fold features against fits by hand, and the naive-Bayes weights of counts against their formula."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedGroupKFold, StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline

from genkern import CrossFit, FisherScore, LogOddsWeights, MarkovChainEstimator, ModelLogOdds, Spectrum, TopScore

CHAIN = MarkovChainEstimator(order=1, alphabet="abc")
TOP = TopScore(CHAIN)


def strings(count=30, classes=2, seed=0):
    """Return distinct strings of several classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % classes
    laws = 0.7 * rng.dirichlet(np.ones(3), classes) + 0.1
    X = ["".join(rng.choice(list("abc"), 12 + i % 4, p=laws[c])) for i, c in enumerate(y)]
    assert len(set(X)) == count
    return X, y


def by_hand(embedding, X, y, parts):
    """Return features of each test part by an embedding fitted to the training part."""
    rows = {}
    for train, test in parts:
        fitted = clone(embedding).fit([X[i] for i in train], y[train])
        for i in test:
            rows[i] = fitted.transform([X[i]])[0]
    return np.array([rows[i] for i in range(len(X))])


@pytest.mark.parametrize("embedding", [TOP, FisherScore(CHAIN, per_class=True)], ids=["top", "fisher"])
@pytest.mark.parametrize("classes", [2, 3])
def test_training_rows_are_those_of_fits_without_the_fold(embedding, classes):
    X, y = strings(classes=classes)
    expected = by_hand(embedding, X, y, StratifiedKFold(5).split(X, y))
    cross = CrossFit(embedding)
    np.testing.assert_allclose(cross.fit_transform(X, y), expected, rtol=1e-10, atol=1e-12)
    assert np.abs(expected - clone(embedding).fit(X, y).transform(X)).max() > 0.1
    assert cross.get_feature_names_out().tolist() == clone(embedding).fit(X, y).get_feature_names_out().tolist()
    assert cross.n_features_out_ == expected.shape[1]


def test_new_objects_have_features_of_the_full_fit():
    X, y = strings()
    new = ["abcabcaab", "ccccc"]
    cross = CrossFit(TOP, cv=3).fit(X, y)
    np.testing.assert_array_equal(cross.transform(new), clone(TOP).fit(X, y).transform(new))


def test_transform_never_leaks():
    X, y = strings()
    cross = CrossFit(TOP, cv=3)
    honest = cross.fit_transform(X, y)
    full = clone(TOP).fit(X, y)
    mixed = [X[7], "abcabcaab", X[2], X[29]]
    got = pickle.loads(pickle.dumps(cross)).transform(mixed)
    np.testing.assert_allclose(got[[0, 2, 3]], honest[[7, 2, 29]], rtol=1e-12)
    np.testing.assert_allclose(got[1], full.transform(mixed)[1], rtol=1e-12)
    np.testing.assert_allclose(CrossFit(TOP, cv=3).fit(X, y).transform(X), honest, rtol=1e-12)


def test_a_pipeline_predicts_its_training_objects_from_honest_features():
    rng = np.random.default_rng(0)
    X = ["".join(row) for row in rng.choice(list("abcd"), (60, 12))]
    y = rng.integers(0, 2, 60)  # labels without meaning
    odds = ModelLogOdds(MarkovChainEstimator(order=2, alphabet="abcd"))
    assert make_pipeline(odds, LogisticRegression()).fit(X, y).score(X, y) > 0.85
    assert make_pipeline(CrossFit(odds), LogisticRegression()).fit(X, y).score(X, y) < 0.7


def test_equal_objects_share_a_fold():
    X, y = strings()
    X, y = [x for x in X[:15] for _ in range(2)], np.repeat(y[:15], 2)
    cross = CrossFit(TOP, cv=KFold(5, shuffle=True, random_state=0))
    rows = cross.fit_transform(X, y)
    np.testing.assert_array_equal(cross.folds_[1::2], cross.folds_[::2])
    np.testing.assert_array_equal(rows[1::2], rows[::2])
    fold = cross.folds_[4]
    outside = np.flatnonzero(cross.folds_ != fold)
    expected = clone(TOP).fit([X[i] for i in outside], y[outside]).transform([X[4]])
    np.testing.assert_allclose(rows[[4]], expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_groups_that_share_an_object_are_one(seed):
    """Whatever is linked by a group or by content, found by merging sets one by one, is in one fold."""
    rng = np.random.default_rng(seed)
    folds, n = 2 + seed % 4, 10 + seed
    groups = np.tile([f"g{group}" for group in rng.integers(9, size=n)], 2)
    words = ["ab" * word + "c" for word in rng.integers(30, size=n)] * 2
    sets = [({group}, {word}) for group, word in zip(groups.tolist(), words)]
    merged: list[tuple[set[str], set[str]]] = []
    for own in sets:
        near = [other for other in merged if other[0] & own[0] or other[1] & own[1]]
        merged = [other for other in merged if other not in near]
        merged.append(tuple(set().union(*parts) for parts in zip(own, *near)))
    y = np.repeat([0, 1], n)  # all objects in both classes
    islands = np.array([next(i for i, (names, _) in enumerate(merged) if name in names) for name in groups.tolist()])
    cross = CrossFit(Spectrum(1, alphabet="abc"), cv=folds)
    if len(merged) == 1:
        with pytest.raises(
            ValueError, match=r"CrossFit \(in which .*are one\): class 0 has 1 group; expected at least 2"
        ):
            cross.fit(words, y, groups=groups)
        return
    cross.fit(words, y, groups=groups)
    for island in range(len(merged)):
        assert len(set(cross.folds_[islands == island])) == 1
    assert cross.folds_.max() + 1 == min(folds, len(merged))


@pytest.mark.parametrize("cv", [3, GroupKFold(3)])
def test_groups_are_not_divided(cv):
    X, y = strings()
    groups = np.repeat(np.arange(10), 3)
    cross = CrossFit(TOP, cv)
    rows = cross.fit_transform(X, y, groups=groups)
    assert all(len(set(cross.folds_[groups == g])) == 1 for g in range(10))
    splitter = StratifiedGroupKFold(3) if cv == 3 else cv
    np.testing.assert_allclose(rows, by_hand(TOP, X, y, splitter.split(X, y, groups)), rtol=1e-10, atol=1e-12)
    pipeline = Pipeline([("top", CrossFit(TOP, cv)), ("learner", LogisticRegression(C=0.01))])
    pipeline.fit(X, y, top__groups=groups)
    np.testing.assert_array_equal(pipeline["top"].folds_, cross.folds_)


def test_matrices_series_tokens_and_documents():
    rng = np.random.default_rng(0)
    counts, y = rng.poisson(1.0, (20, 6)), np.arange(20) % 2
    counts[:, 0] = np.arange(20)  # all rows differ
    parts = list(StratifiedKFold(4).split(counts, y))
    expected = by_hand(LogOddsWeights(binary=False), counts, y, parts)
    for table in (counts, counts.astype(float), sparse.csr_matrix(counts), sparse.csc_matrix(counts)):
        rows = CrossFit(LogOddsWeights(binary=False), cv=4).fit_transform(table, y)
        assert sparse.issparse(rows) == sparse.issparse(table)
        np.testing.assert_allclose(rows.toarray() if sparse.issparse(rows) else rows, expected, rtol=1e-12, atol=1e-14)
    tokens = [[f"w{c}" for c in row] for row in counts]
    words = CrossFit(TopScore(MarkovChainEstimator(0, alphabet=sorted({w for row in tokens for w in row}))), cv=2)
    np.testing.assert_array_equal(words.fit_transform(tokens, y), words.transform(tokens))
    documents = [" ".join(row) for row in tokens]
    vocabulary = CountVectorizer(vocabulary=sorted({w for row in tokens for w in row}))
    weighted = CrossFit(make_pipeline(vocabulary, LogOddsWeights()), cv=2)
    assert weighted.fit_transform(documents, y).shape == (20, len(vocabulary.vocabulary))


def test_features_that_differ_between_folds_are_refused():
    X, y = strings()
    X[3] = "abcdabc"
    with pytest.raises(ValueError, match=r"features of fold 0 .* give the alphabet="):
        CrossFit(TopScore(MarkovChainEstimator())).fit(X, y)
    with pytest.raises(ValueError, match=r"features of fold 0 .* \(3 and 4 features\)"):
        CrossFit(_Nameless()).fit(X, y)


class _Nameless(Spectrum):
    """A spectrum whose columns have no names."""

    def __init__(self):
        super().__init__(k=1)

    get_feature_names_out = property()


def test_malformed_arguments_are_refused():
    X, y = strings()
    lonely = np.where(np.arange(30) == 4, 2, y)
    with pytest.raises(ValueError, match="no objects of class 2 outside of fold 0, and 1 in all"):
        CrossFit(TOP, cv=KFold(3)).fit(X, lonely)
    with pytest.raises(ValueError, match="exactly one test part"):
        CrossFit(TOP, cv=ShuffleSplit(3, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        CrossFit(TOP).fit(X, np.zeros(30))
    with pytest.raises(ValueError, match="requires y"):
        CrossFit(TOP).fit(X)
    with pytest.raises(ValueError, match="inconsistent"):
        CrossFit(TOP).fit(X, y[:-1])


# --- weights of counts


def weights_by_loop(counts, y, label, a):
    """Return the log-odds of each word in a class against the rest, word by word."""
    own = [sum(row[d] for row, c in zip(counts, y) if c == label) + a for d in range(counts.shape[1])]
    rest = [sum(row[d] for row, c in zip(counts, y) if c != label) + a for d in range(counts.shape[1])]
    return [np.log(p / sum(own)) - np.log(q / sum(rest)) for p, q in zip(own, rest)]


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.booleans(), st.sampled_from([0.3, 1.0]), st.integers(0, 10**6))
def test_weights_are_those_of_the_formula(classes, binary, a, seed):
    rng = np.random.default_rng(seed)
    counts, y = rng.poisson(0.8, (12, 5)), np.arange(12) % classes
    used = np.minimum(counts, 1) if binary else counts
    labels = [1] if classes == 2 else range(classes)
    expected = [weights_by_loop(used, y, c, a) for c in labels]
    fitted = LogOddsWeights(a, binary).fit(counts, y)
    np.testing.assert_allclose(fitted.weights_, expected, rtol=1e-12, atol=1e-14)
    rows = np.hstack([used * np.array(row) for row in expected])
    np.testing.assert_allclose(fitted.transform(counts), rows, rtol=1e-12, atol=1e-14)
    loose = LogOddsWeights(a, binary).fit(sparse.csr_matrix(counts), y).transform(sparse.csr_matrix(counts))
    np.testing.assert_allclose(loose.toarray(), rows, rtol=1e-12, atol=1e-14)


def test_features_sum_to_the_naive_bayes_decision():
    rng = np.random.default_rng(1)
    counts, y = rng.poisson(1.0, (20, 7)), np.arange(20) % 2
    bayes = MultinomialNB(alpha=1.0).fit(counts, y).predict_joint_log_proba(counts)
    odds = LogOddsWeights(binary=False).fit_transform(counts, y).sum(axis=1)
    np.testing.assert_allclose(odds, bayes[:, 1] - bayes[:, 0], rtol=1e-10)  # equal priors


def test_names_and_malformed_counts():
    counts, y = np.eye(4), ["A", "B", "C", "A"]
    weights = LogOddsWeights().fit(counts, y)
    assert weights.get_feature_names_out(["p", "q", "r", "s"]).tolist()[3:6] == ["A.s", "B.p", "B.q"]
    two = LogOddsWeights().fit(counts[:2], y[:2])
    assert two.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    with pytest.raises(ValueError, match="Negative"):
        LogOddsWeights().fit(-counts, y)
    with pytest.raises(ValueError, match="pseudocount"):
        LogOddsWeights(pseudocount=0).fit(counts, y)
    with pytest.raises(ValueError, match="one class"):
        LogOddsWeights().fit(counts, [1, 1, 1, 1])
