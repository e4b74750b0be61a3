"""Reading and writing factor graphs in libDAI's format.

The number of factors; then for each of them the number of its variables, the variables, their
numbers of values, the number of entries that are listed, and a line for each: its place in the
table, the *first* variable fastest, and its potential. Entries that are not listed are 0. A line
that starts with ``#`` is a comment. See Mooij (2010), "libDAI: A free and open source C++ library
for discrete approximate inference in graphical models".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from crfkit.graphs.factors import Factor
from crfkit.graphs.fields import RandomField
from crfkit.io.potentials import LARGEST_TABLE, NumberReader, potential_text
from crfkit.io.streams import Source, Target, write_blocks

MOST_VARIABLES = 2**31


def read_fg(source: Source) -> RandomField:
    """Read a random field from a ``.fg`` file of libDAI.

    Parameters
    ----------
    source : path, text or binary file, or iterable of lines
        A path with the suffix ``.gz``, ``.xz`` or ``.bz2`` is unpacked.

    Returns
    -------
    RandomField
        Of the variables that factors have, by their numbers in the file, in this order.

    Raises
    ------
    GraphFormatError
        If the file breaks the format: the message names line and factor.

    Examples
    --------
    >>> from crfkit.io import read_fg
    >>> field = read_fg(["1", "", "2", "0 1", "2 3", "2", "0 3", "5 1"])  # two entries of six
    >>> field.marginal(0, 1)
    array([[0.75, 0.  , 0.  ],
           [0.  , 0.  , 0.25]])
    """
    reader = NumberReader(source, comment="#")
    sizes: dict[int, int] = {}
    count = reader.integer("the number of factors")
    factors = [_factor(reader, f, sizes) for f in range(count)]
    reader.end()
    return RandomField(factors, sorted(sizes))


def _factor(reader: NumberReader, f: int, sizes: dict[int, int]) -> Factor:
    scope = reader.scope(f, MOST_VARIABLES)
    shape = reader.integers(len(scope), f"the numbers of values of factor {f}", least=1)
    for node, size in zip(scope, shape, strict=True):
        if sizes.setdefault(node, size) != size:
            raise reader.error(
                f"variable {node} has {size} values in factor {f}, {sizes[node]} in one before."
            )
    length = math.prod(shape)
    if length > LARGEST_TABLE:
        raise reader.error(f"the table of factor {f} has {length} entries; too many to be read.")
    scores = np.full(length, -np.inf)
    listed = reader.integer(f"the number of entries of factor {f}", most=length)
    found = set[int]()
    for _ in range(listed):
        place = reader.integer(f"the place of an entry of factor {f}", most=length - 1)
        if place in found:
            raise reader.error(f"factor {f} has the entry {place} twice.")
        found.add(place)
        scores[place] = reader.scores(1, f"entry {place} of factor {f}")[0]
    return Factor.of(scope, scores.reshape(shape, order="F"))


def write_fg(field: RandomField, target: Target) -> None:
    """Write a random field to a ``.fg`` file of libDAI.

    Variables that are whole numbers from 0 keep them; if some are not, all are numbered as
    `field.nodes`. What is read back has the same scores, to the last bit.

    Parameters
    ----------
    field : RandomField
        The field.
    target : path, or text or binary file
        A path with the suffix ``.gz``, ``.xz`` or ``.bz2`` is packed.

    Raises
    ------
    GraphFormatError
        If a score is beyond 1e15, for which no potential can be written; the message names it.
    """
    write_blocks(target, _text(field))


def _text(field: RandomField) -> Iterator[str]:
    whole = all(type(node) is int and 0 <= node < MOST_VARIABLES for node in field.nodes)
    number = {node: node if whole else i for i, node in enumerate(field.nodes)}
    yield f"{len(field.factors)}\n"
    for factor in field.factors:
        scores = np.ravel(factor.scores, order="F")
        listed = np.flatnonzero(scores > -np.inf)
        yield f"\n{len(factor.nodes)}\n{' '.join(str(number[v]) for v in factor.nodes)}\n"
        yield f"{' '.join(map(str, factor.scores.shape))}\n{len(listed)}\n"
        for place in listed.tolist():
            yield f"{place} {potential_text(float(scores[place]))}\n"
