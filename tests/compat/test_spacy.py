"""Documents of spaCy, and the component that sets their entities."""

import pytest

from crfkit import UNLABELED, CRFClassifier, StructuredPerceptron, TemplateFeatures, save
from crfkit.io import ColumnFormatError, docs_from_texts, read_docbin, texts_from_docs, write_docbin
from crfkit.metrics import Segment
from crfkit.text import AnnotatedText, annotate, to_tokens

spacy = pytest.importorskip("spacy")

from spacy.tokens import Doc, DocBin  # noqa: E402
from spacy.training import Example  # noqa: E402

from crfkit.compat.spacy import CRFEntityRecognizer  # noqa: E402

TEXT = " Ann  Lee\n\nlives 😀 in e\u0301 中文.\t"
TEXTS = [
    AnnotatedText(TEXT, [(1, 9, "PER"), (25, 27, "LOC")], id=7, span_probabilities=[0.5, 0.25]),
    AnnotatedText("Ann lives in Rome", [(0, 3, "PER"), (4, 12, UNLABELED)], meta={"a": [1]}),
    AnnotatedText(""),
    AnnotatedText("  "),
]


def test_documents_come_back_from_files_and_memory(tmp_path):
    write_docbin(tmp_path / "a.spacy", TEXTS)
    found = read_docbin(tmp_path / "a.spacy")
    write_docbin(tmp_path / "a.spacy.gz", TEXTS)
    assert read_docbin(tmp_path / "a.spacy.gz") == found
    for one, other in zip(found, TEXTS, strict=True):
        assert (one.text, one.spans, one.id, one.meta) == (
            other.text, other.spans, other.id, other.meta)  # fmt: skip
        assert one.span_probabilities == other.span_probabilities
        assert one.offsets == [*to_tokens([other]).offsets[0]]
    assert texts_from_docs(docs_from_texts(found)) == found
    doc = next(DocBin().from_disk(tmp_path / "a.spacy").get_docs(spacy.blank("xx").vocab))
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Ann  Lee", "PER"), ("中文", "LOC")]


def test_groups_of_spans_may_overlap():
    one = AnnotatedText("Ann Lee", [(0, 7, "PER"), (4, 7, "NAME")], span_probabilities=[0.5, 1.0])
    (doc,) = docs_from_texts([one], spans="sc")
    assert texts_from_docs([doc], spans="sc")[0].spans == one.spans
    assert texts_from_docs([doc])[0].spans == [Segment(0, 7, UNLABELED)]
    with pytest.raises(ColumnFormatError, match="document 0 has no spans 'x', only"):
        texts_from_docs([doc], spans="x")
    rough = {"tokenizer": lambda text: [(0, 5), (5, 7)], "spans": "sc"}
    with pytest.raises(ColumnFormatError, match="text 0: the span .* does not end where"):
        docs_from_texts([one], misfit="raise", **rough)
    with pytest.warns(UserWarning, match=r"text 0: the span \[4, 7\) .*is left out"):
        (doc,) = docs_from_texts([one], **rough)
    assert texts_from_docs([doc], spans="sc")[0].spans == one.spans[:1]


def test_misaligned_spans_leave_the_entities_of_their_tokens_open():
    nlp = spacy.blank("en")
    with pytest.warns(UserWarning, match="a span does not fit"):
        (doc,) = docs_from_texts([AnnotatedText("Ann can't", [(0, 2, "P")])], nlp.tokenizer)
    assert [token.text for token in doc] == ["Ann", "ca", "n't"]
    assert [token.ent_iob_ for token in doc] == ["", "O", "O"]


def test_what_is_no_docbin_is_named(tmp_path):
    (tmp_path / "a.spacy").write_bytes(b"no")
    with pytest.raises(ColumnFormatError, match="a.spacy is no DocBin"):
        read_docbin(tmp_path / "a.spacy")
    (tmp_path / "a.gz").write_bytes(b"no")
    with pytest.raises(ColumnFormatError, match="a.gz: the compressed data are .* damaged"):
        read_docbin(tmp_path / "a.gz")


SENTENCES = [
    AnnotatedText("Ann Lee lives in Rome.", [(0, 7, "PER"), (17, 21, "LOC")]),
    AnnotatedText("Bob fell in Paris", [(0, 3, "PER"), (12, 17, "LOC")]),
]
X, Y = to_tokens(SENTENCES)[:2]


def words():
    return TemplateFeatures(["w", "w[-1]", "w[1]"], columns=["w"])


@pytest.fixture(scope="module")
def model():
    return CRFClassifier(features=words(), c2=0.01).fit(X, Y)


def pipeline(path, **config):
    nlp = spacy.blank("xx")
    nlp.add_pipe("crfkit_ner", config={"model": str(path), **config})
    return nlp


def entities(doc):
    return [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]


def test_entities_and_probabilities_are_those_of_the_model(model, tmp_path):
    save(model, tmp_path / "m.crfkit")
    nlp = pipeline(tmp_path / "m.crfkit")
    texts = [" Ann Lee lives\n\nin Rome.", "", "Bob fell in Paris"]
    docs = list(nlp.pipe(texts, batch_size=2))
    for doc, one in zip(docs, annotate(model, texts), strict=True):
        assert entities(doc) == one.spans
        assert [ent._.confidence for ent in doc.ents] == one.span_probabilities
        assert texts_from_docs([doc])[0].span_probabilities == (one.span_probabilities or None)
    again = Doc(nlp.vocab).from_bytes(docs[0].to_bytes())
    assert [e._.confidence for e in again.ents] == [e._.confidence for e in docs[0].ents]
    stored = DocBin(docs=docs, store_user_data=True).to_bytes()
    (first, *_) = DocBin().from_bytes(stored).get_docs(nlp.vocab)
    assert [e._.confidence for e in first.ents] == [e._.confidence for e in docs[0].ents]


