from dataclasses import replace

import pytest
from sklearn.pipeline import make_pipeline

from crfkit import CRFClassifier, SemiMarkovCRF, StructuredPerceptron, TemplateFeatures
from crfkit.metrics import Segment
from crfkit.text import AnnotatedText, annotate, from_tokens, iter_annotate, to_tokens

TEXTS = [
    AnnotatedText("Ann Lee lives in Rome.", [(0, 7, "PER"), (17, 21, "LOC")], id=1),
    AnnotatedText("Bob fell in Paris", [(0, 3, "PER"), (12, 17, "LOC")], id=2, meta={"by": "x"}),
]
X, Y = to_tokens(TEXTS)[:2]


def words():
    return TemplateFeatures(["w", "w[-1]", "w[1]"], columns=["w"])


def fitted():
    return CRFClassifier(features=words(), c2=0.01).fit(X, Y)


def test_texts_get_the_spans_of_the_model_and_their_probabilities():
    model = fitted()
    found = annotate(model, [*TEXTS, "  ", ""])
    assert [one.spans for one in found] == [*(one.spans for one in TEXTS), [], []]
    assert (found[1].id, found[1].meta, found[2].span_probabilities) == (2, {"by": "x"}, [])
    batches = iter_annotate(model, iter([*TEXTS, "  ", "", *TEXTS]), batch_size=3)
    assert list(batches) == [*found, *found[:2]]
    with pytest.raises(TypeError, match="text 4 is a int"):
        list(iter_annotate(model, ["a"] * 4 + [7], batch_size=3))
    expected = model.predict_span_proba(X)
    assert [one.span_probabilities for one in found[:2]] == [p.tolist() for p in expected]
    (other,) = annotate(model, [replace(TEXTS[1], meta={"by": "x", "relations": [1]})])
    assert other.meta == {"by": "x"}  # the relations were those of the spans before
    assert (
        from_tokens(X, model.predict(X), texts=[t.text for t in TEXTS])[0].spans == found[0].spans
    )


def test_models_of_segments_and_pipelines_annotate_too():
    spans = [[Segment(0, 2, "PER"), Segment(4, 5, "LOC")], [Segment(0, 1, "PER"), (3, 4, "LOC")]]
    segments = SemiMarkovCRF(features=words(), c2=0.01).fit(X, spans)
    pipeline = make_pipeline(words(), CRFClassifier(c2=0.01)).fit(X, Y)
    for model in (segments, pipeline):
        found = annotate(model, TEXTS)
        assert [one.spans for one in found] == [one.spans for one in TEXTS]
        assert all(0.5 < p < 1 for one in found for p in one.span_probabilities)


def test_constraints_and_features_go_to_the_model():
    model = CRFClassifier(c2=0.01).fit([[{"w": w} for w in tokens] for tokens in X], Y)
    as_dicts = {"features": lambda tokens: [{"w": token} for token in tokens]}
    assert annotate(model, TEXTS, **as_dicts)[0].spans == TEXTS[0].spans
    rule = "IOB2"
    found = annotate(model, ["Lee"], constraints=rule, **as_dicts)
    assert (
        found[0].span_probabilities
        == model.predict_span_proba([[{"w": "Lee"}]], constraints=rule)[0].tolist()
    )


def test_models_without_probabilities_say_so():
    model = StructuredPerceptron(features=words(), random_state=0).fit(X, Y)
    with pytest.raises(TypeError, match="has no probabilities.*confidence=False"):
        annotate(model, ["Ann"])
    (found,) = annotate(model, TEXTS[:1], confidence=False)
    assert (found.spans, found.span_probabilities) == (TEXTS[0].spans, None)


def test_any_object_that_predicts_tags_annotates():
    class Tagger:
        def predict(self, X):
            return [["U-PER" if token.istitle() else "O" for token in tokens] for tokens in X]

    (found,) = annotate(Tagger(), ["so Ann"], confidence=False)
    assert found.spans == [Segment(3, 6, "PER")]
