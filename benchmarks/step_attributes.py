"""What attributes of transitions cost: passes over CoNLL-2000 without any, by tag, by word.

    python benchmarks/step_attributes.py

Writes ``results/step_attributes.json``.
"""

from __future__ import annotations

from typing import Any

import _conll
import _measure
import numpy as np
from templates_conll2000 import raw

from crfkit import TemplateFeatures
from crfkit._parallel import ThreadMap
from crfkit.data.labels import LabelStream
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features
from crfkit.structures import Chain

REPEATS = 5
WAYS = {"none": "B", "tag": "B1:%x[0,1]", "tags -1 and 0": "B2:%x[-1,1]/%x[0,1]",
        "word": "B3:%x[0,0]"}  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    unigrams = (_conll.data_home() / "conll2000" / "template.crfpp").read_text().replace("\nB", "")
    rows, stream = raw("train"), LabelStream(_conll.labels("train"))
    codes, n_labels = stream.codes_for(stream.classes()), len(stream.index)
    with ThreadMap(2) as threads:
        objectives: dict[str, Any] = {}
        for name, template in WAYS.items():
            features = TemplateFeatures(f"{unigrams}\n{template}", syntax="crfpp")
            data = features.fit_transform(rows)
            objectives[name] = Objective(
                choose_features(data, codes, n_labels), Chain(), LogLoss(), ElasticNet(0.0, 1.0),
                data, codes, np.ones(data.n_tokens), threads,
            )  # fmt: skip
        starts = {
            name: 0.1 * np.random.default_rng(0).normal(size=objective.n_parameters)
            for name, objective in objectives.items()
        }
        medians = _measure.medians(
            {
                name: lambda name=name: objectives[name].value_and_grad(starts[name])
                for name in WAYS
            },
            REPEATS,
        )
    passes = {
        name: {
            "weights": objectives[name].model.transition_attributes.n_parameters,
            "seconds": medians[name],
        }
        for name in WAYS
    }
    _measure.write("step_attributes", {"tokens": len(codes), "passes": passes})


if __name__ == "__main__":
    main()
