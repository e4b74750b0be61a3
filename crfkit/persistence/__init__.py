"""Models in one versioned file that holds data only: no pickle, nothing is executed.

`container` knows the bytes, `encoder` and `decoder` the objects, `registry` the classes, `checks`
what must hold between restored arrays, and `files` is what users call.
"""

from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

import crfkit.data
import crfkit.features
import crfkit.inference
import crfkit.labels.costs
import crfkit.losses
import crfkit.solvers
import crfkit.solvers.margin
from crfkit._types import IterationRecord
from crfkit.data import PackedSegments, PackedSequences
from crfkit.features import SequenceVectorizer, composition
from crfkit.features.templates import tables, vocabulary
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
from crfkit.persistence.registry import register, register_room
from crfkit.structures import OF_TOPOLOGY

for _room in (
    crfkit.data, crfkit.features, composition, tables, vocabulary, crfkit.labels.costs,
    crfkit.losses, crfkit.inference, crfkit.solvers, crfkit.solvers.margin,
):  # fmt: skip
    register_room(_room)
for _cls in (IterationRecord, FunctionTransformer, *map(type, OF_TOPOLOGY.values())):
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
    "register_room",
    "save",
]
