"""Passes over symbol sequences under Markov chains."""
