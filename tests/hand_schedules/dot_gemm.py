"""Matrix multiplication of bytes and bfloat16 by the CPU's dot products: tile registers (AMX), vpdpbusd, vdpbf16ps.

One instruction adds to each of 16 sums the products of a group of neighbours along the reduction: four bytes, two
bfloat16. The schedules are those of the tuner's rules ``tiles`` and ``dots``.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from tir.library.gemm import KINDS as KINDS
from tir.library.gemm import dot_gemm as dot_gemm
from tir.schedule import Schedule
from tir.target import threads
from tir.tune.nest import Nest
from tir.tune.packed import Panels
from tir.tune.rules.dots import by_vectors
from tir.tune.rules.tile_registers import by_tiles
from tir.tune.space import Env


def scheduled_dot_gemm(
    m: int, n: int, k: int, kind: str = "int8", cores: int | None = None, tiles: bool | None = None
) -> Schedule:
    """The product of any sizes, scheduled for ``cores`` cores (default: as many as parallel loops run on).

    ``tiles``: on AMX tile registers (default: where this machine has them), else by dot products of vectors.
    """
    env = Env.of(f"llvm -num-cores={threads() if cores is None else cores}")
    sch = Schedule(dot_gemm(m, n, k, kind))
    product = Panels.kind_of(Nest.of(sch, "C"))
    assert product is not None, "the types of a kind have a dot product"
    on_tiles = env.has(product[1].tile_feature) if tiles is None else tiles
    return (by_tiles if on_tiles else by_vectors)(sch, *product, env)[0]()
