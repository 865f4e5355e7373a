"""The code that a program becomes, stage by stage, and the lines of a loop in it."""

from __future__ import annotations

import re
from typing import Any

from ..display import LANGUAGES
from ..function import IRModule
from ..target import Target
from ..transform import cpu_pipeline, gpu_pipeline, lower


def stages(target: Target | None) -> list[str]:
    """What there is to see of a program for ``target``: the passes of its pipeline, then what its backend writes."""
    gpu = target is not None and target.kind.startswith("cuda")
    passes = gpu_pipeline(target) if gpu else cpu_pipeline()
    sources = ("cuda", "ptx") if gpu else ("llvm", "llvm-opt", "asm")
    return [*dict.fromkeys(f"after {p.name}" for p in passes), "lowered", *sources]


def source(mod: IRModule, target: Target | None, stage: str) -> tuple[str, str]:
    """The text of a stage, and its language. Raises what lowering or compiling raises."""
    kind, _, name = stage.partition(" ")
    where = target or Target("llvm")
    if kind == "after":
        return lower(mod, upto=name, target=where).script(), "python"
    if kind == "lowered":
        return lower(mod, target=where).script(), "python"
    from codegen.build import build

    chosen: Any = Target("cuda", **where.attrs) if where.kind == "cuda-sim" else where
    return str(build(mod, chosen).source(kind)), LANGUAGES[kind]


def mark(text: str, name: str) -> list[tuple[int, int]]:
    """The lines, first and last from 0, that a loop called ``name`` takes in generated text: its head and what is inside.

    Heads are ``for name in``, ``for (int name = ``, and labels of LLVM with the name of their loop, which assembly has as
    comments: such a loop reaches to the last jump to its label. Steps of lowering keep the names of loops.

    >>> mark("\\n".join(["for i in range(4):", "    x", "y"]), "i")
    [(0, 1)]
    >>> mark("\\n".join(["for.i.1:", "  add", "  br label %for.i.1", "end.1:"]), "i")
    [(0, 2)]
    """
    lines = text.splitlines()
    quoted = re.escape(name)
    nested = re.compile(rf"\s*for (?:\w+, )*{quoted}(?:, \w+)* in |\s*for \(\w+ {quoted} = ")
    label = re.compile(rf"(for\.{quoted}\.\d+(?:\.i)*):|(\.\w+):\s+# %for\.{quoted}\.\d+(?:\.i)*\s*$")
    found = []
    for n, line in enumerate(lines):
        head = label.match(line)
        if head is not None:
            found.append((n, _last_jump(lines, n, head[1] or head[2])))
        elif nested.match(line):
            found.append((n, _end_of_indented(lines, n)))
    return found


def _end_of_indented(lines: list[str], head: int) -> int:
    last = head
    while last + 1 < len(lines) and (not lines[last + 1].strip() or _depth(lines[last + 1]) > _depth(lines[head])):
        last += 1
    closes = last + 1 < len(lines) and lines[last + 1].strip() == "}"
    return last + closes


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_jump(lines: list[str], head: int, label: str) -> int:
    jump = re.compile(rf"\s+(?:br|j\w+)\b.*(?<![\w.]){re.escape(label)}(?![\w.])")
    return max((n for n in range(head, len(lines)) if jump.match(lines[n])), default=head)
