"""Reading and writing factor graphs in the format of the UAI inference competitions.

``MARKOV`` (or ``BAYES``), the number of variables, their numbers of values, the number of factors;
then the variables of each factor after their number, then the table of each after its length, the
last variable fastest. Entries are potentials. Blanks and ends of lines all separate. Evidence is in
a second file: a count, then pairs of a variable and its value (Gogate 2014, "UAI 2014 inference
competition"); older files have the number of samples before that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping

import numpy as np

from crfkit.graphs.factors import Factor
from crfkit.graphs.fields import RandomField
from crfkit.io.potentials import LARGEST_TABLE, NumberReader, numbered, potential_text
from crfkit.io.streams import Source, Target, write_blocks

KINDS = ("MARKOV", "BAYES")


def read_uai(source: Source, evidence: Source | Mapping[int, int] | None = None) -> RandomField:
    """Read a random field from a ``.uai`` file, a Bayesian network as well.

    Parameters
    ----------
    source : path, text or binary file, or iterable of lines
        A path with the suffix ``.gz``, ``.xz`` or ``.bz2`` is unpacked.
    evidence : path, file, iterable of lines, or mapping of int to int, optional
        The known values: a ``.uai.evid`` file, or the values by variable.

    Returns
    -------
    RandomField
        Of the variables ``0`` to ``n - 1``, without those that the evidence knows (see
        :meth:`crfkit.graphs.RandomField.clamped`): its log Z is that of the evidence. A variable
        that no factor has gets a factor of zero scores.

    Raises
    ------
    GraphFormatError
        If the file breaks the format: the message names line and factor.
    ValueError
        If the evidence has a variable, or a value, that there is not.

    Examples
    --------
    >>> from crfkit.io import read_uai
    >>> field = read_uai(["MARKOV", "2", "2 2", "1", "2 0 1", "4", "3 1 1 3"])
    >>> field.marginal(0, 1).round(3)
    array([[0.375, 0.125],
           [0.125, 0.375]])
    >>> read_uai(["BAYES", "1", "2", "1", "1 0", "2", ".25 .75"], {0: 1}).log_partition
    -0.2876820724517809
    """
    reader = NumberReader(source)
    [kind] = reader.words(1, "MARKOV or BAYES")
    if kind.upper() not in KINDS:
        raise reader.error(f"the file begins with {kind!r}, and not with MARKOV or BAYES.")
    n_nodes = reader.integer("the number of variables")
    sizes = reader.integers(n_nodes, "the numbers of values", least=1)
    count = reader.integer("the number of factors")
    scopes = [reader.scope(f, n_nodes) for f in range(count)]
    factors = list(_tables(reader, scopes, sizes))
    reader.end()
    field = RandomField(numbered(factors, n_nodes, sizes), range(n_nodes))
    if evidence is None:
        return field
    given = evidence if isinstance(evidence, Mapping) else read_evidence(evidence)
    known = dict[Hashable, int](given.items())
    return field.clamped(known) if known else field


def _tables(reader: NumberReader, scopes: list[list[int]], sizes: list[int]) -> Iterator[Factor]:
    for f, scope in enumerate(scopes):
        shape = [sizes[v] for v in scope]
        length = reader.integer(f"the length of the table of factor {f}", most=LARGEST_TABLE)
        if length != math.prod(shape):
            raise reader.error(
                f"the table of factor {f} has {length} entries; its variables {scope} have "
                f"{math.prod(shape)} combinations of values."
            )
        yield Factor.of(scope, reader.scores(length, f"the table of factor {f}").reshape(shape))


def read_evidence(source: Source) -> dict[int, int]:
    """Read the known values of variables from a ``.uai.evid`` file.

    The numbers are a count and as many pairs; or, in the format of before 2014, the number of
    samples, 0 or 1, before these.

    Parameters
    ----------
    source : path, text or binary file, or iterable of lines
        A path with the suffix ``.gz``, ``.xz`` or ``.bz2`` is unpacked.

    Returns
    -------
    dict of int to int
        The value of each variable that is known.

    Raises
    ------
    GraphFormatError
        If the file is none of both, has several samples, or a variable twice.

    Examples
    --------
    >>> from crfkit.io import read_evidence
    >>> read_evidence(["2 5 1 7 0"])
    {5: 1, 7: 0}
    >>> read_evidence(["1", "2 5 1 7 0"])
    {5: 1, 7: 0}
    """
    reader = NumberReader(source)
    count = reader.integer("the count of the evidence")
    if count == 1 and len(reader) % 2:  # of samples: the count of pairs follows
        count = reader.integer("the count of the evidence")
    if len(reader) != 2 * count:
        raise reader.error(
            f"{len(reader)} numbers follow the count {count} of the evidence; they must be as many "
            "pairs of a variable and its value, of one sample."
        )
    numbers = reader.integers(2 * count, "the evidence")
    known = dict(zip(numbers[::2], numbers[1::2], strict=True))
    if len(known) < count:
        raise reader.error("the evidence has a variable twice.")
    return known


def write_uai(field: RandomField, target: Target) -> None:
    """Write a random field to a ``.uai`` file, as ``MARKOV``.

    The variables of the file are numbered as `field.nodes`. What is read back has the same scores,
    to the last bit.

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
    number = {node: i for i, node in enumerate(field.nodes)}
    yield f"MARKOV\n{len(field.nodes)}\n{' '.join(map(str, field.sizes))}\n{len(field.factors)}\n"
    for factor in field.factors:
        yield " ".join(map(str, [len(factor.nodes), *(number[v] for v in factor.nodes)])) + "\n"
    for factor in field.factors:
        rows = np.reshape(factor.scores, (-1, factor.scores.shape[-1] if factor.nodes else 1))
        yield f"\n{factor.scores.size}\n"
        for row in rows.tolist():
            yield " ".join(map(potential_text, row)) + "\n"
