"""What the tuner's rules make of plain programs, beside the schedules by hand: ``python -m benchmarks.plain [--only gemm]``.

Every work is written down as a user would write it, scheduled by ``tir.tune.default``, and timed by turns with the schedule of
``tir.library`` for the same arguments: the least of each. A ratio above 1: the default schedule is faster.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

import tir
from tir import te
from tir.library import elementwise, gemm, rows
from tir.library.conv import Layer

from .arrays import inputs
from .work import Work, works


def einsum(
    spec: str, left: Sequence[int], right: Sequence[int], dtypes: Sequence[str] = ("float32",) * 3
) -> tir.PrimFunc:
    """A product summed over the axes that are not in the result, such as "ik,kj->ij"; types of operands and result."""
    (a, b), out = spec.partition("->")[0].split(","), spec.partition("->")[2]
    sizes = {**dict(zip(a, left)), **dict(zip(b, right))}
    A, B = te.placeholder(left, dtypes[0], name="A"), te.placeholder(right, dtypes[1], name="B")
    terms = {x: te.reduce_axis((0, sizes[x]), x) for x in sizes if x not in out}

    def value(*point: tir.Var) -> tir.Expr:
        at = {**dict(zip(out, point)), **{x: t.var for x, t in terms.items()}}
        one, other = A[tuple(at[x] for x in a)], B[tuple(at[x] for x in b)]
        return te.sum(one.astype(dtypes[2]) * other.astype(dtypes[2]), axis=list(terms.values()))

    return te.create_prim_func([A, B, te.compute(tuple(sizes[x] for x in out), value, name="C")])


def _padded(A: te.Tensor, first: int, pad: int) -> te.Tensor:
    """Zeros around two axes of an image, of which ``first`` is the first."""
    if not pad:
        return A
    size = A.shape[first].value
    shape = [s.value + 2 * pad * (first <= n < first + 2) for n, s in enumerate(A.shape)]

    def value(*at: tir.Var) -> tir.Expr:
        y, x = at[first : first + 2]
        inside = tir.all(y >= pad, y < size + pad, x >= pad, x < size + pad)
        return tir.if_then_else(inside, A[(*at[:first], y - pad, x - pad, *at[first + 2 :])], tir.const(0, A.dtype))

    return te.compute(tuple(shape), value, name="padded")


def conv2d_nhwc(*sizes: int) -> tir.PrimFunc:
    layer = Layer(*sizes)
    n, size, c, o, k, s = sizes
    A, W = te.placeholder((n, size, size, c), name="A"), te.placeholder((k, k, c, o), name="W")
    P = _padded(A, 1, layer.pad)
    p, q, r = te.reduce_axis((0, k), "p"), te.reduce_axis((0, k), "q"), te.reduce_axis((0, c), "r")
    C = te.compute(
        (n, layer.out, layer.out, o),
        lambda b, y, x, f: te.sum(P[b, y * s + p, x * s + q, r] * W[p, q, r, f], axis=[p, q, r]),
        name="C",
    )
    return te.create_prim_func([A, W, C])


def conv2d_nchw(*sizes: int) -> tir.PrimFunc:
    layer = Layer(*sizes)
    n, size, c, o, k, s = sizes
    A, W = te.placeholder((n, c, size, size), name="A"), te.placeholder((o, c, k, k), name="W")
    P = _padded(A, 2, layer.pad)
    r, p, q = te.reduce_axis((0, c), "r"), te.reduce_axis((0, k), "p"), te.reduce_axis((0, k), "q")
    C = te.compute(
        (n, o, layer.out, layer.out),
        lambda b, f, y, x: te.sum(P[b, r, y * s + p, x * s + q] * W[f, r, p, q], axis=[r, p, q]),
        name="C",
    )
    return te.create_prim_func([A, W, C])


def depthwise_nhwc(*sizes: int) -> tir.PrimFunc:
    layer = Layer(*sizes)
    n, size, c, _, k, s = sizes
    A, W = te.placeholder((n, size, size, c), name="A"), te.placeholder((k, k, c), name="W")
    P = _padded(A, 1, layer.pad)
    p, q = te.reduce_axis((0, k), "p"), te.reduce_axis((0, k), "q")
    C = te.compute(
        (n, layer.out, layer.out, c),
        lambda b, y, x, f: te.sum(P[b, y * s + p, x * s + q, f] * W[p, q, f], axis=[p, q]),
        name="C",
    )
    return te.create_prim_func([A, W, C])


def attention(queries: int, keys: int, depth: int) -> tir.PrimFunc:
    Q, K, V = (te.placeholder((n, depth), name=x) for n, x in ((queries, "Q"), (keys, "K"), (keys, "V")))
    d, j, most_j, total_j = (
        te.reduce_axis((0, n), x) for n, x in ((depth, "d"), (keys, "j"), (keys, "j"), (keys, "j"))
    )
    score = te.compute((queries, keys), lambda i, j: te.sum(Q[i, d] * K[j, d], axis=d), name="score")
    scaled = te.compute((queries, keys), lambda i, j: score[i, j] * depth**-0.5, name="scaled")
    most = te.compute((queries,), lambda i: te.max(scaled[i, most_j], axis=most_j), name="most")
    power = te.compute((queries, keys), lambda i, j: tir.exp(scaled[i, j] - most[i]), name="power")
    total = te.compute((queries,), lambda i: te.sum(power[i, total_j], axis=total_j), name="total")
    mixed = te.compute((queries, depth), lambda i, e: te.sum(power[i, j] * V[j, e], axis=j), name="mixed")
    return te.create_prim_func([Q, K, V, te.compute((queries, depth), lambda i, e: mixed[i, e] / total[i], name="B")])


INT8, BF16 = ("uint8", "int8", "int32"), ("bfloat16", "bfloat16", "float32")
PLAIN: dict[str, Callable[..., tir.PrimFunc]] = {
    "gemm": lambda m, n, k: einsum("ik,kj->ij", (m, k), (k, n)),
    "gemm transposed A": lambda m, n, k: einsum("ki,kj->ij", (k, m), (k, n)),
    "gemm transposed B": lambda m, n, k: einsum("ik,jk->ij", (m, k), (n, k)),
    "gemm of five axes": lambda m, n, k: einsum("abe,ecd->abcd", (m // 20, 20, k), (k, 50, n // 50)),
    "int8_gemm": lambda m, n, k: einsum("ik,kj->ij", (m, k), (k, n), INT8),
    "int8_gemm_dot": lambda m, n, k: einsum("ik,kj->ij", (m, k), (k, n), INT8),
    "bf16_gemm": lambda m, n, k: einsum("ik,kj->ij", (m, k), (k, n), BF16),
    "bf16_gemm_dot": lambda m, n, k: einsum("ik,kj->ij", (m, k), (k, n), BF16),
    "gemv": lambda m, k: einsum("ik,k->i", (m, k), (k,)),
    "batched_gemm": lambda b, m, n, k: einsum("bik,bkj->bij", (b, m, k), (b, k, n)),
    "attention": attention,
    "conv2d_nhwc": conv2d_nhwc,
    "conv2d_nchw": conv2d_nchw,
    "depthwise_nhwc": depthwise_nhwc,
    "softmax": rows.softmax,
    "layer_norm": rows.layer_norm,
    "row_sum": rows.row_sum,
    "column_sum": rows.column_sum,
    "transpose": elementwise.transpose,
    "blur": elementwise.blur,
    "scale_add": elementwise.scale_add,
    "gelu_chain": elementwise.gelu_chain,
}


def more() -> list[Work]:
    """Works that the library has no other schedule for than that of the plain product, and thin products."""
    sizes = [("gemm", (m, 1024, 1024)) for m in (1, 2, 4, 8, 24)] + [
        ("gemm", (4, 4096, 4096)),
        ("gemm", (1024, 8, 1024)),
    ]
    sizes += [(f"gemm {way}", (1024, 1024, 1024)) for way in ("transposed A", "transposed B")]
    sizes += [(f"gemm {way}", (1000, 1000, 1000)) for way in ("transposed A", "of five axes")]
    return [Work(kind, s, lambda t, s=s: gemm.scheduled_gemm(*s, t), 2.0 * math.prod(s)) for kind, s in sizes]


def timed(calls: Sequence[Callable[[], None]], threads: int, seconds: float = 0.4) -> list[float]:
    """The least seconds of each call, taken by turns: of the thread for one thread, else on the clock."""
    now = time.thread_time if threads == 1 else time.perf_counter
    least = [math.inf] * len(calls)
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds * len(calls) or math.inf in least:
        for n, call in enumerate(calls):
            call()
            number = max(1, min(500, int(1e-3 / max(least[n], 1e-7))))
            start = now()
            for _ in range(number):
                call()
            least[n] = min(least[n], (now() - start) / number)
    return least


def compare(work: Work, threads: int) -> tuple[float, float, float]:
    """Seconds by hand, seconds of the default schedule, and seconds that scheduling took. Both results are compared."""
    target = f"llvm -num-cores={threads}"
    func = PLAIN[work.kind](*work.sizes)
    start = time.perf_counter()
    sch = tir.tune.default(func, target)
    taken = time.perf_counter() - start
    hand, ours = (tir.build(s.mod, target=target) for s in (work.schedule(threads), sch))
    arrays = inputs(work.kind.partition(" ")[0], work.sizes)
    own = [array.reshape([s.value for s in func.buffer_map[p].shape]) for array, p in zip(arrays, func.params)]
    hand(*arrays)
    expected = arrays[-1].copy()
    ours(*own)
    if " " not in work.kind:
        np.testing.assert_allclose(arrays[-1], expected, rtol=work.tolerance, atol=30 * work.tolerance)
    times = timed([lambda: hand(*arrays), lambda: ours(*own)], threads)
    return times[0], times[1], taken


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="names of works begin with one of these, separated by commas")
    options.add_argument("--threads", type=int, default=1)
    args = options.parse_args()
    wanted = tuple(name for name in args.only.split(",") if name)
    ratios = []
    for work in [*more(), *works()]:
        if wanted and not work.name.startswith(wanted):
            continue
        hand, ours, taken = compare(work, args.threads)
        rate = f"{work.amount / ours * 1e-9:8.1f} G{'FLOP' if work.unit == 'flops' else 'B'}/s"
        print(
            f"{work.name:<44} hand {hand * 1e6:9.1f} us  default {ours * 1e6:9.1f} us {rate}  {hand / ours:5.2f}  ({taken:.2f} s)",
            flush=True,
        )
        ratios.append(hand / ours)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    sys.exit(main())
