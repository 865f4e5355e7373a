"""x86 dot products: VNNI bytes and int16, and bf16, at 256 and 512 bits; and transposes of square tiles in registers.

Each instruction adds to every lane of an accumulator the dot product of two short groups: one of the left operand, the
same for all lanes, and one of the right operand, another for each lane.
"""

# pyright: reportInvalidTypeForm=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from collections.abc import Callable

from ..dtype import DType
from ..expr import Expr
from ..function import PrimFunc
from ..script import tir as T
from .tensor_intrin import TensorIntrin


def _dot(lanes: int, group: int, left: str, right: str, out: str):
    """The computation of an instruction: C[i] += sum over k of A[k] * B[i, k]."""

    @T.prim_func
    def desc(
        A: T.Buffer((group,), left, offset_factor=1),
        B: T.Buffer((lanes, group), right, offset_factor=1),
        C: T.Buffer((lanes,), out, offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            for i in range(lanes):
                for k in range(group):
                    with T.block("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        C[vi] = C[vi] + T.cast(A[vk], out) * T.cast(B[vi, vk], out)

    return desc


_Product = Callable[
    [Expr, Expr, Expr], Expr
]  # of the sums, the left group as an int32, and the right groups: the new sums


def _instruction(
    lanes: int, group: int, left: str, right: str, out: str, product: _Product
) -> tuple[PrimFunc, PrimFunc]:
    """:func:`_dot`, and an implementation by ``product``."""

    @T.prim_func
    def impl(
        A: T.Buffer((group,), left, offset_factor=1),
        B: T.Buffer((lanes, group), right, offset_factor=1),
        C: T.Buffer((lanes,), out, offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            flat = T.decl_buffer((lanes * group,), right, data=B.data, elem_offset=B.elem_offset)
            C[T.ramp(0, 1, lanes)] = product(
                C[T.ramp(0, 1, lanes)],
                T.reinterpret("int32", A[T.ramp(0, 1, group)]),
                flat[T.ramp(0, 1, lanes * group)],
            )

    return _dot(lanes, group, left, right, out), impl


def _called(name: str, lanes: int, out: str, kind: str) -> _Product:
    """LLVM's intrinsic of this name for ``lanes`` sums; its operands are vectors of this kind, or an int32 for every sum."""

    def operand(value: Expr) -> Expr:
        vector = value if value.dtype.lanes > 1 else T.broadcast(value, lanes)
        return vector if vector.dtype == kind else T.reinterpret(kind, vector)

    return lambda sums, a, b: T.call_llvm_pure_intrin(
        f"{out}x{lanes}", f"llvm.x86.{name}.{lanes * 32}", sums, operand(a), operand(b)
    )


def _of_bytes(lanes: int, left: str, right: str) -> tuple[PrimFunc, PrimFunc]:
    """vpdpbusd adds four products of uint8 by int8. Of int8 by uint8 the operands change places. Of int8 by int8 it is
    ``(a + 128) * b - 128 * b``, of uint8 by uint8 ``a * (b - 128) - a * -128``: the second product is that of all rows with a column, or
    of a row with all columns, and is computed once where these are straight code."""
    kind = f"int32x{lanes}"
    add = _called("avx512.vpdpbusd", lanes, "int32", kind)
    none, flip = (
        T.int32(0),
        T.int32(-0x7F7F7F80),
    )  # four bytes 0x80: x ^ 0x80 is x + 128 of an int8, and x - 128 of a uint8
    products: dict[tuple[str, str], _Product] = {
        ("uint8", "int8"): add,
        ("int8", "uint8"): lambda sums, a, b: add(sums, b, a),
        ("int8", "int8"): lambda sums, a, b: add(sums, a ^ flip, b) - add(T.broadcast(none, lanes), flip, b),
        ("uint8", "uint8"): lambda sums, a, b: (
            add(sums, a, T.reinterpret(kind, b) ^ T.broadcast(flip, lanes)) - add(T.broadcast(none, lanes), a, flip)
        ),
    }
    return _instruction(lanes, 4, left, right, "int32", products[left, right])


def _of_int16(lanes: int) -> tuple[PrimFunc, PrimFunc]:
    """vpdpwssd: two int16 by int16 products added to each of ``lanes`` int32."""
    return _instruction(
        lanes, 2, "int16", "int16", "int32", _called("avx512.vpdpwssd", lanes, "int32", f"int32x{lanes}")
    )


def _of_bf16(lanes: int) -> tuple[PrimFunc, PrimFunc]:
    """vdpbf16ps: two bfloat16 products added to each of ``lanes`` float32, rounded after each."""
    product = _called("avx512bf16.dpbf16ps", lanes, "float32", f"bfloat16x{lanes * 2}")
    return _instruction(lanes, 2, "bfloat16", "bfloat16", "float32", product)


def _widened(lanes: int, group: int):
    """:func:`_dot` of bytes by widening multiplications, for every CPU; exact, since no sum saturates."""

    @T.prim_func
    def impl(
        A: T.Buffer((group,), "uint8", offset_factor=1),
        B: T.Buffer((lanes, group), "int8", offset_factor=1),
        C: T.Buffer((lanes,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            for i in T.vectorized(lanes):
                for k in range(group):
                    C[i] = C[i] + T.cast(A[k], "int32") * T.cast(B[i, k], "int32")

    return impl


VNNI_512 = VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
VNNI_256 = "dot_8x4_vnni"
VNNI_INT16 = "dot_16x2_vnni_int16"
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"
BF16_512 = "dot_16x2_bf16"
BF16_256 = "dot_8x2_bf16"

VNNI = {("uint8", "int8"): VNNI_512}  # of two types of bytes: the intrinsic for 16 sums
for _types in (("int8", "int8"), ("int8", "uint8"), ("uint8", "uint8")):
    VNNI[_types] = "_".join((VNNI_512, *_types))
for _types, _name in VNNI.items():
    TensorIntrin.register_lazy(_name, lambda t=_types: _of_bytes(16, *t))
TensorIntrin.register_lazy(VNNI_256, lambda: _of_bytes(8, "uint8", "int8"))
TensorIntrin.register_lazy(VNNI_INT16, lambda: _of_int16(16))
TensorIntrin.register_lazy(AVX512_DOT_16x4_INTRIN, lambda: (_dot(16, 4, "uint8", "int8", "int32"), _widened(16, 4)))
TensorIntrin.register_lazy(BF16_512, lambda: _of_bf16(16))
TensorIntrin.register_lazy(BF16_256, lambda: _of_bf16(8))


def _interleave(lanes: int, group: int, dtype: str):
    """Copy ``group`` rows of ``lanes`` elements so that the elements of one column are adjacent."""
    order = [row * lanes + column for column in range(lanes) for row in range(group)]
    kind = f"{dtype}x{lanes}"

    @T.prim_func
    def desc(
        In: T.Buffer((group, lanes), dtype, offset_factor=1), Out: T.Buffer((lanes, group), dtype, offset_factor=1)
    ):
        with T.block("root"):
            T.reads(In[0:group, 0:lanes])
            T.writes(Out[0:lanes, 0:group])
            for i in range(lanes):
                for k in range(group):
                    with T.block("move"):
                        vi, vk = T.axis.remap("SS", [i, k])
                        Out[vi, vk] = In[vk, vi]

    @T.prim_func
    def impl(a: T.handle, Out: T.Buffer((lanes, group), dtype, offset_factor=1)):
        step = T.int32()
        In = T.match_buffer(a, (group, lanes), dtype, offset_factor=1, strides=[step, 1])
        with T.block("root"):
            T.reads(In[0:group, 0:lanes])
            T.writes(Out[0:lanes, 0:group])
            flat = T.decl_buffer((lanes * group,), dtype, data=Out.data, elem_offset=Out.elem_offset)
            flat[T.ramp(0, 1, lanes * group)] = T.Shuffle([In.vload([k, 0], kind) for k in range(group)], order)

    return desc, impl


INTERLEAVE_INT8 = "interleave_16x4_int8"
INTERLEAVE_UINT8 = "interleave_16x4_uint8"
INTERLEAVE_BF16 = "interleave_16x2_bf16"
INTERLEAVE_INT16 = "interleave_16x2_int16"

TensorIntrin.register_lazy(INTERLEAVE_INT8, lambda: _interleave(16, 4, "int8"))
TensorIntrin.register_lazy(INTERLEAVE_UINT8, lambda: _interleave(16, 4, "uint8"))
TensorIntrin.register_lazy(INTERLEAVE_BF16, lambda: _interleave(16, 2, "bfloat16"))
TensorIntrin.register_lazy(INTERLEAVE_INT16, lambda: _interleave(16, 2, "int16"))


def _transpose(lanes: int, dtype: str):
    """Transpose a square tile in registers: in round d rows i and i + d swap the off-diagonal blocks of d lanes."""
    from ..expr import BufferLoad, Ramp, Shuffle, Var, const
    from ..stmt import BufferStore, Evaluate, in_lets, seq
    from ..visit import rewrite

    @T.prim_func
    def desc(
        In: T.Buffer((lanes, lanes), dtype, offset_factor=1), Out: T.Buffer((lanes, lanes), dtype, offset_factor=1)
    ):
        with T.block("root"):
            T.reads(In[0:lanes, 0:lanes])
            T.writes(Out[0:lanes, 0:lanes])
            for i in range(lanes):
                for j in range(lanes):
                    with T.block("move"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        Out[vj, vi] = In[vi, vj]

    @T.prim_func
    def impl(a: T.handle, b: T.handle):
        row, column = T.int32(), T.int32()
        In = T.match_buffer(a, (lanes, lanes), dtype, offset_factor=1, strides=[row, 1])
        Out = T.match_buffer(b, (lanes, lanes), dtype, offset_factor=1, strides=[column, 1])
        with T.block("root"):
            T.reads(In[0:lanes, 0:lanes])
            T.writes(Out[0:lanes, 0:lanes])
            T.evaluate(0)

    source, target = (impl.buffer_map[p] for p in impl.params)
    kind, across = DType(f"{dtype}x{lanes}"), Ramp(const(0), const(1), lanes)
    lets: list[tuple[Var, Expr]] = [
        (Var(f"row{i}", kind), BufferLoad(source, (const(i), across))) for i in range(lanes)
    ]
    rows = [var for var, _ in lets]
    step = lanes // 2
    while step:
        for i in (i for i in range(lanes) if not i & step):
            pair = (rows[i], rows[i + step])
            for place, shift in ((i, 0), (i + step, step)):
                picks = [k + lanes - step + shift if k & step else k + shift for k in range(lanes)]
                var = Var(f"turned{place}", kind)
                lets.append((var, Shuffle(pair, tuple(map(const, picks)))))
                rows[place] = var
        step //= 2
    body = seq([BufferStore(target, rows[i], (const(i), across)) for i in range(lanes)])
    body = in_lets(lets, body)
    return desc, impl.with_body(rewrite(impl.body, lambda item: body if isinstance(item, Evaluate) else None))


TRANSPOSE_16 = "transpose_16x16"

TensorIntrin.register_lazy(TRANSPOSE_16, lambda: _transpose(16, "float32"))

TRANSPOSE = {"float32": (16, TRANSPOSE_16)}  # of a data type: the rows of a square tile, and its intrinsic
_INTEGERS = [f"{code}{bits}" for code in ("int", "uint") for bits in (8, 16, 32, 64)]
for _dtype in (*_INTEGERS, "float16", "bfloat16", "float64"):
    _side = min(16, 64 // DType(_dtype).bytes)  # a row is a vector
    TRANSPOSE[_dtype] = (_side, f"transpose_{_side}x{_side}_{_dtype}")
    TensorIntrin.register_lazy(TRANSPOSE[_dtype][1], lambda s=_side, d=_dtype: _transpose(s, d))
