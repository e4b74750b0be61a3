"""The bytes of a model file: a preamble, a JSON header, and aligned arrays.

========  =====  =========================================================================
bytes     count  content
========  =====  =========================================================================
0         64     two lines of text, `MAGIC`, by which a file is known
64        8      format version
72        8      size of the header
80        8      size of the file
88        8      0
96        32     BLAKE2b of bytes 0 to 95 and the header
128              header: JSON in UTF-8
========  =====  =========================================================================

All numbers are unsigned and little-endian. The arrays follow in the order of the list "arrays" of
the header, each at the next multiple of 64 and with dtype, shape, offset (from the first array)
and BLAKE2b checksum in that list. The layout follows from dtypes and shapes; the offsets are
written for other readers and are compared.

The text is for who opens the file by pickle or joblib. To pickle, a ``c`` and two lines are the
name of a module and that of something in it. It imports crfkit, finds nothing of the second name,
and stops with an error that has this name in it, which says what to do.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import struct
from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"ccrfkit\nmodel file: use crfkit.load(path), not pickle or joblib\n"
FORMAT = 1
ALIGNMENT = 64
MAX_DIMENSIONS = 32
_PREAMBLE = struct.Struct("<64sQQQQ32s")
_HASHED = 96  # bytes of the preamble that its checksum covers
_UNIT = r"(\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
_DTYPE = re.compile(rf"\|[biu]1|<[iu][248]|<f[248]|<[mM]8{_UNIT}")

_TRUST = "if you trust its source, then save the model with crfkit.save"
_PICKLE = ("a pickle", f"open it with joblib.load or pickle.load {_TRUST}")
_PACKED = f"unpack it, or open it with joblib.load, if that made it and {_TRUST[3:]}"
# What other files begin with, and what opens them.
_STRANGERS = (
    (b"ccrfkit\r\n", "one whose line ends were changed", "transfer it as a binary file"),
    (b"ccrfkit\n", "what is left of one", "the file is damaged. Fetch or save it again"),
    (b"lCRF", "a model of CRFsuite", "open it with crfkit.compat.crfsuite.load_crfsuite"),
    (b"\x80", *_PICKLE),
    (b"ccopy_re", *_PICKLE),
    (b"\x93NUMPY", "a NumPy array", "open it with numpy.load"),
    (b"PK\x03\x04", "a zip archive", "open it with skops.io.load, if skops made it, and save the "
     "model with crfkit.save; with numpy.load, if it holds arrays"),
    (b"\x78", "perhaps a compressed joblib file", f"open it with joblib.load {_TRUST}"),
    (b"\x1f\x8b", "compressed by gzip", _PACKED),
    (b"BZh", "compressed by bzip2", _PACKED),
    (b"\xfd7zXZ", "compressed by xz", _PACKED),
    (b"\x5d\0\0", "compressed by lzma", _PACKED),
    (b"\x04\x22\x4d\x18", "compressed by lz4", _PACKED),
)  # fmt: skip


class ModelFileError(ValueError):
    """A file that is no crfkit model, is damaged, or was made by a newer crfkit."""


Read = Callable[[int, int], NDArray[np.uint8]]


def align(position: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-position // ALIGNMENT) * ALIGNMENT


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype can be stored: booleans, whole numbers, floats, dates."""
    return _DTYPE.fullmatch(dtype.newbyteorder("<").str) is not None


def parse_dtype(text: Any) -> np.dtype[Any]:
    """Return a dtype of the list of allowed ones; ValueError for any other."""
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        raise ValueError(f"{text!r:.40} is no dtype of this format")
    return np.dtype(text)


def checksum(data: NDArray[np.uint8]) -> str:
    """Return the checksum of the bytes of an array."""
    return hashlib.blake2b(data.data, digest_size=16).hexdigest()


class ArrayStore:
    """The arrays of a file that is to be written."""

    def __init__(self) -> None:
        self.specs: list[dict[str, Any]] = []
        self._parts: list[NDArray[np.uint8]] = []
        self._end = 0

    def add(self, array: NDArray[Any]) -> int:
        """Append an array, little-endian and in C order, and return its number."""
        dtype, offset = array.dtype.newbyteorder("<"), align(self._end)
        data = np.asarray(array, dtype, order="C").reshape(-1).view(np.uint8)
        spec = {"dtype": dtype.str, "shape": list(array.shape), "offset": offset}
        self.specs.append(spec | {"checksum": checksum(data)})
        self._parts.append(data)
        self._end = offset + data.nbytes
        return len(self._parts) - 1

    def write(self, stream: IO[bytes], header: dict[str, Any]) -> None:
        """Write a whole file; `header` is JSON without the list of the arrays."""
        text = json.dumps(
            header | {"arrays": self.specs}, ensure_ascii=False, allow_nan=False,
            separators=(",", ":"),
        )  # fmt: skip
        body = text.encode("utf-8", "surrogatepass")
        start = align(_PREAMBLE.size + len(body))
        total = start + self._end if self._parts else _PREAMBLE.size + len(body)
        sizes = _PREAMBLE.pack(MAGIC, FORMAT, len(body), total, 0, b"")[:_HASHED]
        _write_all(stream, sizes + _header_digest(sizes, body) + body)
        position = _PREAMBLE.size + len(body)
        for spec, part in zip(self.specs, self._parts, strict=True):
            _write_all(stream, bytes(start + spec["offset"] - position))
            _write_all(stream, part.data)
            position = start + spec["offset"] + part.nbytes


