"""Structured linear models for sequences, in scikit-learn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crfkit._lazy import lazy_names
from crfkit._version import __version__ as __version__

if TYPE_CHECKING:
    from crfkit.calibration import CalibratedSequenceClassifier as CalibratedSequenceClassifier
    from crfkit.constraints import Constraints as Constraints
    from crfkit.data import UNLABELED as UNLABELED
    from crfkit.data import LabelSequences as LabelSequences
    from crfkit.data import PackedSequences as PackedSequences
    from crfkit.data import SoftLabels as SoftLabels
    from crfkit.data import token_weights as token_weights
    from crfkit.estimators import CRFClassifier as CRFClassifier
    from crfkit.estimators import CRFClassifierCV as CRFClassifierCV
    from crfkit.estimators import EarlyStopping as EarlyStopping
    from crfkit.estimators import FrameClassifier as FrameClassifier
    from crfkit.estimators import GraphCRF as GraphCRF
    from crfkit.estimators import HMMClassifier as HMMClassifier
    from crfkit.estimators import MaxMarginCRF as MaxMarginCRF
    from crfkit.estimators import MEMMClassifier as MEMMClassifier
    from crfkit.estimators import SegmentLimits as SegmentLimits
    from crfkit.estimators import Segments as Segments
    from crfkit.estimators import SemiMarkovCRF as SemiMarkovCRF
    from crfkit.estimators import StructuredPerceptron as StructuredPerceptron
    from crfkit.estimators import TokenClassifier as TokenClassifier
    from crfkit.features import SegmentFeatures as SegmentFeatures
    from crfkit.features import SequenceVectorizer as SequenceVectorizer
    from crfkit.features import TemplateFeatures as TemplateFeatures
    from crfkit.features import TransitionFeatures as TransitionFeatures
    from crfkit.features import TreeFeatures as TreeFeatures
    from crfkit.features import WindowFeatures as WindowFeatures
    from crfkit.features import make_sequence_union as make_sequence_union
    from crfkit.persistence import load as load
    from crfkit.persistence import save as save
    from crfkit.progress import ProgressBar as ProgressBar

_ROOMS = frozenset(
    "active_learning calibration collective compat constraints data datasets estimators features "
    "generative graphs inference inspection io labels losses metrics model_selection objective "
    "persistence potentials solvers structures testing text".split()
)
# Names are imported when they are asked for: `crfkit --help` need not wait for scikit-learn.
__all__, _find, _names = lazy_names(
    __name__,
    {
        "calibration": "CalibratedSequenceClassifier",
        "constraints": "Constraints",
        "data": "LabelSequences PackedSequences SoftLabels UNLABELED token_weights",
        "estimators": (
            "CRFClassifier CRFClassifierCV EarlyStopping FrameClassifier GraphCRF HMMClassifier "
            "MEMMClassifier MaxMarginCRF SegmentLimits Segments SemiMarkovCRF StructuredPerceptron "
            "TokenClassifier"
        ),
        "features": (
            "SegmentFeatures SequenceVectorizer TemplateFeatures TransitionFeatures TreeFeatures "
            "WindowFeatures make_sequence_union"
        ),
        "persistence": "load save",
        "progress": "ProgressBar",
        "_version": "__version__",
    },
)


def __getattr__(name: str) -> Any:
    return import_module(f"crfkit.{name}") if name in _ROOMS else _find(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *_ROOMS})
