"""The state-pair recursion: kernels between hidden Markov models."""
