"""A component of spaCy: entities by a model of crfkit.

``nlp.add_pipe("crfkit_ner", config={"model": path})``; importing this module needs spaCy.
"""

from crfkit.compat.spacy.component import CRFEntityRecognizer, make_crfkit_ner

__all__ = ["CRFEntityRecognizer", "make_crfkit_ner"]
