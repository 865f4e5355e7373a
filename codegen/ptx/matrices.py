"""Tensor cores: ``mma.sync``, ``wmma``, ``ldmatrix``, ``stmatrix``, ``movmatrix``, by the fragments of the PTX manual.

A fragment of mma: a lane has the number ``g = lane / 4`` of its group and ``t = lane % 4`` in it, and a 32-bit register
has ``e`` elements. Of A, register r has row g + 8 (r % 2) and columns 4e (r / 2) + t e + (0 … e - 1); of B the same rows
in place of columns, and column g; of C and D, register r has row g + 8 (r / 2 % 2) and column 8 (r / 4) + 2t + r % 2 (a warp of
wgmma has more than 8 columns).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import unknown
from .compiler import Compiler, step
from .floats import BF16, F16, F32, SMALL
from .loads import access, find, write
from .multiprocessor import Machine, Step
from .syntax import Instruction, Reg, Vector
from .table import Array, Mods
from .warps import full_warps, together

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8,
         "s4": 4, "u4": 4, "b1": 1}  # fmt: skip


def widened(words: Array, kind: str) -> Array:
    """The elements in registers (last axis) as float64, or int64 of integers; a further axis for those of a register."""
    bits = BITS[kind]
    if kind == "f64":
        return words.view(np.float64)[..., None]
    u = np.ascontiguousarray(words.astype(np.uint32))
    if bits < 8:
        parts = [(u >> np.uint32(bits * k)) & np.uint32((1 << bits) - 1) for k in range(32 // bits)]
        x = np.stack(parts, -1).astype(np.int64)
        return np.where(x >= 8, x - 16, x) if kind == "s4" else x
    x = u[..., None].view(f"uint{bits}")
    if kind in ("s8", "u8"):
        return x.view(np.int8 if kind == "s8" else np.uint8).astype(np.int64)
    if kind == "s32":
        return x.view(np.int32).astype(np.int64)
    if kind in SMALL:
        return SMALL[kind].values()[x]
    if kind == "tf32":
        return (x & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return {"f16": F16, "bf16": BF16, "f32": F32}[kind].widen(np.ascontiguousarray(x))


def narrowed(x: Array, kind: str, saturate: bool = False) -> Array:
    """Elements (the last axis those of one register) as registers."""
    if kind == "f64":
        return np.ascontiguousarray(x[..., 0]).view(np.uint64)
    if kind == "s32":
        limited = np.clip(x, -(1 << 31), (1 << 31) - 1) if saturate else x
        return limited[..., 0].astype(np.int32).view(np.uint32)
    form = {"f32": F32, "f16": F16}[kind]
    bits = form.rounded(np.ascontiguousarray(x), np.zeros_like(x))
    return np.ascontiguousarray(bits).view(np.uint32)[..., 0]


def places(role: str, kind: str, registers: int) -> tuple[Array, Array]:
    """(row, column) of each lane's elements: arrays of 32 lanes, the registers, and the elements of one."""
    lane, r = np.arange(32)[:, None, None], np.arange(registers)[None, :, None]
    e = max(1, 32 // BITS[kind])
    j = np.arange(e)[None, None, :]
    g, t = lane // 4, lane % 4
    if role == "a":
        return g + 8 * (r % 2) + 0 * j, 4 * e * (r // 2) + t * e + j
    if role == "b":
        return 4 * e * r + t * e + j, g + 0 * r + 0 * j
    if e == 2:
        return g + 8 * (r % 2) + 0 * j, 8 * (r // 2) + 2 * t + j
    return g + 8 * (r // 2 % 2) + 0 * j, 8 * (r // 4) + 2 * t + r % 2 + 0 * j


def gathered(m: Machine, slots: list[int], lanes: Array) -> Array:
    """Registers of whole warps: (warps, 32, registers)."""
    return np.stack([m.regs[s][lanes] for s in slots], -1)


def _slots(c: Compiler, operand: Any) -> list[int]:
    parts = operand.parts if isinstance(operand, Vector) else (operand,)
    found = []
    for p in parts:
        if not isinstance(p, Reg):
            raise ValueError("a fragment is of registers")
        found.append(c.slot(p))
    return found


def _sizes(mods: Mods) -> tuple[int, int, int]:
    name = next((x for x in mods.left if _SHAPE.match(x)), "")
    found = _SHAPE.match(mods.take(name)) if name else None
    if found is None:
        raise mods.unknown()
    return int(found[1]), int(found[2]), int(found[3])


def _times(a: Array, b: Array, c: Array) -> Array:
    with np.errstate(all="ignore"):
        return a @ b + c


_LEGAL = {  # (m, n) and what the depth k is in bytes of a row of A
    (16, 8): (16, 32, 64, 128), (8, 8): (16, 32),
}  # fmt: skip


@step("mma")
def _mma(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    mods.skip("sync", "aligned")
    m_, n_, k_ = _sizes(mods)
    saturate = mods.has("satfinite")
    *layouts, kd, ka, kb, kc = mods.rest()
    kinds = {kd, ka, kb, kc}
    if layouts != ["row", "col"] or not kinds <= set(BITS):
        raise mods.unknown()
    if "b1" in kinds or k_ * BITS[ka] // 8 not in _LEGAL.get((m_, n_), ()):
        raise mods.unknown()
    d, a, b, acc = (_slots(c, x) for x in inst.operands[:4])
    where = c.program.where(c.at)
    count = m_ * n_ // 32 * BITS[kd] // max(32, BITS[kd])
    if len(a) != max(1, m_ * k_ * BITS[ka] // 32 // max(32, BITS[ka])) or len(d) != count:
        raise mods.unknown()
    rows, columns = places("c", kd, len(d))

    operands = [
        (a, places("a", ka, len(a)), (m_, k_), ka),
        (b, places("b", kb, len(b)), (k_, n_), kb),
        (acc, places("c", kc, len(acc)), (m_, n_), kc),
    ]
    return together(c, None, _product(where, operands, (d, (rows, columns), (m_, n_), kd), saturate), whole=True)


Operand = tuple[list[int], tuple[Array, Array], tuple[int, int], str]  # registers, places, rows and columns, type


def _product(where: str, operands: list[Operand], result: Operand, saturate: bool) -> Step:
    """The step that computes D = A B + C of whole warps."""
    d, (rows, columns), _, kind = result

    def multiply(m: Machine) -> None:
        lanes = full_warps(m, where)
        matrices = []
        for slots, at, shape, type_ in operands:
            x = widened(gathered(m, slots, lanes), type_)
            made = np.zeros((len(lanes), *shape), x.dtype)
            made[:, at[0], at[1]] = x
            matrices.append(made)
        if m.unknown:
            follow(m, lanes)
        made = narrowed(_times(*matrices)[:, rows, columns], kind, saturate)
        for k, slot in enumerate(d):
            m.regs[slot][lanes] = made[..., k]

    def follow(m: Machine, lanes: Array) -> None:
        """An element of D is unknown if one of its row of A, of its column of B, or of C is."""
        x, y, z = (_unknown_elements(m, lanes, slots, at, shape) for slots, at, shape, _ in operands)
        total = np.any(x, 2, keepdims=True) | np.any(y, 1, keepdims=True) | z
        _mark(m, lanes, d, np.any(total[:, rows, columns], -1))

    return multiply


def _unknown_elements(m: Machine, lanes: Array, slots: list[int], at: tuple[Array, Array], shape: Any) -> Array:
    marks = np.stack([m.unknown[s][lanes] if s in m.unknown else np.zeros(lanes.shape, bool) for s in slots], -1)
    made = np.zeros((len(lanes), *shape), bool)
    made[:, at[0], at[1]] = marks[..., None]
    return made


def _mark(m: Machine, lanes: Array, slots: list[int], marks: Array) -> None:
    """Mark registers of whole warps: ``marks`` is of warps, lanes, registers."""
    m.idx, m.n = lanes.ravel(), lanes.size
    for k, slot in enumerate(slots):
        own = marks[..., k].ravel()
        unknown.mark(m, [slot], own if own.any() else None)


# ------------------------------------------------------------ ldmatrix


@step("ldmatrix", "stmatrix")
def _ldmatrix(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    """Matrices of 8 x 8 of 16 bits. Lane l gives the address of row l % 8 of matrix l / 8, and has of each matrix the
    elements 2 (l % 4) and the next of row l / 4, or of column l / 4 with .trans."""
    mods.skip("sync", "aligned", "m8n8", "shared", "shared::cta", "b16")
    number, transposed = mods.take("x1", "x2", "x4"), mods.has("trans")
    count = int(number[1:])
    loads = inst.op == "ldmatrix"
    registers, address = inst.operands if loads else reversed(inst.operands)
    slots = _slots(c, registers)
    read, _ = c.address(address)
    place, where = c.at, c.program.where(c.at)

    def run(m: Machine) -> None:
        lanes = full_warps(m, where)
        m.idx, m.n = lanes.ravel(), lanes.size
        at = read(m).reshape(-1, 32)[:, : 8 * count]
        m.idx = lanes[:, : 8 * count].ravel()
        m.n = len(m.idx)
        (t,) = find(m, "shared", at.ravel(), 2, 8, place)
        places_ = t.place[:, None] + np.arange(8)
        shape = (len(lanes), count, 8, 8)
        lane = np.arange(32)
        row, column = (lane // 4)[:, None], (2 * (lane % 4))[:, None] + np.arange(2)
        if transposed:
            row, column = column, row
        if loads:
            data, known = t.space.load(places_, 2)
            matrix, marks = data.reshape(shape), ~known.reshape(shape)
            for k, slot in enumerate(slots):
                pair = np.ascontiguousarray(matrix[:, k][:, row, column])
                m.regs[slot][lanes] = pair.view(np.uint32)[..., 0]
            if m.unknown or marks.any():
                m.origin = f"shared memory, read {where}, which nothing has written" if marks.any() else m.origin
                _mark(m, lanes, slots, np.stack([marks[:, k][:, row, column].any(-1) for k in range(count)], -1))
        else:
            matrix = np.zeros(shape, np.uint16)
            for k, slot in enumerate(slots):
                pair = np.ascontiguousarray(m.regs[slot][lanes])[..., None].view(np.uint16)
                matrix[:, k][:, row, column] = pair
            write(m, type(t)(t.space, places_, None), 0, matrix.reshape(-1, 8), 2)
        m.idx, m.n = lanes.ravel(), lanes.size

    return together(c, None, access(c, inst, run), whole=True)


@step("movmatrix")
def _movmatrix(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    mods.skip("sync", "aligned", "m8n8", "trans", "b16")
    to, source = (_slots(c, x)[0] for x in inst.operands)
    where = c.program.where(c.at)

    def run(m: Machine) -> None:
        lanes = full_warps(m, where)
        lane = np.arange(32)
        row, column = (lane // 4)[:, None], (2 * (lane % 4))[:, None] + np.arange(2)
        matrix = np.zeros((len(lanes), 8, 8), np.uint16)
        matrix[:, row, column] = np.ascontiguousarray(m.regs[source][lanes])[..., None].view(np.uint16)
        m.regs[to][lanes] = np.ascontiguousarray(matrix[:, column, row]).view(np.uint32)[..., 0]

    return together(c, None, run, whole=True)


# ------------------------------------------------------------ wmma


def _wmma_layout(role: str, kind: str, sizes: tuple[int, int, int], registers: int) -> tuple[Array, Array]:
    """(row, column) of a lane's elements. The manual leaves it open; here a lane has consecutive elements of the rows, and
    of halves, of which two lanes have each, lanes 0 to 15 all of them and the others again."""
    m_, n_, k_ = sizes
    columns = {"a": k_, "b": n_}.get(role, n_)
    rows = {"a": m_, "b": k_}.get(role, m_)
    each = max(1, 32 // BITS[kind])
    index = np.arange(32 * registers * each).reshape(32, registers, each) % (rows * columns)
    return index // columns, index % columns


@step("wmma")
def _wmma(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    what = mods.take("load", "store", "mma")
    mods.skip("sync", "aligned")
    sizes = _sizes(mods)
    if what == "mma":
        return _wmma_mma(c, inst, mods, sizes)
    role = mods.take("a", "b", "c", "d")
    layout, space, kind = mods.take("row", "col"), mods.take("global", "shared", "shared::cta"), mods.left.pop()
    operands = list(inst.operands)
    registers = operands.pop(0 if what == "load" else 1)
    slots = _slots(c, registers)
    read, _ = c.address(operands[0])
    shape = {"a": (sizes[0], sizes[2]), "b": (sizes[2], sizes[1])}.get(role, sizes[:2])
    stride = c.get(operands[1], "u32") if len(operands) > 1 else None
    rows, columns = _wmma_layout(role, kind, sizes, len(slots))
    bytes_, place, where = BITS[kind] // 8, c.at, c.program.where(c.at)
    usual = shape[1] if layout == "row" else shape[0]

    def run(m: Machine) -> None:
        lanes = full_warps(m, where)
        m.idx, m.n = lanes.ravel(), lanes.size
        base = read(m).reshape(-1, 32)
        step_ = np.full(base.shape, usual, np.int64) if stride is None else stride(m).reshape(-1, 32).astype(np.int64)
        if (base != base[:, :1]).any() or (step_ != step_[:, :1]).any():
            raise m.fault("the lanes of a warp give different addresses of one matrix", int(lanes[0, 0]))
        if (base % 16).any() or ((step_ * bytes_) % 16).any():
            raise m.fault("a matrix, or the distance of its rows, is not aligned to 16 bytes", int(lanes[0, 0]))
        outer, inner = (rows, columns) if layout == "row" else (columns, rows)
        at = base[:, :1, None, None] + (outer * step_[:, :1, None, None] + inner) * bytes_
        m.idx = np.repeat(lanes.ravel(), rows[0].size)
        m.n = len(m.idx)
        (t,) = find(m, space, at.ravel(), bytes_, 1, place)
        form = (*lanes.shape, len(slots), rows.shape[-1])
        if what == "load":
            data, known = t.space.load(t.place, bytes_)
            words = np.ascontiguousarray(data.reshape(form)).view(np.uint32 if bytes_ < 8 else np.uint64)[..., 0]
            for k, slot in enumerate(slots):
                m.regs[slot][lanes] = words[..., k]
            if m.unknown or not known.all():
                m.origin = (
                    m.origin if known.all() else f"{t.space.what} memory, read {where}, which nothing has written"
                )
                _mark(m, lanes, slots, np.any(~known.reshape(form), -1))
        else:
            m.idx, m.n = lanes.ravel(), lanes.size
            unknown.require(m, slots, "a matrix in memory is made", where)
            words = gathered(m, slots, lanes)
            data = np.ascontiguousarray(words)[..., None].view(f"uint{8 * bytes_}")
            write(m, t, 0, data.ravel(), bytes_)
        m.idx, m.n = lanes.ravel(), lanes.size

    return together(c, None, access(c, inst, run), whole=True)


def _wmma_mma(c: Compiler, inst: Instruction, mods: Mods, sizes: tuple[int, int, int]) -> Step:
    saturate = mods.has("satfinite")
    mods.take("rn")
    kinds = mods.rest()[2:]  # behind the layouts, which the loads have dealt with
    kd, kc = kinds[0], kinds[-1]
    ka, kb = (kinds[1], kinds[2]) if len(kinds) == 4 else ("f16", "f16")
    if len(kinds) not in (2, 4) or not set(kinds) <= set(BITS):
        raise mods.unknown()
    slots = [_slots(c, x) for x in inst.operands[:4]]
    m_, n_, k_ = sizes
    where = c.program.where(c.at)
    shapes = ((m_, n_), (m_, k_), (k_, n_), (m_, n_))
    forms: list[Operand] = [
        (s, _wmma_layout(role, kind, sizes, len(s)), shape, kind)
        for role, kind, s, shape in zip("dabc", (kd, ka, kb, kc), slots, shapes)
    ]
    return together(c, None, _product(where, forms[1:], forms[0], saturate), whole=True)
