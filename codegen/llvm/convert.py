"""Conversions between data types, small floats included. Rounding is to nearest, ties to even."""

from __future__ import annotations

from tir.dtype import DType
from tir.errors import BuildError
from tir.small_floats import SMALL_FLOATS

from .mathlib import Lanes
from .small_floats import narrow, widen
from .text import FunctionText
from .types import element_type, emulated, float_constant, splat, value_type, vector

F32 = DType("float32")


class Converter:
    """Emits conversions into one function. Every method takes and returns operands of ``lanes`` lanes."""

    def __init__(self, out: FunctionText):
        self.out = out

    def convert(self, value: str, source: DType, target: DType) -> str:
        """``value`` of type ``source`` as ``target`` (equal lanes)."""
        if source is target:
            return value
        if source.lanes != target.lanes:
            raise BuildError(f"cannot convert {source} to {target}: the numbers of lanes differ")
        lanes = source.lanes
        if source.is_handle or target.is_handle:
            return self._pointer(value, source, target)
        if target.is_bool:
            return self.is_nonzero(value, source)
        if emulated(source):
            middle = F32.with_lanes(lanes)
            return self.convert(self.widen(value, source), middle, target)
        if emulated(target):
            middle = F32.with_lanes(lanes)
            if source.is_float and source.bits == 64 or source.is_int and source.bits > 24:
                double = DType("float64").with_lanes(lanes)
                return self.narrow(self._round_to_odd(self.convert(value, source, double), lanes), target)
            return self.narrow(self.convert(value, source, middle), target)
        if source.is_float and target.is_float:
            return self._float_to_float(value, source, target)
        if source.is_float:
            if target.bits < 32:  # the low bits of an int32
                wide = DType("int32").with_lanes(lanes)
                return self._cast("trunc", self._to_integer(value, source, wide), wide, target)
            return self._to_integer(value, source, target)
        signed = source.code == "int"
        if target.is_float:
            return self._cast("sitofp" if signed else "uitofp", value, source, target)
        if target.bits < source.bits:
            return self._cast("trunc", value, source, target)
        if target.bits > source.bits:
            return self._cast("sext" if signed else "zext", value, source, target)
        return value  # signed and unsigned of one width are the same bits

    def _to_integer(self, value: str, source: DType, target: DType) -> str:
        """A float as an integer of at least 32 bits, toward zero: the nearest that there is, and 0 for nan. What is beyond the type is
        chosen after a conversion that is undefined there: LLVM makes ``llvm.fptosi.sat`` of vectors one number at a time."""
        if source.bits < 32:
            wide = F32.with_lanes(source.lanes)
            value, source = self._cast("fpext", value, source, wide), wide
        signed, number, lanes = target.code == "int", element_type(target), target.lanes
        made = self._cast("fptosi" if signed else "fptoui", value, source, target)
        above = float(1 << (target.bits - 1 if signed else target.bits))
        made = self._instead(
            made, "oge", value, above, source, splat(number, str(target.element.max_value), lanes), target
        )
        if signed:
            made = self._instead(
                made, "olt", value, -above, source, splat(number, str(target.element.min_value), lanes), target
            )
        zero = splat(number, "0", lanes)
        return self._instead(made, "uno" if signed else "ult", value, 0.0, source, zero, target)

    def _instead(self, made: str, how: str, value: str, bound: float, source: DType, other: str, target: DType) -> str:
        """``made``, or ``other`` where ``value`` compares so with ``bound``."""
        at = splat(element_type(source), float_constant(bound, source.element), source.lanes)
        where = self.out.value(f"fcmp {how} {value_type(source)} {value}, {at}")
        bits = vector("i1", source.lanes)
        return self.out.value(f"select {bits} {where}, {value_type(target)} {other}, {value_type(target)} {made}")

    def _cast(self, op: str, value: str, source: DType, target: DType) -> str:
        return self.out.value(f"{op} {value_type(source)} {value} to {value_type(target)}")

    def _pointer(self, value: str, source: DType, target: DType) -> str:
        if source.is_handle and target.is_handle:
            return value
        op = "ptrtoint" if source.is_handle else "inttoptr"
        return self._cast(op, value, source, target)

    def is_nonzero(self, value: str, source: DType) -> str:
        """An i1 (vector): whether ``value`` is not zero; nan counts as not zero."""
        type_ = value_type(source)
        if emulated(source):
            return self.is_nonzero(self.widen(value, source), F32.with_lanes(source.lanes))
        if source.is_float:
            return self.out.value(f"fcmp une {type_} {value}, zeroinitializer")
        return self.out.value(f"icmp ne {type_} {value}, {'zeroinitializer' if source.lanes > 1 else 0}")

    def _float_to_float(self, value: str, source: DType, target: DType) -> str:
        if target.bits > source.bits:
            return self._cast("fpext", value, source, target)
        if source.bits == 64 and target.bits == 16:  # a single rounding, without a run-time library
            value = self._round_to_odd(value, source.lanes)
            source = F32.with_lanes(source.lanes)
        return self._cast("fptrunc", value, source, target)

    def _round_to_odd(self, value: str, lanes: int) -> str:
        """double → float, rounded to odd."""
        bits = self._odd_bits(value, "double", "float", "i32", lanes)
        return self.out.value(f"bitcast {vector('i32', lanes)} {bits} to {vector('float', lanes)}")

    def _odd_bits(self, value: str, wide: str, narrow: str, word: str, lanes: int) -> str:
        """The bits, of type ``word``, of a ``wide`` float rounded to odd as a ``narrow`` one, so that a second rounding
        to a narrower type is correct for ``value``."""
        out, source, target, bits_of = self.out, vector(wide, lanes), vector(narrow, lanes), vector(word, lanes)
        near = out.value(f"fptrunc {source} {value} to {target}")
        back = out.value(f"fpext {target} {near} to {source}")
        size = out.intrinsic("fabs", wide, lanes, [value])
        back_size = out.intrinsic("fabs", wide, lanes, [back])
        above = out.value(f"fcmp ogt {source} {back_size}, {size}")
        inexact = out.value(f"fcmp one {source} {back_size}, {size}")
        bits = out.value(f"bitcast {target} {near} to {bits_of}")
        step = out.value(f"zext {vector('i1', lanes)} {above} to {bits_of}")
        bits = out.value(f"sub {bits_of} {bits}, {step}")
        odd = out.value(f"zext {vector('i1', lanes)} {inexact} to {bits_of}")
        return out.value(f"or {bits_of} {bits}, {odd}")

    def widen(self, value: str, source: DType) -> str:
        """A small float as ``float``: always exact."""
        m = Lanes(self.out, source.lanes)
        code = self.out.value(f"zext {value_type(source)} {value} to {m.i}")
        return widen(m, code, SMALL_FLOATS[source.element])

    def narrow(self, value: str, target: DType) -> str:
        """A ``float`` rounded to a small float."""
        m = Lanes(self.out, target.lanes)
        code = narrow(m, value, SMALL_FLOATS[target.element])
        return self.out.value(f"trunc {m.i} {code} to {value_type(target)}")
