"""Small matrices for the steps of linear dynamical systems: loops that need no BLAS and allocate nothing."""

from __future__ import annotations

from genkern.core.jit import kernel

SINGULAR = 1e-15  # a pivot that keeps less than this share of its diagonal entry is a rounding error


@kernel
def copy(source, target):
    """Copy a matrix."""
    rows, columns = source.shape
    for i in range(rows):
        for j in range(columns):
            target[i, j] = source[i, j]


@kernel
def add(target, weight, matrix):
    """Add weight times a matrix."""
    rows, columns = matrix.shape
    for i in range(rows):
        for j in range(columns):
            target[i, j] += weight * matrix[i, j]


@kernel
def add_outer(target, weight, left, right):
    """Add weight times left right^T, of vectors."""
    for i in range(len(left)):
        scaled = weight * left[i]
        for j in range(len(right)):
            target[i, j] += scaled * right[j]


@kernel
def add_product(target, weight, left, right):
    """Add weight times left right, all square."""
    n = len(left)
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += left[i, k] * right[k, j]
            target[i, j] += weight * total


@kernel
def multiply(left, right, out):
    """Fill out with left right, all square."""
    n = len(left)
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += left[i, k] * right[k, j]
            out[i, j] = total


@kernel
def symmetric_product(left, right, out):
    """Fill out with left^T right, square, where that is symmetric: to the last bit."""
    n = len(left)
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += left[k, i] * right[k, j]
            out[i, j] = out[j, i] = total


@kernel
def congruence(left, middle, work):
    """Replace a symmetric matrix by left middle left^T, symmetric to the last bit; all square."""
    n = len(left)
    multiply(left, middle, work)
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += work[i, k] * left[j, k]
            middle[i, j] = middle[j, i] = total
