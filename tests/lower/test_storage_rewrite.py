"""Temporaries whose lifetimes do not overlap share memory: between nests, between types, never with what runs at once."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tir
from tir.ops import nn
from tir.script import parse
from tir.stmt import Allocate, For
from tir.te import create_prim_func, placeholder
from tir.testing import assert_roundtrip, assert_same_result
from tir.transform import storage_rewrite
from tir.visit import walk


def allocations(program) -> list[tuple[str, int]]:
    """Name and bytes of each allocation of constant size."""
    found = [n for f in tir.IRModule.of(program).functions.values() for n in walk(f.body) if isinstance(n, Allocate)]
    return [(a.buffer_var.name, int(np.prod([int(e) for e in a.extents])) * a.dtype.bytes) for a in found]


def rewritten(text: str):
    func = parse(text)
    made = storage_rewrite(func)
    assert_roundtrip(made)
    return func, made


NESTS = """
@T.prim_func
def f(A: T.Buffer((8, 512), "float32"), C: T.Buffer((8, 512), "int8"), D: T.Buffer((8, 512), "float32")):
    for i in range(8):
        p = T.allocate([512], "float32", "global")
        P = T.decl_buffer((512,), "float32", data=p)
        for j in range(512):
            P[j] = A[i, j] + T.float32(1)
        for j in range(512):
            D[i, j] = P[511 - j]
    for i in {loop}(8):
        q = T.allocate([1024], "int8", "{scope}")
        Q = T.decl_buffer((1024,), "int8", data=q)
        for j in range(512):
            Q[2 * j] = C[i, j] * T.int8(2)
        for j in range(512):
            C[i, j] = Q[2 * (511 - j)]
"""


def test_temporaries_of_two_nests_and_two_types_share_the_larger_allocation():
    func, made = rewritten(NESTS.format(loop="range", scope="global"))
    assert allocations(func) == [("p", 2048), ("q", 1024)]
    assert allocations(made) == [("p", 2048)]
    assert_same_result(func, made, engines=["interpreter", "llvm"])
    a, c = np.random.rand(8, 512).astype("float32"), np.random.randint(-50, 50, (8, 512)).astype("int8")
    d, doubled = np.zeros_like(a), c.copy()
    tir.build(made)(a, doubled, d)
    np.testing.assert_array_equal(d, (a + 1)[:, ::-1])
    np.testing.assert_array_equal(doubled, (c * np.int8(2))[:, ::-1])


@pytest.mark.parametrize("loop,scope", [("T.parallel", "global"), ("range", "local")])
def test_nothing_is_shared_with_a_parallel_loop_or_another_scope(loop, scope):
    func, made = rewritten(NESTS.format(loop=loop, scope=scope))
    assert made is func


def test_within_an_iteration_of_a_parallel_loop_memory_is_shared():
    func, made = rewritten("""
@T.prim_func
def f(A: T.Buffer((4, 300), "float32"), D: T.Buffer((4, 300), "float32")):
    for i in T.parallel(4):
        for k in range(2):
            p = T.allocate([300], "float32", "global")
            P = T.decl_buffer((300,), "float32", data=p)
            for j in range(300):
                P[j] = A[i, j] * T.float32(2)
            for j in range(300):
                D[i, j] = P[299 - j]
        q = T.allocate([300], "int32", "global")
        Q = T.decl_buffer((300,), "int32", data=q)
        for j in range(300):
            Q[j] = 299 - j
        for j in range(300):
            A[i, Q[j]] = T.float32(0)
""")
    assert [name for name, _ in allocations(made)] == ["p"]
    (loop,) = (n for n in walk(made.body) if isinstance(n, For) and n.kind == "parallel")
    assert any(isinstance(n, Allocate) for n in walk(loop.body))
    assert_same_result(func, made, engines=["interpreter", "llvm"])


KEPT = {
    "a pointer that a let names": """
        s: T.handle("float32") = T.address_of(P[0])
        S = T.decl_buffer((256,), "float32", data=s)
        q = T.allocate([256], "float32", "global")
        Q = T.decl_buffer((256,), "float32", data=q)
        for j in range(256):
            Q[j] = A[j] + T.float32(1)
        for j in range(256):
            D[j] = Q[j] + S[j]
