"""Pictures show what they are said to."""

import builtins

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from crfkit import CRFClassifier, HMMClassifier, SemiMarkovCRF, StructuredPerceptron  # noqa: E402
from crfkit.inspection import (  # noqa: E402
    EntityConfusionDisplay,
    LearningCurveDisplay,
    ReliabilityDisplay,
    TrainingDisplay,
    TransitionsDisplay,
    WeightsDisplay,
)

X = [[{"w": "in"}, {"w": "New"}, {"w": "York"}], [{"w": "Ada"}, {"w": "in"}, {"w": "York"}]] * 4
Y = [["O", "B-LOC", "I-LOC"], ["B-PER", "O", "B-LOC"]] * 4


@pytest.fixture(scope="module")
def model():
    return CRFClassifier(early_stopping=True, random_state=0).fit(X, Y)


@pytest.fixture(autouse=True)
def no_figures_are_left():
    yield
    plt.close("all")


def test_transitions_are_drawn_from_rows_to_columns_and_blank_where_there_is_none(model):
    display = TransitionsDisplay.from_estimator(model)
    assert display.labels == ["O", "B-LOC", "I-LOC", "B-PER"]
    drawn = display.im_.get_array()
    place = list(model.classes_).index
    for i, a in enumerate(display.labels):
        for j, b in enumerate(display.labels):
            weight = model.transitions_[place(a), place(b)]
            assert drawn.mask[i, j] == (weight == 0.0)
            assert weight == 0.0 or drawn[i, j] == weight
            assert (display.text_[i, j] is None) == (weight == 0.0)
    some = TransitionsDisplay.from_estimator(model, labels=["B-LOC", "O"], ax=display.ax_)
    assert some.ax_ is display.ax_ and some.transitions.shape == (2, 2)
    many = TransitionsDisplay(np.ones((40, 40)), [f"${i}" for i in range(40)]).plot()
    assert many.text_ is None
    many.figure_.canvas.draw()
    letters = TransitionsDisplay(np.ones((5, 5)), list("abcde")).plot()  # fit without being turned
    turned = [display.ax_.get_xticklabels()[0].get_rotation() for display in (many, letters)]
    assert turned == [90.0, 0.0]
    with pytest.raises(ValueError, match="does not know 'X'"):
        TransitionsDisplay.from_estimator(model, labels=["X"])


def test_weights_have_a_panel_for_each_label(model):
    display = WeightsDisplay.from_estimator(model, labels=["O", "B-PER"], n=2)
    assert [ax.get_title() for ax in display.axes_] == ["O", "B-PER"]
    widths = [bar.get_width() for bar in display.axes_[1].patches]
    assert widths == [w.weight for w in display.weights["B-PER"]]
    single = display.figure_.add_subplot()
    assert [ax.get_title() for ax in display.plot(ax=single).axes_] == ["O", "B-PER"]
    assert display.figure_ is single.figure and not single.axison  # its place is divided
    three = WeightsDisplay.from_estimator(model, labels=["O", "B-LOC", "B-PER"])
    with pytest.raises(ValueError, match="3 labels, but 2 Axes"):
        three.plot(ax=three.axes_[:2])
    with pytest.raises(ValueError, match="no place in a grid"):
        three.plot(ax=display.figure_.add_axes((0, 0, 1, 1)))
    segments = SemiMarkovCRF().fit(X, Y)
    (lengths,) = WeightsDisplay.from_estimator(segments, labels=["LOC"], kind="length").axes_
    shown = [text.get_text() for text in lengths.get_yticklabels()]
    assert shown == ["length 1", "length 2"]  # though the weight of 2 is the larger one
    found = segments.length_scores_[:, segments.classes_.tolist().index("LOC")]
    assert abs(found[1]) > abs(found[0])


