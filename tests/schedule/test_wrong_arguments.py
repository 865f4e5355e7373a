"""Every primitive and query with values of every wrong kind: a clear refusal, and the schedule as it was."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from golden_cases import GOLDEN, perform, program_of, read

import tir
from tir.analysis.index import BlockRef, LoopRef
from tir.schedule.handles import BlockRV, LoopRV
from tir.schedule.offers import choices
from tir.schedule.primitive import PRIMITIVES, QUERIES, BadArgument, Primitive
from tir.schedule.primitive_arguments import convert, parameters_of, places_of
from tir.script import parse

PROGRAM = parse("""
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8, 16), "float32")
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, k in T.grid(8, 16):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi, vk]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[vi]
""")
STRANGER = tir.Schedule(
    parse("""
@T.prim_func
def other(A: T.Buffer((4,), "float32")):
    for x in range(4):
        with T.block("X"):
            vx = T.axis.spatial(4, x)
            A[vx] = T.float32(0)
""")
)
VALUES = [
    None, True, 0, -1, 7, 1.5, math.nan, math.inf, 10**30, 10**5000, 65, 10**6, 2**31, 2**63 - 1, [2**31] * 2,
    "", "no such", "i", "B", "B.j", "\ud800", "{0} {1}", b"B",
    [], [None], [[]], [-1], [1.5], ["no such"], [10**30], (0, 0), {}, {"a": object()}, {1}, object(), type, int, lambda: 0,
    lambda *x: x, lambda i: 1 / 0, lambda i, j: (j, "x"), lambda i, j: None, lambda i, j: (i * math.nan,), range(3), ...,
    np.zeros(3), np.int64(1), np.float32(1), "int32", "float33", tir.const(1), tir.const(1.5), tir.Var("v"),
    STRANGER.get_block("X"), STRANGER.get_loops("X")[0], BlockRV("X", "nowhere"), LoopRV(tir.Var("q"), "nowhere"),
    PROGRAM.body, PROGRAM.body.block, PROGRAM, next(iter(PROGRAM.buffer_map.values())), STRANGER,
]  # fmt: skip

STEPS = {**PRIMITIVES, **QUERIES}


@pytest.mark.parametrize(
    "annotation, text",
    [
        (int, "int"), (LoopRef, "LoopRef"), (BlockRef | LoopRef, "BlockRef | LoopRef"), (LoopRef | None, "LoopRef | None"),
        (list[LoopRef], "list[LoopRef]"), (Sequence[int | None], "Sequence[int | None]"), (list, "list[Any]"), ("list", "list[Any]"),
        (list[str] | str, "list[str] | str"), (Any, "Any"), (dict[str, int], "Any"),
    ],
    ids=str,
)  # fmt: skip
def test_annotations_that_python_evaluated_mean_what_their_text_does(annotation, text):
    """Those of a package's primitive in a file without ``from __future__ import annotations``."""

    def answers(given: Any) -> list[str]:
        parameter = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=given)
        known, sch = parameters_of(inspect.Signature([parameter])), tir.Schedule(PROGRAM)
        made = [places_of(given)]
        for value in ("B", "D.i", 1, None, ["B.i"], [1, None], ["no"], 1.5):
            try:
                made.append(repr(convert(known, sch.state, {"x": value})))
            except tir.TirError as error:
                made.append(str(error))
        return made

    assert answers(annotation) == answers(text)


@cache
def usual(name: str) -> tuple[tir.Schedule, dict[str, Any]]:
    """A schedule that takes a step, and the arguments with which it does: those of a golden case."""
    step = STEPS[name]
    if step.apply is None:
        sch = tir.Schedule(PROGRAM)
        return sch, {p: choices(sch.state, step, p)[0] for p in required(step)}
    for path in sorted((GOLDEN / name).glob("*.txt")):
        sections = read(path)
        sch, refusal = perform(program_of(sections), sections["steps"])
        calls = [number for number, call in enumerate(sch.trace.insts) if call.name == name]
        if refusal is None and calls:
            given = dict(sch.trace.insts[calls[-1]].args)
            while len(sch.trace) > calls[-1]:
                sch.undo()
            return sch, given
    raise AssertionError(f"no golden case of {name} is accepted")


