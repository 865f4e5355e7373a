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
from .lanes import Lanes, Launch
from .matrix import cut, layout_a, operand_type
from .memory import LocalView, View
from .report import Access, Site
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
    """Elements ``at`` of shared memory that a warp reads."""

    view: View
    at: np.ndarray
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
    """The products of a warp: those not yet in a group, and its groups, oldest first. ``fences`` were executed."""

    fences: int = 0
    open: list[Product] = field(default_factory=list)
    groups: list[list[Product]] = field(default_factory=list)

    def all(self) -> list[Product]:
        return [p for group in (*self.groups, self.open) for p in group]


class Warpgroup:
    """What the warps of a warpgroup execute together: each in its own time, but all the same."""

    def __init__(self) -> None:
        self.done: list[Access] = []
        self.counts: dict[int, int] = {}  # by warp

    @staticmethod
    def of(lanes: Lanes) -> Warpgroup:
        return lanes.group.warpgroups.setdefault((int(lanes.place[0]), int(lanes.thread[0]) // GROUP), Warpgroup())

    def execute(self, lanes: Lanes, here: Access) -> bool:
        """The next of the operations that the warps share; false, and a finding, if another warp executed another one."""
        warp = int(lanes.thread[0]) // 32
        number = self.counts[warp] = self.counts.get(warp, 0) + 1
        if number > len(self.done):
            self.done.append(here)
        elif self.done[number - 1].site is not here.site:
            text = "the warps of a warpgroup execute different operations that take the whole warpgroup"
            lanes.launch.findings.add("warp", text, (here, self.done[number - 1]))
            return False
        return True

    def finish(self, launch: Launch, number: int) -> None:
        """At the end of the block all four warps have executed the same."""
        warps = [4 * number + k for k in range(4)]
        for warp in warps:
            count = self.counts.get(warp, 0)
            if count < len(self.done):
                first = self.done[count]
                text = f"an operation of a whole warpgroup that warp {warp} of the block does not execute"
                if warp >= launch.warps:
                    text = f"an operation of a whole warpgroup, which has but {launch.warps - 4 * number} warps"
                launch.findings.add("warp", text, (first,))
                return


def whole(lanes: Lanes, act: Any, site: Site, what: str) -> bool:
    """Whether all threads of the warp are active, and its warpgroup does the same; else a finding."""
    if not lanes.whole_warps(act, site, what):
        return False
    here = lanes.launch.access(site, lanes.stamp[0], "executes it")
    return Warpgroup.of(lanes).execute(lanes, here)


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
            end_read(lanes, reading.view, reading.at, _first(lanes), reading.site)
        for registers in (product.sums, product.left):
            if registers is not None and registers[0].under_way is not None:
                registers[0].under_way[registers[1]] = 0
    for product in products.all():
        _mark(product)
        for reading in product.readings:
            keep_reading(lanes, reading.view, reading.at, _first(lanes), reading.site)
    lanes.clocks.advance(lanes, lanes.all)


def _first(lanes: Lanes) -> int:
    """The first thread of the warp, which stands for it."""
    return int(np.argmin(lanes.lane))


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
    a: tuple[Any, Any],
    a_layout: tuple[int, int, int, int],
    b: tuple[Any, Any],
    b_layout: tuple[int, int, int, int],
    accumulate: Any,
) -> None:
    """Begin d += a b, or d = a b where ``accumulate`` is false."""
    n, depth, ta, tb, td = _checked(shape, types)
    if not whole(lanes, act, site, "a wgmma"):
        return
    lanes.clocks.join_warps(lanes, lanes.all)
    readings: list[Reading] = []
    begin = 16 * (int(lanes.thread[0]) % GROUP // 32)  # the warp's rows of a and d
    if isinstance(a[0], LocalView):
        left, kept = _left_registers(lanes, a, depth, ta, types[0], site)
    else:
        places = offsets(Layout(*a_layout[:3], bool(a_layout[3])), 64, depth, ta.bytes)[begin : begin + 16]
        left = _matrix(lanes, a, a_layout, places, ta, types[0], site, readings)
        kept = None
    places = offsets(Layout(*b_layout[:3], bool(b_layout[3])), n, depth, tb.bytes)
    right = _matrix(lanes, b, b_layout, places, tb, types[1], site, readings)
    if left is None or right is None:
        return
    total = left @ right.T
    view, registers = _sums(lanes, d, n, td, site)
    t, r = lanes.lane, np.arange(n // 2)[:, None]
    row, column = t // 4 + r // 2 % 2 * 8, r // 4 * 8 + t % 4 * 2 + r % 2
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
    layout: tuple[int, int, int, int],
    places: np.ndarray,
    dtype: DType,
    name: str,
    site: Site,
    readings: list[Reading],
) -> np.ndarray | None:
    """The elements at byte offsets ``places`` of a matrix in shared memory, as numbers."""
    view: View = pointer[0]
    leading, stride, swizzle, transposed = layout
    if swizzle not in SWIZZLES:
        raise RunError(f"a matrix of ptx_wgmma has a swizzle of 0, 32, 64 or 128 bytes, not {swizzle}")
    if transposed and dtype.bits != 16:
        raise RunError(f"ptx_wgmma takes matrices that are transposed of 16-bit types only, not of {dtype}")
    begins = np.unique(lanes.whole(pointer[1]))
    if len(begins) > 1:
        lanes.fail("warp", f"the threads of a warp give different places in {view.name} to a wgmma", site, 0)
    first = int(begins[0] + view.offset) * view.item
    if first % 16 or leading % 16 or stride % 16:
        text = f"a matrix of wgmma at byte offset {first}, with leading and stride offsets {leading} and {stride}"
        lanes.fail("alignment", f"{text}; all are multiples of 16", site, 0)
        return None
    address = swizzled(first + places, swizzle)
    at = view.of_one((address // view.item - view.offset).reshape(-1), 0, site)
    if not len(at):
        return None
    mine = np.unique(at)
    read_shared(lanes, view, mine, _first(lanes), site, "a wgmma")
    readings.append(Reading(view, mine, site))
    kind = storage_dtype(dtype)
    base = at.reshape(places.shape) * view.item + address % view.item
    held = view.memory.data.view(np.uint8).view(kind)[base // kind.itemsize]
    numbers = decode_table(dtype)[held] if is_small_float(dtype) else held
    return cut(numbers, name).astype(np.int64 if dtype.is_int else np.float64)


def _left_registers(
    lanes: Lanes, pointer: tuple[Any, Any], depth: int, dtype: DType, name: str, site: Site
) -> tuple[np.ndarray, tuple[LocalView, np.ndarray]]:
    """The warp's 16 rows of the matrix a, in registers in the layout of mma.sync."""
    view: LocalView = pointer[0]
    row, column = layout_a(16, depth, 32 // dtype.bits)
    rows = _rows(lanes, pointer, row.shape[1] * dtype.bytes // storage_dtype(view.dtype).itemsize)
    raw = view.load(np.broadcast_to(rows, (lanes.count, len(rows))), None, site)
    if view.dtype is not dtype and not is_small_float(view.dtype):
        raw = np.ascontiguousarray(raw).view(storage_dtype(dtype))
        raw = decode_table(dtype)[raw] if is_small_float(dtype) else raw
    left = np.zeros((16, depth), np.int64 if dtype.is_int else np.float64)
    left[row[lanes.lane], column[lanes.lane]] = cut(raw, name)
    _check_fence(lanes, view, rows, site)
    return left, (view, rows)


def _rows(lanes: Lanes, pointer: tuple[Any, Any], count: int) -> np.ndarray:
    """The registers from a place on, which is the same in all threads."""
    begins = np.unique(lanes.whole(pointer[1]))
    view: LocalView = pointer[0]
    if len(begins) > 1 or begins[0] < 0 or begins[0] + count > view.limit:
        raise RunError(
            f"a wgmma takes registers {begins.tolist()} + {count} of `{view.name}`, which has {view.limit}: they are "
            "the same in all threads"
        )
    return begins[0] + np.arange(count)


def _sums(lanes: Lanes, pointer: tuple[Any, Any], n: int, dtype: DType, site: Site) -> tuple[LocalView, np.ndarray]:
    view: LocalView = pointer[0]
    if not isinstance(view, LocalView) or view.dtype is not dtype:
        raise RunError(f"the sums of ptx_wgmma are in registers of {dtype}, not in {view.dtype} of `{view.name}`")
    rows = _rows(lanes, pointer, n // 2)
    _check_fence(lanes, view, rows, site)
    return view, rows


def _check_fence(lanes: Lanes, view: LocalView, rows: np.ndarray, site: Site) -> None:
    """A fence lies between an access to registers and the product that takes them."""
    if not lanes.products.fences or (view.changed[rows] >= lanes.products.fences).any():
        text = f"a wgmma takes registers of {view.name}, and no ptx_wgmma_fence lies between it and what set them"
        lanes.fail("async", text, site, 0)


def finish(lanes: Lanes) -> None:
    """At the end of a block the products of a warp are waited for."""
    for product in lanes.products.all()[:1]:
        here = lanes.launch.access(product.site, lanes.stamp[0], "begins it")
        lanes.launch.findings.add("async", "the block ends before a product has been waited for", (here,))
