"""Programs for the fuzzer in the forms that exposed bugs of schedules: loops that do not start at 0, iterators that run in
reverse, views, mixed integer widths, consumers in nested blocks, empty domains, modules, scalars, tensor intrinsics.
"""

from __future__ import annotations

from tir.testing.decisions import Choice


def starts(c: Choice) -> str:
    """Loops that do not start at 0, of every kind, around elementwise blocks and a reduction."""
    n, m = c.pick((1, 2, 3, 4)), c.pick((1, 2, 4))
    one, two = c.pick((1, 2, 5)), c.pick((-3, 1, 2))
    kind = c.pick(("range", "range", "T.parallel", "T.vectorized", "T.unroll"))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), O: T.Buffer(({n},), "int32")):
    B = T.alloc_buffer(({n}, {m}), "int32")
    S = T.alloc_buffer(({n},), "int32")
    for i in range({one}, {n + one}):
        for j in {kind}({two}, {m + two}):
            with T.block("B"):
                vi = T.axis.spatial({n}, i - {one})
                vj = T.axis.spatial({m}, j - ({two}))
                B[vi, vj] = A[vi, {c.pick(("vj", f"{m - 1} - vj"))}] * 2
    for i in range({c.pick((0, one))}, {n + one}):
        for k in range({two}, {m + two}):
            with T.block("S"):
                vi = T.axis.spatial({n}, T.max(i - {one}, 0))
                vk = T.axis.reduce({m}, k - ({two}))
                T.where({one} <= i)
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + B[vi, vk]
    for i in range({two}, {n + two}):
        with T.block("O"):
            vi = T.axis.spatial({n}, i - ({two}))
            O[vi] = S[{c.pick(("vi", f"{n - 1} - vi"))}] + 1
"""


def backwards(c: Choice) -> str:
    """Iterators that run in reverse, with a stride, or take a value twice."""
    n, m = c.pick((1, 2, 3, 4)), c.pick((1, 2, 4))
    value, size = c.pick(
        (
            ("k", m),
            (f"{m - 1} - k", m),
            ("k * 2", 2 * m),
            ("k * 2 + 1", 2 * m),
            (f"{2 * m - 1} - k * 2", 2 * m),
            ("k // 2", m),
        )
    )
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {2 * m}), "int32"), O: T.Buffer(({2 * n},), "int32")):
    B = T.alloc_buffer(({2 * n}, {2 * m}), "int32")
    S = T.alloc_buffer(({2 * n},), "int32")
    for i, j in T.grid({2 * n}, {2 * m}):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = 7
    for i, j in T.grid({n}, {2 * m}):
        with T.block("B"):
            vi = T.axis.spatial({2 * n}, {c.pick(("i * 2", "i * 2 + 1", f"{2 * n - 1} - i * 2", f"{n - 1} - i"))})
            vj = T.axis.spatial({2 * m}, {c.pick(("j", f"{2 * m - 1} - j"))})
            B[vi, vj] = A[vi // 2, vj] * 2
    for i in range({2 * n}):
        with T.block("start"):
            vi = T.axis.spatial({2 * n}, i)
            S[vi] = 3
    for i, k in T.grid({2 * n}, {m}):
        with T.block("S"):
            vi = T.axis.spatial({2 * n}, {c.pick(("i", f"{2 * n - 1} - i"))})
            vk = T.axis.reduce({size}, {value})
            with T.init():
                S[vi] = 1
            S[vi] = {c.pick(("S[vi] + B[vi, vk]", "T.max(S[vi], B[vi, vk])", "S[vi] + B[vi, vk] * vk"))}
    for i in range({2 * n}):
        with T.block("O"):
            vi = T.axis.spatial({2 * n}, {2 * n - 1} - i)
            O[vi] = S[vi] + B[{c.pick(("vi", f"{2 * n - 1} - vi"))}, 0]
"""


