"""Potentials that are linear in blocks of weights, and their adjoint; chains of tokens."""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np

from crfkit._parallel import SERIAL, Chunk, ThreadMap, chunk_tokens
from crfkit._types import CodeArray, Counts, FloatArray, IdArray, IntArray, ObjectArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.names import LazyNames
from crfkit.data.topology import Topology
from crfkit.labels.base import LabelSpace
from crfkit.potentials.attributes import AttributeWeights, NewRows
from crfkit.potentials.base import FeatureChoice, LabeledData, PotentialsModel
from crfkit.potentials.blocks import PotentialParts, Reading, Residuals, WeightBlock
from crfkit.potentials.chain_blocks import (
    SPARSE_CELLS,
    AttributeBlock,
    EndBlock,
    StartBlock,
    StateBlock,
    TransitionAttributeBlock,
    TransitionBlock,
    transition_rows,
)
from crfkit.potentials.choice import Choice
from crfkit.potentials.rows import ActiveRows, PreparedRows
from crfkit.structures import Structure, structure_for

Block = TypeVar("Block", bound=WeightBlock)

# Attributes whose names begin so count for first, last or single tokens of segments alone; the name
# of a part of a union may stand before. One group without repetition: time grows with the length.
END = re.compile(r"(?:[\w.-]+?__)??seg\.(first|last|single)\.")


class Prepared(NamedTuple):
    """Chunks as blocks need them: what each has prepared, by its name."""

    chunks: list[Chunk]
    blocks: dict[str, Any]
    topologies: list[Topology | None]


