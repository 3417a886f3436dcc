"""Vectors of eight doubles for compiled loops."""
