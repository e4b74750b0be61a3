"""The potentials of a hidden Markov model: logarithms of its probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from crfkit._parallel import SERIAL, Chunk, ThreadMap, chunk_tokens
from crfkit._types import FloatArray, Potentials
from crfkit.compiler.jit import frozen, protect
from crfkit.data import PackedSequences
from crfkit.data.topology import check_no_topology
from crfkit.generative.base import Emission, HiddenTables, StepTables, Tables
from crfkit.potentials.base import PotentialsModel
from crfkit.potentials.chain_blocks import boundary_rows
from crfkit.structures import Chain, ChainPotentials

# Probabilities that add up to 1 but for rounding.
ROUNDING = 1e-8


class BoundTables(NamedTuple):
    """Logarithms of the probabilities of labels, and the tables of the emission."""

    start: FloatArray  # (K,)
    end: FloatArray | None  # (K,)
    pair: FloatArray  # (1, K, K); order 2: (K + 1, K, K)
    emission: Tables
    turned: Any = None  # order 2: `pair` in another order, too


class HiddenMarkovModel(PotentialsModel):
    """``unary_t[k] = log P(x_t | k)``, ``pair[i, j] = log P(j | i)``, and the two ends in `unary`.

    The score of a labeling is ``log P(x, y)``, and log Z is ``log P(x)``. In order 2 the
    transitions know the label before the last one, too. In order 0 each label is drawn alone
    (naive Bayes): all rows of transitions are the same.

    Parameters
    ----------
    emission : Emission
    n_labels : int
    order : {0, 1, 2}
    stop : bool
        Whether the ends of sequences have a probability.
    """

    is_linear = False

    def __init__(self, emission: Emission, n_labels: int, order: int = 1, stop: bool = True):
        self.emission, self.order, self.stop = emission, order, stop and order > 0
        self.n_labels = self.n_codes = self.n_columns = n_labels
        self.n_parameters = sum(self.parameter_counts.values())
        self.chunk_tokens = chunk_tokens(n_labels, own_transitions=False)
        if order == 2:  # so that what a chunk does once for all triples of labels does not dominate
            self.chunk_tokens = max(self.chunk_tokens, min(n_labels**2, 8 * self.chunk_tokens))
        self.structure: Any = _structure(order)

    @property
    def parameter_counts(self) -> dict[str, int]:
        """Numbers of probabilities of labels, by what they are."""
        size = self.n_labels
        counts = {"start": size}
        if self.order:
            counts["label x label"] = size**2
        if self.order == 2:
            counts["label x label x label"] = (size + 1) * size**2
        return counts | ({"end": size} if self.stop else {})

    def fitted(self, parameters: Any) -> dict[str, Any]:
        """Return tables, a `HiddenTables`, as the attributes of a fitted estimator."""
        steps, emission = parameters
        return {
            "start_probabilities_": steps.start,
            "transition_probabilities_": steps.steps,
            "end_probabilities_": steps.end,
            "second_order_probabilities_": steps.triples,
            "emission_tables_": emission,
        }

    def bind(self, parameters: Any) -> BoundTables:
        """Return the logarithms of tables, a `HiddenTables`."""
        steps, emission = parameters
        with np.errstate(divide="ignore"):
            end = None if steps.end is None else np.log(steps.end)
            pair = frozen(np.log(steps.steps[None] if steps.triples is None else steps.triples))
            turned = _turned(pair) if self.order == 2 else None
            return BoundTables(np.log(steps.start), end, pair, emission, turned)

    def scores(
        self, bound: Any, data: PackedSequences, chunk: Chunk, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the potentials of a chunk of data."""
        check_no_topology(data.topology, "a hidden Markov model")
        potentials = self.label_scores(bound, chunk.offsets - chunk.offsets[0], chunk.first)
        self.emission.scores(bound.emission, data, chunk.tokens, potentials.unary)
        return potentials

    def label_scores(self, bound: BoundTables, offsets: Any, first: int = 0) -> Potentials:
        """Return the potentials of sequences of which no token is known, ``offsets[0] == 0``."""
        unary = np.zeros((int(offsets[-1]), self.n_labels))
        starts, ends = boundary_rows(offsets)
        unary[starts] += bound.start
        if bound.end is not None:
            unary[ends] += bound.end
        if self.order < 2:
            index = np.zeros(1, np.uint32)
            return ChainPotentials(unary, bound.pair, index, offsets, first)
        found: Potentials = self.structure.potentials(
            unary, bound.pair, offsets, first, turned=bound.turned
        )
        return found


