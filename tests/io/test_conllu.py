import copy
import gzip
import io
import itertools
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import CRFClassifier, SequenceVectorizer
from crfkit.io import (
    ColumnFormatError,
    ConlluSentence,
    ConlluToken,
    conllu_features_and_labels,
    iter_conllu,
    read_conllu,
    write_conllu,
)
from tests.sampling import examples

TEXT = """\
# sent_id = a-1
# text = They don't.
# checked
1\tThey\tthey\tPRON\tPRP\tCase=Nom|Number=Plur\t2\tnsubj\t2:nsubj\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No|Odd
2\tdo\tdo\tAUX\tVBP\tMood=Ind\t0\troot\t0:root\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t2:advmod\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t2:xcomp\t_
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t2:punct\t_

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_

"""
ROW = "1\ta\ta\tX\tX\t_\t0\troot\t_\t_"
TREEBANKS = [
    "ud_english_ewt/en_ewt-ud-dev.conllu.gz",
    "ud_czech_mix/test.conllu.gz",
    "ud_chinese_gsdsimp/zh_gsdsimp-ud-test.conllu.gz",
]


def row(name, **cells):
    default = {"form": "f", "lemma": "_", "upos": "_", "xpos": "_", "feats": "_"}
    default |= {"head": "_", "deprel": "_", "deps": "_", "misc": "_"}
    return "\t".join([name, *(default | cells).values()])


@pytest.fixture
def sentence():
    return read_conllu(io.StringIO(TEXT))[0]


def test_every_part_of_a_sentence_is_read(sentence):
    assert sentence.metadata == {"sent_id": "a-1", "text": "They don't."}
    assert sentence.comments[2] == "checked"
    assert [word.form for word in sentence.words] == ["They", "do", "n't", "."]
    assert [token.id for token in sentence.multiword_tokens] == ["2-3"]
    assert [node.form for node in sentence.empty_nodes] == ["go"]
    assert [token.form for token, _ in sentence.surface] == ["They", "don't", "."]
    assert [len(words) for _, words in sentence.surface] == [1, 2, 1]
    assert sentence.words[0].feats == {"Case": "Nom", "Number": "Plur"}
    assert (sentence.words[1].head, sentence.empty_nodes[0].head) == (0, None)
    assert sentence.multiword_tokens[0].misc == {"SpaceAfter": "No", "Odd": None}
    assert pickle.loads(pickle.dumps(sentence)) == sentence


def test_dicts_are_not_shared_between_tokens():
    first, second = read_conllu([row("1", misc="A=1"), row("2", misc="A=1")])[0].words
    first.misc["A"] = "2"
    assert second.misc == {"A": "1"}


def test_reading_is_lazy():
    sentences = iter_conllu([ROW, "", "broken"])
    assert next(sentences).words[0].form == "a"
    with pytest.raises(ColumnFormatError, match="line 3: expected 10 fields"):
        next(sentences)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a b"], "line 1: expected 10 fields .* found 1; .*read_columns"),
        ([ROW.replace("\ta", "\t", 1)], "line 1: the field FORM is empty"),
        ([row("0")], "line 1: the ID '0' is neither"),
        ([row("2")], "line 1: expected the ID 1, found 2"),
        ([row("1"), row("1")], "line 2: expected the ID 2, found 1"),
        ([row("1.1")], "line 1: expected the ID 0.1, found 1.1"),
        ([row("1"), row("1.2")], "line 2: expected the ID 1.1, found 1.2"),
        ([row("1-3"), row("1"), row("2"), ""], "line 4: .*has 2 words, .*reaches to 3"),
        ([row("1-2"), row("1"), row("2-3")], "line 3: the multiword token 2-3 overlaps"),
        ([row("2-1")], "line 1: .*overlaps the one before it or is empty"),
        ([row("2-3")], "line 1: expected the ID 1, found 2"),
        ([row("1", head="x")], "line 1: HEAD is 'x'"),
        ([row("1", head="²")], "line 1: HEAD is '²'"),
        ([row("1", head="2"), row("2"), row("3", head="4")], "line 3: HEAD is 4 in .* 3 words"),
        ([row("1", feats="Case")], "line 1: the feature 'Case' of 'Case' has no value"),
        ([row("1", feats="A=1|A=2")], "line 1: the entry 'A=2' of 'A=1.A=2' occurs twice"),
        ([row("1", misc="A|")], "line 1: the entry '' of 'A.' has no name"),
        ([ROW, "# late"], "line 2: a comment inside of a sentence"),
        (["# only", ""], "line 2: .*has no word"),
        ([row("0.1"), ""], "line 2: .*has no word"),
    ],
)
def test_broken_files_are_refused_with_their_line(lines, message):
    with pytest.raises(ColumnFormatError, match=f"<lines>, {message}"):
        read_conllu(lines)


def test_a_bad_feature_is_refused_again_when_it_comes_again():
    sentences = [row("1", feats="Case"), "", row("1", feats="Case")]
    for lines in sentences[:1], sentences[2:]:
        with pytest.raises(ColumnFormatError, match="has no value"):
            read_conllu(lines)


def test_packed_files_are_read(tmp_path):
    path = tmp_path / "a.conllu.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert len(read_conllu(path)) == 2


