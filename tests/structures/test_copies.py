"""Structures over copies of labels: two of each, for even and odd numbers of labels so far."""

import numpy as np
import pytest

from crfkit.structures import Chain, NoPathError, chain
from crfkit.structures.copies import copied_chain, make_copies
from tests.contracts.structures import problem
from tests.oracles import random_scores
from tests.sampling import PROBLEMS


def in_turns(n_labels, last=None):
    """Copies for even and odd numbers of labels so far; sequences end with some parity."""
    odd = np.arange(2 * n_labels) % 2 == 1
    ends = np.ones(2 * n_labels, bool) if last is None else odd == last
    steps = np.nonzero(odd[:, None] != odd)
    return make_copies(np.repeat(np.arange(n_labels), 2), *steps, odd, ends)


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("name", ["chain", "sparse chain", "segments with an offset"])
def test_random_problems_over_copies_are_those_over_labels(name, few, monkeypatch):
    monkeypatch.setattr(chain, "FEW_COPIES", few)
    for seed in range(PROBLEMS):
        structure, scores, _ = problem(name, seed)
        size = scores.n_labels
        copies = in_turns(size)
        found, value = structure.argmax_of_copies(scores, copies)
        labels, best = structure.argmax(scores)
        np.testing.assert_array_equal(found // (2 * size) * size + found % (2 * size) // 2, labels)
        np.testing.assert_array_equal(value, best)
        other, wide = structure.with_copies(scores, copies)
        np.testing.assert_array_equal(found, other.argmax(wide)[0])
        assert (found[scores.offsets[:-1][np.diff(scores.offsets) > 0]] % 2 == 1).all()


def test_the_end_of_all_paths_of_copies_is_told(monkeypatch):
    scores = random_scores(0, [2, 3, 4], 2)
    dead = scores._replace(unary=scores.unary.copy())
    dead.unary[3] = -np.inf
    for few in (0, 1000):
        monkeypatch.setattr(chain, "FEW_COPIES", few)
        for given, copies, s, t in ((scores, in_turns(2, True), 0, 1), (dead, in_turns(2), 1, 1)):
            with pytest.raises(NoPathError) as error:
                Chain().argmax_of_copies(given, copies)
            assert (error.value.sequence, error.value.position) == (s, t)


def test_tables_of_transitions_that_no_token_has_are_left_out():
    scores = random_scores(1, [3, 2], 2, own_steps=True)
    wide = copied_chain(scores.run(slice(1, 2)), in_turns(2))
    assert len(scores.pair) == 5 and len(wide.pair) == 2 and wide.first == 1
