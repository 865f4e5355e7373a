"""TOPI's operators, with the parameters and the meaning that they have in TVM 0.27: ``topi.flip(x)``, ``topi.nn.conv2d_nchw(…)``.

They are those of :mod:`tir.ops`, but for those of ``own.py`` and ``own_nn.py``, whose names mean something else in the Array API and in
ONNX. The page of operators has a table of these, and of what differs from TOPI here as well.
"""

from __future__ import annotations

from .. import ops
from ..ops.registry import namespace
from . import image as image
from . import nn as nn
from . import testing as testing
from .own import arange, argmax, argmin, argsort, cumprod, cumsum, flip, meshgrid, prod, strided_slice, sum  # noqa: F401

__getattr__, __dir__ = namespace(ops, globals())
