"""Labels of sequences: containers, codes, what is known of them and how much they count."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Number
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from crfkit._parallel import without_collection
from crfkit._tables import refuse_tables
from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, ObjectArray
from crfkit.data.frames import is_column, is_frame, is_missing
from crfkit.data.sequence_list import SequenceList
from crfkit.data.validation import numeric_array, plain_array, token_place

Label = Hashable

UNKNOWN = -1  # code of a label that the model has not seen


class Unlabeled:
    """The class of `UNLABELED`, its only object, as which it is pickled, copied and saved."""

    __slots__ = ()

    def __new__(cls) -> Unlabeled:
        """Return the only object."""
        known: Unlabeled | None = globals().get("UNLABELED")
        return super().__new__(cls) if known is None else known

    def __repr__(self) -> str:
        return "UNLABELED"

    def __reduce__(self) -> str:
        return "UNLABELED"


#: In `y`, the label of a token whose label is not known.
UNLABELED = Unlabeled()


# Arrays of more labels are read without an object for each, so many at a time.
MANY = 1 << 20
TOGETHER = 1 << 12  # sequences of strings that are read at once
ReadStrings = Callable[[list[list[Any]], int], CodeArray | None]


def object_array(items: Iterable[Any]) -> ObjectArray:
    """Return a 1-D array of objects, also where the objects are tuples or lists."""
    return np.fromiter(items, dtype=object)


class LabelSequences(SequenceList[list[Label]]):
    """A list of label sequences that NumPy always sees as a 1-D array of lists.

    It compares, prints, pickles and turns into JSON as the list of lists it is. As an array it has
    the shape (S,) whether the sequences are ragged or of equal length, which is what
    ``cross_val_predict`` needs.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.data import LabelSequences
    >>> np.asarray(LabelSequences([["A", "B"], ["B", "A"]])).shape
    (2,)
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ObjectArray:
        if copy is False:
            raise ValueError("LabelSequences is a list: an array of it is always a copy.")
        return object_array(self)

    def __getitem__(self, key: Any) -> Any:
        """Return one sequence, or a container for a slice, an index array or a mask."""
        if isinstance(key, (int, np.integer)):
            return super().__getitem__(int(key))
        chosen = np.arange(len(self))[key]
        return LabelSequences([super(LabelSequences, self).__getitem__(int(i)) for i in chosen])

    def __add__(self, other: list[list[Label]]) -> LabelSequences:  # type: ignore[override]
        return LabelSequences(super().__add__(other))

    def copy(self) -> LabelSequences:
        """Return a shallow copy."""
        return LabelSequences(self)

    @classmethod
    def from_codes(cls, codes: CodeArray, classes: ObjectArray, offsets: IntArray) -> Self:
        """Return the labels of code arrays: (N,) codes, (K,) labels, (S + 1,) offsets."""
        flat = classes[codes].tolist()
        with without_collection(len(offsets)):
            return cls([flat[b:e] for b, e in itertools.pairwise(offsets.tolist())])


