"""Compiled modules as files: objects and shared libraries that C programs link, and that ``tir.load`` reads back.

Every function is a C function under its ``global_symbol``. All other symbols begin with the file's name, so that several
files can be linked into one program. docs/aot.md has the calling convention.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tir.dtype import DType
from tir.errors import BuildError, RunError
from tir.expr import Var
from tir.function import PrimFunc

from . import container
from .c_names import identifier, is_reserved, parameter
from .elf.library import shared_library
from .elf.objects import MAGIC
from .llvm.compile import Library, Loaded, machine, object_code, prefixed
from .llvm.cpu_features import Needs
from .llvm.signature import buffer_alignment, slots_of
from .llvm.text import byte_string, own_name, symbol
from .llvm.types import memory_element

SUFFIXES = (".so", ".o", ".dylib")

# The linker of a saved program finds OpenMP: with -fopenmp parallel loops run on a team of threads, without it serially.
_OPENMP = """\
declare extern_weak void @GOMP_parallel(ptr, ptr, i32, i32)
declare extern_weak i32 @omp_get_thread_num()
declare extern_weak i32 @omp_get_num_threads()
define internal void @__tir_openmp(ptr %f, ptr %data, i32 %n, i32 %flags) {
  %linked = icmp ne ptr @GOMP_parallel, null
  %thread = icmp ne ptr @omp_get_thread_num, null
  %threads = icmp ne ptr @omp_get_num_threads, null
  %both = and i1 %thread, %threads
  %all = and i1 %linked, %both
  br i1 %all, label %team, label %serial
team:
  store atomic ptr @omp_get_thread_num, ptr @__tir_thread monotonic, align 8
  store atomic ptr @omp_get_num_threads, ptr @__tir_threads monotonic, align 8
  call void @GOMP_parallel(ptr %f, ptr %data, i32 %n, i32 %flags)
  ret void
serial:
  call void @__tir_serial(ptr %f, ptr %data, i32 %n, i32 %flags)
  ret void
}
"""
# The program's own threads: a task runs the loop on a share of its iterations, which is a loop of a closure of its own.
_POOL = """\
@__tir_pool = global ptr null, align 8
@__tir_context = global ptr null, align 8
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal void @__tir_pooled(ptr %f, ptr %closure, i32 %n, i32 %flags) {
  %pool = load ptr, ptr @__tir_pool, align 8
  %context = load ptr, ptr @__tir_context, align 8
  %given = icmp ne ptr %pool, null
  br i1 %given, label %team, label %serial
team:
  %work = alloca [2 x ptr], align 8
  %second = getelementptr inbounds ptr, ptr %work, i64 1
  store ptr %f, ptr %work, align 8
  store ptr %closure, ptr %second, align 8
  call void %pool(ptr %context, ptr @__tir_share, ptr %work)
  ret void
serial:
  call void @__tir_serial(ptr %f, ptr %closure, i32 %n, i32 %flags)
  ret void
}
define internal void @__tir_share(ptr %work, i32 %share, i32 %shares) {
  %second = getelementptr inbounds ptr, ptr %work, i64 1
  %f = load ptr, ptr %work, align 8
  %closure = load ptr, ptr %second, align 8
  %rest.of = getelementptr inbounds i8, ptr %closure, i64 4
  %bytes = load i32, ptr %rest.of, align 4
  %own = alloca i8, i32 %bytes, align 64
  %rest.own = getelementptr inbounds i8, ptr %own, i64 4
  %first.own = getelementptr inbounds i8, ptr %own, i64 8
  %extent.own = getelementptr inbounds i8, ptr %own, i64 16
  %wide = zext i32 %bytes to i64
  %rest.bytes = sub i64 %wide, 4
  store i32 0, ptr %own, align 64
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %rest.own, ptr align 4 %rest.of, i64 %rest.bytes, i1 false)
  %k = sext i32 %share to i64
  %n = sext i32 %shares to i64
  %first = load i64, ptr %first.own, align 8
  %extent = load i64, ptr %extent.own, align 8
  %least = sdiv i64 %extent, %n
  %rest = srem i64 %extent, %n
  %before = mul i64 %least, %k
  %longer = icmp slt i64 %k, %rest
  %longer.before = select i1 %longer, i64 %k, i64 %rest
  %skipped = add i64 %before, %longer.before
  %begin = add i64 %first, %skipped
  %one = zext i1 %longer to i64
  %size = add i64 %least, %one
  store i64 %begin, ptr %first.own, align 8
  store i64 %size, ptr %extent.own, align 8
  call void %f(ptr %own)
  %code = load i32, ptr %own, align 64
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %error, label %done
error:
  store atomic i32 %code, ptr %closure monotonic, align 64
  br label %done
