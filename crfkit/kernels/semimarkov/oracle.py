"""Visits of one sequence of segments, for kernels that make many.

Weights are the flat vector of the parameters (P,), in their own order. ``Q``: tokens of the longest
sequence; ``C = 4 K``: scores of a token, of going on, beginning, ending and being alone; rows of
``K`` labels are filled up to ``W``, whole vectors of eight. Row ``t - begin`` of what belongs to a
sequence is that of token ``t``. Arrays come in groups:

- `tokens` and `rows`, the attributes of tokens and of segments: where those of each token (or row)
  start (N + 1,), which they are, their values, `step`, dense features (N, F), the first attribute
  that is a dense feature; where the weights of each attribute start (D + 1,), their columns, and
  the place of the first weight.
- `steps`: labels before (P2,) and after (P2,) of the steps that have a weight, and the place of the
  first; the place of the weight of each step (K, K), -1 where there is none.
- `sizes`: functions of lengths: where those that are not 0 start for each length (L + 1,), which
  they are, their values; the places of their weights (F, K), -1 for none.
- `bounds`: the places of the weights of first labels (K,) and last ones (K,); (0,) for none.
- `listed`: which segments with a row end at a token (N + 1,), their lengths (n,), rising, their
  rows of attributes (n,), and the number of each row in the sequence (n,): 0, 1, ... where they
  come first.
- `added`: what is not learned of the scores of steps (1, W, W) and of lengths (L, W), and the
  longest length of eight labels (W / 8,).
- `own`, the workspace: scores (Q, C); of going on, beginning, ending, being alone, (Q, W) each; of
  steps (1, W, W), lengths (L, W) and segments (R, W); best scores (Q + 1, W), (Q, W), (1, W); a
  path (Q,); the table of steps (1,), 0.
- `noted`, what is listed of two segmentations: room for columns of a token (C,), zeros, and the
  places and the changes of weights, some perhaps many times.
- `model`: `tokens`, `rows`, `steps`, `sizes`, `bounds`, `listed` and `added`.
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import inlined, kernel, part
from crfkit.kernels.semimarkov.max import _best_segmentation, _find

# A look at a sequence met scores that are not finite; others end as `semimarkov_max` says.
INFINITE = -2


@part
def place_pairs(flat: FloatArray, steps: Any, sizes: Any, added: Any, own: Any) -> None:
    """Write the scores of steps and lengths: what is added to them, plus their weights."""
    (before, after, first, _), (ptr, functions, values, places) = steps, sizes
    (fixed_steps, fixed_lengths, _), (_, _, (of_steps, of_lengths, _), _, _, _) = added, own
    for n in range(before.shape[0]):
        i, j = before[n], after[n]
        of_steps[0, i, j] = fixed_steps[0, i, j] + flat[first + n]
    for d in range(ptr.shape[0] - 1):
        for k in range(places.shape[1]):
            of_lengths[d, k] = fixed_lengths[d, k]
        for n in range(ptr[d], ptr[d + 1]):
            f = functions[n]
            for k in range(places.shape[1]):
                if places[f, k] >= 0:
                    of_lengths[d, k] += values[n] * flat[places[f, k]]


@part
def _add_attributes(t: int, flat: FloatArray, entries: Any, row: int, out: FloatArray) -> None:
    """``out[row, c] += sum_a x[t, a] w[a, c]``."""
    indptr, indices, values, step, dense, n_sparse, ptr, columns, first = entries
    for n in range(indptr[t], indptr[t + 1]):
        a, x = indices[n], values[n * step]
        for p in range(ptr[a], ptr[a + 1]):
            out[row, columns[p]] += x * flat[first + p]
    for f in range(dense.shape[1]):
        x = dense[t, f]
        for p in range(ptr[n_sparse + f], ptr[n_sparse + f + 1]):
            out[row, columns[p]] += x * flat[first + p]


@part
def gather_segments(begin: int, end: int, flat: FloatArray, tokens: Any, rows: Any, bounds: Any,
                    listed: Any, own: Any) -> bool:  # fmt: skip
    """Write the scores of tokens and of segments with attributes; returns whether they are finite.

    A score of beginning holds the one of going on.
    """
    (scores, _, (_, _, spans), _, _, _), (ptr, _, rows_of, which) = own, listed
    size, (starts, ends) = scores.shape[1] // 4, bounds
    for t in range(begin, end):
        row = t - begin
        for c in range(scores.shape[1]):
            scores[row, c] = 0.0
        _add_attributes(t, flat, tokens, row, scores)
        for k in range(size):
            scores[row, size + k] += scores[row, k]
    for k in range(starts.shape[0]):
        scores[0, size + k] += flat[starts[k]]
        scores[end - begin - 1, 2 * size + k] += flat[ends[k]]
    known = 0
    for q in range(ptr[begin], ptr[end]):
        if which[q] == known:
            for k in range(size):
                spans[known, k] = 0.0
            _add_attributes(rows_of[q], flat, rows, known, spans)
            known += 1
    finite = True
    for row in range(end - begin):
        for c in range(scores.shape[1]):
            finite &= abs(scores[row, c]) < math.inf
    return finite


@part
def _part_scores(begin: int, end: int, labels: CodeArray, cost: FloatArray, own: Any) -> None:
    """Write the scores of each kind in rows of their own, with the costs of the codes."""
    scores, (stay, start, finish, alone), _, _, _, _ = own
    size = scores.shape[1] // 4
    for t in range(begin, end):
        row = t - begin
        for k in range(size):
            stay[row, k] = scores[row, k]
            start[row, k] = scores[row, size + k]
            finish[row, k] = scores[row, 2 * size + k]
            alone[row, k] = scores[row, 3 * size + k]
        if cost.shape[0] > 0:
            for k in range(size):
                stay[row, k] += cost[labels[t], k]
                start[row, k] += cost[labels[t], size + k]


@inlined
def look_at(begin: int, end: int, flat: FloatArray, labels: CodeArray, cost: FloatArray, model: Any,
            own: Any) -> int:  # fmt: skip
    """Find the best segmentation where costs, (2 K, 2 K) or (0, 0), are added to its score.

    The pairs have to be in place. Returns `OK`, `INFINITE`, or the position where no
    segmentation goes on.
    """
    tokens, rows, _, _, bounds, listed, (_, _, most) = model
    if not gather_segments(begin, end, flat, tokens, rows, bounds, listed, own):
        return INFINITE
    _part_scores(begin, end, labels, cost, own)
    scores, (stay, start, finish, alone), (steps, lengths, spans), room, path, table = own
    best, begins, work = room
    ptr, length, _, which = listed
    status: int = _best_segmentation(
        0, end - begin, begin, stay, start, finish, alone, steps, lengths, most, spans, ptr,
        length, which, table, scores.shape[1] // 4, best, begins, work, path,
    )  # fmt: skip
    return status


@part
def segmentation_score(begin: int, end: int, codes: CodeArray, shift: int, listed: Any,
                       own: Any) -> float:  # fmt: skip
    """Add up the scores of the parts of a segmentation, ``codes[shift:]``."""
    scores, _, (steps, lengths, spans), _, _, _ = own
    ptr, length, _, which = listed
    size, total, first, before = scores.shape[1] // 4, 0.0, 0, 0
    for row in range(end - begin):
        code = codes[shift + row]
        label = code if code < size else code - size
        total += scores[row, code]
        if code >= size:
            if row > 0:
                total += steps[0, before, label]
            first = row
        if row + 1 == end - begin or codes[shift + row + 1] >= size:
            d = row - first + 1
            total += scores[row, 2 * size + label]
            if d == 1:
                total += scores[row, 3 * size + label]
            total += lengths[d - 1, label] if d <= lengths.shape[0] else -math.inf
            q = _find(length, ptr[begin + row], ptr[begin + row + 1], d)
            if q >= 0:
                total += spans[which[q], label]
            before = label
    return total


@part
def added_score(length: int, codes: CodeArray, shift: int, size: int, added: Any) -> float:
    """Add up what is not learned of the score of an allowed segmentation, ``codes[shift:]``."""
    (steps, lengths, _), total, first, before = added, 0.0, 0, 0
    for row in range(length):
        code = codes[shift + row]
        label = code if code < size else code - size
        if code >= size:
            if row > 0:
                total += steps[0, before, label]
            first = row
        if row + 1 == length or codes[shift + row + 1] >= size:
            total += lengths[row - first, label]
            before = label
    return total


@part
def _note(size: int, place: int, value: float, places: IdArray, changes: FloatArray) -> int:
    """List a change of a weight, if there is such a weight; returns how many are listed."""
    if place < 0:
        return size
    places[size] = place
    changes[size] = value
    return size + 1


@part
def _mark(code: int, ends: bool, size: int, value: float, marks: FloatArray) -> None:
    """Add to the columns of a token what counts for its code, and for whether its segment ends."""
    label = code if code < size else code - size
    marks[label] += value
    if code >= size:
        marks[size + label] += value
    if ends:
        marks[2 * size + label] += value
        if code >= size:
            marks[3 * size + label] += value


@part
def _note_attributes(count: int, t: int, entries: Any, marks: FloatArray, places: IdArray,
                     changes: FloatArray) -> int:  # fmt: skip
    """List ``x[t, a] marks[c]`` for the weights of the attributes of a token."""
    indptr, indices, values, step, dense, n_sparse, ptr, columns, first = entries
    for n in range(indptr[t], indptr[t + 1]):
        a, x = indices[n], values[n * step]
        for p in range(ptr[a], ptr[a + 1]):
            if marks[columns[p]] != 0.0:
                count = _note(count, first + p, x * marks[columns[p]], places, changes)
    for f in range(dense.shape[1]):
        x = dense[t, f]
        for p in range(ptr[n_sparse + f], ptr[n_sparse + f + 1]):
            if marks[columns[p]] != 0.0:
                count = _note(count, first + p, x * marks[columns[p]], places, changes)
    return count


@kernel
def _note_segment(count: int, t: int, d: int, label: int, sign: float, model: Any,
                  noted: Any) -> int:  # fmt: skip
    """List the length of a segment that ends at a token, and the attributes of its own."""
    (_, rows, _, (starts, functions, values, of_lengths), _, (ptr, length, rows_of, _), _) = model
    marks, places, changes = noted
    if d < starts.shape[0]:
        for n in range(starts[d - 1], starts[d]):
            place = of_lengths[functions[n], label]
            count = _note(count, place, sign * values[n], places, changes)
    q = _find(length, ptr[t], ptr[t + 1], d)
    if q >= 0:
        marks[label] = sign
        count = _note_attributes(count, rows_of[q], rows, marks, places, changes)
        marks[label] = 0.0
    return count


@kernel
def _note_token(count: int, t: int, code: int, ends: bool, other: int, other_ends: bool,
                model: Any, noted: Any) -> int:  # fmt: skip
    """List the attributes of a token for a code, minus those for another."""
    marks, places, changes = noted
    size = marks.shape[0] // 4
    if code != other or ends != other_ends:
        _mark(code, ends, size, 1.0, marks)
        _mark(other, other_ends, size, -1.0, marks)
        count = _note_attributes(count, t, model[0], marks, places, changes)
        _mark(code, ends, size, -1.0, marks)
        _mark(other, other_ends, size, 1.0, marks)
    return count


@part
def _note_bounds(count: int, places_of: IntArray, label: int, other: int, places: IdArray,
                 changes: FloatArray) -> int:  # fmt: skip
    """List the first or last label, minus another one, where these have weights."""
    if places_of.shape[0] > 0 and label != other:
        count = _note(count, places_of[label], 1.0, places, changes)
        count = _note(count, places_of[other], -1.0, places, changes)
    return count


@part
def note_difference(
    begin: int,  # tokens begin:end
    end: int,
    codes: CodeArray,  # a segmentation, from `shift` on
    shift: int,
    others: CodeArray,  # another one, from `from_` on
    from_: int,
    model: Any,
    noted: Any,
) -> int:
    """List the features of a segmentation minus those of another; returns how many there are."""
    (_, _, (_, _, _, of_steps), _, (starts, ends), _, _), (marks, places, changes) = model, noted
    size, last = marks.shape[0] // 4, end - begin - 1
    count, first_a, first_b, before_a, before_b = 0, 0, 0, 0, 0
    for row in range(last + 1):
        a, b = codes[shift + row], others[from_ + row]
        label_a, label_b = (a if a < size else a - size), (b if b < size else b - size)
        ends_a = row == last or codes[shift + row + 1] >= size
        ends_b = row == last or others[from_ + row + 1] >= size
        count = _note_token(count, begin + row, a, ends_a, b, ends_b, model, noted)
        if row == 0:
            count = _note_bounds(count, starts, label_a, label_b, places, changes)
        elif a != b or (a >= size and before_a != before_b):
            if a >= size:
                count = _note(count, of_steps[before_a, label_a], 1.0, places, changes)
            if b >= size:
                count = _note(count, of_steps[before_b, label_b], -1.0, places, changes)
        if row == last:
            count = _note_bounds(count, ends, label_a, label_b, places, changes)
        first_a, first_b = (row if a >= size else first_a), (row if b >= size else first_b)
        if ends_a != ends_b or label_a != label_b or first_a != first_b:
            if ends_a:
                d = row - first_a + 1
                count = _note_segment(count, begin + row, d, label_a, 1.0, model, noted)
            if ends_b:
                d = row - first_b + 1
                count = _note_segment(count, begin + row, d, label_b, -1.0, model, noted)
        before_a, before_b = (label_a if ends_a else before_a), (label_b if ends_b else before_b)
    return count
