"""Exact models of tensor-core operations: ldmatrix and mma.sync with PTX's register layouts, wmma fragments.

A register holds 32 bits: ``e`` elements of 32 / e bits. Lane ``l`` of a warp is in group ``g = l // 4`` and has
position ``t = l % 4`` in it. Of an M x K operand A it holds rows g and g + 8, columns ``e * t ...``; each further
register pair lies 4 * e columns on. Of K x N operand B it holds column g; of the accumulator row g (and g + 8),
columns 2t and 2t + 1.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from ...dtype import DType
from ...errors import RunError
from ..numbers import decode_table, is_small_float, storage_dtype
from .lanes import Lanes
from .memory import LocalView, View
from .report import Site

Pointer = tuple[Any, Any]  # a view, and the element that each thread points to

_TYPES = {
    "fp16": "float16", "f16": "float16", "bf16": "bfloat16", "fp32": "float32", "f32": "float32", "fp64": "float64",
    "f64": "float64", "tf32": "float32", "int8": "int8", "s8": "int8", "uint8": "uint8", "u8": "uint8",
    "int4": "int4", "s4": "int4", "uint4": "uint4", "u4": "uint4", "int32": "int32", "s32": "int32",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip


def operand_type(name: str) -> DType:
    """The data type of an operand, by its PTX (or TVM) name."""
    return DType(_TYPES.get(name, name))


@cache
def layout_a(rows: int, depth: int, e: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the elements of A that each lane holds: two [32, n] arrays."""
    lane, i = np.arange(32)[:, None], np.arange(rows * depth // 32)[None, :]
    register, part = i // e, i % e
    halves = rows // 8
    row = lane // 4 + 8 * (register % halves)
    column = e * (lane % 4) + part + 4 * e * (register // halves)
    return row + 0 * column, column


@cache
def layout_b(depth: int, e: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the elements of B (depth x 8) that each lane holds."""
    lane, i = np.arange(32)[:, None], np.arange(depth * 8 // 32)[None, :]
    row = e * (lane % 4) + i % e + 4 * e * (i // e)
    return row, lane // 4 + 0 * row


@cache
def layout_c(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the elements of the accumulator (rows x 8) that each lane holds."""
    lane, i = np.arange(32)[:, None], np.arange(rows * 8 // 32)[None, :]
    row = lane // 4 + 8 * (i // 2)
    return row, 2 * (lane % 4) + i % 2 + 0 * row


def _registers(lanes: Lanes, pointer: Pointer, count: int, dtype: DType, act: Any, site: Site) -> Any:
    """Read ``count`` elements of ``dtype`` per lane, as [warps, 32, count] numbers."""
    view, start = pointer[0], lanes.whole(pointer[1])
    held = storage_dtype(view.dtype).itemsize
    size = dtype.bits / 8
    elements = max(1, int(count * size) // held) if dtype.bits >= 8 else count
    raw = view.load(start[:, None] + np.arange(elements), act, site)
    if view.dtype is not dtype and dtype.bits >= 8 and held != storage_dtype(dtype).itemsize:
        raw = np.ascontiguousarray(raw).view(storage_dtype(dtype))
        raw = decode_table(dtype)[raw] if is_small_float(dtype) else raw
    return lanes.rows(raw if act is None else raw[act], act)


def _put(lanes: Lanes, pointer: Pointer, rows: np.ndarray, act: Any, site: Site) -> None:
    """Write [warps, 32, n] numbers into each lane's registers."""
    start = lanes.whole(pointer[1])
    values = rows.reshape(-1, rows.shape[2])[lanes.slot]
    pointer[0].store(start[:, None] + np.arange(rows.shape[2]), values, act, site)


_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")


def mma(lanes: Lanes, act: Any, site: Site, shape: str, layouts: str, types: tuple[str, str, str],
        a: Pointer, b: Pointer, c: Pointer) -> None:  # fmt: skip
    """mma.sync: C += A x B on the registers of every warp."""
    found = _SHAPE.match(shape)
    if found is None or found[2] != "8" or found[1] not in ("8", "16"):
        raise RunError(f"ptx_mma: the simulator has no shape {shape!r}; it has m16n8k* and m8n8k*")
    if layouts != "row,col":
        raise RunError(f"ptx_mma: {shape} takes A in rows and B in columns, not {layouts!r}")
    rows, depth = int(found[1]), int(found[3])
    ta, tb, tc = (operand_type(t) for t in types)
    e = max(1, 32 // ta.bits)
    if depth % (4 * e):
        raise RunError(f"ptx_mma: {types[0]} has no shape {shape}: K is a multiple of {4 * e}")
    if not lanes.warps_of_32(act, site, "an mma"):
        return
    wide = np.int64 if ta.is_int else np.float64
    left = np.zeros((lanes.warps, rows, depth), wide)
    right = np.zeros((lanes.warps, depth, 8), wide)
    total = np.zeros((lanes.warps, rows, 8), wide)
    (ra, ca), (rb, cb), (rc, cc) = layout_a(rows, depth, e), layout_b(depth, e), layout_c(rows)
    left[:, ra, ca] = cut(_registers(lanes, a, ra.shape[1], ta, act, site), types[0])
    right[:, rb, cb] = cut(_registers(lanes, b, rb.shape[1], tb, act, site), types[1])
    total[:, rc, cc] = _registers(lanes, c, rc.shape[1], tc, act, site)
    total += left @ right
    _put(lanes, c, _as(total[:, rc, cc], tc), act, site)


def cut(values: np.ndarray, name: str) -> np.ndarray:
    """tf32 operands keep the upper 19 bits of a float32."""
    if name != "tf32":
        return values
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _as(values: np.ndarray, dtype: DType) -> np.ndarray:
    return values.astype(np.float32 if is_small_float(dtype) else storage_dtype(dtype))


def ldmatrix(lanes: Lanes, act: Any, site: Site, trans: bool, number: int, dst: Pointer, src: Pointer) -> None:
    """``number`` 8 x 8 matrices of 16-bit elements: lane 8j + r gives the address of row r of matrix j."""
    if not lanes.warps_of_32(act, site, "an ldmatrix"):
        return
    view: View = src[0]
    here = lanes.all if act is None else act
    giving = here[lanes.lane[here] < 8 * number]
    each = 16 // view.item
    start = lanes.whole(src[1])
    at, live = view._positions(start[:, None] + np.arange(each), giving, site)
    view.touch(at, live, site, False)
    half = np.zeros((lanes.warps * 32, 8), np.uint16)
    half[lanes.slot[live]] = np.ascontiguousarray(view.flat[at]).view(np.uint16)
    matrices = half.reshape(lanes.warps, 4, 8, 8)[:, :number]
    lane = np.arange(32)[:, None]
    pair = 2 * (lane % 4) + np.arange(2)
    row = lane // 4 + 0 * pair
    picked = matrices[:, :, pair, row] if trans else matrices[:, :, row, pair]
    registers = np.ascontiguousarray(picked.transpose(0, 2, 1, 3)).reshape(lanes.warps, 32, 2 * number)
    dtype = dst[0].dtype
    values = registers.view(storage_dtype(dtype))
    _put(lanes, dst, decode_table(dtype)[values] if is_small_float(dtype) else values, act, site)


def mma_fill(lanes: Lanes, act: Any, site: Site, count: int, dst: Pointer) -> None:
    """Set ``count`` registers of every lane to zero."""
    start = lanes.whole(dst[1])
    dst[0].store(start[:, None] + np.arange(count), 0, act, site)


def mma_store(lanes: Lanes, act: Any, site: Site, m: int, n: int, dst: Pointer, src: Pointer, stride: Any) -> None:
    """Store the accumulators of m16n16 (two m16n8 side by side) to memory, with ``stride`` elements per row."""
    if not lanes.warps_of_32(act, site, "an mma_store"):
        return
    if (m, n) != (16, 16):
        raise RunError(f"mma_store: the simulator stores 16 x 16 accumulators, not {m} x {n}")
    lane, i = lanes.lane[:, None], np.arange(8)
    row, column = 8 * (i % 4 // 2) + lane // 4, 8 * (i // 4) + lane % 4 * 2 + i % 2
    start = lanes.whole(src[1])
    values = src[0].load(start[:, None] + i, act, site)
    base, pitch = (lanes.whole(n)[:, None] for n in (dst[1], stride))
    width = 1 if (base % 2).any() or (pitch % 2).any() else 2  # a lane's two adjacent elements are one aligned access
    for part in (slice(k, k + width) for k in range(0, 8, width)):
        dst[0].store(base + row[:, part] * pitch + column[:, part], values[:, part], act, site)


# ---------------------------------------------------------------- wmma


def _fragments(lanes: Lanes, act: Any, fragment: Pointer, index: Any, size: int, site: Site) -> np.ndarray:
    """Positions, [active warps, size], of fragment number ``index`` of each active warp."""
    view: View = fragment[0]
    first = _leaders(lanes, act)
    number = lanes.spread(index)[first].astype(np.int64)
    if len(number) and (int(number.max()) + 1) * size > view.limit:
        lanes.fail(
            "bounds",
            f"fragment {int(number.max())} of {view.name} is out of bounds: it has {view.limit // size}",
            site,
            first[0],
        )
        number = np.zeros_like(number)
    assert view.base is not None
    return (view.base[first] + number * size)[:, None] + np.arange(size)


def _leaders(lanes: Lanes, act: Any) -> np.ndarray:
    """The first active thread of each warp that has one."""
    here = lanes.all if act is None else act
    _, first = np.unique(lanes.warp[here], return_index=True)
    return here[first]


def _tile(
    lanes: Lanes, act: Any, site: Site, memory: Pointer, stride: Any, rows: int, columns: int, by_row: bool, write: bool
) -> np.ndarray:
    """Positions, [active warps, rows, columns], of a matrix in memory, checked and counted as 16 bytes per lane."""
    view: View = memory[0]
    first = _leaders(lanes, act)
    base, pitch = (lanes.whole(n)[first] for n in (memory[1], stride))
    bad = (base * view.item) % 32 != 0
    if bad.any():
        k = int(np.argmax(bad))
        offset = f"byte offset {base[k] * view.item} is not a multiple of 32"
        lanes.fail("alignment", f"{site.what} of a matrix at {view.name}[{base[k]}]: {offset}", site, first[bad])
    bad = (pitch * view.item) % 16 != 0
    if bad.any():
        k = int(np.argmax(bad))
        text = f"a matrix with a stride of {pitch[k] * view.item} bytes, which is not a multiple of 16"
        lanes.fail("alignment", f"{site.what} of {text}", site, first[bad])
    lead, run = (rows, columns) if by_row else (columns, rows)
    elements = base[:, None, None] + pitch[:, None, None] * np.arange(lead)[:, None] + np.arange(run)
    chunk = min(16 // view.item, run)
    pieces = elements.reshape(len(first), lead, -1, chunk)
    if not write:  # loads from shared memory become ldmatrix: the same 16 bytes of all rows, then the next 16
        pieces = pieces.transpose(0, 2, 1, 3)
    pieces = pieces.reshape(len(first), -1, chunk)
    row_of = np.zeros(lanes.warps, np.int64)
    row_of[lanes.warp[first]] = np.arange(len(first))
    here = lanes.all if act is None else act
    width = view.base[first] if view.base is not None else np.zeros(len(first), np.int64)
    clipped = np.clip(elements, 0, view.limit - 1)
    for begin in range(0, pieces.shape[1], 32):
        number = lanes.lane[here] + begin
        taking = here[number < pieces.shape[1]]
        number = number[number < pieces.shape[1]]
        index = np.zeros((lanes.count, chunk), np.int64)
        index[taking] = pieces[row_of[lanes.warp[taking]], number]
        at, live = view._positions(index, taking, site)
        view.touch(at, live, site, write, whole=True)
    placed = clipped + view.offset + width[:, None, None]
    return placed if by_row else placed.transpose(0, 2, 1)


def _extents(view: View, m: int, n: int, k: int) -> tuple[int, int]:
    role = view.memory.scope.rpartition(".")[2]
    return {"matrix_a": (m, k), "matrix_b": (k, n)}.get(role, (m, n))


def wmma_load(lanes: Lanes, act: Any, site: Site, *moved: Any) -> None:
    """Load each warp's fragment from memory."""
    if not lanes.warps_of_32(act, site, "a wmma load"):
        return
    view, target, memory, at = _moved(lanes, act, site, False, *moved)
    view.flat[target] = memory.flat[at].reshape(len(target), -1)
    view.memory.written[view.granules(target)] = True  # type: ignore[index]


def wmma_store(lanes: Lanes, act: Any, site: Site, *moved: Any) -> None:
    """Store each warp's fragment to memory."""
    if not lanes.warps_of_32(act, site, "a wmma store"):
        return
    view, source, memory, at = _moved(lanes, act, site, True, *moved)
    _filled(lanes, act, view, source, site)
    memory.flat[at] = view.flat[source].reshape(at.shape)


def _moved(lanes: Lanes, act: Any, site: Site, write: bool, fragment: Pointer, m: int, n: int, k: int, index: Any,
           memory: Pointer, stride: Any, layout: str) -> tuple[View, np.ndarray, View, np.ndarray]:  # fmt: skip
    """The view of each warp's fragment and its positions there, and those of its matrix in memory."""
    rows, columns = _extents(fragment[0], m, n, k)
    at = _tile(lanes, act, site, memory, stride, rows, columns, layout == "row_major", write)
    return fragment[0], _fragments(lanes, act, fragment, index, rows * columns, site), memory[0], at


def wmma_fill(
    lanes: Lanes, act: Any, site: Site, fragment: Pointer, m: int, n: int, k: int, index: Any, value: Any
) -> None:
    """Set every element of each warp's fragment to ``value``."""
    if not lanes.warps_of_32(act, site, "a wmma fill"):
        return
    view: View = fragment[0]
    rows, columns = _extents(view, m, n, k)
    target = _fragments(lanes, act, fragment, index, rows * columns, site)
    number = lanes.spread(value)[_leaders(lanes, act)][:, None]
    view.put(target, np.broadcast_to(number, target.shape), None)
    view.memory.written[view.granules(target)] = True  # type: ignore[index]


def _filled(lanes: Lanes, act: Any, view: View, at: np.ndarray, site: Site) -> None:
    written = view.memory.written
    assert written is not None
    if not written[view.granules(at)].all():
        lanes.fail(
            "uninitialised",
            f"a fragment of {view.name} is used, which nothing has filled",
            site,
            _leaders(lanes, act)[0],
        )


def wmma_mma(lanes: Lanes, act: Any, site: Site, d: Pointer, d_at: Any, a: Pointer, a_at: Any, b: Pointer, b_at: Any,
             c: Pointer, c_at: Any, shape: tuple[int, int, int]) -> None:  # fmt: skip
    """D = A x B + C on each warp's fragments."""
    if not lanes.warps_of_32(act, site, "a wmma mma"):
        return
    m, n, k = shape
    parts = []
    for pointer, index, rows, columns in ((a, a_at, m, k), (b, b_at, k, n), (c, c_at, m, n)):
        at = _fragments(lanes, act, pointer, index, rows * columns, site)
        view = pointer[0]
        _filled(lanes, act, view, at, site)
        parts.append(view.values(at).astype(np.int64 if view.dtype.is_int else np.float64).reshape(-1, rows, columns))
    total = parts[0] @ parts[1] + parts[2]
    target = _fragments(lanes, act, d, d_at, m * n, site)
    d[0].put(target, _as(total.reshape(len(target), -1), d[0].dtype), None)
    d[0].memory.written[d[0].granules(target)] = True


__all__ = ["LocalView", "ldmatrix", "mma", "mma_fill", "mma_store", "wmma_fill", "wmma_load", "wmma_mma", "wmma_store"]
