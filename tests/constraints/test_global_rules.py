"""Rules about whole sequences, against what they say, on all short sequences of labels."""

from itertools import product as all_tuples

import numpy as np
import pytest

from crfkit.constraints.automata import TooManyStatesError, copies_of, minimal, product_of_all
from crfkit.constraints.base import Automaton
from crfkit.constraints.global_rules import Before, Contiguous, Count, NotTogether
from crfkit.constraints.joint import JointAutomata
from crfkit.structures.copies import allowed_steps
from tests.constraints.targets import target_of
from tests.ids import stable

RUNS = ["O", "a", "b"]
TAGS = ["B-a", "B-b", "I-a", "O"]


def spans(labels):
    """The spans of labels: of tags as the conlleval script reads them, of others runs."""
    found = []
    for t, label in enumerate(labels):
        before = labels[t - 1] if t else "O"
        type_ = label[2:] if "-" in label else label
        goes_on = before == label if "-" not in label else label[0] == "I" and before[2:] == type_
        if label != "O" and not goes_on:
            found.append([t, t, type_])
        if label != "O":
            found[-1][1] = t + 1
    return found


def tokens_of(labels, name):
    return [t for t, label in enumerate(labels) if name in (label, label[2:])]


def count_of(labels, name):
    if name in TAGS + ["O"]:  # no type of spans: runs of tokens
        tokens = tokens_of(labels, name)
        return sum(t - 1 not in tokens for t in tokens)
    return sum(type_ == name for _, _, type_ in spans(labels))


def in_one_block(labels, names):
    blocks = [tokens_of(labels, name) for name in names]
    return all(not b or b[-1] - b[0] == len(b) - 1 for b in blocks)


def in_order(labels, first, second):
    return all(t < u for t in tokens_of(labels, first) for u in tokens_of(labels, second))


# Rules, and what they say.
RULES = [
    (Count("a", at_most=0), lambda y: count_of(y, "a") == 0),
    (Count("a", at_least=2), lambda y: count_of(y, "a") >= 2),
    (Count("a", at_least=1, at_most=1), lambda y: count_of(y, "a") == 1),
    (Count("O", at_most=1), lambda y: count_of(y, "O") <= 1),
    (Count("b", 1, 2, unit="tokens"), lambda y: 1 <= len(tokens_of(y, "b")) <= 2),
    (Contiguous(), lambda y: in_one_block(y, "ab")),
    (Contiguous(["b"]), lambda y: in_one_block(y, "b")),
    (Contiguous("O"), lambda y: in_one_block(y, "O")),
    (Before("a", "b"), lambda y: in_order(y, "a", "b")),
    (Before("O", "b"), lambda y: in_order(y, "O", "b")),
    (NotTogether(["a", "b"]), lambda y: not (tokens_of(y, "a") and tokens_of(y, "b"))),
]
OF_TAGS = [
    (Count("B-a", at_most=1), lambda y: count_of(y, "B-a") <= 1),
    (Contiguous(["I-a"]), lambda y: in_one_block(y, ["I-a"])),
    (NotTogether(["B-a", "I-a", "O"]), lambda y: len({*y} & {"B-a", "I-a", "O"}) <= 1),
]
ONE_TAG = (["B-a", "O"], Count("B-a", at_most=1), lambda y: count_of(y, "B-a") <= 1)
CASES = [(RUNS, *each) for each in RULES] + [(TAGS, *each) for each in RULES + OF_TAGS] + [ONE_TAG]


def sequences(labels, most=4):
    return [y for n in range(most + 1) for y in all_tuples(labels, repeat=n)]


def accepted(automata, labels, rows):
    codes = np.array([labels.index(label) for y in rows for label in y], np.int32)
    offsets = np.cumsum([0, *map(len, rows)])
    return ~JointAutomata(automata, [""] * len(automata)).rejecting(codes, offsets)


@pytest.mark.parametrize(("labels", "rule", "says"), CASES, ids=stable)
def test_a_rule_says_what_its_automata_accept(labels, rule, says):
    automata, rows = rule.automata(target_of(labels)), sequences(labels)
    found = accepted(automata, labels, rows).all(axis=1)
    np.testing.assert_array_equal(found, [says(y) for y in rows])
    for automaton in automata:
        assert len(minimal(automaton).step) == len(automaton.step)


def test_products_accept_what_all_accept_and_are_minimal():
    rows, rng = sequences(TAGS), np.random.default_rng(0)
    for _ in range(20):
        chosen = [(RULES + OF_TAGS)[i] for i in rng.choice(len(RULES + OF_TAGS), 3, replace=False)]
        automata = [each for rule, _ in chosen for each in rule.automata(target_of(TAGS))]
        whole = product_of_all(automata, 1000)
        expected = [all(says(y) for _, says in chosen) for y in rows]
        np.testing.assert_array_equal(accepted([whole], TAGS, rows)[:, 0], expected)
        again = minimal(whole)
        assert again.step.shape == whole.step.shape  # states and symbols are as few as can be
        copies = copies_of(whole, len(TAGS), 1000)
        assert sum(expected) - whole.accepts[0] == paths_of(copies, 4)


def paths_of(copies, most):
    """How many paths of copies of labels there are of at most so many labels."""
    ways, count = copies.first.astype(int), 0
    for _ in range(most):
        count += ways @ copies.last
        ways = ways @ allowed_steps(copies)
    return count


def test_an_automaton_that_accepts_nothing_is_one_state():
    nothing = minimal(Automaton(np.zeros((3, 2), int), np.array([[1], [0]]), np.zeros(2, bool)))
    assert nothing.step.tolist() == [[-1]] and not nothing.accepts.any()
    copies = copies_of(nothing, 2, 10)
    assert not (copies.first | copies.last).any()


def test_products_that_are_too_large_are_told_of():
    automata = Contiguous().automata(target_of([*"abcdefgh"]))
    with pytest.raises(TooManyStatesError):
        product_of_all(automata, 100)
    with pytest.raises(TooManyStatesError):
        copies_of(product_of_all(automata[:4], 100), 8, 50)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (Count("c"), "does not know the label 'c'"),
        (Before("a", "B-a"), "a token may have both labels"),
        (NotTogether(["a", "B-a"]), "two of the labels"),
        (Count("a", at_least=-1), "at_least=-1"),
        (Count("a", at_least=3, at_most=2), "at_most=2 is less than at_least=3"),
        (Count("a", unit="words"), "unit='words'"),
        (Count("a", at_most=10**9), "5000 are the most"),
    ],
    ids=str,
)
def test_rules_that_fit_no_model_are_refused(rule, says):
    with pytest.raises(ValueError, match=says):
        rule.automata(target_of(TAGS))


def test_segments_count_segments():
    target = target_of(["O", "a"], segments=True)
    with pytest.raises(ValueError, match="a model of segments counts segments"):
        Count("a", at_most=2, unit="tokens").automata(target)
    (automaton,) = Count("a", at_most=1).automata(target)
    # Codes: O goes on, a goes on, O begins, a begins.
    found = JointAutomata([automaton], [""]).rejecting(
        np.array([3, 1, 1, 3, 3], np.int32), np.array([0, 3, 5])
    )
    assert found[:, 0].tolist() == [False, True]
    lengths = np.array([[0, 1, 0, 1]] * 5)  # reads each token of a label
    with pytest.raises(ValueError, match="not about the number of tokens"):
        copies_of(Automaton(lengths, np.array([[0, 1], [1, -1]]), np.ones(2, bool)), 2, 10)
