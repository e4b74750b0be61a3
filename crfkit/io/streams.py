"""Lines in and text out: paths by suffix, open streams, line iterables; errors name the file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import IO, Any, Literal, TypeGuard

from crfkit._progress import Task, is_heard, working
from crfkit.io.atomic import open_for_writing

# Of a line: what is packed may unfold to a thousand times its size.
MOST_CHARACTERS = 2**22
BUFFER = 1 << 17  # bytes that are read at a time, where it is told how much has been read

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
    return None


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


def _undecodable(name: str, before: int, error: UnicodeDecodeError) -> ColumnFormatError:
    # Decoding goes chunk by chunk: the lines of this chunk before the bad byte were not delivered.
    inside = error.object[: error.start].decode(error.encoding, "ignore").count("\n")
    return ColumnFormatError(
        f"{name}, line {before + inside + 1}: byte 0x{error.object[error.start]:02x} cannot be "
        f"decoded as {error.encoding} ({error.reason}); pass the encoding of the file, "
        f"for example encoding='latin-1'"
    )


def _without_end(line: object, name: str, number: int) -> str:
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
    name, number = source_name(source), 0
    with _open_lines(source, encoding) as lines:
        try:
            for number, line in enumerate(lines, start=1):
                yield _without_end(line, name, number)
        except UnicodeDecodeError as error:
            raise _undecodable(name, number, error) from error
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            # An errno marks trouble of the machine; damaged data raise without one.
            if getattr(error, "errno", None) is not None:
                raise
            raise ColumnFormatError(
                f"{name}, after line {number}: the compressed data are cut short or damaged "
                f"({error}); fetch or write the file again"
            ) from error


def _takes_text(stream: Any) -> bool:
    try:
        stream.write("")
    except TypeError:
        return False
    return True


@contextmanager
def open_output(target: Target) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes text to `target`: UTF-8 for a path or a binary stream."""
    with ExitStack() as stack:
        stream: Any = target
        if _is_path(target):
            path = os.fspath(target)
            stream = stack.enter_context(open_for_writing(path))
            if packed := _packed(stream, path, "wb"):
                stream = stack.enter_context(packed)
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
