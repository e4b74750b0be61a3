"""What all transformers of sequences share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from crfkit.data import PackedSequences


class SequenceTransformer(  # type: ignore[call-arg]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
    auto_wrap_output_keys=None,
):
    """A transformer from sequences to packed sequences."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # scikit-learn would wrap the output of each class that does not say otherwise.
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from sequences, as `fit_transform` does, which has the parameters and errors.

        Parameters
        ----------
        X : iterable of sequences
            As for `fit_transform`.
        y : as for `fit_transform`
        """
        self.fit_transform(X, y)
        return self

    @abstractmethod
    def fit_transform(self, X: Any, y: Any = None) -> PackedSequences:
        """Learn from sequences and return them packed, reading `X` once."""

    def set_output(self, *, transform: Any = None) -> Self:
        """Do nothing: packed sequences are neither a NumPy array nor a data frame.

        Parameters
        ----------
        transform : ignored
        """
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        tags.input_tags.string = True
        return tags
