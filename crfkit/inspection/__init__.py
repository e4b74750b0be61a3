"""What a model has learned, and why it says what it says: tables, pictures, explanations."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.inspection.confusion import EntityConfusionDisplay as EntityConfusionDisplay
    from crfkit.inspection.explaining import explain as explain
    from crfkit.inspection.explanation import Explanation as Explanation
    from crfkit.inspection.explanation import Reason as Reason
    from crfkit.inspection.explanation import Without as Without
    from crfkit.inspection.learning import LearningCurveDisplay as LearningCurveDisplay
    from crfkit.inspection.reliability import ReliabilityDisplay as ReliabilityDisplay
    from crfkit.inspection.scored import Term as Term
    from crfkit.inspection.shown import ShownSequences as ShownSequences
    from crfkit.inspection.shown import show_spans as show_spans
    from crfkit.inspection.shown import show_tokens as show_tokens
    from crfkit.inspection.strongest import WeightsDisplay as WeightsDisplay
    from crfkit.inspection.training import TrainingDisplay as TrainingDisplay
    from crfkit.inspection.transitions import TransitionsDisplay as TransitionsDisplay
    from crfkit.inspection.weight_tables import TopWeights as TopWeights
    from crfkit.inspection.weight_tables import Weight as Weight
    from crfkit.inspection.weight_tables import Weights as Weights
    from crfkit.inspection.weight_tables import weights as weights

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "confusion": "EntityConfusionDisplay",
        "explaining": "explain",
        "explanation": "Explanation Reason Without",
        "learning": "LearningCurveDisplay",
        "reliability": "ReliabilityDisplay",
        "scored": "Term",
        "shown": "ShownSequences show_spans show_tokens",
        "strongest": "WeightsDisplay",
        "training": "TrainingDisplay",
        "transitions": "TransitionsDisplay",
        "weight_tables": "TopWeights Weight Weights weights",
    },
)
