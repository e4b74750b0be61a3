"""EM against enumeration and hmmlearn; the objective never falls; how a fit ends."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from crfkit._parallel import SERIAL, make_chunks
from crfkit.data import PackedSequences
from crfkit.data.targets import Targets
from crfkit.generative.base import HiddenTables, StepTables
from crfkit.generative.baum_welch import EMOptions, Observed, fit_em
from crfkit.generative.emissions import Bernoulli, Categorical, Gaussian, Multinomial, SymbolTables
from crfkit.generative.emissions.gaussian import COVARIANCES
from crfkit.generative.model import HiddenMarkovModel
from crfkit.generative.smoothing import Additive, WittenBell
from crfkit.structures.base import NoPathError
from tests.sampling import examples

NEVER = -1.0  # a tolerance that ends no fit


def words(lengths, seed=0, columns=1, n_symbols=5):
    """Return sequences of symbols, in one column or several, as indicators."""
    random = np.random.RandomState(seed)
    chosen = random.randint(0, n_symbols, (sum(lengths), columns))
    X = np.split(chosen, np.cumsum(lengths)[:-1])
    return Categorical().vectorizer().fit_transform(X)


def documents(lengths, seed=0, most=9.0):
    """Return sequences of counts of four words."""
    counts = np.random.RandomState(seed).poisson(0.7, (sum(lengths), 4)) / 1.0
    return PackedSequences(sp.csr_array(np.minimum(counts, most)), offsets=np.cumsum([0, *lengths]))


def bits(lengths, seed=0):
    """Return sequences of which words there are."""
    return documents(lengths, seed, most=1.0)


def clouds(lengths, n_labels=2, seed=0, n_features=2):
    """Return sequences of vectors around as many points as there are labels."""
    random = np.random.RandomState(seed)
    codes = random.randint(0, n_labels, sum(lengths))
    rows = random.standard_normal((sum(lengths), n_features)) + 2.0 * codes[:, None]
    return PackedSequences.from_flat(rows, lengths)


def some_known(n_tokens, n_labels, how, seed=0):
    """Return what is known: nothing, all, labels of some tokens, sets, or probabilities."""
    random = np.random.RandomState(seed)
    codes = random.randint(0, n_labels, n_tokens).astype(np.int32)
    allowed = codes[:, None] == np.arange(n_labels)
    if how == "nothing":
        return None
    if how == "all":
        return Targets(codes)
    if how == "soft":
        soft = random.dirichlet(np.full(n_labels, 0.5), n_tokens)
        soft[::3] = allowed[::3]
        return Targets(soft.argmax(axis=1).astype(np.int32), None, soft)
    if how == "sets":
        allowed |= random.uniform(size=allowed.shape) < 0.4
    allowed[n_tokens // 3 :][random.uniform(size=n_tokens - n_tokens // 3) < 0.6] = True
    return Targets.of_allowed(allowed)


KNOWN = ("nothing", "all", "some", "sets", "soft")


def fitted(model, smoothing, data, targets, weight=None, start=None, **options):
    weight = np.ones(len(data)) if weight is None else weight
    options = {"random": np.random.RandomState(0), "tol": 0.0, "n_jobs": 1} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_em(model, smoothing, data, targets, weight, start, EMOptions(**options))


def random_tables(model, data, seed=0):
    random, size = np.random.RandomState(seed), model.n_labels
    end = random.uniform(0.1, 0.5, size) * model.stop
    start, rest = random.dirichlet(np.ones(size)), (1.0 - end)[:, None]
    steps = random.dirichlet(np.ones(size), size) * rest
    triples = random.dirichlet(np.ones(size), (size + 1, size)) * rest if model.order == 2 else None
    if model.order == 0:
        steps = np.tile(start, (size, 1))
    emission = model.emission.initial(data, size, random)
    return HiddenTables(StepTables(start, steps, end if model.stop else None, triples), emission)


def enumerated(model, tables, data, targets, weight):
    """Return the counts of transitions, shares of labels and log-likelihood, from all labelings."""
    size, (steps, emission) = model.n_labels, tables
    scores = np.zeros((data.n_tokens, size))
    model.emission.scores(emission, data, slice(0, data.n_tokens), scores)
    evidence = np.ones((data.n_tokens, size))
    if targets is not None:
        evidence = targets.mask(size) * 1.0 if targets.soft is None else targets.soft
    counts = [np.zeros(size), np.zeros((size, size)), np.zeros(size)]
    triples, shares, value = np.zeros((size + 1, size, size)), np.zeros(scores.shape), 0.0
    for s, (begin, end) in enumerate(itertools.pairwise(data.offsets.tolist())):
        paths = list(itertools.product(range(size), repeat=end - begin))
        mass = []
        for path in paths:
            p = steps.start[path[0]]
            for t, k in enumerate(path):
                p *= np.exp(scores[begin + t, k]) * evidence[begin + t, k]
                if t and model.order == 2:
                    p *= steps.triples[path[t - 2] if t > 1 else size, path[t - 1], k]
                elif t:
                    p *= steps.steps[path[t - 1], k]
            mass.append(p if steps.end is None else p * steps.end[path[-1]])
        value += weight[s] * np.log(sum(mass))
        for path, p in zip(paths, weight[s] * np.array(mass) / sum(mass), strict=True):
            for t, k in enumerate(path):
                shares[begin + t, k] += p
                if t:
                    counts[1][path[t - 1], k] += p
                    triples[path[t - 2] if t > 1 else size, path[t - 1], k] += p
            counts[0][path[0]] += p
            counts[2][path[-1]] += p
    return counts, triples, shares, value


def check_expected(model, data, known):
    """Compare what is expected of five sequences, the last of weight 0, with all labelings."""
    weight = np.array([1.0, 2.0, 0.5, 1.0, 0.0])
    tables, targets = random_tables(model, data), some_known(data.n_tokens, model.n_labels, known)
    counts, triples, shares, value = enumerated(model, tables, data, targets, weight)
    found = Observed(model, data, targets, weight, SERIAL).expect(tables)
    assert found.log_likelihood == pytest.approx(value, rel=1e-12)
    steps = found.counts.steps
    expected = model.emission.count(data, slice(0, data.n_tokens), shares)
    for ours, theirs in zip(flat(found.counts.emission), flat(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    if model.order == 0:
        np.testing.assert_allclose(steps.start, shares.sum(axis=0), rtol=1e-12)
        return
    for ours, theirs in zip(steps[:3], counts, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-14)
    if model.order == 2:
        np.testing.assert_allclose(steps.triples, triples, rtol=1e-11, atol=1e-14)


def flat(statistics):
    """The arrays of statistics."""
    for item in statistics:
        if isinstance(item, tuple):
            yield from item
        else:
            yield item.toarray() if hasattr(item, "toarray") else item


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("known", KNOWN)
def test_expected_counts_against_enumeration(order, stop, known):
    lengths = [4, 1, 3, 5, 2]
    for emission, data in (
        (Gaussian("diag", 1.0), clouds(lengths, 3)),
        (Categorical(), words(lengths, n_symbols=2)),
        (Categorical(), words(lengths, columns=2, n_symbols=2)),
        (Multinomial(), documents(lengths)),
        (Bernoulli(), bits(lengths)),
    ):
        check_expected(HiddenMarkovModel(emission, 3, order, stop), data, known)


@pytest.mark.parametrize("known", ["nothing", "some", "sets"])
@pytest.mark.parametrize("n_labels", [2, 4, 9])
def test_few_different_tokens_are_summed_as_others(known, n_labels):
    """Also where some sequences are left to other kernels, and where all are."""
    data = words([7, 0, 300, 1, 2, 40, 9, 3] * 4, n_symbols=3)
    weight = np.linspace(0.0, 2.0, len(data))
    targets = some_known(data.n_tokens, n_labels, known, seed=2)
    model = HiddenMarkovModel(Categorical(), n_labels)
    for kept in (True, False) if known == "nothing" else (True,):
        tables = random_tables(model, data)
        tables.steps.steps[0, -1] *= kept  # without it, all sequences are left to others
        observed = Observed(model, data, targets, weight, SERIAL)
        assert observed.distinct is not None
        found = observed.expect(tables)
        observed.distinct = None
        general = observed.expect(tables)
        assert found.log_likelihood == pytest.approx(general.log_likelihood, rel=1e-13)
        for ours, theirs in zip(found.counts.steps[:3], general.counts.steps[:3], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)
        for ours, theirs in zip(*map(flat, (found.counts[1], general.counts[1])), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11)


FAMILIES = {
    **{f"gaussian, {name}": (Gaussian(name), clouds) for name in COVARIANCES},
    "gaussian, large prior": (Gaussian("full", prior=5.0), clouds),
    "categorical": (Categorical(alpha=0.5), words),
    "multinomial": (Multinomial(), documents),
    "bernoulli": (Bernoulli(alpha=0.2), bits),
}


@given(
    family=st.sampled_from(sorted(FAMILIES)), alpha=st.sampled_from([0.0, 0.3]),
    order=st.sampled_from([0, 1, 2]), stop=st.booleans(), known=st.sampled_from(KNOWN),
    seed=st.integers(0, 99), n_labels=st.integers(1, 4),
)  # fmt: skip
@examples(25)
def test_the_objective_never_falls(family, alpha, order, stop, known, seed, n_labels):
    emission, make = FAMILIES[family]
    data = make([9, 1, 2, 12, 6], seed=seed)
    model = HiddenMarkovModel(emission, n_labels, order, stop)
    targets = some_known(30, n_labels, known, seed)
    found = fitted(model, Additive(alpha=alpha), data, targets, max_iter=12)
    values = np.array([record.value for record in found.log])
    assert np.all(np.diff(values) <= 1e-10 * np.abs(values[1:]))
    assert [record.iteration for record in found.log] == list(range(len(values)))
    assert found.n_iter == max(len(values) - 1, 0)


def same_as_hmmlearn(model, peer, tables, data, read):
    """Compare likelihood, marginals and EM steps with those of a model of hmmlearn."""
    rows = read(data)
    found = fitted(model, Additive(alpha=0.0), data, None, start=tables, max_iter=0)
    assert found.log_likelihood == pytest.approx(peer.score(rows, data.lengths), rel=1e-10)
    (chunk,) = make_chunks(data.offsets, 10**6)
    potentials = model.scores(model.bind(tables), data, chunk)
    counts = model.structure.zeros(potentials)
    model.structure.log_partition(potentials, np.ones(len(data)), counts)
    np.testing.assert_allclose(
        counts.unary, peer.predict_proba(rows, data.lengths), rtol=1e-8, atol=1e-12
    )
    for n_iter in (1, 4):
        found = fitted(
            model, Additive(alpha=0.0), data, None, start=tables, max_iter=n_iter, tol=NEVER
        )
        peer.n_iter = n_iter
        yield found, peer.fit(rows, data.lengths)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_normal_emissions_against_hmmlearn(covariance):
    hmm = pytest.importorskip("hmmlearn.hmm")
    data = clouds([60, 1, 40, 25], 3, n_features=3)
    start, steps = np.array([0.5, 0.3, 0.2]), np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    emission = Gaussian(covariance, 0.0).initial(data, 3, np.random.RandomState(0))
    model = HiddenMarkovModel(Gaussian(covariance, 0.0), 3, 1, stop=False)
    tables = HiddenTables(StepTables(start, steps, None), emission)

    def peer():
        made = hmm.GaussianHMM(
            3, covariance, covars_prior=0.0, covars_weight=1.0, init_params="", tol=-np.inf
        )
        made.startprob_, made.transmat_, made.means_ = start, steps, emission.mean
        made.n_features, made.covars_ = 3, emission.covariance
        return made

    for found, other in same_as_hmmlearn(model, peer(), tables, data, lambda data: data.dense):
        given, normal = found.tables
        theirs = other._covars_[:, 0] if covariance == "spherical" else other._covars_
        for ours, expected in (
            (given.start, other.startprob_), (given.steps, other.transmat_),
            (normal.mean, other.means_), (normal.covariance, theirs),
        ):  # fmt: skip
            np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-12)
        fresh = peer()
        for name in ("startprob_", "transmat_", "means_", "_covars_"):
            setattr(other, name, getattr(fresh, name))


def test_symbols_against_hmmlearn():
    hmm = pytest.importorskip("hmmlearn.hmm")
    data, model = words([60, 1, 40, 25]), HiddenMarkovModel(Categorical(alpha=0.0), 3, 1, False)
    start, transitions = np.array([0.5, 0.3, 0.2]), np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    given = np.random.RandomState(1).dirichlet(np.ones(5), 3)
    emission = SymbolTables.from_probabilities(np.vstack([given.T, np.zeros(3)]))
    tables = HiddenTables(StepTables(start, transitions, None), emission)

    def reset(made):
        made.startprob_, made.transmat_, made.emissionprob_ = start, transitions, given
        return made

    peer = reset(hmm.CategoricalHMM(3, init_params="", tol=-np.inf))
    symbols = data.indices[:, None].astype(int)
    for found, other in same_as_hmmlearn(model, peer, tables, data, lambda data: symbols):
        np.testing.assert_allclose(
            found.tables.steps.start, other.startprob_, rtol=1e-8, atol=1e-12
        )
        np.testing.assert_allclose(found.tables.steps.steps, other.transmat_, rtol=1e-8)
        logs = found.tables.emission.dense()[:5].T
        np.testing.assert_allclose(np.exp(logs), other.emissionprob_, rtol=1e-8)
        reset(other)


@pytest.mark.parametrize("known", ["nothing", "some"])
def test_the_bits_do_not_depend_on_the_threads(known):
    data = clouds([30] * 30, 3)
    model = HiddenMarkovModel(Gaussian("full"), 3)
    model.chunk_tokens = 70
    targets = some_known(900, 3, known)
    one, two = (
        fitted(model, Additive(), data, targets, max_iter=3, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    assert one.log_likelihood == two.log_likelihood
    for ours, theirs in zip(one.tables.emission, two.tables.emission, strict=True):
        assert np.array_equal(ours, theirs)


def test_the_best_of_several_starts():
    data, model = clouds([20, 20, 20], 4, seed=3), HiddenMarkovModel(Gaussian("full"), 4)
    runs = [
        fitted(model, Additive(), data, None, max_iter=5, random=random)
        for random in [np.random.RandomState(1)] * 3
    ]
    best = fitted(
        model, Additive(), data, None, max_iter=5, n_init=3, random=np.random.RandomState(1)
    )
    assert best.log[-1].value == min(run.log[-1].value for run in runs)


def test_a_user_who_stops_keeps_the_last_iteration(capsys):
    data, model = clouds([20, 20, 20], 2), HiddenMarkovModel(Gaussian("full"), 2)

    def stop(record, tables):
        if record.iteration == 2:
            raise KeyboardInterrupt
        return False

    options = EMOptions(random=np.random.RandomState(0), callback=stop, n_init=3, verbose=2)
    with pytest.warns(ConvergenceWarning, match="interrupted after iteration 2 of one of 1 starts"):
        found = fit_em(model, Additive(), data, None, np.ones(3), None, options)
    whole = fitted(model, Additive(), data, None, max_iter=2)
    assert found.interrupted and not found.converged and found.n_iter == 2
    assert np.array_equal(found.tables.emission.mean, whole.tables.emission.mean)
    assert "iteration    2" in capsys.readouterr().out
    asked = fitted(model, Additive(), data, None, callback=lambda record, tables: True)
    assert asked.converged and asked.n_iter == 0
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        options = EMOptions(max_iter=1, random=np.random.RandomState(0))
        fit_em(model, Additive(), data, None, np.ones(3), None, options)


def test_labels_that_are_all_known_are_counted():
    data, model = clouds([4, 3], 2), HiddenMarkovModel(Gaussian("tied"), 2)
    codes = np.array([0, 1, 0, 1, 0, 0, 1], np.int32)
    found = fitted(model, WittenBell(), data, Targets(codes), np.array([1.0, 2.0]))
    assert found.converged and found.n_iter == 0
    assert found.counts.steps.start.tolist() == [3.0, 0.0]
    assert found.counts.steps.steps.tolist() == [[2.0, 4.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match="weight 0"):
        fitted(model, Additive(), data, Targets(codes), np.zeros(2))


def test_what_em_cannot_learn_from():
    data = clouds([4, 3], 2)
    model = HiddenMarkovModel(Gaussian("tied"), 2)
    with pytest.raises(ValueError, match=r"smoothing=WittenBell does not maximize.*'additive'"):
        fitted(model, WittenBell(), data, None)
    tables = random_tables(HiddenMarkovModel(Gaussian("diag"), 2), data)
    steps = StepTables(np.array([1.0, 0.0]), np.eye(2), None)
    model = HiddenMarkovModel(Gaussian("diag"), 2, stop=False)
    allowed = np.ones((7, 2), bool)
    allowed[5] = [False, True]
    with pytest.raises(NoPathError, match="sequence 1"):
        fitted(
            model, Additive(), data, Targets.of_allowed(allowed), np.array([0.0, 1.0]),
            start=HiddenTables(steps, tables.emission),
        )  # fmt: skip


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(
    ("rows", "lengths", "n_labels"),
    [
        (np.zeros((1, 1)), [1], 1),  # one token, one label
        (np.zeros((2, 1)), [1, 1], 3),  # fewer tokens than labels
        (np.full((6, 2), 7.0), [4, 2], 2),  # constant data
        (np.arange(4.0)[:, None], [4], 4),  # a point for each label
        (np.array([[1e100], [-1e100], [0.0]]), [3], 2),
    ],
)
def test_extreme_data(covariance, rows, lengths, n_labels):
    data = PackedSequences.from_flat(rows, lengths)
    model = HiddenMarkovModel(Gaussian(covariance), n_labels)
    with np.errstate(over="ignore"):
        found = fitted(model, Additive(), data, None, max_iter=20)
    assert all(np.isfinite(table).all() for table in found.tables.emission)
    assert np.isfinite(found.log_likelihood)


def test_a_long_sequence():
    data, model = clouds([100_000, 3], 2), HiddenMarkovModel(Gaussian("diag"), 2)
    found = fitted(model, Additive(), data, None, max_iter=3, n_jobs=2)
    assert np.all(np.diff([record.value for record in found.log]) < 0.0)
