"""Files that are replaced as a whole or not at all."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be deleted: that is lock enough
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a file beside `path` that takes its place once it is complete and on the disk.

    Where writing fails (OSError), the old file stays as it was; a symbolic link is followed. A
    process that is killed leaves its unfinished file behind; the next one that writes to the same
    path deletes it (not on Windows).
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    # A hash, as the name may be long already.
    stem = f".crfkit-{hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()}-"
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    _delete_leftovers(folder, stem)
    raw, temporary = _open_temporary(folder, stem)
    try:
        with raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
            if fcntl is not None:  # while it is locked, lest it be taken for a leftover
                _take_place(temporary, path)
        if fcntl is None:  # Windows moves no open file
            _take_place(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


@contextmanager
def open_for_writing(path: str) -> Iterator[IO[bytes]]:
    """Open a path for bytes: a file is replaced as a whole, a pipe or a device written to."""
    special = os.path.exists(path) and not os.path.isfile(path)
    with open(path, "wb") if special else replacing(path) as raw:
        yield raw


def _take_place(temporary: str, path: str) -> None:
    """Put a complete file in the place of another one, with the same permissions."""
    if os.path.exists(path):
        shutil.copymode(path, temporary)
    os.replace(temporary, path)


def _open_temporary(folder: str, stem: str) -> tuple[IO[bytes], str]:
    while True:
        temporary = os.path.join(folder, f"{stem}{secrets.token_hex(8)}.tmp")
        raw = open(temporary, "xb")
        # Between opening and locking, another writer may have taken it for a leftover.
        if _lock(raw, otherwise=True) and os.path.exists(temporary):
            return raw, temporary
        raw.close()


def _lock(file: IO[bytes], otherwise: bool) -> bool:
    """Mark a file as being written, False if another process has it; `otherwise` without locks."""
    if fcntl is None:
        return otherwise
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return otherwise
    return True


def _delete_leftovers(folder: str, stem: str) -> None:
    """Delete the temporary files of writers that are gone; without locks that cannot be known."""
    for leftover in glob.glob(os.path.join(glob.escape(folder), f"{stem}*.tmp")):
        with suppress(OSError), open(leftover, "rb") as file:
            if _lock(file, otherwise=False):
                os.unlink(leftover)


def _sync_folder(folder: str) -> None:
    """Put the new name on the disk too, where the system can do that for a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