def views(c: Choice) -> str:
    """Blocks that read and write through ``match_buffer``, between a producer and a consumer."""
    n, m = c.pick((1, 2, 3)), c.pick((1, 2, 4))
    loads, stores = c.pick((True, True, False)), c.pick((True, True, False))
    at = c.pick(("vj", f"{m - 1} - vj"))
    seen = f"V[{at}]" if loads else f"B[vo, {at}]"
    kept = c.pick(("W[vj]", "W[0, vj]")) if stores else "C[vo, vj]"
    lines = []
    if loads:
        lines.append(f'V = T.match_buffer(B[vo, 0:{m}], ({m},), "int32", offset_factor=1)')
    if stores:
        shape = f"(1, {m})" if "0" in kept else f"({m},)"
        lines.append(f'W = T.match_buffer(C[vo, 0:{m}], {shape}, "int32", offset_factor=1)')
    reads, declared = "vo", ""
    if c.number(0, 3) == 0:
        reads, lines, declared, seen = _strided_view(c, n, m, at, lines[loads:])
    view = "\n            ".join(lines)
    inner = f"""for j in range({m}):
                with T.block("row"):
                    vj = T.axis.spatial({m}, j)
                    {kept} = {seen} + 1"""
    plain = f"""for vj in range({m}):
                {kept} = {seen} + 1"""
    rank0 = """
            V0 = T.match_buffer(C[vi, vj], (), "int32", offset_factor=1)
            O[vi, vj] = V0[()] - A[vi, vj]"""
    direct = f"""
            O[vi, vj] = C[{c.pick(("vi", f"{n - 1} - vi"))}, vj] - A[vi, vj]"""
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), O: T.Buffer(({n}, {m}), "int32")):{declared}
    B = T.alloc_buffer(({n}, {m}), "int32")
    C = T.alloc_buffer(({n}, {m}), "int32")
    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for o in range({n}):
        with T.block("tile"):
            vo = T.axis.spatial({n}, o)
            T.reads(B[{reads}, 0:{m}])
            T.writes(C[vo, 0:{m}])
            {view}
            {c.pick((inner, plain))}
    for i, j in T.grid({n}, {m}):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j]){c.pick((direct, direct, rank0))}
"""


def _strided_view(c: Choice, n: int, m: int, at: str, others: list[str]) -> tuple[str, list[str], str, str]:
    """Rows of ``B`` as a matrix whose strides are variables: the rows, the views of a block, what the function declares,
    and an element of the view."""
    row, rows = c.pick((("0", "vo:vo + 1"), ("vo", f"0:{n}"), (f"{n - 1} - vo", f"0:{n}")))
    shape = f"({n if rows[0] == '0' else 1}, {m})"
    view = f'V = T.match_buffer(B[{rows}, 0:{m}], {shape}, "int32", strides=[s0, s1], offset_factor=1)'
    return rows, [view, *others], "\n    s0 = T.int32()\n    s1 = T.int32()", f"V[{row}, {at}]"


def widths(c: Choice) -> str:
    """Loops, iterators and buffers with 32-bit and 64-bit indices in one program."""
    n, m = c.pick((1, 2, 3, 4)), c.pick((1, 2, 4))

    def size(value: int) -> str:
        return c.pick((str(value), f"T.int64({value})"))

    def iterator(kind: str, extent: int, loop: str) -> tuple[str, str]:
        """A loop's extent and an iterator bound to the loop, each of either integer width."""
        outer, inner = size(extent), size(extent)
        wide = "64" if "64" in inner else "32"
        value = loop if ("64" in outer) == ("64" in inner) else f'T.Cast("int{wide}", {loop})'
        return outer, f"T.axis.{kind}({inner}, {value})"

    (bi, vbi), (bj, vbj) = iterator("spatial", n, "i"), iterator("spatial", m, "j")
    (si, vsi), (sk, vsk) = iterator("spatial", n, "i"), iterator("reduce", m, "k")
    (oi, voi) = iterator("spatial", n, "i")
    return f"""
@T.prim_func
def main(A: T.Buffer(({size(n)}, {size(m + 1)}), "float32"), O: T.Buffer(({size(n)},), "float32")):
    B = T.alloc_buffer(({size(n)}, {size(m)}), "float32")
    S = T.alloc_buffer(({size(n)},), "float32")
    for i in range({bi}):
        for j in range({bj}):
            with T.block("B"):
                vi = {vbi}
                vj = {vbj}
                B[vi, vj] = A[vi, vj + {c.pick(("1", "1", "0"))}] * T.float32(2)
    for i in range({si}):
        for k in range({sk}):
            with T.block("S"):
                vi = {vsi}
                vk = {vsk}
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + B[vi, vk]
    for i in range({oi}):
        with T.block("O"):
            vi = {voi}
            O[vi] = S[{c.pick(("vi", f"{n - 1} - vi"))}] + T.float32(1)
"""


