"""More elementary functions of float32 as straight-line code: angles, hyperbolic functions, powers, remainders.

Polynomials are least-squares fits of the relative error, weighted towards its maxima. Where the straight line is not
accurate (angles beyond a million, quotients beyond 2**23), the C library is called, in a branch that is rarely taken.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from .mathlib import (
    F32,
    F64,
    Lanes,
    exponent,
    half_power,
    has_tables,
    libm,
    log_edges,
    log_of_normal,
    looked_up,
    quotient,
    scaled,
)
from .types import float_constant, splat, vector

HALF_PI = 1.5707963267948966


class Doubles(Lanes):
    """float64 arithmetic on lanes."""

    def __init__(self, m: Lanes):
        super().__init__(m.out, m.lanes)
        self.f, self.i = vector("double", m.lanes), vector("i64", m.lanes)

    def const(self, value: float) -> str:
        return splat("double", float_constant(value, F64), self.lanes)

    def int(self, value: int) -> str:
        return splat("i64", str(value), self.lanes)

    def call(self, name: str, *args: str) -> str:
        return self.out.intrinsic(name, "double", self.lanes, args)

    def of(self, m: Lanes, x: str) -> str:
        return self.out.value(f"fpext {m.f} {x} to {self.f}")

    def narrowed(self, m: Lanes, x: str) -> str:
        return self.out.value(f"fptrunc {self.f} {x} to {m.f}")


def _or_rarely(m: Lanes, condition: str, fast: str, slow: Callable[[], str]) -> str:
    """``slow()`` if ``condition`` holds in some lane, in a branch that is rarely taken; else ``fast``."""
    out = m.out
    some = out.reduced("or", condition, m.lanes) if m.lanes > 1 else condition
    before, rare, end = out.block, out.label("rare"), out.label("common")
    out.branch(some, rare, end)
    out.start(rare)
    other = slow()
    after = out.block
    out.start(end)
    return out.value(f"phi {m.f} [ {fast}, %{before} ], [ {other}, %{after} ]")


def _or_library(m: Lanes, condition: str, fast: str, name: str, args: Sequence[str]) -> str:
    """``fast``, and where ``condition`` holds what the C library gives."""
    return _or_rarely(
        m, condition, fast, lambda: m.pick(condition, libm(m.out, name, F32.with_lanes(m.lanes), args), fast)
    )


def _tiny_kept(m: Lanes, x: str, r: str) -> str:
    """``r``, and ``x`` where it is so small that ``r`` rounds to it: the sign of 0 and subnormal numbers are kept."""
    return m.pick(m.less("olt", _size(m, x), m.const(2.0**-26)), x, r)


def _size(m: Lanes, x: str) -> str:
    return m.call("fabs", x)


# ---------------------------------------------------------------- angles


def _reduced(m: Lanes, x: str) -> tuple[str, str]:
    """(r, q): x = q pi/2 + r with |r| little above pi/4; exact to the last place for |x| below 2**20."""
    first = _float32(HALF_PI)
    second = _float32(HALF_PI - first)
    third = -1.7151244e-15  # pi/2 = first + second + third, to 75 bits
    n = m.call("rint", m.op("fmul", x, m.const(2 / math.pi)))
    r = m.fma(n, m.const(-first), x)
    r = m.fma(n, m.const(-second), r)
    r = m.fma(n, m.const(-third), r)
    return r, m.out.value(f"fptosi {m.f} {n} to {m.i}")


def _float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def _sine_cosine(m: Lanes, r: str) -> tuple[str, str]:
    z = m.op("fmul", r, r)
    s = m.poly(z, [2.712420391e-06, -0.0001983867588, 0.008333327203, -0.1666666662])
    sine = m.fma(m.op("fmul", s, z), r, r)
    c = m.poly(z, [-2.715556405e-07, 2.479881567e-05, -0.001388888091, 0.04166666659])
    half = m.fma(z, m.const(-0.5), m.const(1.0))
    return sine, m.fma(m.op("fmul", c, z), z, half)


def _is_odd(m: Lanes, q: str) -> str:
    return m.out.value(f"icmp ne {m.i} {m.iop('and', q, m.int(1))}, {m.int(0)}")


def _turned(m: Lanes, q: str, r: str) -> str:
    """The sine of r + q pi/2."""
    sine, cosine = _sine_cosine(m, r)
    sign = m.iop("shl", m.iop("and", q, m.int(2)), m.int(30))
    return m.from_bits(m.iop("xor", m.bits(m.pick(_is_odd(m, q), cosine, sine)), sign))


def _is_far(m: Lanes, x: str) -> str:
    return m.less("ugt", _size(m, x), m.const(1e6))


def sin(m: Lanes, x: str) -> str:
    r, q = _reduced(m, x)
    return _or_library(m, _is_far(m, x), _tiny_kept(m, x, _turned(m, q, r)), "sin", [x])


def cos(m: Lanes, x: str) -> str:
    r, q = _reduced(m, x)
    return _or_library(m, _is_far(m, x), _turned(m, m.iop("add", q, m.int(1)), r), "cos", [x])


def tan(m: Lanes, x: str) -> str:
    r, q = _reduced(m, x)
    sine, cosine = _sine_cosine(m, r)
    odd = _is_odd(m, q)
    above = m.pick(odd, m.out.value(f"fneg {m.f} {cosine}"), sine)
    fast = m.op("fdiv", above, m.pick(odd, sine, cosine))
    return _or_library(m, _is_far(m, x), _tiny_kept(m, x, fast), "tan", [x])


def _arc_sine(m: Lanes, t: str, z: str) -> str:
    """The angle whose sine is t, for t from 0 to 1/2; z is its square."""
    p = m.poly(z, [0.03756518093, 0.01440261989, 0.03181760819, 0.0445157206, 0.07500510917, 0.1666665987])
    return m.fma(m.op("fmul", p, z), t, t)


def _arc_parts(m: Lanes, x: str) -> tuple[str, str]:
    """(whether |x| > 1/2, the angle whose sine is |x|, or else sqrt((1 - |x|) / 2))."""
    a = _size(m, x)
    big = m.less("ogt", a, m.const(0.5))
    z = m.pick(big, m.fma(a, m.const(-0.5), m.const(0.5)), m.op("fmul", a, a))
    return big, _arc_sine(m, m.pick(big, m.call("sqrt", z), a), z)


def asin(m: Lanes, x: str) -> str:
    big, p = _arc_parts(m, x)
    return m.call("copysign", m.pick(big, m.fma(p, m.const(-2.0), m.const(HALF_PI)), p), x)


def acos(m: Lanes, x: str) -> str:
    big, p = _arc_parts(m, x)
    twice = m.op("fadd", p, p)
    below = m.less("olt", x, m.const(0.0))
    far = m.pick(below, m.op("fsub", m.const(math.pi), twice), twice)
    return m.pick(big, far, m.op("fsub", m.const(HALF_PI), m.call("copysign", p, x)))


def _arc_tangent(m: Lanes, t: str) -> str:
    """The angle whose tangent is t, for t from 0 to 1."""
    z = m.op("fmul", t, t)
    p = m.poly(
        z,
        [
            -0.001827175322, 0.01106427347, -0.03145539213, 0.05823424337, -0.08419441528, 0.1095757035, -0.1426524432,
            0.1999863853, -0.3333330186,
        ],
    )  # fmt: skip
    return m.fma(m.op("fmul", p, z), t, t)


def atan(m: Lanes, x: str) -> str:
    a = _size(m, x)
    big = m.less("ogt", a, m.const(1.0))
    p = _arc_tangent(m, m.pick(big, m.op("fdiv", m.const(1.0), a), a))
    return m.call("copysign", m.pick(big, m.op("fsub", m.const(HALF_PI), p), p), x)


def atan2(m: Lanes, y: str, x: str) -> str:
    """The angle of min / max of both sizes, mirrored to where the point is."""
    a, b = _size(m, y), _size(m, x)
    steep = m.less("ogt", a, b)
    low, high = m.pick(steep, b, a), m.pick(steep, a, b)
    ratio = m.op("fdiv", low, high)
    ratio = m.pick(m.less("oeq", high, m.const(0.0)), m.const(0.0), ratio)
    ratio = m.pick(m.less("oeq", low, m.const(math.inf)), m.const(1.0), ratio)
    p = _arc_tangent(m, ratio)
    p = m.pick(steep, m.op("fsub", m.const(HALF_PI), p), p)
    left = m.out.value(f"icmp slt {m.i} {m.bits(x)}, {m.int(0)}")
    p = m.pick(left, m.op("fsub", m.const(math.pi), p), p)
    return m.pick(m.less("uno", x, y), m.const(math.nan), m.call("copysign", p, y))


# ---------------------------------------------------------------- exponentials and logarithms


def expm1(m: Lanes, x: str) -> str:
    h = half_power(m, x)
    return _tiny_kept(m, x, m.op("fadd", h, h))


def sinh(m: Lanes, x: str) -> str:
    """With h = (e**|x| - 1) / 2, which does not overflow before the result: h + h / (2h + 1)."""
    h = half_power(m, _size(m, x))
    rest = m.op("fdiv", h, m.fma(h, m.const(2.0), m.const(1.0)))
    rest = m.pick(m.less("ogt", h, m.const(1e9)), m.const(0.0), rest)
    return _tiny_kept(m, x, m.call("copysign", m.op("fadd", h, rest), x))


def cosh(m: Lanes, x: str) -> str:
    grown = m.op("fadd", half_power(m, _size(m, x)), m.const(0.5))  # e**|x| / 2
    return m.op("fadd", grown, m.op("fdiv", m.const(0.25), grown))


def log1p(m: Lanes, x: str) -> str:
    """The logarithm of the rounded u = 1 + x, and of what rounding lost."""
    u = m.op("fadd", m.const(1.0), x)
    lost = m.op("fsub", x, m.op("fsub", u, m.const(1.0)))
    return _tiny_kept(m, x, log_edges(m, u, log_of_normal(m, u, lost)))


def _log1p_or_log2x(m: Lanes, big: str, x: str, t: str) -> str:
    """log(1 + t), and where ``big`` log(2 x)."""
    more = m.pick(big, m.const(math.log(2)), m.const(0.0))
    return m.op("fadd", log1p(m, m.pick(big, x, t)), more)


def asinh(m: Lanes, x: str) -> str:
    """An odd polynomial up to 1/2; further out log(|x| + sqrt(1 + x**2)), or log(2 |x|) where the 1 does not count."""
    a, z = _size(m, x), m.op("fmul", x, x)
    p = m.poly(z, [-0.01428850809, 0.02878360622, -0.04450651099, 0.0749958263, -0.1666666459])
    near = m.fma(m.op("fmul", p, z), a, a)
    big = m.less("ogt", a, m.const(1e6))
    u = m.pick(big, a, m.op("fadd", a, m.call("sqrt", m.op("fadd", m.const(1.0), z))))
    r = m.op("fadd", log_of_normal(m, u), m.pick(big, m.const(math.log(2)), m.const(0.0)))
    far = m.pick(m.less("olt", u, m.const(math.inf)), r, u)
    return m.call("copysign", m.pick(m.less("olt", a, m.const(0.5)), near, far), x)


def acosh(m: Lanes, x: str) -> str:
    """log(1 + (t + sqrt(2t + t**2))) with t = x - 1."""
    t = m.op("fsub", x, m.const(1.0))
    root = m.call("sqrt", m.fma(t, t, m.op("fadd", t, t)))
    r = _log1p_or_log2x(m, m.less("ogt", x, m.const(1e6)), x, m.op("fadd", t, root))
    return m.pick(m.less("olt", x, m.const(1.0)), m.const(math.nan), r)


def atanh(m: Lanes, x: str) -> str:
    """An odd polynomial up to 1/2; further out log((1 + |x|) / (1 - |x|)) / 2."""
    a, z, one = _size(m, x), m.op("fmul", x, x), m.const(1.0)
    p = m.poly(
        z, [0.1817400442564047, 0.08243704865980209, 0.14669142850725805, 0.19978216467894624, 0.3333373003027551]
    )
    near = m.fma(m.op("fmul", p, z), a, a)
    u = quotient(m, m.op("fadd", one, a), m.op("fsub", one, a))
    far = m.op("fmul", m.const(0.5), log_edges(m, u, log_of_normal(m, u)))
    far = m.pick(m.less("oeq", a, one), m.const(math.inf), far)
    return m.call("copysign", m.pick(m.less("olt", a, m.const(0.5)), near, far), x)


# ---------------------------------------------------------------- two operands


def hypot(m: Lanes, x: str, y: str) -> str:
    """In float64, where squares neither overflow nor vanish."""
    d = Doubles(m)
    a, b = d.of(m, x), d.of(m, y)
    r = d.narrowed(m, d.call("sqrt", d.fma(a, a, d.op("fmul", b, b))))
    for each in (x, y):
        r = m.pick(m.less("oeq", _size(m, each), m.const(math.inf)), m.const(math.inf), r)
    return r


def fmod(m: Lanes, x: str, y: str) -> str:
    """a - q b is exact for the sizes a, b and a quotient q below 2**23, which may be one too many."""
    a, b = _size(m, x), _size(m, y)
    quotient = m.op("fdiv", a, b)
    q = m.call("trunc", quotient)
    r = m.fma(m.out.value(f"fneg {m.f} {q}"), b, a)
    r = m.pick(m.less("olt", r, m.const(0.0)), m.op("fadd", r, b), r)
    r = m.pick(m.less("olt", a, b), a, r)
    return _or_library(m, m.less("uge", quotient, m.const(2.0**23)), m.call("copysign", r, x), "fmod", [x, y])


def power(m: Lanes, x: str, y: str) -> str:
    """2**(y log2 |x|), the product to more than the 24 bits of float32; the sign and the edges of C's pow where some x is
    not positive and finite, or some y not finite."""
    fast = (_power_by_table if has_tables(m) else _power_in_double)(m, _size(m, x), y)
    below = m.iop("sub", m.bits(x), m.int(1))
    extreme = m.out.value(f"icmp uge {m.i} {below}, {m.int(0x7F7FFFFF)}")  # not 0 < x < inf
    rare = m.out.value(f"or {m.b} {extreme}, {m.less('uno', fast, fast)}")  # nan, where y is infinite
    return _or_rarely(m, rare, fast, lambda: _power_at_edges(m, x, y, fast))


def _power_in_double(m: Lanes, x: str, y: str) -> str:
    """x**y for x > 0, the product in float64."""
    d = Doubles(m)
    return _exp2_of_double(m, d, d.op("fmul", d.of(m, y), _log2_double(m, d, x)))


def _power_by_table(m: Lanes, x: str, y: str) -> str:
    """x**y for x > 0, the product as a sum of two float32."""
    high, low = _log2_by_table(m, x)
    product = m.op("fmul", y, high)
    rest = m.fma(y, low, m.fma(y, high, m.out.value(f"fneg {m.f} {product}")))
    bounded = m.less("olt", _size(m, product), m.const(200.0))  # infinite or 0 beyond, whatever the rest is
    product = m.pick(m.less("ogt", product, m.const(200.0)), m.const(200.0), product)
    product = m.pick(m.less("olt", product, m.const(-200.0)), m.const(-200.0), product)
    rest = m.pick(bounded, rest, m.const(0.0))
    whole = m.call("rint", m.op("fadd", product, rest))
    f = m.op("fadd", m.op("fsub", product, whole), rest)
    p = m.poly(f, _EXP2)
    return scaled(m, p, p, whole)


def _power_at_edges(m: Lanes, x: str, y: str, r: str) -> str:
    """C's pow, where ``r`` is right for x and y that are finite and x > 0."""
    size, infinite = _size(m, x), m.const(math.inf)
    whole = m.less("oeq", m.call("rint", y), y)
    extremes = m.less("oeq", size, m.const(0.0)), m.less("oeq", size, infinite), m.less("oeq", _size(m, y), infinite)
    grows = m.out.value(f"xor {m.b} {m.less('ogt', size, m.const(1.0))}, {m.less('olt', y, m.const(0.0))}")
    for extreme in extremes:
        r = m.pick(extreme, m.pick(grows, infinite, m.const(0.0)), r)
    half = m.op("fmul", y, m.const(0.5))
    odd = m.out.value(f"and {m.b} {whole}, {m.less('one', m.call('rint', half), half)}")
    r = m.pick(odd, m.call("copysign", r, x), r)
    root = m.out.value(f"and {m.b} {m.less('olt', x, m.const(0.0))}, {m.less('olt', size, infinite)}")
    root = m.out.value(f"and {m.b} {root}, {m.less('one', m.call('rint', y), y)}")
    r = m.pick(root, m.const(math.nan), r)
    r = m.pick(m.less("uno", x, y), m.const(math.nan), r)
    unit = m.out.value(f"and {m.b} {m.less('oeq', x, m.const(-1.0))}, {m.less('oeq', _size(m, y), infinite)}")
    ones = m.out.value(f"or {m.b} {m.less('oeq', x, m.const(1.0))}, {m.less('oeq', y, m.const(0.0))}")
    return m.pick(m.out.value(f"or {m.b} {unit}, {ones}"), m.const(1.0), r)


