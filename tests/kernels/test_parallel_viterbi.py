"""What best paths share, against enumeration of all paths; also run with the compiler off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH
from crfkit.kernels.chain import parallel_viterbi as kernels
from tests.oracles import chain_paths, random_scores
from tests.sampling import examples


def shared_by_best_paths(scores, ends=False):
    """Return the first labels that the best paths to all last labels share, by enumeration."""
    best = {}
    for path, score in chain_paths(scores, 0):
        last = -1 if ends else path[-1]
        if score > -np.inf:
            best[last] = max(best.get(last, (-np.inf,)), (score, [-label for label in path[::-1]]))
    if not best:
        return None
    paths = [[-label for label in turned[::-1]] for _, turned in best.values()]
    shared = paths[0]
    while any(path[: len(shared)] != shared for path in paths):
        shared = shared[:-1]
    return shared


def exact(seed, length, n_labels, scale, forbidden, *, shared_tables=False, dead=()):
    """Return scores whose sums are exact."""
    scores = random_scores(
        seed, [length], n_labels, shared_tables=shared_tables, scale=scale, forbidden=forbidden
    )
    scores.unary[list(dead)] = -np.inf
    unary, pair = np.round(scores.unary), np.round(scores.pair)
    return scores._replace(unary=frozen(unary), pair=frozen(pair),
                           transition_index=frozen(scores.transition_index))  # fmt: skip


def shared_in_run(scores, ends):
    size = scores.unary.shape[1]
    best, labels = np.empty_like(scores.unary), np.empty(len(scores.unary), np.int32)
    best[0] = scores.unary[0]
    kernels.survivors_best(scores.unary, scores.pair, scores.transition_index, best)
    alive = np.zeros((2, size), np.int32)
    known = kernels.survivors_meet(scores.pair, scores.transition_index, ends, alive, best, labels)
    return None if known == kernels.DEAD else labels[:known].tolist()


def shared_in_lanes(scores, apart, length):
    size = scores.unary.shape[1]
    best, back = np.empty((2, size, WIDTH)), np.empty((length, WIDTH))
    with np.errstate(invalid="ignore"):  # the difference of two -inf, which is not positive
        kernels.lanes_best(scores.unary, scores.pair, 0, apart, best, back)
    labels, known = np.empty((WIDTH, length), np.int32), np.empty(WIDTH, np.int32)
    alive, label = np.zeros((2, size), np.int32), np.empty(WIDTH, np.int32)
    kernels.lanes_meet(frozen(best), frozen(back), alive, label, labels, known)
    return [
        None if count == kernels.DEAD else row[:count].tolist()
        for count, row in zip(known, labels, strict=True)
    ]


some = {"seed": st.integers(0, 2**32 - 1), "n_labels": st.integers(1, 4),
        "scale": st.sampled_from([0.4, 1.0, 3.0, 1e4]), "forbidden": st.sampled_from([0.0, 0.4]),
        "dead": st.sampled_from([(), (), (), (2,)])}  # fmt: skip


@given(st.builds(exact, length=st.integers(3, 5), shared_tables=st.booleans(), **some),
       st.booleans())  # fmt: skip
@examples(30)
def test_a_run_knows_what_its_best_paths_share(scores, ends):
    assert shared_in_run(scores, ends) == shared_by_best_paths(scores, ends)


@given(st.builds(exact, length=st.just(3 * WIDTH), **some), st.integers(1, 3), st.integers(1, 3))
@examples(12)
def test_each_of_several_runs_knows_what_its_best_paths_share(scores, apart, length):
    expected = [
        shared_by_best_paths(scores._replace(
            unary=scores.unary[b * apart : b * apart + length], offsets=np.array([0, length])))
        for b in range(WIDTH)
    ]  # fmt: skip
    assert shared_in_lanes(scores, apart, length) == expected


@pytest.mark.parametrize("forbidden", [0.0, 0.5])
def test_as_many_labels_as_fit_give_what_single_runs_give(forbidden):
    scores = exact(0, 7 * 20 + 60, kernels.MAX_LABELS, 2.0, forbidden)
    found = shared_in_lanes(scores, 20, 60)
    for b in range(WIDTH):
        part = scores._replace(unary=scores.unary[20 * b : 20 * b + 60], offsets=np.array([0, 60]))
        assert len(found[b]) > 20
        assert found[b] == shared_in_run(part, ends=False)


def test_the_last_label_of_as_many_as_fit_is_told_from_the_others():
    scores = exact(0, 7 * 20 + 60, kernels.MAX_LABELS, 2.0, 0.0)
    rise = np.where(np.arange(kernels.MAX_LABELS) == kernels.MAX_LABELS - 1, 50.0, 0.0)
    scores = scores._replace(unary=frozen(scores.unary + rise))
    for labels in shared_in_lanes(scores, 20, 60):
        assert set(labels) == {kernels.MAX_LABELS - 1}
