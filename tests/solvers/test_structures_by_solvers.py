"""Solvers by structures: compiled code does what the same kernels do in Python."""

import contextlib

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.data.targets import Targets
from crfkit.kernels.solvers.frank_wolfe import FrankWolfeOptions
from crfkit.kernels.solvers.online import ONE, ROOT, WHOLE, UpdateCoefficients
from crfkit.labels.costs import AdditiveCost
from crfkit.losses import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.oracles.label_order import LabelOrder
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear import chain_model
from crfkit.solvers.margin.dual_state import ENOUGH, VertexState, make_margin_state
from crfkit.solvers.margin.planes import PlaneState
from crfkit.solvers.online.learner import OnlineProblem, SequentialLearner, make_learner
from crfkit.structures import SparseChain
from tests.solvers.test_segments import problem as segment_problem

LENGTHS = (3, 0, 1, 4, 2, 5, 6, 1, 2)
UPDATES = {
    "perceptron": UpdateCoefficients(rate=0.5),
    "pa": UpdateCoefficients(pays=ROOT),
    "pa1": UpdateCoefficients(cap=0.05, pays=ONE),
    "mira": UpdateCoefficients(cap=0.3, pays=WHOLE),
    "arow": UpdateCoefficients(extra=2.0, variance=3.0, pays=WHOLE),
}
# Numbers of labels and what transitions are: of 60 labels, few pairs have a weight.
CHAINS = {
    "plain": (4, False, False),
    "boundaries": (9, True, False),
    "input-dependent": (4, False, True),
    "both": (10, True, True),
    "sparse": (60, True, False),
}
STRUCTURES = [*CHAINS, "segments", "segments with offsets"]
SEEDS = {"segments with offsets": 1, "boundaries": 2}
SAME = {"rtol": 1e-12, "atol": 1e-12}


def attribute_weights(rng, n_sparse, n_dense, n_columns, share):
    """Weights of some pairs of attributes and columns."""
    shares = rng.choice(share, size=(n_sparse + n_dense, 1))
    mask = rng.random((n_sparse + n_dense, n_columns)) < shares
    ptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    return AttributeWeights(ptr, mask.nonzero()[1], n_columns=n_columns, n_sparse=n_sparse)


def packed(rng, rows, n_sparse, **more):
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    return PackedSequences(
        sp.csr_array(rows[:, :n_sparse]), dense=rows[:, n_sparse:], offsets=offsets, **more
    )


@contextlib.contextmanager
def chain_problem(kind, loss):
    """A small objective over chains, with numbers as features, so that few scores are equal."""
    rng, (size, boundaries, attributes) = np.random.default_rng(3), CHAINS[kind]
    n_tokens = sum(LENGTHS)
    x = rng.normal(size=(n_tokens, 12)) * (rng.random((n_tokens, 12)) < 0.6)
    data = packed(rng, x, 10)
    state, own = attribute_weights(rng, 10, 2, size, (0.1, 0.9)), None
    if attributes:
        pool = rng.normal(size=(5, 6)) * (rng.random((5, 6)) < 0.6)
        data = data.with_transitions(packed(rng, pool[rng.integers(5, size=n_tokens)], 5))
        own = attribute_weights(rng, 5, 1, size**2, (0.02, 0.7))
    pairs = np.nonzero(rng.random((size, size)) < (0.05 if size > 50 else 0.7))
    model = chain_model(state, *pairs, boundaries=boundaries, transition_attributes=own)
    codes = rng.integers(size, size=n_tokens).astype(np.int32)
    weight = np.repeat(rng.choice([0.5, 1.0, 2.0], size=len(LENGTHS)), LENGTHS)
    with ThreadMap(1) as threads:
        yield Objective(
            model, model.structure, loss, ElasticNet(0.0, 0.1), data, codes, weight, threads
        )


def problem(kind, costs):
    """A problem with costs that differ."""
    size = CHAINS[kind][0] if kind in CHAINS else 4
    table = costs.random((size, size))
    np.fill_diagonal(table, 0.0)
    loss = HingeLoss(AdditiveCost(table))
    if kind in CHAINS:
        return chain_problem(kind, loss)
    fixed = "poisson" if kind == "segments with offsets" else "free"
    return segment_problem(fixed, loss, (0.0, 0.1), lengths=LENGTHS, dense=True)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("costly", [False, True])
