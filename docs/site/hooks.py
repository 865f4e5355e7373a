"""What the site adds to the pages of docs/: the README, the navigation, figures, and the reference of every public name.

The navigation is the tables of docs/README.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from drawings import drawing
from figures import with_figures
from reference import REFERENCE, reference_page, slug

ROOT = Path(__file__).parents[2]
# pages from above docs/, by their names on the site
ABOVE = {"start.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    guide: list[Any] = [{"Start": "start.md"}, {"All pages": "README.md"}]
    notebooks: list[Any] = []
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for title, target in re.findall(r"\[([^\]]+)\]\(([\w/.]+\.(?:md|ipynb))\)", index):
        if not target.startswith(".."):
            (notebooks if target.endswith(".ipynb") else guide).append({title[:1].upper() + title[1:]: target})
    config.nav = [
        {"Guide": guide},
        {"Notebooks": notebooks},
        {"Reference": [{title: slug(title)} for title in REFERENCE]},
        {"Project": [{"Contributing": "contributing.md"}, {"Changelog": "changelog.md"}]},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, source in ABOVE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    for title in REFERENCE:
        files.append(File.generated(config, slug(title), content=reference_page(title)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Figures, made by running the page; and links into the repository: those to pages of the site lead there, of others
    the text stays."""
    on_site = {source: name for name, source in ABOVE.items()}
    here = "" if page.file.src_uri in ABOVE else "docs"

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups(default="")
        if "://" in target:
            return found[0]
        path = (ROOT / here / target).resolve()
        inside = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else target
        if inside in on_site:
            return f"[{text}]({on_site[inside]}{anchor})"
        if inside.startswith("docs/") and path.is_file():
            return f"[{text}]({inside.removeprefix('docs/')}{anchor})"
        return text

    pattern = re.compile(r"\[([^\]\[]+)\]\(([^)#\s]+)(#[\w-]+)?\)")
    if page.file.src_uri.startswith("reference/"):
        return markdown
    if "<!-- shows:" in markdown:
        markdown = with_figures(page.file.src_uri, markdown)
    markdown = re.sub(r"^<!-- drawing: (\w+) -->$", lambda found: drawing(found[1]), markdown, flags=re.M)
    outside = re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)
    done = [part if n % 2 else pattern.sub(link, part) for n, part in enumerate(outside)]
    return "".join(done)
