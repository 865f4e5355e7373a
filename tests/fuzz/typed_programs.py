"""Random functions with types, and what NumPy computes for each: integers of every width, floats, booleans, casts.

An expression is drawn together with its values at all iterations of the loop, which NumPy computes from the description and
not from the program: nothing of the product takes part. What arithmetic means is said in docs/language.md. Floats are drawn
so that a compiler that fuses a product and a sum gets the same: no product or quotient is an operand of a sum.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
TYPES = (*INTEGERS, *FLOATS, "bool")
COMPARE = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal
}  # fmt: skip
ARITHMETIC = {"+": np.add, "-": np.subtract}
BITS = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
EXTREMES = {"T.min": np.minimum, "T.max": np.maximum}  # nan if either is nan


@dataclass(frozen=True)
class Value:
    """An expression of the dialect and what it is in each iteration: an array of its type."""

    text: str
    values: np.ndarray

    @property
    def dtype(self) -> str:
        return str(self.values.dtype)


@dataclass(frozen=True, eq=False)
class TypedProgram:
    """A function of the inputs, in order, and of ``O``, with what ``O`` has to be after it."""

    seed: int
    params: dict[str, np.ndarray]
    before: np.ndarray
    expected: np.ndarray
    loops: str  # the text of the loops, with `range` for the outer one
    is_parallel: bool  # whether the iterations of the outer loop are independent
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)  # arrays whose elements are in the text

    def source(self, name: str, *, threads: bool = False) -> str:
        """The text of the function; with ``threads``, the outer loop (or one around it) is bound to a GPU's threads."""
        arrays = {**self.params, "O": self.before}
        params = ", ".join(f'{name}: T.Buffer(({len(a)},), "{a.dtype}")' for name, a in arrays.items())
        loops, head = self.loops, ""
        lines = [line for name, a in self.tables.items() for line in _table(name, a)]
        if threads and self.is_parallel:
            first, rest = loops.split("):\n", 1)
            loops = f'{first.replace("range(", "T.thread_binding(")}, thread="threadIdx.x"):\n{rest}'
        elif threads:
            head = 'for t in T.thread_binding(1, thread="threadIdx.x"):\n'
            loops = "".join(f"    {line}\n" for line in loops.splitlines())
        body = "".join(f"    {line}\n" for line in (*lines, *(head + loops).splitlines()))
        return f"@T.prim_func\ndef {name}({params}):\n{body}"


def _table(name: str, values: np.ndarray) -> tuple[str, str]:
    said = ", ".join(f'float("{v}")' if v in ("nan", "inf", "-inf") else v for v in map(repr, values.tolist()))
    memory = f'{name}_data = T.allocate_const([{said}], "{values.dtype}", [{len(values)}])'
    return memory, f'{name} = T.decl_buffer(({len(values)},), "{values.dtype}", data={name}_data)'


def converted(x: np.ndarray, dtype: str) -> np.ndarray:
    """``x`` as another type: the low bits of integers, and of floats the nearest integer toward zero, 0 for nan."""
    if dtype == "bool":
        return x != 0
    if x.dtype.kind != "f" or dtype in FLOATS:
        return x.astype(dtype)
    wide = np.iinfo(dtype if np.dtype(dtype).itemsize >= 4 else "int32")
    whole = np.trunc(np.nan_to_num(x.astype("float64"), nan=0.0, posinf=np.inf, neginf=-np.inf))
    high, low = whole >= float(wide.max), whole <= float(wide.min)
    inside = np.where(high | low, 0.0, whole).astype(wide.dtype)
    return np.where(high, wide.max, np.where(low, wide.min, inside)).astype(wide.dtype).astype(dtype)


