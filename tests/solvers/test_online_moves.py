"""Online learning: the compiled visits of a chain are those of any structure, and those by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._parallel import ThreadMap
from crfkit.inference.beam import BeamSearch
from crfkit.kernels.solvers.online import ONE, ROOT, SHARE, WHOLE, UpdateCoefficients
from crfkit.labels.costs import AdditiveCost, make_cost
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.oracles.label_order import LabelOrder
from crfkit.potentials.linear import choose_features
from crfkit.solvers.online.learner import (
    BatchLearner,
    InfiniteScoresError,
    KBestLearner,
    OnlineProblem,
    SequentialLearner,
    count_updates,
    hildreth,
    make_learner,
)
from crfkit.structures import Chain
from tests.objective.test_batch import make_data, make_objective
from tests.sampling import examples
from tests.solvers.test_average_moves import make_form
from tests.solvers.test_dual_moves import LENGTHS, wide_objective

RULES = {
    "perceptron": UpdateCoefficients(rate=0.5),
    "pa": UpdateCoefficients(pays=ROOT),
    "pa1": UpdateCoefficients(cap=0.05, pays=ONE),
    "pa2": UpdateCoefficients(extra=0.7, pays=ROOT),
    "mira": UpdateCoefficients(cap=0.3, pays=WHOLE),
    "arow": UpdateCoefficients(extra=2.0, variance=3.0, pays=WHOLE),
}


def make_task(rng, threads, rule, form="sparse", n_labels=3, cost=None, lengths=LENGTHS, **more):
    data, codes = make_form(rng, form, n_labels, lengths)
    weight = np.repeat(rng.choice([0.0, 1.0, 2.0], p=[0.1, 0.6, 0.3], size=len(lengths)), lengths)
    objective = wide_objective(data, codes, n_labels, threads, weight)
    return OnlineProblem(objective, rule, cost, **more)


def uneven_cost(rng, n_labels):
    table = rng.random((n_labels, n_labels)).round(2)
    np.fill_diagonal(table, 0.0)
    return AdditiveCost(table)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("form", ["sparse", "dense", "both"])
@pytest.mark.parametrize("n_labels", [1, 3, 9])
@pytest.mark.parametrize("costly", [False, True])
def test_the_visits_of_a_chain_are_those_of_any_structure(rng, rule, form, n_labels, costly):
    cost = uneven_cost(rng, n_labels) if costly else None
    with ThreadMap(1) as threads:
        task = make_task(rng, threads, RULES[rule], form, n_labels, cost)
        start = rng.normal(size=task.objective.n_parameters)
        before = start.copy()
        fast, plain = make_learner(task, start), SequentialLearner(task, start)
        assert fast.is_compiled
        for _ in range(4):
            order = rng.permutation(len(LENGTHS))
            found, expected = fast.run(order), plain.run(order)
            assert found[1] == expected[1]
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
            assert_same(fast, plain)
        assert (n_labels == 1) == (not (fast.weights() != before).any())
        np.testing.assert_array_equal(start, before)
        again = make_learner(task, 0.0 * start, fast.save())
        again.run(order), plain.run(order)
        assert_same(again, plain)


def assert_same(fast, plain, tolerance=1e-9):
    same = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(fast.weights(), plain.weights(), **same)
    np.testing.assert_allclose(fast.mean(), plain.mean(), **same)
    found, expected = fast.save(), plain.save()
    assert found["count"] == expected["count"]
    np.testing.assert_allclose(found["gained"], expected["gained"], **same)
    assert not fast.state.scratch.any()
    assert np.count_nonzero(fast.state.current) <= len(fast.weights())


class ByHand:
    """The rules, by dense arithmetic on a list of features of whole labelings."""

    def __init__(self, task, start):
        self.task, self.w, self.rule = task, start.copy(), task.update
        self.batches = task.objective.minibatches(0, 0)
        objective = task.objective
        self.data, self.codes, self.model = objective.data, objective.labels, objective.model
        self.precision = np.ones(len(start)) / (self.rule.variance or 1.0)
        self.all = [start.copy()]

    def features(self, s, labels):
        """The features of a labeling, by the gradient of its score."""
        begin, end = self.data.offsets[s : s + 2]
        x = np.zeros((end - begin, self.data.n_features))
        x[:] = self.data[s : s + 1].to_csr().toarray()
        ptr, columns = self.model.state.ptr.astype(int), self.model.state.columns
        state = np.zeros(len(columns))
        attributes = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        for t, label in enumerate(labels):
            state[columns == label] += x[t, attributes[columns == label]]
        steps = [
            sum(labels[t - 1] == i and labels[t] == j for t in range(1, len(labels)))
            for i, j in zip(self.model.transition_from, self.model.transition_to, strict=True)
        ]
        return np.concatenate([state, steps])

    def visit(self, s):
        begin, end = self.data.offsets[s : s + 2]
        gold, weight = self.codes[begin:end].tolist(), self.task.weight[s]
        if begin < end and weight:
            self.learn(s, gold, weight)
        self.all.append(self.w.copy())

    def learn(self, s, gold, weight):
        paths = [()]
        for _ in gold:
            paths = [(*path, k) for path in paths for k in range(self.model.n_labels)]
        phi = np.array([self.features(s, path) for path in paths])
        scores = phi @ self.w
        # The lowest labels from the last token on, of paths whose scores are the same.
        near = np.flatnonzero(scores >= scores.max() - 1e-9)
        best = min((paths[n][::-1], n) for n in near)[1]
        wrong = sum(a != b for a, b in zip(paths[best], gold, strict=True))
        if not wrong:
            return
        true = paths.index(tuple(gold))
        delta, rise = phi[true] - phi[best], scores[best] - scores[true]
        cost = {SHARE: 0.0, ONE: 1.0, ROOT: np.sqrt(wrong), WHOLE: wrong}[self.rule.pays]
        variance = 1.0 / self.precision if self.rule.variance else np.ones(len(delta))
        length = self.rule.rate
        square = self.rule.extra + variance @ delta**2
        if not length and square:
            length = min(self.rule.cap, (rise + cost) / square)
        self.w += weight * length * variance * delta
        if self.rule.variance:
            self.precision += delta**2 / self.rule.extra


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_steps_are_those_of_the_rules_by_hand(rng, rule, start):
    """From weights of 0, where all labelings score the same, too."""
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, (2, 0, 1, 4, 3))
        objective = wide_objective(data, codes, 3, threads)
        task = OnlineProblem(objective, RULES[rule])
        start = start * rng.normal(size=objective.n_parameters)
        visits, hand = make_learner(task, start), ByHand(task, start)
        for order in ([0, 1, 2, 3, 4], [3, 2, 4, 0, 1], [4, 4, 3, 0, 2]):
            visits.run(np.array(order))
            for s in order:
                hand.visit(s)
            np.testing.assert_allclose(visits.weights(), hand.w, atol=1e-9)
            np.testing.assert_allclose(visits.mean(), np.mean(hand.all, axis=0), atol=1e-9)
        assert visits.weights().any()


@pytest.mark.parametrize("form", ["sparse", "values"])
@given(seed=st.integers(0, 2**32 - 1))
@examples(10)
def test_the_lazy_mean_is_the_mean_exactly(form, seed):
    """In whole numbers, of which sums are exact; the count is a power of 2."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, size=8).tolist()
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, tuple(lengths))
        task = OnlineProblem(wide_objective(data, codes, 3, threads), UpdateCoefficients(rate=1.0))
        visits = make_learner(task, np.zeros(task.objective.n_parameters))
        seen = [visits.weights()]
        for _ in range(8):
            for s in rng.permutation(8)[: 8 - (_ == 7)]:  # 63 visits and the start
                visits.run(np.array([s]))
                seen.append(visits.weights())
        assert len(seen) == 64
        np.testing.assert_array_equal(visits.mean(), np.sum(seen, axis=0) / 64)


