"""What objects say of themselves: numbers that are there, a size that fits a screen, HTML without holes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from cases_zoo import ZOO
from sklearn import config_context

from genkern import (
    HMM,
    RBF,
    AutoClassifier,
    Dataset,
    FisherScore,
    Gaussian,
    Gram,
    HMMEstimator,
    Linear,
    ProbabilityProduct,
    diagnostics,
    evaluate,
    explain,
    explain_set,
    recipes,
)
from genkern.data.describe import as_html, as_text
from genkern.datasets import load_japanese_vowels, load_splice_junctions

HOSTILE = '<script>alert("x")</script>&'
RECIPES = {
    "aligned_symbols": recipes.aligned_symbols(),
    "contours": recipes.contours(),
    "fisher_svm": recipes.fisher_svm(),
    "homology": recipes.homology(),
    "meanmap_svm": recipes.meanmap_svm(),
    "points": recipes.points(),
    "product_svm": recipes.product_svm(),
    "series": recipes.series(),
    "spectrum_svm": recipes.spectrum_svm(),
    "symbols": recipes.symbols("dna"),
    "text": recipes.text(),
}


class Page(HTMLParser):
    """The text and tags of a page, which must be closed in order."""

    def __init__(self, html: str):
        super().__init__()
        self.text, self.tags, self.open = "", set(), []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def check(thing: Any, lines: int = 24, most: int = 30_000) -> Page:
    """Return the HTML of a thing, once its texts fit a screen."""
    for text in (repr(thing), str(thing)):
        assert len(text.splitlines()) <= lines
    assert max(map(len, str(thing).splitlines())) <= 120
    html = thing._repr_html_()
    assert len(html) < most
    assert not re.search(r"background|http|<script|#[0-9a-f]{3}", html)
    page = Page(html)
    assert page.tags <= {"table", "caption", "tbody", "tr", "th", "td"}
    return page


@pytest.mark.parametrize("name", ZOO)
def test_models_show_their_numbers(name: str) -> None:
    model = ZOO[name]
    page = check(model)
    assert len(repr(model).splitlines()) == 1
    assert type(model).__name__ in page.text
    if "ClassMixture" not in name and name not in ("LinearGaussianNet", "SwitchingLDS"):
        field = next(
            v for v in map(model.__getattribute__, model._fields) if isinstance(v, np.ndarray) or type(v) is tuple
        )
        first = np.ravel(field[0] if isinstance(field, tuple) else field)[0]
        for text in (str(model), page.text):
            assert f"{first:.4g}" in text


def test_a_model_in_lines() -> None:
    leaf = Gaussian([[0.0, 1.0], [8.0, -8.25]], np.stack([np.eye(2)] * 2))
    model = HMM([0.6, 0.4], [[0.9, 0.1], [0.2, 0.8]], leaf)
    assert str(model).splitlines() == [
        "HMM(2 states over Gaussian(2 channels))",
        "  start        0.6  0.4",
        "  transitions  0.9  0.1",
        "               0.2  0.8",
        "  emissions    Gaussian(2 channels)",
        "    mean       0  1",
        "               8  -8.25",
        "    cov        [[1, 0], [0, 1]]",
        "               [[1, 0], [0, 1]]",
    ]
    assert repr(model).startswith("HMM(start=[0.6, 0.4], transitions=[[0.9, 0.1], [0.2, 0.8]], emissions=Gaussian(mean")
    assert "a stack of (3,)" in str(HMM.stack([model] * 3))


def test_large_models_are_abridged_not_cut_in_secret() -> None:
    n = 60
    model = HMM(np.full(n, 1 / n), np.full((n, n), 1 / n), Gaussian(np.zeros((n, 20)), 1.0 + np.zeros(n)))
    check(model)
    assert "... (60 in all)" in str(model)
    assert "... (20)" in str(model)
    many = as_text("many", [(f"n{i}", i) for i in range(100)])
    assert len(many.splitlines()) == 22
    assert "80 more lines" in many


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_fit_a_screen(name: str) -> None:
    page = check(RECIPES[name], lines=19)
    for step, _ in RECIPES[name].steps:
        assert step in repr(RECIPES[name])
        assert step in page.text
    assert RECIPES[name]._repr_mimebundle_()["text/plain"] == repr(RECIPES[name])


def test_datasets_say_what_they_hold() -> None:
    for data in (load_splice_junctions(), load_japanese_vowels()):
        text = check(data).text
        assert data.kind in text
        assert data.ids[0] in text
    bad = Dataset([HOSTILE, "b"], np.array([HOSTILE, "c"]), [HOSTILE, "d"], meta={"name": HOSTILE, HOSTILE: HOSTILE})
    assert "script>" in check(bad).text  # as text, not as a tag
    check(Dataset([["w", "v"], ["u"]]))
    check(Dataset([]))


def test_html_is_escaped_everywhere() -> None:
    for page in (
        as_html(HOSTILE, [(HOSTILE, HOSTILE), ("rows", [[HOSTILE, 1]]), ("of", [(HOSTILE, HOSTILE)])]),
        FisherScore(HMMEstimator(2, random_state=0)).set_params(information=HOSTILE)._repr_html_(),
    ):
        assert "<script" not in page
        assert HOSTILE in Page(page).text


def test_fitted_transformers_say_what_they_became() -> None:
    scores = FisherScore(HMMEstimator(2, random_state=0))
    assert str(scores).splitlines() == ["FisherScore", "  estimator  HMMEstimator(n_states=2, random_state=0)"]
    scores.fit(["abab", "abba", "bbba"])
    text = check(scores).text
    for part in ("FisherScore, fitted", "3 objects", str(scores.n_features_out_), "HMM(2 states over Categorical"):
        assert part in text
        assert part in str(scores)
    models = [Gaussian(mean, 1.0) for mean in (0.0, 1.0, 50.0)]
    gram = Gram(ProbabilityProduct(0.5).normalized(), psd="clip").fit(models)
    assert "3 training objects" in check(gram).text
    with config_context(display="text"):
        assert list(gram._repr_mimebundle_()) == ["text/plain"]


def test_kernels_show_their_formula() -> None:
    kernel = 2 * RBF(0.5) + Linear() ** 3 + ProbabilityProduct(0.5, 3).normalized()
    page = Page(kernel._repr_html_())
    assert f"${kernel.formula}$" in page.text
    assert str(kernel) == repr(kernel)


def test_evaluations_are_tables() -> None:
    X, y = ["abab", "baba", "aabb", "bbaa"] * 5, ["s", "s", HOSTILE, HOSTILE] * 5
    result = evaluate(X, y, {HOSTILE: recipes.spectrum_svm()}, folds=2)
    page = check(result)
    assert HOSTILE in page.text
    assert "20 objects, 2 classes, 2 folds" in page.text


def test_explanations_choices_and_diagnostics_have_tables() -> None:
    X, y = ["abab", "babab", "ababa", "baba", "aabb", "bbaab", "aabba", "abba"] * 2, ([HOSTILE] * 4 + ["b"] * 4) * 2
    fitted = recipes.spectrum_svm(2).fit(X, y)
    one, many = explain(fitted, "abba"), explain_set(fitted, X)
    assert one.decision != 0.0
    page = check(one).text
    assert f"decision {one.decision:+.4f}" in page
    for name, value in one.top(4):
        assert f"{value:+.4f}" in page
        assert name in page
    page = Page(many._repr_html_()).text
    for name, mean in many.by_block().items():
        assert name in page
        assert f"{mean.absolute:.4f}" in page
    assert "<script" not in many._repr_html_()
    auto = AutoClassifier(candidates=["plug_in", "spectrum_svm"], cv=2)
    assert "plug_in" in check(auto).text
    page = check(auto.fit(X, y)).text
    for result in auto.results_:
        assert result["name"] in page
        assert f"{result['error']:.1%}" in page
    found = diagnostics(np.diag([1.0, 2.0, -1e7]))
    page = Page(found._repr_html_()).text
    assert f"effective rank\n{found.effective_rank:.1f} of 3" in page
    assert all(word in page.split() for finding in found.findings for word in finding.split())
    assert found.findings
    assert str(found) == repr(found)
