"""Several named embeddings of the same objects, for kernels on different representations."""

from __future__ import annotations

from typing import Any, Self

from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils.metaestimators import _BaseComposition

from genkern.data.representations import Representations
from genkern.data.transformer import Transformer
from genkern.progress import divided
from genkern.validation import carried, one_warning_each

RAW = "passthrough"  # scikit-learn's word for unchanged objects


class Views(Transformer, _BaseComposition):
    r"""Represent each object in several ways at once, :math:`x \mapsto (\phi_1(x), \dots, \phi_V(x))`, under names.

    The kernel ``On(name, k)`` compares one of them, and sums and products of such kernels several: Fisher scores,
    models of single objects and word counts. ``Gram`` computes their matrices.

    Parameters
    ----------
    views : list of (str, transformer)
        Names and embeddings; "passthrough" instead of an embedding gives the unchanged objects.
    n_jobs : int, optional
        Threads, over views.

    Attributes
    ----------
    embeddings_ : dict of str to transformer
        The fitted clones.

    Notes
    -----
    Embeddings are parameters by their names, as in ``FeatureUnion``: ``fisher`` replaces one,
    ``fisher__estimator__n_states`` is one of its parameters. Explicit features can also be concatenated by
    ``FeatureUnion``, which adds up linear kernels; views are for all other kernels, and for models.

    Examples
    --------
    >>> from genkern import FisherScore, FitEach, Gram, HMMEstimator, Linear, On, ProbabilityProduct, Views
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn.svm import SVC
    >>> hmm = HMMEstimator(n_states=2, random_state=0, tol=1e-2)
    >>> kernel = On("fisher", Linear().normalized()) + On("models", ProbabilityProduct(0.5, 5).normalized())
    >>> classifier = Pipeline([
    ...     ("views", Views([("fisher", FisherScore(hmm)), ("models", FitEach(hmm))])),
    ...     ("gram", Gram(kernel)),
    ...     ("svc", SVC(kernel="precomputed")),
    ... ]).set_params(views__fisher__estimator__n_states=3, gram__kernel__right__kernel__kernel__rho=1.0)
    >>> classifier.fit(["aaab", "aaba", "abaa", "bbab", "bbba", "bbbb"], [0, 0, 0, 1, 1, 1]).predict(["aaaa", "babb"])
    array([0, 1])
    """

    _fitted = "embeddings_"
    _refuses_y = False

    def __init__(self, views: list[tuple[str, Any]], n_jobs: int | None = None):
        self.views = views
        self.n_jobs = n_jobs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters, those of the embeddings by ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include embeddings and their parameters.
        """
        params: dict[str, Any] = self._get_params("views", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, embeddings by their names, their parameters by ``name__parameter``."""
        self._set_params("views", **params)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        self._start()
        self._run("fit", X, y)

    def fit_transform(self, X: Any, y: Any = None) -> Representations:
        """Fit all embeddings and return the views of the training objects.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,), optional
            Passed to the embeddings.

        Returns
        -------
        representations : Representations
        """
        self._start()
        return Representations(self._run("fit_transform", self._begin(X, y), y))

    def _transform(self, X: Any) -> Representations:
        return Representations(self._run("transform", X))

    def _start(self) -> None:
        """Set clones of the embeddings, by name, refusing what is none."""
        if not isinstance(self.views, list) or not self.views or any(len(pair) != 2 for pair in self.views):
            raise TypeError(f"Views: 'views' must be a list of pairs (name, embedding). Got {self.views!r:.80}.")
        self._validate_names([name for name, _ in self.views])
        for name, embedding in self.views:
            if embedding != RAW and not (hasattr(embedding, "fit_transform") and hasattr(embedding, "transform")):
                raise TypeError(f"Views: view {name!r} must be a transformer or {RAW!r}. Got {embedding!r:.80}.")
        self.embeddings_ = {name: RAW if embedding == RAW else clone(embedding) for name, embedding in self.views}

    @one_warning_each()
    def _run(self, method: str, X: Any, *y: Any) -> dict[str, Any]:
        """Return the results of a method of each embedding, and the objects themselves for "passthrough"."""
        chosen = {name: embedding for name, embedding in self.embeddings_.items() if embedding != RAW}
        tasks = (
            delayed(carried(divided(getattr(embedding, method), len(chosen))))(X, *y) for embedding in chosen.values()
        )
        done = dict(zip(chosen, Parallel(n_jobs=self.n_jobs, require="sharedmem")(tasks)))
        return {name: done.get(name, X) for name in self.embeddings_}

    def _inner(self) -> list[Any]:
        return [embedding for _, embedding in self.views if embedding != RAW]
