"""The command line answers fast, refuses clearly, and the demo runs from end to end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

import genkern
from genkern.cli import demonstration as demo
from genkern.cli import main as cli


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``python -m``-style the same entry point as the installed command, in a fresh process."""
    code = "import sys; from genkern.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_help_is_quick_and_complete() -> None:
    began = time.perf_counter()
    answer = run("--help")
    assert time.perf_counter() - began < 2.0  # 0.1 s when idle; the limit only catches heavy imports
    assert answer.returncode == 0
    for name in cli.COMMANDS:
        assert f"  {name} " in answer.stdout
    for option in ("--fast", "--output", "--jobs"):
        assert option in run("demo", "--help").stdout


def test_version() -> None:
    assert run("--version").stdout.strip() == f"genkern {genkern.__version__}"


def test_defaults_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "run", lambda **given: seen.append(given))
    assert cli.main(["demo"]) == 0
    assert cli.main(["demo", "--fast", "--output", "here", "--jobs", "2"]) == 0
    assert seen == [
        {"output": Path("genkern-demo"), "fast": False, "n_jobs": -1},
        {"output": Path("here"), "fast": True, "n_jobs": 2},
    ]


@pytest.mark.parametrize("arguments", [[], ["dmeo"], ["demo", "--jobs", "0"], ["demo", "--jobs", "many"]])
def test_wrong_usage_is_refused_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert "genkern" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_known_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "run", lambda **_: pytest.fail("the work began"))
    (tmp_path / "file").write_text("in the way")
    assert cli.main(["demo", "--output", str(tmp_path / "file")]) == 2
    assert f"cannot write to {tmp_path / 'file'}: File exists; name another folder" in capsys.readouterr().err


def small_task() -> demo.Task:
    """Return a task that takes a moment: every real ingredient, few objects."""
    whole = demo.vowels_task(fast=True, n_jobs=1)
    kept = [contender for contender in whole.contenders if "of HMMs" not in contender.name]
    return whole._replace(data=demo.subset(whole.data, 60), n_folds=2, contenders=kept, drawn=kept[1])


def result(group: str, name: str, errors: list[float], official: float | None = None) -> demo.Result:
    return demo.Result(demo.Contender(group, name, None), np.array(errors), official)


def test_evaluation_counts_wrong_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    task = small_task()
    found = demo.evaluate(task, demo.Contender("g", "always the first class", DummyClassifier(strategy="prior")))
    _, counts = np.unique(task.data.y, return_counts=True)
    assert found.errors.shape == (2,)
    np.testing.assert_allclose(found.errors.mean(), 1 - counts.max() / counts.sum(), rtol=0, atol=0.02)
    assert capsys.readouterr().out.count(".") >= 2


def test_contenders_learn_and_the_picture_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = small_task()
    results = [demo.evaluate(task, contender) for contender in task.contenders]
    assert all(found.errors.mean() < 0.5 for found in results)  # guessing errs on 8 of 9
    path = demo.draw([task], tmp_path / "new" / "folder")
    assert path.is_absolute()
    assert path.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()


def test_table_shows_what_was_measured() -> None:
    task = small_task()
    text = demo.table(task, [result("first", "A", [0.1, 0.2]), result("second", "B", [0.25, 0.25])])
    lines = [line.split() for line in text.splitlines()]
    assert ["A", "15.0", "±", "7.1"] in lines
    assert ["B", "25.0", "±", "0.0"] in lines
    assert lines.index(["first"]) < lines.index(["A", "15.0", "±", "7.1"]) < lines.index(["second"])
    assert text.splitlines()[-1].strip() == task.note
    split = task._replace(data=demo.load_japanese_vowels())
    assert ["A", "15.0", "±", "7.1", "3.2"] in [
        line.split() for line in demo.table(split, [result("g", "A", [0.1, 0.2], 0.0324)]).splitlines()
    ]


def test_conclusion_follows_the_numbers() -> None:
    task = small_task()
    clear = [result("g", "A", [0.30, 0.31]), result("g", "B", [0.10, 0.11]), result("h", "C", [0.20, 0.21])]
    text = demo.conclusion(task, clear)
    assert "smallest error 10.5 ± 0.7 % (B; g)" in text
    assert "Next: 20.5 ± 0.7 % (C). The difference is more than one standard deviation" in text
    assert "Best of the group 'h': 20.5" in text
    close = [result("g", "A", [0.10, 0.12]), result("g", "B", [0.11, 0.13])]
    assert "within one standard deviation" in demo.conclusion(task, close)


def test_subset_keeps_the_shares_of_the_classes() -> None:
    data = demo.load_splice_junctions()
    part = demo.subset(data, 300)
    for label in data.classes:
        assert abs((part.y == label).mean() - (data.y == label).mean()) < 0.01
    assert abs(len(part.X) - 300) <= len(data.classes)
    assert demo.subset(part, 10_000).ids == part.ids


@pytest.mark.slow
def test_whole_demo(tmp_path: Path) -> None:
    answer = run("demo", "--fast", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert (tmp_path / "genkern-demo" / "demo.png").exists()
    assert str(tmp_path / "genkern-demo" / "demo.png") in answer.stdout
    for name in ("plug-in HMM", "Fisher score", "product kernel", "mean map kernel", "spectrum"):
        assert name in answer.stdout
