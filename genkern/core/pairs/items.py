"""Items of a block of pairs: a left-hand model with eight right-hand ones, or with one.

All of an item is done in a small workspace before the next one begins, so that it stays in the fastest cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel
from genkern.core.pairs.ends import begin, clear, close, end, judge, scale_as_psi, watch
from genkern.core.pairs.psi import scale_values
from genkern.core.pairs.steps import advance, copy, multiply, total
from genkern.core.pairs.types import DONE, READY, REDO, RESULT, SCALES, SHIFT, TRANSITIONS, Floats
from genkern.core.simd.vectors import W, broadcast, load, store

TOGETHER = 8  # left-hand models that share a right-hand unit while it is in the cache
WATCH = 16  # steps between two checks of convergence, later an eighth of those done


class PairBlock(NamedTuple):
    """A block of a by b pairs."""

    left: Floats  # (a, rows * n): records of models
    right: Floats  # (u, rows * width)
    factors: int  # inner dimension of ψ = F F′ᵀ, or 0 where ψ comes from a table
    cheap: bool  # the first and the last step use factors instead of matrices
    half: bool  # pairs left of the diagonal are left out
    length: int
    log_k: Floats  # (a, b), set
    redo: NDArray[np.bool_]  # (a, b), set where underflow may have spoilt log k


@kernel
def run_items(block, rows, units, psi, scales, workspace, tile):
    """Set log k and redo of a rectangle of items, each lane as soon as its recursion settles.

    rows, units: first and last; psi, scales: of the items, flat, where there are no factors.
    """
    left, right, count, length = block.left, block.right, block.factors, block.length
    n, m, width, x = workspace.rows, workspace.states, workspace.width, workspace.numbers
    group = W if workspace.lanes else 1
    for low in range(rows[0], rows[1], TOGETHER):
        for unit in range(units[0], units[1]):
            high = min(low + TOGETHER, rows[1])
            for row in range(low, min(high, (unit + 1) * group) if block.half else high):
                a, b = row * left.shape[1], unit * right.shape[1]
                a_end, b_end = a + (n + 1) * n, b + (m + 1) * width
                a_first, b_first = a_end + 4 * n, b_end + 4 * width
                bound = clear(left, a_end, right, b_end, workspace, length)
                if count:
                    multiply(left, a_first, right, b_first, count, workspace, (workspace.nowhere, workspace.psi), tile)
                    scale_values(x, workspace.psi, n * width, x, SHIFT, workspace.lanes)
                else:
                    item = (row - rows[0]) * (units[1] - units[0]) + unit - units[0]
                    copy(psi, item * n * width, x, workspace.psi, n * width)
                    copy(scales, item * SCALES, x, SHIFT, SCALES)
                done, last = 0, length - 1
                if block.cheap:
                    # φ_2 = (Aᵀ φ_1 A′) ∘ ψ
                    a_first, b_first = a_first + count * n, b_first + count * width
                    multiply(left, a_first, right, b_first, count, workspace, (workspace.psi, workspace.phi), tile)
                    scale_as_psi(workspace, workspace.phi)
                    done, last = 1, last - 1
                else:
                    begin(left, a, right, b, workspace)
                settled = False
                while done < last and not settled:
                    span = max(WATCH, done // 8)
                    span = span if last - done > 2 * span else last - done
                    done += span
                    watched = done < last
                    advance(left, a + TRANSITIONS * n, right, b + TRANSITIONS * width, workspace, span, watched, tile)
                    if watched and watch(left, a_end, right, b_end, workspace, done):
                        s = end(left, a_end, right, b_end, workspace, workspace.phi)
                        settled = close(s, bound, workspace, length - 1 - done)
                        judge(left, a_end, right, b_end, workspace, done)
                if not settled:
                    store(x, READY, broadcast(1.0) - load(x, DONE))
                    if block.cheap:
                        # The result after the next step: Σ [A ((e e′ᵀ) ∘ ψ) A′ᵀ] ∘ φ
                        a_first, b_first = a_first + count * n, b_first + count * width
                        multiply(left, a_first, right, b_first, count, workspace, (workspace.phi, workspace.half), tile)
                        scale_as_psi(workspace, workspace.half)
                        s = total(workspace, workspace.half)
                        done += 1
                    else:
                        s = end(left, a_end, right, b_end, workspace, workspace.phi)
                    close(s, bound, workspace, length - 1 - done)
                    judge(left, a_end, right, b_end, workspace, last)
                column = unit * group
                for k in range(min(group, block.log_k.shape[1] - column)):
                    block.log_k[row, column + k] = x[RESULT + k] + length * x[SHIFT + k]
                    block.redo[row, column + k] = x[REDO + k] > 0.0
