"""Products of warpgroups (wgmma): matrices in shared memory by their descriptors, sums in registers, begun and waited for.

The layouts of matrices are those of PTX's matrix descriptors. ``size`` is that of an element, ``width`` the bytes of the
swizzle; r counts along m or n, k along the summed axis. The address, before the swizzle, of element (r, k) is

- k innermost: ``r // 8 * stride + r % 8 * width + k * size``; without a swizzle
  ``r // 8 * stride + r % 8 * 16 + k // e * leading + k % e * size`` with ``e = 16 // size``;
- r innermost: ``r // w * leading + r % w * size + k // 8 * stride + k % 8 * width`` with ``w = width // size``; without a
  swizzle ``r // e * stride + r % e * size + k // 8 * leading + k % 8 * 16``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from ...dtype import DType
from ...errors import RunError
from ..numbers import decode_table, is_small_float, storage_dtype
from .engine import end_read, keep_reading, read_shared
from .lanes import Lanes
from .matrix import cut, layout_a, operand_type
from .memory import LocalView, View
from .report import Site
from .tensor_maps import SWIZZLES, swizzled

GROUP = 128  # threads of a warpgroup
_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_SUMS = {"float16": ("float16", "float32"), "bfloat16": ("float32",), "float32": ("float32",), "int8": ("int32",),
         "uint8": ("int32",), "float8_e4m3fn": ("float16", "float32"), "float8_e5m2": ("float16", "float32")}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How a matrix lies in shared memory: see above."""

    leading: int
    stride: int
    swizzle: int
    transposed: bool


@lru_cache(maxsize=256)
def offsets(layout: Layout, rows: int, depth: int, size: int) -> np.ndarray:
    """Byte offsets, before the swizzle, of the elements of a matrix: [rows, depth]."""
    r, k = np.arange(rows)[:, None], np.arange(depth)[None, :]
    width, leading, stride = layout.swizzle, layout.leading, layout.stride
    each = 16 // size
    if not layout.transposed:
        if width:
            return r // 8 * stride + r % 8 * width + k * size
        return r // 8 * stride + r % 8 * 16 + k // each * leading + k % each * size
    if width:
        across = width // size
        return r // across * leading + r % across * size + k // 8 * stride + k % 8 * width
    return r // each * stride + r % each * size + k // 8 * leading + k % 8 * 16


@dataclass
class Reading:
    """Elements ``at`` of shared memory that each of ``threads`` (the first of its warp) reads."""

    view: View
    at: np.ndarray
    threads: list[int]
    site: Site


@dataclass
class Product:
    """A product under way: registers ``d`` that it changes, ``a`` that it reads, and shared memory that it reads."""

    sums: tuple[LocalView, np.ndarray]
    left: tuple[LocalView, np.ndarray] | None
    readings: list[Reading]
    site: Site


@dataclass
class Products:
    """The products of a warpgroup: those not yet in a group, and its groups, oldest first. ``fences`` were executed."""

    fences: int = 0
    open: list[Product] = field(default_factory=list)
    groups: list[list[Product]] = field(default_factory=list)

    def all(self) -> list[Product]:
        return [p for group in (*self.groups, self.open) for p in group]


def whole(lanes: Lanes, act: Any, site: Site, what: str) -> bool:
    """Whether all threads of the warpgroup are active; else a finding."""
    if act is None and lanes.count == GROUP:
        return True
    here = lanes.all if act is None else act
    idle = np.setdiff1d(lanes.all, here)
    access = lanes.launch.access
    accesses = [access(site, lanes.stamp[here[0]], "executes it")]
    if len(idle):
        accesses.append(access(site, lanes.stamp[idle[0]], "does not"))
    text = f"{what} that only {len(here)} of the {GROUP} threads of a warpgroup execute; it takes the whole warpgroup"
    lanes.launch.findings.add("warp", text, tuple(accesses))
    return False


def fence(lanes: Lanes, act: Any, site: Site) -> None:
    """Order accesses to registers before the products that follow."""
    if whole(lanes, act, site, "a fence of products"):
        lanes.products.fences += 1


def commit(lanes: Lanes, act: Any, site: Site) -> None:
    """Make the products since the last call a group."""
    if whole(lanes, act, site, "a commit of products"):
        lanes.products.groups.append(lanes.products.open)
        lanes.products.open = []


def wait(lanes: Lanes, act: Any, site: Site, newest: int) -> None:
    """Wait for all but the last ``newest`` groups."""
    if not whole(lanes, act, site, "a wait for products"):
        return
    products: Products = lanes.products
    done = products.groups[: max(0, len(products.groups) - newest)]
    products.groups = products.groups[len(done) :]
    lanes.clocks.join_warps(lanes, lanes.all)
    for product in (p for group in done for p in group):
        for reading in product.readings:
            end_read(lanes, reading.view, reading.at, reading.threads, reading.site)
        for registers in (product.sums, product.left):
            if registers is not None and registers[0].under_way is not None:
                registers[0].under_way[registers[1]] = 0
    for product in products.all():
        _mark(product)
        for reading in product.readings:
            keep_reading(lanes, reading.view, reading.at, reading.threads, reading.site)
    lanes.clocks.advance(lanes, lanes.all)


