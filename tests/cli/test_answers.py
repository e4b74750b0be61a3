"""What `crfkit tag` prints besides labels: spans, confidence, lists, under constraints."""

import io
import json

import pytest
from sklearn.pipeline import make_pipeline

import crfkit
from crfkit import CRFClassifier, MaxMarginCRF, SemiMarkovCRF, StructuredPerceptron
from crfkit.cli import main
from crfkit.inference import Abstain
from crfkit.io import read_columns, read_conllu

RULES = [{"rule": "AllowedAt", "labels": {"0": ["O"]}}]


def tag(capsys, *arguments):
    """The exit code of `crfkit tag`, and what it printed."""
    code = main(["tag", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def blocks(out):
    """The lines of each sequence, split."""
    return [
        [line.split("\t") for line in block.splitlines()] for block in out.split("\n\n") if block
    ]


@pytest.fixture(scope="module")
def answers(corpus, model):
    """A model, and the rows that it is asked about."""
    return crfkit.load(model), read_columns(corpus / "raw.txt")


def test_spans_come_with_their_words_and_probabilities(corpus, model, answers, capsys):
    pipeline, rows = answers
    X = pipeline[:-1].transform(rows)
    spans, proba = pipeline[-1].predict_spans(X), pipeline[-1].confidence(X, of="spans")
    _, plain, _ = tag(capsys, model, corpus / "raw.txt", "--spans")
    _, sure, _ = tag(capsys, model, corpus / "test.txt", "--spans", "--confidence")
    expected = [
        [[str(a), str(b), str(k), " ".join(w for w, _ in row[a:b])] for a, b, k in listed]
        for listed, row in zip(spans, rows, strict=True)
    ]
    assert plain.count("\n\n") == len(rows)
    assert blocks(plain) == [block for block in expected if block]
    whole = pipeline[-1].confidence(X)
    for block, p, own, lines in zip(blocks(sure), whole, proba, expected, strict=True):
        assert block[0] == [f"# {p:.6g}"]
        assert [[*cells[:3], *cells[4:]] for cells in block[1:]] == lines
        assert [cells[3] for cells in block[1:]] == [f"{q:.6f}" for q in own]


def test_the_best_labelings_come_in_blocks(corpus, model, answers, capsys):
    pipeline, rows = answers
    listed = pipeline[-1].predict_n_best(pipeline[:-1].transform(rows), 3)
    _, out, _ = tag(capsys, model, corpus / "raw.txt", "--nbest", 3)
    lines = iter(out.splitlines())
    for row, ranked in zip(rows, listed, strict=True):
        for rank, one in enumerate(ranked):
            assert next(lines) == f"# {rank} {one.probability:.6g}"
            for cells, label in zip(row, one.labels, strict=True):
                assert next(lines).split(" ") == [*cells, label]
            assert next(lines) == ""
    _, spans, _ = tag(capsys, model, corpus / "raw.txt", "--nbest", 2, "--spans")
    assert blocks(spans)[1][0][0].startswith("# 1 0.")
    assert blocks(spans)[0][1:] == blocks(tag(capsys, model, corpus / "raw.txt", "--spans")[1])[0]


def test_rules_hold_in_all_that_is_printed(corpus, model, answers, tmp_path, capsys):
    pipeline, rows = answers
    (tmp_path / "rules.json").write_text(json.dumps(RULES))
    crf, X = pipeline[-1], pipeline[:-1].transform(rows)
    crf = crf.set_params(constraints=crfkit.Constraints.from_json(json.dumps(RULES)))
    expected = crf.predict(X), crf.confidence(X)
    crf.set_params(constraints=None)
    options = "--constraints", tmp_path / "rules.json", "--confidence"
    _, out, _ = tag(capsys, model, corpus / "raw.txt", *options)
    found = [block.splitlines() for block in out.split("\n\n") if block]
    assert [[line.split()[-1] for line in block[1:]] for block in found] == expected[0]
    assert [block[0] for block in found] == [f"# {p:.6g}" for p in expected[1]]
    assert all(block[1].endswith(" O") for block in found)
    _, best, _ = tag(capsys, model, corpus / "raw.txt", *options, "--nbest", 2)
    assert all(block[1][0].endswith(" O") for block in blocks(best))
    scheme = tag(capsys, model, corpus / "raw.txt", "--constraints", "iob2")
    assert scheme[1] == tag(capsys, model, corpus / "raw.txt")[1]


def test_what_is_doubtful_is_withheld(corpus, model, answers, capsys):
    pipeline, rows = answers
    crf, X = pipeline[-1].set_params(decoding=Abstain(threshold=0.9, label="?")), rows
    expected = [label for labels in pipeline.predict(X) for label in labels]
    crf.set_params(decoding="viterbi")
    assert "?" in expected
    _, out, _ = tag(capsys, model, corpus / "raw.txt", "--abstain", "0.9", "--marginals")
    lines = [line.split(" ") for line in out.splitlines() if line]
    assert [cells[-2] for cells in lines] == expected
    assert [float(cells[-1]) < 0.9 for cells in lines] == [label == "?" for label in expected]
    _, other, _ = tag(capsys, model, corpus / "raw.txt", "--abstain", "0.9:not sure")
    assert other.count(" not sure\n") == expected.count("?")
    options = "--spans", "--confidence", "--abstain"
    _, spans, _ = tag(capsys, model, corpus / "raw.txt", *options, "0.9")
    shown = [float(cells[3]) for block in blocks(spans) for cells in block if len(cells) > 1]
    assert shown and min(shown) >= 0.9


WORDS = "1\tParis\t_\tPROPN\t_\t_\t_\t_\t_\t_\n2\tsleeps\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n"


def test_conllu_and_crfsuite_hold_the_notes_in_their_own_ways(tmp_path, capsys):
    (tmp_path / "x.conllu").write_text("# text = Paris sleeps\n" + WORDS)
    train = ["train", str(tmp_path / "x.conllu"), "--model", str(tmp_path / "m"), "--quiet"]
    assert main(train) == 0
    _, out, _ = tag(capsys, tmp_path / "m", tmp_path / "x.conllu", "--nbest", 2)
    first, second = read_conllu(io.StringIO(out))
    assert first.comments[:2] == ["text = Paris sleeps", "rank = 0"]
    assert second.comments[1:] == ["rank = 1", second.comments[2]]
    assert float(first.comments[2].removeprefix("probability = ")) > 0.5
    _, out, _ = tag(capsys, tmp_path / "m", tmp_path / "x.conllu", "--spans")
    assert out == "0\t1\tPROPN\tParis\n1\t2\tVERB\tsleeps\n\n"
    crf = CRFClassifier().fit([[["w=a"], ["w=b"]]], [["X", "O"]])
    crfkit.save(crf, tmp_path / "n")
    (tmp_path / "x.txt").write_text("O\tw=a\nO\tw=b\n\n")
    options = tmp_path / "n", tmp_path / "x.txt", "--format", "crfsuite", "--confidence"
    _, out, _ = tag(capsys, *options)
    assert out.splitlines()[1:] == ["X", "O", ""]
    assert out.startswith(f"@probability\t{crf.confidence([[['w=a'], ['w=b']]])[0]:.6g}\n")
    assert tag(capsys, *options, "--spans")[1].splitlines()[1].startswith("0\t1\tX\t0.")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--nbest", 0], 2, "--nbest 0: must be at least 1"),
        (["--nbest", 2, "--marginals"], 2, "--marginals does not go with --nbest"),
        (["--nbest", 2, "--abstain", "0.5"], 2, "--abstain does not go with --nbest"),
        (["--nbest", 2, "--decoding", "spans"], 2, "--decoding does not go with --nbest"),
        (["--spans", "--all-marginals"], 2, "not go with --spans: use --confidence"),
        (["--abstain", "1.5"], 2, "--abstain 1.5: must be a probability"),
        (["--abstain", "low"], 2, "--abstain low: must be a probability"),
        (["--abstain", "0.5:"], 2, "--abstain 0.5:: must be a probability"),
        (["--constraints", "nothing.json"], 1, "nothing.json: no such file, and no tag scheme"),
        (["--constraints", "template.txt"], 1, "--constraints template.txt: "),
        (["--constraints", "rules.json"], 1, "--constraints rules.json: "),
    ],
)
def test_what_cannot_be_answered_is_refused(
    corpus, model, capsys, monkeypatch, options, code, message
):
    monkeypatch.chdir(corpus)
    (corpus / "rules.json").write_text('[{"rule": "Nonsense"}]')
    found, out, err = tag(capsys, model, "raw.txt", *options)
    assert (found, out) == (code, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (StructuredPerceptron(), ["--confidence"], "StructuredPerceptron, which has no prob"),
        (StructuredPerceptron(), ["--abstain", "0.5"], "StructuredPerceptron, which has no prob"),
        (MaxMarginCRF(), ["--decoding", "spans"], "--decoding spans: the model is a MaxMarginCRF"),
        (StructuredPerceptron(averaging="vote"), ["--nbest", "2"], "averaging='vote'"),
    ],
)
def test_what_a_model_cannot_answer_is_told(corpus, tmp_path, capsys, estimator, options, message):
    rows = read_columns(corpus / "test.txt")[:4]
    X, y = [[r[:2] for r in s] for s in rows], [[r[2] for r in s] for s in rows]
    pipeline = make_pipeline(crfkit.TemplateFeatures(["col(0)"]), estimator).fit(X, y)
    crfkit.save(pipeline, tmp_path / "m")
    code, out, err = tag(capsys, tmp_path / "m", corpus / "raw.txt", *options)
    assert (code, out) == (1, "")
    assert message in err


@pytest.mark.parametrize("estimator", [MaxMarginCRF(), SemiMarkovCRF()])
def test_lists_come_with_scores_where_there_are_no_probabilities(
    corpus, tmp_path, capsys, estimator
):
    rows = read_columns(corpus / "test.txt")[:4]
    X, y = [[r[:2] for r in s] for s in rows], [[r[2] for r in s] for s in rows]
    pipeline = make_pipeline(crfkit.TemplateFeatures(["col(0)"]), estimator).fit(X, y)
    crfkit.save(pipeline, tmp_path / "m")
    ranked = pipeline[-1].predict_n_best(pipeline[:-1].transform(X), 1, as_spans=True)
    _, out, _ = tag(capsys, tmp_path / "m", corpus / "raw.txt", "--nbest", 1, "--spans")
    [best] = ranked[0]
    value = best.probability if best.probability == best.probability else best.score
    assert blocks(out)[0][0] == [f"# 0 {value:.6g}"]
    assert [cells[:3] for cells in blocks(out)[0][1:]] == [list(map(str, s)) for s in best.labels]
