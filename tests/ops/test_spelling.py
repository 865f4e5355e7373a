"""Calls of operators by topi's names of parameters, and what its parameters mean."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te, topi
from tir.errors import TensorExpressionError
from tir.interp import run
from tir.ops.spelling import DIFFERENCES

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


# ---------------------------------------------------------------- meaning


def values(made, *inputs):
    """What the first of the tensors is, given inputs and their arrays."""
    made = made[0] if isinstance(made, (list, tuple)) else made
    out = np.zeros([int(s.value) for s in made.shape], str(made.dtype))
    run(te.create_prim_func([*(t for t, _ in inputs), made]), *(np.asarray(a, str(t.dtype)) for t, a in inputs), out)
    return out


def test_the_third_parameter_of_cumsum_is_the_type():
    made = topi.cumsum(te.placeholder((4,)), 0, "float64")
    assert made.dtype == "float64"
    with pytest.raises(TensorExpressionError, match="exclusive is True or False, not 'float32'"):
        topi.cumsum(te.placeholder((4,)), 0, None, "float32")


@pytest.mark.parametrize("kernel, stride, padded", [(4, 1, (2, 1)), (3, 2, (1, 1)), (2, 3, (1, 0)), (1, 1, (0, 0))])
def test_same_padding_is_a_kernel_less_one(kernel, stride, padded):
    """The odd one before, whatever the stride; also of transposed convolutions, of which it is taken away."""
    x, w = te.placeholder((1, 1, 7), name="x"), te.placeholder((1, 1, kernel), name="w")
    for conv in (topi.nn.conv1d_ncw, lambda *args: topi.nn.conv1d_transpose(*args)):
        given = [(x, np.arange(7.0).reshape(1, 1, 7) ** 2), (w, np.arange(1.0, kernel + 1).reshape(1, 1, kernel))]
        same, numbers = (values(conv(x, w, stride, padding), *given) for padding in ("SAME", padded))
        assert same.tolist() == numbers.tolist()


def test_ceil_mode_counts_every_window_that_begins():
    x = te.placeholder((1, 1, 21), name="x")
    assert topi.nn.pool1d(x, 2, 2, 1, 1, "max", True).shape[2] == 12  # PyTorch: 11


@pytest.mark.parametrize("layer", ["rnn", "gru", "lstm"])
def test_states_are_in_the_order_in_which_they_are_computed(layer):
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[layer]
    xs, wi, wh = (te.placeholder(s, name=n) for s, n in (((3, 1, 2), "xs"), ((gates, 2), "wi"), ((gates, 1), "wh")))
    data, rng = np.arange(6.0).reshape(3, 1, 2), np.random.default_rng(0)
    weights = [(wi, rng.normal(size=(gates, 2))), (wh, rng.normal(size=(gates, 1)))]
    call = getattr(topi.nn, layer)
    backwards = values(call(xs, wi, wh, reverse=True), (xs, data), *weights)
    assert backwards.tolist() == values(call(xs, wi, wh), (xs, data[::-1]), *weights).tolist()


@pytest.mark.parametrize("move, expected", [(-0.5, 0), (-1e-3, 0), (0, 1), (0.5, 1.5), (1.75, 2), (2, 0)])
def test_deformable_places_before_the_first_element_are_0(move, expected):
    """After the last element it goes on for one step."""
    x, moves, w = (
        te.placeholder(s, name=n) for s, n in (((1, 1, 1, 2), "x"), ((1, 2, 1, 1), "m"), ((1, 1, 1, 1), "w"))
    )
    made = topi.nn.deformable_conv2d_nchw(x, moves, w, (1, 2))
    given = [(x, [[[[1, 2]]]]), (moves, [[[[0]], [[move]]]]), (w, [[[[1]]]])]
    assert values(made, *given).ravel().tolist() == [expected]


GRID = te.placeholder((2, 3), "int8", name="g")
SHOWN = {
    "flip": lambda: values(topi.flip(GRID), (GRID, [[1, 2, 3], [4, 5, 6]])).tolist() == [[6, 5, 4], [3, 2, 1]],
    "repeat": lambda: topi.repeat(GRID, 2).shape == (12,),
    "argsort": lambda: topi.argsort(GRID).dtype == "int64",
    "argmax": lambda: {t.dtype for t in (topi.argmax(GRID, 1), topi.argmin(GRID, 1))} == {"int64"},
    "arange": lambda: topi.arange(4).dtype == "int32",
    "sum": lambda: {f(GRID, 1).dtype for f in (topi.sum, topi.prod, topi.cumsum, topi.cumprod)} == {"int64"},
    "meshgrid": lambda: topi.meshgrid(te.placeholder((2,)), te.placeholder((3,)))[0].shape == (3, 2),
}


@pytest.mark.parametrize("name", {**DIFFERENCES, **SHOWN})
def test_what_is_listed_as_different_is_so(name):
    assert name in DIFFERENCES and SHOWN[name]()
