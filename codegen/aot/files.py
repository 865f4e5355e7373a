"""Objects and shared libraries of compiled modules, and their C headers."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tir.errors import BuildError

from .. import container
from ..c_names import identifier
from ..elf.archive import archive
from ..elf.library import shared_library
from ..elf.objects import MAGIC, filled
from ..llvm.compile import joined, object_code
from ..llvm.cpu_features import Needs
from ..llvm.text import byte_string, own_name
from .argument_checks import TENSOR, checks
from .cmake import cmake_file
from .hooks import PROTOTYPES, setters, with_allocator
from .processors import CPU_PROTOTYPE, Code, choice, cpu_function, parts_of
from .prototypes import exported
from .thread_pools import POOL_PROTOTYPE, THREADS, pool_setter, with_threads

SUFFIXES = (".so", ".o", ".a", ".dylib")


@dataclass(frozen=True)
class Options:
    """How a file is written: the ``header`` and the ``cmake`` file beside it, ``threads`` (one of ``THREADS``), and whether
    calls are checked."""

    header: Path | None = None
    threads: str = "linked"
    checks: bool = False
    cmake: Path | None = None

    @staticmethod
    def of(header: str | Path | None, threads: str, checks: bool, cmake: str | Path | None) -> Options:
        """The options that a call of ``save`` gives."""
        files = (None if path is None else Path(path) for path in (header, cmake))
        return Options(next(files), threads, checks, next(files))


@dataclass(frozen=True)
class Extras:
    """What else a file has: ``held`` are arrays of bytes for the parameters of their names, which the C functions then do not
    take; ``about`` goes into the description, ``sizes`` into the header, as macros."""

    held: Mapping[str, np.ndarray] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def write(path: Path, functions: Mapping[str, Any], code: Code, options: Options, extras: Extras | None = None) -> None:
    """Write ``code`` to ``path``.

    Raises ``BuildError`` if the suffix is not in ``SUFFIXES``, linking fails or a file cannot be written.
    """
    if path.suffix not in SUFFIXES:
        raise BuildError(
            f"cannot save to {path.name!r}: the name must end in .so (shared library), .o (object) or .a (archive)"
        )
    if options.threads not in THREADS:
        raise BuildError(f"threads={options.threads!r}: a saved file has {', '.join(map(repr, THREADS))}")
    stem, extras = identifier(path.stem), extras or Extras()
    made = _Made(functions, code, stem, options, extras)
    data, kind = object_code(made.text, code.least), "object"
    if extras.held:
        data = filled(data, {_place(stem, name): array.data for name, array in extras.held.items()})
    if path.suffix not in (".o", ".a"):
        data, kind = _linked(path.name, data, ["-fopenmp"] * (options.threads == "openmp")), "library"
    if options.header is not None:
        container.write_bytes(options.header, made.header().encode())
    if options.cmake is not None:
        needs = options.threads == "openmp" and code.parallel
        text = cmake_file(stem, options.cmake, path, options.header, needs)
        container.write_bytes(options.cmake, text.encode())
    about = {**made.about(), **extras.about}
    if path.suffix == ".a":
        container.write_bytes(path, archive(f"{path.stem}.o", container.sealed_with(kind, data, about)))
    else:
        container.write(path, kind, data, about)


def _place(stem: str, name: str) -> str:
    """The symbol of what a file holds for the parameter ``name``."""
    return f"{stem}.{name}"


def _undefined(places: Mapping[str, int]) -> str:
    """The symbols of held bytes, and the sections that they are put into when the object is there: they never are text."""
    if not places:
        return ""
    kept = ", ".join(f"ptr @{place}.section" for place in places)
    text = f'@llvm.compiler.used = appending global [{len(places)} x ptr] [{kept}], section "llvm.metadata"\n'
    for place, size in places.items():
        text += f"@{place} = external constant [{size} x i8], align 64\n"
        text += f'@{place}.section = internal constant i8 0, section ".rodata.{place}", align 64\n'
    return text


class _Made:
    """A file called ``stem``: its LLVM assembly, its C functions, and its description. What only the file uses has names
    that begin with ``stem`` and a dot, which no name of C has."""

    def __init__(self, functions: Mapping[str, Any], code: Code, stem: str, options: Options, extras: Extras):
        self.sizes = extras.sizes
        self.code, self.stem, self.options, prefix = code, stem, options, f"{stem}."
        self.messages = list(code.messages)
        texts, prefixes = zip(*parts_of(code, prefix))
        first, *others = with_allocator(list(texts))
        parts = [with_threads(first, options.threads, code.parallel), *others]
        if options.checks:
            parts, prefixes = [*parts, checks(functions, code.least, self.messages, extras.held)], (*prefixes, prefix)
        text, external = joined(list(zip(parts, prefixes)), prefix)
        own = setters(stem, prefix, "define void @__tir_release(" in first)
        self.prototypes = PROTOTYPES.format(stem)
        if options.threads == "pool":
            own[f"{stem}_set_pool"] = pool_setter(f"{stem}_set_pool", prefix)
            self.prototypes += POOL_PROTOTYPE.format(f"{stem}_set_pool")
        if len(code.parts) > 1:
            self.messages.append(f"this processor has not what {code.least.cpu} has, the least that the code is for")
            text += choice(code, [own_name(name) for name in functions], prefix, len(self.messages))
            own[f"{stem}_cpu"] = cpu_function(code, f"{stem}_cpu", prefix)
            self.prototypes += CPU_PROTOTYPE.format(f"{stem}_cpu")
        own[f"{stem}_error"] = _errors(self.messages, stem)
        self.tensor = f"{stem}_tensor" if options.checks else None
        taken = (*own, self.tensor) if self.tensor is not None else tuple(own)
        held = {name: _place(stem, name) for name in extras.held}
        self.functions = [f.with_held(held) for f in exported(functions, stem, external, taken, options.checks)]
        text += _undefined({held[name]: array.nbytes for name, array in extras.held.items()})
        wrappers = "".join(f.wrapper(prefix, options.checks) for f in self.functions)
        if options.checks:
            wrappers += "".join(f.handler(f"{stem}_error") for f in self.functions)
        self.text = text + wrappers + "".join(own.values())

    def about(self) -> dict[str, Any]:
        """What :class:`Saved` reads."""
        needs = Needs.of(self.code.least)
        return {
            "prefix": f"{self.stem}.",
            "functions": {f.name: {"script": f.func.script(), "written": sorted(f.written)} for f in self.functions},
            "messages": self.messages,
            "packed": self.code.packed,
            "parallel": self.code.parallel,
            "needs": [needs.cpu, needs.features, needs.triple],
        }

    def header(self) -> str:
        stem, threads = self.stem, self.options.threads
        guard = f"{stem.upper()}_H"
        functions = "\n".join(f.prototype(self.tensor) for f in self.functions)
        sizes = "".join(f"#define {stem.upper()}_{name} {size}\n" for name, size in self.sizes.items())
        tensor = TENSOR.format(self.tensor) if self.tensor is not None else ""
        return f"""#ifndef {guard}
#define {guard}

#include <stddef.h>
#include <stdint.h>
{sizes}
#ifdef __cplusplus
extern "C" {{
#endif

/* threads={threads}: {THREADS[threads]}. */
{tensor}
{functions}
/* The text of a run-time error; a null pointer for 0 and for numbers that are none. */
const char *{stem}_error(int32_t code);
{self.prototypes}
#ifdef __cplusplus
}}
#endif

#endif
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
