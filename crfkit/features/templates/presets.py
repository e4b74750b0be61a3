"""Lists of templates for kinds of tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crfkit._params import check_option
from crfkit.features.templates.expressions import window


def preset(kind: str, word: str | int = 0, tags: Sequence[str | int] = ()) -> list[str]:
    """Return templates for a kind of task.

    Parameters
    ----------
    kind : {"words", "names", "tags", "fields"}
        "words", what the command line takes without templates: words, their affixes and shapes;
        "names" of persons, places and the like; "tags" of words, such as parts of speech;
        "fields" of addresses, references or forms.
    word : str or int, default=0
        The column of the word.
    tags : sequence of str or int, default=()
        Further columns, such as parts of speech.

    Returns
    -------
    list of str
        To be changed at will, and given to :class:`TemplateFeatures`.

    Examples
    --------
    >>> from crfkit.features import TemplateFeatures, preset
    >>> templates = preset("names", "word", ["pos"])
    >>> templates[0], len(templates) > 50
    ('word', True)
    >>> features = TemplateFeatures([*templates, "is_digit(word)"], columns=["word", "pos"])
    """
    check_option("kind", kind, PRESETS)
    of_words, of_tags = PRESETS[kind]
    templates = of_words(_column(word))
    return [*templates, *(text for tag in tags for text in of_tags(_column(tag), _column(word)))]


def _column(reference: str | int) -> str:
    plain = isinstance(reference, str) and reference.isidentifier()
    return str(reference) if plain else f"col({reference!r})"


def _runs(expression: str, size: int, reach: int) -> list[str]:
    """Return conjunctions of so many neighbors, up to `reach` tokens away."""
    cells = window(expression, -reach, reach)
    return ["|".join(cells[i : i + size]) for i in range(len(cells) - size + 1)]


def _words(w: str) -> list[str]:
    low = f"lower({w})"
    return [
        w, *window(low, -2, 2), *_runs(low, 2, 1), *window(f"shape({w})", -1, 1),
        f"affixes({w}, 4)", "bos()", "eos()",
    ]  # fmt: skip


def _beside_words(t: str, w: str) -> list[str]:
    return [*window(t, -2, 2), *_runs(t, 2, 1)]


def _names(w: str) -> list[str]:
    ends = [(affix, size) for affix in ("prefix", "suffix") for size in (3, 4, 6)]
    low, kind, phrase = f"lower({w})", f"short_shape({w})", f"phrase({w})"
    form, before, after = (
        f"short_shape({phrase})", f"lower(phrase({w}, -1))", f"lower(phrase({w}, 1))",
    )  # fmt: skip
    left, right = (f"short_shape({w}[{offset}])" for offset in (-1, 1))
    return [
        w, *window(low, -3, 3), *_runs(low, 2, 2), f"lower({w}[-1])|lower({w}[1])",
        *window(f"shape({w})", -1, 1), *window(kind, -3, 3), *_runs(kind, 2, 1),
        *_runs(kind, 3, 2), *_runs(kind, 5, 2), f"affixes({w}, 5)", f"ngrams({low}, 2, 4)",
        *(f"{affix}(lower({w}[{k}]), 3)" for affix in ("prefix", "suffix") for k in (-1, 1)),
        f"lower({w}[-1])|{kind}", f"{kind}|lower({w}[1])", f"{low}|{right}", f"{left}|{low}",
        f"lower({w}[-2])|{left}|{kind}", f"{kind}|{right}|lower({w}[2])",
        f"{left}|suffix({w}, 3)|{right}",
        f"lower({phrase})", form, f"length({phrase})", before, after, f"{before}|{after}",
        *(f"{affix}(lower({phrase}), {size})" for affix, size in ends),
        f"{low}|{form}", f"{form}|{kind}", f"{left}|{kind}|{form}",
        *(f"{side}|{what}" for side in (before, after) for what in (kind, form)),
        "bos()", "eos()", f"bos()|{kind}",
    ]  # fmt: skip


def _beside_names(t: str, w: str) -> list[str]:
    return [
        *window(t, -2, 2), *_runs(t, 2, 2), *_runs(t, 3, 2), f"{t}|short_shape({w})",
        f"lower({w})|{t}",
    ]  # fmt: skip


def _tags(w: str) -> list[str]:
    low = f"lower({w})"
    return [
        w, *window(low, -2, 2), *_runs(low, 2, 2), f"lower({w}[-1])|lower({w}[1])",
        *_runs(low, 3, 1), *window(f"short_shape({w})", -1, 1), f"shape({w})",
        f"affixes({low}, 6)", f"digits({low})",
        *(f"suffix({low[:-1]}[{k}]), {size})" for k in (-2, -1, 1, 2) for size in (2, 3)),
        f"suffix(lower({w}[-1]), 3)|suffix({low}, 3)", f"suffix({low}, 3)|suffix(lower({w}[1]), 3)",
        f"lower({w}[-1])|suffix({low}, 3)", f"suffix({low}, 3)|lower({w}[1])",
        f"short_shape({w})|suffix({low}, 2)", "bos()", "eos()", f"bos()|short_shape({w})",
    ]  # fmt: skip


def _fields(w: str) -> list[str]:
    text, kind = f"digits(lower({w}))", f"short_shape({w})"
    return [
        w, *window(text, -3, 3), *_runs(text, 2, 2), *_runs(text, 3, 1),
        *window(f"shape({w})", -1, 1), *window(kind, -2, 2), *_runs(kind, 2, 2),
        *_runs(kind, 3, 2), *_runs(kind, 5, 2), *window(f"suffix({w}, 1)", -2, 2),
        *_runs(f"suffix({w}, 1)", 2, 1), f"affixes({w}, 4)", f"ngrams({text}, 3)",
        *(f"position({parts})" for parts in (4, 10)), f"position(4)|{kind}", f"position(4)|{text}",
        "bos()", "eos()",
    ]  # fmt: skip


PRESETS: dict[str, tuple[Callable[[str], list[str]], Callable[[str, str], list[str]]]] = {
    "words": (_words, _beside_words),
    "names": (_names, _beside_names),
    "tags": (_tags, _beside_words),
    "fields": (_fields, _beside_words),
}
