"""Rules as users write them: what they are made of, files, errors, and why nothing is left."""

import copy
import re
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from crfkit import (
    UNLABELED,
    CRFClassifier,
    CRFClassifierCV,
    MaxMarginCRF,
    MEMMClassifier,
    SegmentLimits,
    Segments,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
    TokenClassifier,
)
from crfkit.constraints import (
    RULES,
    AllowedAt,
    AllowedWith,
    Automaton,
    Before,
    Constraints,
    Contiguous,
    Count,
    Ends,
    GlobalRule,
    Known,
    Limits,
    NotTogether,
    Steps,
    TagScheme,
)
from crfkit.data import Forest
from crfkit.inference import BeamSearch
from crfkit.inference.infeasible import irreducible
from crfkit.persistence import dumps, loads
from tests.constraints.targets import target_of
from tests.estimators.segmentations import TAGS, X

IOB2 = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]


@pytest.fixture(scope="module")
def crf():
    return CRFClassifier(c2=0.1).fit(X, TAGS)


ALL = Constraints(
    [
        TagScheme("IOB2"),
        Steps(forbidden=[("B-PER", "B-LOC")], allowed=[("O", "O")]),
        Ends(first=["O"]),
        AllowedAt({0: ["O"], -1: {"O", "B-LOC"}}),
        AllowedWith({"w:ann": ["PER"]}),
        Known([["O", UNLABELED, {"O", "B-PER"}], [(0, 2, "PER")]]),
    ]
)


def test_constraints_come_back_from_json_and_from_files(tmp_path):
    text = ALL.to_json()
    path = tmp_path / "rules.json"
    path.write_text(text, encoding="utf-8")
    for again in (Constraints.from_json(text), Constraints.from_json(path),
                  Constraints.from_json(str(path)), clone(ALL), copy.deepcopy(ALL),
                  loads(dumps(ALL))):  # fmt: skip
        assert again == ALL
        assert again is not ALL
    assert Constraints.from_json("[]") == Constraints()
    assert Constraints() != ALL
    assert TagScheme("IOB1") != TagScheme("IOB2")
    assert TagScheme() != Ends()
    assert Known([["O"]]) == Known([("O",)])


def test_rules_are_shown_as_they_are_written():
    assert repr(TagScheme("IOB2")) == "TagScheme(scheme='IOB2')"
    assert repr(Constraints([Ends(last=["O"])])) == "Constraints(rules=[Ends(last=['O'])])"
    assert set(RULES) >= {"AllowedAt", "AllowedWith", "Ends", "Known", "Steps", "TagScheme"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"rule": "TagScheme"}', "must be a list"),
        ('["TagScheme"]', "is no rule"),
        ('[{"rule": "Scheme"}]', "is no rule.*TagScheme"),
        ('[{"rule": "TagScheme", "name": "IOB2"}]', "has no 'name'.*'scheme'"),
        ('[{"rule": ["TagScheme"]}]', "is no rule"),
        ('[{"rule": "Known"}]', "cannot be read.*'y'"),
        ('[{"rule": "AllowedAt", "labels": {"x": ["O"]}}]', "cannot be read.*'x'"),
    ],
)
def test_other_json_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        Constraints.from_json(text)


def test_a_label_that_json_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="which JSON can hold"):
        Constraints([Ends(first=[object()])]).to_json()


def test_scheme_names_rules_and_lists_are_constraints():
    found = Constraints.of(None, "IOB2", Ends(), [Steps(), ["IOBES"]], Constraints([TagScheme()]))
    assert found == [TagScheme("IOB2"), Ends(), Steps(), TagScheme("IOBES"), TagScheme()]
    assert Constraints.of(Constraints("IOB2"), Constraints(Ends())) == [TagScheme("IOB2"), Ends()]
    for estimator in (CRFClassifier, SemiMarkovCRF, StructuredPerceptron, MaxMarginCRF,
                      CRFClassifierCV, MEMMClassifier, TokenClassifier):  # fmt: skip
        with pytest.raises(TypeError, match="constraints=5 must be Constraints, a rule"):
            estimator(constraints=5).fit(X, TAGS)
        with pytest.raises(ValueError, match="unknown tag scheme 'IOB3'"):
            estimator(constraints="IOB3").fit(X * 2, TAGS * 2).predict(X)


