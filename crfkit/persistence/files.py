"""Saving and loading."""

from __future__ import annotations

import io
import json
import mmap as memory_map
import os
import platform
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from crfkit._version import __version__
from crfkit.persistence.container import FORMAT, Container, ModelFileError, Read
from crfkit.persistence.decoder import Decoder
from crfkit.persistence.encoder import Encoder
from crfkit.persistence.registry import REGISTRY, known_functions

Path = str | os.PathLike[str]
Allow = Iterable[str | Callable[..., Any]]

_INNER = ("table", "root", "arrays")  # parts of the header that mean nothing to a reader


def save(obj: Any, path: Path | IO[bytes], *, metadata: dict[str, Any] | None = None) -> None:
    """Write a model, with all it needs to predict, to one file.

    The file holds data only: no code runs when it is opened. A path is replaced once the new file
    is complete and on the disk, so a failed save leaves the old one as it was.

    Parameters
    ----------
    obj : object
        An estimator of crfkit, a Pipeline or FeatureUnion of such, or any value made of None,
        numbers, strings, lists, dicts, sets, arrays, sparse matrices in rows and objects of
        registered classes (see `register`). Functions are stored by their import name. Callbacks
        (``set_callbacks``) belong to a process, and are left out.
    path : str, path or binary file object
        Where to write. The suffix is free; ``.crfkit`` is customary.
    metadata : dict, optional
        Anything that JSON can hold, such as metrics: `describe` shows it.

    Raises
    ------
    TypeError, ValueError
        If a part cannot be saved: the message names its place; if one contains itself, or is
        nested too deeply.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import crfkit, os, tempfile
    >>> crf = crfkit.CRFClassifier().fit([[{"w": "a"}, {"w": "b"}]], [["A", "B"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tagger.crfkit")
    ...     crfkit.save(crf, path, metadata={"accuracy": 1.0})
    ...     describe(path)["metadata"], crfkit.load(path).predict([[{"w": "b"}]])
    ({'accuracy': 1.0}, [['B']])
    """
    _check_place(path, "write")
    encoder, summary = Encoder(), _Summary()
    parameters = obj.get_params(deep=False) if hasattr(obj, "get_params") else {}
    classes = getattr(obj, "classes_", None)
    header = {
        "format": FORMAT,
        "crfkit": __version__,
        "libraries": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "class": REGISTRY.name(type(obj)) or type(obj).__qualname__,
        "parameters": {name: summary.repr(value) for name, value in parameters.items()},
        "labels": None if classes is None else [x if type(x) is str else repr(x) for x in classes],
        "metadata": _plain_metadata(metadata),
        "root": encoder.value(obj),
        "table": encoder.table,
    }
    if isinstance(path, (str, os.PathLike)):
        from crfkit.io.atomic import open_for_writing

        with open_for_writing(os.fspath(path)) as file:
            encoder.arrays.write(file, header)
    else:
        encoder.arrays.write(path, header)


def dumps(obj: Any, *, metadata: dict[str, Any] | None = None) -> bytes:
    """Return as bytes what `save` would write; parameters and errors are the same."""
    stream = io.BytesIO()
    save(obj, stream, metadata=metadata)
    return stream.getvalue()


def load(path: Path | IO[bytes], *, allow: Allow = (), mmap: bool = False) -> Any:
    """Read a file that `save` wrote.

    Nothing of the file is executed, and it is checked to the end, checksums and bounds of arrays
    included, before the object is returned.

    Parameters
    ----------
    path : str, path or binary file object
        What to read.
    allow : iterable of str or functions
        The functions the model may use, as ``"module:name"`` or themselves. A name that the model
        uses is imported, which runs that module.
    mmap : bool, default=False
        Map the arrays from the file, read-only, instead of copying them: processes that load the
        same file share the memory. Checksums are tested here too. The file must not be edited in
        place as long as the model lives; `save` replaces it, which is safe.

    Returns
    -------
    object
        Equal to the one that was saved, arrays and objects shared as they were.

    Raises
    ------
    ModelFileError
        If the file is no crfkit model, damaged, or of a newer crfkit. It is a ValueError.
    ValueError
        If the model uses functions that are not allowed: the message names them.
    OSError
        If the file cannot be read.
    """
    known = known_functions(allow)
    with _naming(path), _opened(path, mmap) as (read, size):
        return Decoder(Container(read, size), known).decode()


def loads(data: bytes | bytearray | memoryview, *, allow: Allow = ()) -> Any:
    """Return the object of the bytes that `dumps` made; `allow` and errors are those of `load`."""
    known = known_functions(allow)
    with _naming("the data"):
        return Decoder(Container(_reader(data), len(data)), known).decode()


