"""The derivative by which temperatures are found, on every structure, against enumeration."""

import numpy as np
import pytest
from scipy.special import softmax

from crfkit.calibration.temperature import derivative
from crfkit.data.targets import Targets, Weights
from tests.contracts.structures import MAKERS, problems

# Potentials that a structure adds are not multiplied.
NAMES = sorted(name for name in MAKERS if "offset" not in name)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_random_problems_are_expected_less_observed_scores(name):
    for seed, (structure, potentials, listed) in enumerate(problems(name)):
        rng, lengths = np.random.default_rng(seed), np.diff(potentials.offsets)
        factor, weight = rng.choice([0.3, 1.0, 2.0]), rng.random(len(lengths))
        codes, expected, size = [np.zeros(0, np.int32)], 0.0, 1.0
        for labelings, own in zip(listed, weight, strict=True):
            path, score, _ = labelings[rng.integers(len(labelings))]
            codes.append(np.array(path, np.int32))
            scores = np.array([each[1] for each in labelings])
            expected += own * (softmax(factor * scores) @ scores - score)
            size += np.abs(scores).max()
        weights = Weights(np.repeat(weight, lengths), weight)
        found = derivative(structure, potentials, factor, Targets(np.concatenate(codes)), weights)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * size)
