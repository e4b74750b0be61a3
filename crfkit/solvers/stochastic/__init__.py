"""Solvers that update the weights after each mini-batch."""
