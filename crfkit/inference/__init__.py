"""Decoders turn potentials into labels; a fitted model answers questions about new data."""

from crfkit.inference.base import DecodedLabels, Decoder, ViterbiDecoder, marginals
from crfkit.inference.beam import BeamSearch
from crfkit.inference.risk import MinimumRisk, PosteriorDecoder, code_marginals

DECODERS: dict[str, type[Decoder]] = {"viterbi": ViterbiDecoder, "posterior": PosteriorDecoder}

__all__ = [
    "DECODERS", "BeamSearch", "DecodedLabels", "Decoder", "MinimumRisk", "PosteriorDecoder",
    "ViterbiDecoder", "code_marginals", "marginals",
]  # fmt: skip
