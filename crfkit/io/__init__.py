"""Reading and writing of files and texts with labeled tokens (public names, nothing else)."""

from crfkit.io.columns import iter_columns, read_columns, read_conll, write_columns
from crfkit.io.conllu import (
    ConlluSentence,
    ConlluToken,
    conllu_features_and_labels,
    iter_conllu,
    read_conllu,
    write_conllu,
)
from crfkit.io.crfsuite_model import (
    CRFsuiteModel,
    ModelFormatError,
    read_crfsuite_model,
    write_crfsuite_model,
)
from crfkit.io.crfsuite_text import (
    CRFsuiteData,
    CRFsuiteSequence,
    iter_crfsuite_text,
    read_crfsuite_text,
    write_crfsuite_text,
)
from crfkit.io.offsets import spans_to_tags, tags_to_spans, token_offsets
from crfkit.io.streams import ColumnFormatError

__all__ = [
    "CRFsuiteData",
    "CRFsuiteModel",
    "CRFsuiteSequence",
    "ColumnFormatError",
    "ConlluSentence",
    "ConlluToken",
    "ModelFormatError",
    "conllu_features_and_labels",
    "iter_columns",
    "iter_conllu",
    "iter_crfsuite_text",
    "read_columns",
    "read_conll",
    "read_conllu",
    "read_crfsuite_model",
    "read_crfsuite_text",
    "spans_to_tags",
    "tags_to_spans",
    "token_offsets",
    "write_columns",
    "write_conllu",
    "write_crfsuite_model",
    "write_crfsuite_text",
]
