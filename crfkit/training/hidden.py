"""Fits of hidden Markov models: their parameters and data, counts, batches of them, and EM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state

from crfkit._parallel import ThreadMap
from crfkit._params import check_flag, check_method, check_number, check_option, check_whole
from crfkit._types import FloatArray, IntArray, ObjectArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.frames import is_frame, kind_of
from crfkit.data.labels import are_lists, check_sample_weight, iterate_sequences, object_array
from crfkit.data.names import name_array
from crfkit.data.targets import Targets, Weights
from crfkit.data.validation import is_matrix
from crfkit.features import SequenceVectorizer, SymbolVectorizer
from crfkit.features.word_table import StringNumbers
from crfkit.generative.base import Emission, HiddenCounts, HiddenTables, Smoothing
from crfkit.generative.counting import added, count_labeled, counted_likelihood, estimate, in_order
from crfkit.generative.emissions import EMISSIONS
from crfkit.generative.model import HiddenMarkovModel, HiddenProbabilities
from crfkit.generative.smoothing import find_smoothing
from crfkit.inference.base import FittedModel
from crfkit.labels.base import TokenLabels
from crfkit.potentials.blocks import NAMES_OF, TOKENS
from crfkit.structures import Structure
from crfkit.training.data import (
    Attributes,
    Packed,
    Schema,
    TrainingData,
    check_training,
    pack_made,
    pack_new,
    pack_training,
    read_training,
)
from crfkit.training.fit import shared_parameters
from crfkit.training.mistakes import warn_of_labels_in_rows

ORDERS = 0, 1, 2
# Vectorizers that take new symbols, or attributes, after `fit`.
_GROWING = (SequenceVectorizer, SymbolVectorizer)


class Setup(NamedTuple):
    """The parameters of a hidden Markov model, checked."""

    order: int
    stop: bool
    smoothing: Smoothing
    emissions: str | Emission
    features: Any
    n_states: int | None
    n_jobs: int | None

    @classmethod
    def of(cls, estimator: Any) -> Setup:
        """Return the parameters of an estimator; ValueError or TypeError if one cannot be used."""
        given = shared_parameters(estimator)
        check_whole("order", given["order"])
        if given["order"] not in ORDERS:
            raise ValueError(f"order={given['order']!r} must be one of {ORDERS}.")
        check_flag("stop", given["stop"])
        if given["n_states"] is not None:
            check_whole("n_states", given["n_states"], 1)
        check_whole("max_iter", given["max_iter"])
        check_whole("n_init", given["n_init"], 1)
        check_number("tol", given["tol"])
        return cls(
            int(given["order"]), bool(given["stop"]), find_smoothing(given["smoothing"]),
            _checked_emissions(given["emissions"]), given["features"], given["n_states"],
            given["n_jobs"],
        )  # fmt: skip

    def model(self, emission: Emission, n_labels: int) -> HiddenMarkovModel:
        """Return the model of K labels."""
        return HiddenMarkovModel(emission, n_labels, self.order, self.stop)


def _checked_emissions(emissions: Any) -> str | Emission:
    if isinstance(emissions, str):
        check_option("emissions", emissions, ["auto", *EMISSIONS])
        return emissions
    check_method("emissions", emissions, "count_labels", f"one of {['auto', *EMISSIONS]}")
    found: Emission = clone(emissions)
    return found


class Reader:
    """Packs the tokens of training data as a family of emissions reads them.

    Where that is "auto", dense matrices of numbers that are not whole are vectors, all else is
    symbols.
    """

    emission: Emission  # once data were packed

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    def __call__(self, X: Any, y: Any = None) -> Packed:
        """Return packed data, and what has packed them."""
        features = self.setup.features
        if features is not None:
            data, vectorizer = pack_made(X, y, features, self._pack)
        else:
            data, vectorizer = self._pack(X)
        if len(data):
            self.emission.check(data)
        return data, vectorizer

    def _pack(self, X: Any) -> Packed:
        if isinstance(X, PackedSequences):
            self._choose(of_vectors=X.dense is not None and not X.n_sparse)
            return X, None
        sequences: list[Any] = X
        if not are_lists(X):
            sequences = [s if hasattr(s, "__len__") else list(s) for s in iterate_sequences(X, "X")]
        first: Any = next((sequence for sequence in sequences if _n_tokens(sequence)), [])
        of_numbers = is_matrix(first) and not _holds_symbols(first)
        self._choose(of_vectors=of_numbers and not sp.issparse(first))
        vectorizer = None if of_numbers else self.emission.vectorizer()
        if vectorizer is None:
            return pack_training(sequences)
        return vectorizer.fit_transform(sequences), vectorizer

    def _choose(self, of_vectors: bool) -> None:
        given = self.setup.emissions
        if given == "auto":
            given = "gaussian" if of_vectors else "categorical"
        self.emission = EMISSIONS[given]() if isinstance(given, str) else given


def _n_tokens(sequence: Any) -> int:
    return int(sequence.shape[0]) if is_matrix(sequence) and sequence.shape else len(sequence)


def _holds_symbols(sequence: Any) -> bool:
    """Whether an array or a data frame holds whole numbers or strings, which may name symbols."""
    if is_frame(sequence):
        return all(kind in "biuUO" for kind in map(kind_of, sequence.dtypes))
    return isinstance(sequence, np.ndarray) and sequence.dtype.kind in "biuUO"


class HiddenData(NamedTuple):
    """What a hidden Markov model is fitted to."""

    training: TrainingData
    weight: FloatArray  # of sequences, (S,)
    emission: Emission
    is_labeled: bool  # whether anything is known of the labels

    @property
    def is_known(self) -> bool:
        """Whether all labels are known."""
        targets = self.training.targets
        return self.is_labeled and targets.allowed is None and targets.soft is None


def read_data(setup: Setup, X: Any, y: Any, sample_weight: Any) -> HiddenData:
    """Read and check what `fit` was given."""
    reader = Reader(setup)
    if y is None:
        return _read_unlabeled(setup, reader, X, sample_weight)
    training = read_training(
        X, y, sample_weight, read=TokenLabels(StringNumbers().of).read, pack=reader, scales=False
    )
    warn_of_labels_in_rows(X, y)
    weight = sequence_weights(training)
    if not weight.all():
        training, weight = training.take(np.flatnonzero(weight)), weight[weight > 0.0]
    return HiddenData(training, weight, reader.emission, True)


def _read_unlabeled(setup: Setup, reader: Reader, X: Any, sample_weight: Any) -> HiddenData:
    if setup.n_states is None:
        raise ValueError(
            "y is None, so that no label is known: give y, or n_states, the number of hidden "
            "states that are to be found."
        )
    data, vectorizer = reader(X)
    check_training(data)
    weights = check_sample_weight(sample_weight, data.offsets)
    classes, codes = object_array(range(setup.n_states)), np.zeros(data.n_tokens, np.int32)
    training = TrainingData(data, vectorizer, classes, Targets(codes), weights)
    weight = sequence_weights(training)
    chosen = np.flatnonzero(weight)
    training = training._replace(data=data[chosen])
    return HiddenData(training, weight[chosen], reader.emission, False)


def sequence_weights(training: TrainingData) -> FloatArray:
    """Return the weight of each sequence, (S,); ValueError if those of its tokens differ."""
    found = Weights.of(training.weight, training.data.offsets).sequences
    if found is None:
        raise ValueError(
            "a hidden Markov model counts whole sequences: give sample_weight a number for each "
            "of them, and tokens whose label is not to count the label crfkit.UNLABELED."
        )
    return found


def counted(setup: Setup, data: HiddenData) -> dict[str, Any]:
    """Return the fitted attributes of a model whose labels are all known: by counting."""
    training = data.training
    model = setup.model(data.emission, len(training.classes))
    counts = count_labeled(model, training.data, training.codes, data.weight)
    tables = estimate(model, setup.smoothing, counts, training.data)
    likelihood = counted_likelihood(model, counts, tables)
    if likelihood is None:
        with ThreadMap(setup.n_jobs) as threads:
            scores = joint_scores(FittedModel(model, model.bind(tables)), training, threads)
        likelihood = float(data.weight @ scores)
    return attributes(model, tables, counts, training) | {
        "log_likelihood_": likelihood, "n_iter_": 1, "converged_": True,
        "training_log_": [],
    }  # fmt: skip


def joint_scores(model: FittedModel, training: TrainingData, threads: ThreadMap) -> FloatArray:
    """Return ``log P(x, y)`` of each sequence, shape (S,)."""
    offsets, codes = training.data.offsets, training.codes

    def score(structure: Structure, potentials: Potentials) -> FloatArray:
        begin = int(offsets[potentials.first])
        return structure.score(potentials, codes[begin : begin + int(potentials.offsets[-1])])

    return np.concatenate([np.zeros(0), *model.ask(training.data, score, threads)])


def attributes(
    model: HiddenMarkovModel, tables: HiddenTables, counts: HiddenCounts, training: TrainingData
) -> dict[str, Any]:
    """Return the fitted attributes that prediction, and a further batch, need."""
    data = training.data
    return model.fitted(tables) | {
        "classes_": training.classes,
        "emissions_": model.emission,
        "vectorizer_": training.vectorizer,
        "n_features_in_": data.n_features,
        NAMES_OF[TOKENS]: data.names,
        "_partial_state": {"order": model.order, "counts": counts},
    }


def counted_first(
    setup: Setup, batch: tuple[Any, Any, Any], classes: ObjectArray
) -> dict[str, Any]:
    """Return the fitted attributes after a first batch of X, y and sample weights."""
    reader = Reader(setup)
    read = partial(TokenLabels(StringNumbers().of).read, classes=classes)
    training = read_training(*batch, read=read, pack=reader, scales=False)
    data = HiddenData(training, sequence_weights(training), reader.emission, True)
    check_known(data)
    return counted(setup, data) | {"log_likelihood_": float("nan")}


def counted_on(
    setup: Setup, fitted: Mapping[str, Any], schema: Schema, batch: tuple[Any, Any, Any]
) -> dict[str, Any]:
    """Return the fitted attributes after one batch more of X, y and sample weights."""
    state, emission = fitted.get("_partial_state"), fitted["emissions_"]
    if state is None:
        raise ValueError(
            "the model has probabilities that were given, but no counts that a batch could be "
            "added to: call fit, or partial_fit of a new model."
        )
    if state["order"] != setup.order:
        raise ValueError(
            f"the model has counts of order={state['order']}, but now order={setup.order}: call "
            "fit, or partial_fit of a new model."
        )
    training = read_training(
        *batch, read=partial(TokenLabels().read, classes=fitted["classes_"]), scales=False,
        pack=partial(_pack_more, fitted=fitted, schema=schema),
    )  # fmt: skip
    emission.check(training.data)
    data = HiddenData(training, sequence_weights(training), emission, True)
    check_known(data)
    model = setup.model(emission, len(training.classes))
    new = count_labeled(model, training.data, training.codes, data.weight)
    old = state["counts"]
    columns = _columns(fitted["vectorizer_"], training)
    moved = emission.extend(old.emission, columns, training.data.n_features)
    counts = added(old._replace(emission=moved), new)
    tables = estimate(model, setup.smoothing, counts, training.data)
    return attributes(model, tables, counts, training) | {
        "log_likelihood_": float("nan"), "n_iter_": fitted["n_iter_"] + 1, "converged_": True,
        "training_log_": [],
    }  # fmt: skip


def check_known(data: HiddenData) -> None:
    """Raise ValueError if not all labels are known."""
    if not data.is_known:
        raise ValueError(
            "partial_fit counts labels that are known, but in y some are UNLABELED, sets or "
            "SoftLabels: fit learns from these, too."
        )


def _pack_more(X: Any, y: Any, *, fitted: Mapping[str, Any], schema: Schema) -> Packed:
    """Pack further training tokens; where there is a vocabulary, it grows."""
    vectorizer = fitted["vectorizer_"]
    if isinstance(X, PackedSequences) or not isinstance(vectorizer, _GROWING):
        data = pack_new(X, vectorizer, fitted["n_features_in_"])
        schema.check(Schema.of(data))
        return data, vectorizer
    data, larger = vectorizer.extend(X)
    if larger is not vectorizer:
        schema = schema._replace(tokens=Attributes(data.n_features, None))
    schema.check(Schema.of(data))
    return data, larger


def _columns(vectorizer: Any, training: TrainingData) -> IntArray:
    """Return where the attributes of a vectorizer are among those of one that has grown."""
    larger = training.vectorizer
    if larger is not vectorizer and isinstance(vectorizer, SymbolVectorizer):
        found: IntArray = larger.columns_of(vectorizer)
        return found
    return np.arange(
        training.data.n_features if larger is vectorizer else vectorizer.n_features_in_
    )


def learned(estimator: Any, setup: Setup, data: HiddenData) -> dict[str, Any]:
    """Return the fitted attributes of a model whose labels are not all known: by EM."""
    from crfkit.generative.baum_welch import EMOptions, fit_em  # where labels are known, it is not

    training = data.training
    model = setup.model(data.emission, len(training.classes))
    options = EMOptions(
        estimator.max_iter, estimator.tol, estimator.n_init,
        check_random_state(estimator.random_state), setup.n_jobs, int(estimator.verbose),
    )  # fmt: skip
    targets = training.targets if data.is_labeled else None
    start = _last_fit(estimator, model, training) if estimator.warm_start else None
    result = fit_em(model, setup.smoothing, training.data, targets, data.weight, start, options)
    return attributes(model, result.tables, result.counts, training) | {
        "log_likelihood_": result.log_likelihood, "n_iter_": result.n_iter,
        "converged_": result.converged, "training_log_": result.log,
    }  # fmt: skip


def given_model(
    estimator: Any, classes: ObjectArray, tables: list[Any], emission: Any, vectorizer: Any
) -> dict[str, Any]:
    """Return fitted attributes, given tables of labels as `HiddenProbabilities` lists them."""
    setup = Setup.of(estimator)
    if setup.emissions == "auto":
        raise ValueError(f"emissions='auto': say which emissions, of {sorted(EMISSIONS)}.")
    family = setup.emissions
    family = EMISSIONS[family]() if isinstance(family, str) else family
    try:
        n_features = family.n_features(emission)
    except (AttributeError, TypeError, IndexError):
        raise ValueError(
            f"emission_tables={emission!r:.60} are no tables that {type(family).__name__} "
            "has fitted."
        ) from None
    names = None if vectorizer is None else vectorizer.get_feature_names_out()
    n_features = n_features if names is None else len(names)
    given = zip(HiddenProbabilities.fitted_names, [*tables, emission, family], strict=True)
    return dict(given) | {
        "classes_": classes, "vectorizer_": vectorizer, "n_features_in_": n_features,
        NAMES_OF[TOKENS]: names,
    }  # fmt: skip


def _last_fit(
    estimator: Any, model: HiddenMarkovModel, training: TrainingData
) -> HiddenTables | None:
    """Return the tables of the last fit; None where they are of other labels or attributes."""
    fitted = vars(estimator)
    if "start_probabilities_" not in fitted:
        return None
    names, before = training.data.names, fitted.get(NAMES_OF[TOKENS])
    same = np.array_equal(fitted["classes_"], training.classes)
    same &= fitted["n_features_in_"] == training.data.n_features
    same &= (names is None) == (before is None)
    if same and names is not None and before is not None:
        same = np.array_equal(name_array(names), name_array(before))
    last, tables = HiddenProbabilities().read(estimator)
    same &= (last.order == 2) == (model.order == 2) and last.stop == model.stop
    if not same or type(last.emission) is not type(model.emission):
        return None
    try:
        model.emission.check_tables(tables.emission, model.n_labels, training.data.n_features)
    except ValueError:  # of a family with other parameters, such as another form of covariances
        return None
    return in_order(model, tables)
