"""Base class of the transformers of sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from crfkit.data import PackedSequences
from crfkit.data.names import Names, name_array


class SequenceTransformer(  # type: ignore[call-arg]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
    auto_wrap_output_keys=None,
):
    """A transformer from sequences to packed sequences."""

    # Attributes that follow from the parameters and the other attributes: they are not stored.
    _derived: ClassVar[tuple[str, ...]] = ()

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

    def transform(self, X: Any) -> PackedSequences:
        """Return the packed sequences; attributes that `fit` has not seen are left out.

        Parameters
        ----------
        X : iterable of sequences
            As for `fit_transform`.

        Returns
        -------
        PackedSequences
            As of `fit_transform`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As `fit_transform`.
        """
        check_is_fitted(self)
        return self._transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the attributes of tokens, shape (D,), in the order of the columns.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        return name_array(self._token_names())

    def set_output(self, *, transform: Any = None) -> Self:
        """Do nothing: packed sequences are neither a NumPy array nor a data frame.

        Parameters
        ----------
        transform : ignored
        """
        return self

    @abstractmethod
    def _transform(self, X: Any) -> PackedSequences:
        """Return sequences packed, after `fit`."""

    @abstractmethod
    def _token_names(self) -> Names:
        """Return the names of the attributes of tokens, after `fit`."""

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") for name in vars(self))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the rest."""
        return {k: v for k, v in super().__getstate__().items() if k not in self._derived}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        tags.input_tags.string = True
        return tags
