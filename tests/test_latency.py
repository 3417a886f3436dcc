"""What predictions cost: the time of one object by a model of known slowness, sizes by the file itself."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import genkern
from genkern import recipes
from genkern.cli.main import main
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
