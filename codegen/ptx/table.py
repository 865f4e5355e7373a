"""The table of instructions that compute on registers: from an opcode to a function on arrays.

A file of forms fills it: ``@form("add", "sub")`` is given the modifiers and returns an :class:`Elementwise`. Arrays have
one number per thread. Of types .s they are signed, of .u and .b unsigned; .f32 and .f64 are floats, narrower ones their
bits; .pred is bool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rules import registering
from .syntax import BYTES, Instruction, PTXError

Array = np.ndarray


@dataclass(frozen=True)
class Elementwise:
    """``function`` of arrays of the types ``inputs`` gives one of type ``output``, or a tuple of ``outputs``."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    function: Callable[..., Any]


class Mods:
    """The modifiers of an opcode, each to be taken by name: what is left over is not known."""

    def __init__(self, inst: Instruction):
        self.inst = inst
        self.left = list(inst.mods)

    def take(self, *names: str) -> str:
        """The first of ``names`` that is there, or nothing."""
        for name in names:
            if name in self.left:
                self.left.remove(name)
                return name
        return ""

    def has(self, name: str) -> bool:
        return bool(self.take(name))

    def type(self, *legal: str) -> str:
        """The last modifier, a type."""
        if not self.left or self.left[-1] not in (legal or BYTES):
            raise self.unknown()
        return self.left.pop()

    def skip(self, *names: str) -> None:
        """Take ``names``, which change nothing here."""
        self.left = [name for name in self.left if name not in names]

    def rest(self) -> list[str]:
        """All that are left."""
        left, self.left = self.left, []
        return left

    def done(self) -> None:
        if self.left:
            raise self.unknown()

    def unknown(self) -> PTXError:
        return PTXError(
            f"PTX line {self.inst.line}: the executor does not know the instruction form `{self.inst.opcode}`\n"
            f"{self.inst.line:5} | {self.inst.text}"
        )


FORMS: dict[str, Callable[[Mods], Elementwise]] = {}
OF_FLOATS: dict[str, Callable[[Mods], Elementwise]] = {}  # where integers have a form of their own


def form(*names: str) -> Callable[[Any], Any]:
    return registering(FORMS, names)


def form_of_floats(*names: str) -> Callable[[Any], Any]:
    return registering(OF_FLOATS, names)


def form_of(inst: Instruction) -> Elementwise:
    """What an instruction computes. Raises ``PTXError`` for a form that is not known."""
    mods = Mods(inst)
    of_floats = inst.op in OF_FLOATS and not is_int(inst.mods[-1])
    made = (OF_FLOATS if of_floats else FORMS)[inst.op](mods)
    mods.done()
    return made


def numpy_type(kind: str) -> np.dtype[Any]:
    """The type of the arrays of a PTX type."""
    if kind == "pred":
        return np.dtype(bool)
    if kind in ("f32", "f64"):
        return np.dtype(f"float{kind[1:]}")
    bits = 8 * BYTES[kind]
    return np.dtype(f"{'int' if kind[0] == 's' else 'uint'}{bits}")


def is_int(kind: str) -> bool:
    return kind[0] in "usb" and kind[1:].isdigit()


def bits_of(kind: str) -> int:
    return 8 * BYTES[kind]
