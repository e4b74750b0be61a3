"""Classes of lower rooms and of scikit-learn in model files, imported with the first file."""

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

import crfkit.constraints
import crfkit.data
import crfkit.features
import crfkit.generative
import crfkit.generative.emissions
import crfkit.graphs.named
import crfkit.inference
import crfkit.labels.costs
import crfkit.losses
import crfkit.solvers
import crfkit.solvers.margin
from crfkit._types import IterationRecord, ProbableSegment, RankedLabels, Segment
from crfkit.data import PackedSegments, PackedSequences
from crfkit.data.labels import Unlabeled
from crfkit.data.sequence_list import SequenceList
from crfkit.features import SequenceVectorizer, composition, symbols
from crfkit.features.composition import SequenceUnion, TransitionFeatures, TreeFeatures
from crfkit.features.graphs import GraphVectorizer, SkipChainFeatures
from crfkit.features.templates import tables, vocabulary
from crfkit.persistence.checks import check_packed, check_runs, check_steps, check_vectorizer
from crfkit.persistence.registry import register, register_room
from crfkit.structures import Tree

for _room in (
    crfkit.constraints, crfkit.data, crfkit.features, composition, symbols, tables, vocabulary,
    crfkit.generative, crfkit.generative.emissions, crfkit.labels.costs, crfkit.losses,
    crfkit.graphs.named, crfkit.inference, crfkit.solvers, crfkit.solvers.margin,
):  # fmt: skip
    register_room(_room)
for _cls in (
    IterationRecord, Segment, ProbableSegment, RankedLabels, SequenceList, Unlabeled,
    FrozenEstimator, FunctionTransformer, Tree,
):  # fmt: skip
    register(_cls)
for _cls in (
    Pipeline,
    FeatureUnion,
    SequenceUnion,
    TransitionFeatures,
    TreeFeatures,
    GraphVectorizer,
    SkipChainFeatures,
):
    register(check=check_steps)(_cls)
register(check=check_vectorizer)(SequenceVectorizer)
register(check=check_packed)(PackedSequences)
register(check=check_runs)(PackedSegments)
