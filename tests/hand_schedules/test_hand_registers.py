"""Every kernel by hand with the vector registers of other CPUs than this one: it computes the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tir
from tests.hand_schedules import attention, conv, conv_nchw, elementwise, gemm, gemv, rows
from tir.target import VectorRegisters
from tir.testing import assert_same_result

MODULES = (attention, conv, conv_nchw, elementwise, gemm, gemv, rows)
LAYER = conv.Layer(1, 7, 5, 20, 3, 2)
KERNELS: dict[str, Callable[[], tir.Schedule]] = {
    "gemm": lambda: gemm.scheduled_gemm(19, 37, 11, 1),
    "batched_gemm": lambda: gemm.scheduled_batched_gemm(2, 9, 17, 5, 1),
    "deep_gemm": lambda: gemm.schedule_deep_gemm(tir.Schedule(gemm.deep_gemm(7, 35, 40)), 5, 16),
    "thin_gemm": lambda: gemm.schedule_thin_gemm(tir.Schedule(gemm.thin_gemm(7, 35, 33)), *gemm.pick_tile(7, 35), 8),
    "gemv": lambda: gemv.scheduled_gemv(7, 50, 1),
    "conv2d_nhwc": lambda: conv.scheduled_conv2d_nhwc(LAYER, 1),
    "conv2d_nchw": lambda: conv_nchw.scheduled_conv2d_nchw(LAYER, 1),
    "depthwise_nhwc": lambda: conv_nchw.schedule_depthwise_nhwc(
        tir.Schedule(conv_nchw.depthwise_nhwc(conv.Layer(1, 6, 19, 19, 3)))
    ),
    "attention": lambda: attention.schedule_attention(tir.Schedule(attention.attention(10, 35, 20))),
    "softmax": lambda: rows.schedule_softmax(tir.Schedule(rows.softmax(3, 70))),
    "layer_norm": lambda: rows.schedule_layer_norm(tir.Schedule(rows.layer_norm(3, 70))),
    "column_sum": lambda: rows.schedule_column_sum(tir.Schedule(rows.column_sum(11, 70))),
    "gelu_chain": lambda: elementwise.schedule_gelu_chain(tir.Schedule(elementwise.gelu_chain(70))),
    "blur": lambda: elementwise.schedule_blur(tir.Schedule(elementwise.blur(9, 70)), parallel=True),
}


@pytest.mark.parametrize("registers", [(128, 16), (256, 16), (512, 32)], ids=lambda r: f"{r[1]} of {r[0]} bits")
@pytest.mark.parametrize("name", KERNELS)
def test_the_kernels_for_other_registers(name: str, registers: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    for module in MODULES:
        if hasattr(module, "vector_registers"):
            monkeypatch.setattr(module, "vector_registers", lambda: VectorRegisters(*registers))
    sch = KERNELS[name]()
    before = sch.history[0].mod
    assert_same_result(before, sch.mod, engines=("llvm",), rtol=1e-4, atol=1e-5)