class LinearModel(PotentialsModel):
    """Potentials that are sums of weights, by blocks in the order in which they add to them."""

    is_linear = True
    # The blocks that such a model may have, by their names. To give all models another one, add it:
    # its `choose` decides whether a model has it.
    block_types: ClassVar[dict[str, type[WeightBlock]]]
    # Fitted attributes that potentials are made of, and that are no weights of a block.
    other_tables: ClassVar[tuple[str, ...]] = ()

    def __init__(self, blocks: list[WeightBlock]) -> None:
        self.blocks = list(blocks)
        self._by_name = {block.name: block for block in blocks}
        self._ends = [0, *itertools.accumulate([block.n_parameters for block in blocks])]
        self.n_parameters = self._ends[-1]
        # Which (attribute, column) pairs have a weight, of attributes of tokens and of transitions.
        self.state = cast(AttributeBlock, self._by_name["state"]).weights
        self.n_columns = self.state.n_columns
        transitions, pairs = self.get(TransitionBlock), self.find(TransitionAttributeBlock)
        self.transition_attributes = None if pairs is None else pairs.weights
        # The labels before and after of the transitions that have a weight, (P2,), and how many
        # potentials a table of transitions has; whether all of them share one.
        self.transition_from, self.transition_to = transitions.source, transitions.target
        self.table_cells = transitions.table_cells
        self.homogeneous = pairs is None and not transitions.is_list
        self.boundaries = StartBlock.name in self._by_name  # first and last labels have weights
        self.extra_blocks = [block for block in blocks if not block.is_known]  # not in oracles

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
        """Return the model of what is learned alone, and a structure that adds the rest."""

    @abstractmethod
    def cells(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many potentials a chunk has, at most."""

    @abstractmethod
    def check_counts(self, data: PackedSequences) -> None:
        """Raise ValueError unless potentials are sums of weights times what is not negative."""

    @abstractmethod
    def complete(self, fitted: dict[str, Any], parameters: FloatArray) -> None:
        """Add the fitted attributes that are no weights of a block."""

    @classmethod
    def choose(cls, choice: Choice) -> list[WeightBlock]:
        """Return the blocks with the weights that are to be learned."""
        found = [kind.choose(choice) for kind in cls.block_types.values()]
        return [block for block in found if block is not None]

    @property
    def parameter_counts(self) -> dict[str, int]:
        """Numbers of weights by what they are, in words."""
        counts: dict[str, int] = {}
        for block in self.blocks:
            counts[block.kind] = counts.get(block.kind, 0) + block.n_parameters
        return counts

    def find(self, kind: type[Block]) -> Block | None:
        """Return the block of a kind; None where the model has none."""
        return cast(Block | None, self._by_name.get(kind.name))

    def get(self, kind: type[Block]) -> Block:
        """Return the block of a kind that each such model has."""
        return cast(Block, self._by_name[kind.name])

    def split(self, parameters: FloatArray) -> dict[str, FloatArray]:
        """Return views of the weights of each block, by its name."""
        bounds = itertools.pairwise(self._ends)
        return {
            block.name: parameters[begin:end]
            for block, (begin, end) in zip(self.blocks, bounds, strict=True)
        }

    def bind(self, parameters: FloatArray) -> dict[str, Any]:
        """Return the weights of each block in their places, by its name."""
        return self.bind_parts(self.split(parameters))

    def bind_parts(self, parts: Mapping[str, FloatArray]) -> dict[str, Any]:
        """Return weights, given by block, in their places; those that are not given are 0."""
        return {
            block.name: block.bind(
                parts[block.name] if block.name in parts else np.zeros(block.n_parameters)
            )
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

    def prepare(self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap) -> Prepared:
        """Return chunks as training on all of them reads them."""
        return self._prepared(data, chunks, Reading(PreparedRows, threads))

    def prepare_active(self, data: PackedSequences, chunk: Chunk) -> Prepared:
        """Return a chunk as solvers read it that update after a few of them."""
        return self._prepared(data, [chunk], Reading(ActiveRows, SERIAL))

    def _prepared(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> Prepared:
        topologies: list[Topology | None] = [None] * len(chunks)
        if data.topology is not None:
            every = np.arange(len(data))
            topologies = [data.topology.take(every[chunk.sequences]) for chunk in chunks]
        blocks = {b.name: b.prepare(data, chunks, reading) for b in self.blocks}
        return Prepared(chunks, blocks, topologies)

    def scores(
        self, bound: Any, data: PackedSequences, chunk: Chunk, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the potentials of the sequences of a chunk of new data."""
        prepared = self._prepared(data, [chunk], Reading(NewRows, SERIAL))
        return self.prepared_scores(bound, prepared, 0, threads)

    def prepared_scores(
        self, bound: Any, prepared: Prepared, index: int, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the potentials of chunk `index` of those that were prepared."""
        chunk = prepared.chunks[index]
        begin, end = int(chunk.offsets[0]), int(chunk.offsets[-1])
        unary = np.zeros((end - begin, self.n_columns))
        offsets, topology = chunk.offsets - begin, prepared.topologies[index]
        parts = PotentialParts(unary, offsets, threads, np.zeros((1, 0, 0)), topology=topology)
        for block in self.blocks:
            block.add(bound[block.name], prepared.blocks[block.name], index, parts)
        return self.finish(parts, chunk)

    def pullback(
        self,
        unary: FloatArray,
        pairs: list[FloatArray],
        prepared: Prepared,
        chosen: Sequence[int],
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient with respect to the parameters, given the one to the potentials.

        `chosen` are consecutive chunks; the first come first, and after the last ones the gradient
        is complete. `unary` is the gradient to their unary potentials, shape (n, C), which may be
        changed; `pairs` has that to the pair potentials of each. `out`, shape (P,), comes out the
        same for any number of threads.
        """
        residuals = self.residuals(unary, pairs, chosen, prepared)
        residuals = residuals._replace(threads=threads, chosen=chosen)
        of_blocks = self.split(out)
        for block in self.blocks:
            block.pullback(residuals, prepared.blocks[block.name], of_blocks[block.name])

    def active(self, prepared: Prepared) -> IdArray:
        """Return the parameters that a chunk depends on, from `prepare_active`: once each, (n,)."""
        pairs = zip(self.blocks, self._ends[:-1], strict=True)
        return np.concatenate(
            [b.active(prepared.blocks[b.name]) + np.uint32(first) for b, first in pairs]
        )

    def active_gradient(self, residual: Counts, prepared: Prepared) -> FloatArray:
        """Return the gradient to the `active` parameters, (n,), given that to the potentials."""
        residuals = self.residuals(residual.unary.copy(), [residual.pair], [0], prepared)
        found = []
        for block in self.blocks:
            own = prepared.blocks[block.name]
            found.append(np.zeros(len(block.active(own))))
            block.pullback(residuals, own, found[-1])
        return np.concatenate(found)


def check_not_negative(features: list[PackedSequences | None]) -> None:
    """Raise ValueError if a feature is negative somewhere."""
    given = (values for f in features if f is not None for values in (f.values, f.dense))
    for values in given:
        if values is not None and values.min(initial=0.0) < 0.0:
            raise ValueError(
                "iterative scaling needs features that are not negative, but X has a value of "
                f"{values.min():g}: shift or bin it, or use solver='lbfgs'."
            )


class LinearChainModel(LinearModel):
    """``unary_t[k] = sum_a x[t, a] w[a, k]`` and ``pair_t[i, j] = v[i, j] + u_t[i, j]``.

    Without attributes of transitions u_t is 0. A `structure` is given for data with a topology that
    is no chain: transitions lead into each token from the one that the topology says.
    """

    block_types: ClassVar[dict[str, type[WeightBlock]]] = {
        block.name: block
        for block in (StateBlock, TransitionBlock, StartBlock, EndBlock, TransitionAttributeBlock)
    }

    def __init__(self, blocks: list[WeightBlock], structure: Structure | None = None) -> None:
        self.given_structure, kinds = structure, [block.name for block in blocks]
        if structure is None and TransitionAttributeBlock.name not in kinds:
            blocks = [b.in_short() if isinstance(b, TransitionBlock) else b for b in blocks]
        super().__init__(blocks)
        transitions, size = self.get(TransitionBlock), self.n_columns
        self.n_labels = self.n_codes = size
        self.structure = structure or transitions.structure
        self.chunk_tokens = (
            max(1, SPARSE_CELLS // size)
            if transitions.is_list
            else chunk_tokens(size, own_transitions=self.transition_attributes is not None)
        )

    @classmethod
    def of_fitted(cls, blocks: list[WeightBlock], fitted: Mapping[str, Any]) -> Self:
        """Return the model of fitted weights in blocks."""
        return cls(blocks, fitted.get("structure_"))

    def linear(self, structure: Structure) -> tuple[Self, Structure]:
        """Return the model and the structure: all potentials are learned."""
        return self, structure

    def cells(self: LinearModel, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many potentials a chunk has."""
        one = self.transition_attributes is None
        tables = 1 if one else transition_rows(data, chunk)[0].n_tokens
        tokens = int(chunk.offsets[-1] - chunk.offsets[0])
        return tokens * self.n_columns + tables * self.table_cells

    def check_counts(self: LinearModel, data: PackedSequences) -> None:
        """Raise ValueError unless potentials are sums of weights times what is not negative."""
        check_not_negative([data, data.transitions])

    def residuals(
        self: LinearModel,
        unary: FloatArray,
        pairs: list[FloatArray],
        chosen: Sequence[int],
        prepared: Prepared,
    ) -> Residuals:
        """Return the gradient to the potentials of some chunks by what they are made of: views."""
        chunks = [prepared.chunks[i] for i in chosen]
        return Residuals(unary, chunks, pairs, [], [], [prepared.topologies[i] for i in chosen])

    def complete(self, fitted: dict[str, Any], parameters: FloatArray) -> None:
        """Add the structure, where it is no chain."""
        if self.given_structure is not None:
            fitted["structure_"] = self.given_structure

    def finish(self, parts: PotentialParts, chunk: Chunk) -> Potentials:
        """Return the potentials that blocks have added to."""
        topology = parts.topology
        if (topology is None) != (self.given_structure is None):
            raise ValueError(
                "X does not say which token each transition comes from, but the model was fitted "
                "to data that do: transform X with the transformer the model was fitted with."
                if topology is None
                else f"X has a {type(topology).__name__}, but the model was fitted to chains: "
                "X.with_topology(None) leaves it out."
            )
        return potentials_of(self.structure, parts, chunk)


def potentials_of(structure: Any, parts: PotentialParts, chunk: Chunk) -> Potentials:
    """Return the potentials that blocks have added to, as a structure of tokens reads them."""
    more = () if parts.topology is None else parts.topology.arrays
    index = np.zeros(1, np.uint32) if parts.index is None else parts.index
    found: Potentials = structure.potentials(
        parts.unary, parts.pair, index, parts.offsets, chunk.first, *more
    )
    return found


def chain_model(
    state: AttributeWeights,
    transition_from: CodeArray | IntArray,
    transition_to: CodeArray | IntArray,
    *,
    boundaries: bool = False,
    transition_attributes: AttributeWeights | None = None,
) -> LinearChainModel:
    """Return a model of linear chains with these weights.

    The columns of `state` are the K labels; the transitions that have a weight, shape (P2,), are
    ordered by the label before; column ``i * K + j`` of `transition_attributes` is the transition
    from label ``i`` to label ``j``.
    """
    size = state.n_columns
    blocks = [StateBlock(state), TransitionBlock(transition_from, transition_to, size)]
    if boundaries:
        blocks += [StartBlock(size), EndBlock(size)]
    if transition_attributes is not None:
        blocks.append(TransitionAttributeBlock(transition_attributes))
    return LinearChainModel(blocks)


def choose_features(
    data: PackedSequences, codes: CodeArray, n_labels: int, **options: Any
) -> LinearChainModel:
    """Return a chain model with weights for what is seen, or for all, by options of `Choice`."""
    blocks = LinearChainModel.choose(Choice(data, codes, n_labels, **options))
    return LinearChainModel(blocks, None if data.topology is None else structure_for(data.topology))


class WeightSpace(ABC):
    """From labeled data to a model of potentials, and from fitted attributes to one."""

    kind: ClassVar[type[LinearModel]]  # of the models
    # What they are told beside fitted attributes.
    given: Mapping[str, Any] = MappingProxyType({})
    # The class of the model that is asked, made of the one that is learned; None: it is that.
    asked: ClassVar[type[Any] | None] = None

    def __init__(self, labels: LabelSpace) -> None:
        self.labels: Any = labels

    @abstractmethod
    def choose(self, features: FeatureChoice, training: LabeledData) -> LinearModel:
        """Return the model with the weights that are to be fitted."""

    def attributes(
        self, model: Any, parameters: FloatArray, classes: ObjectArray, coding: Any
    ) -> dict[str, Any]:
        """Return parameters as fitted attributes."""
        fitted: dict[str, Any] = model.fitted(parameters) | coding.fitted
        return {"classes_": classes} | fitted

    @property
    def fitted_names(self) -> tuple[str, ...]:
        """The fitted attributes that potentials are made of."""
        blocks = self.kind.block_types.values()
        names = [table.attribute for block in blocks for table in block.tables]
        return (*names, *self.kind.other_tables)

    def check_new(self, fitted: object, data: PackedSequences) -> None:
        """Do nothing: linear potentials read all data of the attributes of the fit."""
        return

    def model(self, fitted: object, sizes: Mapping[str, int]) -> tuple[PotentialsModel, Any]:
        """Return the model of fitted weights, and these in place; `sizes` as of `sparse_counts`."""
        blocks, weights, attributes = [], {}, vars(fitted)
        for name, kind in self.kind.block_types.items():
            found = kind.of_fitted(attributes, sizes)
            if found is not None:
                blocks.append(found[0])
                weights[name] = found[1]
        model, asked = self.kind.of_fitted(blocks, {**attributes, **self.given}), type(self).asked
        return model if asked is None else asked(model), model.bind_parts(weights)

    @staticmethod
    def _options(features: FeatureChoice, training: LabeledData) -> dict[str, Any]:
        """Return the options of :class:`crfkit.potentials.blocks.Choice`."""
        return {
            "known": None if training.weight.all() else training.weight > 0.0,
            "allowed": training.targets.allowed,
            "soft": training.targets.soft,
            "min_freq": features.min_freq,
            "all_states": features.all_possible_states,
            "all_transitions": features.all_possible_transitions,
            "boundaries": features.boundary_weights,
        }


class TokenWeights(WeightSpace):
    """Weights of linear chains."""

    kind = LinearChainModel

    def choose(self, features: FeatureChoice, training: LabeledData) -> LinearModel:
        """Return the model with the weights that are to be fitted."""
        data, size = training.data, len(training.classes)
        if data.segments is not None:
            raise ValueError(
                "X has attributes of segments, which a model of single tokens cannot use: fit a "
                "SemiMarkovCRF, or leave them out."
            )
        for lead in data.names.leads() if isinstance(data.names, LazyNames) else ():
            if END.match(lead):
                raise ValueError(
                    f"X has attributes of the first, last or only tokens of segments ({lead}...), "
                    "which a model of single tokens cannot use: fit a SemiMarkovCRF, or leave "
                    "first(...), last(...) and single(...) out of the templates."
                )
        codes = training.targets.states
        return choose_features(data, codes, size, **self._options(features, training))