def inside(c: Choice) -> str:
    """Consumers in nested blocks that allocate buffers, and another outside."""
    n, f = c.pick((1, 2, 3)), c.pick((1, 2, 4))
    place = f"vo * {f} + vi"
    back = f"{n * f - 1} - ({place})"
    read = c.pick((place, place, back))
    declared = f"vo * {f}:vo * {f} + {f}" if read == place else f"0:{n * f}"
    own = c.pick((True, False))
    mid = "L[vi]" if own else f"L[{place}]"
    inner_alloc = f'L = T.alloc_buffer(({f},), "int32")' if own else "T.evaluate(0)"
    outer_alloc = "" if own else f'    L = T.alloc_buffer(({n * f},), "int32")\n'
    written = f"C[vo * {f}:vo * {f} + {f}]" + ("" if own else f", L[vo * {f}:vo * {f} + {f}]")
    return f"""
@T.prim_func
def main(A: T.Buffer(({n * f},), "int32"), O: T.Buffer(({n * f},), "int32")):
    P = T.alloc_buffer(({n * f},), "int32")
    C = T.alloc_buffer(({n * f},), "int32")
{outer_alloc}    for i in range({n * f}):
        with T.block("P"):
            vi = T.axis.spatial({n * f}, i)
            P[vi] = A[vi] * 2
    for io in range({n}):
        with T.block("tile"):
            vo = T.axis.{c.pick(("spatial", "spatial", "opaque"))}({n}, io)
            T.reads(P[{declared}])
            T.writes({written})
            {inner_alloc}
            for ii in range({f}):
                with T.block("first"):
                    vi = T.axis.spatial({f}, ii)
                    {mid} = P[{read}] + 1
            for ii in range({f}):
                with T.block("second"):
                    vi = T.axis.spatial({f}, ii)
                    C[{place}] = {mid} - P[{read}]
    for i in range({n * f}):
        with T.block("O"):
            vi = T.axis.spatial({n * f}, i)
            O[vi] = C[vi] + P[{c.pick(("vi", f"{n * f - 1} - vi"))}]
"""


def empty(c: Choice) -> str:
    """Sizes that are zero, or may be: an empty reduction leaves its result unchanged."""
    rows, columns = c.pick((("3", "n"), ("n", "2"), ("n", "m"), ("0", "3"), ("2", "0")))
    kept = c.pick(("O", "S"))
    made = f'    S = T.alloc_buffer(({rows},), "int32")\n' if kept == "O" else ""
    given = f', S: T.Buffer(({rows},), "int32")' if kept == "S" else ""
    update = c.pick(("S[vi] + B[vi, vk]", "T.max(S[vi], B[vi, vk])"))
    start = c.pick((True, kept == "O"))  # a result that may not be initialised here must have been before
    fill = (
        f"""
    for i in range({rows}):
        with T.block("fill"):
            vi = T.axis.spatial({rows}, i)
            S[vi] = 5"""
        if start
        else ""
    )
    return f"""
@T.prim_func
def main(a: T.handle, n: T.int32, m: T.int32, O: T.Buffer(({rows},), "int32"){given}):
    A = T.match_buffer(a, ({rows}, {columns}), "int32")
    B = T.alloc_buffer(({rows}, {columns}), "int32")
{made}    for i, j in T.grid({rows}, {columns}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1{fill}
    for i, k in T.grid({rows}, {columns}):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = 0
            S[vi] = {update}
    for i in range({rows}):
        with T.block("O"):
            vi = T.axis.spatial({rows}, i)
            O[vi] = S[vi] * 2
"""


