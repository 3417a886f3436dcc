"""Errors of commands name options of commands, once each and with the right place; what they advise can be done."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from genkern import AutoClassifier, Dataset, MarkovChainEstimator, PlugInClassifier, Spectrum, read, save
from genkern.cli import main as cli
from genkern.cli.learners import READS, RECIPES, STRONG, warn_of_time
from genkern.cli.options import LITTLE, READING

TABLE = "id,time,x,site,label\n" + "".join(f"o{i},{t},{i + t}.5,s,{'ab'[i % 2]}\n" for i in range(4) for t in range(3))
BROKEN = {
    "latin.csv": ("text,label\ncaf\xe9 au lait,x\n".encode("latin-1"), "--encoding 'latin-1'"),
    "numbers.csv": (b"1,2\n3,4\n", "--no-header"),
    "points.csv": (b"id,x,label\na,1,u\na,2,u\nb,1,v\nb,3,v\n", "--kind 'points'"),
    "text.csv": (TABLE.encode(), "by --channels, others by --label, --group or --id."),
    "star.fa": (b">a class=x\nACGTACGTACGTACGTACGTA*\n>b class=y\nACGTACGTACGTACGTACGTA\n", "--alphabet"),
    "gaps.fa": (b">a class=x\nAC--ACGT\n>b class=y\nACGT\n", "--gaps 'remove'"),
    "some.fa": (b">a class=x\nACGT\n>b\nACGT\n", "--without label"),
    "unknown.dat": (b"words and more", "--format one of"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_remedy_names_options(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_bytes(BROKEN[name][0])
    assert cli.main(["info", str(path), "-q"]) == cli.DATA
    told = capsys.readouterr().err
    assert BROKEN[name][1] in told
    assert not re.search(rf"\b({'|'.join(READING)})=", told)


@pytest.mark.parametrize(
    ("name", "remedy", "expected"),
    [
        ("numbers.csv", ["--no-header"], "2 objects, series"),
        ("latin.csv", ["--encoding", "latin-1"], "1 objects, documents"),
        ("some.fa", ["--without", "label"], "no labels"),
        ("text.csv", ["--group", "site"], "4 objects, series"),
    ],
)
def test_the_remedy_helps(
    name: str, remedy: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(BROKEN[name][0])
    assert cli.main(["info", str(path), "-q", *remedy]) == 0
    assert expected in capsys.readouterr().out


def test_what_a_file_says_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.fa"
    path.write_text("kind=label=\n>a\nACGT\n")
    assert cli.main(["info", str(path), "-q"]) == cli.DATA
    assert "Got 'kind=label='." in capsys.readouterr().err


def test_convert_names_its_own_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.fa"
    path.write_text(">a\nACGT\n")
    assert cli.main(["convert", str(path), "-q", "-o", str(tmp_path / "a.arff")]) == cli.DATA
    assert "name it by --to." in capsys.readouterr().err  # --format is that of the file that is read


@pytest.mark.parametrize("place", [Path("none") / "a.csv", Path()])
def test_a_place_that_cannot_be_written_is_told_once(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.fa"
    path.write_text(">a\nACGT\n")
    assert cli.main(["convert", str(path), "-q", "-o", str(tmp_path / place)]) == cli.DATA
    told = capsys.readouterr().err
    assert told.count("genkern:") == 1
    assert not told.strip().endswith("..")


def test_a_full_disk_behind_standard_output_is_told_with_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli._explain(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) == cli.DATA
    told = capsys.readouterr().err
    assert told.startswith("genkern: standard output: No space left on device. ")
    assert "room" in told


def test_each_spelling_of_missing_values_has_its_own_first_place(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,time,x\na,0,1\na,1,NA\na,2,2\na,3,nan\nb,0,?\nb,1,NA\n")
    found = {rule: entry["first"] for rule, entry in read(path).meta["rules"].items()}
    lines = {"NA": 3, "NaN": 5, "?": 6}
    assert found == {f"missing values ({name})": f"{path}, line {line}" for name, line in lines.items()}


def test_stockholm_rows_have_what_gs_says_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.sto"
    path.write_text(
        "# STOCKHOLM 1.0\n#=GF ID fam\n#=GS a DE class=x of a\n#=GS b DE class=y\n#=GS a OS Homo\n#=GS b OS Mus\n"
        "a ACGT\nb AC-T\n//\n"
    )
    data = read(path, group="OS")
    assert data.y.tolist() == ["x", "y"]
    assert data.groups.tolist() == ["Homo", "Mus"]
    assert list(data.ids) == ["a", "b"]
    assert read(path, label="ID").y.tolist() == ["fam", "fam"]


def test_a_class_is_told_as_it_is_spelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.fa"
    path.write_text("".join(f">{i} class=q\nACGT{'ACGT'[i]}\n" for i in range(4)))
    assert cli.main(["train", str(path), "-q", "-o", str(tmp_path / "m.gk")]) == cli.DATA
    assert "one class only: 'q'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "gram", "bench"])
def test_no_threads_are_wrong_usage(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [] if command == "bench" else ["a.fa", "-o", str(tmp_path / "out.npy")]
    assert cli.main([command, *files, "--jobs", "0"]) == cli.USAGE
    assert "--jobs" in capsys.readouterr().err


def test_samples_of_two_alphabets_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, letters in (("dna", "ACGTTGCAACGTAACCGGTT"), ("protein", "MKLVWWQENPDSTYHIRFGC")):
        (tmp_path / name).write_text("".join(f">{i}\n{letters[i:]}\n" for i in range(4)))
    assert cli.main(["compare", str(tmp_path / "dna"), str(tmp_path / "protein"), "-q"]) == cli.DATA
    told = capsys.readouterr().err
    assert re.search(r"dna holds symbols of dna, .*protein of protein", told)
    assert "--alphabet" in told


def test_predict_says_which_objects_a_model_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = ["ACGT", "AAAA", "CCCC", "GGCC"] * 3, [0, 1, 0, 1] * 3
    save(make_pipeline(Spectrum(2, alphabet="dna"), LogisticRegression()).fit(X, y), tmp_path / "m.gk")
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": "s{i}", "text": "ACGT{"Z" if i == 5 else ""}"}}\n' for i in range(8)))
    options = ["--batch", "3", "--kind", "symbols", "-q", "-o", str(tmp_path / "p.csv")]
    assert cli.main(["predict", str(tmp_path / "m.gk"), str(path), *options]) == cli.DATA
    told = capsys.readouterr().err
    assert "'s3' to 's5', counted from 0 here" in told  # the sixth object is the third of the second batch
    assert "object 2, position 4" in told
    assert not (tmp_path / "p.csv").exists()


def test_a_budget_that_is_no_time_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "a.fa", "-o", str(tmp_path / "m.gk"), "--budget", "soon"]) == cli.USAGE
    assert "--budget must be a time such as 30s, 5min or 1h. Got 'soon'." in capsys.readouterr().err


@pytest.mark.parametrize(("extra", "fits"), [([], 4), (["--repeats", "2"], 8), (["--report", "r.html"], 5)])
def test_a_budget_is_for_all_of_evaluate(
    extra: list[str], fits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class SeenError(Exception):
        pass

    def evaluate(X: object, y: object, recipes: dict[str, AutoClassifier], **settings: object) -> None:
        raise SeenError(recipes["auto"].budget, recipes["auto"].kind, recipes["auto"].n_jobs)

    monkeypatch.setattr("genkern.evaluation.evaluate", evaluate)
    monkeypatch.chdir(tmp_path)
    Path("a.fa").write_text("".join(f">{i} class={'xy'[i % 2]}\n{'ACGT' * (i + 1)}\n" for i in range(8)))
    cli.main(["evaluate", "a.fa", "--folds", "4", "--budget", "2min", *extra, "--debug"])
    assert f"SeenError: ({120 / fits}, 'symbols', 1)" in capsys.readouterr().err  # so few letters need one process
    cli.main(["evaluate", "a.fa", "--folds", "4", "--jobs", "2", "--debug"])
    assert "SeenError: (None, 'symbols', 2)" in capsys.readouterr().err
    monkeypatch.setitem(LITTLE, "symbols", 144)
    cli.main(["evaluate", "a.fa", "--folds", "4", "--debug"])
    assert "SeenError: (None, 'symbols', -1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("letters", "options", "told"),
    [
        (50_000, ["auto"], "tries 4 recipes in 5 folds, 3 times: some 63 fits to most of 2 objects of 50000 letters"),
        (49_998, ["auto"], ""),
        (50_000, ["symbols"], ""),
    ],
)
def test_a_person_is_told_at_the_start_that_auto_takes_its_time(
    letters: int, options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Dataset(["AC" * (letters // 4 + 1), "GT" * (letters // 4 - 1)], [0, 1], kind="symbols")
    warn_of_time(options, data, 3, None)
    said = capsys.readouterr().err
    assert told in said
    assert bool(told) == bool(said)
    assert not told or said.endswith("--budget 5min bounds it; -r symbols fits one recipe only.\n")
    warn_of_time(options, data, 3, "5min")
    assert not capsys.readouterr().err


def test_debug_keeps_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", str(tmp_path / "none.fa"), "-q", "--debug"]) == cli.DATA
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert told.splitlines()[-1].startswith("genkern: ")


def test_explain_names_the_recipe_that_can_be_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "a.fa", tmp_path / "m.gk"
    path.write_text(
        "".join(f">{i} class={'xy'[i % 2]}\n{'AC' if i % 2 else 'GT'}{'ACGT' * (i % 3 + 1)}\n" for i in range(12))
    )
    data = read(path)
    chosen = AutoClassifier(candidates=["plug_in", "spectrum_svm"], cv=2, random_state=0).fit(data.X, data.y)
    chosen.best_estimator_, chosen.best_name_ = PlugInClassifier(MarkovChainEstimator(0)).fit(data.X, data.y), "plug_in"
    save(chosen, model)
    assert cli.main(["explain", str(model), str(path), "-q"]) == cli.DATA
    assert "train one that is linear: --recipe spectrum_svm." in capsys.readouterr().err


def test_files_of_one_length_each_are_not_aligned_together(tmp_path: Path) -> None:
    paths = [tmp_path / "a.fa", tmp_path / "b.fa"]
    paths[0].write_text(">a\nACGTACGT\n>b\nACGAACGT\n")
    paths[1].write_text(">c\nACGTAC\n>d\nACGAAC\n")
    assert [read(path).meta["aligned"] for path in paths] == ["all of one length"] * 2
    assert read(paths).meta["aligned"] == "lengths differ"
    assert read([paths[0], paths[0]]).meta["aligned"] == "all of one length"


@pytest.mark.parametrize("recipe", ["series", "fisher_svm"])
def test_recipes_that_go_by_order_refuse_points(
    recipe: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "places.csv"
    path.write_text(TABLE)
    reads = ["--group", "site", "--kind", "points", "--without", "time", "--channels", "x"]
    assert cli.main(["evaluate", str(path), *reads, "-r", recipe, "-q"]) == cli.USAGE
    told = capsys.readouterr().err
    assert f"{recipe} goes by the order of observations" in told
    assert "--recipe points, product_svm, meanmap_svm or auto; or read them as series, by --kind series" in told


def test_labels_that_are_no_classes_of_the_model_are_no_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, path, out = tmp_path / "m.gk", tmp_path / "a.fa", tmp_path / "p.csv"
    save(
        PlugInClassifier(MarkovChainEstimator(0, alphabet="dna", pseudocount=1.0)).fit(["AAA", "TTT"], ["a", "t"]),
        model,
    )
    told = {}
    for labels in ("xyz", "atz", "aaa"):
        path.write_text("".join(f">{i} class={label}\nAAA\n" for i, label in enumerate(labels)))
        assert cli.main(["predict", str(model), str(path), "-o", str(out), "-q", "--batch", "1"]) == 0
        told[labels] = capsys.readouterr().out
        rows = out.read_text().splitlines()[1:]
        assert [row.split(",")[-1] for row in rows] == list(labels)
    assert told["xyz"].startswith(
        "3 objects, not compared with their labels: none (x, y, z) is a class of the model (a, t);"
    )
    assert told["atz"].startswith("3 objects, 2 of 3 wrong (66.7 %);")
    assert told["aaa"].startswith("3 objects, 0 of 3 wrong (0.0 %);")


def test_a_column_that_is_not_there_is_named_by_its_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    assert cli.main(["info", str(tmp_path / "a.csv"), "-q", "--id", "run"]) == cli.DATA
    assert "expected a column 'run', as --id says. Got the columns 'id', 'time', 'x'," in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recipe", "text", "reads", "told"),
    [
        ("series", ">a class=x\nACGT\n>b class=y\nACGA\n", "series, and these objects are symbols", "symbols or auto"),
        ("symbols", TABLE, "symbols or codes, and these objects are points", "points, product_svm or auto"),
        ("text", TABLE, "documents, and these objects are points", "meanmap_svm, points, product_svm or auto"),
    ],
)
def test_a_recipe_for_other_objects_is_wrong_usage(
    recipe: str, text: str, reads: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("a.fa" if text.startswith(">") else "a.csv")
    path.write_text(text)
    table = ["--group", "site", "--kind", "points", "--without", "time", "--channels", "x"] * (text is TABLE)
    for command in (["evaluate"], ["train", "-o", str(tmp_path / "m.gk")]):
        assert cli.main([*command, str(path), *table, "-r", recipe, "-q"]) == cli.USAGE
        said = capsys.readouterr().err
        assert f"{recipe} is for {reads}" in said
        assert f"{told}; or say what they are by --kind" in said


def test_every_recipe_has_the_kinds_that_it_reads() -> None:
    assert set(READS) == set(RECIPES) - {"auto"}
    for kind, strong in STRONG.items():
        assert kind in READS[strong]


def test_a_report_is_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "a.fa", "--report", str(tmp_path / "r.pdf")]) == cli.USAGE
    assert "r.pdf: the name must end in .html or .htm" in capsys.readouterr().err


def test_decimal_commas_are_read_by_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id;time;v\n" + "".join(f"r{i};{t};{t},5\n" for i in range(2) for t in range(3)))
    assert cli.main(["info", str(path)]) == cli.DATA
    assert "Say --decimal ',' if it is a decimal comma" in capsys.readouterr().err
    assert cli.main(["info", str(path), "--decimal", ","]) == 0
    assert "2 objects, series" in capsys.readouterr().out
