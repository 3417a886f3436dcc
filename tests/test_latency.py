"""What predictions cost: the time of one object by a model of known slowness, sizes by the file itself."""

from __future__ import annotations

import copy
import json
import time

import numpy as np
import pytest
import threadpoolctl
from sklearn.model_selection import cross_val_score

import genkern
import genkern.models.families.gaussian as gaussian_model
import genkern.models.leaf as leaf_model
import genkern.models.mixture.model as mixture_model
import genkern.preprocess.windows as windows_module
import genkern.threads as threads_module
from genkern import Gaussian, Mixture, recipes
from genkern.cli.main import main
from genkern.data.serialize import dumps
from genkern.evaluation import latency, latency_scorer, size_scorer

X, Y = ["abab", "baba", "abba", "aabb", "bbaa", "abbb"] * 2, [0, 0, 0, 1, 1, 1] * 2


class Slow:
    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def predict(self, X: list[str]) -> None:
        self.calls.append(X)
        time.sleep(0.03 if X == ["late"] else 0.005)


def test_the_time_of_one_object() -> None:
    slow = Slow()
    found = latency(slow, ["early", "late", "early", "early"], calls=12)
    assert 0.005 <= found.median < 0.03 <= found.high
    assert len(slow.calls) == 13  # the first one may compile
    assert all(len(call) == 1 for call in slow.calls)
    assert latency_scorer(slow, ["late"]) <= -0.03
    with pytest.raises(ValueError, match="objects are needed"):
        latency(slow, [])


def test_scorers_are_scorers() -> None:
    scores = cross_val_score(recipes.spectrum_svm(2), X, Y, scoring=size_scorer, cv=2)
    assert (scores < 0).all()


def test_the_doctor_tells_what_a_model_costs(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "m.gk", recipes.spectrum_svm(2).fit(X, Y)
    genkern.save(model, path)
    (tmp_path / "x.csv").write_text("text\n" + "".join(f"{x}\n" for x in X))
    arguments = ["doctor", str(path), str(tmp_path / "x.csv"), "--kind", "symbols", "--json", "--quiet"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bytes"] == path.stat().st_size == -size_scorer(model)
    assert found["numbers"] >= np.size(model[-1].coef_)
    assert 0 < found["median_seconds"] <= found["high_seconds"]
    assert main(["doctor", str(path)]) == 0
    assert "MB" in capsys.readouterr().out


def test_a_prediction_makes_nothing_again_that_follows_from_the_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are set once for all widths of a model, and its parameters are prepared by the first prediction."""
    made: list[str] = []

    def count(place: object, name: str) -> None:
        own = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *given, **options: made.append(name) or own(*given, **options))

    series = [np.sin(np.arange(30) / (2 + y) + i) for i, y in enumerate(Y)]
    recipe = recipes.series(4, 2).fit(series, Y)
    one = recipe[0].transform(series[:1])
    count(threads_module, "_set")
    count(mixture_model, "rebatch")
    count(leaf_model, "rebatch")
    count(gaussian_model.core, "forms_of")
    count(windows_module, "dct")
    with threadpoolctl.threadpool_limits(2, "blas"):  # of one thread there is nothing to set
        again = recipe[0].transform(series[:1])
    libraries = len(threads_module._libraries())
    assert made == ["_set"] * 8 * libraries  # to one and back: a bag and a chain, of series and of centred series
    assert np.array_equal(one, again)
    assert np.array_equal(one, recipe[0].transform(series)[:1])


def test_what_follows_from_a_value_is_not_part_of_it() -> None:
    model = Mixture([0.25, 0.75], Gaussian([[0.0], [2.0]], [[1.0], [0.5]]))
    before = model.digest, repr(model), dumps(model)
    scores = model.log_prob_grad([[0.5, 1.0]])
    fresh = Mixture([0.25, 0.75], Gaussian([[0.0], [2.0]], [[1.0], [0.5]]))
    assert (model.digest, repr(model), dumps(model)) == before == (fresh.digest, repr(fresh), dumps(fresh))
    assert np.array_equal(copy.deepcopy(model).log_prob_grad([[0.5, 1.0]]), scores)
    degenerate = Gaussian([0.0], [0.0])
    for _ in range(2):
        with pytest.raises(ValueError, match="singular"):
            degenerate.log_prob([[1.0]])
