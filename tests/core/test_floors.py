"""The floors of CONTRIBUTING.md: imports lead to a lower floor."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tir

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# package -> floor, from the table of the page
FLOORS = {
    name: int(floor)
    for floor, names in re.findall(r"^\| (\d+) \| (`.*?) \|", PAGE, flags=re.M)
    for name in re.findall(r"`([\w/]+(?:\.py)?)(?:/\*\.py)?`", names)
}


# the imports inside of functions that lead up: they show something, or read models
UP = {
    ("tir", "tir/script"), ("tir/schedule", "tir/notebook"), ("tir/schedule", "tir/transform"),
    ("tir/tune", "tir/compat.py"), ("tir/tune", "tir/graph"),
}  # fmt: skip


def package(path: tuple[str, ...]) -> str:
    """The package of a module: ``codegen``, ``tir`` for its own files (but those with a row), or ``tir/arith`` and its
    like."""
    if f"{'/'.join(path)}.py" in FLOORS:
        return f"{'/'.join(path)}.py"
    inner = path[0] == "tir" and len(path) > 1 and (ROOT / "tir" / path[1]).is_dir()
    return "/".join(path[:2]) if inner else path[0]


def imported(path: tuple[str, ...], statements: Iterable[ast.AST]) -> Iterator[tuple[str, ...]]:
    """What the imports among the statements of a module name, as paths from the root."""
    for item in statements:
        if isinstance(item, ast.ImportFrom):
            start = path[: -item.level] if item.level else ()
            base = (*start, *(item.module.split(".") if item.module else ()))
            yield from [(*base, a.name) for a in item.names] if len(base) < 2 else [base]
        elif isinstance(item, ast.Import):
            yield from (tuple(a.name.split(".")) for a in item.names)


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def arrows_up(statements: Callable[[ast.Module], Iterable[ast.AST]]) -> dict[tuple[str, str], list[str]]:
    """The imports that do not lead down: importing and imported package, and the files."""
    found: dict[tuple[str, str], list[str]] = {}
    for file in [*ROOT.glob("tir/**/*.py"), *ROOT.glob("codegen/**/*.py")]:
        path = file.relative_to(ROOT).with_suffix("").parts
        here = package(path)
        for target in imported(path, statements(parsed(file))):
            there = package(target)
            if target[0] in ("tir", "codegen") and there != here and FLOORS[there] >= FLOORS[here]:
                found.setdefault((here, there), []).append("/".join(path))
    return found


def test_imports_lead_down():
    assert {"tir", "tir/arith", "tir/schedule", "codegen", "tir/compat.py"} <= FLOORS.keys()
    assert not arrows_up(lambda module: module.body)


def test_imports_inside_of_functions_lead_down_but_to_what_shows():
    found = arrows_up(ast.walk)
    assert found.keys() == UP, found


def is_public(module: tuple[str, ...], name: str) -> bool:
    """Whether ``name`` is public in ``tir``, or in a module that public names lead to from there, as in ``tir.te.hybrid``."""
    here: Any = tir
    for part in module[1:]:
        if part not in public_names(here):
            return False
        here = getattr(here, part)
    return name in public_names(here)


def public_names(module: Any) -> set[str]:
    """What a module says that it has; ``te`` and ``tir`` have builders of expressions besides, which ``__dir__`` adds."""
    return {*getattr(module, "__all__", ()), *(dir(module) if "__dir__" in vars(module) else ())}


def private_imports(file: Path, module: ast.Module) -> list[str]:
    """The imports of a file of ``tir.ops`` that leave it for what is not public."""
    path = file.relative_to(ROOT).with_suffix("").parts
    names: list[tuple[str, ...]] = []
    for item in ast.walk(module):
        if isinstance(item, ast.ImportFrom):
            base = (*(path[: -item.level] if item.level else ()), *(item.module.split(".") if item.module else ()))
            names += [(*base, a.name) for a in item.names]
        elif isinstance(item, ast.Import):
            names += [tuple(a.name.split(".")) for a in item.names]
    left = [n for n in names if n[0] in ("tir", "codegen") and n[:2] != ("tir", "ops")]
    return [".".join(n) for n in left if n[0] != "tir" or not is_public(n[:-1], n[-1])]


def test_operators_import_public_names_alone():
    """An author outside of the project has all that the operators here are made with."""
    files = [*(ROOT / "tir" / "ops").rglob("*.py")]
    assert [name for file in files for name in private_imports(file, parsed(file))] == []


@pytest.mark.parametrize(
    "text, name",
    [
        ("from ..te.tensor import read", "tir.te.tensor.read"),
        ("from ..te import user_lines", "tir.te.user_lines"),
        ("from .. import math", "tir.math"),
        ("def f():\n    from ..analysis.effects import effects", "tir.analysis.effects.effects"),
        ("import tir.arith.linear", "tir.arith.linear"),
        ("from tir.expr import Expr", "tir.expr.Expr"),
        ("from codegen.build import build", "codegen.build.build"),
        ("from ..interp.numbers import encode", "tir.interp.numbers.encode"),
    ],
)
def test_an_import_that_is_not_public_is_found(text, name):
    assert private_imports(ROOT / "tir" / "ops" / "order.py", ast.parse(text)) == [name]


def test_the_page_names_what_is_there():
    folders = {f"tir/{p.name}" for p in (ROOT / "tir").iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert folders <= FLOORS.keys(), "packages without a floor in CONTRIBUTING.md"
    for name in re.findall(r"`((?:tir|codegen|tests|docs)/[\w/.]+)`", PAGE):
        assert (ROOT / name).exists(), name


def test_a_name_of_a_file_is_said_once():
    """But in code generators and executors: their parts are named alike, and like the part of the IR that they are about."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for path in (p.relative_to(ROOT) for top in ("tir", "codegen") for p in (ROOT / top).rglob("*.py")):
        if path.stem not in (
            "__init__",
            "__main__",
            "schedule",
            "torch",
        ):  # names of others: TVM's two schedules, torch's models and operators
            found.setdefault(path.name, []).append(path.parts[:-1])
    for name, places in found.items():
        engines = [p for p in places if p[0] == "codegen" or p[:2] == ("tir", "interp")]
        others = [p for p in places if p not in engines]
        assert len(others) <= 1, f"{name} stands in {others}"
        assert not engines or others in ([], [("tir",)]), f"{name} stands in {places}"
