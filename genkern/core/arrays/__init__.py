"""Rows of probabilities, logarithms, products, draws, windows: what everybody needs."""
