"""x86 dot products: VNNI bytes and int16, and bf16, at 256 and 512 bits; and transposes of square tiles in registers.

Each instruction adds to every lane of an accumulator the dot product of two short groups: one of the left operand, the
same for all lanes, and one of the right operand, another for each lane.
"""

# pyright: reportInvalidTypeForm=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..dtype import DType
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


def _vnni(lanes: int, instruction: str):
    """vpdpbusd: four uint8 by int8 products added to each of ``lanes`` int32."""
    group, width = 4, lanes * 4

    @T.prim_func
    def impl(
        A: T.Buffer((group,), "uint8", offset_factor=1),
        B: T.Buffer((lanes, group), "int8", offset_factor=1),
        C: T.Buffer((lanes,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = T.call_llvm_pure_intrin(
                f"int32x{lanes}",
                instruction,
                C[T.ramp(0, 1, lanes)],
                T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, group)]), lanes),
                T.reinterpret(f"int32x{lanes}", B.vload([0, 0], dtype=f"int8x{width}")),
            )

    return impl


FLIP = -0x7F7F7F80  # four bytes 0x80: x ^ 0x80 is x + 128 as uint8 of an int8, and x - 128 as int8 of a uint8


def _vnni_swapped(lanes: int, instruction: str):
    """vpdpbusd of int8 by uint8: the operands change places."""
    group, width = 4, lanes * 4

    @T.prim_func
    def impl(
        A: T.Buffer((group,), "int8", offset_factor=1),
        B: T.Buffer((lanes, group), "uint8", offset_factor=1),
        C: T.Buffer((lanes,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = T.call_llvm_pure_intrin(
                f"int32x{lanes}",
                instruction,
                C[T.ramp(0, 1, lanes)],
                T.reinterpret(f"int32x{lanes}", B.vload([0, 0], dtype=f"uint8x{width}")),
                T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, group)]), lanes),
            )

    return impl


def _vnni_signed(lanes: int, instruction: str):
    """vpdpbusd of int8 by int8: ``(a + 128) * b - 128 * b``. The second product is that of all rows with a column; where these are
    straight code, it is computed once."""
    group, width = 4, lanes * 4

    @T.prim_func
    def impl(
        A: T.Buffer((group,), "int8", offset_factor=1),
        B: T.Buffer((lanes, group), "int8", offset_factor=1),
        C: T.Buffer((lanes,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = T.call_llvm_pure_intrin(
                f"int32x{lanes}",
                instruction,
                C[T.ramp(0, 1, lanes)],
                T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, group)]) ^ FLIP, lanes),
                T.reinterpret(f"int32x{lanes}", B.vload([0, 0], dtype=f"int8x{width}")),
            ) - T.call_llvm_pure_intrin(
                f"int32x{lanes}",
                instruction,
                T.broadcast(0, lanes),
                T.broadcast(FLIP, lanes),
                T.reinterpret(f"int32x{lanes}", B.vload([0, 0], dtype=f"int8x{width}")),
            )

    return impl


def _vnni_unsigned(lanes: int, instruction: str):
    """vpdpbusd of uint8 by uint8: ``a * (b - 128) - a * -128``; the second product is that of a row with all columns."""
    group, width = 4, lanes * 4

    @T.prim_func
    def impl(
        A: T.Buffer((group,), "uint8", offset_factor=1),
        B: T.Buffer((lanes, group), "uint8", offset_factor=1),
        C: T.Buffer((lanes,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = T.call_llvm_pure_intrin(
                f"int32x{lanes}",
                instruction,
                C[T.ramp(0, 1, lanes)],
                T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, group)]), lanes),
                T.reinterpret(f"int32x{lanes}", B.vload([0, 0], dtype=f"uint8x{width}")) ^ T.broadcast(FLIP, lanes),
            ) - T.call_llvm_pure_intrin(
                f"int32x{lanes}",
                instruction,
                T.broadcast(0, lanes),
                T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, group)]), lanes),
                T.broadcast(FLIP, lanes),
            )

    return impl


def _vnni_int16(lanes: int, instruction: str):
    """vpdpwssd: two int16 by int16 products added to each of ``lanes`` int32."""
    group, width = 2, lanes * 2

    @T.prim_func
    def impl(
        A: T.Buffer((group,), "int16", offset_factor=1),
        B: T.Buffer((lanes, group), "int16", offset_factor=1),
        C: T.Buffer((lanes,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = T.call_llvm_pure_intrin(
                f"int32x{lanes}",
                instruction,
                C[T.ramp(0, 1, lanes)],
                T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, group)]), lanes),
                T.reinterpret(f"int32x{lanes}", B.vload([0, 0], dtype=f"int16x{width}")),
            )

    return impl


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
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"


def _of_bytes(lanes: int, impl: PrimFunc) -> tuple[PrimFunc, PrimFunc]:
    return _dot(lanes, 4, "uint8", "int8", "int32"), impl


TensorIntrin.register_lazy(VNNI_512, lambda: _of_bytes(16, _vnni(16, "llvm.x86.avx512.vpdpbusd.512")))
TensorIntrin.register_lazy(VNNI_256, lambda: _of_bytes(8, _vnni(8, "llvm.x86.avx512.vpdpbusd.256")))
TensorIntrin.register_lazy(AVX512_DOT_16x4_INTRIN, lambda: _of_bytes(16, _widened(16, 4)))

