"""Random block-form programs, written as dialect text: chains of producers and consumers of many shapes.

Sizes are small and odd on purpose. Values stay small integers, so that sums in any order are exact in every dtype used
and results can be compared for equality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..function import PrimFunc
from .decisions import Choice, SeededChoice

SIZES = (1, 2, 3, 4, 5, 7, 8)
DTYPES = ("float32", "float32", "float64", "int32", "int64", "int8", "uint8")


@dataclass(frozen=True)
class _Array:
    name: str
    shape: tuple[int, ...]


@dataclass
class _Builder:
    """The text of a program being written."""

    choice: Choice
    dtype: str
    wide: bool
    arrays: list[_Array] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    made: list[_Array] = field(default_factory=list)
    count: int = 0

    def n(self, value: int) -> str:
        return f"T.int64({value})" if self.wide else str(value)

    def source(self) -> _Array:
        """An array to read: often the newest."""
        return self.choice.pick(self.arrays[::-1])

    def matrix(self) -> _Array:
        """An array of two axes to read; there is one, as the first input is."""
        return self.choice.pick([a for a in reversed(self.arrays) if len(a.shape) == 2])

    def vector(self) -> _Array | None:
        fits = [a for a in reversed(self.arrays) if len(a.shape) == 1]
        return self.choice.pick(fits) if fits else None

    def make(self, shape: tuple[int, ...]) -> _Array:
        self.count += 1
        array = _Array(f"B{self.count}", shape)
        self.made.append(array)
        return array

    def done(self, array: _Array) -> None:
        self.arrays.append(array)

    def nest(self, shape: tuple[int, ...], kinds: str, lines: list[str], prefix: str = "i") -> None:
        """A perfect nest over ``shape`` with one block whose iterators are v0, v1 … of the ``kinds``."""
        k = self.count
        loops = [f"{prefix}{k}_{d}" for d in range(len(shape))]
        sizes = ", ".join(self.n(s) for s in shape)
        if len(shape) == 1:
            self.body.append(f"for {loops[0]} in range({sizes}):")
        else:
            self.body.append(f"for {', '.join(loops)} in T.grid({sizes}):")
        names = ", ".join(f"v{d}" for d in range(len(shape)))
        bound = ", ".join(loops)
        self.body.append(f'    with T.block("{prefix}_B{k}"):')
        self.body.append(f'        {names} = T.axis.remap("{kinds}", [{bound}])')
        self.body += [f"        {line}" for line in lines]

    def value(self, a: str, b: str | None = None) -> str:
        """A simple expression of ``a`` and perhaps ``b`` that keeps values small."""
        two = T(self.dtype, 2)
        options = [f"{a} + {T(self.dtype, 1)}", f"T.max({a}, {two})", f"T.min({a}, {two}) + {a}"]
        if b is not None:
            options += [f"{a} + {b}", f"{a} - {b}", f"T.max({a}, {b})", f"T.Select({a} < {b}, {a}, {b})"]
        if self.dtype.startswith("int"):
            options += [f"{a} % {T(self.dtype, 3)}", f"{a} // {two}", f"({a} & {T(self.dtype, 7)})"]
        return self.choice.pick(options)


def T(dtype: str, value: int) -> str:
    return f"T.{dtype}({value})"


def _vars(n: int) -> str:
    return ", ".join(f"v{d}" for d in range(n))


def _elementwise(b: _Builder) -> bool:
    a = b.source()
    same = [x for x in b.arrays if x.shape == a.shape]
    other = b.choice.pick(same)
    out = b.make(a.shape)
    at = _vars(len(a.shape))
    b.nest(a.shape, "S" * len(a.shape), [f"{out.name}[{at}] = {b.value(f'{a.name}[{at}]', f'{other.name}[{at}]')}"])
    b.done(out)
    return True


def _transpose(b: _Builder) -> bool:
    a = b.matrix()
    out = b.make((a.shape[1], a.shape[0]))
    if b.choice.pick((False, True)):
        b.nest(a.shape, "SS", [f"{out.name}[v1, v0] = {a.name}[v0, v1]"])
    else:
        b.nest(out.shape, "SS", [f"{out.name}[v0, v1] = {a.name}[v1, v0]"])
    b.done(out)
    return True


def _reversed(b: _Builder) -> bool:
    a = b.source()
    out = b.make(a.shape)
    rest = "".join(f", v{d}" for d in range(1, len(a.shape)))
    b.nest(a.shape, "S" * len(a.shape), [f"{out.name}[v0{rest}] = {a.name}[{a.shape[0] - 1} - v0{rest}]"])
    b.done(out)
    return True


def _strided(b: _Builder) -> bool:
    a = b.source()
    if a.shape[0] < 2:
        return False
    out = b.make((a.shape[0] // 2, *a.shape[1:]))
    rest = "".join(f", v{d}" for d in range(1, len(a.shape)))
    offset = b.choice.number(0, 1)
    b.nest(out.shape, "S" * len(out.shape), [f"{out.name}[v0{rest}] = {a.name}[v0 * 2 + {offset}{rest}]"])
    b.done(out)
    return True


def _stencil(b: _Builder) -> bool:
    a = b.source()
    if a.shape[-1] < 3:
        return False
    out = b.make((*a.shape[:-1], a.shape[-1] - 2))
    last = len(a.shape) - 1
    head = "".join(f"v{d}, " for d in range(last))
    taps = " + ".join(f"{a.name}[{head}v{last} + {k}]" for k in range(3))
    b.nest(out.shape, "S" * len(out.shape), [f"{out.name}[{head}v{last}] = {taps}"])
    b.done(out)
    return True


def _reduction(b: _Builder) -> bool:
    a = b.matrix()
    out = b.make((a.shape[0],))
    update = b.choice.pick((f"{out.name}[v0] + {a.name}[v0, v1]", f"T.max({out.name}[v0], {a.name}[v0, v1])"))
    lines = ["with T.init():", f"    {out.name}[v0] = {T(b.dtype, 0)}", f"{out.name}[v0] = {update}"]
    b.nest(a.shape, "SR", lines)
    b.done(out)
    return True


def _matmul(b: _Builder) -> bool:
    a = b.matrix()
    fits = [x for x in b.arrays if len(x.shape) == 2 and x.shape[0] == a.shape[1]]
    if fits:
        other = b.choice.pick(fits)
        columns, right = other.shape[1], f"{other.name}[v2, v1]"
    else:
        columns, right = a.shape[0], f"{a.name}[v1, v2]"
    out = b.make((a.shape[0], columns))
    left = f"T.min({a.name}[v0, v2], {T(b.dtype, 2)})"
    right = f"T.min({right}, {T(b.dtype, 2)})"
    lines = [
        "with T.init():",
        f"    {out.name}[v0, v1] = {T(b.dtype, 0)}",
        f"{out.name}[v0, v1] = {out.name}[v0, v1] + {left} * {right}",
    ]
    b.nest((a.shape[0], columns, a.shape[1]), "SSR", lines)
    b.done(out)
    return True


def _predicated(b: _Builder) -> bool:
    a = b.vector()
    if a is None:
        return False
    factor = b.choice.number(2, 4)
    n = a.shape[0]
    out = b.make(a.shape)
    k = b.count
    b.body += [
        f"for i{k}_0, i{k}_1 in T.grid({b.n(-(-n // factor))}, {b.n(factor)}):",
        f'    with T.block("i_B{k}"):',
        f"        v0 = T.axis.spatial({b.n(n)}, i{k}_0 * {factor} + i{k}_1)",
        f"        T.where(i{k}_0 * {factor} + i{k}_1 < {n})",
        f"        {out.name}[v0] = {b.value(f'{a.name}[v0]')}",
    ]
    b.done(out)
    return True


def _broadcast(b: _Builder) -> bool:
    a, row = b.matrix(), b.vector()
    if row is None or row.shape[0] not in a.shape:
        return False
    axis = a.shape.index(row.shape[0])
    out = b.make(a.shape)
    value = b.value(f"{a.name}[v0, v1]", f"{row.name}[v{axis}]")
    b.nest(a.shape, "SS", [f"{out.name}[v0, v1] = {value}"])
    b.done(out)
    return True


def _prefix(b: _Builder) -> bool:
    """A prefix sum: each element depends on the one before it, a dependence that a loop carries."""
    a = b.vector()
    if a is None:
        return False
    out = b.make(a.shape)
    before = f"T.if_then_else(v0 > 0, {out.name}[v0 - 1], {T(b.dtype, 0)})"
    lines = [
        f"T.reads({out.name}[0:{a.shape[0]}], {a.name}[v0])",
        f"T.writes({out.name}[v0])",
        f"{out.name}[v0] = T.min({before}, {T(b.dtype, 9)}) + {a.name}[v0]",
    ]
    b.nest(a.shape, "S", lines)
    b.done(out)
    return True


def _in_place(b: _Builder) -> bool:
    """A block that updates the result of an earlier one."""
    mine = [x for x in b.arrays if x in b.made]
    if not mine:
        return False
    target = b.choice.pick(mine)
    b.count += 1
    at = _vars(len(target.shape))
    value = f"{target.name}[{at}]"
    b.nest(target.shape, "S" * len(target.shape), [f"{value} = {value} + {T(b.dtype, 1)}"], prefix="u")
    return True


def _shared_loop(b: _Builder) -> bool:
    """Producer and consumer under one loop."""
    a = b.matrix()
    n, m = a.shape
    mid = b.make(a.shape)
    k = b.count
    out = b.make(a.shape)
    b.body += [
        f"for i{k} in range({b.n(n)}):",
        f"    for j{k} in range({b.n(m)}):",
        f'        with T.block("p_B{k}"):',
        f'            v0, v1 = T.axis.remap("SS", [i{k}, j{k}])',
        f"            {mid.name}[v0, v1] = {b.value(f'{a.name}[v0, v1]')}",
        f"    for j{k + 1} in range({b.n(m)}):",
        f'        with T.block("c_B{k}"):',
        f'            v0, v1 = T.axis.remap("SS", [i{k}, j{k + 1}])',
        f"            {out.name}[v0, v1] = {mid.name}[v0, {m - 1} - v1] + {a.name}[v0, v1]",
    ]
    b.done(mid)
    b.done(out)
    return True


def _triangle(b: _Builder) -> bool:
    a = b.matrix()
    if a.shape[1] < a.shape[0]:
        return False
    out = b.make((a.shape[0],))
    k = b.count
    b.nest(out.shape, "S", [f"{out.name}[v0] = {T(b.dtype, 0)}"], prefix="z")
    b.body += [
        f"for i{k} in range({b.n(a.shape[0])}):",
        f"    for j{k} in range(i{k} + 1):",
        f'        with T.block("t_B{k}"):',
        f"            v0 = T.axis.spatial({b.n(a.shape[0])}, i{k})",
        f"            v1 = T.axis.reduce({b.n(a.shape[1])}, j{k})",
        f"            {out.name}[v0] = {out.name}[v0] + {a.name}[v0, v1]",
    ]
    b.done(out)
    return True


STAGES: tuple[Callable[[_Builder], bool], ...] = (
    _elementwise, _transpose, _reversed, _strided, _stencil, _reduction, _matmul, _predicated, _broadcast, _prefix,
    _in_place, _shared_loop, _triangle,
)  # fmt: skip


def random_text(choice: Choice, max_stages: int = 4) -> str:
    """The text of a random program."""
    b = _Builder(choice, choice.pick(DTYPES), choice.pick((False, False, True)))
    inputs = [_Array("A0", (choice.pick(SIZES), choice.pick(SIZES)))]
    if choice.pick((True, False)):
        inputs.append(_Array("A1", (choice.pick(SIZES),)))
    b.arrays += inputs
    for _ in range(choice.number(1, max_stages)):
        if not choice.pick(STAGES)(b):
            _elementwise(b)
    # the last array is an output; each other result is an output or an allocated buffer
    outputs = [a for a in b.made if a is b.made[-1] or choice.number(0, 3) == 0]
    params = [f'{a.name}: T.Buffer(({_shape(b, a)},), "{b.dtype}")' for a in (*inputs, *outputs)]
    lines = ["@T.prim_func", f"def main({', '.join(params)}):"]
    lines += [f'    {a.name} = T.alloc_buffer(({_shape(b, a)},), "{b.dtype}")' for a in b.made if a not in outputs]
    return "\n".join([*lines, *(f"    {line}" for line in b.body)]) + "\n"


def _shape(b: _Builder, a: _Array) -> str:
    return ", ".join(b.n(s) for s in a.shape)


def random_program(seed: int | Choice, max_stages: int = 4) -> PrimFunc:
    """A random block-form function: the same one for the same seed.

    Chains of one to ``max_stages`` stages: elementwise, transposed, reversed, strided, stencils, broadcasts,
    reductions, matrix products, predicated tails, prefix sums, in-place updates, producers and consumers under one
    loop, triangles; in several dtypes, with int32 or int64 indices.

    >>> random_program(3).name
    'main'
    """
    from ..script import parse

    choice = SeededChoice(seed) if isinstance(seed, int) else seed
    result = parse(random_text(choice, max_stages))
    assert isinstance(result, PrimFunc)
    return result
