"""The estimators that options of ``crfkit train`` ask for."""

from __future__ import annotations

import argparse
from typing import Any

from sklearn.model_selection import KFold

from crfkit._params import check_number, check_positive, check_whole
from crfkit.cli.formats import chosen_scheme
from crfkit.estimators import (
    CRFClassifier,
    CRFClassifierCV,
    EarlyStopping,
    HMMClassifier,
    MaxMarginCRF,
    MEMMClassifier,
    Segments,
    SemiMarkovCRF,
    StructuredPerceptron,
)
from crfkit.labels.schemes import RUNS
from crfkit.losses import LOSSES
from crfkit.solvers import SOLVERS
from crfkit.solvers.margin import MARGIN_SOLVERS
from crfkit.training.data import fitted_attributes
from crfkit.training.early_stopping import find_scorer

CLASSES: dict[str, type[Any]] = {
    "crf": CRFClassifier,
    "segments": SemiMarkovCRF,
    "memm": MEMMClassifier,
    "hmm": HMMClassifier,
    "perceptron": StructuredPerceptron,
    "margin": MaxMarginCRF,
}
SEARCH_FOLDS = 5
_SEARCHED = (
    "solver", "max_iter", "min_freq", "all_possible_states", "all_possible_transitions",
    "boundary_weights", "decoding", "random_state", "n_jobs",
)  # fmt: skip
# Options that only some kinds of models have: which, where they are not told by the parameters.
_PARAMETERS = {
    "loss": "loss", "c1": "c1", "solver": "solver", "min_freq": "min_freq", "init": "init",
    "decoding": "decoding", "order": "order", "dev": "early_stopping",
    "all_states": "all_possible_states", "all_transitions": "all_possible_transitions",
    "boundaries": "boundary_weights",
}  # fmt: skip


def model_type(arguments: argparse.Namespace) -> str:
    """Return the kind of model that options ask for."""
    if arguments.segments and arguments.model_type in (None, "crf"):
        return "segments"
    return arguments.model_type or "crf"


def check_model(arguments: argparse.Namespace) -> None:
    """Raise ValueError or TypeError for options that do not go with the kind of model."""
    kind = model_type(arguments)
    segments = kind == "segments" or arguments.segments
    if arguments.segments and kind in ("memm", "hmm"):
        raise ValueError(f"--segments does not go with --model-type {kind}: it labels tokens.")
    for option, parameter in _PARAMETERS.items():
        given = getattr(arguments, option) not in (None, False, 0)
        if given and not _takes(kind, option, parameter):
            others = ", ".join(name for name in CLASSES if _takes(name, option, parameter))
            asked = "--segments" if kind == "segments" else f"--model-type {kind}"
            name = option.replace("_", "-")
            raise ValueError(f"--{name} does not go with {asked}; it is for {others}.")
    for option in ("max_length", "scheme"):
        if getattr(arguments, option) is not None and not segments:
            raise ValueError(f"--{option.replace('_', '-')} needs --segments.")
    _check_values(arguments, kind)


def _takes(kind: str, option: str, parameter: str) -> bool:
    """Whether a kind of model has what an option sets."""
    own = CLASSES[kind]().get_params(deep=False)
    if option == "init" and kind == "perceptron":
        return True
    return parameter in own and not (option == "loss" and kind == "margin")


def _check_values(arguments: argparse.Namespace, kind: str) -> None:
    """Refuse values that are out of range, or that the kind of model does not know."""
    for name in ("min_freq", "min_count", "max_iter", "seed"):
        check_whole(name, getattr(arguments, name) or 0)
    if arguments.c1 is not None:
        check_number("c1", arguments.c1)
    if arguments.c2 is not None:
        if kind in ("hmm", "perceptron"):
            raise ValueError(f"--c2 does not go with --model-type {kind}, which has no penalty.")
        if arguments.c2 == "auto" and (kind != "crf" or arguments.loss not in (None, "log")):
            raise ValueError("--c2 auto is for --model-type crf with --loss log.")
        if arguments.c2 != "auto":
            (check_positive if kind == "margin" else check_number)("c2", arguments.c2)
    if arguments.solver is not None:
        solvers = MARGIN_SOLVERS if kind == "margin" else SOLVERS
        if arguments.solver not in solvers:
            raise ValueError(
                f"--solver {arguments.solver}: --model-type {kind} takes {', '.join(solvers)}."
            )
    for name in ("max_length", "patience"):
        if getattr(arguments, name) is not None:
            check_whole(f"--{name.replace('_', '-')}", getattr(arguments, name), 1)
    if arguments.cross_validate is not None:
        check_whole("--cross-validate", arguments.cross_validate, 2)
    if arguments.scheme is not None:
        arguments.scheme = chosen_scheme(arguments.scheme, ("auto", RUNS))
    if arguments.scoring is not None:
        find_scorer(arguments.scoring)
    if arguments.patience is not None and arguments.dev is None:
        raise ValueError("--patience needs --dev: the scores are those on that file.")
    if arguments.scoring is not None and arguments.dev is None and arguments.c2 != "auto":
        raise ValueError("--scoring needs --dev or --c2 auto, which look at scores.")


