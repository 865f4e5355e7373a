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

    def done(self) -> None:
        if self.left:
            raise self.unknown()

    def unknown(self) -> PTXError:
        return PTXError(
            f"PTX line {self.inst.line}: the executor does not know the instruction form `{self.inst.opcode}`\n"
            f"{self.inst.line:5} | {self.inst.text}"
        )


FORMS: dict[str, Callable[[Mods], Elementwise]] = {}


def form(*names: str) -> Callable[[Callable[[Mods], Elementwise]], Callable[[Mods], Elementwise]]:
    def add(build: Callable[[Mods], Elementwise]) -> Callable[[Mods], Elementwise]:
        for name in names:
            FORMS[name] = build
        return build

    return add


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
