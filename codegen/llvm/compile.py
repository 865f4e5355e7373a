"""LLVM assembly to machine code: target machine, optimisation, the disk cache of objects, loading."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import re
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from tir.errors import BuildError
from tir.names import did_you_mean
from tir.target import VectorRegisters

from .. import disk
from .mends import MENDS, mended
from .pieces import pieces
from .text import AS_IT_IS, NO_SUPERWORDS, RUNTIME


@functools.cache
def llvm() -> Any:
    """llvmlite's binding, with the native target ready."""
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    for library in ("libm.so.6", "libgcc_s.so.1"):
        with contextlib.suppress(RuntimeError):  # on other systems these are in the C library, which is loaded already
            binding.load_library_permanently(library)
    return binding


ARCHITECTURES = {"x86-64": "x86", "aarch64": "aarch64"}  # LLVM's name of those to compile for -> of their intrinsics


@functools.cache
def architecture(triple: str) -> str:
    """LLVM's name of the architecture of ``triple``. Raises ``BuildError`` for a triple that LLVM does not know."""
    binding = llvm()
    if triple != binding.get_process_triple():
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
    try:
        return binding.Target.from_triple(triple).name
    except RuntimeError as error:
        raise BuildError(f"LLVM knows no target triple {triple!r}: {error}") from error


def _require_supported(triple: str) -> None:
    """Raise ``BuildError`` for a triple for whose system or architecture this package generates no code."""
    narrow = triple.endswith(("x32", "ilp32"))  # pointers of 32 bits
    if architecture(triple) not in ARCHITECTURES or "linux" not in triple or narrow:
        raise BuildError(
            f"no code is generated for {triple}: a triple is of Linux on {' or '.join(ARCHITECTURES)}, "
            "as in -mtriple=aarch64-linux-gnu"
        )


def _printed_here(triple: str) -> str:
    """What LLVM prints on stderr about the processors of ``triple``; only once in a process, whatever the triple."""
    import tempfile

    target = llvm().Target.from_triple(triple)
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            target.create_target_machine(cpu="help")
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read().decode()


_PRINT = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""


def _printed_elsewhere(triple: str) -> str:
    """The same from a process of its own, which can ask about another architecture."""
    import subprocess

    command = [sys.executable, "-c", _PRINT, triple]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@functools.cache
def _names(arch: str) -> tuple[frozenset[str], frozenset[str]]:
    """The processors and the features of an architecture that LLVM knows.

    They are checked because LLVM ends the process when code needs a feature that an unknown processor lacks.
    """
    here = llvm().get_process_triple()
    text = _printed_here(here) if arch == architecture(here) else ""  # empty where LLVM has printed it before
    text = text or _printed_elsewhere(arch.replace("-", "_"))
    processors, _, features = text.partition("Available features")
    return tuple(frozenset(re.findall(r"^  (\S+) +- ", part, re.M)) for part in (processors, features))  # type: ignore[return-value]


def _require_known(cpu: str, features: str, triple: str) -> None:
    if not cpu and not features:
        return
    processors, known = _names(architecture(triple))
    asked = [(cpu, processors, "processor")] if cpu else []
    asked += [(f.lstrip("+-"), known, "feature of a processor") for f in features.split(",") if f]
    for name, names, what in asked:
        if names and name not in names:
            raise BuildError(f"LLVM knows no {what} {name!r}{did_you_mean(name, sorted(names))}")


class Machine:
    """The CPU to compile for: its name, features, widest vector in bits, and the triple of its system.

    Without a triple it is this machine, or the CPU named on a system as this one; with a triple alone, any CPU of that
    architecture. Raises ``BuildError`` for a CPU, a feature or a triple that cannot be compiled for.
    """

    def __init__(self, cpu: str = "", features: str | None = None, width: int = 0, triple: str = ""):
        binding = llvm()
        self.triple = triple or binding.get_process_triple()
        if triple:
            _require_supported(triple)
        given = features
        cpu = cpu or ("generic" if triple else "native")
        host = cpu in ("native", "host")
        if host and not self.is_of_this_architecture:
            raise BuildError(
                f"-mcpu={cpu} is this machine's CPU, which is not of {triple}; name one of that architecture"
            )
        _require_known("" if host else cpu, features or "", self.triple)
        self.cpu = binding.get_host_cpu_name() if host else cpu
        if features is None:
            features = str(binding.get_host_cpu_features().flatten()) if host else ""
        self.features: str = features
        self.width = width or VectorRegisters.of(cpu, given, triple).bits

    @property
    def is_of_this_architecture(self) -> bool:
        """Whether this machine can load its code."""
        return architecture(self.triple) == architecture(llvm().get_process_triple())

    def key(self) -> str:
        import llvmlite

        return f"{llvmlite.__version__}/{self.triple}/{self.cpu}/{self.features}"

    def target_machine(self, level: int = 3) -> Any:
        """An LLVM target machine that optimizes at a level, position-independent so that objects can also be linked into shared libraries."""
        binding = llvm()
        return binding.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="default"
        )


