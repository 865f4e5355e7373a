"""Statements."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tir.aliases import other_names
from tir.annotations import UNROLL, UNROLL_EXPLICIT
from tir.dtype import DType
from tir.expr import BufferLoad, Call, IntImm, StringImm, constant
from tir.launches import bytes_of
from tir.levels import is_fragment, is_in_registers, is_private, is_shared
from tir.op import string_arg
from tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    While,
    is_nop,
)
from tir.transform.engines import ALIGNMENT
from tir.visit import uses_var, walk

from ..c_names import identifier
from .expr import LEVELS, declare_type, quoted, within
from .generator import Generator, stmt_rule
from .matrix import allocate_fragment
from .memory import Place, bare, base_of, is_scalar, place_of, store
from .types import c_type, float_constant, int_constant
from .warp import lanes_of_warp

UNROLLED_COPIES = 4096  # limit of copies of a body when unrolling to keep an array in registers


@stmt_rule(SeqStmt)
def _seq(g: Generator, s: SeqStmt) -> None:
    for part in s.stmts:
        g.stmt(part)


@stmt_rule(BufferStore)
def _store(g: Generator, s: BufferStore) -> None:
    g.emit(store(g, s.buffer, s.indices, s.value))


@stmt_rule(Evaluate)
def _evaluate(g: Generator, s: Evaluate) -> None:
    if is_nop(s):
        return
    text = g.expr(s.value)
    if text:
        g.emit(f"{bare(text)};")


@stmt_rule(For)
def _for(g: Generator, s: For) -> None:
    if s.kind not in ("serial", "unrolled", "parallel"):  # within a thread a parallel loop runs serially
        raise g.error(f"a {s.kind} loop `{s.loop_var.name}` is left after lowering: {s.thread or 'lower it first'}")
    first, extent = (str(s.min.value) if isinstance(s.min, IntImm) else g.expr(s.min)), g.expr(s.extent)
    name, type_ = g.fresh(s.loop_var.name), c_type(s.loop_var.dtype)
    g.names[s.loop_var] = name
    zero = isinstance(s.min, IntImm) and s.min.value == 0
    if isinstance(s.min, IntImm) and isinstance(s.extent, IntImm):
        end = str(s.min.value + s.extent.value)
    else:
        end = within(extent, LEVELS["<<"]) if zero else f"{first} + {extent}"
        if any(
            g.analyzer.may_change(e, s.body) for e in (s.min, s.extent)
        ):  # C would evaluate it again before each iteration
            bound = g.fresh(f"{s.loop_var.name}_end")
            g.emit(f"const {c_type(s.loop_var.dtype)} {bound} = {end};")
            end = bound
    pragma = _pragma(s)
    if pragma:
        g.emit(pragma)
    with g.analyzer.scope():
        g.analyzer.bind(s.loop_var, s.domain, s.body)
        g.block(f"for ({type_} {name} = {bare(first)}; {name} < {end}; ++{name})", s.body)
    g.release(name)


def _pragma(s: For) -> str:
    if s.kind == "unrolled" or s.annotations.get(UNROLL):
        return "#pragma unroll"
    if isinstance(s.extent, IntImm) and _indexes_registers(s) and _copies(s) <= UNROLLED_COPIES:
        return "#pragma unroll"  # the array stays in registers
    return ""


def _copies(s: For) -> int:
    """Copies of the innermost body once the loop and those inside are unrolled."""
    extents = (constant(n.extent) for n in walk(s) if isinstance(n, For))
    return prod(n for n in extents if n is not None)


def _indexes_registers(s: For) -> bool:
    """Whether the loop's variable occurs in an index into memory that should be in registers."""
    for node in walk(s.body):
        if isinstance(node, (BufferLoad, BufferStore)) and is_private(node.buffer.scope):
            if any(uses_var(i, {s.loop_var}) for i in node.indices):
                return True
        if isinstance(node, Call) and node.op.startswith(("ptx_mma", "ptx_ldmatrix", "mma_", "tvm_")):
            if any(uses_var(a, {s.loop_var}) for a in node.args if not isinstance(a, StringImm)):
                return True
        if isinstance(node, Call) and node.op == "ptx_wgmma" and uses_var(node.args[5], {s.loop_var}):  # its sums
            return True
    return False


