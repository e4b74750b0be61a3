"""What compiled solvers ask of a structure and of a potentials model."""

from crfkit.oracles.base import Oracle, find_oracle, register_oracle

__all__ = ["Oracle", "find_oracle", "register_oracle"]
