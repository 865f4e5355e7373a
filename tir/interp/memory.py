"""Run-time support other than arithmetic: views of memory, race tracking, errors with their place."""

from __future__ import annotations

import linecache
import math
from typing import Any, NoReturn

import numpy as np

from ..dtype import DType
from ..errors import RunError
from .numbers import storage_dtype


class Site:
    """A place in the program that can fail: the statement, its access, and the variables in scope."""

    __slots__ = ("what", "buffer", "span", "block", "names", "shape")

    def __init__(self, what: str, buffer: Any, span: Any, block: str, names: tuple[tuple[str, bool], ...]):
        self.what = what
        self.buffer = buffer
        self.span = span
        self.block = block
        self.names = names  # (name, whether it is a block iterator)

    def place(self, values: tuple[Any, ...]) -> str:
        """Lines that describe the place: block and iterator values, loops and their values, the user's source line."""
        pairs = list(zip(self.names, values))
        iters = ", ".join(f"{name}={value}" for (name, is_iter), value in pairs if is_iter)
        loops = ", ".join(f"{name}={value}" for (name, is_iter), value in pairs if not is_iter)
        parts = []
        if self.block:
            parts.append(f'block "{self.block}"' + (f" at {iters}" if iters else ""))
        if loops:
            parts.append(f"loops {loops}")
        lines = ["  in " + ", ".join(parts)] if parts else []
        if self.span is not None:
            text = linecache.getline(self.span.filename, self.span.line).strip()
            lines.append(f"  {self.span.filename}:{self.span.line}" + (f": {text}" if text else ""))
        return "\n".join(lines)

    def fail(self, message: str, values: tuple[Any, ...]) -> NoReturn:
        raise RunError("\n".join(part for part in (message, self.place(values)) if part))


def element_text(name: str, index: tuple[Any, ...]) -> str:
    parts = (f"{i[0]}..{i[-1]}" if isinstance(i, np.ndarray) else str(i) for i in index)
    return f"{name}[{', '.join(parts)}]"


def overflow(site: Site, value: int, text: str, dtype: DType, values: tuple[Any, ...]) -> NoReturn:
    site.fail(
        f"`{text}` is {value}, which {dtype} does not hold: arithmetic of loop variables, sizes and scalar parameters does "
        f"not wrap around; compute it in {'uint64' if dtype.bits == 64 else 'int64'}, or in an unsigned type to wrap",
        values,
    )


def out_of_bounds(site: Site, index: tuple[Any, ...], shape: tuple[int, ...], values: tuple[Any, ...]) -> NoReturn:
    axis = next((k for k, (i, n) in enumerate(zip(index, shape)) if not (np.min(i) >= 0 and np.max(i) < n)), 0)
    site.fail(
        f"{site.what} of {element_text(site.buffer.name, index)} is out of bounds: "
        f"{site.buffer.name} has shape {tuple(shape)}, and index {axis} must be in [0, {shape[axis]})",
        values,
    )


def uninitialised(site: Site, index: tuple[Any, ...], values: tuple[Any, ...]) -> NoReturn:
    site.fail(
        f"read of {element_text(site.buffer.name, index)}, which nothing has written yet "
        f"({site.buffer.name} is allocated in the function)",
        values,
    )


def outside_region(
    site: Site, boxes: list[list[tuple[int, int]]], index: tuple[Any, ...], values: tuple[Any, ...]
) -> bool:
    """True if ``index`` lies in one of the declared boxes; otherwise raises."""
    for box in boxes:
        for i, (low, high) in zip(index, box):
            if type(i) is np.ndarray:
                if i.min() < low or i.max() >= high:
                    break
            elif not low <= i < high:
                break
        else:
            return True
    kind = "writes" if site.what == "write" else "reads"
    declared = (
        "; ".join(
            f"{site.buffer.name}[{', '.join(f'{a}:{b}' for a, b in box)}]" if box else site.buffer.name for box in boxes
        )
        or "nothing of it"
    )
    return site.fail(
        f"{site.what} of {element_text(site.buffer.name, index)} is outside the block's declared {kind}: {declared}",
        values,
    )


def allocate(count: int, dtype: DType) -> np.ndarray:
    """New memory filled with a recognisable pattern: nan in floats, -1 in integers."""
    count *= dtype.lanes
    kind = storage_dtype(dtype)
    try:
        memory = np.empty(count, kind)
    except (MemoryError, ValueError):
        raise RunError(f"out of memory allocating {count} elements of {dtype.element}") from None
    if kind == np.bool_:
        memory.fill(False)
    else:
        memory.view(np.uint8).fill(0xFF)
    return memory


