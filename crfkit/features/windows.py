"""Features of words and tags in a window, ready to use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crfkit._params import check_whole
from crfkit.features.functions import Call, Calls
from crfkit.features.templates.plan import ABSENT, BOS, EOS, FARTHEST, INPUT, Plan, PlanBuilder
from crfkit.features.templates.vectorizer import CompiledFeatures

_FLAGS = {"istitle": "is_title", "isupper": "is_upper", "isdigit": "is_digit"}


@dataclass(kw_only=True, eq=False, repr=False)
class WindowFeatures(CompiledFeatures):
    """Turn words and their tags into the features of the sklearn-crfsuite tutorial.

    With the defaults, attributes and values are those of ``word2features`` of the tutorial on
    CoNLL-2002 (M. Korobov) followed by :class:`SequenceVectorizer`: the word in lower case, its
    last 3 and 2 characters, whether it is in upper case, in title case or digits, the tag and its
    first 2 characters; of each neighbor the word in lower case, the cases, the tag and its start;
    marks of the first and the last token, and a bias.

    Parameters
    ----------
    window : int, default=1
        How many tokens before and after are looked at.
    suffixes : sequence of int, default=(3, 2)
        Lengths of the last characters of a word.
    prefixes : sequence of int, default=()
        Lengths of the first characters of a word.
    word : int or str, default=0
        The column of the word: a number for tuples, a name for dicts and frames.
    tag : int, str or None, default=1
        The column of the tag; None if there is none.
    tag_prefix : int, default=2
        How many characters of the tag are a feature; 0 for none.
    columns, by, min_freq
        As for :class:`TemplateFeatures`.

    Attributes
    ----------
    vocabulary_ : TemplateVocabulary
        The attributes; `array()` builds their names.
    n_features_in_ : int
        Number of attributes D.

    See Also
    --------
    TemplateFeatures : Features that templates describe.

    Examples
    --------
    >>> from crfkit.features import WindowFeatures
    >>> packed = WindowFeatures().fit_transform([[("The", "DT"), ("dog", "NN")]])
    >>> names = packed.feature_names[packed.indices[packed.indptr[1] :]]
    >>> [name for name in names if name.startswith("-1")]
    ['-1:word.lower():the', '-1:word.istitle()', '-1:postag:DT', '-1:postag[:2]:DT']
    """

    window: int = 1
    suffixes: Sequence[int] = (3, 2)
    prefixes: Sequence[int] = ()
    word: int | str = 0
    tag: int | str | None = 1
    tag_prefix: int = 2
    columns: Sequence[str] | None = None
    by: str | None = None
    min_freq: int = 0

    def _compile(self) -> Plan:
        check_whole("window", self.window)
        if self.window > FARTHEST:
            raise ValueError(f"window={self.window!r} must be at most {FARTHEST}.")
        check_whole("tag_prefix", self.tag_prefix)
        for size in (*self.suffixes, *self.prefixes):
            check_whole("length of an affix", size, 1)
        builder = PlanBuilder({}, ABSENT)
        builder.add("bias", (), (), False)
        affixes: list[tuple[str, Call]] = [
            *((f"word[-{size}:]", ("suffix", (size,))) for size in self.suffixes),
            *((f"word[:{size}]", ("prefix", (size,))) for size in self.prefixes),
        ]
        self._add_token(builder, "", 0, affixes, [*_FLAGS])
        for distance in range(1, self.window + 1):
            for offset in (-distance, distance):
                self._add_token(builder, f"{offset:+d}:", offset, [], ["istitle", "isupper"])
        for name, column in (("BOS", BOS), ("EOS", EOS)):
            cell = builder.cell(builder.column(column), (("is true", ()),), 0)
            builder.add_named(name, ":", [cell], "", False)
        return builder.finish()

    def _add_token(
        self,
        builder: PlanBuilder,
        lead: str,
        offset: int,
        affixes: list[tuple[str, Call]],
        flags: list[str],
    ) -> None:
        """Add what is said of the token at an offset."""
        said: list[tuple[int | str, str, Calls]] = [(self.word, "word.lower()", (("lower", ()),))]
        said += [(self.word, name, (call,)) for name, call in affixes]
        said += [(self.word, f"word.{flag}()", ((_FLAGS[flag], ()),)) for flag in flags]
        if self.tag is not None:
            said.append((self.tag, "postag", ()))
            if self.tag_prefix:
                call = "prefix", (int(self.tag_prefix),)
                said.append((self.tag, f"postag[:{self.tag_prefix}]", (call,)))
        for reference, name, applied in said:
            cell = builder.cell(builder.column(INPUT, reference), applied, offset)
            builder.add_named(lead + name, ":", [cell], "", False)
