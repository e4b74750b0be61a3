"""Sequences drawn from known sources, after the experiments of the first paper on CRFs.

Lafferty, McCallum and Pereira (2001), "Conditional random fields: probabilistic models for
segmenting and labeling sequence data", sections 5.1 (label bias) and 5.2 (mixed-order sources).
And segments that a dictionary tells, the case for semi-Markov models of Sarawagi and Cohen (2004).
Parameters that are out of range raise ValueError or TypeError.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import poisson
from sklearn.utils import Bunch, check_random_state

from crfkit._params import check_number, check_option, check_whole
from crfkit._types import FloatArray, IntArray

RandomStream = np.random.RandomState
RandomState = int | RandomStream | None
_WORDS = ("rib", "rob")


def _names(letters: str, number: int) -> list[str]:
    """Return letters where there are enough, numbered names otherwise."""
    if number <= len(letters):
        return list(letters[:number])
    return [f"{letters[0]}{i}" for i in range(number)]


def _sparse_rows(
    shape: tuple[int, ...], n_outcomes: int, n_possible: int, random: RandomStream
) -> FloatArray:
    """Draw distributions of shape (*shape, n_outcomes) with `n_possible` nonzero entries each."""
    rows = np.zeros((int(np.prod(shape)), n_outcomes))
    for row in rows:
        possible = random.choice(n_outcomes, n_possible, replace=False)
        row[possible] = random.dirichlet(np.ones(n_possible))
    return rows.reshape(*shape, n_outcomes)


def _draw(rows: FloatArray, random: RandomStream) -> IntArray:
    """Draw from each of the distributions in rows of shape (S, n_outcomes)."""
    sums = np.cumsum(rows, axis=1)
    # Divided by their last entry the sums end at exactly 1, which no draw reaches.
    drawn = sums / sums[:, -1:] > random.uniform(size=(len(rows), 1))
    codes: IntArray = np.argmax(drawn, axis=1).astype(np.int64)
    return codes


class _Mixture:
    """Hidden Markov sources of first and second order, mixed step by step."""

    def __init__(
        self, n_states: int, n_symbols: int, possible: tuple[int, int], random: RandomStream
    ) -> None:
        to_state, to_symbol = min(possible[0], n_states), min(possible[1], n_symbols)
        self.start = np.full(n_states, 1.0 / n_states)
        self.transition1 = _sparse_rows((n_states,), n_states, to_state, random)
        self.transition2 = _sparse_rows((n_states, n_states), n_states, to_state, random)
        self.emission1 = _sparse_rows((n_states,), n_symbols, to_symbol, random)
        self.emission2 = _sparse_rows((n_states, n_symbols), n_symbols, to_symbol, random)

    def sample(self, second: NDArray[np.bool_], random: RandomStream) -> tuple[IntArray, IntArray]:
        """Draw states and symbols, (S, T), of second order where ``second`` says so, (2, S, T)."""
        _, n_sequences, length = second.shape
        states = np.empty((n_sequences, length), np.int64)
        symbols = np.empty((n_sequences, length), np.int64)
        for t in range(length):
            rows = np.tile(self.start, (n_sequences, 1))
            if t > 0:
                rows = self.transition1[states[:, t - 1]]
            if t > 1:
                after_two = self.transition2[states[:, t - 2], states[:, t - 1]]
                rows = np.where(second[0, :, t, None], after_two, rows)
            states[:, t] = _draw(rows, random)
            rows = self.emission1[states[:, t]]
            if t > 0:
                after_symbol = self.emission2[states[:, t], symbols[:, t - 1]]
                rows = np.where(second[1, :, t, None], after_symbol, rows)
            symbols[:, t] = _draw(rows, random)
        return states, symbols


def _sequences(codes: Iterable[IntArray], names: Sequence[str]) -> list[list[str]]:
    return [[names[code] for code in row.tolist()] for row in codes]


def _bunch(
    drawn: tuple[IntArray, IntArray], states: list[str], symbols: list[str], **known: object
) -> Bunch:
    return Bunch(
        X=[[[symbol] for symbol in sequence] for sequence in _sequences(drawn[1], symbols)],
        y=_sequences(drawn[0], states),
        states=states,
        symbols=symbols,
        **known,
    )


def check_probability(name: str, value: float, most: float) -> None:
    """Raise if a parameter is no number from 0 to `most`."""
    check_number(name, value)
    if value > most:
        raise ValueError(f"{name}={value!r} must be at most {most:g}.")


def make_markov_sequences(
    n_sequences: int = 1000,
    length: int = 25,
    *,
    alpha: float = 0.5,
    n_states: int = 5,
    n_symbols: int = 26,
    n_successors: int = 2,
    n_emitted: int = 3,
    mixing: str = "local",
    random_state: RandomState = None,
) -> Bunch:
    r"""Draw sequences from a random mixture of first- and second-order hidden Markov sources.

    With probability `alpha` a label depends on the two labels before it and a symbol on its label
    and the symbol before it, otherwise on one label only:

    .. math::

        p(y_t | y_{t-1}, y_{t-2}) &= \alpha p_2(y_t | y_{t-1}, y_{t-2})
            + (1 - \alpha) p_1(y_t | y_{t-1}) \\
        p(x_t | y_t, x_{t-1}) &= \alpha p_2(x_t | y_t, x_{t-1}) + (1 - \alpha) p_1(x_t | y_t)

    A first-order model fits worse the larger `alpha` is.

    Parameters
    ----------
    n_sequences, length : int
        S sequences of T tokens.
    alpha : float, default=0.5
        The weight of the second order, from 0 to 1.
    n_states, n_symbols : int, default=5 and 26
        The number of labels K and of symbols V.
    n_successors, n_emitted : int, default=2 and 3
        How many labels may follow, and how many symbols may be emitted, in each row of the four
        tables; which ones is drawn, their probabilities are from a flat Dirichlet distribution.
    mixing : {"local", "global"}, default="local"
        Whether each step draws its order, as in the formulas, or each sequence draws it once,
        which is the mixture :math:`\alpha p_2(x, y) + (1 - \alpha) p_1(x, y)` of two sources.
    random_state : int, RandomState or None
        Seeds the tables and the sequences. Data of one source for training and testing are
        drawn together and split.

    Returns
    -------
    data : Bunch
        X, y : list of list of list of str, list of list of str
            The symbol of each token as its only attribute; the labels.
        start : ndarray of shape (K,)
            The distribution of first labels, uniform.
        transition1, transition2 : ndarray of shape (K, K) and (K, K, K)
            The last axis is the next label, the ones before it the past, oldest first.
        emission1, emission2 : ndarray of shape (K, V) and (K, V, V)
            The last axis is the symbol; before it stand the label and the symbol before.
        states, symbols : list of str
            The names of labels and symbols, in the order of the tables; `alpha` and `mixing` are as
            given.

    References
    ----------
    Lafferty, McCallum and Pereira (2001), section 5.2.

    Examples
    --------
    >>> data = make_markov_sequences(3, 4, random_state=0)
    >>> len(data.X), len(data.X[0]), data.transition2.shape
    (3, 4, (5, 5, 5))
    """
    check_whole("n_sequences", n_sequences)
    sizes = {"length": length, "n_states": n_states, "n_symbols": n_symbols}
    sizes |= {"n_successors": n_successors, "n_emitted": n_emitted}
    for name, value in sizes.items():
        check_whole(name, value, 1)
    check_option("mixing", mixing, ("local", "global"))
    check_probability("alpha", alpha, 1.0)
    random = check_random_state(random_state)
    source = _Mixture(n_states, n_symbols, (n_successors, n_emitted), random)
    n_draws = (2, n_sequences, length) if mixing == "local" else (1, n_sequences, 1)
    second = np.broadcast_to(random.uniform(size=n_draws) < alpha, (2, n_sequences, length))
    return _bunch(
        source.sample(second, random),
        _names(string.ascii_lowercase, n_states),
        _names(string.ascii_uppercase, n_symbols),
        alpha=alpha,
        mixing=mixing,
        **vars(source),
    )


def make_label_bias_data(
    n_sequences: int = 2000, *, noise: float = 1 / 32, random_state: RandomState = None
) -> Bunch:
    """Draw the words of the label-bias experiment.

    The source writes ``rib`` through the labels 1, 2, 3 or ``rob`` through 4, 5, 3, each half of
    the time. A label emits its own letter, or each of the other three of r, i, o, b with the
    probability `noise`. Only the second letter tells the words apart, but it is seen after the
    choice between label 1 and 4: a model normalized step by step (MEMM) cannot make use of it.

    Given the letters, the words are told apart by the second one alone, and two of its four values
    say nothing. So the best possible word error is ``noise + 2 * noise / 2``, and two of the three
    labels of a wrong word are wrong. A model that does not look at the second letter guesses.

    Parameters
    ----------
    n_sequences : int, default=2000
        S words of three tokens.
    noise : float, default=1/32
        From 0 to 1/4; a label emits its own letter with the probability ``1 - 3 * noise``.
    random_state : int, RandomState or None
        Seeds the words.

    Returns
    -------
    data : Bunch
        X, y : list of list of list of str, list of list of str
            The letter of each token as its only attribute; the labels.
        start : ndarray of shape (5,)
        transition : ndarray of shape (5, 5)
            The row of label 3, the last one of a word, is zero.
        emission : ndarray of shape (5, 4)
        states, symbols : list of str
            The names of labels and letters, in the order of the tables; `noise` is as given.
        bayes_label_error, bayes_word_error : float
            The least possible shares of wrong labels and of words with wrong labels, which are
            ``4 / 3 * noise`` and ``2 * noise``.
        biased_label_error, biased_word_error : float
            Those of a model that ignores the second letter, which are 1/3 and 1/2.

    References
    ----------
    Lafferty, McCallum and Pereira (2001), section 5.1; the problem is from Bottou (1991).

    Examples
    --------
    >>> make_label_bias_data(2, noise=0, random_state=0).X
    [[['r'], ['i'], ['b']], [['r'], ['o'], ['b']]]
    """
    check_whole("n_sequences", n_sequences)
    check_probability("noise", noise, 0.25)
    random = check_random_state(random_state)
    states, symbols = list("12345"), list("riob")
    paths = np.array([[states.index(state) for state in path] for path in ("123", "453")])
    start, transition = np.zeros(5), np.zeros((5, 5))
    emission = np.full((5, 4), float(noise))
    for path, word in zip(paths, _WORDS, strict=True):
        start[path[0]] = 1 / len(_WORDS)
        transition[path[:-1], path[1:]] = 1.0
        emission[path, [symbols.index(letter) for letter in word]] = 1.0 - 3 * noise
    drawn = paths[random.randint(len(_WORDS), size=n_sequences)]
    letters = _draw(emission[drawn.ravel()], random).reshape(drawn.shape)
    known = {"start": start, "transition": transition, "emission": emission, "noise": noise}
    for model, word_error in (("bayes", 2.0 * noise), ("biased", 1.0 / len(_WORDS))):
        known |= {f"{model}_label_error": 2 / 3 * word_error, f"{model}_word_error": word_error}
    return _bunch((drawn, letters), states, symbols, **known)


def make_segment_sequences(
    n_sequences: int = 500,
    n_segments: int = 8,
    *,
    mean_lengths: Iterable[float] = (2.0, 4.0, 6.0),
    max_length: int = 10,
    n_symbols: int = 100,
    coverage: float = 0.8,
    noise: float = 0.5,
    random_state: RandomState = None,
) -> Bunch:
    """Draw sequences of segments that only a noisy dictionary of whole segments tells apart.

    Labels and symbols are drawn uniformly, so that a symbol tells nothing of the label it has. The
    length of a segment is that of a Poisson distribution with the mean of its label, from 1 to
    `max_length`. Each segment is in the dictionary of its label with the probability `coverage`;
    and for each segment, with the probability `noise`, a run of symbols of its sequence is drawn,
    which has some label, a length of that label, and begins anywhere. It is in the dictionary, too,
    but for runs that pass the end or are segments, which are not drawn anew: about one of
    seven. Entries of few symbols occur elsewhere by chance, too.

    A model of single tokens can be told where entries begin and go on, but not which of those that
    overlap are segments; a model of segments weighs entries against each other.

    Parameters
    ----------
    n_sequences, n_segments : int
        S sequences of so many segments each.
    mean_lengths : iterable of float, default=(2, 4, 6)
        The mean of each label's Poisson distribution, 1 or more; K labels.
    max_length : int, default=10
        The longest length L.
    n_symbols : int, default=100
        The number of symbols V.
    coverage, noise : float, default=0.8 and 0.5
        Probabilities, from 0 to 1.
    random_state : int, RandomState or None
        Seeds everything. Data for training and testing are drawn together and split.

    Returns
    -------
    data : Bunch
        X, y : list of list of list of str, list of list of str
            The symbol of each token as its only attribute; the labels as IOB2 tags.
        segments : list of list of (int, int, str)
            First token, the one after the last, and label of each segment.
        dictionaries : dict of str to set of str
            The entries of each label, their symbols joined by a blank.
        length_probabilities : ndarray of shape (K, L)
            The distribution of the lengths 1, ..., L of each label.
        states, symbols : list of str
            The names of labels and symbols; `coverage` and `noise` are as given.

    References
    ----------
    Sarawagi and Cohen (2004), "Semi-Markov conditional random fields for information extraction".

    Examples
    --------
    >>> data = make_segment_sequences(2, 3, random_state=0)
    >>> data.segments[0]
    [(0, 2, 'a'), (2, 9, 'b'), (9, 14, 'a')]
    >>> len(data.X[0]), data.y[0][:4]
    (14, ['B-a', 'I-a', 'B-b', 'I-b'])
    """
    check_whole("n_sequences", n_sequences)
    sizes = {"n_segments": n_segments, "max_length": max_length, "n_symbols": n_symbols}
    for name, value in sizes.items():
        check_whole(name, value, 1)
    if not isinstance(mean_lengths, Iterable) or isinstance(mean_lengths, (str, bytes)):
        raise TypeError(f"mean_lengths={mean_lengths!r} must be a list of a mean for each label.")
    means = list(mean_lengths)
    if not means:
        raise ValueError("mean_lengths is empty: give a mean for each label.")
    for mean in means:
        check_number("mean_lengths", mean, 1.0)
    check_probability("coverage", coverage, 1.0)
    check_probability("noise", noise, 1.0)
    random = check_random_state(random_state)
    states = _names(string.ascii_lowercase, len(means))
    symbols = _names(string.ascii_uppercase, n_symbols)
    table = softmax(poisson.logpmf(np.arange(1, max_length + 1), np.array(means)[:, None]), axis=1)
    labels = random.randint(len(states), size=(n_sequences, n_segments))
    lengths = 1 + _draw(table[labels.ravel()], random).reshape(labels.shape)
    ends = np.cumsum(lengths, axis=1)
    segments = [
        [(j - n, j, states[k]) for j, n, k in zip(*rows, strict=True)]
        for rows in zip(ends.tolist(), lengths.tolist(), labels.tolist(), strict=True)
    ]
    drawn = random.randint(n_symbols, size=int(lengths.sum()))
    # Without sequences there is one part too many.
    rows = _sequences(np.split(drawn, np.cumsum(ends[:, -1])[:-1])[:n_sequences], symbols)
    return Bunch(
        X=[[[symbol] for symbol in row] for row in rows],
        y=[
            [f"{'I' if t else 'B'}-{k}" for i, j, k in one for t in range(j - i)]
            for one in segments
        ],
        segments=segments,
        dictionaries=_noisy_entries(rows, segments, table, (coverage, noise), states, random),
        length_probabilities=table,
        states=states,
        symbols=symbols,
        coverage=coverage,
        noise=noise,
    )


def _noisy_entries(
    rows: list[list[str]],
    segments: list[list[tuple[int, int, str]]],
    table: FloatArray,
    probabilities: tuple[float, float],
    states: list[str],
    random: RandomStream,
) -> dict[str, set[str]]:
    """Return the entries of each label: most of its segments, and runs that are none."""
    entries: dict[str, set[str]] = {state: set() for state in states}
    coverage, noise = probabilities
    for row, one in zip(rows, segments, strict=True):
        true = {(start, stop) for start, stop, _ in one}
        for start, stop, label in one:
            if random.uniform() < coverage:
                entries[label].add(" ".join(row[start:stop]))
            code = random.randint(len(states))
            first = random.randint(len(row))
            wrong = first, first + 1 + random.choice(len(table[0]), p=table[code])
            if random.uniform() < noise and wrong[1] <= len(row) and wrong not in true:
                entries[states[code]].add(" ".join(row[first : wrong[1]]))
    return entries
