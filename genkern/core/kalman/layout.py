"""The layout of the buffer of eight series in ``kalman.adjoint``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class KalmanLayout(NamedTuple):
    """Offsets into the buffer, in vectors, for n states and d channels; a vector has ``one`` column.

    Parameters A, C, Q, R, mean, cov. Per series: length, complete (flag), frozen (flag) since step ``since``, failed
    (step or -1), log_prob, growth (``before``: that of the last step) and drift. Per step: x (d,), P (n, n), K (n, d),
    S (d, d) the inverse innovation covariance, zero for missing channels, filtered (n,) means, u (d,). Sums of a
    series: A, C, Q, R, mean, cov, offset, left, seen, seen_sum. Flags of a step: active (t < length), moves
    (t < length - 1), any (a channel is seen), hold, steady; channels (d,). The rest is workspace.
    """

    n: int
    d: int
    one: int  # a constant would have the functions that take it compiled once more
    A: int
    C: int
    Q: int
    R: int
    mean: int
    cov: int
    length: int
    complete: int
    frozen: int
    since: int
    failed: int
    log_prob: int
    growth: int
    before: int
    drift: int
    constant: int
    active: int
    moves: int
    any: int
    hold: int
    steady: int
    flag: int
    channels: int
    r: int
    q: int
    state: int
    pivots: int
    seen_c: int
    seen_r: int
    wide: int
    wide2: int
    wide3: int
    small: int
    small2: int
    N: int
    Lambda: int
    smoothed: int
    term_a: int
    term_c: int
    term_r: int
    w1: int
    w2: int
    w3: int
    sum_a: int
    sum_c: int
    sum_q: int
    sum_r: int
    sum_mean: int
    sum_cov: int
    sum_offset: int
    sum_left: int
    sum_seen: int
    sum_states: int
    x: int
    filtered: int
    u: int
    P: int
    K: int
    S: int
    end: int


def kalman_layout(n: int, d: int, steps: int) -> KalmanLayout:
    """Return the layout for series of at most so many steps; ``end`` is the size of the buffer in vectors."""
    sizes = {
        **dict.fromkeys(KalmanLayout._fields[3:-1], 1),
        **dict.fromkeys(("channels", "sum_offset"), d),
        **dict.fromkeys(("r", "q", "state", "mean", "sum_mean", "sum_states"), n),
        **dict.fromkeys(("A", "Q", "cov", "N", "Lambda", "smoothed", "term_a", "w1", "w2", "w3"), n * n),
        **dict.fromkeys(("sum_a", "sum_q", "sum_cov", "sum_left", "sum_seen"), n * n),
        **dict.fromkeys(("C", "seen_c", "wide", "wide2", "wide3", "term_c", "sum_c"), d * n),
        **dict.fromkeys(("R", "seen_r", "small", "small2", "term_r", "sum_r"), d * d),
        "pivots": max(n, d),
        "x": steps * d,
        "filtered": steps * n,
        "u": steps * d,
        "P": steps * n * n,
        "K": steps * n * d,
        "S": steps * d * d,
    }
    starts = np.concatenate([[0], np.cumsum([sizes[name] for name in KalmanLayout._fields[3:-1]])])
    return KalmanLayout(n, d, 1, *starts.tolist())
