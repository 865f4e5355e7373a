"""Tensor cores and asynchronous copies, as inline PTX: wmma fragments, mma.sync, ldmatrix, cp.async.

Fragments are plain arrays of registers. ``nvcuda::wmma`` would need mma.h of another wheel, and hides the registers
that a person debugging a kernel wants to see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tir.dtype import DType
from tir.expr import Call, Expr, IntImm, Var
from tir.op import string_arg

from .expr import convert
from .generator import Generator, op_rule
from .memory import Place, bare, data_of, element_of, place_of, pointer

_PTX = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "s8", "uint8": "u8",
    "int32": "s32", "int4": "s4", "uint4": "u4", "float8_e4m3": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip
# as users name operands of mma: PTX's, TVM's and the dialect's names
_NAMES = {
    "fp16": "f16", "fp32": "f32", "fp64": "f64", "int8": "s8", "uint8": "u8", "int4": "s4", "uint4": "u4",
    "int32": "s32", **_PTX,
}  # fmt: skip


def asm(text: str, outputs: list[str], inputs: list[str], volatile: bool = True, memory: bool = False) -> str:
    """An asm statement; operands are ``"r"(x)`` texts, numbered in order."""
    tail = ' : "memory"' if memory else ""
    return f'asm{" volatile" * volatile}("{text};" : {", ".join(outputs)} : {", ".join(inputs)}{tail})'


def _set(first: int, count: int) -> str:
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
            return 8  # of 16 x 16 each half-word is held by two lanes
        return max(1, self.elements * self.dtype.bits // 32 // 32)

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
    "f16": ((16, 16, 16), (32, 8, 16), (8, 32, 16)), "bf16": ((16, 16, 16), (32, 8, 16), (8, 32, 16)),
    "s8": ((16, 16, 16), (32, 8, 16), (8, 32, 16)), "u8": ((16, 16, 16), (32, 8, 16), (8, 32, 16)),
    "tf32": ((16, 16, 8),), "f64": ((8, 8, 4),),
}  # fmt: skip


def allocate_fragment(g: Generator, var: Var, dtype: DType, count: int) -> None:
    """Declare the registers of ``count`` elements of fragments."""
    shape = g.fragments.get(var)
    if shape is None:
        raise g.fail(f"fragment `{var.name}` is never filled or loaded, so its shape is not known")
    role = {"matrix_a": "a", "matrix_b": "b", "accumulator": "c"}.get(var.scope.removeprefix("wmma."))
    if role is None:
        raise g.fail(
            f"`{var.name}`: there is no scope {var.scope!r}; fragments are wmma.matrix_a, matrix_b, accumulator"
        )
    ptx = _PTX.get(str(dtype), str(dtype))
    if role != "c" and ptx == "f32":
        ptx = "tf32"
    if role != "c" and shape not in _SHAPES.get(ptx, ()):
        legal = ", ".join("m{}n{}k{}".format(*s) for s in _SHAPES.get(ptx, ())) or "none"
        raise g.fail(f"`{var.name}`: wmma has no shape m{shape[0]}n{shape[1]}k{shape[2]} of {dtype}; it has {legal}")
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
        raise g.fail(f"`{place.name}` is no wmma fragment: its scope is {place.scope or 'global'}")
    return found, place.name


def _registers(f: Fragment, name: str, index: str, output: bool = False) -> list[str]:
    sign = "=" if output else ""
    return [f'"{sign}{f.register[1]}"({name}[{bare(index)}][{r}])' for r in range(f.registers)]


def _space(g: Generator, e: Any) -> str:
    scope = place_of(g, data_of(e)).scope
    return "shared" if scope.startswith("shared") else "global"


def _address(g: Generator, e: Any) -> tuple[str, str]:
    """State space and asm operand of a matrix in memory."""
    if _space(g, e) == "shared":
        return ".shared", f'"r"({g.need("shared_address")}({pointer(g, e)}))'
    return ".global", f'"l"({pointer(g, e)})'


def _layout(e: Any) -> str:
    return {"row_major": "row", "col_major": "col"}[string_arg(e)]


@op_rule("tvm_load_matrix_sync")
def _wmma_load(g: Generator, e: Call) -> str:
    target, _m, _n, _k, index, memory, stride, layout = e.args
    f, name = _fragment(g, target)
    space, address = _address(g, memory)
    n = f.registers
    text = f"wmma.load.{f.role}.sync.aligned.{_layout(layout)}.{f.shape}{space}.{f.ptx} {_set(0, n)}, [%{n}], %{n + 1}"
    return asm(text, _registers(f, name, g.expr(index), True), [address, f'"r"({bare(g.expr(stride))})'], memory=True)


@op_rule("tvm_store_matrix_sync")
def _wmma_store(g: Generator, e: Call) -> str:
    source, _m, _n, _k, index, memory, stride, layout = e.args
    f, name = _fragment(g, source)
    space, address = _address(g, memory)
    n = f.registers
    text = f"wmma.store.d.sync.aligned.{_layout(layout)}.{f.shape}{space}.{f.ptx} [%0], {_set(2, n)}, %1"
    inputs = [address, f'"r"({bare(g.expr(stride))})', *_registers(f, name, g.expr(index))]
    g.fragments.setdefault(name, f)
    return asm(text, [], inputs, memory=True)


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
    word = g.fresh("r")
    g.emit("#pragma unroll")
    g.emit(f"for (int {word} = 0; {word} < {f.registers}; ++{word}) {name}[{at}][{word}] = {text};")
    return ""


@op_rule("tvm_mma_sync")
def _wmma_mma(g: Generator, e: Call) -> str:
    d, d_at, a, a_at, b, b_at, c, c_at = e.args
    (fd, nd), (fa, na), (fb, nb), (fc, nc) = (_fragment(g, x) for x in (d, a, b, c))
    parts = [(fa, na, a_at), (fb, nb, b_at), (fc, nc, c_at)]
    texts, first = [], fd.registers
    inputs: list[str] = []
    for f, name, at in parts:
        texts.append(_set(first, f.registers))
        first += f.registers
        inputs += _registers(f, name, g.expr(at))
    layouts = g.fragments.get(("layout", na), "row"), g.fragments.get(("layout", nb), "row")
    if fa.ptx == "f16":
        types = f"{fd.ptx}.{fc.ptx}"
    else:
        types = f"{fd.ptx}.{fa.ptx}.{fb.ptx}.{fc.ptx}"
    text = (
        f"wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{fa.shape}.{types} "
        f"{_set(0, fd.registers)}, {', '.join(texts)}"
    )
    return asm(text, _registers(fd, nd, g.expr(d_at), True), inputs)


def find_fragments(g: Generator, body: Any) -> None:
    """Note the shape of every wmma fragment, and how its operand lies in memory."""
    from tir.visit import walk

    for node in walk(body):
        if not isinstance(node, Call) or node.op not in (
            "tvm_load_matrix_sync", "tvm_store_matrix_sync", "tvm_fill_fragment"
        ):  # fmt: skip
            continue
        var = data_of(node.args[0])
        shape = tuple(a.value if isinstance(a, IntImm) else -1 for a in node.args[1:4])
        known = g.fragments.setdefault(var, shape)
        if known != shape:
            raise g.fail(f"fragment `{var.name if var else var}` is used as {known} and as {shape}")
        if node.op == "tvm_load_matrix_sync":
            assert var is not None
            layout = _layout(node.args[7])
            if g.fragments.setdefault(("layout", g.name(var, var.name)), layout) != layout:
                raise g.fail(f"fragment `{var.name}` is loaded by rows and by columns; use two fragments")


# ---------------------------------------------------------------- mma.sync, ldmatrix

_MMA_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")


def _words(g: Generator, e: Any, offset: Expr, count: int, output: bool, float_: bool) -> list[str]:
    """``count`` 32-bit registers from an address on, as asm operands."""
    type_, letter = ("float", "f") if float_ else ("unsigned", "r")
    base = f"(({type_}*)({pointer(g, e, offset)}))"
    sign = "+" if output else ""
    return [f'"{sign}{letter}"({base}[{k}])' for k in range(count)]


@op_rule("ptx_mma")
def _mma(g: Generator, e: Call) -> str:
    shape, la, lb, ta, tb, tc, a, a_at, b, b_at, c, c_at, *rest = e.args
    found = _MMA_SHAPE.match(string_arg(shape))
    if found is None:
        raise g.fail(f"ptx_mma: {string_arg(shape)!r} is no shape; write m16n8k16")
    m, n, k = map(int, found.groups())
    pa, pb, pc = (_NAMES.get(string_arg(t), string_arg(t)) for t in (ta, tb, tc))
    bits = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64}.get(pa, 4 if pa in ("s4", "u4") else 8)
    if pa == "f64":
        raise g.fail("ptx_mma: f64 is not supported; use float64 arithmetic or f16, bf16, tf32, 8-bit operands")
    count_a, count_b = max(1, m * k * bits // 1024), max(1, n * k * bits // 1024)
    count_c = m * n // (64 if pc == "f16" else 32)
    saturate = ".satfinite" if rest and isinstance(rest[0], IntImm) and rest[0].value and pc == "s32" else ""
    operands = [
        *_words(g, c, c_at, count_c, True, pc == "f32"),
    ]
    inputs = [*_words(g, a, a_at, count_a, False, False), *_words(g, b, b_at, count_b, False, False)]
    text = (
        f"mma.sync.aligned.{string_arg(shape)}.{string_arg(la)}.{string_arg(lb)}{saturate}.{pc}.{pa}.{pb}.{pc} "
        f"{_set(0, count_c)}, {_set(count_c, count_a)}, {_set(count_c + count_a, count_b)}, {_set(0, count_c)}"
    )
    return asm(text, operands, inputs)


@op_rule("ptx_ldmatrix")
def _ldmatrix(g: Generator, e: Call) -> str:
    trans, number, kind, target, target_at, source, source_at = e.args
    count = int(number)
    word = f"((unsigned*)({pointer(g, target, target_at)}))"
    outputs = [f'"=r"({word}[{k}])' for k in range(count)]
    address = f'"r"({g.need("shared_address")}({pointer(g, source, source_at)}))'
    flag = ".trans" if int(trans) else ""
    text = f"ldmatrix.sync.aligned.m8n8.x{count}{flag}.shared{string_arg(kind)} {_set(0, count)}, [%{count}]"
    return asm(text, outputs, [address], memory=True)


@op_rule("mma_fill")
def _mma_fill(g: Generator, e: Call) -> str:
    count, target, at = e.args
    word = g.fresh("r")
    base = pointer(g, target, at)
    element = element_of(g, target)
    zero = "0" if not element.is_float else convert(g, "0.0f", DType("float32"), element)
    g.emit("#pragma unroll")
    g.emit(f"for (int {word} = 0; {word} < {g.expr(count)}; ++{word}) ({base})[{word}] = {zero};")
    return ""


@op_rule("mma_store")
def _mma_store(g: Generator, e: Call) -> str:
    """Accumulators of m16n16 (two m16n8 side by side): of each lane, rows lane / 4 and 8 on, columns 2 (lane % 4)."""
    m, n, target, source, at, stride = e.args
    if (int(m), int(n)) != (16, 16):
        raise g.fail(f"mma_store: accumulators of 16 x 16 are stored, not {int(m)} x {int(n)}")
    r, base, held = g.fresh("r"), pointer(g, target), pointer(g, source, at)
    lane = "(threadIdx.x & 31)"
    row = f"({r} % 4 / 2 * 8 + {lane} / 4)"
    column = f"({r} / 4 * 8 + {lane} % 4 * 2 + {r} % 2)"
    out, value = element_of(g, target), element_of(g, source)
    text = convert(g, f"({held})[{r}]", value, out)
    g.emit("#pragma unroll")
    g.emit(f"for (int {r} = 0; {r} < 8; ++{r}) ({base})[{row} * {g.expr(stride)} + {column}] = {text};")
    return ""


# ---------------------------------------------------------------- asynchronous copies


@op_rule("ptx_cp_async")
def _cp_async(g: Generator, e: Call) -> str:
    """``bytes`` bytes from global to shared memory, zeros where the predicate is false."""
    target, target_at, source, source_at, size, *predicate = e.args
    count = int(size)
    if count not in (4, 8, 16):
        raise g.fail(f"ptx_cp_async: copies 4, 8 or 16 bytes, not {count}")
    inputs = [
        f'"r"({g.need("shared_address")}({pointer(g, target, target_at)}))',
        f'"l"({pointer(g, source, source_at)})',
    ]
    place = place_of(g, data_of(source))
    place.aligned = max(place.aligned, count)
    cache = "cg" if count == 16 else "ca"
    extra = ""
    if predicate:
        inputs.append(f'"r"({g.expr(predicate[0])} ? {count} : 0)')
        extra = ", %2"
    return asm(f"cp.async.{cache}.shared.global [%0], [%1], {count}{extra}", [], inputs, memory=True)


@op_rule("ptx_commit_group")
def _commit(g: Generator, e: Call) -> str:
    return 'asm volatile("cp.async.commit_group;" ::: "memory")'


@op_rule("ptx_wait_group")
def _wait(g: Generator, e: Call) -> str:
    return f'asm volatile("cp.async.wait_group %0;" :: "n"({g.expr(e.args[0])}) : "memory")'


# ---------------------------------------------------------------- transaction barriers (sm_90)


@op_rule("create_barriers")
def _create_barriers(g: Generator, e: Call) -> str:
    count = int(e.args[0])
    g.taken.add("barriers")
    g.emit(f"__shared__ alignas(8) unsigned long long barriers[{count}];")
    return ""


def _barrier(g: Generator, index: Expr) -> str:
    return f'"r"({g.need("shared_address")}(&barriers[{bare(g.expr(index))}]))'


@op_rule("ptx_init_barrier_thread_count")
def _init_barrier(g: Generator, e: Call) -> str:
    return asm(
        "mbarrier.init.shared.b64 [%0], %1", [], [_barrier(g, e.args[0]), f'"r"({g.expr(e.args[1])})'], memory=True
    )


@op_rule("ptx_arrive_barrier")
def _arrive(g: Generator, e: Call) -> str:
    return asm(
        "{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }", [], [_barrier(g, e.args[0])], memory=True
    ).replace('};"', '}"')


@op_rule("ptx_arrive_barrier_expect_tx")
def _arrive_tx(g: Generator, e: Call) -> str:
    inputs = [_barrier(g, e.args[0]), f'"r"({g.expr(e.args[1])})']
    return asm("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }", [], inputs, memory=True).replace(
        '};"', '}"'
    )


@op_rule("ptx_cp_async_barrier")
def _cp_async_barrier(g: Generator, e: Call) -> str:
    return asm("cp.async.mbarrier.arrive.shared.b64 [%0]", [], [_barrier(g, e.args[0])], memory=True)


@op_rule("ptx_wait_barrier")
def _wait_barrier(g: Generator, e: Call) -> str:
    """Until the phase 0 of the barrier is over."""
    text = (
        ("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @p bra over; bra again; over: }")
        .replace("again", "again_%=")
        .replace("over", "over_%=")
    )
    return asm(text, [], [_barrier(g, e.args[0])], memory=True).replace('};"', '}"')


@op_rule("ptx_cp_async_bulk")
def _cp_async_bulk(g: Generator, e: Call) -> str:
    """(shared, offset, global, offset, bytes, barrier): a bulk copy that the barrier counts."""
    target, target_at, source, source_at, size, barrier = e.args
    inputs = [
        f'"r"({g.need("shared_address")}({pointer(g, target, target_at)}))',
        f'"l"({pointer(g, source, source_at)})',
        f'"r"({g.expr(size)})',
        _barrier(g, barrier),
    ]
    return asm("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3]", [], inputs,
               memory=True)  # fmt: skip
