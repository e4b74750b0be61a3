"""What all estimators of sequences share: a fitted model, and what it is asked."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from crfkit._doc_links import DocLink
from crfkit._other_names import check_names
from crfkit._parallel import ThreadMap
from crfkit._params import find_named
from crfkit._types import CodeArray, Potentials
from crfkit.compiler.jit import protect
from crfkit.data import LabelSequences, PackedSequences
from crfkit.estimators import _questions, _samples, _spans
from crfkit.estimators._asking import ask, held
from crfkit.estimators._bounds import predict_with_bounds
from crfkit.estimators._interface import OfProbabilities, asked_for_tags, restore, score
from crfkit.estimators._labelings import predict_n_best
from crfkit.estimators._views import names_of_attributes
from crfkit.estimators._voting import check_free, elect
from crfkit.features import SequenceVectorizer
from crfkit.features.encoding import FrozenIndex, encode_sequence
from crfkit.inference.base import DecodedLabels, FittedModel
from crfkit.inference.named import DECODERS
from crfkit.inference.tagging import FEW_TOKENS, ChainTagger
from crfkit.labels.base import LabelCoding, TokenCoding
from crfkit.persistence import SaveMixin
from crfkit.potentials.blocks import TOKENS, sparse_counts
from crfkit.structures import Structure
from crfkit.training.data import Attributes, Schema, fitted_attributes, fitted_labels, pack_new
from crfkit.training.mistakes import warn_if_nothing_is_known

# What only models with probabilities have, and which of them to use.
_OF_PROBABILITIES = {
    **dict.fromkeys(("predict_proba", "predict_marginals", "sequence_log_proba", "sample",
                     "entropy", "predict_span_proba", "likely_spans", "confidence"),
                    "CRFClassifier"),
    "expected_lengths": "SemiMarkovCRF",
}  # fmt: skip
_DERIVED = ("_attribute_places", "_fitted_model", "_matching_names", "_shortcut")
# What labels one sequence, beside the weights.
_OF_ONE = ("_fitted_model", "vectorizer_", "classes_", "n_features_in_", "_feature_names",
           "vote_changes_", "length_scores_")  # fmt: skip
# Of a search over penalties.
_NO_REFIT = (
    "this %(name)s was fitted with refit=False: it has scores, but no weights. Set refit=True, or "
    "fit a CRFClassifier with c1_ and c2_."
)


def as_it_is(data: PackedSequences) -> PackedSequences:
    """Return the data."""
    return data


class SequenceClassifier(BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that gives each token of a sequence a label, by asking a model of potentials.

    What predicts is made of the fitted attributes when it is needed: they may be assigned by hand.
    """

    decoding: Any
    n_jobs: int | None
    constraints: Any = None
    has_probabilities: ClassVar[bool] = False
    fitted_by: ClassVar[frozenset[str]]  # attributes of which a fitted model has one
    _in_form: ClassVar[Any] = staticmethod(as_it_is)  # what new data are made when they are packed
    _asked_by: ClassVar[tuple[str, ...]] = ()  # parameters that a fitted model is made by
    _doc_link_module = "crfkit"
    _doc_link_template = DocLink()

    save = SaveMixin.save
    score = score
    _fitted_labels, __setstate__ = fitted_labels, restore
    _ask, _held = ask, held
    predict_n_best = predict_n_best
    predict_with_bounds = predict_with_bounds
    predict_spans = _spans.predict_spans
    predict_proba = OfProbabilities(_questions.predict_proba)
    predict_marginals = OfProbabilities(_questions.predict_marginals)
    sequence_log_proba = OfProbabilities(_questions.sequence_log_proba)
    sample = OfProbabilities(_samples.sample)
    entropy = OfProbabilities(_samples.entropy)
    predict_span_proba = OfProbabilities(_spans.predict_span_proba)
    likely_spans = OfProbabilities(_spans.likely_spans)
    confidence = OfProbabilities(_spans.confidence)
    feature_names_in_ = names_of_attributes(TOKENS, "shape (D,)")

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Return a new estimator; TypeError for a parameter that it does not have."""
        check_names(cls, args, parameters)
        new: Self = super().__new__(cls)
        return new

    def __sklearn_tags__(self) -> Tags:
        return asked_for_tags(super().__sklearn_tags__())

    @abstractmethod
    def _weight_space(self) -> Any:
        """Return what makes a model of potentials of fitted attributes.

        It has `fitted_names`, those that potentials are made of, and ``model(self, sizes)``, which
        returns a PotentialsModel and what its `scores` are given; as :class:`WeightSpace`. Its
        ``check_new(self, data)`` raises where the model cannot read new data.
        """

    if not TYPE_CHECKING:  # where any attribute would then seem to be there

        def __getattr__(self, name: str) -> Any:
            """Say why something is not there, if that is known; Python asks for nothing else."""
            if name in _OF_PROBABILITIES and not type(self).has_probabilities:
                raise AttributeError(
                    f"{type(self).__name__} has no probabilities, so no {name}: use "
                    f"{_OF_PROBABILITIES[name]}."
                )
            return super().__getattribute__(name)  # raises the error again

    def _with(self, attributes: dict[str, Any]) -> Self:
        """Return a copy that is fitted so."""
        fitted = copy.copy(self)
        fitted._set_fitted(attributes)
        return fitted

    def _set_fitted(self, attributes: dict[str, Any]) -> None:
        """Set the fitted attributes, and forget what was derived from older ones."""
        old = {*_DERIVED, *fitted_attributes(self)}
        kept = {name: value for name, value in self.__dict__.items() if name not in old}
        self.__dict__ = kept | attributes  # at once, as anything may end a fit
        protect(attributes)

    @contextmanager
    def _without_the_last_fit(self) -> Iterator[None]:
        """Hide it from callbacks; it is given back if the next one fails."""
        hidden = fitted_attributes(self)
        try:
            for name in hidden:
                del self.__dict__[name]
            yield
        except BaseException:
            self.__dict__.update(hidden)
            raise

    def __sklearn_is_fitted__(self) -> bool:
        return not vars(self).keys().isdisjoint(self.fitted_by)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _DERIVED}

    def predict(self, X: Any, *, constraints: Any = None) -> LabelSequences:
        """Return the labels of sequences.

        Parameters
        ----------
        X : iterable of sequences
            In the form the model was fitted with, or PackedSequences.
        constraints : Constraints, rule, list of rules, str or None, default=None
            What is known of the labels, beside the parameter `constraints` of the estimator: rules
            of :mod:`crfkit.constraints`, or the name of a tag scheme.

        Returns
        -------
        LabelSequences
            A list with the list of labels of each sequence.

        Raises
        ------
        NotFittedError, TypeError, ValueError
            Before `fit`; if a token cannot be read or the number of features is another one; if
            constraints do not fit the model, or a sequence has no labels that keep to them.
        """
        free = constraints is None and self.constraints is None
        alone = free and X.__class__ is list and len(X) == 1 and X[0].__class__ is list
        found = self._predict_one(X[0]) if alone else None
        if found is not None:
            return found
        data = self._pack(X)
        codes = self._codes(data, constraints)
        coding = self._fitted_labels().coding(self)
        labels: LabelSequences
        if len(codes) and codes.min() < 0:
            labels = self._decoder().written(
                codes, DecodedLabels(self.classes_, coding), data.offsets
            )
        else:
            labels = coding.write(codes, self.classes_, data.offsets)
        if alone:
            self._shortcut = _Shortcut.of(vars(self), coding)
        return labels

    def _predict_one(self, tokens: list[Any]) -> LabelSequences | None:
        """Label a sequence as the last one; None where anything is not as it was then."""
        short: _Shortcut | None = self.__dict__.get("_shortcut")
        if short is None or not 0 < len(tokens) <= FEW_TOKENS or self.decoding != "viterbi":
            return None
        if not short.serves(self.__dict__):
            return None
        if self.n_jobs is not None:
            ThreadMap(self.n_jobs)  # raises if that is no number of threads
        rows = encode_sequence(tokens, short.known)
        # Else `_pack` may have something to say. The first is looked at alone: that takes no time.
        found = rows.indices
        known = len(found) > 0 and (found[0] >= 0 or found.max() >= 0)
        codes = short.tagger.codes(rows) if known else None
        if codes is None:
            return None
        return LabelSequences([list(map(short.labels.__getitem__, codes.tolist()))])

    def _schema(self) -> Schema:
        """Return the attributes that the model was fitted to."""
        fitted = vars(self)

        def of(weights: str, names: str) -> Attributes | None:
            found = fitted.get(weights)
            return None if found is None else Attributes(found.shape[0], fitted.get(names))

        return Schema(
            Attributes(self.n_features_in_, fitted.get("_feature_names")),
            of("transition_coef_", "_transition_names"),
            of("segment_coef_", "_segment_names"),
        )

    def _pack(self, X: Any) -> PackedSequences:
        """Return new data in the form of the training data."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self, msg=_NO_REFIT if "scores_" in vars(self) else None)
        vectorizer = vars(self).get("vectorizer_")
        data: PackedSequences = self._in_form(pack_new(X, vectorizer, self.n_features_in_))
        if vectorizer is not None:
            warn_if_nothing_is_known(X, data, vars(self).get("_feature_names"))
        given, schema = Schema.of(data), self._schema()
        schema.check(given, vars(self).get("_matching_names"))
        if vectorizer is None:
            schema.warn_of_missing_names(given, type(self).__name__)
        self._matching_names = given
        self._weight_space().check_new(self, data)
        return data

    def _decoder(self) -> Any:
        return find_named("decoding", self.decoding, DECODERS, "decode")

    def _codes(self, data: PackedSequences, constraints: Any) -> CodeArray:
        """Return the codes of tokens, shape (N,), that are predicted; see :class:`Decoder`."""
        free = constraints is None and self.constraints is None
        if "vote_changes_" in vars(self):
            check_free(free)
            return elect(self, data, self._decoder())
        if free and self.decoding == "viterbi" and data.n_tokens <= FEW_TOKENS:
            tagger, _ = self._cached(data).tagger, ThreadMap(self.n_jobs)
            codes = None if tagger is None or not tagger.takes(data) else tagger.codes(data)
            if codes is not None:
                return codes
        answers = self._ask(data, self._chooser(), constraints=constraints)
        return np.concatenate([np.empty(0, np.int32), *answers])

    def _chooser(self) -> Callable[[Structure, Potentials], CodeArray]:
        """Return the question which codes the decoder chooses."""
        decoder, coding = self._decoder(), self._fitted_labels().coding(self)
        labels = DecodedLabels(self.classes_, coding)

        def choose(structure: Structure, potentials: Potentials) -> CodeArray:
            codes: CodeArray = decoder.decode(structure, potentials, labels)
            return codes

        return choose

    def _model_for(self, data: PackedSequences) -> FittedModel:
        """Return the model of the fitted weights."""
        return self._cached(data).model

    def _cached(self, data: PackedSequences) -> _Cached:
        """Return the model of the fitted weights, made once for a layout of sparse attributes."""
        sizes = sparse_counts(data)
        cached: _Cached | None = vars(self).get("_fitted_model")
        if cached is None or not cached.serves(sizes, vars(self)):
            weights = self._weight_space()
            names = (*weights.fitted_names, *self._asked_by)
            parts = {name: vars(self).get(name) for name in names}
            protect(parts)  # of those that were assigned by hand
            sparse = [vars(part) for part in parts.values() if sp.issparse(part)]
            values = [(state, state.get("data")) for state in sparse]
            model = FittedModel(*weights.model(self, sizes))
            cached = _Cached(model, ChainTagger.of(*model), sizes, parts, values)
            self._fitted_model = cached
        return cached


