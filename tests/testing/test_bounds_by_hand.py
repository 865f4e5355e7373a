"""The bound of each operation, against the formula worked out by hand: u is half a unit of float32."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tir
from tir import testing

U, TINY = 2.0**-24, float(np.finfo("float32").tiny)
x, y, z, w = 3.25, -1.75, 0.6875, 2.5  # A[0], A[1], A[2], and a parameter
SUM = U * (abs(x) + abs(y))  # the error of A[0] + A[1]
S, D = x + y, x - y


def by_ends(f, at, error):
    """What a monotone function makes of an error, and eight units of its own."""
    return max(abs(f(at + error) - f(at)), abs(f(at - error) - f(at))) + TINY + 8 * U * abs(f(at))


CASES = [
    ("A[0]", 0.0),
    ("T.float32(-5)", 0.0),
    ("A[0] + A[1]", SUM),
    ("A[0] - A[1]", SUM),
    ("A[0] + A[1] + A[2]", 2 * U * (abs(x) + abs(y) + abs(z))),
    ("A[0] + (A[1] - A[2])", 2 * U * (abs(x) + abs(y) + abs(z))),
    ("(A[0] + A[1]) + (A[2] + A[0])", 3 * U * (2 * abs(x) + abs(y) + abs(z))),
    ("A[0] * A[1]", TINY + U * abs(x * y)),
    ("A[0] * A[1] + A[2]", TINY + 2 * U * (abs(x * y) + abs(z))),
    ("(A[0] + A[1]) * A[2]", SUM * abs(z) + TINY + U * abs(S * z)),
    ("A[2] * (A[0] + A[1])", SUM * abs(z) + TINY + U * abs(S * z)),
    ("(A[0] + A[1]) * (A[0] - A[1])", SUM * abs(D) + SUM * abs(S) + SUM * SUM + TINY + U * abs(S * D)),
    ("A[0] / A[1]", TINY + U * abs(x / y)),
    ("(A[0] + A[1]) / A[2]", SUM / abs(z) + TINY + U * abs(S / z)),
    ("A[2] / (A[0] + A[1])", abs(z / S) * SUM / (abs(S) - SUM) + TINY + U * abs(z / S)),
    ("A[2] / (A[0] - A[0])", math.inf),
    ("T.max(A[0] + A[1], A[2])", SUM),
    ("T.min(A[2], A[0] + A[1])", SUM),
    ("T.min(A[0], A[2])", 0.0),
    ("T.max(A[0] + A[1], A[2]) + A[0]", SUM + U * (max(S, z) + abs(x))),
    ("w", 0.0),
    ("w * A[0]", TINY + U * abs(w * x)),
    ('T.cast(N[0], "float32")', U * 7),
    ('T.cast(N[0], "float32") + A[0]', 2 * U * (7 + abs(x))),
    ('T.cast(H[0], "float32")', 0.0),
    ('T.cast(W[0], "float32")', U * 0.1),
    ('T.cast(T.cast(A[0] + A[1], "float64"), "float32")', 2 * U * (abs(x) + abs(y))),
    ('T.cast(T.cast(A[0], "float16"), "float32")', 2.0**-11 * abs(x)),
    ("T.fabs(A[0] + A[1])", SUM),
    ("T.fabs(A[1]) + A[0]", SUM),
    ("T.fma(A[0], A[1], A[2])", TINY + 2 * U * (abs(x * y) + abs(z))),
    ("T.pow(A[0], T.float32(2))", TINY + 8 * U * x**2),
    ("T.exp(A[0])", TINY + 8 * U * math.exp(x)),
    ("T.exp(A[0] + A[1])", by_ends(math.exp, S, SUM)),
    ("T.log(A[0] + A[1])", by_ends(math.log, S, SUM)),
    ("T.sqrt(A[0] + A[1]) + A[0]", by_ends(math.sqrt, S, SUM) - 8 * U * math.sqrt(S) + 9 * U * (math.sqrt(S) + x)),
    ("T.sin(A[0] + A[1])", SUM + TINY + 8 * U * abs(math.sin(S))),
    ("T.cos(A[0])", TINY + 8 * U * abs(math.cos(x))),
    ("T.floor(A[0])", 0.0),
    ("T.floor(A[0] + A[1])", 0.0),
    ("T.floor(A[0] - T.float32(0.25) + A[1] - A[1])", 1.0),
    ("T.if_then_else(A[0] > A[1], A[0] + A[1], A[2])", SUM),
    ("T.if_then_else(A[0] < A[1], A[0] + A[1], A[2])", 0.0),
    ("T.if_then_else(N[0] > 3, A[2], A[0] + A[1])", SUM),
    ("T.if_then_else(N[0] > -8, A[2], A[0] + A[1])", 0.0),
    ("T.if_then_else(A[0] > A[1] and A[0] + A[1] > T.float32(1.5), A[0], A[2])", abs(x - z)),
    ("T.if_then_else(A[0] + A[1] > T.float32(1.5), A[0], A[2])", abs(x - z)),
    ("T.if_then_else(A[0] + A[1] > T.float32(1), A[0] + A[1], A[2])", SUM),
    ("T.if_then_else(not (A[0] > A[1]), A[0] + A[1], A[2])", 0.0),
    ("T.if_then_else((A[0] > A[1]) == (A[1] > A[0]), A[0] + A[1], A[2])", 0.0),
    ("T.if_then_else((A[0] > A[1]) == (A[0] + A[1] > T.float32(1.5)), A[0], A[2])", abs(x - z)),
    ("T.Select(A[0] > A[1], A[0] + A[1], A[2])", SUM),
    ("T.if_then_else(A[0] > A[1], T.if_then_else(A[1] > A[0], A[2], A[0] + A[1]), A[2])", SUM),
]
HEAD = f"""@T.prim_func
def f(A: T.Buffer((3,), "float32"), w: T.float32, n: T.int32, N: T.Buffer((1,), "int32"), H: T.Buffer((1,), "float16"),
      W: T.Buffer((1,), "float64"), B: T.Buffer(({len(CASES)},), "float32"), M: T.Buffer((2,), "int32")):
