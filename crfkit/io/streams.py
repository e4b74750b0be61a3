"""Lines in and text out: paths by suffix, open streams, line iterables; errors name the file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import IO, Any, Literal, TypeGuard

from crfkit._progress import Task, is_heard, working
from crfkit.io.atomic import open_for_writing

# Of a line: what is packed may unfold to a thousand times its size.
MOST_CHARACTERS = 2**22
BUFFER = 1 << 17  # bytes that are read at a time, where it is told how much has been read
MOST_OF_A_FILE = 2**30  # of what is read as a whole

Source = str | os.PathLike[str] | IO[str] | IO[bytes] | Iterable[str]
Target = str | os.PathLike[str] | IO[str] | IO[bytes]


class ColumnFormatError(ValueError):
    """A column file, or the sequences to be written to one, break the format.

    The message names the place (file and line, or sequence, position and column) and a remedy.
    """


def _is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(source, str | os.PathLike)


def _packed(raw: Any, path: str, mode: Literal["rb", "wb"]) -> Any:
    """Return the file by which a path is packed or unpacked, None where its suffix names none."""
    match os.path.splitext(path)[1].lower():
        case ".gz":  # without its name and the time: equal data should give equal files
            return gzip.GzipFile(filename="", fileobj=raw, mode=mode, mtime=0)
        case ".xz":
            return lzma.LZMAFile(raw, mode)
        case ".bz2":
            return bz2.BZ2File(raw, mode)
        case ".zst":
            return _zstandard(raw, path, mode)
        case ".zip":
            return _only_member(raw, path, mode)
    return None


def _zstandard(raw: Any, path: str, mode: Literal["rb", "wb"]) -> Any:
    """Return a file of Zstandard, which Python has since 3.14; ColumnFormatError without it."""
    with suppress(ImportError):
        return import_module("compression.zstd").ZstdFile(raw, mode)
    with suppress(ImportError):
        package = import_module("zstandard")
        if mode == "wb":
            return package.open(raw, mode, closefd=False)
        return io.BufferedReader(_Frames(raw, package.ZstdDecompressor().decompressobj))
    raise ColumnFormatError(
        f"{path} is packed by Zstandard, which Python reads since 3.14: install the package "
        "`zstandard`, or unpack the file (`zstd -d`)"
    )


class _Frames(io.RawIOBase):
    """What a file of Zstandard holds; EOFError where it is cut short, which the package passes."""

    def __init__(self, raw: Any, frame: Callable[[], Any]) -> None:
        self._raw, self._new, self._frame, self._left = raw, frame, None, b""

    def readable(self) -> bool:
        """Tell that there is something to read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack a little."""
        while not self._left:
            packed = self._raw.read(4096)  # which may be many thousand times as much
            if not packed:
                if self._frame is not None:
                    raise EOFError("the file ends within a frame")
                return 0
            while packed:
                frame = self._frame or self._new()
                self._left += frame.decompress(packed)
                packed, self._frame = frame.unused_data, None if frame.eof else frame
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


class _NewMember(io.RawIOBase):
    """The one file of a new zip archive; equal data give equal archives."""

    def __init__(self, raw: Any, path: str) -> None:
        self._archive = zipfile.ZipFile(raw, "w")
        member = zipfile.ZipInfo(os.path.basename(path)[: -len(".zip")] or "data")  # without time
        member.compress_type = zipfile.ZIP_DEFLATED
        self._file = self._archive.open(member, "w", force_zip64=True)

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Pack data."""
        return self._file.write(data)

    def close(self) -> None:
        """End the file and the archive."""
        if not self.closed:
            self._file.close()
            self._archive.close()
        super().close()


def _only_member(raw: Any, path: str, mode: Literal["rb", "wb"]) -> Any:
    """Return the one file of a zip archive; ColumnFormatError if there are others."""
    if mode == "wb":
        return _NewMember(raw, path)
    try:
        archive = zipfile.ZipFile(raw)
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) == 1:
            return archive.open(names[0])
    except (zipfile.BadZipFile, RuntimeError, OSError, ValueError) as error:
        raise ColumnFormatError(f"{path}: the zip archive cannot be read ({error})") from error
    raise ColumnFormatError(
        f"{path} is a zip archive of {len(names)} files, {names[:5]!r}: unpack it, or pass one of "
        "them, zipfile.ZipFile(path).open(name)"
    )


