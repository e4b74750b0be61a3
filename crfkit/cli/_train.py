"""``crfkit train``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any, NamedTuple

from crfkit._params import meant
from crfkit._progress import working
from crfkit.cli import _models
from crfkit.cli._common import CommandError, check_target, is_file, source, user_errors
from crfkit.cli._cross_validation import cross_validate
from crfkit.cli._estimators import check_model, make_estimator, model_type, search_c2
from crfkit.cli._evaluate import judge
from crfkit.cli.formats import DataFormat, Labeled, chosen_format, read_unknown
from crfkit.progress import ProgressBar
from crfkit.training.start import STARTS


def check(arguments: argparse.Namespace) -> None:
    """Refuse what is wrong usage; a model that cannot be written is told before the training."""
    if arguments.model is not None:
        read = (arguments.data, arguments.template, arguments.test, arguments.dev)
        check_target("--model", arguments.model, read)
    elif arguments.cross_validate is None:
        raise ValueError("--model FILE is missing: where to write the model.")
    elif arguments.test is not None:
        raise ValueError("--test needs --model, the file of the model that is judged.")
    elif arguments.dev is not None:
        raise ValueError(
            "--dev needs --model: the models of --cross-validate are not stopped by that file, but "
            "judged on their own part of the data."
        )
    if arguments.cross_validate is not None and arguments.init not in (None, *STARTS):
        raise ValueError(
            "--cross-validate does not go with a model to start from: it may know what is judged."
        )
    _check_files(arguments)
    data = chosen_format(arguments, arguments.data)
    if not data.has_labels:
        raise ValueError(f"--format {data.name} has no labels to learn from.")
    given = [name for name in ("template", "min_count") if getattr(arguments, name)]
    if not data.has_columns and (given or arguments.model_type == "hmm"):
        raise ValueError(
            "--template, --min-count and --model-type hmm need columns; --format crfsuite has "
            "attributes already."
        )
    if given and arguments.model_type == "hmm":
        option = given[0].replace("_", "-")
        raise ValueError(f"--{option} does not go with --model-type hmm, which takes words alone.")
    check_model(arguments)


def _check_files(arguments: argparse.Namespace) -> None:
    """Raise CommandError for files that are not there, and would be missed late."""
    init = arguments.init
    if init is not None and init not in STARTS and not os.path.exists(init):
        raise CommandError(
            f"--init {init}: no model file, and none of {list(STARTS)}.{meant(init, STARTS)}"
        )
    for option in ("test", "dev"):
        path = getattr(arguments, option)
        if path not in (None, "-") and not os.path.exists(path):
            raise CommandError(f"--{option} {path}: no such file.")


class TrainingFile(NamedTuple):
    """What was read of a file to learn from."""

    data: DataFormat
    labeled: Labeled
    width: int  # columns of a token without the label; 0 of attributes

    @classmethod
    def read(
        cls, arguments: argparse.Namespace, path: str, data: DataFormat, width: int | None = None
    ) -> TrainingFile:
        """Return the sequences of a file, in which what marks unknown labels is read."""
        with working("reading") as task:
            labeled = data.read(source(path), width)
            labeled = labeled._replace(y=read_unknown(arguments, labeled.y))
            task.tell(sequences=len(labeled.y))
        width = len(labeled.X[0][0]) if labeled.X and data.has_columns else 0
        return cls(data, labeled, width)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    started = time.perf_counter()
    seen = not arguments.quiet and sys.stderr is not None and sys.stderr.isatty()
    alone = arguments.cross_validate is None or sys.stdout.isatty() or is_file(sys.stdout)
    bar = ProgressBar(shown=seen and alone)
    with bar:
        with user_errors():
            data = chosen_format(arguments, arguments.data)
            file = TrainingFile.read(arguments, arguments.data, data)
            features = make_features(arguments, file)
            crf = make_estimator(arguments, _start(arguments.init))
            if arguments.cross_validate is not None:
                cross_validate(arguments, crf, features, file.labeled, bar)
        if arguments.model is None:
            return
        _fit(arguments, crf, features, file)
    with user_errors():
        _models.save_model(arguments.model, features, crf, data, file.width)
    if not arguments.quiet:
        _print_summary(arguments, crf, time.perf_counter() - started)
    if bar.interrupted:
        raise KeyboardInterrupt
    if arguments.test is not None:
        judge(arguments.model, arguments.test, arguments)


def make_features(arguments: argparse.Namespace, file: TrainingFile) -> Any:
    """Return what makes attributes of tokens, None where they have them, or need none."""
    if not file.data.has_columns or model_type(arguments) == "hmm":
        return None
    features = _models.make_features(arguments.template, file.data, file.width)
    return features.set_params(min_freq=arguments.min_count)


def _fit(arguments: argparse.Namespace, crf: Any, features: Any, file: TrainingFile) -> None:
    """Make attributes, look for the penalty, and fit."""
    labeled = file.labeled
    with user_errors():
        X, held = _models.plain_tokens(crf, labeled.X), {}
        if features is not None:
            X = features.fit_transform(labeled.X)
        if arguments.c2 == "auto":
            found = search_c2(crf, arguments, X, labeled)
            if not arguments.quiet:
                print(found, flush=True)
        if arguments.dev is not None:
            dev = TrainingFile.read(arguments, arguments.dev, file.data, file.width or None).labeled
            X_val = dev.X if features is None else features.transform(dev.X)
            held = {"X_val": X_val, "y_val": dev.y}
        crf.fit(X, labeled.y, sample_weight=labeled.weight, **held)
    usual = type(crf)().get_params(deep=False)
    if "solver" in usual and arguments.solver is None:
        crf.set_params(solver=usual["solver"])
    for name in {"init", "warm_start"} & set(usual):
        crf.set_params(**{name: usual[name]})


def _start(init: str | None) -> Any:
    """Return what the option `--init` names: itself, or the classifier of a model file."""
    return init if init is None or init in STARTS else _models.open_model(init).crf


def _print_summary(arguments: argparse.Namespace, crf: Any, seconds: float) -> None:
    """Print how large the model is, and how its fit ended."""
    size = f"{arguments.model}: {os.path.getsize(arguments.model) / 1e6:,.1f} MB, {seconds:.1f} s"
    if model_type(arguments) == "hmm":
        print(f"{len(crf.classes_):,} labels, log-likelihood {crf.log_likelihood_:,.4f}\n{size}")
        return
    used = sum(map(len, _models.weight_views(crf).values()))
    # Lengths have weights too.
    of = " of attributes and transitions" if "scheme_" in vars(crf) else ""
    best = vars(crf).get("best_iteration_")
    if best is not None:
        scoring = arguments.scoring or "accuracy"
        print(f"best {scoring} on {arguments.dev}: {crf.best_score_:.4f}, iteration {best}")
    print(
        f"{crf.n_parameters_:,} weights, {used:,}{of} not 0, after {crf.n_iter_} iterations of "
        f"{crf.solver_}: objective {crf.objective_:,.4f}"
    )
    print(size)
