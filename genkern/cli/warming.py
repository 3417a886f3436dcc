"""What ``genkern warmup`` runs so that all compiled code that users can reach is compiled: small calls by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import genkern as gk
from genkern import recipes
from genkern.affinities import Expected, Power, affinity
from genkern.datasets import load_japanese_vowels, load_splice_junctions
from genkern.models.base import Model

Task = Callable[[], Any]
LETTERS, LENGTHS = "ACGT", (1, 3, 9, 12, 20, 9, 7, 5, 4)
QUESTIONS = (
    "posterior",
    "filter",
    "viterbi",
    "viterbi_log_prob",
    "bound",
    "estimate_log_prob",
    "variational_posterior",
)
STATES = (1, 2, 3, 4, 6, 8, 12, 17)  # of hidden Markov models, so that all layouts are used


def tasks() -> dict[str, Task]:
    """Return tasks by name, in the order in which they run."""
    return {**_recipes(), **_models(), **_estimators(), **_maps(), **_kernels()}


def _recipes() -> dict[str, Task]:
    """Return every recipe, fitted to a few objects."""
    dna, vowels = load_splice_junctions().take(range(0, 3186, 80)), load_japanese_vowels().take(range(0, 640, 16))
    turned = ["".join(str((int(c) + i) % 8) for c in "0022446600224466" * 2) for i in range(8)]
    chosen = {
        "series": (recipes.series(), vowels.X, vowels.y),
        "contours": (recipes.contours(), turned, np.arange(8) % 2),
        "symbols": (recipes.symbols("dna"), dna.X, dna.y),
        "aligned_symbols": (recipes.aligned_symbols(alphabet="dna", cv=2), dna.X, dna.y),
        "fisher_svm of symbols": (recipes.fisher_svm(), dna.X, dna.y),
        "fisher_svm of series": (recipes.fisher_svm(), vowels.X, vowels.y),
        "product_svm of symbols": (recipes.product_svm(), dna.X, dna.y),
        "product_svm of series": (recipes.product_svm(), vowels.X, vowels.y),
        "meanmap_svm of symbols": (recipes.meanmap_svm(), dna.X, dna.y),
        "meanmap_svm of series": (recipes.meanmap_svm(), vowels.X, vowels.y),
        "spectrum_svm": (recipes.spectrum_svm(), dna.X, dna.y),
    }
    return {f"recipes.{name}": partial(_fit, *each) for name, each in chosen.items()}


def _fit(learner: Any, X: Any, y: Any) -> None:
    """Fit a learner and predict."""
    learner.fit(X, y).predict(X)


def _rows(*shape: int) -> Any:
    """Return random distributions along the last axis."""
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), shape[:-1])


def _positive(*shape: int) -> Any:
    return np.random.default_rng(1).uniform(0.3, 0.7, shape)


def _system(*batch: int, n: int = 2, d: int = 2) -> gk.LDS:
    """Return linear systems."""
    eyes = [np.broadcast_to(np.eye(size), (*batch, size, size)) for size in (n, d)]
    return gk.LDS(0.5 * eyes[0], _positive(*batch, d, n), eyes[0], eyes[1], np.zeros((*batch, n)), eyes[0])


def _zoo() -> dict[str, Model]:
    """Return a model of every kind, all small."""
    full = np.broadcast_to(np.eye(3), (2, 3, 3))
    return {
        "Bernoulli": gk.Bernoulli(_positive(2)),
        "Poisson": gk.Poisson(_positive(2)),
        "Geometric": gk.Geometric(_positive(2)),
        "NegativeBinomial": gk.NegativeBinomial(_positive(2), _positive(2)),
        "Exponential": gk.Exponential(_positive(2)),
        "Gamma": gk.Gamma(_positive(2), _positive(2)),
        "VonMises": gk.VonMises(_positive(2), _positive(2)),
        "Dirichlet": gk.Dirichlet(_positive(3)),
        "DirichletMultinomial": gk.DirichletMultinomial(_positive(3), 5),
        "Multinomial": gk.Multinomial(_rows(3), 5),
        "Multinomial, counts": gk.Multinomial(_rows(3), 5, ordered=False),
        "Categorical": gk.Categorical(_rows(4), alphabet=LETTERS),
        "SiteModel": gk.SiteModel(_rows(3, 4)),
        "Gaussian": gk.Gaussian(np.zeros(3), np.eye(3)),
        "StudentT, one channel": gk.StudentT([0.0], [[1.0]], 5.0),
        "StudentT": gk.StudentT(np.zeros(2), np.eye(2), 5.0),
        "KDE": gk.KDE(_positive(5, 2), 0.5),
        "Mixture": gk.Mixture(_rows(2), gk.Gaussian(_positive(2, 2), _positive(2, 2))),
        "Mixture, full": gk.Mixture(_rows(2), gk.Gaussian(_positive(2, 3), full)),
        "Mixture of wide vectors": gk.Mixture(_rows(3), gk.Gaussian(_positive(3, 9), _positive(3, 9))),
        "MarkovChain": gk.MarkovChain(_rows(4), _rows(4, 4)),
        "PeriodicChain": gk.PeriodicChain(_rows(2), _rows(2, 4), _rows(2, 4, 4)),
        "PositionalChain": gk.PositionalChain(_rows(4), _rows(30, 4, 4)),
        "ProfileHMM": gk.ProfileHMM(_rows(5, 4)).with_flanks("local"),
        "LDS": _system(),
        "LDS, wide": _system(n=3, d=4),
        "SwitchingLDS": gk.SwitchingLDS(_rows(2), _rows(2, 2), _system(2)),
        "FactorialHMM": gk.FactorialHMM(
            [_rows(2)] * 3, [_rows(2, 2), _rows(2, 2), _rows(2, 2)], [_positive(2, 2)] * 3, _positive(2)
        ),
        "ClassMixture": gk.ClassMixture({0: _hmm(2, 4), 1: gk.MarkovChain(_rows(4), _rows(4, 4))}),
    }


def _hmm(n: int, symbols: int, *, endings: str = "none", batch: tuple[int, ...] = ()) -> gk.HMM:
    """Return hidden Markov models of symbols (of three channels for none)."""
    emissions = (
        gk.Categorical(_rows(*batch, n, symbols))
        if symbols
        else gk.Gaussian(_positive(*batch, n, 3), _positive(*batch, n, 3))
    )
    if endings == "stop":
        joint = _rows(*batch, n, n + 1)
        return gk.HMM(_rows(*batch, n), joint[..., :-1], emissions, stop=joint[..., -1])
    return gk.HMM(_rows(*batch, n), _rows(*batch, n, n), emissions, end=_rows(*batch, n) if endings == "end" else None)


def _models() -> dict[str, Task]:
    """Return the questions that can be asked of a model, for all kinds and layouts."""
    found: dict[str, Task] = {f"models.{name}": partial(_ask, model) for name, model in _zoo().items()}
    for n in STATES:
        for symbols in (4, 30, 0):
            for batch in ((), (len(LENGTHS),)):
                kind = f"{n} states, {symbols} symbols" if symbols else f"{n} states, series"
                name = f"models.HMM, {kind}{', own' if batch else ''}"
                found[name] = partial(_ask_hmm, n, symbols, batch)
    found["models.HMM, faint"] = _ask_faint
    return found


def _ask_hmm(n: int, symbols: int, batch: tuple[int, ...]) -> None:
    """Ask hidden Markov models of any ending."""
    for endings in ("none", "end", "stop"):
        _ask(_hmm(n, symbols, endings=endings, batch=batch), count=len(LENGTHS))


def _ask_faint() -> None:
    """Ask for what needs logarithms: sequences and pairs that are next to impossible, and one that is impossible."""
    for n in (2, 6):
        for batch in ((), (2,)):
            steps = np.broadcast_to(np.where(np.eye(n) > 0, 1.0, 1e-200), (*batch, n, n))
            means = np.broadcast_to(100.0 * np.arange(n)[:, None], (*batch, n, 1))
            faint = gk.HMM(np.full((*batch, n), 1.0 / n), steps, gk.Gaussian(means, np.ones((*batch, n, 1))))
            _ask(faint, [np.array([[0.0], [100.0]] * 6), np.zeros((12, 1))])
    flips = gk.HMM([0.5, 0.5], [[1e-200, 1.0], [1.0, 1e-200]], gk.Categorical(np.eye(2)))
    stays = gk.HMM([0.5, 0.5], [[1.0, 1e-200], [1e-200, 1.0]], gk.Categorical(np.eye(2)))
    affinity([flips] * 2, [stays], Power(1.0), length=8)
    diffuse = gk.LDS([[1.0]], [[1.0], [1.0]], [1e8], [1e-12, 1e-12], [0.0], [1e14])
    with contextlib.suppress(ValueError):  # which says what is lost
        diffuse.log_prob([np.zeros((5, 2))])
    with contextlib.suppress(ValueError):  # which says where the path ends
        gk.HMM([1.0, 0.0], np.eye(2), gk.Categorical(np.eye(2))).viterbi([np.array([0, 1])])


def _ask(model: Any, X: Any = None, count: int = 4) -> None:
    """Ask a model, or a stack with one member for each object, for all that it has."""
    X = _objects(model, count) if X is None else X
    model.log_prob(X)
    if model.shape:
        model.statistics(X)
        return
    for coordinates in ("softmax", "raw"):
        model.log_prob_grad(X, coordinates)
    for name in QUESTIONS:
        if hasattr(model, name):
            getattr(model, name)(X)
    if isinstance(model, gk.HMM | gk.LDS | gk.FactorialHMM):
        model.statistics(X, totals=True)
        model.posterior(X, pairs=True)
    if isinstance(model, gk.HMM):
        model.sample_paths(X, 2, rng=0)
        list(model.position_statistics(model.pack(X[:1])))
    if isinstance(model, gk.SwitchingLDS):
        model.posterior(X, "variational")


def _objects(model: Any, count: int) -> list[Any]:
    """Return objects of a model, some with missing entries where there can be any."""
    stops = isinstance(model, gk.SiteModel) or (isinstance(model, gk.HMM) and model.stop is not None)
    lengths = [None if stops else LENGTHS[i % len(LENGTHS)] for i in range(count)]
    members = list(model) if model.shape else [model] * count
    X = [x for i in range(count) for x in members[i].sample(1, length=lengths[i], rng=i)]
    law = getattr(model, "emissions", getattr(model, "components", model))
    if model.shape or not isinstance(law, gk.Gaussian | gk.LDS):
        return X
    rng = np.random.default_rng(0)
    return X + [np.where(rng.random(np.shape(x)) < 0.2, np.nan, x) for x in X]


def _estimators() -> dict[str, Task]:
    """Return fits of every estimator with passes or starts of its own, to one model and to one for each object."""
    rng = np.random.default_rng(0)
    series = [rng.normal(size=(length, 3)) for length in LENGTHS[3:7] * 3]
    wide = [rng.normal(size=(30, 9)) for _ in range(6)]
    counts = [rng.poisson(3.0, size=(12, 2)) for _ in range(6)]
    positive = [np.exp(x) for x in series]
    angles = [rng.vonmises(0.0, 1.0, size=(12, 2)) for _ in range(6)]
    shares = [rng.dirichlet(np.ones(3), size=12) for _ in range(6)]
    strings = ["".join(rng.choice(list(LETTERS), 20)) for _ in range(12)]
    full = gk.GaussianEstimator("full")
    holes = [np.where(rng.random(x.shape) < 0.1, np.nan, x) for x in series]
    chosen: dict[str, tuple[Any, Any]] = {
        "PoissonEstimator": (gk.PoissonEstimator(), counts),
        "GammaEstimator": (gk.GammaEstimator(), positive),
        "VonMisesEstimator": (gk.VonMisesEstimator(), angles),
        "DirichletEstimator": (gk.DirichletEstimator(), shares),
        "KDEEstimator": (gk.KDEEstimator(), series),
        "KDEEstimator, lscv": (gk.KDEEstimator("lscv"), series),
        "MixtureEstimator": (gk.MixtureEstimator(2), holes),
        "MixtureEstimator, full": (gk.MixtureEstimator(2, full), holes),
        "MixtureEstimator of wide vectors": (gk.MixtureEstimator(3), wide),
        "MarkovChainEstimator": (gk.MarkovChainEstimator(1), strings),
        "MarkovChainEstimator, missing letters": (
            gk.MarkovChainEstimator(2, alphabet="dna"),
            [word.replace("A", "N", 2) for word in strings],
        ),
        "HMMEstimator": (gk.HMMEstimator(2), strings),
        "HMMEstimator of series": (gk.HMMEstimator(3), holes),
        "HMMEstimator of mixtures": (gk.HMMEstimator(3, gk.MixtureEstimator(2)), wide),
        "ProfileHMMEstimator": (gk.ProfileHMMEstimator(n_init=1, max_iter=2), strings),
        "LDSEstimator": (gk.LDSEstimator(2), holes),
        "SwitchingLDSEstimator": (gk.SwitchingLDSEstimator(max_iter=2, n_init=1), series),
        "FactorialHMMEstimator": (gk.FactorialHMMEstimator(max_iter=2, n_init=1), series),
        "FactorialHMMEstimator, variational": (
            gk.FactorialHMMEstimator(e_step="variational", max_iter=2, n_init=1),
            series,
        ),
    }
    fits: dict[str, Task] = {name: partial(estimator.fit, X) for name, (estimator, X) in chosen.items()}
    each = {
        f"FitEach({name})": partial(gk.FitEach(estimator).fit_transform, X) for name, (estimator, X) in chosen.items()
    }
    return {**fits, **each}


def _maps() -> dict[str, Task]:
    """Return the embeddings with passes of their own."""
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list(LETTERS), 30)) for _ in range(12)]
    holes = [x.replace("A", "N", 1) for x in strings]
    series = [rng.normal(size=(12, 2)) for _ in range(6)]
    hmm, coded = gk.HMMEstimator(2), [rng.integers(300, size=40) for _ in range(12)]
    chosen: dict[str, tuple[Any, Any]] = {
        **{f"Spectrum, k={k}": (gk.Spectrum(k=k, alphabet="dna"), holes) for k in (1, 3, 6, 9)},
        **{f"Spectrum, k={k}, sparse": (gk.Spectrum(k=k, alphabet="dna", sparse=True), holes) for k in (3, 9)},
        "Spectrum, bytes": (gk.Spectrum(k=3, alphabet="dna", dtype="uint8"), strings),
        "Spectrum, gaps": (gk.Spectrum(alphabet="dna", offsets=(0, 2, 3)), holes),
        "Spectrum of integers": (gk.Spectrum(k=2, alphabet=300), coded),
        "PositionalSpectrum": (gk.PositionalSpectrum(alphabet="dna"), strings),
        "RegionSpectrum": (gk.RegionSpectrum(alphabet="dna"), strings),
        **{
            f"EmpiricalMeanMap, {method}": (gk.EmpiricalMeanMap(3, alphabet="dna", method=method), holes)
            for method in ("dense", "sparse")
        },
        "EmpiricalMeanMap of series": (gk.EmpiricalMeanMap(2), series),
        **{
            f"{kind.__name__}": (kind(hmm), strings)
            for kind in (gk.FisherScore, gk.StateSpace, gk.Marginalized, gk.LatentMeanMap)
        },
        "Posteriors": (gk.Posteriors(hmm), strings),
    }
    fitted: dict[str, Task] = {name: partial(embedding.fit_transform, X) for name, (embedding, X) in chosen.items()}
    return {f"maps.{name}": task for name, task in fitted.items()}


def _kernels() -> dict[str, Task]:
    """Return affinities of all pairs that have one, and kernels between objects and vectors."""
    zoo: dict[str, Model] = _zoo()
    found: dict[str, Task] = {}
    for n in STATES:
        for symbols in (4, 0):
            zoo[f"HMM, {n} states{'' if symbols else ', series'}"] = _hmm(n, symbols, endings="end")
            zoo[f"HMM, {n} states{'' if symbols else ', series'}, stop"] = _hmm(n, symbols, endings="stop")
    for name, model in zoo.items():
        found[f"affinity, {name}"] = partial(_compare, model, list(zoo.values()))
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list(LETTERS), 20)) for _ in range(6)]
    series, table = [rng.normal(size=(12, 2)) for _ in range(6)], rng.normal(size=(40, 5))
    for name, kernel, X in (
        ("RBF", gk.RBF(0.5), table),
        ("Linear", gk.Linear(), table),
        ("Laplace", gk.Laplace(0.5), table),
        ("EmpiricalMean", gk.EmpiricalMean(3, alphabet="dna"), strings),
        ("EmpiricalMean, Laplace", gk.EmpiricalMean(3, alphabet="dna", kernel="laplace"), strings),
        ("EmpiricalMean of series", gk.EmpiricalMean(2), series),
        ("EmpiricalMean of series, Laplace", gk.EmpiricalMean(2, kernel="laplace"), series),
        ("LocalAlignment", gk.LocalAlignment(), ["".join(rng.choice(list("ACDE"), 20)) for _ in range(6)]),
        (
            "LocalAlignment without gaps",
            gk.LocalAlignment(table=np.eye(4), gap_open=np.inf, alphabet="dna"),
            strings,
        ),
        ("SetBhattacharyya", gk.SetBhattacharyya(), series),
        (
            "EmpiricalMean of integers",
            gk.EmpiricalMean(2, alphabet=300),
            [rng.integers(300, size=20) for _ in range(6)],
        ),
        ("LatentMean of series", gk.LatentMean(), gk.Posteriors(gk.HMMEstimator(2)).fit_transform(series)),
        ("LatentMean", gk.LatentMean(), gk.Posteriors(gk.HMMEstimator(2)).fit_transform(strings)),
    ):
        found[f"kernel, {name}"] = partial(gk.Gram(kernel).fit_transform, X)
        found[f"diagonal, {name}"] = partial(kernel.diag, X)
    return found


def _compare(model: Model, others: list[Model]) -> None:
    """Compute kernel values of a model with others, where there is a formula, at any length."""
    for other in others:
        for how in (Power(0.3), Power(0.5), Expected(0.5)):
            for length in (None, 4):
                try:
                    affinity(model, other, how, length=length)
                    affinity([model] * 9, [other] * 5, how, length=length)
                except (TypeError, ValueError):  # there is no formula for such a pair, or for this length
                    continue
