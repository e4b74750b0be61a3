"""Distributions of tokens given labels."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names
from crfkit._params import LazyClasses

if TYPE_CHECKING:
    from crfkit.generative.emissions.categorical import Categorical as Categorical
    from crfkit.generative.emissions.counts import Bernoulli as Bernoulli
    from crfkit.generative.emissions.counts import BernoulliTables as BernoulliTables
    from crfkit.generative.emissions.counts import Multinomial as Multinomial
    from crfkit.generative.emissions.counts import MultinomialTables as MultinomialTables
    from crfkit.generative.emissions.gaussian import Gaussian as Gaussian
    from crfkit.generative.emissions.gaussian import GaussianTables as GaussianTables
    from crfkit.generative.emissions.gaussian import Moments as Moments
    from crfkit.generative.emissions.symbols import SymbolTables as SymbolTables
    from crfkit.generative.emissions.words import Words as Words

# Emissions by name.
EMISSIONS = LazyClasses(
    {
        "bernoulli": "Bernoulli",
        "categorical": "Categorical",
        "gaussian": "Gaussian",
        "multinomial": "Multinomial",
        "words": "Words",
    },
    __name__,
)

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "categorical": "Categorical",
        "counts": "Bernoulli BernoulliTables Multinomial MultinomialTables",
        "gaussian": "Gaussian GaussianTables Moments",
        "symbols": "SymbolTables",
        "words": "Words",
    },
)
__all__ += ["EMISSIONS"]
