"""Decoders by name."""

from crfkit.inference.base import Decoder, ViterbiDecoder
from crfkit.inference.risk import PosteriorDecoder
from crfkit.inference.spans import ExpectedSpans

# Decoders by the names that `decoding=` takes.
DECODERS: dict[str, type[Decoder]] = {
    "viterbi": ViterbiDecoder, "posterior": PosteriorDecoder, "spans": ExpectedSpans,
}  # fmt: skip
