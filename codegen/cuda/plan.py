"""The launches of one call of a function, recorded once.

Shapes, strides and scalars determine which kernels a call launches and with which sizes; only addresses change from
call to call. So the host function runs once for each combination, with placeholders for addresses; the launches are
recorded with packed arguments, and a later call fills in the addresses and launches.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codegen.host_program import HostProgram
from tir.dtype import DType
from tir.errors import RunError
from tir.expr import Var
from tir.interp.numbers import encode, is_small_float, storage_dtype

from .tensor_map import BYTES, MapParameter, TensorMap

MOST_LAUNCHES = 4096  # of a plan; a host loop that launches more is refused
ALIGNED = 256  # every buffer between kernels begins at a multiple of this

_C = {
    "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool, "handle": ctypes.c_uint64,
}  # fmt: skip


def pack(value: Any, dtype: DType) -> Any:
    """A kernel's argument as a C value; the driver is given its address."""
    if is_small_float(dtype):
        bits = int(encode(float(value), dtype))
        return _C[f"uint{8 * storage_dtype(dtype).itemsize}"](bits)
    if str(dtype) == "float16":
        return ctypes.c_uint16(int(np.float16(value).view(np.uint16)))
    return _C[str(dtype)](value)


class Address(int):
    """A placeholder for an address, ``at`` bytes into argument ``number``, or, if ``number`` < 0, into the workspace of buffers between kernels."""

    number: int
    at: int

    @staticmethod
    def of(number: int, at: int = 0) -> Address:
        made = Address(1)  # not null: the host function may test it
        made.number, made.at = number, at
        return made


@dataclass
class Encoded:
    """A tensor map in the packed arguments of a launch, and the address that it was made for."""

    slot: Any
    parameter: MapParameter
    map: TensorMap
    place: Address
    address: int = 0

    def update(self, addresses: Sequence[int], base: int, driver: Any) -> None:
        """Make the map anew if the tensor is at another address than before."""
        address = self.place.at + (addresses[self.place.number] if self.place.number >= 0 else base)
        if address != self.address:
            self.parameter.check_address(address)
            ctypes.memmove(self.slot, driver.encode_tensor_map(self.map, address), BYTES)
            self.address = address


class Plan:
    """The launches of one call. ``run(addresses, …)`` launches with these addresses of the arguments."""

    def __init__(self, program: HostProgram, values: dict[Var, Any], module: Any):
        self.temporary = 0  # bytes of all buffers between kernels
        self.pieces: list[tuple[int, int]] = []  # where each begins, and its bytes
        self._base = 0  # where they were at the last call
        self._launches: list[tuple[Any, ...]] = []
        self._slots: list[
            tuple[Any, int, int]
        ] = []  # where an address in an argument goes: which argument, how many bytes into it
        self._inner: list[tuple[Any, int]] = []  # where that of a buffer between kernels goes
        self._maps: list[Encoded] = []
        self._held: list[Any] = []
        self._module = module
        self.sizes: list[int] = []  # bytes of the arguments
        self.result = program.run(values, self)

    def allocate(self, dtype: DType, elements: int) -> Address:
        made = Address.of(-1, self.temporary)
        self.pieces.append((self.temporary, elements * dtype.bytes))
        self.temporary += -(-max(1, elements * dtype.bytes) // ALIGNED) * ALIGNED
        return made

    def part(self, memory: Address, begin: int, dtype: DType) -> Address:
        return Address.of(memory.number, memory.at + begin)

    def launch(self, kernel: str, args: Sequence[Any], grid: Any, block: Any, dynamic_shared_bytes: int) -> None:
        """Record a launch."""
        name, shared = kernel, dynamic_shared_bytes
        text = self._module.texts[name]
        check_launch(name, grid, block, self._module.target.limit("max_threads_per_block") or 1024, text.cluster)
        if len(self._launches) == MOST_LAUNCHES:
            raise RunError(f"one call launches more than {MOST_LAUNCHES} kernels; make the loop part of the kernel")
        packed = [pack(value, dtype) for value, dtype in zip(args, text.params)]
        for value, slot, dtype, aligned in zip(args, packed, text.params, text.alignments):
            if not dtype.is_handle:
                continue
            if not isinstance(value, Address):
                raise RunError(
                    f"{name}: a pointer is computed outside of kernels; pass the buffer, or the address of an element"
                )
            if value.at % aligned:
                raise RunError(
                    f"{name}: it is given memory that begins {value.at} bytes into a buffer, which is no multiple of {aligned} bytes, as its "
                    "vector accesses need"
                )
            if value.number >= 0:
                self._slots.append((slot, value.number, value.at))
            else:
                self._inner.append((slot, value.at))
        packed += self._maps_of(text, dict(zip(self._module.kernels[name].params, args)))
        params = (ctypes.c_void_p * max(1, len(packed)))(*(ctypes.addressof(p) for p in packed))
        self._held.append((packed, params))
        handle = self._module.kernel_handle(name)
        self._launches.append((handle, grid, block, shared, ctypes.addressof(params)))

    def _maps_of(self, text: Any, values: dict[Var, Any]) -> list[Any]:
        """Room for the tensor maps of a kernel, which :meth:`run` fills in."""
        made = []
        for parameter in text.maps:
            made.append((ctypes.c_uint8 * BYTES)())
            self._maps.append(Encoded(made[-1], parameter, parameter.at(values), values[parameter.pointer]))
        return made

    def run(self, addresses: Sequence[int], stream: int, base: int, launch: Callable[..., None]) -> None:
        """Launch on ``stream``; ``base`` is the address of the workspace. Not thread-safe."""
        for encoded in self._maps:
            encoded.update(addresses, base, self._module.device)
        for slot, number, at in self._slots:
            slot.value = addresses[number] + at
        if base != self._base:
            self._base = base
            for slot, at in self._inner:
                slot.value = base + at
        for handle, grid, block, shared, params in self._launches:
            launch(handle, grid, block, shared, stream, params)


def check_launch(name: str, grid: Any, block: Any, most: int, cluster: Sequence[int]) -> None:
    """Raise ``RunError`` for sizes beyond CUDA's limits; ``most``: threads in a block; ``cluster``: blocks in a cluster."""
    if any(n % each for n, each in zip(grid, cluster)):
        raise RunError(f"{name}: a grid of {tuple(grid)} blocks cannot be divided into clusters of {tuple(cluster)}")
    threads = block[0] * block[1] * block[2]
    if threads > most or block[2] > 64:
        raise RunError(f"{name}: a block of {block} has {threads} threads; at most {most}, and 64 along z")
    if grid[0] > 2**31 - 1 or grid[1] > 65535 or grid[2] > 65535:
        raise RunError(f"{name}: a grid of {grid} blocks; at most 2147483647 along x, 65535 along y and z")
