"""Observed Markov chains."""
