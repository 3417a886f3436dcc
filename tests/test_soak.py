"""Some rounds of ``soak.py``, and that it would notice."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import soak


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """Keep what is there already, such as all collected tests, out of the collections of garbage after each round."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def test_some_rounds() -> None:
    states = soak.soak(lambda rounds, _: rounds == 5, print, warm=1)
    assert len(states) == 5


def test_results_that_change_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    count = iter(range(100))
    monkeypatch.setattr(soak, "TASKS", {"counter": lambda _: [float(next(count))]})
    with pytest.raises(AssertionError, match=r"round 1: results of \['counter'\]"):
        soak.soak(lambda rounds, _: rounds == 5, print)


@pytest.mark.parametrize("what", ["memory", "files", "left"])
def test_what_grows_is_told(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = []

    def leak(folder: soak.Path) -> list[float]:
        if what == "memory":
            kept.append(bytearray(b"x") * (64 << 20))
        else:
            kept.append(open(folder.parent / f"{len(kept)}" if what == "left" else folder / "open", "w"))  # noqa: SIM115
        return [0.0]

    monkeypatch.setattr(soak, "TASKS", {"leak": leak})
    with pytest.raises(AssertionError, match=f"{what if what != 'left' else '(files|left)'} grew"):
        soak.soak(lambda rounds, _: rounds == 5, print, warm=1)
    for one in kept:
        if hasattr(one, "close"):
            one.close()