def test_a_mistake_is_counted_with_the_share_of_wrong_labels(rng):
    with ThreadMap(1) as threads:
        data, _ = make_form(rng, "sparse", 3, (4, 0, 2))
        codes = np.array([1, 0, 2, 0, 0, 0], np.int32)
        task = OnlineProblem(wide_objective(data, codes, 3, threads), UpdateCoefficients(rate=1.0))
        visits = make_learner(task, np.zeros(task.objective.n_parameters))
        assert visits.run(np.array([0])) == (0.5, 1)  # all labels are predicted as 0
        visits = make_learner(task, np.zeros(task.objective.n_parameters))
        assert visits.run(np.array([2, 1])) == (0.0, 0)


def test_weights_of_sequences_multiply_their_steps(rng):
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, (5,))
        found = []
        for weight in (1.0, 2.5, 0.0):
            objective = wide_objective(data, codes, 3, threads, np.full(5, weight))
            visits = make_learner(
                OnlineProblem(objective, RULES["pa1"]), np.zeros(objective.n_parameters)
            )
            visits.run(np.array([0]))
            found.append(visits.weights())
        assert found[0].any()
        np.testing.assert_array_equal(found[1], 2.5 * found[0])
        assert not found[2].any()
        uneven = wide_objective(data, codes, 3, threads, rng.random(5))
        with pytest.raises(ValueError, match="the same weight for all tokens"):
            make_learner(OnlineProblem(uneven, UpdateCoefficients(rate=1.0)), found[0])


