"""Few tokens at a time: best labels by one call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np

from crfkit._types import MOST_PLACES, PLACES, CodeArray
from crfkit.compiler.jit import for_types_of, frozen
from crfkit.data import PackedSequences
from crfkit.data.packed import UNIT
from crfkit.features.attributes import AttributeRows
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.chain.tagging import TaggingRooms, TaggingWeights, chain_tag
from crfkit.potentials.chain_blocks import EndBlock, StartBlock, StateBlock, TransitionBlock

FEW_TOKENS = 500  # potentials of more are computed chunk by chunk, in time for their number
_ZERO, _AS_THEY_ARE = frozen(np.zeros(1, np.uint32)), frozen(np.zeros(0, np.int32))


class ChainTagger:
    """The weights of a chain whose transitions share one table, as a kernel reads them."""

    def __init__(self, weights: TaggingWeights) -> None:
        self.weights = weights
        self.n_labels = weights.table.shape[1]
        self._idle: list[TaggingRooms] = []  # of threads that wait

    @classmethod
    def of(cls, model: Any, bound: Any) -> Self | None:
        """Return the tagger of a model with its weights; None where there is no such kernel."""
        if not (model.is_linear and model.structure.is_chain and model.homogeneous):
            return None
        if model.extra_blocks or model.given_structure is not None:
            return None
        none = np.zeros(model.n_labels)
        first, last = [frozen(bound.get(end.name, none)[None]) for end in (StartBlock, EndBlock)]
        pairs, table = bound[StateBlock.name].by_token
        pair = frozen(bound[TransitionBlock.name])
        return cls(TaggingWeights(pairs, table, pair, first, last, _ZERO, _AS_THEY_ARE))

    @staticmethod
    def takes(data: PackedSequences) -> bool:
        """Whether all that there is of tokens are their sparse attributes and their order."""
        plain = data.dense is None and data.topology is None
        return plain and data.indices.flags.c_contiguous and data.indptr.flags.c_contiguous

    def codes(self, rows: AttributeRows | PackedSequences) -> CodeArray | None:
        """Return the labels of the best paths, shape (N,); None where a sequence has no path.

        They are those that Viterbi's algorithm finds in the potentials, to the last bit.
        """
        n_tokens = len(rows.indptr) - 1
        values, step = (UNIT, 0) if rows.values is None else (frozen(rows.values), 1)
        labels, rooms = np.empty(n_tokens, np.int32), self._take(n_tokens, len(rows.indices))
        status = self._kernel(
            rows.indptr, rows.indices, values, step, rows.offsets, self.weights, rooms, labels
        )
        self._idle.append(rooms)
        return labels if status == OK else None

    def _take(self, n_tokens: int, size: int) -> TaggingRooms:
        """Return a workspace that no other thread has, for so many tokens and attributes."""
        try:
            rooms = self._idle.pop()
            if len(rooms.best) >= n_tokens and len(rooms.keys) >= size:
                return rooms
        except IndexError:
            pass
        n_tokens, size = 2 * n_tokens, 2 * size
        return TaggingRooms(
            np.empty(size, np.int64), np.empty(n_tokens + 1, np.int64), np.empty(size, np.uint32),
            np.empty(size), np.empty(size, PLACES[len(self.weights.table) > MOST_PLACES]),
            *np.empty((2, n_tokens, self.n_labels)),
        )  # fmt: skip

    @cached_property
    def _kernel(self) -> Callable[..., int]:
        """The kernel, which takes half its time to look at the types of its arguments."""
        places, labels = frozen(np.zeros(1, np.int64)), np.zeros(1, np.int32)
        return for_types_of(
            chain_tag, places, frozen(labels), UNIT, 0, places, self.weights, self._take(0, 0),
            labels,
        )  # fmt: skip
