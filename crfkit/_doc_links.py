"""Links from the HTML of estimators to their pages in the documentation."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any


def docs_url() -> str:
    """Return where the documentation is published, with a slash at its end, or "".

    That is the environment variable ``CRFKIT_DOCS_URL``, for a site of one's own (a folder that
    `mkdocs build` made is ``file:///...``); else the address "Documentation" in the metadata of
    the installed package. Where there is neither, nothing is linked.
    """
    url = os.environ.get("CRFKIT_DOCS_URL", "")
    if not url:
        try:
            entries = metadata("crfkit").get_all("Project-URL") or []
        except PackageNotFoundError:
            entries = []
        named = dict(entry.split(", ", 1) for entry in entries)
        url = named.get("Documentation", "")
    return f"{url.rstrip('/')}/" if url else ""


def public_path(cls: type) -> str:
    """Return the name under which a class has its page, such as "crfkit.CRFClassifier", or ""."""
    parts = cls.__module__.split(".")
    for end in range(1, len(parts) + 1):
        room = ".".join(parts[:end])
        if cls.__name__ in getattr(sys.modules.get(room), "__all__", ()):
            return f"{room}.{cls.__name__}"
    return ""


class DocLink:
    """The address of the page of an object's class, for ``_doc_link_template`` of scikit-learn."""

    def __get__(self, instance: Any, owner: type) -> str:
        url, path = docs_url(), public_path(owner)
        return f"{url}reference/{path}.html" if url and path else ""
