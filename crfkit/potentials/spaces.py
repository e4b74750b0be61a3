"""Which weights models of tokens and of segments have, and what these are called when fitted."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray
from crfkit.data import PackedSequences
from crfkit.data.names import LazyNames
from crfkit.data.topology import check_no_topology
from crfkit.data.validation import warn_if_lengths_badly_scaled
from crfkit.features.lengths import length_basis
from crfkit.labels.base import LabelSpace
from crfkit.labels.segmentation import Segmentation, segmentation_of
from crfkit.labels.segments import Limits, SegmentLabels, find_limits
from crfkit.potentials.blocks import Choice
from crfkit.potentials.linear import LinearChainModel, LinearModel
from crfkit.potentials.semimarkov import TOKEN_PARTS, LengthBlock, SemiMarkovModel
from crfkit.structures import structure_for

# Attributes whose names begin so count for first, last or single tokens of segments alone; the name
# of a part of a union may stand before. One group without repetition: time grows with the length.
END = re.compile(r"(?:[\w.-]+?__)??seg\.(first|last|single)\.")


class FeatureOptions(Protocol):
    """Which features get a weight; see :class:`crfkit.CRFClassifier`."""

    min_freq: int
    all_possible_states: bool
    all_possible_transitions: bool
    boundary_weights: bool


class LabeledData(Protocol):
    """What is learned from."""

    data: PackedSequences  # N tokens
    codes: CodeArray  # (N,)
    classes: NDArray[np.object_]  # (K,) labels
    coding: Any  # what the codes stand for


def choose_features(
    data: PackedSequences, codes: CodeArray, n_labels: int, **options: Any
) -> LinearChainModel:
    """Return a model of linear chains with weights for what is seen, or for all.

    Parameters as for :class:`crfkit.potentials.blocks.Choice`.
    """
    blocks = LinearChainModel.choose(Choice(data, codes, n_labels, **options))
    return LinearChainModel(blocks, structure_for(data.topology))


def choose_segment_features(
    data: PackedSequences,
    codes: CodeArray,
    n_labels: int,
    *,
    lengths: LengthBlock,
    parts: NDArray[np.bool_],
    **options: Any,
) -> SemiMarkovModel:
    """Return a model of segments with weights for what is seen, or for all.

    Parameters as for :class:`crfkit.potentials.blocks.Choice`; `parts` are the `token_parts`.
    """
    check_no_topology(data.topology, "a model of segments")
    choice = Choice(data, codes, n_labels, lengths=lengths, token_parts=parts, **options)
    return SemiMarkovModel(SemiMarkovModel.choose(choice))


def _shared_options(features: FeatureOptions) -> dict[str, Any]:
    return {
        "min_freq": features.min_freq,
        "all_states": features.all_possible_states,
        "all_transitions": features.all_possible_transitions,
        "boundaries": features.boundary_weights,
    }


class WeightSpace(ABC):
    """From labeled data to a model of potentials, and from fitted attributes to one."""

    kind: ClassVar[type[LinearModel]]  # of the models

    @abstractmethod
    def choose(self, features: FeatureOptions, training: LabeledData) -> LinearModel:
        """Return the model with the weights that are to be fitted."""

    @abstractmethod
    def other_attributes(self, coding: Any) -> dict[str, Any]:
        """Return the fitted attributes that tell what codes stand for."""

    def attributes(
        self, model: Any, parameters: FloatArray, classes: NDArray[np.object_], coding: Any
    ) -> dict[str, Any]:
        """Return parameters as fitted attributes."""
        fitted: dict[str, Any] = model.fitted(parameters)
        return {"classes_": classes} | fitted | self.other_attributes(coding)

    @property
    def fitted_names(self) -> tuple[str, ...]:
        """The fitted attributes that potentials are made of."""
        blocks = self.kind.block_types.values()
        names = [table.attribute for block in blocks for table in block.tables]
        return (*names, *self.kind.other_tables)

    def model(self, fitted: object, sizes: Mapping[str, int]) -> tuple[LinearModel, Any]:
        """Return the model of fitted weights, and the weights in their places.

        `sizes` tells how many attributes are sparse, by what they describe: see
        :func:`crfkit.potentials.blocks.sparse_counts`.
        """
        blocks, weights, attributes = [], {}, vars(fitted)
        for name, kind in self.kind.block_types.items():
            found = kind.of_fitted(attributes, sizes)
            if found is not None:
                blocks.append(found[0])
                weights[name] = found[1]
        model = self.kind.of_fitted(blocks, attributes)
        return model, model.bind_parts(weights)


class TokenWeights(WeightSpace):
    """Weights of linear chains."""

    kind = LinearChainModel

    def choose(self, features: FeatureOptions, training: LabeledData) -> LinearModel:
        """Return the model with the weights that are to be fitted."""
        if training.data.segments is not None:
            raise ValueError(
                "X has attributes of segments, which a model of single tokens cannot use: fit a "
                "SemiMarkovCRF, or leave them out."
            )
        _check_no_ends(training.data.names)
        size = len(training.classes)
        return choose_features(training.data, training.codes, size, **_shared_options(features))

    def other_attributes(self, coding: Any) -> dict[str, Any]:
        """Return nothing: codes stand for labels."""
        return {}


class SegmentWeights(WeightSpace):
    """Weights of semi-Markov models; `segments` is None for a model that is fitted."""

    kind = SemiMarkovModel

    def __init__(self, segments: Any) -> None:
        self.segments = segments

    def choose(self, features: FeatureOptions, training: LabeledData) -> LinearModel:
        """Return the model with the weights that are to be fitted."""
        size = len(training.classes)
        runs = segmentation_of(training.codes, training.data.offsets, size)
        limits = find_limits(self.segments, training.coding, training.classes, runs)
        return choose_segment_features(
            training.data,
            training.codes,
            size,
            lengths=self._lengths(limits, runs),
            parts=self._parts(training.data),
            forbidden=limits.forbidden,
            **_shared_options(features),
        )

    def other_attributes(self, coding: Any) -> dict[str, Any]:
        """Return how tags write segments."""
        return {"scheme_": coding.scheme}

    def _lengths(self, limits: Limits, runs: Segmentation) -> LengthBlock:
        """Return how the scores of lengths are made."""
        most, least = limits.most, limits.least
        longest = int(most.max(initial=1))
        found = length_basis(self.segments.length, longest)
        warn_if_lengths_badly_scaled(found.basis, found.names, runs.stop - runs.start)
        lengths = np.arange(1, longest + 1)[:, None]
        fixed = np.where((lengths <= most) & (lengths >= least), found.fixed[:, None], -np.inf)
        chosen = np.ones((found.basis.shape[1], len(most)), bool)
        return LengthBlock(fixed, found.basis, chosen)

    def _parts(self, data: Any) -> NDArray[np.bool_]:
        """Return which attributes count for all, first, last, and single tokens, shape (D, 4)."""
        wanted = np.array([part in self.segments.token_parts for part in TOKEN_PARTS])
        parts = np.tile(wanted, (data.n_features, 1))
        for attribute, name in enumerate(() if data.names is None else data.feature_names):
            end = END.match(str(name))
            if end:
                parts[attribute] = np.array(TOKEN_PARTS) == end[1]
        return parts


def _check_no_ends(names: Any) -> None:
    """Raise ValueError if templates describe first, last or only tokens of segments."""
    for lead in names.leads() if isinstance(names, LazyNames) else ():
        if END.match(lead):
            raise ValueError(
                f"X has attributes of the first, last or only tokens of segments ({lead}...), "
                "which a model of single tokens cannot use: fit a SemiMarkovCRF, or leave "
                "first(...), last(...) and single(...) out of the templates."
            )


def weights_of(labels: LabelSpace) -> WeightSpace:
    """Return the weights that models of labels have."""
    return SegmentWeights(labels.segments) if isinstance(labels, SegmentLabels) else TokenWeights()
