"""The size of the subject "may this step be taken?", in counts to compare from commit to commit.

``python -m tests.tools.subject`` prints the lines of the subject and of stubs, its bool switches, the functions of ``analysis`` and
``schedule`` that are too complex, who imports islpy, and the files that one ``compute_at`` enters. A bool switch is a parameter annotated ``bool`` of a function of the subject; one that a constructor
only keeps is a value, and does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUBJECT = ("tir/analysis", "tir/poly", "tir/schedule/invariants")


def files(*places: str) -> list[Path]:
    """The Python files at these places below the root: of a folder, all in it."""
    return [f for p in places for f in (sorted((ROOT / p).rglob("*.py")) if (ROOT / p).is_dir() else [ROOT / p])]


def lines() -> int:
    """The lines of the subject."""
    return sum(len(f.read_text(encoding="utf-8").splitlines()) for f in files(*SUBJECT))


def switches() -> list[str]:
    """The bool switches of the subject, as ``file: function(parameter)``."""
    return [f"{f.relative_to(ROOT)}: {text}" for f in files(*SUBJECT) for text in _switches(f)]


def _switches(file: Path) -> Iterator[str]:
    for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef):
            kept = {ast.unparse(s.value) for s in function.body if isinstance(s, ast.Assign)}
            values = kept if function.name == "__init__" else set[str]()
            given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            for parameter in given:
                if isinstance(parameter.annotation, ast.Name) and parameter.annotation.id == "bool":
                    if parameter.arg not in values:
                        yield f"{function.name}({parameter.arg})"


def importers(module: str) -> list[str]:
    """The files of the product that import ``module``, anywhere in them."""
    return [str(f.relative_to(ROOT)) for f in files("tir", "codegen") if module in _imports(f)]


def _imports(file: Path) -> set[str]:
    found = (n for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, ast.Import))
    return {alias.name for n in found for alias in n.names}


def complexity(function: ast.FunctionDef) -> int:
    """The decisions in a function, and those in it, and one: branches, loops and their filters, operands of ``and`` and ``or``."""
    found = 1
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.Assert)):
            found += 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
    return found


def too_complex(most: int = 20) -> list[str]:
    """The functions with more decisions than that, the worst first."""
    trees = {f: ast.parse(f.read_text(encoding="utf-8")) for f in files("tir/analysis", "tir/schedule")}
    functions = [(f, n) for f, tree in trees.items() for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    found = [(complexity(n), f"{f.relative_to(ROOT)}: {n.name}") for f, n in functions]
    return [f"{name} ({count})" for count, name in sorted(found, reverse=True) if count > most]


def main() -> None:
    from benchmarks.counts import files_entered

    stubs = [f for place in ("tir", "codegen") for f in (ROOT / place).rglob("*.pyi")]
    print(f"lines of the subject: {lines()}")
    print(f"lines of stubs: {sum(len(f.read_text(encoding='utf-8').splitlines()) for f in stubs)}")
    print(f"functions of complexity over 20: {len(too_complex())}", *too_complex(), sep="\n  ")
    print(f"bool switches: {len(switches())}", *switches(), sep="\n  ")
    print(f"importers of islpy: {', '.join(importers('islpy'))}")
    print(f"files entered by compute_at, by sets: {len(files_entered())}")


if __name__ == "__main__":
    main()
