"""Texts with spans: what is written comes back, and what is wrong is named."""

import io
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import UNLABELED
from crfkit.io import (
    ColumnFormatError,
    iter_doccano,
    iter_label_studio,
    iter_prodigy,
    read_brat,
    read_doccano,
    read_label_studio,
    read_prodigy,
    write_brat,
    write_doccano,
    write_label_studio,
    write_prodigy,
)
from crfkit.metrics import Segment
from crfkit.text import AnnotatedText, as_tokenizer
from tests.sampling import examples

SIGNS = 'ab1 .\t\n\r\u2028é\u0301\U0001f469\u200d中\u05d0\ufeff"\\'


@st.composite
def texts(draw):
    text = draw(st.text(SIGNS, max_size=14))
    ends = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    spans = [
        Segment(a, b, draw(st.sampled_from(["PER", "X-y"])))
        for a, b in draw(st.lists(ends, max_size=3))
        if a < b and text[a:b].strip("\r\n")
    ]
    scores = draw(st.none() | st.just([0.1 + 0.2] * len(spans))) if spans else None
    offsets = draw(st.none() | st.just(as_tokenizer("words")(text)))
    meta = draw(st.sampled_from([{}, {"source": "é", "n": [1, None]}]))
    return AnnotatedText(text, spans, meta=meta, span_probabilities=scores, offsets=offsets)


def there_and_back(write, read, items, **options):
    file = io.StringIO()
    write(file, items, **options)
    return read(io.StringIO(file.getvalue()), **options)


def said(items):
    return [(x.text, x.spans, x.id, x.span_probabilities) for x in items]


@examples(25)
@given(st.lists(texts(), max_size=3), st.sampled_from(["characters", "utf16"]))
def test_texts_come_back_from_every_format(items, offsets):
    for number, item in enumerate(items):
        item.id = f"t{number}"
    there = there_and_back(write_doccano, read_doccano, items, offsets=offsets)
    assert said(there) == said(items)
    assert [{k: v for k, v in x.meta.items() if k != "span_fields"} for x in there] == [
        x.meta for x in items
    ]
    assert there_and_back(write_prodigy, read_prodigy, items) == items
    for of in ("annotations", "predictions"):
        file = io.StringIO()
        write_label_studio(file, items, of=of, offsets=offsets)
        there = read_label_studio(io.StringIO(file.getvalue()), of=of, offsets=offsets)
        assert said(there) == said(items)
    file = io.StringIO()
    write_label_studio(file, items, form="min", offsets=offsets)
    assert said(read_label_studio(io.StringIO(file.getvalue()), offsets=offsets)) == said(items)
    with tempfile.TemporaryDirectory() as folder:
        held = [x for x in items if all(c == c.strip() for c in x.covered())]
        if held:
            write_brat(folder, held)
            assert said(read_brat(folder)) == said(held)


DOCCANO = {
    "id": 6400,
    "text": "Ann met Bob",
    "Comments": [],
    "entities": [
        {"id": 1662, "label": "PER", "start_offset": 0, "end_offset": 3},
        {"id": 1663, "label": "PER", "start_offset": 8, "end_offset": 11},
    ],
    "relations": [{"id": 273, "from_id": 1662, "to_id": 1663, "type": "met"}],
}
PRODIGY = {
    "text": "Ann met",
    "_input_hash": 5,
    "tokens": [
        {"text": "Ann", "start": 0, "end": 3, "id": 0, "ws": True, "disabled": True},
        {"text": "met", "start": 4, "end": 7, "id": 1, "ws": False},
    ],
    "spans": [
        {"start": 0, "end": 3, "label": "PER", "token_start": 0, "token_end": 0, "source": "m"}
    ],
    "answer": "accept",
}
REGION = {
    "id": "r1",
    "from_name": "label",
    "to_name": "text",
    "type": "labels",
    "origin": "manual",
    "value": {"start": 3, "end": 6, "text": "Ann", "labels": ["PER", "VIP"]},
}
RELATION = {"from_id": "r1", "to_id": "r1", "type": "relation", "direction": "right"}
TASK = {
    "id": 3,
    "project": 8,
    "data": {"text": "😀, Ann", "author": "x"},
    "annotations": [{"id": 9, "completed_by": 1, "result": [REGION, RELATION]}],
    "predictions": [],
}


