"""DictVectorizer for sequences, and the base class of all transformers of sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import methodcaller
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from crfkit._callbacks import CallbackSupportMixin, told_as_a_whole
from crfkit._doc_links import DocLink
from crfkit._params import check_whole
from crfkit._progress import working
from crfkit._types import CodeArray, ObjectArray
from crfkit.data import PackedSequences
from crfkit.data.labels import object_array
from crfkit.data.names import Names, name_array
from crfkit.features.attributes import AttributeRows, ZeroValues, check_name
from crfkit.features.encoding import FrozenIndex, GrowingIndex, encode

_is_fitted_name = methodcaller("endswith", "_")


class SequenceTransformer(  # type: ignore[call-arg]
    CallbackSupportMixin,
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
    auto_wrap_output_keys=None,
):
    """A transformer from sequences to packed sequences.

    A class says how it learns, `_fit`, what it does to new data, `_transform`, and what the
    attributes of tokens are called, `_token_names`.
    """

    # Attributes that follow from the parameters and the other attributes: they are not stored.
    _derived: ClassVar[tuple[str, ...]] = ()
    _parameters: dict[str, Any]  # those of the last fit, of a class that reads them later
    _doc_link_module = "crfkit"
    _doc_link_template = DocLink()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # scikit-learn would wrap the output of each class that does not say otherwise.
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from sequences, as `fit_transform` does, which has the parameters and errors."""
        self.fit_transform(X, y)
        return self

    @told_as_a_whole
    def fit_transform(self, X: Any, y: Any = None) -> PackedSequences:
        """Learn from sequences and return them packed, reading `X` once.

        Parameters
        ----------
        X : iterable of sequences of tokens
            Tokens of the forms that the class takes.
        y : ignored
            Transformers of transformers pass it on.

        Returns
        -------
        PackedSequences
            S sequences of N tokens with D attributes.

        Raises
        ------
        TypeError, ValueError
            If a parameter, a token or a value is not as it must be: the message names the
            parameter, or the sequence, the position and the feature.
        """
        learned = object.__new__(type(self))
        learned.__dict__.update(self.__dict__)
        with working("features") as task:
            packed = learned._fit(X, y)
            task.tell(sequences=len(packed), attributes=packed.n_features)
        self.__dict__ = learned.__dict__  # at once: whatever ends a fit leaves the old one whole
        return packed

    def transform(self, X: Any) -> PackedSequences:
        """Return the packed sequences; attributes that `fit` has not seen are left out.

        Parameters
        ----------
        X : iterable of sequences
            As for `fit_transform`, whose errors there are, too.

        Returns
        -------
        PackedSequences
            As of `fit_transform`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # raises, and takes longer to say that all is well
        with working("features") as task:
            packed = self._transform(X)
            task.tell(sequences=len(packed))
        return packed

    def get_feature_names_out(self, input_features: Any = None) -> ObjectArray:
        """Return the names of the attributes of tokens, shape (D,), in the order of the columns."""
        check_is_fitted(self)
        return name_array(self._token_names())

    def set_output(self, *, transform: Any = None) -> Self:
        """Do nothing: packed sequences are neither a NumPy array nor a data frame."""
        return self

    @abstractmethod
    def _fit(self, X: Any, y: Any) -> PackedSequences:
        """Learn from sequences and return them packed."""

    @abstractmethod
    def _transform(self, X: Any) -> PackedSequences:
        """Return sequences packed, after `fit`."""

    @abstractmethod
    def _token_names(self) -> Names:
        """Return the names of the attributes of tokens, after `fit`."""

    def _as_fitted(self) -> Self:
        """Return an object with the parameters of the last fit, which may have changed since."""
        return type(self)(**self._parameters)

    def __sklearn_is_fitted__(self) -> bool:
        return any(map(_is_fitted_name, vars(self)))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the rest."""
        return {k: v for k, v in super().__getstate__().items() if k not in self._derived}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        tags.input_tags.string = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceVectorizer(SequenceTransformer):
    """Turn sequences of tokens, given as dicts or lists of strings, into packed features.

    The values follow the rules of python-crfsuite: a string value makes the attribute
    ``name:value`` = 1, ``True`` and ``False`` are 1 and 0, a number is the value of the attribute
    ``name``, a list or set of strings makes ``name:item`` = 1 for each, and a dict nests:
    ``name:inner``. A token that is itself a list or set of strings has each of them as an
    attribute of value 1. What occurs twice in a token counts twice.

    Parameters
    ----------
    min_freq : int, default=0
        Attributes that occur fewer times in the training data are left out. An attribute whose
        value is always 0 counts as occurring 0 times.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        The column of each attribute. Columns are in the order of the sorted names.
    n_features_in_ : int
        Number of attributes D.

    Notes
    -----
    Tokens are streamed: generators are read once and no dict is kept.

    Examples
    --------
    >>> from crfkit.features import SequenceVectorizer
    >>> X = [[{"w": "the", "caps": True}, {"w": "dog"}], [["w:the"]]]
    >>> packed = SequenceVectorizer().fit_transform(X)
    >>> packed
    <PackedSequences: 2 sequences, 3 tokens, 3 attributes, 72 bytes>
    >>> packed.feature_names.tolist()
    ['caps', 'w:dog', 'w:the']
    """

    _derived = ("_index", "_names")

    min_freq: int = 0

    @classmethod
    def from_vocabulary(cls, names: Iterable[str]) -> Self:
        """Return a fitted vectorizer with these attributes, in this order.

        Parameters
        ----------
        names : iterable of str
            Names of the D attributes, without repetition.

        Raises
        ------
        TypeError
            If a name is not a string, or `names` is one.
        ValueError
            If a name occurs twice.
        """
        if isinstance(names, str):
            raise TypeError(f"names is the string {names!r}; give a list of names.")
        new = cls()
        known: dict[str, int] = {}
        for column, name in enumerate(names):
            if known.setdefault(check_name(name), column) != column:
                raise ValueError(f"the attribute {name!r} occurs twice in the vocabulary.")
        new._set_names(list(known))
        return new

    def _fit(self, X: Iterable[Any], y: Any) -> PackedSequences:
        check_whole("min_freq", self.min_freq)
        return self._pack(*self._learn(X, GrowingIndex()))

    def _learn(self, X: Iterable[Any], index: GrowingIndex) -> tuple[AttributeRows, CodeArray]:
        """Learn the names; return the rows of their numbers, and the column of each number."""
        rows = encode(X, index)
        names, columns = index.sorted_columns(rows.counts(len(index)), self.min_freq)
        index.release()
        self._set_names(names)
        return rows, columns

    def extend(self, X: Iterable[Any]) -> tuple[PackedSequences, SequenceVectorizer]:
        """Return packed sequences with all their attributes, and the vocabulary with the new ones.

        Parameters
        ----------
        X : iterable of sequences of tokens
            As for :meth:`fit_transform`, whose errors there are, too.

        Returns
        -------
        packed : PackedSequences
            S sequences of N tokens with D attributes: those of `fit` in their columns, then the new
            ones in the order of their names. `min_freq` does not apply to them.
        vectorizer : SequenceVectorizer
            This one, where there are no new attributes, or else another one with all.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        known = len(self.vocabulary_)
        index = GrowingIndex(self.vocabulary_)
        rows = encode(X, index)
        names = list(index)
        index.release()
        added = sorted(names[known:])
        if not added:
            return self._pack(rows), self
        larger = self.from_vocabulary([*names[:known], *added]).set_params(min_freq=self.min_freq)
        numbers = np.array([larger.vocabulary_[name] for name in names], np.int32)
        return larger._pack(rows, numbers), larger

    def inverse_transform(self, X: PackedSequences) -> list[list[dict[str, float]]]:
        """Return packed sequences as sequences of dicts ``{attribute: value}``.

        Parameters
        ----------
        X : PackedSequences
            With the D attributes of this vectorizer.

        Raises
        ------
        ValueError
            If the number of attributes is another one.
        """
        check_is_fitted(self)
        if X.n_features != self.n_features_in_:
            raise ValueError(f"X has {X.n_features} attributes, the vectorizer has "
                             f"{self.n_features_in_}.")  # fmt: skip
        return X.to_dicts(self._names)

    def _transform(self, X: Any) -> PackedSequences:
        return self._pack(encode(X, self._index))

    def _token_names(self) -> ObjectArray:
        return self._names

    # Neither is made before it is asked for: a model that only learns needs the names alone.
    @cached_property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each attribute."""
        return {name: column for column, name in enumerate(self._names.tolist())}

    @cached_property
    def _index(self) -> FrozenIndex:
        return FrozenIndex(self.vocabulary_)

    def __getstate__(self) -> dict[str, Any]:
        """Store the vocabulary, from which the rest follows."""
        vocabulary = {"vocabulary_": self.vocabulary_} if self.__sklearn_is_fitted__() else {}
        return super().__getstate__() | vocabulary

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "vocabulary_" in state:
            self._set_names(list(state["vocabulary_"]))
            self.vocabulary_ = state["vocabulary_"]

    def _set_names(self, names: list[str]) -> None:
        for derived in ("vocabulary_", "_index"):  # of an earlier fit
            self.__dict__.pop(derived, None)
        self._names = object_array(names)
        self.n_features_in_ = len(names)

    def _pack(self, rows: AttributeRows, numbers: CodeArray | None = None) -> PackedSequences:
        return rows.in_order(numbers).packed(self._names)


def learn_with_zeros(X: Iterable[Any]) -> tuple[PackedSequences, SequenceVectorizer, ZeroValues]:
    """Return packed sequences, the vectorizer fitted to them, and where attributes are 0."""
    vectorizer, index = SequenceVectorizer(), GrowingIndex()
    index.keep_zeros()
    rows, columns = vectorizer._learn(X, index)
    zeros = rows.zeros()
    return vectorizer._pack(rows, columns), vectorizer, zeros._replace(columns=columns[zeros[0]])
