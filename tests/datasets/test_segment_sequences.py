"""Sequences of segments that a dictionary tells apart."""

from itertools import chain

import numpy as np
import pytest
from scipy.stats import poisson

from crfkit import CRFClassifier, SemiMarkovCRF
from crfkit.datasets import make_segment_sequences
from crfkit.features import SegmentFeatures, TemplateFeatures, make_sequence_union
from crfkit.metrics import spans_from_tags

N_SIGMA = 5.0


def texts(data):
    """The symbols of each segment with its label, in order."""
    return [
        (" ".join(symbol for (symbol,) in row[start:stop]), label)
        for row, segments in zip(data.X, data.segments, strict=True)
        for start, stop, label in segments
    ]


def assert_share(found, n, expected):
    """Check a count against the probability of an event."""
    assert abs(found - n * expected) <= N_SIGMA * np.sqrt(n * expected * (1 - expected)) + 1e-9


def test_segments_cover_their_sequences_and_tags_say_the_same():
    data = make_segment_sequences(50, 5, random_state=0)
    for row, tags, segments in zip(data.X, data.y, data.segments, strict=True):
        stops = [stop for _, stop, _ in segments]
        assert [start for start, _, _ in segments] == [0, *stops[:-1]]
        assert stops[-1] == len(row) == len(tags)
        assert [(s.start, s.stop, s.label) for s in spans_from_tags(tags, "IOB2")] == segments
    assert {len(segments) for segments in data.segments} == {5}


def test_lengths_are_those_of_a_cut_poisson_distribution_of_their_label():
    data = make_segment_sequences(1000, 4, mean_lengths=(1.5, 5.0), max_length=6, random_state=1)
    every = list(chain(*data.segments))
    for label, mean, row in zip("ab", (1.5, 5.0), data.length_probabilities, strict=True):
        expected = poisson.pmf(np.arange(1, 7), mean)
        np.testing.assert_allclose(row, expected / expected.sum(), rtol=1e-12)
        lengths = [stop - start for start, stop, k in every if k == label]
        for length in range(1, 7):
            assert_share(lengths.count(length), len(lengths), row[length - 1])


def test_a_symbol_tells_nothing_of_its_label():
    data = make_segment_sequences(1000, 4, n_symbols=4, random_state=2)
    pairs = [(label, symbol) for text, label in texts(data) for symbol in text.split()]
    for label in "abc":
        symbols = [symbol for k, symbol in pairs if k == label]
        for symbol in data.symbols:
            assert_share(symbols.count(symbol), len(symbols), 0.25)


@pytest.mark.parametrize("coverage", [0.0, 0.8, 1.0])
def test_so_many_segments_are_in_the_dictionary_of_their_label(coverage):
    # So many symbols that a segment of four and more does not come twice.
    data = make_segment_sequences(
        400, n_symbols=10**5, coverage=coverage, noise=0.0, random_state=3
    )
    long = [(text, label) for text, label in texts(data) if text.count(" ") >= 3]
    assert_share(sum(text in data.dictionaries[k] for text, k in long), len(long), coverage)
    assert not any(
        text in data.dictionaries[k] for text, label in long for k in "abc" if k != label
    )


def test_noise_adds_runs_that_are_no_segments():
    options = {"n_symbols": 10**5, "coverage": 0.0, "random_state": 4}
    assert not any(make_segment_sequences(50, noise=0.0, **options).dictionaries.values())
    data = make_segment_sequences(200, noise=1.0, **options)
    entries = set(chain(*data.dictionaries.values()))
    true = {text for text, _ in texts(data)}
    assert not any(entry in true for entry in entries if " " in entry)  # a symbol may come twice
    rows = [" ".join(symbol for (symbol,) in row) + " " for row in data.X]
    assert all(any(entry + " " in row for row in rows) for entry in list(entries)[:20])


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_so_many_runs_are_noise(noise):
    data = make_segment_sequences(
        120, n_symbols=10**5, coverage=0.0, noise=noise, random_state=5
    )  # fmt: skip
    shares = []
    for row, segments in zip(data.X, data.segments, strict=True):
        true = {(start, stop) for start, stop, _ in segments}
        for table in data.length_probabilities:
            for start in range(len(row)):
                for length, share in enumerate(table, 1):
                    if start + length <= len(row) and (start, start + length) not in true:
                        drawn = noise * share / len(row) / len(data.length_probabilities)
                        shares.append(1 - (1 - drawn) ** len(segments))
    found = sum(map(len, data.dictionaries.values()))
    assert abs(found - sum(shares)) <= N_SIGMA * np.sqrt(sum(shares))


