"""What is known of labelings beforehand: rules that all answers of a model keep to."""

from crfkit.constraints.allowed_at import AllowedAt
from crfkit.constraints.allowed_with import AllowedWith
from crfkit.constraints.base import Automaton, GlobalRule, Limits, LocalRule, Rule, Target
from crfkit.constraints.container import Constraints
from crfkit.constraints.ends import Ends
from crfkit.constraints.global_rules import Before, Contiguous, Count, NotTogether
from crfkit.constraints.known import Known
from crfkit.constraints.steps import Steps
from crfkit.constraints.tag_scheme import TagScheme

# The rules that JSON may name.
RULES: dict[str, type[Rule]] = {
    rule.__name__: rule
    for rule in (
        AllowedAt, AllowedWith, Before, Contiguous, Count, Ends, Known, NotTogether, Steps,
        TagScheme,
    )
}  # fmt: skip

__all__ = ["RULES", "AllowedAt", "AllowedWith", "Automaton", "Before", "Constraints", "Contiguous",
           "Count", "Ends", "GlobalRule", "Known", "Limits", "LocalRule", "NotTogether", "Rule",
           "Steps", "TagScheme", "Target"]  # fmt: skip