def _log2_double(m: Lanes, d: Doubles, x: str) -> str:
    """log2 of a positive float32 to 33 bits: x = 2**e (1 + t) with t near 0; a polynomial takes less time than a division."""
    wide = d.of(m, x)
    bits = d.out.value(f"bitcast {d.f} {wide} to {d.i}")
    moved = d.iop("sub", bits, d.int(0x3FE6A09E667F3BCD))  # sqrt(1/2)
    e = d.iop("ashr", moved, d.int(52))
    near_one = d.out.value(f"bitcast {d.i} {d.iop('sub', bits, d.iop('shl', e, d.int(52)))} to {d.f}")
    t = d.op("fsub", near_one, d.const(1.0))
    p = d.poly(
        t,
        [
            -0.08433521045800585, 0.1534528693745451, -0.15722652971153048, 0.15931300522348446, -0.17905123203322462,
            0.20607165109914127, -0.24050279825001172, 0.28854145553597715, -0.360672845348936, 0.4808983110824002,
            -0.7213475248945522, 1.4426950409582302,
        ],
    )  # fmt: skip
    return d.fma(p, t, d.out.value(f"sitofp {d.i} {e} to {d.f}"))


def _log2_by_table(m: Lanes, x: str) -> tuple[str, str]:
    """log2 of a positive float32 to 30 bits, as the sum of two float32, the second at most 1/50 of the first.

    x = 2**e (c + d) with c one of 32 numbers from 3/4 to 3/2, 1 among them, and |d| <= c / 64, c / 47 for the last. Of
    log2(c) the larger part has so few bits that e adds to it exactly; that of 1 + d / c begins with u = d / (c ln 2), of
    which the error is known.
    """
    e, y = exponent(m, x)
    rounded = m.iop("add", m.bits(y), m.int(1 << 17))
    rounded = m.out.intrinsic("smin", "i32", m.lanes, [rounded, m.int(0x3FBFFFFF)])  # below 3/2
    number = m.iop("lshr", rounded, m.int(18))  # of which 5 bits of the fraction count
    d = m.op("fsub", y, m.from_bits(m.iop("and", rounded, m.int(-(1 << 18)))))
    log_high, log_low, inverse_high, inverse_low = (looked_up(m, number, table) for table in _LOG2_TABLES)
    u = m.op("fmul", d, inverse_high)
    lost = m.fma(d, inverse_low, m.fma(d, inverse_high, m.out.value(f"fneg {m.f} {u}")))
    of_c = m.op("fadd", e, log_high)
    high = m.op("fadd", of_c, u)
    rest = m.op("fadd", m.op("fsub", of_c, high), u)  # exact: u is the smaller of the two, or the other is 0
    low = m.fma(m.poly(u, _LOG2_SERIES), m.op("fmul", u, u), m.op("fadd", log_low, lost))
    return high, m.op("fadd", rest, low)


