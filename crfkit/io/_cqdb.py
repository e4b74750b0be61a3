"""The constant database of CRFsuite: strings to numbers by hashing, and back by an array.

256 hash tables with open addressing, each twice as large as it has entries. The hash is lookup3
(Jenkins 2006), of the bytes of a string and the NUL that ends it.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crfkit._types import IdArray, IntArray

HEAD = struct.Struct("<4s5I")
BYTE_ORDER = 0x62445371
TABLES = 256
RECORDS = HEAD.size + 8 * TABLES  # where the strings begin
RECORD = np.dtype([("number", "<u4"), ("size", "<u4")])


class Damage(ValueError):
    """Damage of a file; the message does not name it."""


def unpack_names(data: bytes, at: int, count: int, kind: str) -> list[str]:
    """Return the strings of a database that begins at byte `at`, by their numbers."""
    if at + RECORDS > len(data):
        raise Damage(f"the {kind}s should be at byte {at}, behind the end")
    magic, size, _, order, stored, backward = HEAD.unpack_from(data, at)
    if magic != b"CQDB" or order != BYTE_ORDER:
        raise Damage(f"no {kind}s at byte {at}: {magic!r}, byte order {order:#x}")
    if at + size > len(data):
        raise Damage(f"the {kind}s at byte {at} do not fit into {len(data)} bytes")
    if not count:
        return []
    if stored < count or not RECORDS <= backward <= size - 4 * count:
        raise Damage(f"the list of {count} {kind}s at byte {at} is damaged")
    database = np.frombuffer(data, np.uint8, size, at)
    places = np.frombuffer(data, "<u4", count, at + backward).astype(np.int64)
    return _strings(data, at + places, _string_sizes(database, places, kind), kind)


def _string_sizes(database: NDArray[np.uint8], places: IntArray, kind: str) -> IntArray:
    """Return how many bytes each string has, without the NUL at its end."""
    size = len(database)
    outside = (places < RECORDS) | (places > size - RECORD.itemsize - 1)
    if outside.any():
        raise Damage(f"{kind} {int(np.argmax(outside))} is stored outside of the list")
    heads = database[places[:, None] + np.arange(RECORD.itemsize)].view(RECORD)[:, 0]
    sizes = heads["size"].astype(np.int64)
    ends = places + RECORD.itemsize + sizes
    wrong = (heads["number"] != np.arange(len(places))) | (sizes < 1) | (ends > size)
    wrong |= database[np.minimum(ends, size) - 1] != 0
    if wrong.any() or sizes.sum() > size:  # strings that overlap could be made very large
        raise Damage(f"{kind} {int(np.argmax(wrong))} is damaged")
    inner: IntArray = sizes - 1
    return inner


def _strings(data: bytes, places: IntArray, sizes: IntArray, kind: str) -> list[str]:
    begins = places + RECORD.itemsize
    names = [
        data[begin:end].decode("utf-8", "surrogateescape")
        for begin, end in zip(begins.tolist(), (begins + sizes).tolist(), strict=True)
    ]
    if any("\0" in name for name in names):
        raise Damage(f"a {kind} goes on behind its end")
    if len(set(names)) < len(names):
        raise Damage(f"a {kind} is stored twice")
    return names


def pack_names(names: Sequence[str], kind: str) -> bytes:
    """Return the database of strings with the numbers 0, 1, ...; Damage if one does not fit."""
    keys = _encode(names, kind)
    sizes = np.fromiter(map(len, keys), np.int64, len(keys))
    places = RECORDS + np.append(0, np.cumsum(sizes + RECORD.itemsize))
    heads = np.empty(len(keys), RECORD)
    heads["number"], heads["size"] = np.arange(len(keys)), sizes
    raw = heads.tobytes()
    records = b"".join(part for i, key in enumerate(keys) for part in (raw[8 * i : 8 * i + 8], key))
    buckets, references = _tables(hash_keys(keys), places[:-1], int(places[-1]))
    backward = int(places[-1]) + buckets.nbytes
    size = backward + 4 * len(keys)
    if size > 0xFFFFFFFF:
        raise Damage(f"the {kind}s alone have {size} bytes, more than the 4 GiB of a file")
    head = HEAD.pack(b"CQDB", size, 0, BYTE_ORDER, len(keys), backward if keys else 0)
    tail = places[:-1].astype("<u4").tobytes()
    return b"".join([head, references.tobytes(), records, buckets.tobytes(), tail])


def _encode(names: Sequence[str], kind: str) -> list[bytes]:
    """Return strings as UTF-8 with a NUL at the end."""
    keys = []
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"the {kind} {name!r} is not a string; CRFsuite knows only strings.")
        if "\0" in name:
            raise Damage(f"the {kind} {name!r} holds the character NUL, which ends a string there")
        try:
            keys.append(name.encode("utf-8", "surrogateescape") + b"\0")
        except UnicodeEncodeError as error:
            raise Damage(f"the {kind} {name!r} cannot be encoded as UTF-8") from error
    if len(set(keys)) < len(keys):
        twice = Counter(names).most_common(1)[0][0]
        raise Damage(f"the {kind} {twice!r} occurs twice")
    return keys


def _tables(hashes: IdArray, places: IntArray, begin: int) -> tuple[NDArray[np.void], IdArray]:
    """Return the buckets of all tables, and where each table is and how large."""
    table = (hashes % TABLES).astype(np.int64)
    sizes = 2 * np.bincount(table, minlength=TABLES)
    firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    homes = (hashes >> np.uint32(8)).astype(np.int64) % np.maximum(sizes[table], 1)
    slots = _slots(homes, firsts[table], sizes[table], int(sizes.sum()))
    buckets = np.zeros(int(sizes.sum()), [("hash", "<u4"), ("place", "<u4")])
    buckets["hash"][slots] = hashes
    buckets["place"][slots] = places
    references = np.where(sizes > 0, begin + buckets.itemsize * firsts, 0)
    return buckets, np.column_stack([references, sizes]).astype("<u4")


def _slots(homes: IntArray, firsts: IntArray, sizes: IntArray, total: int) -> IntArray:
    """Return the first free slot for each entry, in their order, from its home on, in a circle."""
    taken = bytearray(total)
    slots = []
    for home, first, size in zip(homes.tolist(), firsts.tolist(), sizes.tolist(), strict=True):
        while taken[first + home]:
            home = (home + 1) % size
        taken[first + home] = 1
        slots.append(first + home)
    return np.array(slots, np.int64)


def hash_keys(keys: Sequence[bytes]) -> IdArray:
    """Return lookup3's 32-bit hash of each key, with the initial value 0 (Jenkins 2006).

    Keys must not be empty. All keys advance together, 12 bytes at a time.
    """
    sizes = np.fromiter(map(len, keys), np.int64, len(keys))
    blocks = -(-sizes // 12)
    order = np.argsort(-blocks, kind="stable")
    padded = b"".join(keys[i].ljust(12 * int(blocks[i]), b"\0") for i in order.tolist())
    words = np.frombuffer(padded, "<u4").reshape(-1, 3).T.astype(np.uint32)
    blocks = blocks[order]
    last = np.cumsum(blocks) - 1
    start = (0xDEADBEEF + sizes[order]) & 0xFFFFFFFF
    state = np.tile(start.astype(np.uint32), (3, 1))
    for block in range(int(blocks.max(initial=1)) - 1):
        count = int(np.searchsorted(-blocks, -(block + 1), side="left"))  # those with more blocks
        active = state[:, :count]
        active += words[:, last[:count] - blocks[:count] + 1 + block]
        _mix(*active)
    state += words[:, last]
    _finish(*state)
    hashes = np.empty(len(keys), np.uint32)
    hashes[order] = state[2]
    return hashes


def _rotated(x: IdArray, bits: int) -> IdArray:
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))


def _mix(a: IdArray, b: IdArray, c: IdArray) -> None:
    """Mix three words in place, reversibly."""
    for bits in (4, 6, 8, 16, 19, 4):
        a -= c
        a ^= _rotated(c, bits)
        c += b
        a, b, c = b, c, a


def _finish(a: IdArray, b: IdArray, c: IdArray) -> None:
    """Mix three words in place so that each bit of each counts in the last one."""
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c ^= b
        c -= _rotated(b, bits)
        a, b, c = b, c, a
