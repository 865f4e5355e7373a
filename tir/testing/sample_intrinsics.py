"""Two small tensor intrinsics for ``tensorize`` on random programs, implemented by operators of every CPU."""

from __future__ import annotations

import functools

_SCALE = """
@T.prim_func
def scale(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "int32", offset_factor=1)
    C = T.match_buffer(c, (4,), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
{body}
"""
_SCALE_LOOP = """
        for j in range(4):
            with T.block("C"):
                vj = T.axis.spatial(4, j)
                C[vj] = A[vj] * 2
"""
_SCALE_VECTOR = """
        C[0:4] = A[0:4] * T.Broadcast(2, 4)
"""
_DOT = """
@T.prim_func
def dot(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "int32", offset_factor=1)
    B = T.match_buffer(b, (4,), "int32", offset_factor=1)
    C = T.match_buffer(c, (1,), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
{body}
"""
_DOT_LOOP = """
        for k in range(4):
            with T.block("C"):
                vk = T.axis.reduce(4, k)
                C[0] = C[0] + A[vk] * B[vk]
"""
_DOT_UNROLLED = """
        C[0] = C[0] + A[0] * B[0] + A[1] * B[1] + (A[2] * B[2] + A[3] * B[3])
"""


@functools.cache
def intrinsics() -> tuple[str, str]:
    """The names of the intrinsics, which are registered on first use."""
    from ..function import PrimFunc
    from ..intrin import TensorIntrin
    from ..script import parse

    def made(text: str, body: str) -> PrimFunc:
        func = parse(text.replace("{body}", body))
        assert isinstance(func, PrimFunc)
        return func

    TensorIntrin.register("fuzz_scale_4", made(_SCALE, _SCALE_LOOP), made(_SCALE, _SCALE_VECTOR), override=True)
    TensorIntrin.register("fuzz_dot_4", made(_DOT, _DOT_LOOP), made(_DOT, _DOT_UNROLLED), override=True)
    return "fuzz_scale_4", "fuzz_dot_4"
