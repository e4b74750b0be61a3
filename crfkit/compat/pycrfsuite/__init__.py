"""The names of python-crfsuite: ``from crfkit.compat import pycrfsuite``."""

from crfkit.compat.pycrfsuite.tagger import ModelInfo, Tagger
from crfkit.compat.pycrfsuite.trainer import ItemSequence, Trainer

__all__ = ["ItemSequence", "ModelInfo", "Tagger", "Trainer"]
