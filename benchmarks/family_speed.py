"""The family against packages that are usual: NLTK's HMM and TnT taggers, scikit-learn's models.

Parts of speech of the English Web Treebank. Ours and theirs run in one process, a few times, of
which the fastest counts: one thread in processor seconds, two by the clock. Each model tags once
after its fit, as NLTK's TnT remembers what it found out about words; "again" is a second time.
Memory is the peak of a fork of the process for each fit. NLTK's HMM tags few sentences.
"""

from __future__ import annotations

import functools
import gc
import json
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import _measure
import _pos_data
import numpy as np
import scipy.sparse as sp
from _pos_data import Halves, Part
from pos_tagging import SPELLING, quietly, suffixes
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB

from crfkit import HMMClassifier, MEMMClassifier, PackedSequences, TokenClassifier
from crfkit._parallel import return_memory
from crfkit.features.word_table import Lines, StringNumbers, together
from crfkit.generative.emissions import Categorical, Multinomial
from crfkit.metrics import flat_accuracy_score

SET = "ewt, upos"
REPEATS = 3
# Repeats of theirs, and of ours, which take no time; and sentences that they tag (None: all), of
# which NLTK's HMM tags few, and fewer where there are many tags.
OF_SETS: dict[str, tuple[int, int, dict[str, int | None]]] = {
    "ewt, upos": (5, 25, {"NLTK's HMM": 600, "NLTK's TnT": None}),
    "ewt, xpos": (3, 15, {"NLTK's HMM": 100, "NLTK's TnT": None}),
    "brown": (2, 8, {"NLTK's HMM": 30, "NLTK's TnT": 8_000}),
}
C2 = 0.1
TO_LEARN = 4_000  # sentences of the models of scikit-learn
QUICK = 400

Model = Any
Job = Callable[[], Any]


def spent(function: Job, n_jobs: int = 1) -> tuple[float, Any]:
    """Return the seconds of a call, and what it returns."""
    clock = time.process_time if n_jobs == 1 else time.perf_counter
    started = clock()
    found = function()
    return clock() - started, found


