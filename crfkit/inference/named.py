"""Decoders by name."""

from typing import Any

from crfkit._params import check_method, check_option
from crfkit.inference.base import Decoder, ViterbiDecoder
from crfkit.inference.risk import PosteriorDecoder
from crfkit.inference.spans import ExpectedSpans

DECODERS: dict[str, type[Decoder]] = {
    "viterbi": ViterbiDecoder, "posterior": PosteriorDecoder, "spans": ExpectedSpans,
}  # fmt: skip


def find_decoder(decoding: Any) -> Any:
    """Return a decoder by its name, or as it is given; TypeError or ValueError if it is none."""
    if not isinstance(decoding, str):
        check_method("decoding", decoding, "decode")
        return decoding
    if decoding not in DECODERS:
        check_option("decoding", decoding, DECODERS)
    return DECODERS[decoding]()