@stmt_rule(While)
def _while(g: Generator, s: While) -> None:
    g.block(f"while ({bare(g.expr(s.condition))})", s.body)


@stmt_rule(IfThenElse)
def _if(g: Generator, s: IfThenElse) -> None:
    if s.condition.dtype.lanes > 1:
        raise g.error(f"a condition of vectors, `{s.condition!r}`, cannot be compiled; lower it first")
    condition = bare(g.expr(s.condition))
    g.emit(f"if ({condition}) {{")
    g.depth += 1
    with g.analyzer.constraint(s.condition, s.then_case):
        g.stmt(s.then_case)
    g.depth -= 1
    if s.else_case is not None:
        g.emit("} else {")
        g.depth += 1
        g.stmt(s.else_case)
        g.depth -= 1
    g.emit("}")


def _in_scope(g: Generator, var: Any, declare: Callable[[], None]) -> None:
    """Emit the declaration of a variable and the code in its scope; in braces if it was declared before, as in copies of
    an unrolled body."""
    if var not in g.declared:
        g.declared.add(var)
        declare()
        return
    g.emit("{")
    g.depth += 1
    declare()
    g.depth -= 1
    g.emit("}")


@stmt_rule(LetStmt)
def _let(g: Generator, s: LetStmt) -> None:
    _in_scope(g, s.var, lambda: _declare_let(g, s))


def _declare_let(g: Generator, s: LetStmt) -> None:
    value = bare(g.expr(s.value))
    if s.var.dtype.is_handle:
        element = s.var.pointer_dtype or DType("void")
        name = g.name(s.var, s.var.name)
        g.emit(f"{c_type(element)}* const {name} = ({c_type(element)}*)({value});")
        g.pointers[s.var] = Place(name, element, s.var.scope)
    else:
        name = g.name(s.var, s.var.name)
        g.emit(f"const {declare_type(g, s.var.dtype)} {name} = {value};")
    with g.analyzer.scope():
        g.analyzer.note_aliases(other_names(s))
        g.analyzer.bind(s.var, s.value, s.body)
        g.stmt(s.body)


@stmt_rule(AssertStmt)
def _assert(g: Generator, s: AssertStmt) -> None:
    message = quoted(f"{g.func_name}: assertion failed: {string_arg(s.message)}\n".replace("%", "%%"))
    g.emit(f"if (!{g.expr(s.condition)}) {{ printf({message}); __trap(); }}")


@stmt_rule(AttrStmt)
def _attr(g: Generator, s: AttrStmt) -> None:
    if s.attr_key.startswith("pragma_") and s.attr_key != UNROLL_EXPLICIT:
        detail = f" {s.value!r}" if not isinstance(s.value, IntImm) or s.value.value not in (0, 1) else ""
        g.emit(f"// {s.attr_key.removeprefix('pragma_')}{detail}")
    g.stmt(s.body)


@stmt_rule(Allocate)
def _allocate(g: Generator, s: Allocate) -> None:
    _in_scope(g, s.buffer_var, lambda: _declare_memory(g, s))