def describe(path: Path | IO[bytes]) -> dict[str, Any]:
    """Return what a file that `save` wrote says of its model, without loading it.

    Returns
    -------
    dict
        "format" and "crfkit", the version of the format and of the crfkit that wrote it;
        "libraries", the versions of others; "class" of the object; its "parameters" and "labels" as
        texts; "metadata" as given to `save`. ModelFileError as for `load`.
    """
    with _naming(path), _opened(path, mmap=False) as (read, size):
        header = Container(read, size).header
    return {name: part for name, part in header.items() if name not in _INNER}


class SaveMixin:
    """The method `save` for estimators."""

    def save(self, path: Path | IO[bytes], *, metadata: dict[str, Any] | None = None) -> None:
        """Write the model to a path or binary file, as ``crfkit.save`` does.

        ``crfkit.load`` reads it. `metadata` is anything that JSON can hold, such as metrics.
        """
        save(self, path, metadata=metadata)


class _Summary(reprlib.Repr):
    """Short texts that do not change from one process to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 200

    def repr_instance(self, x: Any, level: int) -> str:
        """Leave the address out."""
        return re.sub(r" at 0x[0-9a-fA-F]+", "", super().repr_instance(x, level))


def _plain_metadata(metadata: dict[str, Any] | None) -> Any:
    """Return metadata as JSON would give them back."""
    if not isinstance(metadata, (dict, type(None))):
        raise TypeError(f"metadata must be a dict, not {type(metadata).__name__}.")
    try:
        text = json.dumps(metadata or {}, allow_nan=False, default=_plain_number)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"metadata must be what JSON can hold (None for NaN or infinity): {error}."
        ) from error
    return json.loads(text)


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r:.60} is a {type(value).__name__}")


def _check_place(place: Any, method: str) -> None:
    """Raise TypeError if something is neither a path nor a binary file."""
    if isinstance(place, (bytes, bytearray, memoryview)):
        raise TypeError(
            "path must be a string, a path or a binary file, not bytes: "
            "crfkit.persistence.loads(data) reads a model from bytes."
        )
    if isinstance(place, BaseEstimator):
        raise TypeError("path is an estimator: crfkit.save(model, path) takes the model first.")
    if isinstance(place, io.TextIOBase):
        raise TypeError("path is a file of text; open it in binary mode.")
    if not isinstance(place, (str, os.PathLike)) and not hasattr(place, method):
        raise TypeError(
            f"path must be a string, a path or a binary file, not {type(place).__name__}."
        )


@contextmanager
def _naming(source: Any) -> Iterator[None]:
    """Put the name of the file before the messages of errors in its content."""
    try:
        yield
    except ValueError as error:
        kind = ModelFileError if isinstance(error, ModelFileError) else ValueError
        path = isinstance(source, (str, os.PathLike))
        name = os.fspath(source) if path else getattr(source, "name", "the file")
        raise kind(f"{name}: {error}.") from error


@contextmanager
def _opened(source: Path | IO[bytes], mmap: bool) -> Iterator[tuple[Read, int]]:
    """Open a source: a function that reads a part of it, and its size."""
    _check_place(source, "read")
    if not isinstance(source, (str, os.PathLike)):
        if mmap:
            raise ValueError("mmap=True needs a path, not a file object")
        data = source.read()
        yield _reader(data), len(data)
        return
    with open(source, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if mmap and size:
            buffer = memory_map.mmap(file.fileno(), size, access=memory_map.ACCESS_READ)
            yield _reader(buffer, copy=False), size
        elif os.path.isfile(source):
            yield lambda offset, count: _read_file(file, offset, count), size
        else:  # a pipe does not know its size
            data = file.read()
            yield _reader(data), len(data)


def _reader(buffer: Any, copy: bool = True) -> Read:
    """Return a function that reads a part of a buffer."""

    def read(offset: int, size: int) -> NDArray[np.uint8]:
        part = np.frombuffer(buffer, np.uint8, size, offset) if size else np.empty(0, np.uint8)
        return part.copy() if copy else part

    return read


def _read_file(file: IO[bytes], offset: int, size: int) -> NDArray[np.uint8]:
    """Return a part of a file."""
    part = np.empty(size, np.uint8)
    file.seek(offset)
    if file.readinto(part.data) != size:  # type: ignore[attr-defined]
        raise ModelFileError("the file was cut short while it was being read")
    return part
