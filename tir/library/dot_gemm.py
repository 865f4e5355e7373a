"""Matrix multiplication of bytes and bfloat16 by the CPU's dot products: tile registers (AMX), vpdpbusd, vdpbf16ps.

One instruction adds to each of 16 sums the products of a group of neighbours along the reduction: four bytes, two
bfloat16. The schedules are those of the tuner's rules ``tiles`` and ``dots``.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..schedule import Schedule
from ..script import tir as T
from ..target import threads
from ..tune.nest import Nest
from ..tune.packed import Panels
from ..tune.rules.dots import by_vectors
from ..tune.rules.tiles import by_tiles
from ..tune.space import Env

# left operand, right operand, sum
KINDS = {"int8": ("uint8", "int8", "int32"), "bfloat16": ("bfloat16", "bfloat16", "float32")}


def dot_gemm(m: int, n: int, k: int, kind: str = "int8") -> PrimFunc:
    """C = A @ B for A (m, k) and B (k, n), summed in C's wider type: uint8 by int8 in int32, bfloat16 in float32.

    >>> [b.name for b in dot_gemm(8, 16, 4).buffers()]
    ['A', 'B', 'C']
    """
    left, right, wide = KINDS[kind]

    @T.prim_func
    def gemm(A: T.Buffer((m, k), left), B: T.Buffer((k, n), right), C: T.Buffer((m, n), wide)):
        for i, j, p in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    C[vi, vj] = T.cast(0, wide)
                C[vi, vj] += T.cast(A[vi, vp], wide) * T.cast(B[vp, vj], wide)

    return gemm


def scheduled_dot_gemm(
    m: int, n: int, k: int, kind: str = "int8", cores: int | None = None, tiles: bool | None = None
) -> Schedule:
    """The product of any sizes, scheduled for ``cores`` cores (default: as many as parallel loops run on).

    ``tiles``: on AMX tile registers (default: where this machine has them), else by dot products of vectors.

    >>> sch = scheduled_dot_gemm(32, 32, 64, "int8", cores=1, tiles=True)
    >>> "amx_tile_dot" in sch.mod.script()
    True
    """
    env = Env.of(f"llvm -num-cores={threads() if cores is None else cores}")
    sch = Schedule(dot_gemm(m, n, k, kind))
    product = Panels.kind_of(Nest.of(sch, "C"))
    assert product is not None, "the types of a kind have a dot product"
    on_tiles = env.has(product[1].tile_feature) if tiles is None else tiles
    return (by_tiles if on_tiles else by_vectors)(sch, *product, env)[0]()