""",
    "a condition of a branch": """
        if P[3] > T.float32(0):
            q = T.allocate([256], "float32", "global")
            Q = T.decl_buffer((256,), "float32", data=q)
            for j in range(256):
                Q[j] = A[j]
            for j in range(256):
                D[j] = Q[255 - j]
""",
    "a loop that runs again": """
        q = T.allocate([256], "float32", "global")
        Q = T.decl_buffer((256,), "float32", data=q)
        for k in range(2):
            for j in range(256):
                D[j] = P[j]
            for j in range(256):
                Q[j] = D[j] + T.float32(k)
            for j in range(256):
                A[j] = Q[j]
""",
    "an asynchronous copy": """
        for j in range(256):
            D[j] = P[j]
        with T.attr(0, "async_scope", 1):
            q = T.allocate([256], "float32", "global")
            Q = T.decl_buffer((256,), "float32", data=q)
            for j in range(256):
                Q[j] = A[j]
            for j in range(256):
                D[j] = Q[j]
""",
    "a pointer that is stored": """
        r = T.allocate([1], "handle", "global")
        R = T.decl_buffer((1,), "handle", data=r)
        R[0] = p
        q = T.allocate([256], "float32", "global")
        Q = T.decl_buffer((256,), "float32", data=q)
        for j in range(256):
            Q[j] = A[j]
        for j in range(256):
            D[j] = Q[j]
""",
}


@pytest.mark.parametrize("rest", KEPT)
def test_memory_stays_apart_while_it_may_be_in_use_through(rest):
    _, made = rewritten(
        """
@T.prim_func
def f(A: T.Buffer((256,), "float32"), D: T.Buffer((256,), "float32")):
    for i in range(2):
        p = T.allocate([256], "float32", "global")
        P = T.decl_buffer((256,), "float32", data=p)
        for j in range(256):
            P[j] = A[255 - j]
""".rstrip()
        + KEPT[rest]
    )
    assert {"p", "q"} <= {name for name, _ in allocations(made)}


def test_temporaries_of_one_symbolic_size_share():
    func, made = rewritten("""
@T.prim_func
def f(a: T.handle, d: T.handle, n: T.int32):
    A = T.match_buffer(a, (n * 3,), "float32")
    D = T.match_buffer(d, (n * 3,), "float32")
    for i in range(2):
        p = T.allocate([n * 3], "float32", "global")
        P = T.decl_buffer((n * 3,), "float32", data=p)
        for j in range(n * 3):
            P[j] = A[j] + T.float32(i)
        for j in range(n * 3):
            D[j] = P[n * 3 - 1 - j]
    q = T.allocate([3 * n], "float32", "global")
    Q = T.decl_buffer((3 * n,), "float32", data=q)
    for j in range(n * 3):
        Q[j] = D[j] * T.float32(2)
    for j in range(n * 3):
        A[j] = Q[n * 3 - 1 - j]
""")
    assert [n.buffer_var.name for n in walk(made.body) if isinstance(n, Allocate)] == ["p"]
    inputs = [np.random.rand(15).astype("float32"), np.zeros(15, "float32"), 5]
    assert_same_result(func, made, inputs, engines=["interpreter", "llvm"])


def test_a_chain_of_layers_needs_two_allocations():
    x = placeholder((16, 32), "float32", "x")
    y = x
    for _ in range(4):
        y = nn.softmax(y)
    lowered = tir.lower(create_prim_func([x, y]), upto="unroll_loop")
    made = storage_rewrite(lowered)
    large = [size for _, size in allocations(lowered) if size >= 1024]
    assert sum(large) > 3 * sum(size for _, size in allocations(made) if size >= 1024)
    assert_same_result(lowered, made, engines=["llvm"])


def test_what_fits_the_stack_does_not_wait_for_memory_of_one_branch():
    func, made = rewritten("""
@T.prim_func
def f(A: T.Buffer((512,), "float32"), n: T.int32):
    if n > 9:
        p = T.allocate([8192], "float32", "global")
        P = T.decl_buffer((8192,), "float32", data=p)
        for j in range(512):
            P[j] = A[j] + T.float32(1)
        for j in range(512):
            A[j] = P[511 - j]
    q = T.allocate([512], "float32", "global")
    Q = T.decl_buffer((512,), "float32", data=q)
    for j in range(512):
        Q[j] = A[j] * T.float32(2)
    for j in range(512):
        A[j] = Q[511 - j]
