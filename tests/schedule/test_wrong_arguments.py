"""Every primitive and query with values of every wrong kind: a clear refusal, and the schedule as it was."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import tir
from tir.schedule.arguments import convert, parameters_of
from tir.schedule.handles import BlockRV, LoopRV
from tir.schedule.primitive import PRIMITIVES, QUERIES, BadArgument
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

# Arguments that are legal, or near it, by parameter.
USUAL = {
    "block": "C", "loop": "C.k", "loops": ("B.i", "B.j"), "blocks": ("B", "C"), "block_or_loop": "B", "target": "B.j", "where": ["B.i", "B.j"],
    "ann_key": "k", "ann_val": 1, "buffer_index": 0, "read_buffer_index": 0, "write_buffer_index": 0, "buf_type": "read",
    "gen_new_ranges": lambda i, k: [i, k], "thread_axis": "threadIdx.x", "storage_scope": "local", "factors": [None, 2],
    "reduction_block": "C", "epilogue_block": "D", "padding": [8, 16], "buffer": ("read", 0), "index_map": lambda i, j: (j, i),
    "new_order": [1, 0], "factor_axis": 0, "candidates": [1, 2], "probs": [0.5, 0.5], "n": 2, "axis_separators": [1],
    "outer": "B.i", "inner": "B.j", "axis": 0, "factor": 4, "offset": 1, "tensor_intrin": "dot_4x4_i8i8s32_sdot",
    "buf_index_array": [0], "dtype": "float64", "name": "B", "scope_block": "root", "operand": 0,
}  # fmt: skip
OTHERS = {
    "stage": {"block": "C", "buffer": 0, "loop": "C.i"},
    "rolling_buffer": {"block": "B"},
    "set_scope": {"block": "B"},
    "compute_at": {"block": "B", "loop": "C.i"},
    "reverse_compute_at": {"block": "D", "loop": "C.i"},
    "compute_inline": {"block": "B"},
    "merge": {"loops": ("C.i", "D.i")},
    "parallel": {"loop": "B.i"},
    "skew": {"factor": 1},
    "bind": {"loop": "B.i"},
    "storage_align": {"block": "B"},
    "unsafe_set_dtype": {"block": "B"},
}
STEPS = {**PRIMITIVES, **QUERIES}


def usual(step, parameter):
    named = {**USUAL, **OTHERS.get(step.name, {})}
    assert parameter.name in named, f"say in USUAL what a legal `{parameter.name}` of {step.name} is"
    return named[parameter.name]


def places():
    for name, step in sorted(STEPS.items()):
        for parameter in step.signature.parameters.values():
            yield pytest.param(name, parameter.name, id=f"{name}.{parameter.name}")


@pytest.mark.parametrize("name,place", list(places()))
def test_wrong_values(name: str, place: str):
    step = STEPS[name]
    sch = tir.Schedule(PROGRAM)
    for value in VALUES:
        given = {}
        for parameter in step.signature.parameters.values():
            if parameter.name == place:
                many = parameter.kind is parameter.VAR_POSITIONAL
                given[parameter.name] = (value, *usual(step, parameter)[1:]) if many else value
            elif parameter.default is inspect.Parameter.empty:
                given[parameter.name] = usual(step, parameter)
        before = sch.mod
        try:
            sch._apply_step(step, given)
        except tir.TirError as error:
            text = str(error)
            assert "a fault inside" not in text, text
            assert sch.mod is before
        else:
            sch.script()
            sch.reset()


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
