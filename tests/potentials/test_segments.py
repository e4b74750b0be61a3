"""Scores of segments: the sum of the weights of their features, and the adjoint of that."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap, make_chunks
from crfkit.data import PackedSegments, PackedSequences
from crfkit.features.lengths import length_basis
from crfkit.labels.segmentation import segmentation_of
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.blocks import Residuals
from crfkit.potentials.semimarkov import (
    TOKEN_PARTS,
    LengthBlock,
    SegmentAttributeBlock,
    SemiMarkovModel,
    choose_segment_features,
)
from crfkit.structures import SemiMarkov
from crfkit.structures.potentials import make_spans
from tests.oracles import finite_difference, random_runs, random_segment_codes
from tests.potentials.test_active import assert_chunks_agree_with_the_whole

LENGTHS, LABELS, LONGEST = (3, 1, 6, 2, 4), 2, 3


def make_segments(rng, offsets):
    """Half of all segments have one of four rows of attributes."""
    starts, stops = random_runs(rng, offsets, LONGEST, 0.5)
    rows = PackedSequences(
        sparse=sp.csr_array((rng.random((4, 3)) < 0.6).astype(float)), offsets=[0, 4]
    )
    return PackedSegments(rows, offsets, starts, stops, rng.integers(4, size=len(starts)))


def make_data(rng, *, transitions=False, segments=True):
    n_tokens = sum(LENGTHS)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    x = (rng.random((n_tokens, 4)) < 0.5) * rng.normal(size=(n_tokens, 4))
    data = PackedSequences(sparse=sp.csr_array(x), dense=rng.normal(size=(n_tokens, 1)),
                           offsets=offsets)  # fmt: skip
    if transitions:
        z = sp.csr_array((rng.random((n_tokens, 2)) < 0.5).astype(float))
        data = data.with_transitions(PackedSequences(sparse=z, offsets=offsets))
    if segments:
        data = data.with_segments(make_segments(rng, offsets))
    anything = np.zeros((LABELS, LABELS), bool)
    return data, random_segment_codes(rng, offsets, np.full(LABELS, LONGEST), anything)


def choose(rng, data, codes, **options):
    fixed = np.zeros((LONGEST, LABELS))
    lengths = LengthBlock(fixed, rng.normal(size=(LONGEST, 2)), np.ones((2, LABELS), bool))
    parts = np.ones((data.n_features, len(TOKEN_PARTS)), bool)
    return choose_segment_features(
        data, codes, LABELS, lengths=lengths, parts=parts, all_states=True, all_transitions=True,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("transitions", [False, True])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("boundaries", [False, True])
def test_gradient_equals_finite_differences(rng, transitions, segments, boundaries):
    data, codes = make_data(rng, transitions=transitions, segments=segments)
    model = choose(rng, data, codes, boundaries=boundaries)
    with ThreadMap(2) as threads:
        objective = Objective(
            model, SemiMarkov(), LogLoss(), ElasticNet(0.0, 0.3), data, codes,
            np.ones(len(codes)), threads,
        )  # fmt: skip
        w = rng.normal(size=objective.n_parameters)
        _, gradient = objective.value_and_grad(w)
        numeric = finite_difference(lambda v: objective.value_and_grad(v)[0], w, 1e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-9)


def test_weights_of_tokens_have_a_gradient_too(rng):
    data, codes = make_data(rng)
    model = choose(rng, data, codes)
    with ThreadMap(1) as threads:
        objective = Objective(
            model, SemiMarkov(), LogLoss(), ElasticNet(0.0, 0.3), data, codes,
            rng.choice([0.5, 1.0, 2.0], len(codes)), threads,
        )  # fmt: skip
        w = rng.normal(size=objective.n_parameters)
        value, gradient = objective.value_and_grad(w)
        numeric = finite_difference(lambda v: objective.value_and_grad(v)[0], w, 1e-3)
    assert value > 0.0
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-9)


@pytest.mark.parametrize("transitions", [False, True])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("boundaries", [False, True])
def test_what_chunks_depend_on_agrees_with_the_whole(rng, transitions, segments, boundaries):
    data, codes = make_data(rng, transitions=transitions, segments=segments)
    model = choose(rng, data, codes, boundaries=boundaries)
    assert_chunks_agree_with_the_whole(rng, model, data)


def test_the_score_of_a_segmentation_is_the_sum_of_the_weights_of_its_features(rng):
    data, codes = make_data(rng, transitions=True)
    model = choose(rng, data, codes, boundaries=True)
    w = rng.normal(size=model.n_parameters)
    (chunk,) = make_chunks(data.offsets, 1000)
    scores = model.scores(model.bind(w), data, chunk)
    found = SemiMarkov().score(scores, codes)
    expected = [by_hand(model, w, data, codes, s) for s in range(len(data))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def by_hand(model, w, data, codes, s):
    state, step, start, end, triples, of_lengths, of_segments = model.split(w).values()
    x, table = data.to_csr().toarray(), state.reshape(-1, len(TOKEN_PARTS), LABELS)
    z, triples = data.transitions.to_csr().toarray(), triples.reshape(-1, LABELS, LABELS)
    rows, own = data.segments.rows.to_csr().toarray(), of_segments.reshape(-1, LABELS)
    pairs = np.zeros((LABELS, LABELS))
    pairs[model.transition_from, model.transition_to] = step
    begin, stop = data.offsets[s], data.offsets[s + 1]
    total, before = 0.0, None
    for first, last, label in zip(*segmentation_of(codes, data.offsets, LABELS), strict=True):
        if not begin <= first < stop:
            continue
        total += x[first:last].sum(axis=0) @ table[:, 0, label]
        total += x[first] @ table[:, 1, label] + x[last - 1] @ table[:, 2, label]
        total += x[first] @ table[:, 3, label] if last == first + 1 else 0.0
        total += model.lengths.bind(of_lengths)[last - first - 1, label]
        place = data.segments.find(np.array([first]), np.array([last]))[0]
        if place >= 0:
            total += rows[data.segments.row[place]] @ own[:, label]
        if before is not None:
            total += pairs[before, label] + z[first] @ triples[:, before, label]
        total += start[label] if first == begin else 0.0
        total += end[label] if last == stop else 0.0
        before = label
    return total


def test_scores_of_lengths_are_the_products_of_their_features_and_weights(rng):
    fixed, chosen = rng.normal(size=(5, 3)), rng.random((4, 3)) < 0.6
    basis = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.5)
    lengths, weights = LengthBlock(fixed, basis, chosen), rng.normal(size=chosen.sum())
    table = np.zeros((4, 3))
    table[chosen] = weights
    np.testing.assert_allclose(lengths.bind(weights), fixed + basis @ table, rtol=1e-13)
    gradient = rng.normal(size=(5, 3))
    expected = (basis.T @ gradient)[chosen]
    out = np.zeros(len(weights))
    lengths.pullback(Residuals(np.zeros((0, 12)), [], [], [gradient], [], []), None, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13)


def test_a_feature_for_each_of_many_lengths_takes_no_table_of_all_pairs(rng):
    longest = 4000
    stop = np.arange(1, longest + 1, 100).cumsum()
    data = PackedSequences.from_flat(sp.csr_array(np.ones((stop[-1], 1))), [stop[-1]])
    codes = np.zeros(stop[-1], np.int32)
    codes[[0, *stop[:-1]]] = 1
    tracemalloc.start()
    lengths = LengthBlock(
        np.zeros((longest, 1)), length_basis("indicator", longest).basis,
        np.ones((longest, 1), bool),
    )  # fmt: skip
    model = choose_segment_features(
        data, codes, 1, lengths=lengths, parts=np.ones((1, 4), bool)
    ).lengths
    scores = model.bind(np.arange(model.n_parameters) + 1.0)
    gradient = np.zeros(model.n_parameters)
    model.pullback(Residuals(np.zeros((0, 4)), [], [], [scores], [], []), None, gradient)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = np.zeros(longest)
    expected[::100] = np.arange(40) + 1.0
    np.testing.assert_array_equal(scores[:, 0], expected)
    np.testing.assert_array_equal(gradient, np.arange(40) + 1.0)
    assert peak < 8 * longest**2 / 10


@pytest.mark.parametrize("min_freq", [0, 1, 2, 4, 1e9])
def test_weights_are_those_of_what_occurs_often_enough(rng, min_freq):
    offsets = np.concatenate([[0], np.cumsum(LENGTHS * 3)])
    segments = make_segments(rng, offsets)
    data = PackedSequences(dense=np.ones((offsets[-1], 1)), offsets=offsets, segments=segments)
    anything = np.zeros((LABELS, LABELS), bool)
    codes = random_segment_codes(rng, offsets, np.full(LABELS, LONGEST), anything)
    basis = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, -2.0]])
    lengths = LengthBlock(np.zeros((LONGEST, LABELS)), basis, np.ones((2, LABELS), bool))
    parts = np.ones((1, len(TOKEN_PARTS)), bool)
    model = choose_segment_features(
        data, codes, LABELS, lengths=lengths, parts=parts, min_freq=min_freq
    )
    of_lengths, own = np.zeros((2, LABELS)), np.zeros((3, LABELS))
    rows = segments.rows.to_csr().toarray()
    for start, stop, label in zip(*segmentation_of(codes, offsets, LABELS), strict=True):
        of_lengths[:, label] += basis[stop - start - 1] != 0.0
        place = segments.find(np.array([start]), np.array([stop]))[0]
        if place >= 0:
            own[:, label] += rows[segments.row[place]] != 0.0
    least = max(1, min_freq)
    assert 2 == of_lengths.min() < 4 < of_lengths.max() and 1 == own.min() < 4 <= own.max()
    np.testing.assert_array_equal(model.lengths.chosen, of_lengths >= least)
    expected = np.flatnonzero((own >= least).ravel())
    pairs = np.repeat(np.arange(3), np.diff(model.segments.ptr)) * LABELS + model.segments.columns
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.parametrize("dense", [False, True])
def test_runs_without_a_weight_are_left_out_and_change_nothing(rng, dense):
    data, codes = make_data(rng)
    every = data.segments
    rows = every.rows.to_csr().toarray()
    blocks = {"dense": rows} if dense else {"sparse": sp.csr_array(rows)}
    few = np.array([[True, False], [False, False], [False, False]])
    columns, ptr = np.nonzero(few)[1], [0, 1, 1, 1]
    weights = AttributeWeights(ptr, columns, n_columns=LABELS, n_sparse=0 if dense else 3)
    data = data.with_segments(
        PackedSegments(
            PackedSequences(**blocks, offsets=[0, 4]), data.offsets, every.stop - every.length,
            every.stop, every.row,
        )
    )  # fmt: skip
    model = choose(rng, data, codes)
    model = SemiMarkovModel(
        [SegmentAttributeBlock(weights) if b.name == "segment_attributes" else b
         for b in model.blocks]
    )  # fmt: skip
    useful = rows[:, 0] != 0.0
    assert 0 < useful.sum() < 4
    bound = model.bind(rng.normal(size=model.n_parameters))
    (chunk,) = make_chunks(data.offsets, 1000)
    prepared = model.prepare_active(data, chunk)
    for scores in (model.scores(bound, data, chunk), model.prepared_scores(bound, prepared, 0)):
        assert len(scores.spans.end_row) == useful[every.row].sum()
        found = SemiMarkov().score(scores, codes)
        table = rows[:, :1] * bound["segment_attributes"].pairs
        plain = scores._replace(
            pair=np.concatenate([scores.pair[: -useful.sum()], np.hstack([table, 0.0 * table])])
        )
        spans = make_spans(len(codes), every.stop, every.length, every.row)
        plain = plain._replace(spans=spans)
        np.testing.assert_array_equal(found, SemiMarkov().score(plain, codes))


def test_values_are_bit_equal_for_any_number_of_threads(rng, monkeypatch):
    from crfkit import _parallel

    monkeypatch.setattr(_parallel, "CHUNK_CELLS", 20)
    data, codes = make_data(rng, transitions=True)
    model, found = choose(rng, data, codes), []
    w = rng.normal(size=model.n_parameters)
    for n_jobs in (1, 2, 4):
        with ThreadMap(n_jobs) as threads:
            objective = Objective(
                model, SemiMarkov(), LogLoss(), ElasticNet(0.0, 0.3), data, codes,
                np.ones(len(codes)), threads,
            )  # fmt: skip
            found.append(objective.value_and_grad(w))
    for value, gradient in found[1:]:
        assert value == found[0][0]
        np.testing.assert_array_equal(gradient, found[0][1])


def test_pairs_seen_anywhere_in_segments_have_weights_for_first_and_last_tokens(rng):
    data = PackedSequences.from_flat(np.eye(3), [3], ["a", "b", "c"])
    lengths = LengthBlock(np.zeros((3, 1)), np.zeros((3, 0)), np.zeros((0, 1), bool))
    parts = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [0, 1, 0, 0]], bool)
    model = choose_segment_features(
        data, np.array([1, 0, 0], np.int32), 1, lengths=lengths, parts=parts
    )
    columns = np.split(model.state.columns, model.state.ptr[1:-1])
    assert [found.tolist() for found in columns] == [[0, 1, 2, 3], [0, 1, 2], [1]]
