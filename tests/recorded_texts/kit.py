"""The testing kit: what a seed draws of programs, arguments and steps, models of rounding, and what a reduction tries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

import tir
from tir.errors import attempt as drawn
from tir.library import elementwise, rows
from tir.script import parse
from tir.testing import Attempt, Case, random_inputs, random_program, reduce_case
from tir.testing.decisions import SeededChoice
from tir.testing.error_model import _Model
from tir.testing.programs import STAGES, _Array, _Builder, random_text
from tir.testing.reduce import _smaller_programs, _smaller_traces
from tir.testing.schedules import ALL_PRIMITIVES, _Scene

from .stages import Texts, attempt

HEAD = "@T.prim_func\ndef f({}):\n"


def program(params: str, body: str) -> Any:
    return parse(HEAD.format(params) + "".join(f"    {line}\n" for line in body.strip("\n").splitlines()))


# ---------------------------------------------------------------- programs

SHAPES = ((1, 1), (2, 3), (3, 2), (1, 4), (4, 4), (5, 3), (3,), (1,), (2,), (7, 2))


def programs(start: int) -> Texts:
    for seed in range(start, start + 40):
        yield str(seed), random_text(SeededChoice(seed), seed % 5 + 1)


def stage(make: Callable[[_Builder], bool]) -> Texts:
    """A kind of stage by itself: from arrays of one shape, of a second that may fit, and of those that it made."""
    for shape in SHAPES:
        lines = []
        for seed in range(12):
            dtype, wide = ("float32", "int8", "uint8")[seed % 3], seed % 2 == 1
            b = _Builder(SeededChoice(seed), dtype, wide)
            b.arrays += [_Array("A0", (4, 5)), _Array("A1", shape), _Array("A2", SHAPES[seed % len(SHAPES)])]
            made = [make(b) for _ in range(2)]
            lines += [f"{made} {b.count} {b.arrays} {b.made}", *b.body]
        yield "x".join(map(str, shape)), "\n".join(lines)


# ---------------------------------------------------------------- steps

TWO = """
for i, k in T.grid(8, 4):
    with T.block("S"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            S[vi] = T.float32(0)
        S[vi] = S[vi] + A[vi, vk]
for i in range(8):
    for j in range(4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] / S[vi]
"""
CHAIN = """
B = T.alloc_buffer((n, 8), "int32")
D = T.alloc_buffer((8,), "int32")
for i in T.serial(n, annotations={"note": 1, "mark": 2}):
    for j in range(8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
    for j in range(8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * 2
for i in range(8):
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = vi
for i in range(8):
    with T.block("U"):
        vi = T.axis.spatial(8, i)
        T.reads(C[0, vi], D[vi])
        T.writes(C[0, vi])
        C[0, vi] = C[0, vi] + D[vi]
"""
SCENES: dict[str, Callable[[], Any]] = {
    "sum": lambda: program('A: T.Buffer((8, 4), "float32"), S: T.Buffer((8,), "float32"), C: T.Buffer((8, 4), "float32")', TWO),
    "chain": lambda: program(
        "a: T.handle, c: T.handle, n: T.int32",
        'A = T.match_buffer(a, (n, 8), "int32")\nC = T.match_buffer(c, (n, 8), "int32")\n' + CHAIN.strip("\n"),
    ),
    "scalar": lambda: program('A: T.Buffer((), "float64")', 'with T.block("A"):\n    A[()] = T.float64(1)'),
    "nothing": lambda: program("", 'for i in range(4):\n    with T.block("E"):\n        vi = T.axis.spatial(4, i)\n        T.evaluate(vi)'),
    "module": lambda: tir.IRModule({"main": elementwise.scale_add(12), "other": rows.row_sum(4, 8)}),
    "tile": lambda: program(
        'A: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")',
        'for i, j in T.grid(8, 4):\n    with T.block("C"):\n        vi, vj = T.axis.remap("SS", [i, j])\n        C[vi, vj] = A[vi, vj] * 2',
    ),
}  # fmt: skip


def draws(name: str) -> Texts:
    """The arguments that seeds draw for a primitive, at each of the scenes."""
    for scene, make in SCENES.items():
        sch, lines = tir.Schedule(make(), seed=1), []
        for seed in range(16):
            found = drawn(lambda: ALL_PRIMITIVES[name](_Scene(sch, SeededChoice(seed))))  # noqa: B023
            lines.append(str(found) if isinstance(found, Exception) else _said(name, *found))
        yield scene, "\n".join(lines)


def _said(name: str, args: Any, kwargs: Any) -> str:
    """A step; of a function of indices, what it makes of one to three."""
    return str(Attempt(name, tuple(_maps(a) if isinstance(a, FunctionType) else a for a in args), kwargs))


def _maps(change: Any) -> list[str]:
    found = []
    for ndim in (1, 2, 3):
        at = [tir.expr.Var(name, "int32") for name in "ijk"[:ndim]]
        try:
            found.append(", ".join(map(str, change(*at))))
        except (TypeError, IndexError):
            found.append("")
    return found


# ---------------------------------------------------------------- arguments

PARAMETERS = {
    "sizes": "a: T.handle, b: T.handle, n: T.int32|k, s = T.int32(), T.int32()|A = T.match_buffer(a, (k, n), 'float32', strides=[s, 1])|B = T.match_buffer(b, (n + 1, k * 2), 'int8')",
    "views": "a: T.handle|n, s = T.int32(), T.int32()|A = T.match_buffer(a, (3, n), 'float16', strides=[n * 2, 2])",
    "scalars": "x: T.float32, y: T.bool, n: T.int32, m: T.int64, p: T.handle('int8'), q: T.handle",
    "lanes": "A: T.Buffer((2,), 'float16x4'), B: T.Buffer((2, 2), 'int8x2')",
    "types": "A: T.Buffer((9,), 'bool'), B: T.Buffer((9,), 'uint8'), C: T.Buffer((9,), 'bfloat16'), D: T.Buffer((9,), 'float8_e4m3fn'), E: T.Buffer((0, 4), 'int64')",
    "indices": "I: T.Buffer((6,), 'int32'), J: T.Buffer((6,), 'int64'), A: T.Buffer((3, 5), 'float32')|for i in range(6):|    A[I[i], T.cast(J[i], 'int32')] = A[I[i], 0]",
}  # fmt: skip


def arguments(name: str) -> Texts:
    params, *body = PARAMETERS[name].split("|")
    func = program(params, "\n".join([*body, "T.evaluate(0)"]))
    for given in ({}, {"n": 4}, {"k": 0, "n": 2}, {"m": 20, "s": 30}):
        for low, high in ((-3, 3), (1, 2), (0, 200)):
            made = [random_inputs(func, seed, given, low, high) for seed in range(3)]
            yield f"{given}{low}_{high}".replace(" ", ""), "\n".join(_array(a) for args in made for a in args)


def _array(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    return f"{value.dtype}{value.shape} by {value.strides}: {value.tolist()}"


# ---------------------------------------------------------------- rounding

FUNCTIONS = ("exp", "log", "sqrt", "tanh", "sin", "cos", "floor", "round", "abs", "fabs", "atan", "sigmoid", "popcount")
VALUES = (
    "A[i] + X[i]", "A[i] - X[i] * y", "A[i] / X[i]", "T.min(A[i], X[i] + y)", "T.max(A[i] + y, X[i])", "T.Select(A[i] < X[i], A[i] + y, y)",
    "T.Select(n < 3, A[i], y)", "T.if_then_else(A[i] >= y, A[i] / X[i], X[i])", "T.if_then_else(n == 0, A[i], X[i])",
    "T.if_then_else(not (A[i] > y), A[i], X[i])", "T.if_then_else(A[i] > y and X[i] > y, A[i], X[i])", "T.if_then_else(A[i] > y or n > 2, A[i], T.sqrt(X[i]))",
    "T.if_then_else(A[i] > y, T.if_then_else(X[i] > y, A[i], y), X[i])", "T.cast(T.cast(A[i], 'float64') * T.float64(2), 'float32')",
    "T.cast(T.cast(A[i], 'float16'), 'float32')", "T.cast(n, 'float32')", "T.cast(I[i] + n, 'float32')", "T.fma(A[i], X[i], y)", "T.pow(A[i], T.float32(2))",
    "T.pow(A[i], X[i])", "T.Let(v * v, where={v: A[i] + y})", "A[T.cast(A[i], 'int32')]", "A[I[i]] + T.float32(0.1)", "T.float32(-2)", "T.cast(A[i] < y, 'float32')",
    "T.exp(A[i] + X[i]) * T.float32(0.5)", *(f"T.{name}(A[i])" for name in FUNCTIONS[:-1]), *(f"T.{name}(A[i] + X[i] * y)" for name in FUNCTIONS[:-1]),
)  # fmt: skip
STATEMENTS = {
    "let": "v: T.float32 = A[0] + y\nA[1] = v * v\nw: T.int32 = n + 1\nA[2] = T.cast(w, 'float32')",
    "integers": "for i in range(n, 4):\n    I[i] = n\n    A[i] = A[i] + X[i]",
    "from-floats": "I[0] = T.cast(A[0], 'int32')",
    "branch": "if n < 3:\n    A[0] = X[0]\nelse:\n    A[1] = y",
    "branch-on-floats": "if A[0] < y:\n    A[0] = X[0]",
    "loop-to-floats": "for i in range(T.cast(A[0], 'int32')):\n    A[i] = X[0]",
    "kinds": "for i in T.parallel(4):\n    for j in T.vectorized(2):\n        A[i * 2 + j] = X[i]",
    "index-of-floats": "A[T.cast(A[0], 'int32')] = y",
    "while": "while I[0] < 3:\n    I[0] = I[0] + 1\n    A[0] = A[0] + y",
    "call": "T.evaluate(T.call_extern('g', A[0], dtype='int32'))",
    "flat": "B = T.decl_buffer((4,), 'float32', data=A.data)\nB[0] = y",
    "flat-integers": "B = T.decl_buffer((4,), 'int32', data=I.data)\nB[0] = n",
    "vectors": "A[T.ramp(0, 1, 4)] = T.broadcast(y, 4)",
    "assert": "assert n < 9, 'small'\nA[0] = y",
    "block": """
B = T.alloc_buffer((8,), "float32")
N = T.alloc_buffer((8,), "int32")
for i, k in T.grid(8, 8):
    with T.block("B"):
        vi, vk = T.axis.remap("SR", [i, k])
        T.where(i < n)
        T.block_attr({"note": 1})
        with T.init():
            B[vi] = T.float32(0)
        B[vi] = B[vi] + A[vk]
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        N[vi] = I[vi]
        X[vi] = B[vi] * T.cast(N[vi], "float32")
""",
    "view": 'with T.block("V"):\n    T.reads(A[0:4])\n    T.writes(A[0:4])\n    V = T.match_buffer(A[0:4], (4,), "float32")\n    V[0] = y',
    "view-integers": 'with T.block("V"):\n    T.reads(I[0:4])\n    T.writes(I[0:4])\n    V = T.match_buffer(I[0:4], (4,), "int32")\n    V[0] = n',
    "where": 'for i in range(8):\n    with T.block("V"):\n        vi = T.axis.spatial(8, i)\n        T.where(A[i] < y)\n        X[vi] = y',
}  # fmt: skip
OPERANDS = 'A: T.Buffer((8,), "{0}"), X: T.Buffer((8,), "{0}"), I: T.Buffer((8,), "int32"), y: T.float32, n: T.int32'


def rounding(body: str, dtype: str) -> str:
    """The program that computes the errors of another, or why there is none."""

    return attempt(lambda: _Model(program(OPERANDS.format(dtype), body)).function().script())


def values() -> Texts:
    for number, value in enumerate(VALUES):
        let = "v = T.float32()\n" if "T.Let" in value else ""
        body = f"{let}for i in range(8):\n    X[i] = {value}"
        yield str(number), "\n".join(rounding(body, dtype) for dtype in ("float32", "float16"))


def statements() -> Texts:
    for name, body in STATEMENTS.items():
        yield name, rounding(body, "float32")


# ---------------------------------------------------------------- reductions

REDUCED: dict[str, Callable[[], Any]] = {
    **{name: make for name, make in SCENES.items() if name != "nothing"},
    **{f"random-{seed}": partial(random_program, seed) for seed in (2, 5, 9)},
    **{name: partial(program, OPERANDS.format("float32"), STATEMENTS[name]) for name in ("let", "branch", "kinds", "while", "block", "view")},
}  # fmt: skip


def candidates(name: str) -> Texts:
    func = REDUCED[name]()
    case = Case(func, tir.Trace([]), ValueError("x"), 0)
    found = [attempt(lambda: make()[0].script()) for make in _smaller_programs(case)]  # noqa: B023
    yield "programs", "\n".join(found)


def traces() -> Texts:
    sch = tir.Schedule(SCENES["sum"]())
    i, k = sch.get_loops("S")
    sch.split(i, [2, 4])
    sch.unroll(k)
    sch.annotate(k, "note", 3)
    for count in range(len(sch.trace.steps) + 1):
        case = Case(sch.mod, tir.Trace(sch.trace.steps[:count]), ValueError("x"), 0)
        yield str(count), "\n".join(str(make()[1]) for make in _smaller_traces(case))


def descents() -> Texts:
    """What is left of programs when only a text has to stay, and how many checks that took."""
    for name, kept in (
        ("sum", "/"),
        ("chain", "* 2"),
        ("random-2", "T.max"),
        ("random-9", "for"),
        ("branch", "if"),
        ("block", "T.where"),
    ):
        case = reduce_case(REDUCED[name](), partial(_without, kept), tries=150, seconds=1e6)
        yield name, f"{case.tried}\n{case}"


def _without(kept: str, program: Any) -> None:
    if kept in program.script():
        raise ValueError(kept)


def each(group: str, make: Callable[[str], Texts], names: Iterable[str]) -> dict[str, Callable[[], Texts]]:
    return {f"{group}-{name}": partial(make, name) for name in names}


CASES: dict[str, Callable[[], Texts]] = {
    **{f"random_text-{start:03}": partial(programs, start) for start in range(0, 200, 40)},
    **{f"stage{one.__name__}": partial(stage, one) for one in STAGES},
    **each("draw", draws, ALL_PRIMITIVES),
    **each("random_inputs", arguments, PARAMETERS),
    **each("reduce", candidates, REDUCED),
    "reduce-traces": traces,
    "reduce-descents": descents,
    "error_model-values": values,
    "error_model-statements": statements,
}
