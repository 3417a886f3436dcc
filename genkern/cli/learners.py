"""Recipes by their names, as commands take them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import click

RECIPES = (
    "auto",
    "aligned_symbols",
    "contours",
    "fisher_svm",
    "homology",
    "meanmap_svm",
    "points",
    "product_svm",
    "series",
    "spectrum_svm",
    "symbols",
    "text",
)


ORDERED = ("fisher_svm", "series")  # read the rows of an object one after the other
SYMBOLIC = ("symbols", "codes")
READS = {  # the kinds of objects that a recipe reads; auto reads all
    "aligned_symbols": SYMBOLIC,
    "contours": SYMBOLIC,
    "fisher_svm": (*SYMBOLIC, "series"),
    "homology": ("symbols",),
    "meanmap_svm": (*SYMBOLIC, "series", "points"),
    "points": ("points", "series"),
    "product_svm": (*SYMBOLIC, "series", "points"),
    "series": ("series",),
    "spectrum_svm": SYMBOLIC,
    "symbols": SYMBOLIC,
    "text": ("documents",),
}
STRONG = {"symbols": "symbols", "codes": "contours", "series": "series", "points": "points", "documents": "text"}
FOLDS = 5  # in which auto tries each recipe
UNITS = {"symbols": "letters", "codes": "codes", "series": "rows", "points": "points", "documents": "characters"}
LONG = 50_000  # letters, rows, points from which on a person is told that auto takes its time


def recipe_option(several: bool) -> Any:
    """Return the option of the recipe, or of several."""
    text = "Recipe: auto chooses among those that suit the objects." + (" May be repeated." if several else "")
    default: Any = ("auto",) if several else "auto"
    return click.option(
        "--recipe",
        "-r",
        "recipe",
        type=click.Choice(RECIPES),
        multiple=several,
        default=default,
        show_default=True,
        help=text,
    )


def refuse_budget(budget: str | None, recipes: Sequence[str]) -> None:
    """Raise where a budget is given that is no time, or that nothing obeys."""
    if budget is None:
        return
    if "auto" not in recipes:
        raise click.UsageError(f"--budget is for --recipe auto; {', '.join(recipes)} has no use for it.")
    from genkern.recipes.race import seconds_of

    try:
        seconds_of(budget, "genkern")
    except (ValueError, TypeError):
        raise click.UsageError(f"--budget must be a time such as 30s, 5min or 1h. Got {budget!r}.") from None


def budget_of_each(budget: str | None, fits: int) -> float | None:
    """Return the share in seconds that every fit of auto has in a budget for so many."""
    from genkern.recipes.race import seconds_of

    return None if budget is None else seconds_of(budget, "genkern") / fits


def warn_of_time(recipes: Sequence[str], data: Any, fits: int, budget: str | None) -> None:
    """Tell a person that auto has much to do, and what bounds it."""
    observations = sum(map(len, data.X))
    if "auto" not in recipes or budget is not None or observations < LONG:
        return
    from genkern.progress import report
    from genkern.recipes import candidates

    count = len(candidates(data.kind, data.X))
    each = f"{count} recipes in {FOLDS} folds" + (f", {fits} times" if fits > 1 else "")
    report(
        f"genkern: auto tries {each}: some {fits * (count * FOLDS + 1)} fits to most of {len(data.X)} objects of "
        f"{observations} {UNITS[data.kind]} in all, which may take long. --budget 5min bounds it; "
        f"-r {STRONG[data.kind]} fits one recipe only."
    )


def make_recipe(name: str, **settings: Any) -> Any:
    """Return an unfitted recipe, with those of the settings that are given and that it has."""
    factory, known = _factory(name, settings)
    return factory(**known)


def recipe_code(name: str, **settings: Any) -> str:
    """Return Python code for what ``make_recipe`` returns."""
    _, known = _factory(name, settings)
    called = "AutoClassifier" if name == "auto" else f"recipes.{name}"
    return f"genkern.{called}({', '.join(f'{key}={value!r}' for key, value in known.items())})"


def _factory(name: str, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the function of a recipe, and the settings that it takes."""
    from genkern import recipes
    from genkern.recipes.auto import AutoClassifier

    if settings.get("kind") == "points" and name in ORDERED:
        raise click.UsageError(
            f"{name} goes by the order of observations, and the points of a set have none. Take --recipe points, "
            "product_svm, meanmap_svm or auto; or read them as series, by --kind series."
        )
    kind = settings.get("kind")
    if kind is not None and name != "auto" and kind not in READS[name]:
        others = ", ".join(other for other in RECIPES[1:] if kind in READS[other])
        raise click.UsageError(
            f"{name} is for {' or '.join(READS[name])}, and these objects are {kind}. Take --recipe {others} or auto; "
            "or say what they are by --kind."
        )
    factory = AutoClassifier if name == "auto" else getattr(recipes, name)
    taken = inspect.signature(factory).parameters
    return factory, {key: value for key, value in settings.items() if key in taken and value is not None}
