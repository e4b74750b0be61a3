"""Solvers of historical interest, many times slower than their successors."""
