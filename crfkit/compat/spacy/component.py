"""The component ``crfkit_ner``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.util import filter_spans, from_bytes, minibatch, to_bytes

from crfkit._params import check_flag, check_number
from crfkit.data import UNLABELED
from crfkit.estimators import CRFClassifier
from crfkit.features import TemplateFeatures, preset
from crfkit.io.docbin import CONFIDENCE, register_confidence, texts_from_docs
from crfkit.labels.schemes import OUTSIDE_LABEL, looks_like_tag
from crfkit.persistence import dumps, load, loads, save
from crfkit.text import to_tokens
from crfkit.text.annotate import predicted_spans

_FILE = "model.crfkit"


@Language.factory(
    "crfkit_ner",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type"],
    default_config={
        "model": None,
        "columns": ["text"],
        "features": None,
        "confidence": None,
        "threshold": 0.0,
        "constraints": None,
        "overwrite": True,
        "spans_key": None,
        "allow": [],
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
@dataclass(eq=False, repr=False)
class CRFEntityRecognizer:
    """Set the entities of documents of spaCy by a model of crfkit, its `estimator`.

    Parameters
    ----------
    model : path or estimator, optional
        The model, or its file, which is read when it is first needed: a pipeline that is read from
        disk brings its own. `initialize` fits an estimator that is not fitted, and makes one where
        there is none.
    columns : list of str or dict of str to str, default=["text"]
        What the model knows of a token: attributes of spaCy's tokens (``"text"``, ``"tag_"``,
        ``"_.name"``). One makes tokens strings, several tuples; a dict, from names to attributes,
        makes them dicts.
    features : callable, optional
        Takes the list of these tokens, returns what the model takes. In a configuration, a function
        of spaCy's registry.
    confidence : bool, optional
        Whether to set ``span._.confidence``, the probability of each entity. By default, if the
        model has probabilities.
    threshold : float, default=0.0
        Entities of a smaller probability are left out.
    constraints : rule or str, optional
        As for `predict` of the model, for example ``"IOB2"``.
    overwrite : bool, default=True
        Whether to replace entities that a document has. If not, those that overlap one are left
        out.
    spans_key : str, optional
        The group of spans, ``doc.spans[spans_key]``, to which what is found is written in place of
        the entities; its ``attrs["scores"]`` are the probabilities, as of spaCy's ``spancat``.
        With ``overwrite=False``, spans are added to those of the group.
    allow : iterable of str
        Functions that the file may use: see :func:`crfkit.load`.
    nlp, name
        What spaCy passes to components.

    Notes
    -----
    Tokens that are white space are not shown to the model. ``span._.confidence`` is kept in the
    user data of a document, so that ``doc.to_bytes()`` and ``DocBin(store_user_data=True)`` keep
    it.
    """

    model: Any = None
    _: KW_ONLY
    columns: Any = None
    features: Any = None
    confidence: bool | None = None
    threshold: float = 0.0
    constraints: Any = None
    overwrite: bool = True
    spans_key: str | None = None
    allow: Any = ()
    nlp: Any = None
    name: str = "crfkit_ner"

    def __post_init__(self) -> None:
        self.nlp = None  # nothing of it is needed
        check_flag("overwrite", self.overwrite)
        check_number("threshold", self.threshold)
        if self.threshold > 0 and self.confidence is False:
            raise ValueError("threshold= needs probabilities, but confidence=False.")
        self._model: Any = None
        self.columns = ["text"] if self.columns is None else self.columns
        self.allow = tuple(self.allow)
        register_confidence()

    @property
    def estimator(self) -> Any:
        """The model of crfkit; FileNotFoundError or ValueError if there is none."""
        if self._model is None:
            if self.model is None:
                raise ValueError(
                    "crfkit_ner has no model: pass config={'model': path} to nlp.add_pipe, fit one "
                    "by nlp.initialize(...), or read the pipeline from where it was saved."
                )
            path = isinstance(self.model, (str, os.PathLike))
            self._model = load(self.model, allow=self.allow) if path else self.model
        return self._model

    @property
    def labels(self) -> tuple[str, ...]:
        """The types of entities that the model knows; none where there is no model yet."""
        if self._model is None and isinstance(self.model, (str, os.PathLike)):
            missing = not os.path.exists(self.model)
        else:
            missing = not self._is_fitted()
        return () if missing else tuple(sorted(_types(self.estimator.classes_)))

    def _is_fitted(self) -> bool:
        """Whether there is a model that can be asked."""
        if self._model is None and isinstance(self.model, (str, os.PathLike)):
            return True
        model = self.model if self._model is None else self._model
        return hasattr(model, "classes_")

    def initialize(
        self, get_examples: Callable[[], Iterable[Any]], *, nlp: Language | None = None
    ) -> None:
        """Fit the model to the entities of examples: ``nlp.initialize(get_examples)``.

        A model that is fitted, or a file, is left as it is. Without a model, that is a
        `CRFClassifier` of the templates ``preset("names", ...)`` of the columns. Tokens without
        entity information are unlabeled; where no token has some, nothing is fitted.
        """
        if self._is_fitted():
            return
        docs = [example.reference for example in get_examples()]
        words = [[token for token in doc if not token.is_space] for doc in docs]
        _, tags, *_ = to_tokens(
            replace(text, offsets=[(t.idx, t.idx + len(t.text)) for t in tokens])
            for text, tokens in zip(texts_from_docs(docs), words, strict=True)
        )
        if all(tag is UNLABELED for row in tags for tag in row):
            return
        X = [self._tokens(tokens) for tokens in words if tokens]
        if self.features is not None:
            X = [self.features(tokens) for tokens in X]
        model = self._new_estimator() if self.model is None else self.model
        self._model = model.fit(X, [row for row in tags if row])

    def _new_estimator(self) -> Any:
        """Return what is fitted if there is no model."""
        if self.features is not None:
            return CRFClassifier()
        if isinstance(self.columns, dict):
            names, columns = list(self.columns), None
        else:
            names = columns = [f"column{place}" for place in range(len(self.columns))]
        return CRFClassifier(
            features=TemplateFeatures(preset("names", names[0], names[1:]), columns=columns)
        )

    def score(self, examples: Iterable[Any], **options: Any) -> dict[str, Any]:
        """Return precision, recall and F1 as of spaCy's ``ner``, or as of ``spancat``."""
        key = self.spans_key
        if key is None:
            scores: dict[str, Any] = get_ner_prf(examples)
            return scores
        found: dict[str, Any] = Scorer.score_spans(
            examples,
            f"spans_{key}",
            getter=lambda doc, _: doc.spans.get(key, []),
            has_annotation=lambda doc: key in doc.spans,
            allow_overlap=True,
        )
        return found

    def __call__(self, doc: Doc) -> Doc:
        """Set the entities of a document."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the entities of many documents: the model is asked once a batch."""
        for docs in minibatch(stream, batch_size):
            self._annotate(docs)
            yield from docs

    def _annotate(self, docs: list[Doc]) -> None:
        words = [[token for token in doc if not token.is_space] for doc in docs]
        filled = [s for s, tokens in enumerate(words) if tokens]
        X: list[Any] = [self._tokens(words[s]) for s in filled]
        if self.features is not None:
            X = [self.features(tokens) for tokens in X]
        answers = predicted_spans(self.estimator, X, self._asks(), self.constraints)
        found = dict(zip(filled, answers, strict=True))
        for s, doc in enumerate(docs):
            self._set(doc, words[s], *found.get(s, ([], None)))

    def _asks(self) -> bool:
        """Whether to ask the model for probabilities."""
        if self.confidence is not None:
            return self.confidence
        return self.threshold > 0 or hasattr(self.estimator, "predict_span_proba")

    def _tokens(self, tokens: list[Any]) -> list[Any]:
        if isinstance(self.columns, dict):
            names = self.columns.items()
            return [{name: _attribute(t, source) for name, source in names} for t in tokens]
        if len(self.columns) == 1:
            return [_attribute(token, self.columns[0]) for token in tokens]
        return [tuple(_attribute(token, name) for name in self.columns) for token in tokens]

    def _set(
        self, doc: Doc, tokens: list[Any], spans: list[Any], scores: list[float] | None
    ) -> None:
        """Set the entities of a document: spans of those of its tokens that are no white space."""
        if self.spans_key is None:
            doc.set_ents(self._entities(doc, tokens, spans, scores))
            return
        old = [] if self.overwrite else list(doc.spans.get(self.spans_key, []))
        new = [*old, *self._found(doc, tokens, spans, scores)]
        known = [span._.get(CONFIDENCE) for span in new]
        attrs = {} if None in known else {"scores": np.array(known, dtype=np.float64)}
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=new, attrs=attrs)

    def _entities(
        self, doc: Doc, tokens: list[Any], spans: list[Any], scores: list[float] | None
    ) -> list[Span]:
        """Return the entities that the document has, and those that are found."""
        old = [] if self.overwrite else list(doc.ents)
        taken = {token.i for span in old for token in span}
        places = [set(range(tokens[a].i, tokens[b - 1].i + 1)) for a, b, _ in spans]
        free = [number for number, place in enumerate(places) if taken.isdisjoint(place)]
        probable = None if scores is None else [scores[number] for number in free]
        new = self._found(doc, tokens, [spans[number] for number in free], probable)
        found: list[Span] = filter_spans([*old, *new])
        return found

    def _found(
        self, doc: Doc, tokens: list[Any], spans: list[Any], scores: list[float] | None
    ) -> Iterator[Span]:
        """Yield the spans that are probable enough."""
        probable = [None] * len(spans) if scores is None else scores
        for (start, stop, label), score in zip(spans, probable, strict=True):
            if score is None or score >= self.threshold:
                span = Span(doc, tokens[start].i, tokens[stop - 1].i + 1, label=str(label))
                span._.set(CONFIDENCE, score)
                yield span

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """Save the model to a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if "model" not in exclude:
            save(self.estimator, folder / _FILE)

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> CRFEntityRecognizer:
        """Read the model from a folder."""
        if "model" not in exclude:
            self._model = load(Path(path) / _FILE, allow=self.allow)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the model as bytes."""
        data: bytes = to_bytes({"model": lambda: dumps(self.estimator)}, exclude)
        return data

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> CRFEntityRecognizer:
        """Take the model from bytes."""

        def read(part: bytes) -> None:
            self._model = loads(part, allow=self.allow)

        from_bytes(data, {"model": read}, exclude)
        return self


def _attribute(token: Any, name: str) -> str:
    """Return an attribute of a token; ValueError if it has none, or of another type."""
    place = token._ if name.startswith("_.") else token
    value = getattr(place, name.removeprefix("_."), None)
    if not isinstance(value, str):
        raise ValueError(
            f"columns: {name!r} of the token {token.text!r} is {value!r:.60}, not a str; choose "
            "attributes such as 'text', 'lower_', 'tag_', 'pos_', 'lemma_', 'shape_', '_.name'"
        )
    return value


def _types(names: Iterable[Any]) -> set[str]:
    """Return the types of tags, and labels that are no tags."""
    tags = [str(name) for name in names if name != OUTSIDE_LABEL]
    return {tag.partition("-")[2] or tag if looks_like_tag(tag) else tag for tag in tags}
