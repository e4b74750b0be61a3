"""Parameters as other packages call them: what an estimator says of a name that it has not."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from functools import cache
from typing import Any, Self

_MAX_ITER = ("max_iter", "the number of iterations is max_iter")
_L2 = ("c2", "the weight of the L2 penalty is c2")
_OPTION = ("solver", "it may be an option of the solver, such as solver=LBFGS(tol=1e-6) "
           "(crfkit.solvers)")  # fmt: skip
_SOLVER = (
    "solver",
    'the algorithm is chosen by solver, such as solver="lbfgs"; perceptrons and margins are '
    "estimators of their own (StructuredPerceptron, MaxMarginCRF), and "
    "crfkit.compat.sklearn_crfsuite.CRF has the names of CRFsuite",
)
_NO_SOLVER = (
    "the algorithm is that of the class; others are CRFClassifier(solver=...), "
    "StructuredPerceptron and MaxMarginCRF"
)
_WEIGHTS = (
    "", "give weights of tokens to the fit of an estimator of crfkit: "
    "sample_weight=crfkit.token_weights(y, class_weight)",
)  # fmt: skip
# The parameter in its place, without which the advice means nothing, and the advice.
_ADVICE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("algorithm", "method", "optimizer"), _SOLVER),
    **dict.fromkeys(("max_iterations", "n_iter", "iterations", "maxiter", "n_iterations", "epochs",
                     "n_epochs", "num_epochs", "max_epochs", "num_iter"), _MAX_ITER),
    **dict.fromkeys(("class_weight", "class_weights", "label_weights"), _WEIGHTS),
    "sample_weight": ("", "it is an argument of fit"),
    "C": ("c2", "the weight of the L2 penalty is c2; the C of scikit-learn is c2 = 1 / (2 * C)"),
    **dict.fromkeys(("alpha", "l2", "reg_lambda", "lambda_", "regularization", "reg",
                     "weight_decay"), _L2),
    "l1": ("c1", "the weight of the L1 penalty is c1"),
    **dict.fromkeys(("penalty", "l1_ratio"), ("c1", "the penalty is c1 * |w| + c2 * w**2")),
    **dict.fromkeys(("tol", "epsilon", "delta", "period", "num_memories", "linesearch",
                     "max_linesearch", "eta", "eta0", "learning_rate", "lr", "batch_size",
                     "calibration_eta", "shuffle", "averaging", "momentum"), _OPTION),
    **dict.fromkeys(("vectorizer", "transformer", "templates", "template", "feature_extractor"),
                    ("features", "what makes attributes of tokens is features, such as "
                     "features=TemplateFeatures(...)")),
    **dict.fromkeys(("minfreq", "feature_minfreq", "min_count", "min_df"),
                    ("min_freq", "it is min_freq")),
    **dict.fromkeys(("seed", "random_seed"), ("random_state", "it is random_state")),
    **dict.fromkeys(("n_threads", "num_threads", "threads", "nthread", "num_workers"),
                    ("n_jobs", "the number of threads is n_jobs")),
    "cost": ("", "a cost is for losses of whole sequences: CRFClassifier(loss=\"softmax_margin\", "
             "cost=...) or MaxMarginCRF(cost=...)"),
    "scoring": ("early_stopping", "it is an option of early stopping, "
                "early_stopping=EarlyStopping(scoring=...), and of searches"),
}  # fmt: skip


@cache
def _parameters(cls: Any) -> tuple[list[str], bool] | None:
    """Return the names of the parameters of a constructor, and whether all need their name.

    None if it takes any.
    """
    _, *parameters = inspect.signature(cls.__init__).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    return [p.name for p in parameters], all(p.kind == p.KEYWORD_ONLY for p in parameters)


def check_names(cls: type, args: tuple[Any, ...], given: dict[str, Any]) -> None:
    """Raise TypeError for arguments that a constructor does not have, saying what to write.

    Of constructors that list their arguments; Python itself says it of others.
    """
    found = _parameters(cls) if args or given else None
    if found is None:
        return
    names, by_name = found
    if args and by_name:
        raise TypeError(
            f"{cls.__name__} takes its parameters by name, such as {cls.__name__}({names[0]}=...), "
            f"but {args[0]!r:.60} has none."
        )
    for name in given:
        if name not in names:
            raise TypeError(f"{cls.__name__} has no parameter {name!r}: {_advice(name, names)}.")


class NamedParameters:
    """Of a class with a constructor of its own, whose signature Python tells to those who ask."""

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Return a new object; TypeError for a parameter that it does not have."""
        check_names(cls, args, parameters)
        return super().__new__(cls)


def _advice(unknown: str, names: list[str]) -> str:
    """Return what to write in place of a name."""
    target, advice = _ADVICE.get(unknown, ("?", ""))
    if target in ("", *names):
        return advice
    if target == "solver" and advice == _SOLVER[1]:
        return _NO_SOLVER
    close = get_close_matches(unknown, names, n=1)
    return f"perhaps {close[0]!r} is meant" if close else f"there are {', '.join(sorted(names))}"
