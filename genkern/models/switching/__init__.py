"""Switching linear dynamical systems."""