class LabelStream:
    """Label sequences as codes, in the order in which labels first appear; they are read once.

    Where labels may be known in part (`partial`), a code of -1 or below stands for one of
    `options`, the first at -1: `UNLABELED`, or a frozenset of labels, of which one is right.

    Where `y` is a list of lists, `read_strings` may give the codes of so many labels of some
    sequences, and go on with those of the next ones; or None, if not all are strings.
    """

    def __init__(
        self, y: Iterable[Iterable[Label]], *, partial: bool = False,
        read_strings: ReadStrings | None = None,
    ) -> None:  # fmt: skip
        self.codes: CodeArray
        self.offsets: IntArray
        self.index: dict[Label, int] = {}
        self.options: list[Any] = []
        self._partial = partial
        self._codes: dict[Any, int] = {}  # of all that stands in y
        if read_strings is None or not self._read_at_once(y, read_strings):
            self._read(y)

    def _read_at_once(self, y: Any, read_strings: ReadStrings) -> bool:
        """Read lists of strings, many at a time; return whether that is what they are."""
        if not are_lists(y):
            return False
        lengths, parts = np.fromiter(map(len, y), np.int64, len(y)), [np.zeros(0, np.int32)]
        for begin in range(0, len(y), TOGETHER):
            some = slice(begin, begin + TOGETHER)
            codes = read_strings(y[some], int(lengths[some].sum()))
            if codes is None:
                return False
            parts.append(codes)
        self.codes, self.offsets = np.concatenate(parts), np.cumsum([0, *lengths])
        first = np.zeros(int(self.codes.max(initial=-1)) + 1, np.int64)
        first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        sequences = np.searchsorted(self.offsets, first, side="right") - 1
        for s, t in zip(sequences, first - self.offsets[sequences], strict=True):
            self.index[plain_label(y[s][t])] = len(self.index)
        return True

    def _read(self, y: Iterable[Iterable[Label]]) -> None:
        codes = array("i")
        offsets = [0]
        for s, labels in enumerate(iterate_sequences(y, "y")):
            if isinstance(labels, np.ndarray) and _is_long(labels):
                for begin in range(0, len(labels), MANY):
                    codes.frombytes(self._encode_array(s, labels[begin : begin + MANY]).tobytes())
            else:
                codes.extend(self._encode(s, labels))
            offsets.append(len(codes))
        self.codes = np.array(codes, dtype=np.int32)
        self.offsets = np.array(offsets, dtype=np.int64)

    def _encode(self, s: int, labels: Iterable[Label]) -> list[int]:
        values: Any = labels if labels.__class__ is list else label_list(s, labels)
        try:
            return list(map(self._codes.__getitem__, values))
        except (KeyError, TypeError):  # a new label, or none
            return [self._add(s, t, plain_label(label)) for t, label in enumerate(values)]

    def _encode_array(self, s: int, labels: NDArray[Any]) -> CodeArray:
        """Return the codes of an array of labels that sort, by its distinct values."""
        values, first, which = np.unique(labels, return_index=True, return_inverse=True)
        codes = np.empty(len(values), np.int32)
        for place in np.argsort(first):
            codes[place] = self._add(s, int(first[place]), values[place].item())
        return codes[which]

    def _add(self, s: int, t: int, label: Any) -> int:
        """Return the code of what stands at a token, new or not."""
        label = frozenset(label) if isinstance(label, set) else label
        try:
            code = self._codes.get(label)
        except TypeError as error:
            raise TypeError(
                f"sequence {s}, position {t}: the label {label!r} is not hashable. "
                "Labels may be any hashable objects: strings, numbers, tuples."
            ) from error
        if code is None:
            if label is UNLABELED or isinstance(label, frozenset):
                code = self._add_option(s, t, label)
            elif is_missing(label):
                raise ValueError(
                    f"sequence {s}, position {t}: the label is {label!r}. Every token needs a "
                    "label: give one whose label is not known crfkit.UNLABELED, or leave the "
                    "sequence out."
                )
            else:
                code = self.index.setdefault(label, len(self.index))
            self._codes[label] = code
        return code

    def _add_option(self, s: int, t: int, option: Any) -> int:
        """Return the code of what leaves a label open; a set of one is that label."""
        place = f"sequence {s}, position {t}"
        if option is not UNLABELED:
            codes = [self._add(s, t, label) for label in _members(option, place)]
            if len(codes) == 1:
                return codes[0]
            option = frozenset(map(plain_label, option))
        if not self._partial:
            raise ValueError(
                f"{place}: the label is {option!r:.60}, but each token needs one known label here."
            )
        self.options.append(option)
        return -len(self.options)

    def place_of(self, label: Label) -> str:
        """Return what messages call the first token that has a label, or may have it."""
        sets = [isinstance(option, frozenset) and label in option for option in self.options]
        codes = [self.index[label], *(-1 - np.flatnonzero(sets))]
        return token_place(self.offsets, int(np.argmax(np.isin(self.codes, codes))))

    def labels(self) -> LabelSequences:
        """Return what was read."""
        items = object_array([*self.index, *self.options[::-1]])
        return LabelSequences.from_codes(self.codes, items, self.offsets)

    def classes(self) -> ObjectArray:
        """Return the labels, sorted where they can be compared, shape (K,)."""
        return sorted_labels(self.index)

    def codes_for(self, classes: Sequence[Label] | ObjectArray) -> CodeArray:
        """Return the codes with respect to given labels, `UNKNOWN` for any other, shape (N,).

        Of a token that may have several, the code of the first of them.
        """
        place = dict(zip(classes, itertools.count()))
        found = [place.get(label, UNKNOWN) for label in self.index]
        found += [min(_places(option, place), default=UNKNOWN) for option in self.options[::-1]]
        table = np.array(found, dtype=np.int32)
        return table[self.codes] if len(table) else self.codes

    @property
    def unlabeled(self) -> BoolArray:
        """Which tokens are `UNLABELED`, (N,)."""
        kinds = [option is UNLABELED for option in self.options[::-1]]
        return np.array([False] * len(self.index) + kinds, bool)[self.codes]

    def allowed_for(self, classes: Sequence[Label] | ObjectArray) -> BoolArray | None:
        """Return which of given labels each token may have, (N, K); None where each has one."""
        if not self.options:
            return None
        place = dict(zip(classes, itertools.count()))
        rows = np.zeros((len(self.options), len(classes)), bool)
        for row, option in zip(rows, self.options, strict=True):
            row[_places(option, place)] = True
        allowed: BoolArray = self.codes_for(classes)[:, None] == np.arange(len(classes))
        open_ = np.flatnonzero(self.codes < 0)
        allowed[open_] = rows[-1 - self.codes[open_]]
        return allowed


