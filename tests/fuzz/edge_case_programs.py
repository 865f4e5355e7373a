"""Edge cases for the fuzzer, in addition to the kernels of :mod:`tests.fuzz.kernel_programs`.

Blocks with two outputs, nested blocks, conditions on data, loops of zero or one iteration, results produced in pairs,
64-bit indices.
"""

from __future__ import annotations

from tir.testing.decisions import Choice

ODD = (1, 2, 3, 5)


def batched(c: Choice) -> str:
    """A batched matrix product with 64-bit indices, and an elementwise addition to it."""
    b, n, m, k = (f"T.int64({c.pick(ODD)})" for _ in range(4))
    return f"""
@T.prim_func
def main(A: T.Buffer(({b}, {n}, {k}), "float32"), B: T.Buffer(({b}, {k}, {m}), "float32"), R: T.Buffer(({n}, {m}), "float32"), O: T.Buffer(({b}, {n}, {m}), "float32")):
    C = T.alloc_buffer(({b}, {n}, {m}), "float32")
    for b, i, j, k in T.grid({b}, {n}, {m}, {k}):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] += A[vb, vi, vk] * B[vb, vk, vj]
    for b, i, j in T.grid({b}, {n}, {m}):
        with T.block("O"):
            vb, vi, vj = T.axis.remap("SSS", [b, i, j])
            O[vb, vi, vj] = T.max(C[vb, vi, vj] + R[vi, vj], T.float32(0))
"""


def two_outputs(c: Choice) -> str:
    n, m = c.pick(ODD), c.pick(ODD)
    second = c.pick(("A[vi, vj] - 1", "P[vi, vj] * 2", "A[vi, vj] // 2"))
    again = "P[vi, vj], " if "P" in second else ""
    row = c.pick((f"{n - 1} - vi", "vi", "0"))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), N: T.Buffer(({n}, {m}), "int32"), O: T.Buffer(({n}, {m}), "int32")):
    P = T.alloc_buffer(({n}, {m}), "int32")
    for i, j in T.grid({n}, {m}):
        with T.block("both"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads({again}A[vi, vj])
            T.writes(P[vi, vj], N[vi, vj])
            P[vi, vj] = A[vi, vj] + 1
            N[vi, vj] = {second}
    for i, j in T.grid({n}, {m}):
        with T.block("join"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = P[{row}, vj] * 2 - N[vi, vj]
"""


def nested(c: Choice) -> str:
    """A block of blocks, between a producer and a consumer."""
    n, f = c.pick((1, 2, 3)), c.pick((1, 2, 4))
    total = n * f
    return f"""
@T.prim_func
def main(A: T.Buffer(({total},), "float32"), O: T.Buffer(({total},), "float32"), S: T.Buffer(({n},), "float32")):
    P = T.alloc_buffer(({total},), "float32")
    B = T.alloc_buffer(({total},), "float32")
    for i in range({total}):
        with T.block("P"):
            vi = T.axis.spatial({total}, i)
            P[vi] = A[vi] + T.float32(1)
    for io in range({n}):
        with T.block("tile"):
            vo = T.axis.spatial({n}, io)
            T.reads(P[vo * {f}:vo * {f} + {f}])
            T.writes(B[vo * {f}:vo * {f} + {f}], S[vo])
            for ii in range({f}):
                with T.block("B"):
                    vi = T.axis.spatial({f}, ii)
                    B[vo * {f} + vi] = P[vo * {f} + {c.pick((f"{f - 1} - vi", "vi"))}] * T.float32(2)
            for k in range({f}):
                with T.block("S"):
                    vk = T.axis.reduce({f}, k)
                    with T.init():
                        S[vo] = T.float32(0)
                    S[vo] += B[vo * {f} + vk]
    for i in range({total}):
        with T.block("O"):
            vi = T.axis.spatial({total}, i)
            O[vi] = B[{c.pick((f"{total - 1} - vi", "vi"))}] - T.float32(1)
"""


def conditional(c: Choice) -> str:
    """The stored value, and whether it is stored, depend on loaded values; statements outside of blocks may store as well."""
    n = c.pick(ODD)
    how = c.pick(("spatial", "spatial", "opaque"))
    other = c.pick(("", f"\n            else:\n                B[vi] = {c.pick(('0', 'B[vi] - A[vi]'))}"))
    bare = (
        f"        B[{c.pick(('i', f'{n - 1} - i'))}] = A[i]\n",
        f"        if A[i] > 0:\n            O[i] = {c.pick(('0', 'B[i]'))}\n",
    )
    # none, or in a loop of their own, or in that of the block before
    before, after = (c.pick(("", "", f"    for i in range({n}):\n" + stmt, stmt)) for stmt in bare)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n},), "int32"), M: T.Buffer(({n},), "int32"), O: T.Buffer(({n},), "int32")):
    B = T.alloc_buffer(({n},), "int32")
    for i in range({n}):
        with T.block("start"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi] * 2
{before}    for i in range({n}):
        with T.block("where"):
            vi = T.axis.{how}({n}, i)
            T.reads(M[vi], A[vi], B[vi])
            T.writes(B[vi])
            if M[vi] > 0:
                B[vi] = B[vi] + A[vi]{other}
    for i in range({n}):
        with T.block("O"):
            vi = T.axis.spatial({n}, i)
            O[vi] = T.if_then_else(M[vi] < 2, B[{c.pick(("vi", f"{n - 1} - vi"))}], A[vi])
{after}"""


def few(c: Choice) -> str:
    """Loops of zero or one iteration, or over part of a buffer."""
    n = c.pick((1, 2, 4))
    part, parts = c.number(0, n), c.pick((0, 1, 2))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), O: T.Buffer(({n}, {n}), "float32"), S: T.Buffer(({n},), "float32")):
    B = T.alloc_buffer(({n}, {n}), "float32")
    for i, j in T.grid({n}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] + T.float32(1)
    for i, j in T.grid({part}, {n}):
        with T.block("part"):
            vi, vj = T.axis.spatial({n}, i), T.axis.spatial({n}, j)
            B[vi, vj] = B[vi, vj] * T.float32(2)
    for i in range({n}):
        with T.block("start"):
            vi = T.axis.spatial({n}, i)
            S[vi] = T.float32(1)
    for i, k in T.grid({n}, {parts}):
        with T.block("S"):
            vi = T.axis.spatial({n}, i)
            vk = T.axis.reduce({max(parts, 1)}, k)
            S[vi] = S[vi] + B[vi, 0] * T.float32(2)
    for u, i, j in T.grid(1, {n}, {n}):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = B[vi, vj] - S[vj]