"""
INPUTS = [
    np.array([x, y, z], "float32"), w, 5, np.array([-7], "int32"), np.array([0.5], "float16"), np.array([0.1]),
    np.zeros(len(CASES), "float32"), np.zeros(2, "int32"),
]  # fmt: skip


def bounds_of(body: str, engine: str = "interpreter") -> dict[str, np.ndarray]:
    return testing.error_bounds(tir.script.parse(HEAD + body), INPUTS, engine)


@pytest.fixture(scope="module")
def found():
    return bounds_of("".join(f"    B[{n}] = {text}\n" for n, (text, _) in enumerate(CASES)))


@pytest.mark.parametrize("number", range(len(CASES)), ids=[text for text, _ in CASES])
def test_a_value_is_bounded_by_twice_its_error(found, number):
    np.testing.assert_allclose(found["B"][number], 2 * CASES[number][1], rtol=1e-7, atol=1e-300)


def test_bounds_are_of_the_float_buffers(found):
    assert {name: (str(b.dtype), b.shape) for name, b in found.items()} == {
        "A": ("float64", (3,)), "H": ("float64", (1,)), "W": ("float64", (1,)), "B": ("float64", (len(CASES),)),
    }  # fmt: skip
    assert not any(found[name].any() for name in "AHW")
    assert INPUTS[6].tolist() == [0.0] * len(CASES) and INPUTS[7].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("    x: T.float32 = A[0] + A[1]\n    B[0] = x + A[2]\n", 2 * U * (abs(x) + abs(y) + abs(z))),
        ("    k: T.int32 = n - 4\n    B[0] = A[k] + A[0]\n", SUM),
        ("    for k in T.parallel(n - 3):\n        B[k] = A[0] + A[1]\n", SUM),
        ("    if n > 3:\n        B[0] = A[0] + A[1]\n    else:\n        B[0] = A[2]\n", SUM),
        ("    if n > 5:\n        B[0] = A[0] + A[1]\n    else:\n        B[0] = A[2]\n", 0.0),
        ("    M[0] = n\n    M[1] = M[0] + 1\n    B[0] = T.cast(M[1], 'float32')\n", U * 6),
        ("    C = T.alloc_buffer((1,), 'float32')\n    C[0] = A[0] + A[1]\n    B[0] = C[0] - A[2]\n", 2 * U * (abs(x) + abs(y) + abs(z))),
        ("    C = T.alloc_buffer((1,), 'int32')\n    C[0] = n\n    B[0] = A[C[0] - 4] + A[0]\n", SUM),
        ("    B[0] = T.float32(0)\n    for k in range(3):\n        B[0] = B[0] + A[k]\n", 3 * U * (abs(x) + abs(y) + abs(z))),
        ("    for k in range(3):\n        with T.block('B'):\n            vk = T.axis.reduce(3, k)\n            T.where(k < 2)\n            with T.init():\n                B[0] = T.float32(0)\n            B[0] += A[vk]\n", 2 * SUM),
    ],
)  # fmt: skip
def test_statements_keep_the_bounds(body, error):
    np.testing.assert_allclose(bounds_of(body)["B"][0], 2 * error, rtol=1e-7, atol=1e-300)


def test_engines_agree():
    body = "    B[0] = T.exp(A[0] + A[1]) / A[2]\n"
    np.testing.assert_allclose(bounds_of(body, "llvm")["B"], bounds_of(body)["B"], rtol=1e-12)


def test_small_floats_are_given_as_their_bits():
    func = tir.script.parse("""
