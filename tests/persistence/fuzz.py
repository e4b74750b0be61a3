"""Damage model files at random, with and without right checksums, and see what comes of it.

``python -m tests.persistence.fuzz --count 10000`` prints how many cases ended how. A case must end
as one of GOOD; a crash of the interpreter is seen because batches run in processes of their own.
"""

import argparse
import collections
import copy
import hashlib
import json
import random
import resource
import struct
import subprocess
import sys
import time
import warnings

from crfkit.persistence import ModelFileError, dumps, loads
from crfkit.persistence.container import MAGIC
from tests.persistence import models

PREAMBLE = struct.Struct("<64sQQQQ32s")
REFUSED, SAME, STRANGER = "refused", "same model", "another thing"
# The answer to data that the model cannot predict for: other attributes, forbidden labels.
OTHER, OTHER_REFUSES = "another valid model", "another model, prediction is refused"
GOOD = (REFUSED, SAME, OTHER, OTHER_REFUSES, STRANGER)
NUMBERS = [
    -1,
    0,
    1,
    2,
    3,
    7,
    63,
    64,
    65,
    2**31 - 1,
    2**31,
    2**32,
    2**60,
    2**63 - 1,
    2**63,
    -(2**63),
]
NASTY = [
    *NUMBERS, None, True, False, "", "A", "\ud800", 1.5, -0.0, 1e308, [], {}, [[]], [None],
    ["ref", 0], ["ref", -1], ["ref", 10**9], ["ref", 1.0], ["int", "0x" + "f" * 60], ["int", "?"],
    ["float", "nan"], ["float", "inf"], ["float", "0"], ["scalar", "<f8", "00" * 8],
    ["scalar", "|O", "00" * 8], ["scalar", "<M8[D]", "00" * 8], ["str_", "B"], {"numbers": 0},
    {"numbers": -1}, {"strings": [0, 1]}, {"strings": [0, 0]}, [2**60], [2**31, 2**31], [0, 2**47],
    "<f8", "<f4", "<i8", "<i4", "|b1", "|u1", "|O", "<U4", "|V8", "<c16", "<M8[D]", "csr_array",
    "csr_matrix", "crfkit.CRFClassifier", "crfkit.LBFGS", "crfkit.PackedSequences",
    "crfkit.SequenceVectorizer", "crfkit.LabelSequences", "crfkit.IterationRecord",
    "crfkit.ViterbiDecoder", "sklearn.Pipeline", "os.system", "list", "tuple", "set", "dict",
    "bytes", "array", "objects", "csr", "object", "record", "function", ["function", "os:system"],
    ["object", "crfkit.ViterbiDecoder", None], ["list", []], "coef_", "_predictor", "classes_",
]  # fmt: skip


