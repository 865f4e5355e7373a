"""``target="cuda-sim"``: lowered kernels on the simulator, launched by the host function as on a device."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from tir.errors import BuildError
from tir.function import IRModule, PrimFunc
from tir.interp.gpu import Breakpoint, SimReport, SimulationError, simulate

from .module import Module


class Launches(list[SimReport]):
    """The reports of a call's launches, in order; prints as their tables, in a notebook as HTML."""

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

    ``order`` and ``seed`` choose the order of threads, ``strict`` whether a finding raises, ``trace`` is called before
    every statement; ``mod.breakpoint(line)`` stops at a line of a kernel. ``mod.last_report`` has what the last call's
    launches told.
    """

    source_kinds = ("tir", "lowered")

    def __init__(self, source: IRModule, target: Any, lowered: IRModule):
        self.lowered = lowered
        self.kernels = {n: f for n, f in lowered.items() if f.attrs.get("calling_conv") == "device_kernel"}
        self.order = "forward"
        self.seed = 0
        self.strict = True
        self.trace: Callable[[Any], Any] | None = None
        self.last_report = Launches()
        self._stops: list[tuple[str | None, Breakpoint]] = []
        hosts = [name for name in lowered if name not in self.kernels]
        super().__init__(source, target, {name: self._runner(lowered[name]) for name in hosts})

    def _source(self, kind: str) -> str:
        return self.lowered.script() if kind == "lowered" else self.ir.script()

    def report(self) -> Launches:
        """What the last call's launches told: findings, traffic, bank conflicts, barriers."""
        return self.last_report

    def breakpoint(
        self, line: int, thread: Any = None, block: Any = None, action: Callable[[Any], Any] | None = None,
        kernel: str | None = None,
    ) -> Breakpoint:  # fmt: skip
        """Stop before ``line`` of a kernel's script (``mod.kernel_source()``), as :class:`tir.interp.gpu.Breakpoint`."""
        if kernel is not None and kernel not in self.kernels:
            raise BuildError(f"no kernel {kernel!r}; there are {', '.join(self.kernels) or 'none'}")
        made = Breakpoint(line, thread, block, action)
        self._stops.append((kernel, made))
        return made

    def clear_breakpoints(self) -> None:
        self._stops.clear()

    def kernel_source(self, name: str | None = None) -> str:
        """The script of a kernel with its line numbers, as reports and breakpoints count them."""
        found = self.kernels[next(iter(self.kernels)) if name is None else name]
        return "\n".join(f"{n:4} | {text}" for n, text in enumerate(found.script().splitlines(), 1))

    def _runner(self, host: PrimFunc) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.last_report = Launches()
            return _run_host(host, args, self._launch, self.kernels)

        return call

    def _launch(self, name: str, args: Any, grid: Any, block: Any, dyn_shared: int) -> None:
        stops = [stop for kernel, stop in self._stops if kernel in (None, name)]
        report = simulate(
            self.kernels[name], args, grid, block, dyn_shared, self.order, self.seed,
            strict=False, trace=self.trace, breakpoints=stops,
        )  # fmt: skip
        self.last_report.append(report)
        if self.strict and not report.ok:
            raise SimulationError(report)


def build_simulator(mod: IRModule, target: Any) -> SimulatorModule:
    """The module lowered for CUDA, its kernels to be simulated."""
    from tir.transform.pipeline import lower

    return SimulatorModule(mod, target, lower(mod, target=target))


def _run_host(host: PrimFunc, args: Any, launch: Any, kernels: dict[str, PrimFunc]) -> Any:
    from tir.interp import executor

    def runner(name: str, func: PrimFunc) -> Any:
        axes = func.attrs["tir.kernel_launch_params"]

        def run(*given: Any) -> None:
            count = len(func.params)
            sizes = dict(zip(axes, (int(x) for x in given[count:])))
            grid = [sizes.get(f"blockIdx.{a}", 1) for a in "xyz"]
            block = [sizes.get(f"threadIdx.{a}", 1) for a in "xyz"]
            launch(name, given[:count], grid, block, sizes.get("tir.use_dyn_shared_memory", 0))

        return run

    saved = dict(executor._EXTERNS)
    executor._EXTERNS.update({n: runner(n, f) for n, f in kernels.items()})
    try:
        return executor.run(host, *args)
    finally:
        executor._EXTERNS.clear()
        executor._EXTERNS.update(saved)
