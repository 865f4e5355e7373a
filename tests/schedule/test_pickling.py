"""Schedules and refusals travel between processes: what arrives is what was sent, and goes on as that would."""

from __future__ import annotations

import copy
import pickle

import pytest

import tir
from tir.analysis.wellformed import verify
from tir.errors import TirError
from tir.library import rows
from tir.script import parse

DEEP = "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = x\n"
LOOPS = "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    for i in range(8):\n        A[j] = 1\n"


def steps(sch):
    """Some steps with all kinds of arguments, one after the other."""
    block = sch.get_block("total")
    yield sch.split("j", [None, sch.sample_categorical([2, 4], [0.5, 0.5])])
    yield sch.sample_perfect_tile("i", 2)
    yield sch.annotate(block, "note", {"a": [1, 2.5, "x", None]})
    yield sch.cache_read(block, 0, "local")
    yield sch.transform_layout(block, ("read", 0), lambda i, j: (j, i))
    yield sch.undo()


def test_a_schedule_is_itself_after_every_step():
    sch = tir.Schedule(rows.row_sum(4, 8), seed=3)
    for _ in steps(sch):
        again = pickle.loads(pickle.dumps(sch))
        tir.assert_structural_equal(again.mod, sch.mod)
        assert again.trace.as_json() == sch.trace.as_json() and str(again.history) == str(sch.history)
        assert again.undone == sch.undone
        other = copy.deepcopy(sch)
        for one in (again, other):
            one.unroll("i")
            assert one.sample_perfect_tile("i", 2, decision=None)
            one.undo(2)
            tir.assert_structural_equal(one.mod, sch.mod)


def test_a_copy_draws_what_the_schedule_would():
    sch = tir.Schedule(rows.row_sum(64, 4096), seed=5)
    sch.sample_perfect_tile("j", 3)
    again = pickle.loads(pickle.dumps(sch))
    drawn = [[int(f) for f in one.sample_perfect_tile("j", 3)] for one in (sch, again)]
    assert drawn[0] == drawn[1]


REFUSED = {
    "a refusal": lambda: tir.Schedule(rows.row_sum(4, 8)).parallel("j"),
    "a wrong argument": lambda: tir.Schedule(rows.row_sum(4, 8)).split("j", 4),
    "a name that there is not": lambda: tir.Schedule(rows.row_sum(4, 8)).unroll("x"),
    "a constant that does not fit": lambda: tir.Schedule(rows.row_sum(4, 8)).pad_einsum("total", [2**31, 1]),
    "a text": lambda: parse(DEEP),
    "data": lambda: tir.script.parse_data(LOOPS),
    "a target": lambda: tir.build(rows.row_sum(4, 8), "llvm -mcpu=nope"),
    "an argument": lambda: tir.build(rows.row_sum(4, 8), "interpreter")(1),
    "a tensor": lambda: tir.ops.add("x", 1),
    "a program": lambda: verify(parse(DEEP.replace("= x", "= 1")).replace(params=())),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("shown_before", [False, True])
def test_an_error_reads_the_same_where_it_arrives(name, shown_before):
    with pytest.raises((TirError, ValueError)) as caught:
        REFUSED[name]()
    error = caught.value
    if shown_before:
        assert str(error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) == str(copy.deepcopy(error))
    assert repr(pickle.loads(pickle.dumps(again))) == repr(error)
