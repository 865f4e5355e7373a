"""What this machine can do: ``python -m tir.doctor``."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tir.display import html_table, text_table
from tir.errors import TirError
from tir.extension import optional
from tir.target import threads


@dataclass(frozen=True)
class Line:
    """One capability: whether it is available (``ok``), and what there is, or what is missing and how to get it."""

    what: str
    ok: bool
    text: str


@dataclass(frozen=True)
class Diagnosis:
    lines: tuple[Line, ...]

    def __str__(self) -> str:
        return text_table((), self._cells())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table((), self._cells())

    def _cells(self) -> list[tuple[str, ...]]:
        return [("ok" if line.ok else "--", line.what, line.text) for line in self.lines]

    def __getitem__(self, what: str) -> Line:
        return next(line for line in self.lines if line.what == what)


def doctor() -> Diagnosis:
    """What this machine can do: CPU, LLVM, threads, NVRTC, CUDA device. Prints as a table.

    >>> doctor()["LLVM"].ok
    True
    """
    checks: dict[str, Callable[[], str]] = {
        "Python": lambda: f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "packages": _packages,
        "CPU": _cpu,
        "LLVM": _llvm,
        "OpenMP": _openmp,
        "exact sets": _sets,
        "models": _models,
        "NVRTC": _nvrtc,
        "CUDA device": _device,
        "simulator": lambda: 'target "cuda-sim" runs GPU kernels here, with every check',
    }
    return Diagnosis(tuple(_line(what, check) for what, check in checks.items()))


def _line(what: str, check: Callable[[], str]) -> Line:
    try:
        return Line(what, True, check())
    except (ImportError, TirError) as error:
        return Line(what, False, str(error))


def _packages() -> str:
    """Where `tir` and `codegen` come from: one place, unless a distribution of that name hides one."""
    import codegen
    import tir

    places = [Path(str(package.__file__)).parents[1] for package in (tir, codegen)]
    if places[0] != places[1]:
        raise TirError(
            f"tir is imported from {places[0]}, and codegen from {places[1]}: another distribution has a package of that "
            "name; use an environment of its own (python -m venv)"
        )
    return f"tir {tir.__version__} and codegen, from {places[0]}"


def _cpu() -> str:
    from tir.target import Target

    from .llvm.compile import machine

    on = machine()
    wanted = ("avx2", "fma", "avx512f", "avx512vnni", "avx512bf16", "amx-tile", "neon", "sve")
    found = [name for name in wanted if f"+{name}" in on.features.split(",")]
    return f"{on.cpu}, {Target.host().attrs['num_cores']} cores, {on.width}-bit vectors ({', '.join(found) or 'base'})"


def _llvm() -> str:
    import llvmlite
    import llvmlite.binding as binding

    return f"{'.'.join(map(str, binding.llvm_version_info))} by llvmlite {llvmlite.__version__}"


def _openmp() -> str:
    from .runtime.openmp import openmp

    if openmp() is None:
        raise ImportError("no OpenMP library found: parallel loops run on one thread; install libgomp")
    size = threads()
    return f"parallel loops run on {size} thread{'s' * (size != 1)} (OMP_NUM_THREADS changes it)"


def _sets() -> str:
    import islpy

    return f"islpy {islpy.version.VERSION_TEXT}" if hasattr(islpy, "version") else "islpy"


def _models() -> str:
    onnx = optional("onnx", "no package onnx, which reads models", "onnx")
    return f"tir.compile reads ONNX models (onnx {onnx.__version__})"


def _nvrtc() -> str:
    from .cuda.nvrtc import architectures, version

    major, minor = version()
    found = architectures()
    return f"{major}.{minor}: compiles for sm_{found[0]} to sm_{found[-1]}, with or without a GPU"


def _device() -> str:
    from .cuda.driver import driver

    on = driver()
    shared = on.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") // 1024
    return f"{on.name} ({on.arch}), {on.attribute('MULTIPROCESSOR_COUNT')} SMs, {shared} KiB shared memory a block"
