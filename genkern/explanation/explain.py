"""Explanations of a linear classifier's decision for one object: contributions of parameters and of positions."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.data.describe import Described, Rows
from genkern.explanation.labels import Features, channels_of, grouped, made_by
from genkern.explanation.linear import Linear, linear_of
from genkern.explanation.steps import Seen, Traced, follow
from genkern.features.positions import as_vector
from genkern.validation import Floats, check_int, one_warning_each

COLUMN = re.compile(r"(?:^|[.:_])(?:match|insert|transitions|entry|exits)\[(\d+),?[^,\]]*\]$")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Described):
    r"""The decision value of a linear classifier for one object, as sums over features and over positions.

    .. math:: f(x) = b + \sum_j c_j = b + r + \sum_t d_t

    Attributes
    ----------
    label : object
        The class of the decision value.
    decision : float
        The decision value :math:`f(x)`; of two classes, that of the second is the classifier's and that of the first
        has the other sign.
    intercept : float
        The classifier's bias b.
    contributions : ndarray of shape (p,)
        :math:`c_j = w_j \phi_j(x)`, with the classifier's coefficients and the features that it was given.
    names : ndarray of shape (p,) of str
        Names of the features.
    positions : ndarray of shape (T,), or None
        The contributions :math:`d_t` of positions; None if none are known for the embedding.
    rest : float
        The part r of the contributions that belongs to no position, such as centring constants and priors.
    terms : Terms or sparse array of shape (T, p)
        The contribution of each feature at each position, not formed where these would be many numbers.
    x : object
        The explained object.
    features : Features, optional
        The parts of the pipeline that features belong to, of which ``labels`` and ``by_block`` speak.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from genkern import Spectrum, explain
    >>> pipeline = make_pipeline(Spectrum(k=2), RidgeClassifier()).fit(["abab", "aabab", "bbaa", "bbba"], [0, 0, 1, 1])
    >>> explanation = explain(pipeline, "abba")
    >>> explanation.label, round(explanation.decision, 3)
    (1, 0.041)
    >>> [(word, round(value, 3)) for word, value in explanation.top(2)]
    [('ab', -0.603), ('bb', 0.329)]
    >>> explanation.positions.round(3)
    array([-0.301, -0.137,  0.164,  0.   ])
    """

    label: Any
    decision: float
    intercept: float
    contributions: Floats
    names: NDArray[np.object_]
    positions: Floats | None
    rest: float
    terms: Any
    x: Any
    features: Features | None = None

    @property
    def table(self) -> Any:
        """The contribution of each feature at each position, a sparse array (T, p): its rows sum to ``positions``."""
        return self.terms if sparse.issparse(self.terms) else self.terms.table()

    @property
    def labels(self) -> NDArray[np.object_]:
        """What the features are, in words, (p,): "A..C (pairs, 3 apart)" for the name ``pairs__0-3__A..C``."""
        return np.array([self._label(j) for j in range(len(self.names))], dtype=object)

    def top(self, n: int = 10) -> list[tuple[str, float]]:
        """Return the labels and contributions of the n features that contribute most, of either sign.

        Parameters
        ----------
        n : int, default=10
        """
        count = check_int(n, "n", "Explanation.top")
        order = np.argsort(-np.abs(self.contributions), kind="stable")[:count]
        return [(self._label(j), float(self.contributions[j])) for j in order]

    def by_block(self, depth: int = 1) -> dict[str, Floats]:
        """Return the contributions (T,) of positions for each block of features, such as ``transitions``.

        Parameters
        ----------
        depth : int, default=1
            1 for the parts of the pipeline, which are those of a ``FeatureUnion``, or blocks of parameters where there
            is none; 2 and more for their sub-parts, "pairs / 0-3".
        """
        names, member = grouped(*self._paths(), check_int(depth, "depth", "Explanation.by_block", 1))
        return dict(zip(names, (self.terms @ member).toarray().T))

    def by_column(self) -> Floats:
        """Return the contributions (K + 1,) of the columns 1, ..., K of a family, and at 0 of what comes before them.

        They are those of the parameters of a ``ProfileHMM`` at each column: its letters, insertions after it and
        transitions from it, in all classes. Flanks belong to no column.
        """
        found = [COLUMN.search(str(name)) for name in self.names]
        columns = np.array([-1 if match is None else int(match[1]) for match in found])
        if not (columns >= 0).any():
            raise ValueError(
                "Explanation.by_column: expected features of profiles, such as those of FisherScore(ProfileHMM). Got "
                f"{len(self.names)} features without columns."
            )
        known = columns >= 0
        sums = np.zeros(int(columns.max()) + 1)
        np.add.at(sums, columns[known], self.contributions[known])
        return sums

    def _label(self, j: int) -> str:
        return str(self.names[j]) if self.features is None else self.features.label(j)

    def _paths(self) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
        return made_by(None, self.names).paths() if self.features is None else self.features.paths()

    def __repr__(self) -> str:
        places = "no" if self.positions is None else len(self.positions)
        return (
            f"Explanation(label={self.label!r}, decision={self.decision:.4g}, {len(self.names)} features, "
            f"{places} positions)"
        )

    def _heading(self) -> str:
        return f"decision {self.decision:+.4f} for class {self.label!r}"

    def _details(self) -> Rows:
        shown = self.top(8)
        others = self.contributions.sum() - sum(value for _, value in shown)
        rows: Rows = [("features", [[f"{value:+.4f}", name] for name, value in shown])] if shown else []
        if len(shown) < len(self.names):
            rows.append((f"{len(self.names) - len(shown)} other features", f"{others:+.4f}"))
        rows.append(("intercept", f"{self.intercept:+.4f}"))
        if self.positions is not None:
            rows += [("by position", f"{self.positions.sum():+.4f}"), ("of no position", f"{self.rest:+.4f}")]
        return rows

    def __str__(self) -> str:
        shown = self.top(10)
        others = self.contributions.sum() - sum(value for _, value in shown)
        lines = [f"decision {self.decision:+.4f} for class {self.label!r}"]
        lines += [f"  {value:+.4f}  {name}" for name, value in shown]
        if len(shown) < len(self.names):
            lines.append(f"  {others:+.4f}  {len(self.names) - len(shown)} other features")
        lines.append(f"  {self.intercept:+.4f}  intercept")
        if self.positions is not None:
            lines.append(f"by position {self.positions.sum():+.4f}, of no position {self.rest:+.4f}")
        return "\n".join(lines)


@one_warning_each()
def explain(pipeline: Any, x: Any, label: Any = None, *, channels: Any = None) -> Explanation:
    r"""Return the contributions of every feature and of every position to a linear classifier's decision.

    .. math:: f(x) = b + \sum_j w_j \phi_j(x), \qquad \phi_j(x) = f_j\Big(\sum_t s_{tj} + a_j\Big), \qquad
       d_t = \sum_j w_j\, s_{tj}\, \frac{f_j(g_j) - f_j(0)}{g_j}, \quad g_j = \sum_t s_{tj} + a_j

    A feature contributes its coefficient times its value. Sums over positions in an embedding are split between them:
    Fisher scores and tangent vectors by posterior expectations (:math:`s_t = E[\nabla \log p(x_t, q_t | q_{t-1}) | x]`;
    the step into a state belongs to the state's position), log-odds by their change with each further observation,
    visits of states by their posteriors, words equally over their symbols, windows of a series equally over their
    positions. Maps after the sum (roots, unit length, scaling) scale the shares of positions in proportion, which is
    exact for linear maps and is otherwise the integrated gradient along the straight line from zero. Where the terms of
    a feature cancel, :math:`g_j = 0`, its positions get zero. Terms that belong to no position, such as centring
    constants and class priors, are the ``rest``, so that both sums are exact.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted: steps that change objects (``ScaleSeries``, ``Windows``, ``Turns``, ``Recode``), an embedding
        (``FisherScore``, ``TopScore``, ``ModelLogOdds``, ``StateSpace``, ``Marginalized``, ``LatentMeanMap``,
        ``EmpiricalMeanMap``, ``Spectrum``, ``PositionalSpectrum``, ``RegionSpectrum``, ``BlockNormalizer``,
        ``MultiScale`` or ``CrossFit`` of such, a ``FeatureUnion``, or any other transformer, then without positions),
        steps that map features one to one or select some, and a classifier with ``coef_``: ``LinearSVC``,
        ``LogisticRegression``, ``RidgeClassifier``, ``SVC(kernel="linear")`` of two classes, this package's kernel
        classifiers with ``kernel="linear"``, ``OneVsRestClassifier`` of such. For a fitted grid search or
        ``AutoClassifier`` its best pipeline is used.
    x : object
        One object: a string, a token list, a series or a bag.
    label : object, optional
        The class whose decision value is explained; the default is the class that is predicted.
    channels : sequence of str, optional
        Names of the channels of a series, for labels; the default is x0, x1, ...

    Returns
    -------
    explanation : Explanation

    References
    ----------
    Sundararajan, Taly & Yan (2017), Axiomatic attribution for deep networks, section 3 (integrated gradients).
    Louis (1982), Finding the observed information matrix when using the EM algorithm, section 3 (the score as an
    expectation given the data).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from genkern import MarkovChainEstimator, TopScore, explain
    >>> X, y = ["aabab", "aaabb", "abaaa", "bbabb", "babba", "bbbab"], list("AAABBB")
    >>> pipeline = make_pipeline(TopScore(MarkovChainEstimator(order=0)), LogisticRegression()).fit(X, y)
    >>> explanation = explain(pipeline, "aabaa")
    >>> explanation
    Explanation(label='A', decision=4.363, 5 features, 5 positions)
    >>> explanation.positions.round(2)
    array([ 1.43,  1.43, -1.24,  1.43,  1.43])
    """
    linear = linear_of(pipeline)
    traced = trace(linear, x, channels)
    wanted = linear.classifier.predict(traced.row)[0] if label is None else label
    if wanted not in linear.classes:
        raise ValueError(f"explain: 'label' must be one of {', '.join(map(repr, linear.classes))}. Got {label!r}.")
    index = linear.classes.index(wanted)
    coefficients, intercept = linear.weights[index], float(linear.intercepts[index])
    contributions = coefficients * as_vector(traced.row)
    decision = float(contributions.sum() + intercept)
    linear.check(traced.row, np.array([index]), np.array([decision]), np.abs(contributions).sum(keepdims=True))
    terms, ones = traced.terms.scaled(coefficients), sparse.csr_array(np.ones((len(coefficients), 1)))
    positions = None if terms.length == 0 else (terms @ ones).toarray()[:, 0]
    rest = contributions.sum() - (0.0 if positions is None else positions.sum())
    for array in (contributions, positions):
        if array is not None:
            array.setflags(write=False)
    return Explanation(
        linear.classes[index],
        decision,
        intercept,
        contributions,
        traced.features.names(),
        positions,
        float(rest),
        terms,
        x,
        traced.features,
    )


def trace(linear: Linear, x: Any, channels: Any = None) -> Traced:
    """Return the features of one object, refusing several."""
    pipeline = linear.pipeline
    try:
        of_table = hasattr(pipeline, "n_features_in_") and not isinstance(x, str) and np.ndim(x) == 1
        start = Seen(np.asarray(x)[None]) if of_table else Seen([x], columns=channels_of(x, channels))
        state = follow(linear.steps, start)
    except (TypeError, ValueError) as error:
        count = _count(pipeline, x)
        if count is None:
            raise
        raise ValueError(
            f"explain: 'x' must be one object. Got a list of {count}: explain one of them, explain(pipeline, x[0]), or "
            "the whole set, explain_set(pipeline, x)."
        ) from error
    if not isinstance(state, Traced):
        raise TypeError("explain: no step of the pipeline turns objects into features.")
    return state


def _count(pipeline: Any, x: Any) -> int | None:
    """Return the number of objects in x for the pipeline, None if x is no list of objects."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of a call that fails anyway
            return len(pipeline.predict(x))
    except (TypeError, ValueError):
        return None
