"""Verbs that write files, and that look at the machine."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from . import models
from .program_files import is_model, program_of
from .verbs import MODEL, SHAPE, VERBS, Answer, option, verb

_SOURCES = {".ll": "llvm-opt", ".s": "asm", ".cu": "cuda", ".ptx": "ptx"}  # what is a text that a module has
_OF_GPUS = (".cu", ".ptx", ".zip", ".c")


@verb(
    "tir build kernels.py:double -o double.o --header double.h",
    MODEL,
    option("-o", "--output", required=True, help=".so or .o, .a, .ll or .s; for CUDA .zip, .c, .cu or .ptx"),
    option("--target", help="with options as in 'llvm -mcpu=…'; the default is that of the output, llvm or cuda"),
    option("--header", help="also write a C header here (llvm)"),
    option("--cmake", metavar="FILE", help="also write the target of CMake here (llvm)"),
    option("--weights", metavar="FILE", help="of a model: write its weights here, and not into the output"),
    option(
        "--threads", choices=["linked", "openmp", "pool", "serial"], help="whose threads parallel loops run on (llvm)"
    ),
    option("--levels", metavar="CPU,CPU…", help="code for several processors, as x86-64-v2,x86-64-v4 (llvm)"),
    option("--checks", action="store_true", default=None, help="functions check what C gives them (llvm)"),
    SHAPE,
)
def build(options: argparse.Namespace) -> Answer:
    """Compile it: into a .so, .o or .zip that tir.load and C read, an archive, or a text of the code."""
    files = {name: getattr(options, name) for name in ("header", "cmake", "weights")}
    levels = None if options.levels is None else options.levels.split(",")
    ways = {"threads": options.threads, "levels": levels, "checks": options.checks}
    named = {name: given for name, given in {**files, **ways}.items() if given is not None}
    written = [options.output, *(named[name] for name in files if name in named)]
    for path in written:
        require_writable(Path(path))
    output = Path(options.output)
    if output.suffix in _SOURCES and named:
        raise ValueError(f"--{next(iter(named))} is for what C links, a .so, .o or .a, not for a {output.suffix}")
    made = _compiled(options, output)
    if made.module.target.kind != "llvm":
        for name in named:
            if name != "header" or output.suffix != ".c":
                raise ValueError(f"only modules for llvm have --{name}, not those for {made.module.target.kind}")
    if output.suffix in _SOURCES:
        output.write_text(str(made.module.source(_SOURCES[output.suffix])), encoding="utf-8")
    else:
        made.save(options.output, **named)
    return Answer(f"wrote {', '.join(written)}", {"written": written})


class _Compiled(NamedTuple):
    """A module, and what saves it, or the model that it is of."""

    module: Any
    save: Callable[..., None]


def _compiled(options: argparse.Namespace, output: Path) -> _Compiled:
    options.target = options.target or ("cuda" if output.suffix in _OF_GPUS else "llvm")
    if is_model(options.program):
        model = models.compiled(options)
        return _Compiled(model.module, model.save)
    if options.weights is not None or options.shape:
        raise ValueError(f"{options.program} is no model: it has no weights and no shapes")
    from codegen.build import build as compiled

    module = compiled(program_of(options.program), options.target)
    return _Compiled(module, module.save)


def require_writable(path: Path) -> None:
    """Raise ``OSError`` for a file that cannot be written, before anything is built for it."""
    place = path if path.exists() else path.parent
    if path.is_dir():
        raise OSError(f"cannot write {str(path)!r}: it is a folder")
    if not place.exists():
        raise OSError(f"cannot write {str(path)!r}: there is no folder {str(place)!r}")
    if not os.access(place, os.W_OK):
        raise OSError(f"cannot write {str(path)!r}: permission denied")


@verb("tir cache", option("--clear", action="store_true", help="delete the files"))
def cache(options: argparse.Namespace) -> Answer:
    """Print where compiled programs are kept, and how much that is."""
    from ..config import cache_folder

    folder = cache_folder()
    if folder is None:
        return Answer("no folder for a cache is known (TIR_CACHE_DIR sets one)", {"folder": None})
    files = [path for path in folder.glob("v*/??/*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    if options.clear:
        for path in files:
            path.unlink(missing_ok=True)
    text = f"{folder}: {'deleted ' if options.clear else ''}{len(files)} files, {size / 1e6:.1f} MB"
    return Answer(text, {"folder": str(folder), "files": len(files), "bytes": size, "cleared": options.clear})


@verb("tir doctor")
def doctor(options: argparse.Namespace) -> Answer:
    """Print what this machine can do."""
    from codegen.diagnosis import doctor as diagnosis

    found = diagnosis()
    return Answer(str(found), {line.what: {"ok": line.ok, "text": line.text} for line in found.lines})


@verb("tir completion bash", option("shell", choices=["bash", "zsh"], help="the shell that is to complete"))
def completion(options: argparse.Namespace) -> Answer:
    """Print what makes a shell complete verbs and files: eval "$(tir completion bash)"."""
    start = "autoload -Uz bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
    return Answer(f"{start}complete -o default -W '{' '.join(VERBS)}' tir")
