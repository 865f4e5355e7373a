"""Reductions of many forms for the fuzzer, in addition to the kernels of :mod:`tests.fuzz.kernel_programs`.

Bitwise updates and updates of several terms, with or without a condition, with or without an init; reduction iterators
that run in reverse, with a stride, from a start other than zero, or that take values more than once; sizes of zero.
"""

from __future__ import annotations

from tir.testing.decisions import Choice

ODD = (1, 2, 3, 5)

UPDATES = (
    "S[vi] + X",
    "S[vi] - X",
    "T.max(S[vi], X)",
    "T.min(X, S[vi])",
    "S[vi] ^ X",
    "S[vi] | X",
    "X & S[vi]",
    "(S[vi] + X) + 1",
    "(S[vi] - X) + (W[vi] - 1)",
    "(X ^ W[vi]) ^ (S[vi] ^ 5)",
    "T.max(T.max(S[vi], W[vi]), X)",
    "T.if_then_else(X > W[vi], S[vi] + X, S[vi])",
    "X - S[vi]",
    "S[vi] + T.Cast('int32', T.Cast('int8', X))",
)


def _iterator(c: Choice, m: int) -> tuple[str, str]:
    """The range of a reduction loop ``k`` of ``m`` iterations, and the iterator bound to it."""
    begin = c.pick((0, 0, 0, 1))
    k = f"(k - {begin})" if begin else "k"
    value = c.pick(
        (
            f"T.axis.reduce({m}, {k})",
            f"T.axis.reduce({m}, {k})",
            f"T.axis.reduce({m}, {m - 1} - {k})",
            f"T.axis.reduce({2 * m}, {k} * 2)",
            f"T.axis.reduce({m + 2}, {k} + 2)",
            f"T.axis.reduce({m}, {k} // 2)",
            f"T.axis.reduce({m}, ({k} + 1) % {m})",
            f"T.axis.reduce({m + 1}, {k} % 2)",
            f"T.axis.reduce({m}, {k} // 2 * 2)",
        )
    )
    return f"range({begin}, {m + begin})", value


def reduction(c: Choice) -> str:
    """A row reduction in some form, after a block that initialises each result, and perhaps with a consumer."""
    n, m = c.pick(ODD), c.pick(ODD)
    extent, iterator = _iterator(c, m)
    update = c.pick(UPDATES).replace("X", "A[vi, vk]")
    init = c.pick(
        (
            "",
            "                with T.init():\n                    S[vi] = 0\n",
            "                with T.init():\n                    S[vi] = W[vi]\n",
        )
    )
    where = c.pick(("", "", f"                T.where(k < {m})\n", "                T.where(k >= i)\n"))
    store = c.pick(("S[vi] = {}", "S[vi] = {}", "if A[vi, vk] > 0:\n                    S[vi] = {}")).format(update)
    row = c.pick(("i", "i", "i", "i // 2", f"i % {n // 2 + 1}"))
    indent, head = c.pick((("        ", ""), ("    ", f"    for i in range({n}):\n    ")))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {2 * m + 2}), "int32"), W: T.Buffer(({n},), "int32"), O: T.Buffer(({n}, 2), "int32")):
    S = T.alloc_buffer(({n},), "int32")
    for i in range({n}):
        with T.block("F"):
            vi = T.axis.spatial({n}, i)
            S[vi] = W[vi] + 1
    for i in range({n}):
        for k in {extent}:
            with T.block("S"):
                vi = T.axis.spatial({n}, {row})
                vk = {iterator}
{where}{init}                {store}
{head}{indent}for j in range(2):
        {indent[4:]}    with T.block("O"):
            {indent[4:]}    vi, vj = T.axis.remap("SS", [i, j])
            {indent[4:]}    O[vi, vj] = S[vi] * 2 + vj
"""


def maybe_empty(c: Choice) -> str:
    """A reduction of symbolic size, which may be zero, whose results already hold the values of its init."""
    n = c.pick(ODD)
    update = c.pick(UPDATES[:8]).replace("X", "A[vi, vk]")
    return f"""
@T.prim_func
def main(a: T.handle, W: T.Buffer(({n},), "int32"), S: T.Buffer(({n},), "int32")):
    may_be_zero = T.int32()
    A = T.match_buffer(a, ({n}, may_be_zero), "int32")
    for i in range({n}):
        with T.block("F"):
            vi = T.axis.spatial({n}, i)
            S[vi] = W[vi]
    for i, k in T.grid({n}, may_be_zero):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = W[vi]
            S[vi] = {update}
"""


def continued(c: Choice) -> str:
    """A reduction that goes on with what another block made: its iterators never take their first values together, or a
    condition keeps these out, so that its init, if it has one, never runs."""
    n, m, r = c.pick(ODD), c.pick((2, 3, 4)), c.pick((1, 1, 2))
    head = c.number(1, m - 1)
    ks, vk, where = c.pick(
        (
            (f"range({m - head})", f"k + {head}", ""),
            (f"range({m - head})", f"k + {head}", "k < 2"),
            (f"range({m - head})", f"{m - 1} - k", ""),
            (f"range({m})", f"k % {m - head} + {head}", ""),
            (f"range({head}, {m})", "k", ""),
            (f"range({m})", "k", f"k >= {head}"),
            (f"range({m})", "k", f"k + x >= {head + r - 1}"),
        )
    )
    vx = c.pick(("x", f"{r - 1} - x")) if vk != "k" or not where else "x"
    filled = f"""
        with T.block("first"):
            vi = T.axis.spatial({n}, i)
            S[vi] = W[vi] + 1"""
    reduced = f"""
        for k in range({head}):
            with T.block("first"):
                vi = T.axis.spatial({n}, i)
                vk = T.axis.reduce({m}, k)
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + A[vi, vk, 0]"""
    init = c.pick(
        (
            "",
            "with T.init():\n                        S[vi] = 0",
            "with T.init():\n                        S[vi] = W[vi]",
        )
    )
    update = c.pick((*UPDATES[:8], "S[vi] * 2 + X", "X - S[vi]")).replace("X", "A[vi, vk, vx]")
    rest = f"""
        for k in {ks}:
            for x in range({r}):
                with T.block("rest"):
                    vi = T.axis.spatial({n}, i)
                    vk = T.axis.reduce({m}, {vk})
                    vx = T.axis.reduce({r}, {vx})
                    T.where({where or "True"})
                    {init}
                    S[vi] = {update}"""
    used = """
        for j in range(2):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = S[vi] * 2 + vj"""
    loop = f"\n    for i in range({n}):"
    between = [c.pick((loop, "")) for _ in range(2)]
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}, {r}), "int32"), W: T.Buffer(({n},), "int32"), O: T.Buffer(({n}, 2), "int32")):
    S = T.alloc_buffer(({n},), "int32"){loop}{c.pick((filled, reduced))}{between[0]}{rest}{between[1]}{used}
"""


REDUCTIONS = (reduction, maybe_empty, continued)
