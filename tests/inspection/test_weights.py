"""Tables of weights: what is in them, and how little they show."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from crfkit import CRFClassifier, HMMClassifier, SemiMarkovCRF, SequenceVectorizer
from crfkit.compat import sklearn_crfsuite
from crfkit.inspection import weights

X = [[{"w": "the"}, {"w": "<dog>"}], [{"w": "a"}, {"w": "<dog>"}, {"w": "barks"}]] * 2
Y = [["D", "N"], ["D", "N", "V"]] * 2


@pytest.fixture(scope="module")
def chain():
    return CRFClassifier(boundary_weights=True).fit(X, Y)


def test_the_frame_has_each_weight_that_is_not_0(chain):
    table = weights(chain)
    frame = table.to_frame()
    state = frame[frame.kind == "attribute"]
    found = dict(zip(zip(state.attribute, state.label, strict=True), state.weight, strict=True))
    assert found == dict(chain.state_features_)
    between = table.to_frame("transition")
    pairs = zip(between.from_label, between.label, strict=True)
    assert dict(zip(pairs, between.weight, strict=True)) == dict(chain.transition_features_)
    starts = table.to_frame("start")
    assert starts.weight.tolist() == chain.start_weights_.tolist()
    assert len(table) == len(frame) == sum(table.counts.values())


def test_the_strongest_come_first_by_label_kind_attribute_and_sign(chain):
    table = weights(chain)
    every = table.top(10**6)
    assert [abs(w.weight) for w in every] == sorted((abs(w.weight) for w in every), reverse=True)
    assert table.top(3) == every[:3] and len(every) == len(table)
    assert table.top(99, label="N", kind="attribute") == [
        w for w in every if w.label == "N" and w.kind == "attribute"
    ]
    assert {w.label for w in table.top(99, label="N", kind="transition")} == {"N"}
    assert all(w.weight < 0 for w in table.top(99, by="negative"))
    assert {w.attribute for w in table.top(99, attribute="w:a")} == {"w:a"}
    with pytest.raises(ValueError, match="none of the model, which has D, N, V"):
        table.top(label="X")
    with pytest.raises(ValueError, match="kind"):
        table.to_frame("length")


def test_models_are_found_within_pipelines_searches_and_drop_ins(chain):
    pipeline = make_pipeline(SequenceVectorizer(), CRFClassifier(boundary_weights=True))
    search = GridSearchCV(pipeline, {"crfclassifier__c2": [0.1]}, cv=2).fit(X, Y)
    found = weights(search).to_frame()
    assert found.attribute.tolist() == weights(chain).to_frame().attribute.tolist()
    drop_in = sklearn_crfsuite.CRF(c2=0.1).fit(X, Y)
    assert dict(drop_in.state_features_) == {
        (w.attribute, w.label): w.weight for w in weights(drop_in).top(99, kind="attribute")
    }
    with pytest.raises(TypeError, match="no fitted model of crfkit"):
        weights(object())


def test_segments_and_hidden_models_have_their_own_kinds():
    segments = SemiMarkovCRF().fit(X, [["B-D", "O"], ["B-D", "I-D", "O"]] * 2)
    assert {"attribute", "length", "transition"} <= set(weights(segments).counts)
    hidden = HMMClassifier().fit([["a", "b"], ["b", "a", "a"]], [["X", "Y"], ["Y", "X", "X"]])
    logs = weights(hidden).transitions()
    np.testing.assert_array_equal(logs, np.log(hidden.transition_probabilities_))


def test_what_is_forbidden_is_in_the_frame_but_not_among_the_strongest(chain):
    model = CRFClassifier().fit(X, Y)
    model.transitions_ = model.transitions_.copy()
    model.transitions_[0, 2] = -np.inf
    table = weights(model)
    assert np.isneginf(table.transitions()[0, 2])
    assert np.isneginf(table.to_frame().weight).sum() == 1
    assert np.isfinite([w.weight for w in table.top(99)]).all()
    assert np.isnan(table.transitions()[2, 0])


def test_a_cell_is_not_flooded_and_names_are_escaped(chain):
    model = CRFClassifier().fit(X, Y)
    random = np.random.RandomState(0)
    model.coef_ = sp.csr_array(random.standard_normal((4000, 3)))
    model._feature_names = np.array(["<b>" + "x" * 500 + str(i) for i in range(4000)], object)
    table = weights(model)
    assert len(table._repr_html_()) < 30_000 and len(str(table)) < 3_000
    assert "<b>" not in table._repr_html_()
    assert len(table.top(4000)._repr_html_()) < 300_000
    assert repr(table.top(4000)) == str(table.top(4000))  # no numbers to the last digit
    assert "w:&lt;dog&gt;" in weights(chain)._repr_html_()
