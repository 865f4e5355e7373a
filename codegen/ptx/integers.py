"""Integer instructions, bits, comparisons and selections."""

from __future__ import annotations

from typing import Any

import numpy as np

from .floats import FORMATS
from .table import Array, Elementwise, Mods, bits_of, form, is_int, numpy_type

_INTS = ("s16", "s32", "s64", "u16", "u32", "u64")
_BITS = ("b16", "b32", "b64")


def same(kind: str, count: int, function: Any) -> Elementwise:
    return Elementwise((kind,), (kind,) * count, function)


def wide(kind: str) -> str:
    return f"{kind[0]}{2 * bits_of(kind)}"


def high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        big = np.dtype(f"{'int' if a.dtype.kind == 'i' else 'uint'}{2 * bits}")
        return (a.astype(big) * b.astype(big) >> big.type(bits)).astype(a.dtype)
    x, y = a.view(np.uint64), b.view(np.uint64)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & mask, x >> half, y & mask, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    low = x0 * y1 + (middle & mask)
    made = x1 * y1 + (middle >> half) + (low >> half)
    if a.dtype.kind == "i":
        made = made - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return made.view(a.dtype)


def clamped(value: Array, kind: str) -> Array:
    """``value`` of a wider type within ``kind``."""
    limits = np.iinfo(numpy_type(kind))
    return np.clip(value, limits.min, limits.max).astype(numpy_type(kind))


@form("mul")
def _mul(m: Mods) -> Elementwise:
    kind, part = m.type(*_INTS), m.take("lo", "hi", "wide")
    if part == "wide" and bits_of(kind) < 64:
        big = numpy_type(wide(kind))
        return Elementwise((wide(kind),), (kind, kind), lambda a, b: a.astype(big) * b.astype(big))
    if part not in ("lo", "hi"):
        raise m.unknown()
    return same(kind, 2, high if part == "hi" else np.multiply)


@form("mad")
def _mad(m: Mods) -> Elementwise:
    kind, part, sat = m.type(*_INTS), m.take("lo", "hi", "wide"), m.has("sat")
    if part == "wide" and bits_of(kind) < 64:
        big = numpy_type(wide(kind))
        return Elementwise((wide(kind),), (kind, kind, wide(kind)), lambda a, b, c: a.astype(big) * b.astype(big) + c)
    if sat:
        return same(kind, 3, lambda a, b, c: clamped(high(a, b).astype(np.int64) + c, kind))
    if part not in ("lo", "hi"):
        raise m.unknown()
    return same(kind, 3, lambda a, b, c: (high(a, b) if part == "hi" else a * b) + c)


@form("mul24", "mad24")
def _mul24(m: Mods) -> Elementwise:
    kind, part = m.type("s32", "u32"), m.take("lo", "hi")
    big = np.int64 if kind == "s32" else np.uint64
    cut = 40

    def product(a: Array, b: Array, c: Any = 0) -> Array:
        x, y = ((v.astype(big) << big(cut)) >> big(cut) for v in (a, b))
        made = x * y
        return (made >> big(16) if part == "hi" else made).astype(a.dtype) + c

    return same(kind, 2 if m.inst.op == "mul24" else 3, product)


@form("add", "sub")
def _add(m: Mods) -> Elementwise:
    kind, sat = m.type(*_INTS), m.has("sat")
    plus = m.inst.op == "add"
    if sat:
        return same(kind, 2, lambda a, b: clamped(a.astype(np.int64) + (b if plus else -b.astype(np.int64)), kind))
    return same(kind, 2, np.add if plus else np.subtract)


