"""Frames of gestures: numbers drawn from a hidden Markov source with normal emissions."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch, check_random_state

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, IntArray
from crfkit.datasets.synthetic import RandomState, RandomStream

# The gestures of Wang, Quattoni, Morency, Demirdjian and Darrell (2006).
GESTURES = (
    "flip back", "shrink vertically", "expand vertically", "double back", "point and back",
    "expand horizontally",
)  # fmt: skip
# The least and the largest standard deviation along the axes of a covariance.
NARROW, WIDE = 0.5, 1.5


def make_gaussian_sequences(
    n_sequences: int = 100,
    length: int = 60,
    *,
    n_states: int = 6,
    n_features: int = 3,
    stay: float = 0.9,
    separation: float = 1.0,
    random_state: RandomState = None,
) -> Bunch:
    """Draw frames of a video, each of which shows one of a few gestures.

    A gesture goes on with the probability `stay`, or else another one follows, each as likely. The
    numbers of a frame are from a normal distribution of its gesture, with a covariance of its own.
    A single frame tells little; frames tell the gesture together, as it lasts.

    Parameters
    ----------
    n_sequences, length : int
        S sequences of T frames.
    n_states, n_features : int, default=6 and 3
        The number of labels K, and of numbers D in a frame.
    stay : float, default=0.9
        From 0 to 1; 1 is for one gesture a sequence.
    separation : float, default=1
        The standard deviation of the means of the gestures in each dimension; frames have about 1.
    random_state : int, RandomState or None
        Seeds the distributions and the frames. Data of one source for training and testing are
        drawn together and split.

    Returns
    -------
    data : Bunch
        X, y : list of ndarray of shape (T, D), list of list of str
            The frames, and their labels.
        start, transition : ndarray of shape (K,) and (K, K)
            The distributions of first labels, uniform, and of the label that follows.
        means, covariances : ndarray of shape (K, D) and (K, D, D)
            The normal distribution of each label.
        states : list of str
            The names of labels, in the order of the tables.

    Examples
    --------
    >>> data = make_gaussian_sequences(2, 5, random_state=0)
    >>> data.X[0].shape, data.y[0][-2:]
    ((5, 3), ['point and back', 'point and back'])
    """
    check_whole("n_sequences", n_sequences)
    for name, value in {"length": length, "n_states": n_states, "n_features": n_features}.items():
        check_whole(name, value, 1)
    check_number("separation", separation)
    check_number("stay", stay)
    if stay > 1.0:
        raise ValueError(f"stay={stay!r} must be at most 1.")
    random = check_random_state(random_state)
    means = separation * random.normal(size=(n_states, n_features))
    roots = _roots(n_states, n_features, random)
    codes = _lasting(n_sequences, length, n_states, stay, random)
    noise = random.normal(size=(n_sequences, length, n_features))
    X = means[codes] + np.einsum("stde,ste->std", roots[codes], noise)
    states = [*GESTURES, *(f"gesture {k}" for k in range(len(GESTURES), n_states))][:n_states]
    return Bunch(
        X=list(X),
        y=[[states[code] for code in row] for row in codes.tolist()],
        start=np.full(n_states, 1.0 / n_states),
        transition=_transition(n_states, stay),
        means=means,
        covariances=roots @ roots.transpose(0, 2, 1),
        states=states,
    )


def _roots(n_states: int, n_features: int, random: RandomStream) -> FloatArray:
    """Draw square roots of covariances: turned axes, each with a standard deviation of its own."""
    axes = np.linalg.qr(random.normal(size=(n_states, n_features, n_features)))[0]
    roots: FloatArray = axes * random.uniform(NARROW, WIDE, size=(n_states, 1, n_features))
    return roots


def _transition(n_states: int, stay: float) -> FloatArray:
    """Return the distributions of the label that follows each label."""
    if n_states == 1:
        return np.ones((1, 1))
    table = np.full((n_states, n_states), (1.0 - stay) / (n_states - 1))
    np.fill_diagonal(table, stay)
    return table


def _lasting(
    n_sequences: int, length: int, n_states: int, stay: float, random: RandomStream
) -> IntArray:
    """Draw labels that go on with the probability `stay`, (S, T)."""
    first = random.randint(n_states, size=(n_sequences, 1))
    # By how much a label differs from the one before: 0, or any other number as likely.
    steps = random.randint(1, max(n_states, 2), size=(n_sequences, length - 1))
    steps[random.uniform(size=steps.shape) < stay] = 0
    codes: IntArray = np.cumsum(np.hstack([first, steps]), axis=1) % n_states
    return codes.astype(np.int64)
