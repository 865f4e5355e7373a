"""The operators of the IR as a table: name and parameters, what each computes, and an example with what it shows.

A line ``= effect result takes: sentence`` begins a group (the words as in ``tir.op.Op``), and the sentence holds of all of
it.
``tir.op`` registers them, and docstrings of the dialect are made from these lines (``tir.script.tir_operators``). A
parameter with a star takes any number of arguments, one with a question mark may be left out, and one with a colon takes
operands of the kind behind it, which is a word as ``takes``. Operators without a
sentence have a function of their own in the dialect, whose docstring says the same. The examples know ``T`` and the variables that it declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """An operator of the table; for ``effect``, ``result`` and ``takes`` see :class:`tir.op.Op`."""

    name: str
    parameters: tuple[str, ...]
    effect: str
    result: str
    takes: str
    about: str
    example: str

    @property
    def arity(self) -> int | None:
        """The number of arguments where it is fixed, and None."""
        return None if any(p.startswith("*") or p.endswith("?") for p in self.parameters) else len(self.parameters)


def rows(table: str) -> Iterator[Row]:
    """The operators of a table."""
    for group in re.split(r"^= ", table, flags=re.M)[1:]:
        head, _, entries = group.partition("\n")
        kind, _, where = head.partition(": ")
        effect, result, takes = (*kind.split(), "")[:3]
        for entry in re.split(r"\n(?=\S)", entries.strip()):
            yield _row(entry, effect, result, takes, where)


def _row(entry: str, effect: str, result: str, takes: str, where: str) -> Row:
    lines = [line.strip() for line in entry.splitlines()]
    first = next((n for n, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    found = _HEAD.fullmatch(" ".join(lines[:first]))
    assert found is not None, entry
    name, parameters, own_result, about = found.groups(default="")
    given = [p.partition(": ") for p in parameters.split(", ") if p]
    if any(kind for *_, kind in given):
        takes = ",".join(kind or takes for *_, kind in given)
    sentences = f"{about} {where}".strip() if about else ""
    names = tuple(name for name, *_ in given)
    return Row(name, names, effect, own_result or result, takes, sentences, "\n".join(lines[first:]))


_HEAD = re.compile(r"(\w+)\((.*?)\)(?: -> (\w+))?:(?: (.+))?")

# float functions that NumPy computes; integers become float32, and other operands the type of the first
FLOAT_FUNCTIONS = """
= pure same floats
exp(x): ``e`` to the power of ``x``.
    >>> simplify(T.exp(0.5))
    T.float32(1.6487212181091309)
exp2(x): 2 to the power of ``x``.
    >>> simplify(T.exp2(3.0))
    T.float32(8)
exp10(x): 10 to the power of ``x``.
    >>> simplify(T.exp10(3.0))
    T.float32(1000)
log(x): The natural logarithm; nan below 0.
    >>> simplify(T.log(2.0))
    T.float32(0.6931471824645996)
log2(x): The logarithm to the base of 2.
    >>> simplify(T.log2(8.0))
    T.float32(3)
log10(x): The logarithm to the base of 10.
    >>> simplify(T.log10(1000.0))
    T.float32(3)
log1p(x): ``log(1 + x)``, exact near 0 too.
    >>> simplify(T.log1p(1e-7))
    T.float32(9.999999406318238e-08)
expm1(x): ``exp(x) - 1``, exact near 0 too.
    >>> simplify(T.expm1(1e-7))
    T.float32(1.000000082740371e-07)
sqrt(x): The square root; nan below 0.
    >>> simplify(T.sqrt(2.0))
    T.float32(1.4142135381698608)
rsqrt(x): ``1 / sqrt(x)``.
    >>> simplify(T.rsqrt(4.0))
    T.float32(0.5)
sigmoid(x): ``1 / (1 + exp(-x))``.
    >>> simplify(T.sigmoid(0.0))
    T.float32(0.5)
erf(x): The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``x``.
    >>> simplify(T.erf(1.0))
    T.float32(0.8427007794380188)
erfc(x): ``1 - erf(x)``, exact where ``erf(x)`` is near 1.
    >>> simplify(T.erfc(4.0))
    T.float32(1.5417258580896487e-08)
sin(x): The sine of an angle in radians.
    >>> simplify(T.sin(1.0))
    T.float32(0.8414709568023682)
cos(x): The cosine of an angle in radians.
    >>> simplify(T.cos(0.0))
    T.float32(1)
tan(x): The tangent of an angle in radians.
    >>> simplify(T.tan(1.0))
    T.float32(1.5574077367782593)
asin(x): The angle in radians, from -pi/2 to pi/2, whose sine is ``x``; nan outside of -1 to 1.
    >>> simplify(T.asin(1.0))
    T.float32(1.5707963705062866)
acos(x): The angle in radians, from 0 to pi, whose cosine is ``x``; nan outside of -1 to 1.
    >>> simplify(T.acos(1.0))
    T.float32(0)
