"""The dot-product instructions of x86 (VNNI, AVX512-BF16), by the names that LLVM has for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Product = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _product(left: type, right: type, group: int) -> Product:
    """To each sum, ``group`` products of these types are added."""

    def add(sums: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        terms = a.view(left).astype(np.int32) * b.view(right).astype(np.int32)
        return sums + terms.reshape(len(sums), group).sum(1, dtype=np.int32)

    return add


def _of_bf16(sums: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return sums + (a.astype(np.float32) * b.astype(np.float32)).reshape(len(sums), 2).sum(1)


_PRODUCTS = {
    "avx512.vpdpbusd": _product(np.uint8, np.int8, 4),
    "avx512.vpdpwssd": _product(np.int16, np.int16, 2),
    "avx512bf16.dpbf16ps": _of_bf16,
}
MEANING = {f"llvm.x86.{name}.{bits}": fn for name, fn in _PRODUCTS.items() for bits in (256, 512)}
