"""``printf`` and ``assert`` of device code."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .compiler import Compiler
from .loads import find
from .memory import GLOBAL
from .multiprocessor import Machine, Step
from .syntax import Instruction, Vector

_FORMAT = re.compile(r"%(?:[-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|z)?([diouxXeEfFgGaAcsp%])")


def _arguments(c: Compiler, inst: Instruction) -> list[Any]:
    """The places of the arguments' memory, one of a call's operand list each."""
    given = [x for x in inst.operands if isinstance(x, Vector)][-1]
    return [c.address_of(x.name)[1] for x in given.parts]


def _read(m: Machine, lane: int, space: str, at: int, bytes_: int) -> int:
    before = m.idx, m.n
    m.idx, m.n = np.array([lane]), 1
    (t,) = find(m, space, np.array([at], np.int64), bytes_)
    value, _ = t.space.load(t.place, bytes_)
    m.idx, m.n = before
    return int(value[0])


def _text(m: Machine, address: int) -> str:
    data = m.memory.data[address - GLOBAL :]
    end = int(np.argmax(data == 0))
    return data[:end].tobytes().decode(errors="replace")


def printf(c: Compiler, inst: Instruction) -> Step:
    form_at, values_at = _arguments(c, inst)

    def run(m: Machine) -> None:
        for lane in np.sort(m.threads()):
            text = _text(m, _read(m, lane, "local", form_at, 8))
            values = _read(m, lane, "local", values_at, 8)
            offset = 0

            def one(found: re.Match[str]) -> str:
                nonlocal offset
                kind, length = found[2], found[1] or ""
                if kind == "%":
                    return "%"
                bytes_ = 8 if kind in "eEfFgGaAsp" or length in ("l", "ll", "z") else 4
                offset = -(-offset // bytes_) * bytes_
                bits = _read(m, lane, "", values + offset, bytes_)
                offset += bytes_
                return _shown(m, found[0].replace(length, "") if length else found[0], kind, bits, bytes_)

            print(_FORMAT.sub(one, text), end="")

    return run


def _shown(m: Machine, form: str, kind: str, bits: int, bytes_: int) -> str:
    if kind in "eEfFgG":
        return form % np.array([bits], np.uint64).view(np.float64)[0]
    if kind == "s":
        return form % _text(m, bits)
    if kind in "di":
        return form % (bits - (1 << 8 * bytes_) if bits >> (8 * bytes_ - 1) else bits)
    if kind == "p":
        return hex(bits)
    return form.replace("u", "d") % bits


def assertion(c: Compiler, inst: Instruction) -> Step:
    places = _arguments(c, inst)

    def run(m: Machine) -> None:
        lane = int(m.threads()[0])
        message, file, line = (_read(m, lane, "local", at, 4 if k == 2 else 8) for k, at in enumerate(places[:3]))
        raise m.fault(f"{_text(m, file)}:{line}: assertion failed: {_text(m, message)}", lane)

    return run
