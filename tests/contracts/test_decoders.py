"""Every decoder on every structure: it reaches its goal, and what it chooses is allowed."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import softmax

from crfkit.inference import DECODERS, Abstain, DecodedLabels, ExpectedSpans, MinimumRisk, spans
from crfkit.labels.base import TokenCoding
from crfkit.labels.segmentation import SegmentCoding
from crfkit.structures import Capability
from tests.contracts.structures import CASES, problem, problems
from tests.extensions.cautious import CautiousDecoder

COST = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 0.5], [1.0, 3.0, 0.0]])
ALL_DECODERS = {name: lambda size, make=make: make() for name, make in DECODERS.items()} | {
    "costs of labels": lambda size: MinimumRisk({"O": 0.25} if size < 2 else {"O": 0.25, "X": 3.0}),
    "costs of pairs": lambda size: MinimumRisk(COST[:size, :size]),
    "doubtful spans": lambda size: ExpectedSpans(0.05),
    "spans of tags": lambda size: ExpectedSpans(0.2),
    "spans everywhere": lambda size: ExpectedSpans(0.3),
    "cautious (an extension)": lambda size: CautiousDecoder(),
}
NAMES = {"spans of tags": ["O", "B-X", "I-X"], "spans everywhere": ["X", "Y", "Z"]}
PAIRS = [
    (decoder, structure)
    for decoder in sorted(ALL_DECODERS)
    for structure, case in CASES.items()
    if "spans" not in decoder or Capability.SPANS in case.structure.capabilities
]


def labels_of(name, potentials):
    """What the codes of a problem stand for."""
    size = potentials.n_labels
    coding = SegmentCoding("IOB2", "O") if potentials.n_codes > size else TokenCoding()
    names = NAMES.get(name, ["O", "X", "Y"])[:size]
    return DecodedLabels(np.array(names, object), coding)


def decoded(name, structure, potentials):
    """The codes that a decoder chooses."""
    decoder = ALL_DECODERS[name](potentials.n_labels)
    return decoder.decode(structure, potentials, labels_of(name, potentials))


def spans_of(name, potentials, paths):
    """The spans that each labeling stands for."""
    ends = np.array([0, paths.shape[1]])
    reading = labels_of(name, potentials).reading
    return [set(zip(*reading.spans(path.astype(np.int32), ends), strict=True)) for path in paths]


def goal(name, potentials, listed):
    """How good each labeling of a sequence is for a decoder, (n,); None where it says no such."""
    scores, size = np.array([score for _, score, _ in listed]), potentials.n_labels
    paths = np.array([path for path, _, _ in listed], int).reshape(len(listed), -1)
    p = softmax(scores)
    if "spans" in name:
        found = spans_of(name, potentials, paths)
        proba = Counter()
        for share, own in zip(p, found, strict=True):
            proba.update(dict.fromkeys(own, share))
        least = ALL_DECODERS[name](size).threshold
        return np.array([sum(proba[span] - least for span in own) for own in found])
    table = {
        "posterior": 1.0 - np.eye(size),
        "costs of labels": np.array([0.25, 3.0, 1.0])[:size, None] * (1.0 - np.eye(size)),
        "costs of pairs": COST[:size, :size],
    }.get(name)
    if table is None:
        return scores if name == "viterbi" else None
    if potentials.n_codes > size:  # where a segment begins is worth as much as the worst label
        edge = np.ones(1) if size == 1 else table.max(axis=1)
        table = np.tile(table, (2, 2)) + np.kron(1.0 - np.eye(2), np.diag(edge))
    costs = (table[true, paths].sum(axis=1) for true in paths)
    return -sum(share * cost for share, cost in zip(p, costs, strict=True))


@pytest.fixture(params=PAIRS, ids=" on ".join)
def pair(request):
    return request.param


def test_each_decoder_reaches_its_goal_on_random_problems(pair, monkeypatch):
    name, structure_name = pair
    monkeypatch.setattr(spans, "LEAST", 1e-12)
    monkeypatch.setattr(spans, "LISTED", 1000)
    for structure, potentials, listed in problems(structure_name):
        found, offsets = decoded(name, structure, potentials), potentials.offsets
        assert found.shape == (len(potentials.unary),) and found.dtype == np.int32
        for s, labelings in enumerate(listed):
            own = tuple(found[offsets[s] : offsets[s + 1]].tolist())
            (place,) = [i for i, (path, _, _) in enumerate(labelings) if path == own]  # allowed
            value = goal(name, potentials, labelings)
            if value is not None:
                atol = 1e-9 * max(1.0, np.abs(value).max())
                np.testing.assert_allclose(value[place], value.max(), rtol=0.0, atol=atol)


@pytest.mark.parametrize(
    ("of", "name"),
    [("tokens", name) for name in CASES] + [pair for pair in PAIRS if pair[0] == "spans"],
)
def test_what_is_doubtful_is_withheld_on_random_problems(name, of):
    for seed, (structure, potentials, listed) in enumerate(problems(name)):
        least, labels = 0.1 + 0.8 * (seed % 7) / 6, labels_of("viterbi", potentials)
        codes = Abstain("posterior", threshold=least, of=of).decode(structure, potentials, labels)
        plain = decoded("posterior", structure, potentials)
        assert np.where(codes < 0, ~codes, codes).tolist() == plain.tolist()
        for s, labelings in enumerate(listed):
            own = slice(*potentials.offsets[s : s + 2])
            paths = np.array([path for path, _, _ in labelings], int).reshape(len(labelings), -1)
            p = softmax(np.array([score for _, score, _ in labelings]))
            size, said = potentials.n_labels, plain[own]
            if of == "tokens":
                proba = p @ (paths % size == said % size)
            else:
                found = spans_of("viterbi", potentials, np.vstack([said, paths]))
                proba = np.ones(len(said))
                for span in found[0]:
                    proba[span[0] : span[1]] = sum(p[[span in other for other in found[1:]]])
            near = np.abs(proba - least) < 1e-9
            assert ((codes[own] < 0) == (proba < least))[~near].all()


def check_alone(name, structure_name):
    """Labels are allowed, and those of each sequence alone."""
    for seed in range(3):
        structure, potentials, listed = problem(structure_name, seed)
        found, offsets = decoded(name, structure, potentials), potentials.offsets
        alone = [decoded(name, structure, one) for one in potentials.each()]
        assert found.tolist() == np.concatenate(alone).tolist()
        for own, labelings in zip(np.split(found, offsets[1:-1]), listed, strict=True):
            assert tuple(own.tolist()) in [path for path, _, _ in labelings]


def test_labels_are_those_of_each_sequence_alone(pair):
    check_alone(*pair)


@pytest.mark.parametrize("structure_name", [name for who, name in PAIRS if who == "spans"])
def test_tokens_of_no_likely_span_have_the_most_probable_labels(structure_name, monkeypatch):
    monkeypatch.setattr(spans, "LEAST", 0.3)
    check_alone("spans everywhere", structure_name)


def test_no_sequences_have_no_labels(pair):
    name, structure_name = pair
    none = problem(structure_name, 0).potentials.take(np.array([], int))
    assert decoded(name, CASES[structure_name].structure, none).shape == (0,)
