from tir.script import tir as T


@T.prim_func
def constants(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0] = 0.1
    B[1] = T.float32(1e-30)
    B[2] = T.float32("inf")
    B[3] = T.float32("-inf")
    B[4] = T.float32("nan")
    B[5] = -0.0
    B[6] = T.float32(3)
    B[7] = 16777217.0
    B[8] = 3.4028234663852886e38
    B[9] = T.infinity("float32")
    B[10] = T.min_value("float32")
    B[11] = T.max_value("float32")
    B[12] = T.FloatImm("float32", 1e300)


@T.prim_func
def arithmetic_f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0] = A[0] + 1.0
    B[1] = 2.0 - A[1] * 0.5
    B[2] = A[2] / 3.0 / A[3]
    B[3] = A[2] / (3.0 / A[3])
    B[4] = -A[0]
    B[5] = T.float32(1) + T.float32(2)
    B[6] = T.float32(2) * T.float32(3) * A[1]
    B[7] = A[0] * 1.0 + 0.0


@T.prim_func
def math(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0] = T.exp(A[0]) + T.exp2(A[0]) + T.exp10(A[0]) + T.log(A[1]) + T.log2(A[1]) + T.log10(A[1]) + T.log1p(A[1])
    B[1] = T.sqrt(A[0]) * T.rsqrt(A[0]) - T.sigmoid(A[1])
    B[2] = T.sin(A[0]) + T.cos(A[0]) + T.tan(A[0]) + T.asin(A[0]) + T.acos(A[0]) + T.atan(A[0])
    B[3] = T.sinh(A[0]) + T.cosh(A[0]) + T.tanh(A[0]) + T.asinh(A[0]) + T.acosh(A[0]) + T.atanh(A[0])
    B[4] = T.floor(A[0]) + T.ceil(A[0]) + T.trunc(A[0]) + T.round(A[0]) + T.nearbyint(A[0])
    B[5] = (
        T.pow(A[0], A[1])
        + T.atan2(A[0], 2.0)
        + T.fmod(A[0], A[1])
        + T.hypot(A[0], A[1])
        + T.copysign(A[0], A[1])
        + T.nextafter(A[0], A[1])
    )
    B[6] = T.erf(A[0]) + T.fabs(A[1]) + T.abs(A[2]) + T.fma(A[0], A[1], A[2])
    B[7] = T.ldexp(A[0], 3)


@T.prim_func
def classify(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0] = T.Select(T.isnan(A[0]), T.float32(0), A[0])
    B[1] = T.Select(T.isinf(A[0]) or not T.isfinite(A[1]), T.float32(0), A[0])


@T.prim_func
def clip(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = T.max(T.min(A[i], 6.0), 0.0)


@T.prim_func
def half_and_double(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    h: T.float16 = T.Cast("float16", A[0]) * T.float16(0.5)
    d: T.float64 = T.Cast("float64", A[1]) + T.float64(1e-300)
    B[0] = T.Cast("float32", h) + T.Cast("float32", d)


@T.prim_func
def brain(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    h: T.bfloat16 = T.Cast("bfloat16", A[0]) + T.bfloat16(1)
    B[0] = T.Cast("float32", h)


@T.prim_func
def reinterpret(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0] = T.reinterpret("float32", T.reinterpret("int32", A[0]) & 2147483647)


@T.prim_func
def extern(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0] = T.call_pure_extern("float32", "sinf", A[0])
    B[1] = T.call_extern("float32", "next_random", T.address_of(A[0]), 3)
    B[2] = T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", A[0])
