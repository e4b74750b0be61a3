"""Templates as a transformer."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from crfkit._params import check_flag, check_option, check_whole
from crfkit._warnings import warn_user
from crfkit.data import PackedSequences
from crfkit.features._lexicons import index_entries, read_lexicons, read_text
from crfkit.features.attributes import AttributeRows
from crfkit.features.expressions import Templates, flatten
from crfkit.features.functions import checked_functions
from crfkit.features.templates.coded import LearnedTables, SourceTable, TokenReader
from crfkit.features.templates.columns import checked_columns, read_tokens
from crfkit.features.templates.expressions import expression_plan
from crfkit.features.templates.lines import crfpp_plan, template_lines, wapiti_plan
from crfkit.features.templates.plan import INPUT, PHRASE, Plan, Template
from crfkit.features.templates.presets import preset
from crfkit.features.templates.tables import ItemTable, StringTable, TextTable
from crfkit.features.templates.vocabulary import TemplateGroup, TemplateVocabulary
from crfkit.features.vectorizer import SequenceTransformer

SYNTAXES = ("python", "crfpp", "wapiti")
_MARKED_LINE = re.compile(r"[UuBb*]([\w-]*:.*|%.*)?", re.DOTALL)
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(\s*%\w\[")
_WORDS = (
    "transition", "first", "last", "single", "window", "affixes", "lexicon", "position", "bos",
    "eos", "col", "phrase",
)  # fmt: skip


class _Compiled(NamedTuple):
    """Templates of tokens and of transitions, and what they are applied with."""

    tables: LearnedTables
    groups: tuple[TemplateGroup, TemplateGroup]
    columns: list[str] | None
    by: str | None

    def reader(self, X: Iterable[Any], learning: bool = False) -> TokenReader:
        """Return a reader of some sequences."""
        return TokenReader(self.tables, read_tokens(X, self.columns, self.by), learning)


class CompiledFeatures(SequenceTransformer):
    """Transformer whose features are described by templates; a subclass says which these are."""

    _derived = ("_learned",)
    min_freq: int
    columns: Sequence[str] | None
    by: str | None
    functions: Mapping[str, Callable[[str], Any]] | None = None
    lexicons: Mapping[str, Any] | None = None
    numeric: Iterable[str | int] = ()

    @abstractmethod
    def _compile(self) -> Plan:
        """Return the plan of the templates."""

    @property
    def columns_read(self) -> list[str | int]:
        """The columns that templates look at, named or numbered as they name them."""
        keys = [*((INPUT, field) for field in self.numeric), *self._compile().columns]
        return list(dict.fromkeys(key[1] for key in keys if key[0] in (INPUT, PHRASE)))

    def _fit(self, X: Iterable[Any], y: Any) -> PackedSequences:
        check_whole("min_freq", self.min_freq)
        lexicons = read_lexicons(self.lexicons)
        compiled = self._compiled(lexicons, [], {})
        reader, learned = compiled.reader(X, learning=True), compiled.tables
        self.lexicons_ = lexicons
        self._parameters = self.get_params(deep=False)
        self._strings = learned.strings
        self._sources = [learned.sources[i] for i in range(len(learned.sources))]
        texts = {i: table for i, table in enumerate(self._sources) if isinstance(table, TextTable)}
        self.vocabulary_ = TemplateVocabulary(texts)
        self.transition_vocabulary_ = TemplateVocabulary(texts)
        self._learned = compiled
        rows = [
            vocabulary.learn(reader, templates, self.min_freq)
            for vocabulary, templates in zip(self._vocabularies, compiled.groups, strict=True)
        ]
        self.n_features_in_ = len(self.vocabulary_)
        return self._packed(iter(rows))

    def _transform(self, X: Any) -> PackedSequences:
        compiled = self._restored()
        reader = compiled.reader(X)
        pairs = zip(self._vocabularies, compiled.groups, strict=True)
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

    def _compiled(
        self,
        lexicons: dict[str, list[str]],
        strings: list[StringTable],
        sources: dict[int, SourceTable],
    ) -> _Compiled:
        """Return the templates with what was learned so far; all parameters are checked."""
        columns, numeric = checked_columns(self.columns), list(self.numeric)
        if isinstance(self.numeric, str):
            raise TypeError(f"numeric={self.numeric!r} must be a list of columns.")
        functions = checked_functions(self.functions, _WORDS)
        plan = self._compile()
        entries = {name: index_entries(listed) for name, listed in lexicons.items()}
        known = columns or []
        names = [
            known[field]
            if isinstance(field, int) and -len(known) <= field < len(known)
            else str(field)
            for field in numeric
        ]
        of_tokens = TemplateGroup.of(plan, numeric, names, transition=False)
        of_transitions = TemplateGroup.of(plan, [], [], transition=True)
        tables = LearnedTables(plan, functions, entries, strings, sources)
        return _Compiled(tables, (of_tokens, of_transitions), columns, self.by)

    def _restored(self) -> _Compiled:
        """Return the templates, anew after the object was stored."""
        if "_learned" not in self.__dict__:
            self._learned = self._compiled_again()
        return self._learned

    def _compiled_again(self) -> _Compiled:
        sources = dict(enumerate(self._sources))
        return self._as_fitted()._compiled(self.lexicons_, self._strings, sources)

    def _check_state(self) -> None:
        """Raise ValueError if what was stored does not fit the templates or is damaged."""
        try:
            if self.__sklearn_is_fitted__():
                self._check_tables()
        except (TypeError, AttributeError, LookupError, OverflowError) as error:
            raise ValueError(f"the tables of templates are damaged: {error}.") from error

    def _check_tables(self) -> None:
        compiled = self._compiled_again()
        plan = compiled.tables.plan
        if len(plan.columns) != len(self._strings) or len(plan.sources) != len(self._sources):
            raise ValueError("the tables do not fit the templates.")
        for strings in self._strings:
            if not isinstance(strings, StringTable) or strings.first != len(plan.marks):
                raise ValueError("the tables of strings do not fit the templates.")
            strings._check_state()
        for source, table in zip(plan.sources, self._sources, strict=True):
            wanted = ItemTable if source.gives_items else TextTable
            if type(table) is not wanted or table.size() != len(self._strings[source.column]):
                raise ValueError("the tables of functions do not fit the strings.")
            table._check_state()
        for vocabulary, templates in zip(self._vocabularies, compiled.groups, strict=True):
            if any(table is not self._sources[i] for i, table in vocabulary.tables.items()):
                raise ValueError("the vocabulary has other tables than the transformer.")
            vocabulary.check(templates)


@dataclass(kw_only=True, eq=False, repr=False)
class TemplateFeatures(CompiledFeatures):
    r"""Turn sequences of tokens into packed features that templates describe.

    An attribute is its name, and has the value 1; one that occurs twice in a token has the value 2.
    Names are those that a loop over tokens and templates would format, but work is done for each
    different string and each different pair of codes instead of for each token.

    Parameters
    ----------
    templates : str or list of str
        The text of the templates, one a line, or a list of them, which may hold lists.
    syntax : {'python', 'crfpp', 'wapiti'}, default='python'
        How the templates are written, see Notes.
    columns : list of str, optional
        Names of the fields of tokens that are tuples. Tokens that are dicts, and frames, have
        names.
    by : str, optional
        The column of a data frame that tells the sequences apart.
    min_freq : int, default=0
        Attributes that occur fewer times in the training data are left out.
    bias : bool, default=False
        Whether each token has an attribute ``bias``.
    functions : dict of str to callable, optional
        Functions of a string for templates of Python's syntax. None is no attribute; a string,
        True or False, a number or a list of strings follow the rules of
        :class:`SequenceVectorizer`.
    lexicons : dict, optional
        Names of lexicons and their entries: a set of strings, or the path of a file with an entry
        a line. The words of an entry are parted by blanks; it may as well be a tuple of them.
    numeric : list of str or int, default=()
        Columns whose numbers are the values of an attribute named as the column.

    Attributes
    ----------
    vocabulary_ : TemplateVocabulary
        The attributes; `array()` builds their names.
    transition_vocabulary_ : TemplateVocabulary
        The attributes of transitions.
    lexicons_ : dict of str to list of str
        The entries of the lexicons.
    n_features_in_ : int
        Number of attributes D, without those of transitions.

    See Also
    --------
    SequenceVectorizer : Features from dicts or lists of strings.
    WindowFeatures : Ready features of words and tags.
    from_preset : Templates for kinds of tasks.

    Notes
    -----
    ``syntax='python'``: a template is an expression. ``w`` is a column, ``w[-1]`` that of the token
    before; ``col("any name")[1]`` and ``%x[1,0]`` (offset, number of the column) are columns as
    well. ``a|b`` joins cells. ``lower(w)``, ``shape(w)`` (``Xx-dd``), ``short_shape(w)``,
    ``prefix(w, 3)``, ``suffix(w, 3)``, ``digits(w)`` (each written as 0) and ``length(w)`` give a
    string, and may be nested; ``is_title(w)``, ``is_upper(w)``, ``is_lower(w)``, ``is_digit(w)``
    and ``is_alpha(w)`` a flag; ``ngrams(w, 2)`` and ``ngrams(w, 2, 4)`` all substrings of 2, of 2
    to 4 characters, ``spelling(w)`` the spellings of Lafferty et al. (2001) that an English word
    has. ``affixes(w, 4)`` stands for prefixes and suffixes of 1 to 4 characters,
    ``window(w, -2, 2)`` for five templates. ``phrase(w)`` is the run of words with a capital first
    in which the token lies, one or two short words between them included; ``phrase(w, -1)`` and
    ``phrase(w, 1)`` are the words before and after it. ``w in name``, or ``lexicon(w, "name")``, is
    B at the first and I at the further tokens of a run that is an entry of a lexicon, the longest
    from the left; within ``|`` the former stands in parentheses. ``bos()`` and ``eos()`` are flags
    of the first and the last token, ``position(4)`` tells in which quarter of the sequence the
    token lies. ``transition(...)`` describes the transition from the token before; ``first(...)``,
    ``last(...)`` and ``single(...)`` the first token of a segment, the last one, and one that is a
    segment alone, for models of segments: ``first(w[-1])`` is the token before the segment,
    ``last(w[1])`` the one after it. Models of tokens refuse these.

    An attribute is named as its template is written: ``w[-1]=dog``, ``w[-1]|w=the|dog``. A flag
    is named ``is_title(w)``; within ``|`` it is True or False. Names of ``first(w)`` begin with
    ``seg.first.``, and so on. Cells outside of the sequence hold
    ``_B-1``, ``_B-2``, ``_B+1``..., which functions leave as they are.

    ``syntax='crfpp'``: the template files of CRF++
    (:func:`crfkit.features.templates.lines.crfpp_plan`).

    ``syntax='wapiti'``: the pattern files of Wapiti
    (:func:`crfkit.features.templates.lines.wapiti_plan`).

    Transitions (``transition``, lines that begin with ``B`` or ``b``) are described in the
    `transitions` of the packed sequences. The first token of a sequence has none.

    Tokens are tuples or lists of strings, dicts of strings, or strings; a data frame has one a row.
    Fields of tokens that no template names are not read.

    Examples
    --------
    >>> from crfkit.features import TemplateFeatures
    >>> features = TemplateFeatures(["w", "w[-1]|w", "suffix(w, 2)"], columns=["w", "pos"])
    >>> packed = features.fit_transform([[("the", "DT"), ("dog", "NN")]])
    >>> packed.feature_names[packed.indices[packed.indptr[1] :]].tolist()
    ['w=dog', 'w[-1]|w=the|dog', 'suffix(w, 2)=og']
    """

    templates: Templates = field(kw_only=False)
    syntax: str = "python"
    columns: Sequence[str] | None = None
    by: str | None = None
    min_freq: int = 0
    bias: bool = False
    functions: Mapping[str, Callable[[str], Any]] | None = None
    lexicons: Mapping[str, Any] | None = None
    numeric: Iterable[str | int] = ()

    @classmethod
    def from_preset(
        cls,
        kind: str,
        word: str | int = "word",
        tags: Sequence[str | int] = (),
        *,
        more: Templates = (),
        **params: Any,
    ) -> Self:
        """Return the templates of a kind of task, for tokens that are words, tuples or dicts.

        Parameters
        ----------
        kind : {"words", "names", "tags", "fields"}
            "words" for anything; "names" of persons, places and the like; "tags" of words, such as
            parts of speech; "fields" of addresses, references or forms (see
            :func:`crfkit.features.preset`, which returns the list of templates).
        word : str or int, default="word"
            The column of the word. Where tokens are dicts, or rows of a frame, it is their key.
        tags : sequence of str or int, default=()
            Further columns, such as parts of speech.
        more : str or list of str, default=()
            Further templates.
        **params
            Further parameters of the class. `columns` is ``[word, *tags]``, if it is not given and
            these are names.

        Raises
        ------
        ValueError
            If there is no such kind.

        Examples
        --------
        >>> from crfkit import CRFClassifier, TemplateFeatures
        >>> model = CRFClassifier(features=TemplateFeatures.from_preset("names"))
        >>> model.fit([["Ana", "lives", "in", "Lima"]], [["B-PER", "O", "O", "B-LOC"]]).predict(
        ...     [["Ana", "lives", "in", "Lima"]])
        [['B-PER', 'O', 'O', 'B-LOC']]
        >>> features = TemplateFeatures.from_preset("words", tags=["pos"], more="is_digit(word)")
        >>> features.columns
        ['word', 'pos']
        """
        columns = [word, *tags]
        named = columns if all(isinstance(column, str) for column in columns) else None
        further = [more] if isinstance(more, str) else more
        return cls([*preset(kind, word, tags), *further], **{"columns": named} | params)

    @classmethod
    def from_file(cls, path: Any, *, syntax: str | None = None, **params: Any) -> Self:
        """Read templates from a file; the object keeps their text, not the path.

        Parameters
        ----------
        path : path
            A template file in UTF-8.
        syntax : {'python', 'crfpp', 'wapiti'}, optional
            How it is written; told by its lines if not given.
        **params
            Further parameters of the class.

        Raises
        ------
        TypeError, ValueError
            If a line is no template of the syntax, or the file is not in UTF-8: the message names
            the file and the line.
        """
        text = read_text(path)
        try:
            features = cls(text, syntax=syntax or tell_syntax(text), **params)
            features._compile()
        except ValueError as error:
            problem = _mixed(text) if syntax is None else None
            raise ValueError(f"{path}: {problem or error}") from error
        if features.syntax != "python":
            _warn_of_functions(path, text)
        return features

    def _compile(self) -> Plan:
        check_option("syntax", self.syntax, SYNTAXES)
        check_flag("bias", self.bias)
        functions = dict(self.functions or {})
        if self.syntax == "python":
            plan = expression_plan(self.templates, functions, self.lexicons or {})
        else:
            lines = [self.templates] if isinstance(self.templates, str) else list(self.templates)
            if not all(isinstance(line, str) for line in lines):
                raise TypeError(f"templates must be a string or a list of strings: {lines!r}.")
            translate = crfpp_plan if self.syntax == "crfpp" else wapiti_plan
            plan = translate("\n".join(lines), functions)
        if not (any(flatten(self.templates)) or self.bias or list(self.numeric)):
            raise ValueError(
                "there are no templates: give at least one, a bias or numeric columns."
            )
        if self.bias:
            bias = Template("bias", "", (), (), False)
            plan = plan._replace(templates=(bias, *plan.templates))
        return plan


def _warn_of_functions(path: Any, text: str) -> None:
    """Warn of functions in lines of CRF++ or Wapiti, where they are text of the attribute."""
    for number, line in template_lines(text):
        called = _CALL.search(line)
        if called is not None and not line.lstrip().startswith("#"):
            warn_user(
                f"{path}: line {number} of the templates, {line.strip()!r}: the notation of CRF++ "
                f"and Wapiti has no functions, {called[1]!r} is text of the attribute. Write all "
                f"lines without marks, such as {called[1]}(%x[0,0]), to have functions."
            )
            return


def _mixed(text: str) -> str | None:
    """Return what is to be said of a text with lines of several notations, None of another."""
    lines = [(n, line.strip()) for n, line in template_lines(text)]
    of_kinds: dict[bool, tuple[int, str]] = {}
    for number, line in lines:
        if not line.startswith("#"):
            marked = ":" in line and "%" in line and _MARKED_LINE.fullmatch(line) is not None
            of_kinds.setdefault(marked, (number, line))
    if len(of_kinds) < 2:
        return None
    (first, one), (other, another) = of_kinds[True], of_kinds[False]
    return (
        f"the templates mix notations: line {first}, {one!r}, is one of CRF++ or Wapiti, line "
        f"{other}, {another!r}, is not. Write all lines in one notation: U00:%x[-1,0] and B; or "
        "%x[-1,0], lower(%x[0,0]), transition(%x[0,0])."
    )


def tell_syntax(text: str) -> str:
    """Return the syntax of the lines of a text.

    Lines of CRF++ and Wapiti begin with U, B (Wapiti: u, b or * too) and an identifier, which a
    colon ends. A text in which all lines are of that form is theirs, any other is of Python.
    """
    lines = [line.strip() for _, line in template_lines(text)]
    lines = [line for line in lines if not line.startswith("#")]
    if not lines or not all(_MARKED_LINE.fullmatch(line) for line in lines):
        return "python"
    special = any(f"%{command}[" in line for line in lines for command in "tmXTM")
    return "wapiti" if special or {line[0] for line in lines} - set("UB") else "crfpp"
