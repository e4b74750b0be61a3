"""Probabilities of spans in chains."""

from __future__ import annotations

import numpy as np

from crfkit._types import BoolArray, FloatArray, IntArray, LabelReading, ReadSpans
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.arrays import ChainWorkspace
from crfkit.kernels.chain.spans import (
    FoundSpans,
    SpanCodes,
    SpanSteps,
    chain_likely_spans,
    chain_messages,
    chain_spans,
)
from crfkit.kernels.chain.sum import UNDERFLOW
from crfkit.structures.base import NoPathError, raise_if_dead
from crfkit.structures.chain import Chain
from crfkit.structures.potentials import ChainPotentials, chain_arrays, chain_exponentials, of_spans
from crfkit.structures.tree import TreePotentials
from crfkit.structures.tree_posterior import LogTreePosterior

# A label whose probability is below this is taken to have none.
NO_SHARE = 1e-290
# Of bounds, so much is left for rounding.
SPARE = 1e-9

Listed = tuple[IntArray, IntArray, IntArray, FloatArray]  # starts, stops, types, probabilities


def chain_span_probabilities(
    potentials: ChainPotentials, reading: LabelReading, spans: ReadSpans
) -> FloatArray:
    """Return the probability of each span, shape (n,)."""
    if not len(spans.start):
        return np.zeros(0)
    potentials, spans, sequence = of_spans(potentials, spans)
    probability, reached = np.empty(len(sequence)), np.empty((2, len(reading.type_of)))
    scores, steps, codes = chain_arrays(potentials), _steps(potentials), _codes(reading)
    asked = ReadSpans(frozen(spans.start), frozen(spans.stop), frozen(spans.type))
    chain_spans(scores, steps, codes, frozen(sequence), asked, reached, probability)
    return probability


def likely_chain_spans(
    potentials: ChainPotentials, reading: LabelReading, threshold: float
) -> Listed:
    """Return the spans of at least some probability, sorted by their tokens, then by types."""
    scores, steps, codes = chain_arrays(potentials), _steps(potentials), _codes(reading)
    reached, room = np.empty((2, len(reading.type_of))), len(potentials.unary)
    while True:
        start, stop, type = np.empty((3, room), np.int64)
        found = FoundSpans(start, stop, type, np.empty(room))
        count = chain_likely_spans(scores, steps, codes, threshold * (1 - SPARE), found, reached)
        if count <= room:
            break
        room = count
    order = np.lexsort((type[:count], stop[:count], start[:count]))
    order = order[found.probability[order] >= threshold]
    return start[order], stop[order], type[order], found.probability[order]


def _codes(reading: LabelReading) -> SpanCodes:
    """Return what codes say of spans, as kernels read it."""
    order = np.argsort(reading.type_of, kind="stable")
    ptr = np.searchsorted(reading.type_of[order], np.arange(len(reading.types) + 1))
    tables = map(frozen, (reading.opens, reading.continues, reading.closes))
    return SpanCodes(frozen(ptr.astype(np.int64)), frozen(order.astype(np.int64)), *tables)


def _steps(potentials: ChainPotentials) -> SpanSteps:
    """Return what tells the probabilities of labels given those before them."""
    scores, count = chain_arrays(potentials), len(potentials.offsets) - 1
    raised, (length, size) = chain_exponentials(scores), scores.unary.shape
    alpha, message, marginals = np.empty((3, length, size))
    workspace = ChainWorkspace(np.empty(length), np.empty((1, size)), alpha, message)
    status = np.empty(count, np.int64)
    chain_messages(scores, raised, workspace, marginals, status)
    raise_if_dead(potentials, status)
    failed = status == UNDERFLOW
    if failed.any():
        tokens = np.repeat(failed, np.diff(potentials.offsets))
        marginals[tokens] = 0.0
    marginals[marginals < NO_SHARE] = 0.0
    inverse = np.divide(alpha, marginals, out=alpha, where=marginals > 0.0)
    if failed.any():
        _sum_in_logs(potentials, failed, marginals, message, inverse)
    return SpanSteps(
        scores.pair, *map(frozen, (raised.factor, marginals, message, inverse, failed))
    )


def _sum_in_logs(
    potentials: ChainPotentials, failed: BoolArray, marginals: FloatArray, message: FloatArray,
    inverse: FloatArray,
) -> None:  # fmt: skip
    """Write the probabilities of labels of some sequences, (S,), and logarithms, as of paths."""
    tokens = np.repeat(failed, np.diff(potentials.offsets))
    paths = potentials.take(np.flatnonzero(failed))
    order = np.concatenate([np.arange(n) for n in np.diff(paths.offsets)])
    try:
        known = LogTreePosterior(TreePotentials(*paths, order - 1, order))
    except NoPathError:
        Chain().argmax(potentials)  # raises, and tells where from the start
        raise
    marginals[tokens] = known.marginals
    message[tokens] = known.beliefs.inside
    inverse[tokens] = -np.roll(known.beliefs.message, -1, axis=0)
