"""Transaction barriers, and what is Hopper's alone: copies by tensor maps, products of warpgroups, clusters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tir.expr import Call, Expr, IntImm
from tir.levels import is_shared
from tir.op import string_arg
from tir.stmt import Allocate
from tir.transform.layout import element_count
from tir.visit import walk

from .generator import Generator, op_rule
from .matrix import TYPE_NAMES, constant, register_set, words, words_at
from .memory import bare, data_of, element_of, place_of, pointer
from .prelude import INLINE

_PLAIN = {  # operators without pointers, and their helpers in the prelude
    "ptx_fence_barrier_init": "fence_barrier_init",
    "ptx_fence_proxy_async": "fence_proxy_async",
    "ptx_cp_async_bulk_commit_group": "bulk_commit",
    "ptx_cluster_arrive": "cluster_arrive",
    "ptx_cluster_wait": "cluster_wait",
    "ptx_wgmma_commit_group": "wgmma_commit",
}
_WITH_COUNT = {"ptx_cp_async_bulk_wait_group": "bulk_wait", "ptx_cp_async_bulk_wait_group_read": "bulk_wait_read"}
_ON_BARRIERS = {  # operators on a barrier and perhaps a number
    "ptx_init_barrier_thread_count": "barrier_init",
    "ptx_arrive_barrier": "barrier_arrive",
    "ptx_arrive_barrier_expect_tx": "barrier_expect",
    "ptx_arrive_barrier_cluster": "barrier_arrive_cluster",
    "ptx_cp_async_barrier": "barrier_arrive_after_copies",
}


def _integer(g: Generator, e: Any) -> str:
    """The text of a number that is an integer (or a bool)."""
    if not isinstance(e, Expr) or not (e.dtype.is_int or e.dtype.is_bool) or e.dtype.lanes > 1:
        raise g.error(f"`{e!r}` is an argument that is an integer")
    return bare(g.expr(e))


@op_rule(*_PLAIN)
def _plain(g: Generator, e: Call) -> str:
    return f"{g.need(_PLAIN[e.op])}()"


@op_rule(*_WITH_COUNT)
def _with_count(g: Generator, e: Call) -> str:
    return f"{g.need(_WITH_COUNT[e.op])}<{constant(e, 0, 'the number of groups', g)}>()"


# ---------------------------------------------------------------- transaction barriers


@op_rule("create_barriers")
def _create_barriers(g: Generator, e: Call) -> str:
    if g.barriers:
        raise g.error(f"create_barriers: the kernel has {g.barriers} barriers already; create all of them at once")
    g.barriers = constant(e, 0, "the number of barriers", g)
    if g.barriers < 1:
        raise g.error(f"create_barriers: {g.barriers} barriers; a kernel that has some has one or more")
    g.emit(f"__shared__ alignas(8) unsigned long long barriers[{g.barriers}];")
    return ""


def _barrier(g: Generator, index: Expr) -> str:
    if not g.barriers:
        raise g.error(f"barrier `{index!r}` is used, and the kernel has none: begin it with T.create_barriers")
    if isinstance(index, IntImm) and not 0 <= index.value < g.barriers:
        raise g.error(f"there is no barrier {index.value}: T.create_barriers made {g.barriers}")
    return f"&barriers[{_integer(g, index)}]"


@op_rule(*_ON_BARRIERS)
def _on_barrier(g: Generator, e: Call) -> str:
    if e.op == "ptx_arrive_barrier_cluster":
        _in_cluster(g, e, e.args[1], g.cluster, "the rank")
    args = [_barrier(g, e.args[0]), *(_integer(g, number) for number in e.args[1:])]
    return f"{g.need(_ON_BARRIERS[e.op])}({', '.join(args)})"


def _in_cluster(g: Generator, e: Call, value: Any, end: int, what: str) -> None:
    """Raise ``BuildError`` for a number that no block of the cluster has."""
    if isinstance(value, IntImm) and not 0 <= value.value < end:
        raise g.error(
            f'{e.op}: {what} is {value.value}, and the attribute "tir.cluster" makes clusters of {g.cluster} '
            f"block{'s' * (g.cluster > 1)}: below {end} it is"
        )


@op_rule("ptx_wait_barrier")
def _wait_barrier(g: Generator, e: Call) -> str:
    barrier, *parity = e.args
    return f"{g.need('barrier_wait')}({_barrier(g, barrier)}, {_integer(g, parity[0]) if parity else '0'})"


# ---------------------------------------------------------------- copies


@op_rule("ptx_cp_async_bulk")
def _cp_async_bulk(g: Generator, e: Call) -> str:
    """(shared, offset, global, offset, bytes, barrier): a bulk copy whose bytes the barrier counts."""
    target, target_at, source, source_at, size, barrier = e.args
    place = place_of(g, data_of(source))
    place.aligned = max(place.aligned, 16)
    args = [pointer(g, target, target_at), pointer(g, source, source_at), bare(g.expr(size)), _barrier(g, barrier)]
    return f"{g.need('copy_bulk')}({', '.join(args)})"


@op_rule("tensor_map")
def _tensor_map(g: Generator, e: Call) -> str:
    """The name of the kernel's parameter."""
    key = (e.args[0], *(string_arg(a) if k == 0 else g.expr(a) for k, a in enumerate(e.args[1:])))
    found = g.maps.get(key)
    if found is None:
        name = getattr(e.args[0], "name", "tensor")
        found = g.maps[key] = (g.fresh(f"{name}_map"), e)
    return found[0]


