"""What the tasks of ``tasks.py`` are given, and what is told of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _conll import data_home
from _words import read_blocks

from crfkit.io import write_columns
from crfkit.metrics import (
    entity_f1_score,
    entity_precision_recall_fscore_support,
    flat_accuracy_score,
    illegal_tags,
    segment_f1_score,
    spans_from_tags,
)

Scope = dict[str, Any]
TRAIN, TEST = "esp.train", "esp.testb"
HELD_OUT = 2000  # sentences of GMB
RARE = ("art", "eve", "nat")  # types of names in GMB


def spanish(part: str, quick: bool) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words and tags of a part of CoNLL-2002."""
    rows = read_blocks(f"conll2002_es/{part}.gz", " ")[: 200 if quick else None]
    return [[row[0] for row in one] for one in rows], [[row[-1] for row in one] for one in rows]


def gmb(quick: bool) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words and tags of GMB."""
    rows = read_blocks("gmb_ner/gmb.txt.xz", "\t")[: HELD_OUT + 500 if quick else None]
    return [[row[0] for row in one] for one in rows], [[row[-1] for row in one] for one in rows]


def files(quick: bool) -> Scope:
    """Write two files of columns."""
    for part, path in ((TRAIN, "train.conll"), (TEST, "test.conll")):
        rows = read_blocks(f"conll2002_es/{part}.gz", " ")[: 200 if quick else None]
        write_columns(path, [[tuple(row) for row in one] for one in rows])
    return {}


def names(quick: bool, limit: int | None = None) -> Scope:
    """Return sentences to learn from, and others."""
    X, y = spanish(TRAIN, quick)
    X_new, y_new = spanish(TEST, quick)
    return {"X": X[:limit], "y": y[:limit], "X_new": X_new, "y_new": y_new}


def frames(quick: bool) -> Scope:
    """Return names as data frames."""
    from crfkit.data import frame_from_sequences

    scope = names(quick)
    whole, new = (
        frame_from_sequences(scope[X], {"tag": scope[y]}, by="line")
        for X, y in (("X", "y"), ("X_new", "y_new"))
    )
    return {"frame": whole, "new": new.drop(columns="tag"), "y_new": scope["y_new"]}


def tables(quick: bool) -> Scope:
    """Write names as CSV files."""
    from crfkit.io import write_csv

    scope = names(quick)
    write_csv("train.csv", scope["X"], {"tag": scope["y"]}, by="sentence")
    write_csv("new.csv", scope["X_new"], by="sentence")
    return {"y_new": scope["y_new"]}


def exported(quick: bool) -> Scope:
    """Write names as an export of Label Studio, and return new texts."""
    from crfkit.io import write_label_studio
    from crfkit.text import from_tokens

    scope = names(quick)
    labeled, true = (from_tokens(scope[X], scope[y]) for X, y in (("X", "y"), ("X_new", "y_new")))
    write_label_studio("export.json", labeled)
    texts = [one.text for one in true]
    return {"labeled": labeled, "new_texts": texts, "tokenizer": "whitespace", "true": true}


def letters(quick: bool) -> Scope:
    """Return the pixels of handwritten letters, scaled; fold 0 is to be tagged."""
    with np.load(data_home() / "ocr_letters" / "letters.npz", allow_pickle=False) as stored:
        pixels = np.unpackbits(stored["pixels"], axis=1).astype(float)
        lengths, codes, folds = (stored[name] for name in ("lengths", "labels", "folds"))
    ends = np.cumsum(lengths.astype(int))[:-1]
    X, y = np.split(pixels, ends), [row.tolist() for row in np.split(codes, ends)]
    train, test = np.flatnonzero(folds != 0), np.flatnonzero(folds == 0)
    train, test = (rows[: 100 if quick else None] for rows in (train, test))
    return {
        "X": [X[i] for i in train], "y": [y[i] for i in train],
        "X_test": [X[i] for i in test], "y_test": [y[i] for i in test],
    }  # fmt: skip


def corrections(quick: bool) -> Scope:
    """Return names, and the first true one of each new sentence as a correction."""
    scope = names(quick)
    return scope | {"known": [spans_from_tags(tags)[:1] for tags in scope["y_new"]]}


def half(quick: bool) -> Scope:
    """Return names, half of whose tags are missing."""
    scope, random = names(quick), np.random.default_rng(0)
    kept = [random.random(len(tags)) < 0.5 for tags in scope["y"]]
    y = [
        [tag if keep else None for tag, keep in zip(tags, keeps, strict=True)]
        for tags, keeps in zip(scope["y"], kept, strict=True)
    ]
    return scope | {"y": y, "all": scope["y"]}


def rare(quick: bool) -> Scope:
    """Return sentences whose only tags are those of rare types."""
    X, y = gmb(quick)
    y = [[tag if tag[2:] in RARE else "O" for tag in tags] for tags in y]
    return {"X": X[::2], "y": y[::2], "X_test": X[1::2], "y_test": y[1::2]}


def model(quick: bool) -> Scope:
    """Return a model that has learned names."""
    import crfkit
    from crfkit.features import preset

    scope = names(quick, 2000)
    words = crfkit.TemplateFeatures(preset("words", "word"), columns=["word"])
    return scope | {"crf": crfkit.CRFClassifier(features=words).fit(scope["X"], scope["y"])}


def served(quick: bool) -> Scope:
    """Save a model, and return requests of one sentence."""
    scope = model(quick)
    scope["crf"].save("tagger.crfkit")
    return {"requests": [[tokens] for tokens in scope["X_new"]], "truth": scope["crf"]}


def million(quick: bool) -> Scope:
    """Return GMB but for its last sentences, which are to be tagged."""
    X, y = gmb(quick)
    return {"X": X[:-HELD_OUT], "y": y[:-HELD_OUT], "rest": (X[-HELD_OUT:], y[-HELD_OUT:])}


def stream(quick: bool) -> Scope:
    """Return a function that yields parts of GMB; 400 of its batches are to be learned from."""
    X, y = gmb(quick)
    size = max(1, (len(X) - HELD_OUT) // 400)
    last = 400 * size

    def batches(first: int, stop: int, size: int = size) -> Iterator[tuple[Any, Any]]:
        start, end = (0, last) if first == 0 else (last, last + HELD_OUT)
        step = 10 * size if first == 0 else 500
        for place in range(start, end, step):
            yield X[place : min(place + step, end)], y[place : min(place + step, end)]

    labels = sorted({tag for tags in y for tag in tags})
    return {"batches": batches, "labels": labels, "truth": y[last : last + HELD_OUT]}


def f1(true: Any, found: Any) -> float:
    """Return the F1 of entities, rounded."""
    return round(float(entity_f1_score(true, found)), 3)


def of_ner(scope: Scope) -> str:
    """Tell the F1 of entities."""
    return f"F1 {f1(scope['y_test'], scope['crf'].predict(scope['X_test']))}"


def of_frames(scope: Scope) -> str:
    """Tell the F1 of the column."""
    from crfkit.data import labels_from_frame

    found = labels_from_frame(scope["new"], "line", "predicted")
    return f"F1 {f1(scope['y_new'], found)}"


def of_tables(scope: Scope) -> str:
    """Tell the F1 of the column."""
    from crfkit.io import read_csv

    _, found = read_csv("tagged.csv", label="tag", by="sentence")
    return f"F1 {f1(scope['y_new'], found)}"


def of_formats(scope: Scope) -> str:
    """Tell the F1 of spans of characters, and whether what was written is read the same."""
    same = [one.spans for one in scope["same"]] == [one.spans for one in scope["labeled"]]
    same &= scope["labels"] == scope["tags"] and scope["rows"] == scope["tokens"]
    true, found = ([one.spans for one in scope[name]] for name in ("true", "found"))
    score = round(float(segment_f1_score(true, found)), 3)
    number = sum(len(one.spans) for one in scope["labeled"])
    return f"{number:,} spans {'the same' if same else 'not the same'} after both ways; F1 {score}"


def of_embeddings(scope: Scope) -> str:
    """Tell how many letters are right."""
    return f"{flat_accuracy_score(scope['y_test'], scope['predicted']):.1%} of letters right"


def of_penalties(scope: Scope) -> str:
    """Tell what was chosen."""
    search = scope["search"]
    score = f1(scope["y_new"], search.predict(scope["X_new"]))
    fits = search.scores_.size + 1
    return f"{fits} fits; c1={search.c1_:g}, c2={search.c2_:g}; F1 {score}"


def of_uncertain(scope: Scope) -> str:
    """Tell how often sure entities are right, and how many doubtful sentences are wrong."""
    pairs = [
        (p, span in spans_from_tags(tags, "conll"))
        for spans, sure, tags in zip(scope["entities"], scope["sure"], scope["y_new"], strict=True)
        for span, p in zip(spans, sure, strict=True)
    ]
    sure = [right for p, right in pairs if p > 0.9]
    found = scope["crf"].predict(scope["X_new"])
    wrong = sum(found[i] != scope["y_new"][i] for i in scope["least"])
    return (
        f"{len(sure):,} of {len(pairs):,} entities above 0.9, {np.mean(sure):.0%} of them right; "
        f"{wrong} of the 20 sentences have an error"
    )


def of_legal(scope: Scope) -> str:
    """Tell whether tags are legal, and what corrections are worth."""
    wrong = len(illegal_tags(scope["legal"], "IOB2"))
    before, after = (f1(scope["y_new"], scope[name]) for name in ("legal", "corrected"))
    return f"{wrong} illegal tags; F1 {before}, {after} with one known entity a sentence"


def of_partial(scope: Scope) -> str:
    """Tell the F1, and that of all labels."""
    crf, X, true = scope["crf"], scope["X_new"], scope["y_new"]
    part = f1(true, crf.predict(X))
    return f"F1 {part} (all labels: {f1(true, crf.fit(scope['X'], scope['all']).predict(X))})"


def of_rare(scope: Scope) -> str:
    """Tell precision and recall, with the decoding of the page and without."""
    crf, told = scope["crf"], []
    for decoding in ("viterbi", crf.decoding):
        found = crf.set_params(decoding=decoding).predict(scope["X_test"])
        scores = entity_precision_recall_fscore_support(scope["y_test"], found, average="micro")
        told.append("precision {:.2f}, recall {:.2f}, F1 {:.2f}".format(*scores))
    return f"{told[1]} (best sequence: {told[0]})"


def of_n_best(scope: Scope) -> str:
    """Tell how often the right labels are first, and among all."""
    pairs = list(zip(scope["alternatives"], scope["y_new"], strict=True))
    first = np.mean([ranked[0].labels == tags for ranked, tags in pairs])
    among = np.mean([any(one.labels == tags for one in ranked) for ranked, tags in pairs])
    return f"all labels right in {first:.0%} of the first, in {among:.0%} of the lists"


def of_explain(scope: Scope) -> str:
    """Tell what the terms add up to."""
    why, table = scope["why"], scope["table"]
    total = table["contribution"].sum()
    return f"{len(table)} terms; they add up to {total:.3f}, as the scores: {why.difference:.3f}"


def of_weights(scope: Scope) -> str:
    """Tell how many there are."""
    return f"{len(scope['learned']):,} rows with names, as CSV"


def of_threads(scope: Scope) -> str:
    """Tell whether answers are those of one thread."""
    same = scope["answers"] == [scope["truth"].predict(one) for one in scope["requests"]]
    return f"{len(scope['answers']):,} requests, {'the same' if same else 'other'} answers"


def of_million(scope: Scope) -> str:
    """Tell how much was learned, and the memory."""
    from _measure import peak_mib

    X, y = scope["rest"]
    tokens = sum(map(len, scope["X"]))
    score, weights = f1(y, scope["crf"].predict(X)), scope["crf"].n_parameters_
    return f"{tokens:,} tokens, {weights:,} weights; F1 {score}; {peak_mib() / 1024:.1f} GiB"


def of_stream(scope: Scope) -> str:
    """Tell the F1 of what was tagged."""
    found = [labels for batch in scope["tags"] for labels in batch]
    batches = len(list(scope["batches"](0, 400)))
    return f"one pass over {batches} batches; F1 {f1(scope['truth'], found)}"


GIVEN: dict[str, Callable[[bool], Scope]] = {
    "ner": files,
    "frames": frames,
    "csv": tables,
    "formats": exported,
    "embeddings": letters,
    "penalties": lambda quick: names(quick, 1000),
    "uncertain": names,
    "legal": corrections,
    "partial": half,
    "rare": rare,
    "n_best": names,
    "explain": names,
    "weights": model,
    "threads": served,
    "million": million,
    "stream": stream,
}
RESULT: dict[str, Callable[[Scope], str]] = {
    "ner": of_ner,
    "frames": of_frames,
    "csv": of_tables,
    "formats": of_formats,
    "embeddings": of_embeddings,
    "penalties": of_penalties,
    "uncertain": of_uncertain,
    "legal": of_legal,
    "partial": of_partial,
    "rare": of_rare,
    "n_best": of_n_best,
    "explain": of_explain,
    "weights": of_weights,
    "threads": of_threads,
    "million": of_million,
    "stream": of_stream,
}
