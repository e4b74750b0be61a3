"""A component of spaCy: entities by a model of crfkit.

``nlp.add_pipe("crfkit_ner", config={"model": path})``; importing this module needs spaCy.
"""

from crfkit.compat.spacy.component import CRFEntityRecognizer

__all__ = ["CRFEntityRecognizer"]

make_crfkit_ner = CRFEntityRecognizer  # the name of the entry point
