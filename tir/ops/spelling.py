"""Operators as topi has them: a call by its names of parameters means ours; what differs all the same is listed here."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Signature
from typing import Any

TOPI: Mapping[str, tuple[str, ...]] = {
    "x": ("data", "a", "ary", "array", "lhs"),
    "y": ("rhs", "b"),
    "t": ("x",),
    "arrays": ("a_tuple", "tensors"),
    "tensors": ("xs",),
    "data": ("Input", "input"),
    "kernel": ("Filter", "filter"),
    "scale": ("Scale",),
    "shift": ("Shift",),
    "strides": ("stride",),
    "min": ("a_min",),
    "max": ("a_max",),
    "value": ("fill_value",),
}


DIFFERENCES: Mapping[str, str] = {  # of operators that have topi's name, and say so in the page of operators
    "flip": "`axis=None` turns all axes, as in NumPy; topi's default is `axis=0`.",
    "repeat": "`axis=None` repeats the elements of the flattened tensor, as in NumPy; topi's default is `axis=0`.",
    "argsort": 'positions are `int64`; topi\'s default is `dtype="float32"`.',
    "argmax": "positions are `int64`, also those of `argmin`; topi's are `int32`.",
    "arange": 'integers are `int32`; topi\'s default is `dtype="float32"`.',
    "sum": "sums and products of integers (`prod`, `cumsum`, `cumprod`) are 64 bits wide, as in NumPy; topi's have the type of the tensor.",
    "meshgrid": 'tensors are arguments of their own, and `indexing="xy"` is the default, as in NumPy; topi takes a list, and says `"ij"`.',
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
