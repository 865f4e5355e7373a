"""What the site adds to the pages of docs/: the README, the navigation, and a reference of every public name.

The navigation is the tables of docs/README.md. The reference is made from the objects themselves, since many of the names
(operators, primitives, passes) are made from tables when the package is loaded.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from drawings import drawing
from figures import with_figures

ROOT = Path(__file__).parents[2]
# pages from above docs/, by their names on the site
ABOVE = {"start.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


# ---------------------------------------------------------------- the reference


def _schedule() -> Any:
    import tir

    return tir.Schedule


def _room(name: str) -> Callable[[], Any]:
    def load() -> Any:
        import importlib

        return importlib.import_module(name)

    return load


# title -> where the names are
REFERENCE: dict[str, tuple[str, Callable[[], Any]]] = {
    "tir": ("tir", _room("tir")),
    "Schedule": ("sch", _schedule),
    "T, the dialect": ("T", _room("tir.script.tir")),
    "tir.te": ("te", _room("tir.te")),
    "tir.ops": ("ops", _room("tir.ops")),
    "tir.ops.nn": ("ops.nn", _room("tir.ops.nn")),
    "tir.transform": ("tir.transform", _room("tir.transform")),
    "tir.tune": ("tir.tune", _room("tir.tune")),
    "tir.testing": ("testing", _room("tir.testing")),
    "tir.arith": ("tir.arith", _room("tir.arith")),
    "Built modules": ("module", _room("codegen.module")),
}


def _members(holder: Any) -> Iterator[tuple[str, Any]]:
    names = getattr(holder, "__all__", None) or [n for n in dir(holder) if not n.startswith("_")]
    for name in sorted(names, key=str.lower):
        found = getattr(holder, name, None)
        if inspect.ismodule(found) or not (callable(found) or isinstance(found, property)):
            continue
        yield name, found


def _documented(holder: Any) -> Iterator[tuple[str, Any]]:
    for name, found in _members(holder):
        if (inspect.getdoc(found) or "").strip():
            yield name, found


def _signature(name: str, found: Any) -> str:
    if isinstance(found, property):
        return name
    try:
        text = str(inspect.signature(found))
    except (TypeError, ValueError):
        return f"{name}(…)"
    text = re.sub(r"<(function|object|class)[^>]*>|<[\w. ]+ object at 0x[0-9a-f]+>", "…", text)
    return name + re.sub(r"\((self|cls)(, )?", "(", text, count=1).replace("'", "").replace("typing.", "")


def _prose(doc: str) -> str:
    """A docstring as Markdown: examples and code in fences, roles as code."""
    doc = re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", doc)
    parts: list[str] = []
    for part in re.split(r"\n\s*\n", re.sub(r"::$", ":", doc, flags=re.M)):
        if part.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{textwrap.dedent(part)}\n```")
        elif part.startswith("    "):
            parts.append(f"```python\n{textwrap.dedent(part)}\n```")
        else:
            parts.append(part)
    return "\n\n".join(parts)


def _entry(prefix: str, name: str, found: Any, level: str) -> str:
    signature = _signature(name, found)
    doc = _prose(inspect.getdoc(found) or "")
    return f"{level} `{prefix}.{name}`\n\n```python\n{signature}\n```\n\n{doc}\n"


def _page(title: str, prefix: str, holder: Any) -> str:
    lines = [f"# {title}\n"]
    about = inspect.getdoc(holder)
    if about:
        lines.append(_prose(about) + "\n")
    for name, found in _documented(holder):
        lines.append(_entry(prefix, name, found, "##"))
        if inspect.isclass(found) and prefix in ("tir", "module") and name != "Schedule":
            own = ((n, m) for n, m in _documented(found) if n in vars(found))
            lines += [_entry(name, n, m, "###") for n, m in own]
    return "\n".join(lines)


def _slug(title: str) -> str:
    return "reference/" + re.sub(r"\W+", "_", title.lower()).strip("_") + ".md"


# ---------------------------------------------------------------- hooks


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
        {"Reference": [{title: _slug(title)} for title in REFERENCE]},
        {"Project": [{"Contributing": "contributing.md"}, {"Changelog": "changelog.md"}]},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, source in ABOVE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    for title, (prefix, load) in REFERENCE.items():
        files.append(File.generated(config, _slug(title), content=_page(title, prefix, load())))
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
