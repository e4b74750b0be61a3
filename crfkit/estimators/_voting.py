"""The weights after each step of a fit, as sparse differences, and their votes."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, CodeArray, FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.chunks import make_chunks
from crfkit.oracles.label_order import LabelOrder
from crfkit.persistence import check_chain_model
from crfkit.potentials import LinearChainModel
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.transitions import InputDependentTransitions


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

    def attributes(self, model: LinearChainModel, start: FloatArray, total: int) -> dict[str, Any]:
        """Return the weights of the first `total` looks as fitted attributes.

        Parameters
        ----------
        model : LinearChainModel
            Whose parameters they are.
        start : ndarray of shape (P,)
            The first weights.
        total : int
            How many sequences were looked at. If none was, the first weights have one vote.
        """
        first = np.flatnonzero(start)
        steps = [_Step(0, first, start[first])]
        steps += [step for step in self.steps if step.seen < total]
        counts = np.diff([step.seen for step in steps] + [max(total, 1)])
        columns, width = _columns(model)
        ptr = np.concatenate([[0], np.cumsum([len(step.places) for step in steps])])
        places = np.concatenate([step.places for step in steps])
        changes = np.concatenate([step.changes for step in steps])
        matrix = sp.csr_array((changes, columns[places], ptr), (len(steps), width))
        matrix.sort_indices()
        return {"vote_changes_": matrix, "vote_counts_": counts.astype(np.int64)}


def check_votes(model: Any) -> None:
    """Raise ValueError if a restored model cannot be used; see `check_chain_model`."""
    check_chain_model(model)
    if not (hasattr(model, "vote_counts_") or hasattr(model, "vote_changes_")):
        return
    order: Any = getattr(model, "vote_order_", None)
    known = type(order) is np.ndarray and order.shape == model.classes_.shape
    if not known or order.dtype.kind != "i" or set(order.tolist()) != set(range(len(order))):
        raise ValueError("vote_order_ is no order of the labels")
    counts: Any = getattr(model, "vote_counts_", None)
    changes: Any = getattr(model, "vote_changes_", None)
    if type(changes) is not sp.csr_array or type(counts) is not np.ndarray:
        raise ValueError("vote_changes_ is no csr_array, or vote_counts_ is no array")
    width = _ends(*model.coef_.shape)[1]
    if model.transition_coef_ is not None:
        width += model.transition_coef_.shape[0] * len(model.classes_) ** 2
    if counts.dtype != np.int64 or counts.ndim != 1 or changes.shape != (len(counts), width):
        raise ValueError(f"vote_changes_ does not have {width} columns, or a row for each count")
    if changes.dtype != np.float64 or not np.isfinite(changes.data).all():
        raise ValueError("vote_changes_ holds what is no finite number")


def elect(model: Any, data: PackedSequences, decoder: Any) -> CodeArray:
    """Return the labels with the most votes, shape (N,).

    Parameters
    ----------
    model : StructuredPerceptron
        Fitted with votes.
    data : PackedSequences
        N tokens.
    decoder : Decoder
        Predicts the labels that each weights vote for.
    """
    changes: sp.csr_array = model.vote_changes_
    used = np.union1d(changes.indices, np.arange(*_ends(*model.coef_.shape)))
    places, scores = np.searchsorted(used, changes.indices), _model_of(used, model, data)
    w, found = np.zeros(len(used)), np.zeros((data.n_tokens, len(model.classes_)))
    ties = LabelOrder(model.vote_order_, np.argsort(model.vote_order_))
    chunks = make_chunks(data.offsets, scores.chunk_tokens)
    with ThreadMap(model.n_jobs) as threads:
        for number, count in enumerate(model.vote_counts_.tolist()):
            own = slice(*changes.indptr[number : number + 2].tolist())
            w[places[own]] += changes.data[own]
            if not count:
                continue
            bound = scores.bind(w)

            def vote(chunk: Chunk, bound: Any = bound, row: int = number) -> None:
                seen = scores.scores(bound, data, chunk, threads)
                codes = ties.predict(partial(decoder.decode, scores.structure), seen)
                tokens = np.arange(chunk.tokens.start, chunk.tokens.stop)
                found[tokens, codes] += model.vote_counts_[row]

            threads(vote, chunks)
    winners: CodeArray = ties.order[found[:, ties.order].argmax(axis=1)].astype(np.int32)
    return winners


def _ends(n_features: int, n_labels: int) -> tuple[int, int]:
    """Return where the weights of first and last labels begin among all, and where they end."""
    first = (n_features + n_labels) * n_labels
    return first, first + 2 * n_labels


def _columns(model: LinearChainModel) -> tuple[IntArray, int]:
    """Return the number of each parameter among all that a model could have, and how many.

    First (attribute, label) pairs, then steps, labels of first and last tokens, and attributes of
    steps.
    """
    k, (first, last) = model.n_labels, _ends(model.n_features, model.n_labels)
    own = model.transitions if isinstance(model.transitions, InputDependentTransitions) else None
    parts = [
        _numbers(model.state),
        first - k * k + model.transition_from.astype(np.int64) * k + model.transition_to,
    ]
    if model.boundaries:
        parts.append(np.arange(first, last))
    if own is None:
        return np.concatenate(parts), last
    parts.append(last + _numbers(own.weights))
    return np.concatenate(parts), last + own.weights.n_features * k * k


def _numbers(weights: AttributeWeights) -> IntArray:
    """Return ``attribute C + column`` of each weight."""
    ptr, columns = weights.pattern
    counts: IntArray = np.diff(ptr.view(np.int64)).astype(np.int64)
    attributes = np.repeat(np.arange(len(counts)), counts)
    return attributes * weights.n_columns + columns.astype(np.int64)


def _model_of(used: IntArray, model: Any, data: PackedSequences) -> LinearChainModel:
    """Return a score model with these weights, in this order, of all that there could be."""
    (n_features, k), first, last = model.coef_.shape, *_ends(*model.coef_.shape)
    state, steps, _, triples = np.split(used, np.searchsorted(used, [first - k * k, first, last]))
    own = None
    if model.transition_coef_ is not None and data.transitions is not None:
        n_steps = model.transition_coef_.shape[0]
        own = InputDependentTransitions(
            _places(triples - last, n_steps, k * k, data.transitions.n_sparse)
        )
    return LinearChainModel(
        _places(state, n_features, k, data.n_sparse), *np.divmod(steps - (first - k * k), k),
        boundaries=True, transitions=own,
    )  # fmt: skip


def _places(numbers: IntArray, n_features: int, n_columns: int, n_sparse: int) -> AttributeWeights:
    """Return weights given by their numbers, rising."""
    attributes, columns = np.divmod(numbers, n_columns)
    ptr: IntArray = np.searchsorted(attributes, np.arange(n_features + 1)).astype(np.int64)
    return AttributeWeights(ptr, columns.astype(np.int32), n_columns=n_columns, n_sparse=n_sparse)
