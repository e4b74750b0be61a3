"""Models in one versioned file that holds data only: no pickle, nothing is executed.

`container` knows the bytes, `encoder` and `decoder` the objects, `registry` the classes, `checks`
what must hold between restored arrays, and `files` is what users call.
"""

from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from crfkit._types import IterationRecord
from crfkit.data import LabelSequences, PackedSegments, PackedSequences
from crfkit.features import (
    SegmentFeatures,
    SequenceUnion,
    SequenceVectorizer,
    TemplateFeatures,
    TransitionFeatures,
    WindowFeatures,
)
from crfkit.features.templates.tables import ItemTable, StringTable, TextTable
from crfkit.features.templates.vocabulary import TemplateVocabulary
from crfkit.features.union import JoinedNames
from crfkit.inference import BeamSearch, PosteriorDecoder, ViterbiDecoder
from crfkit.labels.costs import AdditiveCost, ZeroOneCost
from crfkit.losses import (
    AnnealedHingeLoss,
    HingeLoss,
    LogLoss,
    PerceptronLoss,
    SoftenedHingeLoss,
    SoftmaxMarginLoss,
)
from crfkit.persistence.checks import (
    check_chain_model,
    check_csr,
    check_packed,
    check_rows,
    check_runs,
    check_steps,
    check_vectorizer,
)
from crfkit.persistence.container import ModelFileError
from crfkit.persistence.files import SaveMixin, describe, dumps, load, loads, save
from crfkit.persistence.registry import register
from crfkit.solvers import (
    AROW,
    GIS,
    IIS,
    LBFGS,
    MIRA,
    OEG,
    OWLQN,
    SAG,
    SGD,
    AutoSolver,
    ConjugateGradient,
    NewtonCG,
    OnlineSolver,
    PassiveAggressive,
    Perceptron,
    ProximalQuasiNewton,
    Rprop,
)
from crfkit.solvers.margin import (
    SMO,
    BlockFrankWolfe,
    CuttingPlane,
    KernelFrankWolfe,
    MarginEG,
    Subgradient,
)

for _cls in (
    AutoSolver, LBFGS, OEG, OWLQN, SAG, SGD, ConjugateGradient, NewtonCG, ProximalQuasiNewton,
    Rprop, GIS, IIS, OnlineSolver, Perceptron, PassiveAggressive, AROW, MIRA, BeamSearch,
    LogLoss, SoftmaxMarginLoss, SoftenedHingeLoss, AnnealedHingeLoss, HingeLoss, PerceptronLoss,
    AdditiveCost, ZeroOneCost,
    BlockFrankWolfe, CuttingPlane, Subgradient, SMO, MarginEG, KernelFrankWolfe,
    PosteriorDecoder, ViterbiDecoder, IterationRecord, LabelSequences,
    TemplateFeatures, WindowFeatures, TemplateVocabulary, StringTable, TextTable, ItemTable,
    SequenceUnion, TransitionFeatures, SegmentFeatures, JoinedNames, FunctionTransformer,
):  # fmt: skip
    register(_cls)
register(check=check_steps)(Pipeline)
register(check=check_steps)(FeatureUnion)
register(check=check_vectorizer)(SequenceVectorizer)
register(check=check_packed)(PackedSequences)
register(check=check_runs)(PackedSegments)

__all__ = [
    "ModelFileError",
    "SaveMixin",
    "check_chain_model",
    "check_csr",
    "check_packed",
    "check_rows",
    "check_runs",
    "check_steps",
    "check_vectorizer",
    "describe",
    "dumps",
    "load",
    "loads",
    "register",
    "save",
]