def _declare_memory(g: Generator, s: Allocate) -> None:
    var, scope = s.buffer_var, s.buffer_var.scope
    count = max(bytes_of(s) // s.dtype.bytes, 1)  # C++ has no array of no elements
    if is_fragment(scope):
        allocate_fragment(g, var, s.dtype, count)
        g.stmt(s.body)
        return
    type_, name = declare_type(g, s.dtype), g.name(var, var.name)
    total = f"{count}] /* {count * s.dtype.bytes} bytes */" if is_shared(scope) else f"{count}]"
    place = Place(name, s.dtype, scope)
    start = ALIGNMENT if var in g.engines else 128
    if scope == "shared":
        g.emit(f"__shared__ alignas({start}) {type_} {name}[{total};")
    elif scope == "shared.dyn":
        g.emit(
            f"extern __shared__ __align__({start}) unsigned char {name}[];  // {count * s.dtype.bytes} bytes, given at launch"
        )
        place.element = DType("uint8")
    elif is_in_registers(scope):
        if scope == "local" and count == 1 and is_scalar(var, s.dtype, s.body):
            place.scalar = True
            g.emit(f"{type_} {name};")
            g.pointers[var] = place
            g.stmt(s.body)
            return
        widest = min(16, 1 << (count * s.dtype.bytes).bit_length() - 1)  # bytes of the vector accesses that fit
        align = f"alignas({widest}) " if widest > s.dtype.bytes else ""
        g.emit(f"{align}{type_} {name}[{total};")
    elif scope == "warp":
        place.lanes_of_warp = lanes_of_warp(g, s, count)
        if place.lanes_of_warp:
            own = count // 32
            g.emit(f"alignas(16) {type_} {name}[{own}];  // of the warp's {count}, those of this lane")
        else:
            memory = g.fresh(f"{var.name}_of_warps")
            g.emit(f"__shared__ alignas(128) {type_} {memory}[{g.warps}][{count}];")
            warp = "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32"
            g.emit(f"{type_}* const {name} = {memory}[{warp}];")
    else:
        raise g.error(f"`{var.name}` is allocated in {scope} memory inside a kernel; a kernel has local, shared, warp")
    g.pointers[var] = place
    g.stmt(s.body)


@stmt_rule(AllocateConst)
def _allocate_const(g: Generator, s: AllocateConst) -> None:
    import numpy as np

    from tir.interp.numbers import constant_data

    data, dtype = constant_data(s.data, s.dtype), DType(s.dtype)
    name = f"{g.symbol}_{identifier(s.buffer_var.name)}_{len(g.statics)}"  # a name among those of all kernels
    type_, place = declare_type(g, dtype), name
    if dtype.is_int or dtype.is_bool:
        values = [int_constant(int(x), dtype) for x in data]
    elif dtype in ("float32", "float64") and np.isfinite(data).all():
        values = [float_constant(float(x), dtype) for x in data]
    else:  # CUDA initializes an array of these by calls, and constant memory takes none
        type_, place = _BITS[data.itemsize], f"reinterpret_cast<const {type_}*>({name})"
        values = [f"{x:#x}" for x in data.view(f"uint{8 * data.itemsize}")]
    rows = [", ".join(values[k : k + 16]) for k in range(0, len(values), 16)]
    joined = ",\n  ".join(rows)
    g.statics.append(f"static __constant__ {type_} {name}[{len(values)}] = {{\n  {joined}\n}};")
    g.pointers[s.buffer_var] = Place(place, dtype, "global", const=True)
    g.stmt(s.body)


_BITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


@stmt_rule(DeclBuffer)
def _decl_buffer(g: Generator, s: DeclBuffer) -> None:
    """A view with another type or an offset becomes a pointer; any other is an alias of its memory."""
    b = s.buffer
    place = place_of(g, b.data)
    offset = b.elem_offset is not None and not (isinstance(b.elem_offset, IntImm) and b.elem_offset.value == 0)
    if place.lanes_of_warp or is_fragment(place.scope) or (place.element is b.dtype and not offset):
        g.stmt(s.body)
        return
    text = base_of(g, b)
    const = "const " * place.const
    name = g.fresh(b.name)
    g.emit(f"{const}{declare_type(g, b.dtype)}* const {name} = {bare(text)};")
    g.names[b] = name
    g.stmt(s.body)
    g.names.pop(b, None)  # out of scope: another declaration of the buffer may follow
