"""``crfkit train``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from functools import partial
from typing import Any, ClassVar

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit.cli._common import (
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
from crfkit.labels.schemes import RUNS

BAR = 24  # characters

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
  crfkit train addresses.txt --segments --scheme runs --max-length 6 --model addresses.crfkit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", help="labeled sequences (.gz, .xz, .bz2 are unpacked; -: stdin)")
    parser.add_argument("--model", required=True, help="the file to write")
    what = "a file of feature templates, or a preset: words (the default), names, tags, fields"
    parser.add_argument("--template", help=what)
    parser.add_argument("--test", metavar="FILE", help="judge the model on this file afterwards")
    number = partial(parser.add_argument, type=float)
    number("--c1", default=0.0, help="L1 penalty (default: 0)")
    number("--c2", default=0.1, help="L2 penalty (default: 0.1)")
    whole = partial(parser.add_argument, type=int)
    whole("--max-iter", help="iterations at most (default: 1000)")
    whole("--min-freq", default=0, help="leave out pairs seen fewer times (default: 0)")
    whole("--min-count", default=0, help="leave out attributes seen fewer times (default: 0)")
    what = "where to start: zeros (the default), counts, or a model file, by names of attributes"
    parser.add_argument("--init", default="zeros", metavar="START", help=what)
    flag = partial(parser.add_argument, action="store_true")
    flag("--all-states", help="weights for attribute x label pairs not seen")
    flag("--all-transitions", help="weights for label pairs not seen")
    flag("--boundaries", help="weights for first and last labels")
    flag("--quiet", help="print nothing but warnings and the report of --test")
    segments = parser.add_argument_group("segments").add_argument
    what = "learn a semi-Markov CRF: of the segments that tags, or runs of equal labels, are"
    segments("--segments", action="store_true", help=what)
    segments("--max-length", type=int, help="of segments (default: the longest of each label)")
    segments(
        "--scheme",
        help="of the tags, such as IOB2 or IOBES; runs: labels whose runs are segments; auto: "
        "found by the labels (default)",
    )
    add_jobs(parser)
    add_format(parser)
    add_unknown(parser)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage; a model that cannot be written is told before the training."""
    check_target("--model", arguments.model)
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
    from crfkit.estimators import CRFClassifier, SemiMarkovCRF
    from crfkit.solvers import LBFGS, OWLQN

    solver = ShownSolver(OWLQN() if arguments.c1 else LBFGS(), arguments.max_iter, arguments.quiet)
    if arguments.max_iter is not None:
        solver.solver.max_iter = arguments.max_iter
    common: dict[str, Any] = {
        "init": _start(arguments.init),
        "c1": arguments.c1,
        "c2": arguments.c2,
        "solver": solver,
        "min_freq": arguments.min_freq,
        "n_jobs": arguments.jobs,
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
    crf.set_params(solver="auto", max_iter=arguments.max_iter, init="zeros")
    return crf, solver.interrupted


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


class ShownSolver:
    """A solver that shows its iterations in a line of a terminal, as a bar if there is a limit."""

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad",)
    handles_l1: ClassVar[bool] = True

    def __init__(self, solver: Any, max_iter: int | None, quiet: bool) -> None:
        self.solver = solver
        self.max_iter = max_iter
        self.shown = sys.stderr.isatty() and not quiet
        self.interrupted = False

    def solve(self, objective: Any, start: FloatArray, callback: Any = None) -> SolverResult:
        """Minimize an objective, as the solver does."""

        def report(record: IterationRecord, parameters: FloatArray) -> bool:
            if self.shown:
                self._show(record)
            return bool(callback is not None and callback(record, parameters))

        result: SolverResult = self.solver.solve(objective, start, report)
        if self.shown:
            print(file=sys.stderr)
        self.interrupted = result.interrupted
        return result

    def _show(self, record: IterationRecord) -> None:
        done = f"iteration {record.iteration}"
        if self.max_iter:
            filled = BAR * record.iteration // self.max_iter
            done = f"[{'#' * filled}{'-' * (BAR - filled)}] {record.iteration}/{self.max_iter}"
        line = f"{done}  objective {record.value:,.2f}  {record.seconds:.1f} s"
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:<{width}}", end="", file=sys.stderr, flush=True)
