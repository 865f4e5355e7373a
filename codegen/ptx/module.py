"""``target="cuda-ptx"``: kernels compiled by NVRTC, their PTX executed on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.cuda import nvrtc
from codegen.cuda.module import CUDAFunction, CUDAModule
from codegen.cuda.plan import Plan
from tir.buffer import Buffer
from tir.errors import BuildError
from tir.function import IRModule
from tir.interp.numbers import storage_dtype
from tir.target import Target

from .driver import PTXDriver
from .machine import ORDERS
from .report import Report


def build_ptx(mod: IRModule, target: Target) -> PTXModule:
    """``mod`` lowered, written as CUDA C and compiled to PTX. Raises ``BuildError``, also without NVRTC."""
    from tir.analysis.bounds_check import check_bounds
    from tir.transform.pipeline import lower

    check_bounds(mod)
    return PTXModule(mod, target, lower(mod, target=target))


class PTXModule(CUDAModule):
    """Functions whose kernels are compiled for a GPU and run on the CPU, instruction by instruction, with every access
    checked. Arguments are NumPy arrays, written in place.

    ``order`` (also an option of the target: ``"cuda-ptx -order=reverse"``) chooses who runs: all threads "together", the
    warps "forward" or in "reverse", each until it waits, or single "threads". A kernel that is right gives the same in each.

    Raises ``PTXFault`` (a ``RunError``) for an access out of bounds or not aligned, memory that is read before it is
    written, threads that wait for ever, and the like.
    """

    options = (*CUDAModule.options, "order")

    def __init__(self, source: IRModule, target: Target, lowered: IRModule, ptx: str | None = None):
        """``ptx``: what to run instead of what NVRTC makes of the module's CUDA C."""
        order = str(target.attrs.get("order", "together"))
        if order not in ORDERS:
            raise BuildError(f"there is no order {order!r} of warps; there are {', '.join(ORDERS)}")
        super().__init__(source, target, lowered, None if ptx is None else (None, ptx))
        self.simulated = PTXDriver(self.arch, order)
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

    def _compile(self) -> None:
        if self._ptx is None:
            self._ptx = nvrtc.compile_ptx(self.code, self.arch, self._file, self._options)

    def _image(self, arch: str) -> bytes:
        return self._source("ptx").encode()

    def workspace(self, stream: int, plan: Plan) -> int:
        """As on a device; what an earlier call left there counts as not written, and buffers have bounds of their own."""
        base = super().workspace(stream, plan)
        self.simulated.memory.split(base, plan.pieces)
        return base

    @property
    def report(self) -> Report:
        """The last call's launches: instructions executed, by kind, and the resources of each kernel."""
        return Report.of(self)


class PTXFunction(CUDAFunction):
    """A host function whose kernels run on the executor; takes NumPy arrays."""

    def __call__(self, *args: Any, stream: Any = None, **named: Any) -> None:
        from tir.interp.named_arguments import in_order

        given = in_order(self.func, args, named) if named else args
        if any(isinstance(a, np.ndarray) for a in given):
            self.module.simulated.launches.clear()
            self.on_copies(*given)
        else:
            super().__call__(*given, stream=stream)

    def _zeros(self, shape: Sequence[int], buffer: Buffer) -> Any:
        return np.zeros(shape, storage_dtype(buffer.dtype))


PTXModule.function_type = PTXFunction
