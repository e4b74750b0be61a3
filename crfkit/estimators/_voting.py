"""The weights after each step of a fit, as sparse differences, and their votes."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IntArray, Potentials
from crfkit.data import PackedSequences
from crfkit.inference.base import FittedModel
from crfkit.persistence import check_chain_model
from crfkit.potentials import LinearChainModel, LinearModel
from crfkit.potentials.blocks import sparse_counts
from crfkit.potentials.transfer import AllWeights
from crfkit.structures import Structure


class _Step(NamedTuple):
    """How many sequences had been looked at before, and which parameters it changed by how much."""

    seen: int
    places: IntArray
    changes: FloatArray


class Ballot:
    """Keeps all steps of a fit."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []

    def __call__(self, count: int, places: IntArray, changes: FloatArray) -> None:
        """Note a step."""
        self.steps.append(_Step(count, places, changes))

    def attributes(self, model: LinearModel, start: FloatArray, total: int) -> dict[str, Any]:
        """Return `start`, (P,), and what the first `total` sequences changed, as attributes."""
        first = np.flatnonzero(start)
        steps = [_Step(0, first, start[first])]
        steps += [step for step in self.steps if step.seen < total]
        counts = np.diff([step.seen for step in steps] + [max(total, 1)])
        every = AllWeights.of_model(model)
        columns = every.numbers(model)
        ptr = np.concatenate([[0], np.cumsum([len(step.places) for step in steps])])
        places = np.concatenate([step.places for step in steps])
        changes = np.concatenate([step.changes for step in steps])
        matrix = sp.csr_array((changes, columns[places], ptr), (len(steps), every.total))
        matrix.sort_indices()
        return {"vote_changes_": matrix, "vote_counts_": counts.astype(np.int64)}


def check_votes(model: Any) -> None:
    """Raise ValueError if a restored model cannot be used; see `check_chain_model`."""
    check_chain_model(model)
    names = ("vote_order_", "vote_counts_", "vote_changes_")
    order, counts, changes = map(vars(model).get, names)
    if counts is None and changes is None:
        return
    known = type(order) is np.ndarray and order.shape == model.classes_.shape
    if not known or order.dtype.kind != "i" or set(order.tolist()) != set(range(len(order))):
        raise ValueError("vote_order_ is no order of the labels")
    if type(changes) is not sp.csr_array or type(counts) is not np.ndarray:
        raise ValueError("vote_changes_ is no csr_array, or vote_counts_ is no array")
    width = _all_weights(model).total
    if counts.dtype != np.int64 or counts.ndim != 1 or changes.shape != (len(counts), width):
        raise ValueError(f"vote_changes_ does not have {width} columns, or a row for each count")
    if changes.dtype != np.float64 or not np.isfinite(changes.data).all():
        raise ValueError("vote_changes_ holds what is no finite number")


def check_free(free: bool) -> None:
    """Raise ValueError unless labels that are elected one by one are free to be any."""
    if not free:
        raise ValueError(
            "averaging='vote' elects the label of each token by itself, which may not be allowed "
            "together: use averaging='average' with constraints."
        )


def elect(model: Any, data: PackedSequences, decoder: Any) -> CodeArray:
    """Return the labels that most of the weights of a fitted perceptron vote for, shape (N,)."""
    changes: sp.csr_array = model.vote_changes_
    every = _all_weights(model)
    used = np.union1d(changes.indices, every.always)
    places, scores = np.searchsorted(used, changes.indices), every.model(used, sparse_counts(data))
    w, found = np.zeros(len(used)), np.zeros((data.n_tokens, len(model.classes_)))
    from crfkit.oracles.label_order import LabelOrder

    ties = LabelOrder(model.vote_order_, np.argsort(model.vote_order_))

    def predict(structure: Structure, potentials: Potentials) -> CodeArray:
        return ties.predict(partial(decoder.decode, structure), potentials)

    with ThreadMap(model.n_jobs) as threads:
        for number, count in enumerate(model.vote_counts_.tolist()):
            own = slice(*changes.indptr[number : number + 2].tolist())
            w[places[own]] += changes.data[own]
            if count and data.n_tokens:
                answers = FittedModel(scores, scores.bind(w)).ask(data, predict, threads)
                found[np.arange(data.n_tokens), np.concatenate(answers)] += count
    winners: CodeArray = ties.order[found[:, ties.order].argmax(axis=1)].astype(np.int32)
    return winners


def _all_weights(model: Any) -> AllWeights:
    """Return the weights that the models could have which a fitted one counts the votes of."""
    return AllWeights.of_fitted(LinearChainModel, vars(model), len(model.classes_))
