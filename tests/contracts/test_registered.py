"""Whatever has a name in the package can be saved and comes back the same."""

import copy

import numpy as np
import pytest
from sklearn.model_selection import KFold

import crfkit
import crfkit.calibration  # registers what it fits
import crfkit.compat.sklearn_crfsuite  # registers its estimator
import crfkit.persistence.further_classes  # registers those of rooms
from crfkit import (
    CRFClassifier,
    HMMClassifier,
    MaxMarginCRF,
    MEMMClassifier,
    SemiMarkovCRF,
    StructuredPerceptron,
    TokenClassifier,
)
from crfkit.generative.emissions import EMISSIONS
from crfkit.generative.smoothing import SMOOTHINGS
from crfkit.graphs.named import MAXIMA, SUMS
from crfkit.inference import DECODERS
from crfkit.losses import LOSSES
from crfkit.persistence import dumps, loads
from crfkit.persistence.registry import REGISTRY
from crfkit.solvers import SOLVERS
from crfkit.solvers.margin import MARGIN_SOLVERS
from tests.estimators.segmentations import SPANS
from tests.estimators.segmentations import X as WORDS

X = [[{"w": "the"}, {"w": "dog"}, {"w": "runs"}], [{"w": "cats"}], [{"w": "a"}, {"w": "cat"}]]
FRAMES = [np.eye(3), np.eye(3)[1:2], np.eye(3)[::2]]
Y = [["D", "N", "V"], ["N"], ["D", "N"]]
# Classes whose objects are parts of others, and are saved with these, or made to predict.
FITTED_PARTS = {
    "SymbolNames", "TemplateVocabulary", "StringTable", "TextTable", "ItemTable", "JoinedNames",
    "IterationRecord", "TrainingLog", "PackedSequences", "PackedSegments", "LabelSequences",
    "Temperature", "Isotonic", "RisingFunction", "DecodedLabels", "Target", "Limits",
    "HiddenMarkovModel",
}  # fmt: skip
# Parameters that have no default.
NEEDED = {
    "AdditiveCost": lambda cls: cls(1.0 - np.eye(2)),
    "AllowedAt": lambda cls: cls({0: ["N"], -1: {"N", "V"}}),
    "AllowedWith": lambda cls: cls({"w=a": ["D"]}),
    "Known": lambda cls: cls([["N", crfkit.UNLABELED], [(0, 2, "N")]]),
    "Pipeline": lambda cls: cls([("crf", CRFClassifier())]),
    "FeatureUnion": lambda cls: cls([("features", crfkit.SequenceVectorizer())]),
    "TemplateFeatures": lambda cls: cls(["w"]),
    "SegmentFeatures": lambda cls: cls(["seg.length"]),
    "SequenceUnion": lambda cls: cls([("a", crfkit.SequenceVectorizer())]),
    "TreeFeatures": lambda cls: cls(crfkit.SequenceVectorizer()),
    "SkipChainFeatures": lambda cls: cls(crfkit.SequenceVectorizer()),
    "Before": lambda cls: cls("D", "N"),
    "Count": lambda cls: cls("N", at_most=2),
    "NotTogether": lambda cls: cls(["D", "V"]),
    "SoftLabels": lambda cls: cls([np.full((2, 2), 0.5)], ["D", "N"]),
    "FrozenEstimator": lambda cls: cls(CRFClassifier()),
    "Forest": lambda cls: cls([-1, 0, -1], [0, 2, 3]),
    "Edges": lambda cls: cls([0, 0], [1, 2], [0, 3, 4], [0, 2, 2], [0, 1, 0, 0], ["a", "b"]),
    "TransitionFeatures": lambda cls: cls(crfkit.SequenceVectorizer()),
    "PredefinedSplit": lambda cls: cls([0, 1, -1]),
    "SoftenedHingeLoss": lambda cls: cls(0.5),
}
CLASSES = {
    name: cls
    for name, cls in sorted(REGISTRY._classes.items())
    if name.startswith(("crfkit.", "sklearn.")) and cls.__name__ not in FITTED_PARTS
}


def record(cls):
    """Return a NamedTuple of arrays, as if all of its fields were alike."""
    return cls(*(np.arange(2.0 + place) for place, _ in enumerate(cls._fields)))


def same(one, other):
    """Whether two objects have the same state, to the last bit."""
    return type(one) is type(other) and dumps(one) == dumps(other)


@pytest.mark.parametrize("name", CLASSES)
def test_every_registered_class_comes_back_unfitted(name):
    cls = CLASSES[name]
    item = NEEDED.get(cls.__name__, record if issubclass(cls, tuple) else lambda cls: cls())(cls)
    assert same(loads(dumps(item)), item)
    assert same(copy.deepcopy(item), item)


CHOICES = {
    **{f"loss {name}": CRFClassifier(loss=loss()) for name, loss in LOSSES.items()},
    **{f"solver {name}": CRFClassifier(solver=solver()) for name, solver in SOLVERS.items()},
    **{f"margin {name}": MaxMarginCRF(solver=s()) for name, s in MARGIN_SOLVERS.items()},
    **{f"decoding {name}": CRFClassifier(decoding=d()) for name, d in DECODERS.items()},
    "kernel rbf": MaxMarginCRF(kernel="rbf"),
    "perceptron": StructuredPerceptron(),
    "cross-validation": crfkit.CRFClassifierCV(c2s=[0.1, 1.0], cv=KFold(2)),
    "segments": SemiMarkovCRF(),
    **{
        f"inference {name}": crfkit.GraphCRF(inference=m())
        for name, m in SUMS.items()
        if m.has_log_z
    },
    **{
        f"search {name}": crfkit.GraphCRF(loss="hinge", search=m())
        for name, m in MAXIMA.items()
        if name in ("exact", "mplp", "milp")
    },
    "labels before": MEMMClassifier(boundary_weights=True),
    "single tokens": TokenClassifier(),
    **{f"smoothing {name}": HMMClassifier(smoothing=s()) for name, s in SMOOTHINGS.items()},
    **{f"emissions {name}": HMMClassifier(emissions=e()) for name, e in EMISSIONS.items()},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_of_an_estimator_comes_back_fitted(choice):
    model = CHOICES[choice]
    if "max_iter" in model.get_params():
        model.set_params(max_iter=2)
    X_train, y_train = (WORDS, SPANS) if choice == "segments" else (X, Y)
    X_train = FRAMES if choice == "emissions gaussian" else X_train
    model.fit(X_train, y_train)
    again = loads(dumps(model))
    assert same(again, model)
    assert again.predict(X_train) == model.predict(X_train)
