"""What the labels of a model stand for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.labels.coding import Coded


class FittedLabels(Protocol):
    """What a fitted model knows of labels.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    scheme_ : str
        Of segments: how tags write them.
    """

    classes_: NDArray[np.object_]
    scheme_: str


class LabelSpace(ABC):
    """From labels to codes, and back.

    Attributes
    ----------
    of_segments : bool
        Whether labels are those of segments.
    """

    of_segments: ClassVar[bool]

    @abstractmethod
    def read(self, y: Any, offsets: IntArray) -> Coded:
        """Return the codes of labels.

        Raises
        ------
        ValueError, TypeError
            If the labels do not fit the sequences, or cannot be read.
        """

    @abstractmethod
    def coding(self, fitted: FittedLabels) -> Any:
        """Return what the codes of a fitted model stand for."""

    @abstractmethod
    def codes(
        self, fitted: FittedLabels, y: Any, offsets: IntArray
    ) -> tuple[CodeArray, NDArray[np.bool_]]:
        """Return codes of labels for a fitted model, and whether it knows the label, both (N,)."""

    @abstractmethod
    def labels(self, fitted: FittedLabels, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones."""

    @abstractmethod
    def learned_from(self, weight: FloatArray, offsets: IntArray) -> NDArray[np.bool_]:
        """Return which sequences a model may learn from, (S,), given the weights of tokens, (N,).

        Those of weight 0 have no part in a loss, but may have in what is allowed.
        """
