"""An entry with the functions that it calls written out in place: one list of instructions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .syntax import Address, Both, Function, Instruction, Name, Negated, PTXError, PTXModule, Reg, Vector

CALLED = ("vprintf", "__assertfail")  # functions of the system
_MOST = 200_000  # instructions of an entry


def flatten(module: PTXModule, name: str) -> Function:
    """The entry ``name`` without calls of other functions. A ``ret`` of a function becomes a jump behind the call."""
    entry = module.functions[name]
    made = Function(name, True, list(entry.params), cluster=entry.cluster)
    _Writer(module, made).write(entry, {}, "", ())
    return made


class _Writer:
    def __init__(self, module: PTXModule, made: Function):
        self.module, self.made = module, made
        self.copies = 0

    def write(self, f: Function, names: dict[str, str], suffix: str, inside: tuple[str, ...]) -> None:
        """``names``: variables of the caller that stand for parameters; ``suffix``: what makes other names new."""
        self.made.variables += [replace(v, name=v.name + suffix) for v in f.variables if v.name not in names]
        own = {v.name for v in f.variables}
        at: dict[int, list[str]] = {}
        for label, index in f.labels.items():
            at.setdefault(index, []).append(label)
        local = {**{n: n + suffix for n in (*own, *f.labels)}, **names}
        for index, inst in enumerate(f.body):
            for label in at.get(index, ()):
                self.made.labels[label + suffix] = len(self.made.body)
            if len(self.made.body) > _MOST:
                raise PTXError(f"{self.made.name} has more than {_MOST} instructions")
            if inst.op == "ret" and suffix:
                jump = replace(inst, opcode="bra", operands=(Name(f"ret{suffix}"),))
                self.made.body.append(_renamed(jump, {}, suffix, keep=True))
            elif inst.op == "call":
                self.call(inst, local, suffix, inside)
            else:
                self.made.body.append(_renamed(inst, local, suffix))
        for label in at.get(len(f.body), ()):
            self.made.labels[label + suffix] = len(self.made.body)
        if suffix:
            self.made.labels[f"ret{suffix}"] = len(self.made.body)

    def call(self, inst: Instruction, local: dict[str, str], suffix: str, inside: tuple[str, ...]) -> None:
        """``call.uni (result), function, (arguments);``"""
        parts = list(inst.operands)
        results = parts.pop(0).parts if isinstance(parts[0], Vector) else ()
        target = parts.pop(0)
        given = parts.pop(0).parts if parts else ()
        name = target.name if isinstance(target, Name) else ""
        if name in CALLED:
            self.made.body.append(_renamed(replace(inst, opcode=f"call.{name}"), local, suffix))
            return
        f = self.module.functions.get(name)
        if f is None or name in inside:
            what = "a call of itself" if name in inside else f"a call of `{name or inst.text}`, which is not here"
            raise PTXError(f"PTX line {inst.line}: {what} is not known to the executor\n{inst.line:5} | {inst.text}")
        self.copies += 1
        formal = [*f.params, *f.returns]
        actual = [*given, *results]
        names = {}
        for variable, value in zip(formal, actual):
            if not isinstance(value, Name):
                raise PTXError(f"PTX line {inst.line}: an argument that is no variable\n{inst.line:5} | {inst.text}")
            names[variable.name] = local.get(value.name, value.name)
        behind = f"{suffix}#{self.copies}"
        if inst.guard is not None:
            register, negated = inst.guard
            skip = replace(inst, opcode="bra", operands=(Name(f"ret{behind}"),), guard=(register, not negated))
            self.made.body.append(replace(_renamed(skip, {}, suffix), operands=(Name(f"ret{behind}"),)))
        self.write(f, names, behind, (*inside, name))


def _renamed(inst: Instruction, names: dict[str, str], suffix: str, keep: bool = False) -> Instruction:
    def change(x: Any) -> Any:
        if isinstance(x, Reg):
            return Reg(x.name + suffix, x.type)
        if isinstance(x, Name):
            return x if keep else Name(names.get(x.name, x.name))
        if isinstance(x, Address):
            return Address(change(x.base), x.offset, change(x.coordinates))
        if isinstance(x, Vector):
            return Vector(tuple(map(change, x.parts)))
        if isinstance(x, Both):
            return Both(change(x.first), change(x.second))
        if isinstance(x, Negated):
            return Negated(change(x.value))
        return x

    guard = None if inst.guard is None else (change(inst.guard[0]), inst.guard[1])
    return replace(inst, operands=tuple(map(change, inst.operands)), guard=guard)
