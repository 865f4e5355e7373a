"""Which registers hold what nothing has written.

A load of memory before its first write is no fault: the compiler loads early, and more than it needs, and then selects.
It is one when the value decides something: a branch, an address, what goes to global memory. So the registers of such
values are followed: ``Machine.unknown`` has for each the threads in which it is unknown. While there is none, nothing is
done; otherwise the steps of :func:`following` run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .syntax import Address, Both, Instruction, Negated, Reg, Vector

if TYPE_CHECKING:
    from .compiler import Compiler
    from .multiprocessor import Machine, Step

Array = np.ndarray
_OWN = (
    "ld",
    "ldu",
    "ldmatrix",
    "mma",
    "wmma",
    "wgmma",
    "shfl",
    "st",
    "stmatrix",
)  # they follow unknown values themselves
_DECIDING = ("atom", "red", "cp", "mbarrier", "bar", "barrier", "vote", "match", "redux", "elect")


def registers(c: Compiler, *operands: Any) -> list[int]:
    """The slots of the registers in operands."""
    found: list[int] = []
    for x in operands:
        if isinstance(x, Reg):
            found.append(c.slot(x))
        elif isinstance(x, Vector):
            found += registers(c, *x.parts)
        elif isinstance(x, Both):
            found += registers(c, x.first, x.second)
        elif isinstance(x, (Negated, Address)):
            found += registers(c, x.value) if isinstance(x, Negated) else registers(c, x.base, x.coordinates)
    return found


def of(m: Machine, slots: Sequence[int]) -> Array | None:
    """For which of this step's threads one of the registers is unknown; None if for none."""
    made: Array | None = None
    for slot in slots:
        marks = m.unknown.get(slot)
        if marks is not None:
            made = marks[m.idx] if made is None else made | marks[m.idx]
    return made if made is not None and made.any() else None


def mark(m: Machine, slots: Sequence[int], unknown: Array | None) -> None:
    """The registers are ``unknown`` now, or known."""
    for slot in slots:
        marks = m.unknown.get(slot)
        if marks is None:
            if unknown is None:
                continue
            marks = m.unknown[slot] = np.zeros(m.lanes, bool)
        marks[m.idx] = False if unknown is None else unknown
        if unknown is None and not marks.any():
            del m.unknown[slot]


def require(m: Machine, slots: Sequence[int], use: str, where: str) -> None:
    """Raise ``PTXFault`` if a register that decides something is unknown."""
    found = of(m, slots)
    if found is not None:
        raise m.fault(f"{use} of {m.origin} {where}", int(m.threads()[found][0]))


def following(c: Compiler, inst: Instruction, made: Step) -> Step:
    """The step of an instruction that follows unknown values too."""
    where = c.program.where(c.at)
    guards = [] if inst.guard is None else [c.slot(inst.guard[0])]
    has_result = bool(inst.operands) and isinstance(inst.operands[0], (Reg, Vector, Both))
    targets = registers(c, *inst.operands[:1]) if has_result else []
    sources = registers(c, *inst.operands[1 if has_result else 0 :])
    own = inst.op in _OWN
    if inst.op in _DECIDING:
        guards, sources = guards + sources, []
    precise = _PRECISE.get(inst.op, lambda c, inst: None)(c, inst)

    def run(m: Machine) -> Any:
        if guards:
            require(m, guards, "the course of a kernel depends on what nothing has written:", where)
        if own or not targets:
            return made(m)
        found = of(m, sources)
        if found is not None and precise is not None:
            found = precise(m)
        out = made(m)
        if found is not None or any(t in m.unknown for t in targets):
            mark(m, targets, found)
        return out

    return run


def _marks(m: Machine, slot: int | None) -> Array:
    marks = None if slot is None else m.unknown.get(slot)
    return np.zeros(m.n, bool) if marks is None else marks[m.idx]


def _selected(c: Compiler, inst: Instruction) -> Any:
    """Of ``selp a, b, p`` the side that is taken."""
    a, b, p = ((registers(c, x) or [None])[0] for x in inst.operands[1:])

    def precise(m: Machine) -> Array:
        chosen = np.zeros(m.n, bool) if p is None else m.regs[p][m.idx]
        return np.where(chosen, _marks(m, a), _marks(m, b)) | _marks(m, p)

    return precise


def _decided(by: int) -> Any:
    """``and`` is decided by one side that is 0, ``or`` by one that has all bits."""

    def build(c: Compiler, inst: Instruction) -> Any:
        slots = registers(c, *inst.operands[1:])
        if len(slots) != 2:
            return None

        def precise(m: Machine) -> Array:
            marks = [_marks(m, s) for s in slots]
            values = [m.regs[s][m.idx] for s in slots]
            ends = [v if by else ~v for v in values]
            fixed = [~k & (~v == 0) for k, v in zip(marks, ends)]
            return (marks[0] | marks[1]) & ~(fixed[0] | fixed[1])

        return precise

    return build


_PRECISE: dict[str, Any] = {"selp": _selected, "and": _decided(0), "or": _decided(1)}
