"""Arguments of ``crfkit train``."""

from __future__ import annotations

import argparse
from functools import partial

from crfkit.cli.options.common import DATA, add_format, add_jobs, add_unknown
from crfkit.cli.options.names import DECODERS, LOSSES, MARGIN_SOLVERS, MODEL_TYPES, SOLVERS

HELP = "learn a model from a file of labeled sequences"
USAGE = "crfkit train DATA --model FILE [options]"
DESCRIPTION = """\
Learn a model from labeled sequences and save it with its features in one file.

Without --template, words get a window of -2..2, affixes, shapes and neighbors, further columns a
window of -2..2; of CoNLL-U only the forms are looked at. `--template names` (tags, fields) has more
for names of persons and places (parts of speech, fields of references). A template file may be in
the notation of CRF++ (U00:%x[-1,0], B), of Wapiti (u:00:%x[-1,0], *:..., %t, %m) or crfkit's own
(one expression a line: suffix(col(0), 3)).
"""
EPILOG = """\
examples:
  crfkit train train.txt.gz --template chunks.tpl --model chunks.crfkit --jobs 2
  crfkit train en-train.conllu --label upos --model tagger.crfkit
  crfkit train train.txt --dev dev.txt --scoring entity_f1 --model ner.crfkit
  crfkit train train.txt --cross-validate 5
  crfkit train train.txt --c2 auto --model best.crfkit
  crfkit train data.crfsuite.txt --format crfsuite --model m.crfkit --c1 0.1 --c2 0.01
  crfkit train noisy.txt --loss risk --decoding posterior --model robust.crfkit
  crfkit train addresses.txt --segments --scheme runs --max-length 6 --model addresses.crfkit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", help=DATA)
    what = "the file to write (needed, unless --cross-validate is given)"
    parser.add_argument("--model", metavar="FILE", help=what)
    what = "a file of feature templates, or a preset: words (the default), names, tags, fields"
    parser.add_argument("--template", metavar="FILE", help=what)
    flag = partial(parser.add_argument, action="store_true")
    flag("--quiet", help="print nothing but warnings and reports")
    _add_judging(parser)
    _add_kind(parser)
    _add_objective(parser)
    _add_segments(parser)
    add_jobs(parser)
    add_format(parser)
    add_unknown(parser)


def _add_judging(parser: argparse.ArgumentParser) -> None:
    """Add what the model is judged on."""
    add = parser.add_argument_group("judging").add_argument
    add("--test", metavar="FILE", help="judge the model on this file afterwards")
    what = "end the training when scores on this file no longer rise, and keep the best weights"
    add("--dev", "--validation", metavar="FILE", help=what)
    whole = partial(add, type=int, metavar="N")
    whole("--patience", help="with --dev: so many scores in a row that are no better (default: 5)")
    what = "what --dev and --c2 auto look at: accuracy (the default), entity_f1, flat_f1_macro ..."
    add("--scoring", metavar="NAME", help=what)
    what = "first train N times without a part of the data, and judge the models on those parts"
    whole("--cross-validate", help=what)


def _add_kind(parser: argparse.ArgumentParser) -> None:
    """Add what kind of model it is, and over which weights."""
    add = parser.add_argument_group("model").add_argument
    what = "crf (the default), segments (a semi-Markov CRF), memm, hmm (of the first column "
    what += "alone), perceptron (averaged), margin (a structural SVM)"
    add("--model-type", choices=MODEL_TYPES, help=what, metavar="NAME")
    add("--order", type=int, choices=(0, 1, 2), help="hmm: labels a label depends on (default: 1)")
    flag, whole = partial(add, action="store_true"), partial(add, type=int, metavar="N")
    flag("--all-states", help="learn weights for attribute x label pairs not seen, too")
    flag("--all-transitions", help="learn weights for label pairs not seen, too")
    flag("--boundaries", help="learn weights for first and last labels")
    what = "leave out (attribute, label) and (label, label) pairs seen fewer times (default: 0)"
    whole("--min-freq", default=0, help=what)
    whole("--min-count", default=0, help="leave out attributes seen fewer times (default: 0)")
    what = "what to predict: the most probable sequence of labels (viterbi, the default), the most "
    what += "right labels of tokens (posterior), or the spans with the fewest errors (spans)"
    add("--decoding", choices=DECODERS, help=what, metavar="NAME")


def _add_objective(parser: argparse.ArgumentParser) -> None:
    """Add what is minimized, how, and from where."""
    add = parser.add_argument_group("training").add_argument
    what = "what to minimize besides the penalties: %(choices)s (default: log)"
    add("--loss", choices=LOSSES, metavar="NAME", help=what)
    what = "L1 penalty, which makes weights exactly 0 (default: 0)"
    add("--c1", type=float, metavar="X", help=what)
    what = "L2 penalty, which keeps weights small (default: 0.1; margin: 0.5); auto: the one of 10 "
    what += "with the best score in 5 folds of the data"
    add("--c2", type=_penalty, metavar="X", help=what)
    what = f"{', '.join(SOLVERS)}; of margin: {', '.join(MARGIN_SOLVERS)}"
    names = (*SOLVERS, *MARGIN_SOLVERS)
    add("--solver", choices=names, metavar="NAME", help=what + " (default: lbfgs, owlqn, bcfw)")
    whole = partial(add, type=int, metavar="N")
    whole("--max-iter", help="iterations, or passes, at most (default: left to the solver)")
    whole("--seed", default=0, help="of what is chosen at random (default: 0)")
    what = "where to start: zeros (the default), counts, or a model file, whose weights are taken "
    what += "by the names of attributes and labels"
    add("--init", "--warm-start", metavar="START", help=what)


def _penalty(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None


def _add_segments(parser: argparse.ArgumentParser) -> None:
    """Add what is said of segments."""
    segments = parser.add_argument_group("segments").add_argument
    what = "learn whole segments, those that tags mark, or runs of equal labels: --model-type "
    what += "segments, or that of a perceptron or margin model"
    segments("--segments", action="store_true", help=what)
    what = "tokens of a segment at most (default: as in the longest one of each label)"
    segments("--max-length", type=int, metavar="N", help=what)
    what = "how tags mark segments, such as IOB2 or IOBES; runs: each run of one label is a "
    what += "segment; auto (the default): found by the labels"
    segments("--scheme", metavar="NAME", help=what)
