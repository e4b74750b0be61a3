"""Whether restored arrays fit together: compiled code reads them without looking at bounds.

A file may have been made to harm, so each check is complete, and linear in what it looks at.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit.data import PackedSegments, PackedSequences, validation
from crfkit.data.names import LazyNames, name_array
from crfkit.data.segments import check_segments
from crfkit.data.topology import Topology
from crfkit.features import SequenceVectorizer
from crfkit.labels.schemes import RUNS, SCHEMES
from crfkit.potentials import LinearChainModel, LinearModel
from crfkit.potentials.blocks import NAMES_OF, TOKENS
from crfkit.potentials.graph import DIRECTED, PAIRS_OF_LABELS, GraphModel
from crfkit.potentials.semimarkov import SemiMarkovModel
from crfkit.structures import Structure

_INDEX_TYPES = (np.int32, np.int64)
# Attributes that hold a transformer, or None.
_INNER = {"transformer", "transformer_", "nodes", "nodes_", "edges", "edges_", "skip", "skip_"}


def check_csr(data: Any, indices: Any, indptr: Any, shape: Any) -> None:
    """Raise ValueError if these are no parts of a sparse matrix in rows, by SciPy's names."""
    two = isinstance(shape, list) and len(shape) == 2
    if not two or not all(type(size) is int and 0 <= size < 2**62 for size in shape):
        raise ValueError(f"a sparse matrix of shape {shape!r:.60}")
    for name, part in (("data", data), ("indices", indices), ("indptr", indptr)):
        if type(part) is not np.ndarray or part.ndim != 1:
            raise ValueError(f"the {name} of a sparse matrix are no array of one dimension")
    if data.dtype.kind not in "biuf":
        raise ValueError(f"a sparse matrix of {data.dtype}")
    check_rows(indptr, indices, rows=shape[0], columns=shape[1])
    if len(data) != len(indices):
        raise ValueError(f"a sparse matrix of {len(indices)} entries with {len(data)} values")


def check_rows(indptr: Any, indices: Any, *, rows: int, columns: int) -> None:
    """Raise ValueError if pointers do not rise from 0 to the entries, or a column is too large."""
    for name, part in (("indptr", indptr), ("indices", indices)):
        if not _is_vector(part) or part.dtype not in _INDEX_TYPES:
            raise ValueError(f"{name} is no array of whole numbers")
    validation.check_rows(indptr, indices, (rows, columns), "a part")
    if indptr[-1] != len(indices):
        raise ValueError(f"the row pointers do not rise to {len(indices)}")


def check_vectorizer(vectorizer: SequenceVectorizer) -> None:
    """Raise ValueError if the columns of a vocabulary are not 0 to D - 1 in order."""
    if not hasattr(vectorizer, "vocabulary_"):
        return
    vocabulary = vectorizer.vocabulary_
    if type(vocabulary) is not dict or not set(map(type, vocabulary)) <= {str}:
        raise ValueError("the vocabulary is no dict of names")
    columns = list(vocabulary.values())
    if not set(map(type, columns)) <= {int} or columns != list(range(len(columns))):
        raise ValueError("the columns of the vocabulary are not in order")
    if vectorizer.n_features_in_ != len(vocabulary):
        raise ValueError("the vocabulary has another number of names than n_features_in_")


def check_steps(composed: Any) -> None:
    """Raise ValueError if steps, or the one inner transformer, neither transform nor predict."""
    parts = vars(composed)
    for name in _INNER & parts.keys():
        check_transformer(parts[name])
    for name in ("steps", "transformer_list", "transformers", "transformers_"):
        steps = parts.get(name, [])
        if type(steps) is not list or not all(
            type(step) is tuple and len(step) == 2 and type(step[0]) is str for step in steps
        ):
            raise ValueError("the steps are no pairs of a name and an object")
        last = len(steps) - 1 if name == "steps" else None
        for number, (_, step) in enumerate(steps):
            check_transformer(step, "predict" if number == last else "transform")


def check_transformer(step: Any, method: str = "transform") -> None:
    """Raise ValueError if something neither transforms, nor has a method, nor is left out."""
    if type(step) is str or step is None:
        fits = step in (None, "passthrough", "drop")
    else:
        fits = hasattr(step, "transform") or hasattr(step, method)
    if not fits or isinstance(step, type):
        raise ValueError(f"{type(step).__name__} is no step of a pipeline")


