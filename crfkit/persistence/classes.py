"""Classes of lower rooms and of scikit-learn in model files, imported with the first file.

Those of which few files have any are in `further_classes`.
"""

from sklearn.pipeline import FeatureUnion, Pipeline

import crfkit.data
from crfkit._types import IterationRecord, ProbableSegment, RankedLabels, Segment
from crfkit.data import PackedSegments, PackedSequences
from crfkit.data.labels import Unlabeled
from crfkit.data.sequence_list import SequenceList
from crfkit.features import SequenceVectorizer, symbols
from crfkit.features.templates import tables, vectorizer, vocabulary
from crfkit.persistence.checks import check_packed, check_runs, check_steps, check_vectorizer
from crfkit.persistence.registry import register, register_room

for _room in (crfkit.data, symbols, tables, vectorizer, vocabulary):
    register_room(_room)
for _cls in (IterationRecord, Segment, ProbableSegment, RankedLabels, SequenceList, Unlabeled):
    register(_cls)
for _cls in (Pipeline, FeatureUnion):
    register(check=check_steps)(_cls)
register(check=check_vectorizer)(SequenceVectorizer)
register(check=check_packed)(PackedSequences)
register(check=check_runs)(PackedSegments)
