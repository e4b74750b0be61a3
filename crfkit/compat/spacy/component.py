"""The component ``crfkit_ner``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans, from_bytes, minibatch, to_bytes

from crfkit._params import check_flag, check_number
from crfkit.io.docbin import CONFIDENCE, register_confidence
from crfkit.persistence import dumps, load, loads, save
from crfkit.text.annotate import predicted_spans

_FILE = "model.crfkit"

Columns = list[str] | dict[str, str]


class CRFEntityRecognizer:
    """Set the entities of documents of spaCy by a model of crfkit, its `estimator`.

    Parameters
    ----------
    model : path or estimator, optional
        The model, or its file, which is read when it is first needed: a pipeline that is read from
        disk brings its own.
    columns : list of str or dict of str to str, default=["text"]
        What the model knows of a token: attributes of spaCy's tokens (``"text"``, ``"tag_"``,
        ``"_.name"``). One makes tokens strings, several tuples; a dict, from names to attributes,
        makes them dicts.
    features : callable, optional
        Takes the list of these tokens, returns what the model takes.
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
    allow : iterable of str
        Functions that the file may use: see :func:`crfkit.load`.

    Notes
    -----
    Tokens that are white space are not shown to the model. ``span._.confidence`` is kept in the
    user data of a document, so that ``doc.to_bytes()`` and ``DocBin(store_user_data=True)`` keep
    it.
    """

    def __init__(
        self,
        model: Any = None,
        *,
        columns: Columns | None = None,
        features: Callable[[list[Any]], Any] | None = None,
        confidence: bool | None = None,
        threshold: float = 0.0,
        constraints: Any = None,
        overwrite: bool = True,
        allow: Iterable[str] = (),
    ) -> None:
        check_flag("overwrite", overwrite)
        check_number("threshold", threshold)
        if threshold > 0 and confidence is False:
            raise ValueError("threshold= needs probabilities, but confidence=False.")
        self._given, self._model = model, None
        self.columns = ["text"] if columns is None else columns
        self.features, self.confidence, self.threshold = features, confidence, threshold
        self.constraints, self.overwrite, self.allow = constraints, overwrite, tuple(allow)
        register_confidence()

    @property
    def estimator(self) -> Any:
        """The model of crfkit; FileNotFoundError or ValueError if there is none."""
        if self._model is None:
            if self._given is None:
                raise ValueError(
                    "crfkit_ner has no model: pass config={'model': path} to nlp.add_pipe, or read "
                    "the pipeline from where it was saved."
                )
            is_path = isinstance(self._given, (str, os.PathLike))
            self._model = load(self._given, allow=self.allow) if is_path else self._given
        return self._model

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
        probable = scores or [None] * len(spans)  # type: ignore[list-item]
        old = [] if self.overwrite else list(doc.ents)
        taken = {token.i for span in old for token in span}
        new = []
        for (start, stop, label), score in zip(spans, probable, strict=True):
            span = Span(doc, tokens[start].i, tokens[stop - 1].i + 1, label=str(label))
            known = score is None or score >= self.threshold
            if known and taken.isdisjoint(range(span.start, span.end)):
                new.append(span)
                span._.set(CONFIDENCE, score)
        doc.set_ents(filter_spans([*old, *new]))

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


@Language.factory(  # type: ignore[untyped-decorator]
    "crfkit_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={
        "model": None,
        "columns": ["text"],
        "threshold": 0.0,
        "constraints": None,
        "overwrite": True,
        "allow": [],
    },
)
def make_crfkit_ner(
    nlp: Language,
    name: str,
    model: str | None,
    columns: list[str] | dict[str, str],
    threshold: float,
    constraints: str | None,
    overwrite: bool,
    allow: list[str],
) -> CRFEntityRecognizer:
    """Make the component by its configuration."""
    return CRFEntityRecognizer(
        model,
        columns=columns,
        threshold=threshold,
        constraints=constraints,
        overwrite=overwrite,
        allow=allow,
    )