def test_training_shows_what_the_log_knows(model):
    display = TrainingDisplay.from_estimator(model, x="seconds")
    assert [ax.get_ylabel() for ax in display.axes_][0::2] == ["objective", "validation score"]
    values = display.ax_.lines[0].get_ydata()
    assert list(values) == [record.value for record in model.training_log_]
    (only,) = display.plot(ax=display.axes_[0], panels=["validation score"]).axes_
    assert only.get_ylabel() == "validation score"
    assert len(display.plot(ax=only).axes_) == 3
    with pytest.raises(ValueError, match="2 Axes for 3 panels .'objective', "):
        display.plot(ax=display.axes_[:2])
    with pytest.raises(ValueError, match="choose one of"):
        display.plot(panels=["gap"])
    perceptron = TrainingDisplay.from_estimator(StructuredPerceptron(max_iter=2).fit(X, Y))
    assert "mistakes" in [ax.get_ylabel() for ax in perceptron.axes_]
    with pytest.raises(ValueError, match="has no log"):
        TrainingDisplay.from_estimator(HMMClassifier().fit([["a"]], [["A"]]))


def test_the_confusion_of_entities_tells_types_ends_missed_and_spurious():
    true = ["B-A", "I-A", "O", "B-A", "O", "B-B", "O", "B-B", "I-B", "O"]
    pred = ["B-A", "I-A", "O", "B-B", "O", "O", "O", "O", "B-B", "B-A"]
    display = EntityConfusionDisplay.from_predictions([true], [pred])
    frame = display.to_frame()
    assert frame.loc["A"].tolist() == [1, 1, 0, 0]
    assert frame.loc["B"].tolist() == [0, 0, 1, 1]
    assert frame.loc["spurious"].tolist() == [1, 0, 0, 0]
    assert display.text_[0, 0].get_text() == "1" and display.text_[0, 2] is None
    with pytest.raises(ValueError, match="1 sequences, but 2"):
        EntityConfusionDisplay.from_predictions([true], [pred, pred])
    with pytest.raises(ValueError, match="sequence 0: y_true has 10 labels, y_pred 9"):
        EntityConfusionDisplay.from_predictions([true], [pred[:9]])


def test_the_confusion_of_a_model_reads_labels_and_segments_alike(model):
    spans = [[(1, 3, "LOC")], [(0, 1, "PER"), (2, 3, "LOC")]] * 4
    both = [EntityConfusionDisplay.from_estimator(model, X, y).confusion for y in (Y, spans)]
    np.testing.assert_array_equal(*both)
    assert both[0][:-1].sum() == 12
    with pytest.raises(ValueError, match="sequence 0: y has 1 labels for 3 tokens"):
        EntityConfusionDisplay.from_estimator(model, X[:1], [["O"]])


def test_a_learning_curve_counts_sequences():
    display = LearningCurveDisplay.from_estimator(
        CRFClassifier(), X, Y, cv=2, train_sizes=[2, 4], scoring="entity_f1"
    )
    assert display.lines_["test"].get_xdata().tolist() == [2, 4]
    assert display.ax_.get_ylabel() == "entity F1"
    ax = display.plot(score_type="test").ax_
    other = LearningCurveDisplay.from_estimator(
        CRFClassifier(), X, Y, cv=2, train_sizes=[2, 4], name="weak", ax=ax, score_type="test"
    )
    assert list(other.lines_) == ["test"]
    assert [line.get_label() for line in ax.lines] == ["test", "weak"]
    assert len({line.get_color() for line in ax.lines}) == 2


def test_without_matplotlib_an_error_says_what_to_install(monkeypatch, model):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"WeightsDisplay needs matplotlib.*crfkit\[plot\]"):
        WeightsDisplay.from_estimator(model)


def test_reliability_diagrams_stand_beside_the_others():
    from crfkit.calibration import ReliabilityDisplay as Original

    assert ReliabilityDisplay is Original


def test_the_last_line_of_a_cell_prints_no_address(model):
    assert repr(TrainingDisplay.from_estimator(model)) == "TrainingDisplay(name='CRFClassifier')"
    drawn = ReliabilityDisplay.from_predictions([0.9, 0.4], [True, False])
    assert repr(drawn) == "ReliabilityDisplay(name=None)"
