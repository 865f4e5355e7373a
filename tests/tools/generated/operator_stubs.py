"""__init__.pyi of tir.ops and of tir.ops.nn: the operators and their aliases, for
editors and type checkers, which find signatures and docstrings in the files that define them."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache, partial
from pathlib import Path
from types import ModuleType

from tir import ops
from tir.ops.registry import Operator, operator, operators

from .script_stubs import prose, signature_text

HERE = Path(ops.__file__).parent
STUBS = {"": HERE / "__init__.pyi", "nn": HERE / "nn" / "__init__.pyi"}  # by namespace
HEADER = '''"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
from collections.abc import Sequence
from typing import Any, Literal

from tir import te
from tir.ops.operands import Operand
from tir.ops.reduction import Axes
from tir.te import Tensor
'''


def text(namespace: str) -> str:
    """A stub file as text: what ``__init__.py`` imports, and the operators of the namespace from this package's files."""
    found = [
        line
        for _, made in sorted(operators().items())
        if made.name.rpartition(".")[0] == namespace and made.function.__module__.startswith("tir.ops.")
        for line in _lines(made)
    ]
    rest = ["def __getattr__(name: str) -> Any: ...  # operators of other packages", ""]
    return "\n".join([HEADER, *_imported(STUBS[namespace].with_suffix(".py")), "", *found, "", *rest])


def _imported(file: Path) -> list[str]:
    lines = []
    for item in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(item, ast.ImportFrom) and item.level == 1 and item.module:
            lines += [f"from .{item.module} import {alias.name} as {alias.name}" for alias in item.names]
    return [*lines, "from . import nn as nn"] if file.parent == HERE else lines


def _lines(made: Operator) -> list[str]:
    """An import from the file that defines the operator, where an editor finds its docstring; else its signature, with
    what the docstring says."""
    name, module = made.name.rpartition(".")[2], made.function.__module__
    aliases = [f"{alias.rpartition('.')[2]} = {name}" for alias in made.aliases]
    if name in _defined(module):
        return [f"from {module} import {name} as {name}", *aliases]
    shown = signature_text(made.signature, lambda p: p.annotation, made.signature.return_annotation)
    return [f"def {name}{shown}:", *prose(inspect.getdoc(made.function) or ""), *aliases]


@cache
def _defined(module: str) -> set[str]:
    """The operators that a file defines by a ``def`` of their own, with the signature that type checkers see there."""
    made = sys.modules[module]
    functions = (i for i in ast.parse(inspect.getsource(made)).body if isinstance(i, ast.FunctionDef))
    return {f.name for f in functions if [_keeps_signature(made, d) for d in f.decorator_list] == [True]}


def _keeps_signature(module: ModuleType, decorator: ast.expr) -> bool:
    """Whether it is ``operator``, or that with arguments of a namespace."""
    found = getattr(module, ast.unparse(decorator).partition("(")[0], None)
    return (found.func if isinstance(found, partial) else found) is operator