"""


def argmin(c: Choice) -> str:
    """An argmin with 64-bit indices, used by the next block."""
    n, m = c.pick(ODD), c.pick(ODD)
    wide = f"T.int64({n})", f"T.int64({m})"
    return f"""
@T.prim_func
def main(val: T.Buffer(({wide[0]}, {wide[1]}), "float32"), O: T.Buffer(({wide[0]},), "float32"), at: T.Buffer(({wide[0]},), "int64")):
    least = T.alloc_buffer(({wide[0]},), "float32")
    for i, k in T.grid({wide[0]}, {wide[1]}):
        with T.block("argmin"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(val[vi, vk])
            T.writes(at[vi], least[vi])
            with T.init():
                at[vi] = T.int64(-1)
                least[vi] = T.max_value("float32")
            w_i: T.int64 = T.Select(least[vi] <= val[vi, vk], at[vi], vk)
            w_v: T.float32 = T.Select(least[vi] <= val[vi, vk], least[vi], val[vi, vk])
            at[vi] = w_i
            least[vi] = w_v
    for i in range({wide[0]}):
        with T.block("O"):
            vi = T.axis.spatial({wide[0]}, i)
            O[vi] = least[vi] * T.float32(2) + T.Cast("float32", at[vi])
"""


def spread(c: Choice) -> str:
    """Two results of one reduction, each read elsewhere, at data-dependent indices."""
    n, m = c.pick(ODD), c.pick(ODD)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), idx: T.Buffer(({n},), "int32"), O: T.Buffer(({n}, {m}), "int32")):
    lo = T.alloc_buffer(({n},), "int32")
    hi = T.alloc_buffer(({n},), "int32")
    for i, k in T.grid({n}, {m}):
        with T.block("both"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                lo[vi] = 100
                hi[vi] = -100
            lo[vi] = T.min(lo[vi], A[vi, vk])
            hi[vi] = T.max(hi[vi], A[vi, vk])
    for i, j in T.grid({n}, {m}):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj], lo[0:{n}], hi[vi], idx[vi])
            T.writes(O[vi, vj])
            O[vi, vj] = A[vi, vj] - lo[idx[vi] % {n}] + hi[vi]
"""


def partly(c: Choice) -> str:
    """A reduction or a map, and an elementwise consumer that takes only a part of it, or nothing."""
    n, m = c.pick((2, 3, 5)), c.pick((1, 2, 4))
    part = c.number(0, n)
    start, combined = c.pick(
        (
            ("0", "P[vi] + A[vi, vk]"),
            ("-9", "T.max(P[vi], A[vi, vk])"),
            ("1", "P[vi] * A[vi, vk]"),
            ("", "A[vi, 0] - 3"),
        )
    )
    nest, kinds, init = (
        f"for i, k in T.grid({n}, {m}):",
        '"SR", [i, k]',
        f"with T.init():\n                P[vi] = {start}",
    )
    if not start:
        nest, kinds, init = f"for i in range({n}):", '"S", [i]', "T.reads(A[vi, 0])"
    around, at = c.pick(
        (
            (f"for i in range({part}):", "i"),
            (f"for i in range({part}):", f"i + {n - part}"),
            (
                f"for i in range({n}):\n        if i {c.pick(('<', '>=', '%'))} {max(part, 1)} {c.pick(('', '!= 0'))}:",
                "i",
            ),
            (f"for r, i in T.grid(s, {n}):", "i"),
            (f"for i in range(T.min(s, {n})):", "i"),
            (f"for i in range({n}):\n        if {c.pick(('M[i] > 0', 'M[0] > 0', 's > 1'))}:", "i"),
            (f"for i in range(T.min(M[0], {n})):", "i"),
        )
    )
    value = c.pick(("P[vi] + W[vi]", "T.max(P[vi], W[vi])", "P[vi] * W[vi]", "T.max(P[vi] + W[vi], 0)", "P[vi] // 2"))
    where = c.pick(("T.where(True)", f"T.where(i < {part})", "T.where(M[i] > 1)"))
    deep = "    " * (around.count("\n") + 2)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), W: T.Buffer(({n},), "int32"), M: T.Buffer(({n},), "int32"), O: T.Buffer(({n},), "int32"), s: T.int32):
    P = T.alloc_buffer(({n},), "int32")
    {nest}
        with T.block("P"):
            {"vi, vk" if start else "(vi,)"} = T.axis.remap({kinds})
            {init}
            P[vi] = {combined}
    {around}
{deep}with T.block("O"):
{deep}    vi = T.axis.spatial({n}, {at})
{deep}    {where}
{deep}    O[vi] = {value}
"""


CORNERS = (batched, two_outputs, nested, conditional, few, argmin, spread, partly)
