"""Verbs that run programs: on random or given arguments, checked, timed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from typing import Any

from ..buffer import Buffer
from ..errors import TirError
from ..expr import IntImm, Var
from ..function import IRModule, PrimFunc
from .programs import is_saved, program_of
from .verbs import PROGRAM, Answer, option, verb

LARGEST = 4 << 30  # bytes of all arguments together

SEED = option("--seed", type=int, default=0, help="of the random arguments (default 0)")
INPUT = option(
    "--input",
    action="append",
    default=[],
    metavar="NAME=VALUE",
    help="an argument: a .npy file or a number; integers also name symbolic sizes. Others are random",
)
ENGINE = option(
    "--target", help="llvm, interpreter, cuda, cuda-sim; the default is cuda-sim for kernels of a GPU, else llvm"
)


@verb(
    "tir run kernels.py:double --check",
    PROGRAM,
    ENGINE,
    INPUT,
    SEED,
    option("--output", action="append", default=[], metavar="NAME=FILE", help="write an argument as .npy afterwards"),
    option("--check", action="store_true", help="compare every argument with the reference executor's"),
)
def run(options: argparse.Namespace) -> Answer:
    """Run a program or a saved module, and print its arguments afterwards."""
    from ..interp.named_arguments import parameter_names

    program, name, engine, call = _callable(options)
    func = program[name]
    args = _arguments(func, options)
    if options.check and is_saved(options.program):
        raise ValueError("a saved module has no program to compare with: leave out --check, or run the program")
    outputs = _outputs(options.output, parameter_names(func))
    wrong = _difference(program, name, engine, call, args) if options.check else None
    if wrong is None:
        call(*args)
    given = dict(zip(parameter_names(func), args))
    if wrong is None:
        for wanted, path in outputs.items():
            _save(path, given[wanted])
    data: dict[str, Any] = {"function": name, "target": engine, "arguments": {k: _summary(v) for k, v in given.items()}}
    if options.check:
        data["same"] = wrong is None
    lines = [f"{k}: {_shown(v)}" for k, v in given.items()] if wrong is None else [wrong]
    if options.check and wrong is None:
        lines.append(f"{engine} and the reference executor agree")
    return Answer("\n".join(lines), data if wrong is None else {**data, "difference": wrong}, wrong is None)


@verb("tir check kernels.py:double", PROGRAM, ENGINE, INPUT, SEED)
def check(options: argparse.Namespace) -> Answer:
    """Check that a program is well formed, that the reference executor finds nothing (bounds, uninitialised reads, races,
    regions of blocks), and that compiled code, or the simulator, computes the same."""
    from ..analysis.wellformed import verify
    from ..interp import run as execute

    if is_saved(options.program):
        raise ValueError("a saved module has no program to check")
    program = IRModule.of(program_of(options.program))
    name = _entry(program)
    args = _arguments(program[name], options)
    engine = options.target or _usual_engine(program)

    def compiled() -> None:
        from ..testing.oracle import assert_same_result

        assert_same_result(program, program, args, [engine], func=name)

    from ..testing.oracle import copied

    checks: dict[str, Callable[[], Any]] = {
        "well formed": lambda: verify(program),
        "executor": lambda: execute(program, *map(copied, args), func=name, regions=True),
        engine: compiled,
    }
    found = {what: _finding(one) for what, one in checks.items()}
    text = "\n".join(
        f"{'ok' if fault is None else 'wrong':5}  {what}{_indented(fault)}" for what, fault in found.items()
    )
    return Answer(text, {"findings": found}, all(fault is None for fault in found.values()))


@verb(
    "tir bench kernels.py:double --repeat 3",
    PROGRAM,
    ENGINE,
    INPUT,
    SEED,
    option("--repeat", type=int, default=5, help="means that are taken (default 5)"),
    option("--number", type=int, default=10, help="calls for each mean (default 10)"),
)
def bench(options: argparse.Namespace) -> Answer:
    """Time a program or a saved module on random arguments: the median of the repeats, and the least."""
    if options.repeat < 1 or options.number < 1:
        raise ValueError(f"--repeat and --number must be at least 1, got {options.repeat} and {options.number}")
    program, name, engine, call = _callable(options)
    args = _arguments(program[name], options)
    from codegen.module import measure

    prepare = getattr(call, "prepared", None)
    timing = measure(prepare(*args) if prepare is not None else lambda: call(*args), options.number, options.repeat)
    data = {"function": name, "target": engine, "seconds": list(timing.results), "median": timing.median}
    return Answer(f"{name} on {engine}: {timing}", data)


# ---------------------------------------------------------------- what is run


def _callable(options: argparse.Namespace) -> tuple[IRModule, str, str, Callable[..., Any]]:
    """A module, the function of it that is run, on what, and that function as one that is called."""
    if is_saved(options.program):
        from codegen.module import load

        program_of(options.program)  # says when there is no file
        module = load(options.program)
        name, engine = module.entry_name, module.target.kind
        return module.ir, name, engine, module[name]
    program = IRModule.of(program_of(options.program))
    name = _entry(program)
    engine = options.target or _usual_engine(program)
    from codegen.build import build

    return program, name, engine, build(program, engine)[name]


def _entry(program: IRModule) -> str:
    if len(program) == 1:
        return next(iter(program))
    if "main" in program:
        return "main"
    raise ValueError(f"the module has the functions {', '.join(program) or 'none'}: say FILE:NAME")


def _usual_engine(program: IRModule) -> str:
    from ..stmt import THREAD_BINDING, For
    from ..visit import walk

    loops = (loop for func in program.functions.values() for loop in walk(func.body) if isinstance(loop, For))
    return "cuda-sim" if any(loop.kind == THREAD_BINDING for loop in loops) else "llvm"


def _difference(program: IRModule, name: str, engine: str, call: Callable[..., Any], args: list[Any]) -> str | None:
    from ..testing.oracle import assert_same_call

    return _finding(lambda: assert_same_call(program, call, args, engine, func=name))


def _finding(one: Callable[[], Any]) -> str | None:
    """What a check finds wrong; None for nothing."""
    try:
        one()
    except (AssertionError, TirError, ValueError) as error:
        return str(error) or type(error).__name__
    return None


def _indented(fault: str | None) -> str:
    return "" if fault is None else "\n" + "\n".join(f"       {line}" for line in fault.splitlines())


# ---------------------------------------------------------------- arguments


def _pairs(items: Iterable[str], flag: str, names: Iterable[str]) -> dict[str, str]:
    """``NAME=VALUE`` by name."""
    known, found = list(names), {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not value:
            raise ValueError(f"{flag} takes NAME=VALUE, not {item!r}")
        if name not in known:
            raise ValueError(f"{flag} {item}: there is no `{name}`; there is {', '.join(known) or 'none'}")
        if name in found:
            raise ValueError(f"{flag}: `{name}` is given twice")
        found[name] = value
    return found


def _arguments(func: PrimFunc, options: argparse.Namespace) -> list[Any]:
    """The arguments of a call: those given, and random ones of the sizes that these determine."""
    from ..interp.arguments import bind_arguments, written_positions
    from ..interp.named_arguments import parameter_names
    from ..testing.oracle import random_inputs, symbolic_sizes

    if options.seed < 0:
        raise ValueError(f"--seed must be at least 0, got {options.seed}")
    names, sizes = parameter_names(func), symbolic_sizes(func)
    texts = _pairs(options.input, "--input", dict.fromkeys([*names, *sizes]))
    given = {name: _value(name, text) for name, text in texts.items()}
    for name in sizes:
        if name in given and not isinstance(given[name], int):
            raise ValueError(f"--input {name}: a size is an integer")
    known = {name: value for name, value in given.items() if isinstance(value, int)}
    for buffer in func.buffer_map.values():
        for size, extent in zip(buffer.shape, getattr(given.get(buffer.name), "shape", ())):
            if isinstance(size, Var):
                known.setdefault(size.name, extent)
    _require_memory(func.buffer_map.values(), known)
    made = random_inputs(func, options.seed, known)
    args = [given.get(name, value) for name, value in zip(names, made)]
    bind_arguments(func, args, written_positions(func))  # pyright: ignore[reportCallIssue]
    return args


def _require_memory(buffers: Iterable[Buffer], sizes: dict[str, int]) -> None:
    total = 0
    for buffer in buffers:
        extents = [s.value if isinstance(s, IntImm) else sizes.get(getattr(s, "name", ""), 9) for s in buffer.shape]
        if min(extents, default=1) < 0:
            raise ValueError(f"`{buffer.name}` would have a negative size: {tuple(extents)}")
        total += math.prod(extents) * buffer.dtype.bits * buffer.dtype.lanes // 8
    if total > LARGEST:
        raise ValueError(
            f"the arguments have {total} bytes, more than {LARGEST}: give smaller sizes by --input NAME=SIZE"
        )


def _value(name: str, text: str) -> Any:
    """A number, or the array in a file; nothing in the file is run."""
    import numpy as np

    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    try:
        found = np.load(text, allow_pickle=False)
    except (EOFError, MemoryError, SyntaxError, TypeError, ValueError) as error:
        raise ValueError(f"--input {name}: {text!r} is no .npy file: {error}") from None
    if not isinstance(found, np.ndarray):
        raise ValueError(f"--input {name}: {text!r} holds several arrays: give one .npy file for each")
    return found


def _outputs(items: list[str], names: list[str]) -> dict[str, str]:
    from pathlib import Path

    from .machine import require_writable

    found = _pairs(items, "--output", names)
    for path in found.values():
        require_writable(Path(path))
    return found


def _save(path: str, value: Any) -> None:
    import numpy as np

    with open(path, "wb") as file:
        np.save(file, value)


def _summary(value: Any) -> Any:
    if not hasattr(value, "shape"):
        return value
    sums = value.astype("float64").sum() if value.dtype.kind in "biuf" else None
    return {"dtype": str(value.dtype), "shape": list(value.shape), "sum": None if sums is None else str(sums)}


def _shown(value: Any) -> str:
    import numpy as np

    if not hasattr(value, "shape"):
        return str(value)
    few = np.array2string(value.ravel(), threshold=8, edgeitems=3, max_line_width=10**6, separator=", ")
    return f"{value.dtype} {tuple(value.shape)} {few}"
