"""Atomic operations: threads that meet at one address go one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiler import Compiler, step
from .floats import HALVES
from .loads import access, find, take_hints, write
from .multiprocessor import Machine, Step
from .syntax import BYTES, Instruction
from .table import Array, Mods, bits_of, numpy_type


def _increment(old: Array, top: Array) -> Array:
    return np.where(old >= top, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Array, top: Array) -> Array:
    return np.where((old == 0) | (old > top), top, old - old.dtype.type(1))


_OPERATIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "exch": lambda old, new: new, "inc": _increment, "dec": _decrement,
}  # fmt: skip


def operation(op: str, kind: str) -> Any:
    return HALVES[kind].of_numbers(_OPERATIONS[op]) if kind in HALVES else _OPERATIONS[op]


@step("atom", "red")
def _atom(c: Compiler, inst: Instruction, mods: Mods) -> Step:
    kind = mods.type()
    take_hints(mods)
    mods.skip("acq_rel", "noftz")
    space = mods.take("global", "shared", "shared::cta", "shared::cluster").replace("::cta", "")
    op = mods.take(*_OPERATIONS, "cas")
    operands = list(inst.operands)
    put = c.put(operands.pop(0), kind) if inst.op == "atom" else None
    read, named = c.address(operands.pop(0))
    space = space or named
    values = [c.get(x, kind) for x in operands]
    bytes_, made = BYTES[kind], numpy_type(kind)
    run = None if op == "cas" else operation(op, kind)
    if not op:
        raise mods.unknown()

    def atomic(m: Machine) -> None:
        given = [v(m) for v in values]
        before = np.zeros(m.n, f"uint{bits_of(kind)}")
        for t in find(m, space, read(m), bytes_, 1, at):
            members = np.arange(m.n) if t.chosen is None else np.nonzero(t.chosen)[0]
            left, place = np.arange(len(members)), t.place
            while len(left):
                _, first = np.unique(place[left], return_index=True)
                now = left[np.sort(first)]
                left = np.setdiff1d(left, now, assume_unique=True) if len(now) < len(left) else left[:0]
                k = members[now]
                one = type(t)(t.space, place[now], k)
                old, known = t.space.load(one.place, bytes_)
                if not known.all():
                    raise m.fault(
                        f"an atomic operation on {t.space.what} memory that nothing has written {where}",
                        int(m.threads()[k[~known][0]]),
                    )
                before[k] = old
                was = old.view(made)
                new = np.where(was == given[0][k], given[1][k], was) if run is None else run(was, given[0][k])
                write(m, one, 0, new.astype(made).view(old.dtype), bytes_)
        if put is not None:
            put(m, before.view(made))

    at, where = c.at, c.program.where(c.at)
    return access(c, inst, atomic)
