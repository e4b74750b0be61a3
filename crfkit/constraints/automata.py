"""Automata of rules: the smallest ones, products, and copies of labels that know their states."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from crfkit._types import BoolArray, CodeArray, IntArray, Potentials
from crfkit.constraints.base import Automaton
from crfkit.kernels.chain.copies import LabelCopies
from crfkit.structures.copies import make_copies


class TooManyStatesError(ValueError):
    """A product of automata has more states than are allowed; `states` is a lower bound."""

    def __init__(self, states: int) -> None:
        self.states = states
        super().__init__(f"a product of automata has at least {states} states.")


def minimal(automaton: Automaton) -> Automaton:
    """Return the smallest automaton that accepts the same sequences.

    Its states can all be reached, and from all of them sequences can be accepted; that in which it
    starts is kept where it accepts nothing. By refinement of classes of states (Moore 1956).
    """
    read, symbols = np.unique(automaton.symbols, return_inverse=True)
    step, accepts = automaton.step[:, read], automaton.accepts
    alive = _reached(step) & _leading(step, accepts)
    step = np.where((step >= 0) & alive[step] & alive[:, None], step, -1)
    kept = np.union1d(np.flatnonzero(alive), [0])
    places = np.full(len(step) + 1, -1)  # the last one is that of no state
    places[kept] = np.arange(len(kept))
    step, accepts = places[step[kept]], accepts[kept]
    n_classes, classes = 0, accepts.astype(np.int64)
    while True:
        of_steps = np.where(step >= 0, classes[step], -1)
        key = np.column_stack([classes, of_steps])
        _, first, found = np.unique(key, axis=0, return_index=True, return_inverse=True)
        classes = np.argsort(np.argsort(first))[found.reshape(-1)]  # that of state 0 stays first
        if len(first) == n_classes:
            break
        n_classes = len(first)
    first = np.sort(first)
    step = np.where(step >= 0, classes[step], -1)[first]
    columns, same = np.unique(step, axis=1, return_inverse=True)
    symbols = same.reshape(-1)[symbols].reshape(automaton.symbols.shape)
    return Automaton(symbols, columns, accepts[first])


def product(one: Automaton, other: Automaton, most: int) -> Automaton:
    """Return the smallest automaton that accepts what both do.

    TooManyStatesError if it has more states than `most` before it is made small.
    """
    width = other.step.shape[1]
    pairs, symbols = np.unique(one.symbols * width + other.symbols, return_inverse=True)
    left, right = one.step[:, pairs // width], other.step[:, pairs % width]
    wide = len(other.step)
    places = np.full(len(one.step) * wide, -1)
    states = new = np.zeros(1, np.int64)
    places[0], steps = 0, []
    while len(new):
        ahead = left[new // wide], right[new % wide]
        target = np.where((ahead[0] >= 0) & (ahead[1] >= 0), ahead[0] * wide + ahead[1], -1)
        steps.append(target)
        new = np.unique(target[target >= 0])
        new = new[places[new] < 0]
        places[new] = len(states) + np.arange(len(new))
        states = np.concatenate([states, new])
        if len(states) > most:
            raise TooManyStatesError(len(states))
    target = np.concatenate(steps)
    step = np.where(target >= 0, places[target], -1)
    accepts = one.accepts[states // wide] & other.accepts[states % wide]
    return minimal(Automaton(symbols.reshape(one.symbols.shape), step, accepts))


def product_of_all(automata: Sequence[Automaton], most: int) -> Automaton:
    """Return the smallest automaton that accepts what all do, small ones first."""
    first, *others = sorted(automata, key=lambda each: len(each.step))
    found = minimal(first)
    if len(found.step) > most:
        raise TooManyStatesError(len(found.step))
    for each in others:
        found = product(found, each, most)
    return found


def copies_of(automaton: Automaton, n_labels: int, most: int) -> LabelCopies:
    """Return copies of labels, one for each state in which the automaton may be after a label.

    The labels of a sequence and of its path through the automaton are each other's: sums and lists
    over the one are those over the other. Codes of segments go on in the state in which one begins.
    TooManyStatesError if there are more copies than `most`.
    """
    step, begins, steps = automaton.step, *_label_symbols(automaton, n_labels)
    n_states, labels = len(step), np.arange(n_labels)
    # A pair of a state and a label is the number `label * n_states + state`.
    found = np.zeros(n_labels * n_states, bool)
    starts = np.where(step[0, begins] >= 0, labels * n_states + step[0, begins], -1)
    new = np.unique(starts[starts >= 0])
    while len(new):
        found[new] = True
        if (size := int(found.sum())) > most:
            raise TooManyStatesError(size)
        ahead = np.unique(_ahead(step, steps, new))
        ahead = ahead[ahead >= 0]
        new = ahead[~found[ahead]]
    copies = np.flatnonzero(found)
    target = _ahead(step, steps, copies)
    last = automaton.accepts[copies % n_states]
    alive = np.zeros(n_labels * n_states + 1, bool)  # the last one is that of no pair
    alive[copies] = last
    while True:
        leads = alive[copies] | alive[target].any(axis=1)
        if np.array_equal(leads, alive[copies]):
            break
        alive[copies] = leads
    target, last = target[leads], last[leads]
    copies = copies[leads]
    places = np.full(len(alive), -1)
    places[copies] = np.arange(len(copies))
    rows, columns = np.nonzero(places[target] >= 0)
    first = np.zeros(max(len(copies), 1), bool)
    kept = places[starts[starts >= 0]]
    first[kept[kept >= 0]] = True
    if not len(copies):  # one that is never allowed
        return make_copies(np.zeros(1, np.int64), rows, rows, first, first)
    return make_copies(copies // n_states, rows, places[target[rows, columns]], first, last)


def copied_codes(copies: LabelCopies, potentials: Potentials) -> CodeArray:
    """Return the code that each code over copies of labels stands for; potentials are the old."""
    size = potentials.n_labels
    n_roles = potentials.n_codes // size
    codes = np.concatenate([copies.label + role * size for role in range(n_roles)])
    found: CodeArray = codes.astype(np.int32)
    return found


def _ahead(step: IntArray, symbols: IntArray, pairs: IntArray) -> IntArray:
    """Return the pairs of state and label that follow pairs, with each next label; -1 for none."""
    n_states, n_labels = len(step), len(symbols)
    label, state = np.divmod(pairs, n_states)
    ahead = step[state[:, None], symbols[label]]
    found: IntArray = np.where(ahead >= 0, np.arange(n_labels) * n_states + ahead, -1)
    return found


def _label_symbols(automaton: Automaton, n_labels: int) -> tuple[IntArray, IntArray]:
    """Return the symbols of labels at the start, (K,), and of labels after labels, (K, K).

    ValueError if it has to read more of segments than where they begin.
    """
    symbols, step = automaton.symbols, automaton.step
    inside = symbols.shape[1] - n_labels
    if not inside:
        return symbols[-1], symbols[:-1]
    begins, steps = symbols[-1, inside:], symbols[inside:-1, inside:]
    after_inside = symbols[:inside, inside:]
    labels = np.arange(n_labels)
    entered = np.unique(np.hstack([step[:, begins].T, *np.moveaxis(step[:, steps], 0, -1)]), axis=1)
    stays = [step[:, symbols[row, labels]].T for row in (labels, labels + inside)]
    known = entered >= 0
    moved = [np.take_along_axis(each, np.where(known, entered, 0), 1) != entered for each in stays]
    same = step[:, after_inside] == step[:, steps]
    if any((each & known).any() for each in moved) or not same.all():
        raise ValueError(
            "a model of segments asks rules about the segments of a sequence, not about the number "
            "of tokens in them."
        )
    return begins, steps


def _reached(step: IntArray) -> BoolArray:
    """Return which states can be reached."""
    found, new = np.zeros(len(step), bool), np.zeros(1, np.int64)
    while len(new):
        found[new] = True
        ahead = np.unique(step[new])
        ahead = ahead[ahead >= 0]
        new = ahead[~found[ahead]]
    return found


def _leading(step: IntArray, accepts: BoolArray) -> BoolArray:
    """Return from which states some that accept can be reached."""
    found = np.append(accepts, False)
    for _ in count():
        more = found[:-1] | found[step].any(axis=1)
        if np.array_equal(more, found[:-1]):
            break
        found[:-1] = more
    return found[:-1]
