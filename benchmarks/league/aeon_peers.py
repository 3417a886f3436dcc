"""One classifier of aeon on one set, in an environment of its own: ``python aeon_peers.py SET.npz NAME``.

aeon needs an older Numba than the package allows, so nothing of the package is imported here;
``benchmarks.league.peers`` writes the file and reads the line of JSON that this prints: errors in percent, seconds,
peak memory in GB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings

import numpy as np


def hydra():
    """Return MultiRocket-Hydra."""
    from aeon.classification.convolution_based import MultiRocketHydraClassifier

    return MultiRocketHydraClassifier(random_state=0, n_jobs=2)


def rdst():
    """Return the random dilated shapelet transform, which takes unequal lengths as they are."""
    from aeon.classification.shapelet_based import RDSTClassifier

    return RDSTClassifier(random_state=0, n_jobs=2)


def quant():
    """Return QUANT."""
    from aeon.classification.interval_based import QUANTClassifier

    return QUANTClassifier(random_state=0)


def padded(X, length):
    """Return series (n, channels, length): the mean of each repeated after its end, and what is longer cut off."""
    out = np.empty((len(X), X[0].shape[0], length))
    for i, series in enumerate(X):
        own = min(series.shape[1], length)
        out[i, :, :own] = series[:, :own]
        out[i, :, own:] = series[:, :own].mean(axis=1, keepdims=True)
    return out


def resampled(X, length):
    """Return series (n, channels, length), by linear interpolation."""
    at = np.linspace(0, 1, length)
    return np.stack([[np.interp(at, np.linspace(0, 1, s.shape[1]), channel) for channel in s] for s in X])


def as_they_are(X, length):
    """Return the list, or an array where lengths are equal."""
    return np.stack(X) if len({series.shape[1] for series in X}) == 1 else X


PEERS = {
    "MR-Hydra, padded": (hydra, padded),
    "MR-Hydra, resampled": (hydra, resampled),
    "RDST": (rdst, as_they_are),
    "QUANT, padded": (quant, padded),
    "QUANT, resampled": (quant, resampled),
}


def main(path: str, name: str) -> None:
    make, prepare = PEERS[name]
    table = np.load(path)
    series = [values.T for values in np.split(table["values"], np.cumsum(table["lengths"])[:-1])]
    y, errors, begin = table["y"], [], time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        for fold in range(int(table["n_folds"])):
            train, test = table[f"train_{fold}"], table[f"test_{fold}"]
            longest = max(max(series[i].shape[1] for i in train), 10)  # none of them takes fewer points
            known, new = (prepare([series[i] for i in part], longest) for part in (train, test))
            predicted = make().fit(known, y[train]).predict(new)
            errors.append(100 * float(np.mean(predicted != y[test])))
    print(
        json.dumps(
            {
                "errors": errors,
                "seconds": time.perf_counter() - begin,
                "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
