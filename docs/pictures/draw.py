"""Draws the pictures of the pages: python docs/pictures/draw.py writes the .svg files beside it.

Lines and letters have the color of the text around them, so that one picture serves light and dark.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, VIOLET = (f"var(--crf-{i}, {c})" for i, c in enumerate(
    ("#1e88e5", "#f4511e", "#43a047", "#8e24aa"), 1))  # fmt: skip
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


def write(name, width, height, *parts):
    """Write a picture."""
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
        'fill="context-stroke"/></marker></defs>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" fill="currentColor">'
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


if __name__ == "__main__":
    architecture()
