"""Arguments of ``crfkit tag``."""

from __future__ import annotations

import argparse

from crfkit.cli.options.common import add_allow, add_format, add_jobs
from crfkit.cli.options.names import DECODERS, OUTPUTS

HELP = "label sequences with a model"
USAGE = "crfkit tag MODEL [DATA] [--output FILE] [options]"
WITHHELD = "?"  # the label of --abstain
DESCRIPTION = """\
Label sequences. Columns are printed with the label as a further column, CoNLL-U with the label in
its field; of --format crfsuite only the labels are printed. --spans prints spans of tokens instead,
--output-format jsonl sequences with tokens, labels, spans and their probabilities.
"""
EPILOG = """\
examples:
  crfkit tag chunks.crfkit < raw.txt > tagged.txt
  crfkit tag chunks.crfkit test.txt.gz --marginals
  crfkit tag chunks.crfkit test.txt --spans --confidence
  crfkit tag chunks.crfkit test.txt --nbest 10
  echo "Two cups of flour" | crfkit tag chunks.crfkit --format text
  crfkit tag tagger.crfkit en-test.conllu --output tagged.conllu
  crfkit tag model.crfsuite attributes.txt --format crfsuite

A file may still have the column of the labels: it is not looked at, and printed before the new one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", help="a model file of crfkit or CRFsuite")
    parser.add_argument("data", nargs="?", default="-", help="sequences (default: stdin)")
    what = "the file to write (default: stdout); or jsonl, conll or csv, as --output-format"
    parser.add_argument("--output", default="-", metavar="FILE", help=what)
    _add_printed(parser)
    _add_choosing(parser)
    add_allow(parser)
    add_jobs(parser)
    add_format(parser)


def _add_printed(parser: argparse.ArgumentParser) -> None:
    """Add what tells what is printed."""
    add = parser.add_argument_group("what is printed").add_argument
    what = "conll: a token and its label a line; csv: the same, with names and quotes; jsonl: an "
    what += "object a line, with spans and confidence (default: by the ending of --output, or as "
    what += "the data are; of --format text jsonl, of tokens conll)"
    add("--output-format", choices=OUTPUTS, metavar="NAME", help=what)
    what = "a further column: the probability of the label (CoNLL-U: Probability= in MISC)"
    add("--marginals", action="store_true", help=what)
    what = "further columns: that, and LABEL:probability of each label (not for CoNLL-U)"
    add("--all-marginals", action="store_true", help=what)
    what = "before each sequence the probability of its labels; with --spans, of each span, too"
    add("--confidence", action="store_true", help=what)
    what = "spans in place of tokens: first token from 0, the one after the last, label, text"
    add("--spans", action="store_true", help=what)
    what = "the N best labelings of each sequence, their rank from 0 and probability before them"
    add("--nbest", "--n-best", type=int, metavar="N", help=what)


def _add_choosing(parser: argparse.ArgumentParser) -> None:
    """Add what tells how labels are chosen."""
    add = parser.add_argument_group("how labels are chosen").add_argument
    what = "the most probable sequence of labels (viterbi), the most right labels of tokens "
    what += "(posterior), or the spans with the fewest errors (spans) (default: as the model was "
    what += "trained)"
    add("--decoding", choices=DECODERS, help=what)
    what = "rules that labels keep to, as JSON of crfkit.Constraints, or the name of a tag scheme"
    add("--constraints", metavar="FILE", help=what)
    what = "another label where the probability of the label of a token, or with --spans of a "
    what += f"span, which is then left out, is below P (default of LABEL: {WITHHELD})"
    add("--abstain", metavar="P[:LABEL]", help=what)
