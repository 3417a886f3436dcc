"""Every command from files to answers: the same as in Python, whole files, clear errors, documented exit codes."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import load_npz

import genkern
from genkern.cli.interruption import interruptible
from genkern.cli.main import COMMANDS, main
from genkern.cli.options import KERNELS, KINDS, READING
from genkern.datasets import load_japanese_vowels, load_splice_junctions
from genkern.papers.shared.report import Report, Table
from genkern.papers.shared.study import Study

CODE = "import sys; from genkern.cli.main import main; sys.exit(main())"
INSTALLED = Path(sys.executable).with_name("genkern")
COMMAND = [str(INSTALLED)] if INSTALLED.exists() else [sys.executable, "-c", CODE]


def run(*arguments: str, cwd: Path | None = None, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=cwd, check=False, **settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with files of every kind of data."""
    path = tmp_path_factory.mktemp("files")
    dna = load_splice_junctions()
    chosen = np.concatenate([np.flatnonzero(dna.y == label)[:20] for label in dna.classes])
    dna = dna.take(chosen)
    lines = [f">{name} class={label}\n{x}\n" for name, label, x in zip(dna.ids, dna.y, dna.X)]
    (path / "dna.fasta").write_text("".join(lines))
    for label in ("EI", "IE"):
        (path / f"{label}.fa").write_text("".join(f">{i}\n{x}\n" for i, x in enumerate(dna.X) if dna.y[i] == label))
    vowels = load_japanese_vowels()
    some = np.concatenate([np.flatnonzero(vowels.y == label)[:12] for label in vowels.classes[:3]])
    few = vowels.take(some)
    genkern.io.write(genkern.Dataset(few.X, few.y, kind="series"), path / "vowels.ts")
    rows = ["text,topic\n"]
    rows += [f"my thesis advisor number {i} and my classes,student\n" for i in range(12)]
    rows += [f"professor and chair number {i} of the department,faculty\n" for i in range(12)]
    (path / "pages.csv").write_text("".join(rows))
    return path


