"""Everything a reader can paste must run: the Python blocks of the README and of docs/, and the docstring examples."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import matplotlib
import pytest

import genkern

matplotlib.use("Agg")

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "genkern" / "datasets" / "README.md",
]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(genkern.__path__, "genkern.")
    if not module.name.startswith("genkern.core")
)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}  # the blocks of a page follow each other
    text = page.read_text()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for match in re.finditer(r"^```python\n(.*?)^```", text, flags=re.S | re.M):
        line = text[: match.start(1)].count("\n")
        if ">>> " in match.group(1):
            session = doctest.DocTestParser().get_doctest(match.group(1), names, page.name, str(page), line)
            runner.run(session, clear_globs=False)
            names = session.globs
        else:
            exec(compile("\n" * line + match.group(1), str(page), "exec"), names)  # tracebacks show the page's line
    assert runner.failures == 0


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
    for target in re.findall(r"\]\(#([^)\s]+)\)", text):
        headings = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)]
        assert target in headings, f"{page.name}: #{target}"


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0
