"""CRFsuite's binary model files: read and written as plain arrays.

A file is a header of 48 bytes; the weights (``FEAT``); two constant databases that map strings to
numbers and back, of labels and of attributes (``CQDB``); and the numbers of the weights of each
label (``LFRF``) and attribute (``AFRF``). All numbers are little-endian. The lists of weights
follow from the weights, so the reader does not look at them.
"""

from __future__ import annotations

import os
import struct
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import FloatArray, IntArray
from crfkit.io._cqdb import Damage, pack_names, unpack_names
from crfkit.io.atomic import open_for_writing

Source = str | os.PathLike[str] | bytes | IO[bytes]
Target = str | os.PathLike[str] | IO[bytes]

HEADER = struct.Struct("<4sI4s9I")
CHUNK = struct.Struct("<4sII")
VERSION = 100
FIELDS = (
    "magic", "size", "type", "version", "num_features", "num_labels", "num_attrs",
    "off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs",
)  # fmt: skip
# A file of 100 kB could name so many labels that the table of their steps fills the memory.
MOST_LABELS = 1 << 13
STATE, STEP = 0, 1
WEIGHT = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])


class ModelFormatError(ValueError):
    """A file is no CRFsuite model, or a damaged one; or a model does not fit the format."""


class CRFsuiteModel(NamedTuple):
    """The content of a CRFsuite model.

    Attributes
    ----------
    labels, attributes : list of K and of D str
        In the order of their numbers.
    state : csr_array of shape (D, K)
        Weights of the (attribute, label) pairs that are stored.
    transitions, has_transition : ndarray of shape (K, K), float and bool
        Weights of the (label, next label) pairs, 0 where none is stored, and which are stored.
    header : dict or None
        The fields of the file's header as text, by the names that CRFsuite's dump gives them. Not
        used for writing.
    """

    labels: list[str]
    attributes: list[str]
    state: sp.csr_array
    transitions: FloatArray
    has_transition: NDArray[np.bool_]
    header: dict[str, str] | None = None


def read_crfsuite_model(source: Source) -> CRFsuiteModel:
    """Read a CRFsuite model: a file name, the content of a file, or an open binary file.

    The format is that of CRFsuite (Okazaki 2007), model type ``FOMC``, version 100. Names are
    decoded as UTF-8; bytes that are not UTF-8 become surrogate escapes, which
    :func:`write_crfsuite_model` turns back.

    Raises
    ------
    ModelFormatError, OSError
        If it is not a CRFsuite model, or damaged: the message names the file and the part; if the
        file cannot be read.
    """
    name, data = _read_bytes(source)
    try:
        return _parse(data)
    except Damage as error:
        raise ModelFormatError(f"{name}: {error}") from error


def write_crfsuite_model(model: CRFsuiteModel, target: Target) -> None:
    """Write a CRFsuite model, as CRFsuite writes it, to a path or binary stream.

    A file is replaced once the model is complete, or not at all.

    Raises
    ------
    ModelFormatError
        If a name occurs twice or holds the character NUL, shapes do not match, a weight is not
        finite, or the file would exceed 4 GiB.
    TypeError, OSError
        If a label or attribute is not a string; if the file cannot be written.
    """
    try:
        data = _assemble(model)
    except Damage as error:
        raise ModelFormatError(f"the model cannot be written for CRFsuite: {error}") from error
    if isinstance(target, (str, os.PathLike)):
        with open_for_writing(os.fspath(target)) as stream:
            stream.write(data)
    else:
        target.write(data)


