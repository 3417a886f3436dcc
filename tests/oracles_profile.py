"""Profile models path by path, from their definition: an oracle that shares no code with the library."""

from __future__ import annotations

import numpy as np

from genkern import ProfileHMM
from tests.cases import rows

AROUND = {"N": 0, "J": 1, "C": 2}


def random_profile(rng, K=3, symbols=3, kind="free", alphabet=None):
    """Return a profile of random probabilities: entries and exits anywhere, or without repeats, deletions first."""
    T = np.concatenate([rows(rng, K + 1, 3), rows(rng, K + 1, 2), rows(rng, K + 1, 2)], axis=1)
    T[0, 5:] = T[K, 5:] = 1.0, 0.0
    T[K, :3] = [0.7, 0.3, 0.0]
    entry, exits, flanks = rows(rng, K + 1), rows(rng, K + 1, 2), rows(rng, 4, 2)
    exits[0] = 0.0, 1.0
    flanks[:3, 0] = 0.2 + 0.3 * flanks[:3, 0]
    flanks[:, 1] = 1.0 - flanks[:, 0]
    if kind == "several":
        T[0, :3] = 0.6, 0.4, 0.0
    else:
        flanks[3] = 0.0, 1.0
    tables = rows(rng, K, symbols), rows(rng, K + 1, symbols), T
    null = rows(rng, symbols)
    return ProfileHMM(*tables, entry=entry, exits=exits, flanks=flanks, null=null, alphabet=alphabet)


def next_steps(model, name):
    """Yield the next state, its probability and the distribution of its symbol, None if it is silent."""
    K, T = len(model.match), model.transitions
    kind, k = name[0], int(name[1:] or 0)
    if kind in AROUND:
        stay, go = model.flanks[AROUND[kind]]
        yield name, stay, model.null
        yield "B" if kind != "C" else "end", go, None
    elif kind == "B":
        for j in range(1, K + 1):
            yield f"M{j}", model.entry[j], model.match[j - 1]
        yield "G", model.entry[0], None
    elif kind == "E":
        yield "J", model.flanks[3, 0], None
        yield "C", model.flanks[3, 1], None
    elif kind == "I":
        yield (f"M{k + 1}", T[k, 3], model.match[k]) if k < K else ("E", T[k, 3], None)
        yield name, T[k, 4], model.insert[k]
    else:
        onward = 1.0
        if kind != "G":
            yield "E", model.exits[k, 0], None
            onward = model.exits[k, 1]
        to_match, to_deleted = T[k, [5, 6]] if kind == "D" else T[k, [0, 2]]
        if kind != "D":
            yield f"I{k}", onward * T[k, 1], model.insert[k]
        yield (f"M{k + 1}", onward * to_match, model.match[k]) if k < K else ("E", onward * to_match, None)
        if k < K:
            yield f"D{k + 1}", onward * to_deleted, None


def all_paths(model, codes):
    """Return all paths of a sequence, lists of states that emit or are deletions, and their probabilities with it.

    A way through node 0 and one past it, or to E through the last node and from it, are one path.
    """
    found = {}

    def follow(name, t, weight, path):
        if name == "end":
            if t == len(codes):
                found[tuple(path)] = found.get(tuple(path), 0.0) + weight
            return
        for state, probability, law in next_steps(model, name):
            if probability == 0.0:
                continue
            if law is None:
                follow(state, t, weight * probability, [*path, state] if state[0] == "D" else path)
            elif t < len(codes):
                follow(state, t + 1, weight * probability * law[codes[t]], [*path, state])

    follow("N", 0, 1.0, [])
    return [(list(path), weight) for path, weight in found.items()]
