"""Passes over many series of linear dynamical systems."""
