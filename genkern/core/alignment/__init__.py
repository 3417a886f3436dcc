"""Sums over all local alignments of two sequences."""