@functools.lru_cache(maxsize=8)
def machine(cpu: str = "", features: str | None = None, triple: str = "") -> Machine:
    """The Machine of a CPU name (empty: the host) and a triple (empty: the host's), made once."""
    return Machine(cpu, features, triple=triple)


@contextlib.contextmanager
def parsed(text: str, context: Any = None) -> Iterator[Any]:
    """A verified LLVM module, in a context of its own: LLVM keeps the constants and types of a context until that is freed.
    Raises ``BuildError`` with LLVM's message.

    It is freed at the end, before its context. Left to Python's collector, which frees what an exception's frames hold in any
    order, a module may be freed after its context, and the process dies.
    """
    binding = llvm()
    with contextlib.ExitStack() as freed:
        context = context or freed.enter_context(binding.create_context())
        try:
            module = freed.enter_context(binding.parse_assembly(text, context))
            module.verify()
        except RuntimeError as error:
            raise BuildError(f"LLVM does not accept the generated code: {error}") from error
        yield module


def joined(parts: Sequence[tuple[str, str]], runtime: str) -> tuple[str, frozenset[str]]:
    """The LLVM assembly of several modules as one, and the names of what it uses from elsewhere.

    Each part is its text and what begins the names of all that it defines. What begins with ``__tir_`` is shared, and has
    ``runtime`` before it.
    """
    with contextlib.ExitStack() as freed:
        context = freed.enter_context(llvm().create_context())
        modules, external = [], set()
        for text, prefix in parts:
            module = freed.enter_context(parsed(text, context))
            for value in (*module.global_variables, *module.functions):
                if value.name.startswith(RUNTIME):
                    value.name = runtime + value.name
                elif value.is_declaration:
                    external.add(value.name)
                else:
                    value.name = prefix + value.name
            modules.append(module)
        whole, *others = modules
        for module in others:
            whole.link_in(module)
        marked = any(text.startswith(NO_SUPERWORDS) for text, _ in parts)
        return f"{NO_SUPERWORDS}\n{whole}" if marked else str(whole), frozenset(external)


@contextlib.contextmanager
def optimised(text: str, on: Machine) -> Iterator[tuple[Any, Any]]:
    """(optimised LLVM module, target machine), the module as long as :func:`parsed` keeps it. ``text`` calls no instruction that
    its processor lacks."""
    marks = text[: len(NO_SUPERWORDS) + len(AS_IT_IS) + 1]
    level = 0 if AS_IT_IS in marks else 3
    with contextlib.ExitStack() as freed:
        module = freed.enter_context(parsed(text))
        # LLVM 22 vectorizes data-dependent loads into gathers and moves them above earlier stores to the same memory
        builder, target_machine = _pass_builder(on, level, superwords=NO_SUPERWORDS not in marks)
        module.triple = on.triple
        module.data_layout = str(target_machine.target_data)
        manager = builder.getModulePassManager()
        try:
            manager.run(module, builder)
        finally:
            _dispose(manager)
        if on.width == 512:
            made = str(module)
            if (right := mended(made)) != made:
                module = freed.enter_context(parsed(right))
        yield module, target_machine


_RUNS = 16  # of a pass builder


class _PassBuilders(threading.local):
    """The pass builders of a thread, with their target machines and the runs left to them: LLVM's are not shared by
    threads."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, int, bool], tuple[Any, Any, int]] = {}


_PASS_BUILDERS = _PassBuilders()


def _pass_builder(on: Machine, level: int, superwords: bool) -> tuple[Any, Any]:
    """LLVM's pass builder for a machine, at a level of optimization, and its target machine. They keep nothing of the modules that they compile.

    One serves several runs, since llvmlite does not free all of it, but not all of them: each run adds callbacks, which
    every pass of the runs after it calls. The target machine serves all: what it knows of a processor takes 2 ms to make.
    """
    key = (on.key(), level, superwords)
    builder, target_machine, runs = _PASS_BUILDERS.made.get(key, (None, None, 0))
    if not runs:
        binding = llvm()
        options = binding.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = True
        options.slp_vectorization = superwords
        options.loop_interleaving = True
        options.loop_unrolling = True
        target_machine = target_machine or on.target_machine(level)
        builder, runs = binding.create_pass_builder(target_machine, options), _RUNS
    _PASS_BUILDERS.made[key] = builder, target_machine, runs - 1
    return builder, target_machine


def _dispose(manager: Any) -> None:
    """Free a pass manager. In llvmlite's class hierarchy an empty method hides the one that frees it."""
    from llvmlite.binding import newpassmanagers

    if not manager.closed:
        newpassmanagers.NewPassManager._dispose(manager)
        manager.detach()


