"""The cache key of a compiled program: a hash of everything that determines the machine code.

That is the program with its names (errors and reports contain them), the target, the passes, this machine's CPU, and
the code of the compiler itself. Programs that involve code from another package have no key.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tir
from tir.expr import Call
from tir.function import IRModule
from tir.intrin_rules import has_rules
from tir.node import Node
from tir.op import OPS
from tir.target import Target

OWN = ("tir.", "codegen.")


class _Unnamed(Exception):
    """A value whose meaning cannot be serialized."""


def program_key(mod: IRModule, target: Target, machine: str, passes: Iterable[Any]) -> str | None:
    """Hex digits that differ whenever the machine code may differ; None for programs that must not be cached.

    ``machine`` names the CPU and LLVM's version. A pass, a rule of the code generator or a node that is defined outside
    of this package makes it None, and so does a rule of the user's for an operator.
    """
    from tir.transform.passes import Pass

    begun = compiler_key(target, machine)
    if begun is None:
        return None
    out = _Writer()
    try:
        out.parts.append(begun)
        for step in passes:
            if not isinstance(step, Pass) or not step.fn.__module__.startswith(OWN):
                return None
            out.write([step.fn.__module__, step.name, step.options])
        for name, func in mod.items():
            out.numbers.clear()  # the key does not depend on which nodes functions share
            out.write([name, func])
        out.write(mod.attrs)
    except _Unnamed:
        return None
    return hashlib.sha256(" ".join(out.parts).encode("utf-8", "surrogatepass")).hexdigest()


def compiler_key(target: Target, machine: str) -> str | None:
    """What differs whenever the machine code of a program may differ that these passes compile; None as :func:`program_key`."""
    code = _code()
    if code is None or not _own_rules() or has_rules(target.kind):
        return None
    out = _Writer()
    try:
        out.parts += [code, machine, *(str(target.cache_bytes(level)) for level in (1, 2, 3))]
        out.write([target.kind, dict(target.attrs)])
    except _Unnamed:
        return None
    return " ".join(out.parts)


class _Writer:
    """Serializes a program. A repeated node is written as its number: shared parts are written once, and variables of
    equal names stay distinct."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.numbers: dict[int, int] = {}

    def write(self, x: Any) -> None:
        parts = self.parts
        if isinstance(x, Node):
            number = self.numbers.get(id(x))
            if number is not None:
                parts.append(f"@{number}")
                return
            self.numbers[id(x)] = len(self.numbers)
            kind = type(x)
            if not kind.__module__.startswith(OWN):
                raise _Unnamed
            parts.append(f"({kind.__name__}")
            for name in kind.fields:
                self.write(getattr(x, name))
            if isinstance(x, Call):
                self.write([OPS[x.op].effect, OPS[x.op].pointers] if x.op in OPS else None)
            parts.append(")")
        elif isinstance(x, str):
            parts.append(f"{len(x)}:{x}")
        elif x is None or isinstance(x, (bool, int, float)):
            parts.append(f"{type(x).__name__} {x!r}")
        elif isinstance(x, (tuple, list)):
            parts.append("[")
            for item in x:
                self.write(item)
            parts.append("]")
        elif isinstance(x, dict):
            parts.append("{")
            for key, value in x.items():
                self.write(key)
                self.write(value)
            parts.append("}")
        elif isinstance(x, Target):
            self.write(["target", x.kind, dict(x.attrs)])
        elif hasattr(x, "tobytes") and x.dtype != object:  # a NumPy array or scalar
            parts.append(f"{type(x).__name__} {x.dtype} {x.shape} {hashlib.sha256(x.tobytes()).hexdigest()}")
        else:
            raise _Unnamed


def _own_rules() -> bool:
    """Whether no other package has registered a rule in the code generator."""
    loaded = sys.modules.get("codegen.llvm.generator")
    if loaded is None:
        return True
    rules = loaded.RULES
    made = (*rules.exprs.values(), *rules.stmts.values(), *rules.ops.values())
    return all(rule.__module__.startswith(OWN) for rule in made)


@functools.cache
def _code() -> str | None:
    """The code of this package: names, sizes and times of its files. None if they cannot be read."""
    found = []
    for package in (str(tir.__file__), __file__):
        root = os.path.dirname(package)
        for folder, _, files in os.walk(root):
            for name in files:
                if name.endswith(".py"):
                    about = os.stat(os.path.join(folder, name))
                    found.append(f"{folder[len(root) :]}/{name} {about.st_size} {about.st_mtime_ns}")
    if not found or Path(__file__).suffix != ".py":
        return None
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()
