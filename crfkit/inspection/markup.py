"""HTML and text for tables that stay small; colors work on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

# Colors of Okabe and Ito (2008), which color-blind people tell apart.
BLUE, ORANGE = "#0072b2", "#d55e00"
# What comes first in each piece of HTML: colors of text are those of the page around it.
STYLE = """<style>
.crfkit{font:14px/1.45 system-ui,sans-serif;color:inherit;overflow-x:auto;max-width:100%}
.crfkit table{border-collapse:collapse;margin:.3em 1.2em .6em 0;font-size:13px;color:inherit;
background:none}
.crfkit th,.crfkit td{border:0;padding:.1em .55em;text-align:left;white-space:nowrap;
vertical-align:middle;background:none;color:inherit}
.crfkit th{font-weight:600;border-bottom:1px solid rgba(128,128,128,.5)}
.crfkit tbody tr:hover{background:rgba(128,128,128,.12)}
.crfkit td.n,.crfkit th.n{text-align:right;font-variant-numeric:tabular-nums}
.crfkit .row{display:flex;flex-wrap:wrap;align-items:flex-start}
.crfkit .dim{opacity:.7}.crfkit .t{font-weight:600}
.crfkit .bar{display:inline-block;height:.75em;border-radius:2px;vertical-align:middle}
.crfkit code{font-family:ui-monospace,monospace;background:none;color:inherit;font-size:12.5px}
</style>"""
LONGEST_NAME = 60  # letters of a name that are shown
_NAMES = ("attribute", "from_label", "label")


def page(body: str, title: str = "crfkit") -> str:
    """Return a whole HTML page with nothing from outside; light or dark, as the reader has it."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>:root{{color-scheme:light dark}}"
        "body{background:Canvas;color:CanvasText;margin:1.2em auto;max-width:70em;padding:0 1em}"
        f"</style></head><body>{body}</body></html>\n"
    )


def framed(*parts: str) -> str:
    """Return pieces of HTML as one, in the style of the package."""
    return f'{STYLE}<div class="crfkit">{"".join(parts)}</div>'


def short(name: Any, most: int = LONGEST_NAME) -> str:
    """Return the text of a name, its middle left out where it is long."""
    text = str(name)
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def code(name: Any) -> str:
    """Return a name as HTML: the whole of it is shown when it is pointed at."""
    text, shown = str(name), short(name)
    title = "" if shown == text else f' title="{escape(text[:1000])}"'
    return f"<code{title}>{escape(shown)}</code>"


def frame_of(rows: Sequence[Any], fields: Sequence[str]) -> Any:
    """Return a pandas DataFrame of tuples.

    Attributes and labels stay what they are: integers beside None would become floats.
    """
    pandas = import_pandas()
    frame = pandas.DataFrame(rows, columns=list(fields))
    for place, name in enumerate(fields):
        if name in _NAMES:
            frame[name] = pandas.Series([row[place] for row in rows], dtype=object)
    return frame


def number(value: float, digits: int = 3) -> str:
    """Return a number with its sign."""
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:+.{digits}f}".replace("-", "−")


def bar(value: float, most: float) -> str:
    """Return a bar as HTML, blue above 0 and orange below, as long as the value is large."""
    if not math.isfinite(value) or most <= 0.0:
        return ""
    width = 7.0 * min(abs(value) / most, 1.0)
    color = BLUE if value >= 0.0 else ORANGE
    return f'<span class="bar" style="width:{width:.2f}em;background:{color}"></span>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return an HTML table of cells that are HTML; the columns `numbers` are set to the right."""

    def cell(tag: str, place: int, html: str) -> str:
        return f"<{tag}{' class=n' if place in numbers else ''}>{html}</{tag}>"

    heads = "".join(cell("th", i, escape(text)) for i, text in enumerate(head))
    body = "".join(
        f"<tr>{''.join(cell('td', i, html) for i, html in enumerate(row))}</tr>" for row in rows
    )
    # With a class: pages style tables that have none, mkdocs-material in colors of its own.
    return f'<table class="cells"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def text_table(rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return lines of cells in columns; the columns `numbers` are set to the right."""
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def import_pandas() -> Any:
    """Return pandas; ImportError says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables need pandas: pip install pandas.") from error
    return pandas
