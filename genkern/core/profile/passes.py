"""Passes over many sequences under a profile model: log P and derivatives.

Objects are sorted by length, eight to a group. An object's result depends only on itself, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import effective_n_jobs

from genkern.core.hmm.rows import aligned
from genkern.core.profile import lanes, lanes_back, logs
from genkern.core.profile.types import Derivatives, Floats, Ints, Profile, Sequences, empty_derivatives
from genkern.core.simd.vectors import W

__all__ = ["Derivatives", "Profile", "Sequences", "derivatives", "log_prob"]

GROUPS = 8  # of eight objects, whose derivatives are held at a time


def log_prob(profile: Profile, sequences: Sequences, n_jobs: int | None = 1) -> Floats:
    """Return log P (n_objects,); -inf for an impossible sequence."""
    groups = _groups(sequences)
    out = empty_derivatives(profile, len(sequences.offsets) - 1, 0)
    workers = min(effective_n_jobs(n_jobs or 1), len(groups))
    parts = [groups[part::workers] for part in range(workers)]
    if workers == 1:
        _run(profile, sequences, groups, np.empty(0, np.int64), out)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(_run, profile, sequences, part, np.empty(0, np.int64), out) for part in parts]:
                done.result()
    return out.log_prob


def derivatives(profile: Profile, sequences: Sequences) -> Iterator[tuple[Ints, Derivatives]]:
    """Yield objects, and log P and derivatives with one slot for each of them, some objects at a time."""
    groups = _groups(sequences)
    slots = np.zeros(len(sequences.offsets) - 1, np.int64)
    for low in range(0, len(groups), GROUPS):
        part = groups[low : low + GROUPS]
        members = part[part >= 0]
        slots[members] = np.arange(len(members))
        out = empty_derivatives(profile, len(slots), len(members))
        _run(profile, sequences, part, slots, out)
        yield members, Derivatives(out.log_prob[members], *out[1:])


def _groups(sequences: Sequences) -> Ints:
    """Return the objects in groups of eight (B, 8) by length, -1 where a lane is empty."""
    order = np.argsort(np.diff(sequences.offsets), kind="stable")
    return np.append(np.full(-len(order) % W, -1), order).reshape(-1, W)


def _run(profile: Profile, sequences: Sequences, groups: Ints, slots: Ints, out: Derivatives) -> None:
    """Run some groups in lanes, and those of their objects that leave the range of doubles in logarithms."""
    steps = int(np.diff(sequences.offsets)[groups[-1]].max())
    layout, doubles, integers = lanes.layout_of(profile.size, steps, len(out.table) > 0)
    with np.errstate(all="ignore"):
        buffers = aligned(doubles), np.empty(integers, np.int64)
        lanes_back.lanes_pass(profile, sequences, groups, slots, out, layout, *buffers)
    members = groups[groups >= 0]
    lost = np.isnan(out.log_prob[members])
    if len(out.table):
        lost |= ~np.isfinite(sum(part[slots[members]].reshape(len(members), -1).sum(axis=1) for part in out[1:]))
    own = logs.logarithms(profile) if lost.any() else profile
    for i in members[lost].tolist():
        codes = sequences.codes[sequences.offsets[i] : sequences.offsets[i + 1]]
        logs.derivatives_of(logs.own_logs(own, i), codes, int(slots[i]) if len(slots) else 0, i, out)