def module(c: Choice) -> str:
    """Two functions whose blocks and loops have equal names."""
    n, m = c.pick((1, 2, 4)), c.pick((1, 3))
    return f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({n}, {m}), "int32"), O: T.Buffer(({n},), "int32")):
        B = T.alloc_buffer(({n}, {m}), "int32")
        for i, j in T.grid({n}, {m}):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2
        for i, k in T.grid({n}, {m}):
            with T.block("O"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    O[vi] = 0
                O[vi] = O[vi] + B[vi, vk]

    @T.prim_func
    def other(A: T.Buffer(({m}, {n}), "float32"), O: T.Buffer(({m}, {n}), "float32"), s: T.int32):
        B = T.alloc_buffer(({m}, {n}), "float32")
        for i, j in T.grid({m}, {n}):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, {c.pick(("vj", f"{n - 1} - vj"))}] + T.float32(1)
        for i, j in T.grid({m}, {n}):
            if s > {c.pick((0, 4))}:
                with T.block("O"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    O[vi, vj] = B[{c.pick(("vi", f"{m - 1} - vi"))}, vj] * T.float32(2)
"""


def scalars(c: Choice) -> str:
    """Conditions, lets, assertions and extents that use scalar parameters; loops with annotations before any step."""
    n = c.pick((2, 3, 5))
    kind = c.pick(("range", "T.parallel", "T.vectorized", "T.unroll"))
    head = c.pick(
        (
            f"if m > {c.pick((0, 4))}:",
            f"for r in range(T.min(m, {c.pick((1, 2))})):",
            "x: T.int32 = m % 3\n        if x > 0:",
        )
    )
    return f"""
@T.prim_func
def main(A: T.Buffer(({n},), "int32"), O: T.Buffer(({n},), "int32"), m: T.int32):
    B = T.alloc_buffer(({n},), "int32")
    C = T.alloc_buffer(({n},), "int32")
    assert m > -100, "m is drawn small"
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi] * 2
    for i in {kind}({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = T.if_then_else(vi < m, B[vi], {c.pick(("0", f"B[{n - 1} - vi]"))})
    for i in range({n}):
        {head}
            with T.block("update"):
                vi = T.axis.spatial({n}, i)
                T.where({c.pick(("True", "i < m"))})
                C[vi] = C[vi] + B[vi]
    for i in range({n}):
        with T.block("O"):
            vi = T.axis.spatial({n}, i)
            O[vi] = C[vi] - m
"""


def instructions(c: Choice) -> str:
    """Computations of the fuzzer's two tensor intrinsics (``tir.testing.sample_intrinsics``) between other blocks."""
    n, m = c.pick((1, 2, 3)), c.pick((4, 8, 6))
    first = c.pick(("A[vi, vj] * 2", "A[vi, vj] * 2", "A[vi, vj] * 2 + 1"))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), W: T.Buffer(({m},), "int32"), O: T.Buffer(({n},), "int32")):
    B = T.alloc_buffer(({n}, {m}), "int32")
    S = T.alloc_buffer(({n},), "int32")
    for i in range({n}):
        with T.block("start"):
            vi = T.axis.spatial({n}, i)
            S[vi] = 0
    for i, jo, ji in T.grid({n}, {-(-m // 4)}, 4):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            vj = T.axis.spatial({m}, jo * 4 + ji)
            T.where(jo * 4 + ji < {m})
            B[vi, vj] = {first}
    for i, ko, ki in T.grid({n}, {m // 4}, 4):
        with T.block("S"):
            vi = T.axis.spatial({n}, i)
            vk = T.axis.reduce({m}, ko * 4 + ki)
            S[vi] = S[vi] + B[vi, {c.pick(("vk", "vk", f"{m - 1} - vk"))}] * W[vk]
    for i in range({n}):
        with T.block("O"):
            vi = T.axis.spatial({n}, i)
            O[vi] = S[vi] - 1
"""


def _declared(c: Choice, side: str, buffer: str, size: int, element: str) -> str:
    """What a block declares that it reads or writes: nothing, what it does, more, less, or other elements."""
    said = (element, f"{buffer}[0:{size}]", "", f"{buffer}[0]", f"A[0:{size}]")
    return c.pick(("T.evaluate(0)", *(f"T.{side}({region})" for region in said)))


def declared(c: Choice) -> str:
    """Blocks that declare other regions than they access: schedules and lowering have to go by what blocks do."""
    n, m = c.pick((1, 2, 3)), c.pick((1, 2, 4))
    size = n * m
    at, back = "vi", f"{size - 1} - vi"
    place = f"vo * {m} + vk"
    first, second, third = c.pick((at, back)), c.pick((at, back, "0")), c.pick((at, back))
    return f"""
@T.prim_func
def main(A: T.Buffer(({size},), "int32"), O: T.Buffer(({size},), "int32")):
    B = T.alloc_buffer(({size},), "int32")
    C = T.alloc_buffer(({size},), "int32")
    S = T.alloc_buffer(({n},), "int32")
    for i in range({size}):
        with T.block("B"):
            vi = T.axis.spatial({size}, i)
            {_declared(c, "writes", "B", size, "B[vi]")}
            B[vi] = A[{first}] * 2
    for i in range({size}):
        with T.block("C"):
            vi = T.axis.spatial({size}, i)
            {_declared(c, "reads", "B", size, f"B[{second}]")}
            {_declared(c, "writes", "C", size, "C[vi]")}
            C[vi] = B[{second}] - 1
    for i in range({size}):
        with T.block("update"):
            vi = T.axis.spatial({size}, i)
            {_declared(c, "reads", "C", size, "C[vi]")}
            B[vi] = {c.pick(("B[vi] + C[vi]", f"C[{back}]"))}
    for o in range({n}):
        with T.block("tile"):
            vo = T.axis.spatial({n}, o)
            {_declared(c, "reads", "B", size, f"B[vo * {m}:vo * {m} + {m}]")}
            {_declared(c, "writes", "S", n, "S[vo]")}
            for k in range({m}):
                with T.block("S"):
                    vk = T.axis.reduce({m}, k)
                    {_declared(c, "reads", "B", size, f"B[{place}]")}
                    with T.init():
                        S[vo] = 0
                    S[vo] = S[vo] + B[{place}]
    for i in range({size}):
        with T.block("O"):
            vi = T.axis.spatial({size}, i)
            {_declared(c, "reads", "S", n, f"S[vi // {m}]")}
            O[vi] = S[vi // {m}] + C[{third}]
"""


def reindexed(c: Choice) -> str:
    """A reduction in the loops of the copies that bring its operand and its result into another order of dimensions."""
    n, m, k = c.pick((1, 2, 3)), c.pick((1, 2, 3)), c.pick((1, 2, 4))
    kept, shape = c.pick((("vi, vk", (n, k)), ("vk, vi", (k, n)), ("vk", (k,)), ("vk, 0, vi", (k, 1, n))))
    result, size = c.pick((("vi, vj", (n, m)), ("vj, vi", (m, n)), ("vj", (m,)), ("0", (1,))))
    shared = result != "0"  # one element for all of `j`: the copy back has to stand in that loop too
    after = f"""        for j in range({m}):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vj, vi] = R[{result}] - X[{kept.replace("vk", "0")}]
"""
    inner = after if shared else after.replace(f"        for j in range({m}):\n", "")
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {k}), "int32"), W: T.Buffer(({k}, {m}), "int32"), Y: T.Buffer(({m}, {n}), "int32")):
    X = T.alloc_buffer({shape}, "int32")
    R = T.alloc_buffer({size}, "int32")
    for i in range({n}):
        for r in range({k}):
            with T.block("X"):
                vi, vk = T.axis.remap("SS", [i, r])
                X[{kept}] = A[vi, {c.pick(("vk", f"{k - 1} - vk"))}] * 2
        for j in range({m}):
            for r in range({k}):
                with T.block("R"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, r])
                    with T.init():
                        R[{result}] = 0
                    R[{result}] = R[{result}] + X[{kept}] * W[vk, vj]
{inner}"""


def layouts(c: Choice) -> str:
    """Views whose strides are parameters of the function: a size, or the strides of an argument, which the body reads too."""
    n = c.pick((1, 2, 3))
    source, strides = c.pick((("A", "[s0, s1]"), ("B", "[m, 1]"), ("B", "[s0, s1]")))
    given = f", strides={strides}" if source == "A" else ""
    row, rows = c.pick((("0", "vo:vo + 1"), ("vo", f"0:{n}"), (f"{n - 1} - vo", f"0:{n}")))
    number = f"({n if rows[0] == '0' else 1}, m)"
    own = "\n    s0 = T.int32()\n    s1 = T.int32()" if "s0" in strides else ""
    extra = c.pick(("0", "m", strides[1:].partition(",")[0]))
    at = c.pick(("vj", "m - 1 - vj"))
    kept = c.pick(('W = T.match_buffer(C[vo, 0:m], (1, m), "int32", strides=[m, 1], offset_factor=1)', "T.evaluate(0)"))
    stored = "W[0, vj]" if "W" in kept else "C[vo, vj]"
    return f"""
@T.prim_func
def main(a: T.handle, o: T.handle, m: T.int32):{own}
    A = T.match_buffer(a, ({n}, m), "int32"{given})
    O = T.match_buffer(o, ({n}, m), "int32")
    B = T.alloc_buffer(({n}, m), "int32")
    C = T.alloc_buffer(({n}, m), "int32")
    for i, j in T.grid({n}, m):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            vj = T.axis.spatial(m, j)
            B[vi, vj] = A[vi, vj] * 2
    for o in range({n}):
        with T.block("tile"):
            vo = T.axis.spatial({n}, o)
            T.reads({source}[{rows}, 0:m])
            T.writes(C[vo, 0:m])
            V = T.match_buffer({source}[{rows}, 0:m], {number}, "int32", strides={strides}, offset_factor=1)
            {kept}
            for j in range(m):
                with T.block("row"):
                    vj = T.axis.spatial(m, j)
                    {stored} = V[{row}, {at}] + {extra}
    for i, j in T.grid({n}, m):
        with T.block("O"):
            vi = T.axis.spatial({n}, i)
            vj = T.axis.spatial(m, j)
            O[vi, vj] = C[{c.pick(("vi", f"{n - 1} - vi"))}, vj] - A[vi, vj]
"""


def names(c: Choice) -> str:
    """Memory that two buffers of other shapes name: one allocated, or a parameter."""
    n, m = c.pick((1, 2, 3)), c.pick((1, 2, 4))
    at = c.pick((f"vi * {m} + vj", f"{n * m - 1} - vi * {m} - vj", f"vj * {n} + vi"))
    flat = f"""for i in range({n * m}):
        with T.block("B"):
            vi = T.axis.spatial({n * m}, i)
            B[vi] = A[vi // {m}, vi % {m}] * 2"""
    again = f"""
    for i, j in T.grid({n}, {m}):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = {c.pick(("R[vi, vj] + 1", "A[vi, vj]"))}"""
    read = c.pick((f"B[{at}]", "R[vi, vj]", f"R[{n - 1} - vi, vj]"))
    last = f"""
    for i, j in T.grid({n}, {m}):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = {read} - {c.pick(("A[vi, vj]", f"F[vi * {m} + vj]"))}"""
    declared = c.pick(("decl_buffer", "Buffer"))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), O: T.Buffer(({n}, {m}), "int32")):
    B = T.alloc_buffer(({n * m},), "int32")
    R = T.{declared}(({n}, {m}), "int32", data=B.data)
    F = T.{declared}(({n * m},), "int32", data=A.data)
    {flat}{c.pick((again, ""))}{last}
"""


AWKWARD = (
    layouts,
    starts,
    backwards,
    views,
    widths,
    inside,
    empty,
    module,
    scalars,
    instructions,
    declared,
    reindexed,
    names,
)
