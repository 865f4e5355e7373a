"""``tir`` on the command line (``python -m tir`` where the script is not installed)."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .command import answered
from .errors import TirError
from .function import IRModule, PrimFunc

DESCRIPTION = """What this machine can do, and what becomes of the programs in a file. FILE is a Python file, which is run;
FILE:NAME is the program, module or schedule of that name in it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. Errors of the package are printed without a traceback.

    >>> main(["show", "nowhere.py"])
    1
    """
    options = _parser().parse_args(arguments)
    return answered(lambda: print(options.run(options)), failed=1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tir", description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("doctor", help="what this machine can do").set_defaults(run=_doctor)
    for name, run, about in (
        ("show", _show, "print the program"),
        ("tree", _tree, "print its loop nest, with the bytes that each loop touches"),
        ("lower", _lower, "print it lowered"),
        ("source", _source, "print the generated source"),
        ("build", _build, "compile it into a file that tir.load and C read"),
    ):
        command = commands.add_parser(name, help=about, description=DESCRIPTION)
        command.add_argument("program", metavar="FILE[:NAME]")
        command.set_defaults(run=run)
        if run in (_lower, _source, _build):
            command.add_argument(
                "--target", default="llvm", help="llvm (default), cuda, with options as in 'llvm -mcpu=…'"
            )
        if run is _lower:
            command.add_argument("--upto", metavar="PASS", help="the last pass to run")
        if run is _source:
            command.add_argument("--kind", help="llvm, llvm-opt, asm, cuda or ptx; the first that the target has")
        if run is _build:
            command.add_argument("-o", "--output", required=True, help="a .so or .o; for CUDA a .zip")
            command.add_argument("--header", help="also write a C header here (llvm)")
    return parser


def programs(path: str) -> dict[str, PrimFunc | IRModule]:
    """The functions, modules and schedules that a Python file defines, by name. It is run, though not as ``__main__``."""
    from .schedule import Schedule

    if not Path(path).is_file():
        raise ValueError(f"no file {path!r}")
    try:
        names = runpy.run_path(path)
    except TirError:
        raise
    except (Exception, SystemExit) as error:  # whatever the file raises
        raise TirError(f"{_place(error, path)}: {type(error).__name__}: {error}") from error
    found = {name: value.mod if isinstance(value, Schedule) else value for name, value in names.items()}
    return {name: value for name, value in found.items() if isinstance(value, (PrimFunc, IRModule))}


def _place(error: BaseException, path: str) -> str:
    """The file and the last line of it that led to an error."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{path}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"{path}:{lines[-1]}" if lines else path


def _program(options: Any) -> PrimFunc | IRModule:
    path, colon, name = options.program.rpartition(":")
    path, name = (path, name) if colon and path else (options.program, "")
    found = programs(path)
    if name in found:
        return found[name]
    if not name and len(found) == 1:
        return next(iter(found.values()))
    what = f"no program `{name}`" if name else f"{len(found)} programs"
    raise ValueError(f"{what} in {path}; say one of {', '.join(f'{path}:{n}' for n in found) or 'none'}")


def _doctor(options: Any) -> Any:
    from codegen.doctor import doctor

    return doctor()


def _show(options: Any) -> str:
    return _program(options).script()


def _tree(options: Any) -> Any:
    from .schedule import Schedule

    return Schedule(_program(options)).loop_tree()


def _lower(options: Any) -> str:
    from codegen.build import machine_of

    from .target import Target
    from .transform import lower

    target = Target.of(options.target)
    if target.kind == "llvm":
        machine_of(target)  # a processor that there is
    return lower(_program(options), upto=options.upto, target=target).script()


def _source(options: Any) -> str:
    module = _built(options)
    return str(module.source(options.kind or module.source_kinds[0]))


def _build(options: Any) -> str:
    written = [path for path in (options.output, options.header) if path is not None]
    for path in written:
        _require_writable(Path(path))
    module = _built(options)
    if options.header is not None and module.target.kind != "llvm":
        raise ValueError(f"only modules for llvm have a C header, not those for {module.target.kind}")
    module.save(*written)
    return f"wrote {', '.join(written)}"


def _require_writable(path: Path) -> None:
    """Raise ``OSError`` for a file that cannot be written, before anything is built for it."""
    place = path if path.exists() else path.parent
    if path.is_dir():
        raise OSError(f"cannot write {str(path)!r}: it is a folder")
    if not place.exists():
        raise OSError(f"cannot write {str(path)!r}: there is no folder {str(place)!r}")
    if not os.access(place, os.W_OK):
        raise OSError(f"cannot write {str(path)!r}: permission denied")


def _built(options: Any) -> Any:
    from codegen.build import build

    return build(_program(options), options.target)


if __name__ == "__main__":
    sys.exit(main())
