"""Packed files by their suffixes, and those that have the wrong one."""

import zipfile

import pytest

from crfkit.io import ColumnFormatError, read_columns, streams, write_columns

ROWS = [[("a", "é")]]


def test_zstandard_is_read_and_written_where_there_is_a_package(tmp_path):
    pytest.importorskip("zstandard")
    path = tmp_path / "a.zst"
    write_columns(path, ROWS)
    assert read_columns(path) == ROWS
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ColumnFormatError, match="after line .*damaged"):
        read_columns(path)


def test_zstandard_without_a_package_is_named(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(streams, "import_module", missing)
    (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(ColumnFormatError, match="a.zst is packed by Zstandard.*zstd -d"):
        read_columns(tmp_path / "a.zst")


def test_zip_archives_of_one_file_are_read_and_written(tmp_path):
    path = tmp_path / "a.txt.zip"
    write_columns(path, ROWS)
    before = path.read_bytes()
    write_columns(path, ROWS)
    assert (read_columns(path), path.read_bytes()) == (ROWS, before)
    assert zipfile.ZipFile(path).namelist() == ["a.txt"]
    with pytest.raises(TypeError, match="expected str"):
        write_columns(path, [[(1,)]])
    assert path.read_bytes() == before
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/a.txt", "a é\n")
    assert read_columns(path) == ROWS
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("b.txt", "")
    with pytest.raises(ColumnFormatError, match="archive of 2 files.*b.txt.*unpack"):
        read_columns(path)
    for damaged in (b"PK", before[5:]):  # positions in the file no longer fit
        path.write_bytes(damaged)
        with pytest.raises(ColumnFormatError, match="a.zip: the zip archive cannot be read"):
            read_columns(path)


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\x28\xb5\x2f\xfd", "Zstandard"),
        (b"PK\x03\x04\xff", "zip"),
        (b"\x1f\x8b", "gzip"),
        (b"ccrfkit\n", "crfkit"),
    ],  # fmt: skip
)
def test_packed_files_of_the_wrong_name_are_told_by_their_beginning(start, name, tmp_path):
    (tmp_path / "a.txt").write_bytes(start + b"\xff")
    with pytest.raises(ColumnFormatError, match=f"begins as files of {name}"):
        read_columns(tmp_path / "a.txt")
