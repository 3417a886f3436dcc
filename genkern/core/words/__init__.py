"""Counts of words, and the empirical mean map."""
