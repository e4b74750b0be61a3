"""What the transformers that compile their templates share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from crfkit._params import check_whole
from crfkit.data import PackedSequences
from crfkit.features.base import SequenceTransformer
from crfkit.features.functions import Functions
from crfkit.features.templates.coded import Batch, Learned
from crfkit.features.templates.columns import read_tokens
from crfkit.features.templates.entries import Entries, Families
from crfkit.features.templates.plan import Plan, colliding, gives_items, has_items
from crfkit.features.templates.tables import ItemTable, StringTable, TextTable
from crfkit.features.templates.vocabulary import TemplateVocabulary


class Options(NamedTuple):
    """What templates are applied with."""

    columns: list[str] | None
    by: str | None
    functions: Functions
    numeric: list[str | int]


class CompiledFeatures(SequenceTransformer):
    """Transformer whose features are described by templates.

    A subclass has the parameter `min_freq`, and says what its templates are.
    """

    min_freq: int

    @abstractmethod
    def _compile(self) -> Plan:
        """Return the plan of the templates."""

    @abstractmethod
    def _options(self) -> Options:
        """Return checked parameters."""

    def _read_lexicons(self) -> dict[str, list[str]]:
        """Return the entries of the lexicons."""
        return {}

    def fit_transform(self, X: Iterable[Any], y: Any = None) -> PackedSequences:
        """Learn the attributes and return the packed sequences, reading `X` once.

        Parameters
        ----------
        X : iterable of sequences of tokens, or a data frame
            Tokens are tuples or lists of strings, dicts of strings, or strings.
        y : ignored

        Returns
        -------
        PackedSequences
            S sequences of N tokens with D attributes; attributes of transitions are in its
            `transitions`.

        Raises
        ------
        TypeError, ValueError
            If a parameter, a template or a cell is not as it must be: the message names the
            template, or the sequence, the position and the column.
        """
        check_whole("min_freq", self.min_freq)
        options = self._options()
        lexicons = self._read_lexicons()
        self._learned = Learned(self._compile(), options.functions, lexicons)
        batch = Batch(self._learned, read_tokens(X, options.columns, options.by))
        batch.learn()
        self.lexicons_ = lexicons
        self._parameters = self.get_params(deep=False)
        self._strings = self._learned.strings
        self._sources = [self._learned.sources[i] for i in range(len(self._learned.sources))]
        texts = {i: table for i, table in enumerate(self._sources) if isinstance(table, TextTable)}
        families, steps = self._families(self._learned.plan, options)
        self.vocabulary_ = TemplateVocabulary(texts)
        self.step_vocabulary_ = TemplateVocabulary(texts)
        self._shared = families, steps
        rows = self.vocabulary_.learn(batch, families, self.min_freq)
        step_rows = self.step_vocabulary_.learn(batch, steps, self.min_freq)
        self.n_features_in_ = len(self.vocabulary_)
        packed = _packed(batch, rows, self.vocabulary_)
        if len(self.step_vocabulary_):
            packed.transitions = _packed(batch, step_rows, self.step_vocabulary_)
        return packed

    def transform(self, X: Iterable[Any]) -> PackedSequences:
        """Return the packed sequences; attributes that `fit` has not seen are left out.

        Parameters
        ----------
        X : iterable of sequences of tokens, or a data frame
            As for :meth:`fit_transform`.

        Returns
        -------
        PackedSequences
            S sequences of N tokens with D attributes; attributes of transitions are in its
            `transitions`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As :meth:`fit_transform`.
        """
        check_is_fitted(self)
        options = self._as_fitted()._options()
        learned, (families, steps) = self._restored(options)
        batch = Batch(learned, read_tokens(X, options.columns, options.by))
        batch.read()
        packed = _packed(batch, self.vocabulary_.encode(batch, families), self.vocabulary_)
        if len(self.step_vocabulary_):
            rows = self.step_vocabulary_.encode(batch, steps)
            packed.transitions = _packed(batch, rows, self.step_vocabulary_)
        return packed

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the attributes, shape (D,), in the order of the columns.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        return self.vocabulary_.array()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "vocabulary_")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the parameters."""
        state: dict[str, Any] = dict(super().__getstate__())
        for derived in ("_learned", "_shared"):
            state.pop(derived, None)
        return state

    def _as_fitted(self) -> Self:
        """Return an object with the parameters of the last fit, which may have changed since."""
        return type(self)(**self._parameters)

    def _families(self, plan: Plan, options: Options) -> tuple[Families, Families]:
        """Return the templates of the tokens and those of the steps."""
        names = [_column_name(reference, options.columns) for reference in options.numeric]
        made = []
        for step in (False, True):
            families = [family for family in plan.families if family.step == step]
            numeric, own = ([], []) if step else (options.numeric, names)
            shared = colliding(families, plan, options.functions, own)
            named = [
                family in shared or has_items(family, plan, options.functions)
                for family in families
            ]
            made.append(
                Families(
                    [family for family, apart in zip(families, named, strict=True) if not apart],
                    [family for family, apart in zip(families, named, strict=True) if apart],
                    numeric,
                    own,
                    step,
                )
            )
        return made[0], made[1]

    def _restored(self, options: Options) -> tuple[Learned, tuple[Families, Families]]:
        """Return the tables and templates, anew after they were stored."""
        if "_learned" not in self.__dict__ or "_shared" not in self.__dict__:
            learned = Learned(self._as_fitted()._compile(), options.functions, self.lexicons_)
            learned.strings = self._strings
            learned.sources = dict(enumerate(self._sources))
            self._shared = self._families(learned.plan, options)
            self._learned = learned
        return self._learned, self._shared

    def _check_state(self) -> None:
        """Raise ValueError if what was stored does not fit the templates or is damaged."""
        if not self.__sklearn_is_fitted__():
            return
        try:
            self._check_tables()
        except (TypeError, AttributeError, LookupError, OverflowError) as error:
            raise ValueError(f"the tables of templates are damaged: {error}.") from error

    def _check_tables(self) -> None:
        fitted = self._as_fitted()
        options, plan = fitted._options(), fitted._compile()
        if len(plan.columns) != len(self._strings) or len(plan.sources) != len(self._sources):
            raise ValueError("the tables do not fit the templates.")
        for strings in self._strings:
            if not isinstance(strings, StringTable) or strings.first != len(plan.marks):
                raise ValueError("the tables of strings do not fit the templates.")
            strings._check_state()
        for source, table in zip(plan.sources, self._sources, strict=True):
            wanted = ItemTable if gives_items(source, options.functions) else TextTable
            if type(table) is not wanted or table.size() != len(self._strings[source.column]):
                raise ValueError("the tables of functions do not fit the strings.")
            table._check_state()
        shared = self._families(plan, options)
        vocabularies = (self.vocabulary_, self.step_vocabulary_)
        for vocabulary, families in zip(vocabularies, shared, strict=True):
            if any(table is not self._sources[i] for i, table in vocabulary.tables.items()):
                raise ValueError("the vocabulary has other tables than the transformer.")
            vocabulary.check(families)


def _column_name(reference: str | int, columns: list[str] | None) -> str:
    """Return the name of the attribute of a numeric column."""
    if isinstance(reference, int) and columns is not None and reference < len(columns):
        return columns[reference]
    return str(reference)


def _packed(batch: Batch, rows: Entries, names: TemplateVocabulary) -> PackedSequences:
    return PackedSequences._from_arrays(
        offsets=batch.tokens.offsets,
        indptr=rows.indptr,
        indices=rows.indices,
        values=rows.values,
        n_sparse=len(names),
        dense=None,
        names=names,
        transitions=None,
    )
