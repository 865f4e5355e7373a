"""Programs with data-dependent control for the fuzzer: a predicate, a binding, the place of a view, a loop bound, an ``if``
or a let reads memory that other blocks write.
"""

from __future__ import annotations

from tir.testing.decisions import Choice

PLACES = (
    *("predicate", "guarded", "division", "around", "inside", "extent", "start", "binding", "view"),
    *("if", "else", "let", "value"),
)


def steered(c: Choice) -> str:
    """Blocks whose control reads ``M``, which others write before, after or in the same loop; ``M`` is an input, computed
    or updated."""
    n = c.pick((1, 3, 4))
    memory = c.pick(("M", "P"))
    first = f"    for i in range({n}):" + _store("make", f"P[vi] = M[{_at(c, n, 'vi')}] - {c.number(0, 1)}", n)
    parts = [_steered(c, n, memory, "one", "B[vi] = B[vi] + A[vi]")]
    parts.append(_store("write", f"{memory}[vi] = {c.pick(('A[vi]', 'B[vi] - 1', f'{memory}[vi] - 1'))}", n))
    if c.pick((True, False)):
        parts.append(_steered(c, n, memory, "two", "O[vi] = B[vi] * 2"))
    parts = parts[::-1] if c.pick((True, False)) else parts
    loop = f"    for i in range({n}):"
    body = loop + "".join(parts) if c.pick((True, False)) else "".join(loop + part for part in parts)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n},), "int32"), M: T.Buffer(({n},), "int32"), O: T.Buffer(({n},), "int32")):
    P = T.alloc_buffer(({n},), "int32")
    B = T.alloc_buffer(({n},), "int32")
{first}
    for i in range({n}):{_store("start", f"B[vi] = A[{_at(c, n, 'vi')}]", n)}
{body}
    for i in range({n}):{_store("finish", f"O[vi] = O[vi] + B[{_at(c, n, 'vi')}]", n)}
"""


def _at(c: Choice, n: int, var: str) -> str:
    return c.pick((var, f"{n - 1} - {var}", "0"))


def _store(name: str, store: str, n: int) -> str:
    return f"""
        with T.block("{name}"):
            vi = T.axis.spatial({n}, i)
            {store}
"""


def _steered(c: Choice, n: int, memory: str, name: str, store: str) -> str:
    """A block under ``for i`` whose control reads ``memory``."""
    place = c.pick(PLACES)
    read, inner = (f"{memory}[{at}]" for at in _both(c, n))
    block = f"""
        with T.block("{name}"):
            vi = T.axis.spatial({n}, i)
            """
    if place == "predicate":
        return f"{block}T.where({read} > 0)\n            {store}\n"
    if place == "guarded":
        return f"{block}T.where(i < {max(n - 1, 1)} and {read} > 0)\n            {store}\n"
    if place == "division":
        return f"{block}T.where(20 // ({n} - i) > 5 and {read} > 0)\n            {store}\n"
    if place == "binding":
        return f"{block}vx = T.axis.opaque({n}, {read} % {n})\n            {store} + vx\n"
    if place == "view":
        return f"""
        with T.block("{name}"):
            vo = T.axis.spatial({n}, i)
            vi = T.axis.spatial({n}, i)
            V = T.match_buffer(A[{inner} % {n}], (), "int32", offset_factor=1)
            {store} + V[()]
"""
    if place == "around":
        return f"""
        with T.block("{name}_tile"):
            vo = T.axis.spatial({n}, i)
            T.where({read} > 0)
            for k in range(1):
                with T.block("{name}"):
                    vi = T.axis.spatial({n}, vo + k)
                    {store}
"""
    if place == "inside":
        return f"""
        with T.block("{name}_tile"):
            vo = T.axis.spatial({n}, i)
            for k in range(1):
                with T.block("{name}"):
                    vi = T.axis.spatial({n}, vo + k)
                    T.where({inner} > 0)
                    {store}
"""
    head = {
        "extent": f"for k in range(T.min(T.max({read}, 0), 2)):",
        "start": f"for k in range(T.min(T.max({read}, 0), 1), 2):",
        "if": f"if {read} > 0:",
        "else": f"if {read} > 0:\n            T.evaluate(0)\n        else:",
        "let": f"x: T.int32 = {read}\n        if x > 0:",
        "value": f"x: T.int32 = {read}\n        for k in range(2):\n            if T.likely(k < x):",
    }[place]
    store = f"{store} + x" if place == "value" else store
    deep = "    " * (4 if place == "value" else 3)
    return f"""
        {head}
{deep}with T.block("{name}"):
{deep}    vi = T.axis.spatial({n}, i)
{deep}    {store}
"""


def _both(c: Choice, n: int) -> tuple[str, str]:
    """An index in terms of the loop, and the same index in terms of the enclosing block's iterator."""
    at = _at(c, n, "i")
    return at, at.replace("i", "vo")
