"""Fisher features of 100,000 sequences against hmmlearn and NumPy, as one would write it without this library.

Ours starts from strings and gives the scores of start, transitions and emissions, whitened by the complete-data
information. The public posteriors of hmmlearn (``predict_proba``) give those of start and emissions only; its compiled
internals give the sums over pairs of states that transitions need. Both start from encoded symbols, leave the scores
unwhitened, and are timed on a part of the sequences, one by one, which is scaled up.
"""

from __future__ import annotations

import numpy as np
from hmmlearn import _hmmc
from hmmlearn.hmm import CategoricalHMM

from benchmarks.timing import best_times, line
from genkern import HMM, Categorical, FisherScore

STATES, SYMBOLS, COUNT, LENGTH, PART = 8, 4, 100_000, 100, 1000


def public(model: HMM, codes: np.ndarray) -> np.ndarray:
    """Return scores of start and emissions from hmmlearn's posteriors of states."""
    peer = CategoricalHMM(STATES, implementation="scaling", init_params="", params="")
    peer.n_features, peer.emissionprob_ = SYMBOLS, model.emissions.probs
    peer.startprob_, peer.transmat_ = model.start, model.transitions
    features = np.empty((len(codes), STATES + STATES * SYMBOLS))
    for i, symbols in enumerate(codes):
        gamma = peer.predict_proba(symbols[:, None])
        counts = gamma.T @ np.eye(SYMBOLS)[symbols]
        emissions = counts - counts.sum(axis=1, keepdims=True) * model.emissions.probs
        features[i] = np.concatenate([gamma[0] - model.start, emissions.ravel()])
    return features


def internal(model: HMM, codes: np.ndarray) -> np.ndarray:
    """Return all scores from hmmlearn's compiled passes, driven as its own Baum-Welch drives them."""
    start, rows, probs = (np.array(part) for part in (model.start, model.transitions, model.emissions.probs))
    features = np.empty((len(codes), STATES * (1 + STATES + SYMBOLS)))
    for i, symbols in enumerate(codes):
        table = probs.T[symbols]
        _, forward, scaling = _hmmc.forward_scaling(start, rows, table)
        backward = _hmmc.backward_scaling(start, rows, table, scaling)
        steps = _hmmc.compute_scaling_xi_sum(forward, rows, backward, table)
        gamma = forward * backward
        gamma /= gamma.sum(axis=1, keepdims=True)
        counts = gamma.T @ np.eye(SYMBOLS)[symbols]
        parts = (
            gamma[0] - start,
            steps - steps.sum(axis=1, keepdims=True) * rows,
            counts - counts.sum(axis=1, keepdims=True) * probs,
        )
        features[i] = np.concatenate([part.ravel() for part in parts])
    return features


def main() -> None:
    rng = np.random.default_rng(0)
    start, rows, probs = (rng.dirichlet(np.ones(k), shape) for k, shape in ((8, None), (8, 8), (4, 8)))
    model = HMM(start, rows, Categorical(probs, "dna"))
    codes = rng.integers(0, SYMBOLS, (COUNT, LENGTH))
    X = ["".join(word) for word in np.array(list("ACGT"))[codes]]
    fisher = FisherScore(model).fit(X[:PART])
    plain = FisherScore(model, "identity").fit(X[:PART])
    np.testing.assert_allclose(internal(model, codes[:20]), plain.transform(X[:20]), rtol=0, atol=1e-8)
    some = plain.set_params(blocks=["start", "probs"]).fit(X[:PART]).transform(X[:20])
    np.testing.assert_allclose(public(model, codes[:20]), some, rtol=0, atol=1e-8)
    contenders = [
        lambda: fisher.transform(X),
        lambda: public(model, codes[:PART]),
        lambda: internal(model, codes[:PART]),
    ]
    ours, *theirs = best_times(contenders, rounds=3)
    workload = f"Fisher, {COUNT} x {LENGTH}, n={STATES}"
    rate = COUNT * fisher.n_features_out_ / ours / 1e6
    for peer, slow in zip(("hmmlearn predict_proba + NumPy", "hmmlearn internals + NumPy"), theirs, strict=True):
        row = line(workload, peer, slow * COUNT / PART, ours, None)
        print(f"{row} (peer timed on {PART}; ours {rate:.0f} million features a second)", flush=True)


if __name__ == "__main__":
    main()
