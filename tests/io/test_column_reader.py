import bz2
import gzip
import io
import itertools
import lzma
import tempfile
import tracemalloc

import pytest

from crfkit import UNLABELED
from crfkit.io import ColumnFormatError, iter_columns, known_labels, read_columns, read_conll

TEXT = "the DT O\ndog NN B\n\nyes UH O\n"
SEQUENCES = [[("the", "DT", "O"), ("dog", "NN", "B")], [("yes", "UH", "O")]]
PACK = {".txt": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.fixture
def file(tmp_path):
    def write(data, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("suffix", [*PACK, ".GZ"])
@pytest.mark.parametrize("as_str", [True, False])
def test_paths_are_unpacked_by_suffix(file, suffix, as_str):
    path = file(PACK[suffix.lower()](TEXT.encode()), "data" + suffix)
    assert read_columns(str(path) if as_str else path) == SEQUENCES


@pytest.mark.parametrize(
    "source",
    [
        io.StringIO(TEXT),
        io.BytesIO(TEXT.encode()),
        TEXT.split("\n"),
        TEXT.splitlines(keepends=True),
        iter(TEXT.split("\n")),
    ],
    ids=["text", "binary", "lines", "ended lines", "iterator"],
)
def test_streams_and_lines_read_alike(source):
    assert read_columns(source) == SEQUENCES


def test_streams_stay_open_and_are_not_rewound():
    for stream in io.StringIO(TEXT), io.BytesIO(TEXT.encode()):
        assert read_columns(stream) == SEQUENCES
        assert not stream.closed
        assert read_columns(stream) == []


def test_a_spooled_and_an_unbuffered_file_can_be_read(file):
    with tempfile.SpooledTemporaryFile() as stream:
        stream.write(TEXT.encode())
        stream.seek(0)
        assert read_columns(stream) == SEQUENCES
    with open(file(TEXT.encode()), "rb", buffering=0) as stream:
        assert read_columns(stream) == SEQUENCES


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        TEXT.rstrip("\n"),
        "\n\n" + TEXT + "\n\n\n",
        TEXT.replace("\n\n", "\n \t\n\n"),
        TEXT.replace(" ", " \t  "),
        TEXT.replace("\n", " \n").replace("dog", "  dog"),
    ],
    ids=["CRLF", "BOM", "no last newline", "blank lines", "white lines", "runs", "margins"],
)
@pytest.mark.parametrize("binary", [True, False])
def test_harmless_variants_read_alike(text, binary):
    assert read_columns(io.BytesIO(text.encode()) if binary else io.StringIO(text)) == SEQUENCES


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b" \r\n\n"])
def test_a_file_without_tokens_has_no_sequences(file, data):
    path = file(data)
    assert read_columns(path) == []
    assert read_conll(path) == ([], [])


