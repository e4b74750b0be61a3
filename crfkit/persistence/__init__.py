"""Models in one versioned file that holds data only: no pickle, nothing is executed.

`container` knows the bytes, `encoder` and `decoder` the objects, `registry` the classes, `checks`
what must hold between restored arrays, and `files` is what users call.
"""

from crfkit.persistence.checks import check_chain_model, check_steps, check_what_predicts
from crfkit.persistence.container import ModelFileError
from crfkit.persistence.files import SaveMixin, describe, dumps, load, loads, save
from crfkit.persistence.registry import register, register_room

__all__ = [
    "ModelFileError",
    "SaveMixin",
    "check_chain_model",
    "check_steps",
    "check_what_predicts",
    "describe",
    "dumps",
    "load",
    "loads",
    "register",
    "register_room",
    "save",
]