""")
    assert made is func


TYPES = ("float32", "int8", "int16", "float64", "bfloat16", "bool")
HEADS = {"loop": "for r in range(1):", "parallel": "for r in T.parallel(1):", "branch": "if A[0] < 9:"}


def random_nests(r: random.Random) -> tuple[str, int, list[bool]]:
    """A program of nests, each with a temporary of a random type, size and place; the length of its argument, and which
    nests reverse it."""
    length, lines, outside, reversals = r.choice((6, 12)), [], [], []
    for k in range(r.randint(2, 6)):
        dtype, size, reverse = r.choice(TYPES), r.randint(1024, 1100), r.random() < 0.5
        at = f"{length - 1} - i" if reverse else "i"
        declare = [f'p{k} = T.allocate([{size}], "{dtype}", "global")']
        declare += [f'P{k} = T.decl_buffer(({size},), "{dtype}", data=p{k})']
        body = [f"for i in range({length}):", f'    P{k}[i] = T.Cast("{dtype}", A[i])']
        body += [f"for i in range({length}):", f'    A[i] = T.Cast("int32", P{k}[{at}])']
        place = r.choice(("outside", "here", *HEADS))
        if place == "outside":
            outside += declare
        else:
            body = [*declare, *body]
        if place in HEADS:
            body = [HEADS[place], *("    " + line for line in body)]
        lines += body
        reversals.append(reverse)
    text = "\n    ".join([*outside, *lines])
    return f'@T.prim_func\ndef f(A: T.Buffer(({length},), "int32")):\n    {text}\n', length, reversals


@pytest.mark.parametrize("seed", range(40))
def test_random_nests_compute_the_same_in_no_more_memory(seed):
    text, length, reversals = random_nests(random.Random(seed))
    func = parse(text)
    made = storage_rewrite(func)
    assert sum(size for _, size in allocations(made)) <= sum(size for _, size in allocations(func))
    assert_roundtrip(made)
    start = np.random.default_rng(seed).integers(0, 2, length).astype("int32")
    assert_same_result(func, made, [start.copy()], engines=["interpreter", "llvm"])
    values = start.copy()
    tir.build(made)(values)
    np.testing.assert_array_equal(values, start[::-1] if sum(reversals) % 2 else start)


def test_random_nests_do_share():
    programs = [parse(random_nests(random.Random(seed))[0]) for seed in range(40)]
    saved = [
        1 - sum(dict(allocations(storage_rewrite(p))).values()) / sum(dict(allocations(p)).values()) for p in programs
    ]
    assert sum(s > 0 for s in saved) > 20 and max(saved) > 0.5


ROWS = """
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32):
    m = T.int32()
    A = T.match_buffer(a, (4, m), "float32")
    B = T.match_buffer(b, (4, m), "float32")
    for i in T.KIND(2):
        for j in range(2):
            H = T.allocate([SIZE], "float32", "global")
            row = T.decl_buffer((SIZE,), "float32", data=H)
            for k in range(m):
                row[k] = A[i * 2 + j, k]
            for k in range(m):
                B[i * 2 + j, k] = row[k] + row[m - 1 - k]
"""


@pytest.mark.parametrize(
    ("kind", "size", "loops"),
    [
        ("serial", "m", 0),
        ("parallel", "m", 1),
        ("serial", "m + n", 0),
        ("serial", "m + i", 1),
        ("serial", "9", 1),
        ("serial", "4097", 0),
    ],
)
def test_memory_of_the_heap_is_allocated_around_serial_loops(kind: str, size: str, loops: int):
    """Not of a size that a loop changes, nor what fits the stack, which is no call of the allocator."""
    func = tir.script.parse(ROWS.replace("KIND", kind).replace("SIZE", size))
    lines = tir.transform.storage_rewrite(func).script().splitlines()
    before = lines[: next(n for n, line in enumerate(lines) if "T.allocate" in line)]
    assert sum(line.lstrip().startswith("for ") for line in before) == loops
    a, b = np.arange(20, dtype="float32").reshape(4, 5), np.zeros((4, 5), "float32")
    tir.build(func)(a, b, 4)
    np.testing.assert_array_equal(b, a + a[:, ::-1])
