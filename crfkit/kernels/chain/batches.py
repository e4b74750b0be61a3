"""Small batches of linear chains, for kernels that update weights after each of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import ByteArray, CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    exponential,
    fill,
    load,
    load_of,
    multiply,
    multiply_add,
    store,
    store_of,
    subtract,
    total,
    where_bits,
)
from crfkit.kernels._strips import STRIP, strip_columns, strips_product, strips_top
from crfkit.kernels.chain.arrays import ChainExponentials, ChainScores, ChainSums, ChainWorkspace
from crfkit.kernels.chain.sum import OK, chain_sum, chain_sum_log
from crfkit.kernels.design.batch import (
    BatchRoom,
    DualStep,
    LazyWeights,
    Metric,
    Weights,
    add_batch,
    catch_up_batch,
    catch_up_row,
    clear_batch,
    clear_rows,
    gather_batch,
    mask_dense,
    mask_rows,
    pay_batch,
    settle_rows,
    step_batch,
    step_rows,
)
from crfkit.kernels.design.tokens import Design
from crfkit.kernels.solvers.batches import (
    add_gradient,
    aim,
    catch_up,
    clear,
    descend,
    gather,
    loss,
    pay,
    settle,
    step_always,
    step_dual,
)
from crfkit.kernels.solvers.stochastic import cumulative_l1_of_run


class ChainBatches(NamedTuple):
    """Batches of linear chains: a problem of the parts in `crfkit.kernels.solvers.batches`.

    Each batch has tables of the scores of transitions: one, or one for each distinct row of the
    attributes of its transitions.
    """

    first: IntArray  # (B + 1,) the first sequence of each batch
    offsets: IntArray  # (S + 1,)
    weight: FloatArray  # (S,)
    labels: CodeArray  # (N,)
    transition_index: IdArray  # (N,) the table of the transition into each token, or (1,) a 0
    design: Design  # of attributes of tokens
    bits: ByteArray  # (H, V) which columns of the rows of the weights are weights
    transitions: Design  # of the tables, whose scores are rows (K W,)
    wide_bits: ByteArray  # (G, V2)
    base: int  # the first row of the K rows of transitions


class ChainRoom(NamedTuple):
    """Room for the sums of a batch; what is written is read in records of read-only arrays."""

    pair_rows: FloatArray  # (M K, K) the potentials of transitions
    node: FloatArray  # (Q, K) exponentials
    shift: FloatArray  # (Q,)
    factor: FloatArray  # (M, K, K)
    factor_rows: FloatArray  # (M K, K)
    transposed: FloatArray  # (M, K, K)
    pair_shift: FloatArray  # (M,)
    transition_index: IdArray  # (Q,) or (1,)
    starts: IntArray  # (s + 1,) for sequences of a batch
    level: FloatArray  # (s,) their weights
    scores: ChainScores
    exponentials: ChainExponentials
    level_read: FloatArray
    every: IntArray  # (s,) 0, 1, 2, ...
    work: ChainWorkspace
    log_work: FloatArray  # (3, K)
    sums: ChainSums
    log_sums: ChainSums  # those by logarithms, which share all but the flow


class ChainBatchWorkspace(NamedTuple):
    """The workspace of a thread. Vectors (V,) hold labels (Q K,), then transitions (M K K,)."""

    potentials: FloatArray  # (V,)
    unary: FloatArray  # (Q, K) views of it
    pair: FloatArray  # (M, K, K)
    counts: FloatArray  # (V,) expected counts, or the gradient to the potentials
    unary_counts: FloatArray  # (Q, K) views of it
    pair_counts: FloatArray  # (M, K, K)
    direction: FloatArray  # (V,)
    change: FloatArray  # (V,)
    first_pair: int  # Q K
    design: BatchRoom
    transitions: BatchRoom
    flows: FloatArray  # (K, W) a sum over tables
    metric: FloatArray  # (1, F, W)
    sums: Any  # room for the sums, of the structure


@part
def _n_tables(problem: ChainBatches, batch: int) -> int:
    """Return how many tables of transitions a batch has."""
    count: int = (
        problem.transitions.batches.heads[batch + 1] - problem.transitions.batches.heads[batch]
    )
    return count


@implements(gather, ChainBatches)
def gather_chains(
    problem: ChainBatches, batch: int, scale: float, weights: Weights,
    workspace: ChainBatchWorkspace,
) -> None:  # fmt: skip
    """Compute the potentials of a batch."""
    gather_tokens(problem, batch, scale, weights, workspace)
    gather_tables(problem, batch, scale, weights, workspace)


@kernel
def gather_tokens(
    problem: ChainBatches, batch: int, scale: float, weights: Weights,
    workspace: ChainBatchWorkspace,
) -> None:  # fmt: skip
    """Compute the scores of labels."""
    scores, unary = workspace.design.scores, workspace.unary
    design = problem.design
    gather_batch(design, batch, scale, 1.0, weights.flat, weights.table, workspace.design)
    for row in range(design.batches.heads[batch + 1] - design.batches.heads[batch]):
        for k in range(unary.shape[1]):
            unary[row, k] = scores[row, k]


@kernel
def gather_tables(
    problem: ChainBatches, batch: int, scale: float, weights: Weights,
    workspace: ChainBatchWorkspace,
) -> None:  # fmt: skip
    """Compute the scores of transitions."""
    own, pair, table = workspace.transitions.scores, workspace.pair, weights.table
    size, width, base = pair.shape[1], table.shape[1], problem.base
    if problem.transition_index.shape[0] > 1:
        gather_batch(problem.transitions, batch, scale, scale, weights.flat, weights.wide,
                     workspace.transitions)  # fmt: skip
    for m in range(_n_tables(problem, batch)):
        for i in range(size):
            for j in range(size):
                pair[m, i, j] = table[base + i, j]
                if problem.transition_index.shape[0] > 1:
                    pair[m, i, j] += own[m, i * width + j]


@kernel
def expected_of_chains(problem: ChainBatches, batch: int, workspace: ChainBatchWorkspace) -> float:
    """Return the weighted sum of log Z, and write the expected counts."""
    room, flows, whole = workspace.sums, workspace.pair_counts, 0.0
    n_tables, sums, log_sums = (
        _n_tables(problem, batch),
        workspace.sums.sums,
        workspace.sums.log_sums,
    )
    raise_scores(problem, batch, n_tables, workspace)
    chain_sum(room.scores, room.exponentials, room.every, room.level_read, room.work, sums)
    for s in range(problem.first[batch + 1] - problem.first[batch]):
        if sums.status[s] != OK:
            status = chain_sum_log(room.scores, s, room.level_read, room.work.norm, room.log_work,
                                   log_sums)  # fmt: skip
            if status != OK:
                sums.log_z[s] = math.nan
        whole += room.level[s] * sums.log_z[s]
    for m in range(n_tables):
        for i in range(flows.shape[1]):
            for j in range(flows.shape[1]):
                flow = sums.flow[m, i, j] * room.factor[m, i, j]
                flows[m, i, j] = flow + log_sums.flow[m, i, j]
    return whole


@kernel
def raise_scores(
    problem: ChainBatches, batch: int, n_tables: int, workspace: ChainBatchWorkspace
) -> None:
    """Exponentiate the potentials; nothing is counted yet."""
    room, unary = workspace.sums, workspace.unary
    first, last = problem.first[batch], problem.first[batch + 1]
    begin, size = problem.offsets[first], unary.shape[1]
    for row in range(problem.offsets[last] - begin):
        room.shift[row] = row_top(unary, row)
        row_exp(unary, row, room.shift[row], room.node)
        if problem.transition_index.shape[0] > 1:
            room.transition_index[row] = problem.transition_index[begin + row]
    room.starts[0] = 0
    for s in range(room.every.shape[0]):  # sequences beyond the batch are empty
        room.starts[s + 1] = problem.offsets[min(first + s + 1, last)] - begin
        room.level[s] = problem.weight[first + s] if first + s < last else 0.0
    for m in range(n_tables):
        top = -math.inf
        for i in range(m * size, (m + 1) * size):
            top = max(top, row_top(room.pair_rows, i))
        room.pair_shift[m] = top
        for i in range(size):
            row_exp(room.pair_rows, m * size + i, top, room.factor_rows)
            for j in range(size):
                room.transposed[m, j, i] = room.factor[m, i, j]
                room.sums.flow[m, i, j], room.log_sums.flow[m, i, j] = 0.0, 0.0


@implements(loss, ChainBatches)
def loss_of_chains(problem: ChainBatches, batch: int, workspace: ChainBatchWorkspace) -> float:
    """Return ``sum_s weight_s (log Z_s - score_s)``; its gradient replaces the counts."""
    return expected_of_chains(problem, batch, workspace) - subtract_true(problem, batch, workspace)


@kernel
def subtract_true(problem: ChainBatches, batch: int, workspace: ChainBatchWorkspace) -> float:
    """Return the weighted score of the true labels, whose counts are subtracted."""
    labels, index, value = problem.labels, problem.transition_index, 0.0
    begin = problem.offsets[problem.first[batch]]
    for s in range(problem.first[batch], problem.first[batch + 1]):
        weight, score = problem.weight[s], 0.0
        for t in range(problem.offsets[s], problem.offsets[s + 1]):
            score += workspace.unary[t - begin, labels[t]]
            workspace.unary_counts[t - begin, labels[t]] -= weight
            if t > problem.offsets[s]:
                m = index[t] if index.shape[0] > 1 else 0
                score += workspace.pair[m, labels[t - 1], labels[t]]
                workspace.pair_counts[m, labels[t - 1], labels[t]] -= weight
        value += weight * score
    return value


@kernel
def pad_change(problem: ChainBatches, batch: int, workspace: ChainBatchWorkspace) -> None:
    """Lay the change out in rows, as the designs read it."""
    change, size, width = workspace.change, workspace.unary.shape[1], workspace.flows.shape[1]
    rows, tables = workspace.design.residual, workspace.transitions.residual
    for row in range(problem.design.batches.heads[batch + 1] - problem.design.batches.heads[batch]):
        for k in range(size):
            rows[row, k] = change[row * size + k]
    for i in range(size):
        for j in range(size):
            workspace.flows[i, j] = 0.0
    for m in range(_n_tables(problem, batch)):
        first = workspace.first_pair + m * size * size
        for i in range(size):
            for j in range(size):
                value = change[first + i * size + j]
                workspace.flows[i, j] += value
                if problem.transition_index.shape[0] > 1:
                    tables[m, i * width + j] = value


@implements(step_dual, ChainBatches)
def step_dual_of_chains(
    problem: ChainBatches, batch: int, factor: float, threshold: float, dual: Weights, w: Weights,
    workspace: ChainBatchWorkspace,
) -> float:  # fmt: skip
    """Move the weights of a batch along the change of its counts."""
    pad_change(problem, batch, workspace)
    rows = DualStep(dual.flat, dual.table, w.flat, w.table, problem.bits, -factor, threshold)
    rise = step_batch(problem.design, batch, rows, workspace.design)
    if problem.transition_index.shape[0] > 1:
        wide = DualStep(dual.flat, dual.wide, w.flat, w.wide, problem.wide_bits, -factor, threshold)
        rise += step_batch(problem.transitions, batch, wide, workspace.transitions)
    return rise + total(step_rows(workspace.flows, problem.base, rows, fill(0.0)))


@implements(descend, ChainBatches)
def descend_on_chains(
    problem: ChainBatches, batch: int, factor: float, past: float, v: Weights, lag: Weights,
    workspace: ChainBatchWorkspace,
) -> None:  # fmt: skip
    """Move the weights of a batch, and what is kept for their mean."""
    step_dual(problem, batch, factor, 0.0, v, v, workspace)
    if past != 0.0:
        step_dual(problem, batch, past * factor, 0.0, lag, lag, workspace)


@implements(pay, ChainBatches)
def pay_on_chains(
    problem: ChainBatches, batch: int, scale: float, due: float, paid: Weights, v: Weights
) -> None:
    """Let the weights of a batch pay the penalty that they owe."""
    width, end = v.table.shape[1], v.table.shape[0] * v.table.shape[1]
    pay_batch(problem.design, batch, 0, width, scale, due, paid.flat, v.flat)
    cumulative_l1_of_run(problem.base * width, end, scale, due, paid.flat, v.flat)
    if problem.transition_index.shape[0] > 1:
        wide = v.wide.shape[1]
        pay_batch(problem.transitions, batch, end, wide, scale, due, paid.flat, v.flat)


@implements(catch_up, ChainBatches)
def catch_up_chains(problem: ChainBatches, batch: int, whole: float, lazy: LazyWeights) -> None:
    """Make the steps that were put off, for the sparse weights of a batch."""
    catch_up_batch(problem.design, batch, whole, lazy.v.table, lazy.direction.table,
                   lazy.seen_rows, problem.bits, lazy)  # fmt: skip
    if problem.transition_index.shape[0] > 1:
        v, direction, seen = lazy.v.wide, lazy.direction.wide, lazy.seen_wide
        design = problem.transitions
        catch_up_batch(design, batch, whole, v, direction, seen, problem.wide_bits, lazy)
        for h in range(design.first_dense, design.first_dense + design.dense.shape[1]):
            catch_up_row(h, whole - seen[h], v, direction, problem.wide_bits)
            seen[h] = whole


@implements(add_gradient, ChainBatches)
def add_gradient_of_chains(
    problem: ChainBatches, batch: int, out: Weights, workspace: ChainBatchWorkspace
) -> float:
    """``out += X' change``; returns the rise of the squares of single weights."""
    pad_change(problem, batch, workspace)
    rise = add_batch(problem.design, batch, out.flat, out.table, workspace.design)
    if problem.transition_index.shape[0] > 1:
        rise += add_batch(problem.transitions, batch, out.flat, out.wide, workspace.transitions)
    size = workspace.flows.shape[0]
    for i in range(size):
        for j in range(size):
            out.table[problem.base + i, j] += workspace.flows[i, j]
    return rise


