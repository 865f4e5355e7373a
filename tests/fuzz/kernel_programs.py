"""Typical kernels at small odd sizes, the second source of programs for the fuzzer.

:mod:`tir.testing.programs` draws chains of small stages; these are whole kernels by name: convolutions, stencils,
softmax, layer norm, argmax, gather, scatter, padded and symbolic programs.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.atomic_programs import written_atomically
from tests.fuzz.awkward_programs import AWKWARD
from tests.fuzz.edge_case_programs import CORNERS
from tests.fuzz.memory_programs import MEMORY
from tests.fuzz.reduction_programs import REDUCTIONS
from tests.fuzz.steered_programs import steered
from tests.fuzz.tensor_programs import tensors
from tir.function import IRModule, PrimFunc
from tir.testing.decisions import Choice, SeededChoice

ODD = (1, 2, 3, 5, 7)


def _two(c: Choice) -> tuple[int, int]:
    return c.pick(ODD), c.pick(ODD)


def matmul(c: Choice) -> str:
    n, m = _two(c)
    k = c.pick(ODD)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {k}), "float32"), B: T.Buffer(({k}, {m}), "float32"), bias: T.Buffer(({m},), "float32"), D: T.Buffer(({n}, {m}), "float32")):
    C = T.alloc_buffer(({n}, {m}), "float32")
    for i, j, k in T.grid({n}, {m}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]
    for i, j in T.grid({n}, {m}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj] + bias[vj], T.float32(0))
"""


def conv2d(c: Choice) -> str:
    h, w = c.pick((3, 4, 5)), c.pick((3, 4, 5))
    co, ci, s = c.pick((1, 2, 3)), c.pick((1, 2)), c.pick((1, 2))
    oh, ow = (h - 1) // s + 1, (w - 1) // s + 1
    return f"""
@T.prim_func
def main(X: T.Buffer(({ci}, {h}, {w}), "float32"), W: T.Buffer(({co}, {ci}, 3, 3), "float32"), Y: T.Buffer(({co}, {oh}, {ow}), "float32")):
    P = T.alloc_buffer(({ci}, {h + 2}, {w + 2}), "float32")
    Z = T.alloc_buffer(({co}, {oh}, {ow}), "float32")
    for c, y, x in T.grid({ci}, {h + 2}, {w + 2}):
        with T.block("pad"):
            vc, vy, vx = T.axis.remap("SSS", [c, y, x])
            P[vc, vy, vx] = T.if_then_else(1 <= vy and vy < {h + 1} and 1 <= vx and vx < {w + 1}, X[vc, vy - 1, vx - 1], T.float32(0))
    for o, y, x, c, ky, kx in T.grid({co}, {oh}, {ow}, {ci}, 3, 3):
        with T.block("conv"):
            vo, vy, vx, vc, vky, vkx = T.axis.remap("SSSRRR", [o, y, x, c, ky, kx])
            with T.init():
                Z[vo, vy, vx] = T.float32(0)
            Z[vo, vy, vx] += P[vc, vy * {s} + vky, vx * {s} + vkx] * W[vo, vc, vky, vkx]
    for o, y, x in T.grid({co}, {oh}, {ow}):
        with T.block("relu"):
            vo, vy, vx = T.axis.remap("SSS", [o, y, x])
            Y[vo, vy, vx] = T.max(Z[vo, vy, vx], T.float32(0))
"""


