"""Candidates on the same folds, one after the other, within a time budget: errors, times, out-of-fold decisions."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from genkern.evaluation.fitting import fit_grouped
from genkern.learn.kernel_classifier import decide
from genkern.preprocess.cross_fit import take
from genkern.progress import each, report
from genkern.validation import Floats

Ints = NDArray[np.int64]
clock: Callable[[], float] = time.perf_counter
UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
SAMPLE = 50  # objects, and twice as many, on which a candidate is tried first,
MANY = 2000  # where a fold has so many
DEARER = 3.0  # about how much longer a candidate takes than the one before, as they are cheap first


class Task(NamedTuple):
    """Objects, their labels, class indices, groups or None, the fold of each, and weights or None."""

    X: Any
    labels: NDArray[Any]
    codes: Ints
    groups: NDArray[Any] | None
    folds: Ints
    weights: Floats | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.codes.max()) + 1

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    def part(self, rows: Ints) -> tuple[Any, NDArray[Any], Any, Any]:
        """Return objects, labels, groups and weights of some rows."""
        groups, weights = (None if given is None else given[rows] for given in (self.groups, self.weights))
        return take(self.X, rows), self.labels[rows], groups, weights

    def mean(self, values: Any, rows: Ints) -> float:
        """Return the mean of a value for each of some rows, by weight; where none has any, all count alike."""
        weights = None if self.weights is None or not self.weights[rows].any() else self.weights[rows]
        return float(np.average(values, weights=weights))


@dataclass
class Entry:
    """How a candidate did: one error, fit and predict time per finished fold, and its decisions there."""

    name: str
    estimator: Any
    errors: list[float] = field(default_factory=list)
    fit_seconds: list[float] = field(default_factory=list)
    predict_seconds: list[float] = field(default_factory=list)
    decisions: list[Floats] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    status: str = "not tried"
    model: Any = None  # that of the first fold
    failure: Exception | None = None

    def result(self) -> dict[str, Any]:
        """Return what is reported."""
        return {
            "name": self.name,
            "status": self.status,
            "error": float(np.mean(self.errors)) if self.errors else None,
            "spread": float(np.std(self.errors)) if self.errors else None,
            "fold_errors": list(self.errors),
            "fit_seconds": sum(self.fit_seconds),
            "predict_seconds": sum(self.predict_seconds),
            "warnings": list(self.warned),
        }

    @property
    def usable(self) -> bool:
        """Whether it has a finished fold and did not fail later."""
        return bool(self.errors) and not self.status.startswith("failed")


def seconds_of(budget: Any, who: str) -> float:
    """Return a time budget in seconds, infinite for None."""
    if budget is None:
        return np.inf
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", str(budget).lower())
    if isinstance(budget, bool) or match is None or match[2] not in UNITS or float(match[1]) <= 0:
        raise ValueError(
            f"The 'budget' parameter of {who} must be a positive number of seconds, a string such as '30s', '5min' or "
            f"'1h', or None. Got {budget!r} instead."
        )
    return float(match[1]) * UNITS[match[2]]


def decision_values(model: Any, X: Any, n_classes: int) -> Floats:
    """Return decision values (n,) of two classes or (n, n_classes), refusing such as are no numbers."""
    if hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), dtype=np.float64)
    elif hasattr(model, "predict_proba"):
        logs = np.log(np.maximum(model.predict_proba(X), np.finfo(float).tiny))
        values = logs[:, 1] - logs[:, 0] if n_classes == 2 else logs
    else:
        raise TypeError(f"{type(model).__name__} has neither decision_function nor predict_proba.")
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    expected = (len(values),) if n_classes == 2 else (len(values), n_classes)
    if values.shape != expected:
        raise ValueError(f"decision values must have shape {expected}. Got {values.shape}.")
    if np.isnan(values).any():
        raise ValueError(f"the decision value of object {int(np.argwhere(np.isnan(values))[0][0])} is NaN.")
    return values


class Race:
    """Runs candidates one after the other, fold after fold, until they are done, the time is over or Ctrl-C."""

    task: Task

    def __init__(self, budget: float, verbose: int):
        self.verbose = verbose
        self.deadline = clock() + budget
        self.entries: list[Entry] = []
        self.interrupted = False

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.deadline - clock()

    @property
    def best(self) -> Entry | None:
        """The candidate with the least mean error on the folds that it and the best before it have both finished."""
        best: Entry | None = None
        for entry in filter(lambda entry: entry.usable, self.entries):
            common = min(len(entry.errors), len(best.errors)) if best else 0
            if best is None or np.mean(entry.errors[:common]) < np.mean(best.errors[:common]):
                best = entry
        return best

    def run(self, candidates: Mapping[str, Any], task: Task) -> Entry:
        """Try all candidates and return the best; Ctrl-C ends the race once a fold is finished."""
        self.task = task
        self.entries = [Entry(name, estimator) for name, estimator in candidates.items()]
        try:
            costs = [DEARER**number for number in range(len(self.entries))]
            for number, entry in enumerate(each(self.entries, costs)):
                self._try(entry)
                self._tell(entry, len(self.entries) - number - 1)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.interrupted = True
            for entry in self.entries:
                entry.status = "stopped: interrupted" if entry.status == "running" else entry.status
        best = self.best
        if best is None:
            told = "; ".join(f"{entry.name}: {entry.status.removeprefix('failed: ')}" for entry in self.entries)
            raise ValueError(f"AutoClassifier: all candidates failed. {told}") from self.entries[0].failure
        return best

    def refit(self, entry: Entry) -> Any:
        """Return a candidate fitted to all objects."""
        return fit_grouped(entry.estimator, self.task.X, self.task.labels, self.task.groups, self.task.weights)

    def refit_seconds(self, entry: Entry) -> float:
        """Return how long a fit to all objects takes, from the fits of finished folds."""
        k = self.task.n_folds
        return float(np.mean(entry.fit_seconds)) * k / (k - 1) if entry.fit_seconds else 0.0

    def _try(self, entry: Entry) -> None:
        """Run the folds of a candidate while there is time for the next one and for the refit."""
        entry.status = "running"
        try:
            for fold in each(range(self.task.n_folds)):
                if not self._affordable(entry):
                    entry.status = "stopped: budget"
                    return
                with _recorded(entry.warned):
                    self._fold(entry, fold)
            entry.status = "done"
        except Exception as error:
            entry.status = f"failed: {error}" if str(error) else f"failed: {type(error).__name__}"
            entry.model, entry.failure = None, error

    def _affordable(self, entry: Entry) -> bool:
        """Say whether the next fold, and a refit after it, are within the time; the first fold of all always is."""
        best = self.best
        if np.isinf(self.deadline) or best is None:
            return True
        if entry.errors:
            next_fold, own = (
                float(np.mean(entry.fit_seconds) + np.mean(entry.predict_seconds)),
                self.refit_seconds(entry),
            )
        else:
            next_fold = self._foreseen(entry)
            own = next_fold * self.task.n_folds / (self.task.n_folds - 1)
        return next_fold + max(self.refit_seconds(best), own) <= self.left

    def _foreseen(self, entry: Entry) -> float:
        """Return how long the first fit may take, by a line through fits of small samples; 0 where objects are few."""
        rows = np.flatnonzero(self.task.folds != 0)
        if len(rows) < MANY or self.task.n_classes > SAMPLE // 5:
            return 0.0
        took = []
        for count in (SAMPLE, SAMPLE, 2 * SAMPLE):  # the first one compiles
            begin = clock()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    some = train_test_split(rows, train_size=count, stratify=self.task.codes[rows], random_state=0)[0]
                    fit_grouped(entry.estimator, *self.task.part(some))
                except Exception:
                    return 0.0  # too small a sample, perhaps: the fold will tell
            took.append(clock() - begin)
            if took[-1] > self.left:
                return np.inf
        return took[-1] + max(took[-1] - took[-2], 0.0) * (len(rows) / SAMPLE - 2)

    def _fold(self, entry: Entry, fold: int) -> None:
        """Fit without a fold, and decide about its objects."""
        rows = np.flatnonzero(self.task.folds == fold)
        X = take(self.task.X, rows)
        begin = clock()
        model = fit_grouped(entry.estimator, *self.task.part(np.flatnonzero(self.task.folds != fold)))
        middle = clock()
        values = decision_values(model, X, self.task.n_classes)
        if not np.isfinite(values).all():
            index = int(rows[np.argwhere(~np.isfinite(values))[0][0]])
            raise ValueError(f"the decision about object {index} is infinite, of no use for probabilities.")
        entry.predict_seconds.append(clock() - middle)
        entry.fit_seconds.append(middle - begin)
        entry.decisions.append(values)
        entry.model = model if fold == 0 else entry.model
        entry.errors.append(self.task.mean(decide(values) != self.task.codes[rows], rows))

    def _tell(self, entry: Entry, to_go: int) -> None:
        """Report on a candidate."""
        if self.verbose:
            result = entry.result()
            error = "" if result["error"] is None else f", error {result['error']:.1%} ± {result['spread']:.1%}"
            took = f"{result['fit_seconds'] + result['predict_seconds']:.1f} s"
            left = "" if np.isinf(self.deadline) else f", {max(self.left, 0.0):.0f} s left"
            report(f"AutoClassifier: {entry.name} {entry.status}{error}, {took}; {to_go} to go{left}")


@contextmanager
def _recorded(said: list[str]) -> Iterator[None]:
    """Keep what is warned of, once each, in place of showing it for every fold."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            said += [text for text in dict.fromkeys(str(one.message) for one in caught) if text not in said]
