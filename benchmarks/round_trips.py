"""Real files through every format of annotated texts and back: what comes back is counted.

    python benchmarks/round_trips.py [--limit N]

Each corpus becomes texts with spans of characters, is written and read again; a text differs if
its characters, its spans or its tokens do (brat, with two files a text, gets the first ones). One
corpus is made up of what is awkward: emoji, combining marks, Chinese, right-to-left scripts, tabs
and ends of lines. Files of spaCy and data sets of Hugging Face are also read, or made, by these
libraries. Writes ``results/round_trips.json``.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _measure
from _conll import data_home

from crfkit.io import (
    hugging_face_columns,
    read_brat,
    read_conll,
    read_csv,
    read_docbin,
    read_doccano,
    read_hugging_face,
    read_label_studio,
    read_prodigy,
    write_brat,
    write_csv,
    write_docbin,
    write_doccano,
    write_hugging_face,
    write_label_studio,
    write_prodigy,
)
from crfkit.text import AnnotatedText, from_tokens, to_tokens

FILES = {
    "conll2002_es": ("conll2002_es/esp.train.gz", {"sep": " "}),
    "gmb_ner": ("gmb_ner/gmb.txt.xz", {}),
    "wikigold": ("wikigold/wikigold.conll.txt.gz", {"skip_docstart": True}),
    "citations_cora": ("citations_cora/cora.iob.tsv.gz", {"sep": "\t"}),
    "headers_cora": ("headers_cora/headers.iob.tsv.gz", {"sep": "\t"}),
}
AWKWARD = [
    "😀", "👩‍👩‍👧", "👍🏽", "🇩🇪", "e\u0301", "cafe\u0301", "中文", "日本", "שלום", "مرحبا", "हिन्दी",
    "می\u200cخواهم", "a\u00a0b", '"', "\\n", "a,b", "it's", "3.50", "\u2028", "\ufeff", "ﬀ", "𝔘",
]  # fmt: skip
GAPS = [" ", "  ", "\t", "\n", "\r\n", " \n\n ", "\u00a0", "\u3000"]
FILES_OF_BRAT = 1000
CLOSING = {".", ",", ";", ":", "!", "?", ")", "%", "'s"}


def corpus(name: str, limit: int) -> list[AnnotatedText]:
    """Return a corpus as texts, whose tokens are parted by blanks."""
    path, options = FILES[name]
    rows, tags = read_conll(data_home() / path, **options)
    tokens = [[row[0] for row in sequence] for sequence in rows[:limit]]
    return from_tokens(tokens, tags[:limit], ids=[f"{name}-{s:05d}" for s in range(len(tokens))])


def awkward(count: int) -> list[AnnotatedText]:
    """Return texts of awkward tokens and gaps."""
    rng = random.Random(0)
    texts = []
    for number in range(count):
        text, offsets = rng.choice(["", "\ufeff", "\n", " "]), []
        for _ in range(rng.randint(1, 20)):
            token = rng.choice(AWKWARD)
            offsets.append((len(text), len(text) + len(token)))
            text += token + rng.choice(GAPS)
        cuts = sorted(rng.sample(range(len(offsets) + 1), min(5, len(offsets) + 1)))
        spans = [
            (offsets[a][0], offsets[b - 1][1], rng.choice(["PER", "地"]))
            for a, b in zip(cuts[::2], cuts[1::2], strict=False)
        ]
        scores = [rng.random() for _ in spans] if spans else None
        one = AnnotatedText(text, spans, number, offsets=offsets, span_probabilities=scores)
        one.id = f"awkward-{number:05d}"
        texts.append(one)
    return texts


def written(write: Callable[..., Any], read: Callable[..., Any], name: str, **options: Any) -> Any:
    """Return a function from texts to what comes back of them by a file."""

    def trip(texts: list[AnnotatedText], folder: Path) -> list[AnnotatedText]:
        write(folder / name, texts, **options)
        shared = {k: v for k, v in options.items() if k in ("of", "offsets", "spans")}
        found: list[AnnotatedText] = read(folder / name, **shared)
        return found

    return trip


SPANS = {
    "doccano": written(write_doccano, read_doccano, "a.jsonl", form="entities"),
    "Prodigy": written(write_prodigy, read_prodigy, "a.jsonl.gz"),
    "Label Studio": written(write_label_studio, read_label_studio, "a.json", of="annotations"),
    "Label Studio, predictions, UTF-16": written(
        write_label_studio, read_label_studio, "b.json", of="predictions", offsets="utf16"
    ),
    "Label Studio, JSON-MIN": written(write_label_studio, read_label_studio, "c.json", form="min"),
    "brat": written(write_brat, read_brat, "brat"),
    "spaCy DocBin": written(write_docbin, read_docbin, "a.spacy"),
    "spaCy DocBin, groups of spans": written(write_docbin, read_docbin, "b.spacy", spans="sc"),
}


def tables(tokens: list[list[str]], tags: list[list[str]], folder: Path) -> dict[str, Any]:
    """Return what comes back of tokens and tags, by format."""
    found = {}
    for name, options in (
        ("CSV, a column of sequences", {"by": "sequence"}),
        ("CSV, blank lines", {"by": None}),
        ("CSV, a sequence a row", {"within": "json"}),
    ):
        write_csv(folder / "a.csv", tokens, tags, **options)
        X, y = read_csv(folder / "a.csv", **options)
        found[name] = [[each["token"] for each in row] for row in X], y
    names = write_hugging_face(folder / "hf.jsonl", tokens, tags)
    found["Hugging Face, rows"] = read_hugging_face(folder / "hf.jsonl", names=names)
    found["Hugging Face, datasets.Dataset"] = read_hugging_face(dataset(tokens, tags))
    return found


def dataset(tokens: list[list[str]], tags: list[list[str]]) -> Any:
    """Return a data set of the library, as it makes one."""
    import datasets

    columns, names = hugging_face_columns(tokens, tags)
    features = datasets.Features(
        tokens=datasets.List(datasets.Value("string")),
        ner_tags=datasets.List(datasets.ClassLabel(names=names)),
    )
    return datasets.Dataset.from_dict(columns, features=features)


def differ(texts: list[AnnotatedText], others: list[AnnotatedText], tokens: bool) -> int:
    """Return how many texts are not the same."""
    count = abs(len(texts) - len(others))
    for one, other in zip(texts, others, strict=False):
        same = (one.text, one.spans, one.id) == (other.text, other.spans, other.id)
        same &= one.span_probabilities == other.span_probabilities
        count += not (same and (not tokens or one.offsets == other.offsets))
    return count


def by_spacy(texts: list[AnnotatedText]) -> int:
    """Return how many documents spaCy itself reads otherwise, entities and tokens."""
    import spacy
    from spacy.tokens import DocBin

    with tempfile.TemporaryDirectory() as folder:
        write_docbin(Path(folder, "a.spacy"), texts)
        docs = list(DocBin().from_disk(Path(folder, "a.spacy")).get_docs(spacy.blank("xx").vocab))
    count = abs(len(docs) - len(texts))
    for doc, one in zip(docs, texts, strict=False):
        ents = [(e.start_char, e.end_char, e.label_) for e in doc.ents]
        words = {(t.idx, t.idx + len(t.text)) for t in doc}
        same = (doc.text, ents) == (one.text, [tuple(span) for span in one.spans])
        count += not (same and words.issuperset(one.offsets or ()))
    return count


def misaligned(texts: list[AnnotatedText]) -> dict[str, dict[str, int]]:
    """Return how many spans do not fit running text, by tokenizer, and how many get lost."""
    running = [running_text(one) for one in texts]
    found = {}
    for tokenizer in ("words", "whitespace", "characters"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = to_tokens(running, tokenizer)
        back = from_tokens(
            result.tokens, result.tags, texts=[x.text for x in running], offsets=result.offsets
        )
        kept = sum(len(set(a.spans) & set(b.spans)) for a, b in zip(running, back, strict=True))
        total = sum(len(one.spans) for one in running)
        reported = len(result.misaligned)
        lost = total - kept - reported
        found[tokenizer] = {"spans": total, "reported": reported, "lost silently": lost}
    return found


def running_text(one: AnnotatedText) -> AnnotatedText:
    """Return a text without the blanks before closing marks."""
    moved, text, end = {}, "", 0
    for start, stop in one.offsets or ():
        token = one.text[start:stop]
        text += "" if token in CLOSING else one.text[end:start]
        moved[start], moved[stop] = len(text), len(text) + len(token)
        text, end = text + token, stop
    starts = {a: moved[a] for a, _ in one.offsets or ()}
    spans = [(starts[a], moved[b], label) for a, b, label in one.spans]
    return AnnotatedText(text, spans, one.id)


def measure(texts: list[AnnotatedText]) -> dict[str, Any]:
    """Return what comes back of a corpus in every format."""
    tokens, tags, _, _ = to_tokens(texts)
    found: dict[str, Any] = {
        "sequences": len(texts),
        "tokens": sum(map(len, tokens)),
        "spans": sum(len(one.spans) for one in texts),
        "differences": {},
    }
    for name, trip in SPANS.items():
        given = texts[:FILES_OF_BRAT] if name == "brat" else texts
        with tempfile.TemporaryDirectory() as folder:
            others = trip(given, Path(folder))
        kept = name == "Prodigy" or name.startswith("spaCy")
        found["differences"][name] = differ(given, others, kept)
    with tempfile.TemporaryDirectory() as folder:
        for name, (X, y) in tables(tokens, tags, Path(folder)).items():
            same = zip(zip(X, y, strict=True), zip(tokens, tags, strict=True), strict=True)
            found["differences"][name] = sum(one != other for one, other in same)
    found["differences"]["spaCy DocBin, read by spaCy"] = by_spacy(texts)
    found["misaligned in running text"] = misaligned(texts)
    return found


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=10_000, help="sequences of each corpus")
    limit = parser.parse_args().limit
    corpora = {name: corpus(name, limit) for name in FILES}
    corpora["awkward"] = awkward(min(limit, 5000))
    cases = {}
    for name, texts in corpora.items():
        cases[name] = measure(texts)
        print(name, cases[name], flush=True)
    _measure.write("round_trips", {"cases": cases})


if __name__ == "__main__":
    main()
