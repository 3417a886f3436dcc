"""Pictures: what is drawn where, and refusals. Looks are judged by eye (docs/images)."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest
from scipy import sparse

from genkern import Explanation, plots

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


def explanation(x: Any, length: int | None = None, features: int = 3) -> Explanation:
    """Return an explanation with one feature per contribution and positions of either sign."""
    rng = np.random.default_rng(2)
    positions = rng.normal(size=len(x) if length is None else length)
    contributions = rng.normal(size=features)
    contributions *= positions.sum() / contributions.sum() if len(positions) else 1.0
    names = np.array([f"probs[{j},a]" for j in range(features)], dtype=object)
    table = sparse.csr_array(positions[:, None] * np.eye(1, features))
    known = positions if len(positions) else None
    return Explanation("yes", 0.5 + contributions.sum(), 0.5, contributions, names, known, 0.0, table, x)


@pytest.mark.parametrize("size", [6, 60, 200, 1000])
def test_explanation_of_symbols_has_a_bar_and_a_letter_per_position(size: int) -> None:
    shown = explanation("ab" * (size // 2))
    ax = plots.explanation(shown)
    features, bars, *letters = ax.child_axes
    assert "class 'yes'" in ax.get_title()
    assert f"{shown.decision:+.2f}" in ax.get_title()
    assert [text.get_text() for text in features.texts] == [name for name, _ in shown.top(3)][::-1]
    if size <= 160:
        np.testing.assert_allclose([bar.get_height() for bar in bars.patches], shown.positions, rtol=1e-12)
    if size <= 480:
        assert "".join(text.get_text() for text in letters[0].texts) == shown.x
        cells = np.asarray(letters[0].images[0].get_array())
        np.testing.assert_array_equal(cells.ravel()[:size], shown.positions)
    else:
        assert not letters


@pytest.mark.parametrize(("channels", "lines", "images"), [(1, 1, 1), (3, 3, 1), (12, 0, 1)])
def test_explanation_of_series_shows_the_channels(channels: int, lines: int, images: int) -> None:
    x = np.random.default_rng(0).normal(size=(30, channels))
    x[4, 0] = np.nan
    _, bars, series = plots.explanation(explanation(x)).child_axes
    assert (len(series.lines), len(series.images)) == (lines, images)
    assert bars.get_xlim() == series.get_xlim() == (-0.5, 29.5)


def test_explanation_without_positions_shows_features_only_and_as_many_as_wished() -> None:
    ax = plots.pyplot().subplots()[1]
    assert plots.explanation(explanation("ab", length=0, features=9), ax, n=4) is ax
    (features,) = ax.child_axes
    assert len(features.patches) == 4
    assert "of 9 features" in features.get_xlabel()
    with pytest.raises(ValueError, match="'n' parameter of explanation"):
        plots.explanation(explanation("ab", length=0), n=0)


def test_long_names_are_shortened_and_zero_contributions_are_drawn() -> None:
    shown = explanation("ab", features=2)
    shown.names[0] = "w3_normalized__chain__components.mean[1,2]"
    still = Explanation("no", 0.0, 0.0, np.zeros(2), shown.names, np.zeros(2), 0.0, shown.table, "ab")
    features = plots.explanation(still).child_axes[0]
    assert max(len(text.get_text()) for text in features.texts) == 26


def test_missing_matplotlib_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'genkern\[plots\]'"):
        plots.gram_heatmap(np.eye(3), [0, 1, 2])