@pytest.mark.parametrize("lengths", [(), (0, 0), (1,), (0, 3, 0)])
@pytest.mark.parametrize("blocks", ["sparse", "sparse dense"])
def test_little_data_has_visits_too(rng, lengths, blocks):
    with ThreadMap(1) as threads:
        objective = make_objective(*make_data(rng, blocks, lengths), threads)
        for rule in (UpdateCoefficients(rate=1.0), UpdateCoefficients(rate=1.0, n_best=2)):
            visits = make_learner(OnlineProblem(objective, rule), np.zeros(objective.n_parameters))
            visits.run(np.arange(len(lengths)))
            assert np.isfinite(visits.mean()).all()


@pytest.mark.parametrize("n_best", [1, 2])
def test_scores_that_are_no_longer_finite_are_noticed(rng, n_best):
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, (6, 5))
        objective = wide_objective(data, codes, 3, threads)
        start = np.full(objective.n_parameters, 1e308)
        visits = make_learner(
            OnlineProblem(objective, UpdateCoefficients(rate=1e308, n_best=n_best)), start
        )
        with pytest.raises(InfiniteScoresError), np.errstate(over="ignore", invalid="ignore"):
            visits.run(np.array([0, 1]))


@pytest.mark.parametrize("scale", [1e4, 1e-4])
@pytest.mark.parametrize("rule", RULES)
def test_large_and_small_starts_take_finite_steps(rng, rule, scale):
    with ThreadMap(1) as threads:
        task = make_task(rng, threads, RULES[rule], "both", 5)
        start = scale * rng.normal(size=task.objective.n_parameters)
        fast, plain = make_learner(task, start), SequentialLearner(task, start)
        for visits in (fast, plain):
            visits.run(np.arange(len(LENGTHS)))
        np.testing.assert_allclose(fast.weights(), plain.weights(), rtol=1e-7, atol=1e-7 * scale)


@pytest.mark.parametrize("rule", RULES)
def test_boundary_weights_are_learned_by_compiled_code(rng, rule):
    with ThreadMap(1) as threads:
        data, codes = make_data(rng, "sparse dense", LENGTHS)
        objective = make_objective(data, codes, threads, boundaries=True)
        visits = make_learner(
            OnlineProblem(objective, RULES[rule]), np.zeros(objective.n_parameters)
        )
        assert visits.is_compiled
        visits.run(np.arange(len(LENGTHS)))
        assert objective.model.split(visits.weights())["start"].any()


