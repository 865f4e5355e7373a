"""Calls of named operators, except those of tensor cores: functions ``(generator, call) -> C text``."""

from __future__ import annotations

from typing import Any

from tir.dtype import DType
from tir.expr import Call, StringImm
from tir.levels import is_shared
from tir.op import string_arg
from tir.small_floats import SMALL_FLOATS

from ..rules import as_shuffle
from .expr import bare, choice, convert, declare_type, each, narrowed, need_operators, plain, quoted
from .generator import RULES, Generator, expr_rule, op_rule
from .memory import data_of, element_of, place_of, pointer
from .types import c_type, float_constant, is_small

F32 = DType("float32")


@expr_rule(Call)
def _call(g: Generator, e: Call) -> str:
    rule = RULES.ops.get(e.op)
    if rule is None:
        reason = NO_MEANING.get(e.op, "it has no CUDA spelling")
        raise g.error(f"operator `{e.op}` cannot be compiled: {reason}: `{e!r}`")
    return rule(g, e)


# ---------------------------------------------------------------- floating functions

# (float32 name, float64 name): C's, which end in f for float32, then the exceptions
_MATH = (
    "exp exp2 exp10 log log2 log10 log1p expm1 sqrt rsqrt erf erfc sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh floor ceil trunc round pow atan2 fmod hypot copysign fma"
)
_SPELLED = {name: (f"{name}f", name) for name in _MATH.split()}
_SPELLED.update(nearbyint=("rintf", "rint"), fabs=("fabsf", "fabs"), abs=("fabsf", "fabs"))


def _math(g: Generator, e: Call) -> str:
    dtype = e.dtype
    if not dtype.is_float:
        if e.op == "abs" and dtype.is_int:
            x = g.expr(e.args[0])
            if dtype.code == "uint":
                return x
            return each(g, dtype, g.need("magnitude"), x)
        raise g.error(f"`{e!r}`: {e.op} takes floats, not {dtype}")
    args = [convert(g, g.expr(a), a.dtype, dtype) for a in e.args]
    wide = dtype if dtype.bits >= 32 else F32.with_lanes(dtype.lanes)
    args = [convert(g, a, dtype, wide) for a in args]
    result = each(g, wide, _SPELLED[e.op][wide.bits == 64], *args)
    return convert(g, result, wide, dtype)


for _name in _SPELLED:
    RULES.ops[_name] = _math


@op_rule("sigmoid")
def _sigmoid(g: Generator, e: Call) -> str:
    dtype = e.dtype
    wide = dtype if dtype.bits >= 32 else F32.with_lanes(dtype.lanes)
    x = convert(g, g.expr(e.args[0]), dtype, wide)
    one = float_constant(1.0, wide)
    f = "exp" if wide.bits == 64 else "expf"
    if wide.lanes == 1:
        result = f"({one} / ({one} + {f}(-{x})))"
    else:
        g.need("each")
        result = f"each([](auto a) {{ return {one} / ({one} + {f}(-a)); }}, {x})"
    return convert(g, result, wide, dtype)


@op_rule("nextafter")
def _nextafter(g: Generator, e: Call) -> str:
    dtype = e.dtype
    args = [convert(g, g.expr(a), a.dtype, dtype) for a in e.args]
    if not is_small(dtype):
        return each(g, dtype, "nextafter" if dtype.bits == 64 else "nextafterf", *args)
    g.need("next_after")
    return each(g, dtype, next_after(dtype), *args)


def next_after(dtype: DType) -> str:
    """The helper that gives the next number of a small float."""
    small = SMALL_FLOATS.get(str(dtype.element))
    sign = 1 << (dtype.bits - 1) if small is None or small.signed else 0
    has_minus_zero = small is None or small.has_negative_zero
    return f"next_after<{sign:#x}, {str(has_minus_zero).lower()}>"


@op_rule("ldexp")
def _ldexp(g: Generator, e: Call) -> str:
    dtype = e.dtype
    wide = dtype if dtype.bits >= 32 else F32.with_lanes(dtype.lanes)
    x = convert(g, g.expr(e.args[0]), dtype, wide)
    n = convert(g, g.expr(e.args[1]), e.args[1].dtype, DType("int32").with_lanes(dtype.lanes))
    return convert(g, each(g, wide, "ldexp" if wide.bits == 64 else "ldexpf", x, n), wide, dtype)


@op_rule("isnan", "isinf", "isfinite")
def _classify(g: Generator, e: Call) -> str:
    dtype = e.args[0].dtype
    if not dtype.is_float:
        return "true" if e.op == "isfinite" else "false"
    x = g.expr(e.args[0])
    if is_small(dtype):
        x = convert(g, x, dtype, F32.with_lanes(dtype.lanes))
    return each(g, e.dtype, f"(bool){e.op}", x) if dtype.lanes > 1 else f"((bool){e.op}({bare(x)}))"  # they give an int


# ---------------------------------------------------------------- bits


_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>"}


