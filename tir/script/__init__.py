"""The dialect: text to program and back. ``from tir.script import tir as T``, ``from tir.script import ir as I``."""

from __future__ import annotations

from . import ir, tir
from .parser import ir_module
from .texts import parse, parse_data, programs_in

from_source = parse  # the name that TVM's users know

__all__ = ["from_source", "ir", "ir_module", "parse", "parse_data", "programs_in", "tir"]


def __dir__() -> list[str]:
    return list(__all__)