ONCE = {
    "rules": lambda: Constraints(rule for rule in [Ends(first=["O"])]),
    "list": lambda: iter([Ends(first=["O"])]),
    "dict": lambda: {"O": Ends()},
    "pairs": lambda: Steps(forbidden=zip(["O"], ["O"], strict=True)),
    "sequences": lambda: Known(iter([["O"]])),
    "labels": lambda: Known([iter(["O"])]),
    "positions": lambda: AllowedAt({0: iter(["O"])}),
}


@pytest.mark.parametrize("case", ONCE)
def test_what_can_be_read_only_once_is_refused(case):
    """The next question would find no rule in it."""
    with pytest.raises(TypeError, match=r"iterator.*give a list|must be Constraints, a rule"):
        Constraints.of(ONCE[case]())


@dataclass(eq=False, repr=False)
class ShortOnes(GlobalRule):
    """No label O, if all sequences have less than five tokens."""

    def automata(self, target):
        forbidden = target.codes_named("O", "ShortOnes") & (target.data.lengths.max() < 5)
        symbols = np.tile(forbidden.astype(np.int64), (len(forbidden) + 1, 1))
        return [Automaton(symbols, np.array([[0, -1]]), np.ones(1, bool))]


def test_a_rule_from_outside_is_asked_about_each_data(crf):
    long, short = ([x for x in X if (len(x) < 5) == few] for few in (False, True))
    assert "O" in crf.predict(long, constraints=ShortOnes())[0]
    assert not any("O" in y for y in crf.predict(short, constraints=ShortOnes()))
    assert "O" in crf.predict(long, constraints=ShortOnes())[0]


SCHEMES = {
    "IOB2": IOB2, "IOB1": ["B-LOC", "I-LOC", "I-PER", "O"], "IO": ["I-LOC", "O"],
    "IOBES": ["B-X", "E-X", "S-X", "I-X"], "BILOU": ["B-X", "L-X", "U-X", "O"],
    "BMES": ["B", "M", "E", "S"], "BMEWO": ["B-X", "W-X", "O"], "IOE2": ["I-X", "E-X", "O"],
}  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_scheme_is_that_of_the_letters(scheme):
    assert TagScheme().found(SCHEMES[scheme]) == scheme
    turned = ["_".join(reversed(label.split("-"))) for label in SCHEMES[scheme] if "-" in label]
    if len(turned) > 1:
        assert TagScheme(suffix=True, delimiter="_").found([*turned, "O"]) == scheme


def test_tags_of_no_scheme_are_refused(crf):
    with pytest.raises(ValueError, match="TagScheme: 'B-LOC' is not a tag of IOE2"):
        crf.predict(X, constraints="IOE2")
    for labels, error in ((["NOUN", "O"], ValueError), ([1, 2], TypeError)):
        with pytest.raises(error, match=r"TagScheme: .*such as Steps"):
            TagScheme().limit(target_of(labels), Limits(0, 2, 2))


