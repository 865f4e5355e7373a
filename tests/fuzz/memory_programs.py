"""Programs for the fuzzer in which some loads and stores happen sometimes only, and some in which arguments may overlap."""

from __future__ import annotations

from tir.testing.decisions import Choice


def lazy(c: Choice) -> str:
    """A block that loads behind `and`, `or` and other conditions what is out of bounds elsewhere, or stores in loops that may
    be empty; and one that reads what it makes."""
    n = c.pick((3, 4, 6))
    at = c.pick(("P[vi] + 1", "P[vi] * 2", "1 - P[vi]"))
    inside = f"0 <= {at} and {at} < {n}"
    always = {
        "and": [f'C[vi] = T.Cast("int32", {inside} and A[{at}] > 0)'],
        "or": [f'C[vi] = T.Cast("int32", {at} < 0 or {at} >= {n} or A[{at}] > 0)'],
        "not": [f'C[vi] = T.Cast("int32", not ({at} < 0 or {at} >= {n} or A[{at}] > 0)) + A[vi]'],
        "choice": [f"C[vi] = T.if_then_else({inside}, A[{at}], 7)"],
        "select": [f"C[vi] = T.Select({inside} and A[{at}] > 0, A[vi], 7)"],
        "let": [f"x: T.bool = {inside} and A[{at}] > 0", 'C[vi] = T.Cast("int32", x)'],
        "divisor": ['C[vi] = T.Cast("int32", P[vi] != 0 and 8 // P[vi] > 2)'],
        "if": ["C[vi] = 5", f"if {inside}:", f"    C[vi] = A[{at}]"],
        "both": [f"if {inside}:", f"    C[vi] = A[{at}]", "else:", "    C[vi] = A[vi]"],
        "loop": ["C[vi] = 0", f'for k in range(T.Cast("int32", {inside})):', f"    C[vi] = C[vi] + A[{at}] + k"],
    }
    sometimes = {
        "store in if": [f"if {inside}:", f"    C[vi] = A[{at}]"],
        "store in a loop": ["for k in range(T.max(P[vi], 0)):", "    C[vi] = A[vi] + k"],
        "store in a while": ["while C[vi] < P[vi]:", "    C[vi] = C[vi] + 1"],
    }
    form = c.pick((*always, *sometimes))
    stores = "\n            ".join({**always, **sometimes}[form])
    own = form in always and c.pick((True, False))
    memory = f'    C = T.alloc_buffer(({n},), "int32")' if own else ""
    given = "" if own else f'C: T.Buffer(({n},), "int32"), '
    use = c.pick(("C[vi]", f"C[{n - 1} - vi]", "C[vi] + A[vi]"))
    return f"""
@T.prim_func
def main(P: T.Buffer(({n},), "int32"), A: T.Buffer(({n},), "int32"), {given}O: T.Buffer(({n},), "int32")):
{memory}
    for i in range({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            {stores}
    for i in range({n}):
        with T.block("O"):
            vi = T.axis.spatial({n}, i)
            O[vi] = {use}
"""


def overlapping(c: Choice) -> str:
    """Blocks on arguments that may share memory: what one name writes may be read by another, an element on."""
    n = c.pick((3, 4, 6))
    at = c.pick(("vi", f"{n - 1} - vi", "vi + 1"))
    second = c.pick(("O[vi] = B[vi] * 2", f"O[{n - 1} - vi] = B[vi] + A[vi]", "O[vi] = D[vi] + A[vi]"))
    return f"""
@T.prim_func
def main(A: T.Buffer(({n + 1},), "int32"), B: T.Buffer(({n + 1},), "int32"), O: T.Buffer(({n + 1},), "int32")):
    T.func_attr({{"tir.noalias": False}})
    D = T.alloc_buffer(({n},), "int32")
    for i in range({n}):
        with T.block("D"):
            vi = T.axis.spatial({n}, i)
            D[vi] = A[{at}] - 1
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[{at}] = {c.pick(("D[vi]", "A[vi] + D[vi]", "A[vi] + 1"))}
        with T.block("O"):
            vi = T.axis.spatial({n}, i)
            {second}
"""


def chosen(c: Choice) -> str:
    """Blocks whose remainder of an iterator chooses what they store or add up, and a table that they read: of constants, or in memory that a statement allocates."""
    n, m, k = c.pick((3, 4, 6)), c.pick((1, 2, 4)), c.pick((2, 3))
    values = [(3 * v + n) % 7 - 3 for v in range(k * m)]
    made = f'T.allocate_const({values}, "int32", [{k}, {m}])', ""
    filled = f"""
    for a, b in T.grid({k}, {m}):
        with T.block("K"):
            va, vb = T.axis.remap("SS", [a, b])
            K[va, vb] = va * 3 - vb"""
    memory, fill = c.pick((made, made, (f'T.allocate([{k}, {m}], "int32", "global")', filled)))
    entry = c.pick((f"K[vi % {k}, vj]", f"K[{k - 1}, {m - 1} - vj]", f"K[(vi + vj) % {k}, vj]"))
    by = c.pick((f"vi % {k}", f"(vi + vj) % {k}", f"(vi + 1) % {k}", "vj % 2"))
    other = c.pick(
        (
            f"B[vi, vj] = {entry} - A[vi, vj]",
            f"B[vi, vj] = A[{n - 1} - vi, vj]",
            f"if A[vi, vj] > {entry}:\n                    B[vi, vj] = 3",
        )
    )
    term = c.pick(("B[vi, vr] * K[0, vr]", "B[vi, vr]"))
    if c.pick((True, False)):
        added = f"S[vi] = S[vi] + T.if_then_else(vr % 2 == 0, {term}, 0 - B[vi, vr])"
    else:
        added = f"if vr % 2 == {c.pick((0, 1))}:\n                S[vi] = S[vi] + {term}"
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "int32"), B: T.Buffer(({n}, {m}), "int32"), O: T.Buffer(({n},), "int32")):
    S = T.alloc_buffer(({n},), "int32")
    data = {memory}
    K = T.decl_buffer(({k}, {m}), "int32", data=data){fill}
    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            if {by} == {c.pick((0, 1))}:
                B[vi, vj] = A[vi, vj] + {entry}
            else:
                {other}
    for i, r in T.grid({n}, {m}):
        with T.block("S"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                S[vi] = 0
            {added}
    for i in range({n}):
        with T.block("O"):
            vi = T.axis.spatial({n}, i)
            O[vi] = S[vi] + K[vi % {k}, 0]
"""


MEMORY = (lazy, overlapping, chosen)
