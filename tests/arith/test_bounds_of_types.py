"""Bounds of expressions of each integer type: they hold for every value, also where it wraps, and none is missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tir.arith import Analyzer
from tir.buffer import Range, decl_buffer
from tir.dtype import DType
from tir.expr import (
    Add,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Ramp,
    Select,
    Sub,
    Var,
    cast,
    const,
    trunc_div,
)
from tir.interp.numbers import wrap
from tir.op import call

TYPES = ["int8", "uint8", "int16", "uint32", "int32", "int64"]
DOMAINS = [((0, 5), (1, 3)), ((3, 130), (2, 100)), ((-4, 9), (1, 5)), ((-100, 20), (3, 80)), ((250, 6), (0, 4))]

# operator: the expression, and its values by NumPy, which wraps as the type does
BINARY: dict[str, tuple[Callable, Callable]] = {
    "+": (lambda a, b: a + b, np.add),
    "-": (lambda a, b: a - b, np.subtract),
    "*": (lambda a, b: a * b, np.multiply),
    "min": (Min, np.minimum),
    "max": (Max, np.maximum),
    "//": (lambda a, b: a // b, np.floor_divide),
}
BITS: dict[str, Callable] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
}


def cases(dtype: str):
    """Two variables of the type, their values in all combinations, and what is known of them."""
    kind = DType(dtype)
    for domain in DOMAINS:
        if all(kind.min_value <= low and low + n - 1 <= kind.max_value for low, n in domain):
            x, y = Var("x", kind), Var("y", kind)
            known = Analyzer({v: Range(const(low, kind), const(n, kind)) for v, (low, n) in zip((x, y), domain)})
            values = [np.arange(low, low + n).astype(dtype) for low, n in domain]
            yield known, (x, y), np.meshgrid(*values)


def ends(values: np.ndarray) -> tuple[int, int]:
    return int(values.min()), int(values.max())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name, dtype):
    """Tight where no value wraps; else the bounds of the type."""
    build, values = BINARY[name]
    for known, (x, y), (a, b) in cases(dtype):
        if name == "//" and b.min() <= 0:
            continue
        exact = ends(values(a.astype("int64"), b.astype("int64")))
        fits = DType(dtype).min_value <= exact[0] and exact[1] <= DType(dtype).max_value
        low, high = known.bound(build(x, y))
        if fits:
            assert (low, high) == exact
        else:
            wrapped = ends(values(a, b))
            assert low is None or (DType(dtype).min_value <= low <= wrapped[0])
            assert high is None or (wrapped[1] <= high <= DType(dtype).max_value)
            assert dtype not in ("int8", "uint8", "int16") or None not in (low, high)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", BITS)
def test_bits(name, dtype):
    """Of operands that are not negative: no bit that neither has; of a conjunction, at most the smaller operand."""
    for known, (x, y), (a, b) in cases(dtype):
        if "shift" in name and b.max() >= DType(dtype).bits:
            continue
        found, (low, high) = BITS[name](a, b), known.bound(call(name, x, y))
        assert (low is None or low <= found.min()) and (high is None or found.max() <= high)
        if a.min() < 0:
            continue
        if name == "bitwise_and":
            assert (low, high) == (0, min(a.max(), b.max()))
        elif name in ("bitwise_or", "bitwise_xor"):
            assert (low, high) == (0, (1 << int(max(a.max(), b.max())).bit_length()) - 1)
        elif int(a.max()) << int(b.max()) <= DType(dtype).max_value:
            assert (low, high) == ends(found)


@pytest.mark.parametrize("dtype", TYPES)
def test_counts_of_bits_and_magnitudes(dtype):
    bits = DType(dtype).bits
    for known, (x, _), (a, _) in cases(dtype):
        assert known.bound(call("popcount", x)) == known.bound(call("clz", x)) == (0, bits)
        low, high = ends(np.abs(a.astype("int64")))
        assert known.bound(call("abs", x)) == (0 if a.min() < 0 < a.max() else low, high)


EVERY = {
    "abs": lambda x: call("abs", x),
    "sum": lambda x: x + const(100, x.dtype),
    "square": lambda x: x * x,
    "sum of the greater": lambda x: _positive(x) + _positive(x),
    "product of the greater": lambda x: _positive(x) * _positive(x),
    "negative": lambda x: const(0, x.dtype) - x,
    "quotient by -1": lambda x: x // cast(x.dtype, const(-1, "int8")),
    "truncated quotient by -1": lambda x: Div(x, cast(x.dtype, const(-1, "int8"))),
    "half": lambda x: x // const(2, x.dtype) + const(1, x.dtype),
    "shift": lambda x: call("shift_left", x, const(1, x.dtype)),
}


def _positive(x):
    return Max(x, const(0, x.dtype))


@pytest.mark.parametrize("wide", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_data_wraps(dtype, wide):
    """The bounds of what is computed from a loaded element, and of a cast of it, hold for its extreme values."""
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, -101, -2, -1, 0, 1, 2, 100, 127, info.max // 2 + 1, info.max], dtype)
    x = decl_buffer((4,), dtype, "A")[0]
    for name, make in EVERY.items():
        for e in (make(x), cast(dtype, make(cast(wide, x))), make(cast(dtype, cast(wide, x) + const(1, wide)))):
            low, high = Analyzer().bound(e)
            found = [evaluate(e, x, int(value)) for value in values]
            assert (low is None or low <= min(found)) and (high is None or max(found) <= high), (name, e)


def evaluate(e, load, value: int) -> int:
    """What the executor's functions give for ``e``, a tree over the element ``load``."""
    if e is load:
        return value
    if isinstance(e, IntImm):
        return e.value
    parts = [evaluate(part, load, value) for part in e.children() if isinstance(part, Expr)]
    meaning = {
        Add: int.__add__,
        Sub: int.__sub__,
        Mul: int.__mul__,
        Max: max,
        FloorDiv: int.__floordiv__,
        Div: trunc_div,
    }
    found = abs(parts[0]) if isinstance(e, Call) and e.op == "abs" else None
    found = parts[0] << parts[1] if isinstance(e, Call) and e.op == "shift_left" else found
    found = parts[0] if isinstance(e, Cast) else meaning[type(e)](*parts) if found is None else found
    return wrap(found, e.dtype)


