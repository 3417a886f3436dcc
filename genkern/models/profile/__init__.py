"""Profile models of families of sequences."""
