"""Functions of four bits, such as quantized weights: looked up in a vector register that has the 16 values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tir.dtype import DType
from tir.expr import Add, Broadcast, Call, Cast, Expr, FloatImm, IntImm, Mul, Sub

from .generator import Generator
from .mathlib import Lanes, chosen, has_tables

COUNT = 16  # lanes, and values: an index is four bits of each lane
_F32, _INDEX = DType("float32").with_lanes(COUNT), DType("int32").with_lanes(COUNT)
_OPERATIONS = {Add: np.add, Sub: np.subtract, Mul: np.multiply}
_NAMES = {Add: "fadd", Sub: "fsub", Mul: "fmul"}


def of_four_bits(g: Generator, e: Expr) -> str | None:
    """A vector of 16 float32 that is computed of four bits of each lane and of what is the same in all lanes, looked up by one
    instruction; None for any other value, and for processors without AVX-512.

    Converting and adding take an instruction each; of what selects the bits only the shift is left, as the instruction reads no
    other bits of a number. LLVM does not see what is shifted: it would shift the bytes, and extend them once more.
    """
    if e.dtype is not _F32:
        return None
    m, bits = Lanes(g.out, COUNT), _source(e)
    if bits is None or not has_tables(m):
        return None
    source, shift = bits.args[0], 0
    by = _constant(source.args[1]) if isinstance(source, Call) and source.op == "shift_right" else None
    if by is not None and by < source.dtype.bits:
        source, shift = source.args[0], by
    number = g.convert(g.plain(source), source.dtype, _INDEX)
    if shift:
        number = m.iop("lshr", g.out.value(f'call {m.i} asm "", "=v,0"({m.i} {number})'), m.int(shift))
    return chosen(m, number, _table(g, m, e, bits))


def _source(e: Expr) -> Any:
    """The ``bytes & 15`` that ``e`` is computed of, beside constants and numbers that are the same in all lanes."""
    if (bits := _bits(e)) is not None or type(e) not in _OPERATIONS:
        return bits
    a, b = e.a, e.b  # type: ignore[attr-defined]
    return _source(a) if isinstance(b, Broadcast) else _source(b) if isinstance(a, Broadcast) else None


def _table(g: Generator, m: Lanes, e: Any, bits: Expr) -> str:
    """What ``e`` is for each value of ``bits``, as a vector."""
    if _bits(e) is bits:
        return m.consts([float(v) for v in _values(e, bits)])
    a, b = (g.expr(x) if isinstance(x, Broadcast) else _table(g, m, x, bits) for x in (e.a, e.b))
    return m.op(f"{_NAMES[type(e)]} {g.flags}", a, b)


def _bits(e: Expr) -> Any:
    """The ``bytes & 15`` that ``e`` is computed of, beside constants, if it is computed of nothing else."""
    if isinstance(e, Cast):
        return _bits(e.value) if e.dtype.element in (_F32.element, _INDEX.element) else None
    if type(e) in _OPERATIONS:
        a, b = e.a, e.b  # type: ignore[attr-defined]
        return _bits(a) if _constant(b) is not None else _bits(b) if _constant(a) is not None else None
    selects = isinstance(e, Call) and e.op == "bitwise_and" and _constant(e.args[1]) == COUNT - 1
    return e if selects and e.dtype.element == DType("uint8") else None


def _constant(e: Expr) -> Any:
    """The number that ``e`` is in every lane; None if it is no constant."""
    e = e.value if isinstance(e, Broadcast) else e
    return e.value if isinstance(e, (IntImm, FloatImm)) else None


def _values(e: Any, bits: Expr) -> np.ndarray:
    """What ``e`` is for each value of ``bits``, in the arithmetic of its types."""
    if e is bits:
        return np.arange(COUNT, dtype="uint8")
    if isinstance(e, Cast):
        return _values(e.value, bits).astype(str(e.dtype.element))
    known = _constant(e)
    if known is not None:
        return np.full(COUNT, known, str(e.dtype.element))
    return _OPERATIONS[type(e)](_values(e.a, bits), _values(e.b, bits))
