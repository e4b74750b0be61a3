"""Estimators wire the parts and name them."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names

if TYPE_CHECKING:
    from crfkit._types import BoundedLabels as BoundedLabels
    from crfkit.estimators._graph_answers import GraphAnswer as GraphAnswer
    from crfkit.estimators._graph_answers import GraphProbabilities as GraphProbabilities
    from crfkit.estimators.crf import CRFClassifier as CRFClassifier
    from crfkit.estimators.cv import CRFClassifierCV as CRFClassifierCV
    from crfkit.estimators.frame import FrameClassifier as FrameClassifier
    from crfkit.estimators.graph import GraphCRF as GraphCRF
    from crfkit.estimators.hmm import HMMClassifier as HMMClassifier
    from crfkit.estimators.max_margin import MaxMarginCRF as MaxMarginCRF
    from crfkit.estimators.memm import MEMMClassifier as MEMMClassifier
    from crfkit.estimators.perceptron import StructuredPerceptron as StructuredPerceptron
    from crfkit.estimators.segments import SegmentLimits as SegmentLimits
    from crfkit.estimators.segments import Segments as Segments
    from crfkit.estimators.semimarkov import SemiMarkovCRF as SemiMarkovCRF
    from crfkit.estimators.tokens import TokenClassifier as TokenClassifier
    from crfkit.training.early_stopping import EarlyStopping as EarlyStopping

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_bounds": "BoundedLabels",
        "_graph_answers": "GraphAnswer GraphProbabilities",
        "crf": "CRFClassifier EarlyStopping",
        "cv": "CRFClassifierCV",
        "frame": "FrameClassifier",
        "graph": "GraphCRF",
        "hmm": "HMMClassifier",
        "max_margin": "MaxMarginCRF",
        "memm": "MEMMClassifier",
        "perceptron": "StructuredPerceptron",
        "segments": "SegmentLimits Segments",
        "semimarkov": "SemiMarkovCRF",
        "tokens": "TokenClassifier",
    },
)
