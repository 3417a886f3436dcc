"""Series of any length, and closed contours: Fisher scores of windows at many scales."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import FeatureUnion, Pipeline

from genkern.features.fisher import FisherScore
from genkern.learn import KernelRidgeClassifierCV
from genkern.learn.ridge import ALPHAS as RIDGE_ALPHAS
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.models.hmm.estimator import HMMEstimator
from genkern.models.mixture.estimator import MixtureEstimator
from genkern.preprocess.block_normalizer import BlockNormalizer
from genkern.preprocess.channels import Channels
from genkern.preprocess.multi_scale import MultiScale
from genkern.preprocess.scaling import CentreSeries
from genkern.preprocess.turns import Turns
from genkern.recipes.recipe import Recipe
from genkern.recipes.series_parts import EXTRAS, MANY, OwnUnits, SeriesSum, outlines

STEPS = 20  # of EM
CENTRED = 0.5  # weight of the kernel of centred series, relative to that of the series themselves
ALPHAS = (1e-5, 3e-5, 1e-4, 3e-4, *RIDGE_ALPHAS)  # of a sum of unit trace, of many kernels of one each
MOST = 50_000  # positions of the series that models are learnt from
BLOCKS = ("occupancy", "means", "variances")


def series(
    n_components: int = 32,
    n_states: int = 5,
    *,
    circular: bool = False,
    random_state: Any = 0,
    n_jobs: int | None = None,
    class_weight: Any = None,
) -> Pipeline:
    """Return a ridge classifier on Fisher vectors of the windows of series.

    Every series, unchanged and without its mean (``CentreSeries``), is cut into windows of many widths, unchanged and
    normalised (``MultiScale``). The windows of each kind are modelled without labels, as a bag by a Gaussian mixture
    and in their order by a left-right hidden Markov model. Scores of means and variances and expected visits are
    brought to a common scale (``BlockNormalizer``), and the kernels of all versions, widths and models are summed,
    those of centred series at half weight.

    Two further kernels are tried, and used where the error of leave-one-out is lower with them (``LearntSum``): "own",
    of windows of series that are divided by their own deviation too, under both models, which also say how much of a
    window its waves leave (``Windows(rest=True)``), unless all series have the same deviation; and "whole", a Gaussian
    kernel of the values of a series at 24 evenly spaced times, unless it is closed.

    Parameters
    ----------
    n_components : int, default=32
        Components of the mixture.
    n_states : int, default=5
        States of the hidden Markov model, each with a mixture of four components.
    circular : bool, default=False
        Whether series are closed, as contours are, so that windows continue at the other end.
    random_state : int, default=0
        Seed of the models.
    n_jobs : int, optional
        Threads.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of the losses of the classes' objects; "balanced" gives all classes the same weight together.

    Returns
    -------
    pipeline : Pipeline
        Steps "scores", "ridge". Where objects come in groups (speakers, patients), the penalty is chosen by leaving out
        whole groups: ``fit(X, y, groups=groups)``.

    Notes
    -----
    Windows are in units of their training statistics, so that units of the channels do not matter, and variances are
    kept above 0.01. Labels determine only the weights and the penalty of the ridge, the latter by leave-one-out in
    closed form. Missing values (NaN) are legal.

    Models take twenty steps of EM from clusters found by k-means; they need not converge. On training parts, the
    squared error of leave-one-out was lower after twenty steps than after eight on four sets, and higher by less than
    one per cent on some folds of two others. Scores of transitions are left out: as a block of their own they raised
    the error of leave-one-out on four of these six sets, on spoken digits (speakers left out) from 10.8 to 12.3 %, and
    left it the same on two; its squared error fell slightly on two.

    Centred series, and their weight, were chosen by cross-validation: on three draws of spoken digits other than those
    of ``benchmarks/league``, speakers left out, the error fell from 12.0, 12.3 and 15.2 to 8.2, 11.3 and 11.7 %; within
    training parts it fell from 2.1 to 1.7 % on gestures and from 3.0 to 2.6 % on vowels. For series that are centred
    already they only scale the kernel.

    What is tried was chosen by leave-one-out on training parts. Currents of appliances, whose deviations run from 0 to
    96 (PLAID), err in 28.7 % as they are and in 11.0 % with "own" of the mixture alone; both models take this to 9.9 %
    and, with what waves leave, to 7.1 %: those currents alternate faster than wide windows can follow, and how strong
    they are tells how an appliance starts. The chain lowered the squared error on shapes too, by 8 %, and what is left
    changed that of three other sets by 1.5 % at most. Within windows of series as they are it helped less and hurt
    vowels. Thirds of the series as regions lowered the squared error by 4 % more on PLAID and by 3 % on shapes and
    raised it on four of eleven sets; whole series in their own units raised it on PLAID; the logarithm of the
    deviation, as a channel or as a kernel, added nothing. The kernel of whole series lowered it from 0.205 to 0.131 on
    ItalyPowerDemand, by 11 % on vowels and by 2 % on signed words, and raised it on OSULeaf and spoken digits, where it
    is left out; other widths of the Gaussian, 64 points, differences, spectra and lengths gave no more. Where fewer
    than twenty series (or groups) can be left out nothing is chosen, and neither is used.

    Models are learnt from series with 50,000 positions together, but from 200 of them at least: from 200 of the 537
    of PLAID instead of all, the squared error of leave-one-out rose by 1 to 3 %, on shapes it did not. Of more than
    2000 series the ridge uses features by themselves, without a matrix of kernel values, and chooses its penalty by a
    fifth that is held out (``solver_`` is then "conjugate gradients").

    Symbols become series by ``Channels``; for chain codes of contours see ``contours``.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers.
    Perronnin, Sánchez & Mensink (2010), Improving the Fisher kernel for large-scale image classification.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern.recipes import series
    >>> X = [np.sin(np.arange(40) / (2 + y)) for y in (0, 0, 0, 1, 1, 1)]
    >>> series(n_components=4, n_states=2).fit(X, [0, 0, 0, 1, 1, 1]).predict([np.cos(np.arange(30) / 3)])
    array([1])
    """
    scores = _scores(n_components, n_states, circular, random_state, n_jobs)
    centred = Pipeline([("centre", CentreSeries()), ("scores", clone(scores))])
    parts: list[tuple[str, Any]] = [*scores.transformer_list, ("centred", centred)]
    ridge = KernelRidgeClassifierCV(ALPHAS, kernel="linear", class_weight=class_weight, exact=MANY)
    weights = {"centred": CENTRED**0.5}
    own = _scores(n_components, n_states, circular, random_state, n_jobs, rest=True)
    parts.append(("own", Pipeline([("units", OwnUnits()), ("scores", own)])))
    if not circular:
        parts.append(("whole", outlines(random_state)))
    return Recipe(
        [("scores", SeriesSum(parts, extras=EXTRAS, transformer_weights=weights, large=MANY)), ("ridge", ridge)]
    )


def contours(
    alphabet: Any = "01234567",
    *,
    n_components: int = 32,
    n_states: int = 5,
    random_state: Any = 0,
    n_jobs: int | None = None,
    unknown: str | None = None,
    class_weight: Any = None,
) -> Pipeline:
    """Return a ridge classifier on Fisher vectors of closed contours, given as chain codes.

    Codes become the cosine and sine of their direction (``Channels``). The windows of these, and those of how
    directions turn (``Turns``), are modelled as in ``series``: the former depend on the orientation of a contour, the
    latter do not, and their kernels are summed.

    Parameters
    ----------
    alphabet : str, int or sequence, default="01234567"
        The codes in the order of their directions, or, if they are integers, their number.
    n_components, n_states, random_state, n_jobs
        As in ``series``.
    unknown : {"missing", "error"}, optional
        Other codes are treated as missing, of no direction, with a warning, or are an error, which is the default.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of the losses of the classes' objects; "balanced" gives all classes the same weight together.

    Returns
    -------
    pipeline : Pipeline
        Steps "channels", "scores", "ridge".

    Notes
    -----
    Contours have no first position: only the left-right models, and the positions of wide windows, which have a stride,
    depend on where a code begins. Turns were added for their effect on shapes of MPEG-7, classes 11 to 70 in six draws
    of twenty classes with ten shapes each: the error of leave-one-out fell from 5.2 to 2.2 %. The errors that are
    reported (``benchmarks/league``) are on the other ten classes.

    References
    ----------
    Freeman (1974), Computer processing of line-drawing images.
    Carli et al., Nonlinear mappings for generative kernels on latent variable models (chain codes of contours).

    Examples
    --------
    >>> from genkern.recipes import contours
    >>> def rectangle(a, b, turned=0):
    ...     return "".join(str((code + turned) % 8) * side for code, side in zip((0, 2, 4, 6), (a, b, a, b)))
    >>> squares, strips = [(20, 20), (24, 24), (30, 30)], [(40, 6), (50, 8), (56, 7)]
    >>> X = [rectangle(a, b) for a, b in squares + strips]
    >>> recipe = contours(n_components=4, n_states=2).fit(X, [0, 0, 0, 1, 1, 1])
    >>> recipe.predict([rectangle(22, 22, turned=1), rectangle(45, 7, turned=3)])
    array([0, 1])
    """
    scores = _scores(n_components, n_states, True, random_state, n_jobs)
    turns = Pipeline([("turns", Turns(circular=True)), ("scores", clone(scores))])
    return Recipe(
        [
            ("channels", Channels("angles", alphabet, unknown)),
            ("scores", FeatureUnion([("directions", scores), ("turns", turns)])),
            ("ridge", KernelRidgeClassifierCV(kernel="linear", class_weight=class_weight)),
        ]
    )


def _scores(
    n_components: int, n_states: int, circular: bool, random_state: Any, n_jobs: int | None, rest: bool = False
) -> FeatureUnion:
    """Return the normalised scores, per position, of windows of all widths under both models."""
    gaussian = GaussianEstimator(min_covar=1e-2)
    limits = {"max_iter": STEPS, "tol": 0, "random_state": random_state}  # tol=0: all steps, whatever their gain
    bag = MixtureEstimator(n_components, gaussian, **limits)
    chain = HMMEstimator(n_states, MixtureEstimator(4, gaussian, **limits), structure="left-right", **limits)
    embeddings = [
        (name, BlockNormalizer(FisherScore(model, "diagonal", length_norm="length", blocks=BLOCKS)))
        for name, model in (("bag", bag), ("chain", chain))
    ]
    return FeatureUnion(
        [
            (name, MultiScale(scores, circular=circular, n_jobs=n_jobs, most=MOST, rest=rest))
            for name, scores in embeddings
        ]
    )
