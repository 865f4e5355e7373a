"""Operators as topi has them: a call by its names of parameters means ours; what differs all the same is a table."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Signature
from typing import Any, NamedTuple

TOPI: Mapping[str, tuple[str, ...]] = {
    "x": ("data", "a", "ary", "array", "lhs"), "y": ("rhs", "b"), "t": ("x",), "arrays": ("a_tuple", "tensors"),
    "tensors": ("xs",), "data": ("Input", "input"), "kernel": ("Filter", "filter"), "scale": ("Scale",),
    "shift": ("Shift",), "strides": ("stride",), "min": ("a_min",), "max": ("a_max",), "value": ("fill_value",),
}  # fmt: skip


class Difference(NamedTuple):
    """What operators of :mod:`tir.ops` mean, and TOPI's (of TVM 0.27) of the same name; ``tir.topi`` has that ``as_topi``, or as here."""

    ops: str
    topi: str
    as_topi: bool = False


DIFFERENCES: Mapping[str, Difference] = {
    "flip": Difference("`axis=None` turns all axes", "the default is `axis=0`", True),
    "arange": Difference("integers are `int32`", 'the default is `dtype="float32"`', True),
    "meshgrid": Difference(
        'tensors are arguments of their own, `indexing="xy"`', "a list, and the indexing is named", True
    ),
    "strided_slice": Difference(
        "slices of symbolic sizes are cut to what there is",
        "`assume_inbound=True`: they are inside, which calls of `tir.topi` check",
        True,
    ),
    "argsort": Difference("positions are `int64`", 'the default is `dtype="float32"`', True),
    "argmax, argmin": Difference("positions are `int64`; `dtype=`", "`int32`", True),
    "sum, prod, cumsum, cumprod": Difference("of integers are 64 bits wide", "have the type of the tensor", True),
    "nn.conv1d": Difference("`groups` is the last parameter", "it is the sixth", True),
    "nn.conv2d_nhwc, nn.conv3d_ndhwc, nn.conv2d_NCHWc": Difference(
        "the type of the result is that of the operands", 'the default is `out_dtype="float32"`', True
    ),
    "nn.deformable_conv2d_nchw, nn.deformable_conv2d_nhwc": Difference(
        "elements around the image are 0 (ONNX): at -0.5 half of the first",
        "places before the first element are 0",
        True,
    ),
    "image.dilation2d_nchw, image.dilation2d_nhwc": Difference("padding takes no part", "padding is 0", True),
    "add, maximum, less": Difference(
        "two types give one that holds both: `int8` and `uint8` give `int16`; so in all operators", "`uint8`"
    ),
    "maximum, minimum, max, min, nn.relu, clip, sign": Difference("nan stays nan", "the other operand, or 0"),
    "not_equal": Difference("nan differs from everything", "false"),
    "sum, cumsum": Difference("bools are counted", "a bool"),
    "gather, gather_nd, adv_index, take": Difference(
        "a negative index counts from the end (`take` reads the first element), one out of range reads the nearest element",
        "reads outside of the tensor; `take` by default",
    ),
    "left_shift, right_shift": Difference("by all bits or more: 0, or -1 of a negative number", "not defined"),
    "scatter_elements": Difference(
        '`reduction="mean"`: the mean of the element and all its updates', "half of the sum, update by update"
    ),
    "hamming_window": Difference("of one element: `alpha - beta`", "1"),
    "nn.space_to_batch_nd, sparse_to_dense": Difference("keep the type of the tensor", "integers become `int32`"),
    "nn.batch_norm": Difference("float16 stays float16", "becomes float32"),
    "nn.global_pool": Difference("of NCDHW: over all three axes", "over H and W"),
    "vision.roi_align_nchw": Difference("`aligned`: half an element further on", "regions stay where they are"),
    "vision.all_class_non_max_suppression": Difference(
        "the result has room for every box", "for `max_output_boxes_per_class` of each class"
    ),
}


def respelled(signature: Signature, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keyword arguments ``given`` of a call, by our names of the parameters.

    >>> def clip(x, min=None, max=None): ...
    >>> respelled(Signature.from_callable(clip), {"a_min": 0, "max": 6})
    {'min': 0, 'max': 6}
    """
    if signature.parameters.keys() >= given.keys():
        return given
    ours = {theirs: name for name in signature.parameters for theirs in TOPI.get(name, ()) if name not in given}
    return {name if name in signature.parameters else ours.get(name, name): value for name, value in given.items()}
