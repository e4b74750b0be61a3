"""What compiled solvers ask of a structure and of a potentials model."""