def test_a_pipeline_that_was_saved_brings_its_model(model, tmp_path):
    path = tmp_path / "m.crfkit"
    save(model, path)
    nlp = pipeline(path)
    expected = entities(nlp(SENTENCES[0].text))
    assert expected == SENTENCES[0].spans
    nlp.to_disk(tmp_path / "nlp")
    data = nlp.to_bytes()
    path.unlink()
    assert entities(spacy.load(tmp_path / "nlp")(SENTENCES[0].text)) == expected
    assert entities(pipeline(path).from_bytes(data)(SENTENCES[0].text)) == expected
    with pytest.raises(FileNotFoundError):
        pipeline(path)("Ann")
    nlp = spacy.blank("xx")
    nlp.add_pipe("crfkit_ner")
    with pytest.raises(ValueError, match="has no model: pass config="):
        nlp("Ann")


def test_thresholds_constraints_and_entities_that_are_there(model, tmp_path):
    nlp = spacy.blank("xx")
    doc = nlp(SENTENCES[0].text)
    ner = CRFEntityRecognizer(model, constraints="IOB2")
    (person, place) = ner(doc).ents
    least = max(person._.confidence, place._.confidence)
    kept = CRFEntityRecognizer(model, constraints="IOB2", threshold=least)(nlp(doc.text))
    assert [ent._.confidence for ent in kept.ents] == [least]
    old = nlp(doc.text)
    old.set_ents([old.char_span(4, 7, label="X")])
    assert entities(CRFEntityRecognizer(model, overwrite=False)(old)) == [
        (4, 7, "X"), (17, 21, "LOC")]  # fmt: skip
    with pytest.raises(ValueError, match="threshold= needs"):
        CRFEntityRecognizer(model, threshold=0.5, confidence=False)
    with pytest.raises(ValueError, match="has no model"):
        CRFEntityRecognizer()(doc)


def test_spacy_fits_judges_and_saves_a_pipeline(tmp_path):
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crfkit_ner", config={"columns": ["text", "lower_"]})
    nlp.initialize()  # on examples without entities
    assert ner.labels == ()
    texts = [AnnotatedText(" ", []), *SENTENCES]
    docs = docs_from_texts(texts, nlp.tokenizer)
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
    nlp.initialize(lambda: examples)
    assert nlp.pipe_labels == {"crfkit_ner": ["LOC", "PER"]}
    fitted = ner.estimator
    nlp.initialize(lambda: examples[:2])
    assert ner.estimator is fitted
    assert nlp.evaluate(examples)["ents_f"] == 1.0
    nlp.to_disk(tmp_path / "nlp")
    again = spacy.load(tmp_path / "nlp")
    assert again.pipe_labels == nlp.pipe_labels
    expected = [entities(nlp(one.text)) for one in texts]
    assert expected == [one.spans for one in texts]
    raw = [one.text for one in texts]
    assert [entities(doc) for doc in again.pipe(raw, n_process=2)] == expected


def test_spans_may_go_to_a_group_with_their_scores(model, tmp_path):
    save(model, tmp_path / "m.crfkit")
    nlp = pipeline(tmp_path / "m.crfkit", spans_key="sc", confidence=True)
    (doc, expected) = nlp(SENTENCES[0].text), pipeline(tmp_path / "m.crfkit")(SENTENCES[0].text)
    assert not doc.ents
    assert [(s.start, s.end, s.label_) for s in doc.spans["sc"]] == [
        (ent.start, ent.end, ent.label_) for ent in expected.ents
    ]
    assert doc.spans["sc"].attrs["scores"].tolist() == [e._.confidence for e in expected.ents]
    gold = docs_from_texts(SENTENCES, nlp.tokenizer, spans="sc")
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in gold]
    assert nlp.evaluate(examples)["spans_sc_f"] == 1.0
    ner = CRFEntityRecognizer(model, spans_key="sc", overwrite=False)
    assert len(ner(doc).spans["sc"]) == 4


def test_columns_are_attributes_of_tokens(model):
    nlp = spacy.blank("xx")
    doc = nlp(SENTENCES[0].text)
    dicts = [[{"w": word, "low": word.lower()} for word in row] for row in X]
    tuples = [[tuple(token.values()) for token in row] for row in dicts]
    by_place = TemplateFeatures("U0:%x[0,0]\nU1:%x[0,1]", syntax="crfpp")
    for columns, tokens, features in (
        ({"w": "text", "low": "lower_"}, dicts, None),
        (["text", "lower_"], tuples, by_place),
    ):
        other = CRFClassifier(features=features, c2=0.01).fit(tokens, Y)
        assert entities(CRFEntityRecognizer(other, columns=columns)(doc)) == SENTENCES[0].spans
    with pytest.raises(ValueError, match="'texts' of the token 'Ann' is None"):
        CRFEntityRecognizer(model, columns=["texts"])(doc)
    perceptron = StructuredPerceptron(features=words(), random_state=0).fit(X, Y)
    silent = CRFEntityRecognizer(perceptron)(nlp(doc.text))
    assert entities(silent) == SENTENCES[0].spans
    assert [ent._.confidence for ent in silent.ents] == [None, None]
    by_function = CRFEntityRecognizer(
        CRFClassifier(c2=0.01).fit(dicts, Y),
        features=lambda words: [{"w": word, "low": word.lower()} for word in words],
    )
    assert entities(by_function(nlp(doc.text))) == SENTENCES[0].spans
