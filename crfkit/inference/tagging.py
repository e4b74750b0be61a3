"""Few tokens at a time: best labels by one call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np

from crfkit._types import CodeArray
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
        plain = data.dense is None and data.topology is None
        return plain and data.indices.flags.c_contiguous and data.indptr.flags.c_contiguous

    def codes(self, rows: AttributeRows | PackedSequences) -> CodeArray | None:
        """Return the labels of the best paths, shape (N,); None where a sequence has no path.

        They are those that Viterbi's algorithm finds in the potentials, to the last bit.
        """
        size, shape = len(rows.indices), (len(rows.indptr) - 1, self.n_labels)
        values, step = (UNIT, 0) if rows.values is None else (frozen(rows.values), 1)
        labels = np.empty(shape[0], np.int32)
        status = self._kernel(
            rows.indptr, rows.indices, values, step, rows.offsets, self.weights,
            np.empty(size, np.uint32), np.empty(size), np.zeros(shape), np.empty(shape), labels,
        )  # fmt: skip
        return labels if status == OK else None

    @cached_property
    def _kernel(self) -> Callable[..., int]:
        """The kernel, which takes half its time to look at the types of its arguments."""
        places, labels = frozen(np.zeros(1, np.int64)), np.zeros(1, np.int32)
        values, scores = np.zeros(1), np.zeros((1, self.n_labels))
        return for_types_of(
            chain_tag, places, frozen(labels), UNIT, 0, places, self.weights,
            np.zeros(1, np.uint32), values, scores, scores, labels,
        )  # fmt: skip
