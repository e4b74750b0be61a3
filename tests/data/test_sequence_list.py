"""Lists of sequences are shown in part, and are lists in all else."""

import pickle

from crfkit import CRFClassifier
from crfkit.constraints import Known
from crfkit.data import LabelSequences
from crfkit.data.sequence_list import SequenceList
from crfkit.persistence import dumps, loads


def test_a_notebook_shows_the_first_sequences_escaped():
    html = LabelSequences([["<b>", "A"] * 500] * 5000)._repr_html_()
    assert len(html) < 10_000 and "<b>" not in html and "4,990 more" in html
    assert "5,000 sequences, 5,000,000 items" in html
    assert "more" not in LabelSequences([["A"]])._repr_html_()


def test_answers_of_many_items_are_shown_in_a_few_lines():
    X, y = [[{"w": "a"}, {"w": "b"}] * 50] * 20, [["B-X", "<b>"] * 50] * 20
    model = CRFClassifier().fit(X, y)
    answers = [model.predict_proba(X), model.predict_n_best(X, 30), model.predict_marginals(X),
               model.sample(X, 30, random_state=0)]  # fmt: skip
    for found in answers:
        assert isinstance(found, SequenceList) and found == found[:] and isinstance(found, list)
        html = found._repr_html_()
        assert html.count("<br>") <= 40 and "10 more" in html and "<b>" not in html
        assert len(html) < 20_000
    for found in (model.entropy(X, of="tokens"), model.confidence(X, of="spans"),
                  model.predict_span_proba(X, model.predict_spans(X))):  # fmt: skip
        assert isinstance(found, SequenceList) and len(found._repr_html_()) < 20_000
    best = answers[1][0][0]
    assert f"<li><code>{best.probability:.3f}: B-X &lt;b&gt; " in answers[1]._repr_html_()
    assert f"{answers[0][0][0, 0]:.3f} " in answers[0]._repr_html_()


def test_spans_of_models_are_such_lists():
    X, y = [[{"w": "a"}, {"w": "b"}]] * 3, [["B-X", "O"]] * 3
    model = CRFClassifier().fit(X, y)
    for found in (model.predict_spans(X), model.likely_spans(X)):
        assert isinstance(found, SequenceList)
        assert repr(found) == repr(list(found)) and found == list(found)
        again = loads(dumps(Known(found))).y
        assert pickle.loads(pickle.dumps(found)) == found == again
        assert type(again) is SequenceList and type(again[0][0]) is type(found[0][0])
