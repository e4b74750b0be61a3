"""``eli5.explain_weights`` for models of crfkit, as for those of sklearn-crfsuite.

eli5 knows estimators by a registry of classes. It is not imported here: where it has been, classes
are registered at once, and where it has not, when it is imported later. For that, an importer
stands in ``sys.meta_path`` until somebody imports eli5: it leaves the work to the importers behind
it, and registers the classes when they have done it.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from crfkit._types import FloatArray

_CLASSES: list[type] = []


def register_with_eli5(kind: type) -> None:
    """Have ``eli5.explain_weights`` and ``eli5.show_weights`` take models of a class.

    Parameters
    ----------
    kind : type
        Of linear models, or of what returns one when `_fitted` is called.
    """
    _CLASSES.append(kind)
    if "eli5" in sys.modules:
        _register(sys.modules["eli5"])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register(eli5: ModuleType) -> None:
    register = getattr(getattr(eli5, "explain_weights", None), "register", None)
    if register is not None:
        for kind in _CLASSES:
            register(kind, explain_weights)


class _Finder(MetaPathFinder):
    """Waits for the import of eli5."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where eli5 is, with a loader that registers classes; None for other modules."""
        if fullname != "eli5":
            return None
        sys.meta_path.remove(self)
        found = find_spec(fullname)
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader)
        return found


class _Loader(Loader):
    """Loads eli5 as another loader does, and registers classes."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the other loader makes."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and register classes."""
        module.__loader__ = self.loader  # which templates of eli5 are asked for
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _register(module)


def explain_weights(
    crf: Any,
    top: Any = 20,
    target_names: Any = None,
    targets: Sequence[Hashable] | None = None,
    feature_re: Any = None,
    feature_filter: Any = None,
) -> Any:
    """Return the weights of a linear chain as an ``eli5.base.Explanation``.

    Parameters
    ----------
    crf : estimator
        A fitted model.
    top, target_names, targets, feature_re, feature_filter
        See ``eli5.explain_weights``.
    """
    from eli5._feature_names import FeatureNames
    from eli5._feature_weights import get_top_features
    from eli5.base import Explanation, TargetExplanation, TransitionFeatureWeights
    from eli5.utils import get_target_display_names

    model = getattr(crf, "_fitted", lambda: crf)()
    classes = model.classes_.tolist()
    used = np.flatnonzero(np.diff(model.coef_.indptr))
    names, coef = model.feature_names_in_[used].astype(str), sp.csc_array(model.coef_[used])
    if feature_filter is not None or feature_re is not None:
        chosen, rows = FeatureNames(names).handle_filter(feature_filter, feature_re)
        names, coef = np.array(chosen.feature_names), sp.csc_array(coef[np.asarray(rows)])
    targets = sorted(classes, key=_by_type) if targets is None else targets
    shown = get_target_display_names(classes, target_names, targets)
    places = [place for place, _ in shown]
    return Explanation(
        targets=[
            TargetExplanation(
                target=name,
                feature_weights=get_top_features(names, coef[:, [k]].toarray()[:, 0], top),
            )
            for k, name in shown
        ],
        transition_features=TransitionFeatureWeights(
            class_names=[name for _, name in shown], coef=_finite(model.transitions_, places)
        ),
        estimator=repr(crf),
        method="CRF",
    )


def _finite(transitions: FloatArray, places: list[int]) -> FloatArray:
    """Return the weights of transitions between some labels; 0 for what is forbidden."""
    chosen: FloatArray = transitions[np.ix_(places, places)]
    return np.where(np.isfinite(chosen), chosen, 0.0)


def _by_type(label: Hashable) -> tuple[str, str]:
    """Return a key that has ``B-PER`` and ``I-PER`` stand together, and "O" first."""
    text = str(label)
    return (text[2:], text) if text[1:2] == "-" else ("", text)
