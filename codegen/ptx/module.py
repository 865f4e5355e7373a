"""``target="cuda-ptx"``: kernels compiled by NVRTC, their PTX executed on the CPU."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codegen.calls import span_of
from codegen.cuda import nvrtc
from codegen.cuda.device_arrays import interface
from codegen.cuda.module import CUDAFunction, CUDAModule
from codegen.cuda.plan import Plan
from codegen.module import Timing, measure
from tir.buffer import Buffer
from tir.errors import BuildError
from tir.function import IRModule
from tir.interp.named_arguments import in_order
from tir.interp.numbers import storage_dtype
from tir.target import Target

from .driver import PTXDriver
from .multiprocessor import ORDERS
from .report import Report


def build_ptx(mod: IRModule, target: Target) -> PTXModule:
    """``mod`` lowered, written as CUDA C and compiled to PTX. Raises ``BuildError``, also without NVRTC."""
    from tir.transform.pipeline import lower

    from ..bounds_check import check_bounds

    check_bounds(mod)
    return PTXModule(mod, target, lower(mod, target=target))


class PTXModule(CUDAModule):
    """Functions whose kernels are compiled for a GPU and run on the CPU, instruction by instruction, with every access
    checked. Arguments are NumPy arrays, written in place.

    ``order`` (also an option of the target: ``"cuda-ptx -order=reverse"``) chooses who runs: all threads "together", the
    warps "forward" or in "reverse", each until it waits, or single "threads". A kernel that is right gives the same in each.

    ``traffic`` (an option too: ``"cuda-ptx -traffic=1"``): whether the report has the sectors of global memory and the bank
    conflicts of each access. A launch takes up to twice as long with it; in the order "threads" there is nothing to count.

    Raises ``PTXFault`` (a ``RunError``) for an access out of bounds or not aligned, memory that is read before it is
    written, threads that wait for ever, and the like.
    """

    def __init__(self, source: IRModule, target: Target, lowered: IRModule, ptx: str | None = None):
        """``ptx``: what to run instead of what NVRTC makes of the module's CUDA C."""
        order = str(target.attrs.get("order", "together"))
        if order not in ORDERS:
            raise BuildError(f"there is no order {order!r} of warps; there are {', '.join(ORDERS)}")
        super().__init__(source, target, lowered, None if ptx is None else (None, ptx))
        self.simulated = PTXDriver(self.arch, order)
        self.simulated.traffic = bool(target.attrs.get("traffic", False))
        self.use_driver(self.simulated)

    def __reduce__(self) -> tuple[Any, ...]:
        return PTXModule, (self.ir, self.target, self.lowered)

    @property
    def order(self) -> str:
        return self.simulated.order

    @order.setter
    def order(self, value: str) -> None:
        if value not in ORDERS:
            raise ValueError(f"there is no order {value!r} of warps; there are {', '.join(ORDERS)}")
        self.simulated.order = value

    @property
    def traffic(self) -> bool:
        return self.simulated.traffic

    @traffic.setter
    def traffic(self, value: bool) -> None:
        self.simulated.traffic = value

    def _compile(self) -> None:
        if self._ptx is None:
            options = (*self._options, "--generate-line-info")
            self._ptx = nvrtc.compile_ptx(self.code, self.arch, self._file, options)

    def _image(self, arch: str) -> bytes:
        return self._source("ptx").encode()

    def workspace(self, stream: int, plan: Plan) -> int:
        """As on a device; what an earlier call left there counts as not written, and buffers have bounds of their own."""
        base = super().workspace(stream, plan)
        self.simulated.memory.split(base, plan.pieces)
        return base

    @property
    def report(self) -> Report:
        """The last call's launches: instructions executed, by kind, the resources of each kernel, and with ``traffic`` what
        the requests of memory cost."""
        return Report.of(self)


class PTXFunction(CUDAFunction):
    """A host function whose kernels run on the executor; takes NumPy arrays."""

    def __call__(self, *args: Any, stream: Any = None, **named: Any) -> Any:
        given = in_order(self.func, args, named) if named else args
        if not any(isinstance(a, np.ndarray) for a in given):
            return super().__call__(*given, stream=stream)
        simulated = self.module.simulated
        simulated.launches.clear()
        is_array = [p in self.func.buffer_map for p in self.func.params] + [False] * len(given)
        places = [k for k, a in enumerate(given) if is_array[k] and isinstance(a, np.ndarray)]
        held = list(given)
        for k, made in zip(places, copied([given[k] for k in places], simulated)):
            held[k] = made
        result = super().__call__(*held, stream=stream)
        for k in self.outputs():
            if isinstance(held[k], Copied):
                held[k].copy_back()
        return result

    def prepared(self, *args: Any, stream: Any = None) -> Callable[[], None]:
        return lambda: self(*args, stream=stream)

    def measure(self, args: Any, number: int, repeat: int, min_repeat_ms: float, stream: Any) -> Timing:
        """Seconds that the executor takes."""
        return measure(self.prepared(*args, stream=stream), number, repeat, min_repeat_ms)

    def _zeros(self, shape: Sequence[int], buffer: Buffer) -> Any:
        return np.zeros(shape, storage_dtype(buffer.dtype))


class Span:
    """Host memory from ``low`` to ``high`` as an allocation of the executor; freed with this object."""

    def __init__(self, low: int, high: int, driver: PTXDriver):
        self.low, self.driver = low, driver
        self.address = driver.allocate(high - low)
        driver.copy_in(self.address, low, high - low)
        weakref.finalize(self, driver.free, self.address)


class Copied:
    """An array in the executor's memory, with the strides that it has in NumPy."""

    def __init__(self, array: np.ndarray, span: Span):
        self.array, self.span = array, span
        self.address = span.address + array.ctypes.data - span.low
        read_only = not array.flags.writeable
        self.__cuda_array_interface__ = interface(array.shape, array.dtype, self.address, array.strides, read_only)

    def copy_back(self) -> None:
        array = self.array
        low, high = _ends(array)
        made = np.empty(high - low, np.uint8)
        self.span.driver.copy_out(made.ctypes.data, self.span.address + low - self.span.low, high - low)
        np.copyto(array, np.ndarray(array.shape, array.dtype, made, array.ctypes.data - low, array.strides))


def _ends(array: np.ndarray) -> tuple[int, int]:
    """The addresses of the first byte of an array and of the one behind the last."""
    low, high = span_of(array)
    return array.ctypes.data + low, array.ctypes.data + high


def copied(arrays: Sequence[np.ndarray], driver: PTXDriver) -> list[Copied]:
    """``arrays`` in the executor's memory: each in an allocation of its own, those that overlap in one."""
    made: dict[int, Copied] = {}
    group: list[int] = []
    low = high = 0

    def end() -> None:
        if group:
            span = Span(low, high, driver)
            made.update((k, Copied(arrays[k], span)) for k in group)

    for k in sorted(range(len(arrays)), key=lambda k: _ends(arrays[k])):
        first, last = _ends(arrays[k])
        if group and first < high and last > first:
            group.append(k)
            high = max(high, last)
            continue
        end()
        group, low, high = [k], first, last
    end()
    return [made[k] for k in range(len(arrays))]


PTXModule.function_type = PTXFunction
