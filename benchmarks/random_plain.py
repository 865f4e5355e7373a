"""Random programs as users write them, without a schedule, of sizes at which time can be measured.

``plain_program(seed)`` is one of :data:`KINDS`; ``square_program(seed)`` a chain on square arrays, whose axes no rule can tell
apart by their extents. The same seed gives the same program.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import tir
from tir import te

from .work import einsum

Draw = random.Random
ELEMENTS = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20)  # of arrays
REDUCERS = (te.sum, te.sum, te.max, te.min)
TYPES = [(t, t, t) for t in ("float32", "float64", "int32", "int16", "float16", "bfloat16")]
TYPES += [
    ("uint8", "int8", "int32"),
    ("int8", "int8", "int32"),
    ("int16", "int16", "int32"),
    ("float16", "float16", "float32"),
]
SPECS = ("ik,kj->ij", "ki,kj->ij", "ik,jk->ij", "bik,bkj->bij", "bik,bjk->bij", "ik,kj->ji", "abk,kc->abc", "ik,k->i", "ki,k->i")  # fmt: skip


def plain_program(seed: int) -> tir.PrimFunc:
    """A random program of one of :data:`KINDS`."""
    draw = Draw(f"plain {seed}")
    return draw.choice(list(KINDS.values()))(draw)


def square_program(seed: int) -> tir.PrimFunc:
    """A random chain on square arrays."""
    return square(Draw(f"square {seed}"))


def _shape(draw: Draw, rank: int) -> tuple[int, ...]:
    """Extents, some of them odd, of some of :data:`ELEMENTS`."""
    left, shape = draw.choice(ELEMENTS), []
    for more in range(rank - 1, 0, -1):
        one = max(2, round((left ** (1 / (more + 1))) * draw.choice((0.25, 0.5, 1, 2))) + draw.choice((0, 0, 0, -1, 1)))
        shape.append(one)
        left = max(4, left // one)
    shape.append(left)
    draw.shuffle(shape)
    return tuple(shape)


def _input(shape: Sequence[int], name: str = "X", dtype: str = "float32") -> te.Tensor:
    return te.placeholder(tuple(shape), dtype, name=name)


def _func(*tensors: te.Tensor) -> tir.PrimFunc:
    return te.create_prim_func(list(tensors))


def _map(draw: Draw, value: tir.Expr) -> tir.Expr:
    """A function of a number."""
    kind = draw.choice(("same", "relu", "exp", "square", "affine", "tanh"))
    made = {
        "same": lambda: value,
        "relu": lambda: te.max(value, te.const(0, value.dtype)),
        "exp": lambda: te.exp(value * 0.1),
        "square": lambda: value * value,
        "affine": lambda: value * 0.5 + 1.0,
        "tanh": lambda: te.tanh(value),
    }
    return made[kind]()


def reduction(draw: Draw) -> tir.PrimFunc:
    """A reduction over some axes, in any order of these and of the axes of the result."""
    shape = _shape(draw, draw.choice((1, 2, 2, 3, 4)))
    x, axes = _input(shape), list(range(len(shape)))
    draw.shuffle(axes)
    over = axes[: draw.randint(1, max(1, len(axes) - 1))]
    left = axes[len(over) :]
    terms = {n: te.reduce_axis((0, shape[n]), f"k{n}") for n in over}
    reducer = draw.choice(REDUCERS)

    def value(*point: tir.Var) -> tir.Expr:
        at = {**dict(zip(left, point)), **terms}
        return reducer(_map(Draw(len(shape)), x(*(at[n] for n in range(len(shape))))), axis=list(terms.values()))

    return _func(x, te.compute(tuple(shape[n] for n in left), value, name="Y"))


def product(draw: Draw) -> tir.PrimFunc:
    """An einsum of two operands, of some types."""
    spec = draw.choice(SPECS)
    a, b = spec.partition("->")[0].split(",")
    sizes = {x: draw.choice((5, 16, 32, 64, 100, 128, 200)) if x in "ijk" else draw.choice((2, 3, 8)) for x in a + b}
    return einsum(spec, [sizes[x] for x in a], [sizes[x] for x in b], draw.choice(TYPES))


def convolution(draw: Draw) -> tir.PrimFunc:
    """A convolution of an image, with a stride, a dilation and groups."""
    size, k = draw.choice((14, 28, 33, 56)), draw.choice((1, 3, 5))
    stride, dilation, groups = draw.choice((1, 1, 2)), draw.choice((1, 1, 2)), draw.choice((1, 1, 2, 4))
    c, o = (groups * draw.choice((2, 4, 8)) for _ in range(2))
    out = (size - dilation * (k - 1) - 1) // stride + 1
    x, w = _input((c, size, size)), _input((o, c // groups, k, k), "W")
    r, p, q = (te.reduce_axis((0, n), name) for n, name in ((c // groups, "r"), (k, "p"), (k, "q")))
    y = te.compute(
        (o, out, out),
        lambda f, i, j: te.sum(
            x[f // (o // groups) * (c // groups) + r, i * stride + p * dilation, j * stride + q * dilation]
            * w[f, r, p, q],
            axis=[r, p, q],
        ),
        name="Y",
    )
    return _func(x, w, y)


def depthwise(draw: Draw) -> tir.PrimFunc:
    """A window of each channel, weighted or a pool, with zeros around the image or without."""
    size, k, stride = draw.choice((28, 56, 112)), draw.choice((2, 3, 5)), draw.choice((1, 2))
    c, first = draw.choice((8, 16, 32)), draw.choice((0, 1))
    pad, reducer = draw.choice((0, k // 2)), draw.choice((te.sum, te.max))
    out = (size + 2 * pad - k) // stride + 1
    x, w = _input((c, size, size) if first else (size, size, c)), _input((c, k, k) if first else (k, k, c), "W")

    def place(f: tir.Expr, i: tir.Expr, j: tir.Expr) -> tuple[tir.Expr, ...]:
        return (f, i, j) if first else (i, j, f)

    def padded(*at: tir.Var) -> tir.Expr:
        i, j = at[first : first + 2]
        inside = tir.all(i >= pad, i < size + pad, j >= pad, j < size + pad)
        return tir.if_then_else(inside, x(*place(at[0] if first else at[2], i - pad, j - pad)), tir.const(0, x.dtype))

    large = size + 2 * pad
    source = te.compute(place(c, large, large), padded, name="P") if pad else x
    p, q = te.reduce_axis((0, k), "p"), te.reduce_axis((0, k), "q")
    weighted = draw.choice((True, False))

    def value(*at: tir.Var) -> tir.Expr:
        i, j = at[first : first + 2]
        f = at[0] if first else at[2]
        read = source(*place(f, i * stride + p, j * stride + q))
        return reducer(read * w(*place(f, p, q)) if weighted else read, axis=[p, q])

    return _func(*([x, w] if weighted else [x]), te.compute(place(c, out, out), value, name="Y"))


def gather(draw: Draw) -> tir.PrimFunc:
    """Rows or columns that an array of indices names."""
    n, m = _shape(draw, 2)
    x, at = _input((n, m)), _input((n,), "I", "int32")
    if draw.choice((True, False)):
        return _func(x, at, te.compute((n, m), lambda i, j: x[at[i], j] * 2.0, name="Y"))
    by = _input((m,), "I", "int32")
    return _func(x, by, te.compute((n, m), lambda i, j: x[i, by[j]] + 1.0, name="Y"))


def histogram(draw: Draw) -> tir.PrimFunc:
    """How often each value occurs, or the sums of the rows of each."""
    n, bins = draw.choice((1000, 4096, 20000)), draw.choice((4, 10, 64))
    at, k = _input((n,), "I", "int32"), te.reduce_axis((0, n), "k")
    if draw.choice((True, False)):
        return _func(at, te.compute((bins,), lambda b: te.sum((at[k] == b).astype("int32"), axis=k), name="Y"))
    x = _input((n,))
    picked = te.compute(
        (bins,), lambda b: te.sum(tir.Select(at[k] == b, x[k], te.const(0, "float32")), axis=k), name="Y"
    )
    return _func(at, x, picked)


def chain(draw: Draw) -> tir.PrimFunc:
    """Stages, each of the last ones: maps, differences of two, reductions of an axis spread along it again."""
    return _chained(draw, _shape(draw, draw.choice((1, 2, 2, 3))), square=False)


def square(draw: Draw) -> tir.PrimFunc:
    """Such stages on a square (or cubic) array, with reads that are transposed, flipped, and of windows."""
    side = draw.choice((64, 100, 128, 256, 512))
    return _chained(draw, draw.choice(((side, side), (side, side), (draw.choice((3, 8)), 64, 64))), square=True)


def _chained(draw: Draw, shape: tuple[int, ...], square: bool) -> tir.PrimFunc:
    x = _input(shape)
    stages, rank = [x], len(shape)
    kinds = ["map", "pair", "norm", "norm"] + (["turned", "flipped", "window", "product"] if square else [])
    for n in range(draw.choice((1, 2, 3))):
        last, other = stages[-1], draw.choice(stages)
        kind = draw.choice(kinds)
        if kind == "norm":
            stages.append(_normed(draw, last, other, shape, n))
        elif kind == "product":
            k = te.reduce_axis((0, shape[-1]), f"k{n}")
            stages.append(
                te.compute(
                    shape, lambda *at: te.sum(last(*at[:-1], k) * other(*at[:-2], k, at[-1]), axis=k), name=f"S{n}"
                )
            )
        elif kind == "window":
            stages.append(_window(draw, last, shape, n))
        else:
            seed, axis = draw.random(), draw.randrange(rank)

            def value(*at: tir.Var) -> tir.Expr:
                one = last(*at)
                there = list(at)
                if kind == "turned":
                    there[-1], there[-2] = at[-2], at[-1]
                elif kind == "flipped":
                    there[axis] = shape[axis] - 1 - at[axis]
                return _map(Draw(seed), one) if kind == "map" else _map(Draw(seed), one - other(*there) * 0.5)

            stages.append(te.compute(shape, value, name=f"S{n}"))
    return _func(x, stages[-1])


def _normed(draw: Draw, last: te.Tensor, other: te.Tensor, shape: tuple[int, ...], n: int) -> te.Tensor:
    """``last`` less a reduction of ``other`` over an axis: along it, or (square) along another one."""
    rank, axis = len(shape), draw.randrange(len(shape))
    k, reducer = te.reduce_axis((0, shape[axis]), f"k{n}"), draw.choice(REDUCERS)
    left = [m for m in range(rank) if m != axis]
    seed = draw.random()

    def total(*point: tir.Var) -> tir.Expr:
        at = {**dict(zip(left, point)), axis: k}
        return reducer(_map(Draw(seed), other(*(at[m] for m in range(rank)))), axis=k)

    if rank == 1:
        one = te.compute((1,), lambda _: reducer(_map(Draw(seed), other(k)), axis=k), name=f"R{n}")
        return te.compute(shape, lambda i: last(i) - one(0), name=f"S{n}")
    sums = te.compute(tuple(shape[m] for m in left), total, name=f"R{n}")
    return te.compute(shape, lambda *at: last(*at) - sums(*(at[m] for m in left)), name=f"S{n}")


def _window(draw: Draw, last: te.Tensor, shape: tuple[int, ...], n: int) -> te.Tensor:
    """Sums over a few neighbours along an axis, those beyond the border left out."""
    axis, width = draw.randrange(len(shape)), draw.choice((3, 5))
    k = te.reduce_axis((0, width), f"k{n}")

    def value(*at: tir.Var) -> tir.Expr:
        there = list(at)
        there[axis] = te.max(te.min(at[axis] + k - width // 2, shape[axis] - 1), 0)
        return te.sum(last(*there), axis=k)

    return te.compute(shape, value, name=f"S{n}")


def flip(draw: Draw) -> tir.PrimFunc:
    """An array backwards along some axes, added to itself or not, turned, or summed backwards."""
    shape = _shape(draw, 2)
    x, axis = _input(shape), draw.randrange(2)

    def back(i: tir.Expr, j: tir.Expr) -> tir.Expr:
        return x[shape[0] - 1 - i, j] if axis == 0 else x[i, shape[1] - 1 - j]

    kind = draw.choice(("copy", "add", "turn", "sum"))
    if kind == "turn":
        return _func(x, te.compute(shape[::-1], lambda i, j: back(j, i), name="Y"))
    if kind == "sum":
        k = te.reduce_axis((0, shape[1]), "k")
        return _func(x, te.compute((shape[0],), lambda i: te.sum(back(i, k), axis=k), name="Y"))
    return _func(x, te.compute(shape, lambda i, j: back(i, j) + x[i, j] * (kind == "add"), name="Y"))


def digits(draw: Draw) -> tir.PrimFunc:
    """An array of another shape: indices are divided and multiplied."""
    n, m, a = draw.choice((16, 30, 64)), draw.choice((24, 64, 96)), draw.choice((2, 3, 8))
    x = _input((n, m * a))
    if draw.choice((True, False)):
        return _func(x, te.compute((n, a, m), lambda i, p, j: x[i, j * a + p], name="Y"))
    return _func(x, te.compute((n * m * a,), lambda i: x[i // (m * a), i % (m * a)] + 1.0, name="Y"))


def predicate(draw: Draw) -> tir.PrimFunc:
    """Zeros around an array, or a choice between two by a comparison."""
    shape, pad = _shape(draw, 2), draw.choice((1, 3, 8))
    x = _input(shape)
    if draw.choice((True, False)):
        z = _input(shape, "Z")
        return _func(
            x, z, te.compute(shape, lambda i, j: tir.Select(x[i, j] > z[i, j], x[i, j], z[i, j] * 0.1), name="Y")
        )

    def value(i: tir.Var, j: tir.Var) -> tir.Expr:
        inside = tir.all(i >= pad, i < shape[0] + pad, j >= pad, j < shape[1] + pad)
        return tir.if_then_else(inside, x[i - pad, j - pad], te.const(0, "float32"))

    return _func(x, te.compute((shape[0] + 2 * pad, shape[1] + 2 * pad), value, name="Y"))


def triangle(draw: Draw) -> tir.PrimFunc:
    """The lower half of a matrix, or its product with a vector."""
    n = draw.choice((100, 256, 400))
    x, v, k = _input((n, n)), _input((n,), "v"), te.reduce_axis((0, n), "k")
    if draw.choice((True, False)):
        return _func(x, te.compute((n, n), lambda i, j: tir.Select(j <= i, x[i, j], te.const(0, "float32")), name="Y"))
    half = te.compute(
        (n,), lambda i: te.sum(tir.Select(k <= i, x[i, k] * v[k], te.const(0, "float32")), axis=k), name="Y"
    )
    return _func(x, v, half)


def scan(draw: Draw) -> tir.PrimFunc:
    """Sums of the rows up to each, or along a row."""
    n, m = draw.choice((16, 100, 400)), draw.choice((16, 100, 400))
    x = _input((n, m))
    state = te.placeholder((n, m), name="state")
    first = te.compute((1, m), lambda _, j: x[0, j])
    step = te.compute((n, m), lambda t, j: state[t - 1, j] * 0.5 + x[t, j])
    return _func(x, te.scan(first, step, state, name="Y"))


def strided(draw: Draw) -> tir.PrimFunc:
    """Every second or third element, copied or summed."""
    n, step, offset = draw.choice(ELEMENTS), draw.choice((2, 3)), draw.choice((0, 1))
    x, k = _input((n * step,)), te.reduce_axis((0, n), "k")
    if draw.choice((True, False)):
        return _func(x, te.compute((n,), lambda i: x[i * step + offset] + 1.0, name="Y"))
    m = draw.choice((8, 64))
    k = te.reduce_axis((0, n // m), "k")
    return _func(x, te.compute((m,), lambda i: te.sum(x[(i * (n // m) + k) * step + offset], axis=k), name="Y"))


def two_results(draw: Draw) -> tir.PrimFunc:
    """Two results of what is computed once."""
    shape = _shape(draw, 2)
    x, k = _input(shape), te.reduce_axis((0, shape[1]), "k")
    e = te.compute(shape, lambda i, j: te.exp(x[i, j]), name="E")
    total = te.compute((shape[0],), lambda i: te.sum(e[i, k], axis=k), name="Y")
    return _func(x, total, te.compute(shape, lambda i, j: e[i, j] + 1.0, name="Z"))


def window(draw: Draw) -> tir.PrimFunc:
    """A sum, product or maximum over neighbours of a signal or an image."""
    k = draw.choice((3, 5, 9, 31))
    if draw.choice((True, False)):
        n, weighted = draw.choice(ELEMENTS), draw.choice((True, False))
        x, w, r = _input((n + k - 1,)), _input((k,), "w"), te.reduce_axis((0, k), "r")
        reducer = te.sum if weighted else draw.choice(REDUCERS)
        y = te.compute((n,), lambda i: reducer(x[i + r] * w[r] if weighted else x[i + r], axis=r), name="Y")
        return _func(*([x, w] if weighted else [x]), y)
    n, m = _shape(draw, 2)
    x = _input((n + 2, m + 2))
    y = te.compute((n, m), lambda i, j: x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2] - x[i + 1, j + 1] * 4.0)  # fmt: skip
    return _func(x, y)


def stencils(draw: Draw) -> tir.PrimFunc:
    """Two stencils, one after the other."""
    n, m = _shape(draw, 2)
    x = _input((n + 2, m + 2))
    along = te.compute((n + 2, m), lambda i, j: x[i, j] + x[i, j + 1] + x[i, j + 2], name="A")
    return _func(x, te.compute((n, m), lambda i, j: along[i, j] + along[i + 1, j] + along[i + 2, j], name="Y"))


def edges(draw: Draw) -> tir.PrimFunc:
    """Windows which at the edges of an array go on at the other one, or read the last element again."""
    (n, m), k, dtype = _shape(draw, 2), draw.choice((3, 3, 5)), draw.choice(("float32", "float32", "int32", "uint8"))
    x, reducer, begins_again = _input((n, m), dtype=dtype), draw.choice((te.sum, te.max)), draw.choice((True, False))
    p, q = te.reduce_axis((0, k), "p"), te.reduce_axis((0, k), "q")

    def inside(i: tir.Expr, size: int) -> tir.Expr:
        return (i + size - k // 2) % size if begins_again else te.max(te.min(i - k // 2, size - 1), 0)

    y = te.compute((n, m), lambda i, j: reducer(x[inside(i + p, n), inside(j + q, m)], axis=[p, q]), name="Y")
    return _func(x, y)


def repeated(draw: Draw) -> tir.PrimFunc:
    """Steps of which each goes on with the results of the one before: of a matrix and one column or several."""
    n, m, steps = draw.choice((16, 33, 64, 200)), draw.choice((1, 1, 3, 64)), draw.choice((3, 10))
    at = draw.choice(("vi, vk", "vk, vi"))
    return tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), X: T.Buffer(({n}, {m}), "float32"), Y: T.Buffer(({n}, {m}), "float32")):
    for t in range({steps}):
        for i, j, k in T.grid({n}, {m}, {n}):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[{at}] * X[vk, vj]
        for i, j in T.grid({n}, {m}):
            with T.block("X"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = X[vi, vj] * T.float32(0.5) + Y[vi, vj] * T.float32({1 / n})
""")


KINDS: dict[str, Callable[[Draw], tir.PrimFunc]] = {
    made.__name__: made
    for made in (
        reduction, product, convolution, depthwise, gather, histogram, chain, flip, digits, predicate, triangle, scan,
        strided, two_results, window, stencils, edges, repeated,
    )
}  # fmt: skip
