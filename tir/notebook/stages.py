"""The code that a program becomes, stage by stage, and the lines of a loop in it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

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


class Code(NamedTuple):
    """The text of a stage and its language; ``origin`` is the text that it has the lines of, by ``.loc``."""

    text: str
    language: str
    origin: str = ""


def source(mod: IRModule, target: Target | None, stage: str) -> Code:
    """The code of a stage. Raises what lowering or compiling raises."""
    kind, _, name = stage.partition(" ")
    where = target or Target("llvm")
    if kind == "after":
        return Code(lower(mod, upto=name, target=where).script(), "python")
    if kind == "lowered":
        return Code(lower(mod, target=where).script(), "python")
    from codegen.build import build

    chosen = {"ptx": "cuda-ptx", "cuda": "cuda"}.get(kind)  # the first keeps the lines of the CUDA C in its PTX
    module: Any = build(mod, where if chosen is None else Target(chosen, **where.attrs))
    return Code(str(module.source(kind)), LANGUAGES[kind], str(module.source("cuda")) if kind == "ptx" else "")


_NESTED = re.compile(r"\s*for (\w+(?:, \w+)*) in |\s*for \((?:\w+ )+(\w+) = ")
_THREADS = re.compile(r"\s*(\w+) = T\.launch_thread\(|\s*const (?:\w+ )+(\w+) = (?:blockIdx|threadIdx)\.")
_LABEL = re.compile(r"(for\.(\w+)\.\d+(?:\.i)*):")
_PIECE = re.compile(r"\.L(BB\w+):|(?:#|//) %bb\.|\.Lfunc_end")
_IN_LOOP = re.compile(r"(?:in Loop: Header=|Parent Loop )(BB\w+)")
_HEADER = re.compile(r"=>\s*This (?:Inner )?Loop Header")
_FOR = re.compile(r"(?:#|//) %for\.(\w+?)\.\d+(?:\.us)?(?:\.i)*\s*$")
_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)\s+\d+(?:.*inlined_at\s+\d+\s+(\d+))?")
_JUMP = re.compile(r"\s+br\b(.*)")


def loop_lines(text: str) -> dict[str, list[tuple[int, int]]]:
    """The lines, first and last from 0, that the loops of generated text take, by their names: a head and what is inside.

    Heads are ``for name in``, ``for (int name = ``, and labels of LLVM with the name of their loop: it reaches to the last jump
    to its label. Assembly has these labels as comments, and others that tell which loops a piece is in. A loop that is bound to threads is what follows its name, as
    deep. Steps of lowering keep the names of loops.

    >>> loop_lines("\\n".join(["for i, j in T.grid(4, 4):", "    x", "y"]))
    {'i': [(0, 1)], 'j': [(0, 1)]}
    >>> loop_lines("\\n".join(["for.i.1:", "  add", "  br label %for.i.1", "end.1:"]))
    {'i': [(0, 2)]}
    """
    lines = text.splitlines()
    found: dict[str, list[tuple[int, int]]] = {}
    if _HEADER.search(text):
        return _in_assembly(lines)
    jumps: dict[tuple[int, str], int] | None = None
    functions = 0
    for n, line in enumerate(lines):
        functions += line == "}"  # labels of LLVM are names in one function
        if label := _LABEL.match(line):
            jumps = _last_jumps(lines) if jumps is None else jumps
            found.setdefault(label[2], []).append((n, max(jumps.get((functions, label[1]), n), n)))
        elif head := _NESTED.match(line) or _THREADS.match(line):
            last = _end_of_indented(lines, n, 0 if _NESTED.match(line) else 1)
            for name in (head[1] or head[2]).split(", "):
                found.setdefault(name, []).append((n, last))
    return found


def _in_assembly(lines: list[str]) -> dict[str, list[tuple[int, int]]]:
    """The lines of loops in assembly, by the comments of LLVM at the start of each piece."""
    pieces: list[tuple[int, str, set[str]]] = [
        (0, "", set())
    ]  # where it starts, its label, the labels of loops around it
    names: dict[str, str] = {}  # of loops, by label
    around: dict[str, set[str]] = {}
    for n, line in enumerate(lines):
        if start := _PIECE.match(line):
            pieces.append((n, start[1] or "", set()))
        _, label, inside = pieces[-1]
        inside.update(_IN_LOOP.findall(line))
        if label and (named := _FOR.search(line)):
            names[label] = named[1]
        if _HEADER.search(line):
            inside.add(label)
            around[label] = inside
    made: dict[str, list[tuple[int, int]]] = {}
    for (first, _, inside), (after, *_) in zip(pieces, [*pieces[1:], (len(lines), "", set())]):
        for name in {names[a] for label in inside for a in around.get(label, ()) if a in names}:
            _join(made.setdefault(name, []), first, after - 1)
    return made


def _join(found: list[tuple[int, int]], first: int, last: int) -> None:
    """Add lines after those that were found."""
    if found and found[-1][1] == first - 1:
        found[-1] = found[-1][0], last
    else:
        found.append((first, last))


class Loop(NamedTuple):
    """A loop of the program: its label, its name, and the label of the loop around it, if there is one."""

    label: str
    name: str
    parent: str


def places_in(code: Code, loops: list[Loop]) -> dict[str, list[tuple[int, int]]]:
    """The lines of ``loops``, which are those of the program in its order, in generated code, by label. Of loops with one
    name each has the lines with the loops that it has inside, if the text has as many as the program, otherwise all that are
    in the loops around it."""
    if code.origin:
        return _by_debug_lines(code.text, places_in(Code(code.origin, "c"), loops))
    found = loop_lines(code.text)
    inside: dict[str, set[str]] = {loop.label: set() for loop in loops}  # the names of loops in a loop of the program
    for loop in reversed(loops):
        if loop.parent:
            inside[loop.parent] |= {loop.name, *inside[loop.label]}
    made: dict[str, list[tuple[int, int]]] = {}
    within: dict[str, list[tuple[int, int]]] = {"": [(0, len(code.text))]}
    for name in dict.fromkeys(loop.name for loop in loops):
        same, lines = [loop.label for loop in loops if loop.name == name], found.get(name, [])
        if len(same) == len(lines):
            made.update(_paired(same, lines, inside, found))
        else:
            made.update((label, lines) for label in same)
    for label, _, parent in loops:
        own = [(a, b) for a, b in made.pop(label) if any(first <= a and b <= last for first, last in within[parent])]
        if own:
            made[label] = own
        within[label] = own or within[parent]
    return made


def _paired(
    labels: list[str],
    lines: list[tuple[int, int]],
    inside: dict[str, set[str]],
    found: dict[str, list[tuple[int, int]]],
) -> dict[str, list[tuple[int, int]]]:
    """Each label with the lines whose loops inside are the most like its own; in order where they are alike."""

    def names(first: int, last: int) -> set[str]:
        return {name for name, places in found.items() if any(first < a and b <= last for a, b in places)}

    have = [names(*place) for place in lines]
    made: dict[str, list[tuple[int, int]]] = {}
    left = list(range(len(lines)))
    for label in labels:
        best = min(left, key=lambda n: len(have[n] ^ inside[label]))
        left.remove(best)
        made[label] = [lines[best]]
    return made


def _by_debug_lines(text: str, origin: dict[str, list[tuple[int, int]]]) -> dict[str, list[tuple[int, int]]]:
    """The lines of PTX that come from the lines of loops in CUDA C: those after a ``.loc`` that names one of them. Where a
    function was inlined, the line of its call counts."""
    places: list[int] = []  # the line of CUDA C of each line, from 0
    at = -1
    for line in text.splitlines():
        if loc := _LOC.match(line):
            at = int(loc[2] or loc[1]) - 1
        elif line.startswith("}"):
            at = -1
        places.append(at)
    made: dict[str, list[tuple[int, int]]] = {}
    for label, ranges in origin.items():
        inside = [n for n, at in enumerate(places) if any(first <= at <= last for first, last in ranges)]
        for n in inside:
            _join(made.setdefault(label, []), n, n)
    return made


def _end_of_indented(lines: list[str], head: int, beside: int) -> int:
    """The last line after ``head`` that is deeper; ``beside`` is 1 for what is as deep, too."""
    last, least = head, _depth(lines[head]) + 1 - beside
    while last + 1 < len(lines) and (not lines[last + 1].strip() or _depth(lines[last + 1]) >= least):
        last += 1
    if beside:
        return last
    closes = last + 1 < len(lines) and lines[last + 1].strip() == "}"
    return last + closes


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_jumps(lines: list[str]) -> dict[tuple[int, str], int]:
    """The last line that jumps to a label, by the number of functions before it and the label."""
    found: dict[tuple[int, str], int] = {}
    functions = 0
    for n, line in enumerate(lines):
        functions += line == "}"
        if jump := _JUMP.match(line):
            found.update({(functions, label): n for label in re.findall(r"[\w.]+", jump[1])})
    return found
