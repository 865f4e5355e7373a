"""What a verb runs: a program, a saved module, or a model; its arguments, given or random; what it gives."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import tir

from ..errors import TirError
from . import models
from .program_files import is_model, is_saved, program_of
from .verbs import option

if TYPE_CHECKING:
    from codegen.module import Module, Timing

LARGEST = 4 << 30  # bytes of all arguments together

SEED = option("--seed", type=int, default=0, help="of the random arguments (default 0)")
INPUT = option(
    "--input",
    action="append",
    default=[],
    metavar="NAME=VALUE",
    help="an argument: a .npy file or a number; integers also name symbolic sizes. Others are random",
)
INPUTS = option("--inputs", metavar="FILE.npz", help="a file of arguments by name")
WEIGHTS = option("--weights", metavar="FILE", help="of a saved model, the file of its weights, if it was moved")
ENGINE = option(
    "--target", help="llvm, interpreter, cuda, cuda-sim; the default is cuda-sim for kernels of a GPU, else llvm"
)


_NOTHING_TO_COMPARE = "a saved file has no program to compare with: leave out --check, or run the program"


class Subject(Protocol):
    """What is run. ``arguments`` are made of those given by name, ``run`` gives arrays by name: ``gives`` says what they
    are, ``results`` how they are called."""

    name: str
    engine: str
    gives: str
    judge: str
    takes: list[str]
    results: list[str]

    def arguments(self, given: Mapping[str, Any], seed: int) -> list[Any]: ...

    def run(self, args: list[Any]) -> dict[str, Any]: ...

    def timed(self, args: list[Any], number: int, repeat: int) -> Timing: ...

    def difference(self, args: list[Any]) -> str | None: ...


def subject_of(options: argparse.Namespace) -> Subject:
    """What ``options.program`` names, compiled for ``options.target``."""
    if is_model(options.program):
        return ModelSubject(models.compiled(options), options)
    if is_saved(options.program):
        from ..graph import Model
        from ..saved import load

        module = load(options.program, options.weights)
        if isinstance(module, Model):
            return ModelSubject(module, options)
        name, engine = module.entry_name, module.target.kind
        return ProgramSubject(module, name, engine, is_saved=True)
    program = tir.IRModule.of(program_of(options.program))
    name = entry(program)
    from codegen.build import build

    from ..testing.oracle import usual_engine

    engine = options.target or usual_engine(program)

    return ProgramSubject(build(program, engine), name, engine)


class ProgramSubject:
    """A function of a module; what it gives are its arguments afterwards."""

    gives = "arguments"
    judge = "the reference executor"

    def __init__(self, module: Module, name: str, engine: str, is_saved: bool = False):
        from ..interp.named_arguments import parameter_names
        from ..interp.same_results import symbolic_sizes

        program = module.ir
        self.name, self.engine = name, engine
        self.results = parameter_names(program[name])
        self.takes = list(dict.fromkeys([*self.results, *symbolic_sizes(program[name])]))
        self._program, self._module, self._is_saved = program, module, is_saved

    def arguments(self, given: Mapping[str, Any], seed: int) -> list[Any]:
        return arguments_of(self._program[self.name], given, seed)

    def run(self, args: list[Any]) -> dict[str, Any]:
        self._module[self.name].on_copies(*args)
        return dict(zip(self.results, args))

    def timed(self, args: list[Any], number: int, repeat: int) -> Timing:
        held = self._module[self.name].copies(args)
        return self._module.time_evaluator(self.name, number=number, repeat=repeat)(*held)

    def difference(self, args: list[Any]) -> str | None:
        from ..testing.oracle import assert_same_call

        if self._is_saved:
            raise ValueError(_NOTHING_TO_COMPARE)
        call = self._module[self.name].on_copies
        return finding(lambda: assert_same_call(self._program, call, args, self.engine, func=self.name))


class ModelSubject:
    """A compiled model."""

    gives = "results"
    judge = "onnx.reference"

    def __init__(self, model: Any, options: argparse.Namespace):
        self.name, self.engine = options.program, str(model.module.target.kind)
        self.takes = [p.name for p in model.inputs]
        self.results = [p.name for p in model.outputs]
        self.model = model
        self._shapes = models.shapes_of(options.shape)

    def arguments(self, given: Mapping[str, Any], seed: int) -> list[Any]:
        return models.arguments(self.model.inputs, given, seed, self._shapes)

    def run(self, args: list[Any]) -> dict[str, Any]:
        made = self.model(*args)
        return dict(zip(self.results, made if isinstance(made, tuple) else (made,)))

    def timed(self, args: list[Any], number: int, repeat: int) -> Timing:
        from codegen.module import measure

        return measure(lambda: self.model(*args), number, repeat)

    def difference(self, args: list[Any]) -> str | None:
        if not is_model(self.name):
            raise ValueError(_NOTHING_TO_COMPARE)
        return finding(lambda: self.require_same(args))

    def require_same(self, args: list[Any]) -> None:
        """Raise ``AssertionError`` unless the results are those of onnx.reference."""
        models.assert_as_reference(self.name, self.takes, args, self.run(args))


def entry(program: tir.IRModule) -> str:
    """The name of the function that is run."""
    if len(program) == 1:
        return next(iter(program))
    if "main" in program:
        return "main"
    raise ValueError(f"the module has the functions {', '.join(program) or 'none'}: say FILE:NAME")


def finding(one: Callable[[], Any]) -> str | None:
    """What a check finds wrong; None for nothing."""
    try:
        one()
    except (AssertionError, TirError, ValueError) as error:
        return str(error) or type(error).__name__
    return None


# ---------------------------------------------------------------- arguments


def pairs(items: Iterable[str], flag: str, names: Iterable[str]) -> dict[str, str]:
    """``NAME=VALUE`` by name."""
    known, found = list(names), {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not value:
            raise ValueError(f"{flag} takes NAME=VALUE, not {item!r}")
        _require_known(name, known, f"{flag} {item}")
        if name in found:
            raise ValueError(f"{flag}: `{name}` is given twice")
        found[name] = value
    return found


def _require_known(name: str, known: list[str], where: str) -> None:
    if name not in known:
        raise ValueError(f"{where}: there is no `{name}`; there is {', '.join(known) or 'none'}")


def given_arguments(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """The arguments that the options give, by name."""
    if options.seed < 0:
        raise ValueError(f"--seed must be at least 0, got {options.seed}")
    given = {name: _value(name, text) for name, text in pairs(options.input, "--input", names).items()}
    for name, array in (archive(options.inputs, names) if options.inputs is not None else {}).items():
        if name in given:
            raise ValueError(f"`{name}` is given twice, by --input and in {options.inputs}")
        given[name] = array
    return given


def arguments_of(func: tir.PrimFunc, given: Mapping[str, Any], seed: int) -> list[Any]:
    """The arguments of a call: those given, and random ones of the sizes that these determine."""
    from ..interp.arguments import bind_arguments, written_positions
    from ..interp.named_arguments import parameter_names
    from ..interp.same_results import symbolic_sizes
    from ..testing.oracle import random_inputs

    for name in symbolic_sizes(func):
        if name in given and not isinstance(given[name], int):
            raise ValueError(f"--input {name}: a size is an integer")
    known = {name: value for name, value in given.items() if isinstance(value, int)}
    for buffer in func.buffer_map.values():
        for size, extent in zip(buffer.shape, getattr(given.get(buffer.name), "shape", ())):
            if isinstance(size, tir.Var):
                known.setdefault(size.name, extent)
    _require_memory(func.buffer_map.values(), known)
    made = random_inputs(func, seed, known)
    args = [given.get(name, value) for name, value in zip(parameter_names(func), made)]
    bind_arguments(func, args, written_positions(func))  # pyright: ignore[reportCallIssue]
    return args


def _require_memory(buffers: Iterable[tir.Buffer], sizes: dict[str, int]) -> None:
    total = 0
    for buffer in buffers:
        extents = [s.value if isinstance(s, tir.IntImm) else sizes.get(getattr(s, "name", ""), 9) for s in buffer.shape]
        if any(extent < 0 for extent in extents):
            raise ValueError(f"`{buffer.name}` would have a negative size: {tuple(extents)}")
        total += math.prod(extents) * buffer.dtype.bits * buffer.dtype.lanes // 8
    if total > LARGEST:
        raise ValueError(
            f"the arguments have {total} bytes, more than {LARGEST}: give smaller sizes by --input NAME=SIZE"
        )


def _faults() -> tuple[type[Exception], ...]:
    """What np.load raises for a file that has no arrays."""
    import zipfile

    return EOFError, MemoryError, SyntaxError, TypeError, ValueError, zipfile.BadZipFile


def _value(name: str, text: str) -> Any:
    """A number, or the array in a file; nothing in the file is run."""
    import numpy as np

    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    try:
        with open(text, "rb") as file:  # np.load leaves a damaged one open
            found = np.load(file, allow_pickle=False)
    except _faults() as error:
        raise ValueError(f"--input {name}: {text!r} is no .npy file: {error}") from None
    if not isinstance(found, np.ndarray):
        raise ValueError(f"--input {name}: {text!r} holds several arrays: give it as --inputs")
    return found


def archive(path: str, names: list[str]) -> dict[str, Any]:
    """The arrays in a .npz file by name, which is one of ``names``; nothing in the file is run."""
    import zipfile

    import numpy as np

    try:
        with zipfile.ZipFile(path) as file:
            size = sum(member.file_size for member in file.infolist())
        if size > LARGEST:
            raise ValueError(f"it has {size} bytes, more than {LARGEST}")
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except _faults() as error:
        raise ValueError(f"--inputs: {path!r} is no .npz file: {error}") from None
    for name in found:
        _require_known(name, names, f"--inputs {path}")
    return found


# ---------------------------------------------------------------- what it gives


def require_outputs(items: list[str], names: list[str], archive: str | None) -> dict[str, str]:
    """The files for results by name. Raises ``OSError`` for one that cannot be written."""
    from pathlib import Path

    from .file_verbs import require_writable

    found = pairs(items, "--output", names)
    for path in (*found.values(), *([archive] if archive is not None else [])):
        require_writable(Path(path))
    return found


def save(path: str, value: Any) -> None:
    """Write an array as .npy, or arrays by name as .npz."""
    import numpy as np

    with open(path, "wb") as file:
        np.savez(file, **value) if isinstance(value, dict) else np.save(file, value)


def summary(value: Any) -> Any:
    """An argument as data for ``--json``."""
    if not hasattr(value, "shape"):
        return value
    sums = value.astype("float64").sum() if value.dtype.kind in "biuf" else None
    return {"dtype": str(value.dtype), "shape": list(value.shape), "sum": None if sums is None else str(sums)}


def shown(value: Any) -> str:
    """An argument in one line."""
    import numpy as np

    if not hasattr(value, "shape"):
        return str(value)
    few = np.array2string(value.ravel(), threshold=8, edgeitems=3, max_line_width=10**6, separator=", ")
    return f"{value.dtype} {tuple(value.shape)} {few}"
