"""Dual methods of the margin: certificates, the common optimum, steps against enumeration."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.labels.costs import make_cost
from crfkit.losses import LogLoss
from crfkit.losses.margin import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.kernelized import Kernel, KernelChainModel
from crfkit.potentials.linear import choose_features
from crfkit.solvers.historical.margin_dual import SMO, Ascent, Factored, MarginEG
from crfkit.solvers.margin.kernel_frank_wolfe import KernelFrankWolfe
from crfkit.structures import ChainPotentials
from tests.objective.test_batch import make_data, make_objective
from tests.oracles import chain_paths

LENGTHS = (3, 0, 1, 4, 2, 0, 0, 5, 1, 3)
SOLVERS = [
    MarginEG(max_iter=3000, tol=1e-3),
    MarginEG(max_iter=3000, tol=1e-2, batch_tokens=6),
    SMO(max_iter=3000, tol=1e-3),
    SMO(max_iter=3000, tol=1e-3, pair="drawn"),
    SMO(max_iter=3000, tol=3e-2, alpha="max_entropy", pair="drawn"),
]


def make_problem(threads, seed=0, blocks="sparse dense", penalty=0.5, cost="hamming", weight=None,
                 lengths=LENGTHS, scale=1.0, **features):  # fmt: skip
    """An objective of a hinge loss; labels depend on the attributes."""
    rng = np.random.default_rng(seed)
    data, codes = make_data(rng, blocks, lengths=lengths)
    data = data * scale if scale != 1.0 else data
    return margin_objective(data, codes, threads, penalty, cost, weight, **features)


def margin_objective(data, codes, threads, penalty=0.5, cost="hamming", weight=None, **features):
    base = make_objective(data, codes, threads, ElasticNet(0.0, penalty), weight=weight, **features)
    return base.with_loss(HingeLoss(make_cost(cost, np.arange(3).astype(object))))


def kernel_objective(data, codes, threads, penalty=0.5, kernel="linear", weight=None, **params):
    steps = choose_features(data, codes, 3)
    model = KernelChainModel(
        Kernel(kernel, params), None if kernel == "precomputed" else data,
        np.arange(data.n_tokens), steps.transition_from, steps.transition_to, 3,
    )  # fmt: skip
    weight = np.ones(len(codes)) if weight is None else weight
    return Objective(
        model, model.structure, HingeLoss(make_cost("hamming", np.arange(3).astype(object))),
        ElasticNet(0.0, penalty), data, codes, weight, threads,
    )  # fmt: skip


def solve(solver, objective, callback=None):
    return solver.solve(objective, np.zeros(objective.n_parameters), callback)


@pytest.fixture(scope="module")
def optimum():
    """An interval that holds the least objective, from a method that works with kernel values."""
    with ThreadMap(1) as threads:
        data, codes = make_data(np.random.default_rng(0), "dense", lengths=LENGTHS)
        result = solve(KernelFrankWolfe(tol=1e-7, max_iter=2000),
                       kernel_objective(data, codes, threads))  # fmt: skip
    assert result.converged
    return result.value - result.gap, result.value


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_the_gap_bounds_the_distance_from_the_optimum_in_every_pass(solver, optimum):
    with ThreadMap(1) as threads:
        result = solve(solver, make_problem(threads, blocks="dense"))
    assert result.converged
    least, most = optimum
    for record in result.history:
        assert record.value >= least - 1e-9
        assert record.value - record.gap <= most + 1e-9
    assert result.gap <= solver.tol * result.value


def weights_of_marginals(batches, moments):
    """The parameters that expected counts amount to, added up anew."""
    total = np.zeros(batches.n_parameters)
    for index in range(len(batches)):
        scores = batches.scores(batches.bind(total * 0.0), index)
        counts = batches.structure.zeros(scores)
        weight = batches.sequence_weight(index)
        batches.structure.add_counts(scores, batches.labels(index), weight, counts)
        unary, pair = moments(index, scores)
        counts.unary[...] -= unary
        counts.pair[...] -= pair
        np.add.at(total, batches.places(index), batches.gradient(index, counts))
    return total / (2.0 * batches.penalty.l2)


def counts_of_marginals(search, index, scores):
    marginals = search.marginals[index]
    pair = np.zeros_like(scores.pair)
    np.add.at(
        pair, np.broadcast_to(scores.transition_index, len(marginals.node))[1:], marginals.edge
    )
    return search.weight[index] * marginals.node, search.weight[index] * pair


@pytest.mark.parametrize("max_entropy", [False, True])
@pytest.mark.parametrize("pair", ["worst", "drawn"])
def test_smo_keeps_weights_and_marginals_together_and_its_dual_never_falls(max_entropy, pair):
    random = np.random.RandomState(1)
    with ThreadMap(1) as threads:
        weight = np.repeat(np.arange(1.0, 1.0 + len(LENGTHS)), LENGTHS)
        batches = make_problem(threads, weight=weight, boundaries=True).minibatches(1, 0)
        search, duals = Factored(batches, max_entropy), [0.0]
        for _ in range(8):
            for index in random.permutation(len(batches)).tolist():
                search.update(index, random if pair == "drawn" else None)
                duals.append(search.lower_bound)
        expected = weights_of_marginals(
            batches, lambda index, scores: counts_of_marginals(search, index, scores)
        )
    assert (np.diff(duals) >= -1e-10).all()
    assert duals[-1] > 1.0
    np.testing.assert_allclose(search.w, expected, atol=1e-10)
    for marginals in search.marginals:
        np.testing.assert_allclose(marginals.node.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(marginals.edge.sum(axis=2), marginals.node[:-1], atol=1e-12)
        np.testing.assert_allclose(marginals.edge.sum(axis=1), marginals.node[1:], atol=1e-12)


def test_smo_moves_the_mass_that_raises_the_dual_most(monkeypatch):
    found = []
    move = Factored._shift

    def watched(self, index, scores, target, source, slope):
        before = self.marginals[index].node.copy(), self.marginals[index].edge.copy()
        most = self.marginals[index].movable(target, source)
        w = self.w.copy()
        move(self, index, scores, target, source, slope)
        reached, after = self.lower_bound, (self.marginals[index].node, self.marginals[index].edge)
        kept = self.w
        for mass in np.linspace(0.0, most, 7):
            self.marginals[index].node, self.marginals[index].edge = (a.copy() for a in before)
            self.marginals[index].shift(target, source, mass)
            self.w = weights_of_marginals(
                self.batches, lambda i, s: counts_of_marginals(self, i, s)
            )
            found.append(reached - self.lower_bound)
        self.marginals[index].node, self.marginals[index].edge = after
        self.w = kept
        assert not np.array_equal(w, kept)

    monkeypatch.setattr(Factored, "_shift", watched)
    with ThreadMap(1) as threads:
        solve(SMO(max_iter=4), make_problem(threads, boundaries=True))
    assert len(found) > 100
    assert min(found) >= -1e-10


def enumerated(scores, theta):
    """The distribution ``exp(theta)`` of the labelings of a sequence."""
    paths = [path for path, _ in chain_paths(scores, 0)]
    values = np.array([score for _, score in chain_paths(theta, 0)])
    mass = np.exp(values - values.max())
    return paths, mass / mass.sum()


def test_a_step_of_the_exponentiated_gradient_multiplies_probabilities(rng):
    """Algorithm 2 of the report, over all labelings."""
    with ThreadMap(1) as threads:
        batches = make_problem(threads, lengths=(4, 3)).minibatches(1, 0)
        search = Ascent(batches)
        search.w[:] = rng.normal(size=batches.n_parameters)
        bound, rate = batches.bind(search.w), 0.7
        search.rates[:] = 0.3
        first = search.blocks[0] = search.propose(bound, 0).block
        search.w[:] = rng.normal(size=batches.n_parameters)
        bound = batches.bind(search.w)
        search.rates[:] = rate
        second = search.propose(bound, 0).block
        scores = search.augmented(bound, 0)
    cut = scores.unary.size

    def theta_of(block):
        return ChainPotentials.of(block.scores[:cut].reshape(scores.unary.shape),
                      block.scores[cut:].reshape(scores.pair.shape), scores.offsets)  # fmt: skip

    paths, before = enumerated(scores, theta_of(first))
    gradient = np.array([score for _, score in chain_paths(scores, 0)])
    after = before * np.exp(rate * (gradient - gradient.max()))
    after /= after.sum()
    np.testing.assert_allclose(enumerated(scores, theta_of(second))[1], after, atol=1e-12)
    labels = batches.labels(0)
    cost = np.array([np.count_nonzero(np.array(path) != labels) for path in paths])
    np.testing.assert_allclose(second.cost, after @ cost, rtol=1e-10)


@pytest.mark.parametrize("batch_tokens", [1, 7])
def test_the_dual_of_the_exponentiated_gradient_never_falls(batch_tokens):
    with ThreadMap(1) as threads:
        weight = np.repeat(np.arange(1.0, 1.0 + len(LENGTHS)), LENGTHS)
        objective = make_problem(threads, weight=weight, boundaries=True)
        batches = objective.minibatches(batch_tokens, 0)
        search, duals = Ascent(batches), [0.0]
        for _ in range(40):
            for index in range(len(batches)):
                search.update(index)
                duals.append(search.lower_bound)

        def moments(index, scores):
            block, cut = search.blocks[index], scores.unary.size
            if block is None:  # no labels, no step
                return 0.0, 0.0
            return block.expected[:cut].reshape(scores.unary.shape), block.expected[cut:].reshape(
                scores.pair.shape
            )

        expected = weights_of_marginals(batches, moments)
    assert (np.diff(duals) >= -1e-10).all()
    assert duals[-1] > 1.0
    np.testing.assert_allclose(search.weights(), expected, atol=1e-9)


FEW = [MarginEG(max_iter=20), SMO(max_iter=20), SMO(max_iter=20, pair="drawn")]


@pytest.mark.parametrize("solver", FEW, ids=str)
def test_results_do_not_depend_on_the_number_of_threads(solver):
    results = []
    for jobs in (1, 3):
        with ThreadMap(jobs) as threads:
            results.append(solve(solver, make_problem(threads)))
    np.testing.assert_array_equal(results[0].parameters, results[1].parameters)
    assert [r.value for r in results[0].history] == [r.value for r in results[1].history]


@pytest.mark.parametrize("solver", FEW, ids=str)
def test_a_weight_of_two_is_as_good_as_having_a_sequence_twice(solver):
    solver = type(solver)(max_iter=3000, tol=1e-3)
    data, codes = make_data(np.random.default_rng(0), lengths=(2, 1, 3, 1))
    twice = data[[0, 1, 1, 2, 3]]
    bounds = data.offsets
    again = np.concatenate([codes[: bounds[2]], codes[bounds[1] : bounds[2]], codes[bounds[2] :]])
    weight = np.repeat([1.0, 2.0, 1.0, 1.0], (2, 1, 3, 1))
    with ThreadMap(1) as threads:
        one = solve(solver, margin_objective(data, codes, threads, weight=weight))
        other = solve(solver, margin_objective(twice, again, threads))
    assert one.value - one.gap <= other.value + 1e-9
    assert other.value - other.gap <= one.value + 1e-9


@pytest.mark.parametrize("solver", FEW, ids=str)
def test_sequences_of_weight_0_have_no_part_in_it(solver):
    data, codes = make_data(np.random.default_rng(0), lengths=(3, 1, 4))
    weight = np.repeat([1.0, 0.0, 1.0], (3, 1, 4))
    flipped = codes.copy()
    flipped[3] = (codes[3] + 1) % 3
    with ThreadMap(1) as threads:
        values = [
            solve(solver, margin_objective(data, labels, threads, weight=weight)).value
            for labels in (codes, flipped)
        ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("solver", FEW, ids=str)
@pytest.mark.parametrize("lengths", [(1, 1, 1), (1,), (0, 2), (2, 0, 0, 1, 0)], ids=str)
def test_short_and_empty_sequences(solver, lengths):
    solver = type(solver)(max_iter=2000, tol=1e-2)
    with ThreadMap(1) as threads:
        result = solve(solver, make_problem(threads, lengths=lengths))
    assert result.converged


@pytest.mark.parametrize("solver", FEW, ids=str)
def test_features_of_any_size(solver):
    rng = np.random.default_rng(0)
    data, codes = make_data(rng, "dense", lengths=LENGTHS)
    for scale in (1e-4, 1e4):
        scaled = PackedSequences(dense=data.dense * scale, offsets=data.offsets)
        with ThreadMap(1) as threads:
            result = solve(solver, margin_objective(scaled, codes, threads))
        assert np.isfinite(result.value)
        assert np.isfinite(result.parameters).all()
        assert 0.0 <= result.value - result.gap <= result.value


@pytest.mark.parametrize("solver", FEW, ids=str)
def test_one_label_costs_nothing(solver):
    data, codes = make_data(np.random.default_rng(0), lengths=(3, 1))
    with ThreadMap(1) as threads:
        model = choose_features(data, codes * 0, 1)
        objective = Objective(
            model, model.structure, HingeLoss(), ElasticNet(0.0, 0.5), data, codes * 0,
            np.ones(4), threads,
        )  # fmt: skip
        result = solve(solver, objective)
    assert result.value == 0.0
    assert not result.parameters.any()


@pytest.mark.parametrize("cost", [{0: 3.0, 1: 0.5}, [[0, 2, 1], [1, 0, 5], [0.5, 1, 0]]], ids=str)
def test_any_cost_that_is_a_sum_over_tokens(cost):
    bounds = []
    for solver in (MarginEG(max_iter=3000, tol=3e-3), SMO(max_iter=3000, tol=3e-3)):
        with ThreadMap(1) as threads:
            result = solve(solver, make_problem(threads, cost=cost, lengths=(3, 0, 1, 4)))
        assert result.converged
        bounds.append((result.value - result.gap, result.value))
    assert max(lower for lower, _ in bounds) <= min(upper for _, upper in bounds)


@pytest.mark.parametrize("solver", FEW, ids=str)
def test_objectives_that_do_not_fit_are_refused(solver):
    with ThreadMap(1) as threads:
        objective = make_problem(threads)
        with pytest.raises(ValueError, match="needs the hinge loss with margin rescaling, not Log"):
            solve(solver, objective.with_loss(LogLoss()))
        with pytest.raises(ValueError, match="not HingeLoss with slack rescaling"):
            solve(solver, objective.with_loss(HingeLoss(rescaling="slack")))
        with pytest.raises(ValueError, match="a cost that is a sum over tokens"):
            solve(solver, objective.with_loss(HingeLoss("zero_one")))
        with pytest.raises(ValueError, match="needs an L2 penalty"):
            solve(solver, objective.with_penalty(ElasticNet(0.0, 0.0)))
        weight = np.arange(1.0, 1.0 + sum(LENGTHS))
        with pytest.raises(ValueError, match="the same weight for all tokens"):
            solve(solver, make_problem(threads, weight=weight))


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (SMO(pair="best"), "pair='best'"),
        (SMO(alpha="half"), "alpha='half'"),
        (SMO(max_iter=-1), "max_iter=-1"),
        (MarginEG(tol=-1.0), "tol=-1"),
        (MarginEG(batch_tokens=0), "batch_tokens=0"),
        (KernelFrankWolfe(steps=0), "steps=0"),
        (KernelFrankWolfe(max_gib=-1), "max_gib=-1"),
    ],
)
def test_parameters_out_of_range_are_refused(solver, message):
    with ThreadMap(1) as threads, pytest.raises(ValueError, match=message):
        solve(solver, make_problem(threads))


@pytest.mark.parametrize("solver", [*FEW, KernelFrankWolfe()], ids=str)
def test_an_interrupted_search_keeps_its_last_pass(solver):
    solver = type(solver)(max_iter=50, tol=0.0)

    def interrupt(record, w):
        if record.iteration == 2:
            raise KeyboardInterrupt

    with ThreadMap(1) as threads:
        data, codes = make_data(np.random.default_rng(0), "dense", lengths=LENGTHS)
        make = kernel_objective if isinstance(solver, KernelFrankWolfe) else margin_objective
        result = solve(solver, make(data, codes, threads), interrupt)
        stopped = solve(solver, make(data, codes, threads), lambda record, w: record.iteration == 2)
    assert result.interrupted
    assert result.n_iter == stopped.n_iter == 2
    assert result.value == stopped.value
    np.testing.assert_array_equal(result.parameters, stopped.parameters)


@pytest.mark.parametrize("solver", FEW, ids=str)
def test_a_bound_above_the_objective_is_no_certificate(solver):
    class Wrong(type(solver)):
        def _start(self, batches, start, random):
            search = super()._start(batches, start, random)
            kind = type("Wrong", (type(search),), {"lower_bound": 1e6})
            search.__class__ = kind
            return search

    with ThreadMap(1) as threads:
        result = solve(Wrong(**solver.get_params() | {"max_iter": 2}), make_problem(threads))
    assert not result.converged
    assert np.isnan(result.gap)
    assert "nan" not in result.message