@implements(aim, ChainBatches)
def aim_at_chains(
    problem: ChainBatches, batch: int, metric: Metric, probe: Weights,
    workspace: ChainBatchWorkspace,
) -> float:  # fmt: skip
    """Let the probe be ``metric g`` for the gradient g of a batch; returns ``g . metric g``."""
    square = add_gradient(problem, batch, probe, workspace)
    square += mask_rows(problem.design, batch, probe.table, problem.bits)
    if problem.transition_index.shape[0] > 1:
        square += mask_rows(problem.transitions, batch, probe.wide, problem.wide_bits)
        square += mask_dense(problem.transitions, probe.wide, problem.wide_bits)
    table, flows, base = probe.table, workspace.flows, problem.base
    for i in range(flows.shape[0]):
        for j in range(flows.shape[0]):
            x = metric.transitions[i, j] * flows[i, j]
            table[base + i, j] = x
            square += flows[i, j] * x
    mask_dense(problem.design, table, problem.bits)
    return square + stretch(problem.design, metric.features, table, problem.bits, workspace)


@kernel
def stretch(
    design: Design,
    metric: FloatArray,  # (F, F) or (F, 1)
    table: FloatArray,  # (H, W) in and out
    bits: ByteArray,
    workspace: ChainBatchWorkspace,
) -> float:
    """Multiply the rows of dense features with a metric; returns old rows times new rows."""
    features, product, first = workspace.metric, workspace.design.products, design.first_dense
    squares = fill(0.0)
    for f in range(product.shape[0]):
        for k in range(0, product.shape[1], WIDTH):
            store_of(load(table, first + f, k), features, 0, f, k)
    for f in range(product.shape[0]):
        stretch_row(metric, f, features, product)
        for k in range(0, product.shape[1], WIDTH):
            x = where_bits(bits[first + f, k // WIDTH], load(product, f, k))
            squares = multiply_add(x, load_of(features, 0, f, k), squares)
            store(x, table, first + f, k)
    return total(squares)


@part
def stretch_row(metric: FloatArray, f: int, features: FloatArray, product: FloatArray) -> None:
    """``product[f] = sum_g metric[f, g] features[g]``; of a diagonal there is one column."""
    if metric.shape[1] > 1:
        strips_product(metric, f, features, 0, product, f)
        return
    x = fill(metric[f, 0])
    for k in range(0, product.shape[1], WIDTH):
        store(multiply(x, load_of(features, 0, f, k)), product, f, k)


@implements(clear, ChainBatches)
def clear_chains(problem: ChainBatches, batch: int, probe: Weights) -> None:
    """Let the probe be 0 again where the batch has weights."""
    clear_batch(problem.design, batch, probe.flat, probe.table)
    if problem.transition_index.shape[0] > 1:
        clear_batch(problem.transitions, batch, probe.flat, probe.wide)
    clear_rows(problem.base, probe.table.shape[0], probe.table)


@implements(step_always, ChainBatches)
def step_always_of_chains(
    problem: ChainBatches, length: float, decay: float, known: float, metric: Metric,
    lazy: LazyWeights, workspace: ChainBatchWorkspace,
) -> None:  # fmt: skip
    """Move the weights of dense features and of transitions."""
    table, direction = lazy.v.table, lazy.direction.table
    features, product = workspace.metric, workspace.design.products
    mean, shrink, back = fill(1.0 / known), fill(decay), fill(-length)
    first, base = problem.design.first_dense, problem.base
    for h in range(base, table.shape[0]):
        for k in range(0, table.shape[1], WIDTH):
            x = multiply_add(mean, load(direction, h, k), multiply(shrink, load(table, h, k)))
            x = multiply(x, load(metric.transitions, h - base, k))
            store(multiply_add(back, x, load(table, h, k)), table, h, k)
    for h in range(first, first + product.shape[0]):
        for k in range(0, table.shape[1], WIDTH):
            x = multiply_add(mean, load(direction, h, k), multiply(shrink, load(table, h, k)))
            store_of(where_bits(problem.bits[h, k // WIDTH], x), features, 0, h - first, k)
    for f in range(product.shape[0]):
        stretch_row(metric.features, f, features, product)
        for k in range(0, table.shape[1], WIDTH):
            x = where_bits(problem.bits[first + f, k // WIDTH], load(product, f, k))
            store(add(multiply(back, x), load(table, first + f, k)), table, first + f, k)


@implements(settle, ChainBatches)
def settle_chains(problem: ChainBatches, scale: float, whole: float, lazy: LazyWeights) -> None:
    """Make all steps that were put off, and write the weights with the scale 1."""
    settle_rows(0, problem.design.first_dense, scale, whole, lazy.v.table, lazy.direction.table,
                lazy.seen_rows, problem.bits)  # fmt: skip
    settle_rows(0, lazy.v.wide.shape[0], scale, whole, lazy.v.wide, lazy.direction.wide,
                lazy.seen_wide, problem.wide_bits)  # fmt: skip
    flat, direction, seen = lazy.v.flat, lazy.direction.flat, lazy.seen
    first = lazy.v.table.shape[0] * lazy.v.table.shape[1]
    first += lazy.v.wide.shape[0] * lazy.v.wide.shape[1]
    for p in range(first, flat.shape[0]):
        flat[p] = scale * (flat[p] - (whole - seen[p]) * direction[p])
        seen[p] = 0.0


@part
def row_top(scores: FloatArray, row: int) -> float:
    """``max_k scores[row, k]``."""
    if scores.shape[1] >= WIDTH:
        return strips_top(scores, row)
    top = -math.inf
    for k in range(scores.shape[1]):
        top = max(top, scores[row, k])
    return top


@part
def row_exp(scores: FloatArray, row: int, top: float, out: FloatArray) -> None:
    """``out[row, k] = exp(scores[row, k] - top)``."""
    size = scores.shape[1]
    if size >= WIDTH:
        for start in range(0, size, STRIP):
            for column in strip_columns(start, size):
                x = subtract(load(scores, row, column), fill(top))
                store(exponential(x), out, row, column)
        return
    for k in range(size):
        out[row, k] = math.exp(scores[row, k] - top)
