"""How much worse a classifier does without a channel of series, or a region of aligned sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import check_scoring
from sklearn.utils import check_consistent_length, check_random_state

from genkern.data.objects import kind_of, pack_series
from genkern.validation import Floats, check_int

WHO = "permutation_importance"


class Importance(NamedTuple):
    """What the score of a classifier loses where parts of objects are exchanged between objects.

    Attributes
    ----------
    names : list of k str
        The parts: channels, or regions.
    means : ndarray of shape (k,)
        The mean loss.
    deviations : ndarray of shape (k,)
        Its standard deviation over the repeats.
    losses : ndarray of shape (k, n_repeats)
        The score less that with exchanged parts.
    score : float
        The score of the objects as they are.
    """

    names: list[str]
    means: Floats
    deviations: Floats
    losses: Floats
    score: float

    def __str__(self) -> str:
        width = max(map(len, self.names))
        rows = [
            f"{self.names[i].ljust(width)}  {self.means[i]:+.4f} ± {self.deviations[i]:.4f}"
            for i in np.argsort(-self.means, kind="stable")
        ]
        return "\n".join([f"score {self.score:.4f}; lost on average by exchanging", *rows])


def permutation_importance(
    pipeline: Any,
    X: Any,
    y: ArrayLike,
    *,
    n_repeats: int = 5,
    n_regions: int | None = None,
    channels: Any = None,
    scoring: Any = None,
    random_state: Any = None,
) -> Importance:
    """Return how much of its score a classifier loses where a channel is exchanged between objects.

    In each repeat, and for each channel, object i gets the whole channel of object s(i), with a random permutation s of
    the objects. Where lengths differ, that channel is brought to the length of object i: position t reads, by linear
    interpolation, position t (T' - 1) / (T - 1) of the other; where one of the two that it lies between is missing, it
    is missing. So each channel keeps its course and its gaps, and only its relation to the class and to the other
    channels is lost. Of sequences of symbols that have one length, regions of positions are exchanged.

    Parameters
    ----------
    pipeline : classifier
        Fitted; of any kind, it need not be linear.
    X : list of n objects
        Series, or sequences of symbols of one length; better not those of the training.
    y : array-like of shape (n,)
        Their classes.
    n_repeats : int, default=5
        Permutations of each channel.
    n_regions : int, optional
        Number of regions, of equal size up to one, of aligned sequences. The default is as many as there are positions.
    channels : sequence of str, optional
        Names of the channels; the default is x0, x1, ...
    scoring : str or callable, optional
        As in scikit-learn; the default is the classifier's ``score``.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations.

    Returns
    -------
    importance : Importance

    Notes
    -----
    A loss near zero says that the classifier does as well without the channel, as it does where other channels tell the
    same. Channels are exchanged as given, before any step of the pipeline.

    References
    ----------
    Breiman (2001), Random forests, section 10 (variable importance).

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import permutation_importance, recipes
    >>> rng, y = np.random.default_rng(0), np.arange(20) % 2
    >>> X = [rng.normal(size=(30, 2)) + [0, 3 * label] for label in y]
    >>> found = permutation_importance(recipes.fisher_svm(1).fit(X, y), X, y, random_state=0)
    >>> dict(zip(found.names, found.means.round(1).tolist()))
    {'x0': 0.0, 'x1': 0.5}
    """
    repeats = check_int(n_repeats, "n_repeats", WHO, 1)
    labels, rng = np.asarray(y), check_random_state(random_state)
    names, exchange, n = _parts(X, n_regions, channels)
    check_consistent_length(range(n), labels)
    score = check_scoring(pipeline, scoring)
    whole = float(score(pipeline, X, labels))
    losses = [
        [whole - score(pipeline, exchange(k, rng.permutation(n)), labels) for _ in range(repeats)]
        for k in range(len(names))
    ]
    table = np.array(losses, np.float64)
    return Importance(names, table.mean(axis=1), table.std(axis=1), table, whole)


Exchange = Callable[[int, NDArray[np.int64]], list[Any]]


def _parts(X: Any, n_regions: int | None, channels: Any) -> tuple[list[str], Exchange, int]:
    """Return the names of parts, a function that exchanges one of them between objects, and the number of objects."""
    if kind_of(X, WHO, ask=False) == "series":
        series = pack_series(X, WHO).objects()
        width = series[0].shape[1]
        names = [f"x{c}" for c in range(width)] if channels is None else list(map(str, channels))
        if len(names) != width:
            raise ValueError(f"{WHO}: 'channels' must name {width} channels. Got {len(names)} names.")
        return names, lambda c, others: _exchange_channel(series, c, others), len(series)
    objects = list(X)
    lengths = sorted({len(x) for x in objects})
    if len(lengths) > 1:
        raise ValueError(
            f"{WHO}: expected series, or sequences of one length, whose positions can be exchanged. Got sequences of "
            f"{lengths[0]} to {lengths[-1]} symbols; explain_set tells what their parts contribute."
        )
    count = lengths[0] if n_regions is None else check_int(n_regions, "n_regions", WHO, 1)
    edges = np.linspace(0, lengths[0], min(count, lengths[0]) + 1).round().astype(int)
    bounds = list(zip(edges[:-1].tolist(), edges[1:].tolist()))
    names = [f"{a}" if b - a == 1 else f"{a}-{b - 1}" for a, b in bounds]
    return names, lambda k, others: _exchange_region(objects, *bounds[k], others), len(objects)


def _exchange_channel(series: list[Floats], c: int, others: NDArray[np.int64]) -> list[Floats]:
    """Return series whose channel c is that of others."""
    changed = [x.copy() for x in series]
    for x, other in zip(changed, others.tolist()):
        x[:, c] = _resampled(series[other][:, c], len(x))
    return changed


def _resampled(values: Floats, length: int) -> Floats:
    """Return a channel (T',) at ``length`` equidistant places from its first to its last position."""
    if len(values) == length:
        return values
    places = np.linspace(0.0, len(values) - 1.0, length)
    low = np.floor(places).astype(int)
    high = np.ceil(places).astype(int)  # the same where a place is a position, so that no neighbour plays a part
    return values[low] + (places - low) * (values[high] - values[low])


def _exchange_region(objects: list[Any], a: int, b: int, others: NDArray[np.int64]) -> list[Any]:
    """Return sequences whose positions from a to b (without b) are those of others."""
    if isinstance(objects[0], str):
        return [x[:a] + objects[other][a:b] + x[b:] for x, other in zip(objects, others.tolist())]
    return [[*x[:a], *objects[other][a:b], *x[b:]] for x, other in zip(objects, others.tolist())]
