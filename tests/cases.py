"""Random models and objects, and brute-force oracles that share no code with the library."""

from __future__ import annotations

import itertools
import warnings
from contextlib import contextmanager

import numpy as np
from scipy import stats

from genkern.models.families.categorical import Categorical
from genkern.models.families.gaussian import Gaussian
from genkern.models.hmm.model import HMM


@contextmanager
def hmmlearn_as_it_is():
    """Let hmmlearn set the shapes of arrays, of which newer NumPy warns: that is not ours to mend."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Setting the shape on a NumPy array", DeprecationWarning, r"hmmlearn\.")
        yield


def rows(rng, *shape, zeros=0.0):
    """Random distributions along the last axis, some entries exactly zero."""
    table = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    keep = rng.random(shape) >= zeros
    keep[..., 0] = True
    table = table * keep
    return table / table.sum(axis=-1, keepdims=True)


def random_leaf(rng, family, batch, size=3):
    if family == "categorical":
        return Categorical(rows(rng, *batch, size))
    mean = rng.standard_normal((*batch, size))
    if family == "isotropic":
        return Gaussian(mean, rng.random(batch) + 0.5)
    if family == "diagonal":
        return Gaussian(mean, rng.random((*batch, size)) + 0.5)
    half = rng.standard_normal((*batch, size, size))
    return Gaussian(mean, half @ np.swapaxes(half, -1, -2) + 0.3 * np.eye(size))


def random_hmm(rng, family="categorical", n=2, ending=None, size=3, zeros=0.0):
    emissions = random_leaf(rng, family, (n,), size)
    if ending == "stop":
        joint = rows(rng, n, n + 1)
        return HMM(rows(rng, n), joint[:, :-1], emissions, stop=joint[:, -1])
    end = rows(rng, n) if ending == "end" else None
    return HMM(rows(rng, n, zeros=zeros), rows(rng, n, n, zeros=zeros), emissions, end=end)


def random_sequence(rng, family, length, size=3, missing=0.0):
    if family == "categorical":
        return rng.integers(size, size=length)
    series = rng.standard_normal((length, size))
    series[rng.random(series.shape) < missing] = np.nan
    return series


def point_density(leaf, k, x):
    """Density of one point under member k, missing entries left out."""
    if isinstance(leaf, Categorical):
        return leaf.probs[k, x]
    seen = ~np.isnan(x)
    if not seen.any():
        return 1.0
    d = len(x)
    cov = leaf.cov[k] * np.eye(d) if leaf.cov[k].ndim < 2 else leaf.cov[k]
    cov = np.diag(leaf.cov[k]) if leaf.cov[k].ndim == 1 else cov
    return stats.multivariate_normal(leaf.mean[k][seen], cov[np.ix_(seen, seen)]).pdf(x[seen])


def path_weights(model, x):
    """All state paths of an HMM and their joint probabilities with x, one by one."""
    n = model.n_states
    final = model.end if model.end is not None else model.stop if model.stop is not None else np.ones(n)
    density = np.array([[point_density(model.emissions, k, point) for k in range(n)] for point in x])
    paths = list(itertools.product(range(n), repeat=len(x)))
    weights = []
    for path in paths:
        weight = model.start[path[0]] * density[0, path[0]]
        for t in range(1, len(x)):
            weight *= model.transitions[path[t - 1], path[t]] * density[t, path[t]]
        weights.append(weight * final[path[-1]])
    return paths, np.array(weights)
