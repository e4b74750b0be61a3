"""Base class of the transformers that compile templates of tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from crfkit._params import check_whole
from crfkit.data import PackedSequences
from crfkit.features.attributes import AttributeRows
from crfkit.features.functions import Functions
from crfkit.features.templates.coded import LearnedTables, TokenReader
from crfkit.features.templates.columns import read_tokens
from crfkit.features.templates.entries import TemplateGroup, grouped
from crfkit.features.templates.plan import Plan, gives_items
from crfkit.features.templates.tables import ItemTable, StringTable, TextTable
from crfkit.features.templates.vocabulary import TemplateVocabulary
from crfkit.features.vectorizer import SequenceTransformer

Groups = tuple[TemplateGroup, TemplateGroup]  # of tokens, of transitions


class TemplateOptions(NamedTuple):
    """Checked parameters that templates are applied with."""

    columns: list[str] | None
    by: str | None
    functions: Functions
    numeric: list[str | int]


class CompiledFeatures(SequenceTransformer):
    """Transformer whose features are described by templates.

    A subclass has the parameter `min_freq`, and says what its templates are.
    """

    _derived = ("_learned",)
    min_freq: int

    @abstractmethod
    def _compile(self) -> Plan:
        """Return the plan of the templates."""

    @abstractmethod
    def _options(self) -> TemplateOptions:
        """Return checked parameters."""

    @abstractmethod
    def _read_lexicons(self) -> dict[str, list[str]]:
        """Return the entries of the lexicons."""

    def _fit(self, X: Iterable[Any], y: Any) -> PackedSequences:
        check_whole("min_freq", self.min_freq)
        options = self._options()
        lexicons = self._read_lexicons()
        learned = LearnedTables(self._compile(), options.functions, lexicons)
        reader = TokenReader(learned, read_tokens(X, options.columns, options.by))
        reader.learn()
        self.lexicons_ = lexicons
        self._parameters = self.get_params(deep=False)
        self._strings = learned.strings
        self._sources = [learned.sources[i] for i in range(len(learned.sources))]
        texts = {i: table for i, table in enumerate(self._sources) if isinstance(table, TextTable)}
        self.vocabulary_ = TemplateVocabulary(texts)
        self.transition_vocabulary_ = TemplateVocabulary(texts)
        self._learned = learned, self._grouped_templates(learned.plan, options)
        rows = [
            vocabulary.learn(reader, templates, self.min_freq)
            for vocabulary, templates in zip(self._vocabularies, self._learned[1], strict=True)
        ]
        self.n_features_in_ = len(self.vocabulary_)
        return self._packed(iter(rows))

    def _transform(self, X: Any) -> PackedSequences:
        options = self._as_fitted()._options()
        learned, groups = self._restored(options)
        reader = TokenReader(learned, read_tokens(X, options.columns, options.by))
        reader.read()
        pairs = zip(self._vocabularies, groups, strict=True)
        return self._packed(vocabulary.encode(reader, group) for vocabulary, group in pairs)

    def _packed(self, rows: Iterator[AttributeRows]) -> PackedSequences:
        """Return the attributes of tokens with those of transitions, if there are any."""
        packed = next(rows).packed(self.vocabulary_)
        if len(self.transition_vocabulary_):
            packed.transitions = next(rows).packed(self.transition_vocabulary_)
        return packed

    def _token_names(self) -> TemplateVocabulary:
        return self.vocabulary_

    @property
    def _vocabularies(self) -> tuple[TemplateVocabulary, TemplateVocabulary]:
        return self.vocabulary_, self.transition_vocabulary_

    def _grouped_templates(self, plan: Plan, options: TemplateOptions) -> Groups:
        """Return the templates of tokens and those of transitions."""
        names = [_column_name(reference, options.columns) for reference in options.numeric]
        tokens = [template for template in plan.templates if not template.transition]
        transitions = [template for template in plan.templates if template.transition]
        return (
            grouped(tokens, plan, options.functions, options.numeric, names),
            grouped(transitions, plan, options.functions, [], [], transition=True),
        )

    def _restored(self, options: TemplateOptions) -> tuple[LearnedTables, Groups]:
        """Return the tables and templates, anew after they were stored."""
        if "_learned" not in self.__dict__:
            learned = LearnedTables(self._as_fitted()._compile(), options.functions, self.lexicons_)
            learned.strings = self._strings
            learned.sources = dict(enumerate(self._sources))
            self._learned = learned, self._grouped_templates(learned.plan, options)
        return self._learned

    def _check_state(self) -> None:
        """Raise ValueError if what was stored does not fit the templates or is damaged."""
        try:
            if self.__sklearn_is_fitted__():
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
        groups = self._grouped_templates(plan, options)
        for vocabulary, templates in zip(self._vocabularies, groups, strict=True):
            if any(table is not self._sources[i] for i, table in vocabulary.tables.items()):
                raise ValueError("the vocabulary has other tables than the transformer.")
            vocabulary.check(templates)


def _column_name(reference: str | int, columns: list[str] | None) -> str:
    """Return the name of the attribute of a numeric column."""
    if isinstance(reference, int) and columns is not None and reference < len(columns):
        return columns[reference]
    return str(reference)
