"""Data that ship with the package, are drawn, or are fetched (public names, nothing else)."""

from crfkit.datasets.conll import fetch_conll2000, fetch_conll2002
from crfkit.datasets.ingredients import ingredient_features, load_ingredients, tokenize_ingredient
from crfkit.datasets.remote import get_data_home
from crfkit.datasets.synthetic import (
    make_label_bias_data,
    make_markov_sequences,
    make_segment_sequences,
)
from crfkit.datasets.universal_dependencies import fetch_ud

__all__ = [
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_ud",
    "get_data_home",
    "ingredient_features",
    "load_ingredients",
    "make_label_bias_data",
    "make_markov_sequences",
    "make_segment_sequences",
    "tokenize_ingredient",
]
