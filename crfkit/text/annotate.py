"""Texts that a model annotates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from crfkit._params import check_flag, check_whole
from crfkit.text.alignment import as_annotated, places_of, spans_at, token_spans
from crfkit.text.annotated import OF_SPANS, AnnotatedText
from crfkit.text.tokenizers import as_tokenizer


def annotate(
    model: Any,
    texts: Iterable[str | AnnotatedText],
    tokenizer: Any = "words",
    confidence: bool = True,
    *,
    features: Callable[[list[str]], Any] | None = None,
    constraints: Any = None,
) -> list[AnnotatedText]:
    """Find the spans of texts by a model.

    Parameters
    ----------
    model : estimator
        A fitted model of tokens, with tags of any scheme or other labels, or of segments
        (`SemiMarkovCRF`); a pipeline of such; or any object whose `predict` gives tags.
    texts : iterable of S str or AnnotatedText
        The texts. Of those with annotations id and meta are kept, the spans are replaced. What
        readers of files have kept in meta of the spans before, such as relations between them, is
        left out.
    tokenizer : str, re.Pattern, callable or None, default="words"
        That with which the model was trained; see :func:`as_tokenizer`. None takes the tokens that
        texts have (``offsets``), or else ``"words"``.
    confidence : bool, default=True
        Whether to add the probability of each span, which models without probabilities cannot.
    features : callable, optional
        Takes the tokens of a text, a list of str, and returns the sequence that the model takes,
        for example a list of dicts. By default the model takes the strings themselves, as
        templates do.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict` of the model.

    Returns
    -------
    list of S AnnotatedText
        With the spans that the model predicts, in characters, the places of the tokens, and
        ``span_probabilities``.

    Raises
    ------
    TypeError, ValueError
        If `confidence` is asked of a model without probabilities of spans, a tokenizer finds what
        is not in the text, or by `predict` of the model.

    Examples
    --------
    >>> from crfkit import CRFClassifier, WindowFeatures
    >>> from crfkit.text import annotate
    >>> model = CRFClassifier(features=WindowFeatures(tag=None))
    >>> model = model.fit([["Ann", "sleeps"], ["A", "dog"]], [["B-PER", "O"], ["O", "O"]])
    >>> (found,) = annotate(model, ["Ann, sleeps."])
    >>> found.spans, [round(p, 2) for p in found.span_probabilities]
    ([Segment(start=0, stop=3, label='PER')], [0.82])
    """
    check_flag("confidence", confidence)
    chosen = None if tokenizer is None else as_tokenizer(tokenizer)
    items = list(enumerate(as_annotated(texts)))
    return _annotated(model, items, chosen, confidence, features, constraints)


def iter_annotate(
    model: Any,
    texts: Iterable[str | AnnotatedText],
    tokenizer: Any = "words",
    confidence: bool = True,
    *,
    features: Callable[[list[str]], Any] | None = None,
    constraints: Any = None,
    batch_size: int = 1000,
) -> Iterator[AnnotatedText]:
    """Iterate over what :func:`annotate` returns, holding a batch of texts in memory at a time.

    Parameters, texts and errors are the same. The model is asked once a batch of so many texts, and
    its own errors count the sequences from the first of the batch.

    Examples
    --------
    >>> from crfkit import CRFClassifier, WindowFeatures
    >>> from crfkit.text import iter_annotate
    >>> model = CRFClassifier(features=WindowFeatures(tag=None))
    >>> model = model.fit([["Ann", "sleeps"], ["A", "dog"]], [["B-PER", "O"], ["O", "O"]])
    >>> lines = iter(["Ann, sleeps.", "A dog"])
    >>> [found.covered() for found in iter_annotate(model, lines)]
    [['Ann'], []]
    """
    check_flag("confidence", confidence)
    check_whole("batch_size", batch_size, 1)
    chosen = None if tokenizer is None else as_tokenizer(tokenizer)
    items = enumerate(as_annotated(texts))
    batches = iter(lambda: list(islice(items, batch_size)), [])
    return chain.from_iterable(
        _annotated(model, batch, chosen, confidence, features, constraints) for batch in batches
    )


def _annotated(
    model: Any,
    items: list[tuple[int, AnnotatedText]],
    tokenizer: Any,
    confidence: bool,
    features: Callable[[list[str]], Any] | None,
    constraints: Any,
) -> list[AnnotatedText]:
    """Return texts, of which the numbers are known, with what a model finds."""
    offsets = [places_of(item, number, tokenizer) for number, item in items]
    filled = [s for s, places in enumerate(offsets) if places]
    tokens = [[items[s][1].text[a:b] for a, b in offsets[s]] for s in filled]
    X = tokens if features is None else [features(each) for each in tokens]
    found = dict(zip(filled, predicted_spans(model, X, confidence, constraints), strict=True))
    nothing: tuple[list[Any], list[float] | None] = ([], [] if confidence else None)
    return [
        replace(
            item,
            spans=spans_at(offsets[s], spans),
            meta={key: value for key, value in item.meta.items() if key not in OF_SPANS},
            span_probabilities=probabilities,
            offsets=offsets[s],
        )
        for s, (_, item) in enumerate(items)
        for spans, probabilities in [found.get(s, nothing)]
    ]


def predicted_spans(
    model: Any, X: list[Any], confidence: bool, constraints: Any
) -> list[tuple[list[Any], list[float] | None]]:
    """Return the spans of tokens that a model predicts, and their probabilities, if asked for."""
    if not X:
        return []
    if hasattr(model, "steps"):  # a pipeline, whose last step has the questions
        *earlier, (_, last) = model.steps
        return predicted_spans(
            last, model[:-1].transform(X) if earlier else X, confidence, constraints
        )
    asked = {} if constraints is None else {"constraints": constraints}
    if confidence and not hasattr(model, "predict_span_proba"):
        raise TypeError(
            f"{type(model).__name__} has no probabilities of spans: pass confidence=False."
        )
    if hasattr(model, "predict_spans"):
        spans = model.predict_spans(X, **asked)
    else:
        tags = [list(each) for each in model.predict(X, **asked)]
        spans = token_spans(tags, list(map(len, tags)), "conll")
    if not confidence:
        return [(each, None) for each in spans]
    probabilities = model.predict_span_proba(X, spans, **asked)
    return [(each, p.tolist()) for each, p in zip(spans, probabilities, strict=True)]
