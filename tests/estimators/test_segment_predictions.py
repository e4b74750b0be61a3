"""What is asked of a fitted model of segments follows from its weights."""

import collections
import copy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from crfkit import SegmentLimits, SemiMarkovCRF, SequenceVectorizer
from crfkit.constraints import Known
from crfkit.estimators import _questions
from crfkit.inference import base as fitted_model
from crfkit.metrics import Segment
from crfkit.structures import SemiMarkov
from tests.estimators.segmentations import (
    SPANS,
    TAGS,
    X,
    enumerated,
    with_random_weights,
    with_segments,
    with_transitions,
)
from tests.sampling import examples

WORDS = "mr john smith lives in new york city ann the unknown".split()
SHORT = [X[1], X[2], X[4], [{"w": "new"}, {"w": "york"}, {"w": "unknown"}, {"w": "ann"}], []]


def fit(**parameters):
    return SemiMarkovCRF(**{"c2": 0.3, "solver": "lbfgs"} | parameters)


@pytest.fixture(
    scope="module", params=[{}, {"outside": "long", "length": ["indicator", "seg.length"]}], ids=str
)
def model(request):
    return fit(**request.param).fit(X, TAGS)


def inside(path):
    return [segment for segment in path if segment[2] != "O"]


def test_probabilities_of_segments_are_those_of_enumeration(model):
    segments, expected = [], []
    for tokens in SHORT:
        paths, shares = enumerated(model, tokens)
        totals = collections.Counter()
        for path, share in zip(paths, shares, strict=True):
            for segment in path:
                totals[segment] += share
        segments.append(list(totals)[::-1])
        expected.append([totals[segment] for segment in segments[-1]])
    found = model.predict_span_proba(SHORT, segments)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


class Bounded(SemiMarkovCRF):
    boundary_weights = True


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("outside", ["single", "long"])
def test_every_weight_counts_in_predictions(outside, scale):
    data = with_segments(with_transitions())
    limits = SegmentLimits(forbidden=[("LOC", "PER")])
    fitted = Bounded(outside=outside, max_iter=1, max_length={"PER": 3}, limits=limits)
    with pytest.warns(ConvergenceWarning):
        fitted.fit(data, TAGS)
    changed = with_random_weights(fitted, 3, scale)
    for s in (1, 2, 4):
        one = data[[s]]
        paths, shares = enumerated(changed, one)
        totals = collections.Counter()
        for path, share in zip(paths, shares, strict=True):
            for segment in path:
                totals[segment] += share
        (found,) = changed.predict_span_proba(one, [list(totals)])
        np.testing.assert_allclose(found, list(totals.values()), rtol=1e-8, atol=1e-12)
        (best,) = changed.predict_spans(one)
        assert [tuple(segment) for segment in best] == inside(paths[int(np.argmax(shares))])
        (listed,) = changed.predict_n_best(one, 5)
        levels = [one.probability for one in listed]
        np.testing.assert_allclose(levels, np.sort(shares)[: -len(levels) - 1 : -1], rtol=1e-8)


def test_the_best_segmentation_is_that_of_enumeration(model):
    for tokens in SHORT:
        paths, shares = enumerated(model, tokens)
        best = inside(paths[int(np.argmax(shares))])
        (found,), (proba,) = model.predict_spans([tokens]), model.predict_span_proba([tokens])
        assert [tuple(segment) for segment in found] == best
        assert len(proba) == len(found)


def test_probabilities_of_tokens_are_those_of_enumeration(model):
    labels = model.classes_.tolist()
    for tokens, rows in zip(SHORT, model.predict_proba(SHORT), strict=True):
        expected = np.zeros((len(tokens), len(labels)))
        for path, share in zip(*enumerated(model, tokens), strict=True):
            for start, stop, label in path:
                expected[start:stop, labels.index(label)] += share
        np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("threshold", [0.02, 0.3, 1.0])