def _mark(product: Product) -> None:
    """Registers of a product under way: neither read nor written (d), or not written (a, negative)."""
    for registers, sign in ((product.left, -1), (product.sums, 1)):
        if registers is not None:
            view, rows = registers
            assert view.under_way is not None
            view.under_way[rows] = sign * (product.site.number + 1)


def multiply(
    lanes: Lanes,
    act: Any,
    site: Site,
    shape: str,
    types: tuple[str, str, str],
    d: tuple[Any, Any],
    d_at: Any,
    a: tuple[Any, Any],
    a_at: Any,
    a_layout: tuple[int, int, int, int],
    b: tuple[Any, Any],
    b_at: Any,
    b_layout: tuple[int, int, int, int],
    accumulate: Any,
) -> None:
    """Begin d += a b, or d = a b where ``accumulate`` is false."""
    n, depth, ta, tb, td = _checked(shape, types)
    if not whole(lanes, act, site, "a wgmma"):
        return
    lanes.clocks.join_warps(lanes, lanes.all)
    warps = [int(t) for t in np.flatnonzero(lanes.lane == 0)]
    readings: list[Reading] = []
    if isinstance(a[0], LocalView):
        left, kept = _left_registers(lanes, a, a_at, depth, ta, types[0], site)
    else:
        rows = [(w, slice(16 * (int(lanes.thread[w]) % GROUP // 32), None)) for w in warps]
        left = _matrix(lanes, a, a_at, Layout(*a_layout[:3], bool(a_layout[3])), 64, depth, ta, types[0],
                       [(w, slice(part.start, part.start + 16)) for w, part in rows], site, readings)  # fmt: skip
        kept = None
    right = _matrix(lanes, b, b_at, Layout(*b_layout[:3], bool(b_layout[3])), n, depth, tb, types[1],
                    [(w, slice(None)) for w in warps], site, readings)  # fmt: skip
    if left is None or right is None:
        return
    total = left @ right.T
    view, registers = _sums(lanes, d, d_at, n, td, kept, site)
    t, r = lanes.thread % GROUP, np.arange(n // 2)[:, None]
    row, column = t // 32 * 16 + t % 32 // 4 + r // 2 % 2 * 8, r // 4 * 8 + t % 4 * 2 + r % 2
    made = total[row, column]
    adding = lanes.spread(accumulate).astype(bool)
    if adding.any():
        if not view.written[registers].all():
            lanes.fail("uninitialised", f"a wgmma adds to registers of {view.name} that nothing has written", site, 0)
        made = made + np.where(adding, view.data[registers], 0)
    kind = storage_dtype(td)
    view.data[registers] = made.astype(kind) if td.is_int or kind == np.float16 else made.astype(np.float32)
    view.written[registers] = True
    product = Product((view, registers), kept, readings, site)
    lanes.products.open.append(product)
    _mark(product)


def _checked(shape: str, types: tuple[str, str, str]) -> tuple[int, int, DType, DType, DType]:
    """n, k and the types of a product. Raises ``RunError`` for one that the hardware does not have."""
    found = _SHAPE.match(shape)
    ta, tb, td = (operand_type(t) for t in types)
    if str(ta) not in _SUMS or types[0] == "fp32" or str(td) not in _SUMS[str(ta)]:
        raise RunError(f"ptx_wgmma has no product of {types[0]} and {types[1]} in {types[2]}")
    both = ("int8", "uint8") if ta.is_int else ("float8_e4m3fn", "float8_e5m2") if ta.bits == 8 else (str(ta),)
    if str(tb) not in both:
        raise RunError(f"ptx_wgmma has no product of {types[0]} and {types[1]}")
    n, depth = int(found[1]) if found else 0, 256 // ta.bits
    each = 16 if ta.is_int and n not in (8, 24) else 8
    if found is None or int(found[2]) != depth or not 8 <= n <= 256 or n % each:
        few = "a multiple of 16, or 8 or 24," if ta.is_int else "a multiple of 8"
        raise RunError(f"ptx_wgmma has no shape {shape!r} of {types[0]}: m is 64, n {few} up to 256, k {depth}")
    return n, depth, ta, tb, td


def _matrix(
    lanes: Lanes,
    pointer: tuple[Any, Any],
    offset: Any,
    layout: Layout,
    rows: int,
    depth: int,
    dtype: DType,
    name: str,
    parts: list[tuple[int, slice]],
    site: Site,
    readings: list[Reading],
) -> np.ndarray | None:
    """A matrix in shared memory, as [rows, depth] numbers. ``parts``: which rows the warp of each thread reads."""
    view: View = pointer[0]
    if layout.swizzle not in SWIZZLES:
        raise RunError(f"a matrix of ptx_wgmma has a swizzle of 0, 32, 64 or 128 bytes, not {layout.swizzle}")
    if layout.transposed and dtype.bits != 16:
        raise RunError(f"ptx_wgmma takes matrices that are transposed of 16-bit types only, not of {dtype}")
    begins = np.unique(lanes.spread(pointer[1] + offset)).astype(np.int64)
    if len(begins) > 1:
        lanes.fail("warp", f"the threads of a warpgroup give different places in {view.name} to a wgmma", site, 0)
    first = int(begins[0] + view.offset) * view.item
    if first % 16 or layout.leading % 16 or layout.stride % 16:
        text = f"a matrix of wgmma at byte offset {first}, with leading and stride offsets {layout.leading} and "
        lanes.fail("alignment", f"{text}{layout.stride}; all are multiples of 16", site, 0)
        return None
    address = swizzled(first + offsets(layout, rows, depth, dtype.bytes), layout.swizzle)
    flat = view.of_one((address // view.item - view.offset).reshape(-1), lanes, 0, site)
    if not len(flat):
        return None
    at = flat.reshape(rows, depth)
    for part in {(p.start, p.stop) for _, p in parts}:
        threads = [w for w, p in parts if (p.start, p.stop) == part]
        mine = np.unique(at[slice(*part)])
        read_shared(lanes, view, mine, threads, site, "a wgmma")
        readings.append(Reading(view, mine, threads, site))
    kind = storage_dtype(dtype)
    base = at * view.item + address % view.item
    held = view.memory.data.view(np.uint8).view(kind)[base // kind.itemsize]
    numbers = decode_table(dtype)[held] if is_small_float(dtype) else held
    return cut(numbers, name).astype(np.int64 if dtype.is_int else np.float64)


def _left_registers(
    lanes: Lanes, pointer: tuple[Any, Any], offset: Any, depth: int, dtype: DType, name: str, site: Site
) -> tuple[np.ndarray, tuple[LocalView, np.ndarray]]:
    """The matrix a in registers: of each warp 16 rows, in the layout of mma.sync."""
    view: LocalView = pointer[0]
    row, column = layout_a(16, depth, 32 // dtype.bits)
    rows = _rows(lanes, pointer, offset, row.shape[1] * dtype.bytes // _held(view))
    raw = view.load(np.broadcast_to(rows, (lanes.count, len(rows))), None, site)
    if view.dtype is not dtype and not is_small_float(view.dtype):
        raw = np.ascontiguousarray(raw).view(storage_dtype(dtype))
        raw = decode_table(dtype)[raw] if is_small_float(dtype) else raw
    left = np.zeros((64, depth), np.int64 if dtype.is_int else np.float64)
    warp = lanes.thread % GROUP // 32
    left[warp[:, None] * 16 + row[lanes.lane], column[lanes.lane]] = cut(raw, name)
    _check_fence(lanes, view, rows, site)
    return left, (view, rows)


def _held(view: LocalView) -> int:
    return storage_dtype(view.dtype).itemsize


def _rows(lanes: Lanes, pointer: tuple[Any, Any], offset: Any, count: int) -> np.ndarray:
    """The registers from a place on, which is the same in all threads."""
    begins = np.unique(lanes.spread(pointer[1] + offset)).astype(np.int64)
    view: LocalView = pointer[0]
    if len(begins) > 1 or begins[0] < 0 or begins[0] + count > view.limit:
        raise RunError(
            f"a wgmma takes registers {begins.tolist()} + {count} of `{view.name}`, which has {view.limit}: they are "
            "the same in all threads"
        )
    return begins[0] + np.arange(count)


def _sums(
    lanes: Lanes, pointer: tuple[Any, Any], offset: Any, n: int, dtype: DType, left: Any, site: Site
) -> tuple[LocalView, np.ndarray]:
    view: LocalView = pointer[0]
    if not isinstance(view, LocalView) or view.dtype is not dtype:
        raise RunError(f"the sums of ptx_wgmma are in registers of {dtype}, not in {view.dtype} of `{view.name}`")
    rows = _rows(lanes, pointer, offset, n // 2)
    _check_fence(lanes, view, rows, site)
    return view, rows


def _check_fence(lanes: Lanes, view: LocalView, rows: np.ndarray, site: Site) -> None:
    """A fence lies between an access to registers and the product that takes them."""
    if not lanes.products.fences or (view.changed[rows] >= lanes.products.fences).any():
        text = f"a wgmma takes registers of {view.name}, and no ptx_wgmma_fence lies between it and what set them"
        lanes.fail("async", text, site, 0)


def finish(lanes: Lanes) -> None:
    """At the end of a block its products are waited for."""
    for product in lanes.products.all()[:1]:
        here = lanes.launch.access(product.site, lanes.stamp[0], "begins it")
        lanes.launch.findings.add("async", "the block ends before a product has been waited for", (here,))
