"""Draws the pictures of the pages: python docs/pictures/draw.py writes the .svg files beside it.

Lines and letters have the color of the text around them, so that one picture serves light and dark.
"""

from __future__ import annotations

import math
from html import escape
from itertools import product
from pathlib import Path

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, VIOLET = (f"var(--crf-{i}, {c})" for i, c in enumerate(
    ("#1e88e5", "#f4511e", "#43a047", "#8e24aa"), 1))  # fmt: skip
BACK = "var(--md-default-bg-color, #fff)"
SOFT = "var(--crf-soft, rgba(120,130,150,.14))"


def text(x, y, words, size=13, anchor="middle", color="currentColor", **more):
    """Return a line of text; lines are separated by newlines."""
    style = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in more.items())
    lines = escape(words).split("\n")
    spans = "".join(
        f'<tspan x="{x:g}" dy="{0 if i == 0 else size * 1.3:g}">{line}</tspan>'
        for i, line in enumerate(lines)
    )
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{color}"{style}>{spans}</text>'
    )


def box(x, y, width, height, words="", color="currentColor", fill=SOFT, size=13, round_=6):
    """Return a rectangle with lines of text in its middle."""
    lines = words.count("\n") + 1
    first = y + height / 2 - (lines - 1) * size * 0.65 + size * 0.35
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_}" '
        f'fill="{fill}" stroke="{color}" stroke-width="1.3"/>'
    ) + (text(x + width / 2, first, words, size) if words else "")


def circle(x, y, words, color="currentColor", fill=SOFT, radius=22, size=13):
    """Return a circle with a word in it."""
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" fill="{fill}" stroke="{color}" '
        'stroke-width="1.6"/>'
    ) + text(x, y + size * 0.35, words, size)


def line(x1, y1, x2, y2, color="currentColor", width=1.3, arrow=False, dash="", opacity=1.0):
    """Return a line, with a point at its end if it is an arrow."""
    end = ' marker-end="url(#tip)"' if arrow else ""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" fill="none" stroke="{color}" '
        f'stroke-width="{width:g}" stroke-opacity="{opacity:g}"{dashes}{end}/>'
    )


def write(name, width, height, *parts, scale=1.0):
    """Write a picture, `scale` times as large where there is room."""
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
        'fill="context-stroke"/></marker></defs>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width * scale:g}" height="{height * scale:g}" '
        'font-family="system-ui, sans-serif" fill="currentColor">'
    )
    body = "\n".join([head, tip, *parts, "</svg>"])
    (HERE / f"{name}.svg").write_text(body + "\n", encoding="utf-8")


def architecture():
    """Draw how data become predictions."""
    left = [
        box(10, 60, 170, 50, "X: dicts, templates,\nmatrices"),
        box(10, 190, 170, 50, "y: labels, tags,\nsegments"),
        line(180, 85, 222, 85, arrow=True), line(180, 215, 222, 215, arrow=True),
        text(201, 78, "features/", 10), text(201, 208, "labels/", 10),
        box(225, 60, 150, 50, "PackedSequences,\nTopology (data/)"),
        box(225, 190, 150, 50, "codes,\nTargets"),
    ]  # fmt: skip
    names = [
        (60, "PotentialsModel\npotentials/", BLUE),
        (125, "Structure\nstructures/, kernels/", GREEN),
        (190, "Loss\nlosses/", ORANGE),
        (255, "Objective\nobjective/", VIOLET),
    ]
    middle = [
        '<rect x="410" y="18" width="392" height="300" rx="10" fill="none" stroke="currentColor" '
        'stroke-opacity=".5" stroke-dasharray="4 4"/>',
        text(606, 38, "training/: Problem, Fit", 12),
        *(box(440, y, 160, 46, words, color) for y, words, color in names),
        line(375, 85, 437, 85, arrow=True), line(375, 215, 437, 213, arrow=True),
        line(520, 106, 520, 124, arrow=True), text(612, 119, "Potentials", 11, "start"),
        line(520, 171, 520, 189, arrow=True),
        text(612, 184, "log Z, marginals, argmax", 11, "start"),
        line(520, 236, 520, 254, arrow=True), text(612, 249, "Counts", 11, "start"),
        box(660, 255, 120, 46, "Solver\nsolvers/", VIOLET),
        line(603, 270, 657, 270, arrow=True), line(657, 287, 603, 287, arrow=True),
        box(690, 60, 96, 46, "Oracle\noracles/"),
        '<path d="M786 106Q800 200 765 252" fill="none" stroke="currentColor" '
        'stroke-dasharray="3 3" marker-end="url(#tip)"/>',
    ]  # fmt: skip
    right = [
        line(780, 278, 838, 278, arrow=True),
        box(840, 248, 150, 60, "FittedModel, Decoder\ninference/", GREEN),
        line(915, 248, 915, 222, arrow=True),
        box(840, 172, 150, 50, "estimators/,\ncompat/, cli/"),
        text(806, 338, "fitted attributes", 11),
    ]  # fmt: skip
    write("architecture", 1000, 350, *left, *middle, *right)


# Drawings that fit a phone, with letters that are large enough to be read there.
ROOMY = 1.25
TOKENS = ("Paris", "Hilton", "sleeps")
LABELS = ("NAME", "PLACE", "O")
COLORS = {"NAME": BLUE, "PLACE": ORANGE, "O": GREEN}
# The scores of docs/what_is_a_crf.md.
UNARY = ((1.0, 2.0, 0.0), (2.0, 0.5, 0.0), (0.0, 0.0, 3.0))
PAIRS = ((1.5, -1.0, 0.5), (-1.0, 0.5, 0.5), (0.5, 0.5, 0.5))


