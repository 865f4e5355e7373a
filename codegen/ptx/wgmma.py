"""Products of warpgroups (``wgmma``), which run beside the threads.

A product is computed when it is begun. Until its group is waited for, its accumulators may not be read or written, nor
registers of A be written, and shared memory that it reads is watched. Registers that other instructions have written need
``wgmma.fence`` since the warp's products last came to rest (a compiler may move register code over the fence itself).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import unknown
from .compiler import Compiler, Get, step
from .descriptors import Descriptor, matrix
from .loads import access
from .matrices import BITS, narrowed, places, widened
from .multiprocessor import Machine, Step
from .proxies import CHUNK, Running, running, shared_of
from .syntax import Both, Function, Instruction, Reg, Vector
from .table import Array, Mods
from .warps import GROUP, together, warpgroup

_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_LEGAL = {  # of A: the types of D, and of B
    "f16": (("f16", "f32"), ("f16",)), "bf16": (("f32",), ("bf16",)), "tf32": (("f32",), ("tf32",)),
    "e4m3": (("f16", "f32"), ("e4m3", "e5m2")), "e5m2": (("f16", "f32"), ("e4m3", "e5m2")),
    "s8": (("s32",), ("s8", "u8")), "u8": (("s32",), ("s8", "u8")),
}  # fmt: skip


# ------------------------------------------------------------ registers in use


def registers_of_products(function: Function) -> list[Reg]:
    """The registers that products use: accumulators, and A."""
    vectors = [x for i in function.body if i.op == "wgmma" for x in i.operands if isinstance(x, Vector)]
    return [r for v in vectors for r in v.parts if isinstance(r, Reg)]


@dataclass(eq=False)
class Product:
    """``groups``: of its four warps, the number of the group it is in, or -1 when that warp has waited for it."""

    lanes: Array
    groups: Array
    run: Running
    d: Array
    a: Array
    where: str


class Products:
    """What runs, and which registers it uses. ``d`` and ``a`` count by register and thread who uses it as accumulator or as
    A; ``touched``: those that other instructions have written since the last fence."""

    def __init__(self, m: Machine):
        self.rows = {slot: k for k, slot in enumerate(sorted(m.program.product_slots))}
        shape = len(self.rows), m.lanes
        self.d, self.a = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
        self.touched = np.ones(shape, bool)
        self.running: list[Product] = []
        self.committed = np.zeros(m.lanes // 32, np.int64)
        self.fenced = np.zeros(m.lanes // 32, bool)

    @staticmethod
    def of(m: Machine) -> Products:
        if m.products is None:
            m.products = Products(m)
        return m.products

    def begin(self, m: Machine, one: Product) -> None:
        warps = m.warp_of[one.lanes[::32]]
        registers = np.concatenate([one.d, one.a])
        late = self.touched[np.ix_(registers, one.lanes)].any() and not self.fenced[warps].all()
        if late:
            raise m.fault(
                "registers of a product were written, or are used first, without wgmma.fence", int(one.lanes[0])
            )
        self.touched[np.ix_(registers, one.lanes)] = False
        if self.d[np.ix_(one.a, one.lanes)].any():
            raise m.fault("a product takes as A an accumulator that nothing has waited for", int(one.lanes[0]))
        shared_of(m).begin(one.run)
        self.d[np.ix_(one.d, one.lanes)] += 1
        self.a[np.ix_(one.a, one.lanes)] += 1
        one.groups = self.committed[warps].copy()
        self.running.append(one)

    def wait(self, m: Machine, warp: int, count: int) -> None:
        """All groups of a warp but its last ``count`` are over; shared memory is free when one warp knows."""
        for one in self.running:
            k = warp - int(m.warp_of[one.lanes[0]])
            if not 0 <= k < 4 or not 0 <= one.groups[k] < self.committed[warp] - count:
                continue
            one.groups[k] = -1
            lanes = one.lanes[32 * k : 32 * k + 32]
            self.d[np.ix_(one.d, lanes)] -= 1
            self.a[np.ix_(one.a, lanes)] -= 1
            shared_of(m).end(one.run)
        self.running = [one for one in self.running if (one.groups >= 0).any()]
        if not any(0 <= warp - int(m.warp_of[one.lanes[0]]) < 4 for one in self.running):
            self.fenced[warp] = False

    def who(self, row: int, lane: int) -> str:
        one = next(x for x in self.running if lane in x.lanes and (row in x.d or row in x.a))
        return f"the product begun {one.where}, which wgmma.wait_group has not waited for"


def watched(c: Compiler, inst: Instruction, made: Step) -> Step:
    """The step of another instruction, if it uses registers of products."""
    if inst.op == "wgmma":
        return made
    has_result = bool(inst.operands) and isinstance(inst.operands[0], (Reg, Vector, Both))
    slots = c.program.product_slots
    writes = [s for s in unknown.registers(c, *inst.operands[: int(has_result)]) if s in slots]
    reads = [s for s in unknown.registers(c, *inst.operands[int(has_result) :]) if s in slots]
    if not writes and not reads:
        return made
    where = c.program.where(c.at)

    def run(m: Machine) -> Any:
        products = Products.of(m)
        lanes = m.threads()
        written = np.array([products.rows[s] for s in writes], np.int64)
        if products.running:
            read = np.array([products.rows[s] for s in reads], np.int64)
            _refuse(m, products, products.d, np.concatenate([read, written]), lanes, f"an accumulator is used {where}")
            _refuse(m, products, products.a, written, lanes, f"a register of A is written {where}")
        products.touched[np.ix_(written, lanes)] = True
        return made(m)

    return run


def _refuse(m: Machine, products: Products, marks: Array, registers: Array, lanes: Array, what: str) -> None:
    found = marks[np.ix_(registers, lanes)] > 0
    if found.any():
        k, n = (int(x[0]) for x in np.nonzero(found))
        raise m.fault(f"{what} while it belongs to {products.who(int(registers[k]), int(lanes[n]))}", int(lanes[n]))


# ------------------------------------------------------------ the instructions


@step("wgmma")
def _wgmma(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    what = mods.take("mma_async", "fence", "commit_group", "wait_group")
    if not (mods.has("sync") and mods.has("aligned")):
        raise mods.unknown()
    if what == "mma_async":
        return warpgroup(c, access(c, inst, _product(c, inst, mods)))
    count = inst.operands[0].value if inst.operands else 0

    def act(m: Machine) -> None:
        products = Products.of(m)
        lanes = m.threads()
        for warp in np.unique(m.warp_of[lanes]).tolist():
            if what == "fence":
                products.fenced[warp] = True
                products.touched[:, 32 * warp : 32 * warp + 32] = False
            elif what == "commit_group":
                products.committed[warp] += 1
            else:
                products.wait(m, warp, count)

    return together(c, None, act, whole=True)


@dataclass(frozen=True)
class _Form:
    """A product of 64 by ``n`` by ``k``. ``scales``: of A and B, 1 or -1; ``transposed``: A, B."""

    n: int
    k: int
    kd: str
    ka: str
    kb: str
    saturate: bool
    scales: tuple[int, int]
    transposed: tuple[bool, bool]


def _form(inst: Instruction, mods: Mods) -> _Form:
    shape = next((x for x in map(_SHAPE.match, mods.left) if x), None)
    if shape is None:
        raise mods.unknown()
    mods.take(shape[0])
    n, k, saturate = int(shape[1]), int(shape[2]), mods.has("satfinite")
    kinds = mods.rest()
    if len(kinds) != 3 or kinds[0] not in _LEGAL.get(kinds[1], ((), ()))[0] or kinds[2] not in _LEGAL[kinds[1]][1]:
        raise mods.unknown()
    kd, ka, kb = kinds
    whole = BITS[ka] * k == 256 and n % 8 == 0 and 8 <= n <= 256
    if not whole or (kd == "s32" and n > 32 and n % 16) or (saturate and kd != "s32"):
        raise mods.unknown()
    in_registers, rest = isinstance(inst.operands[1], Vector), [x.value for x in inst.operands[4:]]
    halves = BITS[ka] == 16
    if len(rest) != (0 if kd == "s32" else 2 + (1 if in_registers else 2) * halves):
        raise mods.unknown()
    scales, turns = rest[:2] or [1, 1], rest[2:] or [0, 0]
    if not set(scales) <= {1, -1} or not set(turns) <= {0, 1}:
        raise mods.unknown()
    turned = (False, bool(turns[0])) if in_registers else (bool(turns[0]), bool(turns[1]))
    return _Form(n, k, kd, ka, kb, saturate, (scales[0], scales[1]), turned)


def _slots(c: Compiler, x: Any) -> list[int]:
    return [c.slot(r) for r in x.parts] if isinstance(x, Vector) else []


def _product(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    form, where = _form(inst, mods), c.program.where(c.at)
    d, a = _slots(c, inst.operands[0]), _slots(c, inst.operands[1])
    if len(d) != 64 * form.n * BITS[form.kd] // 32 // GROUP or len(a) not in (0, 4):
        raise mods.unknown()
    reads_a = None if a else c.get(inst.operands[1], "b64")
    reads_b, scale = c.get(inst.operands[2], "b64"), c.get(inst.operands[3], "pred")
    deciding = unknown.registers(c, *inst.operands[1 if reads_a else 2 : 4])

    def multiply(m: Machine) -> None:
        before = m.idx, m.n
        for lanes in m.threads().reshape(-1, GROUP):
            m.idx, m.n = lanes, GROUP
            unknown.require(m, deciding, "a product is decided by a value", where)
            keeps = bool(_one(m, scale, "scale-d"))
            x, used = _in_registers(m, a, lanes, form.ka), np.zeros(0, np.int64)
            if reads_a is not None:
                x, used = _in_shared(m, reads_a, 64, form.k, form.ka, form.transposed[0])
            y, others = _in_shared(m, reads_b, form.n, form.k, form.kb, form.transposed[1])
            products = Products.of(m)
            rows = [np.array([products.rows[s] for s in slots], np.int64) for slots in (d, a)]
            run = running("a product", where, reads=np.concatenate([used, others]))
            products.begin(m, Product(lanes, np.zeros(4, np.int64), run, rows[0], rows[1], where))
            _write(m, form, lanes, d, x, y, keeps, where)
        m.idx, m.n = before

    return multiply


def _one(m: Machine, read: Get, what: str) -> Any:
    """The value that all threads of a warpgroup give."""
    values = read(m)
    if (values != values[0]).any():
        raise m.fault(f"the threads of a warpgroup give different values of {what}", int(m.threads()[0]))
    return values[0]


Operand = tuple[Array, Array]  # (rows, k): values, and which of them nothing has written


def _in_shared(m: Machine, read: Get, rows: int, k: int, kind: str, transposed: bool) -> tuple[Operand, Array]:
    """A matrix in shared memory, and its chunks there."""
    descriptor, item = Descriptor.of(int(_one(m, read, "a descriptor"))), BITS[kind] // 8
    if descriptor.problem():
        raise m.fault(descriptor.problem(), int(m.threads()[0]))
    at = descriptor.chunks(rows, k, item, transposed)
    row = np.full(at.size, int(m.block_of[m.threads()[0]]))
    chunks = m.shared.place(row, at.ravel(), 8, 2) // 2
    data, known = shared_of(m).take(chunks)
    bits = matrix(data.reshape(*at.shape, CHUNK), item, transposed)
    marks = matrix(known.reshape(*at.shape, CHUNK), item, transposed) != int("01" * item, 16)
    values = widened(np.ascontiguousarray(bits).view(np.uint32), kind).reshape(bits.shape)
    return (values, marks), chunks


def _in_registers(m: Machine, slots: list[int], lanes: Array, kind: str) -> Operand:
    """A in registers: the fragments of its four warps, as those of mma."""
    if not slots:
        return np.zeros(0), np.zeros(0, bool)
    rows, columns = places("a", kind, len(slots))
    values = widened(np.stack([m.regs[s][lanes] for s in slots], -1).reshape(4, 32, -1), kind)
    made = np.zeros((4, 16, columns.max() + 1), values.dtype)
    made[:, rows, columns] = values
    marks = np.zeros(made.shape, bool)
    if any(s in m.unknown for s in slots):
        marks[:, rows, columns] = _unknown(m, slots, lanes).reshape(4, 32, -1)[..., None]
    return made.reshape(64, -1), marks.reshape(64, -1)


def _unknown(m: Machine, slots: list[int], lanes: Array) -> Array:
    return np.stack([m.unknown[s][lanes] if s in m.unknown else np.zeros(len(lanes), bool) for s in slots], -1)


def _write(
    m: Machine, form: _Form, lanes: Array, d: list[int], a: Operand, b: Operand, keeps: bool, where: str
) -> None:
    """D = A B, or D + A B, in the registers of a warpgroup."""
    rows, columns = places("c", form.kd, len(d))
    at = np.arange(4)[:, None, None, None] * 16 + rows, np.broadcast_to(columns, (4, *columns.shape))
    total = (form.scales[0] * a[0]) @ (form.scales[1] * b[0]).T
    marks = np.any(a[1], axis=1, keepdims=True) | np.any(b[1], axis=1, keepdims=True).T
    found = total[at]
    missing = marks[at].any(-1)
    if keeps:
        old = np.stack([m.regs[s][lanes] for s in d], -1)
        found = found + widened(old.reshape(4, 32, -1), form.kd)
        missing = missing | _unknown(m, d, lanes).reshape(4, 32, -1)
    words = narrowed(found, form.kd, form.saturate).reshape(GROUP, -1)
    if a[1].any() or b[1].any():
        m.origin = f"shared memory, read {where}, which nothing has written"
    missing = missing.reshape(GROUP, -1)
    for k, slot in enumerate(d):
        m.regs[slot][lanes] = words[:, k]
        if missing[:, k].any() or m.unknown:
            unknown.mark(m, [slot], missing[:, k] if missing[:, k].any() else None)