def test_likely_spans_are_all_that_reach_the_threshold(model, threshold):
    found = model.likely_spans(SHORT, threshold=threshold)
    order = model.classes_.tolist().index
    for tokens, ours in zip(SHORT, found, strict=True):
        totals = collections.Counter()
        for path, share in zip(*enumerated(model, tokens), strict=True):
            totals.update(dict.fromkeys(inside(path), share))
        theirs = [s for s, p in totals.items() if p >= threshold]
        assert [one[:3] for one in ours] == sorted(theirs, key=lambda s: (*s[:2], order(s[2])))
        np.testing.assert_allclose(
            [one.probability for one in ours], [totals[one[:3]] for one in ours], rtol=1e-9
        )


def test_the_probabilities_of_likely_spans_can_be_asked_for(model):
    likely = model.likely_spans(X, threshold=0.1)
    found = model.predict_span_proba(X, likely)
    expected = [[one.probability for one in segments] for segments in likely]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_pipelines_are_asked_step_by_step():
    pipeline = make_pipeline(SequenceVectorizer(), fit()).fit(X, TAGS)
    found = pipeline[-1].predict_spans(pipeline[:-1].transform(X))
    assert [[tuple(one) for one in segments] for segments in found] == SPANS


def test_expected_lengths_are_those_of_enumeration(model):
    labels = model.classes_.tolist()
    expected = np.zeros(model.length_scores_.shape)
    for tokens in SHORT:
        for path, share in zip(*enumerated(model, tokens), strict=True):
            for start, stop, label in path:
                expected[stop - start - 1, labels.index(label)] += share
    np.testing.assert_allclose(model.expected_lengths(SHORT), expected, rtol=1e-9, atol=1e-12)


def test_the_distribution_of_lengths_is_that_of_their_weights(model):
    shares = model.length_distribution()
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    longest = model.max_lengths_
    for k, label in enumerate(model.classes_.tolist()):
        assert np.all((shares[:, k] > 0) == (np.arange(len(shares)) < longest[label]))
        ratios = np.diff(np.log(shares[: longest[label], k]))
        np.testing.assert_allclose(ratios, np.diff(model.length_scores_[: longest[label], k]))


def test_given_segments_are_conditioned_on(model):
    known = [[(0, 1, "PER"), Segment(2, 3, "LOC")], [(1, 3, "O")], [(2, 3, "PER")], [], []]
    asked = [[(1, 2, "PER"), (0, 1, "PER")], [(0, 1, "PER")], [(0, 2, "PER"), (0, 3, "PER")],
             [(0, 2, "LOC")], []]  # fmt: skip
    found = model.predict_span_proba(SHORT, asked, constraints=Known(known))
    best = model.predict_spans(SHORT, constraints=Known(known))
    for tokens, fixed, segments, ours, one in zip(SHORT, known, asked, found, best, strict=True):
        wanted = [tuple(s) for s in fixed]
        pairs = [
            (path, share)
            for path, share in zip(*enumerated(model, tokens), strict=True)
            if all(holds(path, segment, model) for segment in wanted)
        ]
        whole = sum(share for _, share in pairs)
        theirs = [sum(p for path, p in pairs if segment in path) / whole for segment in segments]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
        top = max(pairs, key=lambda pair: pair[1])[0]
        assert [tuple(segment) for segment in one] == inside(top)


def holds(path, segment, model):
    """Whether a segmentation has a segment; tokens outside are segments of their own."""
    start, stop, label = segment
    if label != "O" or model.outside == "long":
        return segment in path
    return all((t, t + 1, "O") in path for t in range(start, stop))


BAD_FIXED = {
    "unknown": ([[(0, 1, "ORG")]], "sequence 0 of Known: the segment (0, 1) has a label"),
    "too long": ([[(0, 3, "PER")]], "can be: 2 tokens. Fit with a larger max_length"),
    "overlap": ([[(0, 2, "PER"), (1, 3, "LOC")]], "sequence 0 of Known: the segments (0, 2"),
    "outside": ([[(2, 9, "PER")]], "sequence 0 of Known: the segment (2, 9, 'PER') is not within"),
    "lists": ([[], []], "y has 2 sequences, but X has 1"),
}


