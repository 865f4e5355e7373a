"""Operators that move elements: what they refuse, and how plain the functions are that they give."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.errors import TensorExpressionError

n = te.var("n")
x = te.placeholder((2, 3), name="x")
lengths = te.placeholder((3,), "int32", name="lengths")

REFUSED = {
    "elements": (lambda: ops.reshape(x, (4, 2)), r"\(2, 3\) has 6 elements, but \(4, 2\) has 8"),
    "left over": (lambda: ops.reshape(x, (4, -1)), r"cannot be shared out"),
    "two open": (lambda: ops.reshape(x, (-1, -1)), r"2 extents are left open"),
    "axis": (lambda: ops.squeeze(x, 5), r"from -2 to 1"),
    "extent": (lambda: ops.squeeze(x, 1), r"axis 1 of shape \(2, 3\) has extent 3"),
    "twice": (lambda: ops.transpose(x, (0, 0)), r"named twice"),
    "missing": (lambda: ops.transpose(x, (0,)), r"each of the 2 dimensions"),
    "broadcast": (lambda: ops.broadcast_to(x, (3, 3)), r"extent 2 is neither 1 nor 3"),
    "concatenate": (lambda: ops.concatenate([x, lengths]), r"as many dimensions"),
    "beside": (lambda: ops.concatenate([x, te.placeholder((2, 4))], 0), r"beside axis 0"),
    "nothing": (lambda: ops.stack([]), r"no tensor"),
    "kinds": (lambda: ops.stack([lengths, te.placeholder((3,))]), r"int32 and float32"),
    "stride": (lambda: ops.strided_slice(x, (0,), (2,), (0,)), r"stride of 0"),
    "too many": (lambda: ops.strided_slice(x, (0, 0, 0), (1, 1, 1)), r"not as many as the axes"),
    "uneven": (lambda: ops.split(x, 2, 1), r"3 elements along axis 1 do not make 2 parts"),
    "negative": (lambda: ops.pad(x, -1), r"an extent is at least 0"),
    "mode": (lambda: ops.pad(x, 1, "mirror"), r"'constant', 'edge', 'reflect'"),
    "empty edge": (lambda: ops.pad(te.placeholder((0, 2)), 1, "edge"), r"axis 0 of shape \(0, 2\) has no elements"),
    "factor": (lambda: ops.layout_transform(x, "NC", "NC2c"), r"`2c` of 'NC2c' does not divide 3"),
    "letters": (lambda: ops.layout_transform(x, "NC", "NH"), r"not the same dimensions"),
    "no layout": (lambda: ops.layout_transform(x, "NC", "NC2"), r"'NC2' is no layout"),
    "blocks": (lambda: ops.nn.space_to_depth(te.placeholder((1, 1, 3, 4)), 2), r"the height, 3, is no multiple of 2"),
    "lengths": (lambda: ops.reverse_sequence(x, lengths), r"3 lengths for a batch of 2"),
    "step": (lambda: ops.arange(0, 4, 0), r"a step is a number other than 0"),
    "diagonals": (lambda: ops.matrix_set_diag(x, lengths), r"int32, but the data are float32"),
    "stored": (lambda: ops.strided_set(x, te.placeholder((1, 3)), (0,), (2,)), r"the slice has shape \(2, 3\)"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_say_what_is_wrong(what):
    call, text = REFUSED[what]
    with pytest.raises(TensorExpressionError, match=text):
        call()


def test_reshape_of_symbolic_extents_keeps_them():
    y = te.placeholder((n, 4, n, 6), name="y")
    made = ops.reshape(y, (n, 2, 2, -1))
    assert str(made.shape) == "(n, 2, 2, n * 6)"
    assert ops.reshape(y, (n, 4, n, 6)).op.body[0].as_script() == "y[i0, i1, i2, i3]"


def test_transpose_is_injective_and_fuses():
    made = ops.transpose(ops.transpose(x))
    sch = tir.Schedule(te.create_prim_func([x, made]))
    sch.compute_inline("transpose")
    assert "x[v_i0, v_i1]" in sch.mod["main"].script()


def test_slices_of_every_begin_end_and_stride():
    """Against Python's slices, with bounds on both sides of both ends."""
    steps = (None, 1, 2, 3, -1, -2, -3)
    bounds = (None, *range(-6, 7))
    y, data = te.placeholder((5,), "int32", name="y"), np.arange(5, dtype="int32")
    for stride in steps:
        cuts = [(b, e) for b in bounds for e in bounds]
        for b, e in cuts:
            made = ops.strided_slice(y, (b,), (e,), (stride,))
            expected = data[b:e:stride]
            assert int(made.shape[0]) == len(expected)
            if len(expected):
                begin = made.op.body[0].indices[0]
                at = [int(tir.arith.simplify(begin, {made.op.axis[0].var: k})) for k in range(len(expected))]
                assert at == expected.tolist()


def test_names_of_the_array_api_and_of_old_scripts_are_one_operator():
    assert ops.permute_dims is ops.transpose
    assert ops.concat is ops.concatenate
    assert ops.slice is ops.strided_slice
    assert tir.topi.full((2,), "int8", 3).dtype == ops.full((2,), 3, "int8").dtype == "int8"
    assert [g.shape for g in tir.topi.meshgrid([lengths, lengths], "ij")] == [(3, 3)] * 2


@pytest.mark.parametrize("join", [ops.concatenate, ops.stack])
def test_a_thousand_tensors_are_joined(join):
    given = list(np.arange(1000, dtype="float32").reshape(1000, 1))
    wanted = getattr(np, join.__name__)(given)
    tensors = [te.placeholder((1,), name=f"x{n}") for n in range(1000)]
    scheduled = tir.tune.default(te.create_prim_func([*tensors, join(tensors)]), "llvm").mod
    out = np.empty_like(wanted)
    tir.build(scheduled, "interpreter")(*given, out)
    assert (out == wanted).all()


def test_slices_of_topi_are_assumed_to_be_inside_of_symbolic_sizes():
    n = te.var("n")
    rows = te.placeholder((n, 8), name="rows")
    inside, cut = (tir.topi.strided_slice(rows, [1], [n - 1], assume_inbound=a) for a in (True, False))
    assert str(inside.shape) == "(n - 2, 8)" and "min" in str(cut.shape)
    assert tir.topi.strided_slice(rows, [1], [20], axes=[1]).shape == (n, 7)  # constant sizes are cut
    assert str(tir.topi.strided_slice(rows, [-3], [n]).shape) == str(ops.strided_slice(rows, [-3], [n]).shape)
    module = tir.build(te.create_prim_func([rows, tir.topi.strided_slice(rows, [1], [4])]))
    given, found = np.arange(40, dtype="float32").reshape(5, 8), np.zeros((3, 8), "float32")
    module(given, found)
    np.testing.assert_array_equal(found, given[1:4])
    with pytest.raises(tir.RunError, match="needs n >= 4"):
        module(given[:3].copy(), found)
