"""``crfkit train``."""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from typing import Any

from crfkit._params import check_number, check_whole
from crfkit.cli._common import (
    CommandError,
    add_format,
    add_jobs,
    add_unknown,
    check_target,
    chosen_format,
    chosen_scheme,
    read_unknown,
    source,
    user_errors,
)
from crfkit.inference import DECODERS
from crfkit.labels.schemes import RUNS
from crfkit.losses import LOSSES

HELP = "learn a model from a file of labeled sequences"
DESCRIPTION = """\
Learn a CRF from labeled sequences and save it with its features in one file.

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
  crfkit train data.crfsuite.txt --format crfsuite --model m.crfkit --c1 0.1 --c2 0.01
  crfkit train noisy.txt --loss risk --decoding posterior --model robust.crfkit
  crfkit train addresses.txt --segments --scheme runs --max-length 6 --model addresses.crfkit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", help="labeled sequences (.gz, .xz, .bz2 are unpacked; -: stdin)")
    parser.add_argument("--model", required=True, metavar="FILE", help="the file to write")
    what = "a file of feature templates, or a preset: words (the default), names, tags, fields"
    parser.add_argument("--template", metavar="FILE", help=what)
    parser.add_argument("--test", metavar="FILE", help="judge the model on this file afterwards")
    _add_objective(parser)
    flag = partial(parser.add_argument, action="store_true")
    flag("--all-states", help="learn weights for attribute x label pairs not seen, too")
    flag("--all-transitions", help="learn weights for label pairs not seen, too")
    flag("--boundaries", help="learn weights for first and last labels")
    what = "what to predict: the most probable sequence of labels (viterbi, the default), the most "
    what += "right labels of tokens (posterior), or the spans with the fewest errors (spans)"
    parser.add_argument("--decoding", choices=DECODERS, help=what)
    flag("--quiet", help="print nothing but warnings and the report of --test")
    segments = parser.add_argument_group("segments").add_argument
    what = "learn whole segments (a semi-Markov CRF): those that tags mark, or runs of equal labels"
    segments("--segments", action="store_true", help=what)
    what = "tokens of a segment at most (default: as in the longest one of each label)"
    segments("--max-length", type=int, metavar="N", help=what)
    what = "how tags mark segments, such as IOB2 or IOBES; runs: each run of one label is a "
    what += "segment; auto (the default): found by the labels"
    segments("--scheme", metavar="NAME", help=what)
    add_jobs(parser)
    add_format(parser)
    add_unknown(parser)


def _add_objective(parser: argparse.ArgumentParser) -> None:
    """Add what is minimized, over which weights, and from where."""
    what = "what to minimize besides the penalties: %(choices)s (default: log)"
    parser.add_argument("--loss", choices=LOSSES, default="log", metavar="NAME", help=what)
    number = partial(parser.add_argument, type=float)
    number("--c1", default=0.0, help="L1 penalty, which makes weights exactly 0 (default: 0)")
    number("--c2", default=0.1, help="L2 penalty, which keeps weights small (default: 0.1)")
    whole = partial(parser.add_argument, type=int, metavar="N")
    whole("--max-iter", help="iterations at most (default: 1000)")
    what = "leave out (attribute, label) and (label, label) pairs seen fewer times (default: 0)"
    whole("--min-freq", default=0, help=what)
    whole("--min-count", default=0, help="leave out attributes seen fewer times (default: 0)")
    what = "where to start: zeros (the default), counts, or a model file, whose weights are taken "
    what += "by the names of attributes and labels"
    parser.add_argument("--init", default="zeros", metavar="START", help=what)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage; a model that cannot be written is told before the training."""
    check_target("--model", arguments.model)
    _check_files(arguments)
    model, given = arguments.model, (arguments.data, arguments.template, arguments.test)
    for path in filter(os.path.isfile, filter(None, given)):
        if os.path.exists(model) and os.path.samefile(path, model):
            raise ValueError(f"--model {arguments.model} would replace a file that is read.")
    data = chosen_format(arguments, arguments.data)
    if not data.has_columns and (arguments.template is not None or arguments.min_count):
        raise ValueError(
            "--template and --min-count need columns; --format crfsuite has attributes already."
        )
    for name in ("c1", "c2"):
        check_number(name, getattr(arguments, name))
    for name in ("min_freq", "min_count", "max_iter"):
        check_whole(name, getattr(arguments, name) or 0)
    _check_segments(arguments)


