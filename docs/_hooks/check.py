"""Checks a site that was built: python docs/_hooks/check.py FOLDER.

Every link, anchor and picture inside of it is there, those of the README too; addresses elsewhere
are well-formed, and no page loads anything from them; every public name has a page, every method
an entry.
"""

from __future__ import annotations

import inspect
import re
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent))

import api  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LOADED = {"img", "script", "link", "source", "iframe", "video", "audio", "image", "use"}
MARKDOWN_LINK = re.compile(r"\]\(([^)\s]+)\)")


class Page(HTMLParser):
    """The anchors of a page, and what it links to and loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag names."""
        found = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}
        for name in ("href", "src", "xlink:href"):
            value = found.get(name)
            if value is not None:
                (self.loaded if tag in LOADED else self.links).append(value)


def read(site: Path) -> dict[Path, Page]:
    """Return all pages of a site."""
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def _wrong(target: str, at: Path, pages: dict[Path, Page]) -> str | None:
    """Return what is wrong with a link of a page."""
    parts = urlsplit(target)
    if parts.scheme in ("data", "mailto", "javascript"):
        return None
    if parts.scheme or parts.netloc:
        well_formed = parts.scheme in ("http", "https") and "." in parts.netloc
        return None if well_formed and " " not in target else "is no address"
    path = (at.parent / unquote(parts.path)).resolve() if parts.path else at
    path = path / "index.html" if path.is_dir() else path
    if not path.exists():
        return "leads nowhere"
    anchor = unquote(parts.fragment)
    if anchor and path in pages and anchor not in pages[path].anchors | {"__top"}:
        return "has no such anchor"
    return None


def wrong_links(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Return what is wrong with the links of all pages."""
    found = []
    for at, page in pages.items():
        name = at.relative_to(site)
        if name.name == "404.html":  # its links are absolute
            continue
        for target in {*page.links, *page.loaded}:
            if why := _wrong(target, at, pages):
                found.append(f"{name}: {target} {why}")
        found += [f"{name} loads {url}" for url in page.loaded if urlsplit(url).netloc]
    return found


def wrong_links_of_text(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Return what is wrong with the links of the README and its neighbors."""
    found = []
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = re.sub(r"```.*?```", "", (ROOT / name).read_text("utf-8"), flags=re.S)
        for target in MARKDOWN_LINK.findall(text):
            path, _, anchor = target.partition("#")
            page = (
                site / Path(path).relative_to("docs").with_suffix(".html")
                if path.startswith("docs/")
                else None
            )
            if urlsplit(target).scheme:
                missing = _wrong(target, ROOT / name, pages)
            elif path and not (ROOT / path).exists():
                missing = "leads nowhere"
            else:
                missing = _wrong(f"#{anchor}", page, pages) if page and anchor else None
            found += [f"{name}: {target} {missing}"] if missing else []
    return found


def _own_methods(found: type) -> list[str]:
    """Return the public methods that the package itself gives a class, and describes."""
    names = []
    for name, value in inspect.getmembers(found):
        called = callable(value) and not inspect.isclass(value)
        own = str(getattr(value, "__module__", "")).startswith("crfkit")
        if called and own and not name.startswith("_") and (value.__doc__ or "").strip():
            names.append(name)
    return names


def missing_names(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Return the public names without a page, and methods without an entry."""
    found = []
    for path, name in api.names().items():
        page = pages.get(site / "reference" / f"{path}.html")
        if page is None or path not in page.anchors:
            found.append(f"{path} has no page")
        elif name.kind == "class" and name.room not in api.EXTRA:
            members = _own_methods(getattr(import_module(name.room), name.name))
            found += [
                f"{path}.{m} has no entry" for m in members if f"{path}.{m}" not in page.anchors
            ]
    return found


def main(folder: str) -> None:
    """Print what is wrong, and fail if anything is."""
    site = Path(folder).resolve()
    pages = read(site)
    found = wrong_links(site, pages) + wrong_links_of_text(site, pages)
    found += missing_names(site, pages)
    links = sum(len(page.links) + len(page.loaded) for page in pages.values())
    print("\n".join(found) or f"{len(pages)} pages, {links} links: all lead somewhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1])
