"""Tensor cores and asynchronous copies, as inline PTX: wmma fragments, mma.sync, ldmatrix, cp.async.

Fragments are plain arrays of registers: ``nvcuda::wmma`` would need mma.h of another wheel, and hides the registers
from whoever debugs a kernel.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Any

from tir.dtype import DType
from tir.expr import Call, Expr, IntImm, Var
from tir.levels import is_shared
from tir.op import string_arg

from .expr import convert, declare_type
from .generator import Generator, op_rule
from .memory import Place, bare, data_of, element_of, place_of, pointer
from .prelude import INLINE
from .types import c_type

_PTX = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "s8", "uint8": "u8",
    "int32": "s32", "int4": "s4", "uint4": "u4", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip
# as users name operands of mma: PTX's, TVM's and the dialect's names
TYPE_NAMES = {
    "fp16": "f16", "fp32": "f32", "fp64": "f64", "int8": "s8", "uint8": "u8", "int4": "s4", "uint4": "u4",
    "int32": "s32", **_PTX,
}  # fmt: skip


def inline(
    g: Generator, name: str, parameters: str, text: str, outputs: list[str], inputs: list[str], memory: bool
) -> str:
    """An inline function of one PTX instruction; operands are ``"r"(x)`` texts, numbered in order. Returns its name.

    Without ``memory`` it is pure, and the compiler may move it.
    """
    rows = [f'asm{" volatile" if memory else ""}("{text};"']
    for operands in (outputs, inputs):
        rows += textwrap.wrap(
            ": " + ", ".join(operands), 100, initial_indent=" " * 13, subsequent_indent=" " * 15, break_long_words=False
        )
    body = "\n  ".join(rows) + (' : "memory");' if memory else ");")
    return g.function(name, f"{INLINE} void {name}({parameters}) {{\n  {body}\n}}")


def register_set(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{first + k}" for k in range(count)) + "}"


# ---------------------------------------------------------------- wmma


@dataclass(frozen=True)
class Fragment:
    """A wmma operand: its role, shape, type, and the registers of one lane."""

    role: str
    m: int
    n: int
    k: int
    dtype: DType
    ptx: str

    @property
    def elements(self) -> int:
        return {"a": self.m * self.k, "b": self.k * self.n}.get(self.role, self.m * self.n)

    @property
    def registers(self) -> int:
        if self.role in ("c", "d"):
            return self.elements // 32 // (2 if self.ptx == "f16" else 1)
        if self.ptx == "f16":
            return 8  # each half-word of a 16 x 16 matrix is held by two lanes
        return self.elements * self.dtype.bits // (64 if self.ptx == "f64" else 32) // 32

    @property
    def register(self) -> tuple[str, str]:
        """C type and asm constraint."""
        if self.ptx == "f64":
            return "double", "d"
        return ("float", "f") if self.ptx == "f32" else ("unsigned", "r")

    @property
    def shape(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"


_SHAPES = {
    "f16": ((16, 16, 16), (32, 8, 16), (8, 32, 16)),
    "bf16": ((16, 16, 16), (32, 8, 16), (8, 32, 16)),
    "s8": ((16, 16, 16), (32, 8, 16), (8, 32, 16)),
    "u8": ((16, 16, 16), (32, 8, 16), (8, 32, 16)),
    "tf32": ((16, 16, 8),),
    "f64": ((8, 8, 4),),
}


def allocate_fragment(g: Generator, var: Var, dtype: DType, count: int) -> None:
    """Declare the registers of ``count`` elements of fragments."""
    shape = g.fragments.get(var)
    if shape is None:
        raise g.error(f"fragment `{var.name}` is never filled or loaded, so its shape is not known")
    role = {"matrix_a": "a", "matrix_b": "b", "accumulator": "c"}.get(var.scope.removeprefix("wmma."))
    if role is None:
        raise g.error(
            f"`{var.name}`: there is no scope {var.scope!r}; fragments are wmma.matrix_a, matrix_b, accumulator"
        )
    ptx = _PTX.get(str(dtype), str(dtype))
    if role != "c" and ptx == "f32":
        ptx = "tf32"
    if role != "c" and shape not in _SHAPES.get(ptx, ()):
        legal = ", ".join("m{}n{}k{}".format(*s) for s in _SHAPES.get(ptx, ())) or "none"
        raise g.error(f"`{var.name}`: wmma has no shape m{shape[0]}n{shape[1]}k{shape[2]} of {dtype}; it has {legal}")
    m, n, k = shape
    fragment = Fragment(role, m, n, k, dtype, ptx)
    number = -(-count // fragment.elements)
    name = g.name(var, var.name)
    g.emit(f"{fragment.register[0]} {name}[{number}][{fragment.registers}];  // {var.scope} {fragment.shape} {dtype}")
    place = g.pointers[var] = Place(name, dtype, var.scope)
    g.fragments[place.name] = fragment


def _fragment(g: Generator, e: Any) -> tuple[Fragment, str]:
    var = data_of(e)
    place = place_of(g, var)
    found = g.fragments.get(place.name)
    if found is None:
        raise g.error(f"`{place.name}` is no wmma fragment: its scope is {place.scope or 'global'}")
    return found, place.name


def _registers(f: Fragment, name: str, output: bool = False) -> list[str]:
    sign = "=" if output else ""
    return [f'"{sign}{f.register[1]}"({name}[{r}])' for r in range(f.registers)]


def _parameter(f: Fragment, name: str, output: bool = False) -> str:
    return f"{'const ' * (not output)}{f.register[0]} (&{name})[{f.registers}]"


def _space(g: Generator, e: Any) -> str:
    scope = place_of(g, data_of(e)).scope
    return "shared" if is_shared(scope) else "global"


def _address(g: Generator, e: Any) -> str:
    """The asm operand of a matrix in memory at ``p``."""
    return f'"r"({g.need("shared_address")}(p))' if _space(g, e) == "shared" else '"l"(p)'


def _layout(e: Any) -> str:
    return {"row_major": "row", "col_major": "col"}[string_arg(e)]


@op_rule("tvm_load_matrix_sync")
def _wmma_load(g: Generator, e: Call) -> str:
    target, _m, _n, _k, index, memory, stride, layout = e.args
    f, name = _fragment(g, target)
    space, n = _space(g, memory), f.registers
    text = f"wmma.load.{f.role}.sync.aligned.{_layout(layout)}.{f.shape}.{space}.{f.ptx} {register_set(0, n)}, [%{n}], %{n + 1}"
    function = inline(
        g,
        f"wmma_load_{f.role}_{_layout(layout)}_{f.shape}_{f.ptx}_{space}",
        f"{_parameter(f, f.role, True)}, const void* p, unsigned stride",
        text,
        _registers(f, f.role, True),
        [_address(g, memory), '"r"(stride)'],
        memory=True,
    )
    return f"{function}({name}[{bare(g.expr(index))}], {pointer(g, memory)}, {bare(g.expr(stride))})"


@op_rule("tvm_store_matrix_sync")
def _wmma_store(g: Generator, e: Call) -> str:
    source, _m, _n, _k, index, memory, stride, layout = e.args
    f, name = _fragment(g, source)
    space, n = _space(g, memory), f.registers
    text = f"wmma.store.d.sync.aligned.{_layout(layout)}.{f.shape}.{space}.{f.ptx} [%0], {register_set(2, n)}, %1"
    function = inline(
        g,
        f"wmma_store_{_layout(layout)}_{f.shape}_{f.ptx}_{space}",
        f"void* p, {_parameter(f, 'd')}, unsigned stride",
        text,
        [],
        [_address(g, memory), '"r"(stride)', *_registers(f, "d")],
        memory=True,
    )
    return f"{function}({pointer(g, memory)}, {name}[{bare(g.expr(index))}], {bare(g.expr(stride))})"


@op_rule("tvm_fill_fragment")
def _wmma_fill(g: Generator, e: Call) -> str:
    target, _m, _n, _k, index, value = e.args
    f, name = _fragment(g, target)
    at = bare(g.expr(index))
    text = convert(g, g.expr(value), value.dtype, f.dtype)
    if f.register[0] == "unsigned" and f.dtype.bits < 32:
        if isinstance(value, IntImm) and value.value == 0 or getattr(value, "value", None) == 0:
            text = "0u"
        elif f.dtype.bits == 16:
            text = f"({text}).bits * 0x10001u"
        else:
            text = f"(unsigned)(unsigned char){text} * 0x1010101u"
    return f"{g.need('fill')}<{f.registers}>({name}[{at}], {bare(text)})"


@op_rule("tvm_mma_sync")
def _wmma_mma(g: Generator, e: Call) -> str:
    d, d_at, a, a_at, b, b_at, c, c_at = e.args
    (fd, nd), (fa, na), (fb, nb), (fc, nc) = (_fragment(g, x) for x in (d, a, b, c))
    layouts = g.fragments.get(("layout", na), "row"), g.fragments.get(("layout", nb), "row")
    types = f"{fd.ptx}.{fc.ptx}" if fa.ptx == "f16" else f"{fd.ptx}.{fa.ptx}.{fb.ptx}.{fc.ptx}"
    first, sets = 0, []
    for f in (fd, fa, fb, fc):
        sets.append(register_set(first, f.registers))
        first += f.registers
    text = f"wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{fa.shape}.{types} {', '.join(sets)}"
    function = inline(
        g,
        f"wmma_mma_{layouts[0]}_{layouts[1]}_{fa.shape}_{fd.ptx}_{fa.ptx}_{fb.ptx}_{fc.ptx}",
        ", ".join([_parameter(fd, "d", True), _parameter(fa, "a"), _parameter(fb, "b"), _parameter(fc, "c")]),
        text,
        _registers(fd, "d", True),
        [*_registers(fa, "a"), *_registers(fb, "b"), *_registers(fc, "c")],
        memory=False,
    )
    places = [f"{n}[{bare(g.expr(at))}]" for n, at in ((nd, d_at), (na, a_at), (nb, b_at), (nc, c_at))]
    return f"{function}({', '.join(places)})"


def find_fragments(g: Generator, body: Any) -> None:
    """Record the shape of every wmma fragment, and the memory layout of its operand."""
    from tir.visit import walk

    for node in walk(body):
        if not isinstance(node, Call) or node.op not in (
            "tvm_load_matrix_sync",
            "tvm_store_matrix_sync",
            "tvm_fill_fragment",
        ):
            continue
        var = data_of(node.args[0])
        if var is None:
            raise g.error(f"{node.op}: `{node.args[0]!r}` is no fragment")
        shape = tuple(a.value if isinstance(a, IntImm) else -1 for a in node.args[1:4])
        known = g.fragments.setdefault(var, shape)
        if known != shape:
            raise g.error(f"fragment `{var.name}` is used as {known} and as {shape}")
        if node.op == "tvm_load_matrix_sync":
            layout = _layout(node.args[7])
            if g.fragments.setdefault(("layout", g.name(var, var.name)), layout) != layout:
                raise g.error(f"fragment `{var.name}` is loaded by rows and by columns; use two fragments")


# ---------------------------------------------------------------- mma.sync, ldmatrix

_MMA_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")


def words(name: str, count: int, letter: str, sign: str = "") -> list[str]:
    """``count`` 32-bit registers of an array, as asm operands."""
    return [f'"{sign}{letter}"({name}[{k}])' for k in range(count)]


def words_at(g: Generator, e: Any, offset: Expr, type_: str) -> str:
    """A pointer to registers, cast to a pointer to 32-bit words."""
    text = pointer(g, e, offset)
    held = c_type(element_of(g, e))
    if held == type_:
        return text
    return f"({type_}*)({text})" if " " in text and not text.startswith("&") else f"({type_}*){text}"


def constant(e: Call, position: int, what: str, g: Generator) -> int:
    """An argument that the instruction itself holds."""
    value = getattr(e.args[position], "value", None)
    if not isinstance(value, int):
        raise g.error(f"{e.op}: {what} is a constant, not `{e.args[position]!r}`")
    return int(value)


@op_rule("ptx_mma")
def _mma(g: Generator, e: Call) -> str:
    shape, la, lb, ta, tb, tc, a, a_at, b, b_at, c, c_at, *rest = e.args
    found = _MMA_SHAPE.match(string_arg(shape))
    if found is None:
        raise g.error(f"ptx_mma: {string_arg(shape)!r} is no shape; write m16n8k16")
    m, n, k = map(int, found.groups())
    pa, pb, pc = (TYPE_NAMES.get(string_arg(t), string_arg(t)) for t in (ta, tb, tc))
    bits = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64}.get(pa, 4 if pa in ("s4", "u4") else 8)
    if pa == "f64":
        raise g.error("ptx_mma: f64 is not supported; use float64 arithmetic or f16, bf16, tf32, 8-bit operands")
    count_a, count_b = max(1, m * k * bits // 1024), max(1, n * k * bits // 1024)
    count_c = m * n // (64 if pc == "f16" else 32)
    saturate = ".satfinite" if rest and isinstance(rest[0], IntImm) and rest[0].value and pc == "s32" else ""
    kind, letter = ("float", "f") if pc == "f32" else ("unsigned", "r")
    text = (
        f"mma.sync.aligned.{string_arg(shape)}.{string_arg(la)}.{string_arg(lb)}{saturate}.{pc}.{pa}.{pb}.{pc} "
        f"{register_set(0, count_c)}, {register_set(count_c, count_a)}, {register_set(count_c + count_a, count_b)}, {register_set(0, count_c)}"
    )
    function = inline(
        g,
        f"mma_{string_arg(shape)}_{string_arg(la)}_{string_arg(lb)}_{pc}_{pa}_{pb}{saturate.replace('.', '_')}",
        f"{kind}* c, const unsigned* a, const unsigned* b",
        text,
        words("c", count_c, letter, "+"),
        [*words("a", count_a, "r"), *words("b", count_b, "r")],
        memory=False,
    )
    places = [words_at(g, c, c_at, kind), words_at(g, a, a_at, "unsigned"), words_at(g, b, b_at, "unsigned")]
    return f"{function}({', '.join(places)})"


@op_rule("ptx_ldmatrix")
def _ldmatrix(g: Generator, e: Call) -> str:
    _, _, kind, target, target_at, source, source_at = e.args
    flag = ".trans" if constant(e, 0, "whether matrices are transposed", g) else ""
    count = constant(e, 1, "the number of matrices", g)
    text = f"ldmatrix.sync.aligned.m8n8.x{count}{flag}.shared{string_arg(kind)} {register_set(0, count)}, [%{count}]"
    function = inline(
        g,
        f"ldmatrix_x{count}{flag.replace('.', '_')}",
        "unsigned* r, const void* p",
        text,
        words("r", count, "r", "="),
        [f'"r"({g.need("shared_address")}(p))'],
        memory=True,
    )
    return f"{function}({words_at(g, target, target_at, 'unsigned')}, {pointer(g, source, source_at)})"


@op_rule("mma_fill")
def _mma_fill(g: Generator, e: Call) -> str:
    count, target, at = e.args
    element = element_of(g, target)
    zero = "0" if not element.is_float else convert(g, "0.0f", DType("float32"), element)
    return f"{g.need('fill')}<{g.expr(count)}>({pointer(g, target, at)}, {bare(zero)})"


@op_rule("mma_store")
def _mma_store(g: Generator, e: Call) -> str:
    """Accumulators of m16n16 (two m16n8 side by side): a lane holds rows lane / 4 and lane / 4 + 8, from column
    2 (lane % 4) on."""
    _, _, target, source, at, stride = e.args
    m, n = (constant(e, position, "the shape", g) for position in (0, 1))
    if (m, n) != (16, 16):
        raise g.error(f"mma_store: accumulators of 16 x 16 are stored, not {m} x {n}")
    element = element_of(g, target)
    declare_type(g, element)
    # a lane's columns are adjacent: one access if they are known to be aligned
    first = target.args[2] if isinstance(target, Call) and target.op == "tvm_access_ptr" else None
    paired = first is not None and g.multiple_of(first, 2) == 2 and g.multiple_of(stride, 2) == 2
    if paired:
        place = place_of(g, data_of(target))
        place.aligned = max(place.aligned, 2 * element.bytes)
    function = g.need("mma_store_16x16_pairs" if paired else "mma_store_16x16")
    return f"{function}({pointer(g, target)}, {pointer(g, source, at)}, {bare(g.expr(stride))})"


# ---------------------------------------------------------------- asynchronous copies


@op_rule("ptx_cp_async")
def _cp_async(g: Generator, e: Call) -> str:
    """Copy ``bytes`` bytes from global to shared memory; zeros if the predicate is false."""
    target, target_at, source, source_at, _, *predicate = e.args
    count = constant(e, 4, "the number of bytes", g)
    if count not in (4, 8, 16):
        raise g.error(f"ptx_cp_async: copies 4, 8 or 16 bytes, not {count}")
    place = place_of(g, data_of(source))
    place.aligned = max(place.aligned, count)
    args = [pointer(g, target, target_at), pointer(g, source, source_at), *(bare(g.expr(p)) for p in predicate)]
    return f"{g.need(f'copy_async_{count}')}({', '.join(args)})"


@op_rule("ptx_commit_group")
def _commit(g: Generator, e: Call) -> str:
    return f"{g.need('commit_copies')}()"


@op_rule("ptx_wait_group")
def _wait(g: Generator, e: Call) -> str:
    return f"{g.need('wait_copies')}<{g.expr(e.args[0])}>()"