def stencil(c: Choice) -> str:
    n, m = c.pick((3, 5, 7)), c.pick((3, 4, 6))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n + 2}, {m + 2}), "int32"), C: T.Buffer(({n}, {m}), "int32")):
    B = T.alloc_buffer(({n + 2}, {m}), "int32")
    for i, j in T.grid({n + 2}, {m}):
        with T.block("across"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + A[vi, vj + 1] * 2 + A[vi, vj + 2]
    for i, j in T.grid({n}, {m}):
        with T.block("down"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = (B[vi, vj] + B[vi + 1, vj] * 2 + B[vi + 2, vj]) // 4
"""


def softmax(c: Choice) -> str:
    n, m = _two(c)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), O: T.Buffer(({n}, {m}), "float32")):
    M = T.alloc_buffer(({n},), "float32")
    E = T.alloc_buffer(({n}, {m}), "float32")
    S = T.alloc_buffer(({n},), "float32")
    for i, k in T.grid({n}, {m}):
        with T.block("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, j in T.grid({n}, {m}):
        with T.block("exp"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(A[vi, vj] - M[vi])
    for i, k in T.grid({n}, {m}):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] += E[vi, vk]
    for i, j in T.grid({n}, {m}):
        with T.block("norm"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = E[vi, vj] / S[vi]
"""


def layer_norm(c: Choice) -> str:
    n, m = _two(c)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float64"), g: T.Buffer(({m},), "float64"), O: T.Buffer(({n}, {m}), "float64")):
    S = T.alloc_buffer(({n},), "float64")
    Q = T.alloc_buffer(({n},), "float64")
    for i, k in T.grid({n}, {m}):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float64(0)
                Q[vi] = T.float64(0)
            S[vi] = S[vi] + A[vi, vk]
            Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk]
    for i, j in T.grid({n}, {m}):
        with T.block("norm"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = (A[vi, vj] - S[vi] / T.float64({m})) * T.rsqrt(Q[vi] / T.float64({m}) - S[vi] / T.float64({m}) * (S[vi] / T.float64({m})) + T.float64(0.5)) * g[vj]
"""


def argmax(c: Choice) -> str:
    n, m = _two(c)
    return f"""
@T.prim_func
def main(idx: T.Buffer(({n}, {m}), "int32"), val: T.Buffer(({n}, {m}), "float32"), oi: T.Buffer(({n},), "int32"), ov: T.Buffer(({n},), "float32")):
    for i, k in T.grid({n}, {m}):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(val[vi, vk], idx[vi, vk])
            T.writes(oi[vi], ov[vi])
            with T.init():
                oi[vi] = -1
                ov[vi] = T.min_value("float32")
            v_i: T.int32 = T.Select(ov[vi] >= val[vi, vk], oi[vi], idx[vi, vk])
            v_v: T.float32 = T.Select(ov[vi] >= val[vi, vk], ov[vi], val[vi, vk])
            oi[vi] = v_i
            ov[vi] = v_v
"""


def gather(c: Choice) -> str:
    n, m = _two(c)
    k = c.pick(ODD)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), idx: T.Buffer(({k},), "int32"), O: T.Buffer(({k}, {m}), "float32")):
    B = T.alloc_buffer(({n}, {m}), "float32")
    for i, j in T.grid({n}, {m}):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid({k}, {m}):
        with T.block("gather"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[0:{n}, vj], idx[vi])
            T.writes(O[vi, vj])
            O[vi, vj] = B[idx[vi] % {n}, vj] + T.float32(1)
"""


def scatter(c: Choice) -> str:
    n, k = _two(c)
    dtype, at = c.pick((("int32", "idx[vi]"), ("int32", "idx[vi]"), ("uint8", 'T.Cast("int32", idx[vi] & T.uint8(3))')))
    place = f"{at} % {n}"
    return f"""
@T.prim_func
def main(A: T.Buffer(({k},), "int32"), idx: T.Buffer(({k},), "{dtype}"), O: T.Buffer(({n},), "int32")):
    for i in range({n}):
        with T.block("zero"):
            vi = T.axis.spatial({n}, i)
            O[vi] = 0
    for i in range({k}):
        with T.block("scatter"):
            vi = T.axis.{c.pick(("spatial", "reduce", "opaque"))}({k}, i)
            T.reads(A[vi], idx[vi], O[0:{n}])
            T.writes(O[0:{n}])
            O[{place}] = {c.pick((f"O[{place}] + A[vi]", "A[vi]", f"A[vi] - O[{place}]"))}
    for i in range({n}):
        with T.block("next"):
            vi = T.axis.spatial({n}, i)
            O[vi] = O[vi] + 1
"""


def padded(c: Choice) -> str:
    n, p, f = c.pick(ODD), c.pick((1, 2)), c.pick((2, 3, 4))
    total = n + 2 * p
    return f"""
@T.prim_func
def main(A: T.Buffer(({n},), "float32"), O: T.Buffer(({total},), "float32")):
    P = T.alloc_buffer(({total},), "float32")
    for i in range({total}):
        with T.block("pad"):
            vi = T.axis.spatial({total}, i)
            P[vi] = T.if_then_else({p} <= vi and vi < {n + p}, A[vi - {p}], T.float32(1))
    for i0, i1 in T.grid({-(-total // f)}, {f}):
        with T.block("use"):
            vi = T.axis.spatial({total}, i0 * {f} + i1)
            T.where(i0 * {f} + i1 < {total})
            O[vi] = P[vi] + P[{total - 1} - vi]
"""


def symbolic(c: Choice) -> str:
    wide = c.pick(("int32", "int64"))
    one = "1" if wide == "int32" else "T.int64(1)"
    return f"""
@T.prim_func
def main(a: T.handle, o: T.handle, s: T.handle, n: T.{wide}, m: T.{wide}):
    A = T.match_buffer(a, (n, m), "float32")
    O = T.match_buffer(o, (n, m), "float32")
    S = T.match_buffer(s, (n,), "float32")
    B = T.alloc_buffer((n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, m - {one} - vj] * T.float32(2)
    for i, k in T.grid(n, m):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] += B[vi, vk]
    for i, j in T.grid(n, m):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = B[vi, vj] - S[vi]
"""


def flat_rows(c: Choice) -> str:
    """Rows of symbolic sizes, which may be zero, that flat loops read or make."""
    rows, flat = "m, n", "m * n"
    made, used = c.pick(((rows, flat), (flat, rows), (flat, flat)))
    index = {(rows, flat): "vi // n, vi % n", (flat, rows): "vi * n + vj", (flat, flat): "vi"}[made, used]

    def nest(name: str, sizes: str, statement: str) -> str:
        loops = ("i, j", "T.grid(m, n)", "vi, vj") if sizes == rows else ("i", "range(m * n)", "vi")
        kinds = 'T.axis.remap("SS", [i, j])' if sizes == rows else "T.axis.spatial(m * n, i)"
        return f"""
    for {loops[0]} in {loops[1]}:
        with T.block("{name}"):
            {loops[2]} = {kinds}
            {statement}"""

    place = {rows: "vi, vj", flat: "vi"}
    return f"""
@T.prim_func
def main(a: T.handle, o: T.handle, m: T.int32, n: T.int32):
    A = T.match_buffer(a, ({made},), "float32")
    O = T.match_buffer(o, ({used},), "float32")
    B = T.alloc_buffer(({made},), "float32"){nest("B", made, f"B[{place[made]}] = A[{place[made]}] * T.float32(2)")}{
        nest("O", used, f"O[{place[used]}] = B[{index}] + T.float32(1)")
    }
"""


def recurrence(c: Choice) -> str:
    n, m = c.pick((2, 3, 5)), c.pick((2, 3, 5))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), O: T.Buffer(({n}, {m}), "int32")):
    X = T.alloc_buffer(({n}, {m}), "int32")
    for i, j in T.grid({n}, {m}):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = A[vi, vj]
    for t, i, j in T.grid(2, {n - 1}, {m - 1}):
        with T.block("sweep"):
            vt, vi, vj = T.axis.remap("{c.pick(("SSS", "RRR"))}", [t, i, j])
            T.reads(X[0:{n}, 0:{m}])
            T.writes(X[vi + 1, vj + 1])
            X[vi + 1, vj + 1] = T.min(X[vi, vj] + X[vi, vj + 1], X[vi + 1, vj]) - vt
    for i, j in T.grid({n}, {m}):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = X[{n - 1} - vi, vj]
