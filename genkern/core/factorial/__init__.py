"""Passes over factorial hidden Markov models."""
