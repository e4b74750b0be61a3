"""Structured linear models for sequences, in scikit-learn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crfkit._version import __version__

if TYPE_CHECKING:
    from crfkit.data import LabelSequences, PackedSequences
    from crfkit.estimators import (
        CRFClassifier,
        CRFClassifierCV,
        EarlyStopping,
        MaxMarginCRF,
        SegmentConstraints,
        Segments,
        SemiMarkovCRF,
        StructuredPerceptron,
    )
    from crfkit.features import (
        SegmentFeatures,
        SequenceVectorizer,
        TemplateFeatures,
        TransitionFeatures,
        TreeFeatures,
        WindowFeatures,
        make_sequence_union,
    )
    from crfkit.persistence import load, save

__all__ = [
    "CRFClassifier",
    "CRFClassifierCV",
    "EarlyStopping",
    "LabelSequences",
    "MaxMarginCRF",
    "PackedSequences",
    "SegmentConstraints",
    "SegmentFeatures",
    "Segments",
    "SemiMarkovCRF",
    "SequenceVectorizer",
    "StructuredPerceptron",
    "TemplateFeatures",
    "TransitionFeatures",
    "TreeFeatures",
    "WindowFeatures",
    "__version__",
    "load",
    "make_sequence_union",
    "save",
]

# Names are imported when they are asked for: `crfkit --help` need not wait for scikit-learn.
_HOMES = {
    "CRFClassifier": "estimators",
    "CRFClassifierCV": "estimators",
    "EarlyStopping": "estimators",
    "LabelSequences": "data",
    "MaxMarginCRF": "estimators",
    "PackedSequences": "data",
    "SegmentConstraints": "estimators",
    "SegmentFeatures": "features",
    "Segments": "estimators",
    "SemiMarkovCRF": "estimators",
    "SequenceVectorizer": "features",
    "TransitionFeatures": "features",
    "TreeFeatures": "features",
    "StructuredPerceptron": "estimators",
    "TemplateFeatures": "features",
    "WindowFeatures": "features",
    "load": "persistence",
    "make_sequence_union": "features",
    "save": "persistence",
}
_ROOMS = frozenset(
    "compat data datasets estimators features inference io labels losses metrics objective "
    "persistence potentials solvers structures testing".split()
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"crfkit.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'crfkit' has no attribute {name!r}")
    value = getattr(import_module(f"crfkit.{_HOMES[name]}"), name)
    globals()[name] = value  # asked for once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