def source_name(source: Source) -> str:
    """Return the name of `source` for error messages."""
    if _is_path(source):
        return os.fspath(source)
    return str(getattr(source, "name", "<stream>" if hasattr(source, "read") else "<lines>"))


@contextmanager
def open_bytes(path: str) -> Iterator[IO[bytes]]:
    """Open a path for reading, unpacked by its suffix."""
    with ExitStack() as stack:
        binary: IO[bytes] = stack.enter_context(_open_told(path, stack))
        if packed := _packed(binary, path, "rb"):
            binary = stack.enter_context(packed)
        yield binary


def read_packed(path: str) -> bytes:
    """Return what a path holds, unpacked by its suffix; ColumnFormatError if that is damaged."""
    try:
        with open_bytes(path) as binary:
            return binary.read()
    except Exception as error:
        _tell_damage(error, path)
        raise


class _ToldFile(io.FileIO):
    """A file that tells how much of it has been read."""

    task: Task

    def readinto(self, buffer: Any) -> int | None:
        found = super().readinto(buffer)
        self.task.update(self.tell())
        return found


def _open_told(path: str, stack: ExitStack) -> IO[bytes]:
    """Open a path for reading; where somebody listens, it tells how much has been read."""
    if not (is_heard() and os.path.isfile(path)):
        return open(path, "rb")
    raw = _ToldFile(path)
    raw.task = stack.enter_context(working("reading", os.path.getsize(path), "bytes"))
    return io.BufferedReader(raw, BUFFER)


@contextmanager
def _open_lines(source: Any, encoding: str) -> Iterator[Iterable[str]]:
    if _is_path(source):
        path = os.fspath(source)
        if "\n" in path:
            raise ValueError("source is a text, not a path; pass io.StringIO(text) instead")
        with open_bytes(path) as binary, io.TextIOWrapper(binary, encoding, newline="\n") as text:
            yield _lines(text)
    elif hasattr(source, "read") and isinstance(source.read(0), bytes):
        text = io.TextIOWrapper(source, encoding, newline="\n")
        try:
            yield _lines(text)
        finally:
            # The caller's stream stays open; it may have been closed by the caller meanwhile.
            with suppress(ValueError):
                text.detach()
    else:
        yield source


def _lines(text: IO[str]) -> Iterator[str]:
    """Yield the lines of a file, those that are too long in parts."""
    return iter(partial(text.readline, MOST_CHARACTERS), "")


# What packed files begin with.
_BEGINNINGS = {
    b"\x1f\x8b": "gzip (.gz)",
    b"\xfd7zXZ": "xz (.xz)",
    b"BZh": "bzip2 (.bz2)",
    b"\x28\xb5\x2f\xfd": "Zstandard (.zst)",
    b"PK\x03\x04": "zip (.zip), or a workbook",
    b"7z\xbc\xaf": "7z",
    b"PAR1": "Parquet",
    b"ccrfkit\n": "crfkit (a model)",
}


def _undecodable(name: str, before: int, error: UnicodeDecodeError) -> ColumnFormatError:
    kinds = [kind for start, kind in _BEGINNINGS.items() if error.object.startswith(start)]
    if before == 0 and kinds:
        return ColumnFormatError(
            f"{name} is no text: it begins as files of {kinds[0]} do; unpack or export it as text, "
            "or give the path its suffix, if that is .gz, .xz, .bz2, .zst or .zip"
        )
    # Decoding goes chunk by chunk: the lines of this chunk before the bad byte were not delivered.
    inside = error.object[: error.start].decode(error.encoding, "ignore").count("\n")
    return ColumnFormatError(
        f"{name}, line {before + inside + 1}: byte 0x{error.object[error.start]:02x} cannot be "
        f"decoded as {error.encoding} ({error.reason}); pass the encoding of the file, "
        f"for example encoding='latin-1'"
    )