def _log2_tables() -> tuple[list[float], ...]:
    """By bits 18 to 22 of c: log2(c) and 1 / (c ln 2), each as a float32 and what it lacks."""
    logs, inverses = [0.0] * 32, [0.0] * 32
    for bits in range(0x3F400000, 0x3FC00000, 1 << 18):
        c = struct.unpack("f", struct.pack("I", bits))[0]
        logs[bits >> 18 & 31], inverses[bits >> 18 & 31] = math.log2(c), 1 / (c * math.log(2))
    rounded = [round(v * 2**16) / 2**16 for v in logs], [_float32(v) for v in inverses]
    lacking = [[v - r for v, r in zip(exact, near)] for exact, near in zip((logs, inverses), rounded)]
    return rounded[0], lacking[0], rounded[1], lacking[1]


_LOG2_TABLES = _log2_tables()
# (log2(1 + u ln 2) - u) / u**2, fitted to 2e-9 for u from -0.023 to 0.031
_LOG2_SERIES = [0.04575763399378417, -0.08327373447989765, 0.16015115526335613, -0.3465735886973728]


def _exp2_of_double(m: Lanes, d: Doubles, t: str) -> str:
    """2**t as float32, infinite or 0 beyond what that has: 2**n 2**f, of which 2**f = 1 + f p(f) is rounded once."""
    whole = d.call("rint", t)
    f, n = d.narrowed(m, d.op("fsub", t, whole)), d.narrowed(m, whole)
    for how, limit in (("ogt", m.const(129.0)), ("olt", m.const(-150.0))):
        n = m.pick(m.less(how, n, limit), limit, n)
    p = m.poly(f, _EXP2)
    return scaled(m, p, p, n)


_EXP2 = [0.0001545316295, 0.001339086336, 0.009618082557, 0.05550357114, 0.2402265076, 0.693147188, 1.0]


ELEMENTARY: dict[str, Callable[..., str]] = {
    "sin": sin, "cos": cos, "tan": tan, "asin": asin, "acos": acos, "atan": atan, "atan2": atan2, "expm1": expm1,
    "sinh": sinh, "cosh": cosh, "log1p": log1p, "asinh": asinh, "acosh": acosh, "atanh": atanh, "hypot": hypot,
    "fmod": fmod, "pow": power,
}  # fmt: skip
