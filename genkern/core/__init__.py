"""Numerical passes: arrays in, arrays out; no classes but NamedTuples, nothing of ours imported."""
