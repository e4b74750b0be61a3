"""What can be read off a fitted model of segments."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from crfkit._types import FloatArray
from crfkit.estimators._base import LinearChainClassifier
from crfkit.estimators._views import WeightView
from crfkit.labels.limits import longest


class SegmentViews(LinearChainClassifier):
    """Weights of segments and their lengths under the names of attributes and labels."""

    @property
    def segment_feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the attributes of segments, shape (D3,), where there are any."""
        return self._names_of("_segment_names")

    @property
    def first_features_(self) -> WeightView:
        """Mapping view ``{(attribute, label): weight}`` of the first tokens of segments."""
        return self._token_view("first_coef_")

    @property
    def last_features_(self) -> WeightView:
        """Mapping view ``{(attribute, label): weight}`` of the last tokens of segments."""
        return self._token_view("last_coef_")

    @property
    def single_features_(self) -> WeightView:
        """Mapping view ``{(attribute, label): weight}`` of segments of one token."""
        return self._token_view("single_coef_")

    @property
    def segment_features_(self) -> WeightView:
        """Mapping view ``{(attribute, label): weight}`` of attributes of whole segments."""
        check_has_segments(self)
        if self.segment_coef_ is None:
            return WeightView(sp.csr_array((0, len(self.classes_))), [], self.classes_)
        rows = range(self.segment_coef_.shape[0])
        names = getattr(self, "segment_feature_names_in_", rows)
        return WeightView(self.segment_coef_, names, self.classes_)

    def _token_view(self, attribute: str) -> WeightView:
        check_has_segments(self)
        names: Any = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return WeightView(getattr(self, attribute), names, self.classes_)

    @property
    def max_lengths_(self) -> dict[Hashable, int]:
        """The longest length of the segments of each label."""
        check_has_segments(self)
        lengths = longest(self.length_scores_).tolist()
        return dict(zip(self.classes_.tolist(), lengths, strict=True))

    def length_distribution(self) -> FloatArray:
        """Return how long segments were if nothing but the weights of lengths counted.

        What the data say of lengths is also in the weights of tokens, which add up over a segment:
        `expected_lengths` of :class:`crfkit.SemiMarkovCRF` tells how long segments are.

        Returns
        -------
        ndarray of shape (L, K)
            The share of the lengths 1, ..., L among segments of each label, ``exp(length_scores_)``
            divided by its sum: columns sum to 1.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_has_segments(self)
        shares: FloatArray = softmax(self.length_scores_, axis=0)
        return shares


def check_has_segments(estimator: Any) -> None:
    """Raise AttributeError if an estimator is fitted to the labels of tokens, or not at all."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "length_scores_"):
        raise no_segments(estimator)


def no_segments(estimator: Any) -> AttributeError:
    """Return the error of what only models of segments have."""
    return AttributeError(
        f"{type(estimator).__name__} has labels of tokens, not of segments: fit one with "
        "structure=Segments(...)."
    )