@pytest.mark.parametrize("fast", [True, False])
def test_steps_that_are_told_add_up_to_the_weights(rng, fast):
    with ThreadMap(1) as threads:
        task = make_task(rng, threads, RULES["pa"], "both", 4)
        start = rng.normal(size=task.objective.n_parameters)
        visits = (make_learner if fast else SequentialLearner)(task, start)
        silent = make_learner(task, start)
        seen, told = start.copy(), []

        def note(count, places, changes):
            told.append(count)
            assert len(np.unique(places)) == len(places)
            seen[places] += changes

        visits.recorder = note
        for _ in range(3):
            order = rng.permutation(len(LENGTHS))
            visits.run(order), silent.run(order)
        np.testing.assert_allclose(visits.weights(), silent.weights(), atol=1e-12)
        np.testing.assert_allclose(seen, silent.weights(), atol=1e-12)
        assert told
        assert told == sorted(set(told))
        assert 0 <= told[0] < told[-1] < 3 * len(LENGTHS)


def test_the_mean_of_all_steps_of_a_pass_is_the_same_over_threads(rng):
    data, codes = make_form(rng, "both", 5, tuple(rng.integers(0, 9, size=40).tolist()))
    found = []
    for n_jobs in (1, 2):
        with ThreadMap(n_jobs) as threads:
            objective = wide_objective(data, codes, 5, threads)
            visits = BatchLearner(
                OnlineProblem(objective, UpdateCoefficients(rate=1.0)),
                np.zeros(objective.n_parameters),
            )
            passes = [visits.run(np.arange(40)) for _ in range(3)]
            found.append((visits.weights(), passes))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_the_first_batch_step_is_the_mean_of_the_first_steps(rng):
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, (4, 2, 0, 5))
        objective = wide_objective(data, codes, 3, threads)
        start = rng.normal(size=objective.n_parameters)
        steps = []
        for s in range(4):
            visits = make_learner(OnlineProblem(objective, UpdateCoefficients(rate=1.0)), start)
            visits.run(np.array([s]))
            steps.append(visits.weights() - start)
        batch = BatchLearner(OnlineProblem(objective, UpdateCoefficients(rate=1.0)), start)
        visits = make_learner(
            OnlineProblem(objective, UpdateCoefficients(rate=0.0, cap=0.0, pays=SHARE)), start
        )
        assert batch.run(np.arange(4)) == pytest.approx(visits.run(np.arange(4)))
        np.testing.assert_allclose(batch.weights() - start, np.mean(steps, axis=0), atol=1e-12)


def test_hildreth_finds_the_best_multipliers(rng):
    from scipy.optimize import minimize

    for cap in (0.05, 0.5, 1e6):
        delta = rng.normal(size=(4, 7))
        gram, losses = delta @ delta.T, rng.normal(size=4) + 1.0
        found = hildreth(gram, losses, cap)

        def value(a, gram=gram, losses=losses):
            return 0.5 * a @ gram @ a - a @ losses, gram @ a - losses

        best = minimize(value, np.zeros(4), jac=True, bounds=[(0.0, cap)] * 4,
                        options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
        np.testing.assert_allclose(found, best.x, atol=1e-5)
        assert value(found)[0] <= best.fun + 1e-9


def test_one_best_of_several_is_the_closed_form(rng):
    with ThreadMap(1) as threads:
        task = make_task(rng, threads, UpdateCoefficients(cap=0.3, pays=WHOLE), "sparse", 3)
        start = rng.normal(size=task.objective.n_parameters)
        closed, general = SequentialLearner(task, start), KBestLearner(task, start)
        own = general._own
        closed.run(np.arange(len(LENGTHS)))
        for s in range(len(LENGTHS)):
            if own.offsets[s] < own.offsets[s + 1] and task.weight[s]:
                general._fit(int(own.batch[s]), task.weight[s])
        np.testing.assert_allclose(closed.weights(), general.weights(), atol=1e-9)


def test_after_a_step_the_true_labels_win_against_each_of_the_best(rng):
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, (5,))
        objective = wide_objective(data, codes, 3, threads)
        start = rng.normal(size=objective.n_parameters)
        visits = make_learner(
            OnlineProblem(objective, UpdateCoefficients(cap=1e9, pays=WHOLE, n_best=6)), start
        )
        index, batches = int(visits._own.batch[0]), visits._own.batches
        scores = batches.scores(batches.bind(start), index)
        paths = Chain().k_best(scores, 6).codes.reshape(-1, len(scores.unary))
        visits.run(np.array([0]))
        after = batches.scores(batches.bind(visits.weights()), index)
        gold = Chain().score(after, codes)[0]
        for path in paths:
            wrong = np.count_nonzero(path != codes)
            assert gold - Chain().score(after, path)[0] >= wrong - 1e-6


