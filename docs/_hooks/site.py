"""What the build adds to the pages in docs: the reference, the gallery, pictures, formulas."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))

import api  # noqa: E402
import gallery  # noqa: E402
from formulas import with_formulas  # noqa: E402
from roles import markdown  # noqa: E402

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
TEXTS = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
DIAGRAM = "![How the parts work together](pictures/architecture.svg)"
# griffe takes "int, list or None" for a tuple.
TUPLE = re.compile(r"(\(|doc-section-item[^>]*>\s*)<code>\((.*?)\)</code>")
# A dash is set before a description also where there is none.
BARE = re.compile(r'\s*–(\s*<div class="doc-md-description">\s*</div>)')
COLORED = re.compile(
    r"```python\n((?:(?!```).)*?)```\n((?:(?!```).)*?)<!-- the spans that the block prints -->\n",
    flags=re.S,
)
# What searches show first: pages that answer questions, then those that explain, then names.
FIRST = {"howto/": 4.0, "reference/": 1.0, "examples/": 1.0}
LAST = {"architecture.md", "extending.md", "performance.md", "experiments.md", "changelog.md"}
# How notebooks and docstrings name a page of the repository.
NAMED = re.compile(r"\[docs/([\w/]+)\.md\]\([^)]*\)|`docs/([\w/]+)\.md`")
SPEED = "<!-- the first paragraph of the benchmarks in the README -->"
KINDS = {"class": "Classes", "function": "Functions", "data": "Constants", "module": "Modules"}


def _cell(name: api.Name) -> str:
    summary = markdown(name.summary, name.defined).replace("|", "\\|").replace("\n", " ")
    return f"| [`{name.name}`][{name.path}] | {summary} |"


def _table(names: list[api.Name]) -> str:
    rows = "\n".join(_cell(name) for name in names)
    return f'<div class="api-table" markdown>\n\n| | |\n| --- | --- |\n{rows}\n\n</div>\n'


def _tables(names: list[api.Name]) -> str:
    """Return a table for each kind of names, with a heading."""
    kinds = {title: [n for n in names if n.kind == kind] for kind, title in KINDS.items()}
    return "\n".join(f"## {title}\n\n{_table(found)}" for title, found in kinds.items() if found)


def _room_page(room: str, names: list[api.Name]) -> str:
    about = markdown(api.about(room), room)
    title = api.title_of(room)
    return f"# {title} {{ #{room} }}\n\n<code>{room}</code>\n\n{about}\n\n{_tables(names)}"


def _index_page() -> str:
    parts = ["# API reference\n\nEvery public name, by the module from which it is imported.\n"]
    for room, names in api.rooms().items():
        about = markdown(api.first_sentence(api.about(room)), room)
        heading = f"## [{api.title_of(room)}]({room}.md)"
        parts.append(f"{heading}\n\n<code>{room}</code>: {about}\n\n{_table(names)}")
    return "\n".join(parts)


def _name_page(name: api.Name) -> str:
    text = f"---\ntitle: {name.name}\n---\n\n::: {name.path}\n"
    return f"{text}\n{markdown(name.summary, name.defined)}\n" if name.kind == "data" else text


def _reference() -> dict[str, str]:
    pages = {"reference/index.md": _index_page()}
    for room, names in api.rooms().items():
        pages[f"reference/{room}.md"] = _room_page(room, names)
    pages |= {f"reference/{path}.md": _name_page(name) for path, name in api.names().items()}
    return pages


def _menu(room: str, names: list[api.Name]) -> dict[str, list[Any]]:
    own = [{name.name: f"reference/{name.path}.md"} for name in names if name.room == room]
    return {api.title_of(room): [f"reference/{room}.md", *own]}


def on_config(config: Any) -> Any:
    """Fill the sections of the menu that are made of sources and notebooks."""
    found = gallery.pages()
    config.extra["notebooks"] = found
    version = (ROOT / "crfkit" / "_version.py").read_text(encoding="utf-8")
    config.extra["version_of_package"] = version.split('"')[-2]
    reference = [_menu(room, names) for room, names in api.rooms().items()]
    examples = [{page.title: f"examples/{page.name}.md"} for page in found]
    filled = {
        "API reference": ["reference/index.md", *reference],
        "Examples": ["examples/index.md", *examples],
    }
    config.nav = [
        {title: filled.get(title, pages) for title, pages in section.items()}
        for section in config.nav
    ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and pictures that no file in docs holds."""
    made: dict[str, str | bytes] = dict(_reference())
    found = config.extra["notebooks"]
    made["examples/index.md"] = gallery.index(found)
    for page in found:
        made[f"examples/{page.name}.md"] = page.text
        made |= {f"examples/{name}": data for name, data in page.files.items()}
        source = gallery.FOLDER / f"{page.name}.ipynb"
        made[f"examples/{source.name}"] = source.read_bytes()
    for path, name in TEXTS.items():
        made[path] = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
    for picture in sorted((ROOT / "benchmarks" / "results").glob("*.png")):
        made[f"benchmarks/results/{picture.name}"] = picture.read_bytes()
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def _picture(match: re.Match[str]) -> str:
    """Put a picture into the page, so that its colors are those of the page."""
    text = (DOCS / "pictures" / f"{match[2]}.svg").read_text(encoding="utf-8")
    return f'<figure class="picture" role="img" aria-label="{match[1]}">{text}</figure>'