def sorted_labels(labels: Iterable[Any]) -> ObjectArray:
    """Return the different labels, sorted where they can be compared, shape (K,)."""
    different = list(dict.fromkeys(labels))
    try:
        return object_array(sorted(different))
    except TypeError:  # labels of mixed types stay in the order of their first appearance
        return object_array(different)


def _members(option: frozenset[Any], place: str) -> list[Any]:
    """Return the labels of a set in an order that is the same in each session."""
    if not option:
        raise ValueError(
            f"{place}: the set of labels is empty. Give the labels that the token may have, or "
            "crfkit.UNLABELED where it may have any."
        )
    if any(label is UNLABELED or isinstance(label, frozenset) for label in option):
        raise TypeError(
            f"{place}: {option!r:.60} has a member that is no label. A set has the labels that a "
            "token may have; crfkit.UNLABELED alone is for any."
        )
    return sorted(map(plain_label, option), key=lambda label: (type(label).__name__, repr(label)))


def _places(option: Any, place: Mapping[Any, int]) -> list[int]:
    """Return the places of the labels that leave a token open."""
    if option is UNLABELED:
        return list(place.values())
    return [place[label] for label in option if label in place]


def _is_long(labels: NDArray[Any]) -> bool:
    """Whether labels are plain values, none masked, and so many that sorting them is worth it."""
    plain = labels.dtype.kind in "biuUS" and not np.ma.isMaskedArray(labels)
    return labels.ndim == 1 and plain and len(labels) > MANY


def iterate_sequences(sequences: Any, name: str) -> Iterator[Any]:
    """Iterate over the sequences of "X" or "y"; TypeError for what only looks like sequences."""
    return iter(sequences) if are_lists(sequences) else _checked_sequences(sequences, name)


def iterate_token_sequences(X: Any) -> Iterator[Any]:
    """Iterate over sequences of tokens, as `iterate_sequences`; TypeError for sparse matrices.

    SciPy iterates over the rows of one without a look at its bounds.
    """
    if are_lists(X):
        return iter(X)
    return (_of_tokens(s, each) for s, each in enumerate(iterate_sequences(X, "X")))