@pytest.mark.parametrize("case", BAD_FIXED)
def test_fixed_segments_that_cannot_be_are_refused(model, case):
    fixed, part = BAD_FIXED[case]
    for call in (model.predict_spans, model.predict_span_proba):
        with pytest.raises(ValueError) as info:
            call([X[1]], constraints=[Known(fixed)])
        assert part in str(info.value)


def test_what_the_model_cannot_have_has_the_probability_0(model):
    segments = [(0, 4, "PER"), (0, 1, "ORG"), (0, 2, "PER"), (0, 2, "O")]
    (found,) = model.predict_span_proba([X[1]], [segments])
    expected = [found[0] == 0.0, found[1] == 0.0, found[2] > 0.0]
    assert all(expected) and (found[3] > 0.0) == (model.outside == "long")
    with pytest.raises(ValueError, match="sequence 0 of spans: .* is not within the 4"):
        model.predict_span_proba([X[1]], [[(2, 5, "PER")]])


def test_no_sequences_have_no_segments(model):
    assert model.predict_spans([]) == [] == model.likely_spans([])
    assert model.predict_span_proba([]) == []
    np.testing.assert_array_equal(model.expected_lengths([]), 0.0)
    assert model.predict_spans([[], X[2][:0]]) == [[], []] == model.likely_spans([[], []])


def test_log_probabilities_are_those_of_the_segmentations_that_labels_stand_for(model):
    log_proba = model.sequence_log_proba(X[1:3] + X[4:], TAGS[1:3] + TAGS[4:])
    by_spans = model.sequence_log_proba(X[1:3] + X[4:], SPANS[1:3] + SPANS[4:])
    np.testing.assert_array_equal(log_proba, by_spans)
    for tokens, spans, value in zip(X[1:3] + X[4:], SPANS[1:3] + SPANS[4:], log_proba, strict=True):
        pairs = zip(*enumerated(model, tokens), strict=True)
        share = sum(p for path, p in pairs if inside(path) == spans)
        np.testing.assert_allclose(value, np.log(share), rtol=1e-9)


def test_what_cannot_be_has_no_log_probability(model):
    segments = [[(0, 4, "PER")], [(0, 1, "ORG")], [(0, 2, "PER")], []]
    found = model.sequence_log_proba([X[1]] * 3 + [[]], segments)
    assert np.isneginf(found[:2]).all() and np.isfinite(found[2]) and found[3] == 0.0


def test_tags_that_cannot_be_have_no_log_probability(model):
    tags = [
        ["O", "I-PER", "O"], ["O", "S-PER", "O"], ["B-LOC", "I-PER", "O"], ["O", "X", 3],
        ["B-ORG", "I-ORG", "O"], ["B-O", "I-O", "O"], ["B-PER", "I-PER", "O"],
    ]  # fmt: skip
    found = model.sequence_log_proba([X[2]] * 7, tags)
    assert np.isneginf(found[:-1]).all() and np.isfinite(found[-1])
    assert found[-1] == model.sequence_log_proba([X[2]], tags[-1:])[0]
    with pytest.raises(ValueError, match="sequence 1"):
        model.sequence_log_proba([X[2]] * 2, [tags[0], tags[1][:-1]])


@pytest.mark.parametrize("scale", [1.0, 1e5])  # the latter is summed by logarithms
def test_what_cannot_be_is_not_summed_again_for_each_of_the_others(model, scale, monkeypatch):
    model = copy.copy(model)
    model.last_coef_ = scale * model.last_coef_
    summed, plain = [], SemiMarkov.log_partition

    def counted(self, scores, weight, out):
        summed.append(len(weight))
        return plain(self, scores, weight, out)

    monkeypatch.setattr(SemiMarkov, "log_partition", counted)
    count = 60
    found = model.sequence_log_proba([X[1]] * count, [[(0, 4, "PER")], [(0, 2, "PER")]] * 30)
    assert np.isneginf(found[::2]).all() and np.isfinite(found[1::2]).all()
    assert len(set(found[1::2])) == 1 and sum(summed) <= 4 * count
    assert len(summed) <= (3 if scale == 1.0 else count + 3)
    summed.clear()
    assert np.isneginf(model.sequence_log_proba([X[1]] * count, [[(0, 1, "ORG")]] * count)).all()
    assert sum(summed) <= 2 * count


