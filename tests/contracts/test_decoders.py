"""Every decoder on every structure: it reaches its goal, and what it chooses is allowed."""

import numpy as np
import pytest
from scipy.special import logsumexp

from crfkit.inference import DECODERS, DecodedLabels, MinimumRisk
from crfkit.labels.base import TokenCoding
from crfkit.labels.segmentation import SegmentCoding
from tests.contracts.structures import CASES, MAKERS, problem, problems
from tests.extensions.cautious import CautiousDecoder

COST = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 0.5], [1.0, 3.0, 0.0]])
ALL_DECODERS = {name: lambda size, make=make: make() for name, make in DECODERS.items()} | {
    "costs of labels": lambda size: MinimumRisk({"O": 0.25} if size < 2 else {"O": 0.25, "X": 3.0}),
    "costs of pairs": lambda size: MinimumRisk(COST[:size, :size]),
    "cautious (an extension)": lambda size: CautiousDecoder(),
}
PAIRS = [(decoder, structure) for decoder in sorted(ALL_DECODERS) for structure in MAKERS]


def decoded(name, structure, potentials):
    """The codes that a decoder chooses."""
    size = potentials.n_labels
    of_segments = potentials.n_codes > size
    coding = SegmentCoding("IOB2", "O") if of_segments else TokenCoding()
    labels = DecodedLabels(np.array(["O", "X", "Y"][:size], object), coding)
    return ALL_DECODERS[name](size).decode(structure, potentials, labels)


def goal(name, potentials, listed):
    """How good each labeling of a sequence is for a decoder, (n,); None where it says no such."""
    scores, size = np.array([score for _, score, _ in listed]), potentials.n_labels
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
    paths = np.array([path for path, _, _ in listed], int).reshape(len(listed), -1)
    p = np.exp(scores - logsumexp(scores))
    costs = (table[true, paths].sum(axis=1) for true in paths)
    return -sum(share * cost for share, cost in zip(p, costs, strict=True))


@pytest.fixture(params=PAIRS, ids=" on ".join)
def pair(request):
    return request.param


def test_each_decoder_reaches_its_goal_on_random_problems(pair):
    name, structure_name = pair
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


def test_labels_are_those_of_each_sequence_alone(pair):
    name, structure_name = pair
    for seed in range(3):
        structure, potentials, _ = problem(structure_name, seed)
        found = decoded(name, structure, potentials)
        alone = [decoded(name, structure, one) for one in potentials.each()]
        assert found.tolist() == np.concatenate(alone).tolist()


def test_no_sequences_have_no_labels(pair):
    name, structure_name = pair
    none = problem(structure_name, 0).potentials.take(np.array([], int))
    assert decoded(name, CASES[structure_name].structure, none).shape == (0,)