def assemble(header, data, *, text=None):
    """Return a file with right sizes and a right checksum of the header."""
    body = text or json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogatepass")
    start = -(-(PREAMBLE.size + len(body)) // 64) * 64
    sizes = PREAMBLE.pack(MAGIC, 1, len(body), start + len(data), 0, b"")[:96]
    digest = hashlib.blake2b(sizes + body, digest_size=32).digest()
    return sizes + digest + body + bytes(start - PREAMBLE.size - len(body)) + bytes(data)


def take_apart(file):
    """Return the header and the bytes of the arrays."""
    size = PREAMBLE.unpack_from(file)[2]
    body = file[PREAMBLE.size : PREAMBLE.size + size]
    start = -(-(PREAMBLE.size + size) // 64) * 64
    return json.loads(body.decode("utf-8", "surrogatepass")), bytearray(file[start:])


def seal(header, data):
    """Make the checksums of the arrays right."""
    for spec in header["arrays"]:
        size = struct.calcsize("b") * int(spec["dtype"][2])
        for length in spec["shape"]:
            size *= length
        part = data[spec["offset"] : spec["offset"] + size]
        spec["checksum"] = hashlib.blake2b(part, digest_size=16).hexdigest()


def flip_bits(rng, file):
    changed = bytearray(file)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(rng, file):
    return file[: rng.randrange(len(file))]


def splice(rng, file):
    other = rng.choice(models.stored())
    a, b = sorted(rng.randrange(len(file)) for _ in range(2))
    c, d = sorted(rng.randrange(len(other)) for _ in range(2))
    return file[:a] + other[c:d] + file[rng.choice([a, b, a + d - c]) :]


def edit_preamble(rng, file):
    """Change a number of the preamble; its checksum is made right half of the time."""
    magic, *fields, digest = PREAMBLE.unpack_from(file)
    fields[rng.randrange(4)] = rng.choice([0, 1, 2, 64, 65, 2**31, len(file) - 1, len(file) + 1])
    sizes = PREAMBLE.pack(magic, *fields, digest)[:96]
    body = file[PREAMBLE.size : PREAMBLE.size + fields[1]]
    if rng.random() < 0.5:
        digest = hashlib.blake2b(sizes + body, digest_size=32).digest()
    return sizes + digest + file[PREAMBLE.size :]


def nodes(tree):
    """Yield all containers of a tree of JSON, but for the texts that only describe."""
    stack = [tree["table"], tree["arrays"], {"root": tree["root"]}]
    while stack:
        node = stack.pop()
        if node:
            yield node
        children = node.values() if isinstance(node, dict) else node
        stack.extend(child for child in children if isinstance(child, (list, dict)))


def edit_tree(rng, tree):
    """Change one place of a tree of JSON."""
    node = rng.choice(list(nodes(tree)))
    keys = list(node) if isinstance(node, dict) else range(len(node))
    key, other = rng.choice(keys), rng.choice(keys)
    action = rng.randrange(5)
    if action == 0:
        del node[key]
    elif action == 1:
        node[key], node[other] = node[other], node[key]
    elif action == 2 and isinstance(node, list):
        node.insert(key, copy.deepcopy(node[other]))
    elif action == 3 and type(node[key]) in (int, float):
        node[key] += rng.choice([-1, 1, 2, 64])
    else:
        node[key] = copy.deepcopy(rng.choice(NASTY))


def edit_header(rng, file):
    """Change the header and make its checksum right."""
    header, data = take_apart(file)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        edit_tree(rng, header)
    return assemble(header, data)


def swap_entries(rng, file):
    """Exchange, repeat or copy in entries of the table; the checksum is right."""
    header, data = take_apart(file)
    table = header["table"]
    other = take_apart(rng.choice(models.stored()))[0]["table"]
    a, b = rng.randrange(len(table)), rng.randrange(len(table))
    table[a] = rng.choice([table[b], rng.choice(other), ["tuple", [["ref", b]] * 3]])
    return assemble(header, data)


def edit_arrays(rng, file):
    """Change elements of the arrays and make all checksums right."""
    header, data = take_apart(file)
    if not header["arrays"]:
        return edit_header(rng, file)
    for _ in range(rng.choice([1, 1, 2, 5])):
        spec = rng.choice([spec for spec in header["arrays"] if 0 not in spec["shape"]])
        size, kind = int(spec["dtype"][2]), spec["dtype"][1]
        code = {"i": "bhiq", "u": "BHIQ", "f": "  fd"}[kind][size.bit_length() - 1]
        count = 1
        for length in spec["shape"]:
            count *= length
        value = rng.choice([*NUMBERS, 100, 255, 256])
        if kind == "f":
            value = rng.choice([float("nan"), float("inf"), float("-inf"), 1e300, -0.0])
        else:
            bits = 8 * size
            value = value % 2**bits - (2 ** (bits - 1) if kind == "i" and rng.random() < 0.5 else 0)
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if kind == "i" else (0, 2**bits)
            value = min(max(value, low), high - 1)
        struct.pack_into("<" + code, data, spec["offset"] + size * rng.randrange(count), value)
    seal(header, data)
    return assemble(header, data)


def retype_arrays(rng, file):
    """Read the bytes of an array as another type or shape; all checksums are right."""
    header, data = take_apart(file)
    if not header["arrays"]:
        return edit_header(rng, file)
    spec = rng.choice(header["arrays"])
    spec["dtype"] = rng.choice(["<f8", "<i8", "<u8", "<M8[D]", "<f4", "<i4", "|u1", "|b1"])
    if rng.random() < 0.5 and spec["shape"]:
        length = spec["shape"][-1]
        spec["shape"] = rng.choice([[length, 1], [1, length], [], [length // 2, 2], [length + 1]])
    try:
        seal(header, data)
    except ValueError:
        pass
    return assemble(header, data)


def nest_json(rng, file):
    """Nest the JSON itself, the table, or a key more deeply than anything can take."""
    header, data = take_apart(file)
    depth = rng.choice([100, 1000, 100_000])
    kind = rng.randrange(3)
    if kind == 0:
        return assemble(header, data, text=b"[" * depth + b"]" * depth)
    width = rng.choice([1, 2])
    depth = depth if kind == 1 else rng.choice([40, 60])
    table = [["tuple", []], *(["tuple", [["ref", n]] * width] for n in range(depth))]
    header["table"] = [*table, ["dict", [["ref", depth]], [0]]]
    header["root"] = ["ref", depth + 1]
    return assemble(header, data)


PLAIN = [flip_bits, truncate, splice]
SEALED = [edit_preamble, edit_header, edit_header, edit_header, swap_entries, edit_arrays,
          edit_arrays, retype_arrays]  # fmt: skip


def mutate(seed):
    """Return the name of a mutation, the file before and after it."""
    rng = random.Random(seed)
    file = rng.choice(models.stored())
    mutation = rng.choice([*PLAIN, *SEALED, *SEALED]) if rng.random() < 0.98 else nest_json
    return mutation, file, mutation(rng, file)


def outcome(mutation, file, changed):
    """Load a changed file and use what it holds."""
    try:
        loaded = loads(changed)
    except ModelFileError:
        return REFUSED
    except ValueError as error:
        return REFUSED if "allow=" in str(error) else f"ValueError: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    same = dumps_or_none(loaded) == file
    if same:
        return SAME
    if mutation in PLAIN:
        return "undetected damage"
    if kinds_of(loaded) != kinds_of(models.made()[models.stored().index(file)]):
        return STRANGER
    try:
        models.predictions(loaded)
    except ValueError:
        return OTHER_REFUSES
    except Exception as error:
        return f"prediction raises {type(error).__name__}: {error}"
    return OTHER


def kinds_of(made):
    """The type of a thing, and those of its items or steps."""
    parts = list(made.items()) if isinstance(made, dict) else getattr(made, "steps", [])
    return type(made), [(name, type(part)) for name, part in parts]


def dumps_or_none(loaded):
    try:
        return dumps(loaded)
    except Exception:  # another model, of a state that no model has
        return None


def work(first, count):
    """Run cases in this process; the number of each is printed first, to be found in a crash."""
    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        print(json.dumps({"seed": seed}), flush=True)
        mutation, file, changed = mutate(seed)
        started = time.process_time()
        result = outcome(mutation, file, changed)
        seconds = time.process_time() - started
        if seconds > 10:
            result = f"slow: {result}"
        print(json.dumps({"kind": mutation.__name__, "result": result}), flush=True)
    print(json.dumps({"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)


def run_batch(first, count):
    """Return the outcomes of a batch that runs in a process of its own, and its peak memory."""
    command = [sys.executable, "-m", "tests.persistence.fuzz", "--work", str(first), str(count)]
    done = subprocess.run(command, cwd=models.ROOT, capture_output=True, text=True, timeout=900)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    results = [(line["kind"], line["result"]) for line in lines if "result" in line]
    if done.returncode or "memory" not in lines[-1]:
        last = [line["seed"] for line in lines if "seed" in line][-1:]
        results.append(("crash", f"exit {done.returncode} at {last}: {done.stderr[-400:]}"))
    return results, lines[-1].get("memory", 0) if lines else 0


def run(first, count, batch=500):
    """Return how many cases ended how, by kind of mutation, and the peak memory in KiB."""
    counts, memory = collections.Counter(), 0
    for start in range(first, first + count, batch):
        results, peak = run_batch(start, min(batch, first + count - start))
        counts.update(results)
        memory = max(memory, peak)
    return counts, memory


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--work", type=int, nargs=2)
    options = parser.parse_args()
    if options.work:
        work(*options.work)
        return
    counts, memory = run(options.first, options.count)
    for (kind, result), n in sorted(counts.items()):
        print(f"{n:6d}  {kind:14s}  {result}")
    print(f"{sum(counts.values())} cases, peak memory of a batch {memory // 1024} MiB")
    bad = sum(n for (_, result), n in counts.items() if not result.startswith(GOOD))
    sys.exit(f"{bad} bad" if bad else None)


if __name__ == "__main__":
    main()
