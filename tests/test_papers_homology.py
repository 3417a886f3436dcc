"""The homology experiment: its divisions, its kernels against plain loops, its nested choice, and its quick run."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

from genkern import CategoricalEstimator, HMMEstimator, recipes
from genkern.papers import run
from genkern.papers.homology import domains, inner_task, outer_task
from genkern.papers.homology_kernels import BASE, VARIANTS, Models, Variant, left_out_together, machine_scores
from genkern.papers.homology_page import HMM_NESTED, KERNEL_NESTED, with_choices
from genkern.papers.homology_recipe import Products, products, ranking, similarities

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
needs_data = pytest.mark.skipif(not (DATA / "scop153").exists(), reason="needs scop153 of the data, see GENKERN_DATA")
PARTS = ("symbols", "alignment", "scores", "odds")
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
POSITIVES = (12, 5)


def sequences(n: int, favoured: str, rng: Any) -> list[str]:
    """Return sequences of 20 to 40 letters, of which some are favoured."""
    weights = np.array([4.0 if letter in favoured else 1.0 for letter in LETTERS])
    return ["".join(rng.choice(list(LETTERS), rng.integers(20, 40), p=weights / weights.sum())) for _ in range(n)]


@pytest.fixture(scope="module")
def models() -> Models:
    rng = np.random.default_rng(0)
    known = sequences(POSITIVES[0], "ACDE", rng) + sequences(30, "VWY", rng)
    fresh = sequences(POSITIVES[1], "ACDE", rng) + sequences(10, "VWY", rng)
    families = np.array([f"a.{i % 3}" for i in range(POSITIVES[0])] + [f"b.{i}" for i in range(30)])
    return Models(known, fresh, POSITIVES, families)


def slow_features(models: Models, objects: list[str], variant: Variant) -> list[list[float]]:
    """Return the emission scores of all objects: letter by letter, from posteriors of states."""
    model, lengths = models.model(variant.model), [len(one) for one in models.known]
    probs, rows = np.asarray(model.emissions.probs), []
    visits = np.zeros(model.n_states)  # expected at each position, averaged over the lengths of training objects
    for length in lengths:
        state = np.asarray(model.start)
        for _ in range(length):
            visits += state / len(lengths)
            state = state @ np.asarray(model.transitions)
    for one in objects:
        counts = np.zeros(probs.shape)
        for letter, posterior in zip(one, model.posterior([one])[0]):
            counts[:, LETTERS.index(letter)] += posterior
        centred = counts - counts.sum(axis=1, keepdims=True) * probs
        scaled = centred / probs if variant.scores == "plain" else centred / np.sqrt(visits[:, None] * probs)
        rows.append((scaled / (len(one) if variant.per_residue else 1)).ravel().tolist())
    return rows


@pytest.mark.parametrize(
    "name", ["base: by information, per residue, Gaussian", "as published: plain scores, Gaussian"]
)
def test_machines_follow_plain_loops(models: Models, name: str) -> None:
    assert list(models.model("10 states").emissions.alphabet.symbols)[:20] == list(LETTERS)
    known, fresh = (slow_features(models, objects, VARIANTS[name]) for objects in (models.known, models.fresh))
    nearest = [min(math.dist(known[i], known[j]) for j in range(POSITIVES[0], len(known))) for i in range(POSITIVES[0])]
    width = float(np.median(nearest))
    within, across = (
        np.array([[math.exp(-(math.dist(a, b) ** 2) / (2 * width**2)) for b in known] for a in part])
        for part in (known, fresh)
    )
    y = np.arange(len(known)) < POSITIVES[0]
    expected = SVC(C=1.0, kernel="precomputed", class_weight="balanced").fit(within, y).decision_function(across)
    np.testing.assert_allclose(machine_scores(models, VARIANTS[name]), expected, atol=2e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # EM is stopped early
def test_out_of_fold_scores_are_of_models_without_the_family(models: Models) -> None:
    """Those of a family are of a model fitted without it, those of test objects of a model of all positives."""
    known, fresh = models.features(BASE._replace(out_of_fold=True))
    learner = HMMEstimator(10, CategoricalEstimator("protein", 0.1), pseudocount=0.1, max_iter=100, random_state=0)
    learner.set_params(init=models.model("10 states"))
    for family in range(3):
        rest = [models.known[i] for i in range(POSITIVES[0]) if i % 3 != family]
        own = range(family, POSITIVES[0], 3)
        expected = np.array(slow_features_of(learner.fit(rest).model_, models, [models.known[i] for i in own]))
        # The information is averaged over the lengths of the other folds only: one factor for all features of a state.
        ratio = np.sqrt((expected**2).mean() / (known[own] ** 2).mean())
        assert ratio == pytest.approx(1.0, abs=0.1)
        np.testing.assert_allclose(known[own], expected, atol=0.1 * np.abs(expected).max())
    expected = np.array(slow_features_of(learner.fit(models.known[: POSITIVES[0]]).model_, models, models.fresh))
    np.testing.assert_allclose(fresh, expected, atol=1e-6)


def slow_features_of(model: Any, models: Models, objects: list[str]) -> list[list[float]]:
    """Return the scores of objects under another model."""
    twin = Models(models.known, models.fresh, POSITIVES, np.array(["x"] * len(models.known)))
    twin._memo["model", "10 states"] = model
    return slow_features(twin, objects, BASE)


def test_shift_counts_pairs(models: Models) -> None:
    """Training positives are above test positives in more pairs if the model was fitted to them."""
    model, null = models.model("10 states"), CategoricalEstimator("protein").fit(models.known).model_
    odds = [
        [(float(model.log_prob([one])[0]) - float(null.log_prob([one])[0])) / len(one) for one in part]
        for part in (models.known[: POSITIVES[0]], models.fresh[: POSITIVES[1]])
    ]
    fitted, out_of_fold = models.shift()
    assert fitted == pytest.approx(np.mean([a > b for a in odds[0] for b in odds[1]]))
    assert out_of_fold < fitted - 0.2


def test_sums_are_those_of_the_recipe(models: Models) -> None:
    """From inner products of the parts come the decisions of a recipe that is fitted as a whole."""
    X, Z, y = models.known, models.fresh, models.y
    groups = np.array([f"{i % 3}{'+' if own else '-'}" for i, own in enumerate(y)])
    features = recipes.symbols("protein", n_lags=2, n_gaps=1, table=None)[:-1].fit(X, y)
    known, fresh = features.transform(X), features.transform(Z)
    symbols = Products(known @ known.T, fresh @ known.T)
    found, bits = products((X, Z), y, groups, symbols, similarities([*X, *Z]))
    for names in (("alignment", "scores", "odds"), ("odds",), ("symbols", "alignment", "scores", "odds")):
        recipe = recipes.homology()
        if "symbols" in names:
            recipe.set_params(kernels__symbols=features.named_steps["kernels"])
        recipe.set_params(**{f"kernels__{name}": "drop" for name in PARTS if name not in names})
        recipe.fit(X, y, groups=groups)
        np.testing.assert_allclose(ranking(found, y, names), recipe.decision_function(Z), atol=2e-3)
    odds = dict(recipe["kernels"].transformer_list)["odds"].named_steps["bits"]
    np.testing.assert_allclose(bits, odds.transform(Z)[:, 0], rtol=1e-12)


def test_lone_families_are_divided() -> None:
    y, families = np.array([True, True, False, False]), np.array(["a", "a", "b", "b"])
    assert left_out_together(y, families).tolist() == ["sequence 0", "sequence 1", "b", "b"]
    families[1] = "c"
    assert left_out_together(y, families).tolist() == ["a", "c", "b", "b"]


def test_choices_leave_out_the_own_superfamily() -> None:
    names = ["HMM, 10 states", "HMM, left-right", *VARIANTS]
    first, second = list(VARIANTS)[:2]

    def results(good: set[str]) -> dict[str, list[float]]:
        return {name: [0.9 if name in good else 0.1, 0.5] for name in names}

    found = {"1.1.1.1": {name: [i / 100, 0.5] for i, name in enumerate(names)}}
    within = {"1.1.1.2": results({"HMM, left-right", second}), "2.1.1.1": results({"HMM, 10 states", first})}
    chosen = with_choices(found, within)["1.1.1.1"]
    assert chosen[HMM_NESTED] == found["1.1.1.1"]["HMM, 10 states"]
    assert chosen[KERNEL_NESTED] == found["1.1.1.1"][first]


@needs_data
def test_divisions_hold_out_families() -> None:
    data = domains(str(DATA / "scop153"))
    assert len(data.X) == 4352
    assert len(data.targets) == 54
    for index in (3, 8, 14, 16, 23, 30, 34, 50):
        target, task = data.targets[index], outer_task(data, index)
        assert set(data.families[task.test_positive]) == {target}
        assert {name.rpartition(".")[0] for name in data.families[task.train_positive]} == {target.rpartition(".")[0]}
        inner = inner_task(data, task)
        assert not set(data.families[inner.train_positive]) & set(data.families[inner.test_positive])
        folds = [{name.rsplit(".", 2)[0] for name in data.families[part]} for part in (inner[1], inner[3])]
        assert not folds[0] & folds[1]
        assert min(map(len, inner)) >= 3
        assert set(np.concatenate(inner)) == set(np.concatenate(task[:2]))


@needs_data
def test_quick_homology() -> None:
    report = run("homology", quick=True, data=DATA)
    areas = {row[0]: float(row[1]) for row in report.tables[2].rows}
    assert areas["model of all"] > 0.8
    assert areas["as printed: plain scores, linear"] < areas["base: by information, per residue, Gaussian"] - 0.1
    assert areas["base and log-odds"] < areas["base and log-odds out of fold"] - 0.1
    for row in report.tables[3].rows:
        fitted, out_of_fold = float(row[1]), float(row[2])
        assert fitted > 0.9
        assert out_of_fold < 0.75
    recipe = {row[0]: row for row in report.tables[0].rows}["recipe"]
    assert float(recipe[1].split()[0]) > 0.7
    parts = {row[0]: float(row[1].split()[0]) for row in report.tables[4].rows}
    assert parts["homology"] > 0.8
    assert parts["homology"] > parts["log-odds of a profile"]
    assert [row[0] for row in report.tables[5].rows][-1] == "homology − symbols and alignments"
    (figure,) = report.figures.values()
    assert len(figure.axes) == 2
