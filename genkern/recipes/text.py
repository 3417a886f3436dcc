"""Documents: words, weighted by their log-odds between classes, and a linear SVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

from genkern.embed import LogOddsWeights
from genkern.recipes.recipe import Recipe

CS = (0.3, 1.0, 3.0, 10.0)
ITERATIONS = 10_000  # of the linear solver: enough to converge without a warning


def text(
    *,
    pseudocount: float = 1.0,
    binary: bool = True,
    Cs: Sequence[float] = CS,
    cv: Any = 5,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Pipeline:
    """Return a linear SVM on the words of documents, weighted by their naive-Bayes log-odds.

    Parameters
    ----------
    pseudocount : float, default=1.0
        Added to the count of each word in each class, as in ``LogOddsWeights``.
    binary : bool, default=True
        Whether a word counts once in a document, however often it occurs.
    Cs : sequence of float, default=(0.3, 1, 3, 10)
        Weights of errors in the SVM, of which cross-validation chooses one.
    cv : int or cross-validation generator, default=5
        The folds of that choice.
    random_state : int, default=0
        Seed of the solver.
    n_jobs : int, optional
        Processes, over folds and Cs.

    Returns
    -------
    pipeline : Pipeline
        Steps "counts" (scikit-learn's ``CountVectorizer``: lower-case words of at least two letters or digits) and
        "search", a ``GridSearchCV`` over a pipeline of "weights", "norm" and "svm".

    Notes
    -----
    Weights are learnt anew in each fold of the search, so that no label of a held-out document takes part in them.
    For counts at hand, a matrix of n rows, dense or sparse, use ``text().set_params(counts="passthrough")``; for pairs
    of words ``text().set_params(counts__ngram_range=(1, 2))``.

    References
    ----------
    Wang & Manning (2012), Baselines and bigrams: simple, good sentiment and topic classification.

    Examples
    --------
    >>> from genkern.recipes import text
    >>> X = ["my thesis advisor", "my classes, my advisor", "professor of computing", "professor and chair"]
    >>> learner = text(cv=2).fit(X, ["student", "student", "faculty", "faculty"])
    >>> learner.predict(["my advisor is a professor of my choice"])
    array(['student'], dtype='<U7')
    """
    weighted = Pipeline(
        [
            ("weights", LogOddsWeights(pseudocount, binary)),
            ("norm", Normalizer()),
            ("svm", LinearSVC(random_state=random_state, max_iter=ITERATIONS)),
        ]
    )
    search = GridSearchCV(weighted, {"svm__C": list(Cs)}, cv=cv, n_jobs=n_jobs)
    return Recipe([("counts", CountVectorizer()), ("search", search)])
