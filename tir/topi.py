"""TOPI's name for :mod:`tir.ops`: ``import tir.topi`` and ``tir.topi.nn.relu`` give the operators there."""

import sys

from . import ops

sys.modules[__name__] = ops
sys.modules[f"{__name__}.nn"] = ops.nn
