import gzip
import io
import os
import stat

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crfkit.io import ColumnFormatError, read_columns, write_columns
from tests.sampling import examples

SEQUENCES = [[("the", "DT"), ("dog", "NN")], [("yes", "UH")]]
TEXT = "the DT\ndog NN\n\nyes UH\n\n"
SUFFIXES = [".txt", ".gz", ".xz", ".bz2"]
ODD = "\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e\xa0\u3000\ufeff#-é🍋"


def cells(forbidden, min_size):
    letters = st.one_of(
        st.sampled_from(ODD + "ab \t"), st.characters(exclude_categories=["Cs"])
    ).filter(lambda letter: letter not in forbidden)
    return st.text(letters, min_size=min_size, max_size=4)


def tables(forbidden, min_size, min_width=1):
    row = st.integers(min_width, 3).flatmap(
        lambda width: st.lists(
            st.lists(st.tuples(*[cells(forbidden, min_size)] * width), min_size=1, max_size=3),
            max_size=3,
        )
    )
    return row.filter(lambda s: not s or not s[0][0][0].startswith("\ufeff"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("columns")


@pytest.mark.parametrize("suffix", SUFFIXES)
@examples(10)
@given(sequences=tables(" \t\r\n", 1))
@example(sequences=[[("a\x85b", "\u2028"), ("\x0b", "\x0c")]])
def test_blank_separated_files_read_back_the_same(folder, suffix, sequences):
    path = folder / ("blank" + suffix)
    write_columns(path, sequences)
    assert read_columns(path) == sequences
    assert read_columns(path, sep=" ") == sequences


@pytest.mark.parametrize("suffix", SUFFIXES)
@examples(10)
@given(sequences=tables("\t\r\n", 0, min_width=2))
@example(sequences=[[("", ""), (" ", "a b")]])
def test_tab_separated_files_read_back_the_same(folder, suffix, sequences):
    path = folder / ("tab" + suffix)
    write_columns(path, sequences, sep="\t")
    assert read_columns(path, sep="\t") == sequences


@settings(deadline=None)
@given(rows=st.lists(st.lists(st.text("a \t\r\n,\x85", max_size=3), max_size=3), max_size=3))
@pytest.mark.parametrize("sep", [" ", "\t", ","])
def test_what_is_not_refused_reads_back_the_same(sep, rows):
    stream = io.StringIO()
    try:
        write_columns(stream, [rows], sep=sep)
    except ColumnFormatError:
        return
    stream.seek(0)
    assert read_columns(stream, sep=sep) == [[tuple(row) for row in rows]]


def test_the_layout_is_one_token_a_line_and_a_blank_line_after_each_sequence(tmp_path):
    write_columns(tmp_path / "x", SEQUENCES)
    assert (tmp_path / "x").read_bytes() == TEXT.encode()


def test_no_sequences_make_an_empty_file(tmp_path):
    write_columns(tmp_path / "x", [])
    assert (tmp_path / "x").read_bytes() == b""


def test_streams_get_text_or_utf8_and_stay_open():
    text, binary = io.StringIO(), io.BytesIO()
    sequences = [[("é", "X")]]
    write_columns(text, sequences)
    write_columns(binary, sequences)
    assert text.getvalue() == "é X\n\n"
    assert binary.getvalue() == "é X\n\n".encode()


def test_generators_arrays_and_lists_can_be_written():
    stream = io.StringIO()
    write_columns(stream, (iter(np.array(sequence)) for sequence in SEQUENCES))
    assert stream.getvalue() == TEXT


@pytest.mark.parametrize(
    ("sequences", "sep", "message"),
    [
        (
            [[("a", "X")], [("b", "X"), ("c", "x y")]],
            " ",
            "sequence 1, position 1, column 1: .*' '",
        ),
        ([[("a\tb", "X")]], " ", r"sequence 0, position 0, column 0: .*'\\t'"),
        ([[("a\tb", "X")]], "\t", r"column 0: .*'\\t'"),
        ([[("a\nb", "X")]], "\t", r"column 0: .*'\\n'"),
        ([[("a", "X\r")]], " ", r"column 1: .*'\\r'"),
        ([[("a", "")]], " ", "sequence 0, position 0, column 1: the cell is empty"),
        ([[("a", "X"), ("b",)]], " ", "sequence 0, position 1: expected 2 columns .* found 1"),
        ([[("a", "X")], [("b", "X", "Y")]], " ", "sequence 1, position 0: expected 2 .* found 3"),
        ([[("a", "X")], []], " ", "sequence 1 is empty"),
        ([[(" ",)]], "\t", "sequence 0, position 0: .*end of a sequence"),
        ([[()]], " ", "sequence 0, position 0: .*end of a sequence"),
        ([[("\ufeffa", "X")]], " ", "sequence 0, position 0: .*byte order mark"),
        ([[("a", "X")], [("\ud800", "X")]], " ", "sequence 1: .*cannot be encoded as utf-8"),
    ],
)
def test_what_would_not_read_back_is_refused(tmp_path, sequences, sep, message):
    with pytest.raises(ColumnFormatError, match=message):
        write_columns(tmp_path / "x", sequences, sep=sep)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [(("a", 1), "column 1: expected str, got int"), ("ab", "the row is the str")],
)
def test_cells_and_rows_of_wrong_type_are_refused(row, message):
    with pytest.raises(TypeError, match=message):
        write_columns(io.StringIO(), [[row]])


@pytest.mark.parametrize("sep", ["", "\n", "\r", "||", None])
def test_unusable_separators_are_refused(tmp_path, sep):
    with pytest.raises(ValueError, match="sep"):
        write_columns(tmp_path / "x", SEQUENCES, sep=sep)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failure_leaves_the_old_file_whole_and_no_other(tmp_path, suffix):
    path = tmp_path / ("x" + suffix)
    path.write_bytes(b"old")

    def sequences():
        yield from SEQUENCES * 5000
        raise RuntimeError("broken source")

    with pytest.raises(RuntimeError, match="broken source"):
        write_columns(path, sequences())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_columns(path, SEQUENCES)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_is_there_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def sequences():
        yield SEQUENCES[0]
        assert path.read_bytes() == b"old"
        yield SEQUENCES[1]

    write_columns(path, sequences())
    assert path.read_bytes() == TEXT.encode()


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_mode_and_link_of_the_old_file_are_kept(tmp_path):
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_columns(link, SEQUENCES)
    assert link.is_symlink()
    assert path.read_bytes() == TEXT.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="umask of POSIX")
def test_a_new_file_has_the_usual_mode(tmp_path):
    (tmp_path / "usual").touch()
    write_columns(tmp_path / "x", SEQUENCES)
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_columns(pipe, SEQUENCES)
        assert os.read(reader, 1000) == TEXT.encode()
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_equal_data_give_equal_files(tmp_path, suffix):
    first, second = tmp_path / ("a" + suffix), tmp_path / ("b" + suffix)
    write_columns(first, SEQUENCES)
    write_columns(second, SEQUENCES)
    assert first.read_bytes() == second.read_bytes()


def test_packed_files_can_be_unpacked_by_others(tmp_path):
    write_columns(tmp_path / "x.gz", SEQUENCES)
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()) == TEXT.encode()