@op_rule(*_BITS)
def _bits(g: Generator, e: Call) -> str:
    need_operators(g, e.dtype)
    shift = e.op.startswith("shift")  # whose result has the type of its left operand
    a, b = (not shift and plain(*e.args)) or g.expr(e.args[0]), plain(*e.args[::-1]) or g.expr(e.args[1])
    if shift and e.dtype.lanes == 1 and not g.is_shift_amount(e.args[1], e.dtype):
        b = f"({b} & {e.dtype.bits - 1})"
    return narrowed(f"({a} {_BITS[e.op]} {b})", e.dtype)


@op_rule("bitwise_not")
def _invert(g: Generator, e: Call) -> str:
    need_operators(g, e.dtype)
    return narrowed(f"(~{g.expr(e.args[0])})", e.dtype)


def _unsigned(g: Generator, e: Any) -> str:
    """The bits of an integer, in an unsigned type that CUDA's bit-counting functions accept."""
    dtype = e.dtype
    if dtype.lanes > 1:
        raise g.error(f"`{e!r}`: bits are counted of scalars; lower it first")
    narrow = {8: "(unsigned char)", 16: "(unsigned short)"}.get(dtype.bits, "")
    return f"{narrow}{g.expr(e)}"


@op_rule("popcount")
def _popcount(g: Generator, e: Call) -> str:
    spelled = "__popcll" if e.args[0].dtype.bits == 64 else "__popc"
    return f"(({c_type(e.dtype)}){spelled}({_unsigned(g, e.args[0])}))"


@op_rule("clz")
def _clz(g: Generator, e: Call) -> str:
    bits = e.args[0].dtype.bits
    count = f"{'__clzll' if bits == 64 else '__clz'}({_unsigned(g, e.args[0])})"
    return f"(({c_type(e.dtype)})({count}{f' - {32 - bits}' if bits < 32 else ''}))"


@op_rule("reinterpret")
def _reinterpret(g: Generator, e: Call) -> str:
    source = e.args[0].dtype
    if e.dtype is source:
        return g.expr(e.args[0])
    if e.dtype.is_handle:
        return f"((void*){g.expr(e.args[0])})"
    declare_type(g, source)
    return f"{g.need('bits_to')}<{declare_type(g, e.dtype)}>({bare(g.expr(e.args[0]))})"


@op_rule("large_uint_imm")
def _large(g: Generator, e: Call) -> str:
    low, high = (a.value for a in e.args)
    return f"{(high << 32) | low}ull"


@op_rule("dp4a")
def _dp4a(g: Generator, e: Call) -> str:
    a, b, c = (g.expr(x) for x in e.args)
    word = [("int" if x.dtype.code == "int" else "unsigned") for x in e.args[:2]]
    parts = [
        f"{g.need('bits_to')}<{w}>({bare(t)})" if x.dtype.lanes == 4 else t for w, t, x in zip(word, (a, b), e.args)
    ]
    name = "__dp4a" if word[0] == word[1] else g.need("mixed_dp4a")
    return f"{name}({parts[0]}, {parts[1]}, {c})"


@op_rule("q_multiply_shift")
def _q_multiply_shift(g: Generator, e: Call) -> str:
    """x * y * 2**(s - q) in 64-bit integers, rounded, halves up."""
    x, y, q, s = (g.expr(a) for a in e.args)
    left, right = f"max((int){s}, 0)", f"({q} - min((int){s}, 0))"
    return f"((int)((((long long){x} << {left}) * {y} + (1ll << {right} >> 1)) >> {right}))"


# ---------------------------------------------------------------- choice, memory, calls


@op_rule("if_then_else")
def _if_then_else(g: Generator, e: Call) -> str:
    return choice(g, *e.args)


@op_rule("likely", "tvm_thread_invariant")
def _likely(g: Generator, e: Call) -> str:
    return g.expr(e.args[0])


@op_rule("address_of", "tvm_access_ptr")
def _address(g: Generator, e: Call) -> str:
    return f"({pointer(g, e)})"


@op_rule("isnullptr")
def _is_null(g: Generator, e: Call) -> str:
    return f"({g.expr(e.args[0])} == nullptr)"


@op_rule("undef")
def _undef(g: Generator, e: Call) -> str:
    return f"{declare_type(g, e.dtype)}()"


@op_rule("vectorlow", "vectorhigh", "vectorcombine")
def _lanes(g: Generator, e: Call) -> str:
    return g.expr(as_shuffle(e))


@op_rule("call_extern", "call_pure_extern")
def _extern(g: Generator, e: Call) -> str:
    """A CUDA function, by name."""
    declare_type(g, e.dtype)
    return f"{string_arg(e.args[0])}({', '.join(bare(g.expr(a)) for a in e.args[1:])})"


@op_rule("print")
def _print(g: Generator, e: Call) -> str:
    """Print the arguments in order, separated by blanks."""
    parts, values = [], []
    for a in e.args:
        if isinstance(a, StringImm):
            parts.append(a.value.replace("%", "%%"))
        elif a.dtype.is_float:
            parts.append("%g")
            values.append(f"(double)(float){g.expr(a)}" if is_small(a.dtype) else f"(double){g.expr(a)}")
        else:
            parts.append("%llu" if a.dtype.code == "uint" else "%lld")
            values.append(f"({'unsigned ' * (a.dtype.code == 'uint')}long long){g.expr(a)}")
    return f"printf({', '.join([quoted(' '.join(parts) + chr(10)), *values])})"


