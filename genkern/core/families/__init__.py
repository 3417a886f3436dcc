"""Exponential families, and the special functions that they need."""
