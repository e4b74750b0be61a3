import bz2
import gzip
import hashlib
import http.client
import lzma
import os
import zipfile

import pytest

from crfkit.datasets import corpora, fetch_conll2000, get_data_home
from crfkit.datasets.remote import Collection, RemoteFile

TRAIN = b"Rome NNP B-NP\nfell VBD B-VP\n\nYes UH O\n\n"
TEST = b"It PRP B-NP\n\n"
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "corpus.zip"
    with zipfile.ZipFile(path, "w") as members:
        members.writestr("conll2000/train.txt", TRAIN)
        members.writestr("conll2000/test.txt", TEST)
    return path


@pytest.fixture
def small(monkeypatch, archive):
    """CoNLL-2000 with other content, behind a URL that needs no network."""
    url = archive.as_uri()
    files = {
        "train": RemoteFile("train.txt", sha256(TRAIN), url, "conll2000/train.txt"),
        "test": RemoteFile("test.txt", sha256(TEST), url, "conll2000/test.txt"),
    }
    small = Collection("conll2000", files, ("conll2000",), "free", "small")
    monkeypatch.setattr(corpora, "CONLL2000", small)
    return small


def test_the_cache_is_where_the_caller_or_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("CRFKIT_DATA_HOME", str(tmp_path / "a"))
    assert get_data_home() == tmp_path / "a"
    assert get_data_home(tmp_path / "b") == tmp_path / "b"
    monkeypatch.delenv("CRFKIT_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert get_data_home() == tmp_path / "crfkit_data"
    assert not os.listdir(tmp_path)


def test_a_download_is_read_and_kept(small, archive, tmp_path):
    data = fetch_conll2000(data_home=tmp_path / "home")
    assert data.tokens == [["Rome", "fell"], ["Yes"]]
    assert data.pos == [["NNP", "VBD"], ["UH"]]
    assert data.tags == [["B-NP", "B-VP"], ["O"]]
    assert data.target_names == ["B-NP", "B-VP", "O"]
    assert (data.part, data.filename, data.verified) == ("train", "train.txt", True)
    assert (data.DESCR, data.license) == ("small", "free")
    assert sorted(os.listdir(tmp_path / "home" / "conll2000")) == ["test.txt", "train.txt"]
    archive.unlink()
    both = fetch_conll2000("all", data_home=tmp_path / "home", download_if_missing=False)
    assert both.train.tokens == data.tokens
    assert both.test.tokens == [["It"]]


def test_a_damaged_copy_is_fetched_again(small, tmp_path):
    kept = tmp_path / "conll2000" / "train.txt"
    kept.parent.mkdir()
    kept.write_bytes(TRAIN[:-9])
    with pytest.raises(OSError, match="no .undamaged. .*train.txt, and download_if_missing=False"):
        fetch_conll2000(data_home=tmp_path, download_if_missing=False)
    assert fetch_conll2000(data_home=tmp_path).tokens == [["Rome", "fell"], ["Yes"]]
    assert kept.read_bytes() == TRAIN


def test_wrong_content_is_neither_read_nor_kept(small, archive, tmp_path):
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("conll2000/train.txt", TRAIN + b"\n")
        members.writestr("conll2000/test.txt", TEST)
    with pytest.raises(OSError, match=r"SHA-256 of train.txt is \w+, expected " + sha256(TRAIN)):
        fetch_conll2000(data_home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("content", [b"no zip", None])
def test_a_wrong_archive_is_named(small, archive, tmp_path, content):
    if content is None:
        zipfile.ZipFile(archive, "w").close()
    else:
        archive.write_bytes(content)
    with pytest.raises(OSError, match="corpus.zip is no zip archive with conll2000/train.txt"):
        fetch_conll2000(data_home=tmp_path / "home")


def test_without_a_network_the_error_says_what_to_do(small, archive, tmp_path):
    archive.unlink()
    message = "corpus.zip could not be fetched .* copy it to .*train.txt, or pass mirror=FOLDER"
    with pytest.raises(OSError, match=message):
        fetch_conll2000(data_home=tmp_path / "home")


@pytest.mark.parametrize("error", [TimeoutError("slow"), http.client.IncompleteRead(b"")])
def test_a_broken_connection_is_told(small, monkeypatch, tmp_path, error):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("urllib.request.urlopen", fail)
    with pytest.raises(OSError, match="corpus.zip could not be fetched"):
        fetch_conll2000(data_home=tmp_path / "home")


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("folder", ["conll2000", "."])
def test_a_mirror_is_read_and_not_written(small, tmp_path, suffix, folder):
    path = tmp_path / "mirror" / folder / f"train.txt{suffix}"
    path.parent.mkdir(parents=True)
    path.write_bytes(PACK[suffix](TRAIN))
    home = tmp_path / "home"
    data = fetch_conll2000(mirror=tmp_path / "mirror", data_home=home, download_if_missing=False)
    assert data.tags == [["B-NP", "B-VP"], ["O"]]
    assert not home.exists()


def test_a_mirror_is_checked(small, tmp_path):
    (tmp_path / "train.txt").write_bytes(TEST)
    with pytest.raises(OSError, match=r"train.txt: the SHA-256 of train.txt is .* Get it again"):
        fetch_conll2000(mirror=tmp_path)
    with pytest.raises(OSError, match=r"has no test.txt .* in conll2000, .* leave `mirror` out"):
        fetch_conll2000("test", mirror=tmp_path)


def test_damaged_packed_files_are_named(small, tmp_path):
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(TRAIN)[:-12])
    with pytest.raises(OSError, match=r"train.txt.gz cannot be read"):
        fetch_conll2000(mirror=tmp_path)


def test_unknown_parts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="part='dev' is not known"):
        fetch_conll2000("dev", mirror=tmp_path)
