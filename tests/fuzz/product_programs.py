"""Programs at sizes large enough for tiles, panels and tails: einsums and convolutions as users write them, and permuted axes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tir import te
from tir.expr import Expr, Var
from tir.function import PrimFunc
from tir.script import parse
from tir.testing.decisions import Choice

# types of the operands, and of the sum
TYPES = (
    ("float32", "float32", "float32"),
    ("float32", "float32", "float32"),
    ("float16", "float16", "float32"),
    ("bfloat16", "bfloat16", "float32"),
    ("int8", "int8", "int32"),
    ("uint8", "int8", "int32"),
    ("int32", "int32", "int32"),
)
SIZES = {
    "batch": (1, 2, 3),
    "row": (1, 2, 5, 8, 13, 16, 24, 33),
    "column": (1, 2, 7, 8, 16, 17, 32, 35, 64, 81),
    "term": (1, 3, 4, 8, 16, 19, 32, 1024),
    "permuted": (5, 16, 17, 32, 40, 64),
}
MOST = 1 << 14  # products, for the reference executor


@dataclass(frozen=True)
class _Axes:
    """The axes of an einsum, by role, and their sizes."""

    roles: Mapping[str, str]
    sizes: Mapping[str, int]

    @staticmethod
    def drawn(c: Choice) -> _Axes:
        counts = {"batch": c.pick((0, 0, 0, 1)), "row": c.pick((1, 1, 1, 2, 0)), "column": c.pick((1, 1, 1, 2))}
        counts["term"] = c.pick((1, 1, 2))
        roles, sizes, total = dict[str, str](), dict[str, int](), 1
        for role, count in counts.items():
            for number in range(count):
                name = f"{role[0]}{number}"
                fitting = [s for s in SIZES[role] if s * total <= MOST]
                roles[name], sizes[name] = role, c.pick(fitting)
                total *= sizes[name]
        return _Axes(roles, sizes)

    def of(self, *roles: str) -> list[str]:
        return [name for name, role in self.roles.items() if role in roles]


def _shuffled(c: Choice, names: Sequence[str]) -> list[str]:
    """The names in another order, or in this one."""
    rest, found = list(names), list[str]()
    if c.pick((True, True, False)):
        return rest
    while rest:
        found.append(rest.pop(c.number(0, len(rest) - 1)))
    return found


def einsum(c: Choice) -> PrimFunc:
    """A product of two operands, each with its axes in any order, summed; and perhaps something behind it."""
    axes = _Axes.drawn(c)
    left, right, dtype = c.pick(TYPES)
    a = _shuffled(c, axes.of("batch", "row", "term"))
    b = _shuffled(c, axes.of("batch", "term", "column"))
    out = axes.of("batch", "row", "column")
    A = te.placeholder([axes.sizes[x] for x in a], left, name="A")
    B = te.placeholder([axes.sizes[x] for x in b], right, name="B")
    terms = {x: te.reduce_axis((0, axes.sizes[x]), x) for x in axes.of("term")}

    def value(*point: Var) -> Expr:
        at = {**dict(zip(out, point)), **{x: t.var for x, t in terms.items()}}
        one, other = A[tuple(at[x] for x in a)], B[tuple(at[x] for x in b)]
        return te.sum(one.astype(dtype) * other.astype(dtype), axis=list(terms.values()))

    return _followed(c, [A, B], te.compute([axes.sizes[x] for x in out], value, name="C"))


def convolution(c: Choice) -> PrimFunc:
    """A convolution of images, channels last or first, with padding and stride, in groups, or one filter for each channel."""
    side, kernel, stride = c.pick((5, 8, 9)), c.pick((1, 3)), c.pick((1, 1, 2))
    pad = kernel // 2 if c.pick((True, False)) else 0
    kind, last = c.pick(("dense", "dense", "depthwise", "grouped")), c.pick((True, False))
    groups = 4 if kind == "grouped" else 1
    channels, filters = (8, c.pick((8, 16))) if groups > 1 else (c.pick((1, 3, 8)), c.pick((1, 5, 8, 16)))
    out = (side + 2 * pad - kernel) // stride + 1
    X = te.placeholder((1, side, side, channels) if last else (1, channels, side, side), name="X")
    first = 1 if last else 2

    def padded(*at: Var) -> Expr:
        y, x = at[first : first + 2]
        inside = te.all(y >= pad, y < side + pad, x >= pad, x < side + pad)
        return te.if_then_else(inside, X[(*at[:first], y - pad, x - pad, *at[first + 2 :])], te.const(0.0, "float32"))

    wide = [s.value + 2 * pad * (first <= n < first + 2) for n, s in enumerate(X.shape)]
    P = te.compute(wide, padded, name="P") if pad else X
    p, q = (te.reduce_axis((0, kernel), x) for x in ("p", "q"))

    def at(n: Expr, y: Expr, x: Expr, k: Expr) -> Expr:
        y, x = y * stride + p.var, x * stride + q.var
        return P[n, y, x, k] if last else P[n, k, y, x]

    if kind == "depthwise":
        W = te.placeholder((kernel, kernel, channels), name="W")
        shape = (1, out, out, channels) if last else (1, channels, out, out)

        def own(*i: Var) -> Expr:
            n, y, x, f = i if last else (i[0], i[2], i[3], i[1])
            return te.sum(at(n, y, x, f) * W[p, q, f], axis=[p, q])

        return _followed(c, [X, W], te.compute(shape, own, name="C"))
    r = te.reduce_axis((0, channels // groups), "r")
    kernels = (kernel, kernel, channels // groups, filters) if last else (filters, channels // groups, kernel, kernel)
    W = te.placeholder(kernels, name="W")
    shape = (1, out, out, filters) if last else (1, filters, out, out)

    def value(*i: Var) -> Expr:
        n, y, x, f = i if last else (i[0], i[2], i[3], i[1])
        channel = f // (filters // groups) * (channels // groups) + r.var if groups > 1 else r.var
        return te.sum(at(n, y, x, channel) * (W[p, q, r, f] if last else W[f, r, p, q]), axis=[p, q, r])

    return _followed(c, [X, W], te.compute(shape, value, name="C"))


def _followed(c: Choice, inputs: list[te.Tensor], made: te.Tensor) -> PrimFunc:
    """The function of ``made``, and perhaps of a bias and a bound, of a sum of its rows, or of another product."""
    kind = c.pick(("nothing", "nothing", "bias", "rows", "product"))
    dtype = made.dtype
    if kind == "bias":
        bias = te.placeholder(made.shape[-1:], dtype, name="bias")
        bound = te.const(0, dtype)
        last = te.compute(made.shape, lambda *i: te.max(made[i] + bias[i[-1]], bound), name="D")
        return te.create_prim_func([*inputs, bias, last])
    if kind == "rows":
        k = te.reduce_axis((0, made.shape[-1]), "k")
        last = te.compute(made.shape[:-1], lambda *i: te.max(made[(*i, k)], axis=k), name="D")
        return te.create_prim_func([*inputs, last])
    if kind == "product" and 5 * prod(n.value for n in made.shape) <= MOST:
        weights = te.placeholder((made.shape[-1], 5), dtype, name="V")
        k = te.reduce_axis((0, made.shape[-1]), "k")
        last = te.compute(
            (*made.shape[:-1], 5), lambda *i: te.sum(made[(*i[:-1], k)] * weights[k, i[-1]], axis=k), name="D"
        )
        return te.create_prim_func([*inputs, weights, last])
    return te.create_prim_func([*inputs, made])


def permuted(c: Choice) -> PrimFunc:
    """Elements that change places, alone or in a formula with elements that do not."""
    sizes = [c.pick(SIZES["permuted"]), c.pick(SIZES["permuted"]), *c.pick(((), (2,), (3,)))]
    order = c.pick([p for p in itertools.permutations(range(len(sizes))) if list(p) != sorted(p)])
    A = te.placeholder(sizes, c.pick(("float32", "float32", "float16", "int8")), name="A")
    B = te.placeholder([sizes[axis] for axis in order], A.dtype, name="B")
    with_others = c.pick((False, False, True))

    def value(*i: Var) -> Expr:
        turned = A[tuple(i[order.index(axis)] for axis in range(len(sizes)))]
        return turned + B[i] if with_others else turned

    return te.create_prim_func([A, *[B] * with_others, te.compute(B.shape, value, name="C")])


def begun(c: Choice) -> PrimFunc:
    """A product of sizes that are numbers or not, which begins with zero or with what is read, and combines its terms in any way."""
    size = {x: str(c.pick(SIZES[role])) for x, role in zip("mnk", ("row", "column", "term"))}
    size = {x: x if c.pick((True, False)) else "31" if x == "k" and s == "1024" else s for x, s in size.items()}
    left, right, dtype = c.pick(TYPES)
    a, b = c.pick(("mk", "km")), c.pick(("kn", "nk"))
    at = {"m": "vi", "n": "vj", "k": "vk"}

    def point(axes: str, term: str = "vk") -> str:
        return ", ".join(term if x == "k" else at[x] for x in axes)

    one, other = f'T.Cast("{dtype}", A[{point(a)}])', f'T.Cast("{dtype}", B[{point(b)}])'
    term = c.pick((f"{one} * {other}",) * 3 + (f"T.if_then_else(vk <= vi, {one} * {other}, 0)", f"({one} - {other})"))
    of_operands = [f'T.Cast("{dtype}", {x}[{point(axes, "0")}])' for x, axes in (("A", a), ("B", b))]
    first = c.pick(("0", "D[vj]", "D[vj] * 2 + D[0]", "D[0]", "E[vi]", "E[vi] - D[vj]", "3", *of_operands))
    update = c.pick(
        ("C[vi, vj] + {0}",) * 4
        + ("{0} + C[vi, vj]", "C[vi, vj] - {0}", "T.max(C[vi, vj], {0})", "T.min({0}, C[vi, vj])")
    )
    last = c.pick(("C[vi, vj]", "T.max(C[vi, vj], D[vj])", "C[vi, vj] * E[vi] + D[vj]"))
    symbolic = [x for x in "mnk" if size[x] == x]
    shapes = {"A": a, "B": b, "D": "n", "E": "m", "O": "mn"}
    types = {"A": left, "B": right}
    buffers = "".join(
        f"""
    {name} = T.match_buffer({name.lower()}, ({"".join(f"{size[x]}, " for x in axes)}), "{types.get(name, dtype)}")"""
        for name, axes in shapes.items()
    )
    made = parse(f"""
@T.prim_func
def main(a: T.handle, b: T.handle, d: T.handle, e: T.handle, o: T.handle):
    {"; ".join(f"{x} = T.int32()" for x in symbolic) or "pass"}{buffers}
    C = T.alloc_buffer(({size["m"]}, {size["n"]}), "{dtype}")
    for i, j, k in T.grid({size["m"]}, {size["n"]}, {size["k"]}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = {first}
            C[vi, vj] = {update.format(term)}
    for i, j in T.grid({size["m"]}, {size["n"]}):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = {last}
""")
    assert isinstance(made, PrimFunc)
    return made


def products(c: Choice) -> PrimFunc:
    """An einsum, a convolution, a product that begins with something, or permuted axes."""
    return c.pick((einsum, einsum, einsum, convolution, convolution, permuted, begun, begun))(c)
