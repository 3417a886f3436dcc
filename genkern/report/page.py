"""The page: sections are gathered, filled into the template and written as one file."""

from __future__ import annotations

import os
from importlib import resources
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from genkern.data.whole_files import check_place, whole_file
from genkern.evaluation import Evaluation
from genkern.evaluation.fitting import fit_grouped
from genkern.io.dataset import Dataset
from genkern.progress import Progress, portion
from genkern.report import data as data_section
from genkern.report import decisions, headline, models, objects, repeat, results
from genkern.report.left_out import left_out

WHO = "write_report"
FIT = 0.8  # share of the time in which a classifier is fitted, where it is not yet
SECTIONS = (
    ("data", "Data"),
    ("results", "Results"),
    ("map", "Similarities"),
    ("models", "Models"),
    ("decisions", "Decisions"),
    ("tried", "What was tried"),
    ("repeat", "How to repeat it"),
)


def write_report(
    path: str | os.PathLike[str],
    data: Dataset,
    evaluation: Evaluation | None = None,
    model: Any = None,
    command: str | tuple[str, str] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Write one self-contained HTML page about objects, how well they are classified, and why.

    The page needs no network: pictures, styles and script are in it. Parts that cannot be had (no labels, no
    probabilities, a classifier that is not linear) are replaced by a sentence that says why.

    Parameters
    ----------
    path : path
        The file. It is whole or not there.
    data : Dataset
        The objects, as ``genkern.read`` returns them.
    evaluation : Evaluation, optional
        What ``evaluate`` returned for these objects: errors, curves and predictions on the page are of its best row.
    model : classifier, optional
        Whose models, features and decisions are shown: fitted to these objects, or not fitted, then it is now.
    command : str or tuple of two str, optional
        How the page is made again: a command line, or a command line and Python code. By default there is Python code
        as far as it can be told from ``data``, ``evaluation`` and ``model``.
    verbose : bool, default=False
        Report progress.

    Examples
    --------
    >>> import tempfile
    >>> import genkern
    >>> from genkern.datasets import make_two_hmms
    >>> X, y = make_two_hmms(n_per_class=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     genkern.write_report(f"{folder}/report.html", genkern.Dataset(X, y, kind="symbols"))
    """
    place = check_place(path, WHO)
    page = _template()
    _check(data, evaluation)
    with Progress("report", unit="", enabled=verbose):
        with portion(FIT, "fit to all objects"):
            fitted, refitted = _fitted(data, model)
        left = left_out(data, evaluation, fitted)
        context: dict[str, Any] = {"data": data_section.section(data)}
        context["results"] = results.section(data, evaluation, left)
        with portion(1 / 2, "kernel"):
            context["objects"] = objects.section(data, fitted, left)
        with portion(1, "models and decisions"):
            context["models"] = models.section(fitted)
            context["decisions"] = decisions.section(data, fitted, left)
        context |= {
            "head": headline.section(data, evaluation, left, fitted),
            "sections": SECTIONS,
            "refitted": refitted and evaluation is not None,
            "tried": repeat.tried(fitted),
            "settings": repeat.settings(data, evaluation, fitted),
            "versions": repeat.versions(),
            "date": repeat.now(),
            "how": repeat.how(place.name, data, evaluation, fitted, command),
        }
        text = page.render(context)
        with whole_file(path, WHO) as stream:
            stream.write(text.encode("utf-8", "replace"))


def require_jinja2() -> Any:
    """Return the module ``jinja2``, or say how to get it."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("A report needs jinja2: pip install 'genkern[report]'") from error
    return jinja2


def _template() -> Any:
    """Return the template of the page, with styles and script; whatever is put into it is escaped."""
    from genkern.plots.style import css

    jinja2 = require_jinja2()
    folder = resources.files("genkern.report") / "templates"
    sources = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".html")}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(sources),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["style"] = css() + (folder / "report.css").read_text("utf-8")
    environment.globals["script"] = (folder / "report.js").read_text("utf-8")
    return environment.get_template("page.html")


def _check(data: Dataset, evaluation: Evaluation | None) -> None:
    """Raise where there are no objects, or the evaluation is of others."""
    if not isinstance(data, Dataset) or not len(data):
        got = "an empty one" if isinstance(data, Dataset) else type(data).__name__
        raise ValueError(f"{WHO}: 'data' must be a Dataset of objects, such as genkern.read returns. Got {got}.")
    if evaluation is None:
        return
    if data.y is None or not np.array_equal(evaluation.y, data.y):
        got = (
            "none"
            if data.y is None
            else f"{len(data)} in data and {len(evaluation.y)} in evaluation, or in another order"
        )
        raise ValueError(
            f"{WHO}: 'evaluation' must be of the objects in 'data', with the same labels in the same order. Got {got}."
        )


def _fitted(data: Dataset, model: Any) -> tuple[Any, bool]:
    """Return a fitted classifier, and whether that was done here."""
    if model is None:
        return None, False
    try:
        check_is_fitted(model)
        return model, False
    except NotFittedError:
        if data.y is None:
            raise ValueError(f"{WHO}: 'model' is not fitted, and the objects have no labels to fit it to.") from None
        return fit_grouped(model, data.X, data.y, data.groups), True
