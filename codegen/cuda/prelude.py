"""C++ helpers for kernels: vectors, small floats, floor division. A kernel's text includes those it uses.

No header is included: ``cuda_fp16.h`` and the like come from another wheel, and NVRTC takes longer to read them than to
compile a kernel. The conversions and operations needed are one PTX instruction each, written inline here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tir.small_floats import SMALL_FLOATS, SmallFloat

from .prelude_copies import COPIES_AND_BARRIERS, copy_async, tensor_copies

INLINE = "__device__ __forceinline__"

# Parts, each under its name and what it needs; `DEVICE` stands for the qualifiers.
_VECTORS_AND_NUMBERS = r"""
=== vec
// N values of one type, aligned so that memory is accessed up to 16 bytes at a time.
template <class T, int N>
struct alignas(sizeof(T) * N >= 16 ? 16 : sizeof(T) * N >= 8 ? 8 : sizeof(T) * N >= 4 ? 4 : sizeof(T)) vec {
  T lane[N];
  DEVICE T& operator[](int i) { return lane[i]; }
  DEVICE const T& operator[](int i) const { return lane[i]; }
};
=== wrapping
// what sums and products of a type are computed in, to wrap around: C leaves those of int undefined where they overflow
template <class T> DEVICE T wrapping(T x) { return x; }
DEVICE unsigned wrapping(int x) { return x; }
DEVICE unsigned wrapping(unsigned short x) { return x; }
DEVICE unsigned long long wrapping(long long x) { return x; }
=== hidden
// NVVM takes (int)(signed char)(a - b) in one index for (int)a - (int)b in another; it does not see what passes an asm
template <class T> DEVICE T hidden(int x) {
  asm("" : "+r"(x));
  return (T)x;
}
=== opaque: hidden
// x; NVVM widens a sum or negative of bytes that were loaded 16 at once wrongly, in one lane of four, unless it is hidden
template <class T> DEVICE T opaque(T x) { return x; }
DEVICE signed char opaque(signed char x) { return hidden<signed char>(x); }
=== magnitude: wrapping
template <class T> DEVICE T magnitude(T x) { return x < 0 ? (T)(wrapping((T)0) - wrapping(x)) : x; }
=== vec_operators: vec wrapping opaque
#define TIR_VECTOR_OPERATOR(op, in, out)                                 \
  template <class T, int N>                                              \
  DEVICE vec<T, N> operator op(vec<T, N> a, vec<T, N> b) {               \
    vec<T, N> r;                                                         \
    _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = out((T)(in(a[i]) op in(b[i]))); \
    return r;                                                            \
  }
#define TIR_VECTOR_TEST(op)                                              \
  template <class T, int N>                                              \
  DEVICE vec<bool, N> operator op(vec<T, N> a, vec<T, N> b) {            \
    vec<bool, N> r;                                                      \
    _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = a[i] op b[i];   \
    return r;                                                            \
  }
