"""Explanations of a whole set: mean contributions of the parts of a pipeline, of channels and of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import _num_samples

from genkern.data.describe import Described, Rows
from genkern.explanation.explain import Explanation, explain, trace
from genkern.explanation.labels import Features, grouped, membership
from genkern.explanation.linear import Linear, linear_of
from genkern.preprocess.cross_fit import take
from genkern.validation import Floats, check_int, one_warning_each

NUMBERS = 1 << 22  # in the features of the objects that are explained at once
NO_CHANNEL = "of no channel"


class Mean(NamedTuple):
    """Mean contributions to the decision values of the objects' classes.

    Attributes
    ----------
    absolute : float
        The mean, over all objects, of the absolute contribution.
    signed : dict of label to float
        The mean contribution over the objects of each class: positive where it speaks for the class.
    """

    absolute: float
    signed: dict[Any, float]


@dataclass(frozen=True, eq=False, repr=False)
class ExplanationSet(Described):
    r"""The decision values of a linear classifier for a set of objects, as sums over blocks and channels.

    Each object's decision is that of its class. An iteration yields the ``Explanation`` of each object, with positions,
    made when it is asked for; so does an index.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The class that is explained of each object: the given one, or that which is predicted.
    classes : list of labels
    decisions, intercepts : ndarray of shape (n,)
        The decision value for that class, and the bias in it.
    blocks : ndarray of shape (n, B)
        The contribution of each of the smallest blocks of features; rows sum to decisions less intercepts.
    block_paths : list of B tuples of str
        Parts of the pipeline and their sub-parts, to each block.
    channels : ndarray of shape (n, C)
        The contribution of each channel, those of features that belong to none last; no columns where no feature
        belongs to a channel.
    channel_names : list of C str
    absolute : ndarray of shape (p,)
        The mean absolute contribution of each feature.
    signed : ndarray of shape (n_classes, p)
        The mean contribution of each feature over the objects of each class; zero where there are none.
    features : Features
        What features are called.
    pipeline, X, given_channels
        What ``explain_set`` was given.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from genkern import HMMEstimator, FisherScore, explain_set
    >>> X, y = ["aabab", "aaabb", "abaaa", "bbabb", "babba", "bbbab"], list("AAABBB")
    >>> pipeline = make_pipeline(FisherScore(HMMEstimator(1)), RidgeClassifier()).fit(X, y)
    >>> explained = explain_set(pipeline, X, y)
    >>> explained
    ExplanationSet(6 objects, 2 classes, 4 features in 3 blocks, no channels)
    >>> [(name, round(mean.absolute, 2)) for name, mean in explained.by_block().items()]
    [('emissions.probs', 0.7), ('start', 0.0), ('transitions', 0.0)]
    """

    labels: NDArray[Any]
    classes: list[Any]
    decisions: Floats
    intercepts: Floats
    blocks: Floats
    block_paths: list[tuple[str, ...]]
    channels: Floats
    channel_names: list[str]
    absolute: Floats
    signed: Floats
    features: Features
    pipeline: Any
    X: Any
    given_channels: Any = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> Explanation:
        place = range(len(self))[i]
        label = self.labels[place : place + 1].tolist()[0]
        return explain(self.pipeline, take(self.X, np.array([place]))[0], label, channels=self.given_channels)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[i] for i in range(len(self)))

    def by_block(self, depth: int = 1) -> dict[str, Mean]:
        """Return the mean contributions of blocks of features, the largest first.

        Parameters
        ----------
        depth : int, default=1
            1 for the parts of the pipeline, which are those of a ``FeatureUnion`` ("pairs", "windows", "length"), or
            blocks of parameters where there is none; 2 and more for their sub-parts, "pairs / 0-3".
        """
        level = check_int(depth, "depth", "ExplanationSet.by_block", 1)
        names, member = grouped(self.block_paths, np.arange(len(self.block_paths)), level)
        return self._means(names, self.blocks @ member)

    def by_channel(self) -> dict[str, Mean]:
        """Return the mean contributions of the channels of series, the largest first.

        Features that belong to no channel, or to two, are together under "of no channel". There is nothing where no
        feature belongs to a channel: for symbols and documents, and where the pipeline mixes channels.
        """
        return self._means(self.channel_names, self.channels)

    def top(self, n: int = 10) -> list[tuple[str, Mean]]:
        """Return the labels and mean contributions of the n features with the largest mean absolute contribution.

        Parameters
        ----------
        n : int, default=10
        """
        count = check_int(n, "n", "ExplanationSet.top")
        order = np.argsort(-self.absolute, kind="stable")[:count]
        return [(self.features.label(j), Mean(float(self.absolute[j]), self._signed(self.signed[:, j]))) for j in order]

    def _means(self, names: list[str], sums: Floats) -> dict[str, Mean]:
        """Return means of contributions (n, B), the largest first."""
        absolute, codes = np.abs(sums).mean(axis=0), [self.classes.index(label) for label in self.labels.tolist()]
        counts = np.bincount(codes, minlength=len(self.classes))
        signed = membership(np.array(codes), len(counts)).T @ sums / np.maximum(counts, 1)[:, None]
        order = np.argsort(-absolute, kind="stable")
        return {names[b]: Mean(float(absolute[b]), self._signed(signed[:, b])) for b in order}

    def _signed(self, column: Floats) -> dict[Any, float]:
        """Return the means of those classes that have objects."""
        present = set(self.labels.tolist())
        return {label: float(value) for label, value in zip(self.classes, column) if label in present}

    def __repr__(self) -> str:
        channels = len(self.channel_names) - (NO_CHANNEL in self.channel_names)
        return (
            f"ExplanationSet({len(self)} objects, {len(self.classes)} classes, {len(self.absolute)} features in "
            f"{len(self.by_block())} blocks, {channels or 'no'} channels)"
        )

    def _heading(self) -> str:
        return f"{len(self)} objects: mean contributions to the decision for their class, absolute and by class"

    def _details(self) -> Rows:
        tables = {"block": self.by_block(), "channel": self.by_channel() if self.channel_names else {}}
        return [
            (title, [*map(list, lines("", means, 7))])  # with the head, eight lines
            for title, means in {**tables, "feature": dict(self.top(7))}.items()
            if means
        ]

    def __str__(self) -> str:
        parts = [table("block", self.by_block())]
        if self.channel_names:
            parts.append(table("channel", self.by_channel()))
        parts.append(table("feature", dict(self.top(10))))
        return "\n\n".join([self._heading(), *parts])


def lines(title: str, means: dict[str, Mean], n: int) -> list[tuple[str, ...]]:
    """Return a head and the n largest means: the name, the mean absolute contribution, those of at most six classes."""
    head = (title, "absolute", *(str(label) for label in list(next(iter(means.values())).signed)[:6]))
    return [head] + [
        (name, f"{mean.absolute:.4f}", *(f"{value:+.4f}" for value in list(mean.signed.values())[:6]))
        for name, mean in list(means.items())[:n]
    ]


def table(title: str, means: dict[str, Mean], n: int = 12) -> str:
    """Return the n largest means as a table."""
    rows = lines(title, means, n)
    widths = [max(map(len, column)) for column in zip(*rows)]
    made = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    left = len(means) - n
    return "\n".join(made + ([f"and {left} more"] if left > 0 else []))


@one_warning_each()
def explain_set(pipeline: Any, X: Any, y: ArrayLike | None = None, *, channels: Any = None) -> ExplanationSet:
    r"""Return what a linear classifier saw in a set of objects: mean contributions of blocks, channels and features.

    The contributions of an object are those to the decision value of its class, :math:`c_{ij} = w_j \phi_j(x_i)`, as in
    ``explain``; a block has the sum of its features', so that blocks sum to the decision value less the bias, exactly.
    The mean absolute contribution says how much a block matters, the mean over the objects of a class what it says.

    Parameters
    ----------
    pipeline : Pipeline
        As of ``explain``; a fitted grid search or ``AutoClassifier`` too.
    X : list of n objects
        The objects, better not those of the training.
    y : array-like of shape (n,), optional
        Their classes; the default is those that are predicted.
    channels : sequence of str, optional
        Names of the channels of series; the default is x0, x1, ...

    Returns
    -------
    explained : ExplanationSet

    Notes
    -----
    Features are computed for many objects at once, up to four million numbers. What is kept is the contributions of
    blocks and channels of each object, and the means of features.

    Examples
    --------
    >>> from genkern import explain_set, recipes
    >>> X, y = ["aabab", "aaabb", "abaaa", "bbabb", "babba", "bbbab"], list("AAABBB")
    >>> pipeline = recipes.spectrum_svm(k=1).fit(X, y)
    >>> for word, mean in explain_set(pipeline, X, y).top():
    ...     print(word, round(mean.signed["A"], 1), round(mean.signed["B"], 1))
    a 1.0 -0.4
    b -0.5 0.9
    """
    linear, n = linear_of(pipeline), _num_samples(X)
    if n == 0:
        raise ValueError("explain_set: expected at least one object. Got none.")
    codes = None if y is None else _codes(y, n, linear.classes)
    features = trace(linear, take(X, np.arange(1))[0], channels).features
    paths, block = features.paths()
    names, channel = _last(*features.channels())
    member = sparse.hstack([membership(block, len(paths)), membership(channel, max(len(names), 1))], format="csr")
    count, width = len(linear.classes), len(block)
    sums, wanted = np.zeros((n, member.shape[1])), np.zeros(n, np.int64)
    absolute, signed = np.zeros(width), np.zeros((count, width))
    step = max(1, NUMBERS // max(width, 1))
    for start in range(0, n, step):
        part = np.arange(start, min(start + step, n))
        chosen, each = _contributions(linear, take(X, part), None if codes is None else codes[part])
        wanted[part], sums[part] = chosen, _dense(each @ member)
        absolute += np.asarray(abs(each).sum(axis=0)).ravel()
        signed += _dense(membership(chosen, count).T @ each)
    intercepts, decisions = linear.intercepts[wanted], sums[:, : len(paths)].sum(axis=1) + linear.intercepts[wanted]
    return ExplanationSet(
        np.array(linear.classes, dtype=linear.classifier.classes_.dtype)[wanted],
        linear.classes,
        decisions,
        intercepts,
        sums[:, : len(paths)],
        paths,
        sums[:, len(paths) :][:, : len(names)],
        names,
        absolute / n,
        signed / np.maximum(np.bincount(wanted, minlength=count), 1)[:, None],
        features,
        pipeline,
        X,
        channels,
    )


def _codes(y: ArrayLike, n: int, classes: list[Any]) -> NDArray[np.int64]:
    """Return the numbers (n,) of the classes of objects."""
    labels = np.asarray(y).tolist()
    if len(labels) != n:
        raise ValueError(f"explain_set: expected a class of each of {n} objects in 'y'. Got {len(labels)}.")
    places = {label: i for i, label in enumerate(classes)}
    strange = [i for i, label in enumerate(labels) if label not in places]
    if strange:
        raise ValueError(
            f"explain_set: 'y' must hold classes of the pipeline, {', '.join(map(repr, classes))}. Got "
            f"{labels[strange[0]]!r} for object {strange[0]}."
        )
    return np.array([places[label] for label in labels])


def _contributions(linear: Linear, X: Any, codes: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], Any]:
    """Return the classes (b,) of objects that are explained, and the contributions (b, p) of features, dense or CSR."""
    rows = X
    for step in linear.steps:
        if step is not None and not (isinstance(step, str) and step == "passthrough"):
            rows = step.transform(rows)
    if codes is None:
        codes = np.searchsorted(linear.classifier.classes_, linear.classifier.predict(rows))
    if sparse.issparse(rows):
        each: Any = sparse.csr_array(rows, dtype=np.float64, copy=True)
        each.data *= linear.weights[np.repeat(codes, np.diff(each.indptr)), each.indices]
    else:
        each = np.asarray(rows, np.float64) * linear.weights[codes]
    decisions = np.asarray(each.sum(axis=1)).ravel() + linear.intercepts[codes]
    linear.check(rows, codes, decisions, np.asarray(abs(each).sum(axis=1)).ravel())
    return codes, each


def _dense(table: Any) -> Floats:
    """Return a matrix as an array."""
    return table.toarray() if sparse.issparse(table) else table


def _last(names: list[str], owner: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of channels with that of none last, and the channel of each feature; nothing if none has one."""
    if set(names) <= {""}:
        return [], np.zeros(len(owner), np.int64)
    order = sorted(range(len(names)), key=lambda i: names[i] == "")
    return [names[i] or NO_CHANNEL for i in order], np.argsort(order)[owner]
