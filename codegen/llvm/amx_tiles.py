"""AMX tile registers: buffers in scope ``amx.tile``, and the operators on them.

The eight registers of 16 rows of 64 bytes are assigned to buffers as their allocations nest. Every function that uses
them configures them at its start and releases them before it returns, so that its callers, and a function that runs its
share of a parallel loop, configure them again.
"""

from __future__ import annotations

from typing import Any

from tir.amx_permission import tiles_allowed
from tir.arith import Analyzer
from tir.dtype import DType
from tir.errors import BuildError
from tir.expr import Call, Expr, IntImm, Var
from tir.op import string_arg
from tir.stmt import Allocate, For, Stmt
from tir.transform.layout import element_count
from tir.visit import Somewhere, walk

from .generator import Generator, op_rule
from .text import TILES_MARK, FunctionText

TILES = "amx.tile"
COUNT = 8
BYTES = 1024  # of one
PALETTE = bytes([1, 0, *[0] * 14, *[64, 0] * COUNT, *[0] * 16, *[16] * COUNT, *[0] * 8])  # bytes of a row, rows
MOVES = {
    "amx_tile_load": "llvm.x86.tileloadd64",
    "amx_tile_stream": "llvm.x86.tileloaddt164",
    "amx_tile_store": "llvm.x86.tilestored64",
}
DOTS = {"bf16": "tdpbf16ps", "ss": "tdpbssd", "su": "tdpbsud", "us": "tdpbusd", "uu": "tdpbuud"}


def configure_tiles(g: Generator, body: Stmt) -> None:
    """At the start of a function: configure the tile registers, if it has buffers of tiles."""

    def outside(item: Any) -> bool:
        return isinstance(item, Stmt) and (g.in_parallel or not (isinstance(item, For) and item.kind == "parallel"))

    if not _has_tiles(body):
        return
    used = (isinstance(n, Allocate) and n.buffer_var.scope == TILES for n in walk(body, enter=outside))
    if not any(used):
        return
    if "+amx-tile" not in g.out.module.features:
        raise g.error("uses AMX tile registers, which the target CPU lacks (amx-tile)")
    mark = f"@{TILES_MARK} = constant i8 1"
    if mark not in g.out.module.globals:
        g.out.module.globals.append(mark)
    configure(g.out)


_has_tiles = Somewhere(lambda n: n.buffer_var.scope == TILES, Allocate)


def configure(out: FunctionText) -> None:
    """Emit the configuration of the registers, and their release before every return."""
    module = out.module
    load = module.declare("llvm.x86.ldtilecfg", "void", ["ptr"])
    out.after_call = f"call void {load}(ptr {module.constant(PALETTE, 64, 'tiles')})"
    out.emit(out.after_call)
    out.before_return = f"call void {module.declare('llvm.x86.tilerelease', 'void', [])}()"


def allocate_tiles(g: Generator, s: Allocate) -> None:
    """Assign registers to a buffer of tiles, for its body."""
    count, first = element_count(s.extents), max(g.tiles.values(), default=0)
    if count is None:
        raise g.error(f"`{s.buffer_var.name}` is in {TILES} and has no constant size")
    size = count * s.dtype.bytes
    if size % BYTES or first + size // BYTES > COUNT:
        raise g.error(
            f"`{s.buffer_var.name}` takes {size / BYTES:g} tile registers of {BYTES} bytes; "
            f"{COUNT - first} of {COUNT} are free here, and it takes whole ones"
        )
    g.tiles[s.buffer_var] = first
    g.tiles[_END] = first + size // BYTES
    g.stmt(s.body)
    del g.tiles[s.buffer_var]
    g.tiles[_END] = first


_END = Var("end of tiles", DType("handle"))


def request_tiles() -> None:
    """Ask the system for permission to use tile registers. Raises ``BuildError`` if it is denied."""
    if not tiles_allowed():
        raise BuildError("the program uses AMX tile registers, and the operating system does not let this process")


def _register(g: Generator, buffer: Expr, number: Expr) -> str:
    """The register of tile ``number`` of a buffer."""
    first = g.tiles.get(buffer) if isinstance(buffer, Var) else None
    if first is None:
        raise g.error(f"`{buffer!r}` is no buffer of tiles (scope {TILES}) that is allocated here")
    known = Analyzer().simplify(number)
    if not isinstance(known, IntImm):
        raise g.error(
            f"which tile register of `{buffer!r}` is meant depends on `{known!r}`: "
            "registers are named in instructions; unroll the loops over tiles"
        )
    return str(first + known.value)


@op_rule("amx_tile_zero")
def _zero(g: Generator, e: Call) -> str:
    return g.out.call("llvm.x86.tilezero", "void", [("i8", _register(g, e.args[0], e.args[1]))])


@op_rule("amx_tile_load", "amx_tile_stream", "amx_tile_store")
def _move(g: Generator, e: Call) -> str:
    """(buffer of tiles, number, pointer, bytes between rows)"""
    place, step = g.plain(e.args[2]), g.index(e.args[3])
    operands = [("i8", _register(g, e.args[0], e.args[1])), ("ptr", place), ("i64", step)]
    return g.out.call(MOVES[e.op], "void", operands)


@op_rule("amx_tile_dot")
def _dot(g: Generator, e: Call) -> str:
    """(kind, sums, number, left, number, right, number)"""
    kind = string_arg(e.args[0])
    if kind not in DOTS:
        raise g.error(f"there is no tile product of kind {kind!r}; there are {', '.join(DOTS)}")
    registers = [("i8", _register(g, e.args[k], e.args[k + 1])) for k in (1, 3, 5)]
    return g.out.call(f"llvm.x86.{DOTS[kind]}", "void", registers)