done:
  ret void
}
"""
# Beside an object that is loaded, which nothing links with OpenMP; a module loaded here has its own team of threads.
_ONE_THREAD = """\
define void @GOMP_parallel(ptr %f, ptr %data, i32 %n, i32 %flags) {
  call void %f(ptr %data)
  ret void
}
define i32 @omp_get_thread_num() {
  ret i32 0
}
define i32 @omp_get_num_threads() {
  ret i32 1
}
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C function: its name, its type in C and in LLVM, and a comment for the header."""

    name: str
    c_type: str
    llvm_type: str
    note: str = ""

    @property
    def declared(self) -> str:
        return f"{self.c_type}{'' if self.c_type.endswith('*') else ' '}{self.name}"


@dataclass(frozen=True)
class Function:
    """A saved function: ``name`` in the module, ``symbol`` and parameters in C."""

    name: str
    symbol: str
    func: PrimFunc
    written: frozenset[int]

    @property
    def call(self) -> str:
        """The name, in the module, of the entry that takes an array of argument slots."""
        return own_name(self.name)

    def parameters(self) -> list[Parameter]:
        taken: set[str] = set()
        return [self._parameter(k, var, taken) for k, var in enumerate(slots_of(self.func))]

    def _parameter(self, k: int, var: Var, taken: set[str]) -> Parameter:
        buffer = self.func.buffer_map.get(var)
        name = parameter(var.name if buffer is None else buffer.name, taken)
        taken.add(name)
        if buffer is None:
            return Parameter(name, _c_type(var.dtype), _llvm_type(var.dtype))
        shape = ", ".join(map(repr, buffer.shape))
        strides = f", strides ({', '.join(map(repr, buffer.strides))}) in elements" if buffer.strides else ""
        note = f"{buffer.dtype} ({shape}){strides}, aligned to {buffer_alignment(buffer)} bytes"
        const = "" if k in self.written else "const "
        return Parameter(name, f"{const}{_c_type(buffer.dtype.element)} *", "ptr", note)

    @property
    def result(self) -> Parameter | None:
        """The last parameter of a function that returns a value: the address of the result; None without a value."""
        dtype = self.func.ret_type
        if dtype.code == "void":
            return None
        return Parameter("result", f"{_c_type(dtype)} *", "ptr", f"the {dtype} that the function returns")

    def wrapper(self, prefix: str) -> str:
        """The C function as LLVM assembly: it stores its arguments into slots and calls the entry."""
        slots, count = self.parameters(), len(slots_of(self.func))
        params = [f"{_passed(p.llvm_type, p.c_type)} %a{k}" for k, p in enumerate(slots)]
        lines = [f"  %slots = alloca [{count + 1} x i64], align 8"]
        for k, p in enumerate(slots):
            lines.append(f"  %p{k} = getelementptr inbounds i64, ptr %slots, i64 {k}")
            lines.append(f"  store {p.llvm_type} %a{k}, ptr %p{k}, align 8")
        lines.append(f"  %code = call i32 {symbol(prefix + self.call)}(ptr %slots)")
        if self.result is not None:
            type_ = _llvm_type(self.func.ret_type)
            params.append("ptr %result")
            lines.append(f"  %place = getelementptr inbounds i64, ptr %slots, i64 {count}")
            lines.append(f"  %value = load {type_}, ptr %place, align 8")
            lines.append(f"  store {type_} %value, ptr %result, align 1")
        body = "\n".join([*lines, "  ret i32 %code"])
        return f"define i32 {symbol(self.symbol)}({', '.join(params)}) nounwind {{\n{body}\n}}\n"

    def prototype(self) -> str:
        params = [*self.parameters(), *([self.result] if self.result is not None else [])]
        notes = "".join(f" *   {p.name}: {p.note}\n" for p in params if p.note)
        about = f"/* {' '.join(self.name.split('*/'))}: 0, or the number of a run-time error.\n{notes} */\n"
        return f"{about}int32_t {self.symbol}({', '.join(p.declared for p in params) or 'void'});\n"


def _c_type(dtype: DType) -> str:
    if dtype.is_handle:
        return "void *"
    if dtype.code == "float" and dtype.bits > 16:
        return {32: "float", 64: "double"}[dtype.bits]
    bits = max(8, dtype.bits)
    return f"int{bits}_t" if dtype.code == "int" else f"uint{bits}_t"  # the small floats as their bits


def _llvm_type(dtype: DType) -> str:
    return "i16" if memory_element(dtype) == "half" else memory_element(dtype)


def _passed(type_: str, c_type: str) -> str:
    """A parameter's type in the C calling convention: the caller extends small integers to 32 bits."""
    if type_ in ("i8", "i16"):
        return f"{type_} {'signext' if c_type.startswith('int') else 'zeroext'}"
    return type_


