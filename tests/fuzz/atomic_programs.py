"""Programs for the fuzzer that update elements in one piece (``T.atomic_add``): histograms, sums by row and column, counters."""

from __future__ import annotations

from tir.testing.decisions import Choice


def written_atomically(c: Choice) -> str:
    """A producer, sums made by ``T.atomic_add`` of what it makes at places that data decides, and a consumer of the sums."""
    n, m, k = c.pick((1, 3, 5)), c.pick((2, 4, 5)), c.pick((1, 2, 4, 8))
    kind = c.pick(("int32", "int32", "float32", "int64"))
    at = c.pick((f'T.Cast("int32", B[vi, vj]) & {k - 1}', f"(vi + vj) % {k}", "0", f"T.min(vj, {k - 1})", "N[0]"))
    place = c.pick((f"T.address_of(H[{at}])", f'H.access_ptr("rw", offset={at})'))
    value = c.pick(("B[vi, vj]", "A[vi, vj]", f'T.Cast("{kind}", 1)', f"B[vi, {m - 1} - vj] * A[vi, vj]"))
    add = f'T.atomic_add({place}, {value}, dtype="{kind}")'
    row = f'T.atomic_add(T.address_of(R[vi]), {value}, dtype="{kind}")'
    form = {
        "one": [f"T.evaluate({add})"],
        "two": [f"T.evaluate({add})", f"T.evaluate({row})"],
        "if": [f'if A[vi, vj] > T.Cast("{kind}", 0):', f"    T.evaluate({add})"],
        "else": [f'if A[vi, vj] > T.Cast("{kind}", 0):', f"    T.evaluate({add})", "else:", f"    T.evaluate({row})"],
        "loop": ["for q in range(2):", f"    T.evaluate({add})"],
        "before a store": [f"T.evaluate({add})", "E[vi, vj] = B[vi, vj] + A[vi, vj]"],
        "after a store": ["E[vi, vj] = A[vi, vj]", f"T.evaluate({add})"],
        "old value": [f"old: T.{kind} = {row}", "E[vi, vj] = old"],
        "old value stored": [f"E[vi, vj] = {row}"],
        "let": [f"x: T.{kind} = {value}", f"T.evaluate({add.replace(value, 'x')})"],
        "counter": ['slot: T.int32 = T.atomic_add(N.data, 1, dtype="int32")', f"S[slot] = {value}"],
    }[c.pick(("one", "one", "two", "if", "else", "loop", "before a store", "after a store", "old value", "old value stored", "let", "counter"))]  # fmt: skip
    statements = "\n            ".join(form)
    loops = c.pick((f"T.grid({n}, {m})", f"T.grid({n}, {m})", "apart", "alone"))
    nest = {
        "apart": f"    for i in range({n}):\n      for j in range({m}):",
        "alone": f"    for ij in range({n * m}):",
    }.get(loops, f"    for i, j in {loops}:")
    bound = f"[ij // {m}, ij % {m}]" if loops == "alone" else "[i, j]"
    axes = (
        f"vi, vj = T.axis.spatial({n}, ij // {m}), T.axis.spatial({m}, ij % {m})"
        if loops == "alone"
        else f'vi, vj = T.axis.remap("SS", {bound})'
    )
    own = c.pick(("", f'    H = T.alloc_buffer(({k},), "{kind}")\n'))
    given = "" if own else f'H: T.Buffer(({k},), "{kind}"), '
    use = c.pick(("H[vb]", f"H[{k - 1} - vb] + H[vb]", f"H[{k - 1} - vb] - R[0]"))
    between = c.pick(
        ("", f"    R[{n - 1}] = H[0]\n", f'    T.evaluate(T.atomic_add(R.data, H[{k - 1}], dtype="{kind}"))\n')
    )
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "{kind}"), {given}R: T.Buffer(({n},), "{kind}"), E: T.Buffer(({n}, {m}), "{kind}"), S: T.Buffer(({n * m},), "{kind}"), O: T.Buffer(({k},), "{kind}")):
    B = T.alloc_buffer(({n}, {m}), "{kind}")
    N = T.alloc_buffer((1,), "int32")
{own}    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.Cast("{kind}", 3)
    for b in range({k}):
        with T.block("start"):
            vb = T.axis.spatial({k}, b)
            H[vb] = T.Cast("{kind}", vb)
    for u in range(1):
        with T.block("N"):
            vu = T.axis.spatial(1, u)
            N[vu] = 0
{nest}
        with T.block("H"):
            {axes}
            {statements}
{between}    for b in range({k}):
        with T.block("O"):
            vb = T.axis.spatial({k}, b)
            O[vb] = {use}
"""
