"""The papers' synthetic problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.io.dataset import Dataset
from genkern.models.families.categorical import Categorical
from genkern.models.hmm.model import HMM
from genkern.validation import Floats, check_int

TWO_HMMS = """\
Binary sequences from two hidden Markov models with three states on a ring. State 0 emits mostly "0", state
2 mostly "1", state 1 either. Class "linger" tends to stay where it is, class "hurry" to move on. In both
classes a symbol is "1" with probability 1/2 at every position: only the order of the symbols tells.
At length 100 and equal priors the Bayes error, measured with the true models, is 6.1 %."""


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


def _ring(stay: float, on: float, back: float) -> Floats:
    """Return transitions (3, 3) of a chain on a ring."""
    unit = np.eye(3)
    return stay * unit + on * np.roll(unit, 1, axis=1) + back * np.roll(unit, -1, axis=1)
