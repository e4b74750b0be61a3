"""Names of features that are only built when somebody asks for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from crfkit._types import ObjectArray
from crfkit.data.labels import object_array


class LazyNames(ABC):
    """Names of D features, as good as an array of them.

    A vocabulary of templates knows its attributes as numbers. Their names take longer to build than
    the features themselves, and most fits never look at them.
    """

    _built: ObjectArray | None = None

    @abstractmethod
    def __len__(self) -> int:
        """Return D."""

    @abstractmethod
    def _build(self) -> ObjectArray:
        """Return the names, shape (D,)."""

    @abstractmethod
    def leads(self) -> Iterator[str]:
        """Yield what names begin with, as far as it is known without building them."""

    def array(self) -> ObjectArray:
        """Return the names, shape (D,), built once."""
        if self._built is None:
            self._built = self._build()
            self._built.setflags(write=False)
        return self._built

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the names that were built."""
        return {key: value for key, value in self.__dict__.items() if key != "_built"}


Names = ObjectArray | LazyNames


def name_array(names: Names) -> ObjectArray:
    """Return names as an array."""
    return names.array() if isinstance(names, LazyNames) else names


def check_feature_names(names: Any, n_features: int) -> ObjectArray | None:
    """Return names of features as an array; ValueError if there is another number of them."""
    if names is None:
        return None
    checked = object_array(names)
    if len(checked) != n_features:
        raise ValueError(f"{len(checked)} feature names for {n_features} features.")
    return checked
