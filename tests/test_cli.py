"""The command line answers fast, refuses clearly, and the demo runs from end to end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import genkern
from genkern import FisherScore, PlugInClassifier, SiteEstimator, evaluate
from genkern.cli import demonstration as demo
from genkern.cli import main as cli
from genkern.evaluation import Evaluation


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
    module = subprocess.run([sys.executable, "-m", "genkern", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout.strip() == f"genkern {genkern.__version__}"


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


@pytest.fixture(scope="module")
def small() -> tuple[list[demo.Task], list[Evaluation]]:
    """Return both tasks with every real ingredient but auto, on few objects, and what came out."""
    tasks = []
    for task in (demo.junctions_task(True, 1), demo.vowels_task(True, 1)):
        kept = {name: classifier for name, classifier in task.contenders.items() if name != demo.AUTO}
        tasks.append(task._replace(data=demo.subset(task.data, 90), contenders=kept))
    return tasks, [evaluate(task.data.X, task.data.y, task.contenders, folds=2) for task in tasks]


def test_what_people_use_learns(small: tuple[list[demo.Task], list[Evaluation]]) -> None:
    for task, result in zip(*small):
        assert set(task.contenders) == {row.name for row in result.rows}
        assert result.best.error < result.baseline
        assert all(row.failure is None for row in result.rows)


def test_the_summary_of_a_series_is_that_of_its_channels() -> None:
    series = np.array([[0.0, 1.0], [2.0, 5.0]])
    np.testing.assert_array_equal(demo._summary([series]), [[1.0, 3.0, 1.0, 2.0]])


def test_the_picture_and_the_reports_are_saved(small: tuple[list[demo.Task], list[Evaluation]], tmp_path: Path) -> None:
    tasks, results = small
    path = demo.draw(tasks, results, tmp_path / "demo.png")
    assert path.is_absolute()
    assert path.read_bytes().startswith(b"\x89PNG")
    quick = PlugInClassifier(SiteEstimator("dna")).fit(tasks[0].data.X, tasks[0].data.y)
    pages = demo.reports(tasks, results, quick, tmp_path)
    assert [page.name for page in pages] == ["splice_junctions.html", "Japanese_vowels.html"]
    assert all("<html" in page.read_text() for page in pages)


def test_one_window_is_explained_where_the_junction_is() -> None:
    data = demo.subset(demo.load_splice_junctions(), 300)
    model = make_pipeline(FisherScore(SiteEstimator("dna")), LinearSVC(C=1e-3)).fit(data.X, data.y)
    text = demo.explained(model, data).splitlines()
    letters, strip = text[2][2:], text[3][2:]
    assert letters == data.X[int(np.flatnonzero(data.y == "EI")[0])]
    assert len(strip) <= 60
    assert 28 <= strip.index("#") <= 35  # the strongest letter is of GTRAGT
    assert letters[30:32] == "GT"


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
    for name in ("demo.png", "splice_junctions.html", "Japanese_vowels.html"):
        assert (tmp_path / "genkern-demo" / name).exists()
        assert str(tmp_path / "genkern-demo" / name) in answer.stdout
    for name in ("auto", "weight matrix", "k-mer SVM", "one HMM per class", "means and deviations", "One window"):
        assert name in answer.stdout
