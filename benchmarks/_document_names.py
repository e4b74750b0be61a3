"""Attributes of names that documents tell: of a word elsewhere, of the case of words, of topics.

A document is judged by the other ones alone: what the training data count is counted without the
document that a token stands in, so that training and tagging see the same.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from _conll import Columns
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import TfidfVectorizer

from crfkit.features._lexicons import find_phrases
from crfkit.features.functions import short_shape

N_TOPICS = 30
SEEN_AGAIN = 30  # places in the document that are looked at
AFTER_MARK = set('".-(¿¡:')
Tags = list[list[str]]
Span = tuple[int, int]


class Sentence(NamedTuple):
    """Words, the same in lower case, and where the phrase of each begins and ends."""

    words: list[str]
    lower: list[str]
    phrases: list[Span | None]

    def before(self, place: int) -> str:
        """Return the word before a place, in lower case."""
        return self.lower[place - 1] if place > 0 else "_"

    def at(self, place: int) -> str:
        """Return the word at a place, in lower case."""
        return self.lower[place] if place < len(self.lower) else "_"

    def names(self, t: int) -> list[str]:
        """Return a word with a capital and its phrase; nothing for other words."""
        span = self.phrases[t]
        if span is None or not self.words[t][:1].isupper():
            return []
        return [self.words[t], " ".join(self.words[slice(*span)])]


def sentence(rows: Columns) -> Sentence:
    """Return the words of a sentence and their phrases."""
    words = [row[0] for row in rows]
    ends = find_phrases(words, np.array([0, len(words)]))
    spans = [(a, b) if a >= 0 else None for a, b in zip(*map(np.ndarray.tolist, ends), strict=True)]
    return Sentence(words, [word.lower() for word in words], spans)


def kind(tag: str) -> str:
    """Return the type of a tag."""
    return tag[2:] or tag


def counted(lead: str, counts: Counter[str], own: Counter[str]) -> list[str]:
    """Return attributes of the types that something has elsewhere."""
    rest = counts - own
    total = rest.total()
    if total == 0:
        return [f"{lead} none"]
    best = max(rest, key=lambda name: (rest[name], name))
    share = "all" if rest[best] == total else "most" if 2 * rest[best] > total else "some"
    return [f"{lead} {best}", f"{lead} {best} {share} of {min(total, 3)}"]


class Memory:
    """How often each word and each phrase has a type, in each document and in all."""

    def __init__(self, sentences: Iterable[Sentence], numbers: Iterable[int], tags: Tags) -> None:
        self.counts: defaultdict[Any, Counter[str]] = defaultdict(Counter)
        for words, number, row in zip(sentences, numbers, tags, strict=True):
            for t, tag in enumerate(row):
                for place, name in enumerate(words.names(t)):
                    self.counts[place, name][kind(tag)] += 1
                    self.counts[place, name, number][kind(tag)] += 1


def with_neighbors(rows: list[list[str]], heads: list[list[str]]) -> list[list[str]]:
    """Return the attributes of each token and the heads of both neighbors."""
    around = [[], *heads, []]
    return [
        [*row, *(f"-{name}" for name in around[t]), *(f"+{name}" for name in around[t + 2])]
        for t, row in enumerate(rows)
    ]


def of_types(words: Sentence, number: int, memory: Memory) -> list[list[str]]:
    """Return the types of words and phrases in other documents, of neighbors and ends, too."""
    found = [
        [text for place, name in enumerate(words.names(t))
         for text in counted(("word", "phrase")[place], memory.counts[place, name],
                             memory.counts[place, name, number])]
        for t in range(len(words.words))
    ]  # fmt: skip
    heads = [[x for x in row if x.startswith("word") and " of " not in x] for row in found]
    out = with_neighbors(found, heads)
    for span in set(filter(None, words.phrases)):
        ends = [f"first {x}" for x in heads[span[0]]] + [f"last {x}" for x in heads[span[1] - 1]]
        for t in range(*span):
            out[t] += ends
    return out


def near(words: Sentence) -> list[list[str]]:
    """Return the phrases to the left and to the right, and what stands between."""
    spans = sorted(set(filter(None, words.phrases)))
    found: dict[Span, list[str]] = {}
    for i, (a, b) in enumerate(spans):
        names = [f"two before={words.before(a - 1)}|{words.before(a)}",
                 f"two after={words.at(b)}|{words.at(b + 1)}"]  # fmt: skip
        sides = [("left", spans[i - 1], spans[i - 1][1], a)] if i else []
        sides += [("right", spans[i + 1], b, spans[i + 1][0])] if i + 1 < len(spans) else []
        for side, (start, end), first, last in sides:
            gap = " ".join(words.lower[first:last]) if last - first < 4 else "far"
            shapes = " ".join(map(short_shape, words.words[start : min(end, start + 4)]))
            beside = words.lower[end - 1 if side == "left" else start]
            names += [f"{side}={' '.join(words.lower[start:end])}", f"{side} gap={gap}",
                      f"{side} gap={gap}|{shapes}", f"{side} gap={gap}|{beside}",
                      f"{side} gap={gap}||{words.before(start)}"]  # fmt: skip
        found[a, b] = names
    return [[] if span is None else found[span] for span in words.phrases]


class Seen(NamedTuple):
    """One place of a word: its sentence and span, the words around, the phrase."""

    sentence: int
    start: int
    before: list[str]
    after: str
    phrase: str


class Document:
    """Where else in a document a word stands."""

    def __init__(self, sentences: list[Sentence]) -> None:
        self.sentences = sentences
        self.seen: defaultdict[str, list[Seen]] = defaultdict(list)
        self.short: dict[str, str] = {}  # "( ANATEL )" stands for the phrase before, and back
        self.lower = Counter(word for words in sentences for word in words.words)
        for s, words in enumerate(sentences):
            for a, b in sorted(set(filter(None, words.phrases))):
                text = " ".join(words.words[a:b])
                place = Seen(s, a, [words.before(a), words.before(a - 1)], words.at(b), text)
                for word in set(words.words[a:b]):
                    self.seen[word].append(place)
                inside = words.words[b : b + 3]
                if inside[:1] == ["("] and inside[2:] == [")"] and inside[1].isupper():
                    self.short[inside[1]], self.short[text] = text, inside[1]

    def elsewhere(self, s: int) -> list[list[str]]:
        """Return what stands around the words of a sentence elsewhere."""
        words = self.sentences[s]
        return [
            [] if not words.names(t) else sorted(self._of(s, words.phrases[t], *words.names(t)))
            for t in range(len(words.words))
        ]

    def _of(self, s: int, span: Span | None, word: str, phrase: str) -> set[str]:
        assert span is not None
        others = [x for x in self.seen[word] if (x.sentence, x.start) != (s, span[0])]
        names = {f"seen={min(len(others), 3)}"}
        for other in others[:SEEN_AGAIN]:
            names |= {f"seen before={other.before[0]}", f"seen after={other.after}",
                      f"seen two before={other.before[1]}"}  # fmt: skip
            parts = other.phrase.split(" ")
            if len(other.phrase) < len(phrase):
                names.add(f"seen shorter={other.phrase.lower()}")
            elif len(other.phrase) > len(phrase) and phrase in other.phrase:
                place = "first" if parts[0] == word else "last" if parts[-1] == word else "within"
                names |= {f"seen longer={other.phrase.lower()}",
                          f"seen {place} of {min(len(parts), 4)}",
                          *(f"seen with={x.lower()}" for x in parts)}  # fmt: skip
        if phrase in self.short:
            names |= {"short", *(f"short for={x}" for x in self.short[phrase].lower().split(" "))}
        return names


class Documents:
    """What the training data tell of words: their case, their types, the topics of documents."""

    def __init__(self, sentences: list[Sentence], numbers: list[int], tags: Tags) -> None:
        self.memory = Memory(sentences, numbers, tags)
        self.cases = Counter(itertools.chain.from_iterable(map(cased, sentences)))
        self.known = set(numbers)
        self.bags = TfidfVectorizer(analyzer=topical, min_df=4, max_df=0.3, sublinear_tf=True)
        documents = [document for _, document in grouped(sentences, numbers)]
        self.model = NMF(
            min(N_TOPICS, len(documents) // 4), init="nndsvd", max_iter=1000, random_state=0
        )
        self.model.fit(self.bags.fit_transform(documents))

    def attributes(
        self, sentences: list[Sentence], numbers: list[int]
    ) -> Iterator[list[list[str]]]:
        """Yield the attributes of the tokens of each sentence."""
        for number, group in grouped(sentences, numbers):
            document = Document(group)
            own = Counter(itertools.chain.from_iterable(map(cased, group)))
            topic = int(self.model.transform(self.bags.transform([group])).argmax())
            for s, words in enumerate(group):
                parts = (
                    near(words),
                    document.elsewhere(s),
                    of_types(words, number, self.memory),
                    self.case(words, own, number in self.known),
                    of_topic(words, topic),
                )
                yield [list(itertools.chain(*lists)) for lists in zip(*parts, strict=True)]

    def case(self, words: Sentence, own: Counter[Any], is_known: bool) -> list[list[str]]:
        """Return whether a word with a capital stands elsewhere without, and where it begins."""
        found: list[list[str]] = []
        heads: list[list[str]] = []
        for t, (word, low) in enumerate(zip(words.words, words.lower, strict=True)):
            if not word[:1].isupper():
                found.append([])
                heads.append([])
                continue
            small = self.cases[low, "lower"] + (0 if is_known else own[low, "lower"])
            large = self.cases[low, "title"] - (own[low, "title"] if is_known else 0)
            elsewhere = f"{bucket(small)}|{large > 0}|{small > large}"
            here = "|".join(str(min(own[low, c], n)) for c, n in
                            (("lower", 1), ("title", 2), ("upper", 1)))  # fmt: skip
            start = t == 0 or words.words[t - 1] in AFTER_MARK
            heads.append([f"case={elsewhere}"])
            both = f"{elsewhere}|{here}|{start}|{short_shape(word)}"
            found.append(
                [f"case={elsewhere}", f"case={elsewhere}|{start}", f"lower={bucket(small)}",
                 f"case here={here}|{start}", f"cases={both}"]
            )  # fmt: skip
        return with_neighbors(found, heads)


def bucket(count: int) -> str:
    """Return how many in words."""
    return "none" if count == 0 else "one" if count == 1 else "few" if count < 10 else "many"


def cased(words: Sentence) -> Iterator[tuple[str, str]]:
    """Yield each word in lower case with its case, but for capitals that begin something."""
    for t, (word, low) in enumerate(zip(words.words, words.lower, strict=True)):
        if word.islower():
            yield low, "lower"
        elif t and words.words[t - 1] not in AFTER_MARK:
            yield low, "upper" if len(word) > 1 and word.isupper() else "title"


def grouped(
    sentences: Iterable[Sentence], numbers: Iterable[int]
) -> Iterator[tuple[int, list[Sentence]]]:
    """Yield the sentences of each document."""
    pairs = zip(numbers, sentences, strict=True)
    for number, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
        yield number, [words for _, words in group]


def topical(document: list[Sentence]) -> Iterator[str]:
    """Yield the words that tell a topic."""
    for words in document:
        yield from (word for word in words.words if word.islower() and len(word) > 3)


def of_topic(words: Sentence, topic: int) -> list[list[str]]:
    """Return the topic with words that have a capital, their phrases and what stands beside."""
    out = []
    for word, low, span in zip(words.words, words.lower, words.phrases, strict=True):
        names = ["", f"|{short_shape(word)}"]
        if span is not None:
            a, b = span
            shapes = short_shape(" ".join(words.words[a:b]))
            names += [
                f"|{low}",
                f"|{shapes}",
                f"|before {words.before(a)}",
                f"|after {words.at(b)}",
            ]
        out.append([f"topic={topic}{name}" for name in names])
    return out