def test_probabilities_of_sequences_of_tags_sum_to_one(model):
    tokens, tags = X[2], ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    legal = [
        [a, b, c] for a in tags for b in tags for c in tags
        if not any(t[0] == "I" and (p == "O" or p[2:] != t[2:])
                   for p, t in zip(["O", a, b], [a, b, c], strict=True))
    ]  # fmt: skip
    found = model.sequence_log_proba([tokens] * len(legal), legal)
    np.testing.assert_allclose(np.exp(found).sum(), 1.0, rtol=1e-9)


def test_everything_is_bit_equal_for_any_number_of_threads(model, monkeypatch):
    sequences = (X + SHORT) * 3
    monkeypatch.setattr(_questions, "SHARE", 7)
    found = []
    for n_jobs in (1, 2, 4):
        monkeypatch.setattr(fitted_model, "LEAST_CHUNK", 3 * n_jobs)
        monkeypatch.setattr(model, "n_jobs", n_jobs)
        segments = model.predict_spans(sequences)
        found.append(
            (
                segments,
                [row.tobytes() for row in model.predict_span_proba(sequences)],
                model.likely_spans(sequences, threshold=0.1),
                model.expected_lengths(sequences).tobytes(),
                model.sequence_log_proba(sequences, segments).tobytes(),
                [row.tobytes() for row in model.predict_proba(sequences)],
            )
        )
    assert found[0] == found[1] == found[2]


