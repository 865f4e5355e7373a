"""Programs from files: texts as data, Python files by running them, saved modules by loading them, models by compiling
them."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import tir

from ..errors import ParseError, TirError

if TYPE_CHECKING:
    from ..schedule import Schedule

LONGEST = 64 << 20  # characters of a text that is read
SAVED = (".so", ".o", ".zip")
MODELS = (".onnx",)
_CALL = re.compile(r"(.+?\.py):(\w+\(.*\))", re.DOTALL)  # a file and a call
_PROGRAM = re.compile(r"\b(PrimFunc|IRModule|Schedule)\b")


class FileError(TirError):
    """What a user's Python file raised; ``frames`` are the lines of that file that led to it."""

    def __init__(self, path: str, error: BaseException):
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        self.frames = [f"{path}:{f.lineno}: {f.line}" for f in frames]
        line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else None
        line = frames[-1].lineno if line is None and frames else line
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {type(error).__name__}: {error}")


def program_of(spec: str) -> tir.PrimFunc | tir.IRModule:
    """The program that ``FILE[:NAME]`` names, or ``FILE:CALL`` makes: of a schedule, what it made; of a saved module, its signatures. Raises
    ``ValueError`` unless it is one, and what reading the file raises.

    >>> program_of("nowhere.tir")
    Traceback (most recent call last):
    ValueError: no file 'nowhere.tir'
    """
    found = named(spec)
    return found if isinstance(found, (tir.PrimFunc, tir.IRModule)) else found.mod


def named(spec: str) -> tir.PrimFunc | tir.IRModule | Schedule:
    """As :func:`program_of`, but a schedule is given as it is."""
    path, name = _split(spec)
    if name.endswith(")"):
        return _made(path, name)
    found = _read(path)
    if name in found:
        return found[name]
    if len(found) == 1 and (not name or _function(found, name) is not None):
        return _function(found, name) if name else next(iter(found.values()))  # pyright: ignore[reportReturnType]
    what = f"no program `{name}`" if name else f"{len(found)} programs"
    choices = [f"{path}:{n}" for n in found] or (_makers(path) if path.endswith(".py") else [])
    if not choices:
        raise ValueError(f"no program in {path}")
    raise ValueError(f"{what} in {path}; give one of {', '.join(choices)}")


def scheduled(spec: str, target: Any = None) -> Schedule:
    """The schedule that ``FILE[:NAME]`` names, or one of the program. Raises ``ValueError`` for a model, whose kernels have schedules."""
    from ..schedule import Schedule

    if is_model(spec):
        raise ValueError(
            f"{spec} is a model: compiling it schedules its kernels, which `show --fused` and `bench --kernels` print"
        )
    found = named(spec)
    return found if isinstance(found, Schedule) else Schedule(found, target=target)


def _made(path: str, text: str) -> tir.PrimFunc | tir.IRModule | Schedule:
    """What a function of a Python file makes, called with literals: a program or a schedule, or the last of several."""
    from ..schedule import Schedule

    try:
        call: Any = ast.parse(text, mode="eval").body
        args = [ast.literal_eval(a) for a in call.args]
        name, keywords = call.func.id, {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, AttributeError):
        raise ValueError(f"`{text}` is no call with numbers, strings and lists of them") from None
    made = _names(path).get(name)
    if not callable(made):
        raise ValueError(f"no function `{name}` in {path}")
    found = _from_file(path, lambda: made(*args, **keywords))
    found = found[-1] if isinstance(found, tuple) and found else found
    if not isinstance(found, (tir.PrimFunc, tir.IRModule, Schedule)):
        raise ValueError(f"{text} of {path} makes no program, but a value of type {type(found).__name__}")
    return found


def _makers(path: str) -> list[str]:
    """The functions of a Python file that say that they make programs, as calls."""
    functions = {n: f for n, f in _names(path).items() if isinstance(f, FunctionType) and f.__module__ == "<run_path>"}
    return [
        f"{path}:{name}({', '.join(inspect.signature(f).parameters)})"
        for name, f in functions.items()
        if _PROGRAM.search(str(f.__annotations__.get("return", "")))
    ]


def is_saved(spec: str) -> bool:
    """Whether a file is a saved module, by its name."""
    return spec.endswith(SAVED)


def is_model(spec: str) -> bool:
    """Whether a file is a model, by its name."""
    return spec.endswith(MODELS)


def require_file(path: str) -> None:
    """Raise ``ValueError`` unless there is a file."""
    if not _is_file(path):
        raise ValueError(f"no file {path!r}")


def read_text(path: str) -> str:
    """The text of a file, or of standard input for ``-``. Raises ``ValueError`` for what is no text, or too long."""
    if path == "-" and sys.stdin is None:  # as Python has it where a shell closed it
        raise ValueError("standard input is closed")
    try:
        if path == "-":
            text = sys.stdin.read(LONGEST + 1)
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read(LONGEST + 1)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from None
    if len(text) > LONGEST:
        raise ValueError(f"{path} is longer than {LONGEST >> 20} million characters")
    return text


def _split(spec: str) -> tuple[str, str]:
    if call := _CALL.fullmatch(spec):
        return call[1], call[2]
    path, colon, name = spec.rpartition(":")
    return (path, name) if colon and path else (spec, "")


def _function(found: dict[str, Any], name: str) -> tir.PrimFunc | None:
    """A function of the only module there is."""
    (only,) = found.values()
    return only.functions.get(name) if isinstance(only, tir.IRModule) else None


def _read(path: str) -> dict[str, Any]:
    if path != "-":
        require_file(path)
    if path.endswith(MODELS):
        from ..graph import compile_graph
        from ..importers.onnx import from_onnx

        return {"": compile_graph(from_onnx(path)).module.ir}
    if path.endswith(SAVED):
        from codegen.module import load

        return {"": load(path).ir}
    if path.endswith(".py"):
        return _run(path)
    from ..script import programs_in

    return programs_in(read_text(path), "<stdin>" if path == "-" else path)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # a name that is too long, or no name at all
        return False


def _run(path: str) -> dict[str, Any]:
    """The programs and schedules that a Python file defines."""
    from ..schedule import Schedule

    found = _names(path)
    return {name: value for name, value in found.items() if isinstance(value, (tir.PrimFunc, tir.IRModule, Schedule))}


def _names(path: str) -> dict[str, Any]:
    """What a Python file defines. It is run, though not as ``__main__``."""
    require_file(path)
    return _from_file(path, lambda: runpy.run_path(path))


def _from_file(path: str, run: Callable[[], Any]) -> Any:
    """What ``run`` returns, which runs a user's file."""
    try:
        return run()
    except ParseError:
        raise  # it says its place
    except (Exception, SystemExit) as error:  # whatever the file raises
        raise FileError(path, error) from error
