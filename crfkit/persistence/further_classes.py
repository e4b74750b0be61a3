"""Further classes in model files, of lower rooms and scikit-learn, imported with a file of some."""

from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer

import crfkit.constraints
import crfkit.features
import crfkit.generative
import crfkit.generative.emissions
import crfkit.graphs.named
import crfkit.inference
import crfkit.labels.costs
import crfkit.losses
import crfkit.solvers
import crfkit.solvers.margin
from crfkit.features import composition
from crfkit.features.composition import SequenceUnion, TransitionFeatures, TreeFeatures
from crfkit.features.graphs import GraphVectorizer, SkipChainFeatures
from crfkit.persistence.checks import check_steps
from crfkit.persistence.registry import register, register_room
from crfkit.structures import Tree

for _room in (
    crfkit.constraints, crfkit.features, composition, crfkit.generative,
    crfkit.generative.emissions, crfkit.labels.costs, crfkit.losses, crfkit.graphs.named,
    crfkit.inference, crfkit.solvers, crfkit.solvers.margin,
):  # fmt: skip
    register_room(_room)
for _cls in (FrozenEstimator, FunctionTransformer, Tree):
    register(_cls)
for _cls in (SequenceUnion, TransitionFeatures, TreeFeatures, GraphVectorizer, SkipChainFeatures):
    register(check=check_steps)(_cls)
