"""The page of a report: what is in it, against what was given; nothing from outside, nothing that breaks out of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from report_pages import NASTY, Page, evaluated, page_of, series, spectrum, words
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import genkern
from genkern import PlugInClassifier, Spectrum, plots, recipes
from genkern.cli.main import main
from genkern.models.base import Model
from genkern.models.markov.estimator import MarkovChainEstimator
from genkern.report.left_out import left_out
from genkern.report.models import walk
from genkern.report.parts import SHOWN, shown_labels, spread_over_classes

SECTIONS = ("data", "results", "map", "models", "decisions", "tried", "repeat")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[genkern.Dataset, genkern.evaluation.Evaluation, Page, str]:
    """Return a page of everything: data, evaluation of two recipes, the best one fitted."""
    data = words()
    plain = make_pipeline(Spectrum(1), DummyClassifier())
    result = evaluated(data, words=spectrum(), always=plain)
    path = tmp_path_factory.mktemp("pages") / "whole.html"
    return data, result, page_of(path, data, result, spectrum(), "genkern evaluate x.fa"), path.read_text("utf-8")


def absent(page: str) -> list[str]:
    return re.findall(r'class="absent">(.*?)</p>', page, re.S)


def test_all_sections_are_there_and_every_element_is_closed(whole) -> None:
    _, _, page, text = whole
    assert not page.mismatches
    assert not page.open
    assert [part["id"] for part in page.of("section") if "id" in part] == list(SECTIONS)
    assert [link["href"] for link in page.of("a")] == ["#main", *(f"#{name}" for name in SECTIONS)]
    assert "<!DOCTYPE html>" in text[:50]
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for name in ("main", "nav", "header", "footer"):
        assert len(page.of(name)) == 1
    assert len(page.of("caption")) == len(page.of("table")) > 3
    assert all("scope" in head for head in page.of("th"))
    for picture in page.of("svg"):
        named = picture.get("aria-labelledby", "").split()
        assert picture.get("aria-hidden") == "true" or (named and set(named) <= set(ids))


def test_nothing_comes_from_outside(whole) -> None:
    _, _, page, text = whole
    policy = [meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy == [POLICY]
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href", "action", "data", "srcset", "poster"):
                assert value.startswith(("#", "data:")), (tag, name, value)
    bare = text.replace("http://www.w3.org/2000/svg", "")
    assert "//" not in re.sub(r"data:image/png;base64,[\w+/=]+", "", re.sub(r"(?m)^\s*//.*$", "", bare))
    assert "url(" not in bare
    assert "@import" not in bare


def test_figures_are_those_of_the_evaluation(whole) -> None:
    data, result, page, text = whole
    best = result.best
    low, high = best.interval
    assert f"Error {100 * best.error:.1f}\xa0% ({100 * low:.1f} to {100 * high:.1f})" in text
    test = result["always"].versus_best
    assert f"{100 * test.difference:+.1f}" in page.text
    wrong = {data.ids[i] for i in np.flatnonzero(best.predictions[0] != data.y)}
    table = text[text.index("Wrong predictions") : text.index('<section id="map"')]
    assert set(re.findall(r'<th scope="row">(.*?)</th>', table)) == wrong
    marks = [part for part in page.of("g") if part.get("class", "").startswith("gk-mark")]
    assert [
        (m["data-id"], m["data-label"], m["data-predicted"]) for m in sorted(marks, key=lambda m: int(m["data-i"]))
    ] == [(name, str(label), str(said)) for name, label, said in zip(data.ids, data.y, best.predictions[0])]
    for label in result.classes:
        true, said = data.y == label, best.predictions[0] == label
        assert f"{100 * (true & said).sum() / true.sum():.1f}\xa0%" in text
    assert "genkern evaluate x.fa" in page.text
    gap = plots.CalibrationDisplay.from_predictions(data.y, best.probabilities[0], result.classes).error
    assert f"{100 * gap:.1f}\xa0%" in text[text.index("calibration error</") :][:100]
    assert f"expected calibration error {gap:.3f}" in text


def test_only_what_cannot_be_had_is_absent(whole) -> None:
    allowed = ("Nothing had to be changed", "The recipe was named", "It has no generative model", "words gives no prob")
    assert [why for why in absent(whole[3]) if not why.startswith(allowed)] == []


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    data = words(24)
    names = [f"{NASTY[i % 4]}{i}" for i in range(24)]
    y = np.array([NASTY[0], NASTY[1]])[np.arange(24) % 2]
    hostile = genkern.Dataset(
        data.X,
        y,
        names,
        kind="symbols",
        meta={
            "name": NASTY[3],
            "files": list(NASTY),
            "rules": {NASTY[0]: {"count": 1, "first": NASTY[1]}},
            NASTY[2]: NASTY[0],
        },
    )
    result = genkern.evaluate(hostile.X, hostile.y, {NASTY[1]: spectrum()}, folds=2)
    page = page_of(tmp_path / "page.html", hostile, result, spectrum(), NASTY[0])
    assert not page.mismatches
    assert len(page.of("script")) == 1
    assert not page.of("img")
    assert not page.of("b") or all(not b for b in page.of("b"))
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
    marks = {part["data-id"]: part for part in page.of("g") if "data-id" in part}
    assert set(marks) == {name if len(name) <= SHOWN else None for name in names}
    assert {part["data-label"] for part in marks.values()} == {NASTY[0], NASTY[1]}
    assert NASTY[3].replace("\u2028", " ").replace("\u2029", " ") in page.text
    assert "49" not in page.text.split("Data", 1)[0]


def test_the_same_input_gives_the_same_page(tmp_path: Path) -> None:
    data = words(24)
    result = evaluated(data, words=spectrum())
    pages = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        genkern.write_report(tmp_path / name / "page.html", data, result, spectrum())
        pages.append(re.sub(r"<time.*?</time>", "", (tmp_path / name / "page.html").read_text("utf-8")))
    assert pages[0] == pages[1]


def test_two_thousand_objects_take_less_than_a_megabyte(tmp_path: Path) -> None:
    data = words(2000)
    result = evaluated(data, plain=PlugInClassifier(MarkovChainEstimator(1)))
    page = page_of(tmp_path / "page.html", data, result, spectrum().fit(data.X[:200], data.y[:200]))
    assert (tmp_path / "page.html").stat().st_size < 1_000_000
    assert len([part for part in page.of("g") if part.get("class", "").startswith("gk-mark")]) == 2000


def test_without_labels_there_are_data_and_similarities(tmp_path: Path) -> None:
    data = words(30)
    page = page_of(tmp_path / "page.html", genkern.Dataset(data.X, kind="symbols"))
    assert "no labels" in page.text
    marks = [part for part in page.of("g") if part.get("class", "").startswith("gk-mark")]
    assert len(marks) == 30
    assert "data-label" not in marks[0]
    assert "No model was given." in page.text


def test_a_classifier_that_is_neither_linear_nor_probable_is_told(tmp_path: Path) -> None:
    class Silent(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_, self.learner_ = np.unique(y), KNeighborsClassifier(3).fit(X, y)
            return self

        def predict(self, X):
            return self.learner_.predict(X)

    data = words(30)
    model = make_pipeline(Spectrum(2), Silent())
    page = page_of(tmp_path / "page.html", data, evaluated(data, near=model), model)
    assert "near gives no probabilities." in page.text
    assert "neither probabilities nor decision values" in page.text
    assert "The decisions cannot be split into parts: explain:" in page.text
    assert "It has no generative model" in page.text


def test_series_have_channels_missing_values_and_states(tmp_path: Path) -> None:
    data = series()
    model = recipes.fisher_svm(2)
    page = page_of(tmp_path / "page.html", data, evaluated(data, fisher=model), model)
    values = sum(x.size for x in data.X)
    assert f"1 of {values:,} values" in page.text
    assert "Channels 2" in page.text
    text = (tmp_path / "page.html").read_text("utf-8")
    odd = [why for why in absent(text) if not why.startswith(("Nothing had", "The recipe was", "fisher gives no prob"))]
    assert odd == []


def test_channels_have_the_names_of_their_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "runs.csv", tmp_path / "m.gk"
    data = series()
    genkern.io.write(genkern.Dataset(data.X, data.y, kind="series"), path)
    path.write_text(path.read_text().replace("channel1", "flow", 1).replace("channel2", "pressure", 1))
    read = genkern.read(path)
    assert read.channel_names == ["flow", "pressure"] == read.take([0]).channel_names
    assert data.channel_names is None
    fitted = recipes.fisher_svm(2).fit(read.X, read.y)
    page_of(tmp_path / "page.html", read, None, fitted)
    text = (tmp_path / "page.html").read_text("utf-8")
    curves = text[text.index(">Mean curves<") :]
    assert re.search(r">flow<.*>pressure<", curves[: curves.index("</svg>")], re.S)
    assert re.search(r">\s*pressure\s*</t[hd]>", text[text.index(">Channels<") :])
    genkern.save(fitted, model)
    assert main(["explain", str(model), str(path), "-q", "--json"]) == 0
    assert '"pressure": {' in capsys.readouterr().out
    assert main(["explain", str(model), str(path), "-q", "--object", read.ids[0]]) == 0
    assert "flow" in capsys.readouterr().out


def test_coordinates_of_points_have_the_names_of_their_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = tmp_path / "places.csv", tmp_path / "m.gk"
    rows = [f"s{i},{'ab'[i % 2]},{np.sin(i + t)},{i % 2 + t % 3}" for i in range(12) for t in range(5)]
    path.write_text("\n".join(["id,label,lon,lat", *rows]) + "\n")
    data = genkern.read(path, kind="points")
    assert data.channel_names == ["lon", "lat"]
    genkern.save(recipes.points(n_components=2).fit(data.X, data.y), model)
    assert main(["explain", str(model), str(path), "--kind", "points", "-q"]) == 0
    told = capsys.readouterr().out
    assert "channel lon: " in told
    assert "x0" not in told


def test_points_documents_and_precomputed_kernels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    bags = genkern.Dataset([rng.normal(2 * label, size=(15, 2)) for label in y], y, kind="points")
    texts = genkern.Dataset(
        [f"my {'thesis' if label else 'course'} number {i}" for i, label in enumerate(y)], y, kind="documents"
    )
    walks = series(20)
    for data, model in (
        (bags, recipes.points(2)),
        (texts, recipes.text()),
        (walks, recipes.product_svm(2)),
    ):
        page = page_of(tmp_path / "page.html", data, evaluated(data, one=model), model)
        marks = [part for part in page.of("g") if part.get("class", "").startswith("gk-mark")]
        assert len(marks) == 20
        assert not page.mismatches


def test_an_auto_classifier_tells_what_it_tried_and_its_left_out_predictions(tmp_path: Path) -> None:
    data = words(40)
    auto = genkern.AutoClassifier(candidates=["plug_in", "spectrum_svm"], cv=2).fit(data.X, data.y)
    page = page_of(tmp_path / "page.html", data, model=auto)
    assert "plug_in" in page.text
    assert "spectrum_svm" in page.text
    left = left_out(data, None, auto)
    rate = np.mean(data.y[auto.cv_index_] != left.predicted)
    best = min(entry["error"] for entry in auto.results_)
    assert rate == pytest.approx(best)
    assert f"Error {100 * rate:.1f}" in page.text


def test_repetitions_are_pooled_and_objects_listed_once(tmp_path: Path) -> None:
    data = words(30)
    result = genkern.evaluate(data.X, data.y, {"words": recipes.spectrum_svm(1)}, folds=2, repeats=3)
    left = left_out(data, result, None)
    assert (left.truth == np.tile(data.y, 3)).all()
    said, known = left.first(30)
    assert known.all()
    np.testing.assert_array_equal(said, result.best.predictions[0])
    page_of(tmp_path / "page.html", data, result)
    text = (tmp_path / "page.html").read_text("utf-8")
    count = int((result.best.errors > 0).sum())
    assert re.search(rf"Wrong predictions[^:]*: {min(count, 20)} of {count}<", text)


@pytest.mark.parametrize("most", [1, 7, 30, 100])
def test_samples_are_spread_over_classes(most: int) -> None:
    y = np.repeat([0, 1, 2], [60, 30, 10])[np.random.default_rng(0).permutation(100)]
    chosen = spread_over_classes(y, 100, most)
    assert len(set(chosen.tolist())) == most
    assert (np.diff(chosen) > 0).all()
    counts = np.bincount(y[chosen], minlength=3)
    assert (np.abs(counts - np.array([0.6, 0.3, 0.1]) * most) <= 1).all()


def test_long_labels_stay_different() -> None:
    labels = np.array([f"{'x' * 200}{end}" for end in "abab"])
    shown = shown_labels(labels)
    assert all(len(label) <= SHOWN for label in shown)
    assert (shown[:2] == shown[2:]).all()
    assert shown[0] != shown[1]


def test_the_walk_finds_the_models_of_a_classifier() -> None:
    data = words(20)
    fitted = recipes.fisher_svm(2).fit(data.X, data.y)
    found = list(walk(fitted))
    assert [where for where, _ in found] == ["fisher"]
    assert isinstance(found[0][1], Model)
    assert found[0][1] is fitted.named_steps["fisher"].model_


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (lambda d: (d.X,), ValueError, "must be a Dataset"),
        (lambda d: (genkern.Dataset([]),), ValueError, "an empty one"),
        (lambda d: (d, evaluated(d.take(range(20)), words=spectrum())), ValueError, "same labels in the same order"),
        (lambda d: (genkern.Dataset(d.X), None, spectrum()), ValueError, "no labels to fit it to"),
    ],
)
def test_mistakes_are_named(given, error: type, text: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=text):
        genkern.write_report(tmp_path / "page.html", *given(words(30)))
    assert not (tmp_path / "page.html").exists()


def test_the_command_writes_a_page_and_code_that_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = words(40)
    monkeypatch.chdir(tmp_path)
    genkern.io.write(data, "words.fasta")
    assert main(["evaluate", "words.fasta", "-r", "spectrum_svm", "--folds", "2", "--report", "page.html", "-q"]) == 0
    first = Path("page.html").read_text("utf-8")
    assert "genkern evaluate words.fasta -r spectrum_svm --folds 2 --report page.html -q" in first
    shown = Page(first)
    code = next(text for text in shown.texts if text.startswith("import genkern\n"))
    exec(compile(code, "code of the page", "exec"), {})
    second = Page(Path("page.html").read_text("utf-8"))
    marks = [[part for part in page.of("g") if "data-id" in part] for page in (shown, second)]
    assert marks[0] == marks[1] != []
    assert main(["train", "words.fasta", "-r", "spectrum_svm", "-o", "m.gk", "--report", "train.html", "-q"]) == 0
    trained = Page(Path("train.html").read_text("utf-8"))
    assert "There are no predictions about objects that the classifier had not seen" in trained.text
    code = next(text for text in trained.texts if text.startswith("import genkern\n"))
    Path("m.gk").unlink()
    exec(compile(code, "code of the page", "exec"), {})
    assert Path("m.gk").exists()


def test_that_jinja2_is_missing_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["evaluate", "nowhere.fa", "--report", str(tmp_path / "page.html"), "-q"]) == 3
    assert "pip install 'genkern[report]'" in capsys.readouterr().err
    assert main(["evaluate", "nowhere.fa", "--report", str(tmp_path / "none" / "page.html"), "-q"]) == 3
    assert "does not exist" in capsys.readouterr().err
