"""Reading and writing of files: texts with labeled tokens, factor graphs."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names, public_names
from crfkit.io.columns import iter_columns as iter_columns
from crfkit.io.columns import iter_conll as iter_conll
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
    from crfkit.io.brat import iter_brat as iter_brat
    from crfkit.io.brat import read_brat as read_brat
    from crfkit.io.brat import write_brat as write_brat
    from crfkit.io.csv_tables import iter_csv as iter_csv
    from crfkit.io.csv_tables import read_csv as read_csv
    from crfkit.io.csv_tables import write_csv as write_csv
    from crfkit.io.docbin import docs_from_texts as docs_from_texts
    from crfkit.io.docbin import read_docbin as read_docbin
    from crfkit.io.docbin import texts_from_docs as texts_from_docs
    from crfkit.io.docbin import write_docbin as write_docbin
    from crfkit.io.doccano import iter_doccano as iter_doccano
    from crfkit.io.doccano import read_doccano as read_doccano
    from crfkit.io.doccano import write_doccano as write_doccano
    from crfkit.io.fg import read_fg as read_fg
    from crfkit.io.fg import write_fg as write_fg
    from crfkit.io.hugging_face import hugging_face_columns as hugging_face_columns
    from crfkit.io.hugging_face import iter_hugging_face as iter_hugging_face
    from crfkit.io.hugging_face import read_hugging_face as read_hugging_face
    from crfkit.io.hugging_face import write_hugging_face as write_hugging_face
    from crfkit.io.label_studio import iter_label_studio as iter_label_studio
    from crfkit.io.label_studio import read_label_studio as read_label_studio
    from crfkit.io.label_studio import write_label_studio as write_label_studio
    from crfkit.io.potentials import GraphFormatError as GraphFormatError
    from crfkit.io.prodigy import iter_prodigy as iter_prodigy
    from crfkit.io.prodigy import read_prodigy as read_prodigy
    from crfkit.io.prodigy import write_prodigy as write_prodigy
    from crfkit.io.uai import read_evidence as read_evidence
    from crfkit.io.uai import read_uai as read_uai
    from crfkit.io.uai import write_uai as write_uai

_imported = [name for name in public_names(__name__) if name not in ("TYPE_CHECKING", "lazy_names")]
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "brat": "iter_brat read_brat write_brat",
        "csv_tables": "iter_csv read_csv write_csv",
        "docbin": "docs_from_texts read_docbin texts_from_docs write_docbin",
        "doccano": "iter_doccano read_doccano write_doccano",
        "fg": "read_fg write_fg",
        "hugging_face": "hugging_face_columns iter_hugging_face read_hugging_face "
        "write_hugging_face",
        "label_studio": "iter_label_studio read_label_studio write_label_studio",
        "potentials": "GraphFormatError",
        "prodigy": "iter_prodigy read_prodigy write_prodigy",
        "uai": "read_evidence read_uai write_uai",
    },
)
__all__ += _imported
