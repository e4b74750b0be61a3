"""Models, and functions of a module, for the tests of model files."""

import functools
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    MaxMarginCRF,
    PackedSequences,
    SegmentFeatures,
    SegmentLimits,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
    TemplateFeatures,
    TransitionFeatures,
    TreeFeatures,
    WindowFeatures,
    make_sequence_union,
)
from crfkit.compat import sklearn_crfsuite
from crfkit.data import PackedSegments
from crfkit.inference.beam import BeamSearch
from crfkit.persistence import dumps
from crfkit.solvers import LBFGS, SGD

ROOT = Path(__file__).resolve().parents[2]
WORDS = ["the", "a", "dog", "cat", "sleeps", "runs", "größe", "\ud800", "x:y", "猫"]


def lower(text):
    return text.lower()


def upper(text):
    return text.upper()


def sentences(seed=0, count=6):
    """Return sequences of dicts and labels."""
    rng = np.random.default_rng(seed)
    X = [
        [{"w": WORDS[i], "n": float(i) / 3, "long": i > 4} for i in rng.integers(0, len(WORDS), t)]
        for t in rng.integers(1, 6, count)
    ]
    X.append([{"w": word} for word in WORDS])
    return X, [[f"L{len(token['w']) % 3}" for token in row] for row in X]


def packed_data(seed=0):
    """Return packed sequences with sparse and dense features, and labels of many kinds."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(12, 2))
    sparse = sp.csr_array(np.where(rng.random((12, 20)) < 0.3, rng.normal(size=(12, 20)), 0.0))
    names = [f"f{i}" for i in range(22)]
    data = PackedSequences(sparse, dense, offsets=[0, 5, 7, 12], feature_names=names)
    kinds = ["B", 1, ("I", "PER"), 2.5, frozenset({"x"})]
    labels = [kinds[i] for i in rng.integers(0, len(kinds), 12)]
    return data, [labels[:5], labels[5:7], labels[7:]]


@functools.cache
def pipeline():
    """Return a fitted pipeline of a vectorizer and a CRF."""
    X, y = sentences()
    crf = CRFClassifier(solver=LBFGS(tol=1e-3), boundary_weights=True)
    return Pipeline([("words", SequenceVectorizer()), ("crf", crf)]).fit(X, y)


@functools.cache
def direct():
    """Return a CRF that was fitted on dicts."""
    return CRFClassifier(c1=0.1, decoding="posterior").fit(*sentences(1))


@functools.cache
def on_matrices():
    """Return a CRF with labels of many kinds, together with the data it was fitted on."""
    data, y = packed_data()
    return {"model": CRFClassifier(c2=0.3).fit(data, y), "data": data}


@functools.cache
def of_segments():
    """Return a model of segments that have attributes, together with the data it was fitted on."""
    data, _ = packed_data()
    starts, stops, row = np.array([(0, 2, 1), (1, 4, 0), (5, 7, 1), (8, 9, 2), (9, 12, 0)]).T
    rows = SequenceVectorizer().fit_transform([[{"text": "ab"}, {"text": "c"}, {"n": 2.5}]])
    data = data.with_segments(PackedSegments(rows, data.offsets, starts, stops, row))
    limits = SegmentLimits(forbidden=[("A", "A")], min_length={"A": 2})
    model = SemiMarkovCRF(c2=0.3, solver=LBFGS(tol=1e-3), outside="long", limits=limits)
    y = [[(0, 2, "A"), (3, 4, ("B", 1))], [(0, 2, "A")], [(2, 5, "A")]]
    return {"model": model.fit(data, y), "data": data}


@functools.cache
def templates():
    """Return a fitted pipeline of templates of all kinds, also of steps, side by side."""
    X, y = sentences(3)
    expressions = ["w", "w[-1]|w", "affixes(w, 2)", "ngrams(w, 2)", "transition(shape(w))", "bos()"]
    union = make_sequence_union(
        TemplateFeatures(expressions, columns=["w", "long"], min_freq=2),
        WindowFeatures(),
        TransitionFeatures(TemplateFeatures("U:%x[0,0]\nU:%x[1,0]", syntax="crfpp")),
    )
    return Pipeline([("features", union), ("crf", CRFClassifier())]).fit(as_tuples(X), y)


def as_tuples(X):
    """Return dicts as tuples of strings."""
    return [[(token["w"], str(token.get("long", "?"))) for token in row] for row in X]


@functools.cache
def others():
    """Return fitted models and transformers of all other kinds, small ones."""
    X, y = sentences(4, 4)
    tags = [["B-X", *["I-X"] * (len(row) - 1)] for row in y]
    words = ["w in known", "w", "shape(w)"]
    union = make_sequence_union(
        TemplateFeatures(words, columns=["w", "long"], lexicons={"known": ["a dog", "the"]}),
        SegmentFeatures(
            ["seg.text", "seg.text in known", "seg.length|seg.shape", "edit(seg.text, known, 0.8)"],
            columns=["w", "long"], lexicons={"known": ["a dog", "the"]}, max_length=3,
        ),
    )  # fmt: skip
    heads = [[token | {"head": n} for n, token in enumerate(row)] for row in X]
    few, some = {"max_iter": 2}, SGD(max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are enough here
        return [
            StructuredPerceptron(averaging="vote", **few).fit(X, y),
            StructuredPerceptron(search=BeamSearch(), **few).fit(X, y),
            MaxMarginCRF(kernel="rbf", **few).fit(X, y),
            MaxMarginCRF(**few).fit(X, y),
            CRFClassifierCV(c2s=[1.0], cv=2, **few).fit(X, y),
            CRFClassifier(solver=some).partial_fit(X, y, classes=["L0", "L1", "L2"]),
            CRFClassifier(decoding="posterior", c1=0.1, **few).fit(X, tags),
            SemiMarkovCRF(**few).fit(X, tags),
            sklearn_crfsuite.CRF(max_iterations=2).fit(X, y),
            Pipeline([("features", union), ("crf", SemiMarkovCRF(**few))]).fit(as_tuples(X), tags),
            Pipeline([("heads", TreeFeatures(SequenceVectorizer(), parent="head", first=1)),
                      ("crf", CRFClassifier(**few))]).fit(heads, y),
            union,
            WindowFeatures().fit(as_tuples(X)),
            SequenceVectorizer().fit(sentences()[0]),
        ]  # fmt: skip


def predictions(loaded):
    """Return what a loaded object of this module predicts."""
    if isinstance(loaded, dict):
        model, X = loaded["model"], loaded["data"]
    else:
        model, X = loaded, sentences(2)[0]
        first = model.steps[0][0] if isinstance(model, Pipeline) else type(model).__name__
        if first in ("features", "SequenceUnion", "WindowFeatures"):
            X = as_tuples(X)
        elif first == "heads":
            X = [[token | {"head": n} for n, token in enumerate(row)] for row in X]
    if not hasattr(model, "predict"):
        return model.transform(X)
    proba = model.predict_proba(X) if hasattr(model, "predict_proba") else []
    return model.predict(X), [row.tobytes() for row in proba]


def made():
    """Return all models of this module."""
    return [pipeline(), direct(), on_matrices(), templates(), of_segments(), *others()]


@functools.cache
def stored():
    """Return the files of all models of this module, as bytes."""
    return [dumps(model) for model in made()]
