"""Questions about whole labelings: methods of the estimators that answer them."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit._parallel import without_collection
from crfkit._params import check_flag, check_whole
from crfkit._types import CodeArray, FloatArray, IntArray, Potentials, RankedLabels
from crfkit.data.sequence_list import SequenceList
from crfkit.estimators._spans import segments_of
from crfkit.inference.base import expectations
from crfkit.structures import RankedCodes, Structure


def predict_n_best(
    self: Any, X: Any, n: int, *, as_spans: bool = False, constraints: Any = None
) -> list[list[RankedLabels]]:
    """Return the best labelings of each sequence: those of the largest scores, exactly.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    n : int
        How many, at least 1. There are fewer where a sequence has no more. Each further one takes
        little time, in proportion to the length of the sequence.
    as_spans : bool, default=False
        Whether to list spans of tokens in place of labels, as `predict_spans` does.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: the labelings keep to them, and the probabilities are those given them.

    Returns
    -------
    list of S lists of RankedLabels
        The labels, the score and the probability of each labeling, the best first; of equal scores,
        those whose last label comes first in `classes_`, then the label before, and so on (of
        segments, the last label, then the shortest last segment, and so on; of forests, in no order
        that can be told). The first has the labels of `predict` with ``decoding="viterbi"``. Spans
        or labels of segments may be those of several labelings, which are listed one by one.
    """
    check_whole("n", n, 1)
    check_flag("as_spans", as_spans)
    check_scored(self, "predict_n_best")
    data = self._pack(X)

    def search(structure: Structure, potentials: Potentials) -> tuple[RankedCodes, FloatArray]:
        found = structure.k_best(potentials, int(n))
        if not self.has_probabilities:
            return found, found.scores
        log_z = expectations(structure, potentials)[1]
        return found, np.minimum(found.scores - np.repeat(log_z, found.counts), 0.0)

    found, log_proba = _joined(self._ask(data, search, constraints=constraints))
    with without_collection(len(log_proba)):
        return _ranked(self, found, log_proba, data.offsets, as_spans)


def _ranked(
    estimator: Any, found: RankedCodes, log_proba: FloatArray, offsets: IntArray, as_spans: bool
) -> list[list[RankedLabels]]:
    """Return what was found as records, by sequence."""
    write = segments_of if as_spans else labels_of_codes
    labels = write(estimator, found.codes, found.offsets(offsets))
    if estimator.has_probabilities:
        probability = np.exp(log_proba).tolist()
    else:
        probability = [math.nan] * len(labels)
    ranked = list(map(RankedLabels, labels, found.scores.tolist(), probability))
    ends = np.cumsum(found.counts).tolist()
    return SequenceList(ranked[begin:end] for begin, end in pairwise([0, *ends]))


def _joined(chunks: list[tuple[RankedCodes, FloatArray]]) -> tuple[RankedCodes, FloatArray]:
    """Return the labelings of all chunks, and what is known of each."""
    none = RankedCodes(np.empty(0, np.int32), np.empty(0), np.empty(0, np.int64))
    every = zip(none, *(found for found, _ in chunks), strict=True)
    found = RankedCodes(*map(np.concatenate, every))
    return found, np.concatenate([none.scores, *(log_proba for _, log_proba in chunks)])


def labels_of_codes(estimator: Any, codes: CodeArray, offsets: IntArray) -> list[list[Any]]:
    """Return the labels of sequences that codes of tokens stand for."""
    coding = estimator._fitted_labels().coding(estimator)
    labels: list[list[Any]] = coding.write(codes, estimator.classes_, offsets)
    return labels


def check_scored(estimator: Any, method: str) -> None:
    """Raise ValueError if labelings have no scores, which a method is about."""
    if "vote_changes_" in vars(estimator):
        raise ValueError(
            "averaging='vote' elects each label by itself, so that labelings have no scores: use "
            f"averaging='average' for {method}."
        )