def _colored(match: re.Match[str]) -> str:
    """Show the spans that the block before prints as comments, in the text that it names."""
    block = match[1]
    text = re.search(r'^text = "(.*)"$', block, flags=re.M)[1]
    spans = re.findall(r"^# (\w+) +([\d.]+)  +(.+)$", block, flags=re.M)
    colors = {label: i % 6 + 1 for i, label in enumerate(dict.fromkeys(s[0] for s in spans))}
    parts, end = [], 0
    for label, sure, words in spans:
        found = re.compile(r"\s*".join(map(re.escape, words.split()))).search(text, end)
        parts += [
            html.escape(text[end : found.start()]),
            f'<span class="crf-span" style="--c: var(--crf-{colors[label]}); --p: {sure}">'
            f"{html.escape(found[0])}<small>{label} {sure}</small></span>",
        ]
        end = found.end()
    shown = "".join([*parts, html.escape(text[end:])])
    return f'```python\n{block}```\n{match[2]}<div class="crf-tagged">{shown}</div>\n'


def _linked(match: re.Match[str]) -> str:
    """Return a link to a page by its title."""
    name = match[1] or match[2]
    title = (DOCS / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    return f"[{title}](../{name}.md)"


def _speed() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.split("<!-- benchmarks:begin -->")[1].strip().split("\n\n")[0]


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Replace what browsers would need a script for, and say how early searches show a page."""
    uri = page.file.src_uri
    boost = next((b for folder, b in FIRST.items() if uri.startswith(folder)), 2.0)
    page.meta["search"] = {"boost": 0.5 if uri in LAST else boost} | page.meta.get("search", {})
    if uri.startswith(("reference/", "examples/")):
        text = NAMED.sub(_linked, text)
        text = re.sub(r"\]\((?:\.\./)?docs/([\w/]+)\.md", r"](../\1.md", text)
    text = re.sub(r"```mermaid\n.*?```", DIAGRAM, text, flags=re.S)
    text = text.replace("](../benchmarks/results/", "](benchmarks/results/")
    text = re.sub(r"!\[([^\]]*)\]\((?:\.\./)?pictures/([\w-]+)\.svg\)", _picture, text)
    text = COLORED.sub(_colored, text)
    if SPEED in text:
        text = text.replace(SPEED, _speed())
    return with_formulas(text)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Show types as they are written, and nothing before what is not said."""
    if page.file.src_uri.startswith("reference/"):
        return BARE.sub(r"\1", TUPLE.sub(r"\1<code>\2</code>", html))
    return html
