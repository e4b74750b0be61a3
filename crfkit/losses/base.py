"""The interface of a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from crfkit._types import Counts, FloatArray, Potentials
from crfkit.data.targets import Targets, Weights
from crfkit.structures import Capability, Structure


class Loss(ABC):
    """A function of potentials and labels, for any structure that has what it requires.

    It says what it is by attributes of the class:

    - `requires`: what it needs of a structure beyond the methods that all have
    - `is_convex`: it lies above its tangents where the tokens of each sequence have one weight
    - `needs_log_z`: it is made of log Z, and convex only where that is (`Structure.is_convex`)
    - `is_smooth`: it has a gradient, not only subgradients; if it `has_kinks`, but for places
      where its gradient jumps, at which a search may end
    - `is_log_likelihood`, `is_hinge`: it is the log loss, or that whose dual margins maximize
    - `needs_sequence_weights`: weights that differ within a sequence are a ValueError
    - `takes_soft`: it has a value where labels are given as distributions (``Targets.soft``)
    - `takes_cost`: estimators make its attribute ``cost`` a cost
    - `has_hessian`: it has `hessian_product` and `hessian_diagonal`; `is_staged`: `stages`
    - `rescaling`: what its cost multiplies, "margin" or "slack"; empty if neither
    - `search`: how the labeling is found that it is the loss of, "exact" or "approximate"
    """

    requires: ClassVar[frozenset[Capability]] = frozenset()
    is_convex: ClassVar[bool] = False
    needs_log_z: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = True
    has_kinks: ClassVar[bool] = False
    is_log_likelihood: ClassVar[bool] = False
    is_hinge: ClassVar[bool] = False
    needs_sequence_weights: ClassVar[bool] = False
    takes_soft: ClassVar[bool] = False
    takes_cost: ClassVar[bool] = False
    has_hessian: ClassVar[bool] = False
    is_staged: ClassVar[bool] = False
    rescaling: str = ""
    search: str = "exact"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let a subclass be another loss, which the dual of its base is no dual of."""
        super().__init_subclass__(**kwargs)
        for name in ("is_log_likelihood", "is_hinge"):
            setattr(cls, name, cls.__dict__.get(name, False))

    @abstractmethod
    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch, summed, and its gradient with respect to the potentials.

        The structure answers questions about the potentials of N tokens; `targets` are what is
        known of their labels, `weights` those of tokens, and of sequences where these share them.
        Of the gradient, ``out.unary`` is replaced, ``out.pair`` is added to.
        """

    def hessian_product(
        self,
        structure: Structure,
        potentials: Potentials,
        tangent: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> None:
        """Write the product of the Hessian with a direction of the potentials, as `LogLoss`.

        ValueError if there are no second derivatives, or weights differ within a sequence.
        """
        raise self._not_twice_differentiable()

    def hessian_diagonal(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> None:
        """Write an estimate of the diagonal of the Hessian, as `LogLoss`, or raise ValueError."""
        raise self._not_twice_differentiable()

    def stages(self) -> Sequence[Loss]:
        """Return the losses that are minimized one after the other; ValueError if it is one."""
        raise ValueError(f"loss {type(self).__name__} has no stages.")

    def sequence_weights(self, weights: Weights) -> FloatArray:
        """Return the weight of each sequence, (S,); ValueError where those of its tokens differ."""
        if weights.sequences is None:
            raise ValueError(
                f"loss {type(self).__name__} needs the same weight for all tokens of a sequence: "
                "give sample_weight a number for each sequence, or use loss='log'."
            )
        return weights.sequences

    def _not_twice_differentiable(self) -> ValueError:
        return ValueError(
            f"loss {type(self).__name__} has no second derivatives; use another solver."
        )
