"""Tensor maps: 128 bytes that say where a tensor is in global memory and which box of it a copy takes.

A device's own format is not public; this one is made by :meth:`PTXDriver.encode_tensor_map` and read back here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tir.dtype import DType
from tir.errors import RunError

from .memory import GLOBAL, GlobalMemory
from .syntax import PTXFault

Array = np.ndarray
BYTES = 128
_MAGIC = b"tir map1"
_FORM = struct.Struct("<8sQ5I5Q5H5B4B")
_SPANS = (0, 32, 64, 128)
ITEMS = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8, "bf16": 2}
_KINDS = {
    "uint32": "u32", "int32": "s32", "uint64": "u64", "int64": "s64", "float16": "f16", "float32": "f32", "float64": "f64",
    "bfloat16": "bf16",
}  # fmt: skip


@dataclass(frozen=True)
class TensorMap:
    """Sequences are innermost first, as in PTX. ``strides`` in bytes; ``box`` in elements of the tensor, of which a copy
    takes each ``element_strides``-th (along the innermost axis all)."""

    address: int
    kind: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int

    @property
    def item(self) -> int:
        return ITEMS[self.kind]

    def pack(self) -> bytes:
        def five(values: Sequence[int]) -> list[int]:
            return [*values, *[0] * (5 - len(values))]

        sizes = [n - 1 for n in self.shape]  # up to 2^32
        return _FORM.pack(
            _MAGIC, self.address, *five(sizes), *five(self.strides), *five(self.box), *five(self.element_strides),
            list(ITEMS).index(self.kind), len(self.shape), _SPANS.index(self.swizzle), 0,
        ).ljust(BYTES, b"\0")  # fmt: skip

    @staticmethod
    def unpack(data: bytes) -> TensorMap:
        magic, address, *rest = _FORM.unpack(data[: _FORM.size])
        if magic != _MAGIC:
            raise PTXFault("a tensor map is read where none is: 128 bytes that encode_tensor_map has not made")
        kind, rank, swizzle, _ = rest[20:]
        sizes, strides, box, steps = (tuple(rest[5 * k : 5 * k + rank]) for k in range(4))
        return TensorMap(address, list(ITEMS)[kind], tuple(n + 1 for n in sizes), strides, box, steps, _SPANS[swizzle])

    def counts(self) -> tuple[int, ...]:
        """How many elements a copy takes along each axis."""
        return tuple(-(-n // step) for n, step in zip(self.box, self._steps()))

    def _steps(self) -> tuple[int, ...]:
        return (1, *self.element_strides[1:])

    def elements(self, memory: GlobalMemory, coordinates: Sequence[int]) -> tuple[Array, Array]:
        """The elements of a box, the innermost axis fastest: which are inside of the tensor, and the places in memory of
        these. Raises ``PTXFault`` if one is outside of its allocation."""
        inside: Array = np.ones((), bool)
        offset: Array = np.zeros((), np.int64)
        steps = self._steps()
        for k, n in reversed(list(enumerate(self.counts()))):  # the outermost axis first
            at = coordinates[k] + np.arange(n, dtype=np.int64) * steps[k]
            inside = inside[..., None] & ((at >= 0) & (at < self.shape[k]))
            offset = offset[..., None] + at * self.strides[k]
        chosen = inside.ravel()
        return chosen, memory.place(0, self.address - GLOBAL + offset.ravel()[chosen], self.item)


def swizzled(address: Array, swizzle: int) -> Array:
    """Where bytes are in shared memory: bits 4 to 6 (5, 4) of an address are changed by bits 7 to 9 (8, 7)."""
    mask = {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}[swizzle]
    return address ^ (address >> 3 & mask)


def encode(spec: Any, address: int) -> TensorMap:
    """The map of a specification whose sequences are outermost first, and strides in elements. Raises ``RunError`` for what
    the driver of CUDA refuses."""
    kind = _KINDS.get(spec.dtype) or {8: "u8", 16: "u16"}.get(DType(spec.dtype).bits, "")
    if not kind:
        raise RunError(f"there is no tensor map of {spec.dtype}")
    item = ITEMS[kind]
    shape, box = tuple(spec.shape)[::-1], tuple(spec.box)[::-1]
    strides = tuple(n * item for n in tuple(spec.strides)[::-1])
    steps = tuple(getattr(spec, "element_strides", None) or (1,) * len(shape))[::-1]
    swizzle = int(spec.swizzle)

    def require(holds: bool, rule: str) -> None:
        if not holds:
            raise RunError(f"a tensor map of shape {shape[::-1]} and box {box[::-1]}: {rule}")

    require(1 <= len(shape) <= 5, f"a tensor has 1 to 5 axes, not {len(shape)}")
    require(len(box) == len(strides) == len(steps) == len(shape), "box and strides have a number for each axis")
    require(address % 16 == 0, f"the tensor begins at {address:#x}, no multiple of 16")
    require(all(1 <= n <= 1 << 32 for n in shape), "a size is from 1 to 2^32")
    require(strides[0] == item, f"the innermost elements are {strides[0]} bytes apart, not {item}")
    require(all(n % 16 == 0 and 0 <= n < 1 << 40 for n in strides[1:]), "a stride is a multiple of 16 bytes below 2^40")
    require(all(1 <= n <= 256 for n in box), "a box has 1 to 256 elements along each axis")
    require(all(1 <= n <= 8 for n in steps), "an element stride is from 1 to 8")
    require(swizzle in _SPANS, f"a swizzle is of 0, 32, 64 or 128 bytes, not {swizzle}")
    inner = box[0] * item
    require(inner % 16 == 0, f"the box has {inner} bytes along the innermost axis, no multiple of 16")
    require(
        swizzle == 0 or inner == swizzle, f"the box has {inner} bytes along the innermost axis, the swizzle {swizzle}"
    )
    return TensorMap(address, kind, shape, strides, box, steps, swizzle)
