"""Each model answers what it is asked to show, or says what to do instead."""

import numpy as np
import pandas as pd
import pytest

import crfkit.inspection as shown
from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    FrameClassifier,
    GraphCRF,
    HMMClassifier,
    MaxMarginCRF,
    MEMMClassifier,
    Segments,
    SemiMarkovCRF,
    StructuredPerceptron,
    TokenClassifier,
)
from crfkit.calibration import CalibratedSequenceClassifier
from crfkit.collective import NodeClassifier
from crfkit.compat.sklearn_crfsuite import CRF

pytest.importorskip("matplotlib").use("Agg")
X = [[{"w": w} for w in line.split()] for line in ["the dog runs", "cats", "a cat"] * 3]
Y = [["B-D", "B-N", "O"], ["B-N"], ["B-D", "B-N"]] * 3
WORDS = [[token["w"] for token in own] for own in X]
GRAPHS = [(own, [(0, t) for t in range(1, len(own))]) for own in X]
NUMBERS = [np.array([[len(w), 1.0] for w in own]) for own in WORDS]
FRAME = pd.DataFrame([
    {"line": s, "w": w, "tag": tag}
    for s, own in enumerate(WORDS) for w, tag in zip(own, Y[s], strict=True)
])  # fmt: skip
MODELS = {
    "chain": (CRFClassifier(), X),
    "label by label": (MEMMClassifier(), X),
    "tokens": (TokenClassifier(), X),
    "hidden, order 0": (HMMClassifier(order=0), WORDS),
    "hidden": (HMMClassifier(), WORDS),
    "hidden, order 2": (HMMClassifier(order=2), WORDS),
    "densities": (HMMClassifier(emissions="gaussian"), NUMBERS),
    "graphs": (GraphCRF(), GRAPHS),
    "segments": (SemiMarkovCRF(), X),
    "margin": (MaxMarginCRF(), X),
    "kernel": (MaxMarginCRF(kernel="rbf"), NUMBERS),
    "perceptron": (StructuredPerceptron(), X),
    "votes": (StructuredPerceptron(averaging="vote"), X),
    "perceptron of segments": (StructuredPerceptron(structure=Segments()), X),
    "penalty chosen": (CRFClassifierCV(c2s=[0.1, 1.0], cv=2), X),
    "calibrated": (CalibratedSequenceClassifier(CRFClassifier(), method="isotonic", cv=2), X),
    "drop-in": (CRF(), X),
    "frames": (FrameClassifier(by="line", label="tag"), FRAME),
    "neighbors": (NodeClassifier(), GRAPHS),
}
QUESTIONS = {
    "weights": lambda m, X, y: shown.weights(m)._repr_html_() + str(shown.weights(m).to_frame()),
    "explain": lambda m, X, y: str(shown.explain(m, X, 0)) + shown.explain(m, X, 0).to_html(),
    "without": lambda m, X, y: shown.explain(m, X, 0).without(),
    "transitions": lambda m, X, y: shown.TransitionsDisplay.from_estimator(m),
    "strongest": lambda m, X, y: shown.WeightsDisplay.from_estimator(m),
    "training": lambda m, X, y: shown.TrainingDisplay.from_estimator(m),
    "entities": lambda m, X, y: shown.EntityConfusionDisplay.from_estimator(m, X, y),
    "reliability": lambda m, X, y: shown.ReliabilityDisplay.from_estimator(m, X, y),
    "spans": lambda m, X, y: shown.show_spans(m, X, y)._repr_html_(),
    "tokens": lambda m, X, y: shown.show_tokens(m, X, y)._repr_html_(),
}
COUNTED = {"training": "models that are counted"}
SCORES = {"without": "use CRFClassifier", "reliability": "use CRFClassifier"}
NO_SPANS = "show_tokens shows them"
NODES = "ask its classifier of nodes, model.estimator_"
REFUSED = {
    "hidden, order 0": COUNTED,
    "hidden": COUNTED,
    "hidden, order 2": COUNTED,
    "densities": COUNTED,
    "graphs": {"entities": NO_SPANS, "spans": NO_SPANS},
    "margin": SCORES,
    "kernel": SCORES | {"strongest": "choose one of .'support token', 'transition'"},
    "perceptron": SCORES,
    "votes": SCORES | dict.fromkeys(["explain", "without"], "use averaging='average'"),
    "perceptron of segments": SCORES,
    "neighbors": dict.fromkeys(QUESTIONS.keys() - {"reliability"}, NODES),
}


@pytest.mark.parametrize("name", MODELS)
def test_questions_are_answered_or_say_what_to_ask(name):
    model, given = MODELS[name]
    model.fit(*((given,) if given is FRAME else (given, Y)))
    y = FRAME["tag"] if given is FRAME else Y
    for question, ask in QUESTIONS.items():
        message = REFUSED.get(name, {}).get(question)
        one = question in ("explain", "without")
        data = (given[given["line"] == 0] if given is FRAME else given[0]) if one else given
        if message is None:
            ask(model, data, y)
        else:
            with pytest.raises((TypeError, ValueError, AttributeError), match=message):
                ask(model, data, y)
    pytest.importorskip("matplotlib.pyplot").close("all")