def _of_tokens(s: int, sequence: Any) -> Any:
    """Return a sequence; TypeError for a sparse matrix."""
    if issparse(sequence):
        raise TypeError(
            f"sequence {s} of X is a sparse matrix, where tokens are read that are dicts, lists or "
            "strings. Give matrices to an estimator without vectorizer, or to PackedSequences."
        )
    return sequence


def are_lists(sequences: Any) -> bool:
    """Whether sequences are a list of lists."""
    return sequences.__class__ is list and set(map(type, sequences)) <= {list}


def by_sequence(y: Any, offsets: IntArray) -> Any:
    """Return labels, or weights, by sequence: a column that has one for each token is cut.

    That is one of a data frame, an array of one dimension or of shape (N, 1), or a list of strings
    or numbers.
    """
    y = y[y.columns[0]] if is_frame(y) and len(y.columns) == 1 else y
    labels = y.to_numpy() if is_column(y) else y
    if isinstance(labels, np.ndarray) and labels.shape == (offsets[-1], 1) != (len(offsets) - 1, 1):
        labels = labels[:, 0]
    labels = plain_array(y) if getattr(y, "ndim", 0) == 1 and not is_column(y) else labels
    if not _is_flat(labels) or len(labels) != offsets[-1]:
        return y
    return [labels[begin:end] for begin, end in itertools.pairwise(offsets.tolist())]


