"""Data that ship with the package (public names, nothing else)."""

from crfkit.datasets.ingredient_features import ingredient_features
from crfkit.datasets.ingredients import load_ingredients
from crfkit.datasets.tokenization import tokenize_ingredient

__all__ = ["ingredient_features", "load_ingredients", "tokenize_ingredient"]
