"""Chains and forests whose labels are learned and predicted given the label before.

A maximum-entropy Markov model (McCallum, Freitag and Pereira 2000) has
``P(y | x) = prod_t P(y_t | y_{t-1}, x_t)``, each factor a softmax over the labels of a token. As
``N_t(i) = log sum_j exp(unary_t(j) + pair_t(i, j))`` depends on the label i before and the data
alone, its logarithm is the score of a chain whose unary scores of the token before are less by
``N_t``: a chain with ``log Z = 0``, of which all that structures tell of chains is true.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._parallel import SERIAL, Chunk, ThreadMap
from crfkit._types import FloatArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.topology import tokens_before
from crfkit.kernels.chain.local import (
    ListedExponentials,
    LocalExponentials,
    local_shift,
    local_shift_listed,
)
from crfkit.potentials.base import FeatureChoice, LabeledData, PotentialsModel
from crfkit.potentials.chain_blocks import EndBlock, TransitionBlock
from crfkit.potentials.choice import AnyInts
from crfkit.potentials.linear import LinearChainModel, TokenWeights, WeightSpace
from crfkit.structures.potentials import chain_arrays, exp_unary, transposed


class LocalModel(PotentialsModel):
    """The potentials of a linear model, normalized at each token."""

    is_linear = False

    def __init__(self, inner: LinearChainModel) -> None:
        self.inner, self.structure = inner, inner.structure
        self.n_parameters, self.n_columns = inner.n_parameters, inner.n_columns
        self.n_labels = self.n_codes = inner.n_labels
        self.chunk_tokens = inner.chunk_tokens

    @property
    def parameter_counts(self) -> dict[str, int]:
        """Numbers of parameters by what they are, in words."""
        return self.inner.parameter_counts

    def fitted(self, parameters: FloatArray) -> dict[str, Any]:
        """Return parameters as the attributes of a fitted estimator."""
        return self.inner.fitted(parameters)

    def bind(self, parameters: FloatArray) -> Any:
        """Return what `scores` needs of the parameters."""
        return self.inner.bind(parameters)

    def scores(
        self, bound: Any, data: PackedSequences, chunk: Chunk, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the potentials of a chunk of new data, whose exponentials add up to 1."""
        potentials = self.inner.scores(bound, data, chunk, threads)
        if data.topology is None:
            before = tokens_before(potentials.offsets)
        else:
            before = data.topology.take(np.arange(len(data))[chunk.sequences]).before
        if potentials.is_dense:
            return normalized(potentials, before)
        return normalized_list(
            potentials, before, self.inner.transition_from, self.inner.transition_to
        )


def normalized(potentials: Potentials, before: IntArray) -> Potentials:
    """Return potentials with the scores of labels shifted: each label before leads to a softmax.

    `before` is the token that the transition into each comes from, -1 for none.
    """
    scores, pair = chain_arrays(potentials), potentials.pair
    top = pair.max(axis=2, initial=-np.inf)
    top[top == -np.inf] = 0.0
    leaving = transposed(np.exp(pair - top[:, :, None]))
    exponentials = LocalExponentials(*exp_unary(scores), leaving, frozen(top))
    out = np.array(potentials.unary)
    local_shift(scores, exponentials, frozen(before), np.empty((1, pair.shape[1])), out)
    return potentials.with_arrays(out, pair)


def normalized_list(
    potentials: Potentials, before: IntArray, source: AnyInts, target: AnyInts
) -> Potentials:
    """Return potentials whose transitions from `source` to `target`, (E,), alone have scores."""
    value, out = potentials.pair[0], np.array(potentials.unary)
    with np.errstate(over="ignore"):
        gain = np.expm1(value)
    ptr = np.searchsorted(source, np.arange(out.shape[1] + 1)).astype(np.int64)
    exponentials = ListedExponentials(
        *exp_unary(potentials), *map(frozen, (ptr, target.astype(np.int64), value, gain))
    )
    local_shift_listed(frozen(potentials.unary), exponentials, frozen(before), out)
    return potentials.with_arrays(out, potentials.pair)


class LocalTokens(WeightSpace):
    """Weights of models of labels given the label before."""

    kind = LinearChainModel
    asked = LocalModel

    def choose(self, features: FeatureChoice, training: LabeledData) -> LinearChainModel:
        """Return the chain with the weights that are to be fitted; last labels have none."""
        chain: Any = TokenWeights(self.labels).choose(features, training)
        blocks = [block for block in chain.blocks if block.name != EndBlock.name]
        return LinearChainModel(blocks, chain.given_structure)


class SingleTokens(WeightSpace):
    """Weights of attributes of single tokens: of chains without weights of transitions."""

    kind = LinearChainModel

    def choose(self, features: FeatureChoice, training: LabeledData) -> LinearChainModel:
        """Return the model with the weights that are to be fitted."""
        if training.data.transitions is not None:
            raise ValueError(
                "X has attributes of transitions, which a model of single tokens cannot use: "
                "X.with_transitions(None) leaves them out."
            )
        chain: Any = TokenWeights(self.labels).choose(features, training)
        none = TransitionBlock.without_weights(chain.n_labels)
        blocks = [none if block.name == TransitionBlock.name else block for block in chain.blocks]
        return LinearChainModel(blocks, chain.given_structure)
