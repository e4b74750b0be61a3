"""A classifier that passes the checks, and mutants of it that each break one rule."""

import time

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crfkit.data import LabelSequences
from crfkit.data.labels import LabelStream, check_lengths, check_sample_weight
from crfkit.estimators._interface import restore, score, sequence_tags
from crfkit.training.data import check_training, fitted_labels, pack_new, pack_training


class VoteClassifier(BaseEstimator):
    """The label that was seen most with the attributes of the token; no steps, no solver."""

    score, _fitted_labels, __setstate__ = score, fitted_labels, restore

    def __sklearn_tags__(self):
        return sequence_tags(super().__sklearn_tags__())

    def __init__(self, *, smoothing=1.0, flag=False):
        self.smoothing = smoothing
        self.flag = flag

    def fit(self, X, y, sample_weight=None):
        data, vectorizer = pack_training(X)
        stream = LabelStream(y)
        check_lengths(data.offsets, stream.offsets, "y")
        check_training(data)
        weight = check_sample_weight(sample_weight, data.offsets)
        classes = stream.classes()
        self.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        self.classes_, self.vectorizer_ = classes, vectorizer
        self.n_features_in_ = data.n_features
        votes = weight[:, None] * np.eye(len(classes))[stream.codes_for(classes)]
        self.votes_ = np.log(data.to_csr().T @ votes + self.smoothing)
        return self

    def _scores(self, X):
        check_is_fitted(self)
        names = getattr(X, "feature_names", None)
        if names is not None and list(names) != list(getattr(self, "feature_names_in_", names)):
            raise ValueError("the names of the features are not those of the training data")
        data = pack_new(X, self.vectorizer_, self.n_features_in_)
        scores = data.to_csr() @ self.votes_
        norm = np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return np.exp(scores - norm), data.offsets

    def predict(self, X):
        scores, offsets = self._scores(X)
        codes = scores.argmax(axis=1) if len(scores) else np.zeros(0, np.int32)
        return LabelSequences.from_codes(codes, self.classes_, offsets)

    def predict_proba(self, X):
        scores, offsets = self._scores(X)
        return np.split(scores, offsets[1:-1]) if len(offsets) > 1 else []


