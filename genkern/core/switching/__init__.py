"""Passes over switching linear dynamical systems."""
