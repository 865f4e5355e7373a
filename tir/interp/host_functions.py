"""Functions of the host that programs call by name, from the executor and from compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PACKED: dict[str, Callable[..., Any]] = {}
PRINT = "tir.print"  # what T.print calls in code for CPUs
