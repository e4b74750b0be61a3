"""Expectation maximization: hidden Markov models of labels that are not known, or not wholly.

Each iteration computes the expected counts of labels, given what is known, and then the
probabilities that are most probable given these counts (Baum, Petrie, Soules and Weiss 1970;
Dempster, Laird and Rubin 1977). The logarithm of the likelihood of all that is known, tokens and
labels, plus those of the priors, never falls.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import reduce
from typing import NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from crfkit._parallel import LONG_TOKENS, Chunk, ThreadMap, is_long, with_threads
from crfkit._progress import working
from crfkit._types import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    IterationRecord,
    Potentials,
    Random,
)
from crfkit._warnings import warn_user
from crfkit.compiler.simd import WIDTH
from crfkit.data import PackedSequences
from crfkit.data.packed import ranges
from crfkit.data.targets import Targets
from crfkit.generative.base import HiddenCounts, HiddenTables, Smoothing
from crfkit.generative.counting import added, count_labeled, estimate, expected_steps, log_prior
from crfkit.generative.distinct import (
    REPEATED,
    DistinctTokens,
    SymbolCounts,
    SymbolSum,
    add_symbol_counts,
)
from crfkit.generative.em_starts import start_from, start_of_nothing
from crfkit.generative.model import BoundTables, HiddenMarkovModel
from crfkit.structures import Structure
from crfkit.structures.base import NoPathError

# Chunks whose counts are held before they are added up, in their order.
HELD = 32
# Chunks may be so many times larger than others, to have eight sequences.
MOST_TIMES = 4

Answer = TypeVar("Answer")


class EMOptions(NamedTuple):
    """How the maximum is looked for."""

    max_iter: int = 100
    tol: float = 1e-6  # iterations end where the objective rises by less than this share of it
    n_init: int = 1  # starts, of which the best result is kept, where nothing is known of labels
    random: Random | None = None  # of the starts
    n_jobs: int | None = None
    verbose: int = 0
    # Told each record and the tables; whether the fit is to end.
    callback: Callable[[IterationRecord, HiddenTables], bool] | None = None


class EMResult(NamedTuple):
    """What was found."""

    tables: HiddenTables  # of the last finished iteration
    counts: HiddenCounts  # those that the tables were estimated from
    log_likelihood: float  # of all that is known, without priors
    n_iter: int
    converged: bool
    log: list[IterationRecord]  # values are minus the objective: they fall
    message: str = ""  # why it stopped
    interrupted: bool = False  # whether the user stopped it


class Expected(NamedTuple):
    """What tables say of data."""

    counts: HiddenCounts | None  # None of no data
    log_likelihood: float


def fit_em(
    model: HiddenMarkovModel,
    smoothing: Smoothing,
    data: PackedSequences,
    targets: Targets | None,
    weight: FloatArray,
    start: HiddenTables | None,
    options: EMOptions,
) -> EMResult:
    """Return the probabilities that EM reaches from a start.

    Parameters
    ----------
    model : HiddenMarkovModel
    smoothing : Smoothing
        Of the transitions.
    data : PackedSequences
    targets : Targets or None
        What is known of labels; None for nothing. Sequences whose labels are all known are counted
        once. Where a token may have several labels, all others have the probability 0.
        Probabilities of labels are evidence: the likelihood of a labeling is multiplied by those
        of its labels, as if each token had sent a second signal that depends on its label alone.
    weight : ndarray of shape (S,)
        How often sequences count.
    start : HiddenTables or None
        If not given, it follows from what is known; and where nothing is, the transitions are drawn
        at random and the emissions are asked for a start.
    options : EMOptions

    Raises
    ------
    ValueError
        If labels are missing and the estimates of transitions or emissions maximize nothing, so
        that EM need not rise; or if a sequence has the probability 0.
    """
    random = np.random.RandomState(0) if options.random is None else options.random
    with ThreadMap(options.n_jobs) as threads:
        observed = Observed(model, data, targets, weight, threads)
        if not observed.hides:
            return _counted(observed, smoothing)
        check_maximizers(model, smoothing)
        if start is not None or observed.targets is not None:
            if start is None:
                assert observed.targets is not None
                start = start_from(model, smoothing, data, observed.targets, weight, random)
            result = _Climb(observed, smoothing, options).run(start)
        else:
            result = _best_of(observed, smoothing, options, random)
    if options.verbose:
        print(f"stopped after {result.n_iter} iterations: {result.message}", flush=True)
    if not result.converged:
        how = "was" if result.interrupted else "did not converge:"
        kept = "; the model keeps the probabilities reached so far" if result.interrupted else ""
        warn_user(f"fit {how} {result.message}{kept}.", ConvergenceWarning)
    return result


def check_maximizers(model: HiddenMarkovModel, smoothing: Smoothing) -> None:
    """Raise ValueError if estimates from expected counts need not make the data more probable."""
    for name, part, others in (
        ("smoothing", smoothing, "smoothing='additive'"),
        ("emissions", model.emission, "emissions='categorical', or others that maximize it"),
    ):
        if not part.is_maximizer:
            raise ValueError(
                f"y has tokens whose label is not known, which are learned from by EM, but "
                f"{name}={type(part).__name__} does not maximize the likelihood, so that EM may "
                f"never end. Choose {others}; or leave out what has no labels."
            )


class Observed:
    """Data, and what is known of their labels."""

    def __init__(
        self,
        model: HiddenMarkovModel,
        data: PackedSequences,
        targets: Targets | None,
        weight: FloatArray,
        threads: ThreadMap,
    ) -> None:
        self.model, self.threads = model, threads
        self.structure: Structure = with_threads(model.structure, threads)
        if targets is not None and targets.soft is None and not targets.known.any():
            targets = None
        self.data, self.targets = data, targets
        whole, counts = _are_whole(targets, data.offsets), weight > 0.0
        self.hidden = _Part(data, targets, weight, np.flatnonzero(~whole & counts))
        self.known = _Part(data, targets, weight, np.flatnonzero(whole & counts))
        self.known_counts: HiddenCounts | None = None
        if len(self.known.sequences):
            part, codes = self.known, self.known.states
            self.known_counts = count_labeled(model, part.data, codes, part.weight)
        self.distinct: DistinctTokens | None = None
        if self.hides:
            most, hidden = model.chunk_tokens // REPEATED, self.hidden
            self.distinct = DistinctTokens.of(hidden.data, hidden.targets, model.n_labels, most)

    @property
    def hides(self) -> bool:
        """Whether some label is not known."""
        return bool(len(self.hidden.sequences))

    def expect(self, tables: HiddenTables) -> Expected:
        """Return the expected counts of all data, and their log-likelihood."""
        bound = self.model.bind(tables)
        found = Expected(self.known_counts, 0.0)
        size, threads = self.model.chunk_tokens, self.threads
        for value in self.known.answers(lambda chunk: self._score(bound, chunk), size, threads):
            found = _both(found, Expected(None, value))
        if self.distinct is not None:
            return _both(found, self._expect_distinct(bound, self.distinct))
        for each in self.hidden.answers(lambda chunk: self._expect(bound, chunk), size, threads):
            found = _both(found, each)
        return found

    def _score(self, bound: BoundTables, chunk: Chunk) -> float:
        """Return the log-likelihood of the tokens and labels of a chunk."""
        part = self.known
        potentials = self.model.scores(bound, part.data, chunk, self.threads)
        values = self.structure.score(potentials, part.states[chunk.tokens])
        return float(part.weight[chunk.sequences] @ values)

    def _expect(self, bound: BoundTables, chunk: Chunk) -> Expected:
        """Return the expected counts of a chunk, and the log-likelihood of what is known of it."""
        part, model = self.hidden, self.model
        potentials = model.scores(bound, part.data, chunk, self.threads)
        if part.targets is not None:
            _add_evidence(potentials, part.targets.take(chunk.tokens))
        counts, weight = self.structure.zeros(potentials), part.weight[chunk.sequences]
        log_z = self.structure.log_partition(potentials, weight, counts)
        steps = expected_steps(model, potentials, counts)
        emission = model.emission.count(part.data, chunk.tokens, counts.unary)
        return Expected(HiddenCounts(steps, emission), float(weight @ log_z))

    def _expect_distinct(self, bound: BoundTables, distinct: DistinctTokens) -> Expected:
        """Return the same of all, where few tokens differ."""
        part, scores = self.hidden, distinct.scores(self.model, bound)
        summed = SymbolSum(self.model, self.structure, bound, scores, distinct.which)

        def work(chunk: Chunk) -> SymbolCounts:
            return summed.expect(chunk, part.weight[chunk.sequences])

        each = part.answers(work, self.model.chunk_tokens, self.threads)
        steps, shares, value = reduce(add_symbol_counts, each)
        emission = self.model.emission.count(distinct.data, slice(0, len(shares)), shares)
        return Expected(HiddenCounts(steps, emission), value)


class _Part:
    """Some of the sequences."""

    def __init__(
        self,
        data: PackedSequences,
        targets: Targets | None,
        weight: FloatArray,
        sequences: IntArray,
    ) -> None:
        self.sequences, self.weight = sequences, weight[sequences]
        self.data, self.targets = data, targets
        if len(sequences) < len(data):
            tokens = ranges(data.offsets[:-1][sequences], data.lengths[sequences])
            self.data, self.targets = data[sequences], None
            if targets is not None:
                self.targets = targets.take(tokens)

    @property
    def states(self) -> CodeArray:
        """The label of each token, where these are known."""
        assert self.targets is not None
        return self.targets.states

    def answers(
        self, work: Callable[[Chunk], Answer], size: int, threads: ThreadMap
    ) -> Iterator[Answer]:
        """Yield what chunks say, in an order that does not depend on the number of threads."""
        try:
            yield from self._answers(work, size, threads)
        except NoPathError as error:
            raise NoPathError(int(self.sequences[error.sequence]), error.position) from None

    def _answers(
        self, work: Callable[[Chunk], Answer], size: int, threads: ThreadMap
    ) -> Iterator[Answer]:
        chunks = even_chunks(self.data.offsets, size)
        short = [chunk for chunk in chunks if not is_long(chunk)]
        for first in range(0, len(short), HELD):
            yield from threads(work, short[first : first + HELD])
        yield from (work(chunk) for chunk in chunks if is_long(chunk))  # each over all threads


class _Climb:
    """One run of EM."""

    def __init__(self, observed: Observed, smoothing: Smoothing, options: EMOptions) -> None:
        self.observed, self.smoothing, self.options = observed, smoothing, options
        self.log: list[IterationRecord] = []
        self.result: EMResult | None = None
        self._began = time.perf_counter()

    def run(self, start: HiddenTables) -> EMResult:
        """Iterate until the objective rises no more; Ctrl-C keeps the last finished iteration."""
        with working("fitting", self.options.max_iter, "iterations") as self._task:
            try:
                return self._iterate(start)
            except KeyboardInterrupt:
                if self.result is None:
                    raise
                self._task.tell(interrupted=True)
                message = f"interrupted after iteration {self.result.n_iter}"
                return self.result._replace(converged=False, interrupted=True, message=message)

    def _iterate(self, tables: HiddenTables) -> EMResult:
        found = self.observed.expect(tables)
        stopped = self._note(tables, found, found)
        while not stopped and not self._has_converged() and self.n_iter < self.options.max_iter:
            before = found
            tables = self._estimate(before)
            found = self.observed.expect(tables)
            stopped = self._note(tables, before, found)
        message = f"max_iter={self.options.max_iter} iterations were not enough; raise it, or tol"
        if self._has_converged():
            message = f"the objective rises by less than tol={self.options.tol:g} of it"
        elif stopped:
            message = "a callback asked for it"
        assert self.result is not None
        return self.result._replace(converged=self._has_converged() or stopped, message=message)

    @property
    def n_iter(self) -> int:
        return len(self.log) - 1

    def _estimate(self, found: Expected) -> HiddenTables:
        assert found.counts is not None
        return estimate(self.observed.model, self.smoothing, found.counts, self.observed.data)

    def _has_converged(self) -> bool:
        if len(self.log) < 2:
            return False
        last, now = self.log[-2].value, self.log[-1].value
        return bool(last - now <= self.options.tol * max(abs(now), 1.0))

    def _note(self, tables: HiddenTables, before: Expected, found: Expected) -> bool:
        """Keep an iteration, and tell of it; returns whether the callback asks to stop."""
        prior = log_prior(self.observed.model, self.smoothing, tables)
        record = IterationRecord(
            len(self.log), -(found.log_likelihood + prior), math.nan, len(self.log) + 1,
            sum(int(np.count_nonzero(each)) for each in tables.steps if each is not None),
            time.perf_counter() - self._began,
        )  # fmt: skip
        assert before.counts is not None
        self.result = EMResult(
            tables, before.counts, found.log_likelihood, record.iteration, False,
            [*self.log, record],
        )  # fmt: skip
        self.log = self.result.log
        self._task.update(record.iteration, objective=record.value)
        every = {0: 0, 1: 10}.get(int(self.options.verbose), 1)
        if every and record.iteration % every == 0:
            print(
                f"iteration {record.iteration:4d}  objective {record.value:14.4f}  log-likelihood "
                f"{found.log_likelihood:14.4f}  {record.seconds:7.1f} s",
                flush=True,
            )
        return self.options.callback is not None and self.options.callback(record, tables)


def _best_of(
    observed: Observed, smoothing: Smoothing, options: EMOptions, random: Random
) -> EMResult:
    """Return the best result of several random starts; Ctrl-C keeps the best so far."""
    found: list[EMResult] = []
    for _ in range(max(options.n_init, 1)):
        try:
            start = start_of_nothing(observed.model, observed.data, random)
            found.append(_Climb(observed, smoothing, options).run(start))
        except KeyboardInterrupt:
            if not found:
                raise
            found.append(found[-1]._replace(interrupted=True, converged=False))
        if found[-1].interrupted:
            break
    best = min(found, key=lambda result: result.log[-1].value)
    if found[-1].interrupted:
        message = f"interrupted after iteration {best.n_iter} of one of {len(found)} starts"
        return best._replace(interrupted=True, converged=False, message=message)
    return best


def _counted(observed: Observed, smoothing: Smoothing) -> EMResult:
    """Return the estimates of known labels, which need no iterations."""
    counts = observed.known_counts
    if counts is None:
        raise ValueError("all sequences have the weight 0: there is nothing to learn from.")
    tables = estimate(observed.model, smoothing, counts, observed.data)
    value = observed.expect(tables).log_likelihood
    return EMResult(tables, counts, value, 0, True, [], "all labels are known")


def _are_whole(targets: Targets | None, offsets: IntArray) -> BoolArray:
    """Return which sequences have labels that are all known, (S,)."""
    if targets is None:
        return np.zeros(len(offsets) - 1, bool)
    single = targets.single if targets.soft is None else targets.soft.max(axis=1) >= 1.0
    missing: IntArray = np.concatenate([[0], np.cumsum(~single)])[offsets]
    whole: BoolArray = np.diff(missing) == 0
    return whole


def even_chunks(offsets: IntArray, tokens: int) -> list[Chunk]:
    """Cut sequences into chunks of about so many tokens.

    They have eight sequences, or several times eight, which are summed side by side; those of long
    ones have fewer.
    """
    limit = min(tokens, LONG_TOKENS // MOST_TIMES)
    chunks, first, count = [], 0, len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + limit, side="right")) - 1
        if last - first >= WIDTH:
            last -= (last - first) % WIDTH if last < count else 0
        elif offsets[min(first + WIDTH, count)] - offsets[first] <= MOST_TIMES * limit:
            last = min(first + WIDTH, count)
        last = max(last, first + 1)
        chunks.append(Chunk(first, offsets[first : last + 1]))
        first = last
    return chunks


def _add_evidence(potentials: Potentials, targets: Targets) -> None:
    """Add what is known of labels to the scores of tokens."""
    if targets.soft is not None:
        with np.errstate(divide="ignore"):
            potentials.unary[...] += np.log(targets.soft)
    elif targets.allowed is not None:
        potentials.unary[~targets.allowed] = -np.inf


def _both(one: Expected, other: Expected) -> Expected:
    counts = [each.counts for each in (one, other) if each.counts is not None]
    total = reduce(added, counts) if counts else None
    return Expected(total, one.log_likelihood + other.log_likelihood)
