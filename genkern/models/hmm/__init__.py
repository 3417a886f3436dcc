"""Hidden Markov models."""
