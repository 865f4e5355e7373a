"""Instructions as steps: functions that act on the registers of a machine.

Files of instructions fill the table ``STEPS`` by ``@step("ld", "ldu")``: a function that is given the compiler, the
instruction and its modifiers, takes all that are known, and returns the step. All that computes on registers alone comes from the table of forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..rules import registering
from . import convert, integers, reals, unknown  # noqa: F401  (they fill the table of forms)
from .inlined_calls import flatten
from .memory import laid_out
from .multiprocessor import STOP, Machine, Step
from .syntax import Address, Both, Function, Imm, Instruction, Name, Negated, PTXError, PTXModule, Reg, Special, Vector
from .table import FORMS, Array, Mods, bits_of, form_of, is_int, numpy_type

Get = Callable[[Machine], Array]
Put = Callable[[Machine, Array], None]
_LONG_LIST = re.compile(r"\{[^{}]{80,}\}")  # of registers
STEPS: dict[str, Callable[[Compiler, Instruction, Mods], Step]] = {}


def step(*names: str) -> Callable[[Any], Any]:
    return registering(STEPS, names)


class Program:
    """An entry ready to run. ``addresses``: of variables of global and constant memory."""

    def __init__(self, module: PTXModule, name: str, addresses: dict[str, int]):
        from . import atomics, carry, clusters, copies, flow, loads, matrices, transactions, warps, wgmma  # noqa: F401

        self.module, self.name = module, name
        self.function: Function = flatten(module, name)
        self.register_types: list[np.dtype[Any]] = []
        self.meeting: dict[int, Callable[[Machine, Array], None]] = {}  # what a barrier does when all are there
        self.param_at, self.param_bytes = _param_places(self.function)
        every = [*module.variables.values(), *self.function.variables]
        self.shared_variables = [v for v in every if v.space == "shared" and not v.external]
        external = [v for v in every if v.space == "shared" and v.external]
        self.dynamic, self.dynamic_align = [v.name for v in external], max([128, *(v.align for v in external)])
        inner = [(v.name, v.align, v.size) for v in self.function.variables if v.space in ("local", "param")]
        self.local_at, pieces, size = laid_out(inner)
        self.local_layout = pieces, size
        self.shared_at, _, _ = laid_out(self._shared(0))
        self.addresses = addresses
        compiler = Compiler(self)
        self.product_slots = {compiler.slot(r) for r in wgmma.registers_of_products(self.function)}
        self.watched = wgmma.watched
        self.code: list[Step] = [compiler.compile(k, inst) for k, inst in enumerate(self.function.body)]
        self.following = [compiler.following(k, inst) for k, inst in enumerate(self.function.body)]
        self.code.append(flow.end)
        self.following.append(flow.end)

    def _shared(self, dynamic: int) -> list[tuple[str, int, int]]:
        """Static variables, then the dynamic memory, at one address by each of its names."""
        fixed = [(v.name, v.align, v.size) for v in self.shared_variables]
        return [*fixed, *((n, self.dynamic_align, dynamic) for n in self.dynamic[:1])]

    def shared_layout(self, dynamic: int) -> tuple[list[tuple[str, int, int]], int]:
        return laid_out(self._shared(dynamic))[1:]

    def where(self, place: int) -> str:
        """A place in the program, for messages."""
        if place >= len(self.function.body):
            return "at the end"
        inst = self.function.body[place]
        source = f", of line {inst.source} of the CUDA C" if inst.source else ""
        return f"at PTX line {inst.line}, `{_LONG_LIST.sub('{…}', inst.text)}`{source}"

    def meet(self, m: Machine, lanes: Array) -> None:
        """Threads have met at a barrier."""
        action = self.meeting.get(int(m.pc[lanes[0]]))
        if action is not None:
            action(m, lanes)


def _param_places(f: Function) -> tuple[dict[str, int], int]:
    at, found = 0, {}
    for v in f.params:
        at = -(-at // v.align) * v.align
        found[v.name] = at
        at += v.size
    return found, at


class Compiler:
    """Makes the steps of one program. ``at`` is the place of the instruction under way."""

    def __init__(self, program: Program):
        self.program = program
        self.slots: dict[str, int] = {}
        self.at = 0

    def compile(self, at: int, inst: Instruction) -> Step:
        self.at = at
        build = STEPS.get("carry" if "cc" in inst.mods else inst.op)
        if build is None and inst.op not in FORMS:
            raise PTXError(
                f"PTX line {inst.line}: the executor does not know the instruction `{inst.opcode}`\n"
                f"{inst.line:5} | {inst.text}"
            )
        try:
            made = self.elementwise(inst) if build is None else self.stepwise(inst, build)
        except (IndexError, KeyError, ValueError, AttributeError, TypeError) as error:
            raise PTXError(
                f"PTX line {inst.line}: the executor does not know this form ({error!r})\n{inst.line:5} | {inst.text}"
            ) from error
        if self.program.product_slots:
            made = self.program.watched(self, inst, made)
        return made if inst.guard is None or inst.op == "bra" else self.guarded(inst, made)

    def stepwise(self, inst: Instruction, build: Callable[[Compiler, Instruction, Mods], Step]) -> Step:
        mods = Mods(inst)
        made = build(self, inst, mods)
        mods.done()
        return made

    def following(self, at: int, inst: Instruction) -> Step:
        """The step for when some registers are unknown."""
        self.at = at
        return unknown.following(self, inst, self.program.code[at])

    def guarded(self, inst: Instruction, made: Step) -> Step:
        assert inst.guard is not None
        read, negated, behind = self.get(inst.guard[0], "pred"), inst.guard[1], self.at + 1

        def run(m: Machine) -> Any:
            p = read(m)
            chosen = ~p if negated else p
            if chosen.all():
                return made(m)
            if not chosen.any():
                return None
            found = m.among(chosen, made)
            if found is None:
                return None
            assert found is STOP
            m.pc[m.threads()[~chosen]] = behind
            return STOP

        return run

    # ------------------------------------------------------------ registers

    def slot(self, r: Reg) -> int:
        found = self.slots.get(r.name)
        if found is None:
            kind = np.dtype(bool) if r.type == "pred" else np.dtype(f"uint{bits_of(r.type)}")
            found = self.slots[r.name] = len(self.program.register_types)
            self.program.register_types.append(kind)
        return found

    def get(self, operand: Any, kind: str) -> Get:
        """What reads an operand as an array of type ``kind``; a wider register gives its lower bits."""
        made = numpy_type(kind)
        if isinstance(operand, Reg):
            return self._get_register(operand, kind, made)
        if isinstance(operand, Negated):
            inner = self.get(operand.value, "pred")
            return lambda m: ~inner(m)
        if isinstance(operand, Special):
            name = operand.name
            return lambda m: m.special[name][m.idx].astype(made)
        if isinstance(operand, (Imm, Name)):
            value = np.zeros(1, made) + self._constant(operand, kind)
            return lambda m: np.broadcast_to(value, (m.n,))
        if isinstance(operand, Vector):
            return self._get_vector(operand, kind, made)
        raise ValueError(f"{operand!r} is no value")

    def _get_register(self, r: Reg, kind: str, made: Any) -> Get:
        slot, have, want = self.slot(r), bits_of(r.type), bits_of(kind)
        if (r.type == "pred") != (kind == "pred") or have < want:
            raise ValueError(f"{r.name} of type {r.type} as {kind}")
        if have == want or kind == "pred":
            return lambda m: m.regs[slot][m.idx].view(made)
        unsigned = np.dtype(f"uint{want}")
        return lambda m: m.regs[slot][m.idx].astype(unsigned).view(made)

    def _get_vector(self, v: Vector, kind: str, made: Any) -> Get:
        each = bits_of(kind) // len(v.parts)
        parts = [self.get(p, f"b{each}") for p in v.parts]
        unsigned = np.dtype(f"uint{bits_of(kind)}")

        def read(m: Machine) -> Array:
            total = np.zeros(m.n, unsigned)
            for k, part in enumerate(parts):
                total |= part(m).astype(unsigned) << unsigned.type(k * each)
            return total.view(made)

        return read

    def _constant(self, operand: Imm | Name, kind: str) -> Any:
        if isinstance(operand, Name):
            return numpy_type(kind).type(self.address_of(operand.name)[1])
        if kind == "pred":
            return np.bool_(operand.value)
        if operand.bits and not is_int(kind):
            return self._float_constant(operand, kind)
        width = bits_of(kind)
        bits = operand.value % (1 << width)
        return np.array([bits], f"uint{width}").view(numpy_type(kind))[0]

    def _float_constant(self, operand: Imm, kind: str) -> Any:
        if operand.bits == 64 and kind == "f32":
            return np.float32(np.array([operand.value], np.uint64).view(np.float64)[0])
        if operand.bits == 32 and kind == "f64":
            return np.float64(np.array([operand.value], np.uint32).view(np.float32)[0])
        return np.array([operand.value], f"uint{operand.bits}").view(numpy_type(kind))[0]

    def put(self, operand: Any, kind: str) -> Put:
        """What writes an array of type ``kind`` to a register; a wider one is extended by its sign, or zeros."""
        if operand is None:
            return lambda m, value: None
        if isinstance(operand, Vector):
            each = bits_of(kind) // len(operand.parts)
            parts = [self.put(p, f"b{each}") for p in operand.parts]
            unsigned = np.dtype(f"uint{bits_of(kind)}")

            def split(m: Machine, value: Array) -> None:
                whole = value.view(unsigned)
                for k, part in enumerate(parts):
                    part(m, (whole >> unsigned.type(k * each)).astype(f"uint{each}"))

            return split
        if not isinstance(operand, Reg):
            raise ValueError(f"{operand!r} is no register")
        slot, have, want = self.slot(operand), bits_of(operand.type), bits_of(kind)
        if (operand.type == "pred") != (kind == "pred") or have < want:
            raise ValueError(f"{operand.name} of type {operand.type} for a result of type {kind}")
        if kind == "pred":

            def write_pred(m: Machine, value: Array) -> None:
                m.regs[slot][m.idx] = value

            return write_pred
        unsigned, made = np.dtype(f"uint{want}"), numpy_type(kind)
        signed = kind[0] == "s" and have > want

        def write(m: Machine, value: Array) -> None:
            if value.dtype != made:
                value = value.astype(made)
            m.regs[slot][m.idx] = value.astype(f"int{have}").view(f"uint{have}") if signed else value.view(unsigned)

        return write

    def address_of(self, name: str) -> tuple[str, int]:
        """(space, address in that space) of a variable."""
        p = self.program
        if name in p.local_at:
            return "local", p.local_at[name]
        if name in p.dynamic:
            return "shared", p.shared_at[p.dynamic[0]]
        if name in p.shared_at:
            return "shared", p.shared_at[name]
        if name in p.param_at:
            return "param", p.param_at[name]
        if name in p.addresses:
            return "global", p.addresses[name]
        raise ValueError(f"there is no variable {name}")

    def address(self, operand: Any) -> tuple[Get, str]:
        """What reads the address that ``[…]`` is of, as int64, and the space of a variable that it names."""
        if not isinstance(operand, Address):
            raise ValueError(f"{operand!r} is no address")
        offset = np.int64(operand.offset)
        base = operand.base
        if isinstance(base, Name):
            space, at = self.address_of(base.name)
            value = np.array([at], np.int64) + offset
            return lambda m: np.broadcast_to(value, (m.n,)), space
        kind = "u32" if isinstance(base, Reg) and bits_of(base.type) == 32 else "u64"
        read = self.get(base, kind)
        return lambda m: read(m).astype(np.int64) + offset, ""

    # ------------------------------------------------------------ computing on registers

    def elementwise(self, inst: Instruction) -> Step:
        made = form_of(inst)
        targets: tuple[Any, ...] = (inst.operands[0],)
        if isinstance(inst.operands[0], Both):
            targets = inst.operands[0].first, inst.operands[0].second
        if len(inst.operands) - 1 != len(made.inputs):
            raise Mods(inst).unknown()
        reads = [self.get(x, kind) for x, kind in zip(inst.operands[1:], made.inputs)]
        puts = [self.put(x, kind) for x, kind in zip(targets, made.outputs)]
        function = made.function
        if len(made.outputs) > 1:

            def several(m: Machine) -> None:
                for put, value in zip(puts, function(*(read(m) for read in reads))):
                    put(m, value)

            return several
        put = puts[0]
        if len(reads) == 2:
            a, b = reads
            return lambda m: put(m, function(a(m), b(m)))
        if len(reads) == 1:
            (a,) = reads
            return lambda m: put(m, function(a(m)))
        return lambda m: put(m, function(*(read(m) for read in reads)))
