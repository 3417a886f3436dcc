"""Progress is silent for a second, then tells on standard error how far the work is and how long it will take."""

from __future__ import annotations

import io
import time

import pytest

from genkern import progress
from genkern.progress import Progress, spell_seconds


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
