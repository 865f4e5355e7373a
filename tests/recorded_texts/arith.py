"""Scalar integers: random expressions simplified, with their bounds and residues, and iterator maps of random splits."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from tir.arith import Analyzer
from tir.arith.itermap import detect_iter_map
from tir.buffer import Range
from tir.expr import Expr, Max, Min, Select, Var, const

from .stages import Texts, attempt

COUNT = 12  # expressions of a case
EXTENTS = {"i": (0, 8), "j": (0, 5), "k": (2, 12), "n": (1, 9)}


class Drawing:
    """Random expressions of variables with ranges."""

    def __init__(self, seed: int, dtype: str):
        self.random = random.Random(f"arith {seed} {dtype}")
        self.variables = {name: Var(name, dtype) for name in EXTENTS}
        self.dtype = dtype

    def leaf(self) -> Expr:
        if self.random.random() < 0.3:
            return const(self.random.choice((0, 1, 2, 3, 4, 6, 8, 12)), self.dtype)
        return self.random.choice([*self.variables.values()])

    def expr(self, depth: int) -> Any:
        if depth == 0:
            return self.leaf()
        a, b = self.expr(depth - 1), self.expr(self.random.randrange(depth))
        kind = self.random.choice(("+", "+", "-", "*", "//", "%", "min", "max", "select", "*c", "//c", "%c"))
        by = self.random.choice((2, 3, 4, 8, 12))
        made = {
            "+": lambda: a + b,
            "-": lambda: a - b,
            "*": lambda: a * b,
            "//": lambda: a // (b * b + 1),
            "%": lambda: a % (b * b + 1),
            "min": lambda: Min(a, b),
            "max": lambda: Max(a, b),
            "select": lambda: Select(self.condition(depth - 1), a, b),
            "*c": lambda: a * by,
            "//c": lambda: a // by,
            "%c": lambda: a % by,
        }
        return made[kind]()

    def condition(self, depth: int) -> Any:
        a, b = self.expr(depth), self.expr(max(depth - 1, 0))
        return self.random.choice((lambda: a < b, lambda: a <= b, lambda: a.equal(b), lambda: a >= b))()

    def analyzer(self) -> Analyzer:
        bounds = {v: Range(const(low, v.dtype), const(high - low, v.dtype)) for v, (low, high) in self.ranges()}
        return Analyzer(bounds)

    def ranges(self) -> list[tuple[Var, tuple[int, int]]]:
        return [(v, EXTENTS[name]) for name, v in self.variables.items()]


def simplified(seed: int, dtype: str) -> Texts:
    drawing = Drawing(seed, dtype)
    known, lines = drawing.analyzer(), []
    for _ in range(COUNT):
        given = drawing.expr(drawing.random.choice((2, 3, 3)))
        condition = drawing.condition(2)
        lines.append(str(given))
        lines.append("  " + attempt(lambda: str(known.simplify(given))))
        lines.append("  free " + attempt(lambda: str(Analyzer().simplify(given))))
        lines.append(f"  {attempt(lambda: str(known.bound(given)))} {attempt(lambda: str(known.modular(given)))}")
        lines.append(f"  {str(condition)}: {attempt(lambda: str(known.simplify(condition)))}")
        lines.append("  " + attempt(lambda: str(known.can_prove(condition))))
        with known.constraint(condition):
            lines.append("  if so " + attempt(lambda: str(known.simplify(given))))
    yield "simplified", "\n".join(lines)


def maps(seed: int) -> Texts:
    """Indices over loops, most of which are digits of one number."""
    rng = random.Random(f"maps {seed}")
    lines = []
    for _ in range(COUNT):
        extents = [rng.choice((2, 3, 4, 6)) for _ in range(3)]
        loops = [Var(name) for name in "xyz"]
        flat = (loops[0] * extents[1] + loops[1]) * extents[2] + loops[2]
        whole = extents[0] * extents[1] * extents[2]
        by = rng.choice((2, 3, 4, extents[2], extents[1] * extents[2]))
        forms = ([flat], [flat // by, flat % by], [loops[1], flat // by], [flat + rng.choice((0, 1)), loops[2]])
        indices = rng.choice(forms)
        domains = {v: Range(const(0), const(e)) for v, e in zip(loops, extents)}
        predicate = [flat < whole - 1] if rng.random() < 0.3 else []
        for check in ("bijective", "surjective", "none"):
            found = attempt(lambda: described(detect_iter_map(indices, domains, *predicate, check=check)))
            lines.append(f"{[*map(str, indices)]} {extents} {len(predicate)} {check}: {found}")
    yield "maps", "\n".join(lines)


def described(found: Any) -> str:
    return str(found) if found else f"none: {found.error}"


CASES = {
    **{f"int32-{seed:02}": partial(simplified, seed, "int32") for seed in range(24)},
    **{f"int64-{seed:02}": partial(simplified, seed, "int64") for seed in range(4)},
    **{f"uint8-{seed:02}": partial(simplified, seed, "uint8") for seed in range(4)},
    **{f"maps-{seed:02}": partial(maps, seed) for seed in range(12)},
}
