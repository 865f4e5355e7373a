"""What a PTX module consists of: instructions, operands, variables, functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tir.errors import BuildError, RunError


class PTXError(BuildError):
    """PTX that the executor does not know."""


class PTXFault(RunError):
    """A kernel that does what the machine does not allow, or does not define."""


@dataclass(frozen=True)
class Reg:
    """A register; ``type`` as declared, without the point."""

    name: str
    type: str


@dataclass(frozen=True)
class Imm:
    """A number: of an integer its value, of a float (``0f…``, ``0d…``) its bits, ``bits`` of them."""

    value: int
    bits: int = 0


@dataclass(frozen=True)
class Special:
    """A special register, ``tid.x``."""

    name: str


@dataclass(frozen=True)
class Name:
    """The address of a variable, or a label or a function."""

    name: str


@dataclass(frozen=True)
class Address:
    """``[base + offset]``, or ``[base, {coordinates}]`` of a tensor map."""

    base: Any
    offset: int = 0
    coordinates: Any = None


@dataclass(frozen=True)
class Vector:
    """``{a, b, …}``, also an argument list."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Both:
    """``a|b``: two results."""

    first: Any
    second: Any


@dataclass(frozen=True)
class Negated:
    """``!p``."""

    value: Reg


@dataclass(frozen=True)
class Instruction:
    """``op``: the first part of the opcode; ``mods``: the others. ``guard``: a register and whether it is negated.
    ``source``: the line of the CUDA C that it comes from, 0 if that is not known. ``used``: of a load, a bit for each byte
    that counts; all of them without a pragma."""

    opcode: str
    operands: tuple[Any, ...]
    guard: tuple[Reg, bool] | None
    line: int
    text: str
    source: int = 0
    used: int = -1

    @property
    def op(self) -> str:
        return self.opcode.partition(".")[0]

    @property
    def mods(self) -> tuple[str, ...]:
        return tuple(self.opcode.split(".")[1:])


@dataclass(frozen=True)
class Variable:
    """Memory with a name. ``size`` in bytes, 0 if it is given at launch; ``data``: its initial bytes."""

    name: str
    space: str
    align: int
    size: int
    data: bytes | None = None
    external: bool = False


@dataclass
class Function:
    """``body``: instructions; ``labels``: the index of the instruction that each label stands before; ``cluster``: the blocks
    of a cluster that it asks for."""

    name: str
    entry: bool
    params: list[Variable] = field(default_factory=list)
    returns: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    cluster: tuple[int, int, int] | None = None


@dataclass
class PTXModule:
    """A compilation unit: its functions, and variables of global, constant and shared memory, by name."""

    target: str = ""
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


BYTES = {
    **{f"{kind}{bits}": bits // 8 for kind in "busf" for bits in (8, 16, 32, 64)},
    "b128": 16, "f16x2": 4, "bf16": 2, "bf16x2": 4, "tf32": 4, "pred": 1,
}  # fmt: skip
