"""What a model of potentials has to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol

from crfkit._parallel import SERIAL, Chunk, ThreadMap
from crfkit._types import BoolArray, CodeArray, FloatArray, ObjectArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.targets import Targets
from crfkit.structures import Structure


class PotentialsModel(ABC):
    """A function from P parameters and packed features to potentials."""

    is_linear: ClassVar[bool]  # sums of parameters times features: the model is a `LinearModel`
    is_kernelized: ClassVar[bool] = False  # sums of kernel values: it is a `KernelChainModel`
    n_parameters: int  # P
    n_labels: int  # K
    n_codes: int  # how many codes a token may have
    n_columns: int  # unary potentials of a token
    chunk_tokens: int  # tokens that a chunk of sequences should have
    structure: Structure  # reads the potentials
    # Which parameters may not be negative, (P,); None: all may.
    nonnegative: BoolArray | None = None

    @property
    @abstractmethod
    def parameter_counts(self) -> dict[str, int]:
        """Numbers of parameters by what they are, in words."""

    @abstractmethod
    def fitted(self, parameters: FloatArray) -> dict[str, Any]:
        """Return parameters as the attributes of a fitted estimator."""

    @abstractmethod
    def bind(self, parameters: FloatArray) -> Any:
        """Return what `scores` needs of the parameters, computed once for all chunks."""

    @abstractmethod
    def scores(
        self, bound: Any, data: PackedSequences, chunk: Chunk, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the potentials of a chunk of new data; `threads` share a long sequence.

        Their unary scores are a new array, which may be written to.
        """


class FeatureChoice(NamedTuple):
    """Which features get a weight; see :class:`crfkit.CRFClassifier`."""

    min_freq: int = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    boundary_weights: bool = False


class LabeledData(Protocol):
    """What is learned from."""

    data: PackedSequences  # N tokens
    codes: CodeArray  # (N,)
    targets: Targets  # what is known of the labels
    weight: FloatArray  # (N,): the label of a token of weight 0 is not known
    classes: ObjectArray  # (K,) labels
    coding: Any  # what the codes stand for
