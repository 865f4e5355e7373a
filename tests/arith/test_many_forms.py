"""Many expressions: what the simplifier makes of each, its bounds and its residues, as a table and at points.

``many_forms.txt`` has a line for each: the expression, its simplest form, its bounds, and ``c * k + r`` that it equals.
The variables are i in 0:16, j in 0:5, and n and m, any integers. Python evaluates both texts at points. To add a line,
write the expression, and run ``pytest --update-golden``.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import pytest

import tir
from tir import expr
from tir.arith import Analyzer
from tir.buffer import Range

TABLE = Path(__file__).parent / "many_forms.txt"
LINES = TABLE.read_text("utf-8").splitlines()
CHUNK = 60
ENDS = {"i": (0, 15), "j": (0, 4), "n": (-40, 40), "m": (-6, 6)}


def trunc_div(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def cast(dtype, x):
    bits = {"int8": 8, "uint8": 8, "int32": 32, "int64": 64, "bool": 1}[dtype]
    low = x & ((1 << bits) - 1)
    return low - (1 << bits) if dtype.startswith("int") and low >> (bits - 1) else low


NUMBERS = {
    "floordiv": lambda x, y: x // y, "floormod": lambda x, y: x % y, "truncdiv": trunc_div,
    "truncmod": lambda x, y: x - y * trunc_div(x, y), "min": min, "max": max, "Min": min, "Max": max,
    "Select": lambda c, x, y: x if c else y, "if_then_else": lambda c, x, y: x if c else y, "Cast": cast,
    "bitwise_xor": lambda x, y: x ^ y, "Mod": lambda x, y: x - y * trunc_div(x, y), "Div": trunc_div,
    "And": lambda x, y: x and y, "Or": lambda x, y: x or y, "Not": lambda x: not x, "abs": abs, "int64": int,
}  # fmt: skip
NODES = {
    "floordiv": expr.floordiv, "floormod": expr.floormod, "truncdiv": expr.truncdiv, "truncmod": expr.truncmod,
    "min": expr.min_, "max": expr.max_, "Select": expr.Select, "Cast": expr.cast, "And": expr.logical_and,
    "Or": expr.logical_or, "Not": expr.logical_not, "bitwise_xor": lambda x, y: x ^ y, "abs": tir.abs,
    "if_then_else": lambda c, x, y: tir.if_then_else(c, x, y),
}  # fmt: skip


def points():
    draw = random.Random(1)
    ends = [(i, j, n, m) for i in (0, 7, 15) for j in (0, 4) for n in (-33, -1, 0, 2, 17) for m in (-3, 1, 4)]
    return ends + [tuple(draw.randint(*ENDS[name]) for name in "ijnm") for _ in range(60)]


def facts(text):
    """The line of an expression."""
    variables = {name: tir.Var(name) for name in "ijnm"}
    i, j = variables["i"], variables["j"]
    known = Analyzer({i: Range.of(0, 16), j: Range.of(0, 5)})
    given = eval(text, {"T": SimpleNamespace(**NODES), **variables})  # noqa: S307
    made = known.simplify(given)
    assert known.simplify(made) is made, text
    low, high = known.bound(given) if given.dtype.is_int else (None, None)
    factor, rest = known.modular(given) if given.dtype.is_int else (1, 0)
    return f"{text} | {made} | {low}:{high} | {factor}k+{rest}"


def values(text):
    code = compile(text.strip(), text, "eval")
    found = []
    for i, j, n, m in points():
        try:
            found.append(int(eval(code, {"T": SimpleNamespace(**NUMBERS), "i": i, "j": j, "n": n, "m": m})))  # noqa: S307
        except ZeroDivisionError:
            found.append(None)
    return found


@pytest.mark.parametrize("start", range(0, len(LINES), CHUNK))
def test_forms(request, start):
    wanted = LINES[start : start + CHUNK]
    made = [facts(line.split(" | ")[0]) for line in wanted]
    if request.config.getoption("--update-golden"):
        lines = TABLE.read_text("utf-8").splitlines()
        TABLE.write_text("\n".join([*lines[:start], *made, *lines[start + CHUNK :], ""]), "utf-8")
    for got, line in zip(made, wanted):
        assert got == line


@pytest.mark.parametrize("start", range(0, len(LINES), CHUNK))
def test_values(start):
    for line in LINES[start : start + CHUNK]:
        given, made, ends, residue = line.split(" | ")
        before, after = values(given), values(made)
        assert all(x is None or x == y for x, y in zip(before, after)), line
        low, high = (None if end == "None" else int(end) for end in ends.split(":"))
        factor, rest = map(int, residue.split("k+"))
        for x in (x for x in before if x is not None):
            assert (low is None or low <= x) and (high is None or x <= high), line
            assert x == rest if factor == 0 else (x - rest) % factor == 0, line