UNKNOWN = {
    "Steps": Steps([("B-PER", "B-ORG")]), "Ends": Ends(first="ORG"),
    "AllowedAt": AllowedAt({0: ["B-ORG"]}), "AllowedWith": AllowedWith({"w:ann": ["ORG"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_labels_that_the_model_does_not_know_are_refused(crf, name):
    words = rf"{name}: the model does not know the label '(B-)?ORG'"
    with pytest.raises(ValueError, match=words) as error:
        crf.predict(X, constraints=UNKNOWN[name])
    has = "; it has spans of 'LOC', 'PER', and the labels 'B-LOC', 'B-PER', 'I-LOC', 'I-PER', 'O'."
    assert str(error.value).endswith(has)
    with pytest.raises(ValueError, match=r"'per': did you mean 'PER'\? It has spans of 'LOC', "):
        crf.predict(X, constraints=Ends("per"))
    assert crf.predict(X, constraints=[]) == crf.predict(X)


WRONG = {
    "pair": (Steps(["OO"]), TypeError, "'OO' is no pair of labels"),
    "dict": (AllowedAt(["O"]), TypeError, "is no dict {position: labels}"),
    "attributes": (AllowedWith(["O"]), TypeError, "is no dict {attribute: labels}"),
    "position": (AllowedAt({"0": ["O"]}), TypeError, "the position of AllowedAt"),
    "hash": (Ends(first=[["O"]]), TypeError, "is not hashable"),
    "attribute": (AllowedWith({"w:bob": ["O"]}), ValueError, "has no attribute 'w:bob'"),
    "count": (Known([["O"]]), ValueError, "Known: y has 1 sequences, but X has 5"),
    "lengths": (Known([["O"]] * 5), ValueError, "Known: sequence 0: X has 8 tokens"),
    "label": (Known([["O"] * 8, ["O", "B-ORG", "O", "O"], ["O"] * 3, ["O"] * 6, ["O"] * 3]),
              ValueError, "sequence 1, position 1: 'B-ORG' is no label that the model"),
    "type": (Known([[], [(0, 1, "ORG")], [], [], []]), ValueError,
             "sequence 1 of Known: the model has no spans of the label 'ORG', but of 'LOC', 'PER'"),
    "span": (Known([[(7, 9, "PER")], [], [], [], []]), ValueError,
             r"sequence 0 of Known: the segment \(7, 9, 'PER'\) is not within"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_rules_that_do_not_fit_are_refused(crf, case):
    rule, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        crf.predict(X, constraints=rule)


def test_rules_about_spans_are_not_for_forests():
    data = SequenceVectorizer().fit_transform(X[1:3])
    data = data.with_topology(Forest.from_lists([[None, 0, 0, 1], [None, None, 0]]))
    model = CRFClassifier().fit(data, TAGS[1:3])
    with pytest.raises(ValueError, match="TagScheme: .* stand in a Forest"):
        model.predict(data, constraints=TagScheme())
    with pytest.raises(ValueError, match="Known: spans are runs of tokens, which forests"):
        model.predict(data, constraints=Known([[(0, 1, "PER")], []]))
    with pytest.raises(ValueError, match="does not know the label 'PER'"):
        model.predict(data, constraints=Ends(first=["PER"]))
    roots, leaves = Ends(first=["B-LOC"]), Ends(last=["O"])
    assert model.predict(data, constraints=[roots])[1][:2] == ["B-LOC", "B-LOC"]
    assert model.predict(data, constraints=[leaves])[0][2:] == ["O", "O"]


def test_attributes_without_names_are_refused():
    data = SequenceVectorizer().fit_transform(X)
    plain = type(data).from_matrices([data[i] for i in range(5)])
    with pytest.raises(ValueError, match="AllowedWith: the model was fitted on features without"):
        CRFClassifier().fit(plain, TAGS).predict(plain, constraints=AllowedWith({"a": ["O"]}))


def test_dense_attributes_are_found_by_their_names(crf):
    data = crf.vectorizer_.transform(X)
    dense = type(data)(
        dense=data.to_csr().toarray(), offsets=data.offsets, feature_names=data.feature_names
    )
    rule = AllowedWith({"w:saw": ["B-PER"], "w:john": ["I-LOC"]})
    found = CRFClassifier(c2=0.1).fit(dense, TAGS).predict(dense, constraints=rule)
    assert found == crf.predict(X, constraints=rule)
    assert found[1][2] == "B-PER"
    assert crf.predict(X, constraints=AllowedWith({})) == crf.predict(X)
    many = {f"w:{word}": ["LOC", "O"] for word in ("york", "city", "saw", "ann", "john")}
    apart = [AllowedWith({name: labels}) for name, labels in many.items()]
    assert crf.predict(X, constraints=AllowedWith(many)) == crf.predict(X, constraints=apart)


def test_a_parameter_and_a_call_hold_together(crf):
    at_start, at_end = AllowedAt({0: ["B-LOC"]}), AllowedAt({-1: ["B-PER"]})
    held = copy.copy(crf).set_params(constraints=at_start)
    assert held.predict(X[2:3]) != crf.predict(X[2:3])  # also where one sequence is labeled again
    assert held.predict(X[2:3])[0][0] == "B-LOC"
    both = held.predict(X, constraints=at_end)
    assert both == crf.predict(X, constraints=[at_start, at_end])
    assert all(labels[0] == "B-LOC" and labels[-1] == "B-PER" for labels in both)
    np.testing.assert_array_equal(
        held.predict_proba(X)[0], crf.predict_proba(X, constraints=at_start)[0]
    )
    assert loads(dumps(held)).predict(X) == held.predict(X)
    assert held.score(X, TAGS) < crf.score(X, TAGS)


def test_answers_are_the_same_for_any_number_of_threads(crf):
    many, rules = [*X] * 300, ["IOB2", Steps([("O", "B-LOC")])]
    one = crf.predict_proba(many, constraints=rules)
    two = copy.copy(crf).set_params(n_jobs=2)
    for ours, theirs in zip(one, two.predict_proba(many, constraints=rules), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert two.predict(many, constraints=rules) == crf.predict(many, constraints=rules)


def test_searches_choose_among_constraints():
    grid = GridSearchCV(CRFClassifier(), {"constraints": [None, Ends(first=["B-LOC"])]}, cv=2)
    assert grid.fit(X[:4], TAGS[:4]).best_params_ == {"constraints": None}
    tried = CRFClassifierCV(c2s=[0.1], cv=2, constraints=Ends(first=["B-LOC"])).fit(X, TAGS)
    free = CRFClassifierCV(c2s=[0.1], cv=2).fit(X, TAGS)
    assert tried.best_score_ < free.best_score_
    assert all(labels[0] == "B-LOC" for labels in tried.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_without_probabilities_keep_to_rules():
    for model in (StructuredPerceptron(max_iter=2), MaxMarginCRF(max_iter=3),
                  StructuredPerceptron(max_iter=2, structure=Segments()),
                  MaxMarginCRF(max_iter=3, kernel="rbf")):  # fmt: skip
        model.fit(X, TAGS)
        for tags in model.predict(X, constraints=[Known([[(1, 2, "LOC")]] * 5), "IOB2"]):
            assert tags[1] == "B-LOC" and tags[2:3] != ["I-LOC"]


def test_votes_keep_to_no_rules():
    model = StructuredPerceptron(max_iter=2, averaging="vote").fit(X, TAGS)
    with pytest.raises(ValueError, match="averaging='vote' elects the label of each token"):
        model.predict(X, constraints="IOB2")
    with pytest.raises(ValueError, match="averaging='vote' elects the label of each token"):
        model.set_params(constraints="IOB2").fit(X, TAGS)


def test_a_wide_beam_keeps_to_rules():
    model = StructuredPerceptron(max_iter=2, search=BeamSearch(width=5)).fit(X, TAGS)
    exact = copy.copy(model).set_params(search=None)
    rules = ["IOB2", Ends(first=["LOC"])]
    assert model.predict(X, constraints=rules) == exact.predict(X, constraints=rules)
    assert model.predict(X) != model.predict(X, constraints=rules)


def test_a_narrow_beam_that_loses_all_that_is_allowed_gives_way_to_the_exact_search():
    model = StructuredPerceptron(max_iter=2, search=BeamSearch(width=1)).fit(X, TAGS)
    rules = ["IOB2", Ends(last=["I-LOC"])]
    assert {labels[-1] for labels in model.predict(X, constraints=rules)} == {"I-LOC"}
    with pytest.raises(ValueError, match="sequence 2: no labeling keeps to"):
        model.predict(X, constraints=[Ends(["O"], ["I-LOC"]), AllowedAt({1: ["O"]}), "IOB2"])


WHY = {
    "one": (AllowedAt({0: ["I-PER"]}), TagScheme("IOB2"), Ends(last=["O"]), Steps()),
    "labels": (Known([["O"] * 8, [UNLABELED, "O", "I-PER", "O"], ["O"] * 3, ["O"] * 6, ["O"] * 3]),
               Ends(), TagScheme()),
    "spans": (Known([[], [(0, 2, "PER"), (3, 4, "LOC")], [], [], []]), Steps([("PER", "O")])),
    "steps": (Steps(allowed=[]), Ends()),
    "order": (Contiguous(), Before("LOC", "PER"), AllowedAt({0: "PER"}), Count("LOC", at_least=1)),
    "counts": (Count("PER"), NotTogether(["LOC", "PER"]), Known([[], [], [(0, 1, "PER")], [], []]),
               Count("LOC", at_least=1), Count("LOC", at_most=2)),
}  # fmt: skip
TOLD = {
    "one": "sequence 0: no labeling keeps to AllowedAt(labels={0: ['I-PER']}) and "
           "TagScheme(scheme='IOB2'): none gets past position 0. Leave one of them out, or",
    "labels": "sequence 1: no labeling keeps to Known at position 1 ('O') and Known at position 2 "
              "('I-PER') and TagScheme(): none gets past position 2. Leave one of them out, or",
    "spans": "sequence 1: no labeling keeps to Known of the span (0, 2, 'PER') and Known of the "
             "span (3, 4, 'LOC')",
    "steps": "sequence 0: no labeling keeps to Steps(allowed=[]): none gets past position 1. "
             "Leave it out, or the sequence.",
    "order": " and ".join(["no labeling keeps to Before(first='LOC', second='PER')",
             "AllowedAt(labels={0: 'PER'})", "Count(at_least=1, label='LOC'). Leave one of them"]),
    "counts": " and ".join(["sequence 2: no labeling keeps to NotTogether(labels=['LOC', 'PER'])",
              "Known of the span (0, 1, 'PER')", "Count(at_least=1, label='LOC'). Leave one of"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WHY)
def test_rules_that_cannot_hold_together_are_told(crf, case):
    if case == "spans":  # what stands between them, can
        rules = [WHY[case][0], AllowedAt({2: ["I-PER"]})]
        told = (
            "sequence 1: no labeling keeps to Known of the span (0, 2, 'PER') and "
            "AllowedAt(labels={2: ['I-PER']}): none gets past position 2."
        )
    else:
        rules, told = list(WHY[case]), TOLD[case]
    for ask in (crf.predict, crf.predict_proba):
        with pytest.raises(ValueError, match=re.escape(told)):
            ask(X, constraints=rules)


def test_limits_of_segments_have_a_part_in_it():
    limits = SegmentLimits(min_length={"LOC": 2})
    tags = [["O", "B-PER", "B-LOC", "I-LOC"], ["O", "O", "O", "O"]]
    tokens = [[{"w": w} for w in "abcd"], [{"w": w} for w in "dcba"]]
    model = SemiMarkovCRF(limits=limits).fit(tokens, tags)
    told = "sequence 1: no labeling keeps to AllowedAt.*by the limits of segments that the model"
    with pytest.raises(ValueError, match=told):
        model.predict([tokens[0], tokens[0][:1]], constraints=AllowedAt({-1: ["LOC"]}))
    with pytest.raises(ValueError, match="sequence 0, position 0: .*whose tags are IOB2, can give"):
        model.predict(tokens, constraints=Known([["O", "I-LOC", "I-LOC", "O"], ["O"] * 4]))


def test_what_is_named_is_irreducible():
    rng = np.random.default_rng(0)
    for _ in range(40):
        size = int(rng.integers(1, 9))
        conflicts = [frozenset(rng.integers(size, size=3).tolist()) for _ in range(2)]

        def fails(parts, conflicts=conflicts):
            return any(conflict <= set(parts) for conflict in conflicts)

        found = irreducible([*range(size)], fails)
        assert fails(found) and found == sorted(found)
        assert not any(fails([part for part in found if part != one]) for one in found)


def test_what_only_the_model_forbids_is_no_matter_of_rules(crf):
    changed = copy.copy(crf)
    changed.transitions_ = np.full((5, 5), -np.inf)
    with pytest.raises(ValueError, match="sequence 0: no path is left at position 1"):
        changed.predict(X, constraints=Ends(first=["O"]))


@pytest.mark.parametrize("lengths", [[], [0], [0, 3], [2, 0]], ids=str)
def test_empty_sequences_keep_to_rules(crf, lengths):
    new = [X[1][:length] for length in lengths]
    known = Known([[UNLABELED] * length for length in lengths])
    spans = Known([[(0, 2, "LOC")][:length] for length in lengths])
    for rules in (known, spans, ["IOB2", Ends("O", "O"), AllowedAt({0: ["O"]}),
                  Steps([("O", "PER")]), AllowedWith({"w:ann": ["O"]}), Count("PER")]):  # fmt: skip
        found = crf.predict(new, constraints=rules)
        assert [len(labels) for labels in found] == lengths
        assert [proba.shape for proba in crf.predict_proba(new, constraints=rules)] == [
            (length, 5) for length in lengths
        ]
