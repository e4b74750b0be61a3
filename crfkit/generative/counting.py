"""What is counted for a hidden Markov model, and the probabilities that follow from it.

With labels known, the relative frequencies are the estimates of maximum likelihood (Rabiner 1989,
section III.C; Sutton and McCallum 2012, section 2.2); with labels that are expected, they are the
maximization step of EM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from crfkit._types import CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.topology import check_no_topology
from crfkit.data.validation import check_rows
from crfkit.generative.base import (
    Emission,
    HiddenCounts,
    HiddenTables,
    Smoothing,
    StepCounts,
    StepTables,
    add_statistics,
)
from crfkit.generative.model import HiddenMarkovModel
from crfkit.kernels.symbols import steps_count
from crfkit.potentials.chain_blocks import boundary_rows


def count_labeled(
    model: HiddenMarkovModel, data: PackedSequences, codes: CodeArray, weight: FloatArray
) -> HiddenCounts:
    """Return the counts of data whose labels are known, (N,); weights are of sequences, (S,).

    Sequences of weight 0 have no part in them.
    """
    check_no_topology(data.topology, "a hidden Markov model")
    weights = np.repeat(weight, data.lengths)
    steps = count_transitions(codes, data.offsets, weights, model)
    emission = model.emission.count_labels(data, codes, weights, model.n_labels)
    return HiddenCounts(steps, emission)


def count_transitions(
    codes: CodeArray, offsets: IntArray, weights: FloatArray, model: HiddenMarkovModel
) -> StepCounts:
    """Return the counts of labels next to each other, with weights of tokens, (N,)."""
    size = model.n_labels
    if model.order == 0:
        found = np.bincount(codes, weights, minlength=size).astype(np.float64)
        return StepCounts(found, *_no_steps(size))
    start, end, steps = np.zeros(size), np.zeros(size), np.zeros((size, size))
    triples = np.zeros((size + 1, size, size) if model.order == 2 else (0, 0, 0))
    given = frozen(codes), frozen(offsets), frozen(weights)
    steps_count(*given, start, steps, end, triples)
    return StepCounts(start, steps, end, triples if model.order == 2 else None)


def expected_steps(model: HiddenMarkovModel, potentials: Potentials, counts: Counts) -> StepCounts:
    """Return the expected counts, given those of the parts of potentials (`log_partition`)."""
    size = model.n_labels
    if model.order == 0:
        return StepCounts(counts.unary.sum(axis=0), *_no_steps(size))
    first, last = boundary_rows(potentials.offsets)
    start, end = counts.unary[first].sum(axis=0), counts.unary[last].sum(axis=0)
    if model.order == 2:
        return StepCounts(start, counts.pair.sum(axis=0), end, counts.pair)
    return StepCounts(start, counts.pair[0], end)


def estimate(
    model: HiddenMarkovModel, smoothing: Smoothing, counts: HiddenCounts, data: PackedSequences
) -> HiddenTables:
    """Return the probabilities that follow from counts: the maximization step of EM.

    `data` are any that have the attributes that were counted.
    """
    emission = model.emission.estimate(counts.emission, data)
    return in_order(model, HiddenTables(smoothing.estimate(counts.steps, model.stop), emission))


def counted_likelihood(
    model: HiddenMarkovModel, counts: HiddenCounts, tables: HiddenTables
) -> float | None:
    """Return ``log P(x, y)`` of all that was counted; None where counts do not tell it."""
    found = model.emission.log_likelihood(tables.emission, counts.emission)
    if found is None:
        return None
    seen, steps = counts.steps, tables.steps
    pairs = [(seen.start, steps.start)]
    if seen.triples is not None and steps.triples is not None:
        pairs.append((seen.triples, steps.triples))
    elif model.order:
        pairs.append((seen.steps, steps.steps))
    if steps.end is not None:
        pairs.append((seen.end, steps.end))
    for times, probabilities in pairs:
        chosen = times > 0.0
        with np.errstate(divide="ignore"):
            found += float(times[chosen] @ np.log(probabilities[chosen]))
    return found


def in_order(model: HiddenMarkovModel, tables: HiddenTables) -> HiddenTables:
    """Return tables, where the order is 0 those of labels that do not depend on each other."""
    if model.order:
        return tables
    start = tables.steps.start
    return tables._replace(steps=StepTables(start, np.tile(start, (model.n_labels, 1)), None))


def log_prior(model: HiddenMarkovModel, smoothing: Smoothing, tables: HiddenTables) -> float:
    """Return the logarithm of the prior density of tables, up to a constant."""
    steps = tables.steps
    if model.order == 0:
        steps = StepTables(steps.start, np.zeros((0, 0)), None)
    return smoothing.log_prior(steps) + model.emission.log_prior(tables.emission)


def added(one: HiddenCounts, other: HiddenCounts) -> HiddenCounts:
    """Return the counts of two parts of data together."""
    emission = add_statistics(one.emission, other.emission)
    return HiddenCounts(added_steps(one.steps, other.steps), emission)


def added_steps(one: StepCounts, other: StepCounts) -> StepCounts:
    """Return the counts of labels of two parts of data, of the same order, together."""
    triples = one.triples
    if triples is not None and other.triples is not None:
        triples = triples + other.triples
    return StepCounts(
        one.start + other.start, one.steps + other.steps, one.end + other.end, triples
    )


def check_counts(counts: Any, order: Any, emission: Emission, size: int, n_features: int) -> None:
    """Raise ValueError if counts, of a file, are not those of K labels and D features."""
    if type(order) is not int or type(counts) is not HiddenCounts:
        raise ValueError("what was counted are no counts of some order")
    steps = counts.steps
    if type(steps) is not StepCounts or (steps.triples is None) != (order < 2):
        raise ValueError(f"what was counted are no transitions of order {order}")
    shapes = [(size,), (size, size), (size,), (size + 1, size, size)]
    for part, shape in zip(steps, shapes, strict=True):
        if part is not None and (
            type(part) is not np.ndarray or part.dtype != np.float64 or part.shape != shape
        ):
            raise ValueError(f"a part of what was counted is no array of shape {shape}")

    data = PackedSequences.from_matrices([np.zeros((0, n_features))], n_features)
    nothing = emission.count_labels(data, np.zeros(0, np.int32), np.zeros(0), size)
    _check_like(counts.emission, nothing)


def _check_like(found: Any, nothing: Any) -> None:
    """Raise ValueError if statistics have not the form of those of no tokens, or no numbers."""
    if isinstance(nothing, tuple):
        if type(found) is not type(nothing) or len(found) != len(nothing):
            raise ValueError("what was counted of tokens has other parts than the emission counts")
        for parts in zip(found, nothing, strict=True):
            _check_like(*parts)
        return
    if type(found) is sp.csr_array and len(nothing.shape) == 2:
        check_rows(found.indptr, found.indices, nothing.shape, "what was counted of tokens")
    elif not isinstance(found, (np.ndarray, np.number)):
        raise ValueError(f"a part of what was counted of tokens is a {type(found).__name__}")
    numbers = found.data if sp.issparse(found) else np.asarray(found)
    if found.shape != nothing.shape or numbers.dtype.kind not in "fiu":
        raise ValueError(
            f"a part of what was counted of tokens is no array of shape {nothing.shape}"
        )
    if not np.isfinite(numbers).all():
        raise ValueError("a part of what was counted of tokens holds what is no finite number")


def _no_steps(size: int) -> tuple[FloatArray, FloatArray]:
    return np.zeros((size, size)), np.zeros(size)