def least(function: Job, repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the processor seconds of the fastest of a few calls, and what it returns."""
    runs = [spent(function) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def fastest(
    make: Callable[[int], Any],
    use: Callable[[Any], Any],
    threads: tuple[int, ...] = (1, 2),
    repeats: int = REPEATS,
) -> dict[str, Any]:
    """Return what a model takes to be fitted and to be used once, by threads."""
    found: dict[str, Any] = {}
    use(make(1))  # compiles
    for n_jobs in threads:
        least = np.min([_once(make, use, n_jobs) for _ in range(repeats)], axis=0).tolist()
        found[f"{n_jobs} threads"] = dict(zip(("fit", "use"), least, strict=True))
    return found


def _once(make: Callable[[int], Any], use: Callable[[Any], Any], n_jobs: int) -> Any:
    """Return the seconds of a fit and of what is done with it; no other model is in memory."""
    gc.collect()
    fit, model = spent(functools.partial(make, n_jobs), n_jobs)
    return fit, spent(functools.partial(use, model), n_jobs)[0]


def pairs(part: Part) -> list[list[tuple[str, str]]]:
    """Return sentences as NLTK takes them."""
    return [list(zip(*one, strict=True)) for one in zip(*part, strict=True)]


def nltk_hmm(train: Part) -> Model:
    """Return NLTK's tagger of order one, with its usual smoothing."""
    from nltk.tag.hmm import HiddenMarkovModelTagger

    return HiddenMarkovModelTagger.train(pairs(train))


def nltk_tnt(train: Part) -> Model:
    """Return NLTK's tagger of order two, with its usual suffixes."""
    from nltk.tag.tnt import TnT

    model = TnT()
    model.train(pairs(train))
    return model


def our_hmm(train: Part, n_jobs: int) -> HMMClassifier:
    """Return a model like that of `nltk_hmm`."""
    return HMMClassifier(emissions=Categorical(alpha=0.1), n_jobs=n_jobs).fit(*train)


def our_tnt(train: Part, n_jobs: int) -> HMMClassifier:
    """Return a model like that of `nltk_tnt`."""
    return suffixes(2).set_params(n_jobs=n_jobs).fit(*train)


TAGGERS: dict[str, tuple[Callable[[Part], Model], Callable[[Part, int], Any]]] = {
    "NLTK's HMM": (nltk_hmm, our_hmm),
    "NLTK's TnT": (nltk_tnt, our_tnt),
}


def taggers(peer: str, limit: int | None, name: str = SET) -> dict[str, Any]:
    """Compare a tagger of NLTK, from words and tags to tags."""
    train, test = _pos_data.halves(name, limit)
    repeats, of_ours, to_tag = OF_SETS[name]
    few = Part(test.words[: to_tag[peer]], test.tags[: to_tag[peer]])

    def tags_of(model: Model) -> _pos_data.Strings:
        return [[tag for _, tag in model.tag(words)] for words in few.words]

    theirs = fastest(lambda _: TAGGERS[peer][0](train), tags_of, (1,), repeats)
    their_fit, their_use = theirs["1 threads"]["fit"], theirs["1 threads"]["use"]
    again, their_tags = least(functools.partial(tags_of, TAGGERS[peer][0](train)), repeats)
    paired, _ = least(functools.partial(pairs, train), repeats)
    make = functools.partial(TAGGERS[peer][1], train)
    ours = fastest(make, lambda model: model.predict(test.words), (1, 2, 4), of_ours)
    model = make(1)
    accuracy = {"crfkit": model.predict(few.words), peer: their_tags}
    return {
        "tokens": train.n_tokens,
        "peer seconds": {"fit": their_fit, "use": their_use, "again": again, "pairs": paired},
        "crfkit seconds": ours,
        "tokens a second": {
            peer: few.n_tokens / their_use,
            **{n: test.n_tokens / run["use"] for n, run in ours.items()},
        },
        "times": {
            n: {"fit": their_fit / run["fit"],
                "tagging": (their_use / few.n_tokens) / (run["use"] / test.n_tokens),
                "fit and tagging of the other half":
                    (their_fit + their_use * test.n_tokens / few.n_tokens)
                    / (run["fit"] + run["use"])}
            for n, run in ours.items()
        },
        "accuracy, %": {
            name: 100.0 * flat_accuracy_score(few.tags, tags) for name, tags in accuracy.items()
        },
    }  # fmt: skip


class Numbers(dict[str, int]):
    """Numbers of strings in the order of their appearance."""

    def __missing__(self, string: str) -> int:
        """Return the next number."""
        number = self[string] = len(self)
        return number


def passed(part: _pos_data.Strings) -> None:
    """Look at each string, and do nothing."""
    for row in part:
        for _ in row:
            pass


def by_dict(part: _pos_data.Strings) -> np.ndarray:
    """Return the numbers of strings."""
    return np.fromiter(map(Numbers().__getitem__, chain.from_iterable(part)), np.int32)


READERS: dict[str, Callable[[_pos_data.Strings], Any]] = {
    "a `for` loop that does nothing": passed,
    "joined, sentence by sentence": lambda part: "\n".join(map("\n".join, part)),
    "joined, many sentences at a time": (
        lambda part: "\n".join(map("\n".join, together(part, sum(map(len, part)))))
    ),
    "the same, encoded, and the lines found": lambda part: Lines.of(part, sum(map(len, part))),
    "the same, and numbered": lambda part: StringNumbers().of(part, sum(map(len, part))),
    "numbered by a dict": by_dict,
}


def reading(limit: int | None) -> dict[str, float]:
    """Return the seconds of reading the strings of the training data, beside those of a fit."""
    train = _pos_data.halves(SET, limit).train
    found = {
        name: least(lambda read=read: [read(part) for part in train], OF_SETS[SET][1])[0]
        for name, read in READERS.items()
    }
    found["fit as NLTK's TnT"] = least(lambda: our_tnt(train, 1), OF_SETS[SET][1])[0]
    return found


class Design:
    """Attributes of tokens as a matrix, labels as numbers, and the label before as columns."""

    def __init__(self, X: PackedSequences, tags: _pos_data.Strings, classes: list[str]) -> None:
        self.X, self.tags = X, tags
        number = {name: k for k, name in enumerate(classes)}
        self.codes = np.array([number.get(tag, -1) for row in tags for tag in row])
        values = np.ones(len(X.indices)) if X.values is None else X.values
        self.tokens = sp.csr_matrix((values, X.indices, X.indptr), (X.n_tokens, X.n_features))
        first = np.zeros(X.n_tokens, bool)
        first[X.offsets[:-1]] = True
        before = np.where(first, len(classes), np.roll(self.codes, 1))
        rows = np.arange(X.n_tokens)
        steps = sp.csr_matrix((np.ones(len(rows)), (rows, before)), (len(rows), len(classes) + 1))
        self.with_steps = sp.hstack([self.tokens, steps]).tocsr()


@functools.cache
def designs(limit: int | None) -> tuple[Design, Design, list[str]]:
    """Return what is learned from, what is judged by, and the labels."""
    train, test = _pos_data.halves(SET, limit)
    few = Halves(Part(*(rows[:TO_LEARN] for rows in train)),
                 Part(*(rows[:TO_LEARN] for rows in test)))  # fmt: skip
    packed = _pos_data.packed(few, SPELLING)
    classes = sorted({tag for tags in few.train.tags for tag in tags})
    learned, judged = (Design(X, part.tags, classes)
                       for X, part in zip(packed, few, strict=True))  # fmt: skip
    return learned, judged, classes


def our_memm(
    X: PackedSequences, tags: _pos_data.Strings, n_jobs: int, every: bool = True
) -> MEMMClassifier:
    """Return a MEMM that has all weights, as scikit-learn's models, or those of seen pairs."""
    model = MEMMClassifier(
        c2=C2, all_possible_states=every, all_possible_transitions=True, boundary_weights=True,
        n_jobs=n_jobs,
    )  # fmt: skip
    return quietly(model.fit, X, tags)


def memm_weights(model: MEMMClassifier) -> np.ndarray:
    """Return the weights of the design with steps."""
    return np.vstack([model.coef_.toarray(), model.transitions_, model.start_weights_])


def loss_and_penalty(design: sp.csr_matrix, codes: np.ndarray, weights: np.ndarray) -> float:
    """Return the objective of logistic regression of all labels together."""
    scores = design @ weights
    top = scores.max(axis=1)
    log_z = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return float((log_z - scores[np.arange(len(codes)), codes]).sum() + C2 * (weights**2).sum())


def saga(**options: Any) -> LogisticRegression:
    """Return scikit-learn's logistic regression by SAGA, with our penalty."""
    return LogisticRegression(C=0.5 / C2, solver="saga", fit_intercept=False, **options)


def one_against_rest(design: sp.csr_matrix, codes: np.ndarray) -> Model:
    """Return a model of each label against all others."""
    return quietly(OneVsRestClassifier(saga(random_state=0)).fit, design, codes)


def memm(limit: int | None) -> dict[str, Any]:
    """Compare training a MEMM with SAGA on the same design, one against rest and all together."""
    learned, judged, classes = designs(limit)
    codes, known = learned.codes, judged.codes >= 0
    their_fit, rest = least(lambda: one_against_rest(learned.with_steps, codes))
    joint_fit, joint = least(lambda: quietly(saga(random_state=0).fit, learned.with_steps, codes))
    ours = fastest(
        functools.partial(our_memm, learned.X, learned.tags), lambda model: model.predict(judged.X)
    )
    few = fastest(
        functools.partial(our_memm, learned.X, learned.tags, every=False),
        lambda model: model.predict(judged.X),
    )
    model = our_memm(learned.X, learned.tags, 1)
    small = our_memm(learned.X, learned.tags, 1, every=False)
    weights = memm_weights(model)
    scores = {
        "crfkit": judged.with_steps @ weights,
        "crfkit, seen pairs": judged.with_steps @ memm_weights(small),
        "one against rest": rest.decision_function(judged.with_steps),
        "all labels": joint.decision_function(judged.with_steps),
    }
    truth = judged.codes[known]
    joint_weights = np.zeros_like(weights)
    joint_weights[:, joint.classes_] = joint.coef_.T
    fits = {n: run["fit"] for n, run in ours.items()}
    return {
        "tokens": len(codes), "labels": len(classes), "columns": learned.with_steps.shape[1],
        "seconds": {"one against rest": their_fit, "all labels": joint_fit, **fits,
                    **{f"seen pairs, {n}": run["fit"] for n, run in few.items()}},
        "times": {
            name: {n: seconds / ours_fit for n, ours_fit in fits.items()}
            for name, seconds in (("one against rest", their_fit), ("all labels", joint_fit))
        },
        "objective": {
            "crfkit": loss_and_penalty(learned.with_steps, codes, weights),
            "all labels": loss_and_penalty(learned.with_steps, codes, joint_weights),
        },
        "passes": {
            "crfkit": model.n_iter_, "crfkit, seen pairs": small.n_iter_,
            "all labels": int(np.max(joint.n_iter_)),
            "one against rest": [int(one.n_iter_[0]) for one in rest.estimators_],
        },
        "accuracy with the true label before, %": {
            name: 100.0 * float(np.mean(found[known].argmax(axis=1) == truth))
            for name, found in scores.items()
        },
    }  # fmt: skip


def tokens(kind: str, limit: int | None) -> dict[str, Any]:
    """Compare models of single tokens."""
    learned, judged, _ = designs(limit)
    theirs, ours = SINGLE[kind]
    their_fit, peer = least(lambda: quietly(theirs().fit, learned.tokens, learned.codes))
    their_use, their_codes = least(lambda: peer.predict(judged.tokens))
    found = fastest(
        lambda n_jobs: quietly(ours(n_jobs).fit, learned.X, learned.tags),
        lambda model: model.predict(judged.X),
    )
    model = quietly(ours(1).fit, learned.X, learned.tags)
    number = {name: k for k, name in enumerate(model.classes_)}
    own = np.array([number[tag] for row in model.predict(judged.X) for tag in row])
    return {
        "tokens": len(learned.codes), "peer": type(peer).__name__,
        "peer seconds": {"fit": their_fit, "use": their_use}, "crfkit seconds": found,
        "times": {n: {"fit": their_fit / run["fit"], "tagging": their_use / run["use"]}
                  for n, run in found.items()},
        "accuracy, %": {
            name: 100.0 * float(np.mean(codes == judged.codes))
            for name, codes in (("crfkit", own), ("scikit-learn", their_codes))
        },
        "labels that are the same, %": 100.0 * float(np.mean(own == their_codes)),
    }  # fmt: skip


SINGLE: dict[str, tuple[Callable[[], Model], Callable[[int], Any]]] = {
    "naive Bayes": (
        lambda: MultinomialNB(alpha=1.0),
        lambda n_jobs: HMMClassifier(order=0, emissions=Multinomial(alpha=1.0), n_jobs=n_jobs),
    ),
    "logistic regression": (
        lambda: LogisticRegression(C=0.5 / C2, fit_intercept=False, max_iter=1_000),
        lambda n_jobs: TokenClassifier(c2=C2, all_possible_states=True, n_jobs=n_jobs),
    ),
}


def fits(limit: int | None) -> dict[str, Job]:
    """Return one fit of words and tags of each kind, to measure the memory of."""
    train = _pos_data.halves(SET, limit).train
    found: dict[str, Job] = {}
    for peer, (theirs, ours) in TAGGERS.items():
        found[peer] = functools.partial(theirs, train)
        found[f"crfkit as {peer}"] = functools.partial(ours, train, 1)
    return found


def fits_of_designs(limit: int | None) -> dict[str, Job]:
    """Return one fit of attributes of each kind, to measure the memory of."""
    learned = designs(limit)[0]
    X, tags, codes = learned.X, learned.tags, learned.codes
    found: dict[str, Job] = {
        "SAGA, one against rest": lambda: one_against_rest(learned.with_steps, codes),
        "crfkit, MEMM": lambda: our_memm(X, tags, 1),
    }
    for kind, (theirs, ours) in SINGLE.items():
        found[f"scikit-learn, {kind}"] = lambda make=theirs: quietly(
            make().fit, learned.tokens, codes
        )
        found[f"crfkit, {kind}"] = lambda make=ours: quietly(make(1).fit, X, tags)
    return found


MEASURED = {"taggers": fits, "designs": fits_of_designs}


def peaks(kind: str, limit: int | None) -> dict[str, float]:
    """Return what each fit takes beyond what is there before it, in MiB, in a fork of this one."""
    jobs, context = MEASURED[kind](limit), multiprocessing.get_context("fork")
    for name, job in jobs.items():
        if name.startswith("crfkit"):
            job()  # compiles
    found, answers = {}, context.SimpleQueue()
    for name, job in jobs.items():
        return_memory(1 << 30)
        process = context.Process(target=_peak, args=(job, answers))
        process.start()
        found[name] = answers.get()
        process.join()
    return found


def _peak(job: Job, answers: Any) -> None:
    """Tell by how much a call raises the memory of this process."""
    before = _measure.rss_mib()
    job()
    answers.put(_measure.peak_mib() - before)


def memory(limit: int | None) -> dict[str, float]:
    """Return the memory of each fit."""
    more = [] if limit is None else [str(limit)]
    found: dict[str, float] = {}
    for kind in MEASURED:
        found |= _measure.in_child("family_speed.py", kind, *more)
    return found


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit = QUICK if quick else None
    found: dict[str, Callable[[], dict[str, Any]]] = {
        peer if name == SET else f"{peer}, {name}": functools.partial(taggers, peer, limit, name)
        for name in OF_SETS
        for peer in TAGGERS
    }
    found["reading"] = functools.partial(reading, limit)
    found["MEMM"] = functools.partial(memm, limit)
    found |= {kind: functools.partial(tokens, kind, limit) for kind in SINGLE}
    found["memory"] = functools.partial(memory, limit)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it all."""


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _, of, *some = sys.argv
    print(json.dumps(peaks(of, int(some[0]) if some else None)))