atan(x): The angle in radians, from -pi/2 to pi/2, whose tangent is ``x``.
    >>> simplify(T.atan(1.0))
    T.float32(0.7853981852531433)
sinh(x): The hyperbolic sine, ``(exp(x) - exp(-x)) / 2``.
    >>> simplify(T.sinh(1.0))
    T.float32(1.175201177597046)
cosh(x): The hyperbolic cosine, ``(exp(x) + exp(-x)) / 2``.
    >>> simplify(T.cosh(1.0))
    T.float32(1.5430806875228882)
tanh(x): The hyperbolic tangent, ``sinh(x) / cosh(x)``.
    >>> simplify(T.tanh(1.0))
    T.float32(0.7615941762924194)
asinh(x): The inverse of ``sinh``.
    >>> simplify(T.asinh(1.0))
    T.float32(0.8813735842704773)
acosh(x): The inverse of ``cosh``, from 0 on; nan below 1.
    >>> simplify(T.acosh(2.0))
    T.float32(1.316957950592041)
atanh(x): The inverse of ``tanh``; nan outside of -1 to 1.
    >>> simplify(T.atanh(0.5))
    T.float32(0.5493061542510986)
floor(x): The greatest whole number that is not above ``x``, as a float.
    >>> simplify(T.floor(-2.5))
    T.float32(-3)
ceil(x): The least whole number that is not below ``x``, as a float.
    >>> simplify(T.ceil(-2.5))
    T.float32(-2)
trunc(x): ``x`` without its fraction, as a float.
    >>> simplify(T.trunc(-2.5))
    T.float32(-2)
round(x): The nearest whole number, halves away from zero, as a float.
    >>> simplify(T.round(2.5))
    T.float32(3)
nearbyint(x): The nearest whole number, halves to the even one, as a float.
    >>> simplify(T.nearbyint(2.5))
    T.float32(2)
pow(x, y):
atan2(y, x): The angle in radians, from -pi to pi, of the point ``(x, y)``.
    >>> simplify(T.atan2(1.0, -1.0))
    T.float32(2.356194496154785)
fmod(x, y): The remainder of ``x / y`` with the sign of ``x``, as C has it.
    >>> simplify(T.fmod(-7.5, 2.0))
    T.float32(-1.5)
hypot(x, y): ``sqrt(x * x + y * y)``, without overflow on the way.
    >>> simplify(T.hypot(3.0, 4.0))
    T.float32(5)
copysign(x, y): The magnitude of ``x`` with the sign of ``y``.
    >>> simplify(T.copysign(3.0, -0.0))
    T.float32(-3)
nextafter(x, y): The float next to ``x`` on the way to ``y``.
    >>> simplify(T.nextafter(1.0, 2.0))
    T.float32(1.0000001192092896)
"""

# these NumPy computes too
WITH_NUMPY = """
= pure same floats
fabs(x): The absolute value of a float.
    >>> simplify(T.fabs(-1.5))
    T.float32(1.5)
fma(a, b, c): ``a * b + c``, rounded once.
    >>> simplify(T.fma(2.0, 3.0, 1.0))
    T.float32(7)
= pure same numbers
abs(x):
= pure bool values
isnan(x): Whether a float is no number; false of integers.
    >>> T.isnan(x)
    T.isnan(x)
isinf(x): Whether a float is infinite; false of integers.
    >>> T.isinf(x)
    T.isinf(x)
isfinite(x): Whether a float is neither infinite nor nan; true of integers.
    >>> T.isfinite(x)
    T.isfinite(x)
= pure same values
likely(x):
ldexp(x, n: integers): ``x * 2 ** n``, exact but for overflow and underflow; ``n`` is an integer.
    >>> T.ldexp(1.5, 3)
    T.ldexp(T.float32(1.5), 3)
= pure same integers
popcount(x): The number of bits of ``x`` that are 1: 3 for 7.
    >>> T.popcount(i)
    T.popcount(i)
clz(x) -> int32: The number of zeros before the first 1 in the bits of ``x``: 29 for 7 as ``int32``, 32 for 0.
    >>> T.clz(i)
    T.clz(i)
bitwise_and(x, y): The bits that are 1 in both, ``x & y``; operands of two types become the wider one.
    >>> T.bitwise_and(i, 7)
    i & 7
bitwise_or(x, y): The bits that are 1 in either, ``x | y``; operands of two types become the wider one.
    >>> T.bitwise_or(i, 7)
    i | 7
bitwise_xor(x, y): The bits that differ, ``x ^ y``; operands of two types become the wider one.
    >>> T.bitwise_xor(i, 7)
    i ^ 7
bitwise_not(x): Every bit turned over, ``~x``.
    >>> T.bitwise_not(i)
    T.bitwise_not(i)
shift_left(x, y): ``x << y``, with zeros from the right; ``y`` is less than the bits of ``x``.
    >>> T.shift_left(i, 4)
    i << 4
