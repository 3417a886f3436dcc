"""Progress is silent for a second, then tells on standard error how far the work is and how long it will take."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from genkern import RBF, FitEach, Gram, HMMEstimator, ProbabilityProduct, progress, recipes, similarity
from genkern.cli.main import main
from genkern.datasets import make_two_hmms
from genkern.io import files
from genkern.io.errors import Notes
from genkern.learn.calibrated import CalibratedSearchCV
from genkern.progress import Progress, divided, each, expecting, listening, portion, reach, spell_seconds, taken


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0.0 s"), (0.44, "0.4 s"), (9.94, "9.9 s"), (9.96, "10 s"), (119.0, "119 s"), (120.0, "2 min"),
     (200.0, "3 min 20 s"), (7199.0, "119 min 59 s"), (7500.0, "2 h 5 min")],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert spell_seconds(seconds) == text


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("work", 3) as told:
        told.advance()
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines_of(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, **settings: object) -> str:
    monkeypatch.setattr(progress, "QUIET", 0.02)
    monkeypatch.setattr(progress, "PAUSE", 0.02)
    monkeypatch.setattr("sys.stderr", stream)
    with Progress("work", **settings) as told:
        time.sleep(0.2)
        told.advance(2, note="second")
        time.sleep(0.2)
    return stream.getvalue()


def test_lines_tell_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of(monkeypatch, io.StringIO(), total=4, unit="folds").splitlines()
    assert lines[0].startswith("work: 0 of 4 folds, 0.")
    assert lines[0].endswith("s so far")
    assert lines[-1].startswith("work: 2 of 4 folds, about 0.")
    assert lines[-1].endswith("left, second")


def test_work_of_unknown_length_tells_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "work: 2 objects in 0." in lines_of(monkeypatch, io.StringIO(), unit="objects")
    assert "objects" not in lines_of(monkeypatch, io.StringIO(), unit="")


def test_a_terminal_has_one_line_that_is_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = lines_of(monkeypatch, Terminal(), total=4)
    assert "\n" not in shown
    assert shown.endswith(" \r")


def test_nothing_is_said_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_of(monkeypatch, io.StringIO(), total=4, enabled=False) == ""


# --- how far nested work is, by exact fractions; the time that is left follows from them and from the time so far


def test_where_nobody_listens_nothing_is_wrapped() -> None:
    items, work = [1, 2], len
    assert each(items) is items
    assert divided(work, 3) is work
    assert not listening()


def test_parts_of_parts_add_up() -> None:
    with Progress("work", unit="") as told:
        for i in each("abcd"):
            if i == "b":
                for j in each(range(3)):
                    if j == 1:
                        assert told.done == pytest.approx(1 / 4 + 1 / 12)
                        assert told._line(10.0) == "work: 33 %, about 20 s left"
        assert told.done == pytest.approx(1.0)
        assert listening()
    assert not listening()


def test_weights_portions_and_positions() -> None:
    with Progress("work", unit="") as told:
        with portion(0.4, "first"):
            reach(0.5)
            assert told.done == pytest.approx(0.2)
            reach(0.25)  # an earlier place once more, as when a file is looked at again
            assert told.done == pytest.approx(0.2)
            assert told._line(1.0).endswith("left, first")
        for size in each([1, 2], weights=[1, 2]):
            with portion(0.0):  # what is done in it does not count
                reach(1.0)
            assert told.done == pytest.approx(0.4 if size == 1 else 0.6)
        assert told.done == pytest.approx(1.0)


def test_work_that_ends_early_or_fails_counts_as_done() -> None:
    with Progress("work", 2, "fits") as told:
        for step in each(range(100)):
            if step == 10:
                break
        assert told.done == pytest.approx(0.055, abs=0.006)
        told.advance()
        assert told.done == pytest.approx(0.5)
        with pytest.raises(KeyError), portion(0.5):
            raise KeyError
        assert told.done == pytest.approx(0.75)
        assert told._line(30.0) == "work: 1 of 2 fits, about 10 s left"
        told.advance()
        assert told.done == pytest.approx(1.0)
    assert not listening()


def test_time_that_is_left_is_told_where_some_is_done_and_some_is_left() -> None:
    with Progress("predict", None, "objects") as told:
        for done, line in [
            (0.001, "predict: 0 objects in 20 s"),  # the rest would be a guess a thousand times as long
            (0.02, "predict: 0 objects, about 16 min 20 s left"),
            (1.0, "predict: 0 objects in 20 s"),  # all is read, but not yet worked on
        ]:
            told.reach(done)
            assert told._line(20.0) == line


def test_threads_count_together() -> None:
    with Progress("work", unit="") as told:
        work = divided(lambda i: reach(0.5), 8)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(6)))
        assert told.done == pytest.approx(6 / 8)


def test_parts_that_are_expected_are_taken_by_weight() -> None:
    with Progress("work", unit="") as told, expecting(10.0):
        with taken(3.0, "three"):
            assert told._note == "three"
            with taken(1.0, "inner"):  # nobody expects parts of this one
                pass
            assert told.done == 0.0
        assert told.done == pytest.approx(0.3)
        with taken(7.0, "seven"):
            pass
        assert told.done == pytest.approx(1.0)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_reading_is_told_by_the_bytes_of_the_file(suffix: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 1 << 12)
    rng = np.random.default_rng(0)
    text = "".join(f">{i}\n{''.join(row)}\n" for i, row in enumerate(rng.choice(list("ACGT"), (60_000, 60))))
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    path = tmp_path / f"x.fa{suffix}"
    path.write_bytes(pack(text.encode()))
    with Progress("reading", unit="") as told:
        seen = 0
        for block in files.Source(path, Notes()).blocks():
            seen += len(block)
            slack = 0.01 if not suffix else 0.05 + (1 << 19) / path.stat().st_size  # what decompressors have read ahead
            assert abs(told.done - seen / len(text)) < slack
        assert told.done == pytest.approx(1.0)


def test_results_do_not_depend_on_who_listens() -> None:
    X, y = make_two_hmms(n_per_class=12)
    models = FitEach(HMMEstimator(2, random_state=0, max_iter=5, tol=0)).fit_transform(X)
    make = [
        lambda: Gram(ProbabilityProduct(0.5, 10)).fit_transform(models * 15),
        lambda: recipes.symbols(n_lags=2, n_gaps=1).fit(X, y).decision_function(X),
        lambda: similarity.plane(Gram(RBF(1.0)).fit_transform(np.random.default_rng(0).normal(size=(30, 2))), "tsne")[
            0
        ],
    ]
    for work in make:
        alone = work()
        with Progress("work", unit="") as told:
            heard = work()
        np.testing.assert_array_equal(alone, heard)
        assert told.done > 0.9


class _Told(LogisticRegression):
    """Notes how far the work is when a fit begins."""

    heard: ClassVar[list[float]] = []
    told: ClassVar[Progress]

    def fit(self, X, y, sample_weight=None):
        self.heard.append(self.told.done)
        with progress.portion(0.5):  # whatever the parts of a fit are, they are parts of this fit
            return super().fit(X, y, sample_weight)


def test_each_fit_of_a_search_is_told_by_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Told, "heard", [])
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    search = CalibratedSearchCV(_Told(), {"C": [0.1, 1.0]}, cv=3)
    with Progress("searching", unit="") as told:
        monkeypatch.setattr(_Told, "told", told, raising=False)
        heard = search.fit(X, y).decision_function(X)
        assert told.done == pytest.approx(1.0)
    # Six fits to eight objects in folds, one to all twelve.
    assert _Told.heard == pytest.approx([8 * i / 60 for i in range(7)])
    np.testing.assert_array_equal(search.fit(X, y).decision_function(X), heard)
    with Progress("searching", unit="") as told:  # in other processes, nobody hears of single fits
        CalibratedSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, n_jobs=2).fit(X, y)
        assert told.done == pytest.approx(1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    """Return a folder with a long table, short series and sequences."""
    path = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60_000, 2)).round(3).tolist()
    rows = [f"o{i // 20},{i % 20},{a},{b},{'xy'[i // 20 % 2]}\n" for i, (a, b) in enumerate(values)]
    (path / "long.csv").write_text("id,time,a,b,label\n" + "".join(rows))
    (path / "few.csv").write_text("id,time,a,b,label\n" + "".join(rows[:1200]))
    letters = ["".join(row) for row in rng.choice(list("ACGT"), (80, 50))]
    (path / "dna.fa").write_text("".join(f">{i} class={i % 2}\n{row}\n" for i, row in enumerate(letters)))
    assert main(["train", str(path / "few.csv"), "-r", "fisher_svm", "-o", str(path / "m.gk"), "--quiet"]) == 0
    return path


COMMANDS = [
    ("info", "long.csv"),
    ("convert", "long.csv", "-o", "out.jsonl"),
    ("train", "few.csv", "-r", "series", "-o", "out.gk"),
    ("train", "dna.fa", "-o", "out.gk"),
    ("evaluate", "dna.fa", "-r", "symbols", "--folds", "2"),
    ("predict", "m.gk", "long.csv", "-o", "out.csv"),
    ("gram", "dna.fa", "--kernel", "product", "-o", "out.npy"),
    ("map", "dna.fa", "--kernel", "spectrum", "--method", "tsne", "-o", "out.csv"),
    ("cluster", "dna.fa", "--kernel", "spectrum"),
    ("compare", "dna.fa", "dna.fa", "--kernel", "spectrum", "--permutations", "60000"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: "-".join(arguments[:2]))
def test_commands_tell_how_long_they_will_take(arguments, folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(progress, "QUIET", 0.02)
    monkeypatch.setattr(progress, "PAUSE", 0.02)
    assert main(list(arguments)) == 0
    lines = capsys.readouterr().err.splitlines()
    works = {line.partition(":")[0] for line in lines if "so far" in line or "left" in line}
    assert any(re.search(r"about .* s left", line) for line in lines), lines
    for work in works:  # nothing is told by the time so far alone
        own = [line for line in lines if line.startswith(f"{work}:")]
        assert len(own) < 25 or any("left" in line for line in own), own
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr().err == ""