def _box_copy(g: Generator, e: Call, function: str, args: list[str], coordinates: Any) -> str:
    map_ = next(a for a in e.args if isinstance(a, Call) and a.op == "tensor_map")
    axes = (len(map_.args) - 3) // 3
    if len(coordinates) != axes:
        raise g.error(f"{e.op}: {len(coordinates)} coordinates, and the tensor map has {axes} axes: `{e!r}`")
    g.need(f"tensor_copies_{axes}")
    return f"{function}({', '.join([*args, *(_integer(g, c) for c in coordinates)])})"


def _map(g: Generator, e: Call, position: int) -> str:
    found = e.args[position]
    if not (isinstance(found, Call) and found.op == "tensor_map"):
        raise g.error(f"{e.op}: `{found!r}` is no T.tensor_map")
    return g.expr(found)


def _in_shared(g: Generator, e: Call, position: int) -> str:
    """The pointer at ``position``, moved by the argument after it."""
    scope = place_of(g, data_of(e.args[position])).scope
    if not is_shared(scope):
        raise g.error(f"{e.op}: `{e.args[position]!r}` is in {scope or 'global'} memory; it takes shared memory")
    return pointer(g, e.args[position], e.args[position + 1])


@op_rule("ptx_cp_async_bulk_tensor")
def _load_box(g: Generator, e: Call) -> str:
    args = [_in_shared(g, e, 0), _map(g, e, 2), _barrier(g, e.args[3])]
    return _box_copy(g, e, "load_box", args, e.args[4:])


@op_rule("ptx_cp_async_bulk_tensor_multicast")
def _load_box_multicast(g: Generator, e: Call) -> str:
    _in_cluster(g, e, e.args[4], 1 << g.cluster, "the mask")
    args = [_in_shared(g, e, 0), _map(g, e, 2), _barrier(g, e.args[3]), _integer(g, e.args[4])]
    return _box_copy(g, e, "load_box_multicast", args, e.args[5:])


@op_rule("ptx_cp_async_bulk_tensor_store")
def _store_box(g: Generator, e: Call) -> str:
    return _box_copy(g, e, "store_box", [_map(g, e, 0), _in_shared(g, e, 1)], e.args[3:])


# ---------------------------------------------------------------- products of warpgroups

