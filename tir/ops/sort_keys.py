"""Integers in the order of elements, by which these are sorted. NaN has the greatest."""

from __future__ import annotations

from .. import EQ, DType, Expr, Select, cast, compare, const, te


class Key:
    """Integers of type ``kind``, at least as wide as elements of ``dtype`` and in their order, from which these can be had back.

    -0.0 is before 0.0. Descending order is that of the integers too.
    """

    def __init__(self, dtype: DType, is_ascending: bool):
        self.dtype, self.is_ascending = dtype, is_ascending
        self.whole = DType("float16") if dtype.is_float and dtype.bits < 8 else dtype  # of bits that an integer has
        word = "uint" if dtype.code == "uint" or dtype.is_bool else "int"
        self.kind = DType(f"{word}{max(self.whole.bits, 8)}")

    def of(self, x: Expr) -> Expr:
        """The key of an element."""
        if not self.dtype.is_float:
            return self._turned(cast(self.kind, x))
        bits = te.reinterpret(str(self.kind), cast(self.whole, x))
        is_nan = te.isnan(_wide(x))
        return self._turned(Select(is_nan, const(self.kind.max_value, self.kind), self._folded(bits)))

    def value(self, key: Expr) -> Expr:
        """The element with this key."""
        key = self._turned(key)
        if not self.dtype.is_float:
            return cast(self.dtype, key)
        return cast(self.dtype, te.reinterpret(str(self.whole), self._folded(key)))

    def _folded(self, bits: Expr) -> Expr:
        """The bits of a float, those of a negative one but the sign turned: its own inverse."""
        sign = bits >> const(self.kind.bits - 1, self.kind)
        return bits ^ (sign & const(self.kind.max_value, self.kind))

    def _turned(self, key: Expr) -> Expr:
        return key if self.is_ascending else te.bitwise_not(key)


class UnsignedKey:
    """The same as unsigned integers, which are in the order of their digits."""

    def __init__(self, dtype: DType, is_ascending: bool):
        self.signed = Key(dtype, is_ascending)
        self.kind = DType(f"uint{self.signed.kind.bits}")

    def of(self, x: Expr) -> Expr:
        """The key of an element."""
        key = self.signed.of(x)
        return te.reinterpret(str(self.kind), key) ^ self._top()

    def value(self, key: Expr) -> Expr:
        """The element with this key."""
        return self.signed.value(te.reinterpret(str(self.signed.kind), key ^ self._top()))

    def _top(self) -> Expr:
        is_signed = self.signed.kind.code == "int"
        return const(1 << (self.kind.bits - 1) if is_signed else 0, self.kind)


def with_one_zero(x: Expr) -> Expr:
    """``x``, but 0.0 for -0.0: elements that are equal have the same key then, and stay in their order."""
    if not x.dtype.is_float:
        return x
    wide = _wide(x)
    return Select(compare(EQ, wide, const(0, wide.dtype)), const(0, x.dtype), x)


def _wide(x: Expr) -> Expr:
    return cast("float64" if x.dtype.bits == 64 else "float32", x)
