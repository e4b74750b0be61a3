import builtins
import re
import sys
from collections import Counter

import pandas as pd
import pytest
from sklearn.utils import Bunch

from crfkit.datasets import ingredient_features, load_ingredients, tokenize_ingredient


@pytest.fixture(scope="module")
def corpus():
    return load_ingredients()


def spans(tags):
    """Return the (start, end, label) of every IOB2 span."""
    starts = [i for i, tag in enumerate(tags) if tag.startswith("B-")]
    found = []
    for start in starts:
        end = start + 1
        while end < len(tags) and tags[end] == "I" + tags[start][1:]:
            end += 1
        found.append((start, end, tags[start][2:]))
    return found


def test_the_bunch_holds_parallel_lists(corpus):
    assert isinstance(corpus, Bunch)
    assert len(corpus.tokens) == len(corpus.tags) == len(corpus.texts) >= 450
    assert all(len(t) == len(g) > 0 for t, g in zip(corpus.tokens, corpus.tags, strict=True))


def test_every_line_retokenizes_to_its_tokens(corpus):
    assert [tokenize_ingredient(text) for text in corpus.texts] == corpus.tokens


def test_tags_are_valid_iob2(corpus):
    for tags in corpus.tags:
        for before, tag in zip(["O", *tags], tags, strict=False):
            if tag.startswith("I-"):
                assert before[2:] == tag[2:]


def test_target_names_are_the_tags_that_occur(corpus):
    assert set(corpus.target_names) == {tag for tags in corpus.tags for tag in tags}
    assert len(corpus.target_names) == 11
    assert corpus.labels == sorted({name[2:] for name in corpus.target_names} - {""})


def test_no_line_occurs_twice(corpus):
    lines = Counter(" ".join(tokens).lower() for tokens in corpus.tokens)
    assert lines.most_common(1)[0][1] == 1


def test_spans_neither_begin_nor_end_with_a_comma(corpus):
    for tokens, tags in zip(corpus.tokens, corpus.tags, strict=True):
        for start, end, _ in spans(tags):
            assert tokens[start] != ","
            assert tokens[end - 1] != ","


def test_brackets_inside_of_a_span_come_in_pairs(corpus):
    for tokens, tags in zip(corpus.tokens, corpus.tags, strict=True):
        for start, end, _ in spans(tags):
            inside = tokens[start:end]
            assert inside.count("(") == inside.count(")")


def test_neighboring_preparations_and_remarks_are_one_span(corpus):
    # A guideline that slips easily: "peeled, cored" is one PREP.
    for tokens, tags in zip(corpus.tokens, corpus.tags, strict=True):
        found = spans(tags)
        for (_, end, label), (start, _, following) in zip(found, found[1:], strict=False):
            if label == following and label in ("PREP", "COMMENT"):
                assert tokens[end:start] not in ([","], ["and"])


def test_difficulty_is_mixed_over_the_file(corpus):
    lengths = [len(tags) for tags in corpus.tags]
    fifth = len(lengths) // 5
    means = [sum(lengths[i * fifth : (i + 1) * fifth]) / fifth for i in range(5)]
    assert max(means) < 1.25 * min(means)


def test_data_card_counts_are_those_of_the_file(corpus):
    flat = [tag for tags in corpus.tags for tag in tags]
    kinds = Counter(tag[2:] for tag in flat if tag.startswith("B-"))
    expected = {
        "lines": len(corpus.tokens),
        "tokens": len(flat),
        "distinct tokens (lower-cased)": len({t.lower() for line in corpus.tokens for t in line}),
        "spans": sum(kinds.values()),
        **{f"{label} spans": count for label, count in kinds.items()},
        "O tokens": flat.count("O"),
    }
    card = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|$", corpus.DESCR, flags=re.MULTILINE))
    assert {what: int(count) for what, count in card.items()} == expected
    assert f"{len(corpus.tokens)} lines of ingredient lists" in corpus.DESCR


def test_data_card_example_is_in_the_file(corpus):
    example = re.findall(r"^    (\S+) (\S+)$", corpus.DESCR, flags=re.MULTILINE)
    assert example
    lines = [list(zip(*pair, strict=True)) for pair in zip(corpus.tokens, corpus.tags, strict=True)]
    assert example in lines


@pytest.mark.parametrize("heading", ["Origin and license", "Guidelines", "Known limits"])
def test_data_card_has_its_sections(corpus, heading):
    assert f"## {heading}\n" in corpus.DESCR


def test_return_X_y_gives_tokens_and_tags(corpus):
    assert load_ingredients(return_X_y=True) == (corpus.tokens, corpus.tags)


def test_frame_holds_one_row_per_token(corpus):
    frame = load_ingredients(as_frame=True)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["line", "token", "tag"]
    grouped = frame.groupby("line")
    assert grouped["token"].agg(list).tolist() == corpus.tokens
    assert grouped["tag"].agg(list).tolist() == corpus.tags


def test_calls_do_not_share_lists(corpus):
    load_ingredients().tokens[0].append("changed")
    assert load_ingredients().tokens == corpus.tokens


def test_tuple_and_frame_exclude_each_other():
    with pytest.raises(ValueError, match="exclude each other"):
        load_ingredients(return_X_y=True, as_frame=True)


def test_missing_pandas_is_explained(monkeypatch):
    real_import = builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "pandas")
    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="needs pandas"):
        load_ingredients(as_frame=True)
    assert load_ingredients().tokens


def test_a_crf_finds_most_held_out_spans_but_not_all(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    tokens, tags = load_ingredients(return_X_y=True)
    features = [ingredient_features(line) for line in tokens]
    trainer = pycrfsuite.Trainer(verbose=False, params={"c1": 0, "c2": 0.3, "max_iterations": 100})
    for x, y in zip(features[100:], tags[100:], strict=True):
        trainer.append(x, y)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    true = [set(spans(y)) for y in tags[:100]]
    found = [set(spans(tagger.tag(x))) for x in features[:100]]
    hits = sum(len(t & f) for t, f in zip(true, found, strict=True))
    assert 0.75 < 2 * hits / sum(map(len, true + found)) < 0.95
