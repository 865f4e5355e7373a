"""The dialect: text to program and back. ``from tir.script import tir as T``, ``from tir.script import ir as I``."""

from __future__ import annotations

from . import ir, tir
from .parser import parse

__all__ = ["ir", "parse", "tir"]
