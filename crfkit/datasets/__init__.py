"""Data that ship with the package, are drawn, or are fetched."""

from crfkit._lazy import public_names
from crfkit.datasets.bayes import bayes_posteriors as bayes_posteriors
from crfkit.datasets.corpora import fetch_conll2000 as fetch_conll2000
from crfkit.datasets.corpora import fetch_conll2002 as fetch_conll2002
from crfkit.datasets.corpora import fetch_ud as fetch_ud
from crfkit.datasets.gaussian import make_gaussian_sequences as make_gaussian_sequences
from crfkit.datasets.genes import make_gene_sequences as make_gene_sequences
from crfkit.datasets.ingredients import ingredient_features as ingredient_features
from crfkit.datasets.ingredients import load_ingredients as load_ingredients
from crfkit.datasets.ingredients import tokenize_ingredient as tokenize_ingredient
from crfkit.datasets.planted import make_planted_partition as make_planted_partition
from crfkit.datasets.remote import get_data_home as get_data_home
from crfkit.datasets.synthetic import make_label_bias_data as make_label_bias_data
from crfkit.datasets.synthetic import make_markov_sequences as make_markov_sequences
from crfkit.datasets.synthetic import make_segment_sequences as make_segment_sequences

__all__ = public_names(__name__)
