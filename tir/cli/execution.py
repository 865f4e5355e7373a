"""Verbs that run programs and models: on random or given arguments, checked, timed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import tir

from . import models
from .program_files import is_model, is_saved, program_of
from .subjects import (
    ENGINE,
    INPUT,
    INPUTS,
    SEED,
    WEIGHTS,
    ModelSubject,
    arguments_of,
    entry,
    finding,
    given_arguments,
    require_outputs,
    save,
    shown,
    subject_of,
    summary,
)
from .verbs import MODEL, SHAPE, Answer, option, verb


@verb(
    "tir run kernels.py:double --check",
    MODEL,
    ENGINE,
    INPUT,
    INPUTS,
    SHAPE,
    WEIGHTS,
    SEED,
    option("--output", action="append", default=[], metavar="NAME=FILE", help="write a result as .npy afterwards"),
    option("--outputs", metavar="FILE.npz", help="write all results to a file by name"),
    option("--check", action="store_true", help="compare with the reference executor, a model with onnx.reference"),
)
def run(options: argparse.Namespace) -> Answer:
    """Run a program or a saved module, and print its arguments afterwards; of a model, its results."""
    subject = subject_of(options)
    outputs = require_outputs(options.output, subject.results, options.outputs)
    args = subject.arguments(given_arguments(options, subject.takes), options.seed)
    data: dict[str, Any] = {"function": subject.name, "target": subject.engine}
    if options.check:
        wrong = subject.difference(args)
        data["same"] = wrong is None
        if wrong is not None:
            return Answer(wrong, {**data, "difference": wrong}, right=False)
    made = subject.run(args)
    for wanted, path in outputs.items():
        save(path, made[wanted])
    if options.outputs is not None:
        save(options.outputs, made)
    lines = [f"{k}: {shown(v)}" for k, v in made.items()]
    lines += [f"{subject.engine} and {subject.judge} agree"] if options.check else []
    return Answer("\n".join(lines), {**data, subject.gives: {k: summary(v) for k, v in made.items()}})


@verb("tir check kernels.py:double", MODEL, ENGINE, INPUT, INPUTS, SHAPE, SEED)
def check(options: argparse.Namespace) -> Answer:
    """Check that a program is well formed, that the reference executor finds nothing (bounds, uninitialised reads, races,
    regions of blocks), and that compiled code, or the simulator, computes the same. Of a model, that its graph and its
    program are well formed, and that it computes what onnx.reference computes."""
    found = {what: finding(one) for what, one in (_of_model if is_model(options.program) else _of_program)(options)}
    text = "\n".join(
        f"{'ok' if fault is None else 'wrong':5}  {what}{_indented(fault)}" for what, fault in found.items()
    )
    return Answer(text, {"findings": found}, all(fault is None for fault in found.values()))


Checks = list[tuple[str, Callable[[], Any]]]


def _of_program(options: argparse.Namespace) -> Checks:
    from ..analysis.wellformed import verify
    from ..interp import run as execute
    from ..interp.named_arguments import parameter_names
    from ..interp.same_results import copied, symbolic_sizes
    from ..testing.oracle import assert_same_result, usual_engine

    if is_saved(options.program):
        raise ValueError("a saved module has no program to check")
    program = tir.IRModule.of(program_of(options.program))
    name = entry(program)
    names = list(dict.fromkeys([*parameter_names(program[name]), *symbolic_sizes(program[name])]))
    args = arguments_of(program[name], given_arguments(options, names), options.seed)
    engine = options.target or usual_engine(program)
    return [
        ("well formed", lambda: verify(program)),
        ("executor", lambda: execute(program, *map(copied, args), func=name, regions=True)),
        (engine, lambda: assert_same_result(program, program, args, [engine], func=name)),
    ]


def _of_model(options: argparse.Namespace) -> Checks:
    from ..analysis.wellformed import verify

    graph = models.graph_of(options)
    subject = ModelSubject(models.compiled(options, graph), options)
    args = subject.arguments(given_arguments(options, subject.takes), options.seed)
    return [
        ("graph", graph.verify),
        ("well formed", lambda: verify(subject.model.module.ir)),
        (subject.judge, lambda: subject.require_same(args)),
    ]


@verb(
    "tir bench kernels.py:double --repeat 3",
    MODEL,
    ENGINE,
    INPUT,
    INPUTS,
    SHAPE,
    WEIGHTS,
    SEED,
    option("--repeat", type=int, default=5, help="means that are taken (default 5)"),
    option("--number", type=int, default=10, help="calls for each mean (default 10)"),
    option("--kernels", action="store_true", help="of a model, the time of each kernel"),
)
def bench(options: argparse.Namespace) -> Answer:
    """Time a program, a saved module or a model on random arguments: the median of the repeats, and the least."""
    if options.repeat < 1 or options.number < 1:
        raise ValueError(f"--repeat and --number must be at least 1, got {options.repeat} and {options.number}")
    subject = subject_of(options)
    args = subject.arguments(given_arguments(options, subject.takes), options.seed)
    if options.kernels:
        if not is_model(options.program):
            raise ValueError(f"--kernels is for models as they were made, and {options.program} is none")
        found = subject.model.profile(*args, repeat=options.repeat)  # pyright: ignore[reportAttributeAccessIssue]
        return Answer(str(found), found.as_dict())
    timing = subject.timed(args, options.number, options.repeat)
    data = {
        "function": subject.name,
        "target": subject.engine,
        "seconds": list(timing.results),
        "median": timing.median,
    }
    return Answer(f"{subject.name} on {subject.engine}: {timing}", data)


def _indented(fault: str | None) -> str:
    return "" if fault is None else "\n" + "\n".join(f"       {line}" for line in fault.splitlines())
