"""Finite automata that read the codes of sequences.

Shapes: ``N`` tokens of ``S`` sequences, ``C`` codes, ``A`` automata, ``Q`` states at most.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import BoolArray, CodeArray, IntArray
from crfkit.compiler.jit import kernel


class AutomatonTables(NamedTuple):
    """Automata side by side. A code after a code is listed for those that it may move. Read-only.

    The code ``C`` stands before the first token.
    """

    begins: IntArray  # ((C + 1) C + 1,) where the lists of pairs of codes begin, and the end
    which: IntArray  # (n,) the automata that are listed
    symbol: IntArray  # (n,) what each of them reads
    step: IntArray  # (A, Q, n_symbols) the next state, -1 for none
    accepts: BoolArray  # (A, Q)


@kernel
def automata_reject(
    tables: AutomatonTables,
    n_codes: int,
    offsets: IntArray,  # (S + 1,)
    codes: CodeArray,  # (N,)
    state: IntArray,  # (A,) workspace
    rejected: BoolArray,  # (S, A) out
) -> None:
    """Tell which automata do not accept which sequences."""
    begins, which, symbol, step = tables.begins, tables.which, tables.symbol, tables.step
    for s in range(offsets.shape[0] - 1):
        for a in range(state.shape[0]):
            state[a] = 0
        before = n_codes
        for t in range(offsets[s], offsets[s + 1]):
            pair = before * n_codes + codes[t]
            for place in range(begins[pair], begins[pair + 1]):
                a = which[place]
                if state[a] >= 0:
                    state[a] = step[a, state[a], symbol[place]]
            before = codes[t]
        for a in range(state.shape[0]):
            rejected[s, a] = state[a] < 0 or not tables.accepts[a, state[a]]
