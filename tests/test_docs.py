"""Everything a reader can paste must run: the Python blocks of the README and of docs/, and the docstring examples."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from sklearn.base import clone

import genkern
from genkern import (
    CategoricalEstimator,
    FisherScore,
    FitEach,
    GaussianEstimator,
    Gram,
    HMMEstimator,
    MeanMap,
    PlugInClassifier,
    ProbabilityProduct,
)
from genkern.cli.main import main
from genkern.threads import one_blas_thread

matplotlib.use("Agg")

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "papers").glob("*.md")),
    ROOT / "genkern" / "datasets" / "README.md",
]
SYNTAX = "|&;<>$`*\\"
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(genkern.__path__, "genkern.")
    if not module.name.startswith("genkern.core")
)


def shell(block: str, page: Path, line: int) -> None:
    """Run a block of shell commands in the current folder: those of the package in this process, others in a shell."""
    for number, command in enumerate(block.splitlines(), line + 1):
        words = shlex.split(command)
        if words[0] == "genkern":
            assert not set(command) & set(SYNTAX), (
                f"{page.name}, line {number}: one command a line, without shell syntax"
            )
            with warnings.catch_warnings(), one_blas_thread():
                warnings.simplefilter("default")  # which the command shows as notes
                assert main(words[1:]) == 0, f"{page.name}, line {number}"
        else:
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{page.name}, line {number}: {done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}  # the blocks of a page follow each other
    text = page.read_text()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for match in re.finditer(r"^```(python|sh)\n(.*?)^```", text, flags=re.S | re.M):
        language, block = match.groups()
        line = text[: match.start(2)].count("\n")
        if language == "sh":
            shell(block, page, line)
        elif ">>> " in block:
            session = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), line)
            runner.run(session, clear_globs=False)
            names = session.globs
        else:
            exec(compile("\n" * line + block, str(page), "exec"), names)  # tracebacks show the page's line
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


STRINGS = ["ACGTAC", "AANCG", "TTGR", "GTGTTT", "CCA"]
SERIES = [np.random.default_rng(seed).normal(size=(5 + seed, 2)) for seed in range(5)]
SERIES[1][2, 0] = np.nan
SERIES[3][1] = np.nan
COLUMNS = {
    "Categorical": (CategoricalEstimator("dna"), STRINGS, None),
    "Gaussian, full": (GaussianEstimator("full", min_covar=0.1), SERIES, None),
    "Gaussian, diagonal": (GaussianEstimator("diagonal", min_covar=0.1), SERIES, None),
    "Gaussian, isotropic": (GaussianEstimator("isotropic", min_covar=0.1), SERIES, None),
    "HMM over symbols": (HMMEstimator(2, CategoricalEstimator("dna"), tol=1e-2), STRINGS, 4),
    "HMM over vectors": (HMMEstimator(2, GaussianEstimator(min_covar=0.1), tol=1e-2), SERIES, 4),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_table_of_what_exists(column: str) -> None:
    """Every "yes" of the README's table, with missing data."""
    estimator, X, length = COLUMNS[column]
    kernels = [(estimator, ProbabilityProduct(0.5, length)), (estimator, MeanMap(1.0, length))]
    if length is not None:
        stopping = clone(estimator).set_params(ending="stop")
        kernels += [(stopping, ProbabilityProduct(1.0)), (stopping, MeanMap(1.0))]
    for fitted, kernel in kernels:
        K = Gram(kernel.normalized()).fit_transform(FitEach(fitted).fit_transform(X))
        np.testing.assert_allclose(np.diag(K), 1.0, rtol=0, atol=1e-9)
        assert np.linalg.eigvalsh(K)[0] > -1e-9
    for information in ("complete", "diagonal", "empirical", "identity"):
        features = FisherScore(estimator, information).fit_transform(X)
        assert features.shape[0] == len(X)
        assert np.isfinite(features).all()
        assert features.any()
    assert set(PlugInClassifier(estimator).fit(X, [0, 0, 1, 1, 1]).predict(X)) <= {0, 1}


def test_papers_and_docstrings_name_the_same_sources() -> None:
    """Every name in the table of docs/papers.md is public, and its docstring names the paper of its rows."""
    author = ""
    for row in (ROOT / "docs" / "papers.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not row.startswith("|") or len(cells) != 3 or cells[0] in ("paper", "---"):
            continue
        author = re.sub(r"^\*\*[A-Z]\. (\w+),.*", r"\1", cells[0]) if cells[0] else author
        for name in re.findall(r"`(\w+)`", cells[2]):
            document = (getattr(genkern, name, None) or getattr(genkern.datasets, name)).__doc__
            assert author in document, f"{name}: {author}"


def test_the_page_of_promises_names_tests_that_exist() -> None:
    text = (ROOT / "docs/reliability.md").read_text()
    named = set(re.findall(r"`(tests/\w+\.py)`", text))
    assert len(named) > 25
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
    targets = set(re.findall(r"`make ([\w-]+)`", text))
    assert targets <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
