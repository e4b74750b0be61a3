"""Few tokens at a time: best labels by one call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np

from crfkit._types import CodeArray, FloatArray, IdArray
from crfkit.compiler.jit import for_types_of, frozen
from crfkit.data import PackedSequences
from crfkit.data.packed import UNIT
from crfkit.features.attributes import AttributeRows
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.chain.tagging import TaggingWeights, chain_tag
from crfkit.potentials.chain_blocks import EndBlock, StartBlock, StateBlock, TransitionBlock

FEW_TOKENS = 500  # potentials of more are computed chunk by chunk, in time for their number
_SHARED = frozen(np.zeros(1, np.uint32))


class ChainTagger:
    """The weights of a chain whose transitions share one table, as a kernel reads them."""

    def __init__(self, weights: TaggingWeights) -> None:
        self.weights = weights
        self.n_labels = weights.table.shape[1]

    @classmethod
    def of(cls, model: Any, bound: Any) -> Self | None:
        """Return the tagger of a model with its weights; None where there is no such kernel."""
        if not (model.is_linear and model.structure.is_chain and model.homogeneous):
            return None
        if model.extra_blocks or model.given_structure is not None:
            return None
        none = np.zeros(model.n_labels)
        ends = [frozen(bound.get(kind.name, none)[None]) for kind in (StartBlock, EndBlock)]
        pairs, table = bound[StateBlock.name].by_token
        pair = frozen(bound[TransitionBlock.name])
        return cls(TaggingWeights(pairs, table, pair, _SHARED, *ends))

    @staticmethod
    def takes(data: PackedSequences) -> bool:
        """Whether all that there is of tokens are their sparse attributes and their order."""
        return data.dense is None and data.topology is None

    def codes(self, rows: AttributeRows | PackedSequences) -> CodeArray | None:
        """Return the labels of the best paths, shape (N,); None where a sequence has no path.

        They are those that Viterbi's algorithm finds in the potentials, to the last bit.
        """
        indptr, indices = frozen(rows.indptr), frozen(rows.indices)
        values, step = (UNIT, 0) if rows.values is None else (frozen(rows.values), 1)
        shape, labels = (len(indptr) - 1, self.n_labels), np.empty(len(indptr) - 1, np.int32)
        status = self._kernel(
            indptr, indices, values, step, frozen(rows.offsets), self.weights,
            *_spaces(len(indices)), np.zeros(shape), np.empty(shape), labels,
        )  # fmt: skip
        return labels if status == OK else None

    @cached_property
    def _kernel(self) -> Callable[..., int]:
        """The kernel, which takes half its time to look at the types of its arguments."""
        none, labels = frozen(np.zeros(1, np.int64)), np.zeros(1, np.int32)
        scores = np.zeros((1, self.n_labels))
        rows = none, frozen(labels), UNIT, 0, none
        return for_types_of(chain_tag, *rows, self.weights, *_spaces(1), scores, scores, labels)


def _spaces(size: int) -> tuple[IdArray, FloatArray]:
    """Return room for attributes and their values."""
    return np.empty(size, np.uint32), np.empty(size)
