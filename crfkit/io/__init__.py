"""Reading and writing of files: texts with labeled tokens, factor graphs."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names, public_names
from crfkit.io.columns import iter_columns as iter_columns
from crfkit.io.columns import known_labels as known_labels
from crfkit.io.columns import read_columns as read_columns
from crfkit.io.columns import read_conll as read_conll
from crfkit.io.columns import write_columns as write_columns
from crfkit.io.conllu import ConlluSentence as ConlluSentence
from crfkit.io.conllu import ConlluToken as ConlluToken
from crfkit.io.conllu import conllu_features_and_labels as conllu_features_and_labels
from crfkit.io.conllu import iter_conllu as iter_conllu
from crfkit.io.conllu import read_conllu as read_conllu
from crfkit.io.conllu import write_conllu as write_conllu
from crfkit.io.crfsuite_model import CRFsuiteModel as CRFsuiteModel
from crfkit.io.crfsuite_model import ModelFormatError as ModelFormatError
from crfkit.io.crfsuite_model import read_crfsuite_model as read_crfsuite_model
from crfkit.io.crfsuite_model import write_crfsuite_model as write_crfsuite_model
from crfkit.io.crfsuite_text import CRFsuiteData as CRFsuiteData
from crfkit.io.crfsuite_text import CRFsuiteSequence as CRFsuiteSequence
from crfkit.io.crfsuite_text import iter_crfsuite_text as iter_crfsuite_text
from crfkit.io.crfsuite_text import read_crfsuite_text as read_crfsuite_text
from crfkit.io.crfsuite_text import write_crfsuite_text as write_crfsuite_text
from crfkit.io.streams import ColumnFormatError as ColumnFormatError
from crfkit.text.offsets import spans_to_tags as spans_to_tags
from crfkit.text.offsets import tags_to_spans as tags_to_spans
from crfkit.text.offsets import token_offsets as token_offsets

if TYPE_CHECKING:
    from crfkit.io.fg import read_fg as read_fg
    from crfkit.io.fg import write_fg as write_fg
    from crfkit.io.potentials import GraphFormatError as GraphFormatError
    from crfkit.io.uai import read_evidence as read_evidence
    from crfkit.io.uai import read_uai as read_uai
    from crfkit.io.uai import write_uai as write_uai

_imported = [name for name in public_names(__name__) if name not in ("TYPE_CHECKING", "lazy_names")]
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fg": "read_fg write_fg",
        "potentials": "GraphFormatError",
        "uai": "read_evidence read_uai write_uai",
    },
)
__all__ += _imported
