"""The best labelings under rules about whole sequences, by each way of finding them."""

import numpy as np
import pytest

from crfkit.constraints import compiled, integer, joint, relaxation
from crfkit.constraints.compiled import Compiled
from crfkit.constraints.global_rules import Before, Contiguous, Count, NotTogether
from crfkit.constraints.joint import USUAL, Budget, JointAutomata
from crfkit.constraints.product import Product
from crfkit.constraints.search import INTEGER, METHODS, PRODUCT, RELAXATION, VITERBI
from crfkit.structures import Chain, NoPathError
from tests.constraints.targets import target_of
from tests.contracts.structures import problem
from tests.oracles import random_scores
from tests.sampling import PROBLEMS

RULES = [
    Contiguous("a"), Contiguous("b"), Contiguous("c"), Count("a", at_most=1), Count("b", 1, 1),
    Count("b", at_least=2), Count("c", at_least=1), Before("a", "b"), Before("c", "a"),
    NotTogether(["a", "c"]), NotTogether(["b", "c"]),
]  # fmt: skip
WAYS = {2000: {VITERBI, PRODUCT}, 6: set(range(4)), 0: {VITERBI, RELAXATION, INTEGER}}


@pytest.fixture(autouse=True)
def small_products(monkeypatch):
    monkeypatch.setattr(joint, "WITHOUT_TABLE", 1)


def rules_of(seed, n_labels):
    """Some rules about labels that there are."""
    rng, known = np.random.default_rng(seed), "abc"[:n_labels]
    rules = [r for r in RULES if all(n in known for v in vars(r).values() for n in names(v))]
    chosen = rng.choice(len(rules), min(1 + seed % 4, len(rules)), replace=False)
    return [rules[i] for i in chosen]


def names(value):
    return value if isinstance(value, (str, list)) and value != "spans" else []


def automata_of(rules, potentials, max_states):
    segments = potentials.n_codes > potentials.n_labels
    target = target_of([*"abc"[: potentials.n_labels]], segments)
    automata = [automaton for rule in rules for automaton in rule.automata(target)]
    return JointAutomata(automata, [""] * len(automata), Budget(max_states))


def kept_of(automata, each):
    """The labelings that all automata accept."""
    codes = np.array([code for path, _, _ in each for code in path], np.int32)
    offsets = np.cumsum([0, *(len(path) for path, _, _ in each)])
    rejected = automata.rejecting(codes, offsets).any(axis=1)
    return [one for one, wrong in zip(each, rejected, strict=True) if not wrong]


@pytest.mark.parametrize("max_states", sorted(WAYS))
@pytest.mark.parametrize("name", ["chain", "sparse chain", "segments with an offset"])
def test_random_problems_are_searched_as_enumeration_does(name, max_states):
    methods = set()
    for seed in range(PROBLEMS):
        structure, potentials, listed = problem(name, seed)
        automata = automata_of(rules_of(seed, potentials.n_labels), potentials, max_states)
        product, kept = Product(structure, automata), [kept_of(automata, each) for each in listed]
        if not all(kept):
            with pytest.raises(NoPathError):
                product.argmax(potentials)
            continue
        found = product.find(potentials)
        best = np.array([each[0][1] for each in kept])
        np.testing.assert_allclose(found.value, best, rtol=1e-9, atol=1e-9)
        assert found.is_optimal.all() and (found.bound >= found.value).all()
        np.testing.assert_allclose(product.score(potentials, found.codes), found.value, rtol=1e-12)
        methods |= set(found.method.tolist())
    assert methods <= WAYS[max_states], METHODS


def test_what_is_not_proved_has_a_bound_and_is_told(monkeypatch):
    monkeypatch.setattr(relaxation, "ITERATIONS", 1)
    monkeypatch.setattr(integer, "MOST_COLUMNS", 0)  # a larger program is not made
    scores = random_scores(3, [12, 9], 3)
    rules = [Contiguous(), Count("b", 2, 3, unit="tokens"), Before("c", "a")]
    automata, exact = automata_of(rules, scores, 7), automata_of(rules, scores, 1000)
    gaps = []
    product, best = Product(Chain(), automata, gaps), Product(Chain(), exact).find(scores)
    found = product.find(scores)
    assert not found.is_optimal.any()
    assert (found.value <= best.value).all() and (best.value <= found.bound).all()
    assert product.argmax(scores)[1].tolist() == found.value.tolist()
    np.testing.assert_allclose(gaps, found.bound - found.value)


def test_sums_need_the_product_of_all_rules_and_tell_what_to_do():
    scores = random_scores(0, [3], 3)
    automata = [Contiguous().automata(target_of([*"abc"]))[0]] * 2
    product = Product(Chain(), JointAutomata(automata, ["Contiguous()", "Other()"], Budget(3)))
    says = r"up to 2\*\*3 states.*max_states=3.*Contiguous\(\), Other\(\)"
    for ask in (lambda: product.k_best(scores, 2), lambda: product.posterior(scores)):
        with pytest.raises(ValueError, match=says):
            ask()


def test_an_empty_sequence_keeps_rules_that_ask_for_nothing():
    scores = random_scores(0, [2, 0], 3)
    for rule, fails in ((Count("a", at_most=1), False), (Count("a", at_least=1), True)):
        product = Product(Chain(), automata_of([rule], scores, 1000))
        for ask in (product.argmax, product.posterior):
            if fails:
                with pytest.raises(NoPathError, match="sequence 1"):
                    ask(scores)
            else:
                ask(scores)


def test_large_tables_of_tokens_are_made_for_few_sequences_at_a_time(monkeypatch):
    scores, target = random_scores(0, [2, 3, 0, 4, 1], 3, own_steps=True), target_of([*"abc"])
    target.data.n_tokens = 10
    monkeypatch.setattr(compiled, "TABLE_CELLS", 150)
    for rule, most in ((Before("a", "b"), 2000), (Contiguous(), 9)):
        held = Compiled([rule], target, USUAL._replace(max_states=most))
        pieces = held.pieces(scores)
        assert len(pieces) > 1 and sum(len(each.offsets) - 1 for each in pieces) == 5
        found = [Product(Chain(), held.automata).argmax(each) for each in pieces]
        whole = Product(Chain(), held.automata).argmax(scores)
        for parts, every in zip(zip(*found, strict=True), whole, strict=True):
            np.testing.assert_array_equal(np.concatenate(parts), every)
    assert [each.first for each in Compiled([], target).pieces(scores)] == [0]
