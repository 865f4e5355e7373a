"""Elementary functions of float32 as straight-line code of any number of lanes, and libm for the rest.

exp, exp2, log, log2, log10, tanh, sigmoid, erf (and functions built on them) of float32 are polynomials that LLVM keeps
in vector registers; errors are at most 4 units in the last place (erfc: 5) over the whole range (``tests/cpu/test_llvm_math.py``
measures them). So are those of :mod:`codegen.llvm.elementary`. The rest, and float64, call the C library lane by lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tir.dtype import DType

from .text import FunctionText
from .types import float_constant, splat, vector

F32, F64 = DType("float32"), DType("float64")


class Lanes:
    """float32 arithmetic on ``lanes`` lanes: short names, so that the formulas below read like formulas."""

    def __init__(self, out: FunctionText, lanes: int):
        self.out, self.lanes = out, lanes
        self.f, self.i, self.b = vector("float", lanes), vector("i32", lanes), vector("i1", lanes)

    def const(self, value: float) -> str:
        return splat("float", float_constant(value, F32), self.lanes)

    def consts(self, values: Sequence[float]) -> str:
        return f"<{', '.join(f'float {float_constant(v, F32)}' for v in values)}>"

    def int(self, value: int) -> str:
        return splat("i32", str(value), self.lanes)

    def op(self, name: str, a: str, b: str) -> str:
        return self.out.value(f"{name} {self.f} {a}, {b}")

    def iop(self, name: str, a: str, b: str) -> str:
        return self.out.value(f"{name} {self.i} {a}, {b}")

    def call(self, name: str, *args: str) -> str:
        return self.out.intrinsic(name, "float", self.lanes, args)

    def fma(self, a: str, b: str, c: str) -> str:
        return self.call("fma", a, b, c)

    def less(self, how: str, a: str, b: str) -> str:
        return self.out.value(f"fcmp {how} {self.f} {a}, {b}")

    def compare(self, how: str, a: str, value: int) -> str:
        return self.out.value(f"icmp {how} {self.i} {a}, {self.int(value)}")

    def pick(self, condition: str, a: str, b: str) -> str:
        return self.out.value(f"select {self.b} {condition}, {self.f} {a}, {self.f} {b}")

    def bits(self, a: str) -> str:
        return self.out.value(f"bitcast {self.f} {a} to {self.i}")

    def from_bits(self, a: str) -> str:
        return self.out.value(f"bitcast {self.i} {a} to {self.f}")

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        """A polynomial in ``x``; the coefficient of the highest power comes first."""
        result = self.const(coefficients[0])
        for c in coefficients[1:]:
            result = self.fma(result, x, self.const(c))
        return result


def _power_of_two(m: Lanes, n: str) -> str:
    """2**n for an int32 n in the normal range."""
    biased = m.iop("add", n, m.int(127))
    return m.from_bits(m.iop("shl", biased, m.int(23)))


ZERO_BELOW = -104.0  # exp of what is less is 0 in float32


def exp(m: Lanes, x: str, least: float = ZERO_BELOW) -> str:
    """x = n ln 2 + r, |r| <= ln 2 / 2; e**r by polynomial; 2**n in two factors so that subnormal results are correct.

    AVX-512 multiplies by 2**n in one instruction, which is correct for subnormal and infinite results.
    Where the result is 0 (what a mask leaves out), nothing is made that is too small: processors take a hundred cycles for it.
    Of x below ``least`` it is 0, whatever the power.
    """
    over = m.less("ogt", x, m.const(89.0))
    y = m.pick(over, m.const(89.0), x)
    gone = m.less("olt", x, m.const(least))
    made = _exp_between(m, x, m.pick(gone, m.const(0.0), y))
    return m.pick(gone, m.const(0.0), made)


def _exp_between(m: Lanes, x: str, y: str) -> str:
    """e**y for y from -104 to 89; x where x is nan."""
    nf, less_one = _exp_parts(m, y)
    return scaled(m, x, m.op("fadd", less_one, m.const(1.0)), nf)


def _exp_parts(m: Lanes, y: str) -> tuple[str, str]:
    """(n, e**r - 1) of y = n ln 2 + r with |r| <= ln 2 / 2."""
    nf = _nearest_product(m, y, 1.4426950408889634)
    r = m.fma(nf, m.const(-0.693359375), y)
    r = m.fma(nf, m.const(2.12194440e-4), r)
    return nf, _small_expm1(m, r)


def _nearest_product(m: Lanes, x: str, factor: float) -> str:
    """The integer nearest to x * factor, which is below 2**22."""
    if not _scales(m):
        return m.call("rint", m.op("fmul", x, m.const(factor)))
    shift = m.const(12582912.0)  # adding 1.5 * 2**23 leaves no fraction bits
    return m.op("fsub", m.fma(x, m.const(factor), shift), shift)


def _small_expm1(m: Lanes, r: str) -> str:
    """e**r - 1 for |r| <= ln 2 / 2."""
    p = m.poly(
        r, [1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1]
    )
    return m.fma(p, m.op("fmul", r, r), r)


def half_power(m: Lanes, x: str) -> str:
    """(e**x - 1) / 2, relatively precise near 0 too, and not infinite before it is out of range."""
    y = m.pick(m.less("ogt", x, m.const(89.6)), m.const(89.6), x)
    y = m.pick(m.less("olt", y, m.const(-20.0)), m.const(-20.0), y)
    nf, less_one = _exp_parts(m, y)
    t = _shifted(m, m.const(1.0), m.op("fsub", nf, m.const(2.0)))
    quarter = m.fma(t, less_one, m.op("fsub", t, m.const(0.25)))
    return _nan_kept(m, x, m.op("fadd", quarter, quarter))


def exp2(m: Lanes, x: str) -> str:
    """x = n + r, |r| <= 1/2, both exact; 2**r as e**(r ln 2)."""
    y = m.pick(m.less("ogt", x, m.const(129.0)), m.const(129.0), x)
    y = m.pick(m.less("olt", y, m.const(-150.0)), m.const(-150.0), y)
    nf = m.call("rint", y)
    r = m.op("fmul", m.op("fsub", y, nf), m.const(0.6931471805599453))
    return scaled(m, x, m.op("fadd", _small_expm1(m, r), m.const(1.0)), nf)


def _scales(m: Lanes) -> bool:
    return {16: "+avx512f", 8: "+avx512vl"}.get(m.lanes, "none") in m.out.module.features


def scaled(m: Lanes, x: str, p: str, nf: str) -> str:
    """p * 2**nf for an integer nf from -150 to 129; x where x is nan."""
    if _scales(m):
        return _x86(m, "scalef", [p, nf])
    n = m.out.value(f"fptosi {m.f} {nf} to {m.i}")
    first = m.iop("ashr", n, m.int(1))
    second = m.iop("sub", n, first)
    return _nan_kept(m, x, m.op("fmul", m.op("fmul", p, _power_of_two(m, first)), _power_of_two(m, second)))


def _shifted(m: Lanes, p: str, nf: str) -> str:
    """p * 2**nf for an integer nf, where 2**nf is a normal number."""
    if _scales(m):
        return _x86(m, "scalef", [p, nf])
    return m.op("fmul", p, _power_of_two(m, m.out.value(f"fptosi {m.f} {nf} to {m.i}")))


def _nan_kept(m: Lanes, x: str, r: str) -> str:
    """``r``, which was computed by scaling, and nan where x is that: scaling by AVX-512 keeps it."""
    return r if _scales(m) else m.pick(m.less("uno", x, x), x, r)


def _x86(m: Lanes, name: str, operands: Sequence[str], *immediate: int) -> str:
    """An instruction of AVX-512 on 8 or 16 lanes, rounded as all else."""
    types = [m.f] * len(operands) + ["i32"] * len(immediate) + [m.f, f"i{m.lanes}"]
    values = [*operands, *map(str, immediate), "zeroinitializer", "-1"]
    if m.lanes == 16:  # alone it can be rounded otherwise
        types, values = [*types, "i32"], [*values, "4"]
    return m.out.call(f"llvm.x86.avx512.mask.{name}.ps.{32 * m.lanes}", m.f, list(zip(types, values)))


def has_tables(m: Lanes) -> bool:
    """Whether :func:`looked_up` looks numbers up in registers."""
    return m.lanes == 16 and _scales(m)


def looked_up(m: Lanes, number: str, table: Sequence[float]) -> str:
    """The element of a table of 16 or 32 that the lowest bits of ``number`` choose, on AVX-512."""
    return chosen(m, number, *(m.consts(table[n : n + 16]) for n in range(0, len(table), 16)))


def chosen(m: Lanes, number: str, *tables: str) -> str:
    """The element of a vector of 16, or of two, that the lowest bits of ``number`` choose, on AVX-512."""
    first, *others = ((m.f, table) for table in tables)
    name = "vpermi2var.ps" if others else "permvar.sf"
    return m.out.call(f"llvm.x86.avx512.{name}.512", m.f, [first, (m.i, number), *others])


def log(m: Lanes, x: str) -> str:
    """x = 2**e (1 + t) with t near 0; log(1 + t) by polynomial."""
    return log_edges(m, x, _sum_of_logs(m, *_split(m, x), math.e))


def log_of_normal(m: Lanes, x: str, more: str | None = None) -> str:
    """log(x + more) for x that is a normal number above 0; ``more`` is at most half of the last place of x."""
    e, y = exponent(m, x)
    t = m.op("fsub", y, m.const(1.0))
    if more is not None:
        small = _shifted(m, more, m.out.value(f"fneg {m.f} {e}"))
        t = m.pick(m.less("one", more, m.const(0.0)), m.op("fadd", t, small), t)
    return _sum_of_logs(m, e, t, math.e)


def log2(m: Lanes, x: str) -> str:
    """As log; the exponent is added last, so that powers of two are exact."""
    e, t = _split(m, x)
    return log_edges(m, x, m.fma(t, _log_series(m, t, 2), e))


def log10(m: Lanes, x: str) -> str:
    """As log."""
    return log_edges(m, x, _sum_of_logs(m, *_split(m, x), 10))


def _sum_of_logs(m: Lanes, e: str, t: str, base: float) -> str:
    """The logarithm of 2**e (1 + t). That of 2 is in two parts, neither negative: e may be infinite."""
    two = math.log(2) / math.log(base)
    above = math.floor(two * 2**24) / 2**24
    rest = m.fma(t, _log_series(m, t, base), m.op("fmul", e, m.const(two - above)))
    return m.fma(e, m.const(above), rest)


def _split(m: Lanes, x: str) -> tuple[str, str]:
    """(e, t): x = 2**e (1 + t) with 1 + t in [3/4, 3/2), of subnormal numbers too."""
    if _scales(m):
        e, y = exponent(m, x)
        return e, m.op("fsub", y, m.const(1.0))
    tiny = m.less("olt", x, m.const(1.17549435e-38))
    e, y = exponent(m, m.pick(tiny, m.op("fmul", x, m.const(8388608.0)), x))
    e = m.op("fsub", e, m.pick(tiny, m.const(23.0), m.const(0.0)))
    return e, m.op("fsub", y, m.const(1.0))


def exponent(m: Lanes, x: str) -> tuple[str, str]:
    """(e, y) of a normal number x = 2**e y, with y in [3/4, 3/2).

    AVX-512 has instructions for it, which take every number: of 0 e is -inf, of inf it is inf, with a finite y; where
    x is negative or nan, y is nan.
    """
    if _scales(m):
        y = _x86(m, "getmant", [x], _BETWEEN_3_4_AND_3_2 | _NEGATIVE_IS_NAN)
        return m.op("fsub", _x86(m, "getexp", [x]), _x86(m, "getexp", [y])), y
    bits = m.bits(x)
    # subtracting the bits of 3/4 before splitting puts the mantissa in [3/4, 3/2)
    e = m.iop("ashr", m.iop("sub", bits, m.int(0x3F400000)), m.int(23))
    y = m.from_bits(m.iop("sub", bits, m.iop("shl", e, m.int(23))))
    return m.out.value(f"sitofp {m.i} {e} to {m.f}"), y


_BETWEEN_3_4_AND_3_2, _NEGATIVE_IS_NAN = 3, 8  # of the immediate operand of getmant


def _log_series(m: Lanes, t: str, base: float) -> str:
    """log(1 + t) / t, fitted to 5e-9 for t from -1/4 to 1/2."""
    return m.poly(t, [c / math.log(base) for c in _LOG])


_LOG = [
    -0.044600081050624046, 0.10443450340510554, -0.13189101658487132, 0.14493776266682507, -0.1664580502770713,
    0.19989258240857125, -0.2500007586558048, 0.33333501450933456, -0.5000000117336876, 0.9999999958487892,
]  # fmt: skip


def log_edges(m: Lanes, x: str, r: str) -> str:
    """``r``, except for the logarithm of 0, negative numbers, infinity and nan, where ``exponent`` does not see to them."""
    if _scales(m):
        return r
    r = m.pick(m.less("oeq", x, m.const(math.inf)), x, r)
    r = m.pick(m.less("ult", x, m.const(0.0)), m.const(math.nan), r)
    r = m.pick(m.less("oeq", x, m.const(0.0)), m.const(-math.inf), r)
    return m.pick(m.less("uno", x, x), x, r)


def tanh(m: Lanes, x: str) -> str:
    """With h = e**(2 |x|) - 1, which is relatively precise near 0 too: h / (h + 2), which is 1 in float32 from 9.02 on.

    |x| = n ln(2) / 2 + r; e**(2 r) - 1 by a polynomial, fitted to 1.4e-8. The larger n, the less counts an error of r.
    """
    size = m.call("fabs", x)
    y = m.pick(m.less("ogt", size, m.const(10.0)), m.const(10.0), size)
    nf = _nearest_product(m, y, 2.8853900817779268)
    r = m.fma(nf, m.const(-0.34657359027997264), y)
    p = [0.08884806092047404, 0.267730571780907, 0.6666752286105833, 1.3333234542162504, 1.9999999257618353, 2.0]
    less_one = m.op("fmul", r, m.poly(r, p))
    t = _shifted(m, m.const(1.0), nf)
    h = m.fma(t, less_one, m.op("fsub", t, m.const(1.0)))
    return m.call("copysign", _nan_kept(m, x, quotient(m, h, m.op("fadd", h, m.const(2.0)))), x)


def quotient(m: Lanes, x: str, y: str) -> str:
    """x / y of finite numbers, y with a size from 2**-100 to 2**100: AVX-512 gives 14 bits of 1 / y, and so of the
    quotient; the remainder gives the others."""
    if not _scales(m):
        return m.op("fdiv", x, y)
    operands = [(m.f, y), (m.f, "zeroinitializer"), (f"i{m.lanes}", "-1")]
    inverse = m.out.call(f"llvm.x86.avx512.rcp14.ps.{32 * m.lanes}", m.f, operands)
    rough = m.op("fmul", x, inverse)
    remainder = m.fma(m.out.value(f"fneg {m.f} {y}"), rough, x)
    return m.fma(remainder, inverse, rough)


def sigmoid(m: Lanes, x: str) -> str:
    """1 / (1 + e) or e / (1 + e) with e = exp(-|x|): no overflow, and small results stay precise."""
    e = exp(m, m.out.value(f"fneg {m.f} {m.call('fabs', x)}"))
    above = m.pick(m.less("olt", x, m.const(0.0)), e, m.const(1.0))
    return quotient(m, above, m.op("fadd", m.const(1.0), e))


def erf(m: Lanes, x: str) -> str:
    """An odd polynomial near zero; further out, 1 minus a small polynomial, its even and odd powers summed separately.
    AVX-512 chooses among 16 polynomials."""
    size = m.call("fabs", x)
    if has_tables(m):
        return m.call("copysign", _erf_by_table(m, size), x)
    near = _near_erf(m, x)
    t = m.pick(m.less("ogt", size, m.const(4.0)), m.const(4.0), size)  # erf is 1 in float32 from 3.92 on
    u = m.fma(t, m.const(0.650978095), m.const(-1.60391238))  # [0.9277, 4] to [-1, 1]
    v = m.op("fmul", u, u)
    rest = m.fma(m.poly(v, _ERFC_ODD), u, m.poly(v, _ERFC_EVEN))
    far = m.call("copysign", m.op("fsub", m.const(1.0), rest), x)
    return m.pick(m.less("ogt", size, m.const(0.927734375)), far, near)


def _erf_by_table(m: Lanes, size: str) -> str:
    """The error function of sizes: around each of 16 numbers from 0 to 3.92, a polynomial of the distance to it."""
    step, shift = _ERF_STEP, m.const(12582912.0)  # adding 1.5 * 2**23 leaves no fraction bits
    t = m.pick(m.less("ogt", size, m.const(15 * step)), m.const(15 * step), size)
    shifted = m.fma(t, m.const(1 / step), shift)
    r = m.fma(m.op("fsub", shifted, shift), m.const(-step), t)
    *powers, constant = (looked_up(m, m.bits(shifted), coefficients) for coefficients in _ERF_TABLE)
    slope = powers[0]
    for coefficient in powers[1:]:
        slope = m.fma(slope, r, coefficient)
    return m.fma(slope, r, m.pick(m.less("oeq", shifted, shift), r, constant))  # near 0 an eighth more than r


def _near_erf(m: Lanes, x: str) -> str:
    """The error function for |x| < 0.93."""
    s = m.op("fmul", x, x)
    p = m.poly(s, [-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1])
    return m.fma(p, x, x)


def erfc(m: Lanes, x: str) -> str:
    """e**-(x**2) times a polynomial of 1 / (1 + x / 2) - 1 / 4, fitted to 6e-9, and 2 less that on the negative side.

    What x**2 is rounded by is a factor of the result.
    """
    size = m.call("fabs", x)
    y = m.pick(m.less("ogt", size, m.const(10.1)), m.const(10.1), size)  # erfc is 0 in float32 from 10.06 on
    t = quotient(m, m.const(1.0), m.fma(y, m.const(0.5), m.const(1.0)))
    square = m.op("fmul", y, y)
    less = m.out.value(f"fneg {m.f} {square}")
    rounded = m.fma(y, y, less)
    p = m.poly(m.op("fsub", t, m.const(0.25)), _ERFC_SCALED)  # moved, so that little cancels
    p = m.fma(m.out.value(f"fneg {m.f} {rounded}"), p, p)
    tail = m.op("fmul", _exp_between(m, x, less), p)
    return m.pick(m.less("olt", x, m.const(0.0)), m.op("fsub", m.const(2.0), tail), tail)


_ERF_STEP = 0.2613333463668823
# by powers, the highest first, of each number; of 0, that of the distance itself is less 1
_ERF_TABLE = [
    [0.110965542, 0.0767983943, 0.00079575862, -0.0577095635, -0.0669046491, -0.0397153087,
     -0.00764988456, 0.00995263364, 0.0127533907, 0.00878807995, 0.00439725816,
     0.00173136836, 0.00055548246, 0.00014798234, 3.31153351e-05, 6.27300506e-06],
    [0.000290219643, 0.130371228, 0.182272777, 0.14062041, 0.0539244637, -0.0179141648,
     -0.0479377471, -0.0445834287, -0.0285685677, -0.0141989058, -0.00572401332,
     -0.00191397348, -0.000537795248, -0.000128048618, -2.59837961e-05, -4.51229653e-06],
    [-0.376142412, -0.303308785, -0.129840314, 0.0466416925, 0.149500221, 0.164702967,
     0.126052946, 0.0753923953, 0.0368068665, 0.0149837527, 0.00514873117,
     0.00150491053, 0.000376106473, 8.06687531e-05, 1.48894624e-05, 2.36991764e-06],
    [3.20132244e-07, -0.27540949, -0.448777765, -0.478438437, -0.395501763, -0.267375112,
     -0.151370808, -0.0726782009, -0.0298184082, -0.0105049899, -0.0031884457,
     -0.000835720974, -0.000189495651, -3.72191207e-05, -6.33878699e-06, -9.36849801e-07],
    [0.128379166, 1.05388904, 0.858646274, 0.610257804, 0.37834847, 0.204621017,
     0.0965357348, 0.0397288129, 0.0142627303, 0.00446662446, 0.00122021371,
     0.000290785101, 6.04488851e-05, 1.09618659e-05, 1.73404726e-06, 2.39286322e-07],
    [0.0, 0.288305402, 0.540191531, 0.732459128, 0.86067909, 0.935384035,
     0.973410189, 0.990320385, 0.996890008, 0.999119699, 0.999780834,
     0.999952078, 0.999990821, 0.99999845, 0.999999762, 1.0],
]  # fmt: skip

_ERFC_SCALED = [
    0.0274877029, -0.139644591, 0.245211075, -0.104489457, -0.139338257, -0.0302064643, 0.23396098, 0.463823577,
    0.544668675, 0.481931287, 0.0927765675,
]  # fmt: skip

_ERFC_EVEN = [
    -0.000435414287, 0.00296139764, -0.00559013709, -0.0107334349, 0.0384354033, 0.0544807911, 0.0151539957,
    0.000493223139,
]  # fmt: skip
_ERFC_ODD = [3.66304994e-05, -0.00290922518, 0.0143755553, -0.00961774774, -0.057551641, -0.0350957438, -0.00400364818]


INLINE: dict[str, Callable[[Lanes, str], str]] = {
    "exp": exp, "exp2": exp2, "log": log, "log2": log2, "log10": log10, "tanh": tanh, "erfc": erfc, "sigmoid": sigmoid,
    "erf": erf,
}  # fmt: skip

# operators that are LLVM intrinsics for float16/32/64
INTRINSIC = {
    "sqrt": "sqrt", "fabs": "fabs", "abs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "round",
    "nearbyint": "rint", "fma": "fma", "copysign": "copysign",
}  # fmt: skip

_UNARY = "exp exp2 log log2 log10 log1p expm1 erf erfc sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
_BINARY = "pow atan2 fmod hypot"
LIBM = frozenset(f"{_UNARY} {_BINARY}".split())  # functions of the C library


def libm(out: FunctionText, name: str, dtype: DType, args: Sequence[str]) -> str:
    """The C library's ``name`` (float32 or float64), lane by lane."""
    element = "float" if dtype.bits == 32 else "double"
    function = out.module.declare(name + ("f" if dtype.bits == 32 else ""), element, [element] * len(args))

    def one(*parts: str) -> str:
        return f"call {element} {function}({', '.join(f'{element} {p}' for p in parts)}) nounwind memory(none)"

    return by_lane(out, [(a, element) for a in args], dtype.lanes, element, one)


def by_lane(
    out: FunctionText, args: Sequence[tuple[str, str]], lanes: int, element: str, one: Callable[..., str]
) -> str:
    """The instruction ``one`` of the scalars of each lane, its results as a vector. ``args`` are (operand, element type)."""
    if lanes == 1:
        return out.value(one(*(a for a, _ in args)))
    result, type_ = "poison", vector(element, lanes)
    for lane in range(lanes):
        parts = [out.value(f"extractelement {vector(t, lanes)} {a}, i64 {lane}") for a, t in args]
        result = out.value(f"insertelement {type_} {result}, {element} {out.value(one(*parts))}, i64 {lane}")
    return result
