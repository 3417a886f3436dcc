"""W1: derivatives of many sequences against hmmlearn; passes alone; own parameters; two threads.

Ours takes a list of strings or arrays and gives the derivatives of log P of every sequence by all parameters, from
expected start, transition and emission counts; a second row has the pass alone, from encoded symbols. hmmlearn's
``score_samples`` gives only the posteriors of states; its compiled internals, driven as its own Baum-Welch drives
them, give sums of the posteriors of pairs as well. Each of our times is also shown as a share of the multiply-add
rate of one core, counting 6 n^2 operations a position.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
from hmmlearn import _hmmc
from hmmlearn.hmm import CategoricalHMM

from benchmarks.timing import best_times, line
from genkern import HMM, Categorical
from genkern.core.hmm import passes as hmm
from genkern.core.jit import jit
from genkern.core.simd.vectors import horizontal_sum, load, multiply_add

LETTERS = "ACGT"
SYMBOLS = len(LETTERS)

Case = tuple[hmm.Chains, hmm.Evidence, np.ndarray]


@jit
def multiply_adds(a, repeats):
    """Run six independent chains of multiply-adds."""
    x, y = load(a, 0), load(a, 8)
    p, q, r, s, t, u = x, x, x, x, x, x
    for _ in range(repeats):
        p = multiply_add(x, y, p)
        q = multiply_add(x, y, q)
        r = multiply_add(x, y, r)
        s = multiply_add(x, y, s)
        t = multiply_add(x, y, t)
        u = multiply_add(x, y, u)
    return horizontal_sum(p + q + r + s + t + u)


def peak() -> float:
    """Return the multiply-add rate of one core, in floating-point operations a second."""
    a, repeats = np.full(16, 1e-3), 2_000_000
    (best,) = best_times([lambda: multiply_adds(a, repeats)], rounds=5)
    return repeats * 6 * 16 / best


def random_case(n: int, count: int, length: int, own: bool) -> Case:
    """Return random chains, symbols and sequences."""
    rng = np.random.default_rng(0)
    models = count if own else 1
    start, transitions = rng.dirichlet(np.ones(n), models), rng.dirichlet(np.ones(n), (models, n))
    emissions = rng.dirichlet(np.ones(SYMBOLS), (models, n)).transpose(0, 2, 1).reshape(-1, n)
    codes = rng.integers(0, SYMBOLS, count * length).astype(np.int32)
    evidence = hmm.Evidence(np.ascontiguousarray(emissions), np.zeros(len(emissions)), codes)
    return hmm.Chains(start, transitions, np.ones((models, n))), evidence, np.arange(count + 1) * length


def score_samples(chains: hmm.Chains, evidence: hmm.Evidence, offsets: np.ndarray) -> Callable[[], object]:
    """Return a run of hmmlearn's public posteriors."""
    model = CategoricalHMM(chains.start.shape[1], implementation="scaling", init_params="", params="")
    model.n_features, model.emissionprob_ = SYMBOLS, evidence.table.T
    model.startprob_, model.transmat_ = chains.start[0], chains.transitions[0]
    column, lengths = evidence.codes[:, None], np.diff(offsets)
    return lambda: model.score_samples(column, lengths)


def internals(chains: hmm.Chains, evidence: hmm.Evidence, offsets: np.ndarray) -> Callable[[], object]:
    """Return a run of hmmlearn's compiled internals that gives posteriors of states and sums of those of pairs."""
    start, transitions = chains.start[0], chains.transitions[0]

    def run() -> None:
        table = evidence.table[evidence.codes]
        for first, last in pairwise(offsets):
            b = table[first:last]
            _, forward, scaling = _hmmc.forward_scaling(start, transitions, b)
            backward = _hmmc.backward_scaling(start, transitions, b, scaling)
            _hmmc.compute_scaling_xi_sum(forward, transitions, backward, b)
            gamma = forward * backward
            gamma /= gamma.sum(axis=1, keepdims=True)

    return run


PEERS = {"hmmlearn score_samples": score_samples, "hmmlearn internals": internals}


def shared(name: str, n: int, count: int, length: int, goals: dict[str, float], rounds: int, rate: float) -> None:
    """Race one shared model against hmmlearn on equally long sequences."""
    case = random_case(n, count, length, own=False)
    rivals = [PEERS[peer](*case) for peer in goals]
    ours, *theirs = best_times([lambda: hmm.gradients(*case), *rivals], rounds)
    share = count * length * 6 * n * n / ours / rate
    for (peer, goal), slow in zip(goals.items(), theirs, strict=True):
        print(line(f"{name}, n={n}", peer, slow, ours, goal), f"({share:.0%} of peak)", flush=True)


def public(n: int, count: int, length: int, rounds: int) -> None:
    """Race ``model.log_prob_grad(X)`` of strings and of arrays against hmmlearn on equally long sequences."""
    case = random_case(n, count, length, own=False)
    chains, evidence, _ = case
    codes = evidence.codes.astype(np.int64).reshape(count, length)
    for kind, alphabet, X in (
        ("strings", LETTERS, ["".join(map(LETTERS.__getitem__, row)) for row in codes.tolist()]),
        ("arrays", None, list(codes)),
    ):
        model = HMM(chains.start[0], chains.transitions[0], Categorical(evidence.table.T, alphabet))
        slow, ours = best_times([score_samples(*case), partial(model.log_prob_grad, X)], rounds)
        print(line(f"W1 {kind}, {count} x {length}, n={n}", "hmmlearn score_samples", slow, ours, 12.0), flush=True)


def own(n: int, count: int, length: int, rate: float) -> None:
    """Time one pass of many models, each over its own sequence."""
    case = random_case(n, count, length, own=True)
    (ours,) = best_times([lambda: hmm.gradients(*case)], rounds=9)
    share = count * length * 6 * n * n / ours / rate
    print(f"own models, {count} x {length}, n={n}: {ours * 1e3:.2f} ms ({share:.0%} of peak)", flush=True)


def threads(n: int, count: int, length: int) -> None:
    """Race two threads against one."""
    case = random_case(n, count, length, own=False)
    one, two = best_times([lambda: hmm.gradients(*case), lambda: hmm.gradients(*case, n_jobs=2)], rounds=7)
    print(line(f"two threads, {count} x {length}, n={n}", "one thread", one, two, 1.7), flush=True)


def main() -> None:
    rate = peak()
    print(f"peak of one core: {rate / 1e9:.1f} GFLOP/s", flush=True)
    for n in (4, 8, 16, 32, 64):
        public(n, 1000, 100, 20 if n < 32 else 4)
        goals = {"hmmlearn internals": 18.0}
        shared("W1 pass alone, 1000 x 100", n, 1000, 100, goals, 20 if n < 32 else 4, rate)
    shared("W1b 100000 x 50", 8, 100_000, 50, {"hmmlearn score_samples": 15.0}, 2, rate)
    shared("W1c 10 x 100000", 8, 10, 100_000, {"hmmlearn internals": 3.0}, 3, rate)
    for n, count, length in ((3, 1000, 100), (8, 200, 1000), (12, 100, 1000), (20, 100, 1000), (30, 10, 10_000)):
        own(n, count, length, rate)
    for n, count, length in ((8, 20_000, 50), (32, 1000, 100)):
        threads(n, count, length)


if __name__ == "__main__":
    main()