@pytest.mark.parametrize("update", ["max_violation", "early"])
@pytest.mark.parametrize("width", [1, 4])
def test_a_beam_finds_the_mistakes_of_the_exact_search_and_more(rng, update, width):
    """A step along a prefix lowers what that scores above the true one."""
    with ThreadMap(1) as threads:
        task = make_task(rng, threads, RULES["perceptron"], "sparse", 4)
        beam = task._replace(search=BeamSearch(width=width, update=update))
        start = rng.normal(size=task.objective.n_parameters)
        for s in range(len(LENGTHS)):
            exact, found = make_learner(task, start), make_learner(beam, start)
            assert not found.is_compiled
            mistakes = exact.run(np.array([s]))[1], found.run(np.array([s]))[1]
            assert mistakes[0] <= mistakes[1]
            assert width < 4 or mistakes[0] == mistakes[1]
            assert (found.weights() != start).any() == bool(mistakes[1])


def test_costs_by_name_are_added_to_wrong_labels(rng):
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, LENGTHS)
        model = choose_features(data, codes, 3)
        base = make_objective(*make_data(rng, "sparse"), threads)
        objective = Objective(
            model, Chain(), base.loss, ElasticNet(0.0, 0.0), data, codes, np.ones(len(codes)),
            threads,
        )  # fmt: skip
        cost = make_cost("hamming", np.arange(3).astype(object))
        visits = make_learner(
            OnlineProblem(objective, UpdateCoefficients(rate=1.0), cost),
            np.zeros(model.n_parameters),
        )
        _, mistakes = visits.run(np.arange(len(LENGTHS)))
        assert mistakes == np.count_nonzero(np.diff(data.offsets))  # 0 has no margin


@pytest.mark.parametrize("form", ["sparse", "both"])
@pytest.mark.parametrize("rule", ["perceptron", "arow"])
def test_ties_are_won_by_the_label_that_occurs_first(rng, form, rule):
    """In compiled visits, in those of any structure, and for labels of other numbers."""
    data, codes = make_form(rng, form, 4, LENGTHS)
    cost = uneven_cost(rng, 4)
    other = rng.permutation(4)
    renamed = AdditiveCost(cost.table[np.argsort(other)][:, np.argsort(other)])
    found = []
    with ThreadMap(1) as threads:
        for labels, costs in ((codes, cost), (other[codes].astype(np.int32), renamed)):
            objective = wide_objective(data, labels, 4, threads)
            ties = LabelOrder.by_appearance(labels, 4, np.ones(len(labels)))
            task = OnlineProblem(objective, RULES[rule], costs, order=ties)
            fast = make_learner(task, np.zeros(objective.n_parameters))
            plain = SequentialLearner(task, np.zeros(objective.n_parameters))
            found.append([fast.run(np.arange(len(LENGTHS))) for _ in range(3)])
            expected = [plain.run(np.arange(len(LENGTHS))) for _ in range(3)]
            np.testing.assert_allclose(found[-1], expected)
            assert_same(fast, plain)
    np.testing.assert_allclose(found[0], found[1])


