"""Solvers that evaluate the whole objective in each iteration."""
