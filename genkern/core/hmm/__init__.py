"""Passes over many hidden Markov sequences, one file per layout, and a plain-loop reference."""