def _quotient(a: Array, b: Array) -> tuple[Array, Array]:
    """(a / b, a % b) toward zero; by zero all ones and ``a``."""
    zero = b == 0
    by = np.where(zero, a.dtype.type(1), b)
    if a.dtype.kind == "u":
        return np.where(zero, ~a.dtype.type(0), a // by), np.where(zero, a, a % by)
    q, r = a // by, a % by  # toward minus infinity
    fix = (r != 0) & ((r < 0) != (a < 0))
    return np.where(zero, a.dtype.type(-1), q + fix), np.where(zero, a, np.where(fix, r - by, r))


@form("div")
def _div(m: Mods) -> Elementwise:
    kind = m.type(*_INTS)
    return same(kind, 2, lambda a, b: _quotient(a, b)[0])


@form("rem")
def _rem(m: Mods) -> Elementwise:
    kind = m.type(*_INTS)
    return same(kind, 2, lambda a, b: _quotient(a, b)[1])


@form("abs", "neg")
def _abs(m: Mods) -> Elementwise:
    kind = m.type("s16", "s32", "s64")
    return same(kind, 1, np.negative if m.inst.op == "neg" else lambda a: np.where(a < 0, -a, a))


@form("min", "max")
def _min(m: Mods) -> Elementwise:
    kind, relu = m.type(*_INTS), m.has("relu")
    choose = np.minimum if m.inst.op == "min" else np.maximum
    return same(kind, 2, (lambda a, b: np.maximum(choose(a, b), 0)) if relu else choose)


# ------------------------------------------------------------ bits


@form("and", "or", "xor")
def _logic(m: Mods) -> Elementwise:
    kind = m.type("pred", *_BITS)
    return same(kind, 2, {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[m.inst.op])


@form("not", "cnot")
def _not(m: Mods) -> Elementwise:
    kind = m.type("pred", *_BITS)
    return same(kind, 1, np.invert if m.inst.op == "not" else lambda a: (a == 0).astype(a.dtype))


@form("shl", "shr")
def _shift(m: Mods) -> Elementwise:
    """Shifts past the width give 0, or the sign."""
    kind = m.type(*_BITS, *_INTS)
    bits = bits_of(kind)

    def shift(a: Array, by: Array) -> Array:
        least = np.minimum(by, np.uint32(bits - 1)).astype(a.dtype)
        over = by >= bits
        if m.inst.op == "shl":
            return np.where(over, a.dtype.type(0), a << least)
        moved = a >> least
        return moved if a.dtype.kind == "i" else np.where(over, a.dtype.type(0), moved)

    return Elementwise((kind,), (kind, "u32"), shift)


@form("shf")
def _funnel(m: Mods) -> Elementwise:
    way, mode, kind = m.take("l", "r"), m.take("clamp", "wrap"), m.type("b32")

    def shift(low: Array, top: Array, by: Array) -> Array:
        both = top.astype(np.uint64) << np.uint64(32) | low
        n = (by & np.uint32(31) if mode == "wrap" else np.minimum(by, np.uint32(32))).astype(np.uint64)
        made = (both << n) >> np.uint64(32) if way == "l" else both >> n
        return made.astype(np.uint32)

    return Elementwise((kind,), (kind, kind, "u32"), shift)


@form("bfi")
def _insert(m: Mods) -> Elementwise:
    kind = m.type("b32", "b64")
    bits = bits_of(kind)

    def insert(a: Array, b: Array, at: Array, count: Array) -> Array:
        t = a.dtype.type
        at, count = at & np.uint32(0xFF), count & np.uint32(0xFF)
        mask = _ones(t, count, bits)
        shift = np.minimum(at, np.uint32(bits - 1)).astype(a.dtype)
        mask = np.where(at >= bits, t(0), mask << shift)
        return (b & ~mask) | ((a << shift) & mask)

    return Elementwise((kind,), (kind, kind, "u32", "u32"), insert)


def _ones(t: Any, count: Array, bits: int) -> Array:
    some = np.minimum(count, np.uint32(bits - 1)).astype(t)
    return np.where(count >= bits, ~t(0), (t(1) << some) - t(1))


@form("bfe")
def _extract(m: Mods) -> Elementwise:
    kind = m.type("u32", "u64", "s32", "s64")
    bits, signed = bits_of(kind), kind[0] == "s"

    def extract(a: Array, at: Array, count: Array) -> Array:
        u = np.dtype(f"uint{bits}")
        x, at, count = a.view(u), at & np.uint32(0xFF), count & np.uint32(0xFF)
        moved = np.where(at >= bits, u.type(0), x >> np.minimum(at, np.uint32(bits - 1)).astype(u))
        mask = _ones(u.type, count, bits)
        made = moved & mask
        if signed:
            last = np.minimum(at.astype(np.int64) + count - 1, bits - 1)
            negative = (count > 0) & ((x >> np.maximum(last, 0).astype(u) & u.type(1)) == 1)
            length = np.minimum(count, np.maximum(last + 1 - at.astype(np.int64), 0)).astype(np.uint32)
            made = np.where(negative, made | ~_ones(u.type, length, bits), made)
        return made.view(a.dtype)

    return Elementwise((kind,), (kind, "u32", "u32"), extract)


def _count_leading(a: Array) -> Array:
    bits = a.dtype.itemsize * 8
    x, n = a.copy(), np.zeros(a.shape, np.uint32)
    step = bits // 2
    while step:
        empty = (x >> a.dtype.type(bits - step)) == 0
        n += np.where(empty, np.uint32(step), np.uint32(0))
        x = np.where(empty, x << a.dtype.type(step), x)
        step //= 2
    return np.where(a == 0, np.uint32(bits), n)


def _count_ones(a: Array) -> Array:
    return np.unpackbits(np.ascontiguousarray(a).view(np.uint8).reshape(len(a), -1), axis=1).sum(1).astype(np.uint32)


@form("clz", "popc")
def _count(m: Mods) -> Elementwise:
    kind = m.type("b32", "b64")
    return Elementwise(("u32",), (kind,), _count_leading if m.inst.op == "clz" else _count_ones)


@form("bfind")
def _find(m: Mods) -> Elementwise:
    kind, amount = m.type("u32", "u64", "s32", "s64"), m.has("shiftamt")
    bits = bits_of(kind)

    def find(a: Array) -> Array:
        x = (~a if kind[0] == "s" else a) if kind[0] == "u" else np.where(a < 0, ~a, a)
        x = x.view(f"uint{bits}")
        lead = _count_leading(x)
        return np.where(x == 0, np.uint32(0xFFFFFFFF), lead if amount else np.uint32(bits - 1) - lead)

    return Elementwise(("u32",), (kind,), find)


@form("brev")
def _reverse(m: Mods) -> Elementwise:
    kind = m.type("b32", "b64")

    def reverse(a: Array) -> Array:
        step, mask = bits_of(kind) // 2, ~a.dtype.type(0)
        while step:
            mask = mask ^ (mask << a.dtype.type(step))
            t = a.dtype.type(step)
            a = ((a >> t) & mask) | ((a << t) & ~mask)
            step //= 2
        return a

    return same(kind, 1, reverse)


@form("prmt")
def _permute(m: Mods) -> Elementwise:
    mode, kind = m.take("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"), m.type("b32")

    def chosen(c: Array, k: int) -> Array:
        low = c & np.uint32(3)
        if not mode:
            return c >> np.uint32(4 * k) & np.uint32(15)
        if mode == "f4e":
            return low + np.uint32(k)
        if mode == "b4e":
            return (low - np.uint32(k)) & np.uint32(7)
        if mode == "rc8":
            return low
        if mode == "ecl":
            return np.maximum(low, np.uint32(k))
        if mode == "ecr":
            return np.minimum(low, np.uint32(k))
        return (low & np.uint32(1)) * np.uint32(2) + np.uint32(k & 1)

    def permute(a: Array, b: Array, c: Array) -> Array:
        both = b.astype(np.uint64) << np.uint64(32) | a
        made = np.zeros_like(a)
        for k in range(4):
            pick = chosen(c, k)
            byte = (both >> ((pick & np.uint32(7)).astype(np.uint64) * np.uint64(8)) & np.uint64(0xFF)).astype(
                np.uint32
            )
            sign = np.where(byte & np.uint32(0x80) != 0, np.uint32(0xFF), np.uint32(0))
            made |= np.where(pick & np.uint32(8) != 0, sign, byte) << np.uint32(8 * k)
        return made

    return Elementwise((kind,), (kind, kind, "u32"), permute)


@form("lop3")
def _lop3(m: Mods) -> Elementwise:
    kind = m.type("b32")

    def look_up(a: Array, b: Array, c: Array, table: Array) -> Array:
        made = np.zeros_like(a)
        for k in range(8):
            row = (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
            made |= np.where(table >> np.uint32(k) & np.uint32(1) != 0, row, np.uint32(0))
        return made

    return Elementwise((kind,), (kind, kind, kind, "u32"), look_up)


@form("sad")
def _sad(m: Mods) -> Elementwise:
    kind = m.type(*_INTS)
    return same(kind, 3, lambda a, b, c: c + np.where(a < b, b - a, a - b))


@form("dp4a", "dp2a")
def _dot(m: Mods) -> Elementwise:
    second, first, half = m.type("s32", "u32"), m.type("s32", "u32"), m.take("lo", "hi")
    four = m.inst.op == "dp4a"
    result = "u32" if first == second == "u32" else "s32"

    def parts(x: Array, signed: bool, width: int) -> Array:
        return (
            np.ascontiguousarray(x).view(f"{'int' if signed else 'uint'}{width}").reshape(len(x), -1).astype(np.int64)
        )

    def dot(a: Array, b: Array, c: Array) -> Array:
        x = parts(a, first == "s32", 8 if four else 16)
        y = parts(b, second == "s32", 8)
        if not four:
            y = y[:, 2:] if half == "hi" else y[:, :2]
        return ((x * y).sum(1) + c).astype(c.dtype)

    return Elementwise((result,), (first, second, result), dot)


# ------------------------------------------------------------ comparison, selection


def compare(op: str, kind: str) -> Any:
    """The comparison ``op`` of arrays of ``kind``."""
    plain = {
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
        "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
    }  # fmt: skip
    if is_int(kind):
        return plain.get(op)
    form = FORMATS.get(kind)
    read = (lambda x: x) if kind in ("f32", "f64") or form is None else form.widen
    if op in ("num", "nan"):
        return lambda a, b: (np.isnan(read(a)) | np.isnan(read(b))) == (op == "nan")
    if op in ("lo", "ls", "hi", "hs"):
        return None
    if op in plain:  # ordered: false where one is nan, of != too
        base = plain[op]
        return lambda a, b: base(read(a), read(b)) & ~(np.isnan(read(a)) | np.isnan(read(b)))
    base = plain.get(op.removesuffix("u")) if op.endswith("u") else None
    return base and (lambda a, b: base(read(a), read(b)) | np.isnan(read(a)) | np.isnan(read(b)))


_COMPARISONS = (
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
    "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
)  # fmt: skip


@form("setp", "set")
def _setp(m: Mods) -> Elementwise:
    """``setp.lt.and.s32 p|q, a, b, c``: p = (a < b) and c, q = not (a < b) and c."""
    kind = m.type(*_BITS, *_INTS, "f16", "bf16", "f32", "f64")
    result = "pred" if m.inst.op == "setp" else m.type("u32", "s32", "f32")
    ftz, op, join = m.has("ftz"), m.take(*_COMPARISONS), m.take("and", "or", "xor")
    test = compare(op, kind)
    if test is None:
        raise m.unknown()
    logic = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.get(join)

    def truth(a: Array, b: Array, *rest: Array) -> Any:
        if ftz and kind == "f32":
            from .reals import flushed

            a, b = flushed(a), flushed(b)
        first = test(a, b)
        both = (first, ~first) if logic is None else (logic(first, rest[0]), logic(~first, rest[0]))
        if result == "pred":
            return both
        one = {"u32": np.uint32(0xFFFFFFFF), "s32": np.int32(-1), "f32": np.float32(1)}[result]
        return np.where(both[0], one, type(one)(0))

    outputs = ("pred", "pred") if result == "pred" else (result,)
    return Elementwise(outputs, (kind, kind, *(["pred"] if logic else [])), truth)


@form("selp")
def _selp(m: Mods) -> Elementwise:
    kind = m.type(*_BITS, *_INTS, "f32", "f64")
    return Elementwise((kind,), (kind, kind, "pred"), lambda a, b, p: np.where(p, a, b))


@form("slct")
def _slct(m: Mods) -> Elementwise:
    by, kind, _ = m.type("s32", "f32"), m.type(*_BITS, *_INTS, "f32", "f64"), m.has("ftz")
    return Elementwise((kind,), (kind, kind, by), lambda a, b, c: np.where(c >= 0, a, b))


@form("szext")
def _szext(m: Mods) -> Elementwise:
    kind, mode = m.type("s32", "u32"), m.take("clamp", "wrap")

    def extend(a: Array, b: Array) -> Array:
        n = b & np.uint32(31) if mode == "wrap" else np.minimum(b, np.uint32(32))
        mask = _ones(np.uint32, n, 32)
        low = a.view(np.uint32) & mask
        top = (low >> np.maximum(n.astype(np.int64) - 1, 0).astype(np.uint32) & np.uint32(1)) == 1
        return np.where((kind == "s32") & top & (n > 0), low | ~mask, low).astype(np.uint32).view(a.dtype)

    return Elementwise((kind,), (kind, "u32"), extend)
