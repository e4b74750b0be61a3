"""The machine code of kernels on disk.

Numba's own cache knows the file of a kernel alone: an edited helper in another file, or an upgrade
of the package, would leave the old machine code in use. Here, a file is known by a hash of all
sources that its machine code depends on. What is missing, damaged or made of other sources is made
anew; where nothing can be written, kernels are compiled in each process, with one warning.
"""

from __future__ import annotations

import getpass
import hashlib
import inspect
import os
import pickle
import re
import stat
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba

from crfkit._version import __version__
from crfkit._warnings import warn_user
from crfkit.compiler.interrupts import held_interrupts
from crfkit.compiler.target import machine

PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^from (crfkit\.(?:kernels|compiler)[\w.]*) import", re.MULTILINE)
# The options of all kernels.
_OPTIONS = Path(__file__).with_name("jit.py")


class KernelCache:
    """The files with the machine code of a kernel, one for each signature.

    Has the methods that numba's dispatchers call. These, and what is called here of numba, are
    private: where something is not as expected, there is no file, and no error.

    Parameters
    ----------
    function : callable
        The kernel, as it was written.
    needs_runtime : callable
        Whether machine code needs the run time of numba, which counts references.
    """

    def __init__(
        self, function: Callable[..., Any], needs_runtime: Callable[[], bool] = lambda: True
    ) -> None:
        self.function, self.needs_runtime = function, needs_runtime
        self._source = Path(inspect.getfile(function))

    @property
    def cache_path(self) -> str | None:
        """The folder where files are written."""
        folder = folder_for(self._source.parent)
        return None if folder is None else str(folder)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return what was compiled for a signature, or None."""
        # The second is of whoever installed the package, and may be read-only.
        for folder in (folder_for, _chosen if numba.config.CACHE_DIR else _beside):
            with suppress(Exception), held_interrupts:
                name, key = self._file(signature)
                stored = _read(Path(folder(self._source.parent) or "", name), key)
                if stored is not None:
                    # Numba would load all that it can compile, 30 MB, where nothing is needed.
                    if self.needs_runtime():
                        context.refresh()
                    from crfkit.compiler.stored import rebuild

                    return rebuild(context, stored)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for a signature."""
        folder = folder_for(self._source.parent)
        try:
            if folder is not None and not compiled.library.has_dynamic_globals:
                from numba.core.serialize import dumps

                from crfkit.compiler.stored import reduced

                name, key = self._file(signature)
                payload = dumps(reduced(compiled))
                _replace(folder / name, key + _digest(payload) + payload)
        except Exception as error:
            warn_of_no_file(str(error))

    def _file(self, signature: Any) -> tuple[str, bytes]:
        """Return the name for a signature and a machine, and the hash of what its file is from."""
        function, target = self.function, repr((str(signature), machine()))
        version = f"{sys.implementation.cache_tag}-{_digest(target.encode()).hex()[:16]}"
        depends_on = target, numba.__version__, salt(function, signature)
        name = f"{self._source.stem}.{function.__qualname__}.{version}.nbc"
        return name.replace("<", "").replace(">", ""), _digest(repr(depends_on).encode())


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


def _read(path: Path, key: bytes) -> Any:
    """Return what a file holds, None if it is damaged or another key's; its bytes are freed."""
    data = path.read_bytes()
    payload = memoryview(data)[2 * len(key) :]
    return pickle.loads(payload) if data.startswith(key + _digest(payload)) else None


def _replace(path: Path, data: bytes) -> None:
    """Write a file that other processes may read or write at the same time."""
    made = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        made.write_bytes(data)
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


@cache
def folder_for(home: Path) -> Path | None:
    """Return where the machine code of kernels in a folder is kept: the first that can be written.

    In NUMBA_CACHE_DIR, beside the sources, in a folder of the user, in one for temporary files.
    None, with a warning, if there is none.
    """
    reasons = []
    for candidate in (_chosen, _beside, _of_user, _temporary):
        try:
            folder = candidate(home)
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
            reasons.append(f"{folder} is read-only")
        except Exception as error:  # also where something of numba is missing
            reasons.append(str(error))
    warn_of_no_file("; ".join(reasons))
    return None


def _own(home: Path) -> str:
    """Return a name for the files of a folder in another folder."""
    return f"{home.name}_{_digest(bytes(home)).hex()[:32]}"


def _chosen(home: Path) -> Path:
    if not numba.config.CACHE_DIR:
        raise OSError("NUMBA_CACHE_DIR is not set")
    return Path(numba.config.CACHE_DIR, _own(home))


def _beside(home: Path) -> Path:
    return home.resolve(strict=True) / "__pycache__"  # not in a zipped application


def _of_user(home: Path) -> Path:
    from numba.misc.appdirs import AppDirs

    folder = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    if not folder.is_absolute():
        raise OSError("the user has no home")
    return folder / _own(home)


def _temporary(home: Path) -> Path:
    return private_folder() / _own(home)


def private_folder() -> Path:
    """Return a folder for temporary files that only this user can read and write.

    OSError is raised if somebody else has made one of this name.
    """
    user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
    folder = Path(tempfile.gettempdir(), f"crfkit-{user}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{folder} is no folder")
    if os.name == "posix" and (found.st_uid != user or found.st_mode & 0o077):
        raise OSError(f"{folder} is open to other users")
    return folder


_reasons: list[str] = []


def warn_of_no_file(reason: str) -> None:
    """Say, once, that kernels are compiled in each process."""
    _reasons.append(reason)
    if len(_reasons) == 1:
        warn_user(
            "the machine code of kernels cannot be kept on disk: each process compiles them, which "
            "takes some seconds. Set NUMBA_CACHE_DIR to a folder that can be written, and has "
            f"room ({reason})."
        )


# Files with functions that a class of named tuples chooses, beside the one of the class.
_BODIES: dict[type, set[Path]] = {}


def depends_on(kind: type, body: Callable[..., Any]) -> None:
    """Say that machine code for arguments of a class depends on a function's source."""
    _BODIES.setdefault(kind, set()).add(Path(inspect.getfile(body)))


def salt(function: Callable[..., Any], kinds: Iterable[Any]) -> tuple[str, ...]:
    """Return hashes of the sources that the machine code of a function depends on.

    The file of the function, and those of the classes of named tuples among its arguments, whose
    type may choose what the function calls.
    """
    try:
        found = [source_hash(Path(inspect.getfile(function)))]
        for cls in _named_tuples(kinds):
            files = sorted({Path(inspect.getfile(cls)), *_BODIES.get(cls, ())})
            found += [f"{cls.__module__}.{cls.__qualname__}", *map(source_hash, files)]
    except OSError:  # sources not readable, as in a zipped application
        return (__version__,)
    return tuple(found)


@cache
def source_hash(path: Path) -> str:
    """Hash a source file, all files of kernels that it imports, directly or not, and options."""
    seen, todo = set[Path](), [path, _OPTIONS]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo.extend(_imported(file))
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(seen))).hexdigest()


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Return the source files of kernels and of the compiler that a file imports."""
    found = []
    for name in _IMPORT.findall(path.read_text(encoding="utf-8")):
        stem = PACKAGE.joinpath(*name.split(".")[1:])
        found.append(stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py"))
    return tuple(found)


def _named_tuples(kinds: Iterable[Any]) -> Iterator[type]:
    """Yield the classes of the named tuples among types of arguments, also of nested ones."""
    for kind in kinds:
        named = getattr(kind, "instance_class", None)
        if isinstance(named, type):
            yield named
        yield from _named_tuples(getattr(kind, "types", ()))