@pytest.mark.parametrize("mark", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\xa0", "\r"])
def test_odd_white_space_belongs_to_the_cell(file, mark):
    data = f"a{mark}b X\n{mark}c Y\n".encode()
    for source in file(data), io.BytesIO(data):
        assert read_columns(source) == [[(f"a{mark}b", "X"), (f"{mark}c", "Y")]]


def test_tab_separated_cells_may_be_empty_or_hold_blanks():
    lines = ["New York\t\tB", "\t x \t", "\t\t", "", "a\tb\tc"]
    assert read_columns(lines, sep="\t") == [
        [("New York", "", "B"), ("", " x ", ""), ("", "", "")],
        [("a", "b", "c")],
    ]


def test_a_single_blank_as_separator_does_not_merge_runs():
    assert read_columns(["a  b", "c d e"], sep=" ") == [[("a", "", "b"), ("c", "d", "e")]]


def test_comments_are_skipped_and_do_not_end_a_sequence():
    lines = ["# text = x", "a O", "# between", "b O", "", "# only a comment", "", "c# O"]
    assert read_columns(lines, comment="#") == [[("a", "O"), ("b", "O")], [("c#", "O")]]


def test_without_comment_a_number_sign_is_a_token():
    assert read_columns(["# SYM"]) == [[("#", "SYM")]]


def test_docstart_rows_are_skipped_only_on_request():
    lines = ["-DOCSTART- O", "", "a O", "-DOCSTART- -X- -X- O", "b O"]
    assert read_columns(lines, skip_docstart=True) == [[("a", "O")], [("b", "O")]]
    assert read_columns(lines[:3]) == [[("-DOCSTART-", "O")], [("a", "O")]]


@pytest.mark.parametrize(
    ("columns", "expected"), [([0], ("a",)), ([-1, 0], ("c", "a")), ((1, 1), ("b", "b"))]
)
def test_columns_select_and_order(columns, expected):
    assert read_columns(["a b c"], columns=columns) == [[expected]]


@pytest.mark.parametrize("columns", [[3], [0, -4]])
def test_a_missing_column_is_named(columns):
    with pytest.raises(ColumnFormatError, match=r"<lines>: columns=.*the 3 columns"):
        read_columns(["a b c"], columns=columns)


@pytest.mark.parametrize("label_column", [1, -2])
def test_conll_sets_the_label_column_apart(label_column):
    rows, labels = read_conll(TEXT.split("\n"), label_column=label_column)
    assert rows == [[("the", "O"), ("dog", "B")], [("yes", "O")]]
    assert labels == [["DT", "NN"], ["UH"]]


def test_conll_rows_of_one_cell_stay_tuples():
    assert read_conll(["a O", "b B"]) == ([[("a",), ("b",)]], [["O", "B"]])


@pytest.mark.parametrize(("line", "label_column"), [("a", -1), ("a", 0), ("a b", 2), ("a b", -3)])
def test_conll_without_labels_or_tokens_is_refused(line, label_column):
    with pytest.raises(ColumnFormatError, match=r"<lines>: label_column=.*check"):
        read_conll([line], label_column=label_column)


@pytest.mark.parametrize("bad", ["c", "c d e"])
def test_ragged_rows_are_named_with_file_and_line(file, bad):
    path = file(f"# x\na O\n\nb O\n{bad}\n".encode())
    found = len(bad.split())
    message = rf"data\.txt, line 5: expected 2 columns .* found {found}; .*sep"
    with pytest.raises(ColumnFormatError, match=message):
        read_columns(path, comment="#")


def test_format_errors_are_value_errors():
    assert issubclass(ColumnFormatError, ValueError)


@pytest.mark.parametrize("lines_before", [0, 1, 1000, 20000])
@pytest.mark.parametrize("suffix", PACK)
def test_undecodable_bytes_are_named_with_file_line_and_encoding(file, suffix, lines_before):
    data = b"token O\n" * lines_before + b"caf\xe9 O\n" + b"token O\n" * 3000
    path = file(PACK[suffix](data), "data" + suffix)
    message = rf"data\{suffix}, line {lines_before + 1}: byte 0xe9 .*decoded as utf-8.*encoding="
    with pytest.raises(ColumnFormatError, match=message):
        read_columns(path)
    assert read_columns(path, encoding="latin-1")[0][lines_before] == ("café", "O")


def test_undecodable_bytes_are_found_on_the_right_line_in_wide_encodings(file):
    # U+0A05 has the byte of a newline in it.
    data = ("a O\n" * 4999 + "\u0a05 O\n").encode("utf-16-le") + b"\x00\xdc\n\x00"
    with pytest.raises(ColumnFormatError, match=r"line 5001: .*utf-16-le"):
        read_columns(file(data), encoding="utf-16-le")


def test_a_text_stream_with_bad_bytes_is_named(file):
    path = file(b"a O\n\xff O\n")
    with open(path, encoding="utf-8") as stream:
        with pytest.raises(ColumnFormatError, match=r"data\.txt, line 2: byte 0xff"):
            read_columns(stream)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "cp1252"])
