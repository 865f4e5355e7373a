"""The namespace ``I`` of the dialect: modules of several functions."""

from __future__ import annotations

from typing import Any

from .frames import Directive
from .parser import ir_module


def module_attrs(attrs: dict[str, Any]) -> Directive:
    """Attributes of the module, inside an ``@I.ir_module`` class."""
    return Directive("module_attrs", attrs)


__all__ = ["ir_module", "module_attrs"]
