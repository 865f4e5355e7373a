"""The banks of shared memory that a warp accesses: which conflict, and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..analysis.effects import Effect, effects
from ..display import FAINT, NO, YES, svg_box, svg_figure, svg_text, text_table
from ..errors import TirError
from ..expr import IntImm, Var
from ..interp.gpu.counts import BANKS, WORD, bank_passes
from ..levels import THREAD_AXES, is_block_axis, is_shared
from ..render import short_text
from ..schedule.state import State
from ..stmt import VECTORIZED, BufferStore, For
from ..target import Target
from ..visit import walk
from .element_accesses import points_of

WARP = 32
_HEAD = ("access", "in", "requests", "passes", "ideal", "conflicts")
_ROWS = 64  # of 128 bytes, in a figure


@dataclass(frozen=True, eq=False)
class BankAccess:
    """One access to a buffer in shared memory, by one thread block. ``requests`` of warps need ``passes`` over the 32
    banks, where ``ideal`` would do if no two different words were in one bank. ``worst`` has the byte address of each
    lane in the slowest request (-1: inactive), and ``width`` the bytes that a lane asks for."""

    what: str
    text: str
    requests: int
    passes: int
    ideal: int
    worst: tuple[int, ...]
    width: int

    @property
    def conflicts(self) -> int:
        """Extra passes over the banks."""
        return self.passes - self.ideal


def bank_accesses(state: State, buffer: str) -> tuple[BankAccess, ...]:
    """The accesses of one thread block to ``buffer``; none if it is not shared, or not lowered to threads yet."""
    from ..transform import lower

    if not any(b.name == buffer for _, b in state.index.allocations(is_shared)):
        return ()
    target = state.target if state.target is not None and state.target.kind.startswith("cuda") else Target("cuda")
    try:
        func = lower(state.mod, upto="swizzle_storage", target=target)[state.func_name]
    except TirError:  # what is not bound yet has no warps
        return ()
    loops = {n.loop_var: n for n in walk(func.body) if isinstance(n, For)}
    found = [e for e in effects(func.body).located() if e.buffer.name == buffer and e.first is None]
    made = (_bank_access(e, loops) for e in found)
    return tuple(access for access in made if access is not None)


def _bank_access(effect: Effect, loops: Mapping[Var, For]) -> BankAccess | None:
    """None of an access whose elements are not known one by one: that of a tensor instruction, or by data."""
    if effect.indices is None or any(isinstance(i, tuple) for i in effect.indices):
        return None
    try:
        return _counted(effect, loops)
    except ValueError:
        return None


def _counted(effect: Effect, loops: Mapping[Var, For]) -> BankAccess:
    import numpy as np

    axes = {loops[v].thread: v for v, _, _ in effect.loops if v in loops and loops[v].thread}
    lanes = _vector(effect, loops)
    held = {v: 0 for tag, v in axes.items() if is_block_axis(tag)} | dict.fromkeys(lanes, 0)
    threads = {axes[tag]: _extent(loops[axes[tag]]) for tag in THREAD_AXES if tag in axes}
    points = points_of(effect, held, threads)
    idle = [v for v, _, _ in effect.loops if v not in held and v not in points.values]
    again = prod(_extent(loops[v]) for v in idle if v in loops and not loops[v].thread)
    addresses = _addresses(effect, points.indices) * np.ones(points.count, np.int64)
    width = effect.buffer.dtype.bytes * prod(lanes.values())
    thread, most = np.zeros(points.count, np.int64), 1
    for var, extent in threads.items():
        thread, most = thread + most * points.values[var], most * extent
    rest = [points.values[v] for v, _, _ in effect.loops if v not in threads and v in points.values]
    _, moment = np.unique(np.stack([*rest, thread // WARP], axis=-1), axis=0, return_inverse=True)
    rows = np.full((int(moment.max(initial=-1)) + 1, WARP), -1, np.int64)
    rows[moment.reshape(-1), thread % WARP] = addresses
    passes = [bank_passes(row[None], width)[0] for row in rows]
    total, ideal = bank_passes(rows, width)
    worst = tuple(int(a) for a in rows[int(np.argmax(passes))]) if passes else ()
    return BankAccess(effect.kind, _place(effect), again * len(rows), again * total, again * ideal, worst, width)


def _place(effect: Effect) -> str:
    """The accessed element as the program says it."""
    if not isinstance(effect.node, BufferStore):
        return short_text(effect.node)
    return f"{effect.buffer.name}[{', '.join(map(short_text, effect.node.indices))}]"


def _vector(effect: Effect, loops: Mapping[Var, For]) -> dict[Var, int]:
    """The vectorized loop around an access, if a lane reads its iterations as one word: they are next to each other."""
    import numpy as np

    for var, _, _ in effect.loops:
        if var in loops and loops[var].kind == VECTORIZED and effect.uses((var,)):
            others = {v: 0 for v, _, _ in effect.loops if v is not var}
            places = _addresses(effect, points_of(effect, others, (var,)).indices)
            if (np.diff(places) == effect.buffer.dtype.bytes).all():
                return {var: len(places)}
    return {}


def _addresses(effect: Effect, indices: Sequence[Any]) -> Any:
    """Bytes from the first element of the buffer."""
    shape = [n.value for n in effect.buffer.shape if isinstance(n, IntImm)]
    strides = [s.value for s in effect.buffer.strides if isinstance(s, IntImm)]
    strides = strides or [prod(shape[k + 1 :]) for k in range(len(shape))]
    return effect.buffer.dtype.bytes * sum((i * s for i, s in zip(indices, strides)), start=0)


def _extent(loop: For) -> int:
    return loop.extent.value if isinstance(loop.extent, IntImm) else 1


def banks_text(found: Sequence[BankAccess]) -> list[str]:
    """A table of the accesses, if there are any."""
    rows = [(a.what, a.text, *map(str, (a.requests, a.passes, a.ideal, a.conflicts))) for a in found]
    return (
        ["", "banks of shared memory, in one thread block:", text_table(_HEAD, rows, right=range(2, 6))] if rows else []
    )


def banks_figure(buffer: str, found: Sequence[BankAccess]) -> str:
    """For each access its slowest request: the buffer in rows of 32 words, one in each bank, those accessed in colour. A
    bank with several of them serves one after the other."""
    return "".join(_figure(buffer, access) for access in found)


def _figure(buffer: str, access: BankAccess) -> str:
    size, left, top = 11, 8, 52
    lanes: dict[int, list[int]] = {}
    for lane, address in enumerate(access.worst):
        for word in range(max(1, access.width // WORD)) if address >= 0 else ():
            lanes.setdefault(address // WORD + word, []).append(lane)
    rows = sorted({word // BANKS for word in lanes})[:_ROWS]
    crowded = {bank for bank in range(BANKS) if sum(word % BANKS == bank for word in lanes) > 1}
    parts = [
        svg_text(left, 16, f"{access.what} {buffer}: {access.text}", font_weight="bold"),
        svg_text(
            left,
            32,
            f"{access.requests} requests, {access.passes} passes, {access.conflicts} bank conflicts",
            fill=NO if access.conflicts else YES,
        ),
        svg_text(left, 46, "one request; a column is a bank", font_size="11"),
    ]
    for y, row in enumerate(rows):
        for bank in range(BANKS):
            mine = lanes.get(row * BANKS + bank)
            title = f"bank {bank}, byte {(row * BANKS + bank) * WORD}" + (f": lanes {mine}" if mine else "")
            fill = "none" if mine is None else NO if bank in crowded and access.conflicts else YES
            edge = {"stroke": FAINT, "stroke_opacity": "0.4"}
            parts.append(svg_box(left + bank * size, top + y * size, size - 1, size - 1, fill, title, **edge))
    return svg_figure(max(400, 7 * len(access.text) + 120), top + size * len(rows) + 8, *parts)