@pytest.mark.parametrize(
    ("write", "read", "record"),
    [
        (write_doccano, read_doccano, DOCCANO),
        (write_doccano, read_doccano, {"id": 1, "text": "Ann", "label": [[0, 3, "PER"]], "x": 1}),
        (write_prodigy, read_prodigy, PRODIGY),
        (write_label_studio, read_label_studio, TASK),
    ],
)
def test_records_of_the_tools_come_back_with_all_their_fields(write, read, record):
    file = io.StringIO()
    write(file, read(io.StringIO(json.dumps([record]))))
    found = json.loads(file.getvalue())
    assert (found[0] if isinstance(found, list) else found) == record


def test_older_and_smaller_forms_are_read():
    older = [
        {"text": "Ann", "labels": [[0, 3, "PER"]]},
        {"text": "Ann", "annotations": [{"label": "PER", "start_offset": 0, "end_offset": 3}]},
        {"data": "Ann", "label": [[0, 3, "PER"]]},
    ]
    completion = {"completions": [{"result": [REGION]}], "data": {"text": "😀, Ann"}}
    small = {"id": 3, "text": "😀, Ann", "label": [REGION["value"]], "annotator": 1}
    assert {tuple(one.spans) for one in read_doccano(older)} == {(Segment(0, 3, "PER"),)}
    for task in (completion, small):
        (one,) = read_label_studio([task])
        assert one.spans == [Segment(3, 6, "PER"), Segment(3, 6, "VIP")]


def test_the_small_form_of_label_studio_comes_back(tmp_path):
    small = {
        "id": 3, "text": "😀, Ann", "author": "x", "label": [REGION["value"]], "annotator": 1,
        "annotation_id": 9, "lead_time": None,
    }  # fmt: skip
    write_label_studio(tmp_path / "a.json", read_label_studio([small]), form="min")
    assert json.loads((tmp_path / "a.json").read_text()) == [small]
    task = TASK | {"annotations": [TASK["annotations"][0] | {"result": [REGION]}]}
    write_label_studio(tmp_path / "a.json", read_label_studio([task]), form="min")
    (found,) = json.loads((tmp_path / "a.json").read_text())
    assert {key: found[key] for key in small if key != "lead_time"} == {
        key: value for key, value in small.items() if key != "lead_time"
    }
    second = small | {"annotation_id": 10, "label": []}
    with pytest.raises(ColumnFormatError, match=r"\(id 3\) has 2 annotations"):
        read_label_studio([small, second])
    assert [len(x.spans) for x in read_label_studio([small, second], several="each")] == [2, 0]
    with pytest.warns(UserWarning, match="1 tasks have no annotations"):
        assert read_label_studio([second | {"annotation_id": None}]) == []


def test_positions_in_units_of_javascript_are_told_by_what_spans_cover():
    value = {"start": 4, "end": 7, "text": "Ann", "labels": ["PER"]}
    task = {"data": {"text": "😀, Ann!"}, "annotations": [{"result": [REGION | {"value": value}]}]}
    with pytest.raises(ColumnFormatError, match="covers 'nn!', but the file says 'Ann'.*utf16"):
        read_label_studio([task])
    assert read_label_studio([task], offsets="utf16")[0].covered() == ["Ann"]


def test_what_is_not_read_is_counted():
    answers = [PRODIGY, PRODIGY | {"answer": "reject"}, PRODIGY | {"answer": "ignore"}]
    with pytest.warns(UserWarning, match="1 with 'ignore', 1 with 'reject'"):
        assert len(read_prodigy(answers)) == 1
    assert [one.meta["answer"] for one in read_prodigy(answers, answers=None)][1:] == [
        "reject", "ignore"]  # fmt: skip
    with pytest.warns(UserWarning, match="1 tasks have no annotations"):
        assert read_label_studio([{"data": {"text": "a"}, "annotations": []}]) == []


def test_tasks_with_several_annotations_need_a_choice():
    task = TASK | {"annotations": [{"result": []}, {"result": [REGION]}]}
    with pytest.raises(ColumnFormatError, match=r"record 0 \(id 3\) has 2 annotations"):
        read_label_studio([task])
    counts = {"first": [0], "last": [2], "each": [0, 2]}
    for several, expected in counts.items():
        found = read_label_studio([task], several=several)
        assert [len(one.spans) for one in found] == expected


