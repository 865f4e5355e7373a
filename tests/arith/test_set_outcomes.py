"""Values and conditions as exact integer sets: their constraints as a table, and their points judged by Python."""

from __future__ import annotations

from pathlib import Path

import outcomes
import pytest

import tir
from tests.set_points import contains, points
from tir import expr
from tir.arith.pointwise import Unsupported, compile_expr
from tir.op import call
from tir.poly import formula, relation
from tir.script import parse

TABLE = Path(__file__).parent / "outcomes_sets.txt"
ENDS = {"i": (0, 7), "j": (0, 3)}


class Text(str):
    def __repr__(self):
        return str(self)


def names():
    types = {
        "i": "int32",
        "j": "int32",
        "n": "int32",
        "wide": "int32",
        "b": "bool",
        "f": "float32",
        "c8": "int8",
        "u8": "uint8",
        "u32": "uint32",
        "l": "int64",
    }
    v = {name: tir.Var(name, dtype) for name, dtype in types.items()}
    loops = {v["i"]: range(8), v["j"]: range(4)}

    def made():
        found = formula.Formula(formula.Names())
        for variable, values in loops.items():
            found.within(variable, expr.const(0), expr.const(len(values)))
        found.know(v["wide"], 0, 1000)
        return found

    def judged(found, e, points, wanted):
        """The constraints and, for what is over ``i`` and ``j`` alone, whether the points are those that Python finds."""
        text = " ".join(map(str, map(part, found.parts[4:])))
        try:
            run = compile_expr(e, list(loops))
        except Unsupported:
            return Text(text)
        right = {(p, q, *wanted(run(p, q))) for p in range(8) for q in range(4) if wanted(run(p, q)) is not None}
        assert {tuple(point) for point in points()} == right, e
        return Text(f"{text} right")

    def value(e):
        found = made()
        ends = [found.var(x) for x in loops]
        name = found.helper()
        found.equal(name, e)
        return judged(found, e, lambda: points(found.set([*ends, name])), lambda x: (int(x),))

    def where(e):
        found = made()
        ends = [found.var(x) for x in loops]
        found.require(e)
        return judged(found, e, lambda: points(found.set(ends)), lambda x: () if x else None)

    def with_name(add):
        found = made()
        ends = [found.var(x) for x in loops]
        add(found, name := found.helper())
        return Text(" ".join(map(str, map(part, found.parts[4:])))), len(points(found.set([*ends, name])))

    def names_of():
        known = formula.Names()
        first = [known.of(x) for x in (v["i"], tir.Var("i"), tir.Var("a b"), tir.Var("é"), tir.Var(""), v["i"])]
        return first, known.fresh(), known.fresh("q")

    def unchanged_after(e):
        found = made()
        before = len(found.parts), len(found.helpers), list(found.used), dict(found.values)
        taken = found.takes(found.equal, "x", e)
        return taken, before == (len(found.parts), len(found.helpers), list(found.used), dict(found.values))

    def raises():
        raise ValueError("as it is")

    def ask_too_long():
        raise relation.TooLong

    return {
        **vars(expr), **v, **vars(formula), **vars(relation), "points": points, "contains": contains, "call": call, "if_": tir.if_then_else,
        "load": tir.BufferLoad(tir.decl_buffer((8,), "int32", "A"), [v["i"]]), "value": value, "where": where,
        "between": lambda low, extent: with_name(lambda of, name: of.between(name, low, extent)),
        "lanes": lambda base, step, count: with_name(lambda of, name: of.lane_of(name, base, step, count)),
        "equal_to": lambda e: with_name(lambda of, name: of.equal(name, e)), "names_of": names_of,
        "unchanged_after": unchanged_after, "raises": raises, "error": str, "ask_too_long": ask_too_long,
        "ask_affine": lambda: made().equal("x", v["i"] * v["j"]), "ask_number": lambda: 3,
    }  # fmt: skip


def part(of):
    """A row as text, or the alternatives."""
    if isinstance(of, relation.Row):
        return (
            "["
            + " + ".join([f"{c}*{name}" for name, c in of.terms.items()] + [str(of.constant)])
            + (" =" if of.equality else "")
            + "]"
        )
    return "(" + " | ".join(" ".join(map(part, case)) for case in of) + ")"


@pytest.mark.parametrize("title", outcomes.titles(TABLE))
def test_sets(request, title):
    outcomes.check(request, TABLE, title, names())


@pytest.mark.parametrize(
    "index",
    [
        'T.Cast("int32", T.Cast("int8", v)) + 128',
        'T.Cast("int32", T.Cast("uint8", v))',
        'T.Cast("int32", T.Cast("uint16", v) * T.uint16(256) // T.uint16(256))',
        'T.Cast("int32", T.Cast("int16", v) * T.int16(219) % T.int16(256))',
    ],
)
def test_iterations_whose_narrow_index_wraps_around_are_not_parallel(index):
    func = parse(
        f"""
@T.prim_func
def f(A: T.Buffer((256,), "int32")):
    for i in range(300):
        with T.block("b"):
            v = T.axis.opaque(300, i)
            A[{index}] = v
"""
    )
    with pytest.raises(tir.ScheduleError, match="may wrap around|may not be independent"):
        tir.Schedule(func).parallel("i")