def test_a_sequence_far_off_does_not_change_the_others(model):
    """One that has to be summed by logarithms, among some that do not."""
    changed = copy.copy(model)
    weights = model.last_coef_.toarray()
    weights[model.feature_names_in_.tolist().index("w:barks")] = 150.0
    changed.last_coef_ = sp.csr_array(weights)
    alone = [changed.predict_proba([tokens])[0] for tokens in X]
    for ours, theirs in zip(changed.predict_proba(X), alone, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_weights_of_any_size_give_probabilities(model, scale):
    changed = copy.copy(model)
    for name in (
        "coef_",
        "first_coef_",
        "last_coef_",
        "single_coef_",
        "transitions_",
        "length_scores_",
    ):
        setattr(changed, name, scale * getattr(model, name))
    for tokens in SHORT:
        paths, shares = enumerated(changed, tokens)
        found = changed.likely_spans([tokens], threshold=0.9)[0]
        best = paths[int(np.argmax(shares))]
        assert [one[:3] for one in found] == (inside(best) if max(shares) > 0.9 else [])
        segments = [tuple(one) for one in changed.predict_spans([tokens])[0]]
        assert shares.max() == shares[[inside(path) == segments for path in paths]].max()


LIMITS = SegmentLimits(min_length={"LOC": 2, "O": 3}, forbidden=[("LOC", "PER")])
IMPOSSIBLE = {
    "short": ([(2, 3, "LOC")],
              "sequence 1 of Known: the segment (2, 3) is shorter than segments of the label 'LOC' "
              "can be: 2 tokens. Fit with a smaller min_length."),
    "step": ([(4, 5, "PER"), (2, 4, "LOC")],
             "sequence 1 of Known: the segment of label 'PER' at position 4 follows one of 'LOC'"),
    "gap": ([(0, 2, "LOC"), (4, 6, "LOC"), (3, 4, "PER")],
            "sequence 1: no labeling keeps to Known of the span (0, 2, 'LOC') and Known of the "
            "span (3, 4, 'PER'): none gets past position"),
}  # fmt: skip


@pytest.fixture(scope="module")
def limited():
    tags = [["B-PER", "O", "O", "O", "B-LOC", "I-LOC"], ["O"] * 3]
    tokens = [[{"w": "a"}] * 6, [{"w": "b"}] * 3]
    return fit(outside="long", limits=LIMITS, max_length={"PER": 1}).fit(tokens, tags)


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_fixed_segments_that_the_limits_forbid_are_told_as_such(limited, case):
    fixed, words = IMPOSSIBLE[case]
    tokens = [{"w": "a"}] * 6
    for call in (limited.predict_spans, limited.predict_span_proba):
        with pytest.raises(ValueError) as info:
            call([tokens, tokens], constraints=Known([[], fixed]))
        assert words in str(info.value)
    assert limited.predict_spans([tokens], constraints=Known([[(0, 2, "LOC")]]))[0][0][:2] == (0, 2)


@pytest.mark.parametrize(
    "ask", ["predict", "predict_spans", "predict_proba", "likely_spans", "expected_lengths"]
)
def test_a_sequence_that_the_limits_leave_nothing_is_told_why(limited, ask):
    changed = copy.copy(limited)
    changed.length_scores_ = np.where(limited.classes_ == "PER", -np.inf, limited.length_scores_)
    for length, words in ((1, "it has 1 tokens.*no segment has fewer than 2.*min_length"), (0, "")):
        tokens = [[{"w": "a"}] * 6, [{"w": "a"}] * length]
        if words:
            with pytest.raises(ValueError, match=f"sequence 1: {words}"):
                getattr(changed, ask)(tokens)
        else:
            getattr(changed, ask)(tokens)
    changed.length_scores_ = np.where(limited.classes_ == "O", limited.length_scores_, -np.inf)
    with pytest.raises(ValueError, match="sequence 0: no segmentation is allowed.*max_length"):
        getattr(changed, ask)([[{"w": "a"}] * 4])


CONSTRAINED = {
    "lengths": {"max_length": {"PER": 4, "LOC": 5}, "min_length": {"PER": 2, "LOC": 2}},
    "one length": {"max_length": 4, "min_length": 3},
    "order": {"forbidden": [("PER", "LOC"), ("LOC", "O"), ("PER", "PER")]},
}


@pytest.fixture(scope="module", params=CONSTRAINED)
def constrained(request):
    given = CONSTRAINED[request.param]
    most = given.get("max_length")
    limits = SegmentLimits(**{k: v for k, v in given.items() if k != "max_length"})
    tags = {
        "lengths": [["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]],
        "one length": [["O", "B-PER", "I-PER", "I-PER", "B-LOC", "I-LOC", "I-LOC", "I-LOC"]],
        "order": [["B-LOC", "I-LOC", "B-PER", "O", "B-PER", "I-PER"], ["O"]],
    }[request.param]
    tokens = [[{"w": WORDS[t]} for t in range(len(row))] for row in tags]
    return fit(max_length=most, limits=limits).fit(tokens, tags)


@examples(10)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=9), min_size=1, max_size=3))
def test_predictions_keep_to_the_constraints(constrained, sentences):
    sequences = [[{"w": word} for word in sentence] for sentence in sentences]
    limits, most = constrained.limits, constrained.max_lengths_
    least = limits.min_length
    likely = constrained.likely_spans(sequences, threshold=0.05)
    for segments, others in zip(constrained.predict_spans(sequences), likely, strict=True):
        for start, stop, label in (*segments, *(one[:3] for one in others)):
            shortest = least.get(label, 1) if isinstance(least, dict) else least
            assert shortest <= stop - start <= most[label]
    for row, segments in zip(
        constrained.predict(sequences), constrained.predict_spans(sequences), strict=True
    ):
        starts = {segment.start for segment in segments}
        labels = [tag[2:] or "O" for tag in row]
        steps = {
            (labels[t - 1], labels[t])
            for t in range(1, len(row))
            if labels[t] != labels[t - 1] or t in starts or labels[t] == "O"
        }
        assert not steps & set(limits.forbidden)
