"""Every public name says in a sentence what it is, and shows it in an example that runs."""

from __future__ import annotations

import doctest
import inspect
import sys
from typing import Any

import pytest
from site_modules import site_module

reference = site_module("reference")


@pytest.mark.parametrize("page", reference.REFERENCE)
def test_every_name_has_a_sentence_and_an_example(page):
    found = reference.members(page)
    silent = [n for n, value in found.items() if not reference.has_sentence(n, value)]
    assert not silent, f"no sentence in the docstring of {', '.join(silent)}"
    without = [n for n, value in found.items() if not reference.has_example(value)]
    assert not without, f"no example (`>>> …`, or programs before and after) in the docstring of {', '.join(without)}"


@pytest.mark.parametrize("page", reference.REFERENCE)
def test_examples_of_names_made_from_tables_run(page):
    """``test_docstring_examples`` runs those that stand in the files."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name, value in reference.members(page).items():
        if not _stands_in_a_file(value):
            runner.run(doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", {}, name, None, None))
    assert runner.summarize(verbose=False).failed == 0


def _stands_in_a_file(value: Any) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return vars(module).get(getattr(value, "__qualname__", "")) is value if module else False


def test_names_of_one_object_are_explained_once():
    page = reference.reference_page("T: loops and blocks")
    assert "## `T.sblock`\n\nAnother name of `T.block`." in page and page.count("\nAnother name of ") < 30
    assert "## `T.exp`\n\n```python\nexp(x, /)\n```" in reference.reference_page("T: math")


def test_pages_are_by_theme_and_have_every_name_once():
    for source in reference.SOURCES:
        found = reference.public(source.where)
        shown = [name for title in source.pages if title for name in reference.members(title)]
        elsewhere = [n for n, v in found.items() if "" in source.pages and source.pages[""](n, v)]
        assert sorted(shown + elsewhere) == sorted(found)
    sizes = {title: len(reference.members(title)) for title in reference.REFERENCE}
    assert max(sizes.values()) <= 210 and all(sizes.values()), sizes
