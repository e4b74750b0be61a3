"""Fitted labels that rules are compiled for, without a fit."""

from types import SimpleNamespace

from crfkit.constraints.base import Target
from crfkit.data.labels import object_array
from crfkit.labels.base import TokenLabels
from crfkit.labels.segments import SegmentLabels


def target_of(labels: list, segments: bool = False) -> Target:
    """Return the target of rules about these labels, of tokens or of segments."""
    fitted = SimpleNamespace(classes_=object_array(labels), scheme_="runs")
    space = SegmentLabels(None) if segments else TokenLabels()
    return Target(SimpleNamespace(topology=None), fitted, space)
