"""Models and kernels of the homology experiment: what is computed for one division of the sequences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from genkern import HMM, CategoricalEstimator, CrossFit, FisherScore, HMMEstimator, PowerMap

Floats = NDArray[np.float64]
PSEUDOCOUNT, POSITIONAL_PSEUDOCOUNT = 0.1, 0.5
STEPS, STEPS_ALL = 100, 30  # of EM, for models of positives and of all training sequences
FOLDS = 5
ODDS = "10 states"  # the model of log-odds as a feature
C = 1.0


class Variant(NamedTuple):
    """One Fisher kernel with a support vector machine.

    Parameters
    ----------
    model : str
        The model behind the scores.
    scores : {"information", "plain", "root"}
        Scores in units of the complete information; plain ones in ratio coordinates, as the paper has them; the first
        with signed roots and unit length.
    per_residue : bool
        Whether scores are divided by the length.
    kernel : {"gaussian", "linear"}
        The kernel of scores.
    width : float
        Width of the Gaussian kernel, in units of the median distance of positives from their nearest negatives.
    balanced : bool
        Whether both classes have the same weight.
    blocks : tuple of str, optional
        Parameters whose scores are used: those of the emissions, or all.
    odds : {"fitted", "out of fold"}, optional
        Whether the log-odds per residue under the model of ten states are a further feature, and whether those of
        training sequences are of the model that was fitted to them.
    out_of_fold : bool
        Whether training sequences have the scores of models fitted without their family.
    """

    model: str = "10 states"
    scores: str = "information"
    per_residue: bool = True
    kernel: str = "gaussian"
    width: float = 1.0
    balanced: bool = True
    blocks: tuple[str, ...] | None = ("probs",)
    odds: str | None = None
    out_of_fold: bool = False


BASE = Variant()
VARIANTS = {
    "as published: plain scores, Gaussian": Variant(scores="plain", per_residue=False),
    "as printed: plain scores, linear": Variant(scores="plain", per_residue=False, kernel="linear"),
    "plain scores per residue, Gaussian": Variant(scores="plain"),
    "scores by information, Gaussian": Variant(per_residue=False),
    "base: by information, per residue, Gaussian": BASE,
    "base, linear": BASE._replace(kernel="linear"),
    "base, all blocks": BASE._replace(blocks=None),
    "base, half the width": BASE._replace(width=0.5),
    "base, twice the width": BASE._replace(width=2.0),
    "base, classes not balanced": BASE._replace(balanced=False),
    "base, 5 states": BASE._replace(model="5 states"),
    "base, 20 states": BASE._replace(model="20 states"),
    "base, left-right": BASE._replace(model="left-right"),
    "base, roots and unit length": BASE._replace(scores="root"),
    "base and log-odds": BASE._replace(odds="fitted"),
    "base and log-odds out of fold": BASE._replace(odds="out of fold"),
    "out of fold": BASE._replace(out_of_fold=True),
    "out of fold, roots and unit length": BASE._replace(scores="root", out_of_fold=True),
    "out of fold, and log-odds out of fold": BASE._replace(odds="out of fold", out_of_fold=True),
    "model of all": BASE._replace(model="all, 20 states"),
    "model of all, and log-odds": BASE._replace(model="all, 20 states", odds="fitted"),
    "model of all, and log-odds out of fold": BASE._replace(model="all, 20 states", odds="out of fold"),
    "model of all, roots and unit length": BASE._replace(model="all, 20 states", scores="root"),
    "model of all, roots and unit length, linear": BASE._replace(
        model="all, 20 states", scores="root", kernel="linear"
    ),
}


class Models:
    """Models of one division, each fitted when it is first asked for, and what they say about its sequences.

    Parameters
    ----------
    known, fresh : list of str
        Training and test sequences, positives first.
    positives : tuple of int
        Numbers of positives among both.
    families : array of shape (len(known),)
        Families of the training sequences.
    """

    def __init__(self, known: list[str], fresh: list[str], positives: tuple[int, int], families: NDArray[np.str_]):
        self.known, self.fresh, self._positives = known, fresh, positives
        self.y = np.arange(len(known)) < positives[0]
        self._groups = left_out_together(self.y, families)
        self._null = CategoricalEstimator("protein").fit(known).model_
        self._memo: dict[Any, Any] = {}

    def length_scores(self) -> Floats:
        """Return how close the lengths of test sequences come to those of the positives."""
        logs = np.log(lengths_of(self.known)[self.y])
        return -np.abs(np.log(lengths_of(self.fresh)) - logs.mean())

    def log_odds(self, kind: str) -> Floats:
        """Return the log-odds of test sequences against independent letters."""
        return self._odds(self.model(kind), self.fresh)

    def reversed_odds(self, kind: str) -> Floats:
        """Return the log-odds of test sequences against the same sequences read backwards."""
        model = self.model(kind)
        return np.asarray(model.log_prob(self.fresh) - model.log_prob([one[::-1] for one in self.fresh]))

    def shift(self) -> list[float]:
        """Return how often training positives are above test positives in log-odds per residue, in and out of fold."""
        found = []
        for out_of_fold in (False, True):
            ours, theirs = self._log_odds_per_residue(out_of_fold)
            values = np.concatenate([ours[self.y], theirs[: self._positives[1]]])
            found.append(float(roc_auc_score(np.arange(len(values)) < self._positives[0], values)))
        return found

    def features(self, variant: Variant) -> tuple[Floats, Floats]:
        """Return the features of training and of test sequences."""
        key = (variant.model, variant.scores == "plain", variant.per_residue, variant.blocks, variant.out_of_fold)
        known, fresh = self._once(("scores", *key), lambda: self._scores(*key))
        if variant.scores == "root":
            known, fresh = (normalize(PowerMap(0.5).fit_transform(part)) for part in (known, fresh))
        if variant.odds is not None:  # as large over the negatives as all scores together
            ours, theirs = self._log_odds_per_residue(variant.odds == "out of fold")
            size = np.sqrt((known[~self.y] ** 2).sum(axis=1).mean()) / ours[~self.y].std()
            known, fresh = np.c_[known, size * ours], np.c_[fresh, size * theirs]
        return known, fresh

    def model(self, kind: str) -> HMM:
        """Return a model of the positives, or of all training sequences."""
        return self._once(("model", kind), lambda: self._fit(kind))

    def _fit(self, kind: str) -> HMM:
        everything = kind.startswith("all")
        objects = [one for one, positive in zip(self.known, self.y) if positive or everything]
        with warnings.catch_warnings():  # EM is stopped early
            warnings.simplefilter("ignore", UserWarning)
            return self._estimator(kind).fit(objects).model_

    def _estimator(self, kind: str, init: Any = "auto") -> HMMEstimator:
        positional, everything = kind == "left-right", kind.startswith("all")
        emission = CategoricalEstimator("protein", POSITIONAL_PSEUDOCOUNT if positional else PSEUDOCOUNT)
        states = int(np.median(lengths_of(self.known)[self.y])) // 2 if positional else int(kind.split()[-2])
        return HMMEstimator(
            states,
            emission,
            pseudocount=PSEUDOCOUNT,
            structure="left-right" if positional else "ergodic",
            max_iter=STEPS_ALL if everything else STEPS,
            init=init,
            random_state=0,
        )

    def _odds(self, model: HMM, objects: Sequence[str]) -> Floats:
        return np.asarray(model.log_prob(objects) - self._null.log_prob(objects))

    def _log_odds_per_residue(self, out_of_fold: bool) -> tuple[Floats, Floats]:
        """Return those of training and of test sequences under the model of ten states."""
        model, odds = self.model(ODDS), np.empty(len(self.known))
        if out_of_fold:
            cross = self._cross(ODDS, False, True, ("probs",))
            model = cross.embedding_.model_
            for fold, embedding in enumerate(cross.fold_embeddings_):
                rows = np.flatnonzero(cross.folds_ == fold)
                odds[rows] = self._odds(embedding.model_, [self.known[i] for i in rows])
        else:
            odds = self._odds(model, self.known)
        return odds / lengths_of(self.known), self._odds(model, self.fresh) / lengths_of(self.fresh)

    def _scores(
        self, kind: str, plain: bool, per_residue: bool, blocks: tuple[str, ...] | None, out_of_fold: bool
    ) -> tuple[Floats, Floats]:
        if out_of_fold:
            cross = self._cross(kind, plain, per_residue, blocks)
            return cross.transform(self.known), cross.transform(self.fresh)
        fisher = _fisher(self.model(kind), plain, per_residue, blocks).fit(self.known)
        return fisher.transform(self.known), fisher.transform(self.fresh)

    def _cross(self, kind: str, plain: bool, per_residue: bool, blocks: tuple[str, ...] | None) -> CrossFit:
        """Return scores under models that go on from the common one without a fold, so that states keep their order."""

        def fitted() -> CrossFit:
            fisher = _fisher(self._estimator(kind, self.model(kind)), plain, per_residue, blocks, fit_on=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                return CrossFit(fisher, cv=FOLDS).fit(self.known, self.y, groups=self._groups)

        return self._once(("cross", kind, plain, per_residue, blocks), fitted)

    def _once(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]


def machine_scores(models: Models, variant: Variant) -> Floats:
    """Return the decision values of the test sequences."""
    known, fresh = models.features(variant)
    within, across = (part @ known.T for part in (known, fresh))
    squares = within.diagonal().copy()
    if variant.kernel == "linear":
        scale = 1.0 / squares.mean()
        within *= scale
        across *= scale
    else:  # in place: the matrices are large
        for part, own in ((within, squares), (across, (fresh**2).sum(axis=1))):
            part *= -2.0
            part += squares
            part += own[:, None]
            np.maximum(part, 0.0, out=part)
        nearest = np.median(np.sqrt(within[models.y][:, ~models.y].min(axis=1)))
        for part in (within, across):
            part *= -0.5 / (variant.width * nearest) ** 2
            np.exp(part, out=part)
    return np.asarray(machine(variant.balanced).fit(within, models.y).decision_function(across))


def machine(balanced: bool = True) -> SVC:
    """Return a support vector machine for kernels of unit diagonal."""
    return SVC(C=C, kernel="precomputed", class_weight="balanced" if balanced else None, cache_size=500)


def left_out_together(y: NDArray[np.bool_], families: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return the group of each training sequence: its family, but if all positives are of one, each of these alone."""
    alone = y & (len(set(families[y])) < 2)
    return np.where(alone, [f"sequence {i}" for i in range(len(y))], families)


def lengths_of(objects: Sequence[str]) -> Floats:
    """Return the lengths of sequences."""
    return np.array([len(one) for one in objects], np.float64)


def _fisher(model: Any, plain: bool, per_residue: bool, blocks: Any, fit_on: Any = None) -> FisherScore:
    information, coordinates = ("identity", "ratio") if plain else ("complete", "softmax")
    norm = "length" if per_residue else None
    kept = None if blocks is None else list(blocks)
    return FisherScore(model, information, coordinates, length_norm=norm, blocks=kept, fit_on=fit_on)