def required(step: Primitive) -> list[str]:
    return [p.name for p in step.signature.parameters.values() if p.default is p.empty]


def places():
    for name, step in sorted(STEPS.items()):
        for parameter in step.signature.parameters.values():
            yield pytest.param(name, parameter.name, id=f"{name}.{parameter.name}")


@pytest.mark.parametrize("name,place", list(places()))
def test_wrong_values(name: str, place: str):
    step = STEPS[name]
    sch, given = usual(name)
    several = step.signature.parameters[place].kind is inspect.Parameter.VAR_POSITIONAL
    before, start = sch.mod, len(sch.history)
    shown = set()
    for value in VALUES:
        try:
            sch._apply_step(step, {**given, place: (value, *given.get(place, ())[1:]) if several else value})
        except tir.TirError as error:
            # the legal calls instead are the same for each value that has not the type of the parameter
            text = repr(error) if type(error) in shown else str(error)
            shown.update({type(error)} & {BadArgument})
            assert "a fault inside" not in text, text
            assert sch.mod is before
        else:
            sch.script()
            while len(sch.history) > start:
                sch.undo()


@pytest.mark.parametrize(
    ("type_", "several"),
    [
        ("int", "ints"),
        ("bool", "booleans"),
        ("float", "finite numbers"),
        ("str", "strings"),
        ("Callable", "functions"),
        ("IndexMap", "index maps"),
        ("Buffer", "buffers"),
        ("Expr", "integer expressions"),
    ],
)
def test_a_step_of_an_extension_may_take_a_list_of_each_type(type_: str, several: str):
    def step(state, values):
        return None

    step.__annotations__ = {"values": f"list[{type_}] | None"}
    with pytest.raises(BadArgument) as caught:
        convert(parameters_of(inspect.signature(step)), tir.Schedule(PROGRAM).state, {"values": 1j})
    assert str(caught.value).startswith(f"`values` is a list of {several} or None, not complex: 1j")


@pytest.mark.parametrize("name", sorted(STEPS))
def test_wrong_numbers_of_arguments(name: str):
    sch = tir.Schedule(PROGRAM)
    with pytest.raises(BadArgument, match=name):
        getattr(sch, name)(*["B"] * 40, nothing_is_called_this=1)


def test_the_parameter_the_kind_and_the_value_are_named():
    sch = tir.Schedule(PROGRAM)
    for call, says in [
        (lambda: sch.fuse("B.i", "B.j", name=-1), "`name` is a string or None, not int: -1"),
        (lambda: sch.split("B.j", 4), "`factors` is a list (ints, integer expressions or None) or None, not int: 4"),
        (lambda: sch.parallel("B.i", unsafe="yes"), "`unsafe` is True or False, not str: 'yes'"),
        (lambda: sch.pad_einsum("C", [1.5]), "`padding[0]` is an int, not float: 1.5"),
        (
            lambda: sch.cache_read("C", None, "local"),
            "`read_buffer_index` is an int, a string or a buffer, not NoneType: None",
        ),
        (lambda: sch.reorder(["B.i"], "B.j"), "`loops` is a loop (a handle or a name), not a list: ['B.i']"),
        (lambda: sch.compute_inline(PROGRAM.body.block), "`block` is a block (a handle or a name), not Block"),
    ]:
        with pytest.raises(BadArgument) as caught:
            call()
        assert says in str(caught.value)


def test_a_buffer_is_named_by_number_name_or_itself():
    buffer = PROGRAM.body.block.alloc_buffers[0]
    by = [0, "B", buffer, np.int64(0)]
    results = []
    for which in by:
        sch = tir.Schedule(PROGRAM)
        sch.cache_write("B", which, "local")
        results.append(sch.mod)
    for made in results[1:]:
        tir.assert_structural_equal(results[0], made)


def test_a_parameter_without_an_annotation_takes_any_value():
    def step(state, value): ...

    value = object()
    found = parameters_of(inspect.signature(step))
    assert convert(found, tir.Schedule(PROGRAM).state, {"value": value}) == {"value": value}
