"""Models of tokens and labels together: hidden Markov models, of which naive Bayes is one."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.generative.base import Emission as Emission
    from crfkit.generative.base import HiddenCounts as HiddenCounts
    from crfkit.generative.base import HiddenTables as HiddenTables
    from crfkit.generative.base import Smoothing as Smoothing
    from crfkit.generative.base import StepCounts as StepCounts
    from crfkit.generative.base import StepTables as StepTables
    from crfkit.generative.emissions import EMISSIONS as EMISSIONS
    from crfkit.generative.model import HiddenMarkovModel as HiddenMarkovModel
    from crfkit.generative.smoothing import SMOOTHINGS as SMOOTHINGS
    from crfkit.generative.smoothing import Additive as Additive
    from crfkit.generative.smoothing import DeletedInterpolation as DeletedInterpolation
    from crfkit.generative.smoothing import WittenBell as WittenBell

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": "Emission HiddenCounts HiddenTables Smoothing StepCounts StepTables",
        "emissions": "EMISSIONS",
        "model": "HiddenMarkovModel",
        "smoothing": "SMOOTHINGS Additive DeletedInterpolation WittenBell",
    },
)
