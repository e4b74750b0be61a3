"""Updates of stochastic, online and dual solvers."""
