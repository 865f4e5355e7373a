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


_NESTED = re.compile(r"\s*for (\w+(?:, \w+)*) in |\s*for \(\w+ (\w+) = ")
_LABEL = re.compile(r"(for\.(\w+)\.\d+(?:\.i)*):|(\.\w+):\s+# %for\.(\w+)\.\d+(?:\.i)*\s*$")
_JUMP = re.compile(r"\s+(?:br|b\.\w+|b|cbn?z|j\w+)\b(.*)")


def loop_lines(text: str) -> dict[str, list[tuple[int, int]]]:
    """The lines, first and last from 0, that the loops of generated text take, by their names: a head and what is inside.

    Heads are ``for name in``, ``for (int name = ``, and labels of LLVM with the name of their loop, which assembly has as
    comments: such a loop reaches to the last jump to its label. Steps of lowering keep the names of loops.

    >>> loop_lines("\\n".join(["for i, j in T.grid(4, 4):", "    x", "y"]))
    {'i': [(0, 1)], 'j': [(0, 1)]}
    >>> loop_lines("\\n".join(["for.i.1:", "  add", "  br label %for.i.1", "end.1:"]))
    {'i': [(0, 2)]}
    """
    lines = text.splitlines()
    found: dict[str, list[tuple[int, int]]] = {}
    jumps: dict[str, int] | None = None
    for n, line in enumerate(lines):
        if label := _LABEL.match(line):
            jumps = _last_jumps(lines) if jumps is None else jumps
            last = max(jumps.get(label[1] or label[3], n), n)
            found.setdefault(label[2] or label[4], []).append((n, last))
        elif nested := _NESTED.match(line):
            last = _end_of_indented(lines, n)
            for name in (nested[1] or nested[2]).split(", "):
                found.setdefault(name, []).append((n, last))
    return found


def places_in(text: str, names: list[tuple[str, str]]) -> dict[str, list[tuple[int, int]]]:
    """The lines of loops in generated text, by label; ``names`` are the labels and names of all loops in program order.
    Of loops with one name each has its own lines where the text has as many as the program, otherwise all of them."""
    found = loop_lines(text)
    made: dict[str, list[tuple[int, int]]] = {}
    for name, lines in found.items():
        labels = [label for label, own in names if own == name]
        apart = len(labels) == len(lines)
        made.update({label: [lines[n]] if apart else lines for n, label in enumerate(labels)})
    return made


def _end_of_indented(lines: list[str], head: int) -> int:
    last = head
    while last + 1 < len(lines) and (not lines[last + 1].strip() or _depth(lines[last + 1]) > _depth(lines[head])):
        last += 1
    closes = last + 1 < len(lines) and lines[last + 1].strip() == "}"
    return last + closes


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_jumps(lines: list[str]) -> dict[str, int]:
    """The last line that jumps to a label, by label."""
    jumps = ((n, jump[1]) for n, line in enumerate(lines) if (jump := _JUMP.match(line)))
    return {label: n for n, rest in jumps for label in re.findall(r"[\w.]+", rest)}
