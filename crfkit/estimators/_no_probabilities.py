"""What a model says that has scores only."""

from __future__ import annotations

from typing import Any


class NoProbabilitiesMixin:
    """Lets `predict_proba` be missing, and say why."""

    @property
    def predict_proba(self) -> Any:
        """Is not there.

        Raises
        ------
        AttributeError
            In any case: scores of this model are no logarithms of probabilities.
        """
        raise AttributeError(
            f"{type(self).__name__} has no probabilities, so no predict_proba: use CRFClassifier."
        )