def labelings():
    """Return all labelings with their scores, best first."""
    found = []
    for path in product(range(3), repeat=3):
        unary = sum(UNARY[t][k] for t, k in enumerate(path))
        pairs = sum(PAIRS[i][j] for i, j in zip(path, path[1:], strict=False))
        found.append((unary + pairs, path))
    return sorted(found, reverse=True)


def probabilities():
    """Return all labelings with their probabilities, best first."""
    total = sum(math.exp(score) for score, _ in labelings())
    return [(math.exp(score) / total, path) for score, path in labelings()]


def token_by_token():
    """Draw a classifier of tokens beside a chain."""
    parts = []
    alone = ("PLACE", "NAME", "O")
    together = ("NAME", "NAME", "O")
    for left, title, labels in ((0, "each token alone", alone), (252, "a chain", together)):
        xs = [left + 38 + 78 * t for t in range(3)]
        parts.append(text(xs[1], 20, title, 14, font_weight=600))
        for t, (x, label) in enumerate(zip(xs, labels, strict=True)):
            parts.append(box(x - 32, 40, 64, 34, label, COLORS[label]))
            parts.append(box(x - 32, 124, 64, 34, TOKENS[t], fill="none"))
            parts.append(line(x, 123, x, 78, arrow=True))
            if left and t:
                parts.append(line(xs[t - 1] + 32, 57, x - 32, 57, BLUE, 3))
    parts.append(line(242, 10, 242, 162, opacity=0.3))
    write("crf-tokens", 484, 168, *parts, scale=ROOMY)


def trellis():
    """Draw the nine scores of labels, the scores of pairs, and the best path."""
    best = labelings()[0][1]
    xs, ys = (48, 234, 420), (72, 172, 272)
    parts = []
    for t, i, j in product(range(2), range(3), range(3)):
        on = best[t] == i and best[t + 1] == j
        start, end = (xs[t] + 38, ys[i]), (xs[t + 1] - 38, ys[j])
        parts.append(line(*start, *end, BLUE if on else "currentColor", 4 if on else 1.2,
                          opacity=1 if on else 0.35))  # fmt: skip
        share = (0.5, 0.3, 0.25)[abs(i - j)]
        x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
        parts.append(text(x, y + 4, f"{PAIRS[i][j]:g}", 12, font_weight=700 if on else 400,
                          color=BLUE if on else "currentColor", paint_order="stroke", stroke=BACK,
                          stroke_width=5))  # fmt: skip
    for t, k in product(range(3), range(3)):
        on = best[t] == k
        color = BLUE if on else "currentColor"
        parts.append(box(xs[t] - 38, ys[k] - 24, 76, 48, f"{LABELS[k]}\n{UNARY[t][k]:g}", color))
    for t in range(3):
        parts.append(text(xs[t], 26, TOKENS[t], 15, font_weight=600))
    write("crf-trellis", 468, 304, *parts, scale=ROOMY)


def shares():
    """Draw the most probable labelings as bars."""
    found = probabilities()
    shown = [(" ".join(LABELS[k] for k in path), p) for p, path in found[:5]]
    shown.append((f"the other {len(found) - 5}", sum(p for p, _ in found[5:])))
    parts = []
    for row, (name, p) in enumerate(shown):
        y = 8 + 34 * row
        color = BLUE if row == 0 else "currentColor"
        parts.append(text(140, y + 17, name, 13, "end"))
        parts.append(box(150, y, max(480 * p, 1), 24, color=color, round_=2,
                         fill=BLUE if row == 0 else SOFT))  # fmt: skip
        parts.append(text(157 + 480 * p, y + 17, f"{p:.3f}", 13, "start"))
    write("crf-shares", 440, 206, *parts, scale=ROOMY)


def marginals():
    """Draw the probability of each label of each token."""
    parts = []
    for t, token in enumerate(TOKENS):
        left = 6 + 155 * t
        parts.append(text(left + 65, 22, token, 15, font_weight=600))
        for k, label in enumerate(LABELS):
            p = sum(p for p, path in probabilities() if path[t] == k)
            x, height = left + 46 * k, 120 * p
            color = COLORS[label]
            parts.append(box(x, 165 - height, 38, max(height, 0.5), "", color, color, round_=2))
            parts.append(text(x + 19, 158 - height, f"{p:.2f}", 12))
            parts.append(text(x + 19, 183, label, 12))
    write("crf-marginals", 456, 192, *parts, scale=ROOMY)


def training():
    """Draw the gradient as a difference of counts."""
    pairs = (
        sum(1 for i, j in zip(y, y[1:], strict=False) if i == j == 0) for _, y in probabilities()
    )
    expected = sum(n * p for n, (p, _) in zip(pairs, probabilities(), strict=True))
    count = "count in the data:\nNAME follows NAME\n1 time"
    model = f"count the model expects:\nsum of probabilities\n{expected:.2f} times"
    parts = [
        box(2, 6, 132, 70, count, BLUE, size=12),
        text(147, 47, "\u2212", 22),
        box(160, 6, 150, 70, model, ORANGE, size=12),
        text(323, 46, "=", 20),
        box(336, 6, 146, 70, f"raise the weight of\nNAME \u2192 NAME in\nproportion to "
            f"{1 - expected:.2f}", GREEN, size=12),
    ]  # fmt: skip
    write("crf-training", 484, 82, *parts, scale=ROOMY)


if __name__ == "__main__":
    for picture in (architecture, token_by_token, trellis, shares, marginals, training):
        picture()
