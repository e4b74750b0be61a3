"""Decoders turn potentials into labels; a fitted model answers questions about new data."""

from crfkit.inference.abstain import Abstain
from crfkit.inference.base import DecodedLabels, Decoder, ViterbiDecoder, marginals
from crfkit.inference.beam import BeamSearch
from crfkit.inference.named import DECODERS
from crfkit.inference.risk import MinimumRisk, PosteriorDecoder, code_marginals
from crfkit.inference.spans import ExpectedSpans

__all__ = [
    "DECODERS", "Abstain", "BeamSearch", "DecodedLabels", "Decoder", "ExpectedSpans", "MinimumRisk",
    "PosteriorDecoder", "ViterbiDecoder", "code_marginals", "marginals",
]  # fmt: skip
