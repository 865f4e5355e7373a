"""Arithmetic of several words: ``add.cc``, ``addc``, ``sub.cc``, ``subc``, ``mad.lo.cc``, ``madc``, by a carry of each thread."""

from __future__ import annotations

import numpy as np

from .compiler import Compiler, step
from .integers import high
from .multiprocessor import Machine, Step
from .syntax import Instruction
from .table import Array, Mods


@step("carry", "addc", "subc", "madc")
def _carry(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind, sets, part = mods.type("u32", "s32", "u64", "s64"), mods.has("cc"), mods.take("lo", "hi")
    op, uses = inst.op.removesuffix("c"), inst.op.endswith("c")
    if (op == "mad") != bool(part) or op not in ("add", "sub", "mad"):
        raise mods.unknown()
    put, (a, b, *rest) = c.put(inst.operands[0], kind), [c.get(x, kind) for x in inst.operands[1:]]

    def run(m: Machine) -> None:
        x, y = a(m), b(m)
        unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
        if op == "mad":
            x, y = high(x, y) if part == "hi" else x * y, rest[0](m)
        s, t = x.view(unsigned), y.view(unsigned)
        more = m.carry[m.idx].astype(unsigned) if uses else np.zeros(m.n, unsigned)
        made, over = _less(s, t, more) if op == "sub" else _sum(s, t, more)
        if sets:
            m.carry[m.idx] = over
        put(m, made.view(x.dtype))

    return run


def _sum(s: Array, t: Array, more: Array) -> tuple[Array, Array]:
    first = s + t
    made = first + more
    return made, (first < s) | (made < first)


def _less(s: Array, t: Array, more: Array) -> tuple[Array, Array]:
    first = s - t
    return first - more, (s < t) | (first < more)
