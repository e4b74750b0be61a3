"""Attributes of runs of tokens, packed."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from crfkit import SequenceVectorizer
from crfkit.data import PackedSegments, PackedSequences
from crfkit.structures.potentials import make_spans
from tests.sampling import examples

OFFSETS = np.array([0, 3, 3, 7])
RUNS = [(4, 6, 1), (0, 2, 0), (0, 3, 2), (4, 7, 0), (2, 3, 1)]


def rows(count=3):
    return SequenceVectorizer().fit_transform([[{"a": float(i + 1)} for i in range(count)]])


def segments(runs=RUNS, offsets=OFFSETS, n_rows=3):
    start, stop, row = np.array(runs, np.int64).reshape(-1, 3).T
    return PackedSegments(rows(n_rows), offsets, start, stop, row)


def listed(packed):
    """Return the runs as (start, stop, value of the attribute), by their ends."""
    values = packed.rows.to_csr().toarray()[:, 0]
    stops = packed.stop
    return list(
        zip((stops - packed.length).tolist(), stops.tolist(), values[packed.row], strict=True)
    )


def features(segments=None, offsets=OFFSETS):
    return PackedSequences(dense=np.eye(int(offsets[-1])), offsets=offsets, segments=segments)


@st.composite
def drawn(draw):
    """Draw lengths of sequences, and runs of tokens within them."""
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    every = [
        (i, j)
        for b, e in zip(offsets[:-1], offsets[1:], strict=True)
        for i in range(b, e)
        for j in range(i + 1, e + 1)
    ]
    chosen = draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    return offsets, [(i, j, draw(st.integers(0, 2))) for i, j in chosen]


def test_runs_are_listed_by_their_ends_then_lengths():
    assert listed(segments()) == [
        (0, 2, 1.0), (2, 3, 2.0), (0, 3, 3.0), (4, 6, 2.0), (4, 7, 1.0)
    ]  # fmt: skip
    assert segments().n_tokens == 7 and segments().n_features == 1
    assert segments([]).n_tokens == 7 and listed(segments([])) == []
    assert segments().nbytes >= segments([]).nbytes > 0


@examples(10)
@given(drawn(), st.randoms(use_true_random=False))
def test_the_order_in_which_runs_are_given_does_not_matter(data, random):
    offsets, runs = data
    shuffled = random.sample(runs, len(runs))
    assert segments(runs, offsets) == segments(shuffled, offsets)


@examples(10)
@given(drawn())
def test_runs_are_found_where_they_are_listed(data):
    offsets, runs = data
    packed = segments(runs, offsets)
    total = int(offsets[-1])
    every = [(i, j) for i in range(total) for j in range(i + 1, total + 1)]
    start, stop = np.array(every, np.int64).reshape(-1, 2).T
    found = packed.find(start, stop)
    value = {(i, j): row for i, j, row in runs}
    for pair, place in zip(every, found.tolist(), strict=True):
        assert (place >= 0) == (pair in value)
        if place >= 0:
            assert packed.row[place] == value[pair]


@examples(10)
@given(drawn(), st.data())
def test_sequences_keep_their_segments(data, choice):
    offsets, runs = data
    whole = features(segments(runs, offsets), offsets)
    order = choice.draw(st.lists(st.sampled_from(range(len(offsets) - 1)), max_size=5))
    part = whole[np.array(order, np.int64)]
    expected, begin = [], 0
    for s in order:
        shift = begin - int(offsets[s])
        inside = [run for run in runs if offsets[s] <= run[0] < offsets[s + 1]]
        expected += [(i + shift, j + shift, row) for i, j, row in inside]
        begin += int(offsets[s + 1] - offsets[s])
    assert part.segments == segments(expected, part.offsets)


@examples(10)
@given(drawn())
def test_the_runs_of_whole_sequences_have_their_rows_alone(data):
    offsets, runs = data
    packed = segments(runs, offsets)
    for b, e in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        local = packed.within(b, e)
        values = local.rows.to_csr().toarray()[:, 0]
        found = {
            (stop - length, stop, values[row] - 1)
            for stop, length, row in zip(*(a.tolist() for a in local[1:]), strict=True)
        }
        assert found == {(i - b, j - b, row) for i, j, row in runs if b <= i < e}
        assert local.rows.n_tokens == len({row for i, _, row in runs if b <= i < e})


def test_a_few_tokens_are_taken_without_a_look_at_all_others():
    total = 200_000
    each = np.arange(total)
    many = PackedSequences(sparse=sp.eye_array(total, format="csr"), offsets=[0, total])
    packed = PackedSegments(many, np.array([0, total]), each, each + 1, each)
    spans = make_spans(total, each + 1, np.ones(total, np.int64), each)
    some = np.array([7, 8, total - 1])
    taking = {
        "rows": lambda: many.take_tokens(some).indices.tolist(),
        "runs": lambda: packed.take(some).row.tolist(),
        "runs within": lambda: packed.within(7, 9).rows.indices.tolist(),
        "spans": lambda: spans.taken(some).end_row.tolist(),
    }
    for name, take in taking.items():
        tracemalloc.start()
        assert take() == ([7, 8] if name == "runs within" else some.tolist())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < total, name


BAD = {
    "empty": ([(1, 1, 0)], "sequence 0: the segment of the tokens 1 to 0 is empty"),
    "two sequences": ([(2, 4, 0)], "sequence 0: .* not within one sequence"),
    "too far": ([(5, 8, 0)], "sequence 2: .* not within one sequence"),
    "negative": ([(-1, 1, 0)], "not within one sequence"),
    "twice": ([(3, 5, 0), (3, 5, 1)], "sequence 2: the segment of the tokens 0 to 1 is listed"),
    "no row": ([(0, 1, 3)], "sequence 0: .* has a row that does not exist"),
}


GOOD = {"offsets": [0, 2, 4], "start": [0, 3], "stop": [2, 4], "row": [0, 1]}
UNFIT = {
    "a fraction": ({"start": [0.7, 3.0]}, "start must be a list of whole numbers.* float64"),
    "no number": ({"stop": [2.0, np.nan]}, "stop must be a list of whole numbers"),
    "words": ({"row": ["0", "1"]}, "row must be a list of whole numbers"),
    "a table": ({"row": [[0, 1]]}, r"row must be a list of whole numbers.* shape \(1, 2\)"),
    "offsets that fall": ({"offsets": [0, 4, 2]}, "offsets must be .* never falls"),
    "offsets that start late": ({"offsets": [1, 4]}, "offsets must be .* starts with 0"),
    "offsets in parts": ({"offsets": [0.0, 4.0]}, "offsets must be .*whole numbers"),
    "few": ({"stop": [2]}, "one number in each list, but they have: start 2, stop 1, row 2"),
    "no sequences": ({"offsets": [0]}, "sequence 0: .* not within one sequence"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_numbers_that_are_not_whole_or_missing_are_told(case):
    PackedSegments(rows(), **GOOD)
    wrong, part = UNFIT[case]
    with pytest.raises(ValueError, match=part):
        PackedSegments(rows(), **GOOD | wrong)


def test_rows_are_one_packed_sequence_of_plain_attributes():
    with pytest.raises(TypeError, match="rows must be PackedSequences, not list"):
        PackedSegments([[1]], **GOOD)
    two = PackedSequences(dense=np.eye(2), offsets=[0, 1, 2])
    with pytest.raises(ValueError, match=r"one sequence.* 2 sequences.*offsets=\[0, R\]"):
        PackedSegments(two, **GOOD)
    with pytest.raises(ValueError, match="without attributes of transitions"):
        PackedSegments(rows(3).with_transitions(rows(3)), **GOOD)


def test_the_text_of_segments_tells_how_many_there_are():
    shown = repr(segments())
    assert shown.startswith("<PackedSegments: 5 runs, 7 tokens, 3 rows, 1 attributes, ")
    assert f"{segments().nbytes:,} bytes>" in shown


@pytest.mark.parametrize("case", BAD)
def test_runs_that_cannot_be_are_told_with_their_place(case):
    runs, part = BAD[case]
    with pytest.raises(ValueError, match=part):
        segments(runs)


def test_segments_of_other_sequences_are_refused():
    with pytest.raises(ValueError, match="belong to 7 tokens, the features to 3"):
        features(segments(), np.array([0, 3]))
    with pytest.raises(ValueError, match="sequence 0: .* not within one sequence"):
        features(segments(), np.array([0, 2, 7]))
    with pytest.raises(TypeError, match="must be PackedSegments or None, not list"):
        features().with_segments([(0, 1)])


def test_features_and_segments_compare_and_copy_together():
    whole = features(segments())
    assert features().with_segments(segments()) == whole != features()
    assert whole.with_segments(None) == features()
    assert whole != features(segments(RUNS[:-1])) and segments() != "segments"
    for other in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        assert other == whole and listed(other.segments) == listed(segments())


def test_rows_that_are_the_same_in_another_order_are_equal():
    turned = PackedSegments(
        rows().take_tokens(np.array([2, 0, 1])), OFFSETS, *np.array(RUNS)[:, :2].T,
        np.array([1, 2, 0])[np.array(RUNS)[:, 2]],
    )  # fmt: skip
    assert turned == segments()
