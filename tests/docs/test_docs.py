"""Every code block of the README and the docs runs, and so does every docstring example."""

from __future__ import annotations

import doctest
import importlib
import pathlib
import pkgutil
import re
import subprocess
import sys
import types
from xml.etree import ElementTree

import pytest
from site_modules import site_module

ROOT = pathlib.Path(__file__).parents[2]
INDEX = ROOT / "docs/README.md"
ABOUT = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").glob("*.md") if p != INDEX)]


def _modules() -> list[str]:
    names = []
    for package in ("tir", "codegen"):
        root = importlib.import_module(package)
        names.append(package)
        names += [m.name for m in pkgutil.walk_packages(root.__path__, package + ".") if "__main__" not in m.name]
    return names


@pytest.fixture
def registries():
    """What a page registers is gone after it."""
    from tir import target
    from tir.intrin import TensorIntrin
    from tir.op import OPS
    from tir.ops import registry
    from tir.schedule.primitive import PRIMITIVES
    from tir.transform import PASSES
    from tir.tune.template import _TEMPLATES

    TensorIntrin.list()  # the built-in ones are registered when first asked for, and stay
    tables = [
        PRIMITIVES,
        PASSES,
        TensorIntrin._registry,
        target._ADDED,
        OPS,
        registry.OPERATORS,
        registry._NAMES,
        _TEMPLATES,
    ]
    kept = [dict(table) for table in tables]
    yield
    for table, was in zip(tables, kept):
        table.clear()
        table.update(was)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_blocks_run(page, capsys, registries, monkeypatch):
    """The Python blocks of a page run in order, in one namespace, as a reader would type them; each line of the text shown
    below one is a line that it printed, but where the text says "…"."""
    import linecache

    found = re.findall(r"^```(python|text)\n(.*?)^```", page.read_text(), re.M | re.S)
    blocks = [text for kind, text in found if kind == "python"]
    assert blocks, f"{page.name} has no Python block: drop it from PAGES or give it one"
    shown = {
        sum(k == "python" for k, _ in found[:n]) - 1: text for n, (kind, text) in enumerate(found) if kind == "text"
    }
    module = types.ModuleType("page")  # dataclasses look their module up
    monkeypatch.setitem(sys.modules, "page", module)
    namespace = module.__dict__
    for number, block in enumerate(blocks):
        name = f"<{page.name} block {number}>"
        linecache.cache[name] = (len(block), None, block.splitlines(True), name)
        exec(compile(block, name, "exec"), namespace)
        printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
        if page.name != "primitives.md":  # made of docstrings, whose drawings have tests of their own
            told = [line for line in shown.get(number, "").splitlines() if line.strip() and "…" not in line]
            missing = [line for line in told if line.rstrip() not in printed]
            assert missing == [], f"{page.name}, block {number} printed {sorted(printed)}"


@pytest.mark.parametrize(
    "page", [p for p in PAGES if "<!-- shows: " in p.read_text(encoding="utf-8")], ids=lambda p: p.name
)
def test_figures_of_pages_are_drawn(page, registries, monkeypatch):
    """Each ``<!-- shows: … -->`` becomes one block of HTML that a browser can read, as the site has it."""
    figures = site_module("figures")
    text = page.read_text(encoding="utf-8")
    made = figures.with_figures(page.name, text)
    assert "<!-- shows:" not in made
    found = re.findall(
        r'^<div class="tir-figure">.*?</div>$(?=\n\n|\n*\Z|\n<div class="tir-figure">)', made, re.M | re.S
    )
    assert len(found) == text.count("<!-- shows: ")
    for block in found:
        ElementTree.fromstring(block)
        assert "<svg" in block or "<table" in block or "<pre" in block


def test_a_primitive_is_drawn_where_a_golden_case_of_it_shows_something():
    from tests.tools.generated.primitives_page import ours

    drawings = site_module("drawings")
    shown = 0
    for name in ours():
        drawn = drawings.drawing(name)
        if drawn:
            ElementTree.fromstring(drawn)
        shown += "<svg" in drawn
        if "<svg" not in drawn:
            cases = [*drawings.runs_of(name)]
            assert not any(drawings.changes_nest(sch) for _, sch in cases), name
            assert bool(drawn) == any(sch.mod is not sch.history[0].mod for _, sch in cases), name
    assert shown > 40


