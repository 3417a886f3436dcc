"""Observed Markov chains as hidden Markov models, whose states are the last symbols seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.chains.passes import Tables
from genkern.data.objects import Alphabet
from genkern.models.families.categorical import Categorical
from genkern.models.hmm.model import HMM
from genkern.validation import Floats

LARGEST_MATRIX = 1 << 25  # most transitions written out


def chain_to_hmm(tables: Tables, alphabet: Alphabet, who: str) -> HMM:
    """Return the model of the same distribution: states (table, context), behind those of words of fewer symbols."""
    contexts, count, m = tables.steps.shape[2], tables.steps.shape[1], alphabet.size
    prefixes = [m**j for j in range(1, tables.order)]
    n = count * contexts + len(tables.begin) * sum(prefixes)
    if n * n > LARGEST_MATRIX:
        raise ValueError(
            f"{who}.to_hmm: order {tables.order} over {m} symbols needs {n} states, and {n} x {n} transitions are too "
            "many. Lower the order."
        )
    start, transitions = np.zeros(n), np.zeros((n, n))
    if tables.order == 0:
        np.add.at(start, tables.begin, tables.phases[0])
        transitions[np.arange(n), (np.arange(n) + 1) % n] = 1.0
        return HMM(start, transitions, Categorical(tables.steps[0, :, 0], alphabet))
    where = np.arange(count * contexts).reshape(count, contexts)
    onward = (np.arange(contexts)[:, None] * m + np.arange(m)) % contexts
    for table in range(count):
        transitions[where[table][:, None], where[(table + 1) % count][onward]] = tables.steps[0, table]
    first, last = count * contexts, [np.arange(count * contexts) % m]
    for phase, table in enumerate(tables.begin):
        levels = [np.arange(first + sum(prefixes[:j]), first + sum(prefixes[: j + 1])) for j in range(len(prefixes))]
        levels.append(where[table])
        _prolong(tables.phases[0, phase], tables.start[0, phase], levels, start, transitions)
        first += sum(prefixes)
        last += [np.arange(size) % m for size in prefixes]
    return HMM(start, transitions, Categorical(np.eye(m)[np.concatenate(last)], alphabet))


def _prolong(weight: float, joint: Floats, levels: list[NDArray[np.int64]], start: Floats, transitions: Floats) -> None:
    """Fill in the first k symbols: levels[j] are the states of words of j + 1 symbols, with ``joint`` the law of k."""
    m = len(levels[0])
    laws = [joint.reshape(len(level), -1).sum(axis=1) for level in levels]
    start[levels[0]] += weight * laws[0]
    for shorter, longer, law, total in zip(levels, levels[1:], laws[1:], laws):
        share = law.reshape(-1, m) / np.where(total > 0, total, 1.0)[:, None]
        transitions[shorter[:, None], longer.reshape(-1, m)] = np.where(total[:, None] > 0, share, 1.0 / m)