def flat(array: np.ndarray) -> np.ndarray:
    """The memory of an argument as a one-dimensional array, from its first element to its last."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    if array.size == 0:
        return array.reshape(-1)[:0]
    span = 1 + sum((n - 1) * s // array.itemsize for n, s in zip(array.shape, array.strides))
    return np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,))


def view(
    memory: Any, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...] | None, offset: int, name: str
) -> np.ndarray:
    """The buffer ``name`` laid over ``memory``; ``RunError`` if it does not fit."""
    if not isinstance(memory, np.ndarray):
        raise RunError(f"buffer `{name}` lies behind a pointer that is not an array: {type(memory).__name__}")
    kind = storage_dtype(dtype)
    if memory.dtype != kind and memory.dtype is not np.dtype(bool):
        memory = memory.view(np.uint8)[: memory.nbytes // kind.itemsize * kind.itemsize].view(kind)
    lanes = dtype.lanes
    if strides is None:
        strides = tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
    if 0 not in shape:
        first = offset + sum(min(0, (n - 1) * s) for n, s in zip(shape, strides))
        last = offset + sum(max(0, (n - 1) * s) for n, s in zip(shape, strides))
        if first < 0 or (last + 1) * lanes > memory.size:
            raise RunError(
                f"buffer `{name}` of shape {shape} at offset {offset} does not fit: its memory has "
                f"{memory.size // lanes} elements"
            )
    else:
        offset = 0
    item = memory.itemsize
    byte_strides = tuple(s * lanes * item for s in strides)
    if lanes > 1:
        shape, byte_strides = (*shape, lanes), (*byte_strides, item)
    return np.lib.stride_tricks.as_strided(memory[offset * lanes :], shape, byte_strides)


def matched(source: np.ndarray, begins: tuple[int, ...], extents: tuple[int, ...], ndim: int, name: str) -> np.ndarray:
    """The region of ``source`` that a match_buffer names; leading axes of extent 1 are dropped to get ``ndim`` axes."""
    for axis, (b, e, n) in enumerate(zip(begins, extents, source.shape)):
        if b < 0 or b + e > n:
            raise RunError(f"match_buffer `{name}`: axis {axis} of its source spans [{b}, {b + e}) of {n} elements")
    part = source[tuple(slice(b, b + e) for b, e in zip(begins, extents))]
    while len(extents) > ndim:
        if extents[0] != 1:
            raise RunError(f"match_buffer `{name}` has {ndim} axes; its source's first axis has {extents[0]} elements")
        part, extents = part[0, ...], extents[1:]  # with the ellipsis, a view even if no axis is left
    return part


class Races:
    """The current iteration of every concurrent loop, as a tree of iterations.

    A number identifies an iteration; its entry has the enclosing iteration, the run of its loop, the loop variable and
    its value. Two accesses race if the outermost loop in which their iterations differ is concurrent.
    """

    def __init__(self) -> None:
        self.parent = [0]
        self.run = [0]
        self.depth = [0]
        self.label: list[tuple[str, Any]] = [("", None)]
        self.runs = 0
        self.outermost = 0  # the run of a loop in no other concurrent one

    def enter(self) -> int:
        self.runs += 1
        return self.runs

    def step(self, parent: int, run: int, name: str, value: Any) -> int:
        if not parent:
            self.outermost = run
        self.parent.append(parent)
        self.run.append(run)
        self.depth.append(self.depth[parent] + 1)
        self.label.append((name, value))
        return len(self.run) - 1

    def conflict(self, a: int, b: int) -> tuple[int, int] | None:
        """The two different iterations of one concurrent loop that contain ``a`` and ``b``; None if they are ordered."""
        depth, parent = self.depth, self.parent
        while depth[a] > depth[b]:
            a = parent[a]
        while depth[b] > depth[a]:
            b = parent[b]
        if a == b:
            return None
        while parent[a] != parent[b]:
            a, b = parent[a], parent[b]
        return (a, b) if self.run[a] == self.run[b] else None


class Tracker:
    """The last writer of every element of a piece of memory, and the readers since, by address: in the outermost run, before
    and after which nothing races with what is in it."""

    def __init__(self, races: Races):
        self.races = races
        self.run = 0
        self.writer: dict[int, tuple[int, Site]] = {}
        self.readers: dict[int, dict[int, Site]] = {}

    def on(self, array: np.ndarray, unit: int = 0) -> Accesses | Pieces:
        """The records of a buffer, by the addresses of its elements: of each ``unit`` bytes of them, if that is less."""
        base, size = array.ctypes.data, array.itemsize
        if not 0 < unit < size:
            return Accesses(self, base, array.strides)
        return Pieces([Accesses(self, base + at, array.strides) for at in range(0, size, unit)])

    def read(self, key: int, now: int, site: Site) -> bool:
        """Record a read of the element at an address; false, and not recorded, where it races."""
        if self.run != self.races.outermost:
            self._begin()
        last = self.writer.get(key)
        if last is not None and last[0] != now and self.races.conflict(last[0], now):
            return False
        others = self.readers.get(key)
        if others is None:
            self.readers[key] = {now: site}
        else:
            others[now] = site
        return True

    def write(self, key: int, now: int, site: Site) -> bool:
        """Record a write of the element at an address; false, and not recorded, where it races."""
        if self.run != self.races.outermost:
            self._begin()
        last, others = self.writer.get(key), self.readers.get(key)
        if last is not None:
            if last[0] != now:
                if self.races.conflict(last[0], now):
                    return False
            elif last[1] is site and (others is None or (len(others) == 1 and now in others)):
                return True  # as it was: what races with the read races with the write
        if others is not None:
            if len(others) > 1 or now not in others:
                if any(reader != now and self.races.conflict(reader, now) for reader in others):
                    return False
            del self.readers[key]
        self.writer[key] = now, site
        return True

    def _begin(self) -> None:
        self.run = self.races.outermost
        self.writer.clear()
        self.readers.clear()


class Accesses:
    """A buffer's view of a tracker."""

    def __init__(self, tracker: Tracker, base: int, strides: tuple[int, ...]):
        self.tracker = tracker
        self.base = base
        self.strides = strides

    def _keys(self, index: tuple[Any, ...]) -> list[int]:
        """The addresses of an access: one, or one a lane where an index is a vector."""
        key = self.base
        for i, stride in zip(index, self.strides):
            key = key + (i.astype(np.int64) if isinstance(i, np.ndarray) else i) * stride
        return key.tolist() if isinstance(key, np.ndarray) else [key]

    def read(self, index: tuple[Any, ...], now: int, site: Site, values: tuple[Any, ...]) -> bool:
        keys = self._keys(index)
        for key in keys:
            if not self.tracker.read(key, now, site):
                self._fail(keys, key, index, now, site, values)
        return True

    def write(self, index: tuple[Any, ...], now: int, site: Site, values: tuple[Any, ...]) -> bool:
        keys = self._keys(index)
        for key in keys:
            if not self.tracker.write(key, now, site):
                self._fail(keys, key, index, now, site, values)
        return True

    def _fail(
        self, keys: list[int], key: int, index: tuple[Any, ...], now: int, site: Site, values: tuple[Any, ...]
    ) -> NoReturn:
        """Name the first access to the element at ``key`` that runs in no order with one now."""
        races, last = self.tracker.races, self.tracker.writer.get(key)
        before = [] if last is None else [last]
        before += self.tracker.readers.get(key, {}).items()
        first, ((name, a), (_, b)) = next(
            (by, [races.label[p] for p in found])
            for at, by in before
            if at != now and (found := races.conflict(at, now)) is not None
        )
        lane = keys.index(key)
        element = element_text(site.buffer.name, tuple(int(i[lane]) if isinstance(i, np.ndarray) else i for i in index))
        other = f' (block "{first.block}")' if first.block else ""
        site.fail(
            f"race on {element}: {name}={a} makes a {first.what}{other} and "
            f"{name}={b} makes a {site.what}, and the iterations of {name} run in no order; where each iteration should "
            f"have {site.buffer.name} for itself, mark it private (privatize)",
            values,
        )


class Pieces:
    """A buffer's view of a tracker whose memory has smaller elements by another name."""

    def __init__(self, pieces: list[Accesses]):
        self.pieces = pieces

    def read(self, *access: Any) -> bool:
        return all(piece.read(*access) for piece in self.pieces)

    def write(self, *access: Any) -> bool:
        return all(piece.write(*access) for piece in self.pieces)