def _structure(order: int) -> Any:
    if order < 2:
        return Chain()
    from crfkit.structures.second_order import SecondOrderChain  # few need it

    return SecondOrderChain()


def _turned(pair: FloatArray) -> Any:
    from crfkit.structures.second_order import TurnedTables  # few need it

    return TurnedTables.of(pair)


class HiddenProbabilities:
    """From fitted attributes to a hidden Markov model, as of a :class:`WeightSpace`."""

    fitted_names = (
        "start_probabilities_", "transition_probabilities_", "end_probabilities_",
        "second_order_probabilities_", "emission_tables_", "emissions_",
    )  # fmt: skip

    def model(
        self, fitted: object, sizes: Mapping[str, int]
    ) -> tuple[HiddenMarkovModel, BoundTables]:
        """Return the model of fitted probabilities, and these; ValueError if they are none."""
        del sizes  # the layout of attributes is that of the fit
        model, tables = self.read(fitted)
        return model, model.bind(tables)

    def check_new(self, fitted: object, data: PackedSequences) -> None:
        """Raise ValueError, naming the place, if the emission of a model cannot read new data."""
        family = vars(fitted).get("emissions_")
        if isinstance(family, Emission):  # else `read` says what is wrong
            family.check(data)

    def read(self, fitted: object) -> tuple[HiddenMarkovModel, HiddenTables]:
        """Return the model and its tables, which are checked and made read-only."""
        parts: dict[str, Any] = vars(fitted)
        found: tuple[Any, ...] = tuple(map(parts.get, self.fitted_names))
        start, steps, end, triples, emission, family = found
        size, n_features = len(parts["classes_"]), parts["n_features_in_"]
        tables = StepTables(start, steps, end, triples)
        check_steps(tables, size)
        if not isinstance(family, Emission):
            raise ValueError(f"emissions_ is {family!r:.60}, no family of emissions.")
        family.check_tables(emission, size, n_features)
        protect(tables._asdict() | emission._asdict())
        order = 1 if triples is None else 2
        model = HiddenMarkovModel(family, size, order, end is not None)
        return model, HiddenTables(tables, emission)


def check_steps(tables: StepTables, n_labels: int) -> None:
    """Raise ValueError unless tables are probabilities of K labels that add up to 1."""
    start, steps, end, triples = tables
    size = n_labels
    _check("start_probabilities_", start, (size,))
    _check("transition_probabilities_", steps, (size, size))
    _check_sums("start_probabilities_", start.sum(keepdims=True))
    rest = np.zeros(size)
    if end is not None:
        _check("end_probabilities_", end, (size,))
        rest = end
    _check_sums("transition_probabilities_", steps.sum(axis=1) + rest)
    if triples is not None:
        _check("second_order_probabilities_", triples, (size + 1, size, size))
        _check_sums("second_order_probabilities_", (triples.sum(axis=2) + rest).ravel())


def _check(name: str, table: Any, shape: tuple[int, ...]) -> None:
    if type(table) is not np.ndarray or table.dtype != np.float64 or table.shape != shape:
        raise ValueError(f"{name} is no array of float64 of shape {shape}.")
    if not np.all((table >= 0.0) & (table <= 1.0 + ROUNDING)):
        raise ValueError(f"{name} holds a number that is no probability.")


def _check_sums(name: str, sums: FloatArray) -> None:
    off = np.flatnonzero(np.abs(sums - 1.0) > ROUNDING)
    if len(off):
        raise ValueError(
            f"row {off[0]} of {name} adds up to {sums[off[0]]:.6g}, with the probability of the "
            "end where there is one, not to 1."
        )
