"""Permutes the 16-byte pieces of rows of shared memory, so that columns spread over all banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..aliases import shares_memory
from ..annotations import SWIZZLE
from ..arith.divide import take_multiples
from ..arith.linear import linear
from ..buffer import Buffer
from ..errors import BuildError
from ..expr import BufferLoad, Call, Expr, Var, const, constant
from ..function import PrimFunc
from ..node import frozendict
from ..stmt import Block, BufferStore
from ..visit import rewrite, walk
from .passes import func_pass

PIECE, LINE = 16, 128  # bytes: what one thread moves at a time, and what all banks hold side by side


@dataclass(frozen=True)
class _Swizzle:
    """Element ``o`` of a buffer goes to ``o ^ (o // apart % pieces * piece)``."""

    piece: int  # elements
    pieces: int  # that are exchanged with each other
    apart: int  # elements from where the next exchange is in force
    row: int

    def moved(self, o: Expr) -> Expr:
        return o ^ (o // self.apart % self.pieces * self.piece)

    @property
    def period(self) -> int:
        return self.apart * self.pieces


def _swizzle(buffer: Buffer) -> _Swizzle:
    """The swizzle of the rows of ``buffer``. Raises ``BuildError`` for rows that cannot be swizzled."""
    told = f"`{buffer.name}` of shape ({', '.join(map(repr, buffer.shape))}) {buffer.dtype} cannot be swizzled"
    if buffer.strides or len(buffer.shape) < 2:
        raise BuildError(f"{told}: it needs rows, one after the other (storage_align moves them apart)")
    row, size = constant(buffer.shape[-1]), buffer.dtype.bytes
    rows = constant(buffer.shape[-2])
    if not row or not rows or size * row % PIECE or PIECE % size:
        raise BuildError(f"{told}: its rows are not a number of whole pieces of {PIECE} bytes")
    piece, line = PIECE // size, LINE // size
    pieces = min(LINE // PIECE, row // piece)
    made = _Swizzle(piece, pieces, max(row, line), row)
    if pieces & (pieces - 1) or row % (pieces * piece) or (rows * row) % made.period:
        raise BuildError(
            f"{told}: it needs rows of 2, 4 or a multiple of 8 pieces of {PIECE} bytes, and {made.period // row} "
            "rows or a multiple"
        )
    return made


def _asked(root: Any) -> dict[Var, _Swizzle]:
    """The swizzle of each buffer that a block's annotation requests, by its pointer."""
    found: dict[Var, _Swizzle] = {}
    for block in walk(root):
        if isinstance(block, Block):
            for which in block.annotations.get(SWIZZLE, ()):
                buffer = block.writes[int(which)].buffer
                found[buffer.data] = _swizzle(buffer)
    return found


class _Rewriter:
    def __init__(self, name: str, swizzles: dict[Var, _Swizzle]):
        self.name = name
        self.swizzles = swizzles

    def change(self, item: Any) -> Any:
        if isinstance(item, (BufferLoad, BufferStore)) and shares_memory(item, self.swizzles):
            return item.replace(indices=self.place(item.buffer, item.indices))
        if isinstance(item, Call) and item.op == "ptx_ldmatrix":
            return self.ldmatrix(item)
        if isinstance(item, Call) and item.op != "tvm_access_ptr":
            for pointer in (_pointer(a) for a in item.args):
                if pointer in self.swizzles:
                    raise BuildError(
                        f"{self.name}: `{item.op}` assumes that the rows of `{pointer.name}` lie in order, but the buffer "
                        "is swizzled; take storage_align in place of storage_swizzle, or ldmatrix"
                    )
        if isinstance(item, Block) and SWIZZLE in item.annotations:
            return item.replace(annotations=frozendict({k: v for k, v in item.annotations.items() if k != SWIZZLE}))
        return None

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        swizzle = self.swizzles[buffer.data]
        *_, i, j = indices
        # the rows before this index are complete periods, so the last two indices determine the swizzle
        exchange = i * swizzle.row // swizzle.apart % swizzle.pieces * swizzle.piece
        return (*indices[:-1], j ^ exchange)

    def ldmatrix(self, c: Call) -> Call | None:
        """The address is a pointer at some elements and an offset in elements: complete periods of the first stay
        there, the remainder is added to the offset, which is swizzled."""
        pointer, offset = c.args[5], c.args[6]
        swizzle = self.swizzles.get(_pointer(pointer))  # type: ignore[arg-type]
        if swizzle is None:
            return None
        kind, data, first, extent, mode = pointer.args  # type: ignore[attr-defined]
        form, rest = take_multiples(linear(first), swizzle.period)
        base = form.scaled(swizzle.period).build(first.dtype)
        moved = swizzle.moved(rest.build(first.dtype) + offset)
        rows, _ = take_multiples(rest, swizzle.row)  # a piece stays in its row
        reach = extent if rows.is_const and rows.const == 0 else extent + const(swizzle.period, extent.dtype)
        return c.replace(args=(*c.args[:5], pointer.replace(args=(kind, data, base, reach, mode)), moved))


def _pointer(e: Any) -> Any:
    """The variable of a pointer argument: itself, or in ``tvm_access_ptr``, ``address_of``."""
    if isinstance(e, Call) and e.op == "tvm_access_ptr":
        return e.args[1]
    if isinstance(e, Call) and e.op == "address_of":
        return e.args[0].buffer.data  # type: ignore[attr-defined]
    return e if isinstance(e, Var) else None


@func_pass
def swizzle_storage(func: PrimFunc) -> PrimFunc:
    """``S[i, j]`` of a swizzled buffer becomes ``S[i, j ^ (i % 8 * p)]``, with pieces of p elements, 16 bytes, exchanged.

    For rows of 128 bytes or a multiple; shorter rows, with fewer pieces, share a permutation by two or four.
    The addresses of ``ptx_ldmatrix`` are adapted. Raises ``BuildError`` for rows without such pieces, and for
    operations that need unpermuted rows (``wmma``).

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8, 32), "float32")):
    ...     with T.block(""):
    ...         T.reads(A[0:8, 0:32])
    ...         T.writes()
    ...         S = T.alloc_buffer((8, 32), "float32", scope="shared")
    ...         for i, j in T.grid(8, 32):
    ...             with T.block(""):
    ...                 T.reads(A[i, j])
    ...                 T.writes(S[i, j])
    ...                 T.block_attr({"buffer_swizzle": [0]})
    ...                 S[i, j] = A[i, j]
    ... ''')
    >>> tir.transform.swizzle_storage(f).body
    with T.block("block"):
        T.reads(A[0:8, 0:32])
        T.writes()
        S = T.alloc_buffer((8, 32), "float32", scope="shared")
        for i, j in T.grid(8, 32):
            with T.block("block_1"):
                T.reads(A[i, j])
                T.writes(S[i, j])
                S[i, j ^ i * 32 // 32 % 8 * 4] = A[i, j]
    """
    swizzles = _asked(func.body)
    if not swizzles:
        return func
    return func.with_body(rewrite(func.body, _Rewriter(func.name, swizzles).change))
