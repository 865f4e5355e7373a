"""The driver of ``CUDAModule`` by which kernels run on the executor, and the module of target "cuda-ptx"."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .compiler import Program
from .machine import ORDERS, Machine
from .memory import GLOBAL, GlobalMemory
from .parser import parse
from .syntax import PTXError, PTXFault

_LANES = 1 << 13  # threads that run as one vector, at most


class Loaded:
    """A module in memory: its programs by name, compiled when they are first needed."""

    def __init__(self, text: str, memory: GlobalMemory):
        self.module = parse(text)
        self.addresses: dict[str, int] = {}
        for v in self.module.variables.values():
            if v.space in ("global", "const"):
                address = self.addresses[v.name] = memory.allocate(max(v.size, 1), v.name)
                at = memory.bytes_at(address, v.size)
                if v.data is not None or v.space == "global":
                    at[:] = np.frombuffer(v.data, np.uint8) if v.data is not None else 0
                    memory.known[address - GLOBAL :][: v.size] = 1
        self.programs: dict[str, Program] = {}

    def program(self, name: str) -> Program:
        if name not in self.programs:
            if name not in self.module.functions:
                raise PTXError(f"the PTX has no kernel {name}; it has {', '.join(self.module.functions)}")
            self.programs[name] = Program(self.module, name, self.addresses)
        return self.programs[name]


class Launched:
    """What one launch did: instructions executed, by opcode, over all threads."""

    def __init__(self, program: Program, grid: Any, block: Any, executed: list[int]):
        self.kernel, self.grid, self.block = program.name, grid, block
        self.executed: dict[str, int] = {}
        for inst, count in zip(program.function.body, executed):
            if count:
                self.executed[inst.opcode] = self.executed.get(inst.opcode, 0) + count

    @property
    def instructions(self) -> int:
        return sum(self.executed.values())


class PTXDriver:
    """Stands for a device: global memory of its own, kernels run as they are launched. ``order``: of warps (and blocks):
    "together", "forward" or "reverse"."""

    device_id = 0

    def __init__(self, arch: str, order: str = "together"):
        self.arch = arch
        self.order = order
        self.memory = GlobalMemory()
        self.launches: list[Launched] = []

    def activate(self) -> None:
        return None

    def load(self, image: bytes) -> Loaded:
        return Loaded(image.rstrip(b"\0").decode(), self.memory)

    def unload(self, module: Any) -> None:
        pass

    def function(self, module: Loaded, name: str, dynamic_shared: int) -> Program:
        return module.program(name)

    def launch(self, program: Program, grid: Any, block: Any, shared: int, stream: int, params: int) -> None:
        """Run a kernel. Raises ``PTXFault``, naming the instruction and the thread."""
        if self.order not in ORDERS:
            raise ValueError(f"there is no order {self.order!r} of warps; there are {', '.join(ORDERS)}")
        packed = _packed(program, params)
        executed = [0] * (len(program.code))
        threads = -(-block[0] * block[1] * block[2] // 32) * 32
        total = grid[0] * grid[1] * grid[2]
        each = max(1, _LANES // threads)
        self.memory.begin_launch()
        starts = range(0, total, each)
        for start in reversed(starts) if self.order == "reverse" else starts:
            blocks = range(start, min(total, start + each))
            machine = Machine(
                program, self.memory, tuple(grid), tuple(block), blocks, shared, packed, self.order, executed
            )
            try:
                with np.errstate(all="ignore"):
                    machine.run()
            except PTXFault as fault:
                raise PTXFault(f"{program.name}: {fault}") from fault
        self.launches.append(Launched(program, grid, block, executed))

    def allocate(self, size: int) -> int:
        return self.memory.allocate(max(size, 1))

    def free(self, address: int) -> None:
        self.memory.free(address)

    def copy_in(self, address: int, host: int, size: int) -> None:
        ctypes.memmove(self.memory.bytes_at(address, size).ctypes.data, host, size)
        at = address - GLOBAL
        self.memory.known[at : at + size] = 1

    def copy_out(self, host: int, address: int, size: int) -> None:
        ctypes.memmove(host, self.memory.bytes_at(address, size).ctypes.data, size)

    def synchronize(self, stream: int = 0) -> None:
        return None


def _packed(program: Program, params: int) -> bytes:
    """The bytes of a kernel's parameters, from an array of their addresses."""
    made = bytearray(program.param_bytes)
    slots = ctypes.cast(params, ctypes.POINTER(ctypes.c_void_p))
    for k, v in enumerate(program.function.params):
        at = program.param_at[v.name]
        made[at : at + v.size] = ctypes.string_at(slots[k], v.size)
    return bytes(made)