def _write_all(stream: IO[bytes], data: bytes | memoryview) -> None:
    """Write all of `data`, also to a stream without a buffer, which may take a part of it."""
    rest = memoryview(data)
    while len(rest):
        taken: Any = stream.write(rest)
        if taken is None and not isinstance(stream, io.RawIOBase):
            return
        if not taken or not 0 < taken <= len(rest):
            raise OSError(
                f"write() returned {taken!r} for {len(rest)} bytes: the stream takes no more; "
                "save to a file, or to a stream that waits"
            )
        rest = rest[taken:]


def _header_digest(sizes: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(sizes + body, digest_size=32).digest()


class Container:
    """The header and the arrays of a file, whose bytes ``read(offset, size)`` returns.

    Nothing is allocated before the file is known to hold it. ModelFileError if it is no good one.
    """

    def __init__(self, read: Read, size: int) -> None:
        self.size = size
        self._read = read
        preamble = read(0, min(size, _PREAMBLE.size)).tobytes()
        _check_magic(preamble)
        header_size = _check_sizes(preamble, size)
        body = read(_PREAMBLE.size, header_size).tobytes()
        if _header_digest(preamble[:_HASHED], body) != preamble[_HASHED:]:
            raise ModelFileError("the checksum of the header is wrong: the file is damaged")
        self.header = _parse_header(body)
        self._start = align(_PREAMBLE.size + header_size)
        self._specs = self._check_layout()
        self._arrays: dict[int, NDArray[Any]] = {}

    def array(self, number: Any) -> NDArray[Any]:
        """Return an array by its number, always the same one; ValueError if it is damaged."""
        if type(number) is not int or not 0 <= number < len(self._specs):
            raise ValueError(f"there is no array {number!r:.40}")
        if number not in self._arrays:
            self._arrays[number] = self._load(number)
        return self._arrays[number]

    def _load(self, number: int) -> NDArray[Any]:
        dtype, shape, offset, nbytes = self._specs[number]
        data = self._read(self._start + offset, nbytes)
        if checksum(data) != self.header["arrays"][number]["checksum"]:
            raise ValueError(f"the checksum of array {number} is wrong")
        if dtype.kind == "b" and data.max(initial=0) > 1:
            raise ValueError(f"array {number} holds booleans that are neither 0 nor 1")
        array: NDArray[Any] = data.view(dtype).reshape(shape)
        return array.astype(dtype.newbyteorder("="), copy=False)

    def _check_layout(self) -> list[tuple[np.dtype[Any], list[int], int, int]]:
        """Return dtype, shape, offset and bytes of the arrays, which must fill the file."""
        specs, end = [], 0
        entries = self.header.get("arrays")
        if not isinstance(entries, list):
            raise ModelFileError("the header has no list of arrays")
        for number, entry in enumerate(entries):
            try:
                dtype, shape = parse_dtype(entry["dtype"]), check_shape(entry["shape"])
                offset, nbytes = align(end), math.prod(shape) * dtype.itemsize
                if entry["offset"] != offset:
                    raise ValueError(f"its offset must be {offset}")
                if self._start + offset + nbytes > self.size:
                    raise ValueError("it does not fit into the file")
            except (KeyError, TypeError, ValueError) as error:
                raise ModelFileError(f"array {number} of the header: {error}") from error
            specs.append((dtype, shape, offset, nbytes))
            end = offset + nbytes
        if specs and self._start + end != self.size:
            raise ModelFileError("the file holds bytes that belong to no array")
        return specs


def _check_magic(start: bytes) -> None:
    """Raise ModelFileError if a file does not start as a model file does."""
    if not start:
        raise ModelFileError("the file is empty: save the model again")
    if start.startswith(MAGIC) or MAGIC.startswith(start):
        return  # a file that is shorter than this text is cut short, which its size tells
    for begin, what, advice in _STRANGERS:
        if start.startswith(begin):
            raise ModelFileError(f"this is no crfkit model, but {what}: {advice}")
    raise ModelFileError(
        f"this is no crfkit model: it starts with {start[:8]!r}. crfkit.load opens what "
        "crfkit.save wrote"
    )


def _check_sizes(preamble: bytes, size: int) -> int:
    """Return the size of the header, which the file must hold."""
    if len(preamble) < _PREAMBLE.size:
        raise ModelFileError(f"the file is cut short after {size} bytes: fetch or save it again")
    _, version, header_size, total, reserved, _ = _PREAMBLE.unpack(preamble)
    if version > FORMAT:
        raise ModelFileError(
            f"the file was made by a newer crfkit (format {version}, this crfkit reads up to "
            f"{FORMAT}): upgrade crfkit"
        )
    if version < 1 or reserved:
        raise ModelFileError(f"there is no format {version}.{reserved}: the file is damaged")
    if total != size:
        raise ModelFileError(
            f"the file has {size} bytes instead of {total}: it is cut short or damaged. Fetch or "
            "save it again"
        )
    if header_size > size - _PREAMBLE.size:
        raise ModelFileError("the header does not fit into the file: the file is damaged")
    return int(header_size)


def check_shape(shape: Any) -> list[int]:
    """Return a shape; ValueError if it is none."""
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise ValueError("its shape is no short list of numbers")
    if not all(type(size) is int and 0 <= size < 2**48 for size in shape):
        raise ValueError(f"its shape is {shape!r:.80}")
    return shape


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON has no number {name}")


def _parse_header(body: bytes) -> dict[str, Any]:
    """Return the header; ModelFileError if it is no JSON object."""
    try:
        header = json.loads(body.decode("utf-8", "surrogatepass"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the header cannot be read: {error}") from error
    if not isinstance(header, dict):
        raise ModelFileError("the header is no JSON object")
    return header
