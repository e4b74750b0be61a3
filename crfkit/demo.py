"""What ``crfkit demo`` shows: a CRF trained, judged and used."""

from __future__ import annotations

import time

from sklearn.model_selection import train_test_split

from crfkit.data import LabelSequences
from crfkit.datasets import ingredient_features, load_ingredients, tokenize_ingredient
from crfkit.estimators import CRFClassifier
from crfkit.metrics import entity_classification_report, flat_accuracy_score

NEW_LINES = (
    "2 1/2 cups bread flour, sifted, plus extra for kneading",
    "1 (400 g) tin chopped tomatoes, drained",
    "a good handful of fresh mint leaves, roughly torn (optional)",
)


def run_demo(*, n_jobs: int | None = None, c2: float = 0.1) -> None:
    """Train on recipe ingredients and print what a newcomer wants to see."""
    corpus = load_ingredients()
    X = [ingredient_features(tokens) for tokens in corpus.tokens]
    X_train, X_test, y_train, y_test = train_test_split(
        X, corpus.tags, test_size=0.2, random_state=0
    )
    print(
        f"{len(X)} recipe ingredient lines, {len(X_train)} to learn from, {len(X_test)} to judge\n"
    )
    started = time.perf_counter()
    crf = CRFClassifier(c2=c2, n_jobs=n_jobs, verbose=1).fit(X_train, y_train)
    print(f"{crf.n_parameters_:,} weights in {time.perf_counter() - started:.1f} s\n")
    _print_report(y_test, crf.predict(X_test))
    _print_lines(crf)
    _print_weights(crf)
    print(_NEXT)


def _print_report(truth: list[list[str]], predicted: LabelSequences) -> None:
    print(f"held-out lines: {flat_accuracy_score(truth, predicted):.1%} of the tokens are right")
    print(entity_classification_report(truth, predicted))


def _print_lines(crf: CRFClassifier) -> None:
    """Tag new lines, each token with the probability of its label."""
    tokens = [tokenize_ingredient(line) for line in NEW_LINES]
    X = [ingredient_features(line) for line in tokens]
    for words, tags, row in zip(tokens, crf.predict(X), crf.predict_marginals(X), strict=True):
        print(f"\n{'token':<12}{'tag':<12}confidence")
        for word, tag, p in zip(words, tags, row, strict=True):
            print(f"{word:<12}{tag:<12}{p[tag]:10.1%}")


def _print_weights(crf: CRFClassifier) -> None:
    print("\nstrongest weights of attributes")
    for (attribute, label), weight in crf.state_features_.top(8):
        print(f"{weight:8.2f}  {attribute:<20} {label}")
    print("\nstrongest weights of transitions from label to label")
    for (source, target), weight in crf.transition_features_.top(6):
        print(f"{weight:8.2f}  {source:<10} -> {target}")


_NEXT = """
What next?
  from crfkit import CRFClassifier                  the estimator: fit, predict, predict_proba
  from crfkit.datasets import load_ingredients      this corpus, its tokenizer and its features
  from crfkit.metrics import conlleval_report       entity scores, tag schemes, scorers
The README goes on from here: your own data, pipelines, GridSearchCV."""
