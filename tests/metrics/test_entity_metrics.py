import json
import math
import random
import warnings

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from crfkit.metrics import (
    conlleval_report,
    entity_classification_report,
    entity_f1_score,
    entity_precision_recall_fscore_support,
    entity_precision_score,
    entity_recall_score,
    repair_tags,
    spans_from_tags,
    tags_from_spans,
)

AVERAGES = (None, "micro", "macro", "weighted")
TYPES = ("LOC", "PER", "A-B")
SEQEVAL_SCHEMES = ("IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU")

Y_TRUE = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"]]
Y_PRED = [["B-PER", "I-PER", "O", "B-PER"], ["O", "O"]]


@pytest.fixture
def seqeval():
    return pytest.importorskip("seqeval.metrics.sequence_labeling")


@pytest.fixture
def seqeval_scheme():
    return pytest.importorskip("seqeval.scheme")


def seqeval_default(seqeval, y_true, y_pred, **kwargs):
    return seqeval.precision_recall_fscore_support(y_true, y_pred, **kwargs)


def seqeval_strict(seqeval, y_true, y_pred, **kwargs):
    return seqeval.precision_recall_fscore_support_v1(y_true, y_pred, **kwargs)


def assert_same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def has_entities(sequences, **kwargs):
    return any(spans_from_tags(tags, **kwargs) for tags in sequences)


@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("suffix", [False, True])
def test_conlleval_mode_equals_seqeval(
    seqeval, random_pair, tag_set, average, zero_division, suffix
):
    kwargs = {"average": average, "zero_division": zero_division, "suffix": suffix}
    for seed in range(40):
        types = TYPES[: 1 + seed % 3]
        y_true, y_pred = random_pair(seed, tag_set("OBIES", types, suffix))
        expected = seqeval_default(seqeval, y_true, y_pred, **kwargs)
        assert_same(entity_precision_recall_fscore_support(y_true, y_pred, **kwargs), expected)


def readable_by_seqeval(scheme, tags):
    """Turn the E that seqeval's IOE1 overlooks into I: one that opens a chunk after another."""
    if scheme != "IOE1":
        return tags
    before = ["O", *tags[:-1]]
    return [
        tag if tag[0] != "E" or prev[1:] == tag[1:] else f"I{tag[1:]}"
        for prev, tag in zip(before, tags, strict=True)
    ]


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("scheme", SEQEVAL_SCHEMES)
def test_strict_mode_equals_seqeval(
    seqeval, seqeval_scheme, random_pair, tag_set, letters, scheme, average
):
    compared = 0
    for seed in range(40):
        tags = tag_set(letters[scheme], TYPES[: 1 + seed % 3])
        y_true, y_pred = (
            [readable_by_seqeval(scheme, tags) for tags in y] for y in random_pair(seed, tags)
        )
        if not has_entities(y_true + y_pred, scheme=scheme):
            continue  # seqeval's averages over no types are NaN
        compared += 1
        kwargs = {"average": average, "zero_division": seed % 2}
        expected = seqeval_strict(
            seqeval, y_true, y_pred, scheme=getattr(seqeval_scheme, scheme), **kwargs
        )
        found = entity_precision_recall_fscore_support(
            y_true, y_pred, mode="strict", scheme=scheme, **kwargs
        )
        assert_same(found, expected)
    assert compared > 26


def test_strict_ioe1_also_counts_the_legal_chunks_of_one_e_that_seqeval_overlooks(
    seqeval, seqeval_scheme, random_pair, tag_set
):
    overlooked = 0
    for seed in range(200):
        for tags in random_pair(seed, tag_set("OIE", TYPES[:2]))[0]:
            entities = seqeval_scheme.Tokens(tags, seqeval_scheme.IOE1).entities
            theirs = {(entity.start, entity.end, entity.tag) for entity in entities}
            ours = {tuple(span) for span in spans_from_tags(tags, "IOE1")}
            extra = ours - theirs
            overlooked += len(extra)
            assert theirs <= ours
            for start, stop, label in extra:
                assert (tags[start], stop) == (f"E-{label}", start + 1)
                assert start == 0 or tags[start - 1][1:] != f"-{label}"
    assert overlooked > 50


