"""``target="cuda-sim"``: lowered kernels on the simulator, launched by the host function as on a device."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import numpy as np

from tir.display import CallableReport
from tir.dtype import DType
from tir.errors import BuildError
from tir.expr import Var
from tir.function import IRModule
from tir.interp import memory as flat_memory
from tir.interp.arguments import bind_arguments, written_positions
from tir.interp.gpu import Breakpoint, SimReport, SimulationError, simulate
from tir.interp.numbers import storage_dtype

from .calls import HostFunction
from .host_program import HostProgram
from .module import Module


class Launches(list[SimReport], CallableReport):
    """The reports of a call's launches, in order; prints as tables, in a notebook as HTML."""

    @property
    def ok(self) -> bool:
        return all(r.ok for r in self)

    @property
    def findings(self) -> list[Any]:
        return [f for r in self for f in r.findings]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) or "no kernel was launched"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "<hr>".join(r._repr_html_() for r in self) or html.escape(str(self))


class SimulatorModule(Module):
    """Functions whose kernels run on the simulator. Arguments are NumPy arrays, written in place.

    ``order`` and ``seed`` (also options of the target: ``"cuda-sim -order=random -seed=3"``) choose the order of threads,
    ``strict`` whether a finding raises, ``trace`` is called before every statement; ``mod.breakpoint(line)`` stops at a
    line of a kernel. ``mod.last_report`` holds the reports of the last call's launches.
    """

    source_kinds = ("tir", "lowered")

    def __init__(self, source: IRModule, target: Any, lowered: IRModule):
        self.lowered = lowered
        self.kernels = {n: f for n, f in lowered.items() if f.attrs.get("calling_conv") == "device_kernel"}
        self.order = str(target.attrs.get("order", "forward"))
        self.seed = int(target.attrs.get("seed", 0))
        self.strict = True
        self.trace: Callable[[Any], Any] | None = None
        self.last_report = Launches()
        self._stops: list[tuple[str | None, Breakpoint]] = []
        self._source_ir = source
        hosts = [name for name in lowered if name not in self.kernels]
        super().__init__(source, target, {name: self._runner(name) for name in hosts})

    def _source(self, kind: str) -> str:
        return self.lowered.script() if kind == "lowered" else self.ir.script()

    @property
    def report(self) -> Launches:
        """The reports of the last call's launches: findings, traffic, bank conflicts, barriers."""
        return self.last_report

    def breakpoint(
        self,
        line: int,
        thread: Any = None,
        block: Any = None,
        action: Callable[[Any], Any] | None = None,
        kernel: str | None = None,
    ) -> Breakpoint:
        """Stop before ``line`` of a kernel's script (``mod.kernel_source()``), as :class:`tir.interp.gpu.Breakpoint`."""
        if kernel is not None and kernel not in self.kernels:
            raise BuildError(f"no kernel {kernel!r}; there are {', '.join(self.kernels) or 'none'}")
        made = Breakpoint(line, thread, block, action)
        self._stops.append((kernel, made))
        return made

    def clear_breakpoints(self) -> None:
        self._stops.clear()

    def kernel_source(self, name: str | None = None) -> str:
        """The script of a kernel with the line numbers that reports and breakpoints use."""
        found = self.kernels[next(iter(self.kernels)) if name is None else name]
        return "\n".join(f"{n:4} | {text}" for n, text in enumerate(found.script().splitlines(), 1))

    def _runner(self, name: str) -> HostFunction:
        host = self.lowered[name]
        program = HostProgram(host, self.kernels)
        source = self.ir.functions.get(name, host)
        written = written_positions(source)

        def call(*args: Any) -> Any:
            self.last_report = Launches()
            scalars, arrays = bind_arguments(host, args, written)
            values: dict[Var, Any] = {**scalars, **{b.data: flat_memory.flat(array) for b, array in arrays.items()}}
            return program.run(values, _Run(self))

        return HostFunction(name, source, call)

    def simulate(self, name: str, args: Any, grid: Any, block: Any, dyn_shared: int, fresh: dict[int, Any]) -> None:
        """Launch a kernel, as :func:`tir.interp.gpu.simulate` does, and keep its report."""
        stops = [stop for kernel, stop in self._stops if kernel in (None, name)]
        report = simulate(
            self.kernels[name],
            args,
            grid,
            block,
            dyn_shared,
            self.order,
            self.seed,
            strict=False,
            trace=self.trace,
            breakpoints=stops,
            fresh=fresh,
        )
        self.last_report.append(report)
        if self.strict and not report.ok:
            raise SimulationError(report)


class _Run:
    """The device of one call. ``fresh``: which elements of memory were written, by the address of an allocation."""

    def __init__(self, module: SimulatorModule):
        self._module = module
        self._fresh: dict[int, np.ndarray] = {}

    def launch(self, kernel: str, args: Any, grid: Any, block: Any, dynamic_shared_bytes: int) -> None:
        self._module.simulate(kernel, args, grid, block, dynamic_shared_bytes, self._fresh)

    def allocate(self, dtype: DType, elements: int) -> np.ndarray:
        made = flat_memory.allocate(elements, dtype)
        self._fresh[made.ctypes.data] = np.zeros(len(made), bool)
        return made

    def part(self, memory: np.ndarray, begin: int, dtype: DType) -> np.ndarray:
        """Elements of memory that may hold several types, which nobody follows."""
        self._fresh.pop(memory.ctypes.data, None)
        there = memory.view(np.uint8)[begin:]
        kind = storage_dtype(dtype)
        return there[: len(there) // kind.itemsize * kind.itemsize].view(kind)


def build_simulator(mod: IRModule, target: Any) -> SimulatorModule:
    """The module lowered for CUDA, its kernels to be simulated."""
    from tir.transform.pipeline import lower

    return SimulatorModule(mod, target, lower(mod, target=target))