def _check_files(arguments: argparse.Namespace) -> None:
    """Raise CommandError for files that are not there, and would be missed late."""
    from crfkit.training.start import STARTS

    if arguments.init not in STARTS and not os.path.exists(arguments.init):
        raise CommandError(f"--init {arguments.init}: no model file, and none of {list(STARTS)}.")
    if arguments.test not in (None, "-") and not os.path.exists(arguments.test):
        raise CommandError(f"--test {arguments.test}: no such file.")


def _check_segments(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with the kind of model."""
    of_others = ("all_states", "all_transitions", "boundaries")
    for name in of_others if arguments.segments else ("max_length", "scheme"):
        if getattr(arguments, name) not in (None, False):
            relation = "does not go with" if arguments.segments else "needs"
            raise ValueError(f"--{name.replace('_', '-')} {relation} --segments.")
    if arguments.max_length is not None:
        check_whole("--max-length", arguments.max_length, 1)
    if arguments.scheme is not None:
        arguments.scheme = chosen_scheme(arguments.scheme, ("auto", RUNS))


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from crfkit.cli import _models

    data = chosen_format(arguments, arguments.data)
    started = time.perf_counter()
    with user_errors():
        labeled = data.read(source(arguments.data))
        labeled = labeled._replace(y=read_unknown(arguments, labeled.y))
        width = len(labeled.X[0][0]) if labeled.X and data.has_columns else 0
        features = None
        if data.has_columns:
            features = _models.make_features(arguments.template, data, width)
            features.set_params(min_freq=arguments.min_count)
        X = labeled.X if features is None else features.fit_transform(labeled.X)
    crf, interrupted = _fit(arguments, X, labeled)
    with user_errors():
        _models.save_model(arguments.model, features, crf, data, width)
    if not arguments.quiet:
        _print_summary(arguments, crf, time.perf_counter() - started)
    if interrupted:
        raise KeyboardInterrupt
    if arguments.test is not None:
        from crfkit.cli._evaluate import judge

        judge(arguments.model, arguments.test, arguments)


def _fit(arguments: argparse.Namespace, X: Any, labeled: Any) -> tuple[Any, bool]:
    """Return a fitted classifier, and whether the user stopped the fit."""
    from crfkit.cli._progress import Progress, ShownSolver
    from crfkit.estimators import CRFClassifier, SemiMarkovCRF

    progress = Progress(arguments.max_iter, shown=not arguments.quiet)
    common: dict[str, Any] = {
        "init": _start(arguments.init),
        "loss": arguments.loss,
        "c1": arguments.c1,
        "c2": arguments.c2,
        "solver": ShownSolver(_solver(arguments), progress),
        "max_iter": arguments.max_iter,
        "min_freq": arguments.min_freq,
        "n_jobs": arguments.jobs,
        "decoding": arguments.decoding or "viterbi",
    }
    crf: Any
    if arguments.segments:
        scheme = arguments.scheme or "auto"
        crf = SemiMarkovCRF(max_length=arguments.max_length, scheme=scheme, **common)
    else:
        crf = CRFClassifier(
            all_possible_states=arguments.all_states,
            all_possible_transitions=arguments.all_transitions,
            boundary_weights=arguments.boundaries,
            **common,
        )
    with user_errors():
        try:
            crf.fit(X, labeled.y, sample_weight=labeled.weight)
        except ValueError as error:
            if f"scheme={RUNS!r}" not in str(error):
                raise
            option = f"On the command line: --scheme {RUNS}, or that of the tags."
            raise ValueError(f"{error} {option}") from error
    crf.set_params(solver="auto", init="zeros")
    return crf, progress.interrupted


def _solver(arguments: argparse.Namespace) -> Any:
    """Return a quasi-Newton method, or, for losses with corners, what goes with the penalties."""
    from crfkit.solvers import LBFGS, OWLQN, AutoSolver

    if not LOSSES[arguments.loss].is_smooth:
        return AutoSolver()
    return OWLQN() if arguments.c1 else LBFGS()


def _start(init: str) -> Any:
    """Return what the option `--init` names: itself, or the classifier of a model file."""
    from crfkit.cli import _models
    from crfkit.training.start import STARTS

    return init if init in STARTS else _models.open_model(init).crf


def _print_summary(arguments: argparse.Namespace, crf: Any, seconds: float) -> None:
    from crfkit.cli import _models

    size = os.path.getsize(arguments.model)
    used = sum(map(len, _models.weight_views(crf).values()))
    of = " of attributes and transitions" if arguments.segments else ""  # lengths have weights too
    print(
        f"{crf.n_parameters_:,} weights, {used:,}{of} not 0, after {crf.n_iter_} iterations: "
        f"objective {crf.objective_:,.4f}"
    )
    print(f"{arguments.model}: {size / 1e6:,.1f} MB, {seconds:.1f} s")