def answer_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    """Run a command in this process and return its JSON."""
    assert main([*map(str, arguments), "--json", "--quiet"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_of_every_command_is_light(name: str) -> None:
    code = (
        f"import sys; from genkern.cli.main import main; main([{name!r}, '--help']);"
        "print([m for m in ('numpy', 'numba', 'sklearn', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.endswith("[]\n")
    assert "--json" in shown
    assert "--quiet" in shown
    assert "--debug" in shown


def test_lists_of_options_are_those_of_the_library() -> None:
    from genkern import similarity
    from genkern.data import kinds
    from genkern.io.options import Options

    assert set(KINDS) == set(kinds.KINDS)
    assert similarity.KERNELS == KERNELS
    assert set(READING) <= set(Options.__dataclass_fields__)


def test_recipes_by_name_are_all_there_are() -> None:
    from genkern import recipes
    from genkern.cli.learners import RECIPES, make_recipe

    helpers = {"AutoClassifier", "auto", "candidates"}
    assert set(RECIPES) - {"auto"} == set(recipes.__all__) - helpers
    for name in RECIPES:
        assert hasattr(make_recipe(name, random_state=1, n_jobs=1, alphabet=None, budget=None, kind=None), "predict")


def test_info_says_what_the_library_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(folder / "dna.fasta")]) == 0
    assert capsys.readouterr().out.splitlines() == genkern.read(folder / "dna.fasta").summary()
    assert answer_of(capsys, "info", folder / "vowels.ts")["kind"] == "series"


def test_evaluate_is_the_function(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "predictions.csv"
    found = answer_of(
        capsys, "evaluate", folder / "dna.fasta", "-r", "spectrum_svm", "-r", "fisher_svm", "--folds", 3, "-o", out
    )
    data = genkern.read(folder / "dna.fasta")
    recipes = {
        "spectrum_svm": genkern.recipes.spectrum_svm(random_state=0),
        "fisher_svm": genkern.recipes.fisher_svm(random_state=0),
    }
    wanted = genkern.evaluate(data.X, data.y, recipes, folds=3, random_state=0)
    assert {row["recipe"]: row["error"] for row in found["recipes"]} == {row.name: row.error for row in wanted.rows}
    with open(out, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == list(data.ids)
    assert [row["spectrum_svm"] for row in rows] == wanted["spectrum_svm"].predictions[0].tolist()


def test_one_file_per_class(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [f"{label}={folder / label}.fa" for label in ("EI", "IE")]
    found = answer_of(capsys, "evaluate", *files, "-r", "spectrum_svm", "--folds", 2)
    assert (found["objects"], found["classes"]) == (40, ["EI", "IE"])
    assert main(["evaluate", files[0], str(folder / "IE.fa")]) == 2
    assert "Either all files have a class" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "recipe", "options"),
    [
        ("dna.fasta", "spectrum_svm", []),
        ("vowels.ts", "fisher_svm", []),
        ("vowels.ts", "product_svm", []),
        ("pages.csv", "text", ["--text", "text", "--label", "topic"]),
    ],
)
def test_train_here_and_predict_anywhere(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, recipe: str, options: list[str]
) -> None:
    model, out = tmp_path / "model.gk", tmp_path / "predictions.csv"
    trained = answer_of(capsys, "train", folder / file, "-r", recipe, "-o", model, *options)
    assert trained["objects"] == sum(trained["classes"].values())
    loaded = genkern.load(model)
    keywords = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2])}
    data = genkern.read(folder / file, **keywords)
    answer = run("predict", str(model), str(folder / file), "-o", str(out), "--batch", "7", *options)  # its own process
    assert answer.returncode == 0, answer.stderr
    with open(out, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == [str(name) for name in data.ids or range(len(data))]
    assert [row["prediction"] for row in rows] == [str(label) for label in loaded.predict(data.X)]
    fresh = genkern.recipes.__dict__[recipe](random_state=0).fit(data.X, data.y)
    genkern.save(fresh, tmp_path / "python.gk")
    found = answer_of(capsys, "predict", tmp_path / "python.gk", folder / file, "-o", out, *options)
    assert found["errors"] == int(np.sum(fresh.predict(data.X).astype(str) != data.y.astype(str)))


def test_auto_trains_reports_and_gives_probabilities(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "model.gk", tmp_path / "predictions.csv"
    trained = answer_of(capsys, "train", folder / "vowels.ts", "-o", model, "--budget", "20s")
    assert trained["chosen"] in [trial["name"] for trial in trained["tried"]]
    answer_of(capsys, "predict", model, folder / "vowels.ts", "-o", out)
    with open(out, newline="") as stream:
        rows = list(csv.DictReader(stream))
    shares = np.array([[float(value) for name, value in row.items() if name.startswith("p_")] for row in rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-4)


def test_explain_shows_what_the_function_returns(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.gk"
    answer_of(capsys, "train", folder / "dna.fasta", "-r", "spectrum_svm", "-o", model)
    data = genkern.read(folder / "dna.fasta")
    name = str(data.ids[4])
    found = answer_of(capsys, "explain", model, folder / "dna.fasta", "--object", name, "-o", tmp_path / "e.png")
    wanted = genkern.explain(genkern.load(model), data.X[4])
    assert found[name]["decision"] == wanted.decision
    np.testing.assert_array_equal(found[name]["positions"], wanted.positions)
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    answer_of(capsys, "explain", model, folder / "dna.fasta", "--object", name, "-o", tmp_path / "e.csv")
    with open(tmp_path / "e.csv", newline="") as stream:
        total = sum(float(row["contribution"]) for row in csv.DictReader(stream) if row["part"] != "position")
    np.testing.assert_allclose(total, wanted.decision, rtol=1e-9)
    assert main(["explain", str(model), str(folder / "dna.fasta"), "--object", "nobody"]) == 3
    assert "no object has the id 'nobody'" in capsys.readouterr().err


def test_explain_takes_a_named_column_of_labels_beside_a_class(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = ["rec,activity,x,y"]
    for i in range(12):
        rows += [f"r{i},{'ab'[i % 2]},{u:.3f},{v:.3f}" for u, v in rng.normal(i % 2, 1.0, (8, 2))]
    table, model = tmp_path / "t.csv", tmp_path / "m.gk"
    table.write_text("\n".join(rows) + "\n")
    columns = [str(table), "--kind", "series", "--id", "rec", "--label", "activity", "-q"]
    assert main(["train", *columns, "-r", "fisher_svm", "-o", str(model)]) == 0
    assert main(["explain", str(model), *columns]) == 0
    for each in ("a", "b"):
        where = tmp_path / f"{each}.csv"
        assert main(["explain", str(model), *columns, "--object", "r3", "--class", each, "-o", str(where)]) == 0
        assert where.read_text().splitlines()[1].startswith(f"r3,{each},")


@pytest.mark.parametrize(("name", "recipe"), [("dna.fasta", "spectrum_svm"), ("vowels.ts", "fisher_svm")])
def test_explain_tells_what_drives_the_decisions_about_a_set(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, recipe: str
) -> None:
    model = tmp_path / "model.gk"
    answer_of(capsys, "train", folder / name, "-r", recipe, "-o", model)
    data = genkern.read(folder / name)
    wanted = genkern.explain_set(genkern.load(model), data.X, data.y)
    found = answer_of(capsys, "explain", model, folder / name, "-o", tmp_path / "e.png")
    assert found["objects"] == len(data)
    for part, means in (("block", wanted.by_block()), ("channel", wanted.by_channel())):
        assert {key: each["absolute"] for key, each in found[f"by {part}"].items()} == {
            key: mean.absolute for key, mean in means.items()
        }
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    answer_of(capsys, "explain", model, folder / name, "-o", tmp_path / "e.csv")
    with open(tmp_path / "e.csv", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["part"] == "feature" and row["class"] == ""]
    np.testing.assert_allclose(sum(float(row["mean"]) for row in rows), wanted.absolute.sum(), rtol=1e-9)
    assert main(["explain", str(model), str(folder / name)]) == 0
    assert str(wanted) in capsys.readouterr().out
    assert main(["explain", str(model), str(folder / name), "--class", "x"]) == 2


@pytest.mark.parametrize("name", ["dna.fasta", "vowels.ts"])
def test_gram_map_cluster_and_compare(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    data = genkern.read(folder / name)
    answer_of(capsys, "gram", folder / name, "--kernel", "fisher", "-o", tmp_path / "k.npy")
    K = np.load(tmp_path / "k.npy", allow_pickle=False)
    features = genkern.recipes.fisher_svm(random_state=0)[:-1].fit_transform(data.X)
    np.testing.assert_allclose(K, features @ features.T, atol=1e-12)  # rows have unit length
    zarr = pytest.importorskip("zarr")
    for _ in range(2):  # the second time all blocks are there
        answer_of(capsys, "gram", folder / name, "--kernel", "fisher", "--memory", "1MB", "-o", tmp_path / "k.zarr")
        np.testing.assert_allclose(zarr.open_array(str(tmp_path / "k.zarr"), mode="r")[:], K, atol=1e-12)
    answer_of(capsys, "gram", folder / name, "--kernel", "fisher", "--top", 2, "-o", tmp_path / "few.npz")
    assert (np.diff(load_npz(tmp_path / "few.npz").indptr) == 2).all()
    answer_of(capsys, "gram", folder / name, "--kernel", "fisher", "-o", tmp_path / "k.csv")
    with open(tmp_path / "k.csv", newline="") as stream:
        np.testing.assert_array_equal([list(map(float, row[1:])) for row in list(csv.reader(stream))[1:]], K)
    answer_of(capsys, "map", folder / name, "--kernel", "fisher", "-o", tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    answer_of(capsys, "map", folder / name, "--kernel", "fisher", "--method", "tsne", "-o", tmp_path / "map.csv")
    with open(tmp_path / "map.csv", newline="") as stream:
        assert [row["id"] for row in csv.DictReader(stream)] == [str(i) for i in data.ids or range(len(data))]
    found = answer_of(capsys, "cluster", folder / name, "--kernel", "fisher", "-k", 3, "-o", tmp_path / "c.csv")
    assert found["clusters"] == 3
    assert sum(found["sizes"]) == len(data)
    same = answer_of(capsys, "compare", folder / name, folder / name, "--kernel", "fisher")
    assert same["p_value"] > 0.5


def test_compare_sees_a_difference(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer_of(capsys, "compare", folder / "EI.fa", folder / "IE.fa", "--kernel", "spectrum")
    assert found["objects"] == [20, 20]
    assert found["p_value"] < 0.05


def test_convert_keeps_everything(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer_of(capsys, "convert", folder / "vowels.ts", "-o", tmp_path / "v.npz")
    before, after = genkern.read(folder / "vowels.ts"), genkern.read(tmp_path / "v.npz")
    assert all(np.array_equal(a, b) for a, b in zip(before.X, after.X))
    assert before.y.tolist() == after.y.tolist()


@pytest.mark.parametrize(
    ("words", "found"),
    [("genkern ev", "evaluate"), ("genkern train --rec", "--recipe"), ("genkern gram --kernel f", "fisher")],
)
def test_the_shell_completes(words: str, found: str) -> None:
    settings = {"_GENKERN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    assert f"plain,{found}\n" in run(env={**os.environ, **settings}).stdout


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "npz", "ts", "csv.gz", "jsonl.zst", "ts.xz"])
def test_every_format_trains_the_same(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    data = genkern.read(folder / "vowels.ts")
    recipe = genkern.recipes.fisher_svm(2).fit(data.X, data.y)
    genkern.save(recipe, tmp_path / "m.gk")
    answer_of(capsys, "convert", folder / "vowels.ts", "-o", tmp_path / f"v.{ending}")
    found = answer_of(capsys, "predict", tmp_path / "m.gk", tmp_path / f"v.{ending}", "-o", tmp_path / "p.csv")
    assert found["objects"] == len(data)
    assert found["errors"] == int(np.sum(recipe.predict(data.X) != data.y))


@pytest.mark.filterwarnings("ignore:.*did not converge")  # few sequences, and a tight tolerance
def test_an_experiment_is_reproduced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (report,) = answer_of(capsys, "reproduce", "mean_map_table", "--quick", "--out", tmp_path, "-j", 1)
    table = report["tables"][0]
    errors = {row[0]: float(row[3].split()[0]) for row in table["rows"]}
    assert len(errors) == 7
    assert max(errors.values()) < 20.0  # nobody can do better than 6; guessing has 50
    assert "A quick run" in (tmp_path / "mean_map_table.md").read_text()
    assert "A quick run" in (tmp_path / "mean_map_table.html").read_text()


def test_kernels_are_compared_one_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (report,) = answer_of(capsys, "reproduce", "kernels", "--quick", "-o", tmp_path, "-j", 1)
    (table,) = report["tables"]
    errors = {f"{row[0]}: {row[1]}": float(row[2].split()[0]) / 100 for row in table["rows"]}
    assert len(errors) == 12
    windows = {name: error for name, error in errors.items() if name.startswith("splice")}
    aware = [error for name, error in windows.items() if "60 states" in name or "quadratic" in name]
    assert max(aware) < 0.25 < min(set(windows.values()) - set(aware))  # who knows the position, and who does not
    assert max(error for name, error in errors.items() if name.startswith("Japanese")) < 0.5  # guessing has 0.8


def test_all_experiments_run_but_those_without_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, data: Path | None, **options: Any) -> Report:
        study = Study(name, data=data)
        protocol = "Nothing." if name == "here" else str(study.folder("far"))
        return Report(name, f"Title of {name}", "A paper.", protocol, [Table("None.", ["a"], [[1]])])

    monkeypatch.setattr("genkern.cli.reproduce.EXPERIMENTS", {"here": "needs none", "far": "needs a set"})
    monkeypatch.setattr("genkern.papers.run", run)
    monkeypatch.delenv("GENKERN_DATA", raising=False)
    assert main(["reproduce", "--out", str(tmp_path)]) == 3
    shown = capsys.readouterr()
    assert "Title of here" in shown.out
    assert "the data set far is not part of the package" in shown.err
    page = (tmp_path / "index.html").read_text()
    assert '<a href="here.html">Title of here</a>' in page
    assert "Not run" in page
    assert (tmp_path / "here.html").exists()
    assert not (tmp_path / "far.html").exists()
    (tmp_path / "data" / "far").mkdir(parents=True)
    assert main(["reproduce", "--out", str(tmp_path), "--data", str(tmp_path / "data")]) == 0
    assert "Not run" not in (tmp_path / "index.html").read_text()
    capsys.readouterr()
    assert list(answer_of(capsys, "reproduce", "--list")) == ["here", "far"]
    assert main(["reproduce", "far", "--out", str(tmp_path)]) == 3


def test_recipes_know_the_alphabet_of_the_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_of(capsys, "train", folder / "dna.fasta", "-r", "symbols", "-o", tmp_path / "m.gk")
    kernels = dict(genkern.load(tmp_path / "m.gk").named_steps["kernels"].transformer_list)
    assert "odds" in kernels  # chains of DNA


def test_doctor_knows_this_installation(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer_of(capsys, "doctor")
    assert found["versions"]["numpy"] == np.__version__
    assert found["genkern"] == genkern.__version__


# --- what goes wrong


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["evaluate"], 2, "Missing argument"),
        (["evaluate", "x.fa", "--folds", "1"], 2, "folds"),
        (["evaluate", "x.fa", "--recipe", "magic"], 2, "magic"),
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["evaluate", "x.fa", "-r", "series", "--budget", "5min"], 2, "--budget is for --recipe auto"),
        (["predict", "m.gk", "x.fa", "--json"], 2, "name a file for the predictions"),
        (["reproduce", "nothing"], 2, "no experiment is called 'nothing'"),
        (["info", "not-there.fa"], 3, "not-there.fa"),
        (["train", "x.fa", "-o", "no/such/folder/model.gk"], 3, "does not exist"),
        (["gram", "x.fa", "-o", "gram.txt"], 2, "must end in .zarr, .npy, .npz or .csv"),
    ],
)
def test_wrong_usage_and_missing_files(
    arguments: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    shown = capsys.readouterr()
    assert text in shown.err
    assert "Traceback" not in shown.err


def bad_files(folder: Path, path: Path) -> dict[str, Path]:
    """Return files that hold no data, by what is wrong with them."""
    whole = gzip.compress((folder / "dna.fasta").read_bytes())
    contents = {
        "cut.fasta.gz": whole[: len(whole) // 2],
        "wrong.fasta": ">a class=x\nAC\xe9GT\n".encode("latin-1"),
        "binary.csv": bytes(range(256)) * 20,
        "empty.fasta": b"",
        "one_class.fasta": b">a class=x\nACGT\n>b class=x\nACGA\n",
        "unlabelled.fasta": b">a\nACGT\n>b\nACGA\n",
    }
    for name, content in contents.items():
        (path / name).write_bytes(content)
    (path / "folder.fasta").mkdir()
    return {name: path / name for name in [*contents, "folder.fasta"]}


def test_broken_files_get_one_paragraph_and_code_3(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, path in bad_files(folder, tmp_path).items():
        code = main(["train", str(path), "-o", str(tmp_path / "model.gk"), "-r", "spectrum_svm"])
        shown = capsys.readouterr().err
        assert code == 3, (name, shown)
        assert "Traceback" not in shown, name
        assert "defect" not in shown, name
        assert not (tmp_path / "model.gk").exists(), name


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    (tmp_path / "empty.fasta").write_bytes(b"")
    assert "Traceback" in run("info", str(tmp_path / "empty.fasta"), "--debug").stderr


def test_a_model_that_is_none_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.gk").write_bytes(b"\x80\x04cos\nsystem\n")
    assert main(["predict", str(tmp_path / "model.gk"), str(folder / "dna.fasta")]) == 3
    assert "model.gk" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [*COMMAND, "info", str(folder / "dna.fasta")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert answer.returncode == 3
    assert "No space left" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_folder_without_permission(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genkern.data.whole_files.os.access", lambda *_: False)  # root may write everywhere
    assert main(["train", str(folder / "dna.fasta"), "-o", str(tmp_path / "model.gk")]) == 3
    assert "no permission to write" in capsys.readouterr().err


def test_many_objects_and_odd_ones(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer_of(capsys, "train", folder / "dna.fasta", "-r", "spectrum_svm", "-o", tmp_path / "m.gk")
    letters = np.random.default_rng(0).choice(np.frombuffer(b"ACGT", np.uint8), (100_000, 20))
    many = tmp_path / "many.fa"
    many.write_text("".join(f">s{i}\n{row.tobytes().decode()}\n" for i, row in enumerate(letters)))
    assert answer_of(capsys, "predict", tmp_path / "m.gk", many, "-o", tmp_path / "p.csv")["objects"] == 100_000
    with open(tmp_path / "p.csv", newline="") as stream:
        assert [row["id"] for row in csv.DictReader(stream)] == [f"s{i}" for i in range(100_000)]
    (tmp_path / "twice.fa").write_text(">a class=x\nACGT\n>a class=y\nACGA\n")
    assert answer_of(capsys, "info", tmp_path / "twice.fa")["rules"]["identifiers that come again, kept"]["count"] == 1
    (tmp_path / "mixed.fa").write_text(f">a class=x\n{'ACGT' * 10}\n>b class=y\n{'MKVLAWGREHQ' * 4}\n")
    assert main(["info", str(tmp_path / "mixed.fa")]) == 3
    assert "alphabet" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
class Unfinished:
    """An object whose destructor is interrupted, and one that fails after that."""

    def __init__(self, interrupted: bool):
        self.interrupted = interrupted

    def __del__(self) -> None:
        if self.interrupted:
            signal.raise_signal(signal.SIGINT)
            sum(range(10))
        raise AttributeError("never finished")


def _drop_and_work_on(done: list[str]) -> None:
    Unfinished(True)
    for _ in range(1000):
        time.sleep(0.001)
    done.append("all")


def test_an_interruption_that_meets_a_destructor_ends_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    hook, handler, done = sys.unraisablehook, signal.getsignal(signal.SIGINT), list[str]()
    try:
        with pytest.raises(KeyboardInterrupt), interruptible():
            _drop_and_work_on(done)
        assert not done
        Unfinished(False)
        assert signal.getsignal(signal.SIGINT) is handler
        assert capsys.readouterr().err == ""
    finally:
        sys.unraisablehook = hook


def test_failing_destructors_are_told_of_where_nobody_interrupts() -> None:
    told: list[object] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: told.append(unraisable.exc_type)
    try:
        with interruptible():
            Unfinished(False)
    finally:
        sys.unraisablehook = hook
    assert told == [AttributeError]


def test_interruption_leaves_the_old_file_whole(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.gk"
    model.write_bytes(b"old")
    process = subprocess.Popen(
        [*COMMAND, "evaluate", str(folder / "vowels.ts"), "-r", "series", "--repeats", "50", "-o", str(model)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which background jobs of a shell ignore
    )
    time.sleep(4.0)
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130, shown
    assert model.read_bytes() == b"old"
    assert "Traceback" not in shown
    assert [path.name for path in tmp_path.iterdir()] == ["model.gk"]
