"""Segmentations of which some segments are known, and the rest is open."""

import copy
import pickle

import numpy as np
import pytest

from crfkit import UNLABELED, SegmentLimits, SemiMarkovCRF
from crfkit.labels.segmentation import read_segments
from crfkit.metrics import segment_f1_score
from tests.estimators.segmentations import X as SENTENCES
from tests.estimators.segmentations import enumerated

X = SENTENCES[1:]
# Of each sequence some segments, and what is not known.
PARTS = [
    [(0, 2, {"PER", "LOC"}), (3, 4, "LOC")],
    [(0, 3, UNLABELED)],
    [(0, 2, "PER"), (3, 5, UNLABELED)],
    [(0, 1, UNLABELED), (1, 3, "PER")],
]
OPTIONS = {
    "single": {},
    "long": {"outside": "long"},
    "limits": {"limits": SegmentLimits(min_length={"PER": 2}, forbidden=[("LOC", "PER")])},
}


def agrees(found, part, length, long):
    """Whether a segmentation has the segments that are known, and none runs into these."""
    options = {(i, j): x if isinstance(x, set) else {x} for i, j, x in part if x is not UNLABELED}
    kinds = np.full(length, "outside")
    for start, stop, label in part:
        kinds[start:stop] = "hidden" if label is UNLABELED else "known"
    outside, count = kinds == "outside", 0
    for start, stop, label in found:
        if (start, stop) in options:
            count += label in options[start, stop]
        elif "known" in kinds[start:stop] or (outside[start:stop].any() and label != "O"):
            return False
        elif long and start and outside[start - 1] and outside[start]:  # these are one run
            return False
    return count == len(options)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_loss_is_that_of_all_segmentations_that_agree_with_what_is_known(options):
    model = SemiMarkovCRF(length=None, c2=0.5, max_length=3, max_iter=4, **options)
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(X, PARTS)
    log_proba = []
    for tokens, part in zip(X, PARTS, strict=True):
        paths, shares = enumerated(model, tokens)
        long = options.get("outside") == "long"
        kept = [agrees(path, part, len(tokens), long) for path in paths]
        assert 0 < sum(kept) < len(kept) or part[0][1] == len(tokens)
        log_proba.append(np.log(shares[kept].sum()))
    weights = [model.coef_, model.first_coef_, model.last_coef_, model.single_coef_]
    steps = model.transitions_[np.isfinite(model.transitions_)]
    penalty = sum((each**2).sum() for each in weights) + (steps**2).sum()
    np.testing.assert_allclose(model.objective_, 0.5 * penalty - sum(log_proba), rtol=1e-9)
    if "outside" not in options:  # where they may be more, runs of tokens outside may be cut
        asked = model.sequence_log_proba(X[1:], PARTS[1:])
        np.testing.assert_allclose(asked, log_proba[1:], atol=1e-12)


def test_tags_and_spans_say_the_same():
    tags = [
        ["B-PER", "I-PER", "O", "B-LOC"],
        [UNLABELED] * 3,
        ["B-PER", "I-PER", "O", UNLABELED, UNLABELED, "O"],
        [UNLABELED, "B-PER", "I-PER"],
    ]
    spans = [[(0, 2, "PER"), (3, 4, "LOC")], *PARTS[1:]]
    rest = [spans[0], [UNLABELED], [(2, 3, "O"), (0, 2, "PER"), UNLABELED, (5, 6, "O")]]
    rest.append([UNLABELED, (1, 3, "PER")])
    for options in OPTIONS.values():
        one, other = (SemiMarkovCRF(c2=0.5, **options).fit(X, y) for y in (tags, spans))
        np.testing.assert_array_equal(one.coef_.toarray(), other.coef_.toarray())
        np.testing.assert_array_equal(one.transitions_, other.transitions_)
        assert one.score(X, tags) == other.score(X, spans)
    offsets = np.cumsum([0, *map(len, X)])
    for y in (tags, spans, rest):
        read = read_segments(y, offsets, "auto", "O")
        assert read.coding.write_known(read.targets(offsets, False), read.classes, offsets) == tags
        assert read.coding.as_predicted(y, offsets) == tags


def test_what_has_no_known_segment_changes_nothing():
    full = [[(0, 2, "PER"), (3, 4, "LOC")], [(0, 1, "LOC")], [(0, 2, "PER")], [(1, 3, "PER")]]
    hidden = copy.copy(full)
    hidden[1] = [(0, 3, UNLABELED)]
    one = SemiMarkovCRF(c2=0.5).fit(X, hidden)
    other = SemiMarkovCRF(c2=0.5).fit([X[0], *X[2:]], [full[0], *full[2:]])
    assert pickle.loads(pickle.dumps(one)).predict(X) == other.predict(X)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[(0, 3, UNLABELED)]], "no token of y has a known label, all are UNLABELED"),
        ([[UNLABELED] * 3], "no token of y has a known label, all are UNLABELED"),
        ([[(0, 2, "A"), (1, 3, UNLABELED)]], "overlap"),
        ([[(0, 2, set())]], "sequence 0 of y: a set of labels is empty"),
        ([["B-A", {"B-A", "O"}, "O"]], "position 1: .* is a set of labels, .* give spans"),
        ([["B-A", UNLABELED, "I-A"]], "position 2: 'I-A' may not follow 'O' .* label all tokens"),
    ],
)
def test_what_cannot_be_read_is_told(y, message):
    with pytest.raises(ValueError, match=message):
        SemiMarkovCRF(scheme="auto" if "I-A" not in y[0] else "IOB2").fit(X[1:2], y)


def words(rng, count):
    """Return sequences of segments whose words tell their label, if one has seen them."""
    tokens, spans = [], []
    for _ in range(count):
        sequence, found = [], []
        for label in rng.permutation(["A", "B", "O", "O"]):
            size = rng.integers(1, 4)
            found += [] if label == "O" else [(len(sequence), len(sequence) + size, str(label))]
            sequence += [{"w": f"{label}{rng.integers(60)}"} for _ in range(size)]
        tokens.append(sequence)
        spans.append(found)
    return tokens, spans


def test_known_segments_teach_more_than_none_and_than_all_others_being_outside():
    rng = np.random.default_rng(0)
    (tokens, spans), (new, expected) = words(rng, 90), words(rng, 40)
    one = [each if s < 10 else [each[s % 2]] for s, each in enumerate(spans)]
    open_ = [each if s < 10 else [*each, UNLABELED] for s, each in enumerate(one)]
    scores = [
        segment_f1_score(expected, SemiMarkovCRF(max_length=3).fit(X, y).predict_spans(new))
        for X, y in [(tokens[:10], spans[:10]), (tokens, one), (tokens, open_)]
    ]  # fmt: skip
    assert scores[2] > max(scores[:2]) + 0.1


def test_what_is_known_need_not_have_a_segment():
    X = [[["a"], ["b"], ["c"], ["d"]]] * 2
    model = SemiMarkovCRF().fit(X, [[(0, 2, "X"), (3, 4, "Y")]] * 2)
    for nothing in ([(0, 4, UNLABELED)], [UNLABELED] * 4):
        assert np.isnan(model.score(X[:1], [nothing]))
        assert model.sequence_log_proba(X[:1], [nothing]).tolist() == [0.0]
    for rest in ([(0, 2, UNLABELED), (3, 4, UNLABELED)], [UNLABELED, UNLABELED, "O", UNLABELED]):
        assert model.score(X[:1], [rest]) == 1.0
