"""Models of the command line: made, saved and opened."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

from sklearn.pipeline import Pipeline, make_pipeline

from crfkit.cli._common import user_errors
from crfkit.cli._formats import FORMATS, DataFormat, chosen_format
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
_KEY = "command line"  # in the metadata of a model file


class OpenedModel(NamedTuple):
    """A model, taken apart."""

    features: Any  # turns tokens into packed features, where the model does not do that itself
    crf: Any
    about: dict[str, Any]  # what the file says of itself
    size: int  # of the file, in bytes

    def pack(self, X: Sequence[Any]) -> Any:
        """Return what the classifier takes."""
        if self.features is not None:
            return self.features.transform(X)
        return plain_tokens(self.crf, X) if self._known is not None else X

    def data_format(self, arguments: argparse.Namespace, path: str) -> DataFormat:
        """Return how to read a file: by options, else as the training data, else by its name."""
        known = self._known
        if known is None:
            bare = self.features is None or isinstance(self.features[0], SequenceVectorizer)
            if arguments.format is None and bare:
                raise ValueError(
                    "the model has no templates, it takes attributes: say --format crfsuite "
                    "(label TAB attribute TAB ...), or --format columns if cells are attributes."
                )
            return chosen_format(arguments, path)
        if arguments.format not in (None, known["format"]):
            return chosen_format(arguments, path)
        return FORMATS[known["format"]](
            label=known["label"] if arguments.label is None else arguments.label,
            sep="\t" if arguments.tabs else known["sep"],
            encoding=arguments.encoding,
        )

    @property
    def _known(self) -> dict[str, Any] | None:
        """What `crfkit train` wrote of the training data; None if it did not make the model."""
        return (self.about.get("metadata") or {}).get(_KEY)

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
    return TemplateFeatures.from_file(template, columns=data.columns)


def save_model(
    path: str, features: Any, crf: SequenceClassifier, data: DataFormat, width: int
) -> None:
    """Write a model with what tagging has to know of its training data."""
    model = crf if features is None else Pipeline([("features", features), ("crf", crf)])
    save(model, path, metadata={_KEY: data.options() | {"width": width}})


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
