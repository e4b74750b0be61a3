"""What all estimators of sequences share."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from crfkit._parallel import ThreadMap
from crfkit._params import check_method, check_option
from crfkit._types import Chunk, CodeArray, FloatArray, IntArray, Potentials
from crfkit.data import LabelSequences, PackedSequences
from crfkit.data.chunks import is_long, make_chunks
from crfkit.data.labels import LabelStream
from crfkit.data.names import Names, name_array
from crfkit.data.validation import check_lengths, check_sample_weight
from crfkit.estimators._input import pack_new
from crfkit.estimators._layout import TokenLabels
from crfkit.estimators._views import WeightView
from crfkit.features import SequenceVectorizer
from crfkit.inference import DECODERS
from crfkit.persistence import SaveMixin
from crfkit.potentials import LinearModel
from crfkit.potentials.blocks import sparse_counts
from crfkit.potentials.linear import fitted_names
from crfkit.structures import Structure

# Chunks of new data that each thread gets, where they are not too small.
CHUNKS_A_THREAD, LEAST_CHUNK = 4, 500

_DERIVED = ("_predictor", "_matching_names")


class SequenceClassifier(SaveMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that gives each token of a sequence a label."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state; parameters that an older version did not have get their defaults."""
        known = inspect.signature(type(self).__init__).parameters.values()
        defaults = {p.name: p.default for p in known if p.default is not p.empty}
        super().__setstate__(defaults | state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Not "classifier": scikit-learn would then stratify by y, which is a list of sequences.
        tags.estimator_type = "sequence_classifier"
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.dict = True
        tags.input_tags.string = True
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the token accuracy: the share of tokens whose label is right.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        y : iterable of sequences of labels
            The true labels. A label that the model does not know counts as an error.
        sample_weight : array of shape (S,) or sequence of arrays of shape (T,), optional
            Weights of sequences (each of its tokens counts with it) or of tokens.

        Returns
        -------
        float
            Between 0 and 1; NaN if there is no token.
        """
        predicted = LabelStream(self.predict(X))
        truth = LabelStream(self._as_predicted(y, predicted.offsets))
        check_lengths(predicted.offsets, truth.offsets, "y")
        weight = check_sample_weight(sample_weight, truth.offsets)
        if not len(weight):
            return float("nan")
        classes = list(truth.index)
        right = predicted.codes_for(classes) == truth.codes_for(classes)
        return float(weight[right].sum() / weight.sum())

    def _as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form in which `predict` returns them."""
        return y


class LinearChainClassifier(SequenceClassifier):
    """The fitted side of a linear model on a chain: weights, names, decoding.

    A subclass has the parameters `decoding` and `n_jobs` and calls `_set_fitted`.
    """

    decoding: Any
    n_jobs: int | None

    def _set_fitted(self, attributes: dict[str, Any]) -> None:
        """Set the fitted attributes and forget what was derived from older ones."""
        for derived in _DERIVED:
            self.__dict__.pop(derived, None)
        for name, value in attributes.items():
            setattr(self, name, value)

    @property
    def _layout(self) -> Any:
        """What the labels are that are to be fitted: those of tokens, or of segments."""
        structure = getattr(self, "structure", "chain")
        return TokenLabels() if isinstance(structure, str) else structure._layout()

    @property
    def _fitted_layout(self) -> Any:
        """What the labels of the fitted model are, whatever the parameters say by now."""
        return self._layout

    def _as_predicted(self, y: Any, offsets: IntArray) -> Any:
        return self._fitted_layout.labels(self, y, offsets)

    def _weight_attributes(
        self, model: LinearModel, parameters: FloatArray, classes: NDArray[np.object_],
        coding: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return parameters as fitted attributes."""
        attributes: dict[str, Any] = self._layout.attributes(model, parameters, classes, coding)
        return attributes

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived."""
        state: dict[str, Any] = dict(super().__getstate__())
        for derived in _DERIVED:
            state.pop(derived, None)
        return state

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the attributes, shape (D,), where they are known."""
        return self._names_of("_feature_names")

    @property
    def step_feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the attributes of transitions, shape (D2,), where there are any."""
        return self._names_of("_transition_names")

    @property
    def _n_steps(self) -> int | None:
        """Number of attributes of transitions; None where the model has no weights of such."""
        return None if self.transition_coef_ is None else int(self.transition_coef_.shape[0])

    @property
    def _n_segments(self) -> int | None:
        """Number of attributes of segments; None where the model has no weights of such."""
        weights = getattr(self, "segment_coef_", None)
        return None if weights is None else int(weights.shape[0])

    def _names_of(self, attribute: str) -> NDArray[np.object_]:
        names = self.__dict__.get(attribute)
        if names is None:
            raise AttributeError("the model is not fitted, or on features without names")
        return name_array(names)

    @property
    def state_features_(self) -> WeightView:
        """Mapping view ``{(attribute, label): weight}`` of the weights that are not 0."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return WeightView(self.coef_, names, self.classes_)

    @property
    def step_features_(self) -> WeightView:
        """Mapping view ``{(attribute, (label, next label)): weight}`` of transition attributes."""
        check_is_fitted(self)
        steps = list(itertools.product(self.classes_, repeat=2))
        if self.transition_coef_ is None:
            return WeightView(sp.csr_array((0, len(steps))), [], steps)
        names = getattr(self, "step_feature_names_in_", range(self.transition_coef_.shape[0]))
        return WeightView(self.transition_coef_, names, steps)

    @property
    def transition_features_(self) -> WeightView:
        """Mapping view ``{(label, next label): weight}`` of the weights that are not 0."""
        check_is_fitted(self)
        return WeightView(sp.csr_array(self.transitions_), self.classes_, self.classes_)

    def predict(self, X: Any) -> LabelSequences:
        """Return the labels of sequences.

        Parameters
        ----------
        X : iterable of sequences
            In the form the model was fitted with, or PackedSequences.

        Returns
        -------
        LabelSequences
            A list with the list of labels of each sequence.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            If a token cannot be read or the number of features is another one.
        """
        data = self._pack(X)
        decoder = self._decoder()
        codes: CodeArray = np.empty(data.n_tokens, np.int32)

        def decode(structure: Structure, chunk: Chunk, scores: Potentials) -> None:
            codes[chunk.tokens] = decoder.decode(structure, scores)

        self._each_chunk(data, decode)
        return self._labels_of(codes, data)

    def _labels_of(self, codes: CodeArray, data: PackedSequences) -> LabelSequences:
        """Return the labels that codes stand for."""
        coding = self._fitted_layout.coding(self)
        labels: LabelSequences = coding.write(codes, self.classes_, data.offsets)
        return labels

    def _pack(self, X: Any) -> PackedSequences:
        check_is_fitted(self)
        vectorizer: SequenceVectorizer | None = getattr(self, "vectorizer_", None)
        data = pack_new(X, vectorizer, self.n_features_in_)
        check_steps(data, self._n_steps)
        check_segments(data, self._n_segments)
        # The last names that passed are remembered: comparing 300,000 of them takes its time.
        passed = self.__dict__.get("_matching_names", (None, None, None))
        steps = None if data.transitions is None else data.transitions.names
        rows = None if data.segments is None else data.segments.rows.names
        given = (data.names, steps, rows)
        if any(ours is not theirs for ours, theirs in zip(given, passed, strict=True)):
            segment_names = getattr(self, "_segment_names", None)
            check_names(data, self._feature_names, self._transition_names, segment_names)
            self._matching_names = given
        return data

    def _decoder(self) -> Any:
        if isinstance(self.decoding, str):
            check_option("decoding", self.decoding, DECODERS)
            return DECODERS[self.decoding]()
        check_method("decoding", self.decoding, "decode")
        return self.decoding

    def _each_chunk(
        self,
        data: PackedSequences,
        function: Callable[[Structure, Chunk, Potentials], None],
        *,
        share: int | None = None,
    ) -> None:
        """Call a function with the structure, each chunk and its scores, over threads.

        Chunks have about `share` tokens; if not given, that depends on the number of threads.
        """
        model, weights = self._scorer(data)
        with ThreadMap(self.n_jobs) as threads:

            def run(structure: Structure, chunk: Chunk) -> None:
                function(structure, chunk, model.scores(weights, data, chunk, threads))

            # Sequences are computed one by one: how they are dealt to threads changes no bit.
            share = share or max(
                LEAST_CHUNK, data.n_tokens // (CHUNKS_A_THREAD * threads.n_workers)
            )
            chunks = make_chunks(data.offsets, min(model.chunk_tokens, share))
            short = [chunk for chunk in chunks if not is_long(chunk)]
            threads(partial(run, model.structure), short)
            for chunk in filter(is_long, chunks):  # one after the other, each over all threads
                run(model.structure.in_parallel(threads), chunk)

    def _scorer(self, data: PackedSequences) -> tuple[LinearModel, Any]:
        """Return the score model of the fitted weights, made once."""
        layout = self._fitted_layout
        fitted = tuple(map(vars(self).get, fitted_names(layout.MODEL)))
        sizes = sparse_counts(data)
        cached: Predictor | None = self.__dict__.get("_predictor")
        if cached is not None and cached.serves(sizes, fitted):
            return cached.model, cached.weights
        model, weights = layout.model(self, sizes)
        self._predictor = Predictor(model, weights, sizes, fitted)
        return model, weights


class Predictor(NamedTuple):
    """The score model of fitted weights, and what it was made from."""

    model: LinearModel
    weights: Any
    sizes: Mapping[str, int]
    fitted: tuple[Any, ...]

    def serves(self, sizes: Mapping[str, int], fitted: tuple[Any, ...]) -> bool:
        """Whether it was made for features of this form and from these very weights."""
        same = all(ours is theirs for ours, theirs in zip(self.fitted, fitted, strict=True))
        return same and self.sizes == sizes


def check_steps(data: PackedSequences, expected: int | None) -> None:
    """Raise ValueError if data and model do not both have attributes of transitions, or neither."""
    _check_count(
        "transitions", None if data.transitions is None else data.transitions.n_features, expected
    )


def check_segments(data: PackedSequences, expected: int | None) -> None:
    """Raise ValueError if features have attributes of segments where the model has none, or so."""
    _check_count("segments", None if data.segments is None else data.segments.n_features, expected)


def _check_count(what: str, given: int | None, expected: int | None) -> None:
    """Raise ValueError if there are other attributes of something than the model has."""
    if given != expected:
        counts = ["no" if count is None else count for count in (given, expected)]
        raise ValueError(
            f"X has {counts[0]} attributes of {what}, but the model was fitted with {counts[1]}. "
            "Transform X with the transformer the model was fitted with."
        )


def check_names(
    data: PackedSequences,
    names: Names | None,
    transition_names: Names | None,
    segment_names: Names | None = None,
) -> None:
    """Raise ValueError if packed features have other names, or another order, than expected."""
    _check_names(data.names, names)
    if data.transitions is not None:
        _check_names(data.transitions.names, transition_names)
    if data.segments is not None:
        _check_names(data.segments.rows.names, segment_names)


def _check_names(names: Names | None, expected: Names | None) -> None:
    if names is None or expected is None or names is expected:
        return
    ours, theirs = name_array(names), name_array(expected)
    if np.array_equal(ours, theirs):
        return
    place = int(np.argmax(ours != theirs))
    raise ValueError(
        f"feature {place} of X has the name {ours[place]!r}, but the model was fitted with "
        f"{theirs[place]!r} there. Transform X with the vectorizer the model was fitted with."
    )
