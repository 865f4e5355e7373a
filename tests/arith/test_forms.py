"""The simplifier against a table of forms: the text that it makes, and the value at every point."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tir
from tir.arith import Analyzer
from tir.buffer import Range, decl_buffer
from tir.expr import BufferLoad, Cast, Expr, Var, as_bool, const
from tir.function import PrimFunc
from tir.script import parse
from tir.stmt import BufferStore, For
from tir.visit import substitute

TABLE = Path(__file__).parent / "forms.txt"
SAMPLE = (-13, -8, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 23, 24, 64)
NARROW = (-128, -127, -100, -2, -1, 0, 1, 2, 3, 100, 126, 127, 128, 200, 254, 255)


class Form(NamedTuple):
    variables: list[Var]
    ranges: dict[Var, range]
    premise: Expr | None
    given: Expr
    wanted: str


def forms() -> list[str]:
    return [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]


def read(line: str) -> Form:
    known, given, wanted = (part.strip() for part in line.split(" | "))
    known, _, premise = known.partition(" if ")
    names: dict[str, tuple[str, str | None]] = {}
    for item in known.split(", "):
        name, *more = item.split()
        dtype = next((m for m in more if ":" not in m), "int32")
        names[name] = dtype, next((m for m in more if ":" in m), None)
    params = ", ".join(f"{name}: T.{dtype}" for name, (dtype, _) in names.items())
    texts = [given, *([premise] if premise else [])]
    body = "\n".join(f"    T.evaluate({text})" for text in texts)
    func = parse(f"@T.prim_func\ndef f({params}):\n{body}\n")
    exprs = [s.value for s in (func.body.stmts if premise else [func.body])]
    variables = list(func.params)
    ranges = {v: range(*map(int, names[v.name][1].split(":"))) for v in variables if names[v.name][1]}
    return Form(variables, ranges, exprs[1] if premise else None, exprs[0], wanted)


def analyzer(form: Form) -> Analyzer:
    bounds = {v: Range(const(r.start, v.dtype), const(len(r), v.dtype)) for v, r in form.ranges.items()}
    known = Analyzer(bounds)
    if form.premise is not None:
        known.assume(as_bool(form.premise))
    return known


def values(form: Form, v: Var) -> list[int]:
    """The values of a variable to look at: all of a range, else small ones, and the ends of a narrow type."""
    if v in form.ranges:
        return list(form.ranges[v])
    if v.dtype.bits >= 32 and v.dtype.code == "int":
        return list(SAMPLE if len(form.variables) < 3 else SAMPLE[::2])
    return [k for k in NARROW if v.dtype.min_value <= k <= v.dtype.max_value]


def computed(e: Expr, variables: list[Var], points: list[tuple[int, ...]]) -> np.ndarray:
    """The values of ``e`` at ``points``, by the reference executor."""
    size = len(points)
    columns = [decl_buffer((size,), v.dtype, name=f"X{n}") for n, v in enumerate(variables)]
    out, p = decl_buffer((size,), "int64", name="Y"), Var("p")
    at = substitute(e, {v: BufferLoad(column, (p,)) for v, column in zip(variables, columns)})
    store = BufferStore(out, Cast("int64", at), (p,))
    handles = [Var(b.name, "handle") for b in (*columns, out)]
    loop = For(p, const(0), const(size), "serial", store)
    func = PrimFunc(handles, loop, buffer_map=dict(zip(handles, (*columns, out))))
    arrays = [np.array([q[n] for q in points]).astype(v.dtype) for n, v in enumerate(variables)]
    result = np.zeros(size, "int64")
    tir.build(func, "interpreter")(*arrays, result)
    return result


@pytest.mark.parametrize("line", forms())
def test_form(line):
    form = read(line)
    made = analyzer(form).simplify(form.given)
    assert str(made) == form.wanted
    assert analyzer(form).simplify(made) is made
    points = list(itertools.product(*(values(form, v) for v in form.variables)))
    if form.premise is not None:
        holds = computed(form.premise, form.variables, points)
        points = [p for p, known in zip(points, holds) if known]
    assert points
    before, after = (computed(e, form.variables, points) for e in (form.given, made))
    assert (before == after).all(), points[int(np.argmax(before != after))]
