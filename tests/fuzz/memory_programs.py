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


MEMORY = (lazy, overlapping)
