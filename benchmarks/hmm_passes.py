"""Posterior passes over many sequences against hmmlearn (workloads W1, W1b, W1c), and with own parameters.

Ours gives log P and expected start, transition and emission counts of every sequence. hmmlearn's ``score_samples``
gives only the posteriors of states; its compiled internals, driven as its own Baum-Welch drives them, give the
posteriors of pairs as well. Contenders alternate in one process on one thread; the least of several repeats counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from genkern.core import hmm
from genkern.core.jit import jit
from genkern.core.simd import horizontal_sum, load, multiply_add

SYMBOLS = 4


@jit
def _multiply_adds(a, repeats):
    """Run six independent chains of multiply-adds."""
    x, y = load(a, 0), load(a, 8)
    p, q, r, s, t, u = x, x, x, x, x, x
    for _ in range(repeats):
        p, q, r = multiply_add(x, y, p), multiply_add(x, y, q), multiply_add(x, y, r)
        s, t, u = multiply_add(x, y, s), multiply_add(x, y, t), multiply_add(x, y, u)
    return horizontal_sum(p + q + r + s + t + u)


def best_times(contenders: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the least time of each contender, in seconds; they take turns."""
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(repeats):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def peak() -> float:
    """Return the multiply-add rate of one core, in GFLOP/s."""
    a, repeats = np.full(16, 1e-3), 2_000_000
    _multiply_adds(a, 1)
    times = best_times({"peak": lambda: _multiply_adds(a, repeats)}, 5)
    return repeats * 6 * 16 / times["peak"] / 1e9


def random_chain(n: int, count: int, rng: np.random.Generator) -> tuple[hmm.Chains, np.ndarray]:
    """Return random chains and their emission probabilities (count, n, SYMBOLS)."""
    start, transitions = rng.dirichlet(np.ones(n), count), rng.dirichlet(np.ones(n), (count, n))
    return hmm.Chains(start, transitions, np.ones((count, n))), rng.dirichlet(np.ones(SYMBOLS), (count, n))


def report(name: str, n: int, steps: int, times: dict[str, float], goals: dict[str, float], rate: float) -> None:
    """Print our time and share of the peak, and each rival's time and ratio with its goal."""
    ours = times["ours"]
    share = steps * 6 * n * n / ours / 1e9 / rate
    line = f"{name:<22} n={n:<3} ours {ours * 1e3:9.2f} ms ({share:4.0%} of peak)"
    for rival, goal in goals.items():
        ratio = times[rival] / ours
        line += f"  {rival} {times[rival] * 1e3:9.1f} ms = {ratio:5.1f}x (goal {goal:g}x)"
    print(line, flush=True)


def shared(name: str, n: int, count: int, length: int, goals: dict[str, float], repeats: int, rate: float) -> None:
    """Time one shared model on equally long sequences."""
    from hmmlearn import _hmmc
    from hmmlearn.hmm import CategoricalHMM

    rng = np.random.default_rng(0)
    chains, emissions = random_chain(n, 1, rng)
    codes = rng.integers(0, SYMBOLS, count * length).astype(np.int32)
    offsets = np.arange(count + 1) * length
    evidence = hmm.Evidence(np.ascontiguousarray(emissions[0].T), np.zeros(SYMBOLS), codes)
    model = CategoricalHMM(n, implementation="scaling", init_params="", params="")
    model.n_features = SYMBOLS
    model.startprob_, model.transmat_, model.emissionprob_ = chains.start[0], chains.transitions[0], emissions[0]
    column, lengths = codes[:, None], [length] * count
    start, transitions = chains.start[0], chains.transitions[0]

    def internals() -> None:
        table = evidence.table[codes]
        for i in range(count):
            b = table[i * length : (i + 1) * length]
            _, forward, scaling = _hmmc.forward_scaling(start, transitions, b)
            backward = _hmmc.backward_scaling(start, transitions, b, scaling)
            _hmmc.compute_scaling_xi_sum(forward, transitions, backward, b)
            gamma = forward * backward
            gamma /= gamma.sum(axis=1, keepdims=True)

    contenders = {
        "ours": lambda: hmm.gradients(chains, evidence, offsets),
        "score_samples": lambda: model.score_samples(column, lengths),
        "internals": internals,
    }
    contenders = {key: run for key, run in contenders.items() if key == "ours" or key in goals}
    contenders["ours"]()
    report(name, n, count * length, best_times(contenders, repeats), goals, rate)


def own(n: int, count: int, length: int, repeats: int, rate: float) -> None:
    """Time one step of many models, each on its own sequence."""
    rng = np.random.default_rng(0)
    chains, emissions = random_chain(n, count, rng)
    codes = rng.integers(0, SYMBOLS, count * length).astype(np.int32)
    table = np.ascontiguousarray(emissions.transpose(0, 2, 1)).reshape(-1, n)
    evidence = hmm.Evidence(table, np.zeros(len(table)), codes)
    offsets = np.arange(count + 1) * length
    run = {"ours": lambda: hmm.gradients(chains, evidence, offsets)}
    run["ours"]()
    report(f"own {count} x {length}", n, count * length, best_times(run, repeats), {}, rate)


def threads(n: int, count: int, length: int, repeats: int) -> None:
    """Time one and two threads on the same work."""
    rng = np.random.default_rng(0)
    chains, emissions = random_chain(n, 1, rng)
    codes = rng.integers(0, SYMBOLS, count * length).astype(np.int32)
    evidence = hmm.Evidence(np.ascontiguousarray(emissions[0].T), np.zeros(SYMBOLS), codes)
    offsets = np.arange(count + 1) * length
    times = best_times(
        {f"{jobs} threads": lambda jobs=jobs: hmm.gradients(chains, evidence, offsets, n_jobs=jobs) for jobs in (1, 2)},
        repeats,
    )
    one, two = times["1 threads"], times["2 threads"]
    print(
        f"threads {count} x {length}, n={n}: one {one * 1e3:.1f} ms, two {two * 1e3:.1f} ms = {one / two:.2f}x (goal 1.7x)"
    )


def main() -> None:
    """Run all comparisons on one thread, then compare one thread with two."""
    with threadpool_limits(1):
        rate = peak()
        print(f"HMM passes, one thread; peak of one core {rate:.1f} GFLOP/s", flush=True)
        for n in (4, 8, 16, 32, 64):
            shared("W1  1000 x 100", n, 1000, 100, {"score_samples": 12, "internals": 18}, 7 if n < 32 else 3, rate)
        shared("W1b 100000 x 50", 8, 100_000, 50, {"score_samples": 15}, 2, rate)
        shared("W1c 10 x 100000", 8, 10, 100_000, {"internals": 3}, 3, rate)
        for n, count, length in ((3, 1000, 100), (8, 200, 1000), (12, 100, 1000), (16, 100, 1000), (30, 10, 10_000)):
            own(n, count, length, 9, rate)
        threads(8, 20_000, 50, 5)
        threads(32, 1000, 100, 5)


if __name__ == "__main__":
    main()
