"""Conversions between data types, the emulated floats (bfloat16, float8) included. Rounding is to nearest even."""

from __future__ import annotations

from tir.dtype import DType
from tir.errors import BuildError

from .text import FunctionText
from .types import element_type, emulated, splat, value_type, vector

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
            op = "fptosi" if target.code == "int" else "fptoui"
            if target.bits < 32:  # as a C compiler does: convert to int32, keep the low bits
                wide = DType("int32").with_lanes(lanes)
                value = self._cast("fptosi", value, source, wide)
                return self._cast("trunc", value, wide, target)
            return self._cast(op, value, source, target)
        signed = source.code == "int"
        if target.is_float:
            return self._cast("sitofp" if signed else "uitofp", value, source, target)
        if target.bits < source.bits:
            return self._cast("trunc", value, source, target)
        if target.bits > source.bits:
            return self._cast("sext" if signed else "zext", value, source, target)
        return value  # signed and unsigned of one width are the same bits

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
        """An emulated float as ``float``: always exact."""
        out, lanes = self.out, source.lanes
        i32, f32 = vector("i32", lanes), vector("float", lanes)
        if source.code == "float8_e5m2":  # the upper byte of a half
            wide = out.value(f"zext {vector('i8', lanes)} {value} to {vector('i16', lanes)}")
            wide = out.value(f"shl {vector('i16', lanes)} {wide}, {splat('i16', '8', lanes)}")
            half = out.value(f"bitcast {vector('i16', lanes)} {wide} to {vector('half', lanes)}")
            return out.value(f"fpext {vector('half', lanes)} {half} to {f32}")
        wide = out.value(f"zext {vector(element_type(source.element), lanes)} {value} to {i32}")
        if source.code == "bfloat":
            wide = out.value(f"shl {i32} {wide}, {splat('i32', '16', lanes)}")
            return out.value(f"bitcast {i32} {wide} to {f32}")
        magnitude = out.value(f"and {i32} {wide}, {splat('i32', '127', lanes)}")
        nan = out.value(f"icmp eq {i32} {magnitude}, {splat('i32', '127', lanes)}")
        sign = out.value(f"and {i32} {wide}, {splat('i32', '128', lanes)}")
        sign = out.value(f"shl {i32} {sign}, {splat('i32', '24', lanes)}")
        bits = out.value(f"shl {i32} {magnitude}, {splat('i32', '20', lanes)}")
        small = out.value(f"bitcast {i32} {bits} to {f32}")
        scale = splat("float", f"0x{0x4770000000000000:016X}", lanes)  # 2**120 moves the exponent's bias from 7 to 127
        scaled = out.value(f"fmul {f32} {small}, {scale}")
        bits = out.value(f"bitcast {f32} {scaled} to {i32}")
        bits = out.value(f"select {vector('i1', lanes)} {nan}, {i32} {splat('i32', '2143289344', lanes)}, {i32} {bits}")
        bits = out.value(f"or {i32} {bits}, {sign}")
        return out.value(f"bitcast {i32} {bits} to {f32}")

    def narrow(self, value: str, target: DType) -> str:
        """A ``float`` rounded to an emulated type. Overflow gives infinity, or nan where the type has none (e4m3)."""
        if target.code == "bfloat":
            return self._narrow_bf16(value, target.lanes)
        if target.code == "float8_e5m2":
            return self._narrow_e5m2(value, target.lanes)
        return self._narrow_e4m3(value, target.lanes)

    def _narrow_bf16(self, value: str, lanes: int) -> str:
        out, i32, f32 = self.out, vector("i32", lanes), vector("float", lanes)
        bits = out.value(f"bitcast {f32} {value} to {i32}")
        low = out.value(f"lshr {i32} {bits}, {splat('i32', '16', lanes)}")
        low = out.value(f"and {i32} {low}, {splat('i32', '1', lanes)}")
        bias = out.value(f"add {i32} {low}, {splat('i32', '32767', lanes)}")
        rounded = out.value(f"add {i32} {bits}, {bias}")
        nan = out.value(f"fcmp uno {f32} {value}, {value}")
        quiet = out.value(f"or {i32} {bits}, {splat('i32', '4194304', lanes)}")
        rounded = out.value(f"select {vector('i1', lanes)} {nan}, {i32} {quiet}, {i32} {rounded}")
        rounded = out.value(f"lshr {i32} {rounded}, {splat('i32', '16', lanes)}")
        return out.value(f"trunc {i32} {rounded} to {vector('i16', lanes)}")

    def _narrow_e5m2(self, value: str, lanes: int) -> str:
        """Through half, first rounded to odd, so that the second rounding is correct."""
        out, i1, i16 = self.out, vector("i1", lanes), vector("i16", lanes)
        f32 = vector("float", lanes)
        bits = self._odd_bits(value, "float", "half", "i16", lanes)
        low = out.value(f"lshr {i16} {bits}, {splat('i16', '8', lanes)}")
        low = out.value(f"and {i16} {low}, {splat('i16', '1', lanes)}")
        bias = out.value(f"add {i16} {low}, {splat('i16', '127', lanes)}")
        rounded = out.value(f"add {i16} {bits}, {bias}")
        nan = out.value(f"fcmp uno {f32} {value}, {value}")
        quiet = out.value(f"or {i16} {bits}, {splat('i16', '512', lanes)}")
        rounded = out.value(f"select {i1} {nan}, {i16} {quiet}, {i16} {rounded}")
        rounded = out.value(f"lshr {i16} {rounded}, {splat('i16', '8', lanes)}")
        return out.value(f"trunc {i16} {rounded} to {vector('i8', lanes)}")

    def _narrow_e4m3(self, value: str, lanes: int) -> str:
        """Normal numbers are rounded by integer arithmetic; below 2**-6 adding 2**14 rounds them."""
        out, i1, i32, f32 = self.out, vector("i1", lanes), vector("i32", lanes), vector("float", lanes)
        bits = out.value(f"bitcast {f32} {value} to {i32}")
        sign = out.value(f"and {i32} {bits}, {splat('i32', '-2147483648', lanes)}")
        magnitude = out.value(f"and {i32} {bits}, {splat('i32', '2147483647', lanes)}")
        size = out.value(f"bitcast {i32} {magnitude} to {f32}")
        # subnormal results are multiples of 2**-9, the unit in the last place of 2**14: adding 2**14 rounds to them
        big = splat("float", f"0x{0x40D0000000000000:016X}", lanes)
        shifted = out.value(f"fadd {f32} {size}, {big}")
        shifted = out.value(f"bitcast {f32} {shifted} to {i32}")
        small = out.value(f"sub {i32} {shifted}, {splat('i32', str(0x46800000), lanes)}")
        low = out.value(f"lshr {i32} {magnitude}, {splat('i32', '20', lanes)}")
        low = out.value(f"and {i32} {low}, {splat('i32', '1', lanes)}")
        # from bias 127 to bias 7; plus half a unit less one, plus the lowest kept bit: round to nearest even
        rebias = splat("i32", str(-(120 << 23) + (1 << 19) - 1), lanes)
        normal = out.value(f"add {i32} {magnitude}, {rebias}")
        normal = out.value(f"add {i32} {normal}, {low}")
        normal = out.value(f"lshr {i32} {normal}, {splat('i32', '20', lanes)}")
        over = out.value(f"icmp ugt {i32} {normal}, {splat('i32', '126', lanes)}")
        normal = out.value(f"select {i1} {over}, {i32} {splat('i32', '127', lanes)}, {i32} {normal}")
        least = splat("i32", str(121 << 23), lanes)  # 2**-6
        is_small = out.value(f"icmp ult {i32} {magnitude}, {least}")
        result = out.value(f"select {i1} {is_small}, {i32} {small}, {i32} {normal}")
        sign = out.value(f"lshr {i32} {sign}, {splat('i32', '24', lanes)}")
        result = out.value(f"or {i32} {result}, {sign}")
        return out.value(f"trunc {i32} {result} to {vector('i8', lanes)}")