class _Cached(NamedTuple):
    """The model of fitted weights, and what it was made from."""

    model: FittedModel
    tagger: ChainTagger | None  # of few tokens
    sizes: dict[str, int]
    parts: dict[str, Any]
    values: list[tuple[dict[str, Any], Any]]  # of sparse weights, and the entries that they had

    def serves(self, sizes: dict[str, int], fitted: Mapping[str, Any]) -> bool:
        """Whether it was made for this layout of the attributes and from these very weights."""
        same = self.sizes == sizes and _are_kept(self.values)
        return same and all(map(is_, map(fitted.get, self.parts), self.parts.values()))


def _are_kept(values: list[tuple[dict[str, Any], Any]]) -> bool:
    """Whether sparse weights have the entries that they had."""
    for state, old in values:
        if state.get("data") is not old:
            return False
    return True


class _Shortcut(NamedTuple):
    """What labels one sequence of few tokens, and the fitted attributes that it was made from."""

    tagger: ChainTagger
    known: FrozenIndex  # the attributes
    labels: list[Any]
    names: tuple[str, ...]
    parts: tuple[Any, ...]
    values: list[tuple[dict[str, Any], Any]]  # as of `_Cached`

    @classmethod
    def of(cls, fitted: Mapping[str, Any], coding: LabelCoding) -> Self | None:
        """Return that of a model which has labeled sequences; None where there is none."""
        cached: _Cached | None = fitted.get("_fitted_model")
        vectorizer = fitted.get("vectorizer_")
        if cached is None or cached.tagger is None or type(coding) is not TokenCoding:
            return None
        if type(vectorizer) is not SequenceVectorizer:
            return None
        names, labels = (*_OF_ONE, *cached.parts), fitted["classes_"].tolist()
        parts = tuple(map(fitted.get, names))
        return cls(cached.tagger, vectorizer._index, labels, names, parts, cached.values)

    def serves(self, fitted: Mapping[str, Any]) -> bool:
        """Whether all that it was made from is there."""
        same = _are_kept(self.values) and all(map(is_, map(fitted.get, self.names), self.parts))
        return same and fitted["vectorizer_"]._index is self.known  # that of its last fit