class OverwritesAParameter(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        self.smoothing = float(self.smoothing + 0.5)
        return super().fit(X, y, sample_weight)


class ReturnsNothing(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)


class PredictsMatrices(VoteClassifier):
    def predict(self, X):
        labels = super().predict(X)
        equal = len({len(row) for row in labels}) == 1
        return np.array(list(labels)) if equal else labels


class PredictsBareLists(VoteClassifier):
    def predict(self, X):
        return list(super().predict(X))


class TruncatesLabels(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        pairs = list(zip(X, y, strict=False))
        return super().fit([s for s, _ in pairs], [t for _, t in pairs], sample_weight)


class KeepsState(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        old = getattr(self, "votes_", None)
        super().fit(X, y, sample_weight)
        if old is not None and old.shape == self.votes_.shape:
            self.votes_ = self.votes_ + old
        return self


class KeepsNames(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        names = self.__dict__.get("feature_names_in_")
        super().fit(X, y, sample_weight)
        if names is not None and not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = names
        return self


class KeepsTheEffectOfAFlag(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if self.flag:
            self.bonus_ = 0.1
        self.votes_[0, 0] += getattr(self, "bonus_", 0.0)
        return self


class ChangesItsData(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        if isinstance(X, list) and isinstance(X[0], list) and isinstance(X[0][0], dict):
            for sequence in X:
                sequence[0]["first"] = True
        return super().fit(X, y, sample_weight)


class ChangesPackedData(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if hasattr(X, "indices"):
            X.__dict__["indices"] = X.indices[::-1]
        return self


class ChangesWeights(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if isinstance(sample_weight, np.ndarray):
            sample_weight /= sample_weight.sum()
        return self


class IgnoresWeights(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


class DependsOnTheBatch(VoteClassifier):
    def _scores(self, X):
        scores, offsets = super()._scores(X)
        return scores - scores.mean(axis=0) if len(scores) else scores, offsets


class DependsOnTheClock(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.votes_ += 1e-9 * np.random.default_rng(time.perf_counter_ns()).random(
            self.votes_.shape
        )
        return self


class CountsPredictions(VoteClassifier):
    def predict(self, X):
        labels = super().predict(X)
        self.n_predictions_ = getattr(self, "n_predictions_", 0) + 1
        return labels


class StringsOnly(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, [[str(label) for label in row] for row in y], sample_weight)


class DropsEmptySequences(VoteClassifier):
    def predict(self, X):
        return LabelSequences(row for row in super().predict(X) if row)


class SkipsEmptyTrainingSequences(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        if isinstance(X, list) and isinstance(X[0], list):
            X, y = [s for s in X if len(s)], [t for t in y if len(t)]
        return super().fit(X, y, sample_weight)


class ReadsInputTwice(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        self.n_iter_ = sum(1 for _ in X)
        return super().fit(X, y, sample_weight)


class SwapsProbabilities(VoteClassifier):
    def predict_proba(self, X):
        return [rows[:, ::-1] for rows in super().predict_proba(X)]


class ForgetsToNormalize(VoteClassifier):
    def predict_proba(self, X):
        return [rows * 0.9 for rows in super().predict_proba(X)]


class ScoresSequences(VoteClassifier):
    def score(self, X, y, sample_weight=None):
        pairs = list(zip(self.predict(X), y, strict=True))
        return sum(list(p) == list(t) for p, t in pairs) / len(pairs)


class ReplacesBadValues(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        if isinstance(X, list) and isinstance(X[0], np.ndarray) and X[0].dtype == float:
            X = [np.nan_to_num(array) for array in X]
        return super().fit(X, y, sample_weight)


class UnfittedIsSilent(VoteClassifier):
    def predict(self, X):
        return super().predict(X) if hasattr(self, "classes_") else LabelSequences([] for _ in X)


class CannotBePickled(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        self.function_ = lambda: None
        return super().fit(X, y, sample_weight)


class ClaimsToBeAClassifier(VoteClassifier):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        return tags


class SetsAnAttributeInInit(VoteClassifier):
    def __init__(self, *, smoothing=1.0, flag=False):
        super().__init__(smoothing=smoothing, flag=flag)
        self.names = ["a"]


class AddsAPublicAttribute(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        self.counts = 1
        return super().fit(X, y, sample_weight)


class LosesItsModelOnError(VoteClassifier):
    def fit(self, X, y, sample_weight=None):
        self.__dict__.pop("votes_", None)
        return super().fit(X, y, sample_weight)


# Each mutant, with checks that have to find it.
MUTANTS = {
    OverwritesAParameter: ["check_parameters_unchanged_by_fit"],
    ReturnsNothing: ["check_fit_returns_self"],
    PredictsMatrices: ["check_predict_array_is_1d", "check_cross_validation"],
    PredictsBareLists: [
        "check_predict_returns_label_sequences",
        "check_predict_array_is_1d",
        "check_cross_validation",
    ],
    TruncatesLabels: ["check_other_number_of_sequences_raises"],
    KeepsState: ["check_fit_twice_gives_the_same"],
    KeepsNames: ["check_refit_forgets"],
    KeepsTheEffectOfAFlag: ["check_refit_forgets_parameters"],
    ChangesItsData: ["check_fit_does_not_change_data"],
    ChangesPackedData: ["check_fit_does_not_change_data"],
    ChangesWeights: ["check_weight_containers"],
    IgnoresWeights: [
        "check_weights_are_used",
        "check_bad_weights_raise",
        "check_integer_weights_repeat_sequences",
        "check_weight_zero_leaves_out",
        "check_weights_are_routed",
    ],
    DependsOnTheBatch: [
        "check_predictions_do_not_depend_on_the_batch",
        "check_proba_does_not_depend_on_the_batch",
    ],
    DependsOnTheClock: ["check_fit_twice_gives_the_same"],
    CountsPredictions: ["check_predict_changes_nothing"],
    StringsOnly: ["check_labels_int", "check_labels_tuple", "check_labels_enum"],
    DropsEmptySequences: ["check_predict_empty_sequence"],
    SkipsEmptyTrainingSequences: ["check_empty_training_sequence_raises"],
    ReadsInputTwice: ["check_generators"],
    SwapsProbabilities: ["check_proba_follows_classes"],
    ForgetsToNormalize: ["check_proba_rows_are_distributions", "check_long_sequence"],
    ScoresSequences: ["check_score_is_token_accuracy", "check_score_weights"],
    ReplacesBadValues: ["check_bad_values_in_matrices_raise"],
    UnfittedIsSilent: ["check_unfitted_raises_not_fitted", "check_clone_of_fitted_is_unfitted"],
    CannotBePickled: ["check_pickle"],
    ClaimsToBeAClassifier: ["check_tags_of_a_sequence_classifier", "check_cross_validation"],
    SetsAnAttributeInInit: ["check_no_attributes_set_in_init"],
    AddsAPublicAttribute: ["check_fit_adds_only_fitted_attributes"],
    LosesItsModelOnError: ["check_failed_fit_keeps_the_model"],
}
