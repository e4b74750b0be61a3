"""The product of the design matrix with weights, and its adjoint."""
