"""Online learning of segments: a look at one sequence after the other, a step after a mistake.

Steps, rules and sums are those of `chain_online`, groups of arrays those of `_segment_visits`.
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.semimarkov.oracle import (
    INFINITE,
    look_at,
    note_difference,
    place_pairs,
    segmentation_score,
)
from crfkit.kernels.solvers.online import (
    COUNT,
    LOSS,
    MISTAKES,
    PAYS,
    _mistakes,
    _move,
    online_loss,
)


@kernel
def segment_online_visits(
    order: IntArray,  # (n,) sequences
    first: int,
    pause: bool,  # return after each step
    rule: FloatArray,  # (N_RULE,)
    cost: FloatArray,  # (2 K, 2 K) added to the scores of codes, or (0, 0)
    sequences: Any,  # offsets (S + 1,) and weights (S,) of sequences, codes (N,)
    model: Any,
    vectors: Any,
    sums: FloatArray,  # (N_SUMS,) added to
    own: Any,
    noted: Any,
) -> tuple[int, int, int]:
    """Look at the sequences ``order[first:]``, and make a step after each mistake.

    Those of weight 0 are passed over; of empty ones no weight is known. A step moves the weights
    along the features of the true segmentation minus those of the predicted one.

    Returns where to go on, the size of the last step, and what was found: `OK`, `INFINITE`, or
    the position where no segmentation goes on.
    """
    (offsets, weights, labels), (_, _, steps, sizes, _, listed, added) = sequences, model
    path, (_, places, changes) = own[4], noted
    place_pairs(vectors[0], steps, sizes, added, own)
    for n in range(first, order.shape[0]):
        s = order[n]
        begin, end, size = offsets[s], offsets[s + 1], 0
        if end > begin:
            if not weights[s] > 0.0:
                continue
            found = look_at(begin, end, vectors[0], labels, cost, model, own)
            if found != OK:
                return n, 0, found
            wrong, paid = _mistakes(begin, end, labels, path, cost)
            if wrong > 0:
                top = segmentation_score(begin, end, path, 0, listed, own)
                if not abs(top) < math.inf:
                    return n, 0, INFINITE
                rise = top - segmentation_score(begin, end, labels, begin, listed, own)
                near = abs(top) + paid if cost.shape[0] > 0 else 0.0
                loss = online_loss(int(rule[PAYS]), rise, paid, wrong, end - begin, near)
                if loss > 0.0:
                    sums[LOSS] += weights[s] * loss
                    sums[MISTAKES] += 1.0
                    size = note_difference(begin, end, labels, begin, path, 0, model, noted)
                    _move(size, places, changes, loss, weights[s], sums[COUNT], rule, vectors)
                    place_pairs(vectors[0], steps, sizes, added, own)
        sums[COUNT] += 1.0
        if pause and size > 0:
            return n + 1, size, OK
    return order.shape[0], 0, OK
