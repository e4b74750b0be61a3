"""Decoders turn potentials into labels; a fitted model answers questions about new data."""

from crfkit.inference.base import Decoder
from crfkit.inference.beam import BeamSearch
from crfkit.inference.posterior import PosteriorDecoder, marginals
from crfkit.inference.viterbi import ViterbiDecoder

DECODERS: dict[str, type[Decoder]] = {
    "viterbi": ViterbiDecoder,
    "posterior": PosteriorDecoder,
}

__all__ = ["DECODERS", "BeamSearch", "Decoder", "PosteriorDecoder", "ViterbiDecoder", "marginals"]
