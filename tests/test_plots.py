"""Pictures: what is drawn where, and refusals. Looks are judged by eye (docs/images)."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

from genkern import plots

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plots.pyplot().close("all")


def points(n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Return points in the plane (n, 2), stretched along the first axis, with interleaved classes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) * [5.0, 1.0] + [3.0, -2.0], np.array(["b", "a", "c"] * (n // 3))


def test_heatmap_sorts_objects_by_class() -> None:
    X, y = points()
    K = X @ X.T
    drawn = np.asarray(plots.gram_heatmap(K, y).images[0].get_array())
    order = np.array([i for label in "abc" for i in range(len(y)) if y[i] == label])
    np.testing.assert_array_equal(drawn, K[order][:, order])


def test_heatmap_marks_classes_and_labels_everything() -> None:
    X, y = points()
    ax = plots.gram_heatmap(np.exp(-((X[:, None] - X) ** 2).sum(-1)), y, title="RBF")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]
    np.testing.assert_allclose(ax.get_xticks(), [4.5, 14.5, 24.5], rtol=0, atol=1e-12)
    assert sorted({float(line.get_xdata()[0]) for line in ax.lines} - {0.0}) == [9.5, 19.5]
    assert ax.get_title() == "RBF"
    assert ax.get_xlabel() == ax.get_ylabel() == "class"


def test_heatmap_scale_is_sequential_for_values_and_symmetric_for_signed_ones() -> None:
    X, y = points()
    positive = plots.gram_heatmap(np.exp(-((X[:, None] - X) ** 2).sum(-1)), y).images[0]
    assert positive.get_clim()[0] == 0.0
    low, high = plots.gram_heatmap(X @ X.T, y).images[0].get_clim()
    assert low == -high < 0


def test_heatmap_scale_ignores_a_heavy_diagonal() -> None:
    X, y = points()
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1))
    high = plots.gram_heatmap(K + 1e6 * np.eye(len(K)), y).images[0].get_clim()[1]
    assert high <= 1.0


@pytest.mark.parametrize("K", [np.eye(6), np.zeros((6, 6))])
def test_pictures_of_degenerate_matrices(K: np.ndarray) -> None:
    y = list("aabbcc")
    assert plots.gram_heatmap(K, y).images[0].get_clim()[1] > 0
    offsets = np.concatenate([c.get_offsets() for c in plots.kernel_pca_map(K, y).collections])
    assert np.isfinite(offsets).all()


def test_map_of_a_linear_kernel_is_ordinary_pca() -> None:
    X, y = points()
    ax = plots.kernel_pca_map(X @ X.T, y)
    centred = X - X.mean(axis=0)
    _, spread, axes = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ axes.T
    for label, drawn in zip("abc", ax.collections):
        np.testing.assert_allclose(np.abs(drawn.get_offsets()), np.abs(expected[y == label]), rtol=0, atol=1e-10)
    share = spread[0] ** 2 / (spread**2).sum()
    assert f"{share:.0%}" in ax.get_xlabel()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]


def test_map_draws_on_given_axes_and_tells_twelve_classes_apart() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(48, 3))
    ax = plots.pyplot().subplots()[1]
    assert plots.kernel_pca_map(X @ X.T, np.arange(48) % 12, ax) is ax
    looks = {(tuple(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in ax.collections}
    assert len(looks) == 12


@pytest.mark.parametrize("draw", [plots.gram_heatmap, plots.kernel_pca_map])
@pytest.mark.parametrize(
    ("K", "y", "message"),
    [
        (np.eye(4)[:3], [0, 1, 2], "square"),
        (np.eye(4), [0, 1], "one label"),
        (np.eye(2), [0, 1], "at least 3"),
        (np.triu(np.ones((4, 4))), [0, 0, 1, 1], "symmetric"),
        (np.full((3, 3), np.nan), [0, 1, 2], "finite"),
    ],
)
def test_malformed_matrices_are_refused(draw: Any, K: np.ndarray, y: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(K, y)


def test_missing_matplotlib_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'genkern\[plots\]'"):
        plots.gram_heatmap(np.eye(3), [0, 1, 2])
