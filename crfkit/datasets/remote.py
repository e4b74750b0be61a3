"""Files from the cache, a mirror on the disk, or the network, compared with their SHA-256."""

from __future__ import annotations

import hashlib
import http.client
import io
import lzma
import os
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from sklearn.utils import Bunch

from crfkit._params import check_option
from crfkit.io.atomic import replacing
from crfkit.io.streams import open_bytes

_HOME_VARIABLE = "CRFKIT_DATA_HOME"
_SUFFIXES = ("", ".gz", ".xz", ".bz2")
_SECONDS = 60.0

PathLike = str | os.PathLike[str]


class RemoteFile(NamedTuple):
    """A file of a data set."""

    name: str
    sha256: str | None = None  # of the unpacked content; None: not known, from a mirror only
    url: str | None = None
    member: str | None = None  # where the URL is a zip archive, the file in it


class Collection(NamedTuple):
    """A data set of several files."""

    folder: str  # in the cache
    files: Mapping[str, RemoteFile]  # by part
    mirror_folders: tuple[str, ...]  # glob patterns of where a mirror may have the files
    license: str
    description: str


class Places(NamedTuple):
    """Sources of files that a caller allows."""

    data_home: PathLike | None
    mirror: PathLike | None
    download_if_missing: bool


def get_data_home(data_home: PathLike | None = None) -> Path:
    """Return the folder in which fetched data sets are kept; it need not exist.

    By default it is the environment variable ``CRFKIT_DATA_HOME``, or ``~/crfkit_data``.
    """
    default = os.environ.get(_HOME_VARIABLE) or os.path.join("~", "crfkit_data")
    return Path(data_home if data_home is not None else default).expanduser()


def fetch_parts(
    collection: Collection, part: str, places: Places, read: Callable[[io.BytesIO], Bunch]
) -> Bunch:
    """Read one part of a data set, or all of them, into Bunches with license and description."""
    check_option("part", part, (*collection.files, "all"))

    def one(file: RemoteFile, name: str) -> Bunch:
        content = io.BytesIO(_content(collection, file, places))
        content.name = file.name
        verified = file.sha256 is not None
        return Bunch(**read(content), part=name, filename=file.name, verified=verified)

    about = {"DESCR": collection.description, "license": collection.license}
    if part == "all":
        return Bunch(**{name: one(file, name) for name, file in collection.files.items()}, **about)
    return Bunch(**one(collection.files[part], part), **about)


def _content(collection: Collection, file: RemoteFile, places: Places) -> bytes:
    if places.mirror is not None:
        return _from_mirror(collection, file, Path(places.mirror).expanduser())
    path = get_data_home(places.data_home) / collection.folder / file.name
    if file.sha256 is not None and path.is_file():
        content = path.read_bytes()
        if _digest(content) == file.sha256:
            return content
    if file.url is None:
        raise OSError(
            f"{file.name} has no known checksum, so it is not downloaded; get it yourself and pass "
            "mirror=FOLDER, a folder that holds it"
        )
    if not places.download_if_missing:
        raise OSError(
            f"there is no (undamaged) {path}, and download_if_missing=False; pass mirror=FOLDER, a "
            f"folder that holds {file.name}, or allow the download"
        )
    return _download(collection, file, file.url, path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check(content: bytes, file: RemoteFile, source: str) -> None:
    found = _digest(content)
    if file.sha256 not in (None, found):
        raise OSError(
            f"{source}: the SHA-256 of {file.name} is {found}, expected {file.sha256}; the file is "
            "damaged or of another version. Get it again, or read it with crfkit.io if it is what "
            "you want"
        )


def _from_mirror(collection: Collection, file: RemoteFile, mirror: Path) -> bytes:
    found = [folder for name in collection.mirror_folders for folder in sorted(mirror.glob(name))]
    paths = (folder / (file.name + end) for folder in [*found, mirror] for end in _SUFFIXES)
    path = next(filter(Path.is_file, paths), None)
    if path is None:
        folders = ", ".join([*collection.mirror_folders, "the folder itself"])
        remedy = "copy it there" + (", or leave `mirror` out to download it" if file.url else "")
        raise OSError(
            f"the mirror {mirror} has no {file.name} (plain, .gz, .xz or .bz2) in {folders}; "
            f"{remedy}"
        )
    try:
        with open_bytes(os.fspath(path)) as binary:
            content = binary.read()
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise OSError(f"{path} cannot be read ({error}); copy it again") from error
    _check(content, file, os.fspath(path))
    return content


def _unpacked(archive: bytes, file: RemoteFile) -> bytes:
    if file.member is None:
        return archive
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as members:
            return members.read(file.member)
    except (KeyError, zipfile.BadZipFile) as error:
        raise OSError(
            f"{file.url} is no zip archive with {file.member} ({error}); try again, or pass "
            f"mirror=FOLDER, a folder that holds {file.name}"
        ) from error


def _download(collection: Collection, file: RemoteFile, url: str, path: Path) -> bytes:
    """Fetch a file, keep it and all others of the same archive, and return its content."""
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response:
            archive = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise OSError(
            f"{url} could not be fetched ({error}). Without a network, get {file.name} "
            f"elsewhere and copy it to {path}, or pass mirror=FOLDER, a folder that holds it"
        ) from error
    content = b""
    for other in collection.files.values():
        if other.url == url:
            unpacked = _unpacked(archive, other)
            _check(unpacked, other, url)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(os.fspath(path.with_name(other.name))) as raw:
                raw.write(unpacked)
            content = unpacked if other == file else content
    return content