@pytest.mark.parametrize("module", _modules())
def test_docstring_examples(module, registries, monkeypatch):
    # doctest asks for each example whether any file changed
    monkeypatch.setattr("linecache.checkcache", lambda filename=None: None)
    result = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_matmul_example_runs():
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/examples/matmul.py"), "-n", "192"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "% of peak" in done.stdout


def test_a_gpu_example_tells_what_it_did():
    example = ROOT / "docs/examples/gpu/vector_add.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for part in ('sch.bind(i_0, thread_axis="blockIdx.x")', "largest error 0 ", "no findings", "read A"):
        assert part in done.stdout


def test_import_is_light():
    """Importing tir loads neither NumPy, nor LLVM, nor islpy, nor hypothesis."""
    code = "import sys, tir; print([m for m in ('numpy', 'llvmlite', 'islpy', 'hypothesis') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def run_notebook(name: str, changes: dict[str, str] | None = None) -> None:
    """Its cells, as a notebook would run them: each registers its text, and the last expression is shown. ``changes`` are made in their text."""
    import ast
    import json
    import linecache

    cells = json.loads((ROOT / f"docs/examples/{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    namespace: dict = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        text, title = "".join(cell["source"]), f"<{name} cell {number}>"
        for old, new in (changes or {}).items():
            text = text.replace(old, new)
        linecache.cache[title] = (len(text), None, text.splitlines(True), title)
        tree = ast.parse(text)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, title, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), title, "eval"), namespace)
            print(repr(value))
            if hasattr(value, "_repr_html_"):
                ElementTree.fromstring(f"<div>{value._repr_html_()}</div>")  # every tag closed, every name escaped


def test_quickstart_notebook_runs(capsys):
    run_notebook("quickstart")
    shown = capsys.readouterr().out
    assert "def matmul(" in shown and 'parallel("k"): loop `k` cannot be parallel' in shown and "scheduled" in shown


def test_gpu_quickstart_notebook_runs(capsys):
    run_notebook("gpu_quickstart")
    shown = capsys.readouterr().out
    assert shown.count("no findings") == 3
    assert "15872" in shown and "threadIdx product 16384 > 1024" in shown  # bank conflicts, which padding ends
    assert "__global__ void" in shown and "registers" in shown


def test_explorer_notebook_runs(capsys):
    pytest.importorskip("anywidget")
    run_notebook("explorer")
    assert "vectorized" in capsys.readouterr().out


def test_models_notebook_runs(capsys, monkeypatch, tmp_path):
    pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
    from tir.ops.registry import forget

    monkeypatch.chdir(tmp_path)
    try:
        run_notebook("models", {"(3, 4, 6, 3), 224": "(1,), 32", "256, 128, 4, 352, 2, 64": "32, 16, 2, 24, 1, 8"})
    finally:
        forget("squared_relu")
    shown = capsys.readouterr().out
    assert "the same: True" in shown and "words a second" in shown and "('matmul_squared_relu',) 16.0" in shown


def test_every_rule_of_the_tuner_is_on_its_page():
    from tir.target import Target
    from tir.tune.space import rules_of

    page = (ROOT / "docs/tune_rules.md").read_text(encoding="utf-8")
    rules = {rule for kind in ("llvm", "cuda") for rule in rules_of(Target.of(kind))}
    ours = {f"| {r.order} | `{r.name}` |" for r in rules if r.apply.__module__.startswith("tir.")}
    shown = set(re.findall(r"^\| \d+ \| `\w+` \|", page, flags=re.M))
    assert shown == ours, f"docs/tune_rules.md lacks {sorted(ours - shown)}, and has {sorted(shown - ours)} too many"


@pytest.mark.parametrize("page", [INDEX, *PAGES, *ABOUT], ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
        if not link.startswith(("http:", "https:")):
            assert (page.parent / link).exists(), link


def test_the_index_has_every_page():
    index = INDEX.read_text(encoding="utf-8")
    listed = [p for p in PAGES if p.parent == INDEX.parent and p.name != "index.md"]  # that is the page before it
    missing = [p.name for p in listed if f"({p.name})" not in index]
    assert missing == []