def test_words_become_features_and_labels(sentence):
    X, y = conllu_features_and_labels([sentence], fields=("form", "feats"))
    assert X[0][0] == {"form": "They", "feats": {"Case": "Nom", "Number": "Plur"}}
    assert y == [["PRON", "AUX", "PART", "PUNCT"]]
    _, morphology = conllu_features_and_labels([sentence], label="feats")
    assert morphology == [["Case=Nom|Number=Plur", "Mood=Ind", "_", "_"]]


def test_surface_tokens_join_the_labels_of_their_words(sentence):
    X, y = conllu_features_and_labels([sentence], fields=("form", "lemma"), tokens="surface")
    assert X[0][1] == {"form": "don't", "lemma": "do+not"}
    assert y == [["PRON", "AUX+PART", "PUNCT"]]


def test_features_and_labels_train_a_model(sentence):
    X, y = conllu_features_and_labels([sentence] * 3, fields=("form", "feats"))
    assert "feats:Number:Plur" in SequenceVectorizer().fit(X).get_feature_names_out()
    assert CRFClassifier().fit(X, y).predict(X) == y


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": ["word"]}, "field='word' is not known"),
        ({"label": "pos"}, "field='pos' is not known"),
        ({"tokens": "all"}, "tokens='all' is not known"),
        ({"fields": ["upos"]}, "the label 'upos' is among the fields"),
    ],
)
def test_unknown_choices_are_refused(sentence, options, message):
    with pytest.raises(ValueError, match=message):
        conllu_features_and_labels([sentence], **options)


def test_writing_gives_back_the_text(tmp_path):
    write_conllu(tmp_path / "a.conllu", iter_conllu(io.StringIO(TEXT)))
    assert (tmp_path / "a.conllu").read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize(
    ("field", "value"),
    [("form", "a\tb"), ("form", "a\nb"), ("upos", ""), ("feats", {"A": "1|B=2"}), ("id", "7")],
)
def test_what_would_not_read_back_is_refused(sentence, field, value):
    broken = copy.deepcopy(sentence)
    broken.rows[0] = broken.rows[0]._replace(**{field: value})
    with pytest.raises(ColumnFormatError, match="sequence 1: "):
        write_conllu(io.StringIO(), [sentence, broken])


CELL = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\r"), min_size=1
).filter(str.strip)
NAME = st.text("abcXYZ", min_size=1)


@examples(10)
@given(
    st.lists(
        st.tuples(CELL, CELL, st.dictionaries(NAME, NAME), st.dictionaries(NAME, st.none() | NAME)),
        min_size=1,
    )
)
def test_what_was_written_reads_back(words):
    rows = [
        ConlluToken(str(i), form, "_", upos, "_", feats, None, "_", "_", misc)
        for i, (form, upos, feats, misc) in enumerate(words, start=1)
    ]
    file = io.StringIO()
    write_conllu(file, [ConlluSentence(rows)])
    file.seek(0)
    assert read_conllu(file) == [ConlluSentence(rows)]


CELLS = st.lists(st.sampled_from(["1", "2", "1-2", "0.1", "_", "a=b|c", "0", ""]), min_size=10)


@examples(40)
@given(st.lists(CELLS.map(lambda cells: "\t".join(cells[:10])) | st.sampled_from(["", "# a = b"])))
def test_any_lines_are_read_or_refused_by_line(lines):
    try:
        sentences = read_conllu(lines)
    except ColumnFormatError as error:
        assert str(error).startswith("<lines>, line ")
    else:
        rows = [row for sentence in sentences for row in sentence.rows]
        assert len(rows) == sum("\t" in line for line in lines)


def as_conllu_package(name):
    """Write an ID as the package conllu has it."""
    for sign in "-.":
        if sign in name:
            left, right = name.split(sign)
            return (int(left), sign, int(right))
    return int(name)


@pytest.mark.parametrize("path", TREEBANKS)
def test_treebanks_read_as_by_the_package_conllu(data_home, tmp_path, path):
    if not (data_home / path).is_file():
        pytest.skip(f"no {path} in {data_home}")
    conllu = pytest.importorskip("conllu")
    with gzip.open(data_home / path, "rt", encoding="utf-8", newline="") as file:
        text = "".join(itertools.islice(re.findall(r".*?\n\n", file.read(), flags=re.S), 400))
    (tmp_path / "some.conllu").write_text(text, "utf-8", newline="")
    ours, theirs = read_conllu(tmp_path / "some.conllu"), conllu.parse(text)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.metadata == {k: v for k, v in other.metadata.items() if v is not None}
        for mine_row, row in zip(mine.rows, other, strict=True):
            assert as_conllu_package(mine_row.id) == row["id"]
            assert mine_row.form == row["form"]
            assert mine_row.lemma == row["lemma"]
            assert mine_row.upos == row["upos"] or (mine_row.upos, row["upos"]) == ("_", "_")
            assert mine_row.feats == (row["feats"] or {})
            assert mine_row.head == row["head"]
            assert mine_row.misc == (row["misc"] or {})
    written = io.StringIO()
    write_conllu(written, ours)
    assert written.getvalue() == text
