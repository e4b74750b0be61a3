"""Potentials that are linear in blocks of weights, and their adjoint."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np

from crfkit._parallel import SERIAL, ThreadMap
from crfkit._types import Chunk, CodeArray, Counts, FloatArray, IdArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.topology import Topology
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.base import PotentialsModel
from crfkit.potentials.blocks import (
    Choice,
    PotentialParts,
    Reading,
    Residuals,
    WeightBlock,
)
from crfkit.potentials.chain_blocks import (
    AttributeBlock,
    StartBlock,
    TransitionAttributeBlock,
    TransitionBlock,
    read_new,
)
from crfkit.structures import Structure

Block = TypeVar("Block", bound=WeightBlock)


class Prepared(NamedTuple):
    """Chunks as blocks need them: what each has prepared, by its name."""

    chunks: list[Chunk]
    blocks: dict[str, Any]
    topologies: list[Topology | None]


class LinearModel(PotentialsModel):
    """Potentials that are sums of weights, by blocks.

    The parameters are those of the blocks, one after the other.

    Parameters
    ----------
    blocks : list of WeightBlock
        In the order in which they add to the potentials.

    Attributes
    ----------
    block_types : dict
        The blocks that such a model may have, by their names. To give all models another one, add
        it: its `choose` decides whether a model has it.
    other_tables : tuple of str
        Fitted attributes that potentials are made of, and that are no weights of a block.
    """

    is_linear = True
    block_types: ClassVar[dict[str, type[WeightBlock]]]
    other_tables: ClassVar[tuple[str, ...]] = ()

    def __init__(self, blocks: list[WeightBlock]) -> None:
        self.blocks = list(blocks)
        self._by_name = {block.name: block for block in self.blocks}

    @classmethod
    @abstractmethod
    def of_fitted(cls, blocks: list[WeightBlock], fitted: Mapping[str, Any]) -> Self:
        """Return the model of fitted weights in blocks, and of what else a fit left behind."""

    @abstractmethod
    def finish(self, parts: PotentialParts, chunk: Chunk) -> Potentials:
        """Return the potentials that blocks have added to."""

    @abstractmethod
    def residuals(
        self, unary: FloatArray, pairs: list[FloatArray], chosen: Sequence[int], prepared: Prepared
    ) -> Residuals:
        """Return the gradient to the potentials of some chunks by what they are made of: views."""

    @abstractmethod
    def linear(self, structure: Structure) -> tuple[Self, Structure]:
        """Return the model without potentials that are not learned, and a structure that adds them.

        For solvers that work with products and differences of potentials.
        """

    @abstractmethod
    def cells(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many potentials a chunk has."""

    @abstractmethod
    def check_counts(self, data: PackedSequences) -> None:
        """Raise ValueError unless potentials are sums of weights times what is not negative."""

    @classmethod
    def choose(cls, choice: Choice) -> list[WeightBlock]:
        """Return the blocks with the weights that are to be learned."""
        found = (kind.choose(choice) for kind in cls.block_types.values())
        return [block for block in found if block is not None]

    @property
    def n_parameters(self) -> int:
        """Number of weights P."""
        return self._ends[-1]

    @cached_property
    def _ends(self) -> list[int]:
        """Where the weights of each block end, and 0 before."""
        return [0, *itertools.accumulate(block.n_parameters for block in self.blocks)]

    @property
    def parameter_counts(self) -> dict[str, int]:
        """Numbers of weights by what they are, in words."""
        counts: dict[str, int] = {}
        for block in self.blocks:
            counts[block.kind] = counts.get(block.kind, 0) + block.n_parameters
        return counts

    @property
    def extra_blocks(self) -> list[WeightBlock]:
        """The blocks that compiled oracles do not know."""
        return [block for block in self.blocks if not block.is_known]

    def find(self, kind: type[Block]) -> Block | None:
        """Return the block of a kind; None where the model has none."""
        return cast(Block | None, self._by_name.get(kind.name))

    def get(self, kind: type[Block]) -> Block:
        """Return the block of a kind that each such model has."""
        return cast(Block, self._by_name[kind.name])

    @property
    def state(self) -> AttributeWeights:
        """Which (attribute, column) pairs have a weight, for the attributes of tokens."""
        return cast(AttributeBlock, self._by_name["state"]).weights

    @property
    def n_columns(self) -> int:
        """Number of unary potentials of a token."""
        return self.state.n_columns

    @property
    def n_features(self) -> int:
        """Number of attributes D."""
        return self.state.n_features

    @property
    def transition_from(self) -> CodeArray:
        """The labels before of the transitions that have a weight, shape (P2,)."""
        return self.get(TransitionBlock).source

    @property
    def transition_to(self) -> CodeArray:
        """The labels after of the transitions that have a weight, shape (P2,)."""
        return self.get(TransitionBlock).target

    @property
    def table_cells(self) -> int:
        """How many potentials a table of transitions has."""
        return self.get(TransitionBlock).table_cells

    @property
    def boundaries(self) -> bool:
        """Whether first and last labels have weights of their own."""
        return self.find(StartBlock) is not None

    @property
    def transition_attributes(self) -> AttributeWeights | None:
        """Which attributes of transitions have weights, where there are any."""
        block = self.find(TransitionAttributeBlock)
        return None if block is None else block.weights

    @property
    def homogeneous(self) -> bool:
        """Whether all transitions share one table of pair potentials."""
        return self.transition_attributes is None and not self.get(TransitionBlock).is_list

    def split(self, parameters: FloatArray) -> dict[str, FloatArray]:
        """Return views of the weights of each block, by its name."""
        bounds = itertools.pairwise(self._ends)
        parts = (parameters[begin:end] for begin, end in bounds)
        return {block.name: part for block, part in zip(self.blocks, parts, strict=True)}

    def bind(self, parameters: FloatArray) -> dict[str, Any]:
        """Return the weights of each block in their places, by its name."""
        return {name: self._by_name[name].bind(p) for name, p in self.split(parameters).items()}

    def bind_parts(self, parts: Mapping[str, FloatArray]) -> dict[str, Any]:
        """Return weights, given by block, in their places; those that are not given are 0."""
        return {
            block.name: block.bind(parts.get(block.name, np.zeros(block.n_parameters)))
            for block in self.blocks
        }

    def fitted(self, parameters: FloatArray) -> dict[str, Any]:
        """Return weights as the attributes of a fitted estimator."""
        kinds = type(self).block_types.values()
        tables = [table for kind in kinds if kind.is_known for table in kind.tables]
        k, found = self.n_labels, dict[str, Any]()
        for table in tables:  # of blocks that the model does not have
            found[table.attribute] = None if table.is_sparse else np.zeros(table.shape(k))
        for block, part in zip(self.blocks, self.split(parameters).values(), strict=True):
            found |= block.fitted(part)
        self.complete(found, parameters)
        return found

    @abstractmethod
    def complete(self, fitted: dict[str, Any], parameters: FloatArray) -> None:
        """Add the fitted attributes that are no weights of a block."""

    def prepare(self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap) -> Prepared:
        """Return chunks as training on all of them reads them; one that is long stands alone."""
        return self._prepared(data, chunks, threads, AttributeWeights.prepare)

    def prepare_active(self, data: PackedSequences, chunk: Chunk) -> Prepared:
        """Return a chunk as solvers read it that update after a few of them."""
        return self._prepared(data, [chunk], SERIAL, AttributeWeights.prepare_active)

    def _prepared(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap, reading: Reading
    ) -> Prepared:
        return Prepared(
            chunks,
            {b.name: b.prepare(data, chunks, threads, reading) for b in self.blocks},
            [topology_of(data, chunk) for chunk in chunks],
        )

    def scores(
        self, bound: Any, data: PackedSequences, chunk: Chunk, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the potentials of the sequences of a chunk of new data."""
        prepared = self._prepared(data, [chunk], SERIAL, read_new)
        return self.prepared_scores(bound, prepared, 0, threads)

    def prepared_scores(
        self, bound: Any, prepared: Prepared, index: int, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the potentials of chunk `index` of those that were prepared."""
        chunk = prepared.chunks[index]
        begin, end = chunk.tokens.start, chunk.tokens.stop
        unary = np.zeros((end - begin, self.n_columns))
        offsets, topology = chunk.offsets - begin, prepared.topologies[index]
        parts = PotentialParts(unary, offsets, np.zeros((1, 0, 0)), topology=topology)
        for block in self.blocks:
            block.add(bound[block.name], prepared.blocks[block.name], index, parts, threads)
        return self.finish(parts, chunk)

    def pullback(
        self,
        unary: FloatArray,
        pairs: list[FloatArray],
        prepared: Prepared,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient with respect to the parameters, given the one to the potentials.

        `unary` is the gradient to the unary potentials of all chunks, shape (n, C), which may be
        changed; `pairs` has that to the pair potentials of each chunk. `out`, shape (P,), comes out
        the same for any number of threads.
        """
        residuals = self.residuals(unary, pairs, range(len(pairs)), prepared)
        of_blocks = self.split(out)
        for block in self.blocks:
            name = block.name
            block.pullback(residuals, prepared.blocks[name], threads, of_blocks[name])

    def active(self, prepared: Prepared) -> IdArray:
        """Return the parameters that a chunk depends on, from `prepare_active`: once each, (n,)."""
        pairs = zip(self.blocks, self._ends[:-1], strict=True)
        return np.concatenate(
            [b.active(prepared.blocks[b.name]) + np.uint32(first) for b, first in pairs]
        )

    def active_gradient(self, residual: Counts, prepared: Prepared) -> FloatArray:
        """Return the gradient to the `active` parameters, in their order, shape (n,).

        `residual` is that with respect to the potentials of the chunk.
        """
        residuals = self.residuals(residual.unary.copy(), [residual.pair], [0], prepared)
        found = []
        for block in self.blocks:
            own = prepared.blocks[block.name]
            found.append(np.zeros(len(block.active(own))))
            block.pullback(residuals, own, SERIAL, found[-1])
        return np.concatenate(found)


def topology_of(data: PackedSequences, chunk: Chunk) -> Topology | None:
    """Return the order of the tokens of a chunk, where it is not that of sequences."""
    if data.topology is None:
        return None
    return data.topology.take(np.arange(len(data))[chunk.sequences])


def check_not_negative(features: list[PackedSequences | None]) -> None:
    """Raise ValueError if a feature is negative somewhere."""
    given = (values for f in features if f is not None for values in (f.values, f.dense))
    for values in given:
        if values is not None and values.min(initial=0.0) < 0.0:
            raise ValueError(
                "iterative scaling needs features that are not negative, but X has a value of "
                f"{values.min():g}: shift or bin it, or use solver='lbfgs'."
            )


def from_fitted(
    kind: type[LinearModel], fitted: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[LinearModel, dict[str, Any]]:
    """Return the model of fitted attributes, and its weights in their places.

    `sizes` tells how many attributes are sparse: :func:`crfkit.potentials.blocks.sparse_counts` of
    the data.
    """
    blocks, weights = [], {}
    for name, block_type in kind.block_types.items():
        rows = block_type.tables[0].rows if block_type.tables else ""
        found = block_type.of_fitted(fitted, sizes.get(rows, 0))
        if found is not None:
            blocks.append(found[0])
            weights[name] = found[1]
    model = kind.of_fitted(blocks, fitted)
    return model, model.bind_parts(weights)


def fitted_names(kind: type[LinearModel]) -> tuple[str, ...]:
    """Return the fitted attributes that the potentials of such models are made of."""
    blocks = kind.block_types.values()
    return (*(t.attribute for block in blocks for t in block.tables), *kind.other_tables)
