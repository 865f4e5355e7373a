"""Steps at the borders of extents, of which ``golden/beside_tvm.txt`` records what TVM makes.

Each program has one extent that varies: 1, 0, a symbol, and a usual one. ``tests/tools/record_peer.py`` performs the cases
with TVM and writes that file; the tests only read it. This module imports nothing of ``tir``, for TVM's Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

EXTENTS = {"many": "8", "unit": "1", "none": "0", "symbol": "n"}

MATMUL = """
@T.prim_func
def main(n: T.int32, a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT, 4, 4), "float32")
    B = T.match_buffer(b, (4, 4), "float32")
    C = T.match_buffer(c, (EXTENT, 4, 4), "float32")
    for h, i, j, k in T.grid(EXTENT, 4, 4, 4):
        with T.block("C"):
            vh, vi, vj, vk = T.axis.remap("SSSR", [h, i, j, k])
            with T.init():
                C[vh, vi, vj] = T.float32(0)
            C[vh, vi, vj] = C[vh, vi, vj] + A[vh, vi, vk] * B[vk, vj]
"""
SUM = """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, EXTENT), "float32")
    C = T.match_buffer(c, (4,), "float32")
    for i, k in T.grid(4, EXTENT):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
"""
CHAIN = """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT, 4), "float32")
    C = T.match_buffer(c, (EXTENT, 4), "float32")
    B = T.alloc_buffer((EXTENT, 4), "float32")
    for i, j in T.grid(EXTENT, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(EXTENT, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""
ROW = """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT, 4), "float32")
    C = T.match_buffer(c, (EXTENT, 4), "float32")
    B = T.alloc_buffer((4, 1), "float32")
    for j in T.serial(4):
        with T.block("B"):
            vj = T.axis.spatial(4, j)
            B[vj, 0] = A[0, vj] * T.float32(2)
    for i, j in T.grid(EXTENT, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, 0] + T.float32(1)
"""
FIXED = """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT, 4), "float32")
    C = T.match_buffer(c, (1, 4), "float32")
    B = T.alloc_buffer((1, 4), "float32")
    for j in T.serial(4):
        with T.block("B"):
            vi = T.axis.spatial(1, 0)
            vj = T.axis.spatial(4, j)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for j in T.serial(4):
        with T.block("C"):
            vi = T.axis.spatial(1, 0)
            vj = T.axis.spatial(4, j)
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""
WINDOW = """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT * 2 + 1, 4), "float32")
    C = T.match_buffer(c, (EXTENT, 4), "float32")
    B = T.alloc_buffer((EXTENT * 2 + 1, 4), "float32")
    for i, j in T.grid(EXTENT * 2 + 1, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j, r in T.grid(EXTENT, 4, 3):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi * 2 + vr, vj]
"""
FLAT = """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT * 4,), "float32")
    C = T.match_buffer(c, (4, EXTENT), "float32")
    for i, j in T.grid(EXTENT, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vj, vi] = A[vi * 4 + vj] * T.float32(2)
