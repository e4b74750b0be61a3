"""Decoders turn potentials into labels; a fitted model answers questions about new data."""

from crfkit.inference.base import Decoder, PosteriorDecoder, ViterbiDecoder, marginals
from crfkit.inference.beam import BeamSearch

DECODERS: dict[str, type[Decoder]] = {"viterbi": ViterbiDecoder, "posterior": PosteriorDecoder}

__all__ = ["DECODERS", "BeamSearch", "Decoder", "PosteriorDecoder", "ViterbiDecoder", "marginals"]
