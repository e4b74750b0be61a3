"""Templates as a transformer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from crfkit._params import check_flag, check_option
from crfkit.features._lexicons import read_lexicons, read_text
from crfkit.features.expressions import Templates, flatten
from crfkit.features.functions import checked_functions
from crfkit.features.templates.cells import template_lines
from crfkit.features.templates.columns import checked_columns
from crfkit.features.templates.compiled import CompiledFeatures, TemplateOptions
from crfkit.features.templates.crfpp import crfpp_plan
from crfkit.features.templates.expressions import expression_plan
from crfkit.features.templates.plan import KEEP, Plan, Template
from crfkit.features.templates.wapiti import wapiti_plan

SYNTAXES = ("python", "crfpp", "wapiti")
_MARKED_LINE = re.compile(r"[UuBb*]([\w-]*:.*|%.*)?", re.DOTALL)
_WORDS = (
    "transition", "first", "last", "single", "window", "affixes", "lexicon", "position", "bos",
    "eos", "col",
)  # fmt: skip


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

    Notes
    -----
    ``syntax='python'``: a template is an expression. ``w`` is a column, ``w[-1]`` that of the token
    before; ``col("any name")[1]`` and ``%x[1,0]`` (offset, number of the column) are columns as
    well. ``a|b`` joins cells. ``lower(w)``, ``shape(w)`` (``Xx-dd``), ``short_shape(w)``,
    ``prefix(w, 3)``, ``suffix(w, 3)``, ``digits(w)`` (each written as 0) and ``length(w)`` give a
    string, and may be nested; ``is_title(w)``, ``is_upper(w)``, ``is_lower(w)``, ``is_digit(w)``
    and ``is_alpha(w)`` a flag; ``ngrams(w, 2)`` and ``ngrams(w, 2, 4)`` all substrings of 2, of 2
    to 4 characters. ``affixes(w, 4)`` stands for prefixes and suffixes of 1 to 4 characters,
    ``window(w, -2, 2)`` for five templates. ``w in name``, or ``lexicon(w, "name")``, is B at the
    first and I at the further tokens of a run that is an entry of a lexicon, the longest from the
    left; within ``|`` the former stands in parentheses. ``bos()`` and ``eos()``
    are flags of the first and the last token, ``position(4)`` tells in which quarter of the
    sequence the token lies. ``transition(...)`` describes the transition from the token before;
    ``first(...)``, ``last(...)`` and ``single(...)`` the first token of a segment, the last one,
    and one that is a segment alone, for models of segments: ``first(w[-1])`` is the token before
    the segment, ``last(w[1])`` the one after it. Models of tokens refuse these.

    An attribute is named as its template is written: ``w[-1]=dog``, ``w[-1]|w=the|dog``. A flag
    is named ``is_title(w)``; within ``|`` it is True or False. Names of ``first(w)`` begin with
    ``seg.first.``, and so on. Cells outside of the sequence hold
    ``_B-1``, ``_B-2``, ``_B+1``..., which functions leave as they are.

    ``syntax='crfpp'``: the template files of CRF++
    (:func:`crfkit.features.templates.crfpp.crfpp_plan`).

    ``syntax='wapiti'``: the pattern files of Wapiti
    (:func:`crfkit.features.templates.wapiti.wapiti_plan`).

    Transitions (``transition``, lines that begin with ``B`` or ``b``) are described in the
    `transitions` of the packed sequences. The first token of a sequence has none.

    Fields of tokens that no template names are not read.

    Attributes that were not seen by `fit` are left out by `transform`. Sequences may come from a
    generator, which is read once.

    Examples
    --------
    >>> from crfkit.features import TemplateFeatures
    >>> features = TemplateFeatures(["w", "w[-1]|w", "suffix(w, 2)"], columns=["w", "pos"])
    >>> packed = features.fit_transform([[("the", "DT"), ("dog", "NN")]])
    >>> packed.feature_names[packed.indices[packed.indptr[1] :]].tolist()
    ['w=dog', 'w[-1]|w=the|dog', 'suffix(w, 2)=og']
    """

    def __init__(
        self,
        templates: Templates,
        *,
        syntax: str = "python",
        columns: Sequence[str] | None = None,
        by: str | None = None,
        min_freq: int = 0,
        bias: bool = False,
        functions: Mapping[str, Callable[[str], Any]] | None = None,
        lexicons: Mapping[str, Any] | None = None,
        numeric: Iterable[str | int] = (),
    ) -> None:
        self.templates = templates
        self.syntax = syntax
        self.columns = columns
        self.by = by
        self.min_freq = min_freq
        self.bias = bias
        self.functions = functions
        self.lexicons = lexicons
        self.numeric = numeric

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
            raise ValueError(f"{path}: {error}") from error
        return features

    def _compile(self) -> Plan:
        check_option("syntax", self.syntax, SYNTAXES)
        check_flag("bias", self.bias)
        functions = dict(self.functions or {})
        plan = self._parse(functions)
        lines = "".join(flatten(self.templates))
        if not (lines or self.bias or list(self.numeric)):
            raise ValueError(
                "there are no templates: give at least one, a bias or numeric columns."
            )
        if self.bias:
            bias = Template("bias", "", (), (), False)
            plan = plan._replace(templates=(bias, *plan.templates))
        return plan

    def _parse(self, functions: dict[str, Any]) -> Plan:
        if self.syntax == "python":
            names = self.lexicons if self.lexicons is not None else {}
            return expression_plan(self.templates, functions, names, KEEP)
        lines = [self.templates] if isinstance(self.templates, str) else list(self.templates)
        if not all(isinstance(line, str) for line in lines):
            raise TypeError(f"templates must be a string or a list of strings: {lines!r}.")
        plan = crfpp_plan if self.syntax == "crfpp" else wapiti_plan
        return plan("\n".join(lines), functions)

    def _options(self) -> TemplateOptions:
        columns = checked_columns(self.columns)
        if isinstance(self.numeric, str):
            raise TypeError(f"numeric={self.numeric!r} must be a list of columns.")
        return TemplateOptions(
            columns, self.by, checked_functions(self.functions, _WORDS), list(self.numeric)
        )

    def _read_lexicons(self) -> dict[str, list[str]]:
        return read_lexicons(self.lexicons)


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