shift_right(x, y): ``x >> y``, with copies of the sign from the left; ``y`` is less than the bits of ``x``.
    >>> T.shift_right(i, 4)
    i >> 4
= pure given integers
q_multiply_shift(x, y, q, s) -> same: ``x * y * 2 ** (s - q)`` in 64 bits, rounded, halves up: a fixed-point product.
    >>> T.q_multiply_shift(i, 1395864320, 31, -7)
    T.q_multiply_shift(i, 1395864320, 31, -7)
"""

# and these the executor, the simulator and the code generators, each as it can
WITHOUT_NUMPY = """
= pure given
if_then_else(condition, true_value, false_value):
reinterpret(value):
call_pure_extern(name, *args):
call_llvm_pure_intrin(name, *args):
isnullptr(pointer):
type_annotation():
tvm_tuple(*items):
large_uint_imm(low: constants, high: constants): The constant ``high * 2 ** 32 + low``, of a type that holds it.
    >>> T.large_uint_imm(1, 2, dtype="uint64")
    T.large_uint_imm(1, 2, dtype="uint64")
undef(): Any value at all, for what is never read.
    >>> T.undef(dtype="float32")
    T.undef(dtype="float32")
= pure given vectors
vectorlow(vector): The first half of the lanes of a vector.
    >>> T.vectorlow(v, dtype="float32x2")
    T.vectorlow(v, dtype="float32x2")
vectorhigh(vector): The second half of the lanes of a vector.
    >>> T.vectorhigh(v, dtype="float32x2")
    T.vectorhigh(v, dtype="float32x2")
= pure given values
vectorcombine(first, second): The lanes of both vectors, one after the other.
    >>> T.vectorcombine(v, v, dtype="float32x8")
    T.vectorcombine(v, v, dtype="float32x8")
dp4a(a, b, c): ``c`` plus the four products of the bytes of ``a`` and ``b``, vectors of four or words.
    >>> T.dp4a(T.Broadcast(T.int8(1), 4), T.Broadcast(T.int8(2), 4), i, dtype="int32")
    T.dp4a(T.Broadcast(T.int8(1), 4), T.Broadcast(T.int8(2), 4), i, dtype="int32")
tvm_thread_invariant(x): ``x``, which the program says is the same in every thread.
    >>> T.tvm_thread_invariant(i, dtype="int32")
    T.tvm_thread_invariant(i, dtype="int32")
= pure given: Kernels have it: CUDA, and the simulator.
tvm_warp_activemask(): The threads of the warp that run here, a bit for each, as ``uint32``.
    >>> T.tvm_warp_activemask()
    T.tvm_warp_activemask(dtype="uint32")
tvm_warp_shuffle(mask, value, lane, width, size?): The ``value`` that thread ``lane`` of the warp has.
    >>> T.tvm_warp_shuffle(T.tvm_warp_activemask(), x, 0, 32, 32)
    T.tvm_warp_shuffle(T.tvm_warp_activemask(dtype="uint32"), x, 0, 32, 32, dtype="float32")
tvm_warp_shuffle_up(mask, value, delta, width, size?): The ``value`` of the thread ``delta`` before this one.
    >>> T.tvm_warp_shuffle_up(T.tvm_warp_activemask(), x, 1, 32, 32)
    T.tvm_warp_shuffle_up(T.tvm_warp_activemask(dtype="uint32"), x, 1, 32, 32, dtype="float32")
tvm_warp_shuffle_down(mask, value, delta, width, size?): The ``value`` of the thread ``delta`` after this one.
    >>> T.tvm_warp_shuffle_down(T.tvm_warp_activemask(), x, 16, 32, 32)
    T.tvm_warp_shuffle_down(T.tvm_warp_activemask(dtype="uint32"), x, 16, 32, 32, dtype="float32")
tvm_warp_shuffle_xor(mask, value, bits, width, size?): The ``value`` of the thread whose number differs from this
    one's in ``bits``.
    >>> T.tvm_warp_shuffle_xor(T.tvm_warp_activemask(), x, 8, 32, 32)
    T.tvm_warp_shuffle_xor(T.tvm_warp_activemask(dtype="uint32"), x, 8, 32, 32, dtype="float32")
= pure given: The executor has it, no code is generated for it.
get_active_lane_mask(base, limit): Whether ``base``, ``base + 1``, … are below ``limit``, a lane for each.
    >>> T.get_active_lane_mask(i, 100, dtype="boolx4")
    T.get_active_lane_mask(i, 100, dtype="boolx4")
= pure given: It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``.
q_multiply_shift_per_axis(x, y, left, right, q, is_left, is_right) -> same: A fixed-point product with the shifts of
    each channel.
    >>> T.q_multiply_shift_per_axis(i, 3, 0, 1, 31, False, True)
    T.q_multiply_shift_per_axis(i, 3, 0, 1, 31, False, True)
