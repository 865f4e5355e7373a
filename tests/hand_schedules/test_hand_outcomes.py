"""What the schedules by hand decide of sizes, registers and caches: its tiles, and the schedules that it takes, as a table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import outcomes
import pytest

from tests.hand_schedules import attention, conv, conv_nchw, elementwise, gemm, gemv
from tests.recorded_texts.library import described_machine
from tir.target import VectorRegisters

TABLE = Path(__file__).parent / "outcomes_hand_schedules.txt"
REGISTERS = {
    f"r{bits}x{count}": VectorRegisters(bits, count) for bits, count in ((512, 32), (256, 16), (128, 32), (128, 16))
}


class Taken:
    """In the place of a program or schedule: the calls that would make it."""

    def __init__(self, *calls: str):
        self.calls = [*calls]

    def __repr__(self) -> str:
        return " | ".join(self.calls)

    def annotate(self, loop: str, key: str, value: str) -> None:
        self.calls.append(f"{loop}: {key}={value}")

    def get_loops(self, block: str) -> list[str]:
        return [f"{block}.0"]


def instead(name: str) -> Callable[..., Taken]:
    """A function that notes its arguments."""

    def note(*args: Any, **options: Any) -> Taken:
        before = [call for one in args if isinstance(one, Taken) for call in one.calls]
        told = [str(one) for one in args if not isinstance(one, Taken)]
        return Taken(*before, f"{name}({', '.join([*told, *(f'{k}={v}' for k, v in options.items())])})")

    return note


def decided(module: Any, function: str) -> Callable[..., Taken]:
    """``function`` of a module as what it calls, on the described machine with the registers in its first argument."""
    takes = ("gemm", "gemv", "conv2d", "batched", "deep", "thin", "schedule_")
    names = [n for n in vars(module) if n.startswith(takes) and n != function and callable(getattr(module, n))]

    def run(registers: VectorRegisters, *args: Any) -> Taken:
        with described_machine(), ExitStack() as stack:
            for name in names:
                stack.enter_context(mock.patch.object(module, name, instead(name)))
            stack.enter_context(mock.patch.object(module, "Schedule", lambda made: made))
            stack.enter_context(mock.patch.object(module, "vector_registers", lambda: registers))
            return getattr(module, function)(*args)

    return run


def together(*args: int) -> int:
    with described_machine():
        return gemm._together(*args)


def names() -> dict[str, Any]:
    layers = {"RESNET50": conv.RESNET50, "Layer": conv.Layer, "ROWS": attention.ROWS}
    return {
        **REGISTERS, **layers, "tile": gemm.pick_tile, "conv_tile": conv.pick_tile, "together": together,
        "nchw_tile": conv_nchw.pick_tile_nchw, "few": elementwise._few, "gemm": decided(gemm, "scheduled_gemm"),
        "batched": decided(gemm, "scheduled_batched_gemm"), "gemv": decided(gemv, "scheduled_gemv"),
        "nhwc": decided(conv, "scheduled_conv2d_nhwc"), "nchw": decided(conv_nchw, "scheduled_conv2d_nchw"),
    }  # fmt: skip


@pytest.mark.parametrize("title", outcomes.titles(TABLE))
def test_decisions(request: pytest.FixtureRequest, title: str):
    outcomes.check(request, TABLE, title, names())
