"""The corpus of recipe-ingredient lines."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Literal, overload

from sklearn.utils import Bunch

from crfkit._types import Frame
from crfkit.data.frames import frame_from_sequences
from crfkit.io import read_conll

_MODULE, _FOLDER, _FILE, _CARD = "crfkit.datasets", "data", "ingredients.txt", "ingredients.md"
_TEXT_MARK = "# text = "
_LABELS = ("COMMENT", "NAME", "PREP", "QTY", "UNIT")

Lines = list[list[str]]


def _read(name: str) -> str:
    return resources.files(_MODULE).joinpath(_FOLDER, name).read_text(encoding="utf-8")


def _bunch(tokens: Lines, tags: Lines, texts: Sequence[str]) -> Bunch:
    return Bunch(
        tokens=tokens,
        tags=tags,
        texts=list(texts),
        target_names=["O", *(f"{prefix}-{label}" for label in _LABELS for prefix in "BI")],
        labels=list(_LABELS),
        DESCR=_read(_CARD),
        filename=_FILE,
        data_module=f"{_MODULE}.{_FOLDER}",
    )


@overload
def load_ingredients(
    *, return_X_y: Literal[False] = ..., as_frame: Literal[False] = ...
) -> Bunch: ...
@overload
def load_ingredients(
    *, return_X_y: Literal[True], as_frame: Literal[False] = ...
) -> tuple[Lines, Lines]: ...
@overload
def load_ingredients(*, return_X_y: Literal[False] = ..., as_frame: Literal[True]) -> Frame: ...


def load_ingredients(
    *, return_X_y: bool = False, as_frame: bool = False
) -> Bunch | tuple[Lines, Lines] | Frame:
    """Load the recipe-ingredient corpus, S = 500 hand-labeled English lines.

    Each token has an IOB2 tag over QTY, UNIT, NAME, PREP and COMMENT, or O. The order is fixed
    and mixed. The data card in ``DESCR`` tells the guidelines, the counts and the limits.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return only ``(tokens, tags)``.
    as_frame : bool, default=False
        Whether to return a pandas DataFrame with a row per token.

    Returns
    -------
    data : Bunch, tuple or DataFrame
        By default a :class:`sklearn.utils.Bunch` with

        tokens : list of list of str, length S
            The tokens of each line, as :func:`tokenize_ingredient` splits it.
        tags : list of list of str, length S
            The IOB2 tags of each line.
        texts : list of str, length S
            The lines as written.
        target_names, labels : list of str
            All tags that occur; the labels without prefix, sorted.
        DESCR : str
            The data card.
        filename, data_module : str
            The data file and the package folder that holds it.

        With `return_X_y` the tuple ``(tokens, tags)``; with `as_frame` a DataFrame with the
        columns ``line`` (int, from 0), ``token`` and ``tag``.

    Raises
    ------
    ValueError
        If both `return_X_y` and `as_frame` are true.
    ImportError
        If `as_frame` is true and pandas is not installed.

    Examples
    --------
    >>> from crfkit.datasets import load_ingredients
    >>> len(load_ingredients().tokens)
    500
    """
    if return_X_y and as_frame:
        raise ValueError("return_X_y and as_frame exclude each other; set one of them")
    lines = _read(_FILE).split("\n")
    rows, tags = read_conll(lines, sep=" ", comment=_TEXT_MARK)
    tokens = [[token for (token,) in row] for row in rows]
    if return_X_y:
        return tokens, tags
    if as_frame:
        return frame_from_sequences(tokens, {"tag": tags}, by="line")
    texts = [line.removeprefix(_TEXT_MARK) for line in lines if line.startswith(_TEXT_MARK)]
    return _bunch(tokens, tags, texts)