shift_right_rounding(x, *shift) -> same: ``x >> shift``, rounded.
    >>> T.shift_right_rounding(i, 4)
    T.shift_right_rounding(i, 4)
call_spirv_pure_glsl450(number, *args): An instruction of SPIR-V's ``GLSL.std.450`` by its number.
    >>> T.call_spirv_pure_glsl450(31, x, dtype="float32")
    T.call_spirv_pure_glsl450(31, x, dtype="float32")
= read given
address_of(element):
tvm_access_ptr(type, data, offset, extent, mask):
tensor_map(pointer, dtype, swizzle, *shape_strides_box) -> handle:
= read given: It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``.
tvm_struct_get(handle, index, *kind): A field of an array's or an argument's description; the last argument, or the
    first, is its type.
    >>> T.tvm_struct_get(A, 0, 1, "handle")
    T.tvm_struct_get(A, 0, 1, dtype="handle")
= opaque given
call_extern(name, *args):
call_llvm_intrin(name, *args):
call_packed(name, *args):
call_cpacked(name, *args):
call_global(name, *args):
ret(value?):
assume(condition):
prefetch(address, write?, locality?, data?): A hint that the memory at an address is used soon: 0 to read or 1 to write,
    how long to keep it (0 to 3), 0 for instructions or 1 for data.
    >>> T.prefetch(A, 0, 3, 1, dtype="void")
    T.prefetch(A, 0, 3, 1)
tvm_storage_sync(scope, leads?, blocks?): A barrier: the threads of a block (``"shared"``) or of a warp (``"warp"``) wait for each
    other, and see what the others wrote. CPUs, which have no such threads, do nothing.
    >>> T.tvm_storage_sync("shared")
    T.tvm_storage_sync("shared", dtype="void")
thread_return(): Leave the kernel in this thread, or the function on a CPU.
    >>> T.thread_return()
    T.thread_return()
atomic_add(address, value, order?): Add ``value`` to the element at an address in one piece, also where other iterations
    or threads do; its value is the old one.
    >>> T.atomic_add(A, 1, dtype="int32")
    T.atomic_add(A, 1, dtype="int32")
print(*values): Print numbers and strings, separated by blanks, and end the line.
    >>> T.print("found", i)
    T.Call("void", "print", ["found", i])
= opaque given: Code for CPUs has it.
tvm_call_packed(name, *args): Call a function that ``tir.register_func`` registered, as ``T.call_packed``.
    >>> T.tvm_call_packed("log", i, dtype="int32")
    T.tvm_call_packed("log", i, dtype="int32")
tvm_call_cpacked(name, *args): Call a function that ``tir.register_func`` registered, as ``T.call_cpacked``.
    >>> T.tvm_call_cpacked("log", i, dtype="int32")
    T.tvm_call_cpacked("log", i, dtype="int32")
start_profile_intrinsic(number?): Where a profiler begins to measure; nothing here.
    >>> T.start_profile_intrinsic(1)
    T.start_profile_intrinsic(1)
end_profile_intrinsic(number?): Where a profiler ends to measure; nothing here.
    >>> T.end_profile_intrinsic(1)
    T.end_profile_intrinsic(1)
amx_tile_zero(tiles, number: integers): Set tile register ``number`` of a buffer of tiles, each of 16 rows of 64 bytes, to zeros.
    >>> T.amx_tile_zero(A, 0)
    T.amx_tile_zero(A, 0)
amx_tile_load(tiles, number: integers, pointer, stride: integers): Load a tile register from memory whose rows are ``stride`` bytes apart.
    >>> T.amx_tile_load(A, 0, B, 64)
    T.amx_tile_load(A, 0, B, 64)
amx_tile_stream(tiles, number: integers, pointer, stride: integers): As ``T.amx_tile_load``, of data that is not used again soon.
    >>> T.amx_tile_stream(A, 0, B, 64)
    T.amx_tile_stream(A, 0, B, 64)
amx_tile_store(tiles, number: integers, pointer, stride: integers): Store a tile register to memory whose rows are ``stride`` bytes apart.
    >>> T.amx_tile_store(A, 0, B, 64)
    T.amx_tile_store(A, 0, B, 64)
amx_tile_dot(kind, sums, at: integers, left, left_at: integers, right, right_at: integers): Add the product of two tiles of
    ``"bf16"``, or of bytes whose signs are ``"ss"``, ``"su"``, ``"us"`` or ``"uu"``, to a tile of ``float32`` or ``int32``. Rows of the right
    tile hold groups of elements that follow one another in the summed axis.
    >>> T.amx_tile_dot("bf16", C, 0, A, 0, B, 0)
    T.amx_tile_dot("bf16", C, 0, A, 0, B, 0, dtype="void")