BRAT = """\
T1\tPER 0 3\tAnn
T2\tORG 4 7;8 11\tthe end
T3\tORG 0 3;8 11\tAnn end
R1\tOwns Arg1:T1 Arg2:T2
A1\tNegated T3
#1\tAnnotatorNotes T1\tsure
*\tEquiv T1 T2
T9\tPER 0 3\tAnn\tmore
"""


def test_spans_of_several_lines_are_parts_as_brat_makes_them(tmp_path):
    text = "Foo\n  Bar\tBaz \r\n end\n"
    write_brat(tmp_path, [AnnotatedText(text, [(0, 19, "P"), (6, 9, "Q")], id="a")])
    lines = (tmp_path / "a.ann").read_text().split("\n")
    assert lines[0] == "T1\tP 0 3;6 9;10 13;17 19\tFoo Bar Baz en"
    assert read_brat(tmp_path)[0].spans == [Segment(0, 19, "P"), Segment(6, 9, "Q")]
    with pytest.warns(UserWarning, match="1 spans begin or end with the end of a line.*text 0"):
        write_brat(tmp_path, [AnnotatedText(text, [(3, 10, "P")], id="a")])
    assert read_brat(tmp_path)[0].covered() == ["Bar"]


def test_brat_files_come_back_line_by_line(tmp_path):
    folder, other = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    (folder / "one.txt").write_bytes(b"Ann the\nend\r\n")
    (folder / "one.ann").write_text(BRAT)
    with pytest.warns(UserWarning, match="1 spans have several parts.*one.ann, line 3"):
        (one,) = read_brat(folder)
    assert one.spans == [Segment(0, 3, "PER"), Segment(4, 11, "ORG"), Segment(0, 3, "PER")]
    write_brat(other, [one])
    assert sorted((other / "one.ann").read_text().splitlines()) == sorted(BRAT.splitlines())
    assert (other / "one.txt").read_bytes() == b"Ann the\nend\r\n"
    (covered,) = read_brat(folder / "one.ann", discontinuous="cover")
    assert covered.spans[2] == Segment(0, 11, "ORG")


def named(key):
    return AnnotatedText("ab", [(0, 1, "P")], meta={key: "yes"})


def write_pair(folder, text, notes):
    (folder / "x.txt").write_text(text)
    (folder / "x.ann").write_text(notes)
    return folder


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: read_doccano(["{"]), "record 0: no JSON"),
        (
            lambda f: read_doccano(io.StringIO('{"text": "a", "label": []}\n[1]')),
            "line 2: expected",
        ),
        (lambda f: read_doccano([{"text": "a"}]), "record 0: there are no spans"),
        (lambda f: read_doccano([{"text": "a", "label": ["PER"]}]), "label 0: 'PER' is no span"),
        (lambda f: read_doccano([{"text": "a", "label": [[0, 2, "P"]]}]), "within its 1"),
        (lambda f: read_doccano([{"label": []}]), "there is no 'text'"),
        (lambda f: read_prodigy([{"text": "a", "label": [[0, 1, "X"]]}]), "by read_doccano"),
        (lambda f: read_prodigy([{"text": "a", "spans": [{"start": 0}]}]), "span 0: .* no 'end'"),
        (lambda f: read_prodigy([PRODIGY | {"text": "Anna met"}]), "token 1: the token is 'met'"),
        (lambda f: read_prodigy([PRODIGY | {"tokens": [None]}]), "record 0, token 0: .* is None"),
        (lambda f: read_label_studio([TASK | {"annotations": True}]), "record 0: 'annotations'"),
        (lambda f: read_label_studio([{"text": "a", "label": [{"labels": []}]}]), "no 'start'"),
        (lambda f: read_prodigy([PRODIGY | {"answer": "yes"}]), "the answer is 'yes'"),
        (lambda f: read_prodigy([PRODIGY], answers=["yes"]), "answers="),
        (lambda f: read_prodigy(PRODIGY), "put it into a list"),
        (lambda f: read_label_studio([{"data": {"t": "a"}}]), "there is no 'text'"),
        (lambda f: read_brat(write_pair(f, "ab", "T1\tP 0 3\tab\n")), "x.ann, line 1: .*within"),
        (lambda f: read_brat(write_pair(f, "ab", "T1\tP 0 2\tac\n")), "but the file says 'ac'"),
        (lambda f: read_brat(write_pair(f, "ab", "T1 P 0 2 ab\n")), "is no span"),
        (lambda f: read_brat(f), "no .ann files"),
        (lambda f: read_brat(f / "y.txt"), "y.txt is missing"),
        (lambda f: write_brat(f, [AnnotatedText("ab", [(0, 1, "a b")])]), "label 'a b'"),
        (lambda f: write_brat(f, [AnnotatedText("ab", id="a/b")]), "no name of a file"),
        (lambda f: write_brat(f, [AnnotatedText("\nb", [(0, 1, "P")])]), "but ends of lines"),
        (lambda f: write_doccano(io.StringIO(), AnnotatedText("a")), "put it into a list"),
        (
            lambda f: write_prodigy(io.StringIO(), [AnnotatedText("a", [(0, 1, UNLABELED)])]),
            "text 0: the part .* is UNLABELED",
        ),
        (
            lambda f: write_doccano(
                io.StringIO(), [AnnotatedText("a", meta={"relations": [{"from_id": 1}]})]
            ),
            "text 0: the relation",
        ),
        (
            lambda f: write_prodigy(io.StringIO(), [AnnotatedText("a", id=3, meta={"x": {1}})]),
            r"text 0 \(id 3\): JSON cannot hold it",
        ),
        (lambda f: write_doccano(f / "x", [AnnotatedText("\ud83d")]), "sequence 0: .* encoded"),
        *(
            (lambda f, write=write, key=key: write(f / "x", [named(key)]), f"text 0: meta.'{key}'")
            for write, key in [
                (write_doccano, "text"),
                (write_doccano, "label"),
                (write_prodigy, "spans"),
                (write_prodigy, "tokens"),
                (write_prodigy, "answer"),
                (write_label_studio, "completions"),
            ]
        ),
        (
            lambda f: write_brat(
                f,
                [
                    AnnotatedText(
                        "ab", [(0, 1, "P")], meta={"span_fields": [{"fragments": [(0, 2)]}]}
                    )
                ],
            ),
            "is not what its parts",
        ),
    ],
)
def test_what_breaks_a_format_is_named(call, message, tmp_path):
    with pytest.raises((ColumnFormatError, TypeError, ValueError), match=message):
        call(tmp_path)


