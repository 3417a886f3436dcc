"""The papers' synthetic problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.io.dataset import Dataset
from genkern.models.families.categorical import Categorical
from genkern.models.families.gaussian import Gaussian
from genkern.models.hmm.model import HMM
from genkern.models.mixture.model import Mixture
from genkern.validation import Floats, check_int

TWO_HMMS = """\
Binary sequences from two hidden Markov models with three states on a ring. State 0 emits mostly "0", state
2 mostly "1", state 1 either. Class "linger" tends to stay where it is, class "hurry" to move on. In both
classes a symbol is "1" with probability 1/2 at every position: only the order of the symbols tells.
At length 100 and equal priors the Bayes error, measured with the true models, is 6.1 %."""

TWO_MIXTURES = """\
Points of two classes, each a mixture of two isotropic Gaussians with a common mean: at 0, with standard deviations 1
and 1/2, in class "first", at 1/10 in every channel, with 4/5 and 2/5, in class "second". The means are so close, and
the channels so many, that the norm of a point tells most. In 100 channels the Bayes error is 3.7 %."""


def two_hmms() -> tuple[HMM, HMM]:
    r"""Return the two generators of :func:`make_two_hmms`, "linger" first.

    The states form a ring. From every state the chain stays, moves on, or moves back with probabilities
    0.7, 0.2, 0.1 ("linger") and 0.25, 0.6, 0.15 ("hurry"). Both start uniformly and emit "1" with
    probability 0.1, 0.5 and 0.9 in the three states. The stationary law is uniform, so every symbol is "1"
    with probability 1/2 in both classes.

    Returns
    -------
    linger, hurry : HMM
        Models with 3 states over the alphabet "01".

    Notes
    -----
    With 100 observations, equal priors and the true models, the Bayes error is 6.1 % (100 000 sequences,
    standard error 0.08 %). The paper built its two models by hand and does not print them; its
    Bayes classifier, with fitted models, has 6.2 %.

    References
    ----------
    .. [1] N. A. Mehta, A. G. Gray (2010), Generative and latent mean map kernels, section 5 (synthetic data).
    """
    emissions = Categorical([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], alphabet="01")
    start = np.full(3, 1.0 / 3.0)
    return HMM(start, _ring(0.7, 0.2, 0.1), emissions), HMM(start, _ring(0.25, 0.6, 0.15), emissions)


def make_two_hmms(n_per_class: int = 500, length: int = 100, random_state: Any = 0) -> Dataset:
    """Draw the synthetic problem of the mean map paper: binary sequences from :func:`two_hmms`.

    Parameters
    ----------
    n_per_class : int
        Sequences per class.
    length : int
        Symbols per sequence.
    random_state : int, Generator or None
        Seed of the draws.

    Returns
    -------
    Dataset
        ``X`` is a list of strings over "01": first all of class "linger", then all of class "hurry".

    Examples
    --------
    >>> from genkern.datasets import make_two_hmms
    >>> make_two_hmms(n_per_class=20)
    Dataset(two HMMs: 40 objects, classes hurry 20, linger 20)
    """
    check_int(n_per_class, "n_per_class", "make_two_hmms", minimum=1)
    check_int(length, "length", "make_two_hmms", minimum=1)
    rng = np.random.default_rng(random_state)
    labels = ("linger", "hurry")
    drawn = [model.sample(n_per_class, length=length, rng=rng) for model in two_hmms()]
    return Dataset(
        [sequence for group in drawn for sequence in group],
        np.repeat(labels, n_per_class),
        [f"{label}{i + 1:03d}" for label in labels for i in range(n_per_class)],
        kind="symbols",
        meta={"name": "two HMMs", "description": TWO_HMMS},
    )


def two_mixtures(n_features: int = 100) -> tuple[Mixture, Mixture]:
    r"""Return the two generators of :func:`make_two_mixtures`, "first" first.

    .. math:: q(x) = \tfrac12 N(x; \mu, \sigma_1^2 I) + \tfrac12 N(x; \mu, \sigma_2^2 I)

    with :math:`\mu = 0, \sigma = (1, \tfrac12)` in the first class and :math:`\mu = \tfrac1{10}, \sigma = (\tfrac45,
    \tfrac25)` in the second.

    Parameters
    ----------
    n_features : int, default=100
        Channels.

    Returns
    -------
    first, second : Mixture

    References
    ----------
    .. [1] K. Tsuda, M. Kawanabe, G. Rätsch, S. Sonnenburg, K.-R. Müller (2002), A new discriminative kernel from
       probabilistic models, section 5, eq. 5.1.
    """
    check_int(n_features, "n_features", "two_mixtures", minimum=1)

    def mixture(mean: float, deviations: tuple[float, float]) -> Mixture:
        return Mixture([0.5, 0.5], Gaussian(np.full((2, n_features), mean), np.square(deviations)))

    return mixture(0.0, (1.0, 0.5)), mixture(0.1, (0.8, 0.4))


def make_two_mixtures(n: int = 240, n_features: int = 100, random_state: Any = 0) -> Dataset:
    """Draw the synthetic problem of the TOP paper: points of :func:`two_mixtures`, both classes with probability 1/2.

    Parameters
    ----------
    n : int, default=240
        Points in all; how many are of each class is random, too.
    n_features : int, default=100
        Channels.
    random_state : int, Generator or None
        Seed of the draws.

    Returns
    -------
    Dataset
        ``X`` is a list of bags of one point, arrays of shape (1, n_features), in random order of classes.

    Examples
    --------
    >>> from genkern.datasets import make_two_mixtures
    >>> make_two_mixtures(30)
    Dataset(two mixtures: 30 objects, classes first 10, second 20)
    """
    check_int(n, "n", "make_two_mixtures", minimum=1)
    rng = np.random.default_rng(random_state)
    models = two_mixtures(n_features)
    which = rng.integers(2, size=n)
    drawn = [iter(model.sample(int((which == c).sum()), rng=rng)) for c, model in enumerate(models)]
    return Dataset(
        [next(drawn[c]) for c in which],
        np.array(["first", "second"])[which],
        [f"point{i + 1:04d}" for i in range(n)],
        kind="points",
        meta={"name": "two mixtures", "description": TWO_MIXTURES},
    )


def _ring(stay: float, on: float, back: float) -> Floats:
    """Return transitions (3, 3) of a chain on a ring."""
    unit = np.eye(3)
    return stay * unit + on * np.roll(unit, 1, axis=1) + back * np.roll(unit, -1, axis=1)
