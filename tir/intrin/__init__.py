"""Tensor intrinsics, by hardware family: ``tir.intrin.x86``, ``tir.intrin.cuda``, …

>>> import tir
>>> tir.intrin.x86.VNNI_DOT_16x4_INTRIN
'dot_16x4_vnni'
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from .tensor_intrin import TensorIntrin

if TYPE_CHECKING:
    from . import amx, cuda, dot_product_common, dot_products, x86

__all__ = ["TensorIntrin", "amx", "cuda", "dot_product_common", "dot_products", "x86"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_family_of(name)}")


def _family_of(name: str) -> str:
    """The end of a message about a name that a family has, or several have names like."""
    families = [importlib.import_module(f"{__name__}.{n}") for n in __all__ if n.islower()]
    owners = [f.__name__ for f in families if name in vars(f)] if name.isidentifier() and name[:1] != "_" else []
    if owners:
        return f"; it is {' and '.join(f'{owner}.{name}' for owner in owners)}"
    return f"; the families are {', '.join(f.__name__ for f in families)}"


def __dir__() -> list[str]:
    return list(__all__)
