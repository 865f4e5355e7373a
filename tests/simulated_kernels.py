"""Kernels written as text, run by the GPU simulator."""

from __future__ import annotations

from typing import Any

import tir
from tir.interp.gpu import simulate


def parse(text: str) -> tir.PrimFunc:
    return tir.script.parse(f"@T.prim_func\n{text.strip()}\n")


def run(text: str, *args: Any, **options: Any) -> Any:
    return simulate(parse(text), args, **options)