@pytest.mark.parametrize("wide", TYPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_casts(dtype, wide):
    """A value that the other type has stays; else it wraps to one that the other type has."""
    for known, (x, _), (a, _) in cases(dtype):
        low, high = known.bound(cast(wide, x))
        if DType(wide).min_value <= a.min() and a.max() <= DType(wide).max_value:
            assert (low, high) == ends(a)
        else:
            made = ends(a.astype(wide))
            assert (low is None or low <= made[0]) and (high is None or made[1] <= high)


def test_choices_and_names():
    for known, (x, y), (a, b) in cases("int32"):
        either = min(a.min(), b.min()), max(a.max(), b.max())
        assert known.bound(Select(x < y, x, y)) == either
        assert known.bound(Call("if_then_else", (x < y, x, y), x.dtype)) == either
        assert known.bound(call("likely", x < y)) == (0, 1)
        z = Var("z")
        assert known.bound(Let(z, x * 2, z + 1)) == ends(a * 2 + 1)


def test_lanes():
    for known, (x, y), (a, b) in cases("int32"):
        for lanes in (2, 4):
            every = np.concatenate([a + b * lane for lane in range(lanes)])
            assert known.bound(Ramp(x, y, lanes)) == ends(every)
            assert known.bound(Broadcast(x, lanes)) == ends(a)


def test_a_sum_that_is_known():
    """What is assumed of a sum bounds every sum that differs from it by a number."""
    x, y = Var("x"), Var("y")
    for least, shift in itertools.product((-3, 0, 4), (-2, 0, 5)):
        known = Analyzer()
        known.assume(x + y >= least)
        known.assume(x + y <= least + 2)
        assert known.bound(x + y + shift) == (least + shift, least + 2 + shift)
