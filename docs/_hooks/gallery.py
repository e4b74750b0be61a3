"""Pages of notebooks, from the results that are stored in them."""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Page(NamedTuple):
    """A notebook as a page: its text, and the files that it shows."""

    name: str
    title: str
    about: str
    text: str
    files: dict[str, bytes]

    @property
    def picture(self) -> str:
        """The picture that stands for the notebook, or nothing if it has none."""
        return next(iter(self.files), "")


def _fence(text: str, language: str) -> str:
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}\n"


def _picture(data: str, name: str, files: dict[str, bytes]) -> str:
    path = f"{name}-{len(files) + 1}.png"
    files[path] = base64.b64decode(data)
    return f"![Output of the cell above]({path}){{ .nb-picture loading=lazy }}\n"


def _output(output: Any, name: str, files: dict[str, bytes]) -> str:
    if output.output_type == "stream":
        return _fence(ANSI.sub("", output.text), "text { .nb-output }")
    if output.output_type == "error":
        raise ValueError(f"notebook {name} holds an error: {output.ename}: {output.evalue}")
    data = output.data
    if "image/png" in data:
        return _picture(data["image/png"], name, files)
    if "image/svg+xml" in data:
        return f'<div class="nb-html">{data["image/svg+xml"]}</div>\n'
    if "text/html" in data:
        return f'<div class="nb-html">{_whole(data["text/html"])}</div>\n'
    return _fence(ANSI.sub("", data.get("text/plain", "")), "text { .nb-output }")


def _whole(text: str) -> str:
    """Return HTML without blank lines, which would end the block in Markdown."""
    return "\n".join(line for line in text.splitlines() if line.strip())


def _cell(cell: Any, name: str, files: dict[str, bytes]) -> str:
    if cell.cell_type == "markdown":
        return cell.source + "\n"
    parts = [_fence(cell.source, "python")] if cell.source.strip() else []
    return "\n".join([*parts, *(_output(output, name, files) for output in cell.outputs)])


def _about(source: str) -> tuple[str, str]:
    """Return the title of a notebook and its first sentence."""
    title, _, rest = source.partition("\n")
    paragraph = " ".join(rest.strip().split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?]) ", paragraph)[0]
    return title.lstrip("# "), re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", sentence)


def read(path: Path) -> Page:
    """Return a notebook as a page."""
    notebook = nbformat.read(path, as_version=4)
    title, about = _about(notebook.cells[0].source)
    files: dict[str, bytes] = {}
    cells = [_cell(cell, path.stem, files) for cell in notebook.cells]
    note = (
        f"\n*[`notebooks/{path.name}`]({path.name}){{ download }} holds this page as a notebook.*\n"
    )
    files_in_order = _with_thumbnail_first(notebook, files)
    return Page(path.stem, title, about, "\n".join([cells[0], note, *cells[1:]]), files_in_order)


def _with_thumbnail_first(notebook: Any, files: dict[str, bytes]) -> dict[str, bytes]:
    """Put the picture that the metadata of the notebook name (``thumbnail``: 1, ...) first."""
    names = list(files)
    place = int(notebook.metadata.get("crfkit", {}).get("thumbnail", 1)) - 1
    names = names[place : place + 1] + names[:place] + names[place + 1 :]
    return {name: files[name] for name in names}


def pages() -> list[Page]:
    """Return all notebooks as pages, in the order of their names."""
    return [read(path) for path in sorted(FOLDER.glob("*.ipynb"))]


def _card(page: Page) -> str:
    picture = page.picture
    shown = f'<img src="{picture}" alt="" loading="lazy">' if picture else page.title[:1]
    link = f"{page.name}.html"
    return (
        f'<a class="gallery-card" href="{link}"><span class="gallery-picture">{shown}</span>'
        f'<span class="gallery-title">{html.escape(page.title)}</span>'
        f'<span class="gallery-about">{_code(html.escape(page.about))}</span></a>'
    )


def _code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


def index(found: list[Page]) -> str:
    """Return the page with a card for each notebook."""
    cards = "\n".join(_card(page) for page in found)
    return (
        "# Examples\n\nNotebooks with their results, in the order in which one would read them. "
        "Each page is made of the stored notebook; "
        "the tests run every cell.\n\n"
        f'<div class="gallery">\n{cards}\n</div>\n'
    )