TIR_VECTOR_OPERATOR(+, wrapping, opaque) TIR_VECTOR_OPERATOR(-, wrapping, opaque) TIR_VECTOR_OPERATOR(*, wrapping, opaque) TIR_VECTOR_OPERATOR(/, , opaque) TIR_VECTOR_OPERATOR(%, , )
TIR_VECTOR_OPERATOR(&, , ) TIR_VECTOR_OPERATOR(|, , ) TIR_VECTOR_OPERATOR(^, , ) TIR_VECTOR_OPERATOR(<<, , ) TIR_VECTOR_OPERATOR(>>, , )
TIR_VECTOR_TEST(==) TIR_VECTOR_TEST(!=) TIR_VECTOR_TEST(<) TIR_VECTOR_TEST(<=) TIR_VECTOR_TEST(>) TIR_VECTOR_TEST(>=)
TIR_VECTOR_TEST(&&) TIR_VECTOR_TEST(||)
template <class T, int N, class S>
DEVICE vec<T, N> operator>>(vec<T, N> a, S b) { _Pragma("unroll") for (int i = 0; i < N; ++i) a[i] = a[i] >> b; return a; }
template <class T, int N, class S>
DEVICE vec<T, N> operator&(vec<T, N> a, S b) { _Pragma("unroll") for (int i = 0; i < N; ++i) a[i] = a[i] & b; return a; }
template <class T, int N>
DEVICE vec<bool, N> operator!(vec<T, N> a) { vec<bool, N> r; _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = !a[i]; return r; }
template <class T, int N>
DEVICE vec<T, N> operator~(vec<T, N> a) { _Pragma("unroll") for (int i = 0; i < N; ++i) a[i] = ~a[i]; return a; }
=== each: vec opaque
// f of the lanes of one vector or more
template <class F, class T, int N>
DEVICE auto each(F f, vec<T, N> a) {
  vec<decltype(f(a[0])), N> r;
  _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = opaque(f(a[i]));
  return r;
}
template <class F, class T, class U, int N>
DEVICE auto each(F f, vec<T, N> a, vec<U, N> b) {
  vec<decltype(f(a[0], b[0])), N> r;
  _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = opaque(f(a[i], b[i]));
  return r;
}
template <class F, class T, class U, class V, int N>
DEVICE auto each(F f, vec<T, N> a, vec<U, N> b, vec<V, N> c) {
  vec<decltype(f(a[0], b[0], c[0])), N> r;
  _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = opaque(f(a[i], b[i], c[i]));
  return r;
}
=== convert: vec widened opaque
template <class U, class T, int N>
DEVICE vec<U, N> convert(vec<T, N> a) {
  vec<U, N> r;
  _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = opaque((U)widened(a[i]));
  return r;
}
=== to_integer
template <class U, class T>
DEVICE U to_integer(T x) {  // the instructions for 64 bits give the least integer for nan
  return x == x ? sizeof(U) < 4 ? (U)(int)x : (U)x : (U)0;
}
=== to_integers: vec to_integer widened
template <class U, class T, int N>
DEVICE vec<U, N> to_integers(vec<T, N> a) {
  vec<U, N> r;
  _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = to_integer<U>(widened(a[i]));
  return r;
}
=== widened
template <class T> DEVICE T widened(T x) { return x; }
=== ramp: vec
template <int N, class T>
DEVICE vec<T, N> ramp(T base, T stride) {
  vec<T, N> r;
  _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = base + i * stride;
  return r;
}
=== broadcast: vec
template <int N, class T>
DEVICE vec<T, N> broadcast(T x) {
  vec<T, N> r;
  _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = x;
  return r;
}
=== select: vec
template <class T, int N>
DEVICE vec<T, N> select(vec<bool, N> c, vec<T, N> a, vec<T, N> b) {
  _Pragma("unroll") for (int i = 0; i < N; ++i) a[i] = c[i] ? a[i] : b[i];
  return a;
}
=== gather: vec
template <class T, class I, int N>
DEVICE vec<T, N> gather(const T* p, vec<I, N> at) {
  vec<T, N> r;
  _Pragma("unroll") for (int i = 0; i < N; ++i) r[i] = p[at[i]];
  return r;
}
=== scatter: vec
template <class T, class I, int N>
DEVICE void scatter(T* p, vec<I, N> at, vec<T, N> x) {
  _Pragma("unroll") for (int i = 0; i < N; ++i) p[at[i]] = x[i];
}
=== load_lanes: vec
// N neighbours whose address is aligned to K of them only
template <int N, int K, class T>
DEVICE vec<T, N> load_lanes(const T* p) {
  vec<T, N> r;
  _Pragma("unroll") for (int i = 0; i < N; i += K) {
    const vec<T, K> part = *(const vec<T, K>*)(p + i);
    _Pragma("unroll") for (int j = 0; j < K; ++j) r[i + j] = part[j];
  }
  return r;
}
=== store_lanes: vec
template <int K, class T, int N>
DEVICE void store_lanes(T* p, vec<T, N> x) {
  _Pragma("unroll") for (int i = 0; i < N; i += K) {
    vec<T, K> part;
    _Pragma("unroll") for (int j = 0; j < K; ++j) part[j] = x[i + j];
    *(vec<T, K>*)(p + i) = part;
  }
}
=== bits_to
// the same bits as another type
template <class U, class T>
DEVICE U bits_to(T x) {
  static_assert(sizeof(U) == sizeof(T), "reinterpret keeps the size");
  U r;
  memcpy(&r, &x, sizeof(U));
  return r;
}
=== next_after
// the small float next to x on the way to y, by its bits; `sign` is the bit of the sign, 0 where the type has none
template <int sign, bool has_minus_zero, class T>
DEVICE T next_after(T x, T y) {
  const float a = (float)x, b = (float)y;
  if (a != a) return x;
  if (b != b || a == b) return y;
  if (a == 0) return T::of_bits((b < 0 ? sign : 0) | 1);
  const int bits = x.bits + ((a < b) == (a > 0) ? 1 : -1);
  return T::of_bits(!has_minus_zero && bits == sign ? 0 : bits);
}
=== mixed_dp4a
// the sum and four products of bytes, one side signed and the other not, which __dp4a has no overload for
DEVICE int mixed_dp4a(int a, unsigned b, int sum) {
  int r;
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
}
DEVICE int mixed_dp4a(unsigned a, int b, int sum) { return mixed_dp4a(b, a, sum); }
=== floordiv
template <class T> DEVICE T floordiv(T a, T b) { T q = a / b, r = a % b; return r != 0 && (r < 0) != (b < 0) ? q - 1 : q; }
=== floormod
template <class T> DEVICE T floormod(T a, T b) { T r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
=== minimum
// nan if either is nan
template <class T> DEVICE T minimum(T a, T b) { return a != a ? a : a < b ? a : b != b ? b : a < b ? a : b; }
template <> DEVICE float minimum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a != a || a < b ? a : b;
#endif
}
=== maximum
// nan if either is nan
template <class T> DEVICE T maximum(T a, T b) { return a != a ? a : a > b ? a : b != b ? b : a > b ? a : b; }
template <> DEVICE float maximum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a != a || a > b ? a : b;
#endif
}
=== float16
struct half {
  unsigned short bits;
  half() = default;
  DEVICE explicit half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  DEVICE explicit half(double x) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); }
  DEVICE explicit half(int x) : half((float)x) {}
  DEVICE explicit half(unsigned x) : half((float)x) {}
  DEVICE explicit half(long long x) : half((float)x) {}
  DEVICE explicit half(unsigned long long x) : half((float)x) {}
  DEVICE explicit half(bool x) : half((float)x) {}
  DEVICE static half of_bits(unsigned short b) { half h; h.bits = b; return h; }
  DEVICE operator float() const { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits)); return r; }
};
#define TIR_HALF_OPERATOR(op, name) \
  DEVICE half operator op(half a, half b) { half r; asm(name ".f16 %0, %1, %2;" : "=h"(r.bits) : "h"(a.bits), "h"(b.bits)); return r; }
