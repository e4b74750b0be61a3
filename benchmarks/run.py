"""The measurements of crfkit against python-crfsuite, and against others that are installed.

    python benchmarks/run.py                                 # all, some hours
    python benchmarks/run.py --quick                         # small data, a few minutes
    python benchmarks/run.py --only training pass            # some parts
    python benchmarks/run.py --only training --cases gmb     # those whose name has "gmb" in it
    python benchmarks/run.py --only training --missing       # those that have no result yet
    python benchmarks/run.py --only training --plot          # draws the last results again

Each part writes its results after each case to ``results/<part>.json`` (other cases keep their last
ones) and draws ``results/*.png``; with ``--quick`` to a temporary folder, or to ``--into``. Needs
``pip install ".[benchmark]"`` and the data (CRFKIT_DATA). ``report.py`` then writes the tables of
the pages.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from types import ModuleType

import _measure
import active_learning
import auto
import batch_size
import calibration
import collective
import constraints
import corrections
import decoders
import decoding
import family_speed
import graphs_approximate
import graphs_margin
import graphs_maximum
import graphs_speed
import graphs_uai
import handwriting
import hmm_speed
import label_bias
import learning_curves
import losses_compare
import losses_genes
import margin
import memory
import mixed_orders
import ordinary_settings
import partial_labels
import passes
import perceptron
import pos_tagging
import scaling
import scene_multilabel
import segments
import skip_chain
import snakes
import solver_history
import solvers_agree
import square
import tagging
import training

PARTS: dict[str, ModuleType] = {
    "ordinary_settings": ordinary_settings,
    "training": training,
    "pass": passes,
    "tagging": tagging,
    "memory": memory,
    "scaling": scaling,
    "solvers_agree": solvers_agree,
    "solver_history": solver_history,
    "square": square,
    "label_bias": label_bias,
    "mixed_orders": mixed_orders,
    "learning_curves": learning_curves,
    "auto": auto,
    "batch_size": batch_size,
    "perceptron": perceptron,
    "margin": margin,
    "handwriting": handwriting,
    "segments": segments,
    "losses_genes": losses_genes,
    "losses_compare": losses_compare,
    "partial_labels": partial_labels,
    "decoders": decoders,
    "decoding": decoding,
    "constraints": constraints,
    "corrections": corrections,
    "calibration": calibration,
    "collective": collective,
    "active_learning": active_learning,
    "hmm_speed": hmm_speed,
    "pos_tagging": pos_tagging,
    "family_speed": family_speed,
    "graphs_maximum": graphs_maximum,
    "graphs_approximate": graphs_approximate,
    "graphs_uai": graphs_uai,
    "graphs_speed": graphs_speed,
    "snakes": snakes,
    "scene_multilabel": scene_multilabel,
    "skip_chain": skip_chain,
    "graphs_margin": graphs_margin,
}


def run(name: str, quick: bool, wanted: str, folder: Path, missing: bool = False) -> None:
    """Run the cases of a part, or those without a result, and write after each."""
    done = _measure.read(name, folder).get("cases", {}) if missing else ()
    for case, measure in PARTS[name].cases(quick).items():
        if wanted in case and case not in done:
            print(f"{name}: {case}", flush=True)
            started = time.perf_counter()
            result = measure()
            print(f"  {time.perf_counter() - started:.0f} s", flush=True)
            results = _measure.read(name, folder)
            results["cases"] = results.get("cases", {}) | {case: result}
            _measure.write(name, results, folder, show=False)


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--solvers", nargs="+", default=[], help="of the part `training`")
    parser.add_argument("--crfsuite-iterations", type=int, help="of the part `training`, at most")
    parser.add_argument(
        "--known-optima", action="store_true", help="of the part `training`, from its last results"
    )
    parser.add_argument("--share", type=float, help="of the part `losses_genes`, of each genome")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--cases", default="", help="only cases with this in their name")
    parser.add_argument("--missing", action="store_true", help="only cases without a result")
    parser.add_argument("--quick", action="store_true", help="small data, to see that all runs")
    parser.add_argument("--plot", action="store_true", help="only draw the last results")
    parser.add_argument("--into", type=Path, help="folder of the results")
    arguments = parser.parse_args()
    training.CHOSEN = set(arguments.solvers)
    losses_genes.SHARE = arguments.share or losses_genes.SHARE
    if arguments.crfsuite_iterations:
        training.CRFSUITE["max_iterations"] = arguments.crfsuite_iterations
    folder = arguments.into or (Path(tempfile.mkdtemp()) if arguments.quick else _measure.RESULTS)
    if arguments.known_optima and not arguments.quick:
        last = _measure.read("training", folder).get("cases", {})
        training.KNOWN = {case: result["optimum"] for case, result in last.items()}
    for name in arguments.only:
        if not arguments.plot:
            run(name, arguments.quick, arguments.cases, folder, arguments.missing)
        results = _measure.read(name, folder)
        if results:
            PARTS[name].plot(results["cases"], folder)
    print(f"results in {folder}")


if __name__ == "__main__":
    main()
