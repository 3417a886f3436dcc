"""One model per object."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone

from genkern.data.objects import Packed, object_digests
from genkern.data.store import Store, make_key
from genkern.data.transformer import Transformer
from genkern.features.class_models import check_estimator_of_models

PARTS = 4  # of the objects for each of several workers, so that all are busy to the end
VERSION = 1  # version of the fits in a store; raised whenever the same settings give other models


class FitEach(Transformer):
    r"""Represent each object by a model fitted to it alone, :math:`x_i \mapsto p(\cdot | \hat\theta(x_i))`.

    The models are then compared by a kernel between distributions:
    ``Gram(ProbabilityProduct(length=10).normalized())``.

    Parameters
    ----------
    estimator : estimator of models
        Such as ``HMMEstimator(n_states=3)``. All objects are fitted in one batched call of its ``fit_each``.
    store : Store, optional
        Memo of fitted models, shared by all clones: each object is fitted once per setting of ``estimator``,
        however many folds and grid points it is in.
    n_jobs : int, optional
        Threads; overrides the estimator's own.
    verbose : int, default=0
        Report the fits; overrides the estimator's own.

    Attributes
    ----------
    estimator_ : estimator
        The estimator with the alphabet of all objects given to ``fit``, which learns nothing else: the models
        of new objects must be over the same symbols to be comparable.
    median_length_ : int
        The median number of observations of the objects given to ``fit``: a ``length`` to try for kernels between
        models of short sequences.

    Notes
    -----
    A model depends on its object, the alphabet and the estimator's settings (with ``random_state``), never on
    the other
    objects, their order, or ``n_jobs``.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.

    Examples
    --------
    >>> from genkern import FitEach, HMMEstimator
    >>> models = FitEach(HMMEstimator(n_states=2, tol=1e-3)).fit_transform(["abab", "aabb", "bbba"])
    >>> len(models), models[0].n_states
    (3, 2)
    """

    _fitted = "estimator_"

    def __init__(self, estimator: Any, store: Store | None = None, n_jobs: int | None = None, verbose: int = 0):
        self.estimator = estimator
        self.store = store
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, y: Any) -> None:
        if self.store is not None and not isinstance(self.store, Store):
            raise TypeError(f"FitEach: 'store' must be a Store or None. Got {type(self.store).__name__}.")
        estimator = check_estimator_of_models(self.estimator, "FitEach")
        packed = estimator.pack(X)
        resolved = clone(estimator.resolve(packed))
        self._event = packed.values.shape[1:]
        self.median_length_ = int(np.median(packed.lengths))
        self.estimator_ = resolved

    def _encode(self, X: Any) -> Any:
        return self.estimator_.pack(X)

    def _transform(self, packed: Packed) -> list[Any]:
        if packed.values.shape[1:] != self._event:
            raise ValueError(
                f"FitEach: objects must have {self._event[0]} channels, as in fit, for their models to be "
                f"comparable. Got {packed.values.shape[1]}."
            )
        worker = self._worker()
        worker.check_each(packed)
        if self.store is None:
            return self._models(worker, packed)
        setting = make_key("FitEach", VERSION, worker)
        keys = [make_key(setting, digest) for digest in object_digests(packed)]
        return self.store.fetch_many(keys, lambda missing: self._models(worker, packed.take(missing)))

    def _models(self, worker: Any, packed: Packed) -> list[Any]:
        """Return the models of objects: from one call, or from one for each part where the workers are processes."""
        jobs = min(effective_n_jobs(self.n_jobs), packed.n_objects)
        if jobs <= 1 or _of_threads():
            models: list[Any] = worker.fit_each(packed)
            return models
        bounds = np.linspace(0, packed.n_objects, min(PARTS * jobs, packed.n_objects) + 1).astype(int).tolist()
        parts = [slice(first, last) for first, last in pairwise(bounds)]
        work = (delayed(_fit_part)(worker, packed.take(part)) for part in parts)
        results = iter(Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(work))
        models = []
        for part in parts:
            try:
                found, warned = next(results)
            except ValueError:
                worker.fit_each(packed)  # whose error has the caller's indices of objects
                raise
            models += found
            for category, text in warned:
                warnings.warn(f"Objects {part.start} to {part.stop - 1}: {text}", category, stacklevel=2)
        return models

    def _worker(self) -> Any:
        """Return the estimator with this transformer's n_jobs and verbose, where they are given."""
        known = self.estimator_.get_params(deep=False)
        wanted = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        return clone(self.estimator_).set_params(**{k: v for k, v in wanted.items() if v and k in known})


def _of_threads() -> bool:
    """Return whether joblib's workers at hand are threads, which share the memory of this process."""
    return bool(getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False))


def _fit_part(worker: Any, packed: Packed) -> tuple[list[Any], list[tuple[type[Warning], str]]]:
    """Return the models of some of many objects, and the warnings about them, which processes would keep."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = worker.fit_each(packed)
    return models, [(one.category, str(one.message)) for one in caught]
