"""Factorial hidden Markov models."""
