"""Models of the command line: made, saved and opened."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

from sklearn.pipeline import Pipeline, make_pipeline

from crfkit.cli._columns import ColumnMatch, foreign_rows
from crfkit.cli._common import CommandError, user_errors
from crfkit.cli.formats import (
    FORMATS,
    DataFormat,
    FormatOptions,
    chosen_format,
    format_name,
    separator,
)
from crfkit.cli.options.parser import meant
from crfkit.compat.crfsuite import load_crfsuite
from crfkit.compat.sklearn_crfsuite import CRF
from crfkit.estimators import HMMClassifier
from crfkit.estimators.base import SequenceClassifier
from crfkit.features import SequenceVectorizer, TemplateFeatures, preset
from crfkit.features.templates.presets import PRESETS
from crfkit.persistence import describe, load, save
from crfkit.potentials import LinearChainModel
from crfkit.potentials.semimarkov import SemiMarkovModel

CRFSUITE_MAGIC = b"lCRF"
_KEY, TOKENIZER = "command line", "tokenizer"  # in the metadata of a model file


class OpenedModel(NamedTuple):
    """A model, taken apart."""

    features: Any  # turns tokens into packed features, where the model does not do that itself
    crf: Any
    about: dict[str, Any]  # what the file says of itself
    size: int  # of the file, in bytes

    def pack(self, X: Sequence[Any], data: DataFormat) -> Any:
        """Return what the classifier takes of rows of a file."""
        if self._known is None or data.has_columns != self.has_columns:
            rows = foreign_rows(self.features, data, X)
            if self.features is None and data.has_columns and data.name != "columns":
                raise ValueError(
                    f"the model takes attributes of tokens, which --format {data.name} has not; "
                    "give data of --format crfsuite, or train a model with templates."
                )
        elif self.matches(data):
            rows = X
        else:
            rows = ColumnMatch.of(self, data, len(X[0][0]) if X else 0).rows(X)
        if self.features is not None:
            return self.features.transform(rows)
        return rows if self._known is None else plain_tokens(self.crf, rows)

    def data_format(self, arguments: argparse.Namespace, path: str) -> DataFormat:
        """Return how to read a file: by options, by its name, or else as the training data."""
        known, named = self._known, arguments.format or format_name(path)
        if arguments.tokenizer is None:
            arguments.tokenizer = (self.about.get("metadata") or {}).get(TOKENIZER)
        if known is None:
            bare = self.features is None or isinstance(self.features[0], SequenceVectorizer)
            if named is None and bare:
                raise ValueError(
                    "the model has no templates, it takes attributes: say --format crfsuite "
                    "(label TAB attribute TAB ...), or --format columns if cells are attributes."
                )
            return chosen_format(arguments, path)
        if named not in (None, known["format"]):
            return chosen_format(arguments, path)
        given = FormatOptions(
            known["label"] if arguments.label is None else arguments.label,
            separator(arguments, path) or known["sep"], arguments.encoding,
            known.get("header") if arguments.header is None else arguments.header,
            arguments.tokenizer, known.get("by") if arguments.by is None else arguments.by,
        )  # fmt: skip
        return FORMATS[known["format"]](given)

    @property
    def has_columns(self) -> bool:
        """Whether the model was trained on columns, not on attributes."""
        return self._known is not None and bool(self._known["width"])

    def matches(self, data: DataFormat) -> bool:
        """Whether rows of a file have the columns of the training data as they stand."""
        known = self._known or {}
        return data.name == known.get("format") and data.has_fixed_columns

    def width_in(self, data: DataFormat) -> int | None:
        """Return how many columns the rows of a file must have; None for any number."""
        return self.width if self.matches(data) else None

    @property
    def _known(self) -> dict[str, Any] | None:
        """What `crfkit train` wrote of the training data; None if it did not make the model."""
        return (self.about.get("metadata") or {}).get(_KEY)

    @property
    def columns(self) -> list[str] | None:
        """Names of the columns of the training data, None where they have none."""
        known = self._known or {}
        if "columns" not in known and known.get("format") == "conllu":  # of an older file
            return FORMATS["conllu"](FormatOptions(known["label"])).columns
        names: list[str] | None = known.get("columns")
        return names

    @property
    def width(self) -> int | None:
        """Number of columns that the model was trained on, without the label; None if not known."""
        return None if self._known is None else int(self._known["width"])


def plain_tokens(crf: Any, X: Sequence[Any]) -> Any:
    """Return the words of tokens, their first column, if a model is one of words."""
    if not isinstance(crf, HMMClassifier):
        return X
    return [[token[0] for token in sequence] for sequence in X]


def make_features(template: str | None, data: DataFormat, width: int) -> TemplateFeatures:
    """Return the templates of a file or of a preset for rows of a number of columns."""
    if template is None or template in PRESETS:
        # Other fields of CoNLL-U are annotations, as the label is, and nearly tell it.
        tags = () if data.columns else range(1, width)
        return TemplateFeatures(preset(template or "words", 0, tags), columns=data.columns)
    if not os.path.exists(template):
        hint = meant(template, PRESETS)
        raise CommandError(
            f"--template {template}: no such file, and none of {', '.join(PRESETS)}{hint}"
        )
    return TemplateFeatures.from_file(template, columns=data.columns)


def save_model(
    path: str, features: Any, crf: SequenceClassifier, data: DataFormat, width: int
) -> None:
    """Write a model with what tagging has to know of its training data."""
    model = crf if features is None else Pipeline([("features", features), ("crf", crf)])
    known = data.options() | {"width": width, "columns": data.columns}
    tokenizer = {} if data.given.tokenizer is None else {TOKENIZER: data.given.tokenizer}
    save(model, path, metadata={_KEY: known} | tokenizer)


def open_model(path: str, allow: Sequence[str] = ()) -> OpenedModel:
    """Open a model file of crfkit or CRFsuite; CommandError where that fails."""
    with user_errors():
        with open(path, "rb") as file:
            stream = _seekable(file, path)
            source = path if stream is file else stream
            magic, size = stream.read(len(CRFSUITE_MAGIC)), stream.seek(0, os.SEEK_END)
            stream.seek(0)
            if magic == CRFSUITE_MAGIC:
                about = {"class": "CRFsuite model", "metadata": {}}
                return OpenedModel(None, load_crfsuite(stream), about, size)
            about = describe(source)
            stream.seek(0)
            model = load(source, allow=allow)
        *before, last = _steps(path, model)
        crf = _classifier(path, last)
        own = getattr(crf, "vectorizer_", None)
        if own is not None and not isinstance(own, SequenceVectorizer):
            before.append(own)
        return OpenedModel(make_pipeline(*before) if before else None, crf, about, size)


def _steps(path: str, model: Any) -> list[Any]:
    """Return the steps of a model; of a calibrated one, the model that answers all questions."""
    if isinstance(model, Pipeline):
        *before, last = model
        return [*before, *_steps(path, last)]
    calibration = getattr(model, "calibration_", None)
    if calibration is None:
        return [model]
    if not calibration.answers_all:
        raise ValueError(
            f"{path} holds a {type(model).__name__} with method={model.method!r}, which the "
            "command line cannot ask: fit it with method='temperature', or save its `estimator_`."
        )
    return _steps(path, model.estimator_)


def _seekable(file: IO[bytes], path: str) -> IO[bytes]:
    """Return a file, or the content of a pipe, which can be read only once."""
    if file.seekable():
        return file
    content = io.BytesIO(file.read())
    content.name = path  # for messages
    return content


def weight_views(crf: Any) -> dict[str, Any]:
    """Return the weights of a model that are not 0, as mappings from names, by kind."""
    kinds = (LinearChainModel, SemiMarkovModel)
    tables = [t for kind in kinds for b in kind.block_types.values() for t in b.tables if t.view]
    # A model of tokens has none of segments, and one with a kernel none of attributes.
    views = {table.title: getattr(crf, table.view, None) for table in tables}
    return {title: view for title, view in views.items() if view is not None}


def _classifier(path: str, model: Any) -> SequenceClassifier:
    """Return a fitted classifier; of a drop-in, what it wraps."""
    classifier = getattr(model, "model_", model)
    if not isinstance(classifier, (SequenceClassifier, CRF)):
        raise ValueError(f"{path} holds a {type(model).__name__}, which is no sequence classifier.")
    if isinstance(classifier, CRF) or not hasattr(classifier, "classes_"):
        raise ValueError(f"{path} holds a {type(model).__name__} that is not fitted.")
    return classifier
