"""Calls of named operators: functions ``(generator, call) -> operand``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from typing import Any

from tir.dtype import DType
from tir.equal import structural_equal
from tir.expr import (
    LT,
    Broadcast,
    BufferLoad,
    Call,
    Expr,
    FloatImm,
    IntImm,
    Ramp,
    Select,
    StringImm,
    cast,
    constant,
    is_const,
)
from tir.interp.host_functions import PRINT
from tir.op import string_arg
from tir.small_floats import SMALL_FLOATS
from tir.stmt import BufferStore
from tir.transform.host_calls import refused_argument
from tir.visit import walk

from ..rules import as_shuffle
from .convert import F32
from .elementary import ELEMENTARY
from .expr import masked, may_fault
from .generator import RULES, Generator, expr_rule, op_rule
from .instructions import is_intrinsic
from .mathlib import F64, INLINE, INTRINSIC, LIBM, ZERO_BELOW, Lanes, by_lane, exp, libm
from .memory import Access, from_memory, to_memory
from .signature import slots_of
from .text import C_SYMBOL, OWN, RUNTIME, own_name, symbol
from .types import element_type, emulated, float_constant, memory_element, splat, value_type, vector
from .vector_loads import is_maskable


@expr_rule(Call)
def _call(g: Generator, e: Call) -> str:
    rule = RULES.ops.get(e.op)
    if rule is None:
        raise g.error(f"operator `{e.op}` is not defined on a CPU: `{e!r}`")
    return rule(g, e)


def _args(g: Generator, e: Call) -> list[str]:
    return [g.plain(a) for a in e.args]


# ---------------------------------------------------------------- floating functions


def _math(g: Generator, name: str, dtype: DType, args: list[str]) -> str:
    """A floating function of operands of one type; narrow types are computed in float32 and rounded once."""
    exact = name in ("fabs", "abs", "copysign", "floor", "ceil", "trunc", "round", "nearbyint")
    if emulated(dtype) or (dtype.bits < 32 and not exact):
        wide = F32.with_lanes(dtype.lanes)
        return g.convert(_math(g, name, wide, [g.convert(a, dtype, wide) for a in args]), wide, dtype)
    if name in INTRINSIC:
        return g.out.intrinsic(INTRINSIC[name], element_type(dtype), dtype.lanes, args)
    type_, element, lanes = value_type(dtype), element_type(dtype), dtype.lanes
    one = splat(element, float_constant(1.0, dtype.element), lanes)
    if name == "rsqrt":
        root = _math(g, "sqrt", dtype, args)
        return g.out.value(f"fdiv {type_} {one}, {root}")
    inline = INLINE.get(name) or ELEMENTARY.get(name)
    if dtype.bits == 32 and inline is not None:
        return inline(Lanes(g.out, lanes), *args)
    if name == "sigmoid":
        grown = _math(g, "exp", dtype, [g.out.value(f"fneg {type_} {args[0]}")])
        return g.out.value(f"fdiv {type_} {one}, {g.out.value(f'fadd {type_} {grown}, {one}')}")
    if name == "exp10":
        return _math(g, "pow", dtype, [splat(element, float_constant(10.0, dtype.element), lanes), args[0]])
    return libm(g.out, name, dtype, args)


def _math_rule(g: Generator, e: Call) -> str:
    args = [g.plain(a) for a in e.args]
    if e.op == "abs" and e.dtype.is_int:
        if e.dtype.code == "uint":
            return args[0]
        type_ = value_type(e.dtype)
        return g.out.call(f"llvm.abs.{_suffix(e.dtype)}", type_, [(type_, args[0]), ("i1", "false")])
    if not e.dtype.is_float:
        raise g.error(f"`{e!r}`: {e.op} takes floats, not {e.dtype}")
    args = [g.convert(text, a.dtype, e.dtype) for text, a in zip(args, e.args)]
    return _math(g, e.op, e.dtype, args)


for _name in {*INTRINSIC, *LIBM, *INLINE, "rsqrt", "exp10"}:
    RULES.ops[_name] = _math_rule


@op_rule("exp")
def _exp(g: Generator, e: Call) -> str:
    """``exp(x < least ? -inf : x)`` compares once: ``least`` replaces the limit below which exp is 0."""
    chosen = e.args[0]
    if e.dtype.element == F32 and isinstance(chosen, Select) and isinstance(chosen.condition, LT):
        x, least, other = chosen.false_value, _of_all(chosen.condition.b), _of_all(chosen.true_value)
        is_limit = isinstance(least, FloatImm) and least.value >= ZERO_BELOW and is_const(other, -math.inf)
        if is_limit and structural_equal(chosen.condition.a, x):
            return exp(Lanes(g.out, e.dtype.lanes), g.plain(x), least.value)
    return _math_rule(g, e)


def _of_all(e: Expr) -> Expr:
    """The scalar that a broadcast repeats; any other expression as it is."""
    return e.value if isinstance(e, Broadcast) else e


@op_rule("nextafter")
def _nextafter(g: Generator, e: Call) -> str:
    """By the bits of the type: of floats of one sign they are integers in the order of the floats."""
    dtype, out, lanes = e.dtype, g.out, e.dtype.lanes
    x, y = (g.convert(g.plain(a), a.dtype, dtype) for a in e.args)
    small = SMALL_FLOATS.get(dtype.element)
    wide = F32.with_lanes(lanes) if small else dtype
    a, b = (g.convert(v, dtype, wide) for v in (x, y))
    type_, word, flags = value_type(wide), f"i{max(8, dtype.bits)}", vector("i1", lanes)
    words = vector(word, lanes)
    x_bits, y_bits = (v if small else out.value(f"bitcast {type_} {v} to {words}") for v in (x, y))

    def compared(how: str, p: str, q: str) -> str:
        return out.value(f"fcmp {how} {type_} {p}, {q}")

    def chosen(condition: str, p: str, q: str) -> str:
        return out.value(f"select {flags} {condition}, {words} {p}, {words} {q}")

    def pattern(bits: int) -> str:
        return splat(word, str(bits), lanes)

    sign, zero = 1 << (dtype.bits - 1), "zeroinitializer"
    is_rising = compared("olt", a, b)
    is_growing = out.value(f"icmp eq {flags} {is_rising}, {compared('ogt', a, zero)}")
    moved = out.value(f"add {words} {x_bits}, {chosen(is_growing, pattern(1), pattern(-1))}")
    if small and not small.has_negative_zero and small.signed:
        moved = chosen(out.value(f"icmp eq {words} {moved}, {pattern(sign)}"), pattern(0), moved)
    least = chosen(is_rising, pattern(1), pattern(sign | 1))
    result = chosen(compared("oeq", a, zero), least, moved)
    result = chosen(compared("ueq", a, b), y_bits, result)
    result = chosen(compared("uno", a, a), x_bits, result)
    result = chosen(compared("uno", b, b), y_bits, result)
    return result if small else out.value(f"bitcast {words} {result} to {type_}")


@op_rule("ldexp")
def _ldexp(g: Generator, e: Call) -> str:
    """x * 2**n, exactly, by the C library lane by lane."""
    wide = F64 if e.dtype.bits == 64 else F32
    x = g.convert(g.plain(e.args[0]), e.dtype, wide.with_lanes(e.dtype.lanes))
    n = g.convert(g.plain(e.args[1]), e.args[1].dtype, DType("int32").with_lanes(e.dtype.lanes))
    element = element_type(wide)
    function = g.out.module.declare("ldexp" + ("f" if wide is F32 else ""), element, [element, "i32"])
    call = partial("call {0} {1}({0} {2}, i32 {3})".format, element, function)
    result = by_lane(g.out, [(x, element), (n, "i32")], e.dtype.lanes, element, call)
    return g.convert(result, wide.with_lanes(e.dtype.lanes), e.dtype)


@op_rule("isnan", "isinf", "isfinite")
def _classify(g: Generator, e: Call) -> str:
    (x,), dtype = _args(g, e), e.args[0].dtype
    if not dtype.is_float:
        return splat("i1", "true" if e.op == "isfinite" else "false", dtype.lanes)
    if emulated(dtype):
        x, dtype = g.convert(x, dtype, F32.with_lanes(dtype.lanes)), F32.with_lanes(dtype.lanes)
    type_ = value_type(dtype)
    if e.op == "isnan":
        return g.out.value(f"fcmp uno {type_} {x}, {x}")
    size = g.out.intrinsic("fabs", element_type(dtype), dtype.lanes, [x])
    infinity = splat(element_type(dtype), float_constant(float("inf"), dtype.element), dtype.lanes)
    return g.out.value(f"fcmp {'oeq' if e.op == 'isinf' else 'olt'} {type_} {size}, {infinity}")


# ---------------------------------------------------------------- bits


def _suffix(dtype: DType) -> str:
    element = element_type(dtype)
    return element if dtype.lanes == 1 else f"v{dtype.lanes}{element}"


@op_rule("popcount")
def _popcount(g: Generator, e: Call) -> str:
    dtype = e.args[0].dtype
    count = g.out.intrinsic("ctpop", element_type(dtype), dtype.lanes, [g.plain(e.args[0])])
    return g.convert(count, DType(f"uint{dtype.bits}").with_lanes(dtype.lanes), e.dtype)


@op_rule("clz")
def _clz(g: Generator, e: Call) -> str:
    dtype = e.args[0].dtype
    type_ = value_type(dtype)
    count = g.out.call(f"llvm.ctlz.{_suffix(dtype)}", type_, [(type_, g.plain(e.args[0])), ("i1", "false")])
    return g.convert(count, DType(f"uint{dtype.bits}").with_lanes(dtype.lanes), e.dtype)


_BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "shift_left": "shl"}


@op_rule(*_BITWISE, "shift_right")
def _bitwise(g: Generator, e: Call) -> str:
    a, b = _args(g, e)
    b = g.convert(b, e.args[1].dtype, e.dtype)
    if e.op.startswith("shift") and not g.is_shift_amount(e.args[1], e.dtype):
        b = g.out.value(
            f"and {value_type(e.dtype)} {b}, {splat(element_type(e.dtype), str(e.dtype.bits - 1), e.dtype.lanes)}"
        )
    op = _BITWISE.get(e.op) or ("ashr" if e.dtype.code == "int" else "lshr")
    return g.out.value(f"{op} {value_type(e.dtype)} {a}, {b}")


@op_rule("bitwise_not")
def _bitwise_not(g: Generator, e: Call) -> str:
    ones = "true" if e.dtype.is_bool else "-1"
    return g.out.value(
        f"xor {value_type(e.dtype)} {g.plain(e.args[0])}, {splat(element_type(e.dtype), ones, e.dtype.lanes)}"
    )


@op_rule("reinterpret")
def _reinterpret(g: Generator, e: Call) -> str:
    source, target = e.args[0].dtype, e.dtype
    value = g.plain(e.args[0])
    if source.is_handle or target.is_handle:
        return g.convert(value, source, target)
    if source.bits * source.lanes != target.bits * target.lanes:
        raise g.error(f"`{e!r}` reinterprets {source} as {target}: the sizes differ")
    a, b = value_type(source), value_type(target)
    return value if a == b else g.out.value(f"bitcast {a} {value} to {b}")


@op_rule("large_uint_imm")
def _large(g: Generator, e: Call) -> str:
    low, high = (a.value for a in e.args)
    return str((high << 32) | low)


@op_rule("q_multiply_shift")
def _q_multiply_shift(g: Generator, e: Call) -> str:
    """round(x * y * 2**(s - q)) in 64-bit integers, halves rounded up: the fixed-point product of quantized networks."""
    out, lanes = g.out, e.dtype.lanes
    i64 = vector("i64", lanes)
    wide = DType("int64").with_lanes(lanes)
    x, y, q, s = (g.convert(g.plain(a), a.dtype, wide.with_lanes(a.dtype.lanes)) for a in e.args)
    y, q, s = (out.splat("i64", v, lanes) if a.dtype.lanes == 1 else v for v, a in zip((y, q, s), e.args[1:]))
    zero = splat("i64", "0", lanes)
    left = out.intrinsic("smax", "i64", lanes, [s, zero])
    right = out.intrinsic("smax", "i64", lanes, [out.value(f"sub {i64} {zero}, {s}"), zero])
    total = out.value(f"add {i64} {right}, {q}")
    product = out.value(f"mul {i64} {out.value(f'shl {i64} {x}, {left}')}, {y}")
    one = splat("i64", "1", lanes)
    half = out.value(f"ashr {i64} {out.value(f'shl {i64} {one}, {total}')}, {one}")  # 0 where nothing is cut
    result = out.value(f"ashr {i64} {out.value(f'add {i64} {product}, {half}')}, {total}")
    return g.convert(result, wide, e.dtype)


@op_rule("dp4a")
def _dp4a(g: Generator, e: Call) -> str:
    """Four 8-bit products summed into the third argument."""
    out = g.out
    total = g.plain(e.args[2])
    for k in range(4):
        product = None
        for a in e.args[:2]:
            bytes_ = out.value(f"bitcast {value_type(a.dtype)} {g.plain(a)} to <4 x i8>")
            one = out.value(f"extractelement <4 x i8> {bytes_}, i64 {k}")
            wide = out.value(f"{'sext' if a.dtype.code == 'int' else 'zext'} i8 {one} to i32")
            product = wide if product is None else out.value(f"mul i32 {product}, {wide}")
        total = out.value(f"add i32 {total}, {product}")
    return total


# ---------------------------------------------------------------- vectors, choices, hints


@op_rule("if_then_else")
def _if_then_else(g: Generator, e: Call) -> str:
    condition, yes, no = e.args
    type_ = value_type(e.dtype)
    c = g.plain(condition)
    lanes = condition.dtype.lanes
    if not condition.dtype.is_bool:
        c = g.convert_.is_nonzero(c, condition.dtype)
    if lanes == 1 and isinstance(condition, Broadcast):
        condition = condition.value
    if lanes == 1 and (may_fault(g, yes) or may_fault(g, no)):
        if not _is_masked_term(g, yes, no):
            return g.choose(c, lambda: g.plain(yes), lambda: g.plain(no), type_)
        lanes = e.dtype.lanes
        c = g.out.splat("i1", c, lanes)
    flags = vector("i1", lanes)
    a = _in_lanes(g, lambda: c, lanes, yes)
    b = _in_lanes(g, lambda: g.out.value(f"xor {flags} {c}, {splat('i1', 'true', lanes)}"), lanes, no)
    return g.out.value(f"select {flags} {c}, {type_} {a}, {type_} {b}")


def _is_masked_term(g: Generator, yes: Expr, no: Expr) -> bool:
    """Whether a masked instruction loads ``yes`` for what is updated in registers: a branch would end the straight code, in which terms
    share what they load."""
    around = g.statements[-1] if g.statements else None
    if not isinstance(around, BufferStore) or around.buffer.data not in g.own or not isinstance(yes, BufferLoad):
        return False
    [index, *others] = yes.indices
    is_run = not others and isinstance(index, Ramp) and constant(index.stride) == 1
    return is_run and is_maskable(g, memory_element(yes.buffer.dtype), yes.dtype.lanes) and not may_fault(g, no)


_COSTLY = (LIBM | INLINE.keys()) - INTRINSIC.keys()  # many instructions each


def _in_lanes(g: Generator, mask: Callable[[], str], lanes: int, e: Expr) -> str:
    """``e``, of which the lanes of ``mask`` count. Where it could fault it reads memory in those only; costly functions
    are not computed for no lane at all."""
    costly = lanes > 1 and any(isinstance(n, Call) and n.op in _COSTLY for n in walk(e))
    if not costly and not may_fault(g, e):
        return g.plain(e)
    wanted = mask()

    def value() -> str:
        return masked(g, wanted, lanes, e) if may_fault(g, e) else g.plain(e)

    if not costly:
        return value()
    return g.choose(g.any_lane(wanted, lanes), value, lambda: "zeroinitializer", value_type(e.dtype))


@op_rule("vectorlow", "vectorhigh", "vectorcombine")
def _lanes(g: Generator, e: Call) -> str:
    return g.plain(as_shuffle(e))


@op_rule("likely", "tvm_thread_invariant")
def _same(g: Generator, e: Call) -> str:
    return g.plain(e.args[0])


@op_rule("assume")
def _assume(g: Generator, e: Call) -> str:
    if not may_fault(g, e.args[0]):
        g.out.call("llvm.assume", "void", [("i1", g.plain(e.args[0]))])
    return "0"


@op_rule("undef")
def _undef(g: Generator, e: Call) -> str:
    return g.out.value(f"freeze {value_type(e.dtype)} poison")


@op_rule("tvm_storage_sync", "start_profile_intrinsic", "end_profile_intrinsic", "type_annotation")
def _nothing(g: Generator, e: Call) -> str:
    return "0"


@op_rule("ret", "thread_return")
def _ret(g: Generator, e: Call) -> str:
    if g.in_parallel:
        raise g.error("T.ret inside a parallel loop")
    if e.args and not (isinstance(e.args[0], IntImm) and g.returned is None):
        if g.returned is None or g.return_dtype is None:
            raise g.error("T.ret of a value in a function that declares no return type")
        value = g.convert(g.plain(e.args[0]), e.args[0].dtype, g.return_dtype)
        stored = to_memory(g, value, g.return_dtype)
        g.out.emit(f"store {vector(memory_element(g.return_dtype), g.return_dtype.lanes)} {stored}, ptr {g.returned}")
    g.leave("0")
    g.out.start(g.out.label("after"))
    return "0"


# ---------------------------------------------------------------- pointers


@op_rule("address_of")
def _address_of(g: Generator, e: Call) -> str:
    load = e.args[0]
    if not isinstance(load, BufferLoad):
        raise g.error(f"`{e!r}`: address_of takes an element of a buffer")
    return Access(g, load.buffer, load.indices, is_made=False).pointer()


@op_rule("tvm_access_ptr")
def _access_ptr(g: Generator, e: Call) -> str:
    """(type, data, offset in elements, extent, read/write mask)"""
    kind, data, offset = e.args[0], e.args[1], e.args[2]
    dtype = DType(kind.value) if isinstance(kind, StringImm) else kind.dtype
    element = memory_element(dtype)
    base = g.plain(data)
    index = g.index(offset)
    if index == "0":
        return base
    whole = f"[{dtype.lanes} x {element}]" if dtype.lanes > 1 else element
    return g.out.value(f"getelementptr inbounds {whole}, ptr {base}, i64 {index}")


@op_rule("isnullptr")
def _isnull(g: Generator, e: Call) -> str:
    return g.out.value(f"icmp eq ptr {g.plain(e.args[0])}, null")


@op_rule("prefetch")
def _prefetch(g: Generator, e: Call) -> str:
    """(address, read 0 / write 1, locality 0..3, instruction 0 / data 1)"""
    given = zip_longest(map(constant, e.args[1:]), (0, 3, 1))
    numbers = [("i32", str(default if value is None else value)) for value, default in given]
    return g.out.call("llvm.prefetch.p0", "void", [("ptr", g.plain(e.args[0])), *numbers])


# ---------------------------------------------------------------- other code


def _abi_type(dtype: DType) -> str:
    return vector(memory_element(dtype), dtype.lanes)


def _abi_value(g: Generator, e: Expr) -> tuple[str, str]:
    """An argument of C code: its type and operand (bool and 4-bit integers as bytes)."""
    if isinstance(e, StringImm):
        return "ptr", g.expr(e)
    return _abi_type(e.dtype), to_memory(g, g.plain(e), e.dtype)


@op_rule("call_extern", "call_pure_extern")
def _extern(g: Generator, e: Call) -> str:
    """A C function by its symbol, or another function of the module by its name."""
    name = string_arg(e.args[0])
    if name in g.program.functions:
        return _call_function(g, name, e.args[1:], e.dtype)
    if not C_SYMBOL.fullmatch(name) or name.startswith((OWN, RUNTIME, "llvm.")):
        raise g.error(
            f"call_extern({name!r}): no function of the module and no C function has this name: a C name has letters, "
            f"digits and underscores, {RUNTIME} begins the generator's own, and call_llvm_intrin calls those of LLVM"
        )
    args = [_abi_value(g, a) for a in e.args[1:]]
    result = "void" if e.dtype.code == "void" else _abi_type(e.dtype)
    function = g.out.module.declare(name, result, [t for t, _ in args], optional=True)
    there = g.out.value(f"icmp ne ptr {function}, null")
    missing = "no library that is loaded has this function; load its library with RTLD_GLOBAL before the build"
    g.check(there, f"{g.func_name}: call_extern({name!r}): {missing}")
    text = f"call {result} {function}({', '.join(f'{t} {v}' for t, v in args)})"
    if result == "void":
        g.out.emit(text)
        return "0"
    return from_memory(g, g.out.value(text), e.dtype)


@op_rule("call_global")
def _global(g: Generator, e: Call) -> str:
    return _call_function(g, string_arg(e.args[0]), e.args[1:], e.dtype)


def _call_function(g: Generator, name: str, args: Any, dtype: DType) -> str:
    """A function of this module, through its argument-array entry; its error becomes ours."""
    func = g.program.functions.get(name)
    if func is None:
        raise g.error(f"calls `{name}`, which is not in the module")
    slots = slots_of(func)
    if len(slots) != len(args):
        sizes = [s.name for s in slots[len(func.params) :]] if len(args) == len(func.params) else []
        more = (
            f": {', '.join(sizes)} would be read off an array, and a pointer has none; make it a parameter"
            if sizes
            else ""
        )
        raise g.error(f"`{name}` takes {len(slots)} arguments here, got {len(args)}{more}")
    array = g.out.alloca("i64", len(slots) + 1, 8)
    for k, (arg, slot) in enumerate(zip(args, slots)):
        if refusal := refused_argument(slot, arg):
            raise g.error(f"its call of `{name}` {refusal}")
        place = g.out.value(f"getelementptr inbounds i64, ptr {array}, i64 {k}")
        value = to_memory(g, g.convert(g.plain(arg), arg.dtype, slot.dtype), slot.dtype)
        g.out.emit(f"store {_abi_type(slot.dtype)} {value}, ptr {place}, align 8")
    g.out.divisions += 1  # assumed: the callee may be inlined and may divide
    code = g.out.value(f"call i32 {symbol(own_name(g.program.entries[name]))}(ptr {array})")
    if g.out.after_call:
        g.out.emit(g.out.after_call)
    g.check_code(code)
    if func.ret_type.code == "void":
        return "0"
    place = g.out.value(f"getelementptr inbounds i64, ptr {array}, i64 {len(slots)}")
    value = from_memory(g, g.out.value(f"load {_abi_type(func.ret_type)}, ptr {place}, align 8"), func.ret_type)
    return g.convert(value, func.ret_type, dtype) if dtype.code != "void" else value


@op_rule("call_llvm_intrin", "call_llvm_pure_intrin")
def _llvm_intrinsic(g: Generator, e: Call) -> str:
    """An LLVM intrinsic by its full name, overload suffix included: ``"llvm.x86.avx512.vpdpbusd.512"``."""
    if not e.args or not isinstance(e.args[0], StringImm):
        raise g.error(f"`{e!r}`: name the intrinsic by a string such as 'llvm.fma.v16f32'")
    name = e.args[0].value
    if not name.startswith("llvm."):
        raise g.error(f"{name!r} is no LLVM intrinsic: their names begin with 'llvm.'")
    args = [(value_type(a.dtype), g.plain(a)) for a in e.args[1:]]
    result = "void" if e.dtype.code == "void" else value_type(e.dtype)
    if not C_SYMBOL.fullmatch(name.replace(".", "_")) or not is_intrinsic(name, result, tuple(t for t, _ in args)):
        raise g.error(
            f"LLVM has no intrinsic {name!r}; the name is whole, with the types it is for, as 'llvm.fma.v16f32'"
        )
    return g.out.call(name, result, args)


@op_rule("call_packed", "tvm_call_packed", "call_cpacked", "tvm_call_cpacked")
def _packed(g: Generator, e: Call) -> str:
    """A call of a registered Python function: arguments in 8-byte slots, and the number of this call site.

    The run-time side is :mod:`codegen.runtime.packed_functions`.
    """
    return _call_python(g, e, string_arg(e.args[0]), [_described(arg) for arg in e.args[1:]])


@op_rule("print")
def _print(g: Generator, e: Call) -> str:
    """Print the arguments in order, separated by blanks, where Python prints."""
    wide = (cast("float32", a) if emulated(a.dtype) else a for a in e.args)
    return _call_python(
        g, e, PRINT, [("shown" if k == "value" else k, what, p) for k, what, p in map(_described, wide)]
    )


def _call_python(g: Generator, e: Call, name: str, arguments: list[tuple[str, str, list[Any]]]) -> str:
    described = [[kind, what] for kind, what, _ in arguments]
    args = [part for _, _, parts in arguments for part in parts]  # one for each slot
    array = g.out.alloca("i64", len(args) + 1, 8)
    for k, arg in enumerate(args):
        place = g.out.value(f"getelementptr inbounds i64, ptr {array}, i64 {k}")
        if arg.dtype.lanes > 1:
            raise g.error(f"call_packed({name!r}) takes scalars and pointers, not {arg.dtype}")
        g.out.emit(f"store {_abi_type(arg.dtype)} {to_memory(g, g.plain(arg), arg.dtype)}, ptr {place}, align 8")
    result_dtype = e.dtype if e.dtype.code not in ("void", "handle") else DType("void")
    g.program.packed.append({"name": name, "args": described, "result": str(result_dtype)})
    callback = g.out.value("load ptr, ptr @__tir_packed, align 8")
    there = g.out.value(f"icmp ne ptr {callback}, null")
    g.check(there, f"{g.func_name}: call_packed({name!r}) needs Python, and was called without")
    code = g.out.value(f"call i32 {callback}(i32 {len(g.program.packed) - 1}, ptr {array})")
    fine = g.out.value(f"icmp eq i32 {code}, 0")
    g.check(fine, f"{g.func_name}: call_packed({name!r}) failed")
    if result_dtype.code == "void":
        return "0"
    place = g.out.value(f"getelementptr inbounds i64, ptr {array}, i64 {len(args)}")
    return from_memory(g, g.out.value(f"load {_abi_type(result_dtype)}, ptr {place}, align 8"), result_dtype)


def _described(arg: Any) -> tuple[str, str, list[Any]]:
    """The kind of an argument of a packed function, what is known of it now, and the values that fill its slots."""
    if isinstance(arg, StringImm):
        return "string", arg.value, []
    if not (isinstance(arg, Call) and arg.op == "tvm_stack_make_array"):
        return "value", str(arg.dtype), [arg]
    data, shape, strides, _, zero, offset = arg.args
    sizes = [cast("int64", e) for group in (shape, strides) if isinstance(group, Call) for e in group.args]
    rank = len(shape.args)
    return "array", f"{zero.dtype}:{rank}:{len(sizes) - rank}", [data, cast("int64", offset), *sizes]


@op_rule("atomic_add")
def _atomic_add(g: Generator, e: Call) -> str:
    """(pointer, value): the old value; atomic between parallel iterations."""
    value = e.args[1]
    op = "fadd" if value.dtype.is_float else "add"
    if emulated(value.dtype) or value.dtype.lanes > 1:
        raise g.error(f"atomic_add of {value.dtype}")
    text = f"atomicrmw {op} ptr {g.plain(e.args[0])}, {value_type(value.dtype)} {g.plain(value)} monotonic"
    return g.out.value(text)
