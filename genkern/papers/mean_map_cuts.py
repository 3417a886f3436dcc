"""What kernels see of exons and introns: errors on whole ones, without their ends, and on windows of one length."""

from __future__ import annotations

from typing import Any

from genkern.papers.held_out import choose
from genkern.papers.mean_map_sets import (
    STARTS,
    Place,
    Result,
    call,
    empirical,
    gathered,
    generative,
    grids,
    lengths,
    problem,
    scaled,
)
from genkern.papers.report import Table, percent
from genkern.papers.study import Study

CUTS = ("whole", "without ends", "interior")
TITLE = (
    "Nested errors on sequences of at least 100 letters: whole, without ten letters at each end, and the 80 letters in "
    "the middle; in per cent, ± standard deviation over folds. Generative kernels have λ = 1, T = 10 or 30, and our "
    "start of EM."
)


SCALES = (
    "DNA: errors over C of empirical and latent mean maps with λ = ∞: normalised, as printed (means over positions), "
    "and of sums over positions divided by the median length. In per cent, ± standard deviation over folds. The paper "
    "has 21.5 (empirical, order 3) and 27.9 (latent)."
)


def cuts_table(study: Study, file: str, store: Any) -> Table:
    """Return the errors of generative and empirical mean maps on all cuts.

    Parameters
    ----------
    study : Study
        The experiment.
    file : str
        The file of exons and introns.
    store : Store
        Of fits.
    """
    places = {cut: Place(cut, study.quick, file) for cut in CUTS}
    divisions = {cut: problem(place).division for cut, place in places.items()}
    rows: dict[str, list[str]] = {}
    for cut, place in places.items():
        for name, tasks in _methods(place, store).items():
            parts = study.map(call, {f"{cut}: {name}, {key}": task for key, task in tasks.items()})
            rows.setdefault(name, []).append(percent(choose(gathered(parts, parts), divisions[cut]).nested))
    return Table(TITLE, ["method", *CUTS], [[name, *cells] for name, cells in rows.items()])


def _methods(place: Place, store: Any) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return the parts of every method."""
    kernels = {"lam": 1.0, "length": [10] if place.quick else [10, 30]}
    methods: dict[str, dict[str, tuple[Any, ...]]] = {
        "generative, HMMs of 4 states": {"states = 4": (generative, place, ("ours", 4), kernels, store)}
    }
    for order in (1, 2):
        part = {f"order {order}": (generative, place, order, kernels, store)}
        methods[f"generative, Markov chains of order {order}"] = part
    for order in (1, 2, 3):
        methods[f"empirical, order {order}"] = {f"order {order}": (empirical, place, order)}
    methods["length alone"] = {"length": (lengths, place)}
    return methods


def scales_table(study: Study, place: Place, store: Any) -> Table:
    """Return the errors of empirical and latent mean maps of means and of sums over positions.

    Parameters
    ----------
    study : Study
        The experiment.
    place : Place
        The set.
    store : Store
        Of fits.
    """
    models = {"empirical, order 3": 3} | {f"latent, start: {start}": start for start in STARTS}
    tasks = {f"{place.name}: scales, {name}": (scaled, place, model, store) for name, model in models.items()}
    parts, division = study.map(call, tasks), problem(place).division
    rows = []
    for name in models:
        for one in parts[f"{place.name}: scales, {name}"]:
            cells = [percent(choose([each], division).best) for each in _single(one)]
            rows.append([name, one["settings"][0]["of"], *cells])
    return Table(SCALES, ["method", "kernel", *(f"C = {C:g}" for C in grids(study.quick)["C"])], rows)


def _single(result: Result) -> list[Result]:
    """Return the results of one method for every C."""
    return [{key: [values[i]] for key, values in result.items()} for i in range(len(result["settings"]))]