def truncated(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quotient and remainder of a division toward zero, wrapped to the type."""
    q, r = x // y, x % y
    is_low = (r != 0) & ((x < 0) != (y < 0))
    q = q + is_low.astype(q.dtype)
    return q, x - q * y


def data(dtype: str, n: int, seed: int) -> np.ndarray:
    """``n`` values of a type: its borders, small ones and any."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if dtype in FLOATS:
        info = np.finfo(dtype)
        edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.max, info.min, info.smallest_subnormal, 127.5, -128.9]
        edges += [255.9, -1.0, 32768.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 2.0**64, -(2.0**63), 0.5, -0.5, 65535.0]
        any_value = rng.normal(size=n) * 2.0 ** rng.integers(-4, 40 if dtype != "float16" else 15, n)
    else:
        info = np.iinfo(dtype)
        edges = [info.min, info.min + 1, 0, 1, 2, 3, info.max // 2, info.max - 1, info.max]
        any_value = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    with np.errstate(over="ignore"):
        result = any_value.astype(dtype)
        small = rng.random(n) < 0.3
        result[small] = rng.integers(0, 100, small.sum()).astype(dtype)
        result[rng.permutation(n)[: len(edges)]] = np.array(edges).astype(dtype)
    return result


class Draw:
    """Draws expressions in a loop of ``n`` iterations, from buffers of ``n`` elements that it makes as they are used."""

    def __init__(self, seed: int, n: int):
        self.random, self.seed, self.n = random.Random(seed), seed, n
        self.i = np.arange(n)
        self.arrays: dict[str, np.ndarray] = {}
        self.tables: dict[str, np.ndarray] = {}  # of other sizes than n
        self.share_of_tables = 0.0
        self.variable: Value | None = None  # of the loop, where that is not the int32 `i`

    def array(self, dtype: str) -> tuple[str, np.ndarray]:
        name = f"{dtype[0].upper()}{dtype[1:].lstrip('ntlo')}" if dtype[0] != "u" else f"U{dtype[4:]}"
        if name not in self.arrays:
            self.arrays[name] = data(dtype, self.n, 1000 * self.seed + TYPES.index(dtype))
        return name, self.arrays[name]

    def array_or_table(self, dtype: str) -> tuple[str, np.ndarray]:
        if not self.share_of_tables or not self.chance(self.share_of_tables):
            return self.array(dtype)
        name = f"K_{dtype}"
        if name not in self.tables:
            self.tables[name] = data(dtype, 32, self.seed)[: self.random.choice([2, 3, 4, 5, 8, 16, 32])]
        return name, self.tables[name]

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    # index arithmetic: values that stay small, of the loop variable and constants

    def index(self) -> Value:
        k, c = self.random.choice([2, 3, 4, 5, 8, 16]), self.random.randrange(8)
        n, i = self.n, self.i
        return self.random.choice(
            [
                Value("i", i),
                Value(f"(i + {c})", i + c),
                Value(f"(i * {k} - {c})", i * k - c),
                Value(f"(i // {k})", i // k),
                Value(f"(i % {k})", i % k),
                Value(f"((i + {c}) % {k} * {n // k} + i // {k})", (i + c) % k * (n // k) + i // k),
                Value(f"({n - 1} - i)", n - 1 - i),
                Value(f"((i * {k} + {c}) % {n})", (i * k + c) % n),
                Value(f"((i - {c}) // {k})", (i - c) // k),
            ]
        )

    def index_condition(self) -> Value:
        form, at = self.random.randrange(4), self.index()
        k, x = self.random.choice([2, 3, 5, 7, 8, 11, 16]), self.random.randrange(self.n)
        if form == 0:
            c = self.random.randrange(k)
            return Value(f"{at.text} % {k} == {c}", at.values % k == c)
        if form == 1:
            return Value(f"{at.text} % {k} < {k // 2}", at.values % k < k // 2)
        op = self.random.choice(list(COMPARE))
        return Value(f"{at.text} {op} {x}", COMPARE[op](at.values, x))

    # elements of buffers

    def element(self, dtype: str, depth: int) -> Value:
        """An element at ``i``, or at an index that is certainly inside: clamped or a remainder, maybe of data, or a sum of large terms."""
        if self.variable is not None and dtype == self.variable.dtype and self.chance(0.7):
            return self.variable
        name, array = self.array_or_table(dtype)
        form = self.random.randrange(7) if depth else 0
        if form == 6:
            at = self.index().values % len(array)
            return Value(f"{name}[{self.large_terms(at)}]", array[at])
        if form < 3 and len(array) == self.n:
            return Value(f"{name}[i]", array)
        if form < 3:
            form, at = 4, Value("i", self.i)
        else:
            at = self.index() if form < 5 else self.value(self.random.choice(["int32", "int64"]), depth - 1)
        n, wide = len(array), "T.int64" if at.dtype == "int64" and form == 5 else ""
        last, size = (f"{wide}({x})" if wide else str(x) for x in (n - 1, n))
        if form == 4:
            return Value(f"{name}[{at.text} % {size}]", array[at.values % n])
        zero = f"{wide}(0)" if wide else "0"
        return Value(f"{name}[T.max(T.min({at.text}, {last}), {zero})]", array[np.clip(at.values, 0, n - 1)])

    def large_terms(self, at: np.ndarray) -> str:
        """A sum that is ``at``, of loaded values and a constant: what is beside the last term may be more than int32 holds."""
        rng = np.random.default_rng(self.random.randrange(1000))
        first, last = rng.integers(2**30 - 1024, 2**30, self.n), rng.integers(0, self.n, self.n) - 2**31
        name, constant = f"L{len(self.arrays)}", int(last[0])
        terms = [f"J{len(self.arrays)}[i]", f"K{len(self.arrays)}[i]", f"({constant})"]
        if self.chance(0.5):  # all three are loaded
            self.arrays[name], terms[2] = last.astype("int32"), f"{name}[i]"
        second = at - first - (last if name in self.arrays else constant)
        self.arrays |= {terms[0][:-3]: first.astype("int32"), terms[1][:-3]: second.astype("int32")}
        a, b, c = self.random.sample(terms, 3)
        return self.random.choice([f"{a} + {b} + {c}", f"{a} + ({b} + {c})"])

    def guarded(self, dtype: str) -> tuple[Value, Value]:
        """A condition, and an element that is inside of its buffer where the condition holds."""
        name, array = self.array_or_table(dtype)
        n = len(array)
        if self.chance(0.3):  # the index is loaded
            index_type = self.random.choice(["int8", "int16", "int32", "int64"])
            at_name, at = self.array(index_type)
            text = f"T.Cast('int32', {at_name}[i])" if index_type[3:] in ("8", "16") else f"{at_name}[i]"
            zero, size = ("T.int64(0)", f"T.int64({n})") if index_type == "int64" else ("0", str(n))
            condition = f"{zero} <= {text} and {text} < {size}"
        else:
            index = self.index()
            text, at = index.text, index.values
            condition = f"0 <= {text} and {text} < {n}"
        inside = (at >= 0) & (at < n)
        return Value(condition, inside), Value(f"{name}[{text}]", array[np.clip(at, 0, n - 1)])

    # values

    def constant(self, dtype: str) -> Value:
        if dtype in FLOATS:
            choice: Any = self.random.choice([0.5, 1.0, 2.0, -3.0, 100.0, 0.25])
        else:
            info = np.iinfo(dtype)
            choice = self.random.choice(
                [1, 2, 3, 5, 6, 7, 12, 64, 100, info.max, info.min, info.max // 2 + 1, info.min and -1]
            )
        return Value(f"T.{dtype}({choice})", np.full(self.n, choice, dtype))

    def second(self, dtype: str, depth: int) -> Value:
        return self.constant(dtype) if self.chance(0.3) else self.value(dtype, depth)

    def divisor(self, dtype: str, depth: int) -> Value:
        """What is never zero."""
        if self.chance(0.6):
            signs = [1] if dtype[0] == "u" else [1, 1, -1]
            c = self.random.choice(signs) * self.random.choice([1, 2, 3, 4, 7, 8, 10, 12, 127])
            return Value(f"T.{dtype}({c})", np.full(self.n, c, dtype))
        b = self.value(dtype, depth)
        return Value(f"({b.text} | T.{dtype}(1))", b.values | np.array(1, dtype))

    def amount(self, dtype: str, depth: int) -> Value:
        """What a value of the type is shifted by."""
        bits = 8 * np.dtype(dtype).itemsize
        if self.chance(0.5):
            c = self.random.randrange(bits)
            return Value(f"T.{dtype}({c})", np.full(self.n, c, dtype))
        b = self.value(dtype, depth)
        return Value(f"({b.text} & T.{dtype}({bits - 1}))", b.values & np.array(bits - 1, dtype))

    def condition(self, depth: int) -> Value:
        form = self.random.choice(["compare", "compare", "index", "bool", "guard", "guard", "both", "both", "not"])
        if not depth:
            form = self.random.choice(["index", "bool"])
        if form == "index":
            return self.index_condition()
        if form == "bool":
            return self.element("bool", 0)
        if form == "not":
            a = self.condition(depth - 1)
            return Value(f"not ({a.text})", ~a.values)
        if form == "both":
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            if self.chance(0.5):
                return Value(f"(({a.text}) and ({b.text}))", a.values & b.values)
            return Value(f"(({a.text}) or ({b.text}))", a.values | b.values)
        dtype, op = self.random.choice(TYPES[:-1]), self.random.choice(list(COMPARE))
        if self.variable is not None and self.chance(0.7):
            dtype = self.variable.dtype
        if form == "compare":
            a, b = self.value(dtype, depth - 1), self.second(dtype, depth - 1)
            return Value(f"{a.text} {op} {b.text}", COMPARE[op](a.values, b.values))
        (inside, a), b = self.guarded(dtype), self.second(dtype, depth - 1)
        holds = COMPARE[op](a.values, b.values)
        if self.chance(0.5):
            return Value(f"({inside.text} and {a.text} {op} {b.text})", inside.values & holds)
        return Value(f"(not ({inside.text}) or {a.text} {op} {b.text})", ~inside.values | holds)

    def value(self, dtype: str, depth: int) -> Value:
        if dtype == "bool":
            return self.condition(depth)
        if not depth:
            return self.constant(dtype) if dtype in INTEGERS and self.chance(0.1) else self.element(dtype, 0)
        if self.chance(0.15):
            return self.element(dtype, depth)
        forms = [self.cast, self.cast, self.sum, self.product, self.extreme, self.choose, self.choose, self.of_index]
        if dtype in INTEGERS:
            forms += [self.sum, self.divide, self.divide, self.shift, self.bitwise]
        return self.random.choice(forms)(dtype, depth - 1)

    def cast(self, dtype: str, depth: int) -> Value:
        same_width = [t for t in INTEGERS if t.lstrip("uint") == dtype.lstrip("uint")]
        source = self.random.choice(same_width if same_width and self.chance(0.3) else TYPES)
        a = self.value(source, depth)
        return Value(f"T.Cast('{dtype}', {a.text})", converted(a.values, dtype))

    def of_index(self, dtype: str, depth: int) -> Value:
        """Index arithmetic as data: it passes an unsigned or a narrow type, so that what is made of it wraps around."""
        at, through = self.index(), self.random.choice(["uint32", "uint8", "int8", "int16", "uint64"])
        return Value(f"T.Cast('{dtype}', T.Cast('{through}', {at.text}))", converted(at.values.astype(through), dtype))

    def sum(self, dtype: str, depth: int) -> Value:
        a, b, op = self.value(dtype, depth), self.second(dtype, depth), self.random.choice("+-")
        return Value(f"({a.text} {op} {b.text})", ARITHMETIC[op](a.values, b.values))

    def product(self, dtype: str, depth: int) -> Value:
        a = self.value(dtype, depth)
        if dtype in INTEGERS:
            b = self.second(dtype, depth)
            return Value(f"({a.text} * {b.text})", a.values * b.values)
        b, c = self.constant(dtype), self.constant(dtype)
        op, values = ("*", a.values * b.values) if self.chance(0.5) else ("/", a.values / b.values)
        return Value(f"T.max({a.text} {op} {b.text}, {c.text})", np.maximum(values, c.values))

    def divide(self, dtype: str, depth: int) -> Value:
        a, b = self.value(dtype, depth), self.divisor(dtype, depth)
        x, y = a.values, b.values
        return self.random.choice(
            [
                Value(f"({a.text} // {b.text})", x // y),
                Value(f"({a.text} % {b.text})", x % y),
                Value(f"T.truncdiv({a.text}, {b.text})", truncated(x, y)[0]),
                Value(f"T.truncmod({a.text}, {b.text})", truncated(x, y)[1]),
            ]
        )

    def shift(self, dtype: str, depth: int) -> Value:
        a, b = self.value(dtype, depth), self.amount(dtype, depth)
        if self.chance(0.5):
            return Value(f"({a.text} << {b.text})", a.values << b.values)
        return Value(f"({a.text} >> {b.text})", a.values >> b.values)

    def bitwise(self, dtype: str, depth: int) -> Value:
        a, op = self.value(dtype, depth), self.random.choice([*BITS, "~", "T.abs"])
        if op == "~":
            return Value(f"(~{a.text})", ~a.values)
        if op == "T.abs":
            return Value(f"T.abs({a.text})", np.abs(a.values))
        b = self.second(dtype, depth)
        return Value(f"({a.text} {op} {b.text})", BITS[op](a.values, b.values))

    def extreme(self, dtype: str, depth: int) -> Value:
        a, b, op = self.value(dtype, depth), self.second(dtype, depth), self.random.choice(list(EXTREMES))
        return Value(f"{op}({a.text}, {b.text})", EXTREMES[op](a.values, b.values))

    def choose(self, dtype: str, depth: int) -> Value:
        b = self.second(dtype, depth)
        if self.chance(0.4):
            c, a = self.guarded(dtype)
            op = "T.if_then_else"
        else:
            c, a, op = (
                self.condition(depth),
                self.value(dtype, depth),
                self.random.choice(["T.if_then_else", "T.Select"]),
            )
        return Value(f"{op}({c.text}, {a.text}, {b.text})", np.where(c.values, a.values, b.values))


def typed_program(seed: int, *, largest: int = 1000, depth: int = 3) -> TypedProgram:
    """The random program of a seed, with loops of 64 to ``largest`` iterations."""
    rng = random.Random(f"typed program {seed}")
    n = rng.choice([x for x in (64, 65, 96, 100, 127, 128, 256, 333, 512, 1000) if x <= largest])
    draw, dtype, form = Draw(seed, n), rng.choice(TYPES), rng.choice(list(FORMS))
    if dtype == "bool" and form not in ("map", "vectors", "variable", "masked", "chosen"):
        dtype = rng.choice(INTEGERS)
    draw.share_of_tables = rng.choice([0, 0, 0, 0, 0.3])
    with np.errstate(all="ignore"):
        loops, before, expected = FORMS[form](draw, rng, dtype, depth)
    return TypedProgram(seed, draw.arrays, before, expected, loops, form in PARALLEL, draw.tables)


Made = tuple[str, np.ndarray, np.ndarray]


def _map(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    e = draw.value(dtype, depth)
    return f"for i in range({draw.n}):\n    O[i] = {e.text}\n", data(dtype, draw.n, draw.seed), e.values


def _vectors(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    """A map whose iterations are lanes of vectors."""
    e, lanes = draw.value(dtype, depth), rng.choice([k for k in (4, 8, 16, 32) if draw.n % k == 0] or [1])
    text = f"for o in range({draw.n // lanes}):\n    for v in T.vectorized({lanes}):\n        i: T.int32 = o * {lanes} + v\n"
    return f"{text}        O[i] = {e.text}\n", data(dtype, draw.n, draw.seed), e.values


def _variable(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    """A map over a variable that is narrow or unsigned, so that what is made of it wraps around."""
    kinds = [t for t in INTEGERS if t not in ("int32", "int64") and draw.n <= np.iinfo(t).max]
    draw.variable = Value("k", draw.i.astype(rng.choice(kinds)))
    loop = rng.choice(("range", "T.vectorized")) if draw.n <= 128 else "range"
    e = draw.condition(depth) if dtype == "bool" else draw.choose(dtype, depth)
    text = f"for k in {loop}(T.{draw.variable.dtype}({draw.n})):\n    i: T.int32 = T.Cast('int32', k)\n"
    return f"{text}    O[i] = {e.text}\n", data(dtype, draw.n, draw.seed), e.values


def _masked(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    c = draw.index_condition() if rng.random() < 0.5 else draw.condition(depth - 1)
    e, before = draw.value(dtype, depth), data(dtype, draw.n, draw.seed)
    text = f"for i in range({draw.n}):\n    if {c.text}:\n        O[i] = {e.text}\n"
    return text, before, np.where(c.values, e.values, before)


def _chosen(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    """Stores of which the remainder of the iteration's number chooses one, or none; or several, of which the last one stays."""
    (count, at), apart = _remainder(draw, rng), rng.random() < 0.3
    before = data(dtype, draw.n, draw.seed)
    after, left = before.copy(), np.ones(draw.n, bool)
    lanes = rng.choice([k for k in (4, 8, 16) if draw.n % k == 0] or [1])
    text = rng.choice([
        f"for i in range({draw.n}):\n",
        f"for o in range({draw.n // lanes}):\n    for v in {rng.choice(('T.vectorized', 'T.unroll'))}({lanes}):\n"
        f"        i: T.int32 = o * {lanes} + v\n",
    ])  # fmt: skip
    inner = "    " * (1 + text.count("for v"))
    for number in range(rng.randrange(1, 4)):
        op, k, e = rng.choice(["==", "==", "<", "!="]), rng.randrange(count), draw.value(dtype, depth - 1)
        is_rest = number and not apart and rng.random() < 0.4
        holds = np.ones(draw.n, bool) if is_rest else COMPARE[op](at.values, k)
        text += (
            f"{inner}else:\n" if is_rest else f"{inner}{'elif' if number and not apart else 'if'} {at.text} {op} {k}:\n"
        )
        text += f"{inner}    O[i] = {e.text}\n"
        after = np.where(holds & left, e.values, after)
        left &= apart | ~holds
        if is_rest:
            break
    return text, before, after


def _own(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    """A map in vectors, whose lanes have memory of their own; a loop updates it, or what it makes in the end, under a condition."""
    lanes, size = rng.choice([k for k in (4, 8, 16) if draw.n % k == 0] or [1]), rng.randrange(1, 4)
    at, times = rng.randrange(size), rng.randrange(1, 4)
    first, c, e = draw.value(dtype, depth - 1), draw.condition(depth - 1), draw.value(dtype, depth - 1)
    combined, fn = _combination(rng, dtype)
    kept = "O[i]" if rng.random() < 0.4 else f"m[{at}]"
    text = (
        f"for o in range({draw.n // lanes}):\n    for v in T.vectorized({lanes}):\n        i: T.int32 = o * {lanes} + v\n"
        f'        own = T.allocate([{size}], "{dtype}", "local")\n        m = T.decl_buffer(({size},), "{dtype}", data=own)\n'
        f"        {kept} = {first.text}\n"
        f"        for r in range({times}):\n            if {c.text}:\n"
        f"                m[{size - 1}] = {kept}\n                {kept} = {combined.format(f'm[{size - 1}]', e.text)}\n"
        f"        O[i] = {kept}\n"
    )
    after = first.values
    for _ in range(times):
        after = np.where(c.values, fn(after, e.values), after)
    return text, data(dtype, draw.n, draw.seed), after


def _remainder(draw: Draw, rng: random.Random) -> tuple[int, Value]:
    k, c, i = rng.choice([2, 2, 3, 4, 5, 8]), rng.randrange(3), draw.i
    return k, rng.choice([
        Value(f"i % {k}", i % k), Value(f"(i + {c}) % {k}", (i + c) % k), Value(f"i // 4 % {k}", i // 4 % k),
        Value(f"T.truncmod(i, {k})", i % k), Value(f"(i * 3 + {c}) % {k}", (i * 3 + c) % k),
    ])  # fmt: skip


def _named(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    """A value with a name, read twice, in loops whose variables make the index."""
    source = rng.choice(INTEGERS)
    x, e = draw.value(source, depth - 1), draw.value(dtype, depth - 1)
    back = converted(x.values, dtype)
    inner = rng.choice([k for k in (2, 4, 5, 8, 10, 16, 32) if draw.n % k == 0] or [1])
    text = (
        f"for o in range({draw.n // inner}):\n    for k in range({inner}):\n"
        f"        i: T.int32 = o * {inner} + k\n        x: T.{source} = {x.text}\n"
        f"        O[i] = T.Select(x < T.{source}(3), {e.text}, T.Cast('{dtype}', x))\n"
    )
    return text, data(dtype, draw.n, draw.seed), np.where(x.values < 3, e.values, back)


def _steps(values: np.ndarray, fn: Callable[[Any, Any], Any], start: Any) -> np.ndarray:
    result = np.empty(len(values) + 1, values.dtype)
    result[0] = start
    for k, v in enumerate(values):
        result[k + 1] = fn(result[k], v)
    return result


def _combination(rng: random.Random, dtype: str) -> tuple[str, Any]:
    table = {"{} + {}": np.add, "{} - {}": np.subtract, "T.max({}, {})": np.maximum, "T.min({}, {})": np.minimum}
    if dtype in INTEGERS:
        table |= {"{} * {}": np.multiply, "{} ^ {}": np.bitwise_xor}
    text = rng.choice(list(table))
    return text, table[text]


def _reduce(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    e, (text, fn) = draw.value(dtype, depth), _combination(rng, dtype)
    head, values = f"for i in range({draw.n}):\n", e.values
    if rng.random() < 0.4:
        c = draw.condition(depth - 1)
        head, values = f"{head}    if {c.text}:\n    ", values[c.values]
    before = data(dtype, 32, draw.seed)[:1]
    return f"{head}    O[0] = {text.format('O[0]', f'({e.text})')}\n", before, _steps(values, fn, before[0])[-1:]


def _scan(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    e, (text, fn) = draw.value(dtype, depth), _combination(rng, dtype)
    before = data(dtype, draw.n + 1, draw.seed)
    combined = text.format("O[i]", f"({e.text})")
    return f"for i in range({draw.n}):\n    O[i + 1] = {combined}\n", before, _steps(e.values, fn, before[0])


def _scatter(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    """Elements at remainders of data are combined, one after another."""
    e, (text, fn), at = draw.value(dtype, depth), _combination(rng, dtype), draw.value("int32", depth - 1)
    size = rng.choice([32, 33, 64])
    before = data(dtype, size, draw.seed)
    expected = before.copy()
    for k, v in zip(at.values % size, e.values):
        expected[k] = fn(expected[k], v)
    place = f"O[{at.text} % {size}]"
    return f"for i in range({draw.n}):\n    {place} = {text.format(place, f'({e.text})')}\n", before, expected


def _straight(draw: Draw, rng: random.Random, dtype: str, depth: int) -> Made:
    """Vectors of one array and of the result, one store after another, which overlap."""
    name, array = draw.array(dtype)
    lanes = rng.choice([64, 64, 32]) // array.itemsize
    before = data(dtype, 256, draw.seed)
    after, lines = before.copy(), []

    def term(place: int) -> Value:
        start = rng.choice([0, 0, 1, 5]) + rng.randrange(5) * lanes // 2
        known = {name: array, "O": after}
        source = rng.choice(list(known))
        start = min(start, len(known[source]) - lanes)
        if source == "O" and abs(start - place) < lanes:  # iterations that run at once would share elements
            start = place
        load = Value(f"{source}[v + {start}]", known[source][start : start + lanes].copy())
        if rng.random() < 0.7:
            return load
        first, other = rng.randrange(-1, lanes + 1), draw.constant(dtype)
        values = np.where(np.arange(lanes) > first, load.values, other.values[:lanes])
        return Value(f"T.if_then_else(v > {first}, {load.text}, {other.text})", values)

    for _ in range(rng.randrange(3, 9)):
        place = rng.randrange(7) * lanes // 2
        a, b, op = term(place), term(place), rng.choice(list(EXTREMES | ARITHMETIC))
        value = f"{op}({a.text}, {b.text})" if op in EXTREMES else f"{a.text} {op} {b.text}"
        after[place : place + lanes] = (EXTREMES | ARITHMETIC)[op](a.values, b.values)
        lines.append(f"for v in T.vectorized({lanes}):\n    O[v + {place}] = {value}\n")
    return "".join(lines), before, after


FORMS = {
    "map": _map, "vectors": _vectors, "variable": _variable, "masked": _masked, "chosen": _chosen, "named": _named, "reduce": _reduce, "scan": _scan,
    "scatter": _scatter, "straight": _straight, "own": _own
}  # fmt: skip
PARALLEL = ("map", "vectors", "masked", "chosen", "named", "own")
