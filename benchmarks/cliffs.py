"""Epochs of compiled solvers on chains and segments, by the work that they have to do.

A model with boundary weights, with attributes of transitions, with many labels or over segments
should cost what its sums cost, and no more. Work is counted in numbers that are added up in an
epoch, in rows as kernels read them: weights of attributes, and scores of transitions into each
token, of lengths of segments and of tables of transitions. Writes ``results/cliffs.json``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import _measure
import numpy as np
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit.compiler.simd import padded
from crfkit.data import PackedSequences
from crfkit.kernels.solvers.online import UpdateCoefficients
from crfkit.losses import HingeLoss, LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear import chain_model
from crfkit.potentials.semimarkov import LengthBlock, choose_segment_features
from crfkit.solvers.margin.dual_state import make_margin_state
from crfkit.solvers.online.learner import OnlineProblem, make_learner
from crfkit.solvers.stochastic.exponentiated_gradient import DualState
from crfkit.solvers.stochastic.sag import SagState

SEQUENCES, LENGTH, ATTRIBUTES, ENTRIES, LABELS, MANY, LONGEST = 1000, 22, 5000, 15, 22, 60, 6
EPOCHS, BATCH_TOKENS = 7, 100


def make_data(n_labels: int) -> tuple[PackedSequences, np.ndarray]:
    """Tokens with as many attributes each, some of which tell of the label."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(LENGTH // 2, LENGTH * 3 // 2, size=SEQUENCES)
    n_tokens = int(lengths.sum())
    codes = rng.integers(n_labels, size=n_tokens).astype(np.int32)
    told = codes[:, None] + n_labels * rng.integers(ATTRIBUTES // n_labels, size=(n_tokens, 4))
    other = rng.integers(ATTRIBUTES, size=(n_tokens, ENTRIES - 4))
    columns = np.concatenate([told, other], axis=1)
    rows = np.repeat(np.arange(n_tokens), ENTRIES)
    x = sp.csr_array((np.ones(columns.size), (rows, columns.ravel())), (n_tokens, ATTRIBUTES))
    x.data[:] = 1.0
    return PackedSequences(x, offsets=np.concatenate([[0], np.cumsum(lengths)])), codes


def all_pairs(n_attributes: int, n_columns: int) -> AttributeWeights:
    """Each attribute has a weight for each column."""
    ptr = n_columns * np.arange(n_attributes + 1)
    columns = np.tile(np.arange(n_columns), n_attributes)
    return AttributeWeights(ptr, columns, n_columns=n_columns, n_sparse=n_attributes)


def chain(kind: str) -> tuple[Any, PackedSequences, np.ndarray, int]:
    """Return a model, data, labels, and the numbers that are added up in a pass."""
    size = MANY if kind == "many labels" else LABELS
    data, codes = make_data(size)
    width, own, n_tokens = padded(size), None, data.n_tokens
    pairs = np.nonzero(np.random.default_rng(1).random((size, size)) < (0.09 if size > 50 else 1.0))
    work = (len(data.indices) + (n_tokens - len(data)) * size) * width
    if kind == "attributes of transitions":
        z = sp.csr_array(np.eye(8)[np.random.default_rng(2).integers(8, size=n_tokens)])
        data = data.with_transitions(PackedSequences(z, offsets=data.offsets))
        own = all_pairs(8, size**2)
        which = np.random.default_rng(2).integers(8, size=n_tokens)
        inner = np.setdiff1d(np.arange(n_tokens), data.offsets[:-1])
        sequence = np.repeat(np.arange(len(data)), data.lengths)
        tables = len(np.unique(np.column_stack([sequence[inner], which[inner]]), axis=0))
        work += 2 * tables * size * width
    boundaries = kind == "boundary weights"
    work += 2 * len(data) * width * boundaries
    model = chain_model(all_pairs(ATTRIBUTES, size), *pairs, boundaries=boundaries,
                        transition_attributes=own)  # fmt: skip
    return model, data, codes, work


def segments() -> tuple[Any, PackedSequences, np.ndarray, int]:
    """Return a model of segments, data, codes, and the numbers that are added up in a pass."""
    data, labels = make_data(LABELS)
    begins = np.ones(data.n_tokens, bool)
    begins[1:] = labels[1:] != labels[:-1]
    begins[data.offsets[:-1]] = True
    basis = np.arange(LONGEST, dtype=float)[:, None]
    parts = np.zeros((data.n_features, 4), bool)
    parts[:, 0] = True
    model = choose_segment_features(
        data, (labels + LABELS * begins).astype(np.int32), LABELS, parts=parts, all_states=True,
        lengths=LengthBlock(np.zeros((LONGEST, LABELS)), basis, np.ones((1, LABELS), bool)),
        boundaries=False, all_transitions=True,
    )  # fmt: skip
    width, n_tokens = padded(LABELS), data.n_tokens
    steps = sum(min(LONGEST, t + 1) for n in data.lengths.tolist() for t in range(n))
    work = len(data.indices) * LABELS + (n_tokens - len(data)) * LABELS * width
    work += (3 * steps + 8 * n_tokens) * width
    return model, data, (labels + LABELS * begins).astype(np.int32), work


@contextlib.contextmanager
def objective_of(
    model: Any, data: PackedSequences, codes: np.ndarray, loss: Any
) -> Iterator[Objective]:
    """Yield an objective in one thread."""
    with ThreadMap(1) as threads:
        yield Objective(model, model.structure, loss, ElasticNet(0.0, 1.0), data, codes,
                        np.ones(len(codes)), threads)  # fmt: skip


def seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of the fastest epoch; the first compiles."""
    run()
    times = []
    for _ in range(EPOCHS):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return min(times)


def stochastic_epochs(objective: Objective) -> dict[str, float]:
    """Return the seconds of an epoch of the solvers of the log loss, after some."""
    batches = objective.minibatches(BATCH_TOKENS, 0)
    order = np.random.default_rng(0).permutation(len(batches))
    dual, sag = DualState(batches, own_w=False), SagState(batches, np.zeros(batches.n_parameters))
    dual.rates[:] = 0.3
    random = np.random.RandomState(0)
    return {
        "oeg": seconds(lambda: dual.advance(order, 1, 1.0, 0.0)),
        "sag": seconds(lambda: sag.run_pass(random, 1)),
    }


def epochs(objective: Objective) -> dict[str, float]:
    """Return the seconds of an epoch of each solver, at weights that have been learned."""
    order, found = np.random.default_rng(0).permutation(SEQUENCES), dict[str, float]()
    zeros = np.zeros(objective.n_parameters)
    learner = make_learner(OnlineProblem(objective, UpdateCoefficients(rate=1.0)), zeros)
    for _ in range(3):
        learner.run(order)
    found["perceptron"] = seconds(lambda: learner.run(order))
    for kind in ("marginals", "pairwise"):
        batches = objective.minibatches(1, 0)
        state = make_margin_state(batches, kind)
        chosen = np.random.default_rng(0).permutation(len(batches))
        found[f"Frank-Wolfe, {kind}"] = seconds(lambda s=state, c=chosen: s.advance(c))
    return found


def main() -> None:
    """Measure all models, and compare with the plain chain."""
    kinds = ("plain chain", "boundary weights", "attributes of transitions", "many labels")
    results: dict[str, Any] = {}
    for kind in (*kinds, "segments"):
        model, data, codes, work = segments() if kind == "segments" else chain(kind)
        with objective_of(model, data, codes, HingeLoss()) as objective:
            times = epochs(objective)
        with objective_of(model, data, codes, LogLoss()) as objective:
            times |= stochastic_epochs(objective)
        plain = results.get("plain chain")
        rates = {name: second / work * 1e9 for name, second in times.items()}
        results[kind] = {"numbers": work, "seconds": times, "nanoseconds a number": rates}
        base = rates if plain is None else plain["nanoseconds a number"]
        results[kind]["against the plain chain"] = {n: rates[n] / base[n] for n in rates}
        print(kind, results[kind]["against the plain chain"], flush=True)
    _measure.write("cliffs", results)


if __name__ == "__main__":
    main()
