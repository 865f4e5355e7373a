"""__init__.pyi of tir.transform: its passes, for editors and type checkers."""

from __future__ import annotations

import ast
from pathlib import Path

from tir import transform
from tir.transform.passes import PASSES

from .script_stubs import imports

STUB = Path(transform.__file__).with_suffix(".pyi")
HEADER = '''"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
from typing import Any
'''


def text() -> str:
    """The stub file as text: what ``__init__.py`` imports, and each pass from its file."""
    tree = ast.parse(STUB.with_suffix(".py").read_text(encoding="utf-8"))
    found = {
        (item.module, alias.name)
        for item in tree.body
        if isinstance(item, ast.ImportFrom) and item.level == 1 and item.module
        for alias in item.names
    }
    for made in PASSES.values():
        package, _, file = made.fn.__module__.rpartition(".")
        if package == transform.__name__:
            found.add((file, made.name))
    lines = imports((f".{file}", name, name) for file, name in sorted(found))
    return "\n".join([HEADER, *lines, "", "__all__: list[str]", "", "def __getattr__(name: str) -> Any: ...", ""])