def test_one_text_is_read_at_a_time():
    record, region = json.dumps(DOCCANO), json.dumps(TASK, indent=1)
    for read, listed, one in (
        (iter_doccano, record + "\n", DOCCANO),
        (iter_prodigy, json.dumps(PRODIGY) + "\n", PRODIGY),
        (iter_doccano, "[" + record + " ,\n", DOCCANO),
        (iter_label_studio, "[" + region + ",\n", TASK),
    ):  # fmt: skip
        file = io.StringIO(listed + listed.removeprefix("[") * 50)
        whole = read(file)
        assert (next(whole), next(whole)) == (next(read([one])),) * 2
        assert file.tell() < 5 * len(listed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "record 0: no JSON: the file ends within the list"),
        ('[{"text": "a"', "record 0: no JSON.*the file ends"),
        ('[{"text": "a", "label": []} {"', "record 1: no JSON: expected ',', found '{"),
        ('[{"text": "a", "label": []},]', "record 1: no JSON: Expecting value"),
        ('[{"text": "a", "label": []},\n{"text" "a", "label": []}]', "record 1: no JSON"),
        ("[]\n\n3", "something follows the list"),
        ("[3]", "record 0: expected an object, found 3"),
    ],
)
def test_lists_that_are_none_are_told(text, message):
    with pytest.raises(ColumnFormatError, match=message):
        read_doccano(io.StringIO(text))


def test_files_of_lines_and_of_lists_packed_or_not(tmp_path):
    items = [AnnotatedText("Ann\n😀", [(0, 3, "PER")], id=1)]
    for name in ("a.jsonl", "a.jsonl.gz"):
        write_doccano(tmp_path / name, items)
        assert read_doccano(tmp_path / name) == items
    (tmp_path / "b.json").write_bytes(b"\xef\xbb\xbf \n" + json.dumps([DOCCANO]).encode())
    assert read_doccano(tmp_path / "b.json") == read_doccano([DOCCANO])
    pipe = io.StringIO(json.dumps([DOCCANO], indent=1))
    pipe.seekable = lambda: False
    assert read_doccano(pipe) == read_doccano([DOCCANO])
    with open(tmp_path / "b.json", "rb") as file:
        assert read_doccano(file) == read_doccano([DOCCANO])
    assert Path(tmp_path / "a.jsonl").read_text().count("\n") == 1
