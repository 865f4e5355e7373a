"""Parameters of operators as topi spells them: a call by their names means ours."""

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