= opaque given: Kernels have it: CUDA, and the simulator.
tvm_load_matrix_sync(fragment, m, n, k, index, pointer, stride, layout): Load wmma fragment ``index`` from a matrix whose
    rows are ``stride`` elements apart, ``"row_major"`` or ``"col_major"``.
    >>> T.tvm_load_matrix_sync(A, 16, 16, 16, 0, B, 64, "row_major")
    T.tvm_load_matrix_sync(A, 16, 16, 16, 0, B, 64, "row_major")
tvm_store_matrix_sync(fragment, m, n, k, index, pointer, stride, layout): Store wmma fragment ``index`` to a matrix whose
    rows are ``stride`` elements apart, ``"row_major"`` or ``"col_major"``.
    >>> T.tvm_store_matrix_sync(A, 16, 16, 16, 0, B, 64, "row_major")
    T.tvm_store_matrix_sync(A, 16, 16, 16, 0, B, 64, "row_major")
tvm_fill_fragment(fragment, m, n, k, index, value): Set every element of wmma fragment ``index``.
    >>> T.tvm_fill_fragment(A, 16, 16, 16, 0, T.float32(0))
    T.tvm_fill_fragment(A, 16, 16, 16, 0, T.float32(0))
tvm_mma_sync(d, d_index, a, a_index, b, b_index, c, c_index): ``d = a @ b + c`` of wmma fragments, by the tensor cores of a warp.
    >>> T.tvm_mma_sync(C, 0, A, 0, B, 0, C, 0)
    T.tvm_mma_sync(C, 0, A, 0, B, 0, C, 0)
ptx_mma(shape, a_layout, b_layout, a_type, b_type, c_type, a, a_offset, b, b_offset, c, c_offset, saturate?, operator?):
    ``c += a @ b`` of a warp's registers (PTX ``mma.sync``), with offsets in elements.
    >>> T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", A, 0, B, 0, C, 0, False, dtype="float32")
    T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", A, 0, B, 0, C, 0, False, dtype="float32")
ptx_ldmatrix(transposed, count, type, registers, offset, shared, shared_offset): Load 8 x 8 matrices from shared memory
    into a warp's registers (PTX ``ldmatrix``), with offsets in elements.
    >>> T.ptx_ldmatrix(False, 4, ".b16", A, 0, B, i, dtype="float16")
    T.ptx_ldmatrix(False, 4, ".b16", A, 0, B, i, dtype="float16")
ptx_cp_async(shared, offset, memory, from_offset, bytes, predicate?): Begin to copy 4, 8 or 16 bytes from global to
    shared memory; zeros where the predicate is false.
    >>> T.ptx_cp_async(A, i, B, i, 16, dtype="float32")
    T.ptx_cp_async(A, i, B, i, 16, dtype="float32")
ptx_commit_group(): Make the asynchronous copies since the last such call one group.
    >>> T.ptx_commit_group()
    T.ptx_commit_group()
ptx_wait_group(count): Wait until at most ``count`` of the newest groups of asynchronous copies are still under way.
    >>> T.ptx_wait_group(0)
    T.ptx_wait_group(0)
mma_fill(count, registers, offset): Set the ``count`` elements that a thread holds of an accumulator to zero.
    >>> T.mma_fill(8, C, 0, dtype="float32")
    T.mma_fill(8, C, 0, dtype="float32")
mma_store(m, n, pointer, registers, offset, stride): Store a 16 x 16 accumulator of a warp to a matrix whose rows are
    ``stride`` elements apart.
    >>> T.mma_store(16, 16, A, C, 0, 64, dtype="float32")
    T.mma_store(16, 16, A, C, 0, 64, dtype="float32")
create_barriers(count): Make ``count`` transaction barriers in shared memory (sm_90), known by their numbers from 0.
    >>> T.create_barriers(2)
    T.create_barriers(2)
ptx_init_barrier_thread_count(barrier, count): Set how many threads a barrier waits for.
    >>> T.ptx_init_barrier_thread_count(0, 128)
    T.ptx_init_barrier_thread_count(0, 128)
ptx_arrive_barrier(barrier): Say that this thread has arrived at a barrier.
    >>> T.ptx_arrive_barrier(0)
    T.ptx_arrive_barrier(0)
ptx_arrive_barrier_expect_tx(barrier, bytes): Arrive at a barrier that also waits for ``bytes`` bytes of bulk copies.
    >>> T.ptx_arrive_barrier_expect_tx(0, 1024)
    T.ptx_arrive_barrier_expect_tx(0, 1024)
ptx_wait_barrier(barrier, parity?): Wait until the phase of this parity (0, or ``parity``) of a barrier is complete. A
    barrier begins in phase 0: of the phase before it, of parity 1, the wait is over at once.
    >>> T.ptx_wait_barrier(0, i % 2)
    T.ptx_wait_barrier(0, i % 2)
ptx_cp_async_barrier(barrier): Arrive at a barrier once the asynchronous copies of this thread are done.
    >>> T.ptx_cp_async_barrier(0)
    T.ptx_cp_async_barrier(0)
