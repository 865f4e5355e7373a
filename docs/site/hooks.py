"""What the site adds to the pages of docs/: the README, the navigation, figures, and the reference of every public name.

The navigation has the groups of docs/README.md, a tab each.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from drawings import drawing
from figures import with_figures
from reference import REFERENCE, SOURCES, reference_page, slug

ROOT = Path(__file__).parents[2]
COURSE = ROOT / "docs/course"
# how much more a page counts in a search than others: what people ask for first, and what only says that it was made
BOOST = {
    "tune.md": 8,
    "measure.md": 3,
    "footprint.md": 3,
    "typical_errors.md": 2,
    "operators.md": 2,
    "aot.md": 2,
    "schedule.md": 2,
    "notebook.md": 2,
    "changelog.md": 0.2,
    "contributing.md": 0.5,
}
# a script of a notebook that shows a widget, or fetches what would: on the site there is no kernel to answer it
WIDGET = re.compile(r'<script type="application/vnd\.jupyter\.widget-view\+json">.*?</script>', re.S)
WIDGETS = re.compile(r"<script[^>]*>(?:(?!</script>).)*jupyter-widgets(?:(?!</script>).)*</script>", re.S)
STYLE = Path(__file__).with_name("site.css")
WORKER = Path(__file__).with_name("frame_worker.js")
# pages from elsewhere, by their names on the site
ABOVE = {
    "start.md": "README.md",
    "guide.md": "docs/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    intro, *groups = re.split(r"^## (.+)\n", index, flags=re.M)
    tabs = dict(zip(groups[::2], map(_pages, groups[1::2])))
    tabs["Learn"] = [{"Five minutes": "start.md"}, *_pages(intro), *tabs["Learn"]]
    tabs["Reference"] += _reference()
    tabs["Background"] += [
        {"All pages": "guide.md"},
        {"Contributing": "contributing.md"},
        {"Changelog": "changelog.md"},
    ]
    config.extra_css = [f"assets/{STYLE.name}"]
    config.nav = [{"Home": "index.md"}, *({title: pages} for title, pages in tabs.items())]
    return config


def _pages(text: str) -> list[Any]:
    """The pages that a part of the index links to, with their titles there; the course is a section of its own."""
    found = re.findall(r"\[([^\]]+)\]\(([\w/.]+\.(?:md|ipynb))\)", text)
    made: list[Any] = []
    for title, target in found:
        page = {title[:1].upper() + title[1:]: target}
        if target.startswith(".."):
            continue
        if not target.startswith("course/"):
            made.append(page)
        elif made and "The course" in made[-1]:
            made[-1]["The course"].append(page)
        else:
            made.append({"The course": [page]})
    return made


def _reference() -> list[Any]:
    """The pages of the reference, a section for each place that has several."""
    sections: dict[str, list[Any]] = {}
    for source in SOURCES:
        path = source.where.replace(":", ".")
        name = path.rpartition(".")[0] if path.startswith("tir.library") else path
        sections.setdefault(name, []).extend({title: slug(title)} for title in source.pages if title)
    return [part for name, pages in sections.items() for part in (pages if len(pages) == 1 else [{name: pages}])]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Pages from elsewhere, and the reference; notebooks of the course find their checks."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(COURSE), os.environ.get("PYTHONPATH", "")])  # for `checks`
    for name, source in ABOVE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    for title in REFERENCE:
        files.append(File.generated(config, slug(title), content=reference_page(title)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Figures, made by running the page; and links into the repository: those to pages of the site lead there, of others
    the text stays."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    if page.file.src_uri in BOOST:
        page.meta["search"] = {"boost": BOOST[page.file.src_uri]}
    on_site = {source: name for name, source in ABOVE.items()}
    here = Path(ABOVE.get(page.file.src_uri, "docs/README.md")).parent

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
    done = [part if n % 2 else _for_both_schemes(pattern.sub(link, part)) for n, part in enumerate(outside)]
    return "".join(done)


def _for_both_schemes(text: str) -> str:
    """Pictures named ``…-light`` stand on light pages only, where there is one named ``…-dark`` for the others."""

    def both(found: re.Match[str]) -> str:
        light, dark = found["target"], found["target"].replace("-light.", "-dark.")
        if not (ROOT / "docs" / dark).is_file():
            return found[0]
        return f"![{found['alt']}]({light}#only-light)![{found['alt']}]({dark}#only-dark)"

    return re.sub(r"!\[(?P<alt>[^\]]*)\]\((?P<target>images/[\w-]+-light\.\w+)\)", both, text)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Where a notebook shows the explorer, which needs a kernel, stands its picture."""
    up = "../" * page.file.dest_uri.count("/")
    picture = "".join(
        f'<img src="{up}images/explorer-{scheme}.png#only-{scheme}" alt="a picture: the explorer of a schedule, alive where a kernel runs">'
        for scheme in ("light", "dark")
    )
    return _from_here(WIDGETS.sub("", WIDGET.sub(picture, output)), up)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    return _from_here(output, "")


def _from_here(html: str, up: str) -> str:
    """The theme would load what lets a page from the disk be searched from elsewhere: the site has its own."""
    return html.replace("https://unpkg.com/iframe-worker/shim", f"{up}assets/{WORKER.name}")


def on_post_build(config: MkDocsConfig) -> None:
    for asset in (WORKER, STYLE):
        shutil.copy(asset, Path(config.site_dir) / "assets")