def test_online_updates_are_the_same_compiled_and_in_python(rng, kind, update, costly):
    with problem(kind, rng) as objective:
        cost = objective.loss.cost if costly else None
        order = LabelOrder.by_code(objective.model.n_codes)
        task = OnlineProblem(objective, UPDATES[update], cost, None, order)
        start = 0.1 * rng.normal(size=objective.n_parameters)
        fast, plain = make_learner(task, start), SequentialLearner(task, start)
        assert fast.is_compiled
        assert (kind == "sparse") == isinstance(objective.structure, SparseChain)
        for _ in range(3):
            sequences = rng.permutation(len(LENGTHS))
            found, expected = fast.run(sequences), plain.run(sequences)
            assert found[1] == expected[1]
            np.testing.assert_allclose(found[0], expected[0], **SAME)
            np.testing.assert_allclose(fast.weights(), plain.weights(), **SAME)
            np.testing.assert_allclose(fast.mean(), plain.mean(), **SAME)
        assert (fast.weights() != start).any()
        assert not fast.state.scratch.any()


def latent_perceptron(objective, w, order):
    """The perceptron whose true labels are the best ones that are allowed, by definition."""
    batches, n_mistakes = objective.minibatches(1, 0), 0
    chunks = {int(batches._order[chunk.first]): index for index, chunk in enumerate(batches.chunks)
              if chunk.tokens.stop > chunk.tokens.start}  # fmt: skip
    for s in order:
        index = chunks.get(s)
        if index is None:
            continue
        scores = batches.scores(batches.bind(w), index)
        allowed = batches.targets(index).allowed
        true, found = (
            batches.structure.argmax(each)[0] for each in (scores.clamp(allowed), scores)
        )
        if not allowed[np.arange(len(found)), found].all():
            out, weight = batches.structure.zeros(scores), batches.sequence_weight(index)
            batches.structure.add_counts(scores, true, weight, out)
            batches.structure.add_counts(scores, found, -weight, out)
            w[batches.places(index)] += 0.5 * batches.gradient(index, out)
            n_mistakes += 1
    return n_mistakes


def test_the_best_labels_that_are_allowed_stand_for_the_true_ones(rng):
    with problem("plain", rng) as objective:
        allowed = rng.random((objective.data.n_tokens, 4)) < 0.5
        allowed[np.arange(len(allowed)), objective.labels] = True
        objective.targets = Targets.of_allowed(allowed)
        w = 0.1 * rng.normal(size=objective.n_parameters)
        task = OnlineProblem(objective, UPDATES["perceptron"], order=LabelOrder.by_code(4))
        fast, plain = make_learner(task, w), SequentialLearner(task, w)
        for _ in range(3):
            order = rng.permutation(np.flatnonzero(LENGTHS))
            mistakes = latent_perceptron(objective, w, order.tolist())
            for learner in (fast, plain):
                assert learner.run(order)[1] == mistakes > 0
                np.testing.assert_allclose(learner.weights(), w, **SAME)
        assert fast.is_compiled


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("pairwise", [True, False], ids=["pairwise", "classic"])
def test_frank_wolfe_is_the_same_compiled_and_in_python(kind, pairwise):
    """The seed is one where no two vertices of a sequence are equally good when one is left.

    An exact step makes two of them so; if no other sequence moves them apart, rounding decides.
    """
    rng = np.random.default_rng(SEEDS.get(kind, 0))
    with problem(kind, rng) as objective:
        batches = objective.minibatches(1, 0)
        fast = make_margin_state(batches, "pairwise" if pairwise else "classic")
        options = FrankWolfeOptions(pairwise, 1, ENOUGH, batches.penalty.l2)
        plain = PlaneState(batches, options, together=False)
        assert type(fast) is VertexState
        for _ in range(5):
            sequences = rng.permutation(len(batches))
            fast.advance(sequences), plain.advance(sequences)
            np.testing.assert_allclose(fast.unpack(fast.w), plain.w, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(fast.levels, plain.levels, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(fast.lower_bound, plain.lower_bound, rtol=1e-11)
        shares = [np.count_nonzero(kept._shares) for kept in plain._kept]
        np.testing.assert_array_equal(fast.active.counts, shares)
        w = rng.normal(size=objective.n_parameters)
        np.testing.assert_allclose(fast.value(w), plain.value(w), rtol=1e-12)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_all_forms_of_frank_wolfe_close_the_same_gap(rng, kind):
    with problem(kind, rng) as objective:
        batches = objective.minibatches(1, 0)
        bounds, values = [], []
        for steps in ("marginals", "pairwise"):
            state = make_margin_state(batches, steps)
            for _ in range(300):
                state.advance(np.arange(len(batches)))
            bounds.append(state.lower_bound)
            values.append(state.value(state.unpack(state.w)))
        assert max(bounds) - min(bounds) < 5e-3 * min(values)
        assert 0.0 <= min(values) * (1.0 + 1e-12) - max(bounds) < 2e-2 * min(values)