def make_estimator(arguments: argparse.Namespace, init: Any) -> Any:
    """Return what options ask for, not fitted; `init` is where it starts."""
    kind, solver = model_type(arguments), arguments.solver
    chance = solver is not None or kind in ("perceptron", "margin", "hmm")
    c2 = arguments.c2 if isinstance(arguments.c2, float) else None
    given: dict[str, Any] = {
        "c1": arguments.c1, "c2": c2, "init": init, "solver": solver or _solver(arguments, kind),
        "C": 0.5 / c2 if c2 else None, "loss": None if kind == "margin" else arguments.loss,
        "max_iter": arguments.max_iter, "min_freq": arguments.min_freq, "n_jobs": arguments.jobs,
        "decoding": arguments.decoding, "random_state": arguments.seed if chance else None,
        "all_possible_states": arguments.all_states, "boundary_weights": arguments.boundaries,
        "all_possible_transitions": arguments.all_transitions, "order": arguments.order,
        "early_stopping": _early_stopping(arguments),
        "emissions": "words", "max_length": arguments.max_length, "scheme": arguments.scheme,
        "smoothing": "deleted_interpolation" if arguments.order == 2 else None,
        "structure": _structure(arguments),
    }  # fmt: skip
    own = CLASSES[kind]().get_params(deep=False)
    taken = {name: value for name, value in given.items() if name in own and value is not None}
    made = CLASSES[kind](**taken)
    return made if kind != "perceptron" or init in (None, "zeros") else _going_on(made, init)


def _going_on(perceptron: StructuredPerceptron, init: Any) -> StructuredPerceptron:
    """Return a perceptron that goes on from the weights of a model."""
    if isinstance(init, str):
        raise ValueError(f"--init {init} does not go with --model-type perceptron: give a model.")
    if not isinstance(init, StructuredPerceptron):
        raise ValueError("--init: a perceptron goes on from the model of a perceptron alone.")
    perceptron.__dict__.update(fitted_attributes(init))
    perceptron.warm_start = True
    return perceptron


def _solver(arguments: argparse.Namespace, kind: str) -> str | None:
    """Return a quasi-Newton method, or, for losses with corners, what goes with the penalties."""
    if kind == "margin":
        return None
    if not LOSSES[arguments.loss or "log"].is_smooth:
        return "auto"
    return "owlqn" if arguments.c1 else "lbfgs"


def _early_stopping(arguments: argparse.Namespace) -> EarlyStopping | None:
    if arguments.dev is None:
        return None
    given = {"scoring": arguments.scoring, "patience": arguments.patience}
    return EarlyStopping(**{name: value for name, value in given.items() if value is not None})


def _structure(arguments: argparse.Namespace) -> Segments | None:
    if not arguments.segments:
        return None
    return Segments(max_length=arguments.max_length, scheme=arguments.scheme or "auto")


def search_c2(crf: CRFClassifier, arguments: argparse.Namespace, X: Any, labeled: Any) -> str:
    """Set the penalty that is best in cross-validation; return what to say of it."""
    own = {name: value for name, value in crf.get_params(deep=False).items() if name in _SEARCHED}
    scoring = arguments.scoring or "accuracy"
    folds = KFold(SEARCH_FOLDS, shuffle=True, random_state=arguments.seed)
    search = CRFClassifierCV(
        c1s=[crf.c1], cv=folds, scoring=None if scoring == "accuracy" else scoring, refit=False,
        **own,
    )  # fmt: skip
    search.fit(X, labeled.y, sample_weight=labeled.weight)
    crf.set_params(c2=search.c2_)
    tried = f"{len(search.c2s_)} values from {search.c2s_[-1]:g} to {search.c2s_[0]:g}"
    score = f"{scoring} {search.best_score_:.4f} in {SEARCH_FOLDS} folds"
    return f"c2 {search.c2_:.4g} of {tried}: {score}"
