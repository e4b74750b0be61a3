"""Labels that are withheld: how they are written, and what cannot be used."""

import numpy as np
import pytest
from sklearn.base import clone

from crfkit import CRFClassifier, SemiMarkovCRF
from crfkit.inference import Abstain, DecodedLabels, ExpectedSpans
from crfkit.labels.base import TokenCoding
from crfkit.labels.segmentation import SegmentCoding
from crfkit.persistence import dumps, loads
from crfkit.structures import Chain
from tests.oracles import random_scores

ENDS = np.array([0, 4, 6])
TAGS = DecodedLabels(np.array(["B-X", "I-X", "O"], object), TokenCoding())
RUNS = DecodedLabels(np.array(["X", "Y", "O"], object), TokenCoding())
SEGMENTS = DecodedLabels(np.array(["O", "X"], object), SegmentCoding("IOBES", "O"))
SEGMENTS_OF_ALL = DecodedLabels(np.array(["X", "Y"], object), SegmentCoding("runs", "O"))


@pytest.mark.parametrize(
    ("labels", "codes", "label", "expected"),
    [
        (TAGS, [~0, ~1, 2, 0, 0, 1], "?", [["B-?", "I-?", "O", "B-X"], ["B-X", "I-X"]]),
        (TAGS, [~0, ~1, 2, 0, 0, 1], "O", [["O", "O", "O", "B-X"], ["B-X", "I-X"]]),
        (RUNS, [~0, ~0, 2, 1, 1, 1], None, [[None, None, "O", "Y"], ["Y", "Y"]]),
        (SEGMENTS, [~3, ~1, 2, ~3, 3, 1], "?", [["B-?", "E-?", "O", "S-?"], ["B-X", "E-X"]]),
        (SEGMENTS, [~3, ~1, 2, 3, 3, 1], "O", [["O", "O", "O", "S-X"], ["B-X", "E-X"]]),
        (SEGMENTS_OF_ALL, [~2, ~0, 3, 1, 2, 0], "O", [["O", "O", "Y", "Y"], ["X", "X"]]),
    ],
)
def test_a_span_that_is_withheld_has_another_label(labels, codes, label, expected):
    decoder = Abstain(label=label, of="spans")
    assert decoder.written(np.array(codes, np.int32), labels, ENDS) == expected


@pytest.mark.parametrize("labels", [TAGS, SEGMENTS])
def test_a_token_that_is_withheld_has_the_label_as_it_is(labels):
    codes = np.array([2, 2, ~3 if labels is SEGMENTS else ~0, 2, 2, ~2], np.int32)
    found = Abstain(label=("no", 1)).written(codes, labels, ENDS)
    assert found == [["O", "O", ("no", 1), "O"], ["O", ("no", 1)]]


X = [[["the"], ["Nile"]], [["the"], ["dog"]], [["the"], ["cat"], ["Nile"]]] * 3
Y = [["O", "B-LOC"], ["O", "O"], ["O", "O", "B-LOC"]] * 3
NEW = [[["a"], ["Nile"]], [["Rhine"]], []]


@pytest.mark.parametrize("estimator", [CRFClassifier(c2=0.1), SemiMarkovCRF(c2=0.1)])
def test_a_model_withholds_what_is_doubtful(estimator):
    model = estimator.fit(X, Y)
    sure, confidence = model.predict(NEW), model.confidence(NEW)
    assert sure[0] == ["O", "B-LOC"]
    model.set_params(decoding=Abstain(threshold=0.999, label="?", of="tokens"))
    assert model.predict(NEW) == [["?", "?"], ["?"], []]
    np.testing.assert_array_equal(model.confidence(NEW), confidence)  # of what would be said
    model.set_params(decoding__threshold=0.0)
    assert model.predict(NEW) == sure
    model.set_params(decoding__threshold=0.999, decoding__of="spans")
    assert model.predict(NEW)[0] == ["O", "B-?"]
    again = loads(dumps(model))
    assert again.predict(NEW) == model.predict(NEW)
    assert repr(clone(model).decoding) == repr(model.decoding)


def test_each_of_the_named_decoders_has_parameters_for_a_grid():
    crf = CRFClassifier(decoding=Abstain(ExpectedSpans(threshold=0.4), of="spans")).fit(X, Y)
    low = crf.set_params(decoding__decoding__threshold=0.01, decoding__threshold=0.0)
    assert low.predict(NEW)[1] == ["B-LOC"]
    assert low.set_params(decoding__decoding__threshold=0.9).predict(NEW)[1] == ["O"]
    assert low.set_params(decoding="spans").predict(NEW)[0] == ["O", "B-LOC"]


@pytest.mark.parametrize(
    ("decoder", "error", "message"),
    [
        (Abstain(of="words"), ValueError, "of='words' is not known"),
        (Abstain(threshold="high"), TypeError, "threshold='high' must be a number"),
        (Abstain(decoding="best"), ValueError, "decoding='best' is not known"),
        (Abstain(decoding=3), TypeError, "the method 'decode'"),
        (Abstain(Abstain()), ValueError, "decoding is an Abstain itself"),
        (Abstain(of="spans"), ValueError, "labels, which are not given"),
        (ExpectedSpans(), ValueError, "labels, which are not given"),
        (ExpectedSpans(threshold=0.0), ValueError, "above 0 and below 1"),
        (ExpectedSpans(threshold=None), TypeError, "threshold=None must be a number"),
    ],
)
def test_what_cannot_be_used_is_told(decoder, error, message):
    with pytest.raises(error, match=message):
        decoder.decode(Chain(), random_scores(0, [2], 3))
