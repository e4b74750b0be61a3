"""Models with weights for what is seen in labeled data, or for all that could be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray
from crfkit.data import PackedSequences
from crfkit.data.topology import check_no_topology
from crfkit.potentials.choice import Choice
from crfkit.potentials.lengths import LengthModel
from crfkit.potentials.linear_chain import LinearChainModel
from crfkit.potentials.semimarkov import SemiMarkovModel
from crfkit.structures import structure_for


def choose_features(
    data: PackedSequences, codes: CodeArray, n_labels: int, **options: Any
) -> LinearChainModel:
    """Return a model of linear chains with weights for what is seen, or for all.

    Parameters
    ----------
    data, codes, n_labels, **options
        As for :class:`crfkit.potentials.choice.Choice`.
    """
    blocks = LinearChainModel.choose(Choice(data, codes, n_labels, **options))
    return LinearChainModel(blocks, structure_for(data.topology))


def choose_segment_features(
    data: PackedSequences,
    codes: CodeArray,
    n_labels: int,
    *,
    lengths: LengthModel,
    parts: NDArray[np.bool_],
    **options: Any,
) -> SemiMarkovModel:
    """Return a model of segments with weights for what is seen, or for all.

    Parameters
    ----------
    data, codes, n_labels, lengths, **options
        As for :class:`crfkit.potentials.choice.Choice`.
    parts : ndarray of shape (D, 4), dtype bool
        Which attributes count for all tokens of a segment, for its first, its last, and one alone.
    """
    check_no_topology(data.topology, "a model of segments")
    choice = Choice(data, codes, n_labels, lengths=lengths, token_parts=parts, **options)
    return SemiMarkovModel(SemiMarkovModel.choose(choice))
