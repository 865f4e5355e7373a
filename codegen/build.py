"""build(program, target) -> Module"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Literal, overload

from tir.collecting import seldom_collected
from tir.errors import BuildError
from tir.function import HasProgram, IRModule, LowersItself, PrimFunc, answered_by_program
from tir.target import KINDS, Target, added_kind
from tir.visit import with_recursion_limit, with_room

from .module import InterpreterModule, LLVMModule, Module

if TYPE_CHECKING:
    from .cuda.module import CUDAModule
    from .ptx.module import PTXModule
    from .simulator import SimulatorModule

_log = logging.getLogger(__name__)
Program = PrimFunc | IRModule | HasProgram | type  # a class under @I.ir_module is a class to mypy


@overload
def build(func_or_mod: Program, target: Literal["llvm", "cpu"] = ...) -> LLVMModule: ...
@overload
def build(func_or_mod: Program, target: Literal["interpreter"]) -> InterpreterModule: ...
@overload
def build(func_or_mod: Program, target: Literal["cuda"]) -> CUDAModule: ...
@overload
def build(func_or_mod: Program, target: Literal["cuda-sim"]) -> SimulatorModule: ...
@overload
def build(func_or_mod: Program, target: Literal["cuda-ptx"]) -> PTXModule: ...
@overload
def build(func_or_mod: Program, target: Any) -> Module: ...
@overload
def build(
    func_or_mod: LowersItself, args: Any, target: Any = ..., target_host: Any = ..., name: str = ..., binds: Any = ...
) -> Module: ...
@answered_by_program
@with_recursion_limit
@with_room
@seldom_collected
def build(func_or_mod: PrimFunc | IRModule, target: Any = None) -> Module:
    """Compile a function, a module of functions, or the program of a schedule.

    ``target`` (default: that of a ``with`` around the call, else the first): ``"llvm"`` (this machine's CPU; also ``"llvm -mcpu=haswell"`` or ``{"kind": "llvm", "mcpu": …,
    "num_cores": …, "fast_math": True}``; another machine, to save code for: ``"llvm -mtriple=aarch64-linux-gnu"``),
    ``"interpreter"`` (the reference executor), ``"cuda"`` (also ``"cuda
    -arch=sm_90a"``; compiles without a GPU), ``"cuda-sim"`` (GPU kernels on the simulator, with every check), ``"cuda-ptx"``
    (compiled for a GPU, its PTX executed on the CPU), or a ``tir.Target``.

    A stage schedule is built by ``build(s, args, target, name=…)``: see ``tir.te.Schedule.build``.

    Raises ``BuildError`` for a program or a target that cannot be compiled.

    >>> import numpy as np, tir
    >>> double = tir.script.parse('''
    ... @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             B[vi] = A[vi] * T.float32(2)
    ... ''')
    >>> a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    >>> tir.build(double, target="interpreter")(a, b)
    >>> b.tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    """
    mod = IRModule.of(func_or_mod)
    try:
        chosen = Target.of(target or Target.current() or "llvm")
    except ValueError as error:
        raise BuildError(str(error)) from error
    if not len(mod):
        raise BuildError("the module has no functions to build")
    if chosen.kind == "interpreter":
        return InterpreterModule(mod, chosen)
    if chosen.kind == "llvm":
        return _build_llvm(mod, chosen)
    if chosen.kind == "cuda-sim":
        from .simulator import build_simulator

        return build_simulator(mod, chosen)
    if chosen.kind == "cuda-ptx":
        from .ptx.module import build_ptx

        return build_ptx(mod, chosen)
    if chosen.kind == "cuda":
        from .cuda.module import build_cuda

        return build_cuda(mod, chosen)
    added = added_kind(chosen.kind)
    if added is not None:
        from tir.transform.pipeline import lower

        return added.build(lower(mod, target=chosen), chosen)
    raise BuildError(f"no backend builds for target {chosen.kind!r}; there are {', '.join(KINDS)}")


def _build_llvm(mod: IRModule, target: Target) -> LLVMModule:
    """Compile ``mod``, or load it from the cache of programs, unless stages are to be dumped or verified."""
    from tir import config
    from tir.transform.pipeline import cpu_pipeline, lower

    from . import compiled
    from .bounds_check import check_bounds
    from .program_key import program_key

    def emit() -> tuple[compiled.Emitted, Any]:
        check_bounds(mod)
        return _emit(lower(mod, target=target, passes=passes), target)

    passes = cpu_pipeline()  # the list as it is now: sources may be computed later
    on = machine_of(target)
    knobs = config.current()
    key = None if knobs.dump or knobs.verify else program_key(mod, target, on.key(), passes)
    start = time.perf_counter()
    found = None if key is None else compiled.find(key, mod, on, emit)
    cached = found is not None
    if found is None:
        found = compiled.Compiled.of(emit, on, mod)
        if key is not None:
            compiled.keep(key, mod, found)
    how = "loaded from the cache" if cached else "lowered and compiled"
    names = ", ".join(mod[name].name for name in mod)
    _log.info("%s for %s: %s in %.3g s", names, target, how, time.perf_counter() - start)
    return LLVMModule(mod, target, found, lambda: passes)


def rebuilt(source: Callable[[], IRModule], target: Target, about: Mapping[str, Any]) -> LLVMModule:
    """The module of code that was compiled before: ``about`` has the fields of :class:`codegen.compiled.Compiled` by name. ``source`` returns
    the program; it is called when :attr:`Module.ir` is first read."""
    from .compiled import Compiled, Emission

    around = copy_context()  # has the changes of passes that are in force

    def passes() -> list[Any]:
        from tir.transform.pipeline import cpu_pipeline

        return around.run(cpu_pipeline)

    emission = Emission(lambda: _emit(module.lowered_for(target), target)[0])
    module = LLVMModule(source, target, Compiled(**about, machine=machine_of(target), emit=emission), passes)
    return module


@with_recursion_limit
def compile_lowered(lowered: IRModule, target: Any = "llvm", source: IRModule | None = None) -> LLVMModule:
    """Compile a module that has been lowered already (``source``: the program it came from)."""
    from .compiled import Compiled

    target = Target.of(target)
    source = lowered if source is None else source
    return LLVMModule(source, target, Compiled.of(lambda: _emit(lowered, target), machine_of(target), source))


def machine_of(target: Target) -> Any:
    from .llvm.compile import machine

    cpu, triple = (str(target.attrs.get(name, "")) for name in ("mcpu", "mtriple"))
    return machine(cpu, target.attrs.get("mattr"), triple)


def _emit(lowered: IRModule, target: Target, like: Any = None) -> tuple[Any, Any]:
    """(the program as LLVM assembly, what the code generator says about it); ``like`` as ``emit_module`` takes it.

    Raises ``BuildError`` for an instruction that the target lacks.
    """
    from .compiled import Emitted
    from .llvm.function import emit_module
    from .llvm.instructions import require_instructions
    from .llvm.text import ModuleText

    on = machine_of(target)
    text = ModuleText(on.cpu, on.features, on.triple, target.vectors.bits)
    program = emit_module(lowered, text, bool(target.attrs.get("fast_math", False)), like)
    emitted = Emitted(lowered, text.render())
    require_instructions(emitted.text, on)
    return emitted, program


def emit_for(module: LLVMModule, target: Target, like: Any) -> tuple[Any, str, Any]:
    """The program of a module for another processor: the machine, LLVM assembly, and what the code generator says."""
    lowered = module.lowered_for(target)
    emitted, program = _emit(lowered, target, like)
    return machine_of(target), emitted.text, program