@pytest.mark.parametrize("digits", [1, 2, 4])
@pytest.mark.parametrize("types", [("PER", "LOC"), ("a-very-long-type-name", "X")])
def test_report_text_equals_seqeval(seqeval, random_pair, tag_set, digits, types):
    for seed in range(50):
        y_true, y_pred = random_pair(seed, tag_set("OBIES", types))
        expected = seqeval.classification_report(y_true, y_pred, digits=digits, zero_division=0)
        assert entity_classification_report(y_true, y_pred, digits=digits) == expected


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
def test_strict_report_dictionary_equals_seqeval(
    seqeval, seqeval_scheme, random_pair, tag_set, letters, scheme
):
    for seed in range(50):
        y_true, y_pred = random_pair(seed, tag_set(letters[scheme], TYPES), n_sequences=8)
        expected = seqeval.classification_report(
            y_true,
            y_pred,
            mode="strict",
            scheme=getattr(seqeval_scheme, scheme),
            output_dict=True,
            zero_division=0,
        )
        found = entity_classification_report(
            y_true, y_pred, mode="strict", scheme=scheme, output_dict=True
        )
        assert found == expected


def test_report_dictionary_is_json():
    report = entity_classification_report(Y_TRUE, Y_PRED, output_dict=True)
    assert json.loads(json.dumps(report)) == report


@pytest.mark.parametrize(
    "scheme", ["IO", "IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES", "BMEWO"]
)
def test_strict_counts_are_those_of_span_sets(random_pair, tag_set, letters, scheme):
    for seed in range(40):
        y_true, y_pred = random_pair(seed, tag_set(letters[scheme], TYPES[:2]))
        true, pred = (
            {(i, *span) for i, tags in enumerate(y) for span in spans_from_tags(tags, scheme)}
            for y in (y_true, y_pred)
        )
        precision, recall, _, support = entity_precision_recall_fscore_support(
            y_true, y_pred, mode="strict", scheme=scheme, average="micro"
        )
        assert precision == (len(true & pred) / len(pred) if pred else 0)
        assert recall == (len(true & pred) / len(true) if true else 0)
        assert support == len(true)


def test_precision_and_recall_swap_with_truth_and_prediction(random_pair, tag_set):
    for seed in range(50):
        y_true, y_pred = random_pair(seed, tag_set("OBI", TYPES))
        assert entity_precision_score(y_true, y_pred) == entity_recall_score(y_pred, y_true)
        assert entity_f1_score(y_true, y_pred) == entity_f1_score(y_pred, y_true)


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES"])
def test_repair_keeps_conlleval_scores(random_pair, tag_set, scheme):
    for seed in range(30):
        y_true, y_pred = random_pair(seed, tag_set("OBIES", TYPES))
        repaired = [repair_tags(tags, scheme) for tags in y_pred]
        assert entity_f1_score(y_true, repaired) == entity_f1_score(y_true, y_pred)


@pytest.mark.parametrize(("letters_", "target"), [("LU", "BILOU"), ("MW", "BMEWO")])
def test_conlleval_mode_reads_other_spellings_as_iobes(random_pair, tag_set, letters_, target):
    spelling = dict(zip("ES" if target == "BILOU" else "IS", letters_, strict=True))
    for seed in range(50):
        y_true, y_pred = random_pair(seed, tag_set("OBIES", TYPES))
        respelled = [
            [[spelling.get(tag[0], tag[0]) + tag[1:] for tag in tags] for tags in y]
            for y in (y_true, y_pred)
        ]
        assert entity_f1_score(*respelled) == entity_f1_score(y_true, y_pred)


def test_type_may_hold_the_delimiter():
    y = [["B-A-B", "I-A-B"], ["B-A", "I-B"]]
    assert list(entity_classification_report(y, y, output_dict=True))[:3] == ["A", "A-B", "B"]


@pytest.mark.parametrize("suffix", [False, True])
def test_bare_tags_have_the_type_underscore(suffix):
    y = [["B", "I", "O", "B"]]
    report = entity_classification_report(y, y, output_dict=True, suffix=suffix)
    assert report["_"] == {"precision": 1, "recall": 1, "f1-score": 1, "support": 2}


def test_types_of_one_side_only_are_counted():
    report = entity_classification_report(
        [["B-NEVER-PREDICTED", "O"]], [["O", "B-NEVER-TRUE"]], output_dict=True
    )
    assert report["NEVER-PREDICTED"]["support"] == 1
    assert report["NEVER-TRUE"]["support"] == 0
    assert report["micro avg"]["f1-score"] == 0


def test_labels_select_and_order_types():
    precision, recall, _, support = entity_precision_recall_fscore_support(
        Y_TRUE, Y_PRED, labels=["PER", "MISSING", "LOC"]
    )
    np.testing.assert_array_equal(precision, [0.5, 0, 0])
    np.testing.assert_array_equal(recall, [1, 0, 0])
    np.testing.assert_array_equal(support, [1, 0, 1])
    assert entity_f1_score(Y_TRUE, Y_PRED, labels=["PER"]) == pytest.approx(2 / 3, rel=1e-15)


