"""``te.tag_scope``: the tag of the operations that are made inside."""

from __future__ import annotations

import threading

import pytest

import tir
from tir import ops, te
from tir.errors import TensorExpressionError

A = te.placeholder((8, 4), name="A")


@te.hybrid.script
def doubled(a):
    b = output_tensor((8, 4), "float32")
    for i in range(8):
        for j in range(4):
            b[i, j] = a[i, j] * 2.0
    return b


def compute(**given):
    return te.compute((8, 4), lambda i, j: A[i, j] + 1.0, name="plus", **given)


def extern(**given):
    return te.extern((8, 4), [A], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]), dtype="float32", **given)


def scan(**given):
    state = te.placeholder((8, 4), name="state")
    first = te.compute((1, 4), lambda t, i: A[0, i], name="first")
    step = te.compute((8, 4), lambda t, i: state[t - 1, i] + A[t, i], name="step")
    return te.scan(first, step, state, inputs=[A], **given)


MAKERS = [compute, extern, scan, lambda: doubled(A), lambda: ops.add(A, A), lambda: ops.cumsum(A, 0)]


@pytest.mark.parametrize("make", MAKERS)
def test_operations_made_inside_have_the_tag_and_those_after_it_none(make):
    with te.tag_scope("inside"):
        made = make()
    assert made.op.tag == "inside"
    assert make().op.tag == ""


@pytest.mark.parametrize("make", [compute, extern, scan])
def test_a_tag_of_its_own_counts_more(make):
    with te.tag_scope("inside"):
        assert make(tag="own").op.tag == "own"


def test_the_innermost_scope_counts_and_the_outer_one_again_after_it():
    with te.tag_scope(tag="outer"):
        with te.tag_scope(tag="inner"):
            assert compute().op.tag == "inner"
        assert compute().op.tag == "outer"


def test_a_scope_that_ends_with_an_error_has_ended():
    with pytest.raises(ZeroDivisionError), te.tag_scope("inside"):
        raise ZeroDivisionError
    assert compute().op.tag == ""


def test_a_decorated_function_may_call_itself():
    @te.tag_scope(tag="decorated")
    def make(depth):
        return make(depth - 1) if depth else compute()

    assert make(2).op.tag == "decorated"
    assert make(0).op.tag == "decorated"
    assert compute().op.tag == ""


def test_placeholders_have_no_tag():
    with te.tag_scope("inside"):
        assert te.placeholder((4,), name="x").op.tag == ""


def test_what_was_made_outside_keeps_its_tag_where_it_is_rewritten_inside():
    made = te.compute((8, 4), lambda i, j: te.exp(compute()[i, j]), name="result")
    with te.tag_scope("inside"):
        schedule = te.create_schedule(made.op)
        schedule.cache_read(A, "local", [made.op.input_tensors[0]])
        assert [stage.op.tag for stage in schedule.stages if stage.op.name == "result"] == [""]


def test_a_scope_is_of_its_thread():
    found = []
    with te.tag_scope("inside"):
        thread = threading.Thread(target=lambda: found.append(compute().op.tag))
        thread.start()
        thread.join()
    assert found == [""]


def test_the_tag_is_a_string():
    for wrong in (lambda: compute(tag=3), lambda: te.tag_scope(None).__enter__()):
        with pytest.raises(TensorExpressionError, match="a tag is a string"):
            wrong()


def test_operations_of_loops_and_reductions_inside_of_formulas_have_it_too():
    with te.tag_scope("inside"):
        indices = ops.nonzero(A)[0]
        k = te.reduce_axis((0, 4), "k")
        share = te.compute((8, 4), lambda i, j: A[i, j] / te.sum(A[i, k], axis=k), name="share")
    assert indices.op.tag == "inside"
    assert [t.op.tag for t in share.op.input_tensors if t is not A] == ["inside"]
