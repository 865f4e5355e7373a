"""What the arithmetic says of expressions of every type, of boxes, of iterator maps and of index maps: a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import outcomes
import pytest

import tir
from tir import expr
from tir.arith import Analyzer
from tir.arith.index_map import IndexMap
from tir.arith.inverse import inverse_iter_map
from tir.arith.itermap import detect_iter_map
from tir.arith.regions import encloses, intersect, relax, union
from tir.arith.strided_lanes import first_lane, lane_offsets
from tir.buffer import Range
from tir.expr import const
from tir.op import call

TABLE = Path(__file__).parent / "outcomes_arith.txt"
TYPES = {
    "x": "int32", "y": "int32", "m": "int32", "n": "int32", "l": "int64", "x8": "int8", "u8": "uint8", "b": "bool",
    "c": "bool", "f": "float32", "g": "float32", "i": "int32", "j": "int32",
}  # fmt: skip


class Text(str):
    def __repr__(self):
        return str(self)


def show(index):
    """A sum of digits ``source // divisor % extent * scale``."""
    digits = [f"{source(s.source)} // {s.lower} % {s.extent} * {s.scale}" for s in index.splits]
    return f"{' + '.join([*digits, str(index.base)])} of {index.extent}"


def source(of):
    return (
        str(of) if isinstance(of, tir.Var) else f"<{' + '.join(f'{source(p.source)} * {p.scale}' for p in of.parts)}>"
    )


class Facts:
    """Variables, i in 0:16 and j in 0:5, and what is known of expressions in them."""

    def __init__(self):
        self.variables = {name: tir.Var(name, dtype) for name, dtype in TYPES.items()}
        self.loops = {self.variables["i"]: Range.of(0, 16), self.variables["j"]: Range.of(0, 5)}
        self.m1 = expr.max_(self.variables["m"], 1)

    def analyzer(self):
        return Analyzer(self.loops)

    def facts(self, e):
        known, made = self.analyzer(), self.analyzer().simplify(e)
        if not e.dtype.is_int or e.dtype.lanes > 1:
            return made
        return made, known.bound(e), known.modular(e)

    def with_facts(self, fact, asked):
        known, found = self.analyzer(), []
        with known.constraint(fact):
            found = [(e, known.can_prove(e), known.simplify(e)) for e in asked]
        return [*found, known.can_prove(asked[0])]

    def detect(self, indices, where=expr.TRUE, check="bijective"):
        found = detect_iter_map([expr.as_expr(e) for e in indices], self.loops, where, check)
        if not found:
            return found.error
        return [Text(show(index)) for index in found.indices]

    def inverse(self, indices):
        outputs = [tir.Var(name) for name in "pqrs"[: len(indices)]]
        found = detect_iter_map([expr.as_expr(e) for e in indices], self.loops)
        return [(v.name, e) for v, e in inverse_iter_map(found, outputs).items()] if found else found.error

    def hull(self, low, size, where=expr.TRUE):
        return relax([Range(low, size)], self.loops, where)

    def box(self, a, c):
        one, other = ([Range.from_min_extent(*pair)] for pair in (a, c))
        return union([one, other]), intersect([one, other]), encloses(one, other, self.analyzer())


def mapped(func):
    """What an index map of 16 x 5 elements is: itself, the new shape, its inverse, and the padding."""
    made = IndexMap.from_func(func)
    shape = (16, 5)
    parts = [made.as_python, lambda: made.map_shape(shape), lambda: made.inverse(shape).as_python()]
    parts += [
        lambda: made.padded_shape(shape),
        lambda: padding(made.non_surjective_inverse(shape)),
        made.symbolic_divisors,
    ]
    return [outcomes.shown(part) for part in parts]


def padding(found):
    return found[0].as_python(), found[1]


def names():
    known = Facts()
    v = known.variables
    ints, floats = (tir.decl_buffer((16,), dtype, "A") for dtype in ("int32", "float32"))
    effect = call("call_extern", "e", dtype="int32")
    methods = {name: getattr(known, name) for name in ("facts", "with_facts", "detect", "inverse", "hull", "box")}
    return {
        **vars(expr), **v, **methods, "if_": tir.if_then_else, "abs_": tir.abs, "call": call, "effect": effect,
        "load": tir.BufferLoad(ints, [v["x"]]), "dload": tir.BufferLoad(floats, [v["x"]]), "np": np, "mapped": mapped,
        "prove": lambda e: known.analyzer().can_prove(e), "equal": lambda a, c: known.analyzer().can_prove_equal(a, c),
        "m1": known.m1, "n1": expr.max_(v["n"], 0), "lane_offsets": lane_offsets, "first_lane": first_lane,
        "IndexMap": IndexMap, "const": const,
    }  # fmt: skip


@pytest.mark.parametrize("title", outcomes.titles(TABLE))
def test_arithmetic(request, title):
    outcomes.check(request, TABLE, title, names())