@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_fscore_follows_its_definition(beta):
    precision, recall, fscore, _ = entity_precision_recall_fscore_support(
        Y_TRUE, Y_PRED, average="micro", beta=beta
    )
    expected = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    assert precision != recall
    assert fscore == expected


def test_infinite_beta_is_recall():
    _, recall, fscore, _ = entity_precision_recall_fscore_support(
        Y_TRUE, Y_PRED, average="micro", beta=math.inf
    )
    assert fscore == recall == 1 / 3


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("y", [[], [[]], [["O"], []]])
@pytest.mark.parametrize("zero_division", [0, 1])
def test_no_entities_give_the_zero_division_value(y, average, zero_division):
    scores = entity_precision_recall_fscore_support(
        y, y, average=average, zero_division=zero_division
    )
    assert scores == (zero_division, zero_division, zero_division, 0)


def test_report_without_entities_has_averages_only():
    lines = entity_classification_report([["O"]], [["O"]]).splitlines()
    assert [line.split()[0] for line in lines if line.strip()] == [
        "precision",
        "micro",
        "macro",
        "weighted",
    ]


def test_warn_is_zero_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="Recall is 0/0"):
        assert entity_recall_score([["O"]], [["B-X"]], zero_division="warn") == 0


def test_strict_mode_without_scheme_takes_the_one_of_the_truth():
    y_true = [["S-PER", "O", "B-LOC", "E-LOC"]]
    y_pred = [["S-PER", "O", "B-LOC", "I-LOC"]]
    detected = entity_f1_score(y_true, y_pred, mode="strict")
    assert detected == entity_f1_score(y_true, y_pred, mode="strict", scheme="IOBES")
    assert detected < entity_f1_score(y_true, y_pred)


@pytest.mark.parametrize(
    "convert",
    [
        lambda y: [tuple(tags) for tags in y],
        lambda y: [np.array(tags) for tags in y],
        lambda y: [np.array(tags, dtype=object) for tags in y],
        lambda y: (iter(tags) for tags in y),
        lambda y: np.array([np.array(tags, dtype=object) for tags in y], dtype=object),
    ],
    ids=["tuples", "arrays", "object arrays", "generators", "array of arrays"],
)
def test_containers_do_not_matter(convert):
    for kwargs in ({}, {"mode": "strict"}):
        assert entity_f1_score(convert(Y_TRUE), convert(Y_PRED), **kwargs) == 0.4


def test_equal_lengths_as_a_matrix_of_strings():
    y_true, y_pred = [["B-X", "O"], ["O", "B-Y"]], [["B-X", "O"], ["B-Y", "O"]]
    assert entity_f1_score(np.array(y_true), np.array(y_pred)) == 0.5


def test_spans_do_not_cross_sequences():
    whole, cut = [["B-X", "I-X", "I-X", "O"]], [["B-X", "I-X"], ["I-X", "O"]]
    assert entity_precision_recall_fscore_support(whole, whole, average="micro")[3] == 1
    assert entity_precision_recall_fscore_support(cut, cut, average="micro")[3] == 2


@pytest.mark.parametrize(
    ("y_true", "y_pred", "kwargs", "error", "message"),
    [
        ([["O"]], [["O"], ["O"]], {}, ValueError, "y_true has 1 sequences but y_pred has 2"),
        (
            [["O"], ["O", "O"]],
            [["O"], ["O"]],
            {},
            ValueError,
            "sequence 1 has 2 labels in y_true but 1 in y_pred",
        ),
        (["O", "O"], ["O", "O"], {}, TypeError, r"for one sequence pass \[y_true\]"),
        ("O", "O", {}, TypeError, "y_true must be a list of sequences, not str"),
        ([["O", "O"], ["O", "X-PER"]], [["O"] * 2] * 2, {}, ValueError, "sequence 1, position 1"),
        ([["PER-B"]], [["O"]], {}, ValueError, "did you mean suffix=True"),
        ([["B-PER"]], [["O"]], {"suffix": True}, ValueError, "did you mean suffix=False"),
        ([["O-PER"]], [["O"]], {}, ValueError, "'O-PER' is not a tag"),
        ([["O"]], [[""]], {}, ValueError, "'' is not a tag"),
        ([["O"]], [[1]], {}, TypeError, "sequence 0, position 0: tags are strings"),
        ([["O"]], [[["O"]]], {}, TypeError, "sequence 0, position 0 is not hashable"),
        ([["O"]], [["E-X"]], {"mode": "strict", "scheme": "IOB2"}, ValueError, "tag of IOB2"),
        ([["O"]], [["O"]], {"mode": "strict", "scheme": "IOB3"}, ValueError, "known schemes"),
        ([["O"]], [["O"]], {"scheme": "IOB2"}, ValueError, "mode='strict'"),
        ([["O"]], [["O"]], {"mode": "lenient"}, ValueError, "'conlleval' or 'strict'"),
        ([["O", "I-X", "E-Y"]], [["O"] * 3], {"mode": "strict"}, ValueError, "no scheme"),
        ([["O"]], [["O"]], {"average": "samples"}, ValueError, "average is None or one of"),
        ([["O"]], [["O"]], {"zero_division": 2}, ValueError, "zero_division is 0, 1"),
    ],
)
def test_errors_say_what_is_wrong(y_true, y_pred, kwargs, error, message):
    with pytest.raises(error, match=message):
        entity_f1_score(y_true, y_pred, **kwargs)