"""


def functions(c: Choice) -> IRModule:
    """Two functions of other families, whose blocks, loops and buffers may have equal names."""
    names = [name for name in FAMILIES if name not in ("functions", "module", "written_atomically")]
    first, second = (family_program(c.pick(names), c) for _ in range(2))
    assert isinstance(first, PrimFunc) and isinstance(second, PrimFunc)
    return IRModule({"main": first, "other": second.with_attr("global_symbol", "other")})


FAMILIES: dict[str, Callable[[Choice], str | PrimFunc | IRModule]] = {
    f.__name__: f
    for f in (
        matmul, conv2d, stencil, softmax, layer_norm, argmax, gather, scatter, padded, symbolic, flat_rows, recurrence, *CORNERS,
        *REDUCTIONS, steered, *MEMORY, *AWKWARD, tensors, functions, written_atomically,
    )
}  # fmt: skip


def family_program(name: str, seed: int | Choice) -> PrimFunc | IRModule:
    """The program ``name`` of :data:`FAMILIES` at sizes drawn from ``seed``. Raises ``KeyError`` for another name.

    >>> family_program("softmax", 1).name
    'main'
    """
    from tir.script import parse

    drawn = FAMILIES[name](SeededChoice(seed) if isinstance(seed, int) else seed)
    made = parse(drawn) if isinstance(drawn, str) else drawn
    assert isinstance(made, (PrimFunc, IRModule))
    return made
