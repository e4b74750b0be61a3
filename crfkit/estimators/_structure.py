"""Estimators of the labels of tokens that may learn those of segments instead."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metaestimators import available_if

from crfkit.estimators._layout import TokenLabels
from crfkit.estimators._segment_layout import SegmentLabels
from crfkit.estimators._segment_predictions import SegmentPredictions
from crfkit.estimators._segment_views import check_has_segments, no_segments
from crfkit.estimators.segments import Segments
from crfkit.potentials import LinearChainModel
from crfkit.potentials.linear import fitted_names
from crfkit.potentials.semimarkov import SemiMarkovModel


def _learns_segments(estimator: Any) -> bool:
    """Return whether an estimator has the labels of segments; raise AttributeError if not."""
    if estimator.__sklearn_is_fitted__():
        check_has_segments(estimator)
    elif isinstance(estimator.structure, str):
        raise no_segments(estimator)
    return True


def _missing(name: str) -> property:
    """Return a property that says why there is no method of this name."""

    def raise_error(self: Any) -> Any:
        raise AttributeError(
            f"{type(self).__name__} has no probabilities, so no {name}: use SemiMarkovCRF."
        )

    return property(raise_error, doc="Is not there: scores are no logarithms of probabilities.")


class StructureMixin(SegmentPredictions):
    """Lets the parameter `structure` choose between tokens and segments.

    A subclass has the parameters below, and says in `_check_segments` what does not go with
    segments.
    """

    structure: Any = "chain"
    warm_start: bool

    predict_segments = available_if(_learns_segments)(SegmentPredictions.predict_segments)
    predict_n_best = available_if(_learns_segments)(SegmentPredictions.predict_n_best)
    length_distribution = available_if(_learns_segments)(SegmentPredictions.length_distribution)

    expected_lengths = _missing("expected_lengths")
    likely_segments = _missing("likely_segments")
    predict_segment_proba = _missing("predict_segment_proba")

    @property
    def _fitted_layout(self) -> TokenLabels:
        return SegmentLabels(self.structure) if hasattr(self, "length_scores_") else TokenLabels()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.structure, Segments):
            self.structure._check_parameters()
            self._check_segments()
        elif not isinstance(self.structure, str):
            raise TypeError(f"structure={self.structure!r:.80} must be 'chain' or Segments().")
        elif self.structure != "chain":
            raise ValueError(f"structure={self.structure!r:.80} must be 'chain' or Segments().")

    def _check_segments(self) -> None:
        """Raise ValueError if a parameter does not go with segments."""
        if self.warm_start:
            raise ValueError(
                "warm_start=True carries weights of the labels of tokens over, not of segments: "
                "use structure='chain', or warm_start=False."
            )

    def _set_fitted(self, attributes: dict[str, Any]) -> None:
        if "length_scores_" not in attributes:
            of_segments = {*fitted_names(SemiMarkovModel), "scheme_"}
            for name in of_segments.difference(fitted_names(LinearChainModel)):
                self.__dict__.pop(name, None)
        super()._set_fitted(attributes)