def _read_bytes(source: Source) -> tuple[str, bytes]:
    """Return the name of a source and its content."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "<bytes>", bytes(source)
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as stream:
            return os.fspath(source), stream.read()
    data = source.read()
    name = str(getattr(source, "name", "<stream>"))
    if not isinstance(data, bytes):
        raise TypeError(f"{name} was opened as text: open it in binary mode, open(path, 'rb').")
    return name, data


def _parse(data: bytes) -> CRFsuiteModel:
    if data[:4] != b"lCRF":
        raise Damage(f"not a CRFsuite model: it starts with {data[:4]!r} instead of b'lCRF'")
    if len(data) < HEADER.size:
        raise Damage(f"cut short: {len(data)} bytes, the header alone has {HEADER.size}")
    fields = HEADER.unpack_from(data)
    _, size, kind, version, _, n_labels, n_attributes, *places = fields
    if kind != b"FOMC" or version != VERSION:
        raise Damage(
            f"model type {kind!r}, version {version}; only first-order models (b'FOMC') of "
            f"version {VERSION} can be read"
        )
    if size != len(data):
        raise Damage(f"the header says {size} bytes, but there are {len(data)}: fetch it again")
    if n_labels > MOST_LABELS:
        raise Damage(f"{n_labels} labels are more than the {MOST_LABELS} that can be read")
    weights = _read_weights(data, places[0])
    labels = unpack_names(data, places[1], n_labels, "label")
    attributes = unpack_names(data, places[2], n_attributes, "attribute")
    step = weights["kind"] == STEP
    state = _matrix(weights[~step], (n_attributes, n_labels), ("attribute", "label"))
    steps = _matrix(weights[step], (n_labels, n_labels), ("label", "next label"))
    has_transition = np.zeros(steps.shape, bool)
    has_transition[weights["source"][step], weights["target"][step]] = True
    texts = [f.decode() if isinstance(f, bytes) else str(f) for f in fields[:7]]
    header = dict(zip(FIELDS, [*texts, *(f"0x{at:X}" for at in places)], strict=True))
    return CRFsuiteModel(labels, attributes, state, steps.toarray(), has_transition, header)


def _read_weights(data: bytes, at: int) -> NDArray[Any]:
    if at + CHUNK.size > len(data):
        raise Damage(f"the weights should be at byte {at}, behind the end")
    magic, _, count = CHUNK.unpack_from(data, at)
    if magic != b"FEAT":
        raise Damage(f"no weights at byte {at}: {magic!r} instead of b'FEAT'")
    at += CHUNK.size
    if count > (len(data) - at) // WEIGHT.itemsize:
        raise Damage(f"{count} weights at byte {at} do not fit into {len(data)} bytes")
    weights = np.frombuffer(data, WEIGHT, count, at)
    unknown = weights["kind"] > STEP
    if unknown.any():
        place = int(np.argmax(unknown))
        raise Damage(f"weight {place} is of the unknown kind {weights['kind'][place]}")
    return weights


def _matrix(weights: NDArray[Any], shape: tuple[int, int], axes: tuple[str, str]) -> sp.csr_array:
    """Return weights as a matrix that stores zeros too."""
    for field, count, axis in zip(("source", "target"), shape, axes, strict=True):
        wrong = weights[field] >= count
        if wrong.any():
            number = int(weights[field][np.argmax(wrong)])
            raise Damage(f"a weight is for {axis} {number}, but there are only {count}")
    values = weights["weight"]
    if not np.isfinite(values).all():
        raise Damage(f"a weight is {values[np.argmin(np.isfinite(values))]}")
    pairs = weights["source"].astype(np.int64), weights["target"].astype(np.int64)
    matrix = sp.csr_array(sp.coo_array((values.astype(np.float64), pairs), shape))
    if matrix.nnz != len(weights):
        raise Damage(f"there are two weights for the same pair of {axes[0]} and {axes[1]}")
    matrix.sort_indices()
    return matrix


def _assemble(model: CRFsuiteModel) -> bytes:
    """Return the bytes of a file."""
    state = _check_model(model)
    n_labels, n_attributes = len(model.labels), len(model.attributes)
    sources, targets = np.nonzero(model.has_transition)
    weights = np.empty(state.nnz + len(sources), WEIGHT)
    weights["kind"] = np.repeat([STATE, STEP], [state.nnz, len(sources)])
    owners = np.repeat(np.arange(n_attributes), np.diff(state.indptr))
    weights["source"] = np.append(owners, sources)
    weights["target"] = np.append(state.indices, targets)
    weights["weight"] = np.append(state.data, model.transitions[sources, targets])
    counts = np.bincount(sources, minlength=n_labels)
    out, places = bytearray(HEADER.size), []
    for part in (
        CHUNK.pack(b"FEAT", CHUNK.size + weights.nbytes, len(weights)) + weights.tobytes(),
        pack_names(model.labels, "label"),
        pack_names(model.attributes, "attribute"),
    ):
        places.append(len(out))
        out += part
    for magic, numbers, first, extra in (
        # Two entries are left for weights of first and last labels, which are no longer in use.
        (b"LFRF", counts, state.nnz, 2),
        (b"AFRF", np.diff(state.indptr), 0, 0),
    ):
        out += b"\0" * (-len(out) % 4)
        places.append(len(out))
        out += _references(magic, numbers, first, extra, len(out))
    size = len(out)
    if size > 0xFFFFFFFF:
        raise Damage(f"{size} bytes are more than the 4 GiB that a file may have")
    HEADER.pack_into(out, 0, b"lCRF", size, b"FOMC", VERSION, 0, n_labels, n_attributes, *places)
    return bytes(out)


def _check_model(model: CRFsuiteModel) -> sp.csr_array:
    """Return the state weights with sorted indices; Damage if shapes or weights do not fit."""
    size = len(model.labels)
    for name, found, shape in (
        ("state", model.state.shape, (len(model.attributes), size)),
        ("transitions", model.transitions.shape, (size, size)),
        ("has_transition", model.has_transition.shape, (size, size)),
    ):
        if found != shape:
            raise Damage(f"{name} has the shape {found}, but the names ask for {shape}")
    if not (np.isfinite(model.state.data).all() and np.isfinite(model.transitions).all()):
        raise Damage("a weight is NaN or infinite")
    if np.any(model.transitions[~model.has_transition]):
        raise Damage("a transition has a weight but is not marked in has_transition")
    state = sp.csr_array(model.state)
    state.sum_duplicates()
    return state


def _references(magic: bytes, counts: IntArray, first: int, extra: int, at: int) -> bytes:
    """Return the numbers of the weights of each label or attribute, counted from `first`.

    `at` is the byte of the file that they begin at; `extra` entries stay empty.
    """
    rows = len(counts)
    numbers = np.arange(first, first + counts.sum())
    starts = np.concatenate([[0], np.cumsum(counts)])
    head = CHUNK.size + 4 * (rows + extra)
    offsets = at + head + 4 * (starts[:-1] + np.arange(rows))
    # Each row is its count, then its numbers.
    body = np.insert(numbers, starts[:-1], counts)
    parts = np.concatenate([offsets, np.zeros(extra, np.int64), body]).astype("<u4")
    return CHUNK.pack(magic, head + 4 * len(body), rows + extra) + parts.tobytes()
