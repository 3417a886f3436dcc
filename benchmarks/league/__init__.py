"""Errors of the recipes on real sets, on fixed splits, beside the errors to beat: ``python -m benchmarks.league``."""