def _is_flat(labels: Any) -> bool:
    """Whether these are labels of tokens, or weights, and no sequences of such."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        kinds: Any = (str, set, frozenset)
        return not (len(labels) and hasattr(labels[0], "__len__")) or isinstance(labels[0], kinds)
    return isinstance(labels, list) and bool(labels) and isinstance(labels[0], (str, Number))


def _checked_sequences(sequences: Any, name: str) -> Iterator[Any]:
    if isinstance(sequences, (str, bytes, dict)) or not hasattr(sequences, "__iter__"):
        raise TypeError(
            f"{name} must be a list of sequences, not {type(sequences).__name__}: "
            f"for one sequence pass [{name}]."
        )
    if issparse(sequences):
        raise TypeError(
            f"{name} is one sparse matrix, which does not tell its sequences apart: use "
            "PackedSequences.from_flat(X, lengths), or a list with one matrix for each sequence."
        )
    if isinstance(sequences, (set, frozenset)):
        raise TypeError(f"{name} is a set, which has no order: give a list of sequences.")
    if hasattr(sequences, "columns") or hasattr(sequences, "ngroups"):
        what = "a data frame" if hasattr(sequences, "columns") else "a grouped data frame"
        raise TypeError(
            f"{name} is {what}, which does not tell its sequences apart: use "
            "FrameClassifier(estimator, by=...) for frames. By hand, features are "
            "crfkit.data.sequences_from_frame(df, by=...) or PackedSequences.from_frame(df, by=...)"
            ", labels one column, y=df[...]."
        )
    for s, sequence in enumerate(sequences):
        if isinstance(sequence, (str, bytes)):
            raise TypeError(
                f"sequence {s} of {name} is the string {sequence!r}. A sequence is a list with one "
                f"item a token: split it first; for one sequence pass [{name}].{_one_list(name)}"
            )
        if isinstance(sequence, (set, frozenset)):
            raise TypeError(f"sequence {s} of {name} is a set, which has no order: give a list.")
        of_items = isinstance(sequence, dict) and not issparse(sequence)  # dok is a dict
        if of_items or not hasattr(sequence, "__iter__"):
            raise TypeError(
                f"sequence {s} of {name} is a single {type(sequence).__name__}, not a list with "
                f"one item a token. {name} must be a list of sequences: wrap the items of each "
                f"sequence in a list; for one sequence pass [{name}].{_one_list(name)}"
            )
        yield plain_array(sequence)


def _one_list(name: str) -> str:
    """Return what messages say of one list of all labels."""
    if name == "X":
        return ""
    told = " One list of the labels of several sequences is cut by labels_from_frame(df, by, name)"
    ends = {
        "y": ", or if it has one label for each token of X.",
        "y_pred": ". A FrameClassifier predicts such a column: it takes the metric itself, as "
        "FrameClassifier(by=..., scoring='entity_f1'), and cross_val_score no scoring=.",
    }
    return told + ends.get(name, ".")


def label_list(s: int, labels: Any, name: str = "y") -> list[Label]:
    """Return one sequence of labels as Python objects; a 2-D array raises TypeError."""
    if isinstance(labels, np.ndarray):
        if labels.ndim != 1:
            raise TypeError(
                f"sequence {s} of {name} is an array of {labels.ndim} dimensions; it must have "
                "one, with a label a token. Of one-hot rows take the column, labels.argmax(axis=1);"
                " probabilities are crfkit.SoftLabels."
            )
        return list(labels) if labels.dtype.kind in "mM" else list(labels.tolist())
    if hasattr(labels, "to_numpy"):  # a column of a data frame
        return label_list(s, labels.to_numpy(), name)
    return [plain_label(label) for label in labels]


def plain_label(label: Any) -> Label:
    """Return a NumPy scalar as a Python object; dates, whose Python form is a number, stay."""
    if not isinstance(label, np.generic) or label.dtype.kind in "mM":
        return label  # type: ignore[no-any-return]
    return label.item()  # type: ignore[no-any-return]


def check_lengths(offsets: IntArray, others: IntArray, name: str, of: str = "token") -> None:
    """Raise ValueError if X and `name` differ in number or lengths of sequences, given offsets."""
    if len(offsets) != len(others):
        none = len(offsets) == 1 or len(others) == 1
        empty = " A generator gives its sequences only once." if none else ""
        raise ValueError(
            f"X has {len(offsets) - 1} sequences, but {name} has {len(others) - 1}: "
            f"give one sequence of {name} for each of X.{empty}"
        )
    ours, theirs = np.diff(offsets), np.diff(others)
    if not np.array_equal(ours, theirs):
        s = int(np.argmax(ours != theirs))
        refuse_tables(failed=True)
        raise ValueError(
            f"sequence {s}: X has {ours[s]} {of}s, but {name} has {theirs[s]} items. "
            f"Every {of} needs exactly one."
        )


def check_sample_weight(sample_weight: Any, offsets: IntArray) -> FloatArray:
    """Return a weight for each token, (N,), of those of S sequences or of their tokens.

    The column of a data frame has one for each token, as that of labels. Where none are given, all
    are one number in memory, which is read-only.
    """
    lengths = np.diff(offsets)
    if sample_weight is None:
        return np.broadcast_to(1.0, int(offsets[-1]))
    single = not hasattr(sample_weight, "__iter__") or getattr(sample_weight, "ndim", 1) == 0
    if single or isinstance(sample_weight, (str, bytes, Mapping)):
        raise TypeError(
            f"sample_weight is a {type(sample_weight).__name__}; give one number for each "
            "sequence, or a list with an array of token weights for each sequence."
        )
    items = list(by_sequence(sample_weight, offsets))
    if any(np.ndim(item) for item in items):
        rows = [
            numeric_array(item, f"sample_weight of sequence {s}").reshape(-1)
            for s, item in enumerate(items)
        ]
        check_lengths(offsets, np.cumsum([0, *map(len, rows)]), "sample_weight")
        weight = np.concatenate(rows)
    else:
        if len(items) != len(lengths):
            raise ValueError(
                f"sample_weight has {len(items)} numbers for {len(lengths)} sequences. Give one "
                "for each sequence, or a list with an array of token weights for each sequence."
            )
        weight = np.repeat(numeric_array(items, "sample_weight"), lengths)
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if len(bad):
        raise ValueError(
            f"{token_place(offsets, bad[0])}: the sample weight is {weight[bad[0]]}; weights must "
            "be finite and not negative."
        )
    if len(weight) and not weight.any():
        raise ValueError("all sample weights are 0: no sequence counts.")
    return weight
