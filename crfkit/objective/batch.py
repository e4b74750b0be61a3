"""The objective: potentials x structure x loss x penalty, over threads."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cached_property, partial
from itertools import accumulate, pairwise, starmap
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from crfkit._parallel import Chunk, ThreadMap, even_chunks, make_blocks, return_memory, with_threads
from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, IterationRecord, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.targets import Targets, Weights
from crfkit.losses import Loss
from crfkit.objective.penalties import ElasticNet
from crfkit.objective.stochastic import StochasticObjective
from crfkit.potentials import LinearModel, PotentialsModel
from crfkit.potentials.linear import Prepared
from crfkit.structures import Capability, MissingCapabilityError, Structure

if TYPE_CHECKING:
    from crfkit.objective.curvature import FeatureBasis

# What is done with a chunk: (scores, [tangents,] targets, weights, out) -> its value, if any.
Work = Callable[..., float | None]


class _PreparedData:
    """The data in the form that an evaluation reads, made when the first one comes."""

    def __init__(self, model: LinearModel, data: PackedSequences, threads: ThreadMap) -> None:
        self.model, self.data, self.threads = model, data, threads

    @cached_property
    def chunks(self) -> list[Chunk]:
        """Runs of sequences, the unit of work of a thread."""
        return even_chunks(self.data.offsets, self.model.chunk_tokens)

    @cached_property
    def blocks(self) -> list[range]:
        """Runs of chunks whose gradient to the scores is kept at a time, by number."""
        cells = [self.model.cells(self.data, chunk) for chunk in self.chunks]
        made = make_blocks(self.chunks, cells, self.threads.n_workers)
        return list(starmap(range, pairwise(accumulate(map(len, made), initial=0))))

    @cached_property
    def parts(self) -> Prepared:
        """All chunks as the blocks of weights read them."""
        made = self.model.prepare(self.data, self.chunks, self.threads)
        return_memory(self.data.nbytes)  # of lists that made others
        return made

    def tokens(self, block: range) -> slice:
        """Return the tokens of a block within the whole data set."""
        first, last = self.chunks[block[0]], self.chunks[block[-1]]
        return slice(first.tokens.start, last.tokens.stop)

    @cached_property
    def squared(self) -> _PreparedData | None:
        """The data with the squares of all values; None where these are the values."""
        data = self.data
        if data.values is None and data.dense is None:
            return None
        squares = {
            name: None if values is None else values**2
            for name, values in (("values", data.values), ("dense", data.dense))
        }
        return _PreparedData(self.model, data._from_arrays(**data.__dict__ | squares), self.threads)

    @cached_property
    def residual(self) -> FloatArray:
        """Room for the gradient to the unary scores of one block."""
        sizes = [tokens.stop - tokens.start for tokens in map(self.tokens, self.blocks)]
        return np.empty((max(sizes, default=0), self.model.n_columns))


class Objective:
    """Loss of labeled data plus penalty, as a function of the parameters.

    All a solver sees. The value is a sum over sequences, not a mean. Given are the model of the
    potentials, label codes, (N,), or `Targets`, weights of tokens, (N,), and an open pool of
    threads: values and gradients are the same to the last bit for any number. ValueError if the
    structure lacks what the loss requires.
    """

    n_parameters: int  # P
    nonnegative: BoolArray | None  # (P,) which parameters must be; None: none
    evaluations: int  # of values and gradients, or products, and passes over mini-batches, so far

    def __init__(
        self,
        model: PotentialsModel,
        structure: Structure,
        loss: Loss,
        penalty: ElasticNet,
        data: PackedSequences,
        labels: CodeArray | Targets,
        weight: FloatArray,
        threads: ThreadMap,
    ) -> None:
        missing = [each for each in Capability if each in loss.requires - structure.capabilities]
        if missing:
            raise MissingCapabilityError(
                f"loss {type(loss).__name__} needs a structure with {missing[0].value}, which "
                f"{type(structure).__name__} does not have{structure.remedy}."
            )
        self.model, self.structure = model, with_threads(structure, threads)
        self.loss, self.penalty = loss, penalty
        self.data, self.weight, self.threads = data, weight, threads
        self.targets = labels if isinstance(labels, Targets) else Targets(labels)
        if self.targets.soft is not None and not loss.takes_soft:
            raise ValueError(
                f"loss {type(loss).__name__} needs labels, but y has probabilities of labels: use "
                "loss='log', or the most probable labels, y.argmax()."
            )
        self._prepared = _PreparedData(cast(LinearModel, model), data, threads)
        self.n_parameters, self.evaluations = model.n_parameters, 0
        self.nonnegative = _bounds(model)

    @property
    def labels(self) -> CodeArray:
        """The label codes of all tokens, shape (N,); ValueError if some may have several."""
        return self.targets.labels

    @property
    def l1(self) -> float:
        """Weight of the L1 norm, which is not part of :meth:`value_and_grad`."""
        return self.penalty.l1

    @property
    def l2(self) -> float:
        """Weight of the squared Euclidean norm."""
        return self.penalty.l2

    def with_penalty(self, penalty: ElasticNet) -> Objective:
        """Return the objective with another penalty; both share the data, use one at a time."""
        other = copy.copy(self)
        other.penalty, other.evaluations = penalty, 0
        return other

    def with_loss(self, loss: Loss) -> Objective:
        """Return the objective with another loss; both share the data, use one at a time."""
        other = copy.copy(self)
        other.loss = loss
        return other

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the differentiable part of the objective and its gradient, a new array (P,)."""
        self.evaluations += 1
        value, gradient = self._pull_back(partial(self.loss.value_and_grad, self.structure), w)
        self.penalty.add_smooth_gradient(w, gradient)
        return value + self.penalty.smooth_value(w), gradient

    def hessian_product(self, w: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the product of the Hessian of the differentiable part with a direction, (P,)."""
        self.evaluations += 1
        _, product = self._pull_back(
            partial(self.loss.hessian_product, self.structure), w, direction
        )
        self.penalty.add_smooth_gradient(direction, product)
        return product

    @property
    def has_covariances(self) -> bool:
        """Whether the structure tells the covariances of all weights, so that `hessian` is fast."""
        model, data = cast(LinearModel, self.model), self.data
        return bool(
            Capability.COVARIANCES in self.structure.capabilities
            and self.structure.offset is None
            and self.loss.is_log_likelihood
            and self.targets.allowed is None
            and self.has_sequence_weights
            and model.is_linear
            and model.homogeneous
            and {block.name for block in model.blocks} == {"state", "transitions"}
            and data.dense is None
        )

    def hessian(
        self, w: FloatArray, directions: sp.csr_array, sequences: int | None = None
    ) -> FloatArray:
        """Return about the Hessian of the differentiable part along directions, (Q, P): (Q, Q).

        Where covariances are known, those of so many `sequences` or some more, if there are as
        many, each of which stands for others; all if not given. Else by Q products.
        """
        if not self.has_covariances:
            products = [self.hessian_product(w, each) for each in directions.toarray()]
            return np.asarray(directions @ np.array(products).T)
        model = cast(LinearModel, self.model)
        step = 1 if sequences is None else max(len(self.data) // max(sequences, 1), 1)
        combine, features = directions @ self._basis.combine, self._basis.features
        found = np.zeros((combine.shape[1],) * 2)
        bound, level = model.bind(w), cast(FloatArray, self._level)
        for index, chunk in enumerate(self._prepared.chunks):
            scores = model.prepared_scores(bound, self._prepared.parts, index, self.threads)
            numbers = np.arange(chunk.first, chunk.first + len(chunk.offsets) - 1)
            weight = np.where(numbers % step == 0, step * level[chunk.sequences], 0.0)
            first = chunk.tokens.start
            self.structure.add_covariances(scores, weight, first, features, found)
        turned = frozen((combine @ (found + found.T)).T)
        penalty = 2.0 * self.penalty.l2 * (directions @ directions.T).toarray()
        return np.asarray(penalty + combine @ turned)

    def directions(self, start: FloatArray) -> sp.csr_array:
        """Return directions, (Q, P), along which the optimum is reached from a start.

        No two share a parameter. They are the parameters, but for two labels, the differences of
        the weights of each attribute, if these are opposite at the start.
        """
        if self.has_covariances:
            return self._basis.directions(start)
        return sp.eye_array(self.n_parameters, format="csr")

    @cached_property
    def _basis(self) -> FeatureBasis:
        from crfkit.objective.curvature import FeatureBasis

        return FeatureBasis.of(cast(LinearModel, self.model), self.data)

    def hessian_diagonal(self, w: FloatArray) -> FloatArray:
        """Return an estimate of the diagonal of the Hessian, shape (P,): cheap, never negative.

        The variance of each feature as if tokens were independent (Sha and Pereira 2003,
        section 3.2.1), and for transitions their expected number, plus what the penalty adds.
        """
        work = partial(self.loss.hessian_diagonal, self.structure)
        diagonal = np.abs(self._pull_back(work, w, adjoint=self._prepared.squared)[1])
        diagonal += 2.0 * self.penalty.l2
        return diagonal

    def expected_counts(self, w: FloatArray, chosen: BoolArray) -> FloatArray:
        """Return how often features are expected, (P,), in the sequences that are chosen, (S,)."""

        def work(scores: Potentials, targets: Targets, weights: Weights, out: Counts) -> None:
            part = chosen[scores.first : scores.first + len(weights.shared)]
            self.structure.log_partition(scores, weights.shared * part, out)

        return self._pull_back(work, w)[1]

    def observed_counts(self) -> FloatArray:
        """Return how often each feature occurs with the true labels, shape (P,)."""

        def work(scores: Potentials, targets: Targets, weights: Weights, out: Counts) -> None:
            out.unary[...] = 0.0
            self.structure.add_counts(scores, targets.labels, weights.shared, out)

        return self._pull_back(work, np.zeros(self.n_parameters))[1]

    def total_counts(self) -> FloatArray:
        """Return the largest sum of all features over the labelings of each sequence, (S,)."""
        self._prepared.model.check_counts(self.data)
        totals = np.zeros(len(self.data))

        def work(scores: Potentials, targets: Targets, weights: Weights, out: Counts) -> None:
            found = self.structure.argmax(scores)[1]
            totals[scores.first : scores.first + len(found)] = found
            out.unary[...] = 0.0

        self._pull_back(work, np.ones(self.n_parameters))
        return totals

    @property
    def has_sequence_weights(self) -> bool:
        """Whether all tokens of a sequence have the same weight, for each sequence."""
        return self._level is not None

    @property
    def has_known_labels(self) -> bool:
        """Whether each token has one known label."""
        return self.targets.allowed is None and self.targets.soft is None

    @property
    def is_convex(self) -> bool:
        """Whether it is known to be convex: it need not be where labels are known in part."""
        whole = self.targets.allowed is None and self.has_sequence_weights
        return self.has_convex_loss and whole

    @property
    def has_convex_loss(self) -> bool:
        """Whether the loss of sequences with known labels, and one weight each, is convex."""
        of_structure = self.structure.is_convex or not self.loss.needs_log_z
        return self.loss.is_convex and of_structure

    @cached_property
    def _level(self) -> FloatArray | None:
        """The weight of each sequence, shape (S,); None where tokens of one differ."""
        return Weights.of(self.weight, self.data.offsets).sequences

    def gap(self, record: IterationRecord) -> float:
        """Return how much a value is above the optimum at most; NaN where that is not known.

        From the record of an iteration: its gap, or with an L2 penalty and a smooth and convex
        loss ``|g|**2 / (4 c2)`` for the (pseudo-)gradient ``g``, by strong convexity; where
        parameters are bounded, that which leads out of the bounds does not count.
        """
        if not math.isnan(record.gap):
            return record.gap
        known = self.is_convex and self.loss.is_smooth and self.l2
        return record.gradient_norm**2 / (4.0 * self.penalty.l2) if known else math.nan

    def minibatches(
        self, tokens: int, random_state: int | np.random.RandomState
    ) -> StochasticObjective:
        """Return the same objective as a sum over small batches of sequences."""
        return StochasticObjective(self, tokens, random_state)

    def _pull_back(
        self, work: Work, *at: FloatArray, adjoint: _PreparedData | None = None
    ) -> tuple[float, FloatArray]:
        """Return the sum of what `work` returns, and what it writes, pulled back to parameters.

        `at` are parameters, whose scores `work` is given, and tangents, which have no scores but
        those that are learned; `adjoint` are other values of the features, for the way back alone.
        """
        bound = [self.model.bind(at[0])]
        for tangent in at[1:]:
            bound.append(cast(LinearModel, self.model).linear(self.structure)[0].bind(tangent))
        gradient = np.zeros(self.n_parameters)
        values, data = list[float](), self._prepared
        parts, way_back = data.parts, (adjoint or data).parts
        for block in data.blocks:
            tokens = data.tokens(block)
            results = self.threads(partial(self._chunk, work, bound, parts, tokens.start), block)
            values += [part or 0.0 for part, _ in results]
            unary = data.residual[: tokens.stop - tokens.start]
            pairs = [pair for _, pair in results]
            data.model.pullback(unary, pairs, way_back, block, self.threads, gradient)
        return sum(values, 0.0), gradient

    def _chunk(
        self, work: Work, bound: list[Any], parts: Prepared, begin: int, index: int
    ) -> tuple[float | None, FloatArray]:
        """Write the gradient to the unary scores of a chunk of the block that begins at a token.

        Returns the value, and the gradient to the pair scores.
        """
        data, chunk = self._prepared, parts.chunks[index]
        tokens = chunk.tokens
        scores = [data.model.prepared_scores(each, parts, index, self.threads) for each in bound]
        unary = data.residual[tokens.start - begin : tokens.stop - begin]
        out = Counts(unary, np.zeros_like(scores[0].pair))
        if self._level is None:
            weights = Weights.of(self.weight[tokens], scores[0].offsets)
        else:
            weights = Weights(self.weight[tokens], self._level[chunk.sequences])
        return work(*scores, self.targets.take(tokens), weights, out), out.pair


def _bounds(model: PotentialsModel) -> BoolArray | None:
    """Return which parameters may not be negative; None where all may. ValueError if misshapen."""
    bounds = model.nonnegative
    if bounds is None:
        return None
    if bounds.shape != (model.n_parameters,) or bounds.dtype != np.bool_:
        raise ValueError(
            f"nonnegative of {type(model).__name__} must be an array of bool of the shape "
            f"({model.n_parameters},), not of {bounds.dtype} {bounds.shape}."
        )
    return frozen(bounds) if bounds.any() else None
