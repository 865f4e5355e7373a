"""The operands of wgmma in shared memory: the fields of a 64-bit descriptor, and the addresses of a matrix.

A matrix consists of chunks of 16 bytes, along K (K-major) or along its rows, M or N (MN-major). A swizzle of W chunks (2, 4
or 8; none: 1) makes lines of W chunks, 8 lines an atom. K-major: row r is line r % 8 of the atom r / 8, which is ``stride``
bytes behind the one before; the two chunks along K are beside each other, or ``leading`` apart without a swizzle. MN-major:
k is line k % 8 of the atom k / 8, ``stride`` bytes behind; the chunks of a line go along the rows, W of them, and the next W
are ``leading`` bytes behind; without a swizzle the two offsets change their roles. (PTX ISA, "Strides" of wgmma's shared memory
layout.) The swizzle itself is that of :func:`codegen.ptx.tensor_maps.swizzled`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .tensor_maps import swizzled

Array = np.ndarray
_SWIZZLES = {0: 0, 1: 128, 2: 64, 3: 32}


@dataclass(frozen=True)
class Descriptor:
    """In bytes. ``base``: the base offset, which tells where in its pattern of a swizzle a matrix begins."""

    start: int
    leading: int
    stride: int
    base: int
    swizzle: int

    @staticmethod
    def of(bits: int) -> Descriptor:
        start, leading, stride = (((bits >> at) & 0x3FFF) << 4 for at in (0, 16, 32))
        return Descriptor(start, leading, stride, bits >> 49 & 7, _SWIZZLES[bits >> 62 & 3])

    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        pattern = 8 * self.swizzle
        if self.base or (pattern and self.start % pattern >= 128):
            return (
                f"a matrix of swizzle {self.swizzle} begins at {self.start:#x} with base offset {self.base}: the executor knows "
                f"those that begin in the first line of their pattern of {pattern} bytes, with base offset 0"
            )
        return ""

    def chunks(self, rows: int, depth: int, item: int, transposed: bool) -> Array:
        """The addresses of the chunks: of rows and chunks along K, or, ``transposed``, of chunks along the rows and k."""
        line = max(self.swizzle, 16)
        if not transposed:
            r, c = np.arange(rows)[:, None], np.arange(depth * item // 16)[None, :]
            at = r % 8 * line + r // 8 * self.stride + c * (16 if self.swizzle else self.leading)
        else:
            c, k = np.arange(rows * item // 16)[:, None], np.arange(depth)[None, :]
            wide = line // 16
            further, deeper = (self.leading, self.stride) if self.swizzle else (self.stride, self.leading)
            at = c % wide * 16 + c // wide * further + k % 8 * line + k // 8 * deeper
        return swizzled(self.start + at.astype(np.int64), self.swizzle)


def matrix(chunks: Array, item: int, transposed: bool) -> Array:
    """The bits of the elements (rows, k) of chunks given as (…, …, 16) bytes."""
    words = np.ascontiguousarray(chunks).view(f"uint{8 * item}")
    if transposed:
        return words.transpose(0, 2, 1).reshape(-1, words.shape[1])
    return words.reshape(len(words), -1)
