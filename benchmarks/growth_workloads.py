"""What ``benchmarks.growth`` measures: all public embeddings, estimators, learners and recipes, with few EM steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

import genkern as gk
from genkern import recipes

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
ALL = ("objects", "length", "letters")
Work = Callable[[Any, Any], Any]
Size = tuple[int, int, int]


@dataclass(frozen=True)
class Workload:
    """A call on made objects: their kind, the size (objects, length, letters or channels) and what of it can vary."""

    name: str
    data: str
    work: Work
    size: Size
    axes: tuple[str, ...] = ALL

    def larger(self, axis: int, factor: int) -> Size:
        """Return the size with one of its three multiplied."""
        objects, length, letters = (factor * s if k == axis else s for k, s in enumerate(self.size))
        return objects, length, letters


def make_objects(data: str, n: int, length: int, letters: int) -> tuple[list[Any], Any]:
    """Return objects of two classes that differ a little, in turn."""
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    if data in ("strings", "documents"):
        laws = rng.dirichlet(np.full(letters, 2.0), 2)
        ends = np.cumsum(laws, axis=1)
        codes = [np.searchsorted(ends[label, :-1], row) for label, row in zip(y, rng.random((n, length)), strict=True)]
        if data == "strings":
            names = np.array(list(LETTERS), dtype="S1")
            return [names[row].tobytes().decode() for row in codes], y
        return [" ".join(map("w{}".format, row.tolist())) for row in codes], y
    shapes = rng.uniform(1.0, 3.0, (2, letters))
    shape = (length, letters)
    makers: dict[str, Callable[[int], Any]] = {
        "series": lambda label: np.cumsum(rng.normal(0.1 * shapes[label], 1.0, shape), 0) / np.sqrt(length),
        "points": lambda label: rng.normal(shapes[label], 1.0, shape),
        "counts": lambda label: rng.poisson(shapes[label], shape),
        "positive": lambda label: rng.gamma(shapes[label], 1.0, shape),
        "angles": lambda label: rng.vonmises(shapes[label], 1.0, shape),
        "shares": lambda label: rng.dirichlet(shapes[label], length),
        "bits": lambda label: (rng.random(shape) < shapes[label] / 4).astype(int),
        "tallies": lambda label: rng.multinomial(20, shapes[label] / shapes[label].sum(), length),
        "rows": lambda label: rng.normal(shapes[label], 2.0, letters),
    }
    X = [makers[data](label) for label in y]
    return (np.array(X) if data == "rows" else X), y


def _fit(maker: Callable[[], Any], X: Any, y: Any) -> Any:
    return maker().fit(X)


def _embed(maker: Callable[[], Any], X: Any, y: Any) -> Any:
    return maker().fit_transform(X, y)


def _hmm(**settings: Any) -> gk.HMMEstimator:
    return gk.HMMEstimator(4, max_iter=5, tol=0, random_state=0, **settings)


def _on_models(maker: Callable[[], Any], X: Any, y: Any) -> Any:
    """Apply an embedding of models to those of single objects."""
    return maker().fit_transform(gk.FitEach(gk.GaussianEstimator()).fit_transform(X))


def _learn(maker: Callable[[], Any], X: Any, y: Any) -> Any:
    return maker().fit(X, y).predict(X)


STEPS: dict[str, Any] = {"max_iter": 5, "tol": 0, "random_state": 0}
ESTIMATORS: dict[str, tuple[str, Callable[[], Any], Size]] = {
    "CategoricalEstimator": ("strings", gk.CategoricalEstimator, (30000, 200, 4)),
    "MarkovChainEstimator": ("strings", lambda: gk.MarkovChainEstimator(2), (30000, 200, 4)),
    "PeriodicChainEstimator": ("strings", lambda: gk.PeriodicChainEstimator(1, 3, max_iter=5, tol=0), (4000, 200, 4)),
    "HMMEstimator": ("strings", _hmm, (20000, 100, 4)),
    "HMMEstimator of series": ("series", _hmm, (2000, 100, 4)),
    "BernoulliEstimator": ("bits", gk.BernoulliEstimator, (5000, 100, 4)),
    "DirichletEstimator": ("shares", gk.DirichletEstimator, (10000, 50, 4)),
    "ExponentialEstimator": ("positive", gk.ExponentialEstimator, (5000, 100, 4)),
    "GammaEstimator": ("positive", gk.GammaEstimator, (5000, 50, 4)),
    "GaussianEstimator": ("points", gk.GaussianEstimator, (5000, 100, 4)),
    "GaussianEstimator, full": ("points", lambda: gk.GaussianEstimator("full"), (5000, 100, 4)),
    "GeometricEstimator": ("counts", gk.GeometricEstimator, (5000, 100, 4)),
    "MultinomialEstimator": ("tallies", gk.MultinomialEstimator, (20000, 50, 4)),
    "PoissonEstimator": ("counts", gk.PoissonEstimator, (5000, 100, 4)),
    "VonMisesEstimator": ("angles", gk.VonMisesEstimator, (5000, 100, 4)),
    "KDEEstimator": ("points", lambda: gk.KDEEstimator("scott"), (4000, 50, 4)),
    "KDEEstimator, lscv": ("points", lambda: gk.KDEEstimator("lscv"), (100, 20, 4)),
    "MixtureEstimator": ("points", lambda: gk.MixtureEstimator(4, **STEPS), (1000, 100, 4)),
    "LDSEstimator": ("series", lambda: gk.LDSEstimator(2, max_iter=5, tol=0), (1000, 100, 4)),
    "SwitchingLDSEstimator": ("series", lambda: gk.SwitchingLDSEstimator(2, 1, n_init=1, **STEPS), (50, 50, 4)),
    "ProfileHMMEstimator": ("strings", lambda: gk.ProfileHMMEstimator(20, n_init=1, max_iter=5, tol=0), (1000, 40, 4)),
    "FactorialHMMEstimator": ("series", lambda: gk.FactorialHMMEstimator(n_init=1, **STEPS), (300, 100, 4)),
}
FIXED = {  # those whose number of channels, or length, is part of the model
    "SiteEstimator": ("strings", gk.SiteEstimator, (100000, 30, 4)),
    "PositionalChainEstimator": ("strings", lambda: gk.PositionalChainEstimator(1), (50000, 30, 4)),
    "BayesNetEstimator": (
        "bits",
        lambda: gk.BayesNetEstimator({"h": [], "a": ["h"], "b": ["h"]}, hidden={"h": 2}, max_iter=5, tol=0),
        (3000, 50, 2),
    ),
    "LinearGaussianNetEstimator": (
        "points",
        lambda: gk.LinearGaussianNetEstimator({"z": [], "x": ["z"], "y": ["z"]}, hidden={"z": 1}, max_iter=5, tol=0),
        (5000, 50, 2),
    ),
}
MAPS: dict[str, tuple[str, Callable[[], Any], Size]] = {
    "FitEach": ("strings", lambda: gk.FitEach(_hmm()), (5000, 100, 4)),
    "FisherScore": ("strings", lambda: gk.FisherScore(_hmm()), (10000, 100, 4)),
    "FisherScore of series": ("series", lambda: gk.FisherScore(_hmm()), (1000, 100, 4)),
    "FisherScore of mixtures": ("points", lambda: gk.FisherScore(gk.MixtureEstimator(4, **STEPS)), (1000, 100, 4)),
    "TopScore": ("strings", lambda: gk.TopScore(_hmm()), (10000, 100, 4)),
    "StateSpace": ("strings", lambda: gk.StateSpace(_hmm()), (10000, 100, 4)),
    "Marginalized": ("strings", lambda: gk.Marginalized(_hmm()), (10000, 100, 4)),
    "LatentMeanMap": ("strings", lambda: gk.LatentMeanMap(_hmm()), (5000, 100, 4)),
    "Posteriors": ("strings", lambda: gk.Posteriors(_hmm()), (5000, 100, 4)),
    "ModelLogOdds": ("strings", lambda: gk.ModelLogOdds(_hmm()), (10000, 100, 4)),
    "Spectrum": ("strings", lambda: gk.Spectrum(3), (20000, 200, 4)),
    "Spectrum, sparse": ("strings", lambda: gk.Spectrum(6, sparse=True), (20000, 200, 4)),
    "PositionalSpectrum": ("strings", gk.PositionalSpectrum, (3000, 30, 4)),
    "RegionSpectrum": ("strings", gk.RegionSpectrum, (10000, 30, 4)),
    "EmpiricalMeanMap": ("strings", lambda: gk.EmpiricalMeanMap(3), (10000, 100, 4)),
    "EmpiricalMeanMap of series": ("series", lambda: gk.EmpiricalMeanMap(2), (1000, 50, 4)),
    "CrossFit": ("strings", lambda: gk.CrossFit(gk.TopScore(_hmm())), (3000, 100, 4)),
    "BlockNormalizer": ("strings", lambda: gk.BlockNormalizer(gk.FisherScore(_hmm())), (10000, 100, 4)),
    "Views": ("strings", lambda: gk.Views([("a", gk.Spectrum(2)), ("b", gk.Spectrum(3))]), (20000, 200, 4)),
    "Channels": ("strings", lambda: gk.Channels("angles", LETTERS), (10000, 100, 4)),
    "Recode": ("strings", lambda: gk.Recode([LETTERS[:32], LETTERS[32:]]), (10000, 100, 4)),
    "Windows": ("series", gk.Windows, (2000, 100, 4)),
    "MultiScale": ("series", lambda: gk.MultiScale(gk.FisherScore(gk.GaussianEstimator())), (500, 100, 4)),
    "CentreSeries": ("series", gk.CentreSeries, (10000, 100, 4)),
    "ScaleSeries": ("series", gk.ScaleSeries, (10000, 100, 4)),
}
OF_MODELS: dict[str, Callable[[], Any]] = {
    "Gram of models": lambda: gk.Gram(gk.ProbabilityProduct(0.5)),
    "CharacteristicFeatures": gk.CharacteristicFeatures,
    "ProposalFeatures": gk.ProposalFeatures,
    "Nystrom": lambda: gk.Nystrom(gk.ProbabilityProduct(0.5), 100),
}
LEARNERS: dict[str, Callable[[], Any]] = {
    "KernelRidgeClassifierCV": lambda: gk.KernelRidgeClassifierCV(kernel=gk.RBF(0.01)),
    "KernelSVMClassifierCV": lambda: gk.KernelSVMClassifierCV(kernel=gk.RBF(0.01)),
    "EqualErrorClassifier": lambda: gk.EqualErrorClassifier(gk.KernelRidgeClassifierCV(kernel="linear")),
    "KernelLogisticRegression": lambda: gk.KernelLogisticRegression(kernel=gk.RBF(0.01)),
}
OF_ROWS: dict[str, tuple[Callable[[], Any], int]] = {
    "AlignedGram": (lambda: gk.AlignedGram(gk.Linear() + gk.RBF(0.1)), 2000),
    "Gram of rows": (lambda: gk.Gram(gk.RBF(0.1)), 2000),
    "Standardize": (gk.Standardize, 100_000),
    "UnitTrace": (gk.UnitTrace, 100_000),
    "LogOddsWeights": (lambda: make_pipeline(Binarizer(), gk.LogOddsWeights()), 100_000),
    "PowerMap": (gk.PowerMap, 100_000),
    "LogMap": (gk.LogMap, 100_000),
    "LogisticMap": (gk.LogisticMap, 100_000),
}
RECIPES: dict[str, tuple[str, Callable[[], Any], Size]] = {
    "symbols": ("strings", recipes.symbols, (500, 60, 4)),
    "aligned_symbols": ("strings", recipes.aligned_symbols, (500, 30, 4)),
    "homology, without symbols": (
        "strings",
        lambda: recipes.homology().set_params(kernels__symbols="drop"),
        (200, 60, 4),
    ),
    "spectrum_svm": ("strings", recipes.spectrum_svm, (10000, 100, 4)),
    "fisher_svm": ("strings", recipes.fisher_svm, (2000, 100, 4)),
    "product_svm": ("strings", recipes.product_svm, (500, 100, 4)),
    "meanmap_svm": ("strings", recipes.meanmap_svm, (500, 100, 4)),
    "series": ("series", recipes.series, (200, 60, 2)),
    "points": ("points", recipes.points, (500, 60, 4)),
    "text": ("documents", recipes.text, (1000, 100, 1000)),
}


def _all() -> list[Workload]:
    found = [Workload(name, data, partial(_fit, make), size) for name, (data, make, size) in ESTIMATORS.items()]
    found += [
        Workload(name, data, partial(_fit, make), size, ALL[: 1 + (data != "strings")])
        for name, (data, make, size) in FIXED.items()
    ]
    found += [Workload(name, data, partial(_embed, make), size) for name, (data, make, size) in MAPS.items()]
    found += [
        Workload(name, "points", partial(_on_models, make), (2000, 20, 4), ("objects", "letters"))
        for name, make in OF_MODELS.items()
    ]
    found += [
        Workload(name, "rows", partial(_embed, make), (n, 1, 10), ("objects", "letters"))
        for name, (make, n) in OF_ROWS.items()
    ]
    found += [
        Workload(name, "rows", partial(_learn, make), (1000, 1, 10), ("objects", "letters"))
        for name, make in LEARNERS.items()
    ]
    found += [
        Workload("PlugInClassifier", "strings", partial(_learn, lambda: gk.PlugInClassifier(_hmm())), (10000, 100, 4))
    ]
    found += [
        Workload(f"recipes.{name}", data, partial(_learn, make), size) for name, (data, make, size) in RECIPES.items()
    ]
    contours = partial(_learn, lambda: recipes.contours(LETTERS[:8]))
    found += [Workload("Turns", "series", partial(_embed, gk.Turns), (10000, 100, 2), ("objects", "length"))]
    return [*found, Workload("recipes.contours", "strings", contours, (200, 60, 8), ("objects", "length"))]


WORKLOADS = _all()
