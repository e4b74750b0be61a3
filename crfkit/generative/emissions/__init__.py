"""Distributions of tokens given labels."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names
from crfkit._params import LazyClasses

if TYPE_CHECKING:
    from crfkit.generative.emissions.categorical import Categorical as Categorical
    from crfkit.generative.emissions.gaussian import Gaussian as Gaussian
    from crfkit.generative.emissions.gaussian import GaussianTables as GaussianTables
    from crfkit.generative.emissions.gaussian import Moments as Moments
    from crfkit.generative.emissions.symbols import SymbolTables as SymbolTables

#: Emissions by name.
EMISSIONS = LazyClasses({"categorical": "Categorical", "gaussian": "Gaussian"}, __name__)

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "categorical": "Categorical",
        "gaussian": "Gaussian GaussianTables Moments",
        "symbols": "SymbolTables",
    },
)