VNNI_INT16 = "dot_16x2_vnni_int16"
_OF_SIGNS = {("int8", "int8"): _vnni_signed, ("int8", "uint8"): _vnni_swapped, ("uint8", "uint8"): _vnni_unsigned}
VNNI = {("uint8", "int8"): VNNI_512}  # of two types of bytes: the intrinsic for 16 sums
for _types, _impl in _OF_SIGNS.items():
    VNNI[_types] = f"dot_16x4_vnni_{_types[0]}_{_types[1]}"
    TensorIntrin.register_lazy(
        VNNI[_types], lambda t=_types, i=_impl: (_dot(16, 4, *t, "int32"), i(16, "llvm.x86.avx512.vpdpbusd.512"))
    )
TensorIntrin.register_lazy(
    VNNI_INT16,
    lambda: (_dot(16, 2, "int16", "int16", "int32"), _vnni_int16(16, "llvm.x86.avx512.vpdpwssd.512")),
)


def _bf16(lanes: int, instruction: str):
    """vdpbf16ps: two bfloat16 products added to each of ``lanes`` float32, rounded after each."""
    group, width = 2, lanes * 2

    @T.prim_func
    def impl(
        A: T.Buffer((group,), "bfloat16", offset_factor=1),
        B: T.Buffer((lanes, group), "bfloat16", offset_factor=1),
        C: T.Buffer((lanes,), "float32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = T.call_llvm_pure_intrin(
                f"float32x{lanes}",
                instruction,
                C[T.ramp(0, 1, lanes)],
                T.reinterpret(f"bfloat16x{width}", T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, group)]), lanes)),
                B.vload([0, 0], dtype=f"bfloat16x{width}"),
            )

    return impl


BF16_512 = "dot_16x2_bf16"
BF16_256 = "dot_8x2_bf16"


def _of_bf16(lanes: int) -> tuple[PrimFunc, PrimFunc]:
    instruction = f"llvm.x86.avx512bf16.dpbf16ps.{lanes * 32}"
    return _dot(lanes, 2, "bfloat16", "bfloat16", "float32"), _bf16(lanes, instruction)


TensorIntrin.register_lazy(BF16_512, lambda: _of_bf16(16))
TensorIntrin.register_lazy(BF16_256, lambda: _of_bf16(8))


def _interleave(lanes: int, group: int, dtype: str):
    """Copy ``group`` rows of ``lanes`` elements so that the elements of one column are adjacent."""
    order = [row * lanes + column for column in range(lanes) for row in range(group)]
    kind = f"{dtype}x{lanes}"

    @T.prim_func
    def desc(
        In: T.Buffer((group, lanes), dtype, offset_factor=1),
        Out: T.Buffer((lanes, group), dtype, offset_factor=1),
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
    def four(a: T.handle, Out: T.Buffer((lanes, group), dtype, offset_factor=1)):
        step = T.int32()
        In = T.match_buffer(a, (group, lanes), dtype, offset_factor=1, strides=[step, 1])
        with T.block("root"):
            T.reads(In[0:group, 0:lanes])
            T.writes(Out[0:lanes, 0:group])
            Out.vstore(
                [0, 0],
                T.Shuffle(
                    [In.vload([0, 0], kind), In.vload([1, 0], kind), In.vload([2, 0], kind), In.vload([3, 0], kind)],
                    order,
                ),
            )

    @T.prim_func
    def two(a: T.handle, Out: T.Buffer((lanes, group), dtype, offset_factor=1)):
        step = T.int32()
        In = T.match_buffer(a, (group, lanes), dtype, offset_factor=1, strides=[step, 1])
        with T.block("root"):
            T.reads(In[0:group, 0:lanes])
            T.writes(Out[0:lanes, 0:group])
            Out.vstore([0, 0], T.Shuffle([In.vload([0, 0], kind), In.vload([1, 0], kind)], order))

    return desc, {2: two, 4: four}[group]


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
    from ..expr import BufferLoad, Expr, Ramp, Shuffle, Var, const
    from ..stmt import BufferStore, Evaluate, LetStmt, seq
    from ..visit import rewrite

    @T.prim_func
    def desc(
        In: T.Buffer((lanes, lanes), dtype, offset_factor=1),
        Out: T.Buffer((lanes, lanes), dtype, offset_factor=1),
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
    for var, value in reversed(lets):
        body = LetStmt(var, value, body)
    return desc, impl.with_body(rewrite(impl.body, lambda item: body if isinstance(item, Evaluate) else None))


TRANSPOSE_16 = "transpose_16x16"

TensorIntrin.register_lazy(TRANSPOSE_16, lambda: _transpose(16, "float32"))

TRANSPOSE = {"float32": (16, TRANSPOSE_16)}  # of a data type: the rows of a square tile, and its intrinsic
_INTEGERS = [f"{code}{bits}" for code in ("int", "uint") for bits in (8, 16, 32, 64)]
for _dtype in (*_INTEGERS, "float16", "bfloat16", "float64"):
    _side = min(16, 64 // DType(_dtype).bytes)  # a row is a vector
    TRANSPOSE[_dtype] = (_side, f"transpose_{_side}x{_side}_{_dtype}")
    TensorIntrin.register_lazy(TRANSPOSE[_dtype][1], lambda s=_side, d=_dtype: _transpose(s, d))
