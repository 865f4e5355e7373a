"""dp4a: four products of bytes added to a 32-bit sum, by one instruction of a GPU thread (sm_61 and later).

The operands are read from shared memory, where a cooperative copy puts them, and the sum is the thread's own.
"""

# pyright: reportInvalidTypeForm=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..script import tir as T
from .tensor_intrin import TensorIntrin

_DTYPES = {"s8": "int8", "u8": "uint8", "s32": "int32", "u32": "uint32"}


def _dp4a(left: str, right: str, out: str) -> tuple[PrimFunc, PrimFunc]:
    @T.prim_func
    def desc(
        A: T.Buffer((4,), left, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), right, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), out, offset_factor=1, align=4, scope="local"),
    ):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for k in range(4):
                with T.block("update"):
                    vk = T.axis.reduce(4, k)
                    C[0] = C[0] + T.cast(A[vk], out) * T.cast(B[vk], out)

    @T.prim_func
    def impl(
        A: T.Buffer((4,), left, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), right, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), out, offset_factor=1, align=4, scope="local"),
    ):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] = T.dp4a(A[T.ramp(0, 1, 4)], B[T.ramp(0, 1, 4)], C[0], dtype=out)

    return desc, impl


def _register(left: str, right: str, out: str) -> str:
    name = f"dp4a_{left}{right}{out}"
    TensorIntrin.register_lazy(name, lambda: _dp4a(_DTYPES[left], _DTYPES[right], _DTYPES[out]))
    return name


DP4A_S8S8S32_INTRIN = _register("s8", "s8", "s32")
DP4A_S8U8S32_INTRIN = _register("s8", "u8", "s32")
DP4A_U8S8S32_INTRIN = _register("u8", "s8", "s32")
DP4A_U8U8U32_INTRIN = _register("u8", "u8", "u32")