ptx_cp_async_bulk(shared, offset, memory, from_offset, bytes, barrier): Begin a bulk copy from global to shared
    memory, whose bytes a barrier counts.
    >>> T.ptx_cp_async_bulk(A, 0, B, 0, 1024, 0, dtype="float32")
    T.ptx_cp_async_bulk(A, 0, B, 0, 1024, 0, dtype="float32")
= opaque given: CUDA kernels have it.
ptx_ldg32(register, guard, address, offset): Load 32 bits through the read-only cache; 0 where the guard is false.
    >>> T.ptx_ldg32(A, i < 8, x, 0)
    T.ptx_ldg32(A, i < 8, x, 0)
= opaque given: Kernels for sm_90a have it: CUDA, and the simulator.
ptx_fence_barrier_init(): Make the initial state of the barriers known to the copy engine, and to the cluster.
    >>> T.ptx_fence_barrier_init()
    T.ptx_fence_barrier_init()
ptx_arrive_barrier_cluster(barrier, rank): Arrive at the barrier of this number in the block ``rank`` of the cluster.
    >>> T.ptx_arrive_barrier_cluster(0, 1)
    T.ptx_arrive_barrier_cluster(0, 1)
ptx_fence_proxy_async(): Make what this thread stored to shared memory visible to bulk copies and to ``T.ptx_wgmma``.
    >>> T.ptx_fence_proxy_async()
    T.ptx_fence_proxy_async()
ptx_cp_async_bulk_tensor(shared, offset, map, barrier, *coordinates): Begin to copy the box of ``T.tensor_map`` at
    ``coordinates`` (an index for each axis) to shared memory, zeros for elements out of bounds; a barrier counts the
    bytes of the box.
    >>> T.ptx_cp_async_bulk_tensor(A, 0, T.tensor_map(B, "float16", 0, 64, 1, 32), 0, i)
    T.ptx_cp_async_bulk_tensor(A, 0, T.tensor_map(B, "float16", 0, 64, 1, 32), 0, i)
ptx_cp_async_bulk_tensor_multicast(shared, offset, map, barrier, mask, *coordinates): As ``T.ptx_cp_async_bulk_tensor``,
    to the same place in every block of the cluster that has a bit in ``mask``; the barrier of each counts the bytes.
    >>> T.ptx_cp_async_bulk_tensor_multicast(A, 0, T.tensor_map(B, "float16", 0, 64, 1, 32), 0, 3, i)
    T.ptx_cp_async_bulk_tensor_multicast(A, 0, T.tensor_map(B, "float16", 0, 64, 1, 32), 0, 3, i)
ptx_cp_async_bulk_tensor_store(map, shared, offset, *coordinates): Begin to copy shared memory to the box of
    ``T.tensor_map`` at ``coordinates``, but for elements out of bounds.
    >>> T.ptx_cp_async_bulk_tensor_store(T.tensor_map(B, "float16", 0, 64, 1, 32), A, 0, i)
    T.ptx_cp_async_bulk_tensor_store(T.tensor_map(B, "float16", 0, 64, 1, 32), A, 0, i)
ptx_cp_async_bulk_commit_group(): Make the bulk stores of this thread since the last such call one group.
    >>> T.ptx_cp_async_bulk_commit_group()
    T.ptx_cp_async_bulk_commit_group()
ptx_cp_async_bulk_wait_group(count): Wait until at most ``count`` of the newest groups of bulk stores of this
    thread are under way.
    >>> T.ptx_cp_async_bulk_wait_group(0)
    T.ptx_cp_async_bulk_wait_group(0)
ptx_cp_async_bulk_wait_group_read(count): Wait until all but the newest ``count`` groups of bulk stores of this
    thread have read shared memory, which may then change.
    >>> T.ptx_cp_async_bulk_wait_group_read(0)
    T.ptx_cp_async_bulk_wait_group_read(0)
ptx_wgmma(shape, a_type, b_type, d_type, d, d_offset, a, a_offset, a_leading, a_stride, a_swizzle, a_transposed, b,
    b_offset, b_leading, b_stride, b_swizzle, b_transposed, accumulate): Begin ``d += a @ b``, or ``d = a @ b`` where ``accumulate`` is false, by the 128 threads of a warpgroup (PTX
    ``wgmma.mma_async``). ``d`` is in registers, ``b`` in shared memory, ``a`` in either. A matrix in shared memory has
    its leading and stride offsets in bytes, a swizzle of 0, 32, 64 or 128 bytes, and is ``transposed`` (1) if k is not
    its innermost axis. Element r of d in thread t of the warpgroup is in row
    ``t // 32 * 16 + t % 32 // 4 + r // 2 % 2 * 8`` and column ``r // 4 * 8 + t % 4 * 2 + r % 2``.
    >>> T.ptx_wgmma("m64n8k16", "fp16", "fp16", "fp32", C, 0, A, 0, 0, 256, 32, 0, B, 0, 0, 256, 32, 0, 1)
    T.ptx_wgmma("m64n8k16", "fp16", "fp16", "fp32", C, 0, A, 0, 0, 256, 32, 0, B, 0, 0, 256, 32, 0, 1, dtype="void")
