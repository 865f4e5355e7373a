"""The first case of every operator in a float type that its own cases leave out, and with nan and infinities.

Which type is drawn follows from the name, so that the types are spread over the table; the executor judges.
"""

from __future__ import annotations

import dataclasses
import zlib

import pytest

from tir import ops
from tir.dtype import DType
from tir.errors import TensorExpressionError
from tir.interp import run
from tir.ops.cases import Argument, Case
from tir.ops.check import Judged

FLOATS = ("float64", "float16", "bfloat16")
OTHER_TYPES = {  # operators that are not of every float type, with what they say
    "reinterpret": "has 64 bits, and int32 32|has 16 bits, and int32 32",
    "dft": "of float32 or float64",
    "solve": "in float32 or float64",
    "stft": "of float32 or float64",
}


def floats(case: Case) -> list[Argument]:
    return [a for a in case.arguments() if a.dtype.is_float]


def drawn(name: str) -> str | None:
    """A float type that no case of the operator has; None where the first case has no floats, or all types are there."""
    cases = ops.operators()[name].cases
    have = {str(a.dtype) for case in cases for a in case.arguments()}
    rest = [dtype for dtype in FLOATS if dtype not in have]
    return rest[zlib.crc32(name.encode()) % len(rest)] if rest and floats(cases[0]) else None


@pytest.mark.parametrize("name", [name for name in ops.operators() if drawn(name)])
def test_a_type_that_no_case_has(name):
    found, dtype = ops.find(name), DType(drawn(name) or "")
    case = found.cases[0].mapped(lambda a: dataclasses.replace(a, dtype=dtype) if a.dtype.is_float else a)
    if name in OTHER_TYPES:
        with pytest.raises(TensorExpressionError, match=OTHER_TYPES[name]):
            Judged(found, case)
        return
    judged = Judged(found, case)
    judged(lambda *arrays: run(judged.func, *arrays))


# operators for which the reference, or the operator, says nothing of nan and infinities, and why
EXEMPT = {
    "nn.rotary_embedding": "the reference multiplies complex numbers",
    "nn.simulated_quantize": "nan is no integer",
    "nn.fake_quantize": "nan is no integer",
    **dict.fromkeys(
        (f"nn.conv{n}d_transpose" for n in (1, 2, 3)), "an infinite weight meets the zeros around the image"
    ),
    **dict.fromkeys(
        (*(f"image.resize{n}d" for n in (1, 2, 3)), "nn.upsampling", "nn.upsampling3d"),
        "the reference sums all elements, most of them times zero",
    ),
    "image.crop_and_resize": "the reference sums all elements, most of them times zero",
    "image.grid_sample": "the reference sums all elements, most of them times zero",
    "vision.box_iou": "the sides of a box with a nan have no order",
    "vision.roi_align_nchw": "the reference sums all elements, most of them times zero",
    "nn.conv2d_winograd_weight_transform": "the reference sums all elements, some of them times zero",
    "dft": "the reference multiplies complex numbers",
    "stft": "the reference multiplies complex numbers",
}


def has_any(name: str) -> bool:
    return any(isinstance(a.values, str) and a.values == "any" for a in floats(ops.operators()[name].cases[0]))


@pytest.mark.parametrize("name", [name for name in ops.operators() if has_any(name) and name not in EXEMPT])
def test_nan_and_infinities(name):
    def hard(a: Argument) -> Argument:
        plain = a.dtype.is_float and isinstance(a.values, str) and a.values == "any"
        return dataclasses.replace(a, values="nonfinite") if plain else a

    found = ops.find(name)
    judged = Judged(found, found.cases[0].mapped(hard))
    judged(lambda *arrays: run(judged.func, *arrays))
