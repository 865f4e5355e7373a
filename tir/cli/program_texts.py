"""Verbs that print programs: as they are, lowered, changed by passes or steps, side by side, and as code."""

from __future__ import annotations

import argparse
import json
from typing import Any

import tir

from . import models
from .program_files import is_model, named, program_of, read_text, scheduled
from .verbs import MODEL, PROGRAM, SHAPE, TARGET, Answer, option, verb

UPTO = option("--upto", metavar="PASS", help="the last pass of the target's pipeline to run")

STEPS = option(
    "--trace", metavar="STEPS", help="steps to take first: JSON of show --trace, or Python as a trace prints"
)


def _program(program: tir.PrimFunc | tir.IRModule) -> Answer:
    text = program.script()
    return Answer(text, {"program": text, "functions": list(tir.IRModule.of(program))})


@verb(
    "tir show kernels.py:double",
    MODEL,
    option("--trace", action="store_true", help="of a schedule, its steps, as opt --trace reads them"),
    option("--graph", action="store_true", help="of a model, its graph of operators"),
    option("--fused", action="store_true", help="of a model, its kernels: what runs together, and the bytes it moves"),
    SHAPE,
)
def show(options: argparse.Namespace) -> Answer:
    """Print the program as a text that is read back; of a model, that of all its kernels, or its graph."""
    if options.graph + options.fused + options.trace > 1:
        raise ValueError("--graph, --fused and --trace are three texts: give one")
    if options.graph or options.fused or options.shape:
        return _model(options)
    if not options.trace:
        return _program(program_of(options.program))
    found = named(options.program)
    if isinstance(found, (tir.PrimFunc, tir.IRModule)):
        raise ValueError(f"{options.program} is a program, not a schedule: it has no steps")
    steps = found.trace.as_json()
    return Answer(json.dumps(steps, indent=1), {"trace": steps})


def _model(options: argparse.Namespace) -> Answer:
    if not is_model(options.program):
        raise ValueError(f"{options.program} is no model: it has no graph and no shapes")
    if options.graph:
        graph = models.graph_of(options)
        return Answer(str(graph), {"graph": str(graph), "nodes": len(graph.nodes)})
    for_llvm = argparse.Namespace(**vars(options), target="llvm")
    if options.fused:
        found = models.described(models.compiled(for_llvm))
        return Answer(found.pop("text"), found)
    return _program(models.compiled(for_llvm).module.ir)


@verb("tir tree kernels.py:double", PROGRAM)
def tree(options: argparse.Namespace) -> Answer:
    """Print its loop nest, with the bytes that each loop touches."""
    return Answer(str(scheduled(options.program).loop_tree()))


@verb("tir lower kernels.py:double --upto lower_init_block", PROGRAM, TARGET, UPTO, STEPS)
def lower(options: argparse.Namespace) -> Answer:
    """Print it lowered by the pipeline of a target, after steps of a schedule if they are given."""
    return _program(_lowered(_after_steps(options), options))


@verb(
    "tir opt kernels.py:double --passes simplify,remove_no_op",
    PROGRAM,
    option("--passes", metavar="P,Q,…", help="passes to run, in this order"),
    UPTO,
    TARGET,
    STEPS,
)
def opt(options: argparse.Namespace) -> Answer:
    """Print it changed by steps of a schedule and by passes."""
    if options.passes is not None and options.upto is not None:
        raise ValueError("--passes are run instead of a pipeline: give them or --upto")
    if options.passes is options.upto is options.trace is None:
        raise ValueError("nothing to do: give --passes, --upto or --trace")
    program = _after_steps(options)
    if options.passes is not None:
        for step in _passes(options.passes):
            program = step(program)
    return _program(program if options.upto is None else _lowered(program, options))


def _lowered(program: tir.PrimFunc | tir.IRModule, options: argparse.Namespace) -> tir.IRModule:
    from codegen.build import machine_of

    from ..target import Target
    from ..transform import lower

    target = Target.of(options.target)
    if target.kind == "llvm":
        machine_of(target)  # a processor that there is
    return lower(program, upto=options.upto, target=target)


def _after_steps(options: argparse.Namespace) -> tir.PrimFunc | tir.IRModule:
    """The program after the steps that the options give."""
    from ..schedule import Schedule
    from ..schedule.trace_text import apply_text

    if options.trace is None:
        return program_of(options.program)
    if options.program == options.trace == "-":
        raise ValueError("standard input is one text: give a file for the program or for the steps")
    schedule = Schedule(scheduled(options.program).mod)
    apply_text(read_text(options.trace), schedule, "<stdin>" if options.trace == "-" else options.trace)
    return schedule.mod


def _passes(names: str) -> list[Any]:
    from ..transform import find

    try:
        return [find(name.strip()) for name in names.split(",")]
    except KeyError as error:
        raise ValueError(error.args[0]) from None


@verb(
    "tir diff kernels.py:double kernels.py:double",
    option("a", metavar="FILE[:NAME]", help="a program"),
    option("b", metavar="FILE[:NAME]", help="another"),
)
def diff(options: argparse.Namespace) -> Answer:
    """Compare two programs, up to the names of variables; what differs, and status 1, if they are not the same."""
    from ..equal import first_difference
    from ..script.change import program_diff

    if options.a == options.b == "-":
        raise ValueError("standard input is one program: give a file for the other")
    one, other = tir.IRModule.of(program_of(options.a)), tir.IRModule.of(program_of(options.b))
    difference = first_difference(one, other)
    if difference is None:
        return Answer("the same", {"same": True})
    text = "\n".join(
        [*program_diff(one, other, options.b, head=options.a).splitlines(), f"first difference: {difference}"]
    )
    return Answer(text, {"same": False, "difference": difference, "text": text}, right=False)


@verb(
    "tir source kernels.py:double --kind llvm",
    PROGRAM,
    TARGET,
    option(
        "--kind", help="lowered, llvm, llvm-opt, asm, cuda, ptx or sass; the default is llvm or cuda, by the target"
    ),
)
def source(options: argparse.Namespace) -> Answer:
    """Print the generated source."""
    from codegen.build import build

    module = build(program_of(options.program), options.target)
    kind = options.kind or next((k for k in module.source_kinds if k not in ("tir", "lowered")), "lowered")
    text = str(module.source(kind))
    return Answer(text, {"kind": kind, "source": text})