def test_labels_are_ordered_by_their_first_token():
    labels = np.array([3, 3, 1, 0, 1], np.int32)
    ties = LabelOrder.by_appearance(labels, 5, np.ones(5))
    assert ties.order.tolist() == [3, 1, 0, 2, 4]
    assert ties.rank.tolist() == [2, 1, 3, 0, 4]
    ties = LabelOrder.by_appearance(labels, 5, np.array([0.0, 0.0, 1.0, 2.0, 1.0]))
    assert ties.order.tolist() == [1, 0, 2, 3, 4]


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("rule", ["perceptron", "arow"])
def test_sequences_of_weight_0_are_passed_over(rng, general, rule):
    """As if they were not there: in the weights, in the mean and in what is told of steps."""
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "both", 3, LENGTHS)
        level = np.arange(len(LENGTHS)) % 3 != 0
        objective = wide_objective(data, codes, 3, threads, np.repeat(1.0 * level, LENGTHS))
        task = OnlineProblem(objective, RULES[rule])
        zeros, found = np.zeros(objective.n_parameters), []
        for order in (np.arange(len(LENGTHS)), np.flatnonzero(level | (np.array(LENGTHS) == 0))):
            visits, told = (SequentialLearner if general else make_learner)(task, zeros), []
            visits.recorder = lambda count, *step, told=told: told.append(count)
            sums = [visits.run(order) for _ in range(2)]
            found.append((sums, told, visits.mean(), visits.weights(), visits.save()["count"]))
        assert count_updates(objective.weight, data.offsets) == len(order)
        assert found[0][4] == 1 + 2 * len(order) < 1 + 2 * len(LENGTHS)
        assert found[0][:2] == found[1][:2]
        for ours, theirs in zip(found[0][2:], found[1][2:], strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert np.any(ours)


@pytest.mark.parametrize("scale", [1e-4, 1e-1, 10.0])
def test_batch_steps_are_the_same_for_weights_of_any_scale(rng, scale):
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, (4, 2, 5))
        start, found = None, []
        for factor in (1.0, scale):
            weight = factor * np.repeat([1.0, 0.5, 2.0], (4, 2, 5))
            objective = wide_objective(data, codes, 3, threads, weight)
            start = rng.normal(size=objective.n_parameters) if start is None else start
            visits = BatchLearner(OnlineProblem(objective, UpdateCoefficients(rate=1.0)), start)
            visits.run(np.arange(3))
            found.append(visits.weights() - start)
        assert found[0].any()
        np.testing.assert_allclose(found[1], found[0], atol=1e-12)


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("rule", ["pa", "mira"])
def test_no_step_is_made_where_the_loss_is_0(rng, general, rule):
    """After a step without a cap, wrong labels score the same as the true ones, with the cost."""
    cost = uneven_cost(rng, 3)
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "values", 3, (1,))
        objective = wide_objective(data, codes, 3, threads)
        task = OnlineProblem(objective, RULES[rule]._replace(cap=np.inf, pays=WHOLE), cost)
        visits = (SequentialLearner if general else make_learner)(
            task, np.zeros(objective.n_parameters)
        )
        steps = []
        visits.recorder = lambda *step: steps.append(step)
        passes = [visits.run(np.array([0])) for _ in range(12)]
        mistakes = [count for _, count in passes]
        assert mistakes[0] == 1
        assert mistakes[-1] == 0
        assert len(steps) == sum(mistakes)
        assert all((loss > 0.0) == bool(count) for loss, count in passes)


def test_a_step_against_any_of_the_best_is_a_mistake(rng):
    """Also where the best labeling is the true one, but does not win by the margin."""
    with ThreadMap(1) as threads:
        data, codes = make_form(rng, "sparse", 3, (4, 3, 5, 2))
        objective = wide_objective(data, codes, 3, threads)
        task = OnlineProblem(objective, UpdateCoefficients(cap=0.05, pays=WHOLE, n_best=3))
        visits = make_learner(task, np.zeros(objective.n_parameters))
        right_but_close, n_passes = 0, 0
        while n_passes < 1000:
            before = visits.weights()
            loss, mistakes = visits.run(np.arange(4))
            assert bool(mistakes) == (visits.weights() != before).any() == (loss > 0.0)
            single = SequentialLearner(task._replace(update=UpdateCoefficients(rate=1.0)), before)
            right_but_close += mistakes > 0 and not single.run(np.arange(4))[1]
            n_passes += 1
            if not mistakes:
                break
        assert 2 < n_passes < 1000
        assert right_but_close > 0
