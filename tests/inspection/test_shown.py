"""Spans and tokens in color: marked, escaped, bounded."""

import re

import pytest
from sklearn.pipeline import make_pipeline

from crfkit import UNLABELED, CRFClassifier, FrameClassifier, MaxMarginCRF, SequenceVectorizer
from crfkit.calibration import CalibratedSequenceClassifier
from crfkit.constraints import Known
from crfkit.inspection import explain, show_spans, show_tokens

X = [[["w=in"], ["w=New"], ["w=<York>"]], [["w=Ada"], ["w=in"], ["w=<York>"]]] * 4
Y = [["O", "B-LOC", "I-LOC"], ["B-PER", "O", "B-LOC"]] * 4


@pytest.fixture(scope="module")
def model():
    return CRFClassifier().fit(X, Y)


def test_predicted_spans_have_their_probabilities_and_wrong_ones_are_marked(model):
    assert model.predict(X[:1]) == Y[:1]
    shown = show_spans(model, X, [["O", "B-LOC", "O"], Y[1]] * 4, n=2)
    (line, other) = shown.lines
    (span,), (true,) = line.predicted, line.true
    assert span.probability == pytest.approx(model.predict_span_proba(X[:1])[0][0])
    assert (span.start, span.stop, span.is_wrong) == (1, 3, True)
    assert (true.start, true.stop, true.is_wrong) == (1, 2, True)
    assert other.is_right and shown.n_left_out == 6
    assert show_spans(model, X[1:2])._color["PER"] == show_spans(model, [X[1][:1]])._color["PER"]
    assert str(shown).splitlines()[1] == "   true: in [New | LOC ✗] <York>"
    html = shown.to_html()
    assert "<York>" not in html and "&lt;York&gt;" in html and "6 more sequences" in html
    assert not re.search(r"<script|https?://|src=", html)
    (line,) = show_spans(model, X[:1], constraints=Known([[(1, 2, "LOC")]])).lines
    assert [span[:3] for span in line.predicted][:1] == [(1, 2, "LOC")]
    assert line.predicted[0].probability == pytest.approx(1.0)
    (line,) = show_tokens(model, X[:1], constraints=Known([["O", "O", "B-LOC"]])).lines
    assert [mark.label for mark in line.predicted] == ["O", "O", "B-LOC"]


def test_tokens_are_shown_with_true_labels_below_wrong_ones(model, tmp_path):
    shown = show_tokens(model, X[:1], [["O", UNLABELED, {"B-PER", "O"}]])
    assert [mark.is_wrong for mark in shown.lines[0].predicted] == [False, False, True]
    shown.save(tmp_path / "tokens.html")
    assert "2 of 3 tokens are right" in (tmp_path / "tokens.html").read_text("utf-8")
    partly = show_tokens(None, [["a", "b", "c"]], [[UNLABELED, "B-X", {"I-X", "O"}]])
    assert str(partly) == "0  a/? b/B-X c/I-X or O"
    assert partly._repr_html_().count("<small>?</small>") == 1  # and no color in the legend
    assert re.findall(r'class="tok" >', partly._repr_html_()) == ['class="tok" >']
    with pytest.raises(ValueError, match="sequence 0: y has 1 labels for 3 tokens"):
        show_tokens(model, X[:1], [["O"]])


@pytest.mark.parametrize(
    ("shown", "options", "message"),
    [
        (show_spans, {"y": [["O", "O"]]}, "sequence 0: y has 2 labels for 3 tokens"),
        (show_tokens, {"y": [["O"] * 4]}, "sequence 0: y has 4 labels for 3 tokens"),
        (show_spans, {"y": [[(2, 4, "LOC")]]}, "is not within its 3 tokens"),
        (show_spans, {"tokens": [["in", "New"]]}, r"tokens has \[2\] words, but X has \[3\]"),
    ],
)
def test_truth_and_words_must_fit_the_tokens(model, shown, options, message):
    for given in (model, None):
        if given is not None or "y" in options:
            with pytest.raises(ValueError, match=message):
                shown(given, X[:1], **options)


def test_sequences_are_read_as_far_as_they_are_shown(model):
    shown = show_spans(model, iter(X), n=3)
    assert len(shown.lines) == 3 and shown.n_left_out is None
    assert show_spans(model, SequenceVectorizer().fit_transform(X), n=3).n_left_out == 5
    assert show_spans(MaxMarginCRF().fit(X, Y), X[:1]).lines[0].predicted[0].probability is None
    segments = show_spans(None, [["a"] * 4], [[(0, 3, "X"), (1, 2, "Y")]])
    assert str(segments) == "0  [a [a | Y] a | X] a"
    assert len(show_spans(None, [["a"] * 9999], [["O"] * 9999])._repr_html_()) < 10_000
    with pytest.raises(ValueError, match="nothing to show"):
        show_spans(None, X)


def test_calibrated_models_tell_their_calibrated_confidence():
    pipeline = make_pipeline(SequenceVectorizer(), CRFClassifier())
    model = CalibratedSequenceClassifier(pipeline, method="isotonic", cv=2).fit(X, Y)
    (span,) = show_spans(model, X[:1]).lines[0].predicted
    assert span.probability == pytest.approx(model.confidence(X[:1], of="spans")[0][0])


def test_rows_of_a_frame_are_shown_and_explained():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({
        "s": [0, 0, 0, 1, 1, 1], "w": ["in", "New", "York", "Ada", "in", "York"],
        "y": [*Y[0], *Y[1]],
    })  # fmt: skip
    model = FrameClassifier(by="s", label="y").fit(frame)
    assert str(show_spans(model, frame, frame.y)).splitlines()[0].startswith("0  in [New York")
    why = explain(model, frame[frame.s == 1], 0)
    assert why.tokens == ["Ada", "in", "York"] and why.labels[0] == "B-PER"