def without_end(line: object, name: str, number: int) -> str:
    """Return a line without its end; errors name the file and the line."""
    if not isinstance(line, str):
        raise TypeError(f"{name}, line {number}: expected str, got {type(line).__name__}")
    if len(line) >= MOST_CHARACTERS:
        raise ColumnFormatError(
            f"{name}, line {number}: the line is longer than {MOST_CHARACTERS:,} characters; is "
            "this a file of text with a token a line?"
        )
    line = line.removesuffix("\n").rstrip("\r")
    if "\n" in line:
        raise ColumnFormatError(
            f"{name}, line {number}: the item holds several lines; pass one line per item"
        )
    return line.removeprefix("\ufeff") if number == 1 else line


def iter_lines(source: Source, encoding: str) -> Iterator[str]:
    r"""Yield the lines of `source` without their ends; only ``\n`` and ``\r\n`` end a line."""
    name = source_name(source)
    for number, line in enumerate(raw_lines(source, encoding), start=1):
        yield without_end(line, name, number)


def raw_lines(source: Source, encoding: str) -> Iterator[Any]:
    """Yield the lines of `source` as they are, those that are too long in parts."""
    name, number = source_name(source), 0
    with _open_lines(source, encoding) as lines:
        try:
            for line in lines:
                number += 1
                yield line
        except UnicodeDecodeError as error:
            raise _undecodable(name, number, error) from error
        except Exception as error:
            _tell_damage(error, f"{name}, after line {number}")
            raise


def _tell_damage(error: Exception, where: str) -> None:
    """Raise ColumnFormatError if an error tells that packed data are damaged."""
    kinds = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
    known = isinstance(error, kinds) or type(error).__name__ == "ZstdError"
    # An errno marks trouble of the machine; damaged data raise without one.
    if known and getattr(error, "errno", None) is None:
        raise ColumnFormatError(
            f"{where}: the compressed data are cut short or damaged ({error}); fetch or write the "
            "file again"
        ) from error


def read_text(source: Source, encoding: str) -> str:
    """Return all of a source, ends of lines and a byte order mark included."""
    return joined(raw_lines(source, encoding), source_name(source))


def joined(lines: Iterable[Any], name: str) -> str:
    """Return lines as one text; ColumnFormatError if it grows too long."""
    parts, length = [], 0
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise TypeError(f"{name}, line {number}: expected str, got {type(line).__name__}")
        parts.append(line)
        length += len(line)
        if length > MOST_OF_A_FILE:
            raise ColumnFormatError(f"{name} is longer than {MOST_OF_A_FILE:,} characters")
    return "".join(parts)


def _takes_text(stream: Any) -> bool:
    try:
        stream.write("")
    except TypeError:
        return False
    return True


@contextmanager
def open_packed(path: str) -> Iterator[IO[bytes]]:
    """Open a path for writing, packed by its suffix; a file is replaced as a whole."""
    with ExitStack() as stack:
        binary: IO[bytes] = stack.enter_context(open_for_writing(path))
        if packed := _packed(binary, path, "wb"):
            binary = stack.enter_context(packed)
        yield binary


@contextmanager
def open_output(target: Target) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes text to `target`: UTF-8 for a path or a binary stream."""
    with ExitStack() as stack:
        stream: Any = target
        if _is_path(target):
            stream = stack.enter_context(open_packed(os.fspath(target)))
        if _takes_text(stream):
            yield stream.write
        else:
            yield lambda text: stream.write(text.encode("utf-8"))


def write_blocks(target: Target, blocks: Iterable[str]) -> None:
    """Write the text of each sequence; ColumnFormatError names one that cannot be encoded."""
    with open_output(target) as write:
        for index, block in enumerate(blocks):
            if index == 0 and block.startswith("\ufeff"):
                raise ColumnFormatError(
                    "sequence 0, position 0: U+FEFF at the start of a file would read as a "
                    "byte order mark; remove it"
                )
            try:
                write(block)
            except UnicodeEncodeError as error:
                raise ColumnFormatError(
                    f"sequence {index}: {error.object[error.start : error.end]!r} cannot be "
                    f"encoded as {error.encoding}"
                ) from error
