"""Loops that read tokens, which are dicts or lists of strings, into the numbers of attributes.

A name is what leads to it, a node, and a string: under the node of all tokens stand the keys of
their dicts, and under that of a key its values, if they are strings, the strings of a list, and the
keys of a dict. A table numbers the pairs of nodes and strings; the node of a pair has the pair's
number plus 1. It is open addressing with linear probing (Knuth 1998, section 6.4, algorithm L), and
holds the addresses of the strings, which a list keeps alive.

References
----------
D. E. Knuth (1998). The art of computer programming 3: sorting and searching.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, object_kernel, part
from crfkit.compiler.objects import (
    append,
    compared,
    float_of,
    hash_of,
    list_item,
    list_size,
    next_item,
    tuple_item,
    tuple_size,
    type_of,
    whole_of,
)

FACTOR = 0x1E3779B97F4A7C15
LARGEST = 1.7976931348623157e308  # of all finite numbers
ZERO = -(1 << 30)  # entries from here down stand for attributes of value 0, where these are kept
VALUED = -2  # entries from here down to `ZERO` stand for attributes whose value is not 1
NO_NUMBER, ASKED = -2, -3  # numbers of names that are not known yet
SKIP = -1  # what has no entry: an attribute that is not in the vocabulary, or has the value 0
RARE, NO_ROOM, NO_VALUES, FULL = 1, 2, 3, 4  # why reading ended: see `tokens_read`
N_ENTRIES, N_VALUES, N_ASKED, WHY = range(4)  # what the sizes are
FRAME = 5  # of a dict: position, key, value, the dict, its node
DEPTH = 12  # dicts in dicts


class NameTable(NamedTuple):
    """What is known of names; all arrays are written to."""

    slots: IntArray  # (2 C,) a hash and the number of a pair, -1 for none; C a power of two
    pairs: IntArray  # (2 M,) the address of a string and its node; M is at most C / 2
    numbers: CodeArray  # (M,) of the attributes; `NO_NUMBER` or `ASKED` if they are not known
    n_pairs: IntArray  # (1,)
    names: int  # the address of the list of the strings


class Kinds(NamedTuple):
    """The addresses of what tokens are made of."""

    of_dict: int
    of_list: int
    of_tuple: int
    of_str: int
    of_float: int
    of_numpy: int  # the float of NumPy
    of_int: int
    true: int
    false: int


class Reading(NamedTuple):
    """What comes out; entries are as of `ZERO` and `VALUED`, with numbers of pairs."""

    entries: CodeArray  # (n,)
    indptr: IntArray  # (N + 1,) where those of a token begin, and the end
    values: FloatArray  # (v,) of entries that have one
    asked: CodeArray  # (M,) pairs whose numbers are to be found out, in the order of appearance
    sizes: IntArray  # (4,) numbers of entries, values and pairs asked; why reading ended
    frames: IntArray  # (DEPTH FRAME,)
    overflow: IntArray  # (1,)


@part
def _slot_of(key: int, node: int, mask: int) -> int:
    """Return the slot where the search for a pair begins."""
    mixed = key ^ (node * FACTOR)
    return ((mixed ^ (mixed >> 32)) & mask) << 1


@kernel
def table_spread(old: IntArray, table: NameTable) -> None:
    """Put the pairs of a table into the empty slots of a larger one, which has them already."""
    mask: int = table.slots.shape[0] // 2 - 1
    for place in range(0, old.shape[0], 2):
        pair = old[place + 1]
        if pair >= 0:
            slot = _slot_of(old[place], table.pairs[2 * pair + 1], mask)
            while table.slots[slot + 1] >= 0:
                slot = (slot + 2) & (2 * mask + 1)
            table.slots[slot], table.slots[slot + 1] = old[place], pair


@part
def _pair_of(text: int, key: int, node: int, table: NameTable) -> int:
    """Return the number of a string, whose hash is given, and a node; it may be a new one."""
    mask: int = table.slots.shape[0] // 2 - 1
    slot = _slot_of(key, node, mask)
    while table.slots[slot + 1] >= 0:
        pair: int = table.slots[slot + 1]
        if table.slots[slot] == key and table.pairs[2 * pair + 1] == node:
            known = table.pairs[2 * pair]
            if known == text or compared(known, text) == 0:
                return pair
        slot = (slot + 2) & (2 * mask + 1)
    pair = table.n_pairs[0]
    table.n_pairs[0] += 1
    table.slots[slot], table.slots[slot + 1] = key, pair
    table.pairs[2 * pair], table.pairs[2 * pair + 1] = text, node
    table.numbers[pair] = NO_NUMBER
    append(table.names, text)
    return pair


@part
def _ask(pair: int, table: NameTable, out: Reading) -> None:
    """Note that the number of a pair is to be found out, if it is not known."""
    if table.numbers[pair] == NO_NUMBER:
        table.numbers[pair] = ASKED
        out.asked[out.sizes[N_ASKED]] = pair
        out.sizes[N_ASKED] += 1


@part
def _number_of(item: int, kind: int, kinds: Kinds, overflow: IntArray) -> float:
    """Return the value of a number; one that is not finite for what is none."""
    if item == kinds.true:
        return 1.0
    if item == kinds.false:
        return 0.0
    if kind == kinds.of_float or kind == kinds.of_numpy:
        return float_of(item)
    if kind == kinds.of_int:
        overflow[0] = 0
        value = float(whole_of(item, overflow))
        return value if overflow[0] == 0 else 2.0 * LARGEST
    return 2.0 * LARGEST


@part
def _strings_in(item: int, kind: int, kinds: Kinds) -> int:
    """Return how many strings there are in a list, or in a string alone; -1 for what has none."""
    if kind == kinds.of_str:
        return 1
    if kind == kinds.of_list:
        return list_size(item)
    return tuple_size(item) if kind == kinds.of_tuple else -1


@part
def _add_strings(holder: int, kind: int, size: int, node: int, n: int, table: NameTable,
                 kinds: Kinds, out: Reading) -> bool:  # fmt: skip
    """Note the strings of a list, or one alone, under a node; returns whether they are strings."""
    for number in range(size):
        item = holder
        if kind == kinds.of_list:
            item = list_item(holder, number)
        elif kind == kinds.of_tuple:
            item = tuple_item(holder, number)
        if type_of(item) != kinds.of_str:
            return False
        pair = _pair_of(item, hash_of(item), node, table)
        _ask(pair, table, out)
        out.entries[n + number] = pair
    return True


@part
def _enter(item: int, node: int, depth: int, frames: IntArray) -> None:
    """Begin to read a dict."""
    frames[FRAME * depth] = 0
    frames[FRAME * depth + 3], frames[FRAME * depth + 4] = item, node


@part
def _next_key(depth: int, frames: IntArray) -> int:
    """Find the next item of a dict, or of the one that it is in; returns its depth, -1 at last."""
    while depth >= 0:
        frame = FRAME * depth
        if next_item(frames[frame + 3], frames, frame) != 0:
            break
        depth -= 1
    return depth


@part
def _entry_of(pair: int, value: float) -> int:
    """Return the entry of a name with a value."""
    if value == 0.0:
        return ZERO - pair
    return pair if value == 1.0 else VALUED - pair


@object_kernel
def tokens_read(tokens: int, first: int, table: NameTable, kinds: Kinds, out: Reading) -> int:
    """Read a list of tokens from one on; returns how many have been read, with those before it.

    The last number of `sizes` tells why there are tokens left: one is of a rarer form; there is no
    room for its entries, or for their values; or the table is full.
    """
    n_tokens: int = min(list_size(tokens), first + out.indptr.shape[0] - 1)
    n, n_values, why = 0, 0, 0
    out.indptr[0], out.sizes[N_ASKED] = 0, 0
    for t in range(first, n_tokens):
        n_before, values_before = n, n_values
        holder, node, depth, size = list_item(tokens, t), 0, -1, 0
        kind = type_of(holder)
        if kind == kinds.of_dict:
            depth = 0
            _enter(holder, node, depth, out.frames)
        elif kind == kinds.of_str:
            why = RARE
        else:
            size = _strings_in(holder, kind, kinds)
            why = RARE if size < 0 else 0
        while why == 0:
            if n + size >= out.entries.shape[0]:
                why = NO_ROOM
            elif table.n_pairs[0] + size + 1 >= table.numbers.shape[0]:
                why = FULL
            elif not _add_strings(holder, kind, size, node, n, table, kinds, out):
                why = RARE
            n += size
            depth = _next_key(depth, out.frames)
            if depth < 0 or why != 0:
                break
            frame = FRAME * depth
            key, holder = out.frames[frame + 1], out.frames[frame + 2]
            if type_of(key) != kinds.of_str:
                why = RARE
                break
            pair = _pair_of(key, hash_of(key), out.frames[frame + 4], table)
            kind, node, size = type_of(holder), pair + 1, 0
            if kind == kinds.of_dict:
                depth += 1
                if depth == DEPTH:
                    why = RARE
                    break
                _enter(holder, node, depth, out.frames)
                continue
            size = _strings_in(holder, kind, kinds)
            if size < 0:
                size = 0
                value = _number_of(holder, kind, kinds, out.overflow)
                if not abs(value) <= LARGEST or n_values == out.values.shape[0]:
                    why = NO_VALUES if abs(value) <= LARGEST else RARE
                    break
                _ask(pair, table, out)
                out.entries[n], out.values[n_values] = _entry_of(pair, value), value
                n_values += 1 if out.entries[n] <= VALUED and out.entries[n] > ZERO else 0
                n += 1
        if why != 0:
            n, n_values, n_tokens = n_before, values_before, t
            break
        out.indptr[t - first + 1] = n
    out.sizes[N_ENTRIES], out.sizes[N_VALUES], out.sizes[WHY] = n, n_values, why
    return n_tokens


@kernel
def entries_number(numbers: CodeArray, keeps_zeros: bool, out: Reading) -> None:
    """Turn the numbers of pairs into those of their attributes; `SKIP` where there is none.

    Values of attributes that are skipped are left out.
    """
    n_values, kept = 0, 0
    for n in range(out.sizes[N_ENTRIES]):
        entry = out.entries[n]
        if entry >= 0:
            out.entries[n] = numbers[entry]
        elif entry <= ZERO:
            number = numbers[ZERO - entry]
            out.entries[n] = ZERO - number if keeps_zeros and number != SKIP else SKIP
        else:
            number = numbers[VALUED - entry]
            out.entries[n] = SKIP
            if number != SKIP:
                out.entries[n] = VALUED - number
                out.values[kept] = out.values[n_values]
                kept += 1
            n_values += 1
    out.sizes[N_VALUES] = kept
