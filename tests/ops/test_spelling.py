"""Calls of operators by topi's names of parameters, and what its parameters mean."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te, topi
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
    for cumsum in (topi.cumsum, ops.cumsum):
        assert cumsum(te.placeholder((4,)), 0, "float64").dtype == "float64"
        with pytest.raises(TensorExpressionError, match="exclusive is True or False, not 'float32'"):
            cumsum(te.placeholder((4,)), 0, None, "float32")


@pytest.mark.parametrize("kernel, stride, padded", [(4, 1, (2, 1)), (3, 2, (1, 1)), (2, 3, (1, 0)), (1, 1, (0, 0))])
def test_same_padding_is_a_kernel_less_one(kernel, stride, padded):
    """The odd one before, whatever the stride; also of transposed convolutions, of which it is taken away."""
    x, w = te.placeholder((1, 1, 7), name="x"), te.placeholder((1, 1, kernel), name="w")
    for conv in (topi.nn.conv1d_ncw, lambda *args: topi.nn.conv1d_transpose(*args)):
        given = [(x, np.arange(7.0).reshape(1, 1, 7) ** 2), (w, np.arange(1.0, kernel + 1).reshape(1, 1, kernel))]
        same, numbers = (values(conv(x, w, stride, padding), *given) for padding in ("SAME", padded))
        assert same.tolist() == numbers.tolist()


@pytest.mark.parametrize(
    ("extent", "kernel", "stride", "dilation", "pads", "windows"),
    [
        (21, 2, 2, 1, (1, 1), 11),
        (20, 2, 2, 1, (1, 1), 11),
        (5, 2, 2, 1, (0, 0), 3),
        (4, 1, 3, 1, (0, 2), 2),
        (9, 3, 4, 2, (0, 1), 3),
    ],
)
def test_ceil_mode_counts_windows_that_begin_before_the_padding_at_the_end(
    extent, kernel, stride, dilation, pads, windows
):
    """As TVM 0.27 and PyTorch: 2,256 of its counts are the same."""
    x = te.placeholder((1, 1, extent), name="x")
    assert topi.nn.pool1d(x, kernel, stride, dilation, pads, "max", True).shape[2] == windows


@pytest.mark.parametrize("layer", ["rnn", "gru", "lstm"])
def test_states_are_in_the_order_in_which_they_are_computed(layer):
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[layer]
    xs, wi, wh = (te.placeholder(s, name=n) for s, n in (((3, 1, 2), "xs"), ((gates, 2), "wi"), ((gates, 1), "wh")))
    data, rng = np.arange(6.0).reshape(3, 1, 2), np.random.default_rng(0)
    weights = [(wi, rng.normal(size=(gates, 2))), (wh, rng.normal(size=(gates, 1)))]
    call = getattr(topi.nn, layer)
    backwards = values(call(xs, wi, wh, reverse=True), (xs, data), *weights)
    assert backwards.tolist() == values(call(xs, wi, wh), (xs, data[::-1]), *weights).tolist()


@pytest.mark.parametrize(
    ("move", "theirs", "onnx"),
    [(-1, 0, 0), (-0.5, 0, 0.5), (0, 1, 1), (0.5, 1.5, 1.5), (1.75, 0.5, 0.5), (2, 0, 0)],
)
def test_deformable_places_around_an_image(move, theirs, onnx):
    x, moves, w = (
        te.placeholder(s, name=n) for s, n in (((1, 1, 1, 2), "x"), ((1, 2, 1, 1), "m"), ((1, 1, 1, 1), "w"))
    )
    given = [(x, [[[[1, 2]]]]), (moves, [[[[0]], [[move]]]]), (w, [[[[1]]]])]
    for which, expected in ((topi, theirs), (ops, onnx)):
        assert values(which.nn.deformable_conv2d_nchw(x, moves, w, (1, 2)), *given).ravel().tolist() == [expected]


# ---------------------------------------------------------------- what differs, with the values that TVM 0.27 gives


def t(*shape, dtype="float32", name="x"):
    return te.placeholder(shape, dtype, name=name)


def of(call, *given):
    """What a call gives for tensors of these values, as lists."""
    arrays = [np.asarray(v, d) for v, d in given]
    tensors = [te.placeholder(a.shape, d, name=f"x{n}") for n, (a, (_, d)) in enumerate(zip(arrays, given))]
    return values(call(*tensors), *zip(tensors, arrays)).tolist()


GRID = ([[1, 2, 3], [4, 5, 6]], "int8")
NAN, F = np.nan, "float32"
PAIR = t(2, 3, dtype="int8")
CHANNELS = t(1, 4, 4, 4, dtype="int8"), t(3, 3, 4, 2, dtype="int8", name="w")
VOLUME = t(1, 4, 4, 4, 2, dtype="int8"), t(3, 3, 3, 2, 2, dtype="int8", name="w")
PACKED = t(1, 1, 4, 4, 4, dtype="int8"), t(1, 1, 3, 3, 4, 2, dtype="int8", name="w")
LINE, PARTS = t(1, 4, 8), t(4, 1, 3, name="w")
ROW = ([[[[-5, -5, -5]]]], F), ([[[1, 2]]], F)  # an image, and a filter for dilation2d_nchw
SHOWN = {  # what tir.ops gives, and tir.topi
    "flip": lambda o: of(o.flip, GRID),
    "arange": lambda o: o.arange(4).dtype,
    "meshgrid": lambda o: o.meshgrid(*([[t(2), t(3)], "ij"] if o is topi else [t(2), t(3)]))[0].shape,
    "strided_slice": lambda o: str(o.strided_slice(te.placeholder((te.var("n"),), name="x"), [1], [5]).shape),
    "argsort": lambda o: o.argsort(PAIR).dtype,
    "argmax, argmin": lambda o: {o.argmax(PAIR, 1).dtype, o.argmin(PAIR, 1).dtype},
    "sum, prod, cumsum, cumprod": lambda o: {f(PAIR, 1).dtype for f in (o.sum, o.prod, o.cumsum, o.cumprod)},
    "nn.conv1d": lambda o: o.nn.conv1d(LINE, PARTS, 1, 0, 1, *([4] if o is topi else ["NCW", "", None, 4])).shape,
    "nn.conv2d_nhwc, nn.conv3d_ndhwc, nn.conv2d_NCHWc": lambda o: {
        f(*given).dtype
        for f, given in ((o.nn.conv2d_nhwc, CHANNELS), (o.nn.conv3d_ndhwc, VOLUME), (o.nn.conv2d_NCHWc, PACKED))
    },
    "nn.deformable_conv2d_nchw, nn.deformable_conv2d_nhwc": lambda o: [
        of(f, (image, F), (moves, F), ([[[[1]]]], F))
        for f, image, moves in (
            (o.nn.deformable_conv2d_nchw, [[[[1, 2]]]], [[[[0, 0]], [[-0.5, -1.5]]]]),
            (o.nn.deformable_conv2d_nhwc, [[[[1], [2]]]], [[[[0, -0.5], [0, -1.5]]]]),
        )
    ],
    "image.dilation2d_nchw, image.dilation2d_nhwc": lambda o: [
        of(lambda x, w: o.image.dilation2d_nchw(x, w, 1, (0, 1), 1), *ROW),
        of(lambda x, w: o.image.dilation2d_nhwc(x, w, 1, (0, 1), 1), ([[[[-5], [-5], [-5]]]], F), ([[[1], [2]]], F)),
    ],
    "add, maximum, less": lambda o: [
        o.add(PAIR, t(3, dtype="uint8")).dtype, of(o.less, ([-1], "int8"), ([1], "uint8")),
    ],
    "maximum, minimum, max, min, nn.relu, clip, sign": lambda o: np.isnan(
        [of(f, ([NAN, 1], F), ([1, NAN], F)) for f in (o.maximum, o.minimum)]
        + [of(f, ([[NAN, 1], [1, NAN]], F)) for f in (lambda x: o.max(x, 1), lambda x: o.min(x, 1))]
        + [of(f, ([NAN, NAN], F)) for f in (o.nn.relu, lambda x: o.clip(x, -1, 1), o.sign)]
    ).all(),
    "not_equal": lambda o: of(o.not_equal, ([NAN, 1], F), ([1, 1], F)),
    "sum, cumsum": lambda o: [of(f, ([1, 1], "bool")) for f in (o.sum, o.cumsum)],
    "gather, gather_nd, adv_index, take": lambda o: [
        of(lambda x, i: o.gather(x, 0, i), ([1, 2, 3], F), ([-1, 7], "int32")),
        of(o.gather_nd, ([1, 2, 3], F), ([[-1, 7]], "int32")),
        of(lambda x, i: o.adv_index(x, [i]), ([1, 2, 3], F), ([-1, 7], "int32")),
        of(lambda x, i: o.take(x, i, 0), ([1, 2, 3], F), ([-1, 7], "int32")),
    ],
    "left_shift, right_shift": lambda o: [
        of(f, ([-2, 2], "int8"), ([8, 9], "int8")) for f in (o.left_shift, o.right_shift)
    ],
    "scatter_elements": lambda o: of(
        lambda x, i, u: o.scatter_elements(x, i, u, 0, "mean"), ([8, 1], F), ([0, 0, 0], "int64"), ([2, 4, 6], F)
    ),
    "hamming_window": lambda o: np.float32(of(lambda: o.hamming_window(1, False, 0.5, 0.25, F))).tolist(),
    "nn.space_to_batch_nd, sparse_to_dense": lambda o: {
        o.nn.space_to_batch_nd(t(1, 4, 4, dtype="int8"), [2, 2], [0, 0], [0, 0]).dtype,
        o.sparse_to_dense(t(3, dtype="int32"), [5], t(3, dtype="int8"), 7).dtype,
    },
    "nn.batch_norm": lambda o: o.nn.batch_norm(t(1, 2, 3, dtype="float16"), *[t(2, dtype="float16", name="p")] * 4)[0].dtype,
    "nn.global_pool": lambda o: o.nn.global_pool(t(1, 2, 3, 4, 5), "max", "NCDHW").shape,
    "vision.roi_align_nchw": lambda o: of(
        lambda x, r: o.vision.roi_align_nchw(x, r, (1, 1), 1.0, "avg", 1, True),
        (np.arange(9).reshape(1, 1, 3, 3), F), ([[0, 0, 0, 2, 2]], F),
    ),
    "vision.all_class_non_max_suppression": lambda o: o.vision.all_class_non_max_suppression(
        t(2, 6, 4), t(2, 3, 6, name="s"), 2, 0.1, 0.5
    )[0].shape,
}  # fmt: skip
THEIRS = {  # of tir.topi, and of TVM 0.27
    "flip": [[4, 5, 6], [1, 2, 3]],
    "arange": F,
    "meshgrid": (2, 3),
    "strided_slice": "(4,)",
    "argsort": F,
    "argmax, argmin": {"int32"},
    "sum, prod, cumsum, cumprod": {"int8"},
    "nn.conv1d": (1, 4, 6),
    "nn.conv2d_nhwc, nn.conv3d_ndhwc, nn.conv2d_NCHWc": {F},
    "nn.deformable_conv2d_nchw, nn.deformable_conv2d_nhwc": [[[[[0, 0]]]], [[[[0], [0]]]]],
    "image.dilation2d_nchw, image.dilation2d_nhwc": [[[[[1, -3, -3, 2]]]], [[[[1], [-3], [-3], [2]]]]],
}
OURS = {
    "flip": [[6, 5, 4], [3, 2, 1]],
    "arange": "int32",
    "meshgrid": (3, 2),
    "strided_slice": "(T.max(T.min(n, 5) - 1, 0),)",
    "argsort": "int64",
    "argmax, argmin": {"int64"},
    "sum, prod, cumsum, cumprod": {"int64"},
    "nn.conv1d": (1, 4, 6),
    "nn.conv2d_nhwc, nn.conv3d_ndhwc, nn.conv2d_NCHWc": {"int8"},
    "nn.deformable_conv2d_nchw, nn.deformable_conv2d_nhwc": [[[[[0.5, 0.5]]]], [[[[0.5], [0.5]]]]],
    "image.dilation2d_nchw, image.dilation2d_nhwc": [[[[[-3, -3, -3, -4]]]], [[[[-3], [-3], [-3], [-4]]]]],
    "add, maximum, less": ["int16", [True]],
    "maximum, minimum, max, min, nn.relu, clip, sign": True,
    "not_equal": [True, False],
    "sum, cumsum": [2, [1, 2]],
    "gather, gather_nd, adv_index, take": [[3, 3], [3, 3], [3, 3], [1, 3]],
    "left_shift, right_shift": [[0, 0], [-1, 0]],
    "scatter_elements": [5, 1],
    "hamming_window": [0.25],
    "nn.space_to_batch_nd, sparse_to_dense": {"int8"},
    "nn.batch_norm": "float16",
    "nn.global_pool": (1, 2, 1, 1, 1),
    "vision.roi_align_nchw": [[[[2]]]],
    "vision.all_class_non_max_suppression": (36, 3),
}


@pytest.mark.parametrize("name", {**DIFFERENCES, **SHOWN, **OURS})
def test_what_the_table_of_differences_says_is_so(name):
    what = DIFFERENCES[name]
    assert SHOWN[name](ops) == OURS[name]
    assert SHOWN[name](topi) == (THEIRS if what.as_topi else OURS)[name]


def test_every_function_of_topi_of_its_own_is_in_the_table():
    listed = {n for names, what in DIFFERENCES.items() if what.as_topi for n in names.split(", ")}
    spaces = {"": topi, "nn.": topi.nn, "image.": topi.image}
    found = {
        prefix + name
        for prefix, space in spaces.items()
        for name, member in vars(space).items()
        if callable(member) and member.__module__.startswith("tir.topi.") and not name.startswith("_")
    }
    assert found == listed
