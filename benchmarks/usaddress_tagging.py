"""usaddress with its tagger replaced by crfkit's: labels and speed against python-crfsuite.

    python benchmarks/usaddress_tagging.py

Needs ``pip install usaddress``. Writes ``results/usaddress_tagging.json``.
"""

from __future__ import annotations

import gzip
import itertools
from typing import Any

import _measure
import usaddress
from _conll import data_home

from crfkit.compat.crfsuite import load_crfsuite
from crfkit.compat.pycrfsuite import ItemSequence, Tagger

ADDRESSES, CALLS, REPEATS = 10_000, 500, 9


def addresses() -> list[str]:
    """Return the texts of addresses."""
    folder = data_home() / "usaddress"
    texts: list[str] = []
    for part in ("train", "test", "us50_train", "us50_test", "osm_train", "osm_test"):
        text = gzip.open(folder / f"{part}.tsv.gz", "rt", encoding="utf-8").read()
        blocks = (block.split("\n") for block in text.split("\n\n") if block.strip())
        texts += (" ".join(line.split("\t")[0] for line in block if line) for block in blocks)
    return list(itertools.islice(dict.fromkeys(filter(usaddress.tokenize, texts)), ADDRESSES))


def all_tags(texts: list[str], tagger: Any) -> list[Any]:
    """Return what usaddress says of addresses, with a tagger in the place of its own."""
    own, usaddress.TAGGER = usaddress.TAGGER, tagger
    try:
        return [usaddress.parse(text) for text in texts]
    finally:
        usaddress.TAGGER = own


def speeds(texts: list[str], theirs: Any, ours: Tagger) -> dict[str, float]:
    """Return the best microseconds an address, one at a time and in a batch."""
    features = [usaddress.tokens2features(usaddress.tokenize(text)) for text in texts]
    short = next(f for f in features if len(f) == 10)
    plain = [list(item) for item in ItemSequence(short)]
    model = load_crfsuite(usaddress.MODEL_PATH)
    ways: dict[str, tuple[Any, int]] = {
        "crfkit tagger, 10 tokens": (lambda: [ours.tag(short) for _ in range(CALLS)], CALLS),
        "crfsuite tagger, 10 tokens": (lambda: [theirs.tag(short) for _ in range(CALLS)], CALLS),
        "crfkit tagger, 10 tokens of strings": (
            lambda: [ours.tag(plain) for _ in range(CALLS)], CALLS),
        "crfsuite tagger, 10 tokens of strings": (
            lambda: [theirs.tag(plain) for _ in range(CALLS)], CALLS),
        "crfkit tagger, all": (lambda: [ours.tag(f) for f in features], len(features)),
        "crfkit predict, all": (lambda: model.predict(features), len(features)),
        "crfsuite tagger, all": (lambda: [theirs.tag(f) for f in features], len(features)),
    }  # fmt: skip
    packed = model.vectorizer_.transform(features)
    ways["crfkit predict, all, encoded before"] = (lambda: model.predict(packed), len(features))
    for way, _ in ways.values():
        way()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, (way, count) in ways.items():
            times[name].append(1e6 * _measure.seconds(way) / count)
    return {name: min(values) for name, values in times.items()}


def main() -> None:
    """Run the benchmark."""
    texts = addresses()
    theirs, ours = usaddress.TAGGER, Tagger()
    ours.open(usaddress.MODEL_PATH)
    expected, found = all_tags(texts, theirs), all_tags(texts, ours)
    differ = [text for text, a, b in zip(texts, expected, found, strict=True) if a != b]
    info = ours.info()
    _measure.write(
        "usaddress_tagging",
        {
            "addresses": len(texts),
            "tokens": sum(map(len, expected)),
            "addresses with other labels": len(differ),
            "first of them": differ[:5],
            "state features of info": len(info.state_features),
            "best microseconds an address": speeds(texts[:1000], theirs, ours),
        },
    )


if __name__ == "__main__":
    main()