ptx_wgmma_fence(): Order what this warpgroup did to registers before the products that it begins after.
    >>> T.ptx_wgmma_fence()
    T.ptx_wgmma_fence()
ptx_wgmma_commit_group(): Make the products that this warpgroup began since the last such call one group.
    >>> T.ptx_wgmma_commit_group()
    T.ptx_wgmma_commit_group()
ptx_wgmma_wait_group(count): Wait until at most ``count`` of the newest groups of products are under way; only then are
    the registers of the others known, and the shared memory that they read may change.
    >>> T.ptx_wgmma_wait_group(0)
    T.ptx_wgmma_wait_group(0)
ptx_setmaxnreg(count, increase): Give each thread of this warpgroup ``count`` registers: more than it has (``increase`` is
    1), or fewer (0), which others may then take.
    >>> T.ptx_setmaxnreg(232, 1)
    T.ptx_setmaxnreg(232, 1)
ptx_cluster_arrive(): Say that this thread has arrived at the barrier of the cluster, and release what it wrote.
    >>> T.ptx_cluster_arrive()
    T.ptx_cluster_arrive()
ptx_cluster_wait(): Wait until all threads of the cluster have arrived.
    >>> T.ptx_cluster_wait()
    T.ptx_cluster_wait()
= opaque given: A pass lowers it before code is generated.
tvm_thread_allreduce(count, value, predicate, result, *threads): Reduce ``value`` over the threads of the given axes;
    each gets the total in ``result``.
    >>> T.tvm_thread_allreduce(T.uint32(1), x, True, A, i)
    T.tvm_thread_allreduce(T.uint32(1), x, True, A, i)
= opaque given: It belongs to programs for other systems: parsed, printed and kept, and refused by ``tir.build``.
tvm_call_packed_lowered(name, *args): A call of a packed function, its arguments on a stack.
    >>> T.tvm_call_packed_lowered("f", A, 0, 1, dtype="int32")
    T.tvm_call_packed_lowered("f", A, 0, 1, dtype="int32")
tvm_call_cpacked_lowered(name, *args): A call of a packed function by its symbol, its arguments on a stack.
    >>> T.tvm_call_cpacked_lowered("f", A, 0, 1, dtype="int32")
    T.tvm_call_cpacked_lowered("f", A, 0, 1, dtype="int32")
tvm_call_trace_packed(name, *args): A call of a packed function that traces a value.
    >>> T.tvm_call_trace_packed("f", i, dtype="int32")
    T.tvm_call_trace_packed("f", i, dtype="int32")
tvm_check_return(*expected): A check of what an external function returned.
    >>> T.tvm_check_return(0, -1, i, dtype="int32")
    T.tvm_check_return(0, -1, i, dtype="int32")
tvm_struct_set(handle, index, kind, *value): Set a field of an array's or an argument's description.
    >>> T.tvm_struct_set(A, 0, 1, i)
    T.tvm_struct_set(A, 0, 1, i)
tvm_stack_alloca(kind, *count) -> handle: Memory on the stack for ``count`` shapes, arrays or arguments.
    >>> T.tvm_stack_alloca("array", 3)
    T.Call("handle", "tvm_stack_alloca", ["array", 3])
tvm_stack_make_shape(*sizes) -> handle: A shape on the stack.
    >>> T.tvm_stack_make_shape(4, 8)
    T.tvm_stack_make_shape(4, 8)
tvm_stack_make_array(data, *shape_strides_ndim_type_offset) -> handle: The description of an array on the stack.
    >>> T.tvm_stack_make_array(A, T.tvm_stack_make_shape(4, 8), 0, 2, T.float32(0), 0)
    T.tvm_stack_make_array(A, T.tvm_stack_make_shape(4, 8), 0, 2, T.float32(0), 0)
tvm_context_id(): The number of the device that the host works with.
    >>> T.tvm_context_id(dtype="int32")
    T.tvm_context_id(dtype="int32")
tvm_throw_last_error(): Raise the error that the last call left.
    >>> T.tvm_throw_last_error()
    T.tvm_throw_last_error()
tvm_global_barrier_kinit(): Make the barrier of all blocks of a launch ready.
    >>> T.tvm_global_barrier_kinit()
    T.tvm_global_barrier_kinit()
tvm_bmma_sync(d, d_index, a, a_index, b, b_index, c, c_index): As ``T.tvm_mma_sync``, of fragments of single bits.
    >>> T.tvm_bmma_sync(C, 0, A, 0, B, 0, C, 0)
    T.tvm_bmma_sync(C, 0, A, 0, B, 0, C, 0)
