"""Documents of spaCy: DocBin files, and documents in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import IO, Any

from crfkit._types import Segment
from crfkit._warnings import warn_user
from crfkit.data import UNLABELED
from crfkit.io.records import annotated, as_json, as_texts, labeled_spans
from crfkit.io.streams import ColumnFormatError, open_packed, read_packed
from crfkit.text import AnnotatedText, to_tokens

#: The attribute of spans in which probabilities are: ``span._.confidence``.
CONFIDENCE = "confidence"
# In the user data of documents; the last where tokens are not all those that are no white space.
_ID, _META, _TOKENS = "crfkit_id", "crfkit_meta", "crfkit_tokens"
_MISSING = 0  # of Token.ent_iob: nothing is known

Path = str | os.PathLike[str]


def read_docbin(
    source: Path | IO[bytes], *, spans: str | None = None, vocab: Any = None
) -> list[AnnotatedText]:
    """Read the texts of a ``DocBin`` file of spaCy.

    Parameters
    ----------
    source : path or binary file object
        What ``DocBin.to_disk`` or ``to_bytes`` wrote.
    spans : str, optional
        The key of a group of spans (``doc.spans[key]``) to read in place of the entities.
    vocab : spacy.vocab.Vocab, optional
        By default that of ``spacy.blank("xx")``.

    Returns
    -------
    list of AnnotatedText
        As of :func:`texts_from_docs`.

    Raises
    ------
    ImportError
        If spaCy is not installed.
    ColumnFormatError
        If the file is no DocBin, or a document has no such group of spans.
    """
    from spacy.tokens import DocBin

    path = isinstance(source, (str, os.PathLike))
    if path:
        data = read_packed(os.fspath(source))  # type: ignore[arg-type]
    else:
        data = source.read()  # type: ignore[union-attr]
    name = os.fspath(source) if path else getattr(source, "name", "<stream>")  # type: ignore[arg-type]
    register_confidence()
    try:
        docs = list(DocBin().from_bytes(data).get_docs(_vocab(vocab)))
    except Exception as error:  # whatever zlib, msgpack and NumPy raise
        raise ColumnFormatError(f"{name} is no DocBin of spaCy, or damaged ({error})") from error
    return texts_from_docs(docs, spans=spans, name=f"{name}, document")


def texts_from_docs(
    docs: Iterable[Any], *, spans: str | None = None, name: str = "document"
) -> list[AnnotatedText]:
    """Return documents of spaCy as texts with spans.

    Parameters
    ----------
    docs : iterable of spacy.tokens.Doc
        The documents.
    spans : str, optional
        The key of a group of spans (``doc.spans[key]``), which may overlap, in place of the
        entities.
    name : str, default="document"
        What stands before the number of a document in messages.

    Returns
    -------
    list of AnnotatedText
        With the places of the tokens that are no white space. Tokens whose entities are missing are
        spans labeled :data:`crfkit.UNLABELED`. ``span._.confidence`` is read where all spans have
        one.

    Raises
    ------
    ColumnFormatError
        If a document has no such group of spans.
    """
    register_confidence()
    return [_text(doc, spans, f"{name} {number}") for number, doc in enumerate(docs)]


def _text(doc: Any, key: str | None, where: str) -> AnnotatedText:
    own = doc.user_data.get(_TOKENS)
    tokens = [t for t in doc if not t.is_space] if own is None else [doc[i] for i in own]
    offsets = [(token.idx, token.idx + len(token.text)) for token in tokens]
    if key is not None and key not in doc.spans:
        raise ColumnFormatError(
            f"{where} has no spans {key!r}, only {sorted(doc.spans)}; pass spans=None for entities"
        )
    listed = list(doc.ents if key is None else doc.spans[key])
    found: list[Any] = [(span.start_char, span.end_char, span.label_) for span in listed]
    scores = [span._.get(CONFIDENCE) for span in listed]
    unknown = list(_missing(tokens)) if key is None else []
    probable = None
    if listed and not unknown and None not in scores:
        probable = [float(score) for score in scores]
    return annotated(
        where,
        doc.text,
        sorted([*found, *unknown], key=lambda span: span[:2]) if unknown else found,
        id=doc.user_data.get(_ID),
        meta=json.loads(doc.user_data.get(_META, "{}")),
        offsets=offsets,
        span_probabilities=probable,
    )


def _missing(tokens: list[Any]) -> Iterator[Segment]:
    for missing, run in groupby(tokens, lambda token: token.ent_iob == _MISSING):
        if missing:
            first, *rest = run
            last = rest[-1] if rest else first
            yield Segment(first.idx, last.idx + len(last.text), UNLABELED)


def docs_from_texts(
    texts: Iterable[AnnotatedText],
    tokenizer: Any = None,
    *,
    misfit: str = "report",
    overlap: str = "raise",
    spans: str | None = None,
    vocab: Any = None,
) -> list[Any]:
    """Return texts with spans as documents of spaCy, for example to train a pipeline.

    Parameters
    ----------
    texts : iterable of AnnotatedText
        The texts.
    tokenizer, misfit, overlap
        As for :func:`crfkit.text.to_tokens`; ``nlp.tokenizer`` is a tokenizer, too. Tokens that a
        misaligned span touches have no entity information.
    spans : str, optional
        The key of a group of spans (``doc.spans[key]``) to write in place of entities. There, spans
        may overlap; `overlap` is not asked.
    vocab : spacy.vocab.Vocab, optional
        By default that of ``spacy.blank("xx")``.

    Returns
    -------
    list of spacy.tokens.Doc
        With entities, or none known for parts labeled `UNLABELED`, ``span._.confidence``, and id
        and `meta` in the user data.

    Raises
    ------
    ImportError
        If spaCy is not installed.
    ColumnFormatError, ValueError
        Naming the text, by the policies.

    Warns
    -----
    UserWarning
        As :func:`crfkit.text.to_tokens`.
    """
    register_confidence()
    items = [item for _, item in as_texts(texts)]
    if spans is None:
        tokenized = to_tokens(items, tokenizer, misfit=misfit, overlap=overlap)
    else:
        bare = [AnnotatedText(item.text, id=item.id, offsets=item.offsets) for item in items]
        tokenized = to_tokens(bare, tokenizer)
    known = _vocab(vocab)
    docs = []
    rows = zip(items, tokenized.offsets, tokenized.tags, strict=True)
    for number, (item, offsets, own) in enumerate(rows):
        doc = _doc(item.text, offsets, known, own if spans is None else None)
        _add_fields(doc, item, f"text {number}")
        if spans is not None:
            doc.spans[spans] = list(_group(doc, item, misfit, f"text {number}"))
        _add_confidence(doc, item, spans)
        docs.append(doc)
    return docs


def _doc(text: str, offsets: list[tuple[int, int]], vocab: Any, tags: list[Any] | None) -> Any:
    """Return a document with these tokens, and with tokens of what is between them."""
    from spacy.tokens import Doc

    words: list[str] = []
    spaces: list[bool] = []
    ents: list[str] = []
    own: list[int] = []  # the tokens of the text among those of the document
    end = 0
    for place, (start, stop) in enumerate([*offsets, (len(text), len(text))]):
        gap = text[end:start]
        if gap.startswith(" ") and words:
            spaces[-1], gap = True, gap[1:]
        if gap:
            words.append(gap)
            spaces.append(False)
            ents.append(_between(tags, place))
        if start < stop:
            own.append(len(words))
            words.append(text[start:stop])
            spaces.append(False)
            ents.append("" if tags is None or tags[place] is UNLABELED else tags[place])
        end = stop
    doc = Doc(vocab, words=words, spaces=spaces, ents=None if tags is None else ents)
    if own != [token.i for token in doc if not token.is_space]:
        doc.user_data[_TOKENS] = own
    if doc.text != text:
        raise ColumnFormatError(f"spaCy reads {doc.text!r:.60} in place of {text!r:.60}")
    return doc


def _between(tags: list[Any] | None, place: int) -> str:
    """Return the tag of white space before a token: within an entity it is part of that."""
    if tags is None or not tags:
        return "O"
    around = [tags[at] for at in (place - 1, place) if 0 <= at < len(tags)]
    if all(tag is UNLABELED for tag in around):
        return ""
    after = around[-1] if place < len(tags) else "O"
    return after if after is not UNLABELED and after.startswith("I-") else "O"


def _add_fields(doc: Any, item: AnnotatedText, where: str) -> None:
    if item.id is not None:
        doc.user_data[_ID] = item.id
    if item.meta:
        # As JSON: msgpack would make lists tuples.
        doc.user_data[_META] = as_json(item.meta, where)


def _group(doc: Any, item: AnnotatedText, misfit: str, where: str) -> Iterator[Any]:
    modes = {"raise": "strict", "report": "strict", "expand": "expand", "contract": "contract"}
    for start, stop, label in labeled_spans(item, where):
        span = doc.char_span(start, stop, label=label, alignment_mode=modes[misfit])
        if span is not None:
            yield span
            continue
        told = f"{where}: the span [{start}, {stop}) labeled {label!r} does not end where tokens do"
        if misfit != "report":
            raise ColumnFormatError(f"{told}; pass another misfit=, or tokenize otherwise")
        warn_user(f"{told}, and is left out.")


def _add_confidence(doc: Any, item: AnnotatedText, key: str | None) -> None:
    scores = dict(zip((s[:2] for s in item.spans), item.span_probabilities or (), strict=False))
    for span in doc.ents if key is None else doc.spans[key]:
        if (span.start_char, span.end_char) in scores:
            span._.set(CONFIDENCE, scores[span.start_char, span.end_char])


def write_docbin(
    target: Path | IO[bytes],
    texts: Iterable[AnnotatedText],
    tokenizer: Any = None,
    *,
    misfit: str = "report",
    overlap: str = "raise",
    spans: str | None = None,
    vocab: Any = None,
) -> None:
    """Write texts with spans as a ``DocBin`` file, from which spaCy trains.

    Parameters
    ----------
    target : path or binary file object
        Where to write; a path is replaced after all was written. spaCy looks for ``.spacy``.
    texts, tokenizer, misfit, overlap, spans, vocab
        As for :func:`docs_from_texts`, also in what is raised and warned of.
    """
    from spacy.tokens import DocBin

    docs = docs_from_texts(
        texts, tokenizer, misfit=misfit, overlap=overlap, spans=spans, vocab=vocab
    )
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    if not isinstance(target, (str, os.PathLike)):
        target.write(data)
        return
    with open_packed(os.fspath(target)) as file:
        file.write(data)


def _vocab(vocab: Any) -> Any:
    if vocab is not None:
        return vocab
    import spacy

    return spacy.blank("xx").vocab


def register_confidence() -> None:
    """Make ``span._.confidence`` known to spaCy."""
    from spacy.tokens import Span

    if not Span.has_extension(CONFIDENCE):
        Span.set_extension(CONFIDENCE, default=None)
