"""What :func:`tir.build` returns: callable functions, their sources, timing, saving and loading."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tir.display import Source, duration, html_table
from tir.errors import BuildError, RunError
from tir.function import IRModule, PrimFunc
from tir.names import near_names

from . import container
from .callable import NativeFunction, Runtime
from .calls import Function, HostFunction
from .llvm.compile import assembly, loaded, optimised

if TYPE_CHECKING:
    from . import aot

__all__ = [
    "Function", "HostFunction", "InterpreterModule", "LLVMModule", "LoadedModule", "Module", "NativeFunction", "Timing",
    "load",
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Timing:
    """Seconds of one call: ``results`` has one mean per repeat.

    >>> from codegen.module import Timing
    >>> timing = Timing((0.002, 0.004, 0.003))
    >>> timing, timing.median
    (3 ms (min 2 ms, 3 repeats), 0.003)
    """

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        from statistics import fmean

        return fmean(self.results)

    @property
    def median(self) -> float:
        from statistics import median

        return median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        from statistics import pstdev

        return pstdev(self.results)

    def __str__(self) -> str:
        return f"{duration(self.median)} (min {duration(self.min)}, {len(self.results)} repeats)"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = ("median", "mean", "min", "max", "std", "repeats")
        cells = [duration(t) for t in (self.median, self.mean, self.min, self.max, self.std)]
        return html_table(head, [(*cells, str(len(self.results)))])


def measure(run: Callable[[], Any], number: int, repeat: int, min_repeat_ms: float = 0.0) -> Timing:
    """Time ``run``: one call to warm up, then ``repeat`` means over ``number`` calls (more, for ``min_repeat_ms``)."""

    def seconds(number: int) -> float:
        start = time.perf_counter()
        for _ in range(number):
            run()
        return time.perf_counter() - start

    return repeated(seconds, number, repeat, min_repeat_ms)


def repeated(seconds: Callable[[int], float], number: int, repeat: int, min_repeat_ms: float) -> Timing:
    """As :func:`measure`, of what makes ``n`` calls, and gives the seconds that they took, by ``seconds(n)``."""
    if number < 1 or repeat < 1:
        raise ValueError(f"number and repeat must be at least 1, got {number} and {repeat}")
    seconds(1)
    results = list[float]()
    while len(results) < repeat:
        took = seconds(number)
        if took * 1e3 < min_repeat_ms:
            number = int(number * min(10.0, max(1.2, min_repeat_ms * 1e-3 / max(took, 1e-9)))) + 1
            continue
        results.append(took / number)
    return Timing(tuple(results))


class Module:
    """Functions that run. ``mod(*args)`` runs the only function, or ``main``; ``mod["name"](*args)`` any of them.

    Arguments are given in parameter order or by name (``mod(a, b, C=c)``): arrays for buffers (NumPy, anything with
    DLPack, NumPy's array interface or the buffer protocol, on the CPU; written in place), numbers for scalars. Raises
    ``RunError`` naming the argument that does not fit. ``mod.new(a, b)`` makes the arrays that are written.

    >>> import numpy as np
    >>> import tir
    >>> mod = tir.build(tir.library.elementwise.scale_add(2), "interpreter")
    >>> a, b = np.array([1, 2], "float32"), np.zeros(2, "float32")
    >>> mod(a, b)
    >>> b, mod.new(a), list(mod)
    (array([4., 7.], dtype=float32), array([4., 7.], dtype=float32), ['main'])
    """

    def __init__(self, source: IRModule | Callable[[], IRModule], target: Any, functions: Mapping[str, Function]):
        """``source`` is the program, or a function that returns it, which is called when :attr:`ir` is first read."""
        self._source_ir = source
        self.target = target
        self.functions = dict(functions)

    @property
    def ir(self) -> IRModule:
        """The program."""
        if not isinstance(self._source_ir, IRModule):
            self._source_ir = self._source_ir()
        return self._source_ir

    def __getitem__(self, name: str) -> Function:
        if not isinstance(name, str):
            raise TypeError(
                f"a module is called with its arrays, mod(a, b), not with a grid {name!r}: that is in the program"
            )
        found = self.functions.get(name)
        if found is None:
            raise KeyError(
                f"no function {name!r} in the module; it has {', '.join(near_names(name, self.functions)) or 'none'}"
            )
        return found

    def get_function(self, name: str) -> Function:
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    @property
    def entry_name(self) -> str:
        """The name of the function ``mod(...)`` runs."""
        return next(name for name, function in self.functions.items() if function is self.entry)

    @property
    def entry(self) -> Function:
        """The function ``mod(...)`` runs."""
        if len(self.functions) == 1:
            return next(iter(self.functions.values()))
        if "main" in self.functions:
            return self.functions["main"]
        raise RunError(
            f"the module has {len(self.functions)} functions and none is called main: "
            f"say which, as in mod[{next(iter(self.functions), 'name')!r}](...)"
        )

    def __call__(self, *args: Any, **named: Any) -> Any:
        functions = self.functions
        if len(functions) == 1:  # a shortcut for `entry`
            for function in functions.values():
                return function(*args, **named)
        return self.entry(*args, **named)

    def new(self, *args: Any, **named: Any) -> Any:
        """Run the entry function with new arrays of zeros for what it writes, and return them: ``c = mod.new(a, b)``.

        ``args`` are the other parameters in order. One result is returned as it is, several as a tuple in parameter
        order. An array that the function updates is given by name (``mod.new(a, b, C=c)``) and not returned. Raises
        ``RunError`` where the shape of a result does not follow from the arguments.
        """
        return self.entry.new(*args, **named)

    source_kinds: tuple[str, ...] = ("tir",)
    code_kind = "tir"  # the kind that is the generated code

    def source(self, kind: str = "tir") -> Source:
        """The program as text; ``kind`` is one of ``source_kinds``. A notebook shows it in colour. Raises ``ValueError``
        for another kind."""
        if kind not in self.source_kinds:
            raise ValueError(f"no source {kind!r}; this module has {', '.join(self.source_kinds)}")
        return Source(self._source(kind), kind)

    def _source(self, kind: str) -> str:
        return self.ir.script()

    def get_source(self, fmt: str = "") -> str:
        """``source`` under TVM's name: ``fmt`` is a kind, ``"ll"`` or ``"s"``; the default is the generated code."""
        return self.source({"": self.code_kind, "ll": "llvm", "s": "asm"}.get(fmt, fmt))

    @property
    def report(self) -> Any:
        """What the module knows of its code or of its last run; prints as a table, and may be called too
        (``mod.report()``). What runs on the reference executor has none."""
        raise AttributeError(f"a module for {self.target.kind} has no report")

    def save(self, path: str | Path) -> None:
        """Write the compiled code where :func:`load` reads it. Raises ``BuildError`` for a module that has none."""
        raise BuildError(f"a module for {self.target.kind} has no code to save; build for llvm or cuda")

    def export_library(self, file_name: str | Path) -> None:
        """:meth:`save`, under TVM's name."""
        self.save(file_name)

    def time_evaluator(
        self,
        func_name: str | None = None,
        dev: Any = None,
        number: int = 10,
        repeat: int = 3,
        min_repeat_ms: float = 0.0,
    ) -> Callable[..., Timing]:
        """A function that times ``func_name`` on the arguments it is called with. ``dev`` is accepted for TVM's sake:
        the arguments determine the device.

        ``mod.time_evaluator("main", number=10)(a, b, c).median`` is the seconds of one call. The arguments are
        checked once, outside the timed part; the first call warms up.
        """
        function = self.entry if func_name is None else self[func_name]

        def evaluate(*args: Any, **named: Any) -> Timing:
            return measure(function.prepared(*args, **named), number, repeat, min_repeat_ms)

        return evaluate

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the program and the target: built again, from the cache where that has it."""
        from .build import build

        return build, (self.ir, self.target)

    def __repr__(self) -> str:
        return f"Module({', '.join(self.functions)}; {self.target})"


class InterpreterModule(Module):
    """Functions run by the reference executor.

    >>> import tir
    >>> type(tir.build(tir.library.elementwise.scale_add(2), "interpreter")).__name__
    'InterpreterModule'
    """

    def __init__(self, source: IRModule, target: Any):
        from tir.interp import run

        def runner(name: str) -> HostFunction:
            return HostFunction(name, source[name], functools.partial(run, source, func=name))

        super().__init__(source, target, {name: runner(name) for name in source})


class LLVMModule(Module):
    """Functions compiled to machine code.

    >>> import numpy as np
    >>> import tir
    >>> mod = tir.build(tir.library.elementwise.scale_add(2), "llvm")
    >>> type(mod).__name__, mod.new(np.array([1, 2], "float32")), "ret" in mod.source("asm")
    ('LLVMModule', array([4., 7.], dtype=float32), True)
    """

    source_kinds = ("tir", "lowered", "llvm", "llvm-opt", "asm")
    code_kind = "llvm"

    def __init__(
        self,
        source: IRModule | Callable[[], IRModule],
        target: Any,
        compiled: Any,
        passes: Callable[[], list[Any]] | None = None,
    ):
        """``passes`` gives the passes that lowered ``source``; None if the program was lowered elsewhere."""
        self._compiled, self._passes = compiled, passes
        code = loaded(compiled.code, compiled.machine)
        code.release_by("__tir_release")
        runtime = Runtime(code, compiled, target.attrs.get("num_cores"))
        functions = {name: NativeFunction(name, about, runtime) for name, about in compiled.functions.items()}
        super().__init__(source, target, functions)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._passes is not None:
            return super().__reduce__()
        from .build import compile_lowered  # lowered elsewhere: no pipeline of ours leads to it

        return compile_lowered, (self.lowered, self.target, self.ir)

    @property
    def _emitted(self) -> Any:
        """The program lowered and as LLVM assembly: computed again if the code came from the cache."""
        return self._compiled.emit()

    def forget(self) -> None:
        """Give the memory of the program in its later stages back; :meth:`source` makes them again."""
        self._compiled.emit.forget()

    @property
    def compiled(self) -> Any:
        """The :class:`codegen.compiled.Compiled` that runs."""
        return self._compiled

    @property
    def lowered(self) -> IRModule:
        """The program after the last pass of lowering."""
        return self._emitted.lowered

    def _source(self, kind: str) -> str:
        if kind == "tir":
            return self.ir.script()
        if kind == "lowered":
            return self.lowered.script()
        if kind == "llvm":
            return self._emitted.text
        if kind == "llvm-opt":
            with optimised(self._emitted.text, self._compiled.machine) as (module, _):
                return str(module)
        return assembly(self._emitted.text, self._compiled.machine)

    @property
    def report(self) -> Any:
        """Whether every vectorized, unrolled and parallel loop became so, and what registers hold, with reasons; prints
        as a table."""
        from .report import Report

        return Report.of(self.lowered) if self._passes is None else Report.of(self.ir, self._passes())

    def lowered_for(self, target: Any) -> IRModule:
        """The program lowered for another processor."""
        from tir.transform.pipeline import lower

        return self.lowered if self._passes is None else lower(self.ir, target=target, passes=self._passes())

    def save(
        self,
        path: str | Path,
        header: str | Path | None = None,
        threads: str = "linked",
        levels: Sequence[str] = (),
        checks: bool = False,
        cmake: str | Path | None = None,
    ) -> None:
        """Write a shared library (``.so``), an object file (``.o``) or an archive of one (``.a``), and a C ``header``. No
        compiler or linker is needed.

        ``threads``: parallel loops of C programs run on OpenMP's threads where that is linked (``"linked"``), always
        (``"openmp"``: the file needs it) or never (``"serial"``), or on those of a pool that the program sets (``"pool"``).
        ``levels``: processors of x86-64 from the least to the best, as ``("x86-64-v2", "x86-64-v4")``: the file has code
        for each, whatever the module is built for, and chooses where it runs.
        ``checks``: C functions check pointers, sizes, alignment and overlap, and beside each is one that takes tensors as
        DLPack describes them, and checks their types, shapes and strides.
        ``cmake``: also write a file here that defines a target of CMake, under the file's name.
        Each function is a C function under its ``global_symbol`` (docs/aot.md says how it is called);
        :func:`load` reads the file back. Raises ``BuildError`` for another suffix or when linking fails.
        """
        from . import aot

        self.save_functions(self.functions, Path(path), aot.Options.of(header, threads, checks, cmake), levels)

    def save_functions(
        self,
        functions: Mapping[str, Any],
        path: Path,
        options: aot.Options,
        levels: Sequence[str],
        extras: aot.Extras | None = None,
    ) -> None:
        """:meth:`save` with some of the functions, and with ``extras``."""
        from . import aot

        code = aot.code_for(self, levels) if levels else aot.Code.of(self._compiled)
        aot.write(path, functions, code, options, extras)


class LoadedModule(Module):
    """Functions of a file that ``Module.save`` wrote; ``ir`` has their signatures only.

    >>> import tempfile
    >>> import tir
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tir.build(tir.library.elementwise.scale_add(2)).save(f"{folder}/kernels.o")
    ...     type(tir.load(f"{folder}/kernels.o")).__name__
    'LoadedModule'
    """

    def __init__(
        self,
        source: IRModule,
        target: Any,
        functions: Mapping[str, Function],
        path: Path,
        file: container.File,
        code: aot.Saved,
    ):
        super().__init__(source, target, functions)
        self.path = path
        self.about = file.about
        self._code = code

    def held(self, name: str, size: int) -> np.ndarray:
        """The bytes that the file holds for the parameter ``name``; read only, and there as long as the module.
        Raises ``BuildError`` if it holds none."""
        address = self._code.variable(name)
        if not address:
            raise BuildError(f"{self.path.name} holds nothing for `{name}`")
        memory: Any = (ctypes.c_ubyte * size).from_address(address)
        memory.code = self._code
        made = np.frombuffer(memory, np.uint8)
        made.flags.writeable = False
        return made

    @staticmethod
    def of(file: container.File, path: Path) -> LoadedModule:
        from tir.script import parse_data
        from tir.target import Target

        from . import aot

        saved = aot.Saved(file)
        runtime = Runtime(saved, saved, None)
        signatures: dict[str, PrimFunc] = {}
        functions: dict[str, Function] = {}
        for name, entry in saved.functions.items():
            (signatures[name],) = IRModule.of(parse_data(entry.script)).functions.values()
            functions[name] = NativeFunction(name, (signatures[name], frozenset(entry.written)), runtime)
        return LoadedModule(IRModule.of(signatures), Target("llvm"), functions, path, file, saved)

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.path,)


def load(path: str | Path) -> Module:
    """A module saved with ``mod.save``, whatever the file is called by now.

    The file is read once and loaded from memory, so a path that was loaded before gives what it holds now. A digest of
    its contents is checked before anything of it is used, which finds damage and not malice: a ``.so``, ``.o`` or ``.a`` is code,
    and loading or calling it runs that code; what a ``.zip`` holds runs on the GPU when it is called.

    Raises ``BuildError`` if the file was not written by ``mod.save`` or is damaged, ``RunError`` if it needs CPU features
    that this machine lacks.

    >>> import tempfile
    >>> import numpy as np
    >>> import tir
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tir.build(tir.library.elementwise.scale_add(2)).save(f"{folder}/kernels.o")
    ...     tir.load(f"{folder}/kernels.o").new(np.array([1, 2], "float32"))
    array([4., 7.], dtype=float32)
    """
    file = container.read(Path(path))
    try:
        if file.kind == "cuda":
            from .cuda import cuda_files as cuda

            return cuda.read(file, Path(path).resolve())
        return LoadedModule.of(file, Path(path).resolve())
    except (LookupError, TypeError, ValueError) as error:  # as it was written, but not by us
        raise BuildError(f"{file.name} does not hold what Module.save writes: {error}") from error
