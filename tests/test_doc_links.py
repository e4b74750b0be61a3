"""The HTML of an estimator links to its page, where it is known where the pages are."""

import importlib
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

from crfkit import CRFClassifier, SequenceVectorizer, _doc_links
from crfkit.compat.sklearn_crfsuite import CRF

API = Path(__file__).resolve().parents[1] / "docs" / "_hooks"


@pytest.fixture
def url(monkeypatch):
    monkeypatch.setenv("CRFKIT_DOCS_URL", "https://docs.example.org/crfkit")
    return "https://docs.example.org/crfkit/reference"


def test_nothing_is_linked_where_no_documentation_is_published(monkeypatch):
    monkeypatch.delenv("CRFKIT_DOCS_URL", raising=False)
    monkeypatch.setattr(_doc_links, "metadata", lambda name: Metadata([]))
    assert CRFClassifier()._get_doc_link() == ""
    assert "sk-estimator-doc-link" in CRFClassifier()._repr_html_()  # whether it is fitted
    assert "Documentation for" not in CRFClassifier()._repr_html_()


def test_the_metadata_of_the_package_may_say_where_it_is_published(monkeypatch):
    monkeypatch.delenv("CRFKIT_DOCS_URL", raising=False)
    entries = ["Source, https://example.org/source", "Documentation, https://example.org/docs/"]
    monkeypatch.setattr(_doc_links, "metadata", lambda name: Metadata(entries))
    found = CRFClassifier()._get_doc_link()
    assert found == "https://example.org/docs/reference/crfkit.CRFClassifier.html"


class Metadata:
    def __init__(self, entries):
        self.entries = entries

    def get_all(self, name):
        return self.entries if name == "Project-URL" else None


def test_estimators_link_to_the_page_of_their_class(url):
    assert CRFClassifier()._get_doc_link() == f"{url}/crfkit.CRFClassifier.html"
    assert CRF()._get_doc_link() == f"{url}/crfkit.compat.sklearn_crfsuite.CRF.html"
    shown = CRFClassifier(features=SequenceVectorizer())._repr_html_()
    assert f'href="{url}/crfkit.CRFClassifier.html"' in shown


def test_classes_of_others_are_not_linked(url):
    assert type("Mine", (CRFClassifier,), {"__module__": "mine"})()._get_doc_link() == ""


def test_every_link_is_a_page_of_the_reference(url, monkeypatch):
    monkeypatch.syspath_prepend(API)
    api = importlib.import_module("api")
    names = {path: name for path, name in api.names().items() if name.room not in api.EXTRA}
    for path, name in names.items():
        found = getattr(importlib.import_module(name.room), name.name)
        if name.kind == "class" and issubclass(found, BaseEstimator):
            template = found._doc_link_template
            # Those of solvers and rules, which have no HTML of their own, are scikit-learn's.
            if isinstance(template, str) and template:
                assert template == f"{url}/{path}.html"
