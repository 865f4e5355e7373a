"""The driver of ``CUDAModule`` by which kernels run on the executor, and the module of target "cuda-ptx"."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tir.errors import RunError

from .compiler import Program
from .memory import GLOBAL, GlobalMemory
from .multiprocessor import ORDERS, Machine
from .ptx_parser import parse
from .syntax import PTXError, PTXFault
from .tensor_maps import encode
from .traffic import Traffic

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
    """What one launch did: instructions executed, by opcode, over all threads. ``traffic``: costs of requests of memory, None
    if they were not counted. ``pointers``: the allocations that its arguments lead to."""

    def __init__(
        self,
        program: Program,
        grid: Any,
        block: Any,
        executed: list[int],
        traffic: Traffic | None = None,
        pointers: dict[int, int] | None = None,
    ):
        self.body, self.traffic, self.pointers = program.function.body, traffic, pointers or {}
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
    "together", "forward" or "reverse". ``traffic``: whether to count what requests of memory cost; single threads make none
    in common."""

    device_id = 0

    def __init__(self, arch: str, order: str = "together"):
        self.arch = arch
        self.order = order
        self.traffic = False
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

    def encode_tensor_map(self, spec: Any, address: int) -> bytes:
        """The 128 bytes that the machine's copies read. ``spec`` has ``dtype``, ``shape``, ``strides`` (in elements), ``box``,
        outermost first, and ``swizzle`` in bytes. Raises ``RunError`` for what the driver of CUDA refuses."""
        return encode(spec, address).pack()

    def launch(
        self,
        program: Program,
        grid: Any,
        block: Any,
        shared: int,
        stream: int,
        params: int,
        cluster: tuple[int, int, int] | None = None,
    ) -> None:
        """Run a kernel, in clusters of ``cluster`` blocks, or as it asks for. Raises ``PTXFault``, naming the instruction and
        the thread."""
        if self.order not in ORDERS:
            raise ValueError(f"there is no order {self.order!r} of warps; there are {', '.join(ORDERS)}")
        packed = _packed(program, params)
        executed = [0] * (len(program.code))
        threads = -(-block[0] * block[1] * block[2] // 32) * 32
        sizes = _cluster(program, grid, cluster)
        numbers = _by_cluster(tuple(grid), sizes)
        size = sizes[0] * sizes[1] * sizes[2]
        each = max(1, _LANES // threads // size) * size
        traffic = Traffic() if self.traffic and self.order != "threads" else None
        self.memory.begin_launch()
        starts = range(0, len(numbers), each)
        for start in reversed(starts) if self.order == "reverse" else starts:
            blocks = numbers[start : start + each]
            machine = Machine(
                program, self.memory, tuple(grid), tuple(block), blocks, shared, packed, self.order, executed, sizes
            )
            machine.traffic = traffic
            try:
                with np.errstate(all="ignore"):
                    machine.run()
            except PTXFault as fault:
                raise PTXFault(f"{program.name}: {fault}") from fault
        self.launches.append(Launched(program, grid, block, executed, traffic, self._pointers(program, packed)))

    def _pointers(self, program: Program, packed: bytes) -> dict[int, int]:
        """By the begin of an allocation, the first parameter with an address in it."""
        found: dict[int, int] = {}
        for k, v in enumerate(program.function.params):
            at = int.from_bytes(packed[program.param_at[v.name] :][: v.size], "little") - GLOBAL
            if v.size == 8 and 0 <= at < self.memory.size and len(self.memory.pieces):
                found.setdefault(self.memory.piece_of(at), k)
        return found

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


def _cluster(program: Program, grid: Any, given: tuple[int, int, int] | None) -> tuple[int, int, int]:
    """The blocks of a cluster. Raises ``RunError`` for what a launch refuses."""
    asked = program.function.cluster
    if asked is not None and given is not None and tuple(given) != asked:
        raise RunError(
            f"{program.name} is compiled for clusters of {asked}, and launched in clusters of {tuple(given)}"
        )
    sizes = asked or given or (1, 1, 1)
    if any(n % k for n, k in zip(grid, sizes)) or not 1 <= sizes[0] * sizes[1] * sizes[2] <= 16:
        raise RunError(f"{program.name} is launched with grid {tuple(grid)} in clusters of {tuple(sizes)}: each size of the "
                       "grid is a multiple of the cluster's, which has at most 16 blocks")  # fmt: skip
    return sizes[0], sizes[1], sizes[2]


def _by_cluster(grid: tuple[int, ...], sizes: tuple[int, int, int]) -> list[int]:
    """The numbers of all blocks, cluster by cluster, in the order of their ranks."""
    x, y, z = sizes
    numbers = np.arange(grid[0] * grid[1] * grid[2]).reshape(grid[2] // z, z, grid[1] // y, y, grid[0] // x, x)
    return numbers.transpose(0, 2, 4, 1, 3, 5).ravel().tolist()


def _packed(program: Program, params: int) -> bytes:
    """The bytes of a kernel's parameters, from an array of their addresses."""
    made = bytearray(program.param_bytes)
    slots = ctypes.cast(params, ctypes.POINTER(ctypes.c_void_p))
    for k, v in enumerate(program.function.params):
        at = program.param_at[v.name]
        made[at : at + v.size] = ctypes.string_at(slots[k], v.size)
    return bytes(made)
