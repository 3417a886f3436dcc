"""Series in .ts, .arff and .npz files and in arrays: channels, lengths, missing values, time stamps, layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_io_fuzz import same
from test_io_sequences import file, rules

from genkern import read
from genkern.io import ReadError, stream

NAN = float("nan")
TS = "# comment\n@problemName Two\n@timeStamps false\n@missing true\n@univariate false\n@dimensions 2\n"
TS += "@equalLength false\n@classLabel true a b\n@data\n"


def test_ts_files(tmp_path: Path) -> None:
    path = file(tmp_path, TS + "1,2.5,?:4,-5e-3,6:a\n\n0.1:NaN:b\n", "a.ts")
    data = read(path)
    same(data.X, [np.array([[1, 4], [2.5, -5e-3], [NAN, 6]]), np.array([[0.1, NAN]])])
    assert (data.y.tolist(), data.name, data.kind) == (["a", "b"], "Two", "series")
    assert rules(data) == {"missing values (?)": 1, "missing values (NaN)": 1}
    assert data.meta["lengths"] == [1, 3]
    assert read(path, label=False).y is None
    assert [len(part) for part in stream(path, batch=1)] == [1, 1]
    target = file(tmp_path, "@targetLabel true\n@data\n1,2:0.5\n3,4:1.5\n", "b.ts")
    assert read(target).y.tolist() == [0.5, 1.5]
    bare = file(tmp_path, "@classLabel false\n@data\n1,2\n3\n", "c.ts")
    assert read(bare).y is None


def test_time_stamps_are_sorted_and_joined(tmp_path: Path) -> None:
    head = "@timeStamps true\n@classLabel true a\n@data\n"
    data = read(file(tmp_path, head + "(0,1),(2,3),(1,?):(0,5),(1,6),(5,7):a\n", "a.ts"))
    same(data.X, [np.array([[1, 5], [NAN, 6], [3, NAN], [NAN, 7]])])
    assert rules(data) == {
        "missing values (?)": 1,
        "series with unsorted times, sorted": 1,
        "channels without a value at times of others, missing there": 2,
        "series with irregular times, taken as equal steps": 1,
    }
    dates = read(file(tmp_path, head + "(2024-01-01 00:00:00,1),(2024-01-01 00:01:00,2):a\n", "b.ts"))
    same(dates.X, [np.array([[1.0], [2.0]])])
    assert rules(dates) == {}
    for line, message in [
        ("(0,1),(0,2):a", "each time once"),
        ("(0,1),2:a", r"pairs \(time,value\)"),
        ("(x,1):a", "a time"),
        ("(0,1),(2024-01-01,2):a", "another form"),
    ]:
        with pytest.raises(ReadError, match=f"line 4: .*{message}"):
            read(file(tmp_path, head + line + "\n", "c.ts"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TS + "1,2:3,4:c\n", "line 10: expected one of the labels a, b. Got 'c'"),
        (TS + "1,2:a\n", "line 10: expected 2 channels. Got 1"),
        (TS + "1,2:3:a\n", "line 10: expected channels of one length. Got channels of lengths 2, 1"),
        (TS + "1,x:3,4:a\n", r"line 10: expected a number. Got 'x' \(channel 0, value 1\)"),
        (TS + "1,:3,4:a\n", "line 10: .*nothing between two commas"),
        (TS + "1,inf:3,4:a\n", "line 10: expected a finite number"),
        (TS + "1,1e999:3,4:a\n", "line 10: expected a finite number"),
        (TS + "1,1_0:3,4:a\n", "line 10: expected a number. Got '1_0'"),
        (TS, "expected series after @data"),
        ("@data\n1,2\n", "line 1: expected a line @classLabel"),
        ("@timeStamps maybe\n", "line 1: expected @timestamps true or false"),
        ("1,2,3\n", "line 1: expected a line that begins with '@'"),
        ("@classLabel false\n", "expected a line @data"),
    ],
)
def test_wrong_ts_files(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=message):
        read(file(tmp_path, text, "a.ts"))


def test_wrong_declarations_are_noted(tmp_path: Path) -> None:
    head = "@missing false\n@equalLength true\n@seriesLength 3\n@univariate true\n@classLabel false\n@data\n"
    data = read(file(tmp_path, head + "1,2,?\n1,2\n", "a.ts"))
    assert rules(data)["series of another length than declared, kept"] == 1
    assert rules(data)["series with missing values, although declared without, kept"] == 1


def test_arff_of_one_channel(tmp_path: Path) -> None:
    head = "% comment\n@RELATION 'a name'\n@attribute att1 numeric\n@attribute 'att2' REAL\n"
    head += "@attribute target {1,'b c'}\n@data\n"
    data = read(file(tmp_path, head + "1.5,?,1\n% x\n2, 3 ,'b c'\n", "a.arff"))
    same(data.X, [np.array([[1.5], [NAN]]), np.array([[2.0], [3.0]])])
    assert (data.y.tolist(), data.name) == (["1", "b c"], "a name")
    text = "@relation t\n@attribute words string\n@attribute class {x,y}\n@data\n"
    text += "'one, two three four',x\n\"a 'b c d'\",y\n"
    assert read(file(tmp_path, text, "b.arff")).X == ["one, two three four", "a 'b c d'"]
    for line, message in [
        ("1,2\n", "line 7: expected 3 values. Got 2"),
        ("1,2,c\n", "line 7: expected one of 1, b c for 'target'"),
        ("1,x,1\n", "line 7: expected a number. Got 'x' in column 'att2'"),
        ("{0 1}\n", "line 7: .*sparse"),
        ("1,'2,1\n", "line 7: .*quotes"),
    ]:
        with pytest.raises(ReadError, match=message):
            read(file(tmp_path, head + line, "c.arff"))
    features = head.replace("att1", "height").replace("att2", "width")
    with pytest.raises(ReadError, match=r"kind='series' .* kind='points'"):
        read(file(tmp_path, features + "1,2,1\n", "d.arff"))
    same(read(file(tmp_path, features + "1,2,1\n", "d.arff"), kind="points").X, [np.array([[1.0, 2.0]])])


def test_arff_of_several_channels(tmp_path: Path) -> None:
    head = "@relation m\n@attribute all relational\n@attribute t1 numeric\n@attribute t2 numeric\n@end all\n"
    head += "@attribute class {a,b}\n@data\n"
    path = file(tmp_path, head + r"'1,2\n3,4',a" + "\n" + r'"5,?\n7,8",b' + "\n", "a.arff")
    data = read(path)
    same(data.X, [np.array([[1.0, 3.0], [2.0, 4.0]]), np.array([[5.0, 7.0], [NAN, 8.0]])])
    assert data.y.tolist() == ["a", "b"]
    assert [part.y.tolist() for part in stream(path, batch=1)] == [["a"], ["b"]]
    for line, message in [
        (r"'1,2\n3',a", "rows of one length"),
        (r"'1,2',a" + "\n" + r"'1,2\n3,4',a", "line 9: .*1 channels"),
    ]:
        with pytest.raises(ReadError, match=message):
            read(file(tmp_path, head + line + "\n", "b.arff"))


def test_npz_of_values_and_lengths(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    split = np.array(["train", "test"])
    np.savez(path, values=values, lengths=[3, 2], y=[1, 2], split=split, speaker=["u", "v"])
    data = read(path)
    same(data.X, [values[:3].astype(float), values[3:].astype(float)])
    assert (data.y.tolist(), data.split.tolist(), data.meta["unused arrays"]) == ([1, 2], split.tolist(), ["speaker"])  # type: ignore[union-attr]
    assert data.part("test").X[0].shape == (2, 2)
    assert read(path, group="speaker").groups.tolist() == ["u", "v"]  # type: ignore[union-attr]
    assert read(path, label="speaker").y.tolist() == ["u", "v"]
    for arrays, message in [
        ({"values": values, "lengths": [3, 3]}, "add up"),
        ({"values": values, "lengths": [5, 0]}, "at least 1"),
        ({"values": values, "lengths": [3.0, 2.0]}, "integer lengths"),
        ({"values": values, "lengths": [3, 2], "y": [1]}, "one label for each of 2"),
        ({"values": [1.0, np.inf], "lengths": [2]}, "finite"),
        ({"a": values}, "the arrays a"),
        ({"X": np.zeros((2, 3, 4))}, r"layout='time-first'.*layout='channels-first'"),
        ({"X": np.zeros((2, 3), int)}, "kind='symbols' or kind='series'"),
        ({"X": np.array([2**60, 1]).reshape(1, 2), "kind": "x"}, "kind="),
    ]:
        np.savez(path, **arrays)  # type: ignore[arg-type]
        with pytest.raises(ReadError, match=message):
            read(path)
    np.savez(path, X=np.array([[2**60, 1]]))
    with pytest.raises(ReadError, match="float64 holds"):
        read(path, kind="series")
    np.savez(path, X=np.array([{"code": 1}], dtype=object))
    with pytest.raises(ReadError, match="without objects"):
        read(path)


def test_3d_arrays_are_taken_by_layout(tmp_path: Path) -> None:
    cube = np.arange(24.0).reshape(2, 3, 4)
    path = tmp_path / "a.npz"
    np.savez(path, X=cube, y=["a", "b"])
    turned: list[Any] = [cube[0].T.copy(), cube[1].T.copy()]
    for source in (path, cube):
        same(read(source, layout="channels-first").X, turned)
        same(read(source, layout="time-first").X, list(cube))
        with pytest.raises(ReadError, match="layout="):
            read(source)
    np.savez(path, X=cube[:, 0])
    same(read(path).X, [cube[0, 0][:, None], cube[1, 0][:, None]])
    np.savez(path, X=cube[:, 0].astype(int))
    assert read(path, kind="symbols").X[1].tolist() == [12, 13, 14, 15]


def test_constant_channels_are_reported(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", values=[[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]], lengths=[2, 1])
    assert read(tmp_path / "a.npz").meta["constant channels"] == ["number 1"]
    (tmp_path / "a.csv").write_text(
        "id,time,heat,site\n" + "".join(f"{i},{t},{i}{t}.5,7\n" for i in "12" for t in "34")
    )
    data = read(tmp_path / "a.csv")
    assert data.meta["constant channels"] == ["site"]
    assert {"columns: id id; time time; channels heat, site", "constant channels: site"} < set(data.summary())