def check_packed(packed: PackedSequences) -> None:
    """Raise ValueError if the arrays of packed sequences do not fit together."""
    offsets, n_sparse, dense = packed.offsets, packed.n_sparse, packed.dense
    if type(n_sparse) is not int or n_sparse < 0:
        raise ValueError(f"n_sparse is {n_sparse!r:.40}")
    if not _is_vector(offsets, np.int64) or not len(offsets):
        raise ValueError("offsets is no array of int64")
    if not _is_vector(packed.indptr, np.int64) or not _is_vector(packed.indices, np.int32):
        raise ValueError("indptr or indices is of the wrong type")
    # Sequences are to the tokens what rows are to the entries.
    check_rows(offsets, packed.indptr[1:], rows=len(offsets) - 1, columns=2**63)
    check_rows(packed.indptr, packed.indices, rows=packed.n_tokens, columns=n_sparse)
    values = packed.values
    if values is not None:
        if not _is_vector(values, np.float64) or len(values) != len(packed.indices):
            raise ValueError("values do not fit the entries")
        if not np.isfinite(values).all():
            raise ValueError("values hold NaN or infinity")
    if dense is not None:
        _check_table("dense", dense, (packed.n_tokens, dense.shape[-1] if dense.ndim else 0))
    _check_names(packed.names, packed.n_features)
    if packed.topology is not None:
        if not isinstance(packed.topology, Topology):
            raise ValueError("the order of the tokens is no topology")
        packed.topology.check(offsets)
    if packed.transitions is not None and (
        type(packed.transitions) is not PackedSequences
        or packed.transitions.transitions is not None
        or not np.array_equal(packed.transitions.offsets, packed.transition_offsets)
    ):
        raise ValueError("the attributes of the transitions do not fit the sequences")
    if packed.segments is not None:
        if type(packed.segments) is not PackedSegments:
            raise ValueError("the attributes of the segments are no packed segments")
        check_segments(packed.segments, offsets)


def check_runs(segments: PackedSegments) -> None:
    """Raise ValueError if the arrays of packed segments do not fit together."""
    if type(segments.rows) is not PackedSequences:
        raise ValueError("the rows of segments are no packed sequences")
    for part in (segments.ptr, segments.length, segments.row):
        if not _is_vector(part, np.int64):
            raise ValueError("the runs of segments are no arrays of int64")
    if not len(segments.ptr) or len(segments.length) != len(segments.row):
        raise ValueError("the runs of segments have other lengths than rows")
    check_rows(segments.ptr, segments.row, rows=segments.n_tokens, columns=segments.rows.n_tokens)
    stop, length = segments.stop, segments.length
    if np.any((stop[1:] == stop[:-1]) & (length[1:] <= length[:-1])):
        raise ValueError("the lengths of the runs that end at a token do not rise")


def check_chain_model(model: Any) -> None:
    """Raise ValueError if the fitted attributes of a linear model, if any, do not fit together."""
    fitted = vars(model)
    if not {"coef_", "dual_coef_"} & fitted.keys():
        return
    check_what_predicts(model)
    n_features, k = model.n_features_in_, len(model.classes_)
    if "coef_" not in fitted:  # a model with a kernel
        return
    has_segments = "length_scores_" in fitted
    has_graphs = "edge_weights_" in fitted
    kind: type[LinearModel] = SemiMarkovModel if has_segments else LinearChainModel
    if has_graphs:
        kind = GraphModel
    _check_blocks(kind, fitted, {TOKENS: n_features}, k)
    if has_segments:
        _check_segment_parts(model, k)
    if has_graphs:
        _check_graph_parts(model, k)
    if getattr(model, "_partial_state", None) is not None:
        _check_partial_state(model._partial_state, kind, fitted, k)


def check_what_predicts(model: Any) -> None:
    """Check what is used beside weights: labels, vocabulary, structure, decoder and threads."""
    classes, n_features = model.classes_, model.n_features_in_
    if type(n_features) is not int or type(classes) is not np.ndarray or classes.ndim != 1:
        raise ValueError("n_features_in_ or classes_ is of the wrong type")
    if not len(classes) or classes.dtype != object or len(set(classes.tolist())) != len(classes):
        raise ValueError("classes_ are no distinct labels")
    vectorizer = getattr(model, "vectorizer_", None)
    if vectorizer is not None and (
        isinstance(vectorizer, type) or not hasattr(vectorizer, "transform")
    ):
        raise ValueError("vectorizer_ is no transformer")
    if type(vectorizer) is SequenceVectorizer:
        if getattr(vectorizer, "n_features_in_", None) != n_features:
            raise ValueError("vectorizer_ has not as many features as the model has")
        names, known = getattr(model, NAMES_OF[TOKENS], None), vectorizer.get_feature_names_out()
        if names is not None and not np.array_equal(known, name_array(names)):
            raise ValueError("vectorizer_ has not the features that the model has")
    structure = getattr(model, "structure_", None)
    if structure is not None and not isinstance(structure, Structure):
        raise ValueError("structure_ is no structure")
    decoding = getattr(model, "decoding", "viterbi")
    if type(decoding) is not str and (type(decoding) is bytes or not hasattr(decoding, "decode")):
        raise ValueError("decoding is neither a name nor a decoder")
    if not isinstance(model.n_jobs, (int, np.integer, NoneType)):
        raise ValueError("n_jobs is no whole number")


