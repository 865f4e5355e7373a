"""Random straight code: 24 to 512 stores in a row, each an operation unlike its neighbours', which LLVM's superword vectorizer
makes vectors of; and loops of a few such stores. NumPy computes what they store (see :mod:`tests.fuzz.typed_programs`)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.typed_programs import BITS, INTEGERS, Draw, TypedProgram, Value, converted, data, truncated


def straight_program(seed: int, *, largest: int = 512) -> TypedProgram:
    """The random program of a seed, with 24 to ``largest`` stores."""
    rng = random.Random(f"straight program {seed}")
    n, kinds = rng.choice([x for x in (24, 32, 56, 64, 128, 256, 512) if x <= largest]), rng.choice([2, 2, 3, 4, 8])
    draw, dtype = Draw(seed, n), rng.choice((*INTEGERS, "int32", "int8", "uint8"))
    with np.errstate(all="ignore"):
        if rng.random() < 0.3:
            made = [draw.value(dtype, rng.choice([1, 2])) for _ in range(kinds)]
        else:
            made = _chains(draw, rng, dtype, kinds)
        before = data(dtype, n, seed)
    choice = np.arange(n) % kinds if rng.random() < 0.7 else np.array([rng.randrange(kinds) for _ in range(n)])
    in_row = rng.choice([n, n, n, 4, 8])  # stores; those of a loop, if they are fewer
    choice = choice[np.arange(n) % in_row]
    expected = np.choose(choice, [e.values for e in made]).astype(dtype)
    places = [str(k) if in_row == n else f"(o * {in_row} + {k})" for k in range(in_row)]
    values = [re.sub(r"\bi\b", at, made[kind].text) for at, kind in zip(places, choice)]
    lines = [f"O[{at}] = {value}\n" for at, value in zip(places, values)]
    loops = lines if in_row == n else [f"for o in range({n // in_row}):\n", *(f"    {line}" for line in lines)]
    return TypedProgram(seed, draw.arrays, before, expected, "".join(loops), False)


def _chains(draw: Draw, rng: random.Random, dtype: str, kinds: int) -> list[Value]:
    """Chains of the same length, on the same elements and constants, that differ in their operations."""
    names = rng.sample(INTEGERS, rng.choice([0, 1, 2])) + [dtype]
    length, constants = rng.choice([1, 2, 2, 3]), rng.choice([True, True, False])
    bits = 8 * np.dtype(dtype).itemsize
    second = [
        _constant(draw, dtype, rng.choice([1, bits // 4, bits // 2, bits - 1, rng.randrange(1, bits)])) if constants else draw.element(dtype, 0)
        for _ in range(length)
    ]  # fmt: skip
    operations = rng.sample(list(_OPERATIONS), rng.choice([2, 3, 4]))
    return [_chain(draw, rng, dtype, names, second, operations) for _ in range(kinds)]


def _constant(draw: Draw, dtype: str, c: int) -> Value:
    return Value(f"T.{dtype}({c})", np.full(draw.n, c, dtype))


def _chain(
    draw: Draw, rng: random.Random, dtype: str, sources: list[str], second: list[Value], operations: list[str]
) -> Value:
    """Operations one after another, each on the last one's result and one of the ``second`` operands."""
    source = rng.choice(sources)
    x = draw.element(source, 0)
    if source != dtype:
        x = Value(f"T.Cast('{dtype}', {x.text})", converted(x.values, dtype))
    for y in second:
        text, fn, needs = _OPERATIONS[rng.choice(operations)]
        if needs and not y.text.startswith("T."):  # an element: of any value
            op, c = ("&", 8 * np.dtype(dtype).itemsize - 1) if needs == "amount" else ("|", 1)
            y = Value(f"({y.text} {op} T.{dtype}({c}))", BITS[op](y.values, np.array(c, dtype)))
        x = Value(text.format(x=x.text, y=y.text, d=dtype), fn(x.values, y.values))
    return x


def _through(kind: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda x, y: converted(converted(x, kind), str(x.dtype))


# the text, what it computes, what the second operand must be
_OPERATIONS: dict[str, tuple[str, Callable[[Any, Any], Any], str]] = {
    "left": ("({x} << {y})", lambda x, y: x << y, "amount"),
    "right": ("({x} >> {y})", lambda x, y: x >> y, "amount"),
    "quotient": ("({x} // {y})", lambda x, y: x // y, "divisor"),
    "remainder": ("({x} % {y})", lambda x, y: x % y, "divisor"),
    "div": ("T.truncdiv({x}, {y})", lambda x, y: truncated(x, y)[0], "divisor"),
    "mod": ("T.truncmod({x}, {y})", lambda x, y: truncated(x, y)[1], "divisor"),
    "sum": ("({x} + {y})", lambda x, y: x + y, ""),
    "difference": ("({x} - {y})", lambda x, y: x - y, ""),
    "reverse": ("({y} - {x})", lambda x, y: y - x, ""),
    "product": ("({x} * {y})", lambda x, y: x * y, ""),
    "min": ("T.min({x}, {y})", np.minimum, ""),
    "max": ("T.max({x}, {y})", np.maximum, ""),
    "and": ("({x} & {y})", np.bitwise_and, ""),
    "or": ("({x} | {y})", np.bitwise_or, ""),
    "xor": ("({x} ^ {y})", np.bitwise_xor, ""),
    "not": ("(~{x})", lambda x, y: ~x, ""),
    "abs": ("T.abs({x})", lambda x, y: np.abs(x), ""),
    "select": ("T.Select({x} < {y}, {x}, {x} + {y})", lambda x, y: np.where(x < y, x, x + y), ""),
    "if": ("T.if_then_else({x} == {y}, {y}, ({x} ^ {y}))", lambda x, y: np.where(x == y, y, x ^ y), ""),
    "saturated": (
        "T.Cast('{d}', T.min(T.max(T.Cast('int64', {x}) + T.Cast('int64', {y}), T.int64(-100)), T.int64(100)))",
        lambda x, y: np.clip(x.astype("int64") + y.astype("int64"), -100, 100).astype(x.dtype),
        "",
    ),
    "average": (
        "T.Cast('{d}', (T.Cast('int64', {x}) + T.Cast('int64', {y}) + T.int64(1)) >> T.int64(1))",
        lambda x, y: ((x.astype("int64") + y.astype("int64") + 1) >> 1).astype(x.dtype),
        "",
    ),
    **{
        kind: (f"T.Cast('{{d}}', T.Cast('{kind}', {{x}}))", _through(kind), "")
        for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")
    },
}  # fmt: skip
