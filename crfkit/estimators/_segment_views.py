"""What can be read off a fitted model of segments: attributes of the estimators that have such."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import scipy.sparse as sp
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from crfkit._types import FloatArray
from crfkit.estimators._views import WeightView
from crfkit.labels.limits import longest


def _token_view(weights: str, what: str) -> property:
    def view(self: Any) -> WeightView:
        check_has_segments(self)
        return self._token_view(weights)  # type: ignore[no-any-return]

    return property(view, doc=f"Mapping view ``{{(attribute, label): weight}}`` of {what}.")


first_features = _token_view("first_coef_", "the first tokens of segments")
last_features = _token_view("last_coef_", "the last tokens of segments")
single_features = _token_view("single_coef_", "segments of one token")


def _segment_view(self: Any) -> WeightView:
    """Return a view ``{(attribute, label): weight}`` of attributes of whole segments."""
    check_has_segments(self)
    if self.segment_coef_ is None:
        return WeightView(sp.csr_array((0, len(self.classes_))), [], self.classes_)
    names = getattr(self, "segment_feature_names_in_", range(self.segment_coef_.shape[0]))
    return WeightView(self.segment_coef_, names, self.classes_)


def _segment_names(self: Any) -> Any:
    """Return the names of the attributes of segments, shape (D3,), where there are any."""
    return self._names_of("_segment_names")


def _longest(self: Any) -> dict[Hashable, int]:
    """Return the longest length of the segments of each label."""
    check_has_segments(self)
    lengths = longest(self.length_scores_).tolist()
    return dict(zip(self.classes_.tolist(), lengths, strict=True))


segment_features = property(_segment_view)
segment_feature_names = property(_segment_names)
max_lengths = property(_longest)


def length_distribution(self: Any) -> FloatArray:
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
