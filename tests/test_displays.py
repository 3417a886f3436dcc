"""Displays: their data against independent counts, their SVG as XML, the same data in both renderers."""

from __future__ import annotations

import base64
import itertools
import re
import struct
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import auc, average_precision_score, confusion_matrix, precision_recall_curve, roc_curve
from test_plots import explanation

from genkern import HMM, Categorical, Gaussian, MarkovChain, PositionalChain, SiteModel, plots, roc50_score
from genkern.plots import style, svg

matplotlib.use("Agg")
HOSTILE = "<script>alert('x')</script> & \"ü\" \x00 ]]>"
NS = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plots.pyplot().close("all")


def scores(n: int = 200, k: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, probabilities with ties, and classes."""
    rng = np.random.default_rng(0)
    classes = np.array([f"c{j}" for j in range(k)])
    index = rng.integers(k, size=n)
    table = rng.normal(size=(n, k)) + 1.2 * np.eye(k)[index]
    shares = np.exp(table.round(1))
    return classes[index], shares / shares.sum(axis=1, keepdims=True), classes


def series(n: int = 9) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    found = [rng.normal(size=(5 + 3 * i, 2)) for i in range(n)]
    found[0][1:3] = np.nan
    return found


SEQUENCES = ["ACGT" * 20, "GATTACA", "CC", "TTTTT", "ACGTT", "G"]
DENSE = HMM(
    [0.6, 0.3, 0.1], [[0.7, 0.2, 0.05], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]], Categorical(np.eye(3)), stop=[0.05, 0, 0]
)
ROW = HMM(
    [1, 0, 0], [[0.5, 0.3, 0.2], [0, 0.6, 0.4], [0, 0, 1]], Gaussian(np.arange(6.0).reshape(3, 2), np.ones((3, 2)))
)


def displays() -> dict[str, Any]:
    y, shares, classes = scores()
    labels = np.array([HOSTILE, "b", "a"] * 10, dtype=object)
    places = np.random.default_rng(2).normal(size=(30, 2))
    many = np.random.default_rng(3).dirichlet(np.ones(14), size=14)
    hostile = explanation("ab" * 30)
    hostile.names[0] = HOSTILE
    return {
        "confusion": plots.ConfusionDisplay.from_predictions(labels, labels[::-1]),
        "one class": plots.ConfusionDisplay.from_predictions(["a", "a"], ["a", "a"]),
        "roc": plots.RocDisplay.from_predictions(y, shares, classes, [HOSTILE, "b", "c"]),
        "recall": plots.PrecisionRecallDisplay.from_predictions(y, shares, classes),
        "calibration": plots.CalibrationDisplay.from_predictions(y, shares, classes),
        "map": plots.ObjectMapDisplay.from_places(places, labels, labels, labels[::-1], (HOSTILE, "up")),
        "bare map": plots.ObjectMapDisplay.from_places([[1, 1], [1, 1]]),
        "gram": plots.GramDisplay.from_matrix(places @ places.T, labels, names=labels),
        "clusters": plots.GramDisplay.from_matrix(np.exp(places @ places.T), order="cluster"),
        "samples": plots.SamplesDisplay.from_objects(SEQUENCES, [HOSTILE, "b"] * 3, [HOSTILE] * 6),
        "series": plots.SamplesDisplay.from_objects(series(), list("abc") * 3, kind="series"),
        "points": plots.SamplesDisplay.from_objects(series(), kind="points"),
        "texts": plots.SamplesDisplay.from_objects([HOSTILE + " some words"] * 3, kind="documents"),
        "tokens": plots.SamplesDisplay.from_objects([[HOSTILE, "b"], ["b"]], kind="symbols"),
        "lengths": plots.LengthsDisplay.from_objects(SEQUENCES, [HOSTILE, "b"] * 3),
        "same lengths": plots.LengthsDisplay.from_objects(["ab", "ba"]),
        "circle": plots.StateDiagramDisplay.from_model(DENSE),
        "row": plots.StateDiagramDisplay.from_model(ROW),
        "many states": plots.StateDiagramDisplay.from_model(HMM(many[0], many, Categorical(np.full((14, 2), 0.5)))),
        "tokens of a chain": plots.StateDiagramDisplay.from_model(MarkovChain([0.5, 0.5], np.eye(2), [HOSTILE, "b"])),
        "logo": plots.LogoDisplay.from_model(SiteModel(np.random.default_rng(4).dirichlet(np.ones(4), size=70), "dna")),
        "flat logo": plots.LogoDisplay.from_model(SiteModel([[0.5, 0.5], [0.9, 0.1]], [HOSTILE, " "])),
        "curves": plots.MeanCurveDisplay.from_objects(series(), [HOSTILE, "b", "c"] * 3),
        "states": plots.MeanCurveDisplay.from_model(ROW),
        "constant": plots.MeanCurveDisplay.from_objects([np.ones(4), np.ones(2)]),
        "features": plots.ContributionsDisplay.from_explanation(hostile),
        "letters": plots.HeatStripDisplay.from_explanation(explanation(["<b>", "&"] * 50)),
        "long": plots.HeatStripDisplay.from_explanation(explanation("ab" * 400)),
        "strip": plots.HeatStripDisplay.from_explanation(explanation(series()[0])),
        "wide strip": plots.HeatStripDisplay.from_explanation(explanation(np.ones((8, 12)))),
    }


DISPLAYS = displays()


@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.parametrize("width", [320, 640])
def test_svg_is_sound_xml_with_a_title_and_a_description(name: str, width: int) -> None:
    shown = DISPLAYS[name]
    text = shown.svg(width)
    assert text == displays()[name].svg(width)  # nothing random in it
    root = ET.fromstring(text)
    assert root.tag == f"{NS}svg"
    assert (root.get("class"), root.get("role")) == ("gk-picture", "img")
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert root.get("aria-labelledby") == " ".join(map(str, ids))
    assert [root[0].tag, root[1].tag] == [f"{NS}title", f"{NS}desc"]
    assert root[0].text == shown.title
    assert root[1].text == svg.INVALID.sub("\ufffd", shown.description)
    assert "<script" not in text
    assert "<style" not in text
    _, _, across, down = map(float, str(root.get("viewBox")).split())
    assert across == width
    for element in root.iter(f"{NS}text"):
        if element.get("transform") is None:
            size = 12 if "gk-small" not in str(element.get("class")) else 10.5
            for x in map(float, str(element.get("x")).split()):
                room = svg.extent(element.text, size) if " " not in str(element.get("x")) else 0
                start = {"end": x - room, "middle": x - room / 2}.get(str(element.get("text-anchor")), x)
                assert -0.25 * room - 1 <= start <= across
            assert 0 < float(str(element.get("y"))) <= down
    for path in root.iter(f"{NS}path"):
        assert "nan" not in str(path.get("d"))
        assert "inf" not in str(path.get("d"))


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")  # of the control character in the hostile text
@pytest.mark.parametrize("name", DISPLAYS)
def test_matplotlib_draws_on_new_and_given_axes(name: str) -> None:
    shown = DISPLAYS[name]
    assert shown.plot() is shown
    assert shown.figure_ is shown.ax_.figure
    shown.figure_.canvas.draw()
    ax = plots.pyplot().subplots()[1]
    assert shown.plot(ax).ax_ is ax
    assert ax.has_data() or ax.child_axes or ax.patches or ax.texts


def test_ids_differ_between_pictures() -> None:
    ids = [re.findall(r' id="([^"]+)"', shown.svg()) for shown in DISPLAYS.values()]
    assert len({each for pair in ids for each in pair}) == 2 * len(DISPLAYS)


def test_confusion_counts_like_scikit_learn_and_shows_each_pair_once() -> None:
    y, shares, classes = scores()
    predicted = classes[shares.argmax(axis=1)]
    shown = plots.ConfusionDisplay.from_predictions(y, predicted)
    np.testing.assert_array_equal(shown.matrix, confusion_matrix(y, predicted))
    cells = [e for e in ET.fromstring(shown.svg()).iter() if e.get("class") == "gk-cell"]
    seen = {(e.get("data-true"), e.get("data-predicted")): int(str(e.get("data-count"))) for e in cells}
    expected = {(a, b): int(((y == a) & (predicted == b)).sum()) for a, b in itertools.product(classes, classes)}
    assert seen == expected
    assert len(cells) == 9
    image = np.asarray(shown.plot().ax_.images[0].get_array())
    np.testing.assert_allclose(image[..., 3], style.SHADE * shown.shares, rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_rankings_are_those_of_scikit_learn(k: int) -> None:
    y, shares, classes = scores(k=k)
    roc = plots.RocDisplay.from_predictions(y, shares, classes)
    recall = plots.PrecisionRecallDisplay.from_predictions(y, shares, classes)
    drawn = classes[1:] if k == 2 else classes
    assert roc.names == recall.names == list(drawn)
    for i, label in enumerate(drawn):
        column = shares[:, list(classes).index(label)]
        false, true, _ = roc_curve(y == label, column, drop_intermediate=False)
        np.testing.assert_allclose(roc.x[i], false, rtol=0, atol=1e-12)
        np.testing.assert_allclose(roc.y[i], true, rtol=0, atol=1e-12)
        assert roc.areas[i] == pytest.approx(auc(false, true), abs=1e-12)
        precision, found, _ = precision_recall_curve(y == label, column)
        pairs = set(zip(recall.x[i].round(9).tolist(), recall.y[i].round(9).tolist()))
        assert set(zip(found.round(9).tolist(), precision.round(9).tolist())) <= pairs
        assert recall.areas[i] == pytest.approx(average_precision_score(y == label, column), abs=1e-12)
        np.testing.assert_array_equal(roc.plot().ax_.lines[i].get_xdata(), roc.x[i])


def test_classes_without_objects_have_no_curve_and_strangers_are_refused() -> None:
    y, shares, classes = scores()
    few = y != "c1"
    assert plots.RocDisplay.from_predictions(y[few], shares[few], classes).names == ["c0", "c2"]
    with pytest.raises(ValueError, match="only one"):
        plots.RocDisplay.from_predictions(y[y == "c1"], shares[y == "c1"], classes)
    with pytest.raises(ValueError, match="none of the classes"):
        plots.RocDisplay.from_predictions(["x"] * len(y), shares, classes)
    with pytest.raises(ValueError, match="row for each"):
        plots.PrecisionRecallDisplay.from_predictions(y, shares[:, :2], classes)


def test_calibration_of_two_classes_is_that_of_scikit_learn() -> None:
    y, shares, classes = scores(k=2)
    shown = plots.CalibrationDisplay.from_predictions(y, shares, classes, n_bins=7)
    observed, predicted = calibration_curve(y == "c1", shares[:, 1], n_bins=7)
    np.testing.assert_allclose(shown.observed, observed, rtol=0, atol=1e-12)
    np.testing.assert_allclose(shown.predicted, predicted, rtol=0, atol=1e-12)


def test_calibration_of_many_classes_by_hand() -> None:
    y, shares, classes = scores()
    shown = plots.CalibrationDisplay.from_predictions(y, shares, classes)
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(10)]
    for label, row in zip(y, shares):
        sure = max(row)
        place = next(b for b in range(10) if sure <= (b + 1) / 10 + 1e-15)
        bins[place].append((sure, classes[list(row).index(sure)] == label))
    assert shown.counts.tolist() == [len(each) for each in bins]
    error = sum(abs(sum(p for p, _ in each) - sum(hit for _, hit in each)) for each in bins) / len(y)
    assert shown.error == pytest.approx(error, abs=1e-12)
    marks = [e for e in ET.fromstring(shown.svg()).iter() if "gk-bin" in str(e.get("class"))]
    assert [int(str(e.get("data-count"))) for e in marks] == [len(each) for each in bins if each]


def test_map_has_each_object_once_with_all_that_is_known_of_it() -> None:
    rng = np.random.default_rng(0)
    places, labels = rng.normal(size=(50, 2)), np.array([f"k{i % 11}" for i in range(50)])
    predicted, names = np.roll(labels, 1), [f"o{i}" for i in range(50)]
    shown = plots.ObjectMapDisplay.from_places(places, labels, names, predicted)
    marks = [e for e in ET.fromstring(shown.svg()).iter() if "gk-mark" in str(e.get("class"))]
    assert [int(str(e.get("data-i"))) for e in marks] == list(range(50))
    for i, e in enumerate(marks):
        assert (e.get("data-id"), e.get("data-label"), e.get("data-predicted")) == (names[i], labels[i], predicted[i])
        assert f"gk-c{sorted(set(labels)).index(labels[i]) % 9}" in str(e.get("class")).split()
        assert "gk-wrong" in str(e.get("class"))
    at = np.array([[float(v) for v in re.match(r"M(\S+) ([\d.]+)", str(e[0].get("d"))).groups()] for e in marks])  # type: ignore[union-attr]
    for axis, sign in ((0, 1), (1, -1)):
        assert np.corrcoef(places[:, axis], sign * at[:, axis])[0, 1] > 0.9999
    drawn = np.concatenate([c.get_offsets() for c in shown.plot().ax_.collections[:11]])
    assert sorted(map(tuple, drawn.tolist())) == sorted(map(tuple, places.tolist()))


def test_two_thousand_objects_stay_small() -> None:
    rng = np.random.default_rng(0)
    names, y = [f"sequence_{i}" for i in range(2000)], rng.integers(9, size=2000)
    places = rng.normal(size=(2000, 5))
    text = plots.ObjectMapDisplay.from_places(places[:, :2], y, names, y[::-1]).svg()
    assert len(text) < 450_000
    assert len(plots.GramDisplay.from_matrix(places @ places.T, y).svg()) < 250_000


def test_components_of_the_map_are_eigenvectors() -> None:
    X = np.random.default_rng(0).normal(size=(20, 6))
    shown = plots.ObjectMapDisplay.from_gram(X @ X.T, components=(1, 3))
    _, _, axes = np.linalg.svd(X - X.mean(axis=0))
    np.testing.assert_allclose(np.abs(shown.places), np.abs((X - X.mean(axis=0)) @ axes[[1, 3]].T), rtol=0, atol=1e-9)
    assert str(shown.axes).startswith("('second component")
    ax = plots.kernel_pca_map(X @ X.T, names=[f"$x_{i}" for i in range(20)], components=(0, 3))
    assert [text.get_text() for text in ax.texts] == [f"$x_{i}" for i in range(20)]
    ax.figure.canvas.draw()  # a name is no formula
    with pytest.raises(ValueError, match="components"):
        plots.ObjectMapDisplay.from_gram(X @ X.T, components=(0, 20))


def test_block_means_by_loops_and_the_image_is_a_png_of_them() -> None:
    matrix = np.random.default_rng(0).normal(size=(11, 11))
    found = svg.block_means(matrix, 4)
    edges = [0, 2, 5, 8, 11]
    for i, j in itertools.product(range(4), range(4)):
        cells = [matrix[a, b] for a in range(edges[i], edges[i + 1]) for b in range(edges[j], edges[j + 1])]
        assert found[i, j] == pytest.approx(sum(cells) / len(cells), abs=1e-12)
    shades = np.arange(12, dtype=np.uint8).reshape(3, 4)
    data = base64.b64decode(svg.png(shades, np.zeros((12, 3), np.uint8)).partition(",")[2])
    assert struct.unpack(">II", data[16:24]) == (4, 3)
    rows = zlib.decompress(data[data.index(b"IDAT") + 4 : -16])
    np.testing.assert_array_equal(np.frombuffer(rows, np.uint8).reshape(3, 5)[:, 1:], shades)


def test_clusters_stay_together_in_the_gram_matrix() -> None:
    y = np.arange(30) % 3
    K = (y[:, None] == y) + 0.1 * np.eye(30)
    order = plots.GramDisplay.from_matrix(K, order="cluster").order
    assert sorted(order.tolist()) == list(range(30))
    assert sum(y[a] != y[b] for a, b in itertools.pairwise(order)) == 2


def test_samples_are_the_first_of_each_class_and_lengths_are_counted() -> None:
    y = list("bababa")
    shown = plots.SamplesDisplay.from_objects(SEQUENCES, y, per_class=2)
    assert shown.objects == [SEQUENCES[1], SEQUENCES[3], SEQUENCES[0], SEQUENCES[2]]
    found = [e for e in ET.fromstring(shown.svg()).iter() if e.get("class") == "gk-sample"]
    assert [(e.get("data-i"), e.get("data-label")) for e in found] == [("1", "a"), ("3", "a"), ("0", "b"), ("2", "b")]
    assert "GATTACA" in shown.svg()
    lengths = plots.LengthsDisplay.from_objects(SEQUENCES, y)
    assert lengths.lengths.tolist() == [80, 7, 2, 5, 5, 1]
    for row, label in zip(lengths.counts, "ab"):
        for count, low, high in zip(row, lengths.edges, lengths.edges[1:]):
            assert count == sum(low < len(x) < high for x, c in zip(SEQUENCES, y) if c == label)
    assert not lengths.logarithmic


def test_long_names_of_features_take_two_lines_and_keep_their_words() -> None:
    name = "visits of state 3 of class 'two' by the chain (in windows of 5)"
    shown = plots.ContributionsDisplay([name, "short"], np.array([1.0, -0.5]), 2, "two").plot().ax_
    texts = [text.get_text() for text in shown.texts]
    assert texts[0] == "short"
    assert texts[1].replace("\n", " ") == name or texts[1].endswith(" …")
    assert texts[1].count("\n") == 1


def test_lengths_of_which_a_few_are_large_have_a_logarithmic_axis() -> None:
    X = ["A" * n for n in (1, 3, 3, 8, 12, 30, 5000)]
    lengths = plots.LengthsDisplay.from_objects(X, kind="symbols")
    assert lengths.logarithmic
    assert lengths.counts.sum() == len(X)
    for count, low, high in zip(lengths.counts[0], lengths.edges, lengths.edges[1:]):
        assert count == sum(low < len(x) < high for x in X)
    assert all(f">{tick}<" in lengths.svg() for tick in ("1", "10", "100", "1,000"))
    assert lengths.plot().ax_.get_xscale() == "log"


def test_state_diagram_shows_each_step_start_and_stop_once() -> None:
    shown = DISPLAYS["circle"]
    arrows = [e for e in ET.fromstring(shown.svg()).iter() if "gk-arrow" in str(e.get("class"))]
    seen = {(e.get("data-kind"), e.get("data-from"), e.get("data-to")): float(str(e.get("data-p"))) for e in arrows}
    expected = {("step", str(i), str(j)): p for (i, j), p in np.ndenumerate(DENSE.transitions) if p >= 0.01}
    expected |= {("start", None, str(i)): p for i, p in enumerate(DENSE.start)}
    expected |= {("stop", str(i), None): p for i, p in enumerate(DENSE.stop) if p >= 0.01}
    assert len(arrows) == len(expected)
    assert seen == pytest.approx(expected, abs=1e-4)
    assert len([p for p in shown.plot().ax_.patches if type(p).__name__ == "FancyArrowPatch"]) == len(expected)
    assert not shown.forward
    assert DISPLAYS["row"].forward
    assert "heat map" in DISPLAYS["many states"].description
    with pytest.raises(TypeError, match="hidden states"):
        plots.StateDiagramDisplay.from_model(Gaussian([0.0], [1.0]))


def test_logo_of_positions_and_states() -> None:
    probs = np.array([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25] * 4])
    shown = plots.LogoDisplay.from_model(SiteModel(probs, "dna"))
    np.testing.assert_allclose(shown.information, [1, 2, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(shown.heights[:2, :2], [[0.5, 0.5], [2, 0]], rtol=0, atol=1e-12)
    letters = [e for e in ET.fromstring(shown.svg()).iter() if "gk-logo" in str(e.get("class"))]
    assert sorted((e.get("data-t"), e.text) for e in letters) == [("0", "A"), ("0", "C"), ("1", "A")]
    boxes = sorted(p.get_path().get_extents().bounds for p in shown.plot().ax_.patches)
    np.testing.assert_allclose([box[3] for box in boxes], [0.5, 0.5, 2.0], rtol=0, atol=1e-6)
    states = plots.LogoDisplay.from_model(HMM([1, 0], np.eye(2), Categorical([[0.9, 0.1], [0.2, 0.8]], "ab")))
    np.testing.assert_array_equal(states.probs, [[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(TypeError, match="symbols"):
        plots.LogoDisplay.from_model(ROW)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_logo_of_a_chain_has_the_marginals_by_enumeration(order: int) -> None:
    rng = np.random.default_rng(order)
    start = rng.dirichlet(np.ones(2**order)).reshape((2,) * order) if order else 1.0
    chain = PositionalChain(start, rng.dirichlet(np.ones(2), size=(5 - order, *(2,) * order)), "ab")
    words = ["".join(word) for word in itertools.product("ab", repeat=5)]
    weights = np.exp(chain.log_prob(words))
    expected = [[sum(w for w, word in zip(weights, words) if word[t] == s) for s in "ab"] for t in range(5)]
    np.testing.assert_allclose(plots.LogoDisplay.from_model(chain).probs, expected, rtol=0, atol=1e-12)


def test_mean_curves_by_loops_and_of_states() -> None:
    X, y = [np.array([0.0, 2.0]), np.array([1.0, np.nan, 5.0]), np.array([4.0, 4.0, 4.0])], ["a", "a", "b"]
    shown = plots.MeanCurveDisplay.from_objects(X, y)
    for t, share in enumerate(shown.at):
        pair = [2 * share, 1 + 4 * share]
        assert shown.means[0, 0, t] == pytest.approx(sum(pair) / 2, abs=1e-12)
        assert shown.deviations[0, 0, t] == pytest.approx(abs(pair[0] - pair[1]) / 2, abs=1e-12)
    np.testing.assert_array_equal(shown.means[1, 0], 4.0)
    line = shown.plot().ax_.child_axes[0].lines[0]
    np.testing.assert_array_equal(line.get_ydata(), shown.means[0, 0])
    named = plots.MeanCurveDisplay.from_objects([np.ones((3, 2)) * [1, 4]], channels=["flow <l/s>", "pressure"])
    assert all(f">{name}<" in named.svg() for name in ("flow &lt;l/s&gt;", "pressure"))
    assert "channel 0" not in named.svg()
    assert [each.get_ylabel() for each in named.plot().ax_.child_axes] == ["flow <l/s>", "pressure"]
    with pytest.raises(ValueError, match=r"'channels' must name 1 channels\. Got 2 names"):
        plots.MeanCurveDisplay.from_objects(X, channels=["a", "b"])
    states = plots.MeanCurveDisplay.from_model(ROW)
    np.testing.assert_array_equal(states.means[0], np.arange(6.0).reshape(3, 2).T)
    with pytest.raises(TypeError, match="moments"):
        plots.MeanCurveDisplay.from_model(DENSE)


def test_contributions_and_strips_carry_their_numbers() -> None:
    e = explanation("ab" * 10, features=20)
    bars = [
        b
        for b in ET.fromstring(plots.ContributionsDisplay.from_explanation(e, 5).svg()).iter()
        if b.get("class") == "gk-bar"
    ]
    seen = [(b.get("data-name"), float(str(b.get("data-value")))) for b in bars]
    assert [name for name, _ in seen] == [name for name, _ in e.top(5)]
    np.testing.assert_allclose([v for _, v in seen], [v for _, v in e.top(5)], rtol=1e-5)
    cells = [c for c in ET.fromstring(plots.HeatStripDisplay.from_explanation(e).svg()).iter() if c.get("data-t")]
    assert [int(str(c.get("data-t"))) for c in cells] == list(range(20))
    np.testing.assert_allclose([float(str(c.get("data-value"))) for c in cells], e.positions, rtol=1e-3)
    assert all(("gk-for" if v >= 0 else "gk-against") in str(c.get("class")) for c, v in zip(cells, e.positions))
    with pytest.raises(ValueError, match="no contributions of positions"):
        plots.HeatStripDisplay.from_explanation(explanation("ab", length=0))


def test_blocks_of_a_set_are_bars_in_order() -> None:
    means = {"words": 0.25, "<pairs>": 1.5, "length": 0.5}
    whole = SimpleNamespace(by_block=lambda: {name: SimpleNamespace(absolute=v) for name, v in means.items()})
    shown = plots.ContributionsDisplay.from_explanation(whole, 2)
    assert (shown.names, shown.values.tolist(), shown.total) == (["<pairs>", "length"], [1.5, 0.5], 3)
    assert [bar.get_width() for bar in shown.plot().ax_.patches] == [0.5, 1.5]
    assert "&lt;pairs&gt;" in shown.svg()


def test_maps_and_matrices_without_labels_and_with_names() -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    ax = plots.gram_heatmap(X @ X.T, names=list("uvwxyz"))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == list("uvwxyz")
    assert plots.kernel_pca_map(X @ X.T).get_legend() is None
    assert [t.get_text() for t in plots.object_map(X, names=list("uvwxyz")).texts] == list("uvwxyz")


@pytest.mark.parametrize("low", [0.0, -3.0, 1e-7, 12345.0, 1e80])
@pytest.mark.parametrize("size", [1e-6, 0.3, 7.0, 123456.0])
def test_ticks_are_round_inside_and_told_apart(low: float, size: float) -> None:
    high = low + size * max(1.0, abs(low))
    ticks = svg.Scale(low, high, 0, 100).ticks(6)
    assert 2 <= len(ticks) <= 6
    values = [value for value, _ in ticks]
    assert min(values) >= low - 1e-6 * (high - low)
    assert max(values) <= high + 1e-6 * (high - low)
    assert len({name for _, name in ticks}) == len(ticks)
    np.testing.assert_allclose([float(name) for _, name in ticks], values, rtol=1e-4, atol=1e-3 * (high - low))


# --- contrast, by WCAG 2.2


def light(colour: str) -> float:
    """Return the relative luminance of a colour."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def over(colour: str, ground: str, opacity: float) -> str:
    """Return the colour of a layer on a background."""
    pairs = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * a + (1 - opacity) * b):02X}" for a, b in pairs)


