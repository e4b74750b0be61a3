import errno
import io
import os
import subprocess
import sys

import pytest

from crfkit.io.atomic import replacing
from crfkit.persistence import load, save
from tests.persistence import models

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def files(folder):
    return sorted(path.name for path in folder.iterdir())


class Full:
    """A file on a disk that takes so many bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(data)


@pytest.mark.parametrize("room", [0, 64, 700])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, room):
    path = tmp_path / "model.crfkit"
    save([1], path)
    real = open

    def full(name, mode="r", *rest):
        file = real(name, mode, *rest)
        return Full(file, room) if "x" in mode else file

    monkeypatch.setattr("builtins.open", full)
    with pytest.raises(OSError, match="No space left"):
        save(models.pipeline(), path)
    monkeypatch.undo()
    assert load(path) == [1] and files(tmp_path) == ["model.crfkit"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_device_is_an_error():
    with pytest.raises(OSError, match="No space left"):
        save([1], "/dev/full")


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.crfkit"
    save([1], path)
    with pytest.raises(TypeError):
        save([object()], path)
    assert load(path) == [1] and files(tmp_path) == ["model.crfkit"]


@posix
def test_a_replaced_file_keeps_its_mode_and_links(tmp_path):
    path, link = tmp_path / "model.crfkit", tmp_path / "link"
    save([1], path)
    path.chmod(0o640)
    link.symlink_to(path)
    save([2], link)
    assert load(path) == [2] and link.is_symlink() and path.stat().st_mode & 0o777 == 0o640


@posix
def test_leftovers_of_dead_writers_of_the_same_file_are_deleted(tmp_path):
    with replacing(str(tmp_path / "model")) as file:
        name = os.path.basename(file.name)
        file.write(b"x")
        with replacing(str(tmp_path / "model")):
            assert name in files(tmp_path)  # its writer lives
    (tmp_path / name).write_bytes(b"unfinished")
    with replacing(str(tmp_path / "other")):
        pass
    assert name in files(tmp_path)
    with replacing(str(tmp_path / "model")):
        pass
    assert files(tmp_path) == ["model", "other"]


def test_file_names_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("ä" * 127)
    save([1], path)
    assert load(path) == [1]


@posix
def test_a_killed_process_leaves_the_old_or_the_new_file():
    command = [sys.executable, "-m", "tests.persistence.kill", "--count", "2"]
    done = subprocess.run(command, cwd=models.ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    counts = {what: int(n) for n, what in (x.split(maxsplit=1) for x in done.stdout.splitlines())}
    assert counts["old or new"] == 2 and counts["not cleaned by the next save"] == 0


@posix
def test_a_complete_file_is_no_leftover_until_it_has_its_place(tmp_path, monkeypatch):
    """A second writer that begins just before the first one's file is moved."""
    path = tmp_path / "model"
    move = os.replace

    def with_another_writer(source, target):
        monkeypatch.setattr(os, "replace", move)
        with replacing(str(path)) as file:
            file.write(b"second")
        move(source, target)

    monkeypatch.setattr(os, "replace", with_another_writer)
    with replacing(str(path)) as file:
        file.write(b"first")
    assert path.read_bytes() == b"first" and files(tmp_path) == ["model"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder: .*nowhere'$"):
        save(1, tmp_path / "nowhere" / "model")


@pytest.mark.parametrize(
    ("place", "message"),
    [(b"model", "not bytes"), (None, "not NoneType"), (io.StringIO(), "binary mode")],
)
def test_what_is_no_place_for_a_model_is_named(place, message):
    with pytest.raises(TypeError, match=message):
        save(1, place)
    with pytest.raises(TypeError, match=message):
        load(place)
