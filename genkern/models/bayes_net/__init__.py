"""Discrete Bayesian networks."""
