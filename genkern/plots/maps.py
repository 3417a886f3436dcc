"""Objects as points in the plane."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.kernels.components import principal_components
from genkern.plots.display import Display, check_labels, classes_of
from genkern.plots.style import styles
from genkern.plots.svg import Scale, axes, class_legend, element, legend, mark, room_for, shape
from genkern.validation import Floats, check_array, check_int

NAMED = 40  # objects whose names matplotlib writes beside them
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


class ObjectMapDisplay(Display):
    """Objects at places in the plane, one colour and shape per class, those predicted wrongly outlined.

    Parameters
    ----------
    places : ndarray of shape (n, 2)
        Where the objects are.
    y : ndarray of shape (n,), or None
        Classes.
    names : ndarray of shape (n,), or None
        Names of the objects.
    predicted : ndarray of shape (n,), or None
        Predicted classes.
    axes : tuple of two str, or None
        Names of the axes.

    Examples
    --------
    >>> from genkern.plots import ObjectMapDisplay
    >>> ObjectMapDisplay.from_places([[0, 0], [1, 2]], y=["a", "b"]).classes
    ['a', 'b']
    """

    title = "Map of the objects"

    def __init__(
        self,
        places: Floats,
        y: NDArray[Any] | None = None,
        names: NDArray[Any] | None = None,
        predicted: NDArray[Any] | None = None,
        axes: tuple[str, str] | None = None,
    ) -> None:
        self.places, self.y, self.names, self.predicted, self.axes = places, y, names, predicted, axes
        self.classes, self._index = classes_of(y, len(places))

    @classmethod
    def from_places(
        cls,
        places: ArrayLike,
        y: ArrayLike | None = None,
        names: ArrayLike | None = None,
        predicted: ArrayLike | None = None,
        axes: tuple[str, str] | None = None,
    ) -> Self:
        """Take places as they are.

        Parameters
        ----------
        places : array-like of shape (n, 2)
            Where the objects are.
        y, names, predicted : array-like of shape (n,), optional
            Classes, names and predicted classes.
        axes : tuple of two str, optional
            Names of the axes.
        """
        points = check_array(places, "places", cls.__name__, ndim=2)
        n, who = len(points), cls.__name__
        if points.shape[1] != 2:
            raise ValueError(f"{who}: expected places of shape (n, 2). Got shape {points.shape}.")
        labels, called = check_labels(y, n, "y", who), check_labels(names, n, "names", who)
        return cls(points, labels, called, check_labels(predicted, n, "predicted", who), axes)

    @classmethod
    def from_gram(
        cls,
        K: ArrayLike,
        y: ArrayLike | None = None,
        names: ArrayLike | None = None,
        predicted: ArrayLike | None = None,
        components: tuple[int, int] = (0, 1),
    ) -> Self:
        r"""Take two kernel principal components.

        With the centred Gram matrix :math:`HKH = \sum_k \mu_k u_k u_k^\top`, object i lies at
        :math:`(\sqrt{\mu_a} u_{ai}, \sqrt{\mu_b} u_{bi})`; the axes are labelled with
        :math:`\mu_k / \mathrm{tr}(HKH)`.

        Parameters
        ----------
        K : array-like of shape (n, n)
            Kernel values, not centred.
        y, names, predicted : array-like of shape (n,), optional
            Classes, names and predicted classes.
        components : tuple of two int, default=(0, 1)
            Which components, from 0 on.
        """
        gram = check_gram(K, cls.__name__)
        pair = [check_int(c, "components", cls.__name__) for c in components]
        if len(pair) != 2 or max(pair) >= len(gram):
            raise ValueError(
                f"{cls.__name__}: 'components' must be two of {len(gram)} components, from 0 on. Got {components!r}."
            )
        places, shares = principal_components(gram, max(pair) + 1)
        called = [f"{ORDINALS[c]} component" if c < len(ORDINALS) else f"component {c + 1}" for c in pair]
        axes = (f"{called[0]} ({shares[pair[0]]:.0%} of the variance)", f"{called[1]} ({shares[pair[1]]:.0%})")
        found = cls.from_places(places[:, pair], y, names, predicted, axes)
        found.title = "Kernel PCA map"
        return found

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which objects (n,) were predicted wrongly; none if classes or predictions are unknown."""
        if self.y is None or self.predicted is None:
            return np.zeros(len(self.places), bool)
        return np.array([a != b for a, b in zip(self.y.tolist(), self.predicted.tolist())], bool)

    @property
    def description(self) -> str:
        """What the picture shows."""
        n = len(self.places)
        of = f" of {len(self.classes)} class{'es' * (len(self.classes) != 1)}" if self.classes else ""
        errors = (
            f", {self.wrong.sum()} of them predicted wrongly" if self.predicted is not None and self.classes else ""
        )
        across = f", by {self.axes[0]} and {self.axes[1]}" if self.axes else ""
        return f"{n} object{'s' * (n != 1)}{of}{across}{errors}."

    def _draw(self, ax: Any) -> None:
        for i, style in zip(range(max(1, len(self.classes))), styles()):
            mine = self._index == i
            label = str(self.classes[i]) if self.classes else None
            ax.scatter(*self.places[mine].T, s=22, linewidths=0.3, edgecolors="white", alpha=0.85, label=label, **style)
        if self.wrong.any():
            ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.9}
            ax.scatter(*self.places[self.wrong].T, s=60, label="predicted wrongly", **ring)
        if self.names is not None and len(self.places) <= NAMED:
            for place, name in zip(self.places, self.names):
                ax.annotate(str(name), place, (4, 3), textcoords="offset points", fontsize=7, parse_math=False)
        if self.axes is not None:
            ax.set_xlabel(self.axes[0])
            ax.set_ylabel(self.axes[1])
        if self.classes:
            columns = -(-(len(self.classes) + 1) // 20)
            place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "handletextpad": 0.2, "ncols": columns}
            ax.legend(title="class", frameon=False, **place)
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(nbins=5)
        ax.set_title(self.title)

    def _body(self, width: float) -> tuple[list[str], float]:
        height = 0.62 * width
        entries, used = class_legend([str(label) for label in self.classes], 4, 0, width - 8)
        if self.wrong.any():
            ring = element("g", shape(0, 0, 0), class_="gk-wrong", fill="none")
            extra, _ = legend([(ring, "outlined: predicted wrongly")], 4, used, width - 8)
            entries, used = entries + extra, used + 18
        names = self.axes or ("", "")
        ys = Scale.covering(self.places[:, 1], used + height, used + 8.0)
        left = room_for(ys, names[1])
        xs = Scale.covering(self.places[:, 0], left, width - 8)
        parts = axes(xs, ys, *names)
        across, up, wrong = xs(self.places[:, 0]), ys(self.places[:, 1]), self.wrong
        for i, (x, y) in enumerate(zip(across.tolist(), up.tolist())):
            data = {"i": i, "id": None if self.names is None else self.names[i]}
            data["label"] = None if self.y is None else self.y[i]
            data["predicted"] = None if self.predicted is None else self.predicted[i]
            parts.append(mark(int(self._index[i]), x, y, bool(wrong[i]), **data))
        return entries + parts, used + height + (40 if names[0] else 24)


def check_gram(K: ArrayLike, who: str) -> Floats:
    """Return a symmetric matrix of at least 3 objects."""
    gram = check_array(K, "K", who, ndim=2)
    if gram.shape[0] != gram.shape[1] or len(gram) < 3:
        raise ValueError(f"{who}: 'K' must be square, of at least 3 objects. Got K of shape {gram.shape}.")
    if not np.allclose(gram, gram.T, rtol=1e-8, atol=1e-10 * float(np.abs(gram).max())):
        raise ValueError(f"{who}: 'K' must be symmetric. For the values between two sets of objects, draw each alone.")
    return gram