def test_other_encodings_read_alike(file, encoding):
    path = file(("é" + TEXT).encode(encoding))
    assert read_columns(path, encoding=encoding)[1] == SEQUENCES[1]
    assert read_columns(path, encoding=encoding)[0][0][0] == "éthe"


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
@pytest.mark.parametrize(
    "damage", [lambda d: d[:-12], lambda d: d[: len(d) // 2], lambda d: b"xyz" + d]
)
def test_damaged_files_are_named(file, suffix, damage):
    text = "".join(f"word{i * 7919 % 1000} O\n" for i in range(2000))
    path = file(damage(PACK[suffix](text.encode())), "data" + suffix)
    with pytest.raises(ColumnFormatError, match=rf"data\{suffix}, after line \d+: .*damaged"):
        read_columns(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_flipped_bytes_do_not_pass(file, suffix):
    data = bytearray(PACK[suffix](TEXT.encode() * 500))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(ColumnFormatError, match="damaged|cannot be decoded"):
        read_columns(file(bytes(data), "data" + suffix))


def test_trouble_of_the_machine_is_not_called_damage():
    def lines():
        yield "a O"
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error") as caught:
        read_columns(lines())
    assert not isinstance(caught.value, ColumnFormatError)


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_columns(tmp_path / "missing.txt")


def test_reading_is_lazy():
    endless = (line for i in itertools.count() for line in (f"{i} O", ""))
    assert list(itertools.islice(iter_columns(endless), 3)) == [[(str(i), "O")] for i in range(3)]


def test_sequences_before_a_ragged_row_are_delivered():
    reader = iter_columns(["a O", "", "b"])
    assert next(reader) == [("a", "O")]
    with pytest.raises(ColumnFormatError):
        next(reader)


def test_an_abandoned_reader_closes_its_file(file):
    reader = iter_columns(file(TEXT.encode() * 10000))
    next(reader)
    reader.close()  # an open file would raise ResourceWarning when collected


@pytest.mark.parametrize("options", [{"sep": ""}, {"sep": "\n"}, {"sep": "||"}, {"comment": ""}])
def test_unusable_options_are_refused_at_once(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        iter_columns(["a O"], **options)


def test_text_passed_as_a_path_is_explained():
    with pytest.raises(ValueError, match="StringIO"):
        read_columns(TEXT)


def test_an_item_of_several_lines_is_refused():
    with pytest.raises(ColumnFormatError, match="<lines>, line 2: .*one line per item"):
        read_columns(["a O", TEXT])


def test_lines_of_bytes_are_refused():
    with pytest.raises(TypeError, match="line 1: expected str, got bytes"):
        read_columns([b"a O"])


@pytest.mark.parametrize("sep", [None, "\t"])
def test_a_packed_line_may_not_unfold_without_end(tmp_path, sep):
    with gzip.open(tmp_path / "x.gz", "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"\t" * 2**20)
    tracemalloc.start()
    with pytest.raises(ColumnFormatError, match="line 1: the line is longer than 4,194,304"):
        read_columns(tmp_path / "x.gz", sep=sep)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25


def test_a_long_line_is_read():
    cells = ["x" * 1000] * 1000
    assert read_columns(io.BytesIO(" ".join(cells).encode())) == [[tuple(cells)]]


def test_marks_stand_for_labels_that_are_not_known():
    lines = ["Ann B-PER", "Lee _", "", "sees O|VERB"]
    marks = {"unlabeled": "_", "alternatives": "|"}
    assert read_conll(lines, **marks)[1] == [["B-PER", UNLABELED], [{"O", "VERB"}]]
    assert read_conll(lines)[1] == [["B-PER", "_"], ["O|VERB"]]
    for labels, message in (
        ([["O", "|A"]], "sequence 0, position 1: the label '.A' has '.' with nothing on one side"),
        ([["O"]], "alternatives='' parts no labels"),
    ):
        mark = "|" if "side" in message else ""
        with pytest.raises(ValueError, match=message):
            known_labels(labels, alternatives=mark)