def test_negative_beta_is_refused():
    with pytest.raises(ValueError, match="beta is at least 0"):
        entity_precision_recall_fscore_support(Y_TRUE, Y_PRED, beta=-1)


# The example on the page of the CoNLL-2000 shared task that describes conlleval's output.
PUBLISHED_REPORT = """\
processed 961 tokens with 459 phrases; found: 539 phrases; correct: 371.
accuracy:  87.20%; precision:  68.83%; recall:  80.83%; FB1:  74.35
             ADJP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
             ADVP: precision:  45.45%; recall:  62.50%; FB1:  52.63  11
               NP: precision:  64.98%; recall:  78.63%; FB1:  71.16  317
               PP: precision:  83.18%; recall:  98.89%; FB1:  90.36  107
             SBAR: precision:  66.67%; recall:  33.33%; FB1:  44.44  3
               VP: precision:  69.00%; recall:  79.31%; FB1:  73.80  100"""
#: Type: true, found and correct phrases, as those percentages and their sums fix them.
PUBLISHED_COUNTS = {
    "ADJP": (6, 1, 0),
    "ADVP": (8, 11, 5),
    "NP": (262, 317, 206),
    "PP": (90, 107, 89),
    "SBAR": (6, 3, 2),
    "VP": (87, 100, 69),
}
PUBLISHED_TOKENS, PUBLISHED_WRONG_TOKENS = 961, 123


def published_data():
    """Build sequences with the published counts: right, split, missed and spurious phrases."""
    pairs = []
    for name, (true, found, correct) in PUBLISHED_COUNTS.items():
        begin, inside = f"B-{name}", f"I-{name}"
        missed, spurious = true - correct, found - correct
        split = min(missed, spurious // 2)
        pairs += [([begin], [begin])] * correct
        pairs += [([begin, inside], [begin, begin])] * split
        pairs += [([begin], ["O"])] * (missed - split)
        pairs += [(["O"], [begin])] * (spurious - 2 * split)
    wrong = sum(a != b for true, pred in pairs for a, b in zip(true, pred, strict=True))
    longer = PUBLISHED_WRONG_TOKENS - wrong
    last = PUBLISHED_TOKENS - sum(len(true) for true, _ in pairs)
    pairs[-1][0].extend(["O"] * longer)
    pairs[-1][1].extend(["I-VP"] * longer)
    pairs.append((["O"] * (last - longer), ["O"] * (last - longer)))
    random.Random(0).shuffle(pairs)
    return [true for true, _ in pairs], [pred for _, pred in pairs]


def test_conlleval_report_equals_the_published_output():
    assert conlleval_report(*published_data()) == PUBLISHED_REPORT


def test_conlleval_report_agrees_with_the_scores(random_pair, tag_set):
    y_true, y_pred = random_pair(0, tag_set("OBI", TYPES), n_sequences=50)
    fb1 = float(conlleval_report(y_true, y_pred).splitlines()[1].rpartition(":")[2])
    assert fb1 == pytest.approx(100 * entity_f1_score(y_true, y_pred), abs=0.005)


@pytest.mark.parametrize("y", [[], [["O", "O"]]])
def test_conlleval_report_without_phrases(y):
    first, second = conlleval_report(y, y).splitlines()
    assert first.endswith("with 0 phrases; found: 0 phrases; correct: 0.")
    assert second.endswith("precision:   0.00%; recall:   0.00%; FB1:   0.00")


def test_no_numpy_warnings_on_any_zero():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y_true, y_pred in [([["O"]], [["B-X"]]), ([["B-X"]], [["O"]]), ([], [])]:
            for average in AVERAGES:
                entity_precision_recall_fscore_support(y_true, y_pred, average=average)


def test_many_types_are_all_counted():
    names = [f"T{i}" for i in range(500)]
    y = [tags_from_spans([(0, 2, name)], 3) for name in names]
    report = entity_classification_report(y, y, output_dict=True)
    assert set(names) < set(report)
    assert report["micro avg"] == {"precision": 1, "recall": 1, "f1-score": 1, "support": 500}