def _check_blocks(
    kind: type[LinearModel], fitted: Mapping[str, Any], sizes: Mapping[str, int], n_labels: int
) -> None:
    """Check the fitted attributes of blocks; `sizes` has numbers of attributes that are known."""
    for block in kind.block_types.values():
        for table in block.tables:
            name = table.attribute
            array: Any = fitted.get(name)
            if not table.is_sparse:
                if array is not None or block.is_known:
                    _check_table(name, array, table.shape(n_labels))
            elif array is not None or table.rows in sizes:
                columns = table.width(n_labels)
                if type(array) is not sp.csr_array or array.ndim != 2 or array.shape[1] != columns:
                    raise ValueError(f"{name} is no csr_array of {columns} columns")
                _check_table(name, array.data, array.data.shape)
                rows = sizes.get(table.rows, array.shape[0])
                if array.shape[0] != rows:
                    raise ValueError(f"{name} has {array.shape[0]} rows for {rows} features")
                _check_names(fitted.get(NAMES_OF[table.rows]), rows)


def _check_segment_parts(model: Any, k: int) -> None:
    """Check what models of segments have besides weights."""
    lengths: Any = model.length_scores_
    rows = len(lengths) if type(lengths) is np.ndarray and lengths.ndim else 0
    if not rows:
        raise ValueError("length_scores_ has no rows")
    _check_table("length_scores_", lengths, (rows, k))
    if type(getattr(model, "scheme_", None)) is not str or model.scheme_.upper() not in {
        *SCHEMES, RUNS.upper(),
    }:  # fmt: skip
        raise ValueError("scheme_ is no scheme of tags")


def _check_graph_parts(model: Any, k: int) -> None:
    """Check what models of graphs have besides weights."""
    if model.edge_weights_ not in PAIRS_OF_LABELS:
        raise ValueError("edge_weights_ does not say which pairs of labels have weights")
    if model.edge_weights_ != DIRECTED and (model.transitions_ != model.transitions_.T).any():
        raise ValueError("transitions_ of edges without a direction are not symmetric")
    labels, names = (vars(model).get(name) for name in ("type_labels_", "type_names_"))
    if labels is None and names is None:
        return
    if type(names) is not np.ndarray or names.dtype != object or names.ndim != 1:
        raise ValueError("type_names_ is no list of names")
    if len(set(names.tolist())) != len(names):
        raise ValueError("type_names_ are not distinct")
    if type(labels) is not np.ndarray or labels.dtype != bool or labels.shape != (len(names), k):
        raise ValueError(f"type_labels_ is no array of bool of shape {(len(names), k)}")


def _check_partial_state(
    state: Any, kind: type[LinearModel], fitted: Mapping[str, Any], n_labels: int
) -> None:
    """Check what `partial_fit` remembers: vectors of the solver in the form of the weights."""
    if type(state) is not dict or {type(state.get(n)) for n in ("arrays", "others")} != {dict}:
        raise ValueError("_partial_state has no arrays and others")
    tables = [t for block in kind.block_types.values() for t in block.tables]
    for parts in state["arrays"].values():
        if type(parts) is not dict or not set(parts) <= {t.attribute for t in tables}:
            raise ValueError("an array of _partial_state is no dict of fitted attributes")
        present = {t.attribute for t in tables if fitted.get(t.attribute) is not None}
        if {name for name in parts if parts[name] is not None} != present:
            raise ValueError(f"an array of _partial_state does not have the parts {present}")
        for table in (table for table in tables if table.attribute in present):
            name, part = table.attribute, parts[table.attribute]
            sparse, shape = type(part) is sp.csr_array, getattr(part, "shape", ())
            if shape != fitted[name].shape or sparse != table.is_sparse:
                raise ValueError(f"{name} of _partial_state is not of the shape of the weights")
            values = part.data if sparse else part
            if type(values) is not np.ndarray or values.dtype != np.float64:
                raise ValueError(f"{name} of _partial_state is no array of float64")


def _is_vector(array: Any, dtype: Any = None) -> bool:
    plain = type(array) is np.ndarray and array.ndim == 1
    return plain and (dtype is None or array.dtype == dtype)


def _check_table(name: str, table: Any, shape: tuple[int, ...]) -> None:
    """Check type, shape and values; ``-inf`` forbids a label or a step."""
    if type(table) is not np.ndarray or table.dtype != np.float64 or table.shape != shape:
        raise ValueError(f"{name} is no array of float64 of shape {shape}")
    if np.isnan(table).any() or np.isposinf(table).any():
        raise ValueError(f"{name} holds NaN or infinity")


def _check_names(names: NDArray[np.object_] | LazyNames | None, count: int) -> None:
    if names is None:
        return
    array = type(names) is np.ndarray and names.ndim == 1 and names.dtype == object
    if not (array or isinstance(names, LazyNames)) or len(names) != count:
        raise ValueError(f"the names are no {count} names")