@op_rule("atomic_add")
def _atomic_add(g: Generator, e: Call) -> str:
    address, value = e.args[0], e.args[1]
    element = element_of(g, address)
    helper = {"float16": "half", "bfloat16": "bfloat16", "int64": "int64"}.get(str(element))
    if helper:
        g.need(f"atomic_add_{helper}")
    elif str(element) not in ("int32", "uint32", "uint64", "float32", "float64"):
        raise g.error(f"`{e!r}`: CUDA has no atomic addition of {element}")
    return f"atomicAdd({pointer(g, address)}, {bare(convert(g, g.expr(value), value.dtype, element))})"


@op_rule("prefetch")
def _prefetch(g: Generator, e: Call) -> str:
    return f'asm volatile("prefetch.global.L2 [%0];" :: "l"({pointer(g, e.args[0])}))'


@op_rule("ptx_ldg32")
def _ldg32(g: Generator, e: Call) -> str:
    """A guarded load: (register, guard, address, offset in the register's elements); 0 where the guard is false."""
    register, guard, address, offset = e.args
    if isinstance(address, Call):
        text = pointer(g, address)
        value = f"__ldg({text})" if place_of(g, data_of(address)).constant else f"*({text})"
    else:
        value = g.expr(address)
    target = pointer(g, register, offset)
    return f"*({target}) = {g.expr(guard)} ? {value} : {float_constant(0.0, F32)}"


# ---------------------------------------------------------------- threads


@op_rule("tvm_storage_sync")
def _sync(g: Generator, e: Call) -> str:
    scope = string_arg(e.args[0])
    if scope == "warp":
        return "__syncwarp()"
    if is_shared(scope):
        return "__syncthreads()"
    raise g.error(f"a barrier of {scope} memory: blocks of a launch have none; split the work into two kernels")


_SHUFFLES = {
    "tvm_warp_shuffle": "",
    "tvm_warp_shuffle_up": "_up",
    "tvm_warp_shuffle_down": "_down",
    "tvm_warp_shuffle_xor": "_xor",
}


@op_rule(*_SHUFFLES)
def _warp_shuffle(g: Generator, e: Call) -> str:
    mask, value, lane, width = (g.expr(a) for a in e.args[:4])
    name = f"__shfl{_SHUFFLES[e.op]}_sync"
    if e.dtype.bits < 32:
        declare_type(g, e.dtype)
        g.need("shuffle")
        name = f"shuffle{_SHUFFLES[e.op]}"
    return f"{name}({mask}, {bare(value)}, {bare(lane)}, {width})"


@op_rule("tvm_warp_activemask")
def _active(g: Generator, e: Call) -> str:
    return "__activemask()"


@op_rule("ret", "thread_return")
def _return(g: Generator, e: Call) -> str:
    return "return"


@op_rule("assume")
def _assume(g: Generator, e: Call) -> str:
    return f"__builtin_assume({bare(g.expr(e.args[0]))})"


# ---------------------------------------------------------------- what a kernel cannot say


def _reasons() -> dict[str, str]:
    groups = {
        "it runs on the host, outside of kernels": (
            "call_packed call_cpacked call_global tvm_call_packed tvm_call_cpacked tvm_call_packed_lowered "
            "tvm_call_cpacked_lowered tvm_call_trace_packed tvm_check_return tvm_struct_set tvm_struct_get "
            "tvm_stack_alloca tvm_stack_make_shape tvm_stack_make_array tvm_context_id tvm_throw_last_error "
            "nd_mem_alloc_with_scope anylist_getitem anylist_resetitem anylist_setitem_call_packed "
            "anylist_setitem_call_cpacked lookup_param start_profile_intrinsic end_profile_intrinsic"
        ),
        "it belongs to another backend": (
            "call_llvm_intrin call_llvm_pure_intrin call_spirv_pure_glsl450 simdgroup_load simdgroup_store "
            "simdgroup_multiply_accumulate make_filled_simdgroup_matrix texture2d_load texture2d_store "
            "amx_tile_zero amx_tile_load amx_tile_stream amx_tile_dot amx_tile_store get_active_lane_mask dma_copy dma_wait dma_start_group dma_end_group vectorload vectorstore "
            "q_multiply_shift_per_axis shift_right_rounding tvm_global_barrier_kinit"
        ),
        "a pass lowers it before": "tvm_thread_allreduce tvm_tuple type_annotation",
        "it needs sparse or one-bit operands, which no program here can make": "ptx_mma_sp tvm_bmma_sync",
        "its older argument order is ambiguous; use mma_fill, mma_store": "mma_store_legacy mma_fill_legacy",
    }
    return {name: reason for reason, names in groups.items() for name in names.split()}


NO_MEANING = _reasons()