"""

GROUP = """
@T.prim_func
def main(n: T.int32, a: T.handle, s: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT, 4), "float32")
    S = T.match_buffer(s, (EXTENT, 1), "float32")
    C = T.match_buffer(c, (EXTENT, 4), "float32")
    for i, j in T.grid(EXTENT, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * S[vi, vj // 4]
"""

STRIDED = """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (EXTENT * 2, 8), "float32")
    C = T.match_buffer(c, (EXTENT, 4), "float32")
    for i, j in T.grid(EXTENT, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi * 2, vj * 2]
"""

PROGRAMS = {
    "strided": STRIDED,
    "group": GROUP,
    "matmul": MATMUL,
    "sum": SUM,
    "chain": CHAIN,
    "row": ROW,
    "fixed": FIXED,
    "window": WINDOW,
    "flat": FLAT,
}

LOOPS = 's.get_loops("C")'
# each step by the programs on which it is tried; B and C are the names of blocks there
STEPS: dict[str, dict[str, list[str]]] = {
    "reindex": {
        "matmul": ['s.reindex("C", ("read", 0))', 's.reindex("C", ("read", 1))', 's.reindex("C", ("write", 0))'],
        "sum window flat row fixed": ['s.reindex("C", ("read", 0))', 's.reindex("C", ("write", 0))'],
        "group": ['s.reindex("C", ("read", 1))'],
        "row ": ['s.reindex("B", ("read", 0))', 's.reindex("B", ("write", 0))'],
    },
    "cache_read": {"matmul sum window flat row fixed": ['s.cache_read("C", 0, "shared")']},
    "cache_write": {"matmul sum window flat row fixed": ['s.cache_write("C", 0, "shared")']},
    "reindex_cache_read": {
        "matmul": ['s.reindex_cache_read("C", 0, "shared", lambda h, i, j, k: (h, k, i))'],
        "window": ['s.reindex_cache_read("C", 0, "shared", lambda i, j, r: (j, i * 2 + r))'],
        "flat row fixed": ['s.reindex_cache_read("C", 0, "shared", lambda i, j: (j, i))'],
    },
    "reindex_cache_write": {
        "matmul": ['s.reindex_cache_write("C", 0, "shared", lambda h, i, j, k: (j, h, i))'],
        "flat row fixed": ['s.reindex_cache_write("C", 0, "shared", lambda i, j: (j, i))'],
    },
    "transform_layout": {
        "matmul": ['s.transform_layout("C", ("read", 0), lambda h, i, k: (h, k, i))'],
        "chain fixed": [
            's.transform_layout("B", ("write", 0), lambda i, j: (j, i))',
            's.transform_layout("B", ("write", 0), lambda i, j: (i * 4 + j,))',
            's.transform_layout("B", ("write", 0), lambda i, j: (i, j // 2, j % 2))',
            's.transform_layout("B", ("write", 0), lambda i, j: (i, j // 4, j % 4))',
            's.transform_layout("B", ("write", 0), lambda i, j: (i // 2, j, i % 2), pad_value=0.0)',
        ],
        "row": ['s.transform_layout("B", ("write", 0), lambda j, u: (u, j))'],
    },
    "transform_block_layout": {
        "chain": ['s.transform_block_layout("C", lambda i, j: (j, i))'],
        "flat": ['s.transform_block_layout("C", lambda i, j: (i * 4 + j,))'],
    },
    "compute_at": {
        "chain row window": [f's.compute_at("B", {LOOPS}[0])', f's.compute_at("B", {LOOPS}[1])'],
        "fixed": [f's.compute_at("B", {LOOPS}[0])'],
    },
    "reverse_compute_at": {
        "chain": ['s.reverse_compute_at("C", s.get_loops("B")[0])', 's.reverse_compute_at("C", s.get_loops("B")[1])'],
        "row fixed": ['s.reverse_compute_at("C", s.get_loops("B")[0])'],
    },
    "compute_inline": {"chain row fixed window": ['s.compute_inline("B")']},
    "reverse_compute_inline": {"chain row fixed": ['s.reverse_compute_inline("C")']},
    "split": {
        "chain": [
            f"s.split({LOOPS}[0], [None, 2])",
            f"s.split({LOOPS}[0], [2, None])",
            f"s.split({LOOPS}[0], [None, 1])",
            f"s.split({LOOPS}[0], [1, None])",
            f"s.split({LOOPS}[1], [1, 4])",
        ],
        "sum": [f"s.split({LOOPS}[1], [None, 2])"],
    },
    "fuse": {
        "chain": [f"s.fuse(*{LOOPS})"],
        "matmul": [f"s.fuse(*{LOOPS}[:2])", f"s.fuse(*{LOOPS}[:2], preserve_unit_iters=False)"],
    },
    "reorder": {"matmul": [f"s.reorder({LOOPS}[3], {LOOPS}[0])"], "sum": [f"s.reorder(*{LOOPS}[::-1])"]},
    "rfactor": {
        "sum": [f"s.rfactor({LOOPS}[1], 0)", f"s.rfactor({LOOPS}[1], 1)"],
        "matmul": [f"s.rfactor({LOOPS}[3], 0)"],
    },
    "decompose_reduction": {
        "sum matmul": [f's.decompose_reduction("C", {LOOPS}[0])', f's.decompose_reduction("C", {LOOPS}[-1])']
    },
    "blockize": {"matmul sum chain": [f"s.blockize({LOOPS}[0])", f"s.blockize({LOOPS}[1])"]},
    "pad_einsum": {
        "matmul": [
            's.pad_einsum("C", [1, 3, 1, 1])',
            's.pad_einsum("C", [2, 1, 1, 1])',
            's.pad_einsum("C", [1, 1, 1, 3])',
        ]
    },
    "cache_index": {"strided": ['s.cache_index("C", "global")']},
    "rolling_buffer": {"window": [f's.compute_at("B", {LOOPS}[0]); s.rolling_buffer("B", 0)']},
    "storage_align": {"chain row fixed": ['s.storage_align("B", 0, 0, 4, 1)']},
    "set_scope": {"chain": ['s.set_scope("B", 0, "shared")']},
    "vectorize": {"chain sum": [f"s.vectorize({LOOPS}[0])"]},
    "parallel": {"chain sum": [f"s.parallel({LOOPS}[0])", f"s.parallel({LOOPS}[1])"]},
    "unroll": {"chain": [f"s.unroll({LOOPS}[0])"]},
    "bind": {"chain": [f's.bind({LOOPS}[0], "threadIdx.x")'], "sum": [f's.bind({LOOPS}[1], "threadIdx.x")']},
    "add_unit_loop": {"chain fixed": ['s.add_unit_loop(s.get_block("C"))']},
    "merge": {"chain": ['s.merge(s.get_loops("B")[0], s.get_loops("C")[0])']},
    "loop_partition": {"chain": [f"s.loop_partition({LOOPS}[0], [None, 2])"]},
}


@dataclass(frozen=True)
class Case:
    """``steps`` on a schedule ``s`` of ``program``; ``name`` tells it apart."""

    name: str
    program: str
    steps: str


def cases() -> Iterator[Case]:
    for primitive, programs in STEPS.items():
        count: Counter[str] = Counter()
        for names, several in programs.items():
            for name, steps in product(names.split(), several):
                count[name] += 1
                for kind, extent in EXTENTS.items():
                    program = PROGRAMS[name].replace("EXTENT", extent)
                    yield Case(f"{primitive}/{name}-{count[name]}-{kind}", program, steps)
