"""schedule.pyi: the signatures of the generated methods, for editors.

The hand-written parts of the classes are read from ask.py and schedule.py, without their docstrings, which editors find there;
each primitive and query adds its own signature and docstring, for which no ``def`` has its name. The programs before and after
a step are not repeated: they stand in docs/primitives.md, and in ``help``.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from tir.schedule import schedule
from tir.schedule.primitive import PRIMITIVES, QUERIES, Primitive
from tir.schedule.signatures import result_type, shown_annotation

STUB = Path(schedule.__file__).with_suffix(".pyi")

HEADER = '''"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from ..buffer import Buffer
from ..expr import Expr
from ..function import IRModule, PrimFunc
from ..stmt import Block, For
from .ask import Answer
from .handles import BlockRV, ExprRV, LoopRV, StmtSRef
from .offers import Offers
from .state import State
from .views import Views
'''


def text() -> str:
    """The stub file as text."""
    files = [STUB.with_name(name).read_text() for name in ("ask.py", "schedule.py")]
    parts = [HEADER]
    for item in [item for text in files for item in ast.parse(text).body]:
        if isinstance(item, ast.ClassDef) and item.name != "Answer":
            parts.append(_class(item))
        elif isinstance(item, ast.Assign) and not ast.unparse(item).startswith("_"):
            parts.append(ast.unparse(item))
    return "\n".join(parts) + "\n"


def _class(item: ast.ClassDef) -> str:
    lines = [""] + [f"@{ast.unparse(d)}" for d in item.decorator_list]
    bases = f"({', '.join(map(ast.unparse, item.bases))})" if item.bases else ""
    lines.append(f"class {item.name}{bases}:")
    head = len(lines)
    for member in item.body:
        if isinstance(member, ast.AnnAssign):
            lines.append(f"    {ast.unparse(member)}")
        elif isinstance(member, ast.FunctionDef) and (
            not member.name.startswith("_") or member.name in ("__init__", "__bool__", "__call__", "__getitem__")
        ):
            lines += [f"    @{ast.unparse(d)}" for d in member.decorator_list]
            returns = f" -> {ast.unparse(member.returns)}" if member.returns else ""
            lines.append(f"    def {member.name}({ast.unparse(member.args)}){returns}: ...")
    if len(lines) == head:
        lines.append("    ...")
    ours = sorted(filter(is_ours, PRIMITIVES.values()), key=lambda p: p.name)
    if item.name == "Schedule":
        lines += [line for p in (*ours, *filter(is_ours, QUERIES.values())) for line in _method(p)]
    if item.name == "Asker":
        lines += [line for p in ours for line in _query(p)]
    return "\n".join(lines)


def _query(p: Primitive) -> list[str]:
    """The method of ``sch.can``; the one loop that a step needs may be left out, which asks about every loop."""
    one, loop = _method(p, "Answer"), p.only_loop
    if loop is None:
        return one
    parameters = list(p.signature.parameters.values())
    at = [q.name for q in parameters].index(loop)
    if all(q.default is not q.empty for q in parameters[at + 1 :]):
        parameters[at] = parameters[at].replace(default=...)
        head = signature_text(p, "Answer", "self", of=p.signature.replace(parameters=parameters))
        return [f"    def {head.replace('Ellipsis', '...')}: ..."]
    rest = [q.replace(kind=q.KEYWORD_ONLY) for q in parameters[at + 1 :]]
    survey = signature_text(p, "Answer", "self", of=p.signature.replace(parameters=[*parameters[:at], *rest]))
    return ["    @overload", *one, "    @overload", f"    def {survey}: ..."]


def is_ours(p: Primitive) -> bool:
    """Whether the primitive is part of this package, rather than from an entry point."""
    return p.check.__module__.startswith("tir.schedule.")


def _method(p: Primitive, result: str | None = None) -> list[str]:
    """With the docstring; a query has none: it is what the method of the name does."""
    head = f"    def {signature_text(p, result, 'self')}:"
    return [head, *_docstring(p.doc)] if result is None else [f"{head} ..."]


def _docstring(doc: str) -> list[str]:
    """The lines of the docstring of a method, without programs."""
    doc = re.sub(r"::(\n(    .*)?)+(?=\n|$)", ": docs/primitives.md.", doc).rstrip() if "\n\n" in doc else doc
    doc = doc.replace("\\", "\\\\").replace('"""', "'''")
    if "\n" not in doc:
        return [f'        """{doc}"""']
    return ['        """' + doc.replace("\n", "\n        ").replace("\n        \n", "\n\n") + '\n        """']


def signature_text(p: Primitive, result: str | None = None, *first: str, of: inspect.Signature | None = None) -> str:
    """The signature as a user meets it: ``fuse(*loops: LoopRV | str, name: str | None = None) -> LoopRV``."""
    parts = list(first)
    star = False
    parameters = (of or p.signature).parameters.values()
    for q in parameters:
        if q.kind is q.KEYWORD_ONLY and not star:
            star = True
            if not any(o.kind is o.VAR_POSITIONAL for o in parameters):
                parts.append("*")
        kind = shown_annotation(q.annotation, q.name in p.kinds)
        name = f"*{q.name}" if q.kind is q.VAR_POSITIONAL else q.name
        default = "" if q.default is q.empty else f" = {q.default!r}"
        parts.append(f"{name}: {kind}{default}")
    return f"{p.name}({', '.join(parts)}) -> {result or result_type(p)}"