def exported(
    functions: dict[str, Any], stem: str, external: frozenset[str] = frozenset(), defined: tuple[str, ...] = ()
) -> list[Function]:
    """The functions of a module under their C symbols, in a file called ``stem`` that has ``defined`` besides.

    A function has its own name; ``main`` has the file's. Where that is a name of C, C++, the C library or ``external``,
    the functions that the module calls, the name of the file stands before it. Raises ``BuildError`` if it is still
    taken, or the same for two.
    """
    found: dict[str, Function | None] = {}

    def take(wanted: str, function: Function | None) -> None:
        if wanted in found:
            raise BuildError(f"two functions would be called {wanted} in C; {_RENAME}")
        if _is_taken(wanted) or wanted in external:
            raise BuildError(
                f"{wanted} is a name of C, of its library, or of a function that the module calls; {_RENAME}"
            )
        found[wanted] = function

    for name in defined:
        take(name, None)
    for name, function in functions.items():
        own = identifier(function.func.attrs.get("global_symbol", name))
        at = stem if own == "main" else own
        at = f"{stem}_{own}" if _is_taken(at) or at in external else at
        take(at, Function(name, at, function.func, function.written))
    return [function for function in found.values() if function is not None]


_RENAME = 'give the function another name with T.func_attr({"global_symbol": …}), or the file'


def _is_taken(name: str) -> bool:
    """Whether a C program has ``name`` without us: a word of C or C++, or a symbol of the C library."""
    return name == "main" or is_reserved(name) or any(_has(library, name) for library in _c_library())


@functools.cache
def _c_library() -> list[ctypes.CDLL]:
    """The C library and that of mathematics; what this process has, where they have other names."""
    found = []
    for name in ("libc.so.6", "libm.so.6"):
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            found.append(ctypes.CDLL(None))
    return found


def _has(library: ctypes.CDLL, name: str) -> bool:
    try:
        library[name]
    except AttributeError:
        return False
    return True


THREADS = {
    "linked": "parallel loops run on OpenMP's threads if the program links its library, else serially",
    "openmp": "parallel loops run on OpenMP's threads; the program is linked with -fopenmp",
    "serial": "parallel loops run serially",
    "pool": "parallel loops run on the threads of the pool that the program sets, serially without one",
}


def write(
    path: Path, functions: dict[str, Any], program: Any, header: Path | None = None, threads: str = "linked"
) -> None:
    """Write the compiled ``program`` (:class:`codegen.compiled.Compiled`) to ``path``; ``threads`` is one of ``THREADS``.

    Raises ``BuildError`` if the suffix is not in ``SUFFIXES``, linking fails or a file cannot be written.
    """
    if path.suffix not in SUFFIXES:
        raise BuildError(f"cannot save to {path.name!r}: the name must end in .so (shared library) or .o (object)")
    if threads not in THREADS:
        raise BuildError(f"threads={threads!r}: a saved file has {', '.join(map(repr, THREADS))}")
    stem = identifier(path.stem)
    text, saved = _text(functions, program, stem, threads)
    code, kind = object_code(text, program.machine), "object"
    if path.suffix != ".o":
        code, kind = _linked(path.name, code, ["-fopenmp"] * (threads == "openmp")), "library"
    if header is not None:
        container.write_bytes(header, _header(saved, stem, threads).encode())
    container.write(path, kind, code, _about(saved, program, stem))


def _about(saved: list[Function], program: Any, stem: str) -> dict[str, Any]:
    """What :class:`Saved` reads."""
    functions = {f.name: {"script": f.func.script(), "written": sorted(f.written)} for f in saved}
    needs = program.needs
    return {
        "prefix": f"{stem}.",
        "functions": functions,
        "messages": program.messages,
        "packed": program.packed,
        "parallel": program.parallel,
        "needs": [needs.cpu, needs.features, needs.triple],
    }


def _text(functions: dict[str, Any], program: Any, stem: str, threads: str) -> tuple[str, list[Function]]:
    """The program's LLVM assembly with C functions and the texts of its errors, and the C functions. What only the file
    uses has names that begin with ``stem`` and a dot, which no name of C has."""
    text, prefix = program.emit().text, f"{stem}."
    if threads != "serial":
        run = "@__tir_pooled" if threads == "pool" else "@__tir_openmp"
        text = text.replace("@__tir_parallel = global ptr @__tir_serial", f"@__tir_parallel = global ptr {run}")
        # a weak reference alone lets linkers that drop unused libraries drop OpenMP's
        strong = threads == "openmp" and program.parallel
        text += _POOL if threads == "pool" else _OPENMP.replace("extern_weak ", "") if strong else _OPENMP
    text, external = prefixed(text, prefix)
    own = {f"{stem}_error": _errors(program.messages, stem)}
    if threads == "pool":
        own[_set_pool(stem)] = _pool_setter(stem, prefix)
    saved = exported(functions, stem, external, tuple(own))
    return text + "".join(f.wrapper(prefix) for f in saved) + "".join(own.values()), saved


