"""Decoders turn scores into labels."""

from crfkit.decoding.base import Decoder
from crfkit.decoding.beam import BeamSearch
from crfkit.decoding.posterior import PosteriorDecoder, marginals
from crfkit.decoding.viterbi import ViterbiDecoder

DECODERS: dict[str, type[Decoder]] = {
    "viterbi": ViterbiDecoder,
    "posterior": PosteriorDecoder,
}

__all__ = ["DECODERS", "BeamSearch", "Decoder", "PosteriorDecoder", "ViterbiDecoder", "marginals"]
