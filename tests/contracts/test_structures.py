"""Every structure against enumeration: sums, maxima, scores, counts, lists, derivatives, clamps."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.special import logsumexp

from crfkit._parallel import ThreadMap, with_threads
from crfkit.constraints.product import Product
from crfkit.graphs.structure import GraphStructure
from crfkit.inference import marginals
from crfkit.labels.reading import read_labels, read_segment_codes
from crfkit.labels.schemes import get_scheme
from crfkit.structures import (
    Capability,
    MissingCapabilityError,
    NoPathError,
    Structure,
    sparse_chain,
)
from tests.contracts.structures import CASES, MAKERS, edges_of, problems

LENGTHS = [3, 0, 1, 4, 2]
METHODS = {
    Capability.HESSIAN_PRODUCT: ("hessian_product",),
    Capability.K_BEST: ("k_best",),
    Capability.SAMPLE: ("sample",),
    Capability.ENTROPY: ("entropy",),
    Capability.SPANS: ("span_probabilities", "likely_spans"),
    Capability.COPIES: ("with_copies", "add_copied_counts", "argmax_of_copies", "lattice"),
    Capability.POSTERIOR: ("posterior",),
    Capability.CONDITIONALS: ("conditional_scores", "add_conditional_counts"),
    Capability.SHARES: ("expected_score", "add_expected_counts"),
    Capability.ARGMAX_BY_HAMMING: ("max_by_hamming", "path_at_hamming"),
    Capability.BOUNDED_SEARCH: ("bounded_argmax",),
}
WEIGHT = np.array([1.0, 2.0, 0.0, -0.5, 3.0])


@pytest.fixture(params=sorted(CASES))
def case(request):
    return CASES[request.param]


@pytest.fixture
def structure(case):
    return case.structure


@pytest.fixture(params=[*product((0.0, 0.3), (False, True))], ids=str)
def potentials(case, request):
    forbidden, own = request.param
    return case.potentials(2 * (forbidden > 0) + own, LENGTHS, forbidden, own)


@pytest.fixture
def listed(case, potentials):
    """The labelings of finite score of each sequence, the best first."""
    return case.finite(potentials)


def codes(parts):
    return np.array([code for part in parts for code in part], np.int32)


def log_z_of(listed):
    return np.array([logsumexp([score for _, score, _ in each]) for each in listed])


def test_sums_are_those_of_enumeration(structure, potentials, listed):
    out, expected = structure.zeros(potentials), structure.zeros(potentials)
    out.unary[...], out.pair[...] = 7.0, 1.0  # the first is replaced, the second added to
    log_z = structure.log_partition(potentials, WEIGHT, out)
    np.testing.assert_allclose(log_z, log_z_of(listed), rtol=1e-12, atol=1e-12)
    for each, total, weight in zip(listed, log_z_of(listed), WEIGHT, strict=True):
        for _, score, add in each:
            add(expected, weight * np.exp(score - total))
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-12)
    np.testing.assert_allclose(out.pair - 1.0, expected.pair, atol=1e-12)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_random_problems_are_summed_and_searched_as_enumeration_does(name):
    for structure, potentials, listed in problems(name):
        out, expected = structure.zeros(potentials), structure.zeros(potentials)
        log_z = structure.log_partition(potentials, np.ones(len(listed)), out)
        np.testing.assert_allclose(log_z, log_z_of(listed), rtol=1e-12, atol=1e-12)
        for each, total in zip(listed, log_z_of(listed), strict=True):
            for _, score, add in each:
                add(expected, np.exp(score - total))
        np.testing.assert_allclose(out.unary, expected.unary, atol=1e-10)
        np.testing.assert_allclose(out.pair, expected.pair, atol=1e-10)
        labels, value = structure.argmax(potentials)
        np.testing.assert_allclose(value, [each[0][1] for each in listed], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(structure.score(potentials, labels), value, rtol=1e-12)


def test_marginals_of_labels_are_probabilities(structure, potentials, listed):
    probabilities, log_z = marginals(structure, potentials)
    expected = np.zeros((sum(LENGTHS), 3))
    for each, total, begin in zip(listed, log_z, potentials.offsets, strict=False):
        for path, score, _ in each:
            for t, code in enumerate(path):
                expected[begin + t, code % 3] += np.exp(score - total)
    np.testing.assert_allclose(probabilities, expected, atol=1e-12)


def test_the_best_labeling_is_that_of_enumeration(structure, potentials, listed):
    labels, value = structure.argmax(potentials)
    np.testing.assert_allclose(value, [each[0][1] for each in listed], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(labels, codes(each[0][0] for each in listed))


def test_scores_and_counts_are_those_of_the_parts(structure, potentials, listed):
    for pick in (0, 1, -1):
        chosen = [each[pick % len(each)] for each in listed]
        labels = codes(path for path, _, _ in chosen)
        expected = [score for _, score, _ in chosen]
        np.testing.assert_allclose(structure.score(potentials, labels), expected, atol=1e-12)
        out, counts = structure.zeros(potentials), structure.zeros(potentials)
        structure.add_counts(potentials, labels, WEIGHT, out)
        for (_, _, add), weight in zip(chosen, WEIGHT, strict=True):
            add(counts, weight)
        np.testing.assert_allclose(out.unary, counts.unary, atol=1e-14)
        np.testing.assert_allclose(out.pair, counts.pair, atol=1e-14)


def test_what_is_added_to_scores_is_told(structure, potentials, listed):
    labels = codes(each[-1][0] for each in listed)
    plain = structure.without_offset()
    learned = plain.score(potentials, labels)
    whole, added = structure.score(potentials, labels), structure.offset_score(potentials, labels)
    np.testing.assert_allclose(whole, learned + added, atol=1e-12)
    np.testing.assert_allclose(plain.score(structure.with_offset(potentials), labels), whole)
    assert structure.has_only_hard_constraints or added.any()


def test_a_structure_declares_what_it_can(structure):
    for capability, methods in METHODS.items():
        for name in methods:
            has = getattr(type(structure), name) is not getattr(Structure, name)
            assert has == (capability in structure.capabilities)


def rank(labeling, n_labels):
    """Where a labeling stands among others: by its score, then by labels and lengths from the end.

    Of a chain, all lengths are 1.
    """
    path, score, _ = labeling
    parts = []
    for code in path:
        if not parts or max(path) < n_labels or code >= n_labels:
            parts.append([code % n_labels, 0])
        parts[-1][1] += 1
    return -score, parts[::-1]


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_lists_of_the_best_of_random_problems_are_those_of_enumeration(name):
    is_ordered = (
        name not in ("forest", "graph") and "under" not in name
    )  # rules order copies of labels
    for structure, potentials, listed in problems(name):
        if Capability.K_BEST not in structure.capabilities:
            with pytest.raises(MissingCapabilityError, match="no lists of the best labelings"):
                structure.k_best(potentials, 2)
            return
        known = [{path: score for path, score, _ in each} for each in listed]
        arrays = [part[part > -np.inf] for part in structure.with_offset(potentials).arrays()]
        exact = all(np.array_equal(part, np.round(part)) for part in arrays) and is_ordered
        # A score is as exact as the sums of which it is the difference.
        near = {"rtol": 1e-12, "atol": 1e-12 + 1e-14 * max(abs(p).max(initial=0) for p in arrays)}
        order = [
            [path for path, _, _ in sorted(each, key=lambda one: rank(one, potentials.n_labels))]
            for each in listed
        ]
        for k in (1, 3, 10**12):
            found = structure.k_best(potentials, k)
            assert found.counts.tolist() == [min(k, len(each)) for each in listed]
            places = found.offsets(potentials.offsets).tolist()
            paths = iter(tuple(found.codes[b:e].tolist()) for b, e in pairwise(places))
            for s, value in enumerate(np.split(found.scores, np.cumsum(found.counts)[:-1])):
                assert (np.diff(value) <= 0.0).all()
                own = [next(paths) for _ in value]
                assert len(set(own)) == len(own)
                expected = [score for _, score, _ in listed[s][: len(own)]]
                np.testing.assert_allclose(value, expected, **near)
                np.testing.assert_allclose(value, [known[s][path] for path in own], **near)
                assert not exact or own == order[s][: len(own)]
        if is_ordered:
            best = structure.argmax(potentials)[0]
            np.testing.assert_array_equal(structure.k_best(potentials, 1).codes, best)


def boxes(paths, shares, order, n_labels):
    """Between which numbers, shape (n, T) each, labelings are drawn, token by token in an order.

    Codes stand in the order of their labels, and those that begin a segment before the others.
    """
    low, high = np.zeros(paths.shape), np.ones(paths.shape)
    rank = 2 * (paths % n_labels) - paths // n_labels
    for place, t in enumerate(order):
        given = (paths[:, None, order[:place]] == paths[:, order[:place]]).all(axis=2)
        whole = np.maximum(given @ shares, 1e-300)
        low[:, t] = (given & (rank[:, t] < rank[:, None, t])) @ shares / whole
        high[:, t] = (given & (rank[:, t] <= rank[:, None, t])) @ shares / whole
    return low, high


def check_frequencies(structure, one, paths, shares):
    """Labelings are drawn as often as is probable: of copies of labels, each has several boxes."""
    uniforms = np.random.default_rng(0).random((400, len(one.unary)))
    drawn = structure.sample(one, uniforms)
    counts = (drawn[:, None] == paths).all(axis=2).sum(axis=0)
    assert counts.sum() == len(drawn)
    assert (np.abs(counts - 400 * shares) <= 6.0 * np.sqrt(400 * shares * (1 - shares)) + 1).all()


def drawn_first(one):
    """The tokens of a sequence in the order in which they are drawn: those of forests have one."""
    return getattr(one, "order", np.arange(len(one.unary))[::-1])


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_random_problems_are_sampled_as_enumeration_does(name):
    """Each labeling is drawn by a box of numbers whose size is its probability.

    A side of it, for a token, is the conditional probability of its code, given those drawn before.
    """
    for structure, potentials, listed in problems(name):
        if Capability.SAMPLE not in structure.capabilities:
            with pytest.raises(MissingCapabilityError, match="no samples"):
                structure.sample(potentials, np.zeros((1, len(potentials.unary))))
            return
        for one, each in zip(potentials.each(), listed, strict=True):
            paths = np.array([path for path, _, _ in each], np.int32)
            shares = np.exp([score - each[0][1] for _, score, _ in each])
            if isinstance(structure, (Product, GraphStructure)):
                check_frequencies(structure, one, paths, shares / shares.sum())
                continue
            low, high = boxes(paths, shares / shares.sum(), drawn_first(one), one.n_labels)
            wide = (high - low > 1e-6).all(axis=1)
            assert wide.any()
            for side in (0.01, 0.5, 0.99):
                uniforms = low + side * (high - low)
                np.testing.assert_array_equal(structure.sample(one, uniforms)[wide], paths[wide])


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_random_problems_have_the_entropies_of_enumeration(name):
    for structure, potentials, listed in problems(name):
        if Capability.ENTROPY not in structure.capabilities:
            with pytest.raises(MissingCapabilityError, match="no entropies"):
                structure.entropy(potentials)
            return
        expected = [entropy([score for _, score, _ in each]) for each in listed]
        np.testing.assert_allclose(structure.entropy(potentials), expected, rtol=1e-9, atol=0.0)


def entropy(scores):
    """The entropy of a distribution, given logarithms, the largest first: all its digits."""
    below = np.array(scores) - scores[0]
    shares = np.exp(below)
    return np.log1p(shares[1:].sum()) - (shares * below).sum() / shares.sum()


def test_scores_of_single_labels_are_those_of_labelings_that_differ_in_one(
    structure, potentials, listed
):
    labels = codes(each[len(each) // 2][0] for each in listed)
    if Capability.CONDITIONALS not in structure.capabilities:
        with pytest.raises(MissingCapabilityError, match=type(structure).__name__):
            structure.conditional_scores(potentials, labels)
        return
    found = structure.conditional_scores(potentials, labels)
    expected, counts = np.full_like(found, -np.inf), structure.zeros(potentials)
    weight = np.random.default_rng(0).normal(size=found.shape) * np.isfinite(found)
    own = np.arange(len(labels)), labels
    weight[own] -= weight.sum(axis=1)  # what all codes of a token share is left out
    for each, begin in zip(listed, potentials.offsets, strict=False):
        of_path = {path: (score, add) for path, score, add in each}
        for t in range(len(each[0][0])):
            path = labels[begin : begin + len(each[0][0])].tolist()
            for code in range(found.shape[1]):
                score, add = of_path.get((*path[:t], code, *path[t + 1 :]), (-np.inf, None))
                expected[begin + t, code] = score - of_path[tuple(path)][0]
                if add is not None:
                    add(counts, weight[begin + t, code])
    np.testing.assert_allclose(found - found[own][:, None], expected, atol=1e-12)
    out = structure.zeros(potentials)
    out.unary[...], out.pair[...] = 7.0, 1.0  # the first is replaced, the second added to
    structure.add_conditional_counts(potentials, labels, weight, out)
    np.testing.assert_allclose(out.unary, counts.unary, atol=1e-12)
    np.testing.assert_allclose(out.pair - 1.0, counts.pair, atol=1e-12)


@pytest.mark.parametrize("certain", [0.0, 0.5, 1.0], ids=["none", "half", "all"])
def test_expected_scores_of_independent_labels_are_those_of_enumeration(
    case, structure, potentials, listed, certain
):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(potentials.n_codes), sum(LENGTHS))
    best, known = codes(each[0][0] for each in listed), rng.random(sum(LENGTHS)) < certain
    shares[known] = np.eye(potentials.n_codes)[best[known]]
    if Capability.SHARES not in structure.capabilities:
        for ask in (
            lambda: structure.expected_score(potentials, shares),
            lambda: structure.add_expected_counts(potentials, shares, WEIGHT, None),
        ):
            with pytest.raises(MissingCapabilityError, match="no distribution over segmentations"):
                ask()
        return
    expected, counts = np.zeros(len(LENGTHS)), structure.zeros(potentials)
    for s, begin in enumerate(potentials.offsets[:-1]):
        for path, score, add in case.labelings(potentials, s):
            share = np.prod(shares[np.arange(begin, begin + len(path)), list(path)])
            expected[s] += share * score if share else 0.0
            add(counts, WEIGHT[s] * share)
    np.testing.assert_allclose(structure.expected_score(potentials, shares), expected, atol=1e-12)
    out = structure.zeros(potentials)
    structure.add_expected_counts(potentials, shares, WEIGHT, out)
    np.testing.assert_allclose(out.unary, counts.unary, atol=1e-12)
    np.testing.assert_allclose(out.pair, counts.pair, atol=1e-12)


def test_products_with_the_hessian_are_derivatives_of_the_counts(case, potentials):
    structure, step = case.structure, 1e-6
    tangent = case.potentials(9, LENGTHS, 0.0, len(potentials.transition_index) > 1)
    product = structure.zeros(potentials)
    if Capability.HESSIAN_PRODUCT not in structure.capabilities:
        with pytest.raises(MissingCapabilityError, match=r"Hessian. Use solver='lbfgs'"):
            structure.hessian_product(potentials, tangent, WEIGHT, product)
        return
    structure.hessian_product(potentials, tangent, WEIGHT, product)
    ends = [structure.zeros(potentials) for _ in range(2)]
    for out, shift in zip(ends, (-step, step), strict=True):
        both = zip(potentials.arrays(), tangent.arrays(), strict=True)
        moved = potentials.with_arrays(*(array + shift * change for array, change in both))
        structure.log_partition(moved, WEIGHT, out)
    for below, above, found in zip(*ends, product, strict=True):
        np.testing.assert_allclose(found, (above - below) / (2 * step), atol=1e-8)


def test_the_posterior_is_that_of_enumeration(structure, potentials, listed):
    if Capability.POSTERIOR not in structure.capabilities:
        with pytest.raises(MissingCapabilityError, match="functions of its marginals"):
            structure.posterior(potentials)
        return
    expected, want = np.zeros((sum(LENGTHS), potentials.n_codes)), structure.zeros(potentials)
    slopes = np.zeros_like(expected)
    rng = np.random.default_rng(0)
    for each, total, begin in zip(listed, log_z_of(listed), potentials.offsets, strict=False):
        size = len(each[0][0])
        tokens = np.arange(begin, begin + size)
        mu, direction = np.zeros((2, size, potentials.n_codes))
        shares = np.exp([score - total for _, score, _ in each])
        for (path, _, _), share in zip(each, shares, strict=True):
            mu[np.arange(size), list(path)] += share
        expected[tokens] = mu
        direction[...] = rng.normal(size=mu.shape)
        slopes[tokens] = mu * (direction - np.sum(mu * direction, axis=1, keepdims=True))
        values = np.array([direction[np.arange(size), list(path)].sum() for path, _, _ in each])
        for (_, _, add), share, value in zip(each, shares, values, strict=True):
            add(want, share * (value - shares @ values))
    posterior = structure.posterior(potentials)
    np.testing.assert_allclose(posterior.log_z, log_z_of(listed), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(posterior.marginals, expected, atol=1e-12)
    tokens, found = np.indices(expected.shape).reshape(2, -1)
    with np.errstate(divide="ignore"):
        logs = np.log(expected[tokens, found])
    np.testing.assert_allclose(posterior.log_probability(tokens, found), logs, atol=1e-11)
    out = structure.zeros(potentials)
    out.unary[...], out.pair[...] = 7.0, 1.0  # the first is replaced, the second added to
    posterior.pull_back(slopes, out)
    np.testing.assert_allclose(out.unary, want.unary, atol=1e-12)
    np.testing.assert_allclose(out.pair - 1.0, want.pair, atol=1e-12)


def test_maxima_by_numbers_of_errors_are_those_of_enumeration(structure, potentials, listed):
    labels = codes(each[0][0] for each in listed)
    if Capability.ARGMAX_BY_HAMMING not in structure.capabilities:
        with pytest.raises(MissingCapabilityError, match="no best paths by numbers of errors"):
            structure.max_by_hamming(potentials, labels)
        return
    expected = np.full((len(LENGTHS), max(LENGTHS) + 1), -np.inf)
    for s, each in enumerate(listed):
        for path, score, _ in each:
            wrong = np.count_nonzero(np.array(path) != each[0][0])
            expected[s, wrong] = max(expected[s, wrong], score)
    value = structure.max_by_hamming(potentials, labels)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    errors = np.argmax(np.cumsum(expected > -np.inf, axis=1), axis=1)  # as many as there may be
    path = structure.path_at_hamming(potentials, labels, errors)
    np.testing.assert_allclose(
        structure.score(potentials, path), expected[np.arange(len(errors)), errors], atol=1e-12
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_clamped_potentials_leave_what_is_allowed(structure, potentials, listed, seed):
    rng = np.random.default_rng(seed)
    allowed = rng.random((sum(LENGTHS), potentials.n_codes)) < 0.5
    kept = codes(each[rng.integers(len(each))][0] for each in listed)
    allowed[np.arange(len(kept)), kept] = True
    bounds = zip(potentials.offsets[:-1], potentials.offsets[1:], strict=True)
    left = [
        [one for one in each if allowed[np.arange(begin, end), list(one[0])].all()]
        for each, (begin, end) in zip(listed, bounds, strict=True)
    ]
    clamped = potentials.clamp(allowed)
    log_z = structure.log_partition(clamped, WEIGHT, structure.zeros(clamped))
    np.testing.assert_allclose(log_z, log_z_of(left), rtol=1e-12, atol=1e-12)
    labels, value = structure.argmax(clamped)
    np.testing.assert_array_equal(labels, codes(each[0][0] for each in left))
    np.testing.assert_allclose(value, [each[0][1] for each in left], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(MAKERS))
@pytest.mark.parametrize("single", [False, True], ids=["all tokens", "single tokens"])
def test_random_problems_without_some_steps_are_those_of_enumeration(name, single, monkeypatch):
    """Steps lead to the next token, segment or child; into a token of which it may be known."""
    for number, (structure, potentials, listed) in enumerate(problems(name)):
        monkeypatch.setattr(sparse_chain, "MOST_SCORED", float(number % 2))  # lists, or tables
        rng = np.random.default_rng(number)
        size = potentials.n_labels
        steps = rng.random((3 if single else 1, size, size)) < 0.6
        which = rng.integers(len(steps), size=len(potentials.unary))
        begins = potentials.offsets[:-1].tolist()
        kept = [
            [one for one in each if _keeps(one[0], begin, name, potentials, steps, which)]
            for each, begin in zip(listed, begins, strict=True)
        ]
        possible = np.flatnonzero([bool(each) for each in kept])
        part, rows = potentials.take(possible), _tokens_of(potentials, possible)
        given = (steps, which[rows]) if single else (steps[0],)
        before = [array.copy() for array in part.arrays()]
        other, found = structure.restricted(part, *given)
        for old, array in zip(before, part.arrays(), strict=True):
            np.testing.assert_array_equal(old, array)
        kept = [kept[s] for s in possible]
        log_z = other.log_partition(found, np.ones(len(kept)), other.zeros(found))
        np.testing.assert_allclose(log_z, log_z_of(kept), rtol=1e-12, atol=1e-12)
        value = other.argmax(found)[1]
        np.testing.assert_allclose(value, [each[0][1] for each in kept], rtol=1e-12, atol=1e-12)
        for s in np.setdiff1d(np.arange(len(listed)), possible).tolist():
            one, own = potentials.take(np.array([s])), _tokens_of(potentials, np.array([s]))
            given = (steps, which[own]) if single else (steps[0],)
            with pytest.raises(NoPathError):
                other, found = structure.restricted(one, *given)
                other.argmax(found)


def _tokens_of(potentials, sequences):
    ends = zip(potentials.offsets[sequences], potentials.offsets[sequences + 1], strict=True)
    return np.concatenate([np.zeros(0, int), *(np.arange(*each) for each in ends)])


def _keeps(path, begin, name, potentials, steps, which):
    """Whether a labeling takes no step that is left out."""
    if name == "graph":
        s = int(np.flatnonzero(potentials.offsets[:-1] == begin)[-1])
        edges = edges_of(potentials, s) if path else []
        return all(steps[which[begin + v], path[u], path[v]] for u, v, _ in edges)
    before = [*range(-1, len(path) - 1)]
    if name == "forest":
        before = potentials.parent[begin : begin + len(path)].tolist()
    elif name.startswith("ring") and len(path) > 1:
        before[0] = len(path) - 1
    size = potentials.n_labels
    taken = [t for t, up in enumerate(before) if up >= 0]
    if potentials.n_codes > size:
        taken = [t for t in taken if path[t] >= size]
    return all(steps[which[begin + t], path[before[t]] % size, path[t] % size] for t in taken)


def test_a_sequence_without_a_labeling_is_named(structure, potentials):
    allowed = np.ones((sum(LENGTHS), potentials.n_codes), bool)
    allowed[potentials.offsets[3] + 1] = False
    clamped = potentials.clamp(allowed)._replace(first=10)
    asks = [
        lambda: structure.log_partition(clamped, WEIGHT, structure.zeros(clamped)),
        lambda: structure.argmax(clamped),
    ]
    if Capability.K_BEST in structure.capabilities:
        asks.append(lambda: structure.k_best(clamped, 2))
    for ask in asks:
        with pytest.raises(NoPathError) as error:
            ask()
        assert (error.value.sequence, error.value.position) == (13, 1)


def test_sequences_are_independent(structure, potentials):
    chosen = np.array([4, 0, 3, 3])
    some = potentials.take(chosen)
    labels, value = structure.argmax(potentials)
    rows = np.concatenate([np.arange(*potentials.offsets[s : s + 2]) for s in chosen])
    np.testing.assert_array_equal(structure.argmax(some)[0], labels[rows])
    np.testing.assert_array_equal(structure.argmax(some)[1], value[chosen])
    whole, part = structure.zeros(potentials), structure.zeros(some)
    log_z = structure.log_partition(potentials, np.ones(len(LENGTHS)), whole)
    found = structure.log_partition(some, np.ones(4), part)
    np.testing.assert_array_equal(found, log_z[chosen])
    np.testing.assert_array_equal(part.unary, whole.unary[rows])
    if Capability.SAMPLE in structure.capabilities:
        uniforms = np.random.default_rng(0).random((3, len(potentials.unary)))
        drawn = structure.sample(potentials, uniforms)[:, rows]
        np.testing.assert_array_equal(structure.sample(some, uniforms[:, rows]), drawn)
    if Capability.ENTROPY in structure.capabilities:
        expected = structure.entropy(potentials)[chosen]
        np.testing.assert_array_equal(structure.entropy(some), expected)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_random_problems_are_paths_of_a_lattice(name):
    for structure, potentials, listed in problems(name):
        if Capability.COPIES not in structure.capabilities:
            return
        for one, each in zip(potentials.each(), listed, strict=True):
            if len(one.unary):
                found = sorted(paths_of(structure.lattice(one), len(one.unary)))
                expected = sorted((path, score) for path, score, _ in each)
                assert [path for path, _ in found] == [path for path, _ in expected]
                scores = [[score for _, score in paths] for paths in (found, expected)]
                parts = np.concatenate([each.reshape(-1) for each in one.arrays()])
                size = np.abs(parts[np.isfinite(parts)]).max(initial=0.0)  # of what is rounded
                np.testing.assert_allclose(*scores, rtol=1e-12, atol=1e-14 * size)


def paths_of(lattice, length, node=0, arcs=()):
    """Yield the codes of paths and their scores."""
    if node == lattice.n_nodes - 1:
        arcs = np.array(arcs)
        yield tuple(lattice.codes(arcs, length).tolist()), lattice.score[arcs].sum()
    for arc in np.flatnonzero(lattice.source == node).tolist():
        yield from paths_of(lattice, length, lattice.target[arc], (*arcs, arc))


def test_labels_may_have_another_order(structure, potentials):
    if not potentials.is_dense or isinstance(structure, Product):  # rules name labels
        return
    order = np.array([2, 0, 1])
    plain, whole = structure.without_offset(), structure.with_offset(potentials)
    turned = whole.in_order(order)
    labels, value = plain.argmax(turned)
    np.testing.assert_allclose(value, structure.argmax(potentials)[1], rtol=1e-12, atol=1e-12)
    back = order[labels % 3] + labels // 3 * 3
    np.testing.assert_array_equal(back, structure.argmax(potentials)[0])


def test_all_threads_give_the_same(structure, potentials):
    other = with_threads(structure, ThreadMap(1))
    out, expected = structure.zeros(potentials), structure.zeros(potentials)
    log_z = other.log_partition(potentials, WEIGHT, out)
    expected_z = structure.log_partition(potentials, WEIGHT, expected)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-13)
    np.testing.assert_array_equal(other.argmax(potentials)[0], structure.argmax(potentials)[0])


# Labels of tokens, by how many there are, and the scheme that they are read by if one is named.
READ = {
    3: [("B-X I-X O", None), ("B-X I-X O", "IOB2"), ("A C O", None), ("B-X I-X B-Y", "IOB1"),
        ("S-X B-X E-X", "IOBES"), ("I-X E-X I-Y", "IOE1"), ("X B-X I-X", None)],
    2: [("B-X I-X", None), ("A O", None), ("I-X I-Y", "IO"), ("A C", None)],
    1: [("A", None), ("O", None), ("B-X", None)],
}  # fmt: skip


def readings_of(potentials, number):
    """Two ways in which the codes of potentials are read; all come in turns."""
    known = READ[potentials.n_labels]
    for names, scheme in (known[number % len(known)], known[(number + 1) % len(known)]):
        if potentials.n_codes > potentials.n_labels:
            yield read_segment_codes(names.split())
        else:
            yield read_labels(names.split(), None if scheme is None else get_scheme(scheme))


def spans_of_labelings(reading, potentials, listed):
    """The probability of each span (start, stop, type) that some labeling has."""
    found = {}
    for each, total, begin in zip(listed, log_z_of(listed), potentials.offsets, strict=False):
        for path, score, _ in each:
            spans = reading.spans(np.array(path, np.int32), np.array([0, len(path)]))
            for start, stop, kind in zip(*(part.tolist() for part in spans), strict=True):
                span = begin + start, begin + stop, kind
                found[span] = found.get(span, 0.0) + np.exp(score - total)
    return found


def every_span(potentials, reading):
    """All that could be spans: start, stop, type, shape (n, 3)."""
    found = []
    for begin, end in zip(potentials.offsets[:-1], potentials.offsets[1:], strict=True):
        bounds = combinations(range(begin, end + 1), 2)
        found += [(a, b, kind) for a, b in bounds for kind in range(len(reading.types))]
    return np.array(found, np.int64).reshape(-1, 3)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_spans_of_random_problems_are_as_probable_as_in_enumeration(name):
    for number, (structure, potentials, listed) in enumerate(problems(name)):
        if Capability.SPANS not in structure.capabilities:
            with pytest.raises(MissingCapabilityError, match=type(structure).__name__):
                structure.likely_spans(potentials, None, 0.5)
            return
        for reading in readings_of(potentials, number):
            expected = spans_of_labelings(reading, potentials, listed)
            asked = every_span(potentials, reading)
            asked = asked[np.random.default_rng(0).permutation(len(asked))]
            found = structure.span_probabilities(potentials, reading, *asked.T)
            truth = [expected.get(tuple(span), 0.0) for span in asked.tolist()]
            np.testing.assert_allclose(found, truth, rtol=1e-8, atol=1e-280)
            for threshold in (1e-6, 0.3, 1.0):
                *spans, probability = structure.likely_spans(potentials, reading, threshold)
                listed_spans = list(zip(*(part.tolist() for part in spans), strict=True))
                assert listed_spans == sorted(listed_spans)
                known = {tuple(span): p for span, p in zip(asked.tolist(), found, strict=True)}
                assert set(listed_spans) == {s for s, p in known.items() if p >= threshold}
                np.testing.assert_array_equal(probability, [known[s] for s in listed_spans])
