"""Small matrices for the steps of linear dynamical systems: loops that need no BLAS and allocate nothing."""

from __future__ import annotations

import numpy as np

from genkern.core.jit import part

SINGULAR = 1e-15  # a pivot that keeps less than this share of its diagonal entry is a rounding error


@part
def copy(source, target):
    """Copy a matrix."""
    rows, columns = source.shape
    for i in range(rows):
        for j in range(columns):
            target[i, j] = source[i, j]


@part
def add(target, weight, matrix):
    """Add weight times a matrix."""
    rows, columns = matrix.shape
    for i in range(rows):
        for j in range(columns):
            target[i, j] += weight * matrix[i, j]


@part
def add_outer(target, weight, left, right):
    """Add weight times left right^T, of vectors."""
    for i in range(len(left)):
        scaled = weight * left[i]
        for j in range(len(right)):
            target[i, j] += scaled * right[j]


@part
def add_product(target, weight, left, right):
    """Add weight times left right, all square."""
    n = len(left)
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += left[i, k] * right[k, j]
            target[i, j] += weight * total


@part
def multiply(left, right, out):
    """Fill out with left right, all square."""
    n = len(left)
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += left[i, k] * right[k, j]
            out[i, j] = total


@part
def symmetric_product(left, right, out):
    """Fill out with left^T right, square, where that is symmetric: to the last bit."""
    n = len(left)
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += left[k, i] * right[k, j]
            out[i, j] = out[j, i] = total


@part
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


@part
def triangularise(array, rows, columns):
    """Turn the rows of an array by reflections of its columns until nothing is left right of the diagonal."""
    for i in range(rows):
        top = 0.0
        for j in range(i, columns):
            top = max(top, abs(array[i, j]))
        if not 0.0 < top < np.inf:
            continue
        square = 0.0
        for j in range(i, columns):
            array[i, j] /= top  # squares of entries beyond 1e154 would overflow
            square += array[i, j] * array[i, j]
        norm = -np.sqrt(square) if array[i, i] > 0.0 else np.sqrt(square)
        array[i, i] -= norm
        weight = 1.0 / (-norm * array[i, i])  # 2 / |v|^2
        for k in range(i + 1, rows):
            total = 0.0
            for j in range(i, columns):
                total += array[k, j] * array[i, j]
            total *= weight
            for j in range(i, columns):
                array[k, j] -= total * array[i, j]
        array[i, i] = norm * top
        for j in range(i + 1, columns):
            array[i, j] = 0.0
