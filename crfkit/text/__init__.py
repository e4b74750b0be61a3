"""Texts with spans of characters: tokenizers, tags of tokens and back, annotation by models."""

from crfkit._lazy import public_names
from crfkit._types import Segment as Segment
from crfkit.text.alignment import Misaligned as Misaligned
from crfkit.text.alignment import TokenizedTexts as TokenizedTexts
from crfkit.text.alignment import from_tokens as from_tokens
from crfkit.text.alignment import to_tokens as to_tokens
from crfkit.text.annotate import annotate as annotate
from crfkit.text.annotate import iter_annotate as iter_annotate
from crfkit.text.annotated import AnnotatedText as AnnotatedText
from crfkit.text.offsets import spans_to_tags as spans_to_tags
from crfkit.text.offsets import tags_to_spans as tags_to_spans
from crfkit.text.offsets import token_offsets as token_offsets
from crfkit.text.tokenizers import TOKENIZERS as TOKENIZERS
from crfkit.text.tokenizers import as_tokenizer as as_tokenizer

__all__ = public_names(__name__)