_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_SUMS = {"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "s8": ("s32",), "u8": ("s32",)}
_SUMS.update(dict.fromkeys(("e4m3", "e5m2"), ("f16", "f32")))
_BITS = {"f16": 16, "bf16": 16, "tf32": 32}


def _kinds(g: Generator, e: Call) -> tuple[int, str, str, str]:
    """n and PTX's names of the types of a, b, d. Raises ``BuildError`` for a product that there is not."""
    shape = string_arg(e.args[0])
    found = _SHAPE.match(shape)
    a, b, d = (TYPE_NAMES.get(string_arg(t), string_arg(t)) for t in e.args[1:4])
    if a not in _SUMS or (a != b and not {a, b} <= {"e4m3", "e5m2"} and not {a, b} <= {"s8", "u8"}):
        raise g.error(
            f"ptx_wgmma: there is no product of {a} and {b}; there are fp16, bf16, tf32, e4m3, e5m2, int8, uint8"
        )
    if d not in _SUMS[a]:
        raise g.error(f"ptx_wgmma: products of {a} and {b} are summed as {' or '.join(_SUMS[a])}, not {d}")
    n, k = (int(x) for x in found.groups()) if found else (0, 0)
    depth = 256 // _BITS.get(a, 8)
    whole = n % 8 == 0 and 8 <= n <= 256 and not (d == "s32" and n > 24 and n % 16)
    if k != depth or not whole:
        raise g.error(
            f"ptx_wgmma: there is no shape {shape!r} of {a}; it is m64n?k{depth}, n a multiple of "
            f"{'16 (or 8, 24)' if d == 's32' else '8'} up to 256"
        )
    return n, a, b, d


@op_rule("ptx_wgmma")
def _wgmma(g: Generator, e: Call) -> str:
    n, a, b, d = _kinds(g, e)
    in_registers = not is_shared(place_of(g, data_of(e.args[6])).scope)
    sums = n // 4 if d == "f16" else n // 2
    kind, letter = ("float", "f") if d == "f32" else ("unsigned", "r")
    _check_sums(g, e, sums)
    flags = [constant(e, p, "whether a matrix is transposed", g) for p in (11, 17)]
    if any(flags) and _BITS.get(a) != 16:
        raise g.error(f"ptx_wgmma: only matrices of 16 bits are transposed; the innermost axis of {a} is k")
    left = register_set(sums, 4) if in_registers else f"%{sums}"
    right, scale = (f"%{sums + (4 if in_registers else 1) + k}" for k in range(2))
    given = ["p", *["1"] * (2 * (d != "s32")), *(str(f) for f in flags[in_registers:] if _BITS.get(a) == 16)]
    name = f"wgmma_m64n{n}_{d}_{a}_{b}" + "_registers" * in_registers + "".join(f"_{f}" for f in flags if any(flags))
    instruction = f"wgmma.mma_async.sync.aligned.{string_arg(e.args[0])}.{d}.{a}.{b}"
    lines = _literals(
        f"{{ .reg .pred p; setp.ne.b32 p, {scale}, 0; {instruction} {register_set(0, sums)}, {left}, {right}, {', '.join(given)}; }}"
    )
    inputs = [*(words("a", 4, "r") if in_registers else ['"l"(a)']), '"l"(b)', '"r"(accumulate)']
    operands = [*_rows(": ", words("d", sums, letter, "+")), *_rows(": ", inputs)]
    body = "\n      ".join([*lines, *operands])
    first = "const unsigned* a" if in_registers else "unsigned long long a"
    g.function(
        name,
        f"{INLINE} void {name}({kind}* d, {first}, unsigned long long b, int accumulate) {{\n"
        f'  asm volatile(\n      {body} : "memory");\n}}',
    )
    return f"{name}({', '.join(_operands(g, e, kind, in_registers))})"


def _check_sums(g: Generator, e: Call, sums: int) -> None:
    """Raise ``BuildError`` for registers of another type than the sums of a product have, or too few."""
    var, at = data_of(e.args[4]), e.args[5]
    kind = {"f16": "float16", "f32": "float32", "s32": "int32"}[TYPE_NAMES[string_arg(e.args[3])]]
    if str(element_of(g, e.args[4])) != kind:
        raise g.error(
            f"ptx_wgmma: `{place_of(g, var).name}` is {element_of(g, e.args[4])}, and the product has sums of {kind}"
        )
    room = g.registers.get(var)
    if room is not None and isinstance(at, IntImm):
        first = at.value * element_of(g, e.args[4]).bits // 32
        if first + sums > room:
            raise g.error(
                f"ptx_wgmma: `{place_of(g, var).name}` has {room} registers of 32 bits, and the product has {sums} sums"
                + f" from register {first} on" * bool(first)
            )


def _operands(g: Generator, e: Call, kind: str, in_registers: bool) -> Iterator[str]:
    if is_shared(place_of(g, data_of(e.args[4])).scope):
        raise g.error(f"ptx_wgmma: `{e.args[4]!r}` is in shared memory; the sums are registers, of scope local")
    yield words_at(g, e.args[4], e.args[5], kind)
    yield words_at(g, e.args[6], e.args[7], "unsigned") if in_registers else _matrix(g, e, 6)
    yield _matrix(g, e, 12)
    yield _integer(g, e.args[18])


def _matrix(g: Generator, e: Call, position: int) -> str:
    """The description of the matrix in shared memory at ``position``."""
    at = _in_shared(g, e, position)
    swizzle = constant(e, position + 4, "the swizzle", g)
    if swizzle not in (0, 32, 64, 128):
        raise g.error(f"ptx_wgmma: there is no swizzle of {swizzle} bytes; there are 0, 32, 64, 128")
    leading, stride = (_integer(g, x) for x in e.args[position + 2 : position + 4])
    return f"{g.need('wgmma_matrix')}({at}, {leading}, {stride}, {swizzle})"


def _literals(text: str) -> list[str]:
    """The text of an instruction as string literals, one a line."""
    parts, line = [], ""
    for word in text.split(" "):
        if len(line) + len(word) > 100:
            parts.append(line)
            line = ""
        line += f"{word} "
    return [f'"{part}"' for part in [*parts, line.rstrip()]]


def _rows(first: str, operands: list[str]) -> list[str]:
    rows = [", ".join(operands[k : k + 8]) for k in range(0, len(operands), 8)]
    return (
        [f"{first}{', '.join(operands)}"]
        if len(rows) == 1
        else [first + rows[0] + ",", *(f"{r}," for r in rows[1:-1]), rows[-1]]
    )


@op_rule("ptx_wgmma_fence", "ptx_wgmma_wait_group")
def _wgmma_fence(g: Generator, e: Call) -> str:
    """A fence after all that the registers of products were used for, or a wait before: the compiler knows of no other reason
    to keep to it."""
    fence = e.op == "ptx_wgmma_fence"
    held = []
    for var, count, kind in g.sums.get(e, ()):
        name = place_of(g, var).name
        held.append(f"{g.need('hold')}<{count}>({name if kind == 'float' else f'(unsigned*){name}'})")
    count = "" if fence else f"<{constant(e, 0, 'the number of groups', g)}>"
    made = f"{g.need('wgmma_fence' if fence else 'wgmma_wait')}{count}()"
    for text in [*held, made] if fence else [made, *held]:
        g.emit(f"{text};")
    return ""


def find_registers(g: Generator, body: Any) -> None:
    """Record the registers that products are summed in, and those that they multiply, for each fence and each wait in the
    scope of them."""
    used = {data_of(n.args[at]) for n in walk(body) if isinstance(n, Call) and n.op == "ptx_wgmma" for at in (4, 6)}
    for s in walk(body):
        if isinstance(s, Allocate) and s.buffer_var in used and not is_shared(s.buffer_var.scope):
            count = element_count(s.extents) or 0
            kind = "float" if str(s.dtype) == "float32" else "unsigned"
            g.registers[s.buffer_var] = count * s.dtype.bits // 32
            for n in walk(s.body):
                if isinstance(n, Call) and n.op in ("ptx_wgmma_fence", "ptx_wgmma_wait_group"):
                    g.sums.setdefault(n, []).append((s.buffer_var, g.registers[s.buffer_var], kind))


# ---------------------------------------------------------------- registers


@op_rule("ptx_setmaxnreg")
def _setmaxnreg(g: Generator, e: Call) -> str:
    count, more = constant(e, 0, "the number of registers", g), constant(e, 1, "whether to have more", g)
    if count % 8 or not 24 <= count <= 256:
        raise g.error(f"ptx_setmaxnreg: {count} registers; a multiple of 8 from 24 to 256 is given")
    return f"{g.need('set_registers')}<{count}, {'true' if more else 'false'}>()"