def test_means_may_come_from_a_generator():
    wanted = make_segment_sequences(3, mean_lengths=(2.0, 4), random_state=0)
    found = make_segment_sequences(3, mean_lengths=(m for m in (2.0, 4)), random_state=0)
    assert found.segments == wanted.segments


@pytest.mark.parametrize("means", [4.0, "3", None, (2.0, "3")])
def test_means_that_are_no_list_of_numbers_are_named(means):
    with pytest.raises(TypeError, match="mean_lengths="):
        make_segment_sequences(3, mean_lengths=means)


def test_a_seed_gives_the_same_data_and_there_may_be_none():
    first, again, other = (make_segment_sequences(5, random_state=seed) for seed in (7, 7, 8))
    assert (first.X, first.y, first.dictionaries) == (again.X, again.y, again.dictionaries)
    assert first.X != other.X
    none = make_segment_sequences(0, random_state=0)
    assert (none.X, none.y, none.segments) == ([], [], [])


def test_a_mean_far_above_the_longest_length_makes_all_segments_long():
    data = make_segment_sequences(3, mean_lengths=(1e6,), max_length=4, random_state=0)
    assert {stop - start for start, stop, _ in chain(*data.segments)} == {4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_sequences": -1}, "n_sequences=-1"),
        ({"n_segments": 0}, "n_segments=0"),
        ({"max_length": 0}, "max_length=0"),
        ({"n_symbols": 0}, "n_symbols=0"),
        ({"mean_lengths": (2.0, 0.5)}, "mean_lengths=0.5"),
        ({"mean_lengths": ()}, "mean_lengths is empty"),
        ({"coverage": 1.5}, "coverage=1.5 must be at most 1"),
        ({"noise": -0.1}, "noise=-0.1"),
    ],
)
def test_parameters_out_of_range_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_segment_sequences(**options)


def f1(true, found):
    """F1 of segments."""
    pairs = [(set(a), {tuple(s) for s in b}) for a, b in zip(true, found, strict=True)]
    right = sum(len(a & b) for a, b in pairs)
    return 2 * right / sum(len(a) + len(b) for a, b in pairs)


def test_a_model_of_segments_makes_use_of_the_dictionary_as_tags_cannot():
    data = make_segment_sequences(160, random_state=5)
    train, test = slice(0, 100), slice(100, None)
    tokens, known = ["w", "w[-1]", "w[1]"], {"columns": ["w"], "lexicons": data.dictionaries}
    marked = TemplateFeatures([*tokens, *(f'lexicon(w, "{k}")' for k in data.states)], **known)
    X = marked.fit_transform(data.X)
    crf = CRFClassifier(c2=0.3).fit(X[train], data.y[train])
    tags = [
        [(s.start, s.stop, s.label) for s in spans_from_tags(row)] for row in crf.predict(X[test])
    ]
    whole = SegmentFeatures([f"seg.text in {k}" for k in data.states], **known)
    union = make_sequence_union(TemplateFeatures(tokens, columns=["w"]), whole)
    X = union.fit_transform(data.X)
    semi = SemiMarkovCRF(c2=0.3).fit(X[train], data.segments[train])
    segments = semi.predict_spans(X[test])
    assert f1(data.segments[test], segments) >= f1(data.segments[test], tags) + 0.05