@T.prim_func
def f(A: T.Buffer((2,), "bfloat16"), B: T.Buffer((1,), "bfloat16")):
    B[0] = A[0] + A[1]
""")
    bits = np.array([0x4040, 0x3F00], "uint16")  # 3 and 0.5
    found = testing.error_bounds(func, [bits, np.zeros(1, "uint16")], "interpreter")
    assert found["B"][0] == 2 * 2.0**-8 * 3.5 and bits.tolist() == [0x4040, 0x3F00]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("    B[0] = A[T.cast(A[0], 'int32')]", "integers, indices, branches and calls that depend on floats"),
        ("    B[T.cast(A[0], 'int32')] = A[0]", "integers, indices, branches and calls that depend on floats"),
        ("    M[0] = T.cast(A[0], 'int32')", "integers, indices, branches and calls that depend on floats"),
        ("    for k in range(T.cast(A[0], 'int32')):\n        B[0] = A[0]", "integers, indices, branches and calls that depend on floats"),
        ("    if A[0] > A[1]:\n        B[0] = A[0]", "integers, indices, branches and calls that depend on floats"),
        ("    with T.block('B'):\n        T.where(A[0] > A[1])\n        B[0] = A[0]", "integers, indices, branches and calls that depend on floats"),
        ("    T.evaluate(T.call_extern('f', A[0], dtype='int32'))", "integers, indices, branches and calls that depend on floats"),
        ("    B[0:2] = A[0:2]", "vectors"),
        ("    B[0] = T.tan(A[0])", "`tir.tan`|`tan`"),
        ("    B[0] = T.pow(A[0], A[1])", "`tir.pow`|`pow`"),
        ("    B[0] = T.if_then_else(T.isnan(A[0]), A[0], A[2])", "this condition on floats"),
        ("    C = T.allocate([2], 'float32', 'global')\n    D = T.decl_buffer((2,), 'float32', data=C)\n    D[0] = A[0]", "views of buffers, and flat memory"),
        ("    with T.block('B'):\n        C = T.match_buffer(A[0:2], (2,), 'float32')\n        B[0] = C[0]", "views of buffers"),
    ],
)  # fmt: skip
def test_what_is_not_followed_is_named(body, what):
    with pytest.raises(tir.RunError, match=f"(?s)^the model of rounding errors does not follow ({what}): `.*`; compare with rtol= and atol=$"):  # fmt: skip
        bounds_of(body + "\n")
