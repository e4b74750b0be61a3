"""Sequences drawn from a hidden Markov model: labels, then a token for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._params import check_whole
from crfkit._types import CodeArray, FloatArray, IntArray, Random
from crfkit.data.validation import numeric_array
from crfkit.generative.base import HiddenTables, StepTables
from crfkit.generative.model import HiddenMarkovModel


def draw_labels(
    model: HiddenMarkovModel, tables: HiddenTables, lengths: Any, random: Random
) -> tuple[CodeArray, IntArray]:
    """Return labels of sequences, (N,), and where these begin, (S + 1,).

    `lengths` are those of the sequences, whose labels are drawn given these; or the number of
    sequences, whose ends are drawn, too.
    """
    if np.ndim(lengths) == 0:
        check_whole("lengths", lengths)
        return _walk(tables.steps, int(lengths), random)
    sizes = numeric_array(lengths, "lengths")
    if sizes.ndim != 1 or not np.all((sizes >= 0) & (sizes < np.inf) & (sizes == np.floor(sizes))):
        raise ValueError(f"lengths={lengths!r:.60} must be whole numbers, none below 0.")
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if not offsets[-1]:
        return np.zeros(0, np.int32), offsets
    potentials = model.label_scores(model.bind(tables), offsets)
    uniforms = random.random_sample((1, int(offsets[-1])))
    codes: CodeArray = model.structure.sample(potentials, uniforms)[0]
    return codes, offsets


def _walk(tables: StepTables, count: int, random: Random) -> tuple[CodeArray, IntArray]:
    """Draw labels one after the other, of all sequences that have not ended."""
    if tables.end is None:
        raise ValueError(
            "the model does not know where sequences end (stop=False, or order=0): give the "
            "lengths of the sequences that are to be drawn."
        )
    _check_that_sequences_end(tables, tables.end)
    size = len(tables.start)
    drawn = [_choose(np.tile(tables.start, (count, 1)), random)]
    open_ = [np.arange(count)]
    before = np.full(count, size)
    while len(open_[-1]):
        last = drawn[-1]
        rows = tables.steps[last] if tables.triples is None else tables.triples[before, last]
        found = _choose(np.column_stack([rows, tables.end[last]]), random)
        goes_on = found < size
        before = last[goes_on]
        drawn.append(found[goes_on])
        open_.append(open_[-1][goes_on])
    sequence = np.concatenate(open_)
    codes = np.concatenate(drawn)[np.argsort(sequence, kind="stable")]
    lengths = np.bincount(sequence, minlength=count)
    return codes.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _choose(rows: FloatArray, random: Random) -> IntArray:
    """Return an outcome of each distribution, (n,)."""
    sums = np.cumsum(rows, axis=1)
    targets = random.random_sample(len(rows))[:, None] * sums[:, -1:]
    chosen: IntArray = (sums <= targets).sum(axis=1)
    return chosen


def _check_that_sequences_end(tables: StepTables, end: FloatArray) -> None:
    """Raise ValueError if a sequence may come to labels from which no end can be reached."""
    follows = tables.steps > 0.0
    if tables.triples is not None:
        follows = tables.triples.max(axis=0) > 0.0
    ends, begun = end > 0.0, tables.start > 0.0
    for _ in range(len(end)):
        ends = ends | (follows & ends).any(axis=1)
        begun = begun | (follows & begun[:, None]).any(axis=0)
    if np.any(begun & ~ends):
        raise ValueError(
            f"label number {int(np.argmax(begun & ~ends))} is never followed by an end, so that "
            "sequences have no length: give the lengths of those that are to be drawn."
        )