TIR_HALF_OPERATOR(+, "add.rn") TIR_HALF_OPERATOR(-, "sub.rn") TIR_HALF_OPERATOR(*, "mul.rn")
DEVICE half operator/(half a, half b) { return half((float)a / (float)b); }
=== bfloat16
struct bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  DEVICE explicit bfloat16(float x) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
    unsigned u = __float_as_uint(x);
    bits = x != x ? 0x7fff : (u + 0x7fff + ((u >> 16) & 1)) >> 16;
#endif
  }
  template <class T> DEVICE explicit bfloat16(T x) : bfloat16((float)x) {}
  DEVICE static bfloat16 of_bits(unsigned short b) { bfloat16 h; h.bits = b; return h; }
  DEVICE operator float() const { return __uint_as_float((unsigned)bits << 16); }
};
#define TIR_BFLOAT_OPERATOR(op) \
  DEVICE bfloat16 operator op(bfloat16 a, bfloat16 b) { return bfloat16((float)a op (float)b); }
TIR_BFLOAT_OPERATOR(+) TIR_BFLOAT_OPERATOR(-) TIR_BFLOAT_OPERATOR(*) TIR_BFLOAT_OPERATOR(/)
"""


_INSTRUCTIONS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}  # in the names of conversions, from sm_89 on


def _small_float(name: str, small: SmallFloat) -> str:
    """A float of at most 8 bits, converted by arithmetic on bits; by instructions, which saturate, where there are any."""
    narrow = f"    {_narrow(small, small.top if name in _INSTRUCTIONS else small.above)}"
    if name in _INSTRUCTIONS:
        narrow = f"""#if __CUDA_ARCH__ >= 890
    unsigned short pair;
    asm("cvt.rn.satfinite.{_INSTRUCTIONS[name]}x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    bits = pair & 0xff;
#else
{narrow}
#endif"""
    return f"""
struct {name} {{
  unsigned char bits;
  {name}() = default;
  DEVICE explicit {name}(float x) {{
{narrow}
  }}
  template <class T> DEVICE explicit {name}(T x) : {name}((float)x) {{}}
  DEVICE static {name} of_bits(unsigned char b) {{ {name} h; h.bits = b; return h; }}
  DEVICE operator float() const {{
    {_widen(small)}
  }}
}};
#define TIR_{name.upper()}_OPERATOR(op) \\
  DEVICE {name} operator op({name} a, {name} b) {{ return {name}((float)a op (float)b); }}
TIR_{name.upper()}_OPERATOR(+) TIR_{name.upper()}_OPERATOR(-) TIR_{name.upper()}_OPERATOR(*) TIR_{name.upper()}_OPERATOR(/)
"""


def _narrow(small: SmallFloat, above: int) -> str:
    """Statements that round a float ``x`` to ``bits``; ``above`` is what becomes of numbers that are too great."""
    if not small.signed:  # an exponent alone
        return f"""const unsigned u = __float_as_uint(x);
    bits = u - 1 >= 0x7f800000 ? {small.nan:#x} : u == 0x400000 ? 0 : (u + 0x400000) >> 23;"""
    least, sign = 1 - small.bias, 1 << (small.bits - 1)
    zero = "" if small.has_negative_zero else "code == 0 ? 0 : "
    return f"""const unsigned u = __float_as_uint(x), sign = (u >> {32 - small.bits}) & {sign:#x};
    const float m = __uint_as_float(u & 0x7fffffff);
    if (m != m) {{ bits = {small.nan:#x}; return; }}
    int e = (int)(__float_as_uint(m) >> 23) - 127;
    if (e < {least}) e = {least};  // below it, numbers are evenly spaced
    const float unit = __uint_as_float((unsigned)(e - {small.fraction} + 127) << 23);
    const int steps = __float2int_rn(__fdiv_rn(m < 1e5f ? m : 1e5f, unit));
    const int code = steps + ((e - {least}) << {small.fraction});
    bits = {zero}sign | (code > {small.top:#x} ? {above:#x} : code);"""


def _widen(small: SmallFloat) -> str:
    """Statements that return the float that ``bits`` stand for."""
    if not small.signed:
        return f"""return __uint_as_float(bits == {small.nan:#x} ? 0x7fffffff : bits == 0 ? 0x400000 : (unsigned)bits << 23);"""
    sign, fraction, least = 1 << (small.bits - 1), small.fraction, 1 - small.bias
    lines = [
        f"const unsigned sign = (unsigned)(bits & {sign:#x}) << {32 - small.bits}, code = bits & {sign - 1:#x};",
        f"const unsigned e = code >> {fraction}, f = code & {(1 << fraction) - 1:#x};",
    ]
    if small.has_infinity:
        lines.append(f"if (code == {small.above:#x}) return __uint_as_float(0x7f800000 | sign);")
        lines.append(f"if (code > {small.above:#x}) return __uint_as_float(0x7fffffff);")
    elif small.has_nan:
        pattern = "code" if small.has_negative_zero else f"(bits & {2 * sign - 1:#x})"
        lines.append(f"if ({pattern} == {small.nan:#x}) return __uint_as_float(0x7fffffff);")
    lines += [
        f"const float m = e == 0 ? (float)f * {2.0 ** (least - fraction)!r}f",
        f"                       : __uint_as_float((e + {127 - small.bias}) << 23 | f << {23 - fraction});",
        "return __uint_as_float(__float_as_uint(m) | sign);",
    ]
    return "\n    ".join(lines)


_WARPS_AND_MATRICES = r"""
=== shuffle
// the shuffles of a warp, for types that they do not know
#define TIR_SHUFFLE(name)                                                              \
  template <class T, class I>                                                          \
  DEVICE T shuffle##name(unsigned mask, T x, I lane, int width) {                      \
    if constexpr (sizeof(T) < 4) {                                                     \
      unsigned short wide = 0;                                                         \
      memcpy(&wide, &x, sizeof(T));                                                    \
      wide = (unsigned short)__shfl##name##_sync(mask, (unsigned)wide, lane, width);   \
      memcpy(&x, &wide, sizeof(T));                                                    \
      return x;                                                                        \
    } else {                                                                           \
      return __shfl##name##_sync(mask, x, lane, width);                                \
    }                                                                                  \
  }
TIR_SHUFFLE() TIR_SHUFFLE(_up) TIR_SHUFFLE(_down) TIR_SHUFFLE(_xor)
=== atomic_add_half: float16
DEVICE half atomicAdd(half* p, half x) {
  half r;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(r.bits) : "l"(p), "h"(x.bits) : "memory");
  return r;
}
=== atomic_add_bfloat16: bfloat16
DEVICE bfloat16 atomicAdd(bfloat16* p, bfloat16 x) {
#if __CUDA_ARCH__ >= 900
  bfloat16 r;
  asm volatile("atom.add.noftz.bf16 %0, [%1], %2;" : "=h"(r.bits) : "l"(p), "h"(x.bits) : "memory");
  return r;
#else  // compare and swap the word that holds it
  unsigned* word = (unsigned*)((unsigned long long)p & ~3ull);
  const unsigned shift = ((unsigned long long)p & 2) * 8;
  unsigned seen = *word, before;
  do {
    before = seen;
    const bfloat16 sum = bfloat16::of_bits(before >> shift) + x;
    seen = atomicCAS(word, before, (before & ~(0xffffu << shift)) | (unsigned)sum.bits << shift);
  } while (seen != before);
  return bfloat16::of_bits(before >> shift);
#endif
}
=== atomic_add_int64
DEVICE long long atomicAdd(long long* p, long long x) { return (long long)atomicAdd((unsigned long long*)p, (unsigned long long)x); }
=== shared_address
DEVICE unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
=== fill
template <int N, class T, class U>
DEVICE void fill(T* registers, U x) { _Pragma("unroll") for (int i = 0; i < N; ++i) registers[i] = x; }
=== mma_store_16x16
// Sums of mma.sync, two tiles of 16 x 8: a lane has rows lane / 4 and 8 on, columns 2 (lane % 4) and the next.
template <class T, class S>
DEVICE void mma_store_16x16(T* out, const S* sums, int stride) {
  const int lane = threadIdx.x & 31;
  _Pragma("unroll") for (int r = 0; r < 8; ++r) {
    out[(r % 4 / 2 * 8 + lane / 4) * stride + r / 4 * 8 + lane % 4 * 2 + r % 2] = (T)sums[r];
  }
}
=== mma_store_16x16_pairs: vec
// The same, with two neighbours stored at once: rows begin at even elements.
template <class T, class S>
DEVICE void mma_store_16x16_pairs(T* out, const S* sums, int stride) {
  const int lane = threadIdx.x & 31;
  _Pragma("unroll") for (int r = 0; r < 8; r += 2) {
    vec<T, 2> pair;
    pair[0] = (T)sums[r];
    pair[1] = (T)sums[r + 1];
    *(vec<T, 2>*)&out[(r % 4 / 2 * 8 + lane / 4) * stride + r / 4 * 8 + lane % 4 * 2] = pair;
  }
}
"""


def _parts(text: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """Name -> (what it needs, text) of a text in sections: ``=== name: needed needed``."""
    _, *sections = re.split(r"^=== (\w+)(?:: (.+))?(?=\n)", text, flags=re.M)
    return {
        name: (tuple((needs or "").split()), body)
        for name, needs, body in zip(sections[::3], sections[1::3], sections[2::3])
    }


_PARTS = {
    **_parts(_VECTORS_AND_NUMBERS),
    **{name: ((), _small_float(name, small)) for name, small in SMALL_FLOATS.items() if small.bits <= 8},
    **_parts(_WARPS_AND_MATRICES),
    **{f"copy_async_{size}": (("shared_address",), copy_async(size)) for size in (4, 8, 16)},
    **_parts(COPIES_AND_BARRIERS),
    **{f"tensor_copies_{rank}": (("tensor_map", "shared_address"), tensor_copies(rank)) for rank in range(1, 6)},
}


def part_names() -> list[str]:
    return list(_PARTS)


def functions_text(functions: Iterable[str]) -> str:
    """Types one per line, functions separated by empty lines."""
    made = sorted(functions, key=lambda f: not f.startswith("using"))  # types before what takes them
    return "".join("\n" * (not f.startswith("using") or k == 0) + f + "\n" for k, f in enumerate(made))


def prelude(helpers: Iterable[str], functions: Iterable[str] = ()) -> str:
    """The text of ``helpers`` and their dependencies, each once, definitions first; then that of ``functions``."""
    wanted: dict[str, None] = {}

    def want(name: str) -> None:
        for other in _PARTS[name][0]:
            want(other)
        wanted.setdefault(name)

    # types come first: templates that mention lanes of small floats are instantiated after them
    for name in sorted(helpers, key=list(_PARTS).index):
        want(name)
    text = "".join(_PARTS[name][1] for name in wanted)
    text += functions_text(functions)
    return text.replace("DEVICE", INLINE).lstrip("\n")