def object_code(text: str, on: Machine) -> bytes:
    """The object file of LLVM assembly ``text``, from the disk cache (:mod:`codegen.disk`) if it is there."""
    path = disk.place(object_key(text, on), ".o")
    if path is not None:
        found = disk.read(path)
        if found is not None:
            return found
    with optimised(text, on) as (module, target_machine):
        code = target_machine.emit_object(module)
    if path is not None:
        disk.write(path, code)
    return code


def object_codes(text: str, on: Machine) -> tuple[bytes, ...]:
    """The object files of the pieces of LLVM assembly ``text``, in order, as :func:`object_code` has each."""
    from tir.workers import each

    parts = pieces(text)
    order = sorted(range(len(parts)), key=lambda n: -len(parts[n]))  # the longest first
    made = {order[n]: take() for n, take in each(lambda n: object_code(parts[n], on), order)}
    return tuple(made[n] for n in range(len(parts)))


def object_key(text: str, on: Machine) -> str:
    """The cache key of the object of ``text`` for ``on``, in hex digits."""
    return hashlib.sha256(f"{on.key()}\n{MENDS}\n{text}".encode()).hexdigest()


def assembly(text: str, on: Machine) -> str:
    """The machine's assembly of LLVM assembly ``text``, its labels with the names of their loops as comments."""
    with optimised(text, on) as (module, target_machine):
        target_machine.set_asm_verbosity(True)
        return target_machine.emit_assembly(module)


class _Code(ABC):
    """Machine code in memory, alive as long as ``_holder``."""

    _holder: Any

    @abstractmethod
    def function(self, name: str) -> int:
        """The address of a function; 0 if there is none."""

    def release_by(self, name: str) -> None:
        """When this object is collected, call the function ``name``, if there is one: it frees memory that the code kept."""
        release = self.function(name)
        if release:  # holds the code until then
            weakref.finalize(self, _release, self._holder, release).atexit = False


def _release(holder: Any, address: int) -> None:
    ctypes.CFUNCTYPE(None)(address)()


class Loaded(_Code):
    """Machine code in memory: addresses of its symbols. Kept alive by whoever calls it.

    It is of one object or several. ``beside`` is LLVM assembly that defines further symbols for it. Every symbol that it uses has to be defined, weak
    ones too: where one is missing, LLVM leaves all of them at address 0.
    """

    def __init__(self, *code: bytes, beside: str = ""):
        number = next(_NUMBERS)
        self._name, self._linker = f"code{number}", _linker(number // _OBJECTS)
        parts = llvm().JITLibraryBuilder().add_current_process()
        for each_object in code:
            parts.add_object_img(each_object)
        self._holder = [(parts.add_ir(beside) if beside else parts).link(self._linker, self._name)]

    def function(self, name: str) -> int:
        try:
            found = self._linker.lookup(self._name, name)
        except RuntimeError:
            return 0
        self._holder.append(found)  # the code is gone when any of these is
        return found[name]

    variable = function


_NUMBERS = itertools.count()  # of what is loaded: a linker takes no name twice
_OBJECTS = 16  # that one linker links: making it takes as long as linking five, and it keeps 4 KB of each


@functools.lru_cache(maxsize=1)
def _linker(number: int) -> Any:
    """What links objects in memory, and maps the sections of each in one piece. (MCJIT maps each where there is room, and ends
    the process where that is more than 2 GB apart.) It is there as long as code that it linked."""
    binding = llvm()
    return binding.create_lljit_compiler(machine().target_machine(), use_jit_link=True, suppress_errors=True)


class NotLoaded:
    """Code for another architecture, with the interface of :class:`Loaded`: it can be saved, and has no addresses here."""

    def release_by(self, name: str) -> None:
        """Nothing: it keeps no memory."""

    def function(self, name: str) -> int:
        return 0


def loaded(code: Sequence[bytes], on: Machine) -> Loaded | NotLoaded:
    """Objects in memory, where this machine is of their architecture."""
    return Loaded(*code) if on.is_of_this_architecture else NotLoaded()


class Library(_Code):
    """The code of a shared library, with the interface of :class:`Loaded`. Loading runs its constructors.

    It is loaded from a file of its own, which is gone once it is loaded: the system's loader answers a path that it knows
    with the library that it has, whatever the file holds by now, and code in memory is lost where its file is written.
    """

    def __init__(self, code: bytes):
        import tempfile

        handle, path = tempfile.mkstemp(prefix="tir-load-", suffix=".so")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(code)
            self._holder = ctypes.CDLL(path)
        finally:
            os.unlink(path)
        weakref.finalize(self._holder, _close, self._holder._handle).atexit = False

    def function(self, name: str) -> int:
        try:
            return ctypes.cast(getattr(self._holder, name), ctypes.c_void_p).value or 0
        except AttributeError:
            return 0

    def variable(self, name: str) -> int:
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(self._holder, name))
        except ValueError:
            return 0


def _close(handle: int) -> None:
    close = ctypes.CDLL(None).dlclose
    close.argtypes = [ctypes.c_void_p]
    close(handle)
