"""``topi.nn``: the operators of :mod:`tir.ops.nn`, but for those of ``own_nn.py``."""

from __future__ import annotations

from ..ops import nn
from ..ops.registry import namespace
from .own_nn import conv1d, conv2d_NCHWc, conv2d_nhwc, conv3d_ndhwc, deformable_conv2d_nchw, deformable_conv2d_nhwc  # noqa: F401

__getattr__, __dir__ = namespace(nn, globals())
