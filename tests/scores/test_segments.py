"""Scores of segments: the sum of the weights of their features, and the adjoint of that."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit._types import Expectations
from crfkit.data import PackedSegments, PackedSequences
from crfkit.data.chunks import make_chunks
from crfkit.losses import LogLoss
from crfkit.objective import Objective
from crfkit.penalties import ElasticNet
from crfkit.scores.segments import TOKEN_PARTS, LengthScores
from crfkit.scores.selection import choose_segment_features, runs_of
from crfkit.scores.touched import TouchedWeights
from crfkit.structures import SemiMarkov
from tests.oracles import finite_difference, random_segment_codes

LENGTHS, LABELS, LONGEST = (3, 1, 6, 2, 4), 2, 3


def make_segments(rng, offsets):
    """Half of all segments have one of four rows of attributes."""
    runs = [
        (start, stop)
        for begin, end in zip(offsets[:-1], offsets[1:], strict=True)
        for start in range(begin, end)
        for stop in range(start + 1, min(start + LONGEST, end) + 1)
        if rng.random() < 0.5
    ]
    starts, stops = np.array(runs).T
    rows = PackedSequences(
        sparse=sp.csr_array((rng.random((4, 3)) < 0.6).astype(float)), offsets=[0, 4]
    )
    return PackedSegments(rows, offsets, starts, stops, rng.integers(4, size=len(runs)))


def make_data(rng, *, steps=False, segments=True):
    n_tokens = sum(LENGTHS)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    x = (rng.random((n_tokens, 4)) < 0.5) * rng.normal(size=(n_tokens, 4))
    data = PackedSequences(sparse=sp.csr_array(x), dense=rng.normal(size=(n_tokens, 1)),
                           offsets=offsets)  # fmt: skip
    if steps:
        z = sp.csr_array((rng.random((n_tokens, 2)) < 0.5).astype(float))
        data = data.with_steps(PackedSequences(sparse=z, offsets=offsets))
    if segments:
        data = data.with_segments(make_segments(rng, offsets))
    anything = np.zeros((LABELS, LABELS), bool)
    return data, random_segment_codes(rng, offsets, np.full(LABELS, LONGEST), anything)


def choose(rng, data, codes, **options):
    fixed = np.zeros((LONGEST, LABELS))
    lengths = LengthScores(fixed, rng.normal(size=(LONGEST, 2)), np.ones((2, LABELS), bool))
    parts = np.ones((data.n_features, len(TOKEN_PARTS)), bool)
    return choose_segment_features(
        data, codes, LABELS, lengths=lengths, parts=parts, all_states=True, all_steps=True,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("boundaries", [False, True])
def test_gradient_equals_finite_differences(rng, steps, segments, boundaries):
    data, codes = make_data(rng, steps=steps, segments=segments)
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


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("boundaries", [False, True])
def test_what_chunks_touch_agrees_with_the_whole(rng, steps, segments, boundaries):
    data, codes = make_data(rng, steps=steps, segments=segments)
    model = choose(rng, data, codes, boundaries=boundaries)
    chunks = make_chunks(data.offsets, 5)
    bound = model.bind(rng.normal(size=model.n_parameters))
    with ThreadMap(1) as threads:
        touched = TouchedWeights(model, model.prepare_columns(data, chunks, threads))
        for index, chunk in enumerate(chunks):
            scores, expected = touched.scores(bound, index), model.scores(bound, data, chunk)
            np.testing.assert_allclose(scores.unary, expected.unary, atol=1e-13)
            np.testing.assert_allclose(scores.pair, expected.pair, atol=1e-13)
            residual = Expectations(
                rng.normal(size=scores.unary.shape), rng.normal(size=scores.pair.shape)
            )
            whole = np.zeros(model.n_parameters)
            alone = model.prepare(data, [chunk], threads)
            model.pullback(residual.unary.copy(), [residual.pair], alone, threads, whole)
            found = np.zeros(model.n_parameters)
            places = touched.places(index)
            assert len(np.unique(places)) == len(places)
            found[places] = touched.gradient(index, residual)
            np.testing.assert_allclose(found, whole, atol=1e-12)


def test_the_score_of_a_segmentation_is_the_sum_of_the_weights_of_its_features(rng):
    data, codes = make_data(rng, steps=True)
    model = choose(rng, data, codes, boundaries=True)
    w = rng.normal(size=model.n_parameters)
    (chunk,) = make_chunks(data.offsets, 1000)
    scores = model.scores(model.bind(w), data, chunk)
    found = SemiMarkov().score(scores, codes)
    expected = [by_hand(model, w, data, codes, s) for s in range(len(data))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def by_hand(model, w, data, codes, s):
    state, step, start, end, triples = model.split(w)
    of_lengths, of_segments = model.split_segments(w)
    x, table = data.to_csr().toarray(), state.reshape(-1, len(TOKEN_PARTS), LABELS)
    z, triples = data.steps.to_csr().toarray(), triples.reshape(-1, LABELS, LABELS)
    rows, own = data.segments.rows.to_csr().toarray(), of_segments.reshape(-1, LABELS)
    pairs = np.zeros((LABELS, LABELS))
    pairs[model.step_from, model.step_to] = step
    begin, stop = data.offsets[s], data.offsets[s + 1]
    total, before = 0.0, None
    for first, last, label in zip(*runs_of(codes, data.offsets, LABELS), strict=True):
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


def test_values_are_bit_equal_for_any_number_of_threads(rng, monkeypatch):
    from crfkit.data import chunks

    monkeypatch.setattr(chunks, "CHUNK_CELLS", 20)
    data, codes = make_data(rng, steps=True)
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
    lengths = LengthScores(np.zeros((3, 1)), np.zeros((3, 0)), np.zeros((0, 1), bool))
    parts = np.array([[True, True, True], [True, True, True], [False, True, False]])
    model = choose_segment_features(
        data, np.array([1, 0, 0], np.int32), 1, lengths=lengths, parts=parts
    )
    columns = np.split(model.state.columns, model.state.ptr[1:-1])
    assert [found.tolist() for found in columns] == [[0, 1, 2], [0, 1, 2], [1]]
