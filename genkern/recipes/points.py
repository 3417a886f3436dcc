"""Sets of points: Fisher vectors of a Gaussian mixture."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from genkern.features.fisher import FisherScore
from genkern.learn import KernelRidgeClassifierCV
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.models.mixture.estimator import MixtureEstimator
from genkern.preprocess.block_normalizer import BlockNormalizer
from genkern.preprocess.scaling import ScaleSeries
from genkern.recipes.recipe import Recipe
from genkern.recipes.series import BLOCKS, STEPS


def points(
    n_components: int = 32, *, random_state: Any = 0, n_jobs: int | None = None, class_weight: Any = None
) -> Pipeline:
    """Return a ridge classifier on Fisher vectors of sets of points, whose order does not matter.

    Points of all sets are modelled without labels by a Gaussian mixture; scores of means and variances and expected
    counts of the components, per point, are brought to a common scale (``BlockNormalizer``).

    Parameters
    ----------
    n_components : int, default=32
        Components of the mixture.
    random_state : int, default=0
        Seed of the mixture.
    n_jobs : int, optional
        Threads.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of the losses of the classes' objects; "balanced" gives all classes the same weight together.

    Returns
    -------
    pipeline : Pipeline
        Steps "scale", "vectors", "ridge". Where sets come in groups, the penalty is chosen by leaving out whole groups:
        ``fit(X, y, groups=groups)``.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers.
    Perronnin, Sánchez & Mensink (2010), Improving the Fisher kernel for large-scale image classification.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern.recipes import points
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(y, size=(30, 2)) for y in (0, 0, 0, 2, 2, 2)]
    >>> points(n_components=4).fit(X, [0, 0, 0, 1, 1, 1]).predict([rng.normal(2, size=(20, 2))])
    array([1])
    """
    gaussian = GaussianEstimator(min_covar=1e-2)
    mixture = MixtureEstimator(n_components, gaussian, max_iter=STEPS, tol=0, random_state=random_state)
    vectors = FisherScore(mixture, "diagonal", length_norm="length", blocks=BLOCKS, n_jobs=n_jobs)
    ridge = KernelRidgeClassifierCV(kernel="linear", class_weight=class_weight)
    return Recipe([("scale", ScaleSeries()), ("vectors", BlockNormalizer(vectors)), ("ridge", ridge)])
