"""The default schedules of operators give what the operators give: a sample for the CPU, another on the GPU simulator."""

from __future__ import annotations

import zlib

import pytest

import tir
from tir import ops
from tir.ops.check import Judged

NAMES = list(ops.operators())


def sample(number: int, of: int = 4) -> list[str]:
    return [name for name in NAMES if zlib.crc32(name.encode()) % of == number]


def judge(name: str, target: str, case: int = 0) -> None:
    found = ops.find(name)
    judged = Judged(found, found.cases[case])
    judged(tir.build(ops.schedule(judged.func, target).mod, target)["main"])


@pytest.mark.parametrize("name", sample(0))
def test_on_the_cpu(name):
    judge(name, "llvm")


@pytest.mark.parametrize("name", sorted({*sample(1), "sum", "argmax", "cumsum", "nn.softmax", "nn.matmul"}))
def test_on_the_simulator(name):
    judge(name, "cuda-sim")
