"""Calls of operators by topi's names of parameters, and what its parameters mean."""

from __future__ import annotations

import pytest

import tir
from tir import te, topi
from tir.errors import TensorExpressionError

IMAGE, KERNEL = te.placeholder((1, 3, 8, 8), name="a"), te.placeholder((4, 3, 3, 3), name="w")
CALLS = {
    "add": (lambda: topi.add(lhs=IMAGE, rhs=IMAGE), lambda: topi.add(IMAGE, IMAGE)),
    "div": (lambda: topi.div(a=IMAGE, b=IMAGE), lambda: topi.divide(IMAGE, IMAGE)),
    "sum": (lambda: topi.sum(data=IMAGE, axis=1), lambda: topi.sum(IMAGE, 1)),
    "clip": (lambda: topi.clip(IMAGE, a_min=0, a_max=1), lambda: topi.clip(IMAGE, 0, 1)),
    "transpose": (lambda: topi.transpose(a=IMAGE, axes=(0, 2, 3, 1)), lambda: topi.transpose(IMAGE, (0, 2, 3, 1))),
    "concatenate": (lambda: topi.concatenate(a_tuple=(IMAGE, IMAGE)), lambda: topi.concatenate((IMAGE, IMAGE))),
    "stack": (lambda: topi.stack(tensors=[IMAGE, IMAGE], axis=0), lambda: topi.stack([IMAGE, IMAGE], 0)),
    "split": (lambda: topi.split(ary=IMAGE, indices_or_sections=2, axis=2)[1], lambda: topi.split(IMAGE, 2, 2)[1]),
    "full_like": (lambda: topi.full_like(IMAGE, fill_value=2.0), lambda: topi.full_like(IMAGE, 2.0)),
    "leaky_relu": (lambda: topi.nn.leaky_relu(x=IMAGE, alpha=0.1), lambda: topi.nn.leaky_relu(IMAGE, 0.1)),
    "pad": (lambda: topi.nn.pad(data=IMAGE, pad_before=[0, 0, 1, 1]), lambda: topi.nn.pad(IMAGE, [0, 0, 1, 1])),
    "conv2d_nchw": (
        lambda: topi.nn.conv2d_nchw(Input=IMAGE, Filter=KERNEL, stride=2, padding=1, dilation=1),
        lambda: topi.nn.conv2d_nchw(IMAGE, KERNEL, 2, 1, 1),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_by_the_names_of_topi(name):
    inputs = [IMAGE, KERNEL] if name == "conv2d_nchw" else [IMAGE]
    theirs, ours = (te.create_prim_func([*inputs, call()]) for call in CALLS[name])
    tir.assert_structural_equal(theirs, ours)


def test_a_parameter_is_given_once():
    with pytest.raises(TensorExpressionError, match="multiple values for argument 'x'"):
        topi.add(IMAGE, lhs=IMAGE)
    with pytest.raises(TensorExpressionError, match="unexpected keyword argument 'lhs'"):
        topi.add(x=IMAGE, lhs=IMAGE, y=IMAGE)
    with pytest.raises(TensorExpressionError, match="missing a required argument: 'y'"):
        topi.add(IMAGE, rsh=IMAGE)
