"""What compiled solvers are given of a model, a structure and data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.oracle import Examples
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.weights import AlignedWeights


class Oracle(ABC):
    """A structure and a model in compiled form, asked by the parts in `crfkit.kernels.oracle`."""

    problem: Any  # arrays of the model and the data
    weights: AlignedWeights  # how parameters, (P,), stand in the vector that kernels read, (L,)
    order: LabelOrder  # how labels are numbered in kernels
    # Whether the problem is one that `crfkit.kernels.solvers.marginal_fw` reads.
    has_marginal_updates: ClassVar[bool] = False

    @abstractmethod
    def workspace(self, flat: FloatArray) -> Any:
        """Return weights, shape (L,), and room for a sequence, for one thread."""

    def parameter_numbers(self, positions: IdArray) -> IntArray:
        """Return which parameters stand at some positions of the vector."""
        numbers = np.empty(self.weights.size, np.int64)
        numbers[self.weights.positions] = np.arange(len(self.weights.positions))
        return numbers[positions]

    def cost_table(self, table: FloatArray) -> FloatArray:
        """Return a table of costs, shape (C, C), as kernels read it: shape (C, C - K + W)."""
        return self.wide_cost(table[self.order.order] if len(table) else table)

    def wide_cost(self, rows: FloatArray) -> FloatArray:
        """Return rows of costs of codes, shape (n, C), as kernels read them: (n, C - K + W)."""
        n_codes = len(self.order.order)
        wide = np.zeros((len(rows), n_codes - self.weights.n_labels + self.weights.width))
        if len(rows):
            wide[:, :n_codes] = rows[:, self.order.order]
        return wide

    def regroup(self, offsets: IntArray) -> None:
        """Have other runs of tokens, (B + 1,), count as sequences: each a part of one, or empty."""
        self.problem = self.problem._replace(offsets=frozen(offsets))

    def examples(
        self, weight: FloatArray, labels: CodeArray, cost: FloatArray | None = None
    ) -> Examples:
        """Return what is to be learned: weights (S,), labels (N,) and a table of costs (C, C)."""
        ranks = self.order.rank[labels].astype(np.int32)
        table = self.cost_table(np.zeros((0, 0)) if cost is None else cost)
        return Examples(frozen(weight), frozen(ranks[None]), frozen(table))


# Given a model, a structure, data, an order of labels and threads.
Maker = Callable[[Any, Any, PackedSequences, LabelOrder, ThreadMap], Oracle | None]

ORACLES: dict[tuple[type, type], Maker] = {}
# Where those of a model are registered. A module is imported when the first model of it comes: its
# kernels take memory.
HOMES = {"LinearChainModel": "linear_chain", "SemiMarkovModel": "semimarkov"}


def import_home(homes: Mapping[str, str], model: Any) -> None:
    """Import the module that registers what is made for a model, if this package has one."""
    home = homes.get(type(model).__name__)
    if home is not None:
        import_module(f"crfkit.oracles.{home}")


def register_oracle(model: type, structure: type, make: Maker) -> None:
    """Say what makes the oracle, or None, of a class of models and a class of structures."""
    ORACLES[model, structure] = make


def find_oracle(
    model: Any, structure: Any, data: PackedSequences, order: LabelOrder, threads: ThreadMap
) -> Oracle | None:
    """Return the oracle of a model, and the structure that adds what is not learned, or None."""
    import_home(HOMES, model)
    for kind in type(structure).__mro__:
        make = ORACLES.get((type(model), kind))
        if make is not None:
            return make(model, structure, data, order, threads)
    return None