ptx_mma_sp(shape, a_layout, b_layout, a_type, b_type, c_type, *a_b_c_and_metadata): As ``T.ptx_mma``, of a sparse ``a``.
    >>> T.ptx_mma_sp("m16n8k32", "row", "col", "fp16", "fp16", "fp32", A, 0, B, 0, C, 0, i, 0, 0, False, dtype="void")
    T.ptx_mma_sp("m16n8k32", "row", "col", "fp16", "fp16", "fp32", A, 0, B, 0, C, 0, i, 0, 0, False, dtype="void")
mma_store_legacy(m, n, *rest): An older form of ``T.mma_store``, with its arguments in another order.
    >>> T.mma_store_legacy(16, 16, A, C, 0, 64, dtype="float32")
    T.mma_store_legacy(16, 16, A, C, 0, 64, dtype="float32")
mma_fill_legacy(count, *rest): An older form of ``T.mma_fill``, with its arguments in another order.
    >>> T.mma_fill_legacy(8, C, 0, dtype="float32")
    T.mma_fill_legacy(8, C, 0, dtype="float32")
simdgroup_load(*args): Load a matrix of a SIMD group on Apple's GPUs.
    >>> T.simdgroup_load(A, 0, B, 8, 8, 8)
    T.simdgroup_load(A, 0, B, 8, 8, 8)
simdgroup_store(*args): Store a matrix of a SIMD group on Apple's GPUs.
    >>> T.simdgroup_store(A, 0, B, 8, 8, 8)
    T.simdgroup_store(A, 0, B, 8, 8, 8)
simdgroup_multiply_accumulate(*args): ``d = a @ b + c`` of matrices of a SIMD group on Apple's GPUs.
    >>> T.simdgroup_multiply_accumulate(C, 0, A, 0, B, 0, C, 0)
    T.simdgroup_multiply_accumulate(C, 0, A, 0, B, 0, C, 0)
make_filled_simdgroup_matrix(*args): A matrix of a SIMD group on Apple's GPUs, with one value everywhere.
    >>> T.make_filled_simdgroup_matrix(A, 0, T.float32(0), 8, 8)
    T.make_filled_simdgroup_matrix(A, 0, T.float32(0), 8, 8)
texture2d_load(texture, *place): Load from a texture of OpenCL.
    >>> T.texture2d_load(A, i, 0, dtype="float32x4")
    T.texture2d_load(A, i, 0, dtype="float32x4")
texture2d_store(texture, *place_and_value): Store to a texture of OpenCL.
    >>> T.texture2d_store(A, i, 0, v)
    T.texture2d_store(A, i, 0, v)
dma_copy(*args): Begin a copy by the DMA engine of a Hexagon.
    >>> T.dma_copy(0, A, B, 1024, dtype="int32")
    T.dma_copy(0, A, B, 1024, dtype="int32")
dma_wait(*args): Wait for copies by the DMA engine of a Hexagon.
    >>> T.dma_wait(0, 0, dtype="int32")
    T.dma_wait(0, 0, dtype="int32")
dma_start_group(*args): Begin a group of copies by the DMA engine of a Hexagon.
    >>> T.dma_start_group(0)
    T.dma_start_group(0)
dma_end_group(*args): End a group of copies by the DMA engine of a Hexagon.
    >>> T.dma_end_group(0)
    T.dma_end_group(0)
nd_mem_alloc_with_scope(scope, *shape): Memory of several axes in a scope of the runtime.
    >>> T.nd_mem_alloc_with_scope("global.vtcm", 1, A, dtype="handle")
    T.nd_mem_alloc_with_scope("global.vtcm", 1, A, dtype="handle")
anylist_getitem(list, *index): An element of a list of a virtual machine.
    >>> T.anylist_getitem(A, 0, dtype="handle")
    T.anylist_getitem(A, 0, dtype="handle")
anylist_resetitem(list, *index): Clear an element of a list of a virtual machine.
    >>> T.anylist_resetitem(A, 0)
    T.anylist_resetitem(A, 0)
anylist_setitem_call_packed(list, *index_name_and_args): Set an element of a list to what a packed function returns.
    >>> T.anylist_setitem_call_packed(A, 0, "f", i)
    T.anylist_setitem_call_packed(A, 0, "f", i)
anylist_setitem_call_cpacked(list, *index_name_and_args): The same, by the function's symbol.
    >>> T.anylist_setitem_call_cpacked(A, 0, "f", i)
    T.anylist_setitem_call_cpacked(A, 0, "f", i)
vectorload(*args): Load a vector of a scalable type.
    >>> T.vectorload(A, 0, dtype="float32x4")
    T.vectorload(A, 0, dtype="float32x4")
vectorstore(*args): Store a vector of a scalable type.
    >>> T.vectorstore(A, 0, v)
    T.vectorstore(A, 0, v)
lookup_param(*name): A parameter of a linked model.
    >>> T.lookup_param("p0", dtype="handle")
    T.lookup_param("p0", dtype="handle")
"""