def _set_pool(stem: str) -> str:
    return f"{stem}_set_pool"


def _pool_setter(stem: str, prefix: str) -> str:
    return f"""define void @{_set_pool(stem)}(ptr %pool, ptr %context) nounwind {{
  store ptr %context, ptr {symbol(prefix + "__tir_context")}, align 8
  store ptr %pool, ptr {symbol(prefix + "__tir_pool")}, align 8
  ret void
}}
"""


def _constant(head: str, text: str) -> str:
    data = text.encode() + b"\0"
    return f"{head} [{len(data)} x i8] {byte_string(data)}\n"


def _errors(messages: list[str], stem: str) -> str:
    """``const char *<stem>_error(int32_t)``: the text of a run-time error; null for an unknown number."""
    texts = [_constant(f"@{stem}.message.{k} = private constant", m) for k, m in enumerate(messages)]
    table = f"@{stem}.messages = private constant [{len(messages)} x ptr] "
    table += f"[{', '.join(f'ptr @{stem}.message.{k}' for k in range(len(messages)))}]\n"
    return f"""{"".join(texts)}{table}define ptr @{stem}_error(i32 %code) nounwind {{
  %k = sub i32 %code, 1
  %known = icmp ult i32 %k, {len(messages)}
  br i1 %known, label %text, label %none
text:
  %at = zext i32 %k to i64
  %place = getelementptr inbounds ptr, ptr @{stem}.messages, i64 %at
  %message = load ptr, ptr %place, align 8
  ret ptr %message
none:
  ret ptr null
}}
"""


_POOL_PROTOTYPE = """
/* Sets what runs the parallel loops of this file, while none of its functions runs. For each, pool(context, task, data)
 * calls task(data, share, shares) for every share from 0 to shares - 1, on any threads and in any order, and returns
 * when all calls have. shares is at least 1; the pool chooses it. A null pointer: loops run serially. */
void {}(void (*pool)(void *context, void (*task)(void *data, int32_t share, int32_t shares), void *data),
    void *context);
"""


def _header(saved: list[Function], stem: str, threads: str) -> str:
    guard = f"{stem.upper()}_H"
    functions = "\n".join(f.prototype() for f in saved)
    pool = _POOL_PROTOTYPE.format(_set_pool(stem)) if threads == "pool" else ""
    return f"""#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* threads={threads}: {THREADS[threads]}. */

{functions}
/* The text of a run-time error; a null pointer for 0 and for numbers that are none. */
const char *{stem}_error(int32_t code);
{pool}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _linked(name: str, code: bytes, flags: list[str]) -> bytes:
    """A shared library of an object: linked here if it is one of ELF, that is for Linux, else by a C compiler."""
    if code.startswith(MAGIC):
        return shared_library(code)
    linker = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if linker is None:
        raise BuildError(
            "a shared library for this system is linked by a C compiler, and PATH has none; save to a .o file"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "module.o", Path(folder) / "module.so"
        source.write_bytes(code)
        command = [linker, "-shared", "-o", str(made), str(source), "-lm", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"linking {name} failed: {' '.join(command)}\n{done.stderr.strip()}")
        return made.read_bytes()


class Saved:
    """The loaded code of a file that :func:`write` made, by the names that code in memory has, and its description.
    Raises ``RunError`` for a file that this CPU cannot run, ``BuildError`` for one that cannot be loaded."""

    def __init__(self, file: container.File):
        functions: dict[str, Any] = file.field("functions", dict)
        self.functions = {name: _SavedFunction(**entry) for name, entry in functions.items()}
        self.messages: list[str] = file.field("messages", list)
        self.packed: list[Any] = file.field("packed", list)
        self.parallel: bool = file.field("parallel", bool)
        self._prefix: str = file.field("prefix", str)
        cpu, features, triple = file.field("needs", list)
        self.needs = Needs(cpu, tuple(features), triple)
        refusal = self.needs.refusal()
        if refusal is not None:
            raise RunError(f"{file.name}: {refusal}")
        try:
            as_object = file.kind == "object"
            self._code = Loaded(file.code, machine(), _ONE_THREAD) if as_object else Library(file.code)
        except (OSError, RuntimeError) as error:
            raise BuildError(f"{file.name} is not a library that can be loaded here: {error}") from error
        self._code.release_by(f"{self._prefix}__tir_release")

    def function(self, name: str) -> int:
        return self._code.function(f"{self._prefix}{name}")

    def variable(self, name: str) -> int:
        return self._code.variable(f"{self._prefix}{name}")


@dataclass(frozen=True)
class _SavedFunction:
    """A function of a saved file: its signature as text, the positions of parameters it writes."""

    script: str
    written: list[int]
