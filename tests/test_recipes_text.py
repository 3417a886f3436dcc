"""The recipe for documents against its steps by hand, and on web pages where they are at hand."""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from genkern.recipes import text

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))


def documents(count=40, classes=2, seed=0, meaning=1.0):
    """Return documents of 30 words whose frequencies depend on the class."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % classes
    words = np.array([f"word{i}" for i in range(60)])
    laws = [np.random.default_rng(100 + c).dirichlet(np.ones(60)) for c in range(classes)]
    shared = np.mean(laws, axis=0)
    return [" ".join(rng.choice(words, 30, p=meaning * laws[c] + (1 - meaning) * shared)) for c in y], y


def test_steps_are_binary_counts_log_odds_unit_length_and_an_svm():
    X, y = documents()
    new, _ = documents(seed=1)
    vectorizer = CountVectorizer()
    seen = np.minimum(vectorizer.fit_transform(X).toarray(), 1.0)
    later = np.minimum(vectorizer.transform(new).toarray(), 1.0)
    own, rest = seen[y == 1].sum(axis=0) + 1, seen[y == 0].sum(axis=0) + 1
    weights = np.log(own / own.sum()) - np.log(rest / rest.sum())
    learner = text(Cs=(2.0,), binary=True).fit(X, y)
    svm = LinearSVC(C=2.0, random_state=0, max_iter=10_000).fit(normalize(seen * weights), y)
    expected = svm.decision_function(normalize(later * weights))
    np.testing.assert_allclose(learner.decision_function(new), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 4])
def test_classes_are_told_apart(classes):
    X, y = documents(60, classes)
    new, labels = documents(60, classes, seed=1)
    assert text().fit(X, y).score(new, labels) > 0.9


def test_the_search_does_not_believe_meaningless_labels():
    X, _ = documents(60, meaning=0.0)
    y = np.random.default_rng(5).integers(0, 2, 60)
    learner = text().fit(X, y)
    assert learner.score(X, y) > 0.8
    assert learner["search"].best_score_ < 0.7


def test_counts_may_be_given():
    X, y = documents()
    counts = CountVectorizer().fit_transform(X)
    by_words = text().fit(X, y)
    for table in (counts, counts.toarray()):
        learner = text().set_params(counts="passthrough").fit(table, y)
        np.testing.assert_allclose(
            learner.decision_function(table), by_words.decision_function(X), rtol=1e-3, atol=1e-4
        )
    pairs = clone(text()).set_params(counts__ngram_range=(1, 2)).fit(X, y)
    assert len(pairs["counts"].vocabulary_) > 2 * len(by_words["counts"].vocabulary_)


@pytest.mark.skipif(not (DATA / "webkb").exists(), reason="needs the folder webkb of the data, see GENKERN_DATA")
def test_web_pages_of_students_and_faculty():
    csv.field_size_limit(1 << 30)
    with gzip.open(DATA / "webkb" / "webkb4.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["class"] in ("student", "faculty")]
    order = np.random.default_rng(0).permutation(len(rows))[:700]
    X, y = [rows[i]["text"] for i in order], np.array([rows[i]["class"] for i in order])
    learner = text().fit(X[:200], y[:200])
    assert learner.score(X[200:], y[200:]) > 0.90


PAGES, LABELS = ["my thesis advisor", "my classes", "professor of computing", "professor and chair"], [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (pd.DataFrame({"text": PAGES}), r"columns \['text'\]; .* df\['text'\]"),
        ("my thesis", r"one string; put it into a list"),
        ({"a": "my thesis"}, r"Got a dict; pass list\(X.values\(\)\)"),
        (np.array([PAGES]).T, r"shape \(4, 1\); pass one column"),
        (["my", None], r"object 1 is missing \(None\); .* Drop it"),
        (pd.Series(["my", pd.NA]), r"object 1 is missing"),
        (["my", ["my", "thesis"]], r"object 1 is a list; .* ' '.join"),
        ([3], r"object 0 is of type int"),
    ],
)
def test_what_is_no_list_of_documents_is_refused(X, words):
    learner = text(cv=2).fit(PAGES, LABELS)
    with pytest.raises((TypeError, ValueError), match=words):
        learner.predict(X)
    with pytest.raises((TypeError, ValueError), match=words):
        text(cv=2).fit(X, LABELS[: len(X)])


def test_columns_arrays_and_empty_documents_are_taken():
    learner = text(cv=2).fit(pd.Series(PAGES, index=[5, 6, 7, 8]), LABELS)
    np.testing.assert_array_equal(learner.predict(np.array(PAGES)), LABELS)
    with pytest.warns(UserWarning, match=r"1 of 2 documents are empty \(object 1\)") as caught:
        assert learner.predict(["my thesis", " "]).shape == (2,)
    assert len(caught) == 1


def test_counts_are_taken_where_they_tell_more():
    """Two classes of documents that have the same words, and one of them some words more often."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    words = [f"word{i}" for i in range(10)]
    X = [" ".join(rng.permutation(words + [words[label]] * 3)) for label in y]
    learner = text().fit(X[:40], y[:40])
    assert learner["search"].best_params_["weights__binary"] is False
    assert learner.score(X[40:], y[40:]) == 1.0
    assert text(binary=True).fit(X[:40], y[:40]).score(X[40:], y[40:]) < 0.8
    once = [" ".join(sorted(set(x.split()) - {words[label]})) for x, label in zip(X, y)]
    assert text().fit(once, y)["search"].best_params_["weights__binary"] is True  # as good: once
    with pytest.raises((TypeError, ValueError), match="binary"):
        text(binary="maybe")


def test_a_tokenizer_makes_the_words():
    X, y = ["a-b", "a-c", "d-e", "d-f"] * 3, [0, 0, 1, 1] * 3
    learner = text(tokenizer=lambda document: document.split("-"), cv=2).fit(X, y)
    assert learner["counts"].get_feature_names_out().tolist() == list("abcdef")
    assert learner.predict(["a-f-e-a", "d"]).tolist()[1] == 1
