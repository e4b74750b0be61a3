"""Names that options take; tests hold that they are those of the registries.

They are written out here, as the registries load what `crfkit --help` need not wait for.
"""

from __future__ import annotations

LOSSES = (
    "log", "softmax_margin", "hinge", "annealed_hinge", "labelwise", "pointwise",
    "pseudolikelihood", "risk",
)  # fmt: skip
DECODERS = ("viterbi", "posterior", "spans")
SOLVERS = (
    "auto", "lbfgs", "owlqn", "oeg", "sag", "sgd", "cg", "newton", "dense_newton", "rprop", "gis",
    "iis",
)  # fmt: skip
MARGIN_SOLVERS = ("bcfw", "eg", "smo", "subgradient", "cutting_plane")
UPDATES = ("perceptron", "passive_aggressive", "mira", "arow")
MODEL_TYPES = ("crf", "segments", "memm", "hmm", "perceptron", "margin")
TOKENIZERS = ("words", "whitespace", "characters")
FORMATS = ("columns", "conllu", "csv", "jsonl", "tokens", "text", "crfsuite")
OUTPUTS = ("conll", "csv", "jsonl")
REPORTS = ("conlleval", "entities", "segments", "tokens")