@pytest.mark.parametrize("theme", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_marks_and_texts_have_contrast(theme: dict[str, str]) -> None:
    ground = theme["background"]
    colours = [theme[f"c{i}"] for i in range(9)] + [theme["for"], theme["against"], theme["axis"]]
    assert min(contrast(colour, ground) for colour in colours) >= 3.0
    assert contrast(theme["text"], ground) >= 7.0
    for opacity in np.linspace(0, style.SHADE, 11):
        for colour in colours[:-1]:
            assert contrast(theme["text"], over(colour, ground, opacity)) >= 4.5


def test_rules_name_every_class_that_pictures_use_and_both_themes() -> None:
    rules = style.css()
    assert "prefers-color-scheme: dark" in rules
    assert "[data-theme=dark]" in rules
    used = {
        name
        for shown in DISPLAYS.values()
        for names in re.findall(r'class="([^"]+)"', shown.svg())
        for name in names.split()
    }
    hooks = {"gk-cell", "gk-sample", "gk-bar", "gk-area", "gk-arrow", "gk-state"}  # for scripts, without a look
    assert {name for name in used if f".{name}" not in rules} <= hooks


def test_roc_curves_end_at_a_number_of_false_positives():
    rng = np.random.default_rng(4)
    y, scores = rng.integers(0, 2, 80), rng.integers(0, 15, 80) / 3
    scores = scores + y
    for limit in (1, 7, 50):
        shown = plots.RocDisplay.from_predictions(y, scores, [0, 1], limit=limit)
        end = min(limit, int((y == 0).sum()))
        assert shown.x[0][-1] == end
        # the curve is found by counting at every threshold
        for x, up in zip(shown.x[0][:-1], shown.y[0][:-1]):
            thresholds = np.append(np.unique(scores), np.inf)
            pairs = [(((scores >= t) & (y == 0)).sum(), ((scores >= t) & (y == 1)).sum() / y.sum()) for t in thresholds]
            assert (x, up) in pairs
        np.testing.assert_allclose(shown.areas[0], roc50_score(y, scores, n=limit), rtol=1e-12)
        assert f"ROC{limit}" in shown.description
        assert "false positives" in shown.svg()
        shown.plot()
        assert shown.ax_.get_xlim()[1] == pytest.approx(1.01 * limit)
    whole = plots.RocDisplay.from_predictions(y, scores, [0, 1])
    whole.plot()
    assert whole.ax_.get_xlim()[1] == pytest.approx(1.01)


@pytest.mark.parametrize(
    "word", ["GGGGG", "GAA", "TTC", "ACGT", "WYMK", "0.12345", "channel x0: mean of state 0", "mmmm"]
)
def test_no_text_is_wider_than_its_room(word: str) -> None:
    """Beside what the font measures: bars leave as much room for their names, and four pixels more."""
    from matplotlib.textpath import TextPath

    wide = TextPath((0, 0), word, size=12).get_extents().x1
    assert wide - 4 < svg.extent(word, 12.0) < 1.6 * wide + 12
