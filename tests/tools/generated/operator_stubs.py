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

from .script_stubs import imports, prose, signature_text

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
    """A stub file as text: what ``__init__.py`` imports, and the operators of the namespace from this package's files: those
    of a ``def`` from the file that has it, where an editor finds the docstring; of others the signature, and what their
    docstring says."""
    found = [o for _, o in sorted(operators().items()) if o.name.rpartition(".")[0] == namespace and _is_ours(o)]
    defined = [o for o in found if _short(o.name) in _defined(o.function.__module__)]
    kept = [(o.function.__module__, _short(o.name), _short(name)) for o in defined for name in (o.name, *o.aliases)]
    made = [line for o in found if o not in defined for line in _described(o)]
    own = _imported(STUBS[namespace].with_suffix(".py"))
    rest = ["def __getattr__(name: str) -> Any: ...  # operators of other packages", ""]
    return "\n".join([HEADER, *own, "", *imports(kept), "", *made, "", *rest])


def _is_ours(made: Operator) -> bool:
    return made.function.__module__.startswith("tir.ops.")


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _imported(file: Path) -> list[str]:
    items = [i for i in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(i, ast.ImportFrom)]
    own = [(f".{i.module}", a.name, a.name) for i in items if i.level == 1 and i.module for a in i.names]
    return [*imports(own), *(["from . import nn as nn"] if file.parent == HERE else [])]


def _described(made: Operator) -> list[str]:
    """The signature of an operator that no ``def`` has, what its docstring says, and its other names."""
    name = _short(made.name)
    shown = signature_text(made.signature, lambda p: p.annotation, made.signature.return_annotation)
    aliases = [f"{_short(alias)} = {name}" for alias in made.aliases]
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
