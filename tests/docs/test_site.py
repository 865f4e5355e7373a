"""What pages of the site look like, as far as their text and the style say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from site_modules import site_module

ROOT = Path(__file__).parents[2]
COURSE = sorted((ROOT / "docs/course/source").glob("*.md"))
COLUMN = 100  # characters of code that the column of a notebook holds beside the prompts, at 1440 pixels


@pytest.mark.parametrize("text", COURSE, ids=lambda p: p.stem)
def test_code_of_the_course_fits_its_column(text):
    blocks = re.findall(r"^```python.*?\n(.*?)^```", text.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert [line for block in blocks for line in block.splitlines() if len(line) > COLUMN] == []


def test_longer_lines_of_code_wrap():
    assert "white-space: pre-wrap" in (ROOT / "docs/site/site.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", COURSE, ids=lambda p: p.stem)
def test_a_notebook_leads_on(text):
    last = text.read_text(encoding="utf-8").strip().splitlines()[-1]
    (target, *_) = re.findall(r"Next: \[[^\]]+\]\(([^)]+)\)", last)
    assert (ROOT / "docs/course" / target).exists()


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_a_page_leads_on(page):
    last = page.read_text(encoding="utf-8").rstrip().splitlines()[-1]
    assert page.name in ("index.md", "README.md") or re.match(r"Next: .*\]\([^)]+\)", last), last


def test_thirty_questions_have_pages_that_there_are():
    questions = site_module("questions").QUESTIONS
    reference = site_module("reference")
    there = {slug.replace(".md", ".html") for slug in map(reference.slug, reference.REFERENCE)}
    there |= {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    there |= {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.ipynb")
    }
    there |= {"start.html", "contributing.html", "changelog.html"}
    assert len(questions) >= 30
    assert [page for pages in questions.values() for page in pages if page not in there] == []
